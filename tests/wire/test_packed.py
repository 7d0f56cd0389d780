"""Packing: the reference's vectors, its output byte for byte, and input that is cut or hostile."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from capnwire.errors import (
    DecodeError,
    EncodeError,
    FramingError,
    LimitError,
    PackingError,
    TruncatedError,
)
from capnwire.wire.framing import segments_to_bytes
from capnwire.wire.packed import (
    PackedDecoder,
    pack,
    pack_segments,
    unpack,
    unpack_message,
)

FULL = bytes([8, 100, 6, 1, 1, 2, 3, 4])

# capnp/serialize-packed-test.c++, SimplePacking.
VECTORS = [
    pytest.param("", "", id="nothing"),
    pytest.param("0000000000000000", "0000", id="a zero word"),
    pytest.param("00000c0000220000", "240c22", id="two bytes"),
    pytest.param("0103020405070608", "ff010302040507060800", id="a full word"),
    pytest.param(
        "00000000000000000103020405070608", "0000ff010302040507060800", id="zero, then full"
    ),
    pytest.param(
        "00000c00002200000103020405070608", "240c22ff010302040507060800", id="mixed, then full"
    ),
    pytest.param(
        "01030204050706080807060504030201", "ff0103020405070608010807060504030201",
        id="two full words",
    ),
    pytest.param(
        "0102030405060708" * 4 + "0002040009000501",
        "ff0102030405060708" + "03" + "0102030405060708" * 3 + "d602040905" + "01",
        id="a run that ends at a word with three zeroes",
    ),
    pytest.param(
        "01020304050607080102030405060708060204030900050101020304050607080002040009000501",
        "ff01020304050607080301020304050607080602040309000501"
        "0102030405060708d60204090501",
        id="a word with one zero stays in the run",
    ),
    pytest.param(
        "0800640600010102" + "0000000000000000" * 3 + "0000010002000301",
        "ed086406010102" + "0002" + "d401020301",
        id="a run of zeroes",
    ),
]


@pytest.mark.parametrize(("plain", "packed"), VECTORS)
def test_simple_packing(plain: str, packed: str) -> None:
    assert pack(bytes.fromhex(plain)).hex() == packed
    assert unpack(bytes.fromhex(packed)).hex() == plain
    assert pack(memoryview(b"#" + bytes.fromhex(plain))[1:]).hex() == packed


def packed_slowly(data: bytes) -> bytes:
    """Packing as the rules say it, word by word."""
    words = [data[at : at + 8] for at in range(0, len(data), 8)]
    out = bytearray()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        tag = sum(1 << i for i in range(8) if word[i])
        out.append(tag)
        out += bytes(byte for byte in word if byte)
        if tag in (0, 0xFF):
            start = at
            while at < len(words) and at - start < 255 and (
                words[at] == bytes(8) if tag == 0 else words[at].count(0) <= 1
            ):
                at += 1
            out.append(at - start)
            if tag == 0xFF:
                out += b"".join(words[start:at])
    return bytes(out)


def random_words(rng: random.Random, most: int = 40) -> bytes:
    """Words of all kinds, in stretches, so that runs of every length turn up."""
    out = bytearray()
    for _ in range(rng.randrange(most)):
        count = rng.choice([1, 1, 1, 2, 3, 254, 255, 256, 257, 600]) if rng.random() < 0.3 else 1
        kind = rng.randrange(4)
        for _ in range(count):
            if kind == 0:
                out += bytes(8)
            elif kind == 1:
                out += bytes(rng.randrange(1, 256) for _ in range(8))
            elif kind == 2:
                word = bytearray(rng.randrange(1, 256) for _ in range(8))
                word[rng.randrange(8)] = 0
                out += word
            else:
                out += bytes(rng.choice([0, 0, rng.randrange(256)]) for _ in range(8))
    return bytes(out)


@pytest.mark.parametrize("round_", range(10))
def test_every_kind_of_run_round_trips(rng: random.Random, round_: int) -> None:
    for _ in range(20):
        data = random_words(rng)
        packed = pack(data)
        assert packed == packed_slowly(data)
        assert unpack(packed) == data
        assert unpack(packed, len(data)) == data


@pytest.mark.parametrize("tag", range(256))
def test_every_tag_round_trips(tag: int) -> None:
    word = bytes(i + 1 if tag >> i & 1 else 0 for i in range(8))
    assert pack(word)[0] == tag
    assert unpack(pack(word)) == word
    assert unpack(pack(word * 3)) == word * 3


def test_blocks_and_runs_of_large_input(rng: random.Random) -> None:
    for word in (bytes(8), b"\1" * 8, b"\1\0" * 4):
        for count in (4095, 4096, 4097, 4096 + 255, 100_000):
            data = word * count
            assert pack(data) == packed_slowly(data)
            assert unpack(pack(data)) == data


def test_half_words_cannot_be_packed() -> None:
    with pytest.raises(EncodeError):
        pack(bytes(7))
    with pytest.raises(EncodeError):
        pack_segments([bytes(8), bytes(7)])
    with pytest.raises(EncodeError):
        pack_segments([])


def test_runs_do_not_cross_from_one_segment_to_the_next() -> None:
    segments = [b"\1" * 8, b"\1" * 16, bytes(8), bytes(8)]
    assert pack_segments(segments) == (
        pack(segments_to_bytes(segments)[:24]) + b"".join(pack(part) for part in segments)
    )


def test_property_round_trip() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    words = st.lists(
        st.lists(st.sampled_from([0, 0, 1, 255]), min_size=8, max_size=8).map(bytes), max_size=300
    )

    @hypothesis.given(words, st.integers(1, 300))  # type: ignore[untyped-decorator]
    def round_trip(parts: list[bytes], repeat: int) -> None:
        data = b"".join(parts) + b"".join(parts[-1:]) * repeat
        packed = pack(data)
        assert packed == packed_slowly(data)
        assert unpack(packed) == data

    @hypothesis.given(st.binary(max_size=200))  # type: ignore[untyped-decorator]
    def anything(data: bytes) -> None:
        try:
            plain = unpack(data, 10**6)
        except PackingError:
            return
        assert len(plain) % 8 == 0
        assert unpack(pack(plain)) == plain

    round_trip()
    anything()


# ---------------------------------------------------------------- the reference

@pytest.fixture(scope="module")
def blobs(pycapnp: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("schema") / "packed.capnp"
    path.write_text(
        "@0xe0a7c1f55d2b9a31;\n"
        "struct Blobs { blobs @0 :List(Data); numbers @1 :List(UInt64); next @2 :Blobs; }\n"
    )
    return pycapnp.load(str(path)).Blobs, path


def random_message(schema: Any, rng: random.Random) -> Any:
    def value(depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {
            "blobs": [random_words(rng, 5) for _ in range(rng.randrange(4))],
            "numbers": [rng.choice([0, 1, 2**64 - 1]) for _ in range(rng.randrange(600))],
        }
        if depth:
            made["next"] = value(depth - 1)
        return made

    return schema.new_message(
        num_first_segment_words=rng.choice([4, 1024]), **value(rng.randrange(3))
    )


def segments_of(framed: bytes) -> list[bytes]:
    count = struct.unpack_from("<I", framed)[0] + 1
    at = (count + 2) // 2 * 8
    segments = []
    for size in struct.unpack_from(f"<{count}I", framed, 4):
        segments.append(framed[at : at + size * 8])
        at += size * 8
    return segments


def test_packs_and_unpacks_what_pycapnp_does(blobs: Any, rng: random.Random) -> None:
    schema, _ = blobs
    for _ in range(100):
        message = random_message(schema, rng)
        plain = message.to_bytes()
        message.clear_write_flag()
        packed = message.to_bytes_packed()
        assert pack_segments(segments_of(plain)) == packed
        assert unpack(packed) == plain
        assert unpack_message(packed) == (plain, len(packed))


def test_packs_as_the_tool_converts(
    blobs: Any, capnp_tool: str, rng: random.Random
) -> None:
    schema, path = blobs
    def convert(how: str, data: bytes) -> bytes:
        command = [capnp_tool, "convert", how, str(path), "Blobs"]
        return subprocess.run(command, input=data, capture_output=True, check=True).stdout

    for _ in range(10):
        plain = random_message(schema, rng).to_bytes()
        packed = convert("binary:packed", plain)
        message, end = unpack_message(packed)
        assert end == len(packed)
        assert pack_segments(segments_of(message)) == packed
        ours = pack_segments(segments_of(plain))
        assert convert("packed:binary", ours) == convert("binary:binary", plain)


# ---------------------------------------------------------------- broken input

def test_every_cut_is_truncated(rng: random.Random) -> None:
    data = b"".join(
        [b"\1" * 8 * 5, bytes(24), b"\1\0\2\0\3\0\4\0", bytes(8), b"\7" * 8, b"\1\2\3" + bytes(5)]
    )
    packed = pack(data)
    ends = {len(pack(data[:at])) for at in range(0, len(data) + 1, 8)}
    for cut in range(len(packed)):
        try:
            plain = unpack(packed[:cut])
        except PackingError:
            assert cut not in (0, len(packed))
        else:
            assert cut in ends
            assert data.startswith(plain)


@pytest.mark.parametrize(
    ("packed", "found"),
    [
        pytest.param("00", "1 of 2", id="no count of zero words"),
        pytest.param("01", "1 of 2", id="no byte"),
        pytest.param("7f010203040506", "7 of 8", id="a byte short"),
        pytest.param("ff0102030405060708", "9 of 10", id="no count of full words"),
        pytest.param("ff010203040506070801" + "00" * 7, "17 of 18", id="a run short of a byte"),
        pytest.param("0000" * 9 + "ff", "1 of 10", id="at the very end"),
    ],
)
def test_truncated_words_are_named(packed: str, found: str) -> None:
    with pytest.raises(PackingError, match=found):
        unpack(bytes.fromhex(packed))


def test_amplification_is_bounded() -> None:
    bomb = b"\x00\xff" * 1000
    assert len(unpack(bomb)) == 2_048_000
    with pytest.raises(LimitError) as caught:
        unpack(bomb, 2_047_999)
    assert (caught.value.name, caught.value.limit) == ("limit_bytes", 2_047_999)
    assert caught.value.wanted == 2_048_000
    assert len(unpack(bomb, 2_048_000)) == 2_048_000
    with pytest.raises(LimitError):
        unpack(b"\0\0", 0)
    assert unpack(b"", 0) == b""


def message_of(*segments: bytes) -> bytes:
    return segments_to_bytes(list(segments))


def test_several_messages_in_a_row(rng: random.Random) -> None:
    messages = [
        [random_words(rng, 6) for _ in range(rng.randrange(1, 4))] for _ in range(20)
    ]
    packed = b"".join(pack_segments(segments) for segments in messages)
    at = 0
    for segments in messages:
        message, at = unpack_message(packed, at)
        assert message == message_of(*segments)
    assert at == len(packed)
    with pytest.raises(PackingError):
        unpack_message(packed, at)
    with pytest.raises(IndexError):
        unpack_message(packed, at + 1)


def test_a_run_may_cross_the_borders_inside_a_message() -> None:
    # Table and segments packed in one write: not what a writer may do, but readable.
    for message in (
        message_of(b"", bytes(8), bytes(16)),
        message_of(*[b"\1" * 8] * 3),
        message_of(bytes(2000)),
        message_of(*[b""] * 300),
    ):
        assert unpack_message(pack(message)) == (message, len(pack(message)))
        decoder = PackedDecoder()
        decoder.feed(pack(message))
        assert list(decoder) == [message]


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(pack(message_of(bytes(8)) + bytes(8)), id="zeroes behind a message"),
        pytest.param(pack(message_of(b"\1" * 8) + b"\1" * 8), id="full words behind a message"),
        pytest.param(b"\x00\x01", id="a zero word behind an empty message"),
        pytest.param(b"\x10\x01\xff" + b"\1" * 8 + b"\x05", id="a run that is not all there"),
    ],
)
def test_a_run_may_not_cross_the_end_of_a_message(packed: bytes) -> None:
    with pytest.raises(PackingError, match="crosses"):
        unpack_message(packed)
    decoder = PackedDecoder()
    decoder.feed(packed)
    for _ in range(2):  # and stays failed
        with pytest.raises(PackingError, match="crosses"):
            decoder.next_message()


def test_every_cut_of_a_message_is_truncated() -> None:
    segments = [b"\1" * 8 * 3, bytes(24), b"\1\0\2\0\3\0\4\0" * 2]
    packed = pack_segments(segments)
    for cut in range(len(packed)):
        with pytest.raises(PackingError):
            unpack_message(packed[:cut])
        decoder = PackedDecoder()
        decoder.feed(packed[:cut])
        assert decoder.next_message() is None
        if cut == 0:
            decoder.finish()
            continue
        with pytest.raises(TruncatedError):
            decoder.finish()
        with pytest.raises(TruncatedError):
            decoder.next_message()


@pytest.mark.parametrize(
    ("message", "error"),
    [
        pytest.param(struct.pack("<II", 0xFFFFFFFF, 0), FramingError, id="count overflows"),
        pytest.param(struct.pack("<II", 0xFFFFFFFE, 0), FramingError, id="table overflows"),
        pytest.param(struct.pack("<II", 512, 0), LimitError, id="513 segments"),
        pytest.param(struct.pack("<II", 0, 8 * 1024 * 1024 + 1), LimitError, id="too many words"),
    ],
)
def test_tables_that_claim_too_much_are_refused(
    message: bytes, error: type[DecodeError]
) -> None:
    with pytest.raises(error):
        unpack_message(pack(message))
    decoder = PackedDecoder()
    decoder.feed(pack(message))
    with pytest.raises(error):
        decoder.next_message()
    with pytest.raises(error):
        decoder.feed(b"")


def test_limits_are_inclusive() -> None:
    packed = pack_segments([bytes(80), bytes(8)])
    assert unpack_message(packed, limit_words=11, segment_limit=2)[1] == len(packed)
    with pytest.raises(LimitError, match="message_limit_words is 10"):
        unpack_message(packed, limit_words=10)
    with pytest.raises(LimitError, match="segment_limit is 1"):
        unpack_message(packed, segment_limit=1)


# ---------------------------------------------------------------- as bytes arrive

@pytest.mark.parametrize("piece", [1, 2, 7, 100, 10**6])
def test_messages_come_out_of_pieces(rng: random.Random, piece: int) -> None:
    messages = [
        [random_words(rng, 8) for _ in range(rng.randrange(1, 5))] for _ in range(20)
    ] + [[b""], [b"", b""]]
    packed = b"".join(pack_segments(segments) for segments in messages)
    decoder = PackedDecoder()
    found = []
    for at in range(0, len(packed), piece):
        decoder.feed(packed[at : at + piece])
        found += list(decoder)
    decoder.finish()
    assert found == [message_of(*segments) for segments in messages]


def test_messages_can_be_taken_after_the_end() -> None:
    packed = pack_segments([b"\1" * 80])
    decoder = PackedDecoder()
    decoder.feed(packed * 2)
    decoder.close()
    assert list(decoder) == [message_of(b"\1" * 80)] * 2
    decoder = PackedDecoder()
    decoder.feed(packed * 2 + packed[:1])
    decoder.finish()
    assert decoder.next_message() is not None
    assert decoder.next_message() is not None
    with pytest.raises(TruncatedError):
        decoder.next_message()
    with pytest.raises(TruncatedError):
        decoder.feed(b"")


def test_what_is_behind_a_message_is_unread() -> None:
    decoder = PackedDecoder()
    first = pack_segments([bytes(8)])      # 10 01 (the table: one word), 00 00 (the root)
    assert first == bytes.fromhex("1001 0000")
    decoder.feed(first + first[:3])
    assert decoder.unread == 7
    assert decoder.next_message() is not None
    assert decoder.unread == 3
    assert decoder.next_message() is None
    assert decoder.unread == 1             # a 00 whose count has not come
    decoder.feed(first[3:])
    assert decoder.next_message() is not None
    assert decoder.unread == 0


def test_feeding_byte_by_byte_is_linear() -> None:
    packed = pack_segments([b"\1" * 80_000] + [b""] * 500) + pack_segments([b"\1\0" * 40_000])
    decoder = PackedDecoder()
    found = []
    for at in range(len(packed)):
        decoder.feed(packed[at : at + 1])
        found += list(decoder)
    decoder.finish()
    assert len(found) == 2


@pytest.mark.parametrize("read", [unpack_message, unpack])
def test_claims_cost_no_memory(read: Callable[[bytes], object]) -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    claim = pack(struct.pack("<II", 0, 8 * 1024 * 1024)) + b"\x00\xff" * 8 + b"\x00"
    tracemalloc.start()
    try:
        with pytest.raises(PackingError):
            read(claim)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()
