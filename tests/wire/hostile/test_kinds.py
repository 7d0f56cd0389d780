"""Pointers of the wrong kind, tags of the wrong kind, and lists of the wrong elements."""

from __future__ import annotations

import pytest

from capnwire.errors import PointerError, TextError, Utf8Error
from tests.wire.hostile.words import (
    BIT,
    BYTE,
    COMPOSITE,
    EIGHT,
    FIELDS,
    FOUR,
    POINTER,
    TWO,
    VOID,
    Root,
    list_pointer,
    refused,
    root_with,
    struct_pointer,
    tag,
    to_more,
)

TYPED = ("attribute", "to_dict", "str")
UNTYPED = ("copy", "total_size", "canonical", "hash", "equality", "bytes", "any")
LISTS = [name for name in FIELDS if name not in ("text", "data", "child", "any", "capability")]


@pytest.mark.parametrize("field", ["text", "data", *LISTS])
def test_a_struct_where_a_list_is_wanted(field: str) -> None:
    data = root_with(field, struct_pointer(to_more(field), 1, 0), 0)
    refused(data, field, PointerError, "the pointer is a struct pointer", besides=UNTYPED)


def test_a_list_where_a_struct_is_wanted() -> None:
    data = root_with("child", list_pointer(to_more("child"), BYTE, 8), 0)
    refused(data, "child", PointerError, "the pointer is a list pointer", besides=UNTYPED)


@pytest.mark.parametrize("field", ["text", "data", "child", *LISTS])
def test_a_capability_where_an_object_is_wanted(field: str) -> None:
    # Canonical forms have no capabilities; the rest of the untyped questions carry it along.
    reader = Root.from_bytes(root_with(field, 3 | 5 << 32))
    with pytest.raises(PointerError, match="capability or unknown"):
        _ = reader[field]
    assert reader.total_size.cap_count == 1


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    "pointer",
    [7, 3 | 1 << 31, 3 | 1 << 2 | 9 << 32],
    ids=["bit 2", "bit 31", "bit 2 with an index"],
)
def test_kind_three_that_is_no_capability(field: str, pointer: int) -> None:
    besides = TYPED if field == "any" else ()
    refused(root_with(field, pointer), field, PointerError, "pointer", besides=besides)


@pytest.mark.parametrize(
    ("kind", "name"), [(1, "list"), (2, "far"), (3, "capability")], ids=lambda value: str(value)
)
@pytest.mark.parametrize("field", ["rows", "children", "empties"])
def test_a_tag_that_is_no_struct_pointer(field: str, kind: int, name: str) -> None:
    # at 19: the tag, of kind 1, 2 or 3; at 20: what would be the element
    data = root_with(field, list_pointer(to_more(field), COMPOSITE, 1), tag(1, 1, 0) | kind, 0)
    refused(data, field, PointerError, "tag of a struct list is not a struct pointer")


@pytest.mark.parametrize(
    ("count", "data_words", "pointers", "words"),
    [
        pytest.param(2, 1, 0, 1, id="one element too many"),
        pytest.param(1, 1, 1, 1, id="one pointer too many"),
        pytest.param(2**30 - 1, 1, 0, 1, id="the most elements a tag can name"),
        pytest.param(2**30 - 1, 65535, 65535, 1, id="times the largest element: 2**47"),
        pytest.param(2**16, 65535, 1, 1, id="2**32 words: 0 modulo 2**32"),
    ],
)
def test_a_tag_that_claims_more_than_the_list_has(
    count: int, data_words: int, pointers: int, words: int
) -> None:
    data = root_with(
        "rows", list_pointer(to_more("rows"), COMPOSITE, words), tag(count, data_words, pointers), 0
    )
    refused(data, "rows", PointerError, "a struct list has .* in 1 words")


def test_a_struct_list_may_have_words_to_spare() -> None:
    # at 19: two elements of one word; at 20 to 23: four words
    data = root_with("rows", list_pointer(to_more("rows"), COMPOSITE, 4), tag(2, 1, 0), 7, 8, 9, 9)
    reader = Root.from_bytes(data)
    assert [row.id for row in reader.rows] == [7, 8]
    assert reader.as_builder() == reader
    assert reader.total_size.word_count == 1 + 17 + 1 + 2


@pytest.mark.parametrize("wanted", [name for name in LISTS if name != "flags"])
def test_lists_of_bits_are_never_anything_else(wanted: str) -> None:
    data = root_with(wanted, list_pointer(to_more(wanted), BIT, 64), 0xFFFF)
    refused(data, wanted, PointerError, "a list of Bool elements", besides=UNTYPED)


