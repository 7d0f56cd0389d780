"""Defaults, constants and annotation values: expressions to values of an expected type.

A pointer value becomes a tree of Python objects: a dict for a struct or group, a list, `bytes`
for text and data, numbers for the rest, `Embedded` for an embedded message and `Typed` where the
schema says AnyPointer.  encode_values.py makes bytes of the trees.  Spec: schema-language.md, 2.5.
"""

from __future__ import annotations

from struct import Struct

from capnwire.compiler.names import Names, Unit, expression_text
from capnwire.compiler.syntax import Expression, Name
from capnwire.compiler.types import bind_type, type_text
from capnwire.schema.model import NO_DISCRIMINANT, ConstBody, Node, StructBody, Type, Value

_RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1), "int16": (-(1 << 15), (1 << 15) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1), "int64": (-(1 << 63), (1 << 63) - 1),
    "uint8": (0, (1 << 8) - 1), "uint16": (0, (1 << 16) - 1), "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
}
_F32, _F64 = Struct("<f"), Struct("<d")
_U32, _U64 = Struct("<I"), Struct("<Q")

OUT_OF_RANGE = "Integer value out of range."
UNBOUND = (
    "Cannot interpret value because the type is a generic type parameter which is not yet bound. "
    "We don't know what type to expect here."
)
EMBED_TYPES = "Embeds can only be used when Text, Data, or a struct is expected."
BAD_EMBED = "Embedded file is not a valid Cap'n Proto message."


class Typed:
    """A tree with its type, where the schema alone does not tell."""

    __slots__ = ("tree", "type")

    def __init__(self, type: Type, tree: object) -> None:
        self.type, self.tree = type, tree


class Embedded:
    """A framed message, to be copied as it is."""

    __slots__ = ("message",)

    def __init__(self, message: bytes) -> None:
        self.message = message


MAX_ELEMENTS, MAX_DEPTH = 1 << 20, 60
TOO_LARGE = "Value is too large."


class Tree:
    """A pointer value that holds a tree until encode_values.py makes bytes of it."""

    __slots__ = ("expr", "type", "unit", "value")

    def __init__(self, value: Value, type: Type, unit: Unit, expr: Expression) -> None:
        self.value, self.type, self.unit, self.expr = value, type, unit, expr


def measure(tree: object, known: dict[int, tuple[object, int, int]]) -> tuple[int, int]:
    """How many words or so a tree needs, and how deep it is.

    Constants let a few lines describe a value that would fill the memory; `known` keeps what
    each part measures, so that shared parts are counted without being walked again.
    """
    if isinstance(tree, bytes):
        return 1 + len(tree) // 8, 1
    if isinstance(tree, Embedded):
        return 1 + len(tree.message) // 8, 1
    if isinstance(tree, Typed):
        return measure(tree.tree, known)
    if not isinstance(tree, (dict, list)):
        return 1, 0
    before = known.get(id(tree))
    if before is not None:
        return before[1], before[2]
    elements, depth = 1, 0
    for part in tree.values() if isinstance(tree, dict) else tree:
        more, deeper = measure(part, known)
        elements += more
        depth = max(depth, deeper)
    known[id(tree)] = (tree, elements, depth + 1)
    return elements, depth + 1


class _Failed:
    """The value that reporting an error leaves."""


FAILED = _Failed()


class ValueSource(Names):
    """What values need of a session beyond names; `Session` in driver.py."""

    __slots__ = ()

    measures: dict[int, tuple[object, int, int]]
    trees: list[Tree]
    unusable: set[int]

    def schema(self, type_id: int) -> Node | None:
        """The node of a type, without the values of its defaults; None after an error."""
        raise NotImplementedError

    def finished(self, unit: Unit) -> Node | None:
        """The node of a unit, with all its values; None after an error."""
        raise NotImplementedError

    def started(self, unit: Unit) -> Node | None:
        """The node of a unit; None after an error."""
        raise NotImplementedError

    def read_file(self, unit: Unit, path: str) -> bytes | None:
        """The contents of a file to embed, or None."""
        raise NotImplementedError


