"""Segment tables: frames around messages, written at once and read as their bytes arrive.

Spec: encoding.md, Serialization Over a Stream.
"""

from collections.abc import Iterator, Sequence
from typing import final

from typing_extensions import Buffer, Self

def segments_to_bytes(segments: Sequence[Buffer]) -> bytes:
    """The framed message: the segment table and the segments, joined once.

    Raises:
        EncodeError: there is no segment, or one is no whole number of words, or is too large.
    """

def expected_size(prefix: Buffer, /) -> int:
    """Bytes of the framed message that starts with `prefix`, as far as `prefix` tells.

    At least 8.  Exact once `prefix` holds the whole segment table; before that, the size up to
    which bytes are needed to tell more.

    Raises:
        FramingError: the count of segments is impossible.
    """

def message_end(buffer: Buffer, start: int = 0, /) -> int:
    """The index behind the framed message that starts at `start`.

    There is no limit here on segments or size: the buffer is all there.

    Raises:
        TruncatedError: the buffer ends before the message does.
        FramingError: the count of segments is impossible.
        IndexError: `start` is outside the buffer.
    """

@final
class FrameDecoder(Iterator[bytes]):
    """Framed messages out of bytes that arrive in pieces, of any size.

    `feed()` bytes, then take messages by iterating or by `next_message()`; at the end of the input,
    `finish()`.  Memory follows the bytes that arrived, never what a table claims.  After an error,
    every call raises that error again.

    `segment_limit` is the most segments a message may have, `message_limit_words` the most words
    in all of them.
    """

    @property
    def segment_limit(self) -> int: ...
    @property
    def message_limit_words(self) -> int: ...
    def __new__(
        cls, *, segment_limit: int = 512, message_limit_words: int = 8388608
    ) -> Self: ...
    def feed(self, data: Buffer, /) -> None:
        """Take bytes; nothing is decoded yet.

        A `bytes` object is kept, not copied, when no other bytes wait.

        Raises:
            ValueError: `finish()` was called before.
        """

    def next_message(self) -> bytes | None:
        """The next whole message with its segment table, or None while bytes of it are missing.

        Raises:
            LimitError: it has more segments or more words than allowed.
            FramingError: its count of segments is impossible.
            TruncatedError: it is not whole and `finish()` was called.
        """

    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    @property
    def needed(self) -> int:
        """Bytes without which there is no next message; 0 when one is ready.

        Before the table is whole, this is what the table lacks, and more may be needed then.
        """

    def finish(self) -> None:
        """Say that no bytes follow; messages that are whole can still be taken.

        Raises:
            TruncatedError: the next message has begun and is not whole.
        """

    def close(self) -> None:
        """The same as `finish()`."""

@final
class ByteQueue:
    """Bytes that arrived and were not taken yet; for compiled code."""

# What Cython adds to each module.
__pyx_capi__: dict[str, object]
__test__: dict[str, str]