@pytest.mark.parametrize("size", [VOID, BYTE, TWO, FOUR, EIGHT, POINTER])
def test_nothing_else_is_a_list_of_bits(size: int) -> None:
    data = root_with("flags", list_pointer(to_more("flags"), size, 1), 0)
    refused(data, "flags", PointerError, "a list of Bool elements is wanted", besides=UNTYPED)


def test_a_struct_list_is_no_list_of_bits() -> None:
    data = root_with("flags", list_pointer(to_more("flags"), COMPOSITE, 1), tag(1, 1, 0), 1)
    refused(data, "flags", PointerError, "a list of Bool elements is wanted", besides=UNTYPED)


@pytest.mark.parametrize(
    ("field", "size"),
    [
        ("shorts", BYTE),
        ("ints", TWO),
        ("longs", FOUR),
        ("texts", EIGHT),
        ("longs", POINTER),
        ("bytes", VOID),
        ("texts", BYTE),
        ("lists", FOUR),
    ],
)
def test_elements_smaller_than_wanted(field: str, size: int) -> None:
    data = root_with(field, list_pointer(to_more(field), size, 1), 0)
    refused(data, field, PointerError, "elements is wanted", besides=UNTYPED)


@pytest.mark.parametrize(
    ("field", "data_words", "pointers"),
    [("longs", 0, 1), ("bytes", 0, 1), ("texts", 1, 0), ("lists", 2, 0)],
)
def test_struct_lists_without_the_section_that_is_wanted(
    field: str, data_words: int, pointers: int
) -> None:
    data = root_with(
        field,
        list_pointer(to_more(field), COMPOSITE, data_words + pointers),
        tag(1, data_words, pointers),
        0,
        0,
    )
    refused(data, field, PointerError, "a list of struct elements", besides=UNTYPED)


@pytest.mark.parametrize("size", [VOID, BIT, TWO, FOUR, EIGHT, POINTER])
@pytest.mark.parametrize("field", ["text", "data"])
def test_blobs_are_lists_of_bytes_only(field: str, size: int) -> None:
    data = root_with(field, list_pointer(to_more(field), size, 1), 0)
    refused(data, field, PointerError, "is wanted, but the message has a list", besides=UNTYPED)


def test_a_struct_list_is_no_blob() -> None:
    for field in ("text", "data"):
        data = root_with(field, list_pointer(to_more(field), COMPOSITE, 1), tag(1, 1, 0), 0)
        refused(data, field, PointerError, "a list of struct elements", besides=UNTYPED)


# ---------------------------------------------------------------- Text


@pytest.mark.parametrize(
    ("pointer", "content"),
    [
        pytest.param(
            list_pointer(to_more("text"), BYTE, 0), 0, id="no byte at all (CVE-2015-2311)"
        ),
        pytest.param(list_pointer(-1, BYTE, 0), 0, id="no byte, at the pointer itself"),
        pytest.param(
            list_pointer(to_more("text"), BYTE, 3), 0x00616161, id="three letters, NUL outside"
        ),
        pytest.param(list_pointer(to_more("text"), BYTE, 8), 2**64 - 1, id="a full word"),
    ],
)
def test_text_without_nul(pointer: int, content: int) -> None:
    data = root_with("text", pointer, content)
    refused(data, "text", TextError, "NUL", besides=UNTYPED)
    builder = Root.from_bytes(data, builder=True)
    with pytest.raises(TextError, match="NUL"):
        _ = builder.text
    builder.text = "new"
    assert builder.text == "new"


@pytest.mark.parametrize(
    "content",
    [b"\xff\0", b"\xc3\0", b"\xed\xa0\x80\0", b"\xf5\x80\x80\x80\0", b"ab\x80defgh\0"],
    ids=["no lead byte", "cut short", "a surrogate", "beyond Unicode", "behind ASCII"],
)
def test_text_that_is_not_utf8(content: bytes) -> None:
    padded = content + bytes(-len(content) % 8)
    data = root_with("text", list_pointer(to_more("text"), BYTE, len(content)), padded)
    refused(data, "text", Utf8Error, "UTF-8", besides=UNTYPED)


def test_text_elements_are_checked_one_by_one() -> None:
    # at 19, 20: two pointers; the first names "a" at 21, the second a byte that is no NUL
    data = root_with(
        "texts",
        list_pointer(to_more("texts"), POINTER, 2),
        list_pointer(1, BYTE, 2),
        list_pointer(0, BYTE, 1),
        b"a\0\0\0\0\0\0\0",
    )
    reader = Root.from_bytes(data)
    assert reader.texts[0] == "a"
    with pytest.raises(TextError):
        _ = reader.texts[1]
    with pytest.raises(TextError):
        list(reader.texts)
    with pytest.raises(TextError):
        reader.texts.to_list()
