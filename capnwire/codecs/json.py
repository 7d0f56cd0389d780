"""Messages as JSON text: parsing, printing and their limits; `shapes` converts the values.

Data is base64, 64-bit integers are strings, enums are names (a number where the schema has no
name), Void is null, a union is its member by name, NaN and the infinities are strings.  Null
pointers are left out.  Decoding is strict: unknown and duplicate keys, wrong types, numbers out
of range and lone surrogates are errors that name the path.
"""

import json
from typing import Any

from capnwire.codecs.base import Codec, struct_type, to_plain
from capnwire.codecs.shapes import NESTING_LIMIT, KeyCount, Trouble, shape_of
from capnwire.errors import DecodeError, EncodeError, EncodeTypeError

try:
    import orjson
except ImportError:
    orjson = None  # type: ignore[assignment, unused-ignore]

__all__ = ["JSON", "Json", "JsonError"]

# Longer than any number that a field can hold; more digits are refused before `int` sees
# them, since converting them takes quadratic time.
LONGEST_INTEGER = 400


class JsonError(DecodeError):
    """A JSON value that the schema does not allow; `path` says where, such as `$.phones[2]`."""

    def __init__(self, text: str, *, path: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path = path


class Json(Codec):
    """The JSON codec; `orjson` is used where it is installed, with the same results."""

    name = "json"

    def __init__(self, *, use_orjson: bool = True, nesting_limit: int = NESTING_LIMIT) -> None:
        self._orjson = orjson if use_orjson else None
        self._nesting_limit = nesting_limit

    def encode(self, value: Any) -> bytes:
        """The value as compact UTF-8 JSON text."""
        try:
            tree = shape_of(struct_type(value)).to_json(to_plain(value))
        except Trouble as trouble:
            kind = EncodeTypeError if trouble.wrong_type else EncodeError
            raise kind(str(trouble), field=trouble.path) from None
        try:
            if self._orjson is not None:
                data: bytes = self._orjson.dumps(tree)
                return data
            text = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            return text.encode()
        except (TypeError, ValueError) as error:
            raise EncodeError(f"cannot be written as JSON: {error}") from error

    def decode(self, kind: Any, data: "bytes | bytearray | memoryview") -> Any:
        """A reader of `kind` over a new message with what the JSON text says."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"JSON is decoded from bytes, not {type(data).__name__}")
        data = bytes(data)
        shape = shape_of(kind)
        try:
            plain = self._decode_fast(shape, data)
            if plain is None:
                plain = shape.from_json(parse(data), KeyCount(self._nesting_limit))
        except Trouble as trouble:
            raise JsonError(trouble.text, path=trouble.path) from None
        try:
            return kind.new_message(**plain).as_reader()
        except EncodeError as error:
            raise DecodeError(str(error)) from error

    def _decode_fast(self, shape: Any, data: bytes) -> "dict[str, Any] | None":
        """What orjson makes of the text, or None where only the strict parser can tell.

        orjson keeps the last of duplicate keys without a word.  In a text without any escape
        the bytes `":` end a key and occur nowhere else, so as many of them as there are keys
        in the result proves that none was lost.
        """
        if self._orjson is None or b"\\" in data:
            return None
        try:
            tree = self._orjson.loads(data)
        except ValueError:
            return None  # the strict parser tells what is wrong, in the same words everywhere
        keys = KeyCount(self._nesting_limit)
        plain: dict[str, Any] = shape.from_json(tree, keys)
        return plain if keys.count == data.count(b'":') else None


def parse(data: bytes) -> Any:
    """The JSON value of a text, with duplicate keys, NaN literals and huge numbers refused."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"JSON is not UTF-8 at byte {error.start}") from error
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise DecodeError(
            f"JSON is malformed at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except RecursionError:
        raise DecodeError("JSON is nested too deeply to be parsed") from None


def _object(pairs: "list[tuple[str, Any]]") -> "dict[str, Any]":
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DecodeError(f"JSON has the key {key!r:.80} twice in one object")
            seen.add(key)
    return found


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise DecodeError(f"JSON has an integer of {len(digits)} digits")
    return int(digits)


def _constant(name: str) -> Any:
    raise DecodeError(f"{name} is not JSON; write it as a string")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant
)

JSON = Json()