def empty_value(type: Type) -> Value:
    """The value of a type when none is given."""
    kind = type.kind
    if kind == "bool":
        return Value(kind, False)
    if kind in ("float32", "float64"):
        return Value(kind, 0.0)
    if kind in _RANGES or kind == "enum":
        return Value(kind, 0)
    return Value(kind)


def is_immediate(type: Type) -> bool:
    """Whether values of the type need no other type's node."""
    return type.kind not in ("list", "struct", "interface", "anyPointer")


def make_value(type: Type, raw: object) -> Value:
    """The model's value for what `Evaluator.evaluate` gave."""
    if isinstance(raw, _Failed):
        return empty_value(type)
    kind = type.kind
    if kind in ("float32", "float64"):
        return float_value(kind, raw)  # type: ignore[arg-type]
    return Value(kind, raw)


def float_value(kind: str, number: float) -> Value:
    """A float's value with its bits; beyond a Float32's range is infinity."""
    if kind == "float64":
        return Value(kind, number, _U64.unpack(_F64.pack(number))[0])
    try:
        packed = _F32.pack(number)
    except OverflowError:
        packed = _F32.pack(float("inf") if number > 0 else float("-inf"))
    return Value(kind, _F32.unpack(packed)[0], _U32.unpack(packed)[0])


