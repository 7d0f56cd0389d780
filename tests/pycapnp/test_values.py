"""What programs written for pycapnp may store, call and compare, beside what its suite pins."""

import copy
import pickle
from collections import OrderedDict
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("field", "value"),
    [("i64", 2**64), ("i64", -(2**63) - 1), ("u64", 2**64), ("i8", 2**70), ("color", -(2**70)),
     ("shorts", [2**64])],
)
def test_an_integer_of_more_than_64_bits_overflows(
    capnp: Any, kind: Any, field: str, value: Any
) -> None:
    with pytest.raises(OverflowError, match="an integer from") as caught:
        kind.new_message(**{field: value})
    assert isinstance(caught.value, capnp.KjException)
    assert caught.value.field == field  # type: ignore[attr-defined]


@pytest.mark.parametrize(("field", "value"), [("i64", 2**63), ("u64", -1), ("i8", 128)])
def test_an_integer_of_64_bits_is_out_of_range(
    capnp: Any, kind: Any, field: str, value: int
) -> None:
    with pytest.raises(capnp.KjException, match="an integer from") as caught:
        kind.new_message(**{field: value})
    assert not isinstance(caught.value, OverflowError)


def test_sizes_may_be_the_quotients_of_a_division(kind: Any) -> None:
    message = kind.new_message()
    assert len(message.init("shorts", 7 / 2)) == 3
    for size in (-1, 2**32, 2**70):
        with pytest.raises(OverflowError):
            message.init("shorts", size)


def test_bytes_of_any_encoding_are_stored_as_text(kind: Any) -> None:
    latin = "é".encode("latin-1")
    message = kind.new_message(text=latin, texts=[latin, b"ok"])
    assert message.to_bytes().count(latin + b"\0") == 2
    with pytest.raises(UnicodeDecodeError, match="not UTF-8") as caught:
        message.text  # noqa: B018
    assert (caught.value.object, caught.value.start) == (latin, 0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.reason) == (str(caught.value), caught.value.reason)
    with pytest.raises(UnicodeDecodeError):
        list(message.texts)
    message.text = bytearray(b"plain")
    message.texts[0] = memoryview(b"also")
    assert (message.text, list(message.texts)) == ("plain", ["also", "ok"])


def test_bytes_of_a_text_activate_their_member(kinds: Any) -> None:
    choice = kinds.Kinds.new_message().choice
    choice.two = b"\xff"
    assert choice.which == "two"
    assert choice.as_reader().as_builder().which == "two"


def test_dicts_are_ordered_all_through_when_asked_for(kinds: Any) -> None:
    event = kinds.Event.new_message(time=1, leaves=[{"number": 2}])
    found = event.to_dict(ordered=True)
    assert isinstance(found, OrderedDict)
    assert isinstance(found["leaves"][0], OrderedDict)
    assert found == event.to_dict()
    assert type(event.to_dict()) is dict


def test_a_copied_list_is_one_of_the_drop_in(capnp: Any, kind: Any) -> None:
    items = kind.new_message(shorts=[1, 2]).shorts
    for made in (copy.copy(items), copy.deepcopy(items)):
        assert isinstance(made, capnp._DynamicListReader)
        assert repr(made) == "<capnp list reader [1, 2]>"


def test_from_dict_wants_a_dict(kind: Any) -> None:
    for value in ([], None, kind.new_message()):
        with pytest.raises(TypeError, match="dict"):
            kind.new_message().from_dict(value)


def test_members_of_unions_compare_with_their_names(kinds: Any) -> None:
    assert kinds.Choice.Union.Leaf == "Leaf"
    assert kinds.Choice.Union.Leaf == "leaf"
    assert kinds.Choice.Union.Leaf != "Words"
    assert kinds.Kinds.Choice.two == "two"


def test_schemas_are_what_they_were(kinds: Any) -> None:
    for module in (kinds.Kinds, kinds.Color, kinds.Echo):
        assert module.schema is module.schema
    assert kinds.Kinds.schema.fields["color"].schema == kinds.Color.schema
    assert kinds.Kinds.schema.fields["color"].schema != kinds.Echo.schema


def test_a_message_builder_gives_its_root(capnp: Any, kinds: Any) -> None:
    builder = capnp._MallocMessageBuilder()
    assert builder.get_segments_for_output() == []
    root = builder.set_root(kinds.Leaf.new_message(number=3))
    root.number += 1
    assert builder.get_root(kinds.Leaf).to_bytes()
    assert builder.get_root(kinds.Leaf).number == 4
    with pytest.raises(NotImplementedError):
        capnp.lib.capnp._MessageBuilder()


def test_an_exception_has_what_it_was_made_with(capnp: Any) -> None:
    error = capnp.KjException("text", "a nature", "a durability", 5, "OVERLOADED")
    assert (error.nature, error.durability, error.wrapper) == ("a nature", "a durability", 5)
    assert (error.type, error.description) == ("OVERLOADED", "text")
    bare = capnp.KjException("text")
    assert (bare.nature, bare.durability, bare.wrapper) == (None, None, None)


def test_an_orphan_of_a_text_has_its_value(capnp: Any, kinds: Any) -> None:
    root = capnp._MallocMessageBuilder().init_root(kinds.Kinds)
    root.from_dict({"text": "words", "data": b"bytes", "texts": ["a", "b"]})
    for orphan, value in (
        (root.disown("text"), "words"), (root.disown("data"), b"bytes"),
        (root.texts.disown(1), "b"),
    ):
        assert orphan.get() == value
    assert (root._has("text"), list(root.texts)) == (False, ["a", ""])
    orphan = root.disown("texts")
    assert str(orphan) == '["a", ""]'
    root.adopt("texts", orphan)
    with pytest.raises(capnp.KjException, match="adopted"):
        orphan.get()


def test_the_names_that_importing_all_gives(capnp: Any) -> None:
    names: dict[str, Any] = {}
    exec("from capnwire.pycapnp import *", names)
    wanted = {"AsyncIoStream", "TwoPartyClient", "TwoPartyServer", "kj_loop", "run", "load"}
    assert wanted <= names.keys()
    assert names["TwoPartyClient"] is capnp.TwoPartyClient
