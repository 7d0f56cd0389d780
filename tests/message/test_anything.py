"""AnyPointer, AnyStruct, AnyList, capabilities without RPC, roots of no type, orphans."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import capnwire
from capnwire import (
    EncodeError,
    EncodeTypeError,
    MessageBuilder,
    PointerError,
    SchemaMismatch,
    UnresolvedCapability,
    list_of,
    types,
)

CAPABILITY = 0x0000_0005_0000_0003  # kind 3, index 5


def test_an_any_pointer_takes_every_kind_of_object(ours: Any, theirs: Any) -> None:
    message = ours.Anything.new_message()
    for module in (ours,):
        point = module.Point.new_message(x=3, label="l")
        message.any = point
        assert message.any.as_struct(module.Point).label == "l"
        message.any = point.as_reader()
        assert message.as_reader().any.as_struct(module.Point).x == 3
    message.any = "text"
    assert message.any.as_text() == "text"
    message.any = b"data"
    assert message.any.as_data() == b"data"
    message.any = ours.Lists.new_message(texts=["a", "b"]).texts
    assert list(message.any.as_list(list_of(types.Text))) == ["a", "b"]
    message.some = message.any
    assert list(message.some.as_list(list_of(types.Text))) == ["a", "b"]
    message.any = message.as_reader().any
    assert len(message.any.as_list(list_of(types.Text))) == 2
    for wrong in (5, 1.5, {"x": 1}, [1], object()):
        with pytest.raises(EncodeTypeError):
            message.any = wrong
    assert len(message.any.as_list(list_of(types.Text))) == 2
    message.any = None
    assert message.any.is_null
    assert not message.any
    assert not message.has("any")


@pytest.mark.parametrize("kind", ["struct", "text", "list"])  # bytes are a Text to pycapnp
def test_any_pointers_are_written_as_pycapnp_does(ours: Any, theirs: Any, kind: str) -> None:
    made = []
    for module in (ours, theirs):
        value = {
            "struct": lambda m: m.Point.new_message(x=3, label="l"), "text": lambda m: "text",
            "list": lambda m: m.Lists.new_message(int32s=[1, 2]).int32s,
        }[kind](module)
        message = module.Anything.new_message()
        message.any = value
        made.append(message.to_bytes())
    assert made[0] == made[1]


def test_any_pointers_are_built_in_place(ours: Any) -> None:
    message = ours.Anything.new_message()
    message.any.init_as_struct(ours.Point).x = 5
    assert message.any.as_struct(ours.Point.schema).x == 5
    message.init("any").init_as_list(list_of(types.Int16), 3)[2] = 7
    assert list(message.any.as_list(list_of(types.Int16))) == [0, 0, 7]
    message.any.set_as_text("t")
    assert message.as_reader().any.as_text() == "t"
    message.any.clear()
    assert message.any.is_null
    assert message.any.as_struct(ours.Point).x == 0


def test_a_null_any_pointer_reads_as_empty(ours: Any) -> None:
    any_pointer = ours.Anything.new_message().as_reader().any
    assert any_pointer.as_struct(ours.Point).to_dict() == {"x": 0, "y": 0}
    assert list(any_pointer.as_list(list_of(types.Text))) == []
    assert (any_pointer.as_text(), any_pointer.as_data()) == ("", b"")
    assert any_pointer.as_interface(ours.Service) is None
    assert str(any_pointer) == "<opaque pointer>"


def test_the_wrong_kind_is_an_error(ours: Any) -> None:
    reader = ours.Anything.new_message(any="text").as_reader()
    with pytest.raises(PointerError):
        reader.any.as_struct(ours.Point)
    with pytest.raises(PointerError):
        reader.any.as_interface()
    with pytest.raises(TypeError, match="a struct type is wanted"):
        reader.any.as_struct(5)
    with pytest.raises(TypeError, match="a list type is wanted"):
        reader.any.as_list(ours.Point)
    with pytest.raises(capnwire.DecodeError):
        ours.Anything.new_message(any=ours.Point.new_message()).as_reader().any.as_text()


def test_any_struct_and_any_list_take_only_theirs(ours: Any) -> None:
    message = ours.Anything.new_message(
        anyStruct=ours.Point.new_message(y=2), anyList=ours.Lists.new_message(bools=[True]).bools
    )
    assert message.anyStruct.as_struct(ours.Point).y == 2
    assert list(message.as_reader().anyList.as_list(list_of(types.Bool))) == [True]
    for field, wrong in (("anyStruct", "text"), ("anyStruct", message.anyList.as_list(
            list_of(types.Bool))), ("anyList", ours.Point.new_message()), ("anyList", b"x")):
        with pytest.raises(EncodeTypeError):
            message[field] = wrong


def test_any_pointers_compare_by_content(ours: Any) -> None:
    one = ours.Anything.from_bytes(ours.Anything.new_message(any="x").to_bytes())
    two = ours.Anything.from_bytes(ours.Anything.new_message(1, any="x").to_bytes())
    assert one.any == two.any
    assert hash(one.any) == hash(two.any)
    assert one.any != ours.Anything.new_message(any="y").any
    with pytest.raises(TypeError, match="unhashable"):
        hash(ours.Anything.new_message().any)


# ---------------------------------------------------------------- capabilities without RPC


def test_capability_fields_read_none_or_what_is_not_resolved(ours: Any, framed: Any) -> None:
    message = ours.Anything.new_message()
    assert message.service is None
    assert message.capability is None
    data = message.to_bytes()
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(8, len(data), 8)]
    pointers = 1 + (words[0] >> 32 & 0xFFFF)
    for index in (3, 4):
        words[pointers + index] = CAPABILITY
    reader = ours.Anything.from_bytes(framed(*words))
    assert isinstance(reader.service, UnresolvedCapability)
    assert reader.service.index == 5
    assert reader.service == reader.capability
    assert reader.total_size.cap_count == 2
    assert "service = <external capability>" in str(reader)
    assert reader.to_dict()["service"] == reader.service
    builder = reader.as_builder()
    assert builder.service == reader.service
    builder.capability = None
    assert not builder.has("capability")
    for refuse in (pickle.dumps, lambda it: it.to_canonical()):
        with pytest.raises((TypeError, EncodeError), match="capabilit"):
            refuse(reader)
    with pytest.raises(EncodeTypeError, match="a capability.* is wanted"):
        builder.service = 5


def test_interfaces_have_their_declarations(ours: Any) -> None:
    assert ours.Service.limit == 99
    assert ours.Service.Mode.fast == 1
    assert ours.Service.Request.new_message(key="k").key == "k"
    assert ours.Service is not ours.Better
    assert pickle.loads(pickle.dumps(ours.Service)) is ours.Service


# ---------------------------------------------------------------- roots and orphans


def test_a_message_builder_chooses_its_root_later(ours: Any) -> None:
    builder = MessageBuilder(4)
    builder.init_root(ours.Point).label = "root"
    assert builder.get_root(ours.Point).label == "root"
    assert ours.Point.from_bytes(builder.to_bytes()).label == "root"
    assert ours.Point.from_segments(builder.to_segments()).label == "root"
    builder.set_root(ours.Tree.new_message(value=4))
    assert builder.get_root_as_any().as_struct(ours.Tree).value == 4
    builder.set_root("just text")
    assert builder.get_root_as_any().as_text() == "just text"


def test_orphans_move_between_fields(ours: Any) -> None:
    message = ours.Tree.new_message(left={"value": 3, "children": [{"value": 4}]})
    orphan = message.disown("left")
    assert not message.has("left")
    assert orphan.get().value == 3
    orphan.get().value = 5
    message.adopt("right", orphan)
    assert message.right.to_dict() == {"value": 5, "children": [{"value": 4}]}
    assert not orphan
    with pytest.raises(SchemaMismatch):
        orphan.get()
    items = message.right.disown("children")
    message.adopt("children", items)
    assert message.children[0].value == 4


def test_new_orphans_are_filled_and_adopted(ours: Any) -> None:
    builder = MessageBuilder()
    root = builder.init_root(ours.Lists)
    orphan = builder.new_orphan(list_of(ours.Point), 2)
    orphan.get()[1].x = 6
    root.adopt("points", orphan)
    assert root.points[1].x == 6
    point = capnwire.new_orphan(root, ours.Point)
    point.get().label = "unused"
    del point
    assert ours.Lists.from_bytes(builder.to_bytes()).points[1].x == 6


def test_orphans_are_checked(ours: Any) -> None:
    message, other = ours.Tree.new_message(left={"value": 1}), ours.Tree.new_message()
    orphan = message.disown("left")
    with pytest.raises(EncodeError, match="message that it belongs to"):
        other.adopt("left", orphan)
    with pytest.raises(EncodeTypeError, match=r"another type than Tree\.children"):
        message.adopt("children", orphan)
    with pytest.raises(TypeError, match="an orphan is wanted"):
        message.adopt("left", 5)
    with pytest.raises(TypeError):
        message.disown("value")
    message.adopt("left", orphan)
    assert message.left.value == 1
    with pytest.raises(TypeError):
        copy.copy(orphan)


def test_blobs_are_adopted_only_by_their_own_kind(ours: Any) -> None:
    message = ours.Blobs.new_message(text="t", data=b"d")
    for field, wrong in (("data", "text"), ("text", "data")):
        orphan = message.disown(wrong)
        with pytest.raises(EncodeTypeError, match=f"another type than Blobs.{field}"):
            message.adopt(field, orphan)
        message.adopt(wrong, orphan)
    message.adopt("other", message.disown("text"))
    assert message.to_dict() == {"data": b"d", "other": "t"}
    lists = ours.Lists.new_message(texts=["a"], rows=[[1]], int16s=[1], datas=[b""])
    for field, wrong in (("texts", "datas"), ("int16s", "rows"), ("rows", "int16s")):
        with pytest.raises(EncodeTypeError):
            lists.adopt(field, lists.disown(wrong))
    lists = ours.Lists.new_message(texts=["a"], int16s=[7], rows=[[1]])
    with pytest.raises(EncodeTypeError, match=r"another type than List\(text\)\[0\]"):
        lists.texts.adopt(0, lists.disown("int16s"))
    lists = ours.Lists.new_message(int16s=[7], rows=[[1]])
    lists.rows.adopt(0, lists.disown("int16s"))
    assert lists.to_dict() == {"rows": [[7]]}


def test_any_struct_and_any_list_adopt_only_theirs(ours: Any) -> None:
    message = ours.Anything.new_message(anyStruct=ours.Point.new_message(y=2), any="text")
    with pytest.raises(EncodeTypeError):
        message.adopt("anyList", message.disown("anyStruct"))
    message = ours.Anything.new_message(anyStruct=ours.Point.new_message(y=2))
    message.adopt("any", message.disown("anyStruct"))
    assert message.any.as_struct(ours.Point).y == 2


def test_any_pointers_and_lists_are_pickled_and_copied(ours: Any) -> None:
    message = ours.Anything.new_message(any=ours.Point.new_message(x=4, label="l"))
    reader = ours.Anything.from_bytes(message.to_bytes())
    for made in (pickle.loads(pickle.dumps(reader.any)), copy.deepcopy(reader.any),
                 pickle.loads(pickle.dumps(message.any)), copy.copy(message.any)):
        assert made.as_struct(ours.Point).label == "l"
        assert made == reader.any
    copied = copy.copy(message.any)
    copied.as_struct(ours.Point).x = 9
    assert message.any.as_struct(ours.Point).x == 4
    assert type(pickle.loads(pickle.dumps(message.any))) is capnwire.AnyPointerBuilder
    assert reader.any.total_size.word_count == 1 + 2 + 1
    lists = ours.Lists.new_message(int32s=[1, 2])
    taken = copy.copy(lists.int32s)
    lists.int32s[0] = 9
    assert list(taken) == [1, 2]


def test_capabilities_are_not_pickled_in_any_pointers_and_lists(ours: Any, framed: Any) -> None:
    # A root of one pointer, to a list of one capability; seen as Anything.any and as a list.
    reader = ours.Anything.from_bytes(
        framed(0x0001_0000_0000_0000, 0x0000_000E_0000_0001, CAPABILITY))
    services = reader.any.as_list(ours.Anything.new_message().as_reader().services.type)
    assert services[0].index == 5
    for value in (reader.any, services):
        with pytest.raises(TypeError, match="capabilities"):
            pickle.dumps(value)
