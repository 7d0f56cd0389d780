"""Segment tables, written at once and read from pieces of any size."""

from __future__ import annotations

import pickle
import random
import struct
from types import ModuleType

import pytest

from capnwire.errors import EncodeError, FramingError, LimitError, TruncatedError
from capnwire.wire.framing import (
    FrameDecoder,
    expected_size,
    message_end,
    segments_to_bytes,
)


def table(*sizes: int) -> bytes:
    """A segment table for segments of so many words."""
    head = struct.pack(f"<{len(sizes) + 1}I", len(sizes) - 1, *sizes)
    return head + bytes(-len(head) % 8)


def random_segments(rng: random.Random) -> list[bytes]:
    return [rng.randbytes(rng.randrange(6) * 8) for _ in range(rng.randrange(1, 7))]


# ---------------------------------------------------------------- whole messages

@pytest.mark.parametrize(
    ("segments", "framed"),
    [
        pytest.param([b""], b"\0\0\0\0\0\0\0\0", id="an empty segment"),
        pytest.param([b"abcdefgh"], b"\0\0\0\0\1\0\0\0abcdefgh", id="one segment: no padding"),
        pytest.param(
            [b"abcdefgh", b""], b"\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0abcdefgh", id="two: four zeroes"
        ),
        pytest.param(
            [b"", bytearray(b"abcdefgh"), memoryview(b"ijklmnop" * 2)],
            b"\2\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0abcdefghijklmnopijklmnop",
            id="any buffers",
        ),
    ],
)
def test_segments_are_joined_behind_their_table(segments: list[bytes], framed: bytes) -> None:
    assert segments_to_bytes(segments) == framed
    assert message_end(framed) == len(framed)
    assert expected_size(framed) == len(framed)


def test_no_segment_and_half_words_are_refused() -> None:
    with pytest.raises(EncodeError):
        segments_to_bytes([])
    with pytest.raises(EncodeError, match="segment 1 has 7 bytes"):
        segments_to_bytes([b"", b"abcdefg"])
    with pytest.raises(TypeError):
        segments_to_bytes(["text"])  # type: ignore[list-item]


def test_expected_size_grows_with_what_is_known() -> None:
    whole = table(1, 2, 3) + bytes(48)
    assert expected_size(b"") == 8
    assert expected_size(whole[:7]) == 8
    assert expected_size(whole[:8]) == 16
    assert expected_size(whole[:15]) == 16
    assert expected_size(whole[:16]) == 64
    assert expected_size(whole) == 64


def test_message_end_walks_over_several_messages(rng: random.Random) -> None:
    messages = [segments_to_bytes(random_segments(rng)) for _ in range(20)]
    joined = b"".join(messages)
    at = 0
    for message in messages:
        end = message_end(joined, at)
        assert joined[at:end] == message
        at = end
    assert at == len(joined)
    with pytest.raises(TruncatedError) as caught:
        message_end(joined, at)
    assert (caught.value.wanted, caught.value.found) == (8, 0)
    for start in (-1, len(joined) + 1):
        with pytest.raises(IndexError):
            message_end(joined, start)


def test_every_cut_is_truncated() -> None:
    whole = table(1, 2, 0) + bytes(24)
    for cut in range(len(whole)):
        with pytest.raises(TruncatedError) as caught:
            message_end(whole[:cut])
        assert caught.value.found == cut
        assert cut < caught.value.wanted <= len(whole)


@pytest.mark.parametrize("count", [0xFFFFFFFF, 0xFFFFFFFE])
def test_counts_that_overflow_are_refused(count: int) -> None:
    data = struct.pack("<II", count, 0) + bytes(64)
    for read in (message_end, expected_size):
        with pytest.raises(FramingError):
            read(data)
    decoder = FrameDecoder(segment_limit=2**32 - 1)
    decoder.feed(data)
    with pytest.raises(FramingError):
        decoder.next_message()


def test_flat_readers_take_any_number_of_segments() -> None:
    many = table(*[0] * 600)
    assert message_end(many) == len(many)
    with pytest.raises(TruncatedError) as caught:
        message_end(struct.pack("<II", 0xFFFFFFFD, 0))
    assert caught.value.wanted == 2**34


# ---------------------------------------------------------------- as bytes arrive

@pytest.mark.parametrize("piece", [1, 3, 8, 13, 10**6])
def test_messages_come_out_as_they_went_in(rng: random.Random, piece: int) -> None:
    messages = [segments_to_bytes(random_segments(rng)) for _ in range(50)]
    joined = b"".join(messages)
    decoder = FrameDecoder()
    found = []
    for at in range(0, len(joined), piece):
        decoder.feed(rng.choice([bytes, bytearray, memoryview])(joined[at : at + piece]))
        found += list(decoder)
    decoder.finish()
    assert found == messages
    assert decoder.next_message() is None


