"""What the types of a schema look like in JSON: one shape for each kind, both directions.

A shape turns a plain value (what `to_dict` gives) into a JSON tree and back, checking as it
goes.  Shapes come from the tables that the message layer itself uses, generic parameters
resolved, and are kept for each struct type.
"""

import base64
import binascii
import math
from collections.abc import Callable
from typing import Any

from capnwire._info import StructInfo
from capnwire.errors import LimitError

__all__ = ["NESTING_LIMIT", "KeyCount", "Shape", "StructShape", "Trouble", "shape_of"]

NESTING_LIMIT = 64
"""Objects and arrays inside one another, as deep as a message may nest."""

FLOAT32_MAX = 3.4028235677973366e38
"""Half a step above the largest Float32: what is below rounds to a finite one."""

_NONFINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class KeyCount:
    """What one decoding has met so far: keys of objects, and the depth it may still go."""

    __slots__ = ("count", "depth_left", "limit")

    def __init__(self, limit: int) -> None:
        self.count, self.depth_left, self.limit = 0, limit, limit

    def enter(self) -> None:
        """One level down; `depth_left` is raised again by whoever goes up."""
        self.depth_left -= 1
        if self.depth_left < 0:
            raise LimitError("nesting of JSON", limit=self.limit, wanted=self.limit + 1)


