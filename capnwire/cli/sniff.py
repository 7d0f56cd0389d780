"""Whether input looks like the format it is said to be in, and which it looks like instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from capnwire.cli.program import Problem

__all__ = ["check_format"]

MOST_SEGMENTS = 1 << 16
LARGEST_SEGMENT = 1 << 27
FARTHEST_ROOT = 1 << 16

_WARNING = """\
*** WARNING ***
The input data does not appear to match the schema that you specified. I'll try
to parse it anyway, but if it doesn't look right, please verify that you
have the right schema. This could also be because the input is not in "{0}"
format; indeed, it looks like this input may be in regular binary format,
so you might want to try "binary" instead.  Use --quiet to suppress this
warning.
*** END WARNING ***"""


def check_format(name: str, first: bytes, kind: type | None) -> None:
    """Judge the beginning of the input.

    Raises:
        Problem: it cannot be in this format.
    """
    if not first:
        return
    if _LOOKS[name](first):
        if name == "flat" and kind is not None and not fits_type(first, kind) and (
            looks_binary(first)
        ):
            click.echo(_WARNING.format(name), err=True)
        return
    said = f'The input is not in "{name}" format.'
    for other in ("binary", "packed", "text", "json", "flat", "flat-packed"):
        if other != name and _LOOKS[other](first):
            said += f' It looks like it is in "{other}" format. Try that instead.'
            break
    raise Problem(said)


def looks_binary(first: bytes) -> bool:
    """Whether this may be the segment table and the root pointer of a message."""
    if len(first) < 8:
        return True
    count = int.from_bytes(first[:4], "little") + 1
    words = int.from_bytes(first[4:8], "little")
    if count > MOST_SEGMENTS or not 0 < words <= LARGEST_SEGMENT:
        return False
    at = (count + 2) // 2 * 8
    return looks_flat(first[at:], segments=count)


def fits_type(first: bytes, kind: Any) -> bool:
    """Whether the root of a flat message may be a version of this type: no section shrinks."""
    data: int = int.from_bytes(first[4:6], "little") - kind._info.data_words
    pointers: int = int.from_bytes(first[6:8], "little") - kind._info.pointer_count
    return data * pointers >= 0


def looks_flat(first: bytes, segments: int = 1) -> bool:
    """Whether this begins with the pointer to a root struct."""
    if len(first) < 8:
        return True
    low = int.from_bytes(first[:4], "little")
    if low & 3 == 2:
        return segments > 1 and int.from_bytes(first[4:8], "little") < segments
    if low & 3:
        return False
    offset = (low >> 2) - ((low >> 2 & 1 << 29) << 1)
    return -1 <= offset <= FARTHEST_ROOT


def looks_packed(first: bytes) -> bool:
    """Whether this may be a packed message."""
    words = _prefix_words(first)
    return words is None or looks_binary(words)


def _prefix_words(first: bytes) -> bytes | None:
    """Up to four words of packed bytes, decoded by hand since they may be cut anywhere."""
    made = bytearray()
    at = 0
    while len(made) < 32 and at < len(first):
        tag = first[at]
        at += 1
        word = bytearray(8)
        for bit in range(8):
            if tag >> bit & 1:
                if at >= len(first):
                    return bytes(made) or None
                word[bit] = first[at]
                at += 1
        made += word
        if tag in (0, 0xFF):
            if at >= len(first):
                break
            more = first[at]
            at += 1
            made += b"\0" * (8 * more) if tag == 0 else first[at : at + 8 * more]
            if tag == 0xFF:
                at += 8 * more
    return bytes(made)


def _looks_flat_packed(first: bytes) -> bool:
    words = _prefix_words(first)
    return words is None or looks_flat(words)


def _first_mark(first: bytes, *, comments: bool) -> bytes:
    rest = first.lstrip()
    while comments and rest[:1] == b"#":
        rest = rest.partition(b"\n")[2].lstrip()
    return rest[:1]


_LOOKS: dict[str, Callable[[bytes], bool]] = {
    "binary": looks_binary,
    "packed": looks_packed,
    "flat": looks_flat,
    "flat-packed": _looks_flat_packed,
    "canonical": looks_flat,
    "text": lambda first: _first_mark(first, comments=True) in (b"(", b""),
    "json": lambda first: _first_mark(first, comments=False) in (b"{", b""),
}
