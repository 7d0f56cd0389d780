"""Reading messages from files, sockets and paths, and writing them: any object that moves bytes.

A claimed size is never allocated ahead of the bytes that arrive.  Spec: encoding.md, 1.6 and 1.7.
"""

from __future__ import annotations

import io
import os

from capnwire.errors import FramingError, LimitError, PackingError, TruncatedError
from capnwire.wire.framing import FrameDecoder
from capnwire.wire.packed import PackedDecoder, unpack_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from capnwire._fast import Struct

__all__ = [
    "from_bytes_packed",
    "read",
    "read_multiple",
    "read_multiple_bytes_packed",
    "read_multiple_packed",
    "read_packed",
    "write",
    "write_packed",
]

DEFAULT_LIMIT_WORDS = 8 * 1024 * 1024
UNLIMITED_WORDS = (1 << 61) - 1
CHUNK, MAX_CHUNK = 1 << 16, 1 << 24
PEEK = 1 << 13

# `Any` for files: whatever has read or recv, write or sendall; a descriptor; a path.


def _limit_words(limit: int | None) -> int:
    return DEFAULT_LIMIT_WORDS if limit is None else min(limit, UNLIMITED_WORDS)


class _Source:
    """One way to get at most n bytes from any file-like object.

    `peek`, if it can be done, gives some of the bytes that come next and leaves them where they
    are; `back(n)`, if it can be done, puts back the last n bytes.
    """

    def __init__(self, file: Any) -> None:
        self._opened: BinaryIO | None = None
        self._chunk = CHUNK
        if isinstance(file, (str, bytes, os.PathLike)):
            file = self._opened = open(file, "rb")  # noqa: SIM115
        self._take: Any
        if isinstance(file, int):
            self._take = lambda size: os.read(file, size)
        elif hasattr(file, "recv"):
            self._take = file.recv
        elif hasattr(file, "read"):
            if hasattr(file, "buffer") and hasattr(file, "encoding"):
                file = file.buffer
            self._take = file.read
        else:
            raise TypeError(
                "a file object, socket, file descriptor or path is wanted, "
                f"not {type(file).__name__}"
            )
        self.peek: Any = None
        self.back: Any = None
        if type(file) is io.BytesIO:
            memory = file
            self.peek = lambda: bytes(memory.getbuffer()[memory.tell() :][:PEEK])
        elif isinstance(file, io.BufferedIOBase) and hasattr(file, "peek"):
            buffered = file
            self.peek = lambda: buffered.peek(1)
        if type(file) in (io.BytesIO, io.BufferedReader, io.BufferedRandom) and file.seekable():
            seekable = file
            self.back = lambda size: seekable.seek(-size, 1)

    def take(self, size: int) -> bytes:
        """Between 1 and `size` bytes, or b"" at the end."""
        wanted = min(size, self._chunk)
        data = self._take(wanted)
        if data is None:
            raise BlockingIOError("the file is in non-blocking mode and has no bytes now")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(
                f"the file gives {type(data).__name__}, not bytes: open it in binary mode"
            )
        found = bytes(data)
        if len(found) > wanted:
            raise FramingError(f"the file gave {len(found)} bytes when asked for {wanted}")
        if len(found) == self._chunk and self._chunk < MAX_CHUNK:
            self._chunk *= 2     # no more than what has arrived already
        return found

    def skip(self, size: int) -> None:
        """Take bytes that were seen by `peek`."""
        while size:
            size -= len(self.take(size))

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()


def _next(source: _Source, decoder: Any) -> bytes | None:
    """The next whole message of a stream, read without taking a byte beyond it; None at its end."""
    try:
        while True:
            message = decoder.next_message()
            if message is not None:
                found: bytes = message
                return found
            data = source.take(decoder.needed)
            if not data:
                decoder.finish()
                return None
            decoder.feed(data)
    except LimitError as error:
        raise _renamed(error) from None


def _next_packed(source: _Source, limit: int | None) -> bytes | None:
    """The next whole packed message, read without taking a byte beyond it; None at the end.

    How long it is shows only as it is unpacked: what a file lets be seen is unpacked first, and
    taken as far as it belongs to the message; then what it can take back is read in large pieces.
    """
    decoder = PackedDecoder(message_limit_words=_limit_words(limit))
    try:
        while source.peek is not None:
            seen = source.peek()
            if not seen:
                break            # the end, or no bytes now
            decoder.feed(seen)
            message = decoder.next_message()
            if message is not None:
                source.skip(len(seen) - decoder.unread)
                return message
            source.skip(len(seen))
            if source.back is not None:
                return _next_read_ahead(source, decoder)
    except LimitError as error:
        raise _renamed(error) from None
    return _next(source, decoder)