def test_random_pieces_with_random_takes(rng: random.Random) -> None:
    messages = [segments_to_bytes(random_segments(rng)) for _ in range(300)]
    joined = b"".join(messages)
    decoder = FrameDecoder()
    found = []
    at = 0
    while at < len(joined):
        size = rng.choice([0, 1, 5, 40, 400])
        decoder.feed(joined[at : at + size])
        at += size
        for _ in range(rng.randrange(4)):
            message = decoder.next_message()
            if message is not None:
                found.append(message)
    assert found + list(decoder) == messages


def test_a_bytes_object_that_is_one_message_is_not_copied() -> None:
    message = segments_to_bytes([bytes(80)])
    decoder = FrameDecoder()
    decoder.feed(message)
    assert decoder.next_message() is message


def test_needed_says_what_is_missing() -> None:
    whole = table(1, 2, 3) + bytes(48)
    decoder = FrameDecoder()
    steps = []
    at = 0
    while decoder.needed:
        steps.append(decoder.needed)
        decoder.feed(whole[at : at + steps[-1]])
        at += steps[-1]
    assert steps == [8, 8, 48]
    assert decoder.next_message() == whole


def test_feeding_byte_by_byte_is_linear() -> None:
    # 256 KB in single bytes: quadratic moving or table reading would take minutes.
    message = segments_to_bytes([bytes(8)] * 511)
    whole = message * 8 + segments_to_bytes([bytes(200_000)])
    decoder = FrameDecoder()
    found = []
    for at in range(len(whole)):
        decoder.feed(whole[at : at + 1])
        found += list(decoder)
    assert len(found) == 9


def test_every_cut_is_noticed_at_the_end() -> None:
    message = table(1, 2) + bytes(24)
    for cut in range(1, len(message)):
        for before in (b"", message):
            decoder = FrameDecoder()
            decoder.feed(before + message[:cut])
            found = list(decoder)
            assert found == ([message] if before else [])
            with pytest.raises(TruncatedError) as caught:
                decoder.finish()
            assert caught.value.found == cut
            with pytest.raises(TruncatedError):
                decoder.next_message()


def test_messages_can_be_taken_after_the_end() -> None:
    message = table(1) + bytes(8)
    decoder = FrameDecoder()
    decoder.feed(message * 2 + message[:5])
    decoder.finish()
    assert decoder.next_message() == message
    assert decoder.next_message() == message
    with pytest.raises(TruncatedError):
        decoder.next_message()


def test_nothing_follows_the_end() -> None:
    decoder = FrameDecoder()
    decoder.close()
    with pytest.raises(ValueError, match="finish"):
        decoder.feed(b"")


def test_too_many_segments_are_refused_by_their_count_alone() -> None:
    decoder = FrameDecoder(segment_limit=3)
    decoder.feed(table(0, 0, 0))
    assert decoder.next_message() is not None
    decoder.feed(table(0, 0, 0, 0)[:8])
    for _ in range(2):  # and stays failed
        with pytest.raises(LimitError) as caught:
            decoder.next_message()
        assert (caught.value.name, caught.value.limit, caught.value.wanted) == (
            "segment_limit", 3, 4,
        )
    for again in (lambda: decoder.feed(b""), decoder.finish, lambda: decoder.needed):
        with pytest.raises(LimitError):
            again()


def test_too_many_words_are_refused_before_they_arrive() -> None:
    decoder = FrameDecoder(message_limit_words=10)
    decoder.feed(table(4, 6) + bytes(80))
    assert decoder.next_message() is not None
    decoder.feed(table(4, 7)[:12])
    with pytest.raises(LimitError) as caught:
        decoder.next_message()
    assert caught.value.name == "message_limit_words"
    assert pickle.loads(pickle.dumps(caught.value)).wanted == 11


def test_the_defaults_are_the_documented_ones() -> None:
    decoder = FrameDecoder()
    assert (decoder.segment_limit, decoder.message_limit_words) == (512, 8 * 1024 * 1024)
    decoder.feed(table(*[0] * 512))
    assert decoder.next_message() == table(*[0] * 512)


def test_claims_cost_no_memory() -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    tracemalloc.start()
    try:
        decoders = [FrameDecoder() for _ in range(100)]
        for decoder in decoders:
            decoder.feed(table(8 * 1024 * 1024))
            assert decoder.next_message() is None
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_frames_are_the_references(
    pycapnp: ModuleType, tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> None:
    path = tmp_path_factory.mktemp("schema") / "framing.capnp"
    path.write_text("@0xc3f1b3f7e2a94d10;\nstruct Blobs { blobs @0 :List(Data); }\n")
    schema = pycapnp.load(str(path))
    for _ in range(50):
        blobs = [rng.randbytes(rng.randrange(90)) for _ in range(rng.randrange(9))]
        message = schema.Blobs.new_message(num_first_segment_words=4, blobs=blobs)
        segments = [bytes(segment) for segment in message.to_segments()]
        assert segments_to_bytes(segments) == message.to_bytes()
