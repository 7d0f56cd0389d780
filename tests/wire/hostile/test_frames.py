"""Segment tables: impossible counts, sums that overflow, empty segments, and what is behind."""

from __future__ import annotations

import io
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from capnwire.errors import DecodeError, FramingError, LimitError, TruncatedError
from capnwire.wire.framing import FrameDecoder, expected_size, message_end
from capnwire.wire.packed import pack
from tests.wire.hostile.words import Root, far_pointer, framed, struct_pointer, words

ROOT = words(struct_pointer(0, 1, 0), 7)


def read_decoder(data: bytes) -> Any:
    decoder = FrameDecoder()
    decoder.feed(data)
    decoder.finish()
    return Root.from_bytes(next(decoder))


WAYS: list[tuple[str, Callable[[bytes], Any]]] = [
    ("from_bytes", Root.from_bytes),
    ("from_bytes of a bytearray", lambda data: Root.from_bytes(bytearray(data))),
    ("read_multiple_bytes", lambda data: next(Root.read_multiple_bytes(data))),
    ("read", lambda data: Root.read(io.BytesIO(data))),
    ("read_multiple", lambda data: next(Root.read_multiple(io.BytesIO(data)))),
    ("FrameDecoder", read_decoder),
    ("from_bytes_packed", lambda data: Root.from_bytes_packed(pack(data + bytes(-len(data) % 8)))),
]


@pytest.mark.parametrize("way", [way for _, way in WAYS], ids=[name for name, _ in WAYS])
@pytest.mark.parametrize(
    "count", [0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD, 0x80000000, 0x7FFFFFFF, 0x01000000, 0x00FFFFFF]
)
def test_impossible_segment_counts(way: Callable[[bytes], Any], count: int) -> None:
    # first u32: segments - 1; 0xffffffff overflows to none, 0xfffffffe's table has 2**34 bytes
    data = struct.pack("<II", count, 1) + bytes(64)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError) as caught:
            way(data)
        assert type(caught.value) in (FramingError, TruncatedError, LimitError)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("way", [way for _, way in WAYS], ids=[name for name, _ in WAYS])
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([0xFFFFFFFF], id="one segment of 32 GiB"),
        pytest.param([0x20000000], id="2**29 words: its bytes are 0 modulo 2**32"),
        pytest.param([2, 0xFFFFFFFE], id="a sum that is 0 modulo 2**32"),
        pytest.param([2, 0x7FFFFFFF, 0x7FFFFFFF], id="a sum that is 0 modulo 2**32, of three"),
        pytest.param([2] + [0xFFFFFFFF] * 100, id="a hundred such segments"),
        pytest.param([3], id="one word too many"),
    ],
)
def test_sizes_beyond_the_bytes(way: Callable[[bytes], Any], sizes: list[int]) -> None:
    table = struct.pack(f"<{len(sizes) + 1}I", len(sizes) - 1, *sizes)
    data = table + bytes(-len(table) % 8) + ROOT
    with pytest.raises(DecodeError) as caught:
        way(data)
    assert isinstance(caught.value, (FramingError, LimitError)) or "packed" in str(caught.value)


@pytest.mark.parametrize("way", [way for _, way in WAYS], ids=[name for name, _ in WAYS])
def test_no_bytes_and_no_root(way: Callable[[bytes], Any]) -> None:
    # No bytes are no message: an error, or the end of what is iterated over.
    with pytest.raises((DecodeError, StopIteration)):
        way(b"")
    for empty in (framed(b""), framed(b"", ROOT)):
        with pytest.raises(FramingError, match="did not contain a root pointer"):
            way(empty)
    assert way(framed(bytes(8))).to_dict()["number"] == 0


@pytest.mark.parametrize("way", [way for _, way in WAYS], ids=[name for name, _ in WAYS])
def test_empty_segments_between_others(way: Callable[[bytes], Any]) -> None:
    data = framed(words(far_pointer(3, 0)), b"", b"", words(struct_pointer(0, 1, 0), 7), b"")
    assert way(data).number == 7


def test_flat_messages_of_very_many_segments() -> None:
    for count in (511, 512, 513, 5000):
        segments = [words(far_pointer(count - 1, 0))] + [b""] * (count - 2)
        data = framed(*segments, words(struct_pointer(0, 1, 0), 7))
        assert Root.from_bytes(data).number == 7
        assert Root.from_bytes(data).to_bytes() == framed(Root.from_bytes(data).to_segments()[0])
        if count <= 512:
            assert Root.read(io.BytesIO(data)).number == 7
        else:
            with pytest.raises(LimitError, match="segment_limit is 512"):
                Root.read(io.BytesIO(data))


@pytest.mark.parametrize("end", range(40))
def test_every_truncation(end: int) -> None:
    data = framed(ROOT, words(1, 2))
    assert len(data) == 16 + 32 + 0
    with pytest.raises(TruncatedError, match="are left"):
        Root.from_bytes(data[:end])
    with pytest.raises(TruncatedError):
        message_end(data[:end])
    assert expected_size(data[:end]) <= len(data)


def test_what_follows_a_message_is_left_alone() -> None:
    data = framed(ROOT)
    for rest in (b"\0", b"x" * 7, b"\xff" * 100):
        assert Root.from_bytes(data + rest).number == 7
        messages = Root.read_multiple_bytes(data + rest)
        assert next(messages).number == 7
        with pytest.raises(FramingError):
            next(messages)


def test_an_iterator_goes_on_telling_of_a_broken_message() -> None:
    messages = Root.read_multiple_bytes(framed(ROOT) + b"\xff" * 8)
    assert next(messages).number == 7
    for _ in range(3):
        with pytest.raises(FramingError):
            next(messages)


@pytest.mark.parametrize("size", [1, 7, 9, 15])
def test_segments_of_half_words(size: int) -> None:
    with pytest.raises(FramingError, match="not a whole number of words"):
        Root.from_segments([ROOT, bytes(size)])
    with pytest.raises(FramingError, match="1 to"):
        Root.from_segments([])


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x00\xff" * 20_000, id="zeroes: 40 KB that unpack to 40 MB"),
        pytest.param(b"\x01\x00\x00\xff" + b"\x00\xff" * 20_000, id="behind a table"),
        pytest.param(
            b"\x1f" + b"\xff\xff\x01\x00\x01" + b"\x00\xff" * 100, id="a table of 2**17 segments"
        ),
    ],
)
def test_packed_zeroes_are_bounded_by_the_message_and_its_limit(data: bytes) -> None:
    tracemalloc.start()
    try:
        for read in (
            Root.from_bytes_packed,
            lambda data: Root.read_packed(io.BytesIO(data)),
            lambda data: list(Root.read_multiple_packed(io.BytesIO(data), 1000)),
        ):
            with pytest.raises(DecodeError):
                read(data)
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