def _next_read_ahead(source: _Source, decoder: PackedDecoder) -> bytes:
    while (message := decoder.next_message()) is None:
        data = source.take(CHUNK)    # larger ones cost fresh pages each time: 1 MB 1.3 ms, not 0.7
        if data:
            decoder.feed(data)
        else:
            decoder.finish()
    if decoder.unread:
        source.back(decoder.unread)
    return message


def _renamed(error: LimitError) -> LimitError:
    """The decoders' limit by the name under which the caller can raise it."""
    if error.name not in ("message_limit_words", "limit_words"):
        return error
    return LimitError("traversal_limit_in_words", limit=error.limit, wanted=error.wanted)


def _unpack(view: memoryview, at: int, limit: int | None) -> tuple[bytes, int]:
    try:
        return unpack_message(view, at, limit_words=_limit_words(limit))
    except LimitError as error:
        raise _renamed(error) from None


def _next_framed(source: _Source, limit: int | None) -> bytes | None:
    """The next whole framed message, read without taking a byte beyond it; None at the end."""
    return _next(source, FrameDecoder(message_limit_words=_limit_words(limit)))


def _one(kind: Any, file: Any, take: Any, limit: int | None, nesting: int | None) -> Any:
    source = _Source(file)
    try:
        message = take(source, limit)
    finally:
        source.close()
    if message is None:
        raise TruncatedError("the file ends where a message should begin", wanted=8, found=0)
    return kind.from_bytes(message, limit, nesting)


def _all(
    kind: Any, file: Any, take: Any, limit: int | None, nesting: int | None
) -> Iterator[Any]:
    source = _Source(file)
    try:
        while (message := take(source, limit)) is not None:
            yield kind.from_bytes(message, limit, nesting)
    finally:
        source.close()


def read(kind: Any, file: Any, limit: int | None, nesting: int | None) -> Any:
    """The next framed message of a file."""
    return _one(kind, file, _next_framed, limit, nesting)


def read_packed(kind: Any, file: Any, limit: int | None, nesting: int | None) -> Any:
    """The next packed message of a file."""
    return _one(kind, file, _next_packed, limit, nesting)


def read_multiple(kind: Any, file: Any, limit: int | None, nesting: int | None) -> Iterator[Any]:
    """Every framed message of a file; a truncated last one raises after the good ones."""
    return _all(kind, file, _next_framed, limit, nesting)


def read_multiple_packed(
    kind: Any, file: Any, limit: int | None, nesting: int | None
) -> Iterator[Any]:
    """Every packed message of a file."""
    return _all(kind, file, _next_packed, limit, nesting)


def read_multiple_bytes_packed(
    kind: Any, data: Any, limit: int | None, nesting: int | None
) -> Iterator[Any]:
    """Every packed message of a buffer."""
    view = memoryview(data).cast("B")
    at = 0
    while at < len(view):
        message, at = _unpack(view, at, limit)
        yield kind.from_bytes(message, limit, nesting)


def from_bytes_packed(kind: Any, data: Any, limit: int | None, nesting: int | None) -> Any:
    """The one packed message of a buffer."""
    view = memoryview(data).cast("B")
    message, end = _unpack(view, 0, limit)
    if end != len(view):
        raise PackingError(f"{len(view) - end} bytes are left after the packed message")
    return kind.from_bytes(message, limit, nesting)


# ------------------------------------------------------------------ writing


def _put(file: Any, data: bytes) -> None:
    """Write all of `data` to a file object, socket, file descriptor or path."""
    if isinstance(file, (str, bytes, os.PathLike)):
        with open(file, "wb") as opened:
            opened.write(data)
        return
    if hasattr(file, "sendall"):
        file.sendall(data)
        return
    write: Any
    if isinstance(file, int):
        write = lambda part: os.write(file, part)  # noqa: E731
    elif hasattr(file, "buffer") and hasattr(file, "encoding"):
        file.flush()
        write = file.buffer.write
    elif hasattr(file, "write"):
        write = file.write
    else:
        raise TypeError(
            f"a file object, socket, file descriptor or path is wanted, not {type(file).__name__}"
        )
    left = memoryview(data)
    while left:
        written = write(left)
        if written is None:
            if isinstance(file, io.RawIOBase):
                raise BlockingIOError("the file is in non-blocking mode and takes no bytes now")
            return           # a file object that writes all and says nothing
        if not 0 < written <= len(left):
            raise OSError(f"the file took {written} of {len(left)} bytes")
        left = left[written:]


def write(struct: Struct, file: Any) -> None:
    """Write a framed message."""
    _put(file, struct.to_bytes())


def write_packed(struct: Struct, file: Any) -> None:
    """Write a packed message."""
    _put(file, struct.to_bytes_packed())