class Trouble(Exception):
    """A value that does not fit; containers add where it stands on its way out.

    So a path costs nothing while all is well.  `Json` turns it into an `EncodeError` or a
    `DecodeError`.
    """

    def __init__(self, text: str, *, wrong_type: bool = False) -> None:
        super().__init__(text)
        self.text, self.wrong_type, self.where = text, wrong_type, ""

    @property
    def path(self) -> str:
        """Where: `$` is the whole value, then `.field` and `[index]`."""
        return "$" + self.where

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def _named(value: object) -> str:
    """A JSON value as an error shows it: its kind, and the value where it is short."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    shown = repr(value)
    return shown if len(shown) <= 40 else shown[:37] + "…"


class Shape:
    """One type: `to_json(value)` and `from_json(tree, keys)`."""

    __slots__ = ()

    is_pointer = False

    def to_json(self, value: Any) -> Any:
        """A tree that a JSON printer takes."""
        raise NotImplementedError

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        """The plain value that a builder takes."""
        raise NotImplementedError


class _Void(Shape):
    __slots__ = ()

    def to_json(self, value: Any) -> Any:
        if value is not None:
            raise Trouble("Void holds None only", wrong_type=True)

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        if tree is not None:
            raise Trouble(f"Void is null, not {_named(tree)}")


class _Bool(Shape):
    __slots__ = ()

    def to_json(self, value: Any) -> Any:
        if value is not True and value is not False:
            raise Trouble("Bool holds True or False", wrong_type=True)
        return value

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        if tree is not True and tree is not False:
            raise Trouble(f"Bool is true or false, not {_named(tree)}")
        return tree


class _Integer(Shape):
    """An integer of some width; those of 64 bits travel as strings."""

    __slots__ = ("as_text", "high", "low", "name")

    def __init__(self, kind: str) -> None:
        bits = int(kind.removeprefix("u").removeprefix("int"))
        signed = not kind.startswith("u")
        self.low = -(1 << bits - 1) if signed else 0
        self.high = (1 << bits - signed) - 1
        self.as_text = bits == 64
        self.name = ("" if signed else "U") + f"Int{bits}"

    def to_json(self, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Trouble(f"{self.name} holds an int", wrong_type=True)
        if not self.low <= value <= self.high:
            raise Trouble(f"{value} is out of range for {self.name}")
        return str(int(value)) if self.as_text else int(value)

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        value = tree
        if self.as_text and type(tree) is str:
            digits = tree[1:] if tree[:1] == "-" else tree
            if not (digits.isascii() and digits.isdecimal() and len(digits) <= 20):
                raise Trouble(f"{self.name} is a decimal number, not {_named(tree)}")
            value = int(tree)
        if type(value) is not int:
            raise Trouble(f"{self.name} is an integer, not {_named(tree)}")
        if not self.low <= value <= self.high:
            raise Trouble(f"{_named(tree)} is out of range for {self.name}")
        return value


class _Float(Shape):
    __slots__ = ("limit", "name")

    def __init__(self, kind: str) -> None:
        self.name = kind.capitalize()
        self.limit = FLOAT32_MAX if kind == "float32" else math.inf

    def to_json(self, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Trouble(f"{self.name} holds a number", wrong_type=True)
        value = float(value)
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        if type(tree) is str and tree in _NONFINITE:
            return _NONFINITE[tree]
        if type(tree) is not float and type(tree) is not int:
            raise Trouble(
                f'{self.name} is a number, "NaN", "Infinity" or "-Infinity", '
                f"not {_named(tree)}"
            )
        try:
            value = float(tree)
        except OverflowError:
            value = math.inf
        if abs(value) >= self.limit:
            raise Trouble(f"{_named(tree)} is out of range for {self.name}")
        return value


class _Text(Shape):
    __slots__ = ()

    is_pointer = True

    def to_json(self, value: Any) -> Any:
        if not isinstance(value, str):
            raise Trouble("Text holds a str", wrong_type=True)
        if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
            raise Trouble("Text has a lone surrogate")
        return str(value)

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        if type(tree) is not str:
            raise Trouble(f"Text is a string, not {_named(tree)}")
        if not tree.isascii():
            try:
                tree.encode()
            except UnicodeEncodeError as error:
                raise Trouble(
                    f"Text has a lone surrogate at character {error.start}"
                ) from None
        return tree


class _Data(Shape):
    __slots__ = ()

    is_pointer = True

    def to_json(self, value: Any) -> Any:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise Trouble("Data holds bytes", wrong_type=True)
        return base64.b64encode(value).decode("ascii")

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        if type(tree) is not str:
            raise Trouble(f"Data is a string of base64, not {_named(tree)}")
        try:
            return base64.b64decode(tree, validate=True)
        except (binascii.Error, ValueError) as error:
            raise Trouble(f"Data is not base64: {error}") from None


class _Enum(Shape):
    __slots__ = ("known", "name", "values")

    def __init__(self, name: str, values: "list[str]") -> None:
        self.name, self.values, self.known = name, values, frozenset(values)

    def to_json(self, value: Any) -> Any:
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            value = getattr(value, "raw", value)  # an enum value that knows its number
        if isinstance(value, str):
            if value in self.known:
                return str(value)
            raise Trouble(f"enum {self.name} has no {value!r:.80}")
        if isinstance(value, bool) or not isinstance(value, int):
            raise Trouble(f"enum {self.name} holds a name or number", wrong_type=True)
        if not 0 <= value <= 0xFFFF:
            raise Trouble(f"{value} is out of range for an enum")
        return self.values[value] if value < len(self.values) else int(value)

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        if type(tree) is str:
            if tree not in self.known:
                raise Trouble(f"enum {self.name} has no {_named(tree)}")
            return tree
        if type(tree) is not int:
            raise Trouble(f"enum {self.name} is a name or number, not {_named(tree)}")
        if not 0 <= tree <= 0xFFFF:
            raise Trouble(f"{_named(tree)} is out of range for an enum")
        return tree


class _Opaque(Shape):
    """AnyPointer and capabilities: JSON has no word for them, only for their absence."""

    __slots__ = ("name",)

    is_pointer = True

    def __init__(self, name: str) -> None:
        self.name = name

    def to_json(self, value: Any) -> Any:
        if value is not None:
            raise Trouble(f"{self.name} cannot be written as JSON", wrong_type=True)

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        raise Trouble(f"{self.name} cannot be read from JSON")


class _List(Shape):
    __slots__ = ("element",)

    is_pointer = True

    def __init__(self, element: Shape) -> None:
        self.element = element

    def to_json(self, value: Any) -> Any:
        if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
            raise Trouble("a List holds a sequence", wrong_type=True)
        return _each(self.element.to_json, value)

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        if type(tree) is not list:
            raise Trouble(f"a List is an array, not {_named(tree)}")
        keys.enter()
        from_json = self.element.from_json
        found = _each(lambda item: from_json(item, keys), tree)
        keys.depth_left += 1
        return found


def _each(convert: Callable[[Any], Any], items: Any) -> "list[Any]":
    found: list[Any] = []
    add = found.append
    try:
        for item in items:
            add(convert(item))
    except Trouble as trouble:
        trouble.where = f"[{len(found)}]{trouble.where}"
        raise
    return found


class StructShape(Shape):
    """A struct or group: an object with a key for each field that is present."""

    __slots__ = ("fields", "name", "union")

    is_pointer = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[str, Shape] = {}
        self.union: frozenset[str] = frozenset()

    def to_json(self, value: Any) -> Any:
        if not isinstance(value, dict):
            if not hasattr(value, "to_dict"):
                raise Trouble(f"{self.name} holds a dict", wrong_type=True)
            value = value.to_dict()
        return self._convert(value, _to_json, None)

    def from_json(self, tree: Any, keys: KeyCount) -> Any:
        if type(tree) is not dict:
            raise Trouble(f"{self.name} is an object, not {_named(tree)}")
        keys.enter()
        keys.count += len(tree)
        found = self._convert(tree, _from_json, keys)
        keys.depth_left += 1
        return found

    def _convert(
        self, items: "dict[str, Any]", convert: Callable[[Shape, Any, Any], Any], keys: Any
    ) -> "dict[str, Any]":
        found: dict[str, Any] = {}
        fields, union, chosen = self.fields, self.union, None
        name = ""
        try:
            for name, item in items.items():
                shape = fields.get(name)
                if shape is None:
                    raise Trouble("there is no such field in " + self.name)
                if name in union:
                    if chosen is not None:
                        raise Trouble(f"{chosen} and {name} exclude each other")
                    chosen = name
                if item is None and shape.is_pointer:
                    # A null pointer is not there; as a union's member it is still chosen.
                    if name == chosen:
                        found[name] = None
                    continue
                found[name] = convert(shape, item, keys)
        except Trouble as trouble:
            trouble.where = f".{name:.80}{trouble.where}"
            raise
        return found


def _to_json(shape: Shape, item: Any, keys: Any) -> Any:
    return shape.to_json(item)


def _from_json(shape: Shape, item: Any, keys: Any) -> Any:
    return shape.from_json(item, keys)


_SIMPLE: "dict[str, Shape]" = {
    "void": _Void(),
    "bool": _Bool(),
    "text": _Text(),
    "data": _Data(),
    **{
        f"{sign}int{bits}": _Integer(f"{sign}int{bits}")
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "float32": _Float("float32"),
    "float64": _Float("float64"),
}


# The kinds of `StructInfo.field`, by number; a group is a struct to JSON.
_KINDS = (
    "void", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "enum", "text", "data", "struct", "list", "interface", "anyPointer",
    "anyStruct", "anyList", "struct",
)

_structs: "dict[Any, StructShape]" = {}


def struct_shape(info: Any) -> StructShape:
    """The shape of a `StructInfo`; it stands before its fields, so types may recur."""
    shape = _structs.get(info)
    if shape is not None:
        return shape
    info.ensure()
    shape = _structs[info] = StructShape(info.name)
    union = set()
    for name in info.by_name:
        kind, sub, discriminant, _ = info.field(name)
        shape.fields[name] = _type_shape(_KINDS[kind], sub)
        if discriminant is not None:
            union.add(name)
    shape.union = frozenset(union)
    return shape


def _type_shape(kind: str, info: Any) -> Shape:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind == "enum":
        return _Enum(info.name, [value.name for value in info.values])
    if kind in ("struct", "group"):
        return struct_shape(info)
    if kind == "list":
        return _List(_type_shape(info.element_kind, info.element_info))
    return _Opaque("a capability" if kind in ("interface", "capability") else "AnyPointer")


def shape_of(kind: Any) -> StructShape:
    """The shape of a struct type, of a reader's or of a builder's type; made once, then kept."""
    info = getattr(kind, "_info", None)
    if not isinstance(info, StructInfo):
        raise TypeError(f"{kind!r:.80} is not a struct type")
    return struct_shape(info)
