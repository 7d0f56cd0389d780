"""The text of JSON: how the `capnp` tool lays it out, parsing, where objects end in a stream.

Spec: tool.md, JSON codec.
"""

from __future__ import annotations

import json
import re

from capnwire.errors import CapnwireError, DecodeError
from capnwire.message.splitter import Splitter

__all__ = ["MAX_DEPTH", "JsonObject", "JsonSplitter", "Writer", "Written", "decoded", "parse_json"]

MAX_DEPTH = 64
INLINE_CHARACTERS = 50
"""An element longer than this breaks its list or object over several lines."""

Written = tuple[str, bool]
"""A text, and whether it is broken over lines."""

# --- writing ------------------------------------------------------------------------------------

_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}
_ESCAPED = str.maketrans(
    {**{chr(code): f"\\u{code:04x}" for code in range(0x20)}, **_ESCAPES}
)


class Writer:
    """Joins written parts into arrays and objects, on one line or broken over several."""

    __slots__ = ("pretty",)

    def __init__(self, pretty: bool) -> None:
        self.pretty = pretty

    @staticmethod
    def string(text: str) -> str:
        """A string in quotes."""
        return f'"{text.translate(_ESCAPED)}"'

    def array(self, items: list[Written], indent: int, after_key: bool) -> Written:
        """A list of what was written before."""
        text, is_broken = self._join([item for item, _ in items], items, indent, after_key)
        return f"[{text}]", is_broken

    def call(self, name: str, items: list[Written], indent: int) -> Written:
        """A function call, which is no JSON: json.capnp has it for dialects."""
        text, is_broken = self._join([item for item, _ in items], items, indent, True)
        return f"{name}({text})", is_broken

    def object(
        self, members: list[tuple[str, Written]], indent: int, after_key: bool
    ) -> Written:
        """An object of names and what was written for them."""
        colon = ": " if self.pretty else ":"
        items = [f"{self.string(name)}{colon}{value}" for name, (value, _) in members]
        text, is_broken = self._join(items, [value for _, value in members], indent, after_key)
        return f"{{{text}}}", is_broken

    def _join(
        self, items: list[str], parts: list[Written], indent: int, after_key: bool
    ) -> Written:
        if not self.pretty:
            return ",".join(items), False
        if len(items) < 2 or not (
            any(is_broken for _, is_broken in parts)
            or max(len(item.encode("utf-8", "surrogateescape")) for item in items)
            > INLINE_CHARACTERS
        ):
            return ", ".join(items), False
        line = "\n" + "  " * (indent + 1)
        return (line if after_key else " ") + f",{line}".join(items) + " ", True


# --- parsing ------------------------------------------------------------------------------------


class JsonObject(list[tuple[str, object]]):
    """A JSON object with all its members in order, those of the same name too."""


def _refuse_constant(name: str) -> float:
    raise DecodeError(f"{name} is no JSON")


def _integer(digits: str) -> float:
    """An int, but for `-0`, as which the tool writes a negative zero."""
    return -0.0 if digits == "-0" else int(digits)


_decoder = json.JSONDecoder(
    object_pairs_hook=JsonObject, parse_int=_integer, parse_constant=_refuse_constant,
    strict=False,
)


def decoded(text: bytes) -> tuple[str, bool]:
    """Bytes as a str, and whether it has surrogates that stand for bytes that are not UTF-8."""
    try:
        return text.decode(), False
    except UnicodeDecodeError:
        return text.decode("utf-8", "surrogateescape"), True


def parse_json(text: str) -> object:
    """One JSON value; objects keep the order of their members.

    Raises:
        DecodeError: it is no JSON, or nested too deeply.
    """
    try:
        value: object = _decoder.decode(text)
    except CapnwireError:
        raise
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DecodeError(f"{error.msg} at {place} of the JSON") from None
    except (RecursionError, ValueError) as error:
        raise DecodeError(f"the JSON cannot be read: {str(error)[:100]}") from None
    return value


_JSON_MARK = re.compile(rb'[{}\[\]"]')
_JSON_OUTSIDE = re.compile(rb"[^ \t\n\r]")
_JSON_STRING = re.compile(rb'(?:[^"\\]|\\.)*', re.DOTALL)


class JsonSplitter(Splitter):
    """Cuts bytes that arrive in pieces into texts of one JSON object each.

    Raises:
        DecodeError: something stands between objects, or the text ends inside one.
    """

    _nested, _outside = _JSON_MARK, _JSON_OUTSIDE

    def next_text(self) -> bytes | None:
        """The next whole object, or None while bytes of it are missing."""
        data = self._data
        while True:
            if self._in_string:
                match = _JSON_STRING.match(data, self._at)
                assert match is not None
                self._at = match.end()
                if self._at >= len(data) or data[self._at] != 0x22:
                    self._incomplete()
                    return None
                self._at, self._in_string = self._at + 1, False
            start = self._next_mark()
            if start is None:
                return None
            mark = data[start]
            if self._depth and mark == 0x22:
                self._at, self._in_string = start + 1, True
            elif mark == 0x7B or (self._depth and mark == 0x5B):
                self._enter(start)
                if self._depth > MAX_DEPTH:
                    raise DecodeError(f"the JSON is nested more than {MAX_DEPTH} deep")
            elif self._depth and mark in b"}]":
                text = self._leave(start)
                if text is not None:
                    return text
            else:
                found = bytes(data[start : start + 20]).decode("utf-8", "replace")
                raise DecodeError(f"an object is wanted, but there is {found!r}")

    def _incomplete(self) -> None:
        if self._ended and self._data:
            raise DecodeError("the JSON ends in the middle of an object")
