"""Reading from and writing to anything that moves bytes; closing; truncation; limits."""

from __future__ import annotations

import bz2
import gzip
import io
import mmap
import os
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from capnwire import DecodeError, FramingError, LimitError, PackingError, TruncatedError

VALUES = [{"value": 1}, {"value": 2, "left": {"value": 3}}, {"children": [{"value": 4}] * 3}, {}]
READS = [("to_bytes", "read", "read_multiple"), ("to_bytes_packed", "read_packed",
    "read_multiple_packed")]
IDS = ["plain", "packed"]


def stream(ours: Any, dump: str) -> bytes:
    return b"".join(getattr(ours.Tree.new_message(**value), dump)() for value in VALUES)


class Trickle(io.RawIOBase):
    """A file that gives one byte at a time, and has neither a descriptor nor a size."""

    def __init__(self, data: bytes) -> None:
        self.data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self.data.read(1)

    def readinto(self, buffer: Any) -> int:
        found = self.data.read(1)
        buffer[: len(found)] = found
        return len(found)


def over_socket(data: bytes) -> socket.socket:
    ours, theirs = socket.socketpair()
    threading.Thread(target=lambda: (theirs.sendall(data), theirs.close())).start()
    return ours


def over_pipe(data: bytes) -> Any:
    read, write = os.pipe()

    def send() -> None:
        with open(write, "wb") as file:
            file.write(data)

    threading.Thread(target=send).start()
    return open(read, "rb")


def in_file(data: bytes) -> Any:
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(data)
    file.seek(0)
    return file


