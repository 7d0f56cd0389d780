"""Packing: zero bytes squeezed out of words, at once or as bytes arrive.

Spec: encoding.md, Packing.
"""

from collections.abc import Iterator, Sequence
from typing import final

from typing_extensions import Buffer, Self

def pack(buffer: Buffer, /) -> bytes:
    """The words of a buffer, packed as one write.

    Raises:
        EncodeError: the buffer is no whole number of words.
    """

def pack_segments(segments: Sequence[Buffer]) -> bytes:
    """A message, packed as the reference writes it: its table and each segment by itself.

    Raises:
        EncodeError: there is no segment, or one is no whole number of words, or is too large.
    """

def unpack(buffer: Buffer, limit_bytes: int | None = None, /) -> bytes:
    """The words that packed bytes unpack to.

    `limit_bytes` is the most bytes to give (None: no limit): two packed bytes can make 2048.

    Raises:
        PackingError: the input ends inside a word or a run.
        LimitError: there is more than `limit_bytes`.
    """

def unpack_message(
    buffer: Buffer, start: int = 0, /, *, limit_words: int = 8388608, segment_limit: int = 512
) -> tuple[bytes, int]:
    """One framed message out of packed bytes, and the index behind it: `(message, end)`.

    Raises:
        PackingError: the input ends inside the message, or a run crosses its end.
        LimitError: it has more segments or words than allowed.
        FramingError: its count of segments is impossible.
        IndexError: `start` is outside the buffer.
    """

@final
class PackedDecoder(Iterator[bytes]):
    """Messages out of packed bytes that arrive in pieces, of any size.

    `feed()` bytes, then take messages by iterating or by `next_message()`; at the end of the input,
    `finish()`.  Memory follows what was unpacked, never what a table claims.  After an error, every
    call raises that error again.

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
        """Take packed bytes; nothing is unpacked yet.

        Raises:
            ValueError: `finish()` was called before.
        """

    def next_message(self) -> bytes | None:
        """The next whole message, unpacked and framed, or None while bytes of it are missing.

        Raises:
            LimitError: it has more segments or more words than allowed.
            FramingError: its count of segments is impossible.
            PackingError: a run crosses its end.
            TruncatedError: it is not whole and `finish()` was called.
        """

    def __iter__(self) -> Self: ...
    def __next__(self) -> bytes: ...
    @property
    def needed(self) -> int:
        """Packed bytes without which there is no next message; 0 when one is ready.

        A lower bound of what the message still takes: whoever reads no more than this at a time
        reads nothing beyond the message.  Exact inside a run of bytes that were left as they are.
        """

    @property
    def unread(self) -> int:
        """How many of the bytes that were fed are behind what was unpacked."""

    def finish(self) -> None:
        """Say that no bytes follow; messages that are whole can still be taken.

        Raises:
            TruncatedError: the next message has begun and is not whole.
        """

    def close(self) -> None:
        """The same as `finish()`."""

# What Cython adds to each module.
__pyx_capi__: dict[str, object]
__test__: dict[str, str]
