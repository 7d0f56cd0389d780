"""Messages from and to files of every kind: what is read, how much of it, and what is refused."""

from __future__ import annotations

import gzip
import io
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import capnwire
from capnwire.errors import FramingError, LimitError, PackingError, TruncatedError
from capnwire.wire.framing import segments_to_bytes
from capnwire.wire.packed import PackedDecoder, pack_segments

SCHEMA = """@0xa7c1f7a2b0d9f6e3;
struct Note { id @0 :UInt32; text @1 :Text; data @2 :Data; }
"""


@pytest.fixture(scope="module")
def notes() -> ModuleType:
    return capnwire.load_text(SCHEMA, "notes.capnp")


@pytest.fixture(scope="module")
def messages(notes: ModuleType) -> list[Any]:
    rng = random.Random(5)
    return [
        notes.Note.new_message(id=i, text="x" * (i * 7), data=rng.randbytes(i * i * 40))
        for i in range(12)
    ] + [notes.Note.new_message(id=12, text="y", data=rng.randbytes(90_000))]


def framed(messages: list[Any]) -> bytes:
    return b"".join(message.to_bytes() for message in messages)


def packed(messages: list[Any]) -> bytes:
    return b"".join(message.to_bytes_packed() for message in messages)


class Counting(io.BytesIO):
    """A file that keeps count of its reads."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(size)


class Dripping(io.RawIOBase):
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size = data, size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        taken, self.data = self.data[: min(size, self.size)], self.data[min(size, self.size) :]
        return taken


# ---------------------------------------------------------------- every kind of file


def from_pipe(data: bytes, tmp_path: Path) -> Iterator[Any]:
    reading, writing = os.pipe()

    def fill() -> None:
        with open(writing, "wb") as file:
            file.write(data)

    thread = threading.Thread(target=fill)
    thread.start()
    yield reading
    thread.join()
    os.close(reading)


def from_socket(data: bytes, tmp_path: Path) -> Iterator[Any]:
    left, right = socket.socketpair()

    def fill() -> None:
        left.sendall(data)
        left.close()

    thread = threading.Thread(target=fill)
    thread.start()
    with right:
        yield right
    thread.join()


def from_file(data: bytes, tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "file").write_bytes(data)
    with open(tmp_path / "file", "rb") as file:
        yield file


def from_raw_file(data: bytes, tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "file").write_bytes(data)
    with open(tmp_path / "file", "rb", buffering=0) as file:
        yield file


def from_text_file(data: bytes, tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "file").write_bytes(data)
    with open(tmp_path / "file", encoding="utf-8") as file:
        yield file


def from_gzip(data: bytes, tmp_path: Path) -> Iterator[Any]:
    with gzip.open(tmp_path / "file.gz", "wb") as file:
        file.write(data)
    with gzip.open(tmp_path / "file.gz", "rb") as file:
        yield file


def from_memory(data: bytes, tmp_path: Path) -> Iterator[Any]:
    yield io.BytesIO(data)


def from_single_bytes(data: bytes, tmp_path: Path) -> Iterator[Any]:
    yield Dripping(data, 1)


def from_buffered_pipe(data: bytes, tmp_path: Path) -> Iterator[Any]:
    context = from_pipe(data, tmp_path)
    with os.fdopen(os.dup(next(context)), "rb") as file:
        yield file
    next(context, None)


def from_changeable_file(data: bytes, tmp_path: Path) -> Iterator[Any]:
    (tmp_path / "file").write_bytes(data)
    with open(tmp_path / "file", "r+b") as file:
        yield file


def from_buffered_drops(data: bytes, tmp_path: Path) -> Iterator[Any]:
    yield io.BufferedReader(io.BytesIO(data), 16)  # type: ignore[arg-type]


SOURCES = [
    from_pipe,
    from_socket,
    from_file,
    from_raw_file,
    from_text_file,
    from_gzip,
    from_memory,
    from_single_bytes,
    from_buffered_pipe,
    from_changeable_file,
    from_buffered_drops,
]


@pytest.mark.parametrize("form", ["framed", "packed"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_consecutive_reads_each_take_one_message(
    notes: ModuleType,
    messages: list[Any],
    tmp_path: Path,
    source: Callable[..., Iterator[Any]],
    form: str,
) -> None:
    Note = notes.Note
    data = framed(messages) if form == "framed" else packed(messages)
    read = Note.read if form == "framed" else Note.read_packed
    context = source(data, tmp_path)
    file = next(context)
    for message in messages:
        assert read(file) == message
    with pytest.raises(TruncatedError):
        read(file)
    assert next(context, None) is None


@pytest.mark.parametrize("form", ["framed", "packed"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_all_messages_of_a_file(
    notes: ModuleType,
    messages: list[Any],
    tmp_path: Path,
    source: Callable[..., Iterator[Any]],
    form: str,
) -> None:
    Note = notes.Note
    data = framed(messages) if form == "framed" else packed(messages)
    context = source(data, tmp_path)
    file = next(context)
    read = Note.read_multiple if form == "framed" else Note.read_multiple_packed
    assert list(read(file)) == messages
    assert next(context, None) is None


@pytest.mark.parametrize("form", ["framed", "packed"])
def test_what_stands_behind_a_message_is_left_in_the_file(
    notes: ModuleType, messages: list[Any], form: str
) -> None:
    for message in messages:
        data = message.to_bytes() if form == "framed" else message.to_bytes_packed()
        for kind in (io.BytesIO, lambda data: io.BufferedReader(io.BytesIO(data))):
            file = kind(data + b"the next protocol")
            (notes.Note.read if form == "framed" else notes.Note.read_packed)(file)
            assert file.read() == b"the next protocol"


@pytest.mark.parametrize("first_words", [1, 2, 50, 1024])
def test_each_segment_is_packed_by_itself(notes: ModuleType, first_words: int) -> None:
    message = notes.Note.new_message(
        num_first_segment_words=first_words, id=1, text="t" * 20, data=bytes(range(256)) * 60
    )
    assert message.to_bytes_packed() == pack_segments(message.to_segments())
    assert notes.Note.from_bytes_packed(message.to_bytes_packed()) == message


@pytest.mark.parametrize("kind", [str, Path, os.fsencode], ids=["str", "Path", "bytes"])
def test_paths_are_opened_and_closed(
    notes: ModuleType, messages: list[Any], tmp_path: Path, kind: Any
) -> None:
    place = kind(tmp_path / "note")
    messages[3].write(place)
    assert notes.Note.read(place) == messages[3]
    messages[3].write_packed(place)
    assert notes.Note.read_packed(place) == messages[3]


# ---------------------------------------------------------------- how much is read


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda rng: bytes(4 << 20), id="zeroes"),
        pytest.param(lambda rng: rng.randbytes(4 << 20), id="runs of bytes left as they are"),
        pytest.param(lambda rng: rng.randbytes(1 << 19) + bytes(3 << 20), id="both"),
        pytest.param(
            lambda rng: bytes(rng.choices([0, 0, 0, 1, 255], k=1 << 20)), id="words of some bytes"
        ),
    ],
)
def test_large_packed_messages_are_not_read_byte_by_byte(
    notes: ModuleType, rng: random.Random, content: Callable[[random.Random], bytes]
) -> None:
    data = content(rng)
    message = notes.Note.new_message(data=data)
    file = Counting(message.to_bytes_packed() + b"rest")
    assert notes.Note.read_packed(file).data == data
    assert file.reads < 5000
    assert file.read() == b"rest"


def test_needed_never_asks_for_a_byte_beyond_the_message(rng: random.Random) -> None:
    for _ in range(300):
        segments = []
        for _ in range(rng.choice([1, 1, 2, 3, 5])):
            words = rng.choice([0, 1, 2, 255, 256, 257, 600])
            segments.append(
                rng.choice(
                    [
                        bytes(words * 8),
                        rng.randbytes(words * 8),
                        bytes(rng.choices([0, 0, 0, 1, 255], k=words * 8)),
                    ]
                )
            )
        data = pack_segments(segments)
        decoder = PackedDecoder()
        at = 0
        while needed := decoder.needed:
            assert 1 <= needed <= len(data) - at
            decoder.feed(data[at : at + needed])
            at += needed
        assert at == len(data)
        assert decoder.next_message() == segments_to_bytes(segments)


@pytest.mark.parametrize(
    ("fed", "needed"),
    [
        pytest.param(b"", 2, id="nothing yet: two bytes can make any table's first word"),
        pytest.param(b"\x10", 1, id="a tag of one byte lacks that byte"),
        pytest.param(b"\x10\x03", 2, id="table says 3 words: two bytes may make them all"),
        pytest.param(b"\x10\x03\x00", 1, id="zeroes lack their count"),
        pytest.param(b"\x10\x03\x00\x00", 2, id="one zero word, two more to come"),
        pytest.param(b"\x10\x03\xff", 9 + 2, id="a full word, its count, and at least one step"),
        pytest.param(b"\x10\x03\xff" + b"8bytes!!" + b"\x02", 16, id="exact inside a run"),
        pytest.param(b"\x10\x03\xff" + b"8bytes!!" + b"\x02" + b"x" * 15, 1, id="its last byte"),
        pytest.param(b"\x10\x03\xff" + b"8bytes!!" + b"\x02" + b"x" * 16, 0, id="whole"),
    ],
)
def test_needed(fed: bytes, needed: int) -> None:
    decoder = PackedDecoder()
    decoder.feed(fed)
    assert decoder.needed == needed


# ---------------------------------------------------------------- limits


def test_a_file_above_the_default_limit_is_read_when_the_caller_allows_it(
    notes: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "large"
    size = 8 * 1024 * 1024 + 1000  # words: just above 64 MiB
    with open(path, "wb") as file:
        # One segment: a root of two pointers at words 0 to 3, then a Data of all the rest.
        file.write((0).to_bytes(4, "little") + size.to_bytes(4, "little"))
        file.write((1 << 32 | 2 << 48).to_bytes(8, "little"))
        file.write(bytes(16))
        file.write((1 | 2 << 32 | ((size - 4) * 8) << 35).to_bytes(8, "little"))
        file.truncate(8 + size * 8)
    for read in (
        notes.Note.read,
        lambda path, **limits: next(notes.Note.read_multiple(path, **limits)),
    ):
        with pytest.raises(LimitError, match="traversal_limit_in_words is 8388608") as caught:
            read(path)
        assert (caught.value.name, caught.value.wanted) == ("traversal_limit_in_words", size)
        with pytest.raises(LimitError, match="traversal_limit_in_words is 100"):
            read(path, traversal_limit_in_words=100)
        assert len(read(path, traversal_limit_in_words=1 << 40).data) == (size - 4) * 8


def test_packed_limits_have_the_callers_name(notes: ModuleType) -> None:
    data = notes.Note.new_message(data=bytes(1 << 20)).to_bytes_packed()
    for read in (
        lambda: notes.Note.read_packed(io.BytesIO(data), 1000),
        lambda: notes.Note.from_bytes_packed(data, 1000),
        lambda: list(notes.Note.read_multiple_bytes_packed(data, 1000)),
        lambda: list(notes.Note.read_multiple_packed(io.BytesIO(data), 1000)),
    ):
        with pytest.raises(LimitError, match="traversal_limit_in_words is 1000"):
            read()


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"\0\0\0\0\xff\xff\x7f\0", id="one segment of almost 64 MiB"),
        pytest.param(b"\xff\1\0\0" + b"\xff\x3f\0\0" * 512 + b"\0\0\0\0", id="512 segments"),
    ],
)
def test_a_claimed_size_is_not_allocated_before_its_bytes_arrive(
    notes: ModuleType, head: bytes
) -> None:
    asked = []

    class Claiming:
        """Gives the head, then very little."""

        def __init__(self) -> None:
            self.data = head + bytes(100_000)

        def read(self, size: int) -> bytes:
            asked.append(size)
            taken, self.data = self.data[:size], self.data[size:]
            return taken

    with pytest.raises(TruncatedError):
        notes.Note.read(Claiming())
    assert max(asked) <= 1 << 17


# ---------------------------------------------------------------- files that misbehave


def test_every_truncation_is_an_error_of_its_own(notes: ModuleType, messages: list[Any]) -> None:
    data = messages[4].to_bytes()
    for end in range(len(data)):
        with pytest.raises(TruncatedError):
            notes.Note.read(io.BytesIO(data[:end]))
    data = messages[4].to_bytes_packed()
    for end in range(len(data)):
        with pytest.raises(TruncatedError):
            notes.Note.read_packed(io.BytesIO(data[:end]))
        with pytest.raises((PackingError, TruncatedError)):
            notes.Note.from_bytes_packed(data[:end])


def test_good_messages_come_before_the_error_of_a_truncated_last_one(
    notes: ModuleType, messages: list[Any]
) -> None:
    data = framed(messages[:3]) + messages[3].to_bytes()[:-1]
    reading = notes.Note.read_multiple(io.BytesIO(data))
    assert [next(reading) for _ in range(3)] == messages[:3]
    with pytest.raises(TruncatedError, match="ends after"):
        next(reading)


def test_a_file_that_gives_more_than_it_was_asked_for_is_refused(
    notes: ModuleType, messages: list[Any]
) -> None:
    class Generous:
        def read(self, size: int) -> bytes:
            return messages[5].to_bytes()

    with pytest.raises(FramingError, match="when asked for 8"):
        notes.Note.read(Generous())


@pytest.mark.parametrize(
    ("gives", "error", "text"),
    [
        pytest.param(None, BlockingIOError, "non-blocking", id="nothing now"),
        pytest.param("text", TypeError, "binary mode", id="text"),
        pytest.param(7, TypeError, "int", id="a number"),
    ],
)
def test_files_that_give_no_bytes(
    notes: ModuleType, gives: object, error: type[Exception], text: str
) -> None:
    class File:
        def read(self, size: int) -> object:
            return gives

    for read in (notes.Note.read, notes.Note.read_packed):
        with pytest.raises(error, match=text):
            read(File())


@pytest.mark.parametrize("thing", [None, 1.5, object(), [b"x"]], ids=repr)
def test_what_is_no_file_is_a_slip_of_the_caller(notes: ModuleType, thing: object) -> None:
    with pytest.raises(TypeError, match="file object"):
        notes.Note.read(thing)
    with pytest.raises(TypeError, match="file object"):
        notes.Note.new_message().write(thing)


def test_a_string_file_is_refused(notes: ModuleType) -> None:
    with pytest.raises(TypeError, match="binary mode"):
        notes.Note.read(io.StringIO("        "))


def test_a_non_blocking_pipe_says_so(notes: ModuleType) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        with pytest.raises(BlockingIOError):
            notes.Note.read(reading)
        with open(reading, "rb", buffering=0, closefd=False) as file:
            with pytest.raises(BlockingIOError):
                notes.Note.read(file)
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("taken", [0, -1, 10**6], ids=["nothing", "less than nothing", "too much"])
def test_a_file_that_lies_about_what_it_took_ends_the_write(
    notes: ModuleType, messages: list[Any], taken: int
) -> None:
    class Lying:
        def write(self, data: bytes) -> int:
            return taken

    with pytest.raises(OSError, match="the file took"):
        messages[2].write(Lying())


def test_short_writes_are_continued(notes: ModuleType, messages: list[Any]) -> None:
    class Short:
        def __init__(self) -> None:
            self.data = b""

        def write(self, data: bytes) -> int:
            self.data += bytes(data[:3])
            return min(3, len(data))

    file = Short()
    messages[4].write(file)
    assert file.data == messages[4].to_bytes()


def test_text_files_keep_the_order_of_what_was_written(
    notes: ModuleType, messages: list[Any], tmp_path: Path
) -> None:
    with open(tmp_path / "mixed", "w", encoding="utf-8") as file:
        file.write("before")
        messages[1].write(file)
    assert (tmp_path / "mixed").read_bytes() == b"before" + messages[1].to_bytes()
