"""Structs, groups and unions: setting, merging, replacing, switching, staleness."""

from __future__ import annotations

import pickle
from collections import OrderedDict, UserDict
from typing import Any

import pytest

import capnwire
from capnwire import EncodeError, EncodeTypeError, UnionError


def test_types_are_classes(ours: Any) -> None:
    person = ours.Point
    assert isinstance(person, type)
    assert (person.__name__, person.__module__) == ("Point", "everything_capnp")
    built = person.new_message(x=1)
    reader = built.as_reader()
    assert isinstance(built, person.Builder)
    assert isinstance(built, person)
    assert isinstance(reader, person.Reader)
    assert not isinstance(reader, person.Builder)
    assert not isinstance(reader, ours.Tree)
    for make in (person.Reader, person.Builder):
        with pytest.raises(TypeError):
            make()
    assert isinstance(person(x=2), person.Builder)


def test_python_subclasses_add_behaviour(ours: Any) -> None:
    class Located(ours.Point.Reader):  # type: ignore[misc]
        def distance(self) -> int:
            value: int = self.x + self.y
            return value

    assert issubclass(Located, ours.Point)


def test_structs_are_set_from_mappings_and_structs(ours: Any) -> None:
    values: list[Any] = [
        {"value": 3}, UserDict(value=3), OrderedDict(value=3), ours.Tree.new_message(value=3),
        ours.Tree.new_message(value=3).as_reader(),
    ]
    for value in values:
        message = ours.Tree.new_message(left=value)
        assert message.left.value == 3
        assert message.to_dict() == {"value": 0, "left": {"value": 3}}
    for wrong in (3, "x", [1], ours.Point.new_message(), ours):
        with pytest.raises(EncodeTypeError, match=r"Tree\.left: a struct Tree or a mapping"):
            ours.Tree.new_message(left=wrong)


def test_a_mapping_is_merged_and_a_struct_replaces(ours: Any, theirs: Any) -> None:
    made = []
    for module in (ours, theirs):
        message = module.Tree.new_message(left={"value": 3, "right": {"value": 4}})
        message.left = {"value": 5}
        made.append(message.to_bytes())
        assert message.left.right.value == 4
    assert made[0] == made[1]
    message = ours.Tree.new_message(left={"value": 3, "right": {"value": 4}})
    message.left = ours.Tree.new_message(value=6)
    assert message.left.to_dict() == {"value": 6}


def test_none_clears_a_struct_and_a_list(ours: Any) -> None:
    message = ours.Tree.new_message(left={"value": 3}, children=[{"value": 1}])
    message.left, message.children = None, None
    assert not message.has("left")
    assert not message.has("children")
    assert ours.Tree.new_message(left=None).to_dict() == {"value": 0}


def test_a_struct_can_be_assigned_to_itself_and_into_itself(ours: Any) -> None:
    message = ours.Tree.new_message(value=1, left={"value": 2, "left": {"value": 3}})
    message.left = message.left
    assert message.left.left.value == 3
    message.right = message
    assert message.right.to_dict() == {"value": 1, "left": {"value": 2, "left": {"value": 3}}}
    message.left = message.left.left
    assert message.left.to_dict() == {"value": 3}
    message.children = [message, message.left]
    assert message.children[0].left.value == 3


def test_a_stale_builder_raises(ours: Any) -> None:
    message = ours.Tree.new_message(left={"value": 2})
    stale = message.left
    message.init("left")
    for use in (lambda: stale.value, lambda: setattr(stale, "value", 1), stale.to_dict,
        stale.to_bytes):
        with pytest.raises(EncodeError, match="stale"):
            use()
    items = ours.Lists.new_message(int32s=[1])
    old = items.int32s
    items.int32s = [2, 3]
    with pytest.raises(EncodeError, match="stale"):
        old[0]


def test_a_reader_of_a_builder_sees_later_changes(ours: Any) -> None:
    message = ours.Tree.new_message()
    reader = message.as_reader()
    message.value = 7
    message.left = {"value": 8}
    assert (reader.value, reader.left.value) == (7, 8)
    with pytest.raises(AttributeError):
        reader.value = 1


def test_unknown_names_are_attribute_errors(ours: Any) -> None:
    message = ours.Point.new_message()
    reader = message.as_reader()
    for use in (lambda: message.nope, lambda: reader.nope, lambda: setattr(message, "nope", 1),
                lambda: message["nope"], lambda: reader["nope"], lambda: message.init("nope"),
                lambda: reader.has("nope"), lambda: message.from_dict({"nope": 1}),
                lambda: ours.Point.new_message(nope=1), lambda: message.clear("nope")):
        with pytest.raises(AttributeError, match="nope"):
            use()
    assert not hasattr(reader, "nope")


# ---------------------------------------------------------------- groups


