"""Pointers that leave their segment: offsets and counts at every edge of the arithmetic.

CVE-2015-2310: count times element size overflowed the check.  CVE-2017-7892: offsets were added to
addresses, and the compiler took the check out.
"""

from __future__ import annotations

import pytest

from capnwire.errors import DecodeError, PointerError
from tests.wire.hostile.words import (
    BIT,
    BYTE,
    COMPOSITE,
    EIGHT,
    FOUR,
    POINTER,
    TWO,
    Root,
    framed,
    list_pointer,
    refused,
    root_with,
    struct_pointer,
    tag,
    to_more,
    words,
)

LARGEST = 2**29 - 1


@pytest.mark.parametrize(
    ("field", "size"),
    [
        ("flags", BIT),
        ("bytes", BYTE),
        ("shorts", TWO),
        ("ints", FOUR),
        ("longs", EIGHT),
        ("texts", POINTER),
        ("lists", POINTER),
        ("rows", COMPOSITE),
        ("children", COMPOSITE),
    ],
)
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(LARGEST, id="the most elements a pointer can name"),
        # times 64 bits, or 8 bytes: 0 modulo 2**32 in either unit
        pytest.param(2**26, id="2**26: its bits are 0 modulo 2**32"),
        pytest.param(2**28, id="2**28"),
        pytest.param(2**28 + 1, id="2**28 + 1: its bytes are 8 modulo 2**31"),
        pytest.param(2**23, id="2**23"),
    ],
)
def test_count_times_element_size_does_not_overflow(field: str, size: int, count: int) -> None:
    # at 19: one word, a tag of no elements for the struct lists; the list claims far more
    data = root_with(field, list_pointer(to_more(field), size, count), tag(0, 1, 1))
    refused(data, field, PointerError, "leaves its segment of 20 words")


@pytest.mark.parametrize("size", [BIT, BYTE, TWO, FOUR, EIGHT, POINTER])
def test_a_list_may_end_with_its_segment_and_not_one_element_later(size: int) -> None:
    field = {
        BIT: "flags",
        BYTE: "bytes",
        TWO: "shorts",
        FOUR: "ints",
        EIGHT: "longs",
        POINTER: "texts",
    }[size]
    bits = {BIT: 1, BYTE: 8, TWO: 16, FOUR: 32, EIGHT: 64, POINTER: 64}[size]
    fits = 2 * 64 // bits
    data = root_with(field, list_pointer(to_more(field), size, fits), 0, 0)
    assert len(Root.from_bytes(data)[field]) == fits
    assert len(Root.from_bytes(data).to_dict()[field]) == fits
    data = root_with(field, list_pointer(to_more(field), size, fits + 1), 0, 0)
    refused(data, field, PointerError, "leaves its segment")


@pytest.mark.parametrize(
    ("offset", "why"),
    [
        (-20, "before the segment"),
        (-(2**29), "the most negative offset"),
        (2**29 - 1, "the largest offset"),
        (100, "behind the segment"),
    ],
)
@pytest.mark.parametrize("field", ["child", "text", "data", "bytes", "children", "rows", "any"])
def test_offsets_out_of_the_segment(field: str, offset: int, why: str) -> None:
    pointer = {
        "child": struct_pointer(offset, 1, 0),
        "any": struct_pointer(offset, 1, 0),
        "text": list_pointer(offset, BYTE, 1),
        "data": list_pointer(offset, BYTE, 8),
        "bytes": list_pointer(offset, BYTE, 8),
        "children": list_pointer(offset, COMPOSITE, 1),
        "rows": list_pointer(offset, COMPOSITE, 2),
    }[field]
    # `any` is looked at by nobody who does not follow every pointer
    besides = ("attribute", "to_dict", "str") if field == "any" else ()
    refused(root_with(field, pointer), field, PointerError, "leaves its segment", besides=besides)


def test_a_struct_that_starts_inside_and_ends_outside() -> None:
    # at 19, 20: two words; the child claims three
    data = root_with("child", struct_pointer(to_more("child"), 2, 1), 0, 0)
    refused(data, "child", PointerError, "a struct of 3 words at word 19 leaves its segment of 21")


def test_the_largest_struct_does_not_overflow() -> None:
    data = root_with("child", struct_pointer(to_more("child"), 65535, 65535), 0)
    refused(data, "child", PointerError, "131070 words")


@pytest.mark.parametrize(
    ("pointer", "match"),
    [
        pytest.param(struct_pointer(0, 1, 0), "leaves its segment of 1 words", id="just behind"),
        pytest.param(struct_pointer(-2, 1, 0), "at word -1 leaves", id="just before"),
        pytest.param(
            struct_pointer(2**29 - 1, 65535, 65535), "leaves its segment", id="far behind"
        ),
        pytest.param(list_pointer(-1, BYTE, 8), "a struct is wanted", id="a list at the root"),
        pytest.param(3, "a struct is wanted", id="a capability at the root"),
    ],
)
def test_the_root_pointer_is_checked_like_any_other(pointer: int, match: str) -> None:
    with pytest.raises(PointerError, match=match):
        Root.from_bytes(framed(words(pointer)))


@pytest.mark.parametrize("offset", [-(2**29), -20, -1, 0, 1000, 2**29 - 1])
def test_a_zero_size_object_may_be_anywhere(offset: int) -> None:
    # No byte of it can be read.
    for field, pointer in (
        ("child", struct_pointer(offset, 0, 0) or 0xFFFFFFFC),
        ("bytes", list_pointer(offset, BYTE, 0)),
        ("texts", list_pointer(offset, POINTER, 0)),
        ("voids", list_pointer(offset, 0, 5)),
        ("data", list_pointer(offset, BYTE, 0)),
    ):
        reader = Root.from_bytes(root_with(field, pointer))
        assert field in reader.to_dict()
        copied = reader.as_builder()
        assert copied == reader
        assert copied.to_dict() == reader.to_dict()


def test_the_root_covering_itself() -> None:
    # at 0: a struct of one word at word 0: its number is the root pointer's own bits
    reader = Root.from_bytes(framed(words(struct_pointer(-1, 1, 0))))
    assert reader.number == struct_pointer(-1, 1, 0)
    assert reader.as_builder().number == reader.number


@pytest.mark.parametrize("end", [0, 1, 7, 8, 9, 15, 16, 23, 100])
def test_a_message_cut_short_is_told_by_its_frame(end: int) -> None:
    data = root_with("bytes", list_pointer(to_more("bytes"), BYTE, 8), 0)
    with pytest.raises(DecodeError, match="are left"):
        Root.from_bytes(data[:end])
