"""Reading and writing files as pycapnp's programs do: file objects, sockets, file descriptors.

What is written is in the file when the call returns.  Any object that reads or writes bytes will
do, and so will a text file.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

from capnwire._any import any_root
from capnwire.errors import PackingError, TruncatedError
from capnwire.message import files as native
from capnwire.wire.packed import unpack_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capnwire.pycapnp._face import _DynamicStructReader
    from capnwire.pycapnp.modules import _StructModule
    from capnwire.pycapnp.objects import _DynamicObjectReader

__all__ = [
    "from_bytes_packed", "next_message", "read", "read_multiple", "read_multiple_bytes_packed",
    "read_multiple_packed", "read_packed", "segments_of", "write_all",
]

DEFAULT_LIMIT = 8 * 1024 * 1024


def write_all(file: Any, data: bytes) -> None:
    """Write to a file object, socket or file descriptor, through every buffer."""
    flush = getattr(file, "flush", None)
    if isinstance(file, io.TextIOBase) and flush is not None:
        flush()
    if not hasattr(file, "write") and not hasattr(file, "sendall") and hasattr(file, "fileno"):
        file = file.fileno()
    native._put(file, data)
    if flush is not None:
        flush()


def _bytes_of(buf: Any) -> memoryview:
    if isinstance(buf, str):
        raise TypeError("a bytes-like object is required, not 'str'")
    return memoryview(buf).cast("B")


def from_bytes_packed(
    kind: _StructModule, buf: Any, limit: int | None, nesting: int | None
) -> _DynamicStructReader:
    """The packed message at the start of a buffer."""
    view = _bytes_of(buf)
    if not len(view):
        raise TruncatedError("Premature EOF", wanted=8, found=0)
    message, _ = unpack_message(view, 0, limit_words=native._limit_words(limit))
    return kind.from_bytes(message, limit, nesting)


def read_multiple_bytes_packed(
    kind: _StructModule, buf: Any, limit: int | None, nesting: int | None
) -> Iterator[_DynamicStructReader]:
    """The packed messages of a buffer; a truncated last one warns and ends it."""
    for message in _unpacked(buf, limit):
        yield kind.from_bytes(message, limit, nesting)


def any_messages_packed(
    buf: Any, traversal_limit_in_words: int | None = None, nesting_limit: int | None = None
) -> Iterator[_DynamicObjectReader]:
    """The packed messages of a buffer, as AnyPointers."""
    limit, nesting = traversal_limit_in_words, nesting_limit
    from capnwire.pycapnp.objects import _DynamicObjectReader

    for message in _unpacked(buf, limit):
        yield _DynamicObjectReader(any_root(segments_of(message), _limit(limit), nesting))


def _unpacked(buf: Any, limit: int | None) -> Iterator[bytes]:
    """The packed messages of a buffer, unpacked; a truncated last one warns and ends it."""
    view = _bytes_of(buf)
    at = 0
    while at < len(view):
        try:
            message, at = unpack_message(view, at, limit_words=native._limit_words(limit))
        except PackingError:
            _truncated(4)
            return
        yield message


def _limit(limit: int | None) -> int:
    return DEFAULT_LIMIT if limit is None else limit


def _truncated(level: int = 3) -> None:
    warnings.warn(
        "the input ends in the middle of a message, which is dropped", RuntimeWarning,
        stacklevel=level,
    )


def segments_of(message: bytes) -> list[memoryview]:
    """The segments of one framed message."""
    view = memoryview(message)
    count = int.from_bytes(view[:4], "little") + 1
    at = (4 + 4 * count + 7) & ~7
    found = []
    for index in range(count):
        size = int.from_bytes(view[4 + 4 * index : 8 + 4 * index], "little") * 8
        found.append(view[at : at + size])
        at += size
    return found


def _source(file: Any) -> Any:
    """What is read from: a text file's binary half; a descriptor of what only has a number."""
    if isinstance(file, int) or hasattr(file, "recv") or hasattr(file, "read"):
        return file
    if hasattr(file, "fileno"):
        return file.fileno()
    raise TypeError(f"a file object is wanted, not {type(file).__name__}")


def next_message(file: Any, limit: int | None, *, packed: bool = False) -> bytes:
    """The next whole message of a file; nothing behind it is taken.

    Raises:
        TruncatedError: the file ends before it.
    """
    take = native._next_packed if packed else native._next_framed
    message = take(native._Source(_source(file)), limit)
    if message is None:
        raise TruncatedError("Premature EOF", wanted=8, found=0)
    return message


def read(
    kind: _StructModule, file: Any, limit: int | None, nesting: int | None
) -> _DynamicStructReader:
    """The next framed message of a file."""
    return kind.from_bytes(next_message(file, limit), limit, nesting)


def read_packed(
    kind: _StructModule, file: Any, limit: int | None, nesting: int | None
) -> _DynamicStructReader:
    """The next packed message of a file."""
    return kind.from_bytes(next_message(file, limit, packed=True), limit, nesting)


def read_multiple(
    kind: _StructModule, file: Any, limit: int | None, nesting: int | None
) -> Iterator[_DynamicStructReader]:
    """The framed messages of a file; a truncated last one warns and ends it."""
    return _all(kind, file, native._next_framed, limit, nesting)


def read_multiple_packed(
    kind: _StructModule, file: Any, limit: int | None, nesting: int | None
) -> Iterator[_DynamicStructReader]:
    """The packed messages of a file; a truncated last one warns and ends it."""
    return _all(kind, file, native._next_packed, limit, nesting)


def _all(
    kind: _StructModule, file: Any, take: Any, limit: Any, nesting: Any
) -> Iterator[_DynamicStructReader]:
    source = native._Source(_source(file))
    while True:
        try:
            message = take(source, limit)
        except TruncatedError:
            _truncated()
            return
        if message is None:
            return
        yield kind.from_bytes(message, limit, nesting)
