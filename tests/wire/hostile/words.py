"""Words of hostile messages, packed by hand, and the schema that reads them.

Every test explains the words beside it: `at N` is the word index in its segment, and a near
pointer's offset counts from the word behind it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import capnwire
from capnwire.errors import CapnwireError

SCHEMA = """@0x9d1f4c7e6a0b2583;
struct Root {
  number @0 :UInt64; text @1 :Text; data @2 :Data; child @3 :Root; children @4 :List(Root);
  voids @5 :List(Void); flags @6 :List(Bool); bytes @7 :List(UInt8); shorts @8 :List(UInt16);
  ints @9 :List(UInt32); longs @10 :List(UInt64); texts @11 :List(Text); rows @12 :List(Row);
  empties @13 :List(Empty); any @14 :AnyPointer; lists @15 :List(List(UInt8));
  capability @16 :Callable; pairs @17 :List(List(Root));
}
struct Row { id @0 :UInt32; name @1 :Text; }
struct Empty {}
struct Tree { left @0 :Tree; right @1 :Tree; }
struct Branches { kids @0 :List(Branches); texts @1 :List(Text); data @2 :Data; }
interface Callable {}
"""

SCHEMAS: ModuleType = capnwire.load_text(SCHEMA, "hostile.capnp")
Root, Row, Tree, Branches = SCHEMAS.Root, SCHEMAS.Row, SCHEMAS.Tree, SCHEMAS.Branches
DATA_WORDS, POINTERS = 1, 17
VOID, BIT, BYTE, TWO, FOUR, EIGHT, POINTER, COMPOSITE = range(8)
FIELDS = (
    "text",
    "data",
    "child",
    "children",
    "voids",
    "flags",
    "bytes",
    "shorts",
    "ints",
    "longs",
    "texts",
    "rows",
    "empties",
    "any",
    "lists",
    "capability",
    "pairs",
)


def words(*items: int | bytes) -> bytes:
    """64-bit little-endian words; bytes stand for themselves."""
    return b"".join(
        item if isinstance(item, bytes) else struct.pack("<Q", item & 2**64 - 1) for item in items
    )


def struct_pointer(offset: int, data_words: int, pointers: int) -> int:
    """Bits 2-31: offset; 32-47: data words; 48-63: pointers."""
    return (offset & 0x3FFFFFFF) << 2 | data_words << 32 | pointers << 48


def list_pointer(offset: int, size: int, count: int) -> int:
    """Bits 0-1: 1; 2-31: offset; 32-34: element size; 35-63: count, or words of a struct list."""
    return 1 | (offset & 0x3FFFFFFF) << 2 | size << 32 | count << 35


def far_pointer(segment: int, word: int, *, double: bool = False) -> int:
    """Bits 0-1: 2; 2: two-word pad; 3-31: word of the pad; 32-63: segment."""
    return 2 | double << 2 | word << 3 | segment << 32


def tag(count: int, data_words: int, pointers: int) -> int:
    """The word in front of struct elements: a struct pointer whose offset is their count."""
    return count << 2 | data_words << 32 | pointers << 48


def framed(*segments: bytes) -> bytes:
    """u32 segments less one, u32 words of each, padded to a word; then the segments."""
    sizes = [len(segment) // 8 for segment in segments]
    table = struct.pack(f"<{len(sizes) + 1}I", len(sizes) - 1, *sizes)
    return table + bytes(-len(table) % 8) + b"".join(segments)


def root_with(
    field: str, pointer: int, *more: int | bytes, segments: tuple[bytes, ...] = ()
) -> bytes:
    """A message whose root has this pointer word in one field, and words behind the root.

    at 0: the root pointer; at 1: number; at 2 to 18: the pointers; `more` from 19 on.  The pointer
    of field i stands at 2 + i, so offset 16 - i names word 19.
    """
    section = [0] * POINTERS
    section[FIELDS.index(field)] = pointer
    return framed(words(struct_pointer(0, DATA_WORDS, POINTERS), 0, *section, *more), *segments)


def to_more(field: str, skip: int = 0) -> int:
    """The offset by which a field's pointer names word `skip` of the words behind the root."""
    return POINTERS - 1 - FIELDS.index(field) + skip


def questions(kind: Any, data: bytes, field: str) -> list[tuple[str, Callable[[], Any]]]:
    """Every way to the bytes behind a field."""

    def fresh() -> Any:
        return kind.from_bytes(data)

    return [
        ("attribute", lambda: use(fresh()[field])),
        ("to_dict", lambda: fresh().to_dict()),
        ("str", lambda: str(fresh())),
        ("copy", lambda: fresh().as_builder()),
        ("total_size", lambda: fresh().total_size),
        ("canonical", lambda: fresh().to_canonical()),
        ("hash", lambda: hash(fresh())),
        ("equality", lambda: fresh() == fresh()),
        ("bytes", lambda: fresh().to_bytes()),
        ("any", lambda: Root.new_message(any=fresh())),
    ]


def use(value: Any) -> Any:
    """Touch the first and last element of a list: it is lazy."""
    if isinstance(value, (capnwire.ListReader, capnwire.ListBuilder)) and len(value):
        return value[0], value[-1]
    return value


def refused(
    data: bytes,
    field: str,
    error: type[CapnwireError],
    match: str,
    *,
    kind: Any = Root,
    besides: tuple[str, ...] = (),
) -> None:
    """Every way to the field ends with this error; those named in `besides` do not look at it."""
    for name, question in questions(kind, data, field):
        if name in besides:
            question()
            continue
        with pytest.raises(error, match=match) as caught:
            question()
        assert type(caught.value) is error, f"{name}: {caught.value!r}"
    assert isinstance(repr(kind.from_bytes(data)), str)


WHOLE = ("copy", "total_size", "canonical", "hash", "equality", "bytes", "any")
"""The questions that follow pointers by what they are, whatever the schema wants."""