def test_a_struct_is_no_container_of_its_fields(ours: Any) -> None:
    message = ours.Point.new_message()
    for struct in (message, message.as_reader()):
        for misuse in (list, iter_first, lambda it: "x" in it, lambda it: it[0], len):
            with pytest.raises(TypeError):
                misuse(struct)
    with pytest.raises(TypeError, match="a field of Point is named by a str, not by int 5"):
        message.from_dict({5: 1})
    with pytest.raises(EncodeTypeError, match=r"Lists\.int32s: a sequence is wanted"):
        ours.Lists.new_message(int32s=message)


def iter_first(struct: Any) -> object:
    return next(iter(struct))


def test_groups_are_views_of_their_struct(ours: Any, theirs: Any) -> None:
    values = {"place": {"street": "s", "number": 3, "deeper": {"flag": True, "tree": {"value": 1}}},
              "after": "z"}
    message, other = ours.Groups.new_message(**values), theirs.Groups.new_message(**values)
    assert message.to_bytes() == other.to_bytes()
    assert isinstance(message.place, ours.Groups.Place.Builder)
    assert isinstance(message.as_reader().place, ours.Groups.Place.Reader)
    message.place.number = 9
    message.place = {"street": "t"}
    assert message.to_dict() == {
        "before": 0, "after": "z",
        "place": {"street": "t", "number": 9, "deeper": {"flag": True, "tree": {"value": 1}}},
    }


def test_a_group_is_set_from_a_group_and_from_itself(ours: Any) -> None:
    message = ours.Groups.new_message(place={"street": "s", "deeper": {"flag": True}})
    message.place = message.place
    assert message.place.street == "s"
    other = ours.Groups.new_message(before=4)
    other.place = message.as_reader().place
    assert other.place.to_dict() == message.place.to_dict()
    with pytest.raises(EncodeTypeError, match="a group Groups.place or a mapping"):
        other.place = ours.Point.new_message()
    with pytest.raises(EncodeTypeError):
        other.place = 5


def test_a_group_set_from_a_group_has_nothing_else_left(ours: Any) -> None:
    full = {"street": "s", "number": 4, "deeper": {"flag": True, "tree": {"value": 1}}}
    message = ours.Groups.new_message(before=1, after="x", place=full)
    message.place = ours.Groups.new_message(place={"number": 9}).place
    assert message.to_dict() == {
        "before": 1, "after": "x", "place": {"number": 9, "deeper": {"flag": False}},
    }
    assert not message.place.has("street")


def test_a_group_set_from_one_of_a_malformed_message_is_left_as_it_was(ours: Any) -> None:
    data = bytearray(ours.Groups.new_message(place={"street": "s", "number": 9}).to_bytes())
    street = next(at for at in range(8, len(data), 8) if data[at + 4] == 18)  # 2 bytes
    data[street : street + 4] = (0x7FFF_FFF1).to_bytes(4, "little")  # far beyond the segment
    message = ours.Groups.new_message(place={"street": "kept", "number": 3})
    before = message.to_bytes()
    reader = ours.Groups.from_bytes(bytes(data)).place
    with pytest.raises(capnwire.DecodeError):
        message.place = reader
    assert message.to_bytes() == before


def test_groups_are_equal_by_their_own_fields_and_bits(ours: Any) -> None:
    one = ours.Groups.from_bytes(ours.Groups.new_message(before=1, place={"number": 5}).to_bytes())
    two = ours.Groups.from_bytes(ours.Groups.new_message(after="x", place={"number": 5}).to_bytes())
    assert one.place == two.place
    assert hash(one.place) == hash(two.place)
    assert one.place.to_canonical() == two.place.to_canonical()
    assert one != two
    assert one.place != ours.Groups.new_message(place={"number": 6}).place
    with pytest.raises(TypeError, match="unhashable"):
        hash(ours.Groups.new_message().as_reader().place)


def test_a_group_can_be_copied_out(ours: Any) -> None:
    message = ours.Groups.new_message(before=1, after="x", place={"street": "s", "number": 4})
    copy = message.as_reader().place.as_builder()
    assert copy.to_dict() == {"street": "s", "number": 4, "deeper": {"flag": False}}
    copy.street = "other"
    assert message.place.street == "s"


def test_init_empties_a_group(ours: Any, theirs: Any) -> None:
    made = []
    for module in (ours, theirs):
        message = module.Groups.new_message(place={"street": "s", "number": 3,
            "deeper": {"flag": True}})
        message.init("place").street = "new"
        made.append(message.to_bytes())
        assert (message.place.number, message.place.deeper.flag) == (7, False)
    assert made[0] == made[1]


# ---------------------------------------------------------------- unions


def test_setting_a_member_makes_it_active(ours: Any) -> None:
    message = ours.Unions.new_message()
    assert message.which() == "nothing"
    for name, value in [("number", 5), ("text", "t"), ("point", {"x": 1}), ("numbers", [1, 2]),
                        ("pair", {"first": "f"}), ("nothing", None), ("number", 0)]:
        setattr(message, name, value)
        reader = ours.Unions.from_bytes(message.to_bytes())
        assert message.which() == name == reader.which()
        assert reader.has(name) or name == "nothing"
        others = {"nothing", "number", "text", "point", "numbers", "pair"} - {name}
        for other in others:
            assert not reader.has(other)
            with pytest.raises(UnionError, match=rf"{other} is not the active member.*'{name}' is"):
                reader[other]
            with pytest.raises(UnionError):
                message[other]


