"""Equality, hash, pickling, copying, and the text form of messages."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import capnwire
from tests.message.test_lists import VALUES as LISTS

TREE = {"value": 1, "left": {"value": 2}, "children": [{"value": 3}, {"value": 4}]}


def test_readers_are_equal_by_content_whatever_their_layout(ours: Any) -> None:
    one = ours.Tree.from_bytes(ours.Tree.new_message(**TREE).to_bytes())
    shuffled = dict(reversed(TREE.items()))
    two = ours.Tree.from_bytes(ours.Tree.new_message(1, **shuffled).to_bytes())
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two}) == 1
    assert one != ours.Tree.from_bytes(ours.Tree.new_message(value=1).to_bytes())
    assert one.left == ours.Tree.new_message(value=2)
    assert one.children == two.children
    assert hash(one.children) == hash(two.children)
    assert one.children[0] == ours.Tree.new_message(value=3).as_reader()
    assert one != 5
    assert one != ours.Point.new_message(x=1)


def test_only_readers_over_bytes_have_a_hash(ours: Any) -> None:
    data = ours.Tree.new_message(**TREE).to_bytes()
    for unhashable in (
        ours.Tree.new_message(), ours.Tree.new_message(**TREE).as_reader(),
        ours.Tree.from_bytes(bytearray(data)), ours.Tree.from_bytes(memoryview(bytearray(data))),
        ours.Tree.new_message(**TREE).children, ours.Tree.from_bytes(bytearray(data)).children,
    ):
        with pytest.raises(TypeError, match="unhashable"):
            hash(unhashable)
    assert ours.Tree.from_bytes(bytearray(data)) == ours.Tree.from_bytes(data)


def test_floats_are_equal_by_their_bits(ours: Any) -> None:
    def make(value: float) -> Any:
        return ours.Scalars.from_bytes(ours.Scalars.new_message(float64=value).to_bytes())

    assert make(float("nan")) == make(float("nan"))
    assert hash(make(float("nan"))) == hash(make(float("nan")))
    assert make(0.0) != make(-0.0)


def test_fields_that_the_schema_does_not_know_count(ours: Any) -> None:
    one = ours.New.new_message(a=1, c=5).to_bytes()
    two = ours.New.new_message(a=1, c=6).to_bytes()
    assert ours.Old.from_bytes(one) != ours.Old.from_bytes(two)
    assert ours.Old.from_bytes(one) == ours.Old.from_bytes(one)


def test_groups_compare_their_own_fields(ours: Any) -> None:
    one = ours.Groups.new_message(before=1, place={"street": "s"})
    two = ours.Groups.new_message(before=2, place={"street": "s"})
    assert one.place == two.place
    assert one != two
    two.place.number = 1
    assert one.place != two.place


# ---------------------------------------------------------------- pickling and copying


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_messages_pickle_as_what_they_are(ours: Any, protocol: int) -> None:
    def again(value: Any) -> Any:
        return pickle.loads(pickle.dumps(value, protocol))

    builder = ours.Tree.new_message(**TREE)
    reader = ours.Tree.from_bytes(builder.to_bytes())
    assert again(reader) == reader
    assert type(again(reader)) is ours.Tree.Reader
    assert type(again(builder)) is ours.Tree.Builder
    assert again(builder) == builder
    assert again(reader.left).to_dict() == {"value": 2}
    assert again(builder.children[1]).value == 4
    assert again(reader.children) == reader.children
    groups = ours.Groups.new_message(place={"street": "s"})
    assert again(groups.as_reader().place).street == "s"


def test_everything_else_pickles(ours: Any) -> None:
    def again(value: Any) -> Any:
        return pickle.loads(pickle.dumps(value))

    assert again(ours.Color.blue) is ours.Color.blue
    assert again(ours.Color(77)) == 77
    assert again(ours.Color) is ours.Color
    assert again(ours.Point.schema) == ours.Point.schema
    boxes = ours.Boxes.new_message(ofText={"value": "t"}).as_reader()
    assert again(boxes.ofText).value == "t"
    reader = ours.Lists.new_message(**LISTS).as_reader()
    for name in LISTS:
        assert again(reader[name]).to_list() == LISTS[name], name
    error = capnwire.LimitError("words", limit=1, wanted=2)
    assert (again(error).limit, again(error).wanted) == (1, 2)
    for made in (capnwire.EncodeError("t", struct="S", field="f", value=3),
                 capnwire.UnionError("t", discriminant=4),
                 capnwire.TruncatedError("t", wanted=8, found=1)):
        assert vars(again(made)) == vars(made)
        assert str(again(made)) == str(made)


def test_copies_are_independent(ours: Any) -> None:
    builder = ours.Tree.new_message(**TREE)
    for made in (copy.copy(builder), copy.deepcopy(builder), builder.copy(), builder.as_builder(),
                 builder.as_reader().as_builder(), ours.Tree.from_bytes(builder.to_bytes(),
                     builder=True)):
        made.left.value = 99
        made.children[0].value = 98
        assert builder.to_dict() == TREE
        assert made.to_dict() == {**TREE, "left": {"value": 99}, "children": [{"value": 98},
            {"value": 4}]}
    child = builder.left.as_builder()
    assert child.is_root
    child.value = 7
    assert builder.left.value == 2
    items = copy.deepcopy(builder.children)
    builder.children[0].value = 50
    assert items[0].value == 3


def test_a_copy_of_a_small_struct_grows_to_the_schema(ours: Any) -> None:
    old = ours.Old.new_message(a=3)
    new = ours.New.from_bytes(old.to_bytes()).as_builder()
    new.c = 5
    assert (new.a, new.c, new.d) == (3, 5, "new")


def test_copying_drops_what_is_dead(ours: Any) -> None:
    message = ours.Blobs.new_message()
    for _ in range(100):
        message.text = "x" * 100
    assert len(message.to_bytes()) > 10000
    assert len(message.copy().to_bytes()) < 160
    assert message.total_size.word_count == 3 + 13


def test_nothing_is_kept_when_readers_go(ours: Any) -> None:
    gc.collect()
    data = bytearray(ours.Tree.new_message(**TREE).to_bytes())
    reader = ours.Tree.from_bytes(data)
    child = reader.children[1]
    del reader
    assert child.value == 4
    del child
    data.append(0)  # nobody holds the buffer


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Tree", TREE), ("Tree", {}), ("Lists", LISTS), ("Groups", {"place": {"street": "s"}}),
        ("Unions", {"point": {"x": 1}}), ("Unions", {"pair": {"first": "f"},
            "named": {"label": "x"}}),
        ("Scalars", {"float32": 0.1, "float64": 1e100, "color": "blue", "int8": -1}),
        ("Scalars", {"float32": 1e-40, "float64": 5e-324}), ("Scalars", {"color": 99}),
        ("Scalars", {"float32": float("nan"), "float64": float("-inf")}),
        ("Blobs", {"text": "tab\t \"q\" 'a' \\ \x01\x7f ☃", "data": b"\0\x7f\x80\xff\n"}),
        ("Boxes", {"ofText": {"value": "v"}, "ofBox": {"value": {"value": b"x"}}}),
        ("Defaults", {}), ("Defaults", {"point": {}}), ("Lists", {"deep": [[["x" * 30], []], []]}),
        ("Lists", {"points": [{"label": "a long label that breaks the line"}, {}]}),
        ("Lists", {"int32s": list(range(100))}), ("Lists", {"empties": [{}, {}]}),
    ],
)
def test_text_is_what_the_tool_and_pycapnp_print(
    ours: Any, theirs: Any, decode: Callable[..., str], name: str, value: Any
) -> None:
    data = getattr(ours, name).new_message(**value).to_bytes()
    reader = getattr(ours, name).from_bytes(data)
    assert str(reader) == decode(data, name)
    assert repr(reader) == f"<{name} reader {decode(data, name, '--short')}>"
    with getattr(theirs, name).from_bytes(data) as other:
        assert str(other) == str(reader)
    assert str(reader.as_builder()) == str(reader)


def test_lists_print_as_in_their_struct(ours: Any) -> None:
    reader = ours.Lists.new_message(texts=["a", "b"], points=[{"x": 1}]).as_reader()
    assert str(reader.texts) == '["a", "b"]'
    assert repr(reader.points) == "<List(Point) reader [(x = 1, y = 0)]>"
    assert repr(ours.Lists.new_message(bools=[True]).bools) == "<List(bool) builder [true]>"


def test_what_the_tool_encodes_is_read(ours: Any, encode: Callable[[str, str], bytes]) -> None:
    data = encode('(common = "c", pair = (second = -3), named = (inner = (b = 5)))', "Unions")
    assert ours.Unions.from_bytes(data).to_dict() == {
        "pair": {"second": -3}, "common": "c", "named": {"inner": {"b": 5}}}