SOURCES: dict[str, Callable[[bytes], Any]] = {
    "BytesIO": io.BytesIO, "trickle": Trickle, "socket": over_socket, "pipe": over_pipe,
    "file": in_file, "gzip": lambda data: gzip.open(io.BytesIO(gzip.compress(data))),  # noqa: SIM115
    "bz2": lambda data: bz2.open(io.BytesIO(bz2.compress(data))),  # noqa: SIM115
    "buffered": lambda data: io.BufferedReader(Trickle(data)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("dump", "read", "read_all"), READS, ids=IDS)
def test_messages_are_read_one_after_another_from_anything(
    ours: Any, source: str, dump: str, read: str, read_all: str
) -> None:
    data = stream(ours, dump)
    wanted = [ours.Tree.new_message(**value).to_dict() for value in VALUES]
    with SOURCES[source](data) as file:
        assert [message.to_dict() for message in getattr(ours.Tree, read_all)(file)] == wanted
    with SOURCES[source](data) as file:
        one_by_one = [getattr(ours.Tree, read)(file).to_dict() for _ in VALUES]
        assert one_by_one == wanted
        with pytest.raises(EOFError):
            getattr(ours.Tree, read)(file)


@pytest.mark.parametrize(("dump", "read", "read_all"), READS, ids=IDS)
def test_paths_and_descriptors_are_files(
    ours: Any, tmp_path: Path, dump: str, read: str, read_all: str
) -> None:
    path = tmp_path / "messages"
    path.write_bytes(stream(ours, dump))
    for given in (path, str(path), os.fsencode(path)):
        assert getattr(ours.Tree, read)(given).value == 1
        assert len(list(getattr(ours.Tree, read_all)(given))) == len(VALUES)
    with path.open("rb") as file:
        assert getattr(ours.Tree, read)(file.fileno()).value == 1
    with path.open("r") as file:
        assert getattr(ours.Tree, read)(file).value == 1


@pytest.mark.parametrize("packed", [False, True], ids=IDS)
def test_what_is_written_is_what_pycapnp_reads(
    ours: Any, theirs: Any, tmp_path: Path, packed: bool
) -> None:
    write, read = ("write_packed", "read_packed") if packed else ("write", "read")
    message = ours.Tree.new_message(**VALUES[2])
    reader = ours.Tree.from_bytes(message.to_bytes())
    path = tmp_path / "one"
    for made in (message, reader, reader.children[1].as_builder()):
        getattr(made, write)(path)
        with path.open("rb") as file:
            assert getattr(theirs.Tree, read)(file).to_dict() == made.to_dict()
        with path.open("wb") as file:
            getattr(made, write)(file)
        assert getattr(ours.Tree, read)(path) == made.as_builder()
    memory = io.BytesIO()
    getattr(message, write)(memory)
    assert memory.getvalue() == (message.to_bytes_packed() if packed else message.to_bytes())
    left, right = socket.socketpair()
    with left, right:
        getattr(message, write)(left)
        assert getattr(ours.Tree, read)(right) == message
    with gzip.open(path, "wb") as file:
        getattr(message, write)(file)
    with gzip.open(path) as file:
        assert getattr(ours.Tree, read)(file) == message
    with pytest.raises(TypeError, match="a file object, socket"):
        getattr(message, write)(5.5)


@pytest.mark.parametrize(("dump", "read", "read_all"), READS, ids=IDS)
def test_a_truncated_last_message_raises_after_the_good_ones(
    ours: Any, dump: str, read: str, read_all: str
) -> None:
    data = stream(ours, dump)
    ends = []
    for value in VALUES:
        ends.append((ends[-1] if ends else 0) + len(getattr(ours.Tree.new_message(**value),
            dump)()))
    for cut in range(len(data)):
        good, whole = [], sum(end <= cut for end in ends)
        messages = getattr(ours.Tree, read_all)(io.BytesIO(data[:cut]))
        if cut in (0, *ends):
            assert len(list(messages)) == whole
            continue
        with pytest.raises((TruncatedError, PackingError)):
            for message in messages:
                good.append(message)
        assert [message.to_dict() for message in good] == [
            ours.Tree.new_message(**value).to_dict() for value in VALUES[:whole]]


@pytest.mark.parametrize("packed", [False, True], ids=IDS)
def test_buffers_of_many_messages_are_iterated(ours: Any, packed: bool) -> None:
    data = stream(ours, "to_bytes_packed" if packed else "to_bytes")
    iterate = ours.Tree.read_multiple_bytes_packed if packed else ours.Tree.read_multiple_bytes
    for buffer in (data, bytearray(data), memoryview(data), numpy.frombuffer(data, "u1")):
        assert [message.value for message in iterate(buffer)] == [1, 2, 0, 0]
    good = []
    with pytest.raises(DecodeError):
        for message in iterate(data[:-1]):
            good.append(message)
    assert len(good) == 3
    assert list(iterate(b"")) == []


def test_a_file_that_lies_about_sizes_costs_nothing(ours: Any) -> None:
    huge = b"\0\0\0\0\xff\xff\xff\x1f"
    with pytest.raises((TruncatedError, LimitError, FramingError)):
        ours.Tree.read(io.BytesIO(huge))
    many = (0xFFFF).to_bytes(4, "little") + b"\xff" * 64
    with pytest.raises((FramingError, LimitError)):
        ours.Tree.read(io.BytesIO(many))
    with pytest.raises(TypeError, match="open it in binary mode"):
        ours.Tree.read(io.StringIO("text"))
    with pytest.raises(TypeError, match="a file object, socket"):
        ours.Tree.read(object())


# ---------------------------------------------------------------- buffers and contexts


@pytest.mark.parametrize(
    "wrap", [bytes, bytearray, memoryview, lambda x: memoryview(bytearray(x)),
             lambda x: numpy.frombuffer(x, "u1"), lambda x: memoryview(b"x" + x)[1:]],
    ids=["bytes", "bytearray", "memoryview", "writable view", "numpy", "unaligned"],
)
def test_any_buffer_is_read_in_place(ours: Any, wrap: Any) -> None:
    data = ours.Tree.new_message(**VALUES[1]).to_bytes()
    reader = ours.Tree.from_bytes(wrap(data))
    assert reader.left.value == 3
    with ours.Tree.from_bytes(wrap(data)) as inside:
        assert inside.left.value == 3
    packed = ours.Tree.new_message(**VALUES[1]).to_bytes_packed()
    assert ours.Tree.from_bytes_packed(wrap(packed)).left.value == 3
    segments = ours.Tree.new_message(1, **VALUES[1]).to_segments()
    assert len(segments) > 1
    assert ours.Tree.from_segments([wrap(segment) for segment in segments]).left.value == 3


def test_leaving_the_context_closes_what_is_not_bytes(ours: Any) -> None:
    data = ours.Tree.new_message(**VALUES[1]).to_bytes()
    with ours.Tree.from_bytes(data) as reader:
        pass
    assert reader.left.value == 3
    raw = bytearray(data)
    with ours.Tree.from_bytes(raw) as reader:
        child = reader.left
        with pytest.raises(BufferError):
            raw.append(0)
    raw.append(0)
    for use in (lambda: reader.value, lambda: child.value, child.to_dict, reader.as_builder,
                lambda: reader.children, reader.to_bytes):
        with pytest.raises(DecodeError, match="closed"):
            use()
    with pytest.raises(ZeroDivisionError):
        with ours.Tree.from_bytes(bytearray(data)):
            1 / 0  # noqa: B018


def test_a_mapped_file_is_read_without_a_copy_and_can_be_closed(ours: Any, tmp_path: Path) -> None:
    path = tmp_path / "mapped"
    path.write_bytes(ours.Tree.new_message(**VALUES[1]).to_bytes())
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        with ours.Tree.from_bytes(mapped) as reader:
            assert reader.left.value == 3
        mapped.close()
    with pytest.raises(DecodeError):
        reader.left  # noqa: B018


@pytest.mark.parametrize(
    ("data", "error"),
    [(b"", FramingError), (b"\0" * 7, FramingError), (b"\0" * 8, FramingError),
     (b"\0\0\0\0\1\0\0\0", TruncatedError), (b"\xff" * 16, FramingError),
     (b"\0\0\0\0\2\0\0\0" + b"\0" * 8, TruncatedError)],
)
def test_bytes_that_are_no_message_are_refused(ours: Any, data: bytes, error: Any) -> None:
    with pytest.raises(error):
        ours.Tree.from_bytes(data)
    for wrong in (None, "text", 5, [1]):
        with pytest.raises(TypeError):
            ours.Tree.from_bytes(wrong)


def test_bytes_after_a_message_are_left_alone(ours: Any) -> None:
    data = ours.Tree.new_message(value=4).to_bytes()
    assert ours.Tree.from_bytes(data + data).value == 4
    with pytest.raises(PackingError, match="left after the packed message"):
        ours.Tree.from_bytes_packed(ours.Tree.new_message(value=4).to_bytes_packed() + b"\0\0")


def test_limits_given_are_kept(ours: Any) -> None:
    deep: dict[str, Any] = {"value": 1}
    for _ in range(70):
        deep = {"left": deep}
    data = ours.Tree.new_message(**deep).to_bytes()
    with pytest.raises(LimitError):
        ours.Tree.from_bytes(data).to_dict()
    assert ours.Tree.from_bytes(data, nesting_limit=100).to_dict()["left"]
    with pytest.raises(LimitError):
        ours.Tree.from_bytes(data, traversal_limit_in_words=5).to_dict()
    reader = ours.Tree.from_bytes(data, traversal_limit_in_words=100)
    with pytest.raises(LimitError):
        for _ in range(100):
            reader.left  # noqa: B018
    reader = ours.Tree.from_bytes(data)
    rows = ours.Lists.from_bytes(ours.Lists.new_message(int64s=range(100000)).to_bytes())
    for _ in range(200):
        assert len(rows.int64s) == 100000  # honest, so reading it often is no attack
    assert reader.left.value == 0
