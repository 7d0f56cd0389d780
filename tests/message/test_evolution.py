"""One version of a schema writes, another reads and changes: nothing is lost on either side."""

from __future__ import annotations

from typing import Any

import pytest

from capnwire import PointerError

OLD: dict[str, Any] = {
    "a": 1, "b": "b", "numbers": [1, 2], "texts": ["x", "y"], "voids": [None, None],
    "items": [{"x": 1, "name": "n"}, {"x": 2}], "child": {"a": 2},
}
NEW: dict[str, Any] = {
    "a": 1, "b": "b", "numbers": [{"value": 3, "extra": 4, "more": "m"}, {}],
    "texts": [{"text": "t", "weight": 2.0}, {}], "voids": [{"value": 1}, {}],
    "items": [{"x": 1, "name": "n", "y": 6, "list": [1]}, {"y": 7}], "child": {"c": 5}, "c": 8,
    "d": "d", "f": "f",
}


@pytest.mark.parametrize("words", [None, 0, 7])
def test_new_readers_take_old_messages(ours: Any, theirs: Any, words: int | None) -> None:
    data = ours.Old.new_message(words, **OLD).to_bytes()
    reader = ours.New.from_bytes(data)
    assert (reader.a, reader.b, reader.c, reader.d) == (1, "b", 77, "new")
    assert [(number.value, number.extra, number.more) for number in reader.numbers] == [
        (1, 9, ""), (2, 9, "")]
    assert [(text.text, text.weight) for text in reader.texts] == [("x", 1.0), ("y", 1.0)]
    assert [number.value for number in reader.voids] == [0, 0]
    assert [(item.x, item.name, item.y, len(item.list)) for item in reader.items] == [
        (1, "n", 5, 0), (2, "", 5, 0)]
    assert reader.child.c == 77
    assert reader.which() == "e"
    with theirs.New.from_bytes(data) as other:
        assert reader.to_dict() == other.to_dict()
        assert str(reader) == str(other)


@pytest.mark.parametrize("words", [None, 0, 7])
def test_old_readers_take_new_messages(ours: Any, theirs: Any, words: int | None) -> None:
    data = ours.New.new_message(words, **NEW).to_bytes()
    reader = ours.Old.from_bytes(data)
    assert (reader.a, reader.b, reader.child.a) == (1, "b", 0)
    assert list(reader.numbers) == [3, 0]
    assert list(reader.texts) == ["t", ""]
    assert list(reader.voids) == [None, None]
    assert [(item.x, item.name) for item in reader.items] == [(1, "n"), (0, "")]
    with theirs.Old.from_bytes(data) as other:
        assert reader.to_dict() == other.to_dict()
        assert str(reader) == str(other)


def test_what_old_readers_do_not_know_survives_their_copies(ours: Any) -> None:
    data = ours.New.new_message(**NEW).to_bytes()
    copied = ours.Old.from_bytes(data).as_builder()
    copied.a = 99
    again = ours.New.from_bytes(copied.to_bytes())
    assert again.to_dict() == {**ours.New.from_bytes(data).to_dict(), "a": 99}
    holder = ours.Old.new_message()
    holder.child = ours.Old.from_bytes(data)
    assert ours.New.from_bytes(holder.to_bytes()).child.d == "d"


@pytest.mark.parametrize("words", [None, 0, 7])
def test_builders_of_new_types_grow_old_objects(ours: Any, theirs: Any, words: int | None) -> None:
    old = ours.Old.new_message(words, **OLD).to_bytes()
    made = []
    for module in (ours, theirs):
        if module is ours:
            builder = module.New.from_bytes(old, builder=True)
        else:
            with module.New.from_bytes(old) as reader:
                builder = reader.as_builder()
        builder.c = 5
        builder.child.d = "grown"
        builder.numbers[1].extra = 6
        builder.texts[0].weight = 3.0
        builder.items[1].y = 9
        builder.items[0].init("list", 2)[1] = 4
        builder.voids[0].value = 2
        made.append(builder.to_bytes())
    assert made[0] == made[1]
    reader = ours.New.from_bytes(made[0])
    assert (reader.c, reader.child.a, reader.child.d) == (5, 2, "grown")
    assert [(number.value, number.extra) for number in reader.numbers] == [(1, 9), (2, 6)]
    assert [(text.text, text.weight) for text in reader.texts] == [("x", 3.0), ("y", 1.0)]
    assert [(item.x, item.name, item.y) for item in reader.items] == [(1, "n", 5), (2, "", 9)]
    assert list(ours.Old.from_bytes(made[0]).numbers) == [1, 2]


def test_builders_of_old_types_see_new_objects_through_steps(ours: Any, theirs: Any) -> None:
    new = ours.New.new_message(**NEW).to_bytes()
    made = []
    for module in (ours, theirs):
        if module is ours:
            builder = module.Old.from_bytes(new, builder=True)
        else:
            with module.Old.from_bytes(new) as reader:
                builder = reader.as_builder()
        builder.numbers[0] = 44
        builder.items[1].name = "changed"
        builder.child.b = "there"
        made.append(builder.to_bytes())
    assert made[0] == made[1]
    reader = ours.New.from_bytes(made[0])
    assert (reader.numbers[0].value, reader.numbers[0].extra, reader.numbers[0].more) == (44, 4,
        "m")
    assert (reader.items[1].name, reader.items[1].y) == ("changed", 7)
    assert reader.child.c == 5


def test_a_stale_list_is_told_when_its_list_grew(ours: Any) -> None:
    message = ours.Anything.new_message(any=ours.Old.new_message(numbers=[1, 2]))
    small = message.any.as_struct(ours.Old)
    numbers = small.numbers
    grown = message.any.as_struct(ours.New)
    grown.numbers[0].extra = 5
    with pytest.raises(Exception, match="stale"):
        numbers[0]


def test_bits_never_become_structs(ours: Any, framed: Any) -> None:
    # Old.numbers is the third pointer of (1 data word, 5 pointers): a list of 3 bits there.
    words = [0x0005_0001_0000_0000, 0, 0, 0x0000_0019_0000_0009, 0, 0, 0, 0b101]
    data = framed(*words)
    for kind in (ours.Old, ours.New):
        with pytest.raises(PointerError):
            kind.from_bytes(data).numbers  # noqa: B018


def test_text_lists_and_number_lists_are_not_confused(ours: Any) -> None:
    data = ours.Lists.new_message(texts=["a"], int32s=[1]).to_bytes()
    with pytest.raises(PointerError):
        ours.Anything.from_bytes(
            ours.Anything.new_message(any=ours.Lists.from_bytes(data).texts).to_bytes()
        ).any.as_list(ours.Lists.new_message().int32s.type)
    with pytest.raises(PointerError):
        ours.Anything.from_bytes(
            ours.Anything.new_message(any=ours.Lists.from_bytes(data).int32s).to_bytes()
        ).any.as_list(ours.Lists.new_message().texts.type)
