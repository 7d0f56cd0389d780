"""A struct list viewed as a pointer list, at the end of its segment (CVE-2022-46149).

Elsewhere the view was copied as if its elements were eight bytes apart: it read out of bounds.
"""

from __future__ import annotations

import pytest

import capnwire
from capnwire.errors import PointerError
from capnwire.message.types import list_of
from tests.wire.hostile.words import (
    BYTE,
    COMPOSITE,
    Root,
    list_pointer,
    root_with,
    tag,
    to_more,
    words,
)


def rows_at_the_end(field: str, texts: int = 3) -> bytes:
    """`texts` elements of one data word and one pointer, the last word of the message.

    at 19: "a"; at 20: the tag; from 21: data word and pointer of each element.  A pointer at p has
    offset 19 - p - 1.
    """
    elements: list[int] = []
    for index in range(texts):
        elements += [100 + index, list_pointer(19 - (22 + 2 * index) - 1, BYTE, 2)]
    return root_with(
        field, list_pointer(to_more(field, 1), COMPOSITE, 2 * texts), b"a\0\0\0\0\0\0\0",
        tag(texts, 1, 1), *elements,
    )


def test_texts_are_the_first_pointers_of_the_structs() -> None:
    reader = Root.from_bytes(rows_at_the_end("texts"))
    assert list(reader.texts) == ["a"] * 3
    assert reader.texts.to_list() == ["a"] * 3
    assert reader.to_dict()["texts"] == ["a"] * 3


@pytest.mark.parametrize("field", ["texts", "any", "rows"])
def test_copies_keep_the_wire_layout(field: str) -> None:
    reader = Root.from_bytes(rows_at_the_end(field))
    copied = reader.as_builder()
    assert copied == reader
    assert copied.total_size == reader.total_size
    assert reader.total_size.word_count == 1 + 17 + 1 + 3 * (2 + 1)
    assert copied.to_canonical() == reader.to_canonical()
    assert capnwire.is_canonical(reader.to_canonical())
    again = Root.from_bytes(copied.to_bytes())
    view = again.any.as_list(list_of(capnwire.types.Text)) if field == "any" else again[field]
    if field == "rows":
        assert [(row.id, row.name) for row in view] == [(100, "a"), (101, "a"), (102, "a")]
    else:
        assert list(view) == ["a"] * 3


def test_the_view_itself_is_copied_by_the_wire_layout() -> None:
    reader = Root.from_bytes(rows_at_the_end("texts"))
    for target, name in ((Root.new_message(), "texts"), (Root.new_message(), "any")):
        target[name] = reader.texts
        found = target.any.as_list(list_of(capnwire.types.Text)) if name == "any" else target.texts
        assert list(found) == ["a"] * 3
        rows = Root.from_bytes(target.to_bytes())
        size = rows.total_size.word_count
        assert size == 1 + 17 + 1 + 3 * (2 + 1)
    assert reader.texts == Root.from_bytes(reader.to_bytes()).texts
    assert hash(reader.texts) == hash(Root.from_bytes(reader.to_bytes()).texts)


def test_any_pointer_elements() -> None:
    reader = Root.from_bytes(rows_at_the_end("any"))
    items = reader.any.as_list(list_of(capnwire.types.AnyPointer))
    assert [item.as_text() for item in items] == ["a"] * 3
    target = Root.new_message()
    target.any = items[2]
    assert target.any.as_text() == "a"


def test_builders_see_the_same_through_a_stride() -> None:
    builder = Root.from_bytes(rows_at_the_end("texts"), builder=True)
    texts = builder.texts
    texts[2] = "changed"
    assert list(texts) == ["a", "a", "changed"]
    rows = Root.from_bytes(builder.to_bytes())
    assert list(rows.texts) == ["a", "a", "changed"]


def test_numbers_are_strided_too() -> None:
    reader = Root.from_bytes(rows_at_the_end("longs"))
    assert list(reader.longs) == [100, 101, 102]
    view = memoryview(reader.longs)
    assert view.tolist() == [100, 101, 102]
    assert view.strides == (16,)
    target = Root.new_message()
    target.longs = reader.longs
    assert list(target.longs) == [100, 101, 102]


def test_the_elements_pointer_section_is_checked() -> None:
    # One element of one data word and no pointer: nothing to view as Text.
    data = root_with(
        "texts", list_pointer(to_more("texts"), COMPOSITE, 1), tag(1, 1, 0), words(5)
    )
    with pytest.raises(PointerError, match="a list of struct elements"):
        _ = Root.from_bytes(data).texts