def test_init_and_clear_make_a_member_active(ours: Any, theirs: Any) -> None:
    made = []
    for module in (ours, theirs):
        message = module.Unions.new_message(text="previous")
        message.init("point").x = 4
        message.init("pair").second = 6
        message.named.init("inner").b = 3
        message.init("numbers", 2)[1] = 8
        made.append(message.to_bytes())
    assert made[0] == made[1]
    message = ours.Unions.new_message(text="t")
    message.clear("number")
    assert (message.which(), message.number) == ("number", 0)


def test_a_refused_value_leaves_the_union_alone(ours: Any) -> None:
    message = ours.Unions.new_message(text="kept")
    for name, wrong in [("number", "x"), ("point", {"x": "y"}), ("numbers", ["x"]), ("point", 3),
                        ("pair", {"first": 5}), ("pair", {"second": 2**64}), ("nothing", 1)]:
        with pytest.raises(EncodeError):
            setattr(message, name, wrong)
        assert message.which() == "text", name
        assert message.text == "kept"


def test_unknown_union_members_survive_and_are_told(ours: Any, framed: Any) -> None:
    data = ours.Unions.new_message(common="c", number=3).to_bytes()
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(8, len(data), 8)]
    offset = ours.Unions.schema.node["struct"].discriminantOffset  # in units of 16 bits
    at, shift = 1 + offset // 4, offset % 4 * 16
    assert words[at] >> shift & 0xFFFF == 1
    changed = list(words)
    changed[at] = words[at] & ~(0xFFFF << shift) | 0x77 << shift
    reader = ours.Unions.from_bytes(framed(*changed))
    with pytest.raises(UnionError) as caught:
        reader.which()
    assert caught.value.discriminant == 0x77
    assert reader.common == "c"
    assert "number" not in reader.to_dict()
    assert reader.as_builder().to_bytes() == framed(*changed)
    assert reader == ours.Unions.from_bytes(framed(*changed))
    assert "common" in str(reader)
    message = reader.as_builder()
    message.text = "known"
    assert message.which() == "text"


def test_an_unknown_member_of_a_group_survives_its_copy(ours: Any, framed: Any) -> None:
    data = ours.Unions.new_message(named={"flag": True}).to_bytes()
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(8, len(data), 8)]
    offset = ours.Unions.Named.schema.node["struct"].discriminantOffset  # in units of 16 bits
    words[1 + offset // 4] |= 0x77 << offset % 4 * 16
    reader = ours.Unions.from_bytes(framed(*words))
    copies = [reader.named.as_builder(), ours.Unions.new_message(named={"label": "x"})]
    copies[1].named = reader.named
    for named in (copies[0], copies[1].named, pickle.loads(pickle.dumps(reader.named))):
        assert named == reader.named
        with pytest.raises(UnionError) as caught:
            named.which()
        assert caught.value.discriminant == 0x77


def test_named_unions_are_groups(ours: Any) -> None:
    message = ours.Unions.new_message(named={"label": "n"})
    assert (message.named.which(), message.named.label) == ("label", "n")
    message.named = {"inner": {"a": 7}}
    assert message.named.inner.which() == "a"
    assert message.to_dict()["named"] == {"inner": {"a": 7}}
    with pytest.raises(UnionError, match="no unnamed union"):
        ours.Point.new_message().which()


# ---------------------------------------------------------------- fields named like methods


def test_fields_named_like_methods_are_reached_by_item(ours: Any, theirs: Any) -> None:
    values = {"copy": "c", "which": 4, "schema": {"x": 1}, "init": [1, 2], "write": b"w",
              "clear": True, "reader": {"total": 3}}
    message = ours.Methods.new_message(**values)
    without_which = {name: value for name, value in values.items() if name != "which"}
    other = theirs.Methods.new_message(**without_which)  # which has no way to set `which`
    assert ours.Methods.new_message(**without_which).to_bytes() == other.to_bytes()
    reader = ours.Methods.from_bytes(message.to_bytes())
    for made in (message, reader):
        assert made["copy"] == "c"
        assert made["which"] == 4
        assert made["schema"].x == 1
        assert list(made["init"]) == [1, 2]
        assert made["write"] == b"w"
        assert made["clear"] is True
        assert made["reader"].total == 3
        assert made.has("copy")
    message["copy"] = "d"
    message["toDict"] = None
    del message["write"]
    assert reader.copy()["copy"] == "c"
    assert message.to_dict() == {
        "toDict": None, "copy": "d", "which": 4, "schema": {"x": 1, "y": 0}, "init": [1, 2],
        "reader": {"total": 3},
    }
    assert ours.Methods.Reader is type(reader)
    assert repr(reader).startswith('<Methods reader (copy = "c", which = 4')