class Evaluator:
    """Evaluates the values written in one unit.

    `is_final` says that they need other nodes, whose constants then have all their values.
    """

    __slots__ = ("is_final", "session", "unit")

    def __init__(self, session: ValueSource, unit: Unit) -> None:
        self.session, self.unit, self.is_final = session, unit, False

    def error(self, expr: Expression, text: str) -> _Failed:
        """Report `text` about an expression."""
        self.unit.source.error(expr.start, expr.end, text)
        return FAILED

    def mismatch(self, expr: Expression, type: Type) -> _Failed:
        """Report that an expression is not of a type."""
        return self.error(expr, f"Type mismatch; expected {self.text(type)}.")

    def text(self, type: Type) -> str:
        """The type as messages name it."""
        if type.kind == "list":
            assert type.element is not None
            return f"List({self.text(type.element)})"
        if type.kind in ("struct", "enum", "interface"):
            node = self.session.schema(type.type_id)
            return type_text(type, node.name if node is not None else "?")
        return type_text(type)

    def value(self, expr: Expression, type: Type) -> Value:
        """The value of an expression; the type's empty value after an error."""
        raw = self.evaluate(expr, type)
        if not is_immediate(type):
            elements, depth = measure(raw, self.session.measures)
            if elements > MAX_ELEMENTS or depth > MAX_DEPTH:
                raw = self.error(expr, TOO_LARGE)
        return make_value(type, raw)

    def evaluate(self, expr: Expression, type: Type) -> object:
        """The tree of an expression of that type, or FAILED after reporting an error."""
        if self._start(type) in self.session.unusable:
            return FAILED
        found = self._found(expr, type)
        if isinstance(found, _Failed):
            return found
        kind, raw, own_type = found
        matched = self._match(expr, kind, raw, own_type, type)
        if matched is not None:
            return matched[0]
        if type.kind == "struct":
            wrapped = self._wrap(expr, kind, raw, own_type, type)
            if wrapped is not None:
                return wrapped
        return self.mismatch(expr, type)

    def _start(self, type: Type) -> int:
        """Start the node of a type, and give its id.

        When the reference does so shows in the order of a file's identifiers.
        """
        while type.element is not None:
            type = type.element
        if type.type_id:
            self.session.schema(type.type_id)
        return type.type_id

    def _start_group(self, group_id: int) -> None:
        """Start the nodes of what a group holds, all of which the reference clears before use."""
        node = self.session.schema(group_id)
        if node is None:
            return
        body = node.body
        assert isinstance(body, StructBody)
        fields = body.fields or []
        first = [field for field in fields if field.discriminant_value == 0]
        others = [field for field in fields if field.discriminant_value == NO_DISCRIMINANT]
        for field in first + others:
            if field.type is not None:
                self._start(field.type)
            else:
                self._start_group(field.group_id)

    # --- what an expression is, before looking whether it fits ------------------------------

    def _found(self, expr: Expression, type: Type) -> tuple[str, object, Type | None] | _Failed:
        """(kind, tree, the type it was given with, if it was) for an expression."""
        kind = expr.kind
        if type.kind == "anyPointer" and type.any_kind in (
            "parameter", "implicitMethodParameter",
        ):
            return self.error(expr, UNBOUND)
        if kind == "int":
            return ("int", expr.value, None)
        if kind == "negative":
            return self._negative(expr)
        if kind == "float":
            return (kind, expr.value, None)
        if kind == "string":
            return ("binary" if type.kind == "data" else kind, expr.value, None)
        if kind == "binary":
            return (kind, expr.value, None) if type.kind == "data" else self.mismatch(expr, type)
        if kind == "relative":
            return self._word(expr, type)
        if kind in ("absolute", "import", "member", "apply"):
            return self._constant(expr, is_bare=False)
        if kind == "list":
            if type.kind != "list":
                return self.mismatch(expr, type)
            return ("list", self._list(expr, type), type)
        if kind == "tuple":
            if type.kind != "struct":
                return self.mismatch(expr, type)
            tree: dict[str, object] = {}
            self.fill(expr, type, tree)
            return ("struct", tree, type)
        if kind == "embed":
            return self._embed(expr, type)
        return FAILED

    def _negative(self, expr: Expression) -> tuple[str, object, Type | None] | _Failed:
        magnitude: int = expr.value  # type: ignore[assignment]
        if magnitude > 1 << 63:
            return self.error(expr, "Integer is too big to be negative.")
        return ("int", -magnitude, None)

    def _word(self, expr: Expression, type: Type) -> tuple[str, object, Type | None] | _Failed:
        name: Name = expr.value  # type: ignore[assignment]
        if type.kind == "enum":
            node = self.session.schema(type.type_id)
            if node is not None:
                for index, item in enumerate(node.body.enumerants):  # type: ignore[union-attr]
                    if item.name == name.text:
                        return ("enum", index, type)
        else:
            if name.text == "void":
                return ("void", None, None)
            if name.text in ("true", "false"):
                return ("bool", name.text == "true", None)
            if name.text in ("nan", "inf"):
                return ("float", float(name.text), None)
        return self._constant(expr, is_bare=True)

    def _constant(
        self, expr: Expression, *, is_bare: bool,
    ) -> tuple[str, object, Type | None] | _Failed:
        resolved = self.unit.evaluate(expr)
        if resolved is None:
            return FAILED
        unit = resolved.unit
        if unit is None or unit.kind != "const":
            return self.error(expr, f"'{expression_text(expr)}' does not refer to a constant.")
        node = self.session.started(unit)
        if node is None:
            return FAILED
        body = node.body
        assert isinstance(body, ConstBody)
        if self.is_final or not is_immediate(body.type):
            node = self.session.finished(unit)
            if node is None:
                return FAILED
        if is_bare and not self._report_bare(expr, unit):
            return FAILED
        raw = body.value.value
        kind = body.type.kind
        if kind in _RANGES or kind == "enum":
            # The reference reads an enum's constant as its number, so it fits no enum.
            kind = "int"
        elif kind in ("float32", "float64"):
            kind = "float"
        elif kind == "text":
            kind = "string"
        elif kind == "data":
            kind = "binary"
        type = body.type
        if kind == "anyPointer" and isinstance(raw, Typed):
            return (raw.type.kind, raw.tree, raw.type)
        return (kind, raw, type)

    def _report_bare(self, expr: Expression, unit: Unit) -> bool:
        assert unit.parent is not None
        name = unit.decl.name.text
        full = f".{name}"
        if unit.parent.parent is not None:
            if self.session.started(unit.parent) is None:
                return False
            full = f"{unit.parent.decl.name.text}.{name}"
        self.error(
            expr,
            "Constant names must be qualified to avoid confusion.  Please replace "
            f"'{expression_text(expr)}' with '{full}', if that's what you intended.",
        )
        return True

    def _embed(self, expr: Expression, type: Type) -> tuple[str, object, Type | None] | _Failed:
        path: Name = expr.value  # type: ignore[assignment]
        data = self.session.read_file(self.unit, path.text)
        if data is None:
            self.unit.source.error(
                path.start, path.end, f"Couldn't read file for embed: {path.text}",
            )
            return FAILED
        if type.kind == "text":
            return ("string", data, None)
        if type.kind == "data":
            return ("binary", data, None)
        if type.kind == "struct":
            if len(data) % 8 or not data:
                return self.error(expr, BAD_EMBED)
            return ("struct", Embedded(data), type)
        return self.error(expr, EMBED_TYPES)

    def _list(self, expr: Expression, type: Type) -> list[object]:
        assert type.element is not None
        element = type.element
        items: list[object] = []
        for _, item in expr.items:
            raw = self.evaluate(item, element)
            items.append(empty_value(element).value if isinstance(raw, _Failed) else raw)
        return items

    # --- whether it fits --------------------------------------------------------------------

    def _match(
        self, expr: Expression, kind: str, raw: object, own: Type | None, type: Type,
    ) -> tuple[object] | None:
        """The tree in a 1-tuple if the value fits the type."""
        wanted = type.kind
        if wanted in _RANGES:
            if kind != "int":
                return None
            low, high = _RANGES[wanted]
            if not low <= raw <= high:  # type: ignore[operator]
                return (self.error(expr, OUT_OF_RANGE),)
            return (raw,)
        if wanted in ("float32", "float64"):
            if kind not in ("int", "float"):
                return None
            return (float_value(wanted, float(raw)).value,)  # type: ignore[arg-type]
        if wanted == "text":
            return (raw,) if kind == "string" else None
        if wanted == "data":
            return (raw,) if kind == "binary" else None
        if wanted == "anyPointer":
            if kind not in ("struct", "list") or own is None:
                return None
            return (Typed(own, raw),)
        if wanted in ("list", "struct", "enum"):
            return (raw,) if kind == wanted and own == type else None
        return (raw,) if kind == wanted and kind in ("void", "bool") else None

    def _wrap(
        self, expr: Expression, kind: str, raw: object, own: Type | None, type: Type,
    ) -> object | None:
        """The value as the first field of the struct that is wanted, if it fits there."""
        node = self.session.schema(type.type_id)
        body = node.body if node is not None else None
        if not isinstance(body, StructBody) or not body.fields:
            return None
        field = body.fields[0]
        if field.type is None:
            return None
        matched = self._match(expr, kind, raw, own, bind_type(field.type, type.brand))
        if matched is None:
            return None
        return matched[0] if isinstance(matched[0], _Failed) else {field.name: matched[0]}

    def fill(self, expr: Expression, type: Type, tree: dict[str, object]) -> None:
        """Set the fields that a tuple names."""
        node = self.session.schema(type.type_id)
        if node is None:
            return
        body = node.body
        assert isinstance(body, StructBody)
        fields = {field.name: field for field in body.fields or ()}
        for name, item in expr.items:
            if name is None:
                self.error(item, "Missing field name.")
                continue
            field = fields.get(name.text)
            if field is None:
                text = f"Struct has no field named '{name.text}'."
                self.unit.source.error(name.start, name.end, text)
                continue
            if field.type is not None:
                raw = self.evaluate(item, bind_type(field.type, type.brand))
            else:
                raw = self._group(item, Type("struct", type_id=field.group_id, brand=type.brand))
            tree.pop(name.text, None)
            if not isinstance(raw, _Failed):
                tree[name.text] = raw

    def _group(self, expr: Expression, type: Type) -> object:
        self._start_group(type.type_id)
        found = self._found(expr, type)
        if isinstance(found, _Failed):
            return found
        kind, raw, own = found
        if expr.kind == "tuple":
            return raw
        wrapped = self._wrap(expr, kind, raw, own, type)
        return wrapped if wrapped is not None else self.error(
            expr, "Type mismatch; expected group.",
        )
