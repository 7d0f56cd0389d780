"""Cutting bytes that arrive in pieces into whole texts: what text format and JSON share."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator

__all__ = ["Splitter"]


class Splitter(ABC):
    """`feed()` bytes, then iterate over the whole texts; `finish()` at the end.

    Keeps no more than the text that is not whole yet.  A derived class has `next_text`, the
    error of an `_incomplete` one, and the patterns of what matters within and outside of brackets.
    """

    _nested: re.Pattern[bytes]
    _outside: re.Pattern[bytes]

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0             # looked at so far
        self._depth = 0
        self._in_string = False
        self._ended = False

    def feed(self, data: bytes) -> None:
        """Take bytes."""
        self._data += data

    def finish(self) -> None:
        """Say that no bytes follow."""
        self._ended = True

    def __iter__(self) -> Iterator[bytes]:
        while (text := self.next_text()) is not None:
            yield text

    @abstractmethod
    def next_text(self) -> bytes | None:
        """The next whole text, or None while bytes of it are missing."""

    @abstractmethod
    def _incomplete(self) -> None:
        """More bytes are wanted: raise if none follow but some are there."""

    def _next_mark(self) -> int | None:
        """Where the next byte is that matters; None while there is none."""
        match = (self._nested if self._depth else self._outside).search(self._data, self._at)
        if match is not None:
            return match.start()
        self._at = len(self._data)
        if not self._depth:
            self._drop(self._at)
        self._incomplete()
        return None

    def _enter(self, bracket: int) -> None:
        """A bracket opens; what stands before the outermost one is dropped."""
        if not self._depth:
            self._drop(bracket)
            bracket = 0
        self._depth += 1
        self._at = bracket + 1

    def _leave(self, bracket: int) -> bytes | None:
        """A bracket closes: with the outermost one the text is whole, and taken out."""
        self._depth -= 1
        self._at = bracket + 1
        if self._depth:
            return None
        text = bytes(self._data[: self._at])
        self._drop(self._at)
        return text

    def _drop(self, count: int) -> None:
        del self._data[:count]
        self._at = 0
