"""JSON as the `capnp` tool writes and reads it, shaped by the annotations of json.capnp.

64-bit integers are strings, Data is an array of numbers (or base64, or hex), the member of a union
comes last and is always there.  This is for interchange with other implementations; `json.py` is
the compact encoding that this package serves its own types with.
Spec: tool.md, JSON codec; json.capnp.

Surrogate pairs are joined, numbers keep all their digits, and a union's tag may stand anywhere
among the names; the reference does none of that.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from capnwire._any import AnyPointerBuilder, AnyPointerReader, any_root, new_any_root
from capnwire._fast import Struct
from capnwire._info import EnumInfo, EnumValue, ListInfo, StructInfo
from capnwire.codecs.json_text import MAX_DEPTH, JsonObject, Writer, Written, decoded, parse_json
from capnwire.errors import DecodeError, EncodeError, SchemaError, UnionError
from capnwire.message.text import format_float
from capnwire.message.types import struct_class
from capnwire.schema.model import (
    NO_DISCRIMINANT,
    Annotation,
    Field,
    Node,
    StructBody,
    Type,
    Value,
)
from capnwire.schema.registry import Registry

__all__ = ["AnnotatedJson"]

NAME = 0xFA5B1FD61C2E7C3D
FLATTEN = 0x82D3E852AF0336BF
DISCRIMINATOR = 0xCFA794E8D19A0162
BASE64 = 0xD7D879450A253E4B
HEX = 0xF061E22F0AE5C7B5
JSON_VALUE = 0xA3FA7845F919DD83


class AnnotatedJson:
    """Reads and writes messages of one struct type as JSON.

    Raises:
        SchemaError: an annotation of json.capnp stands where it has no meaning.
    """

    def __init__(self, kind: type) -> None:
        self._kind = kind
        info: StructInfo = kind._info  # type: ignore[attr-defined]
        self._registry: Registry = info.scope[0]
        self._plans: dict[tuple[Any, ...], _Plan] = {}
        self._enums: dict[int, tuple[dict[str, int], list[str]]] = {}
        self._depth = 0
        self._has_escapes = False
        self._root = self._plan(info)

    # --- writing ------------------------------------------------------------------------------

    def encode(self, struct: Any, *, pretty: bool = True) -> str:
        """The JSON of a struct.

        Raises:
            EncodeError: it holds what JSON cannot say: a capability or an AnyPointer.
            DecodeError: the message is broken.
        """
        self._depth = 0
        return self._struct(struct, self._root, Writer(pretty), 0, False)[0]

    def _struct(
        self, struct: Any, plan: _Plan, writer: Writer, indent: int, after_key: bool
    ) -> Written:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise EncodeError(f"values are nested more than {MAX_DEPTH} deep")
        if plan.is_json:
            written = self._json_value(struct, plan, writer, indent, after_key)
            self._depth -= 1
            return written
        found: list[tuple[str, _Member, Any]] = []
        self._gather(struct, plan, "", found)
        # A lone member does not move its holder's content in.
        inner = indent + (len(found) > 1)
        members: list[tuple[str, Written]] = []
        for key, member, value in found:
            if member is _TAG_MEMBER:
                written = writer.string(value), False
            elif member.bytes_form is not None:
                written = writer.string(member.bytes_form.encode(bytes(value))), False
            else:
                written = self._value(value, member.kind, member.sub, writer, inner, True)
            members.append((key, written))
        self._depth -= 1
        return writer.object(members, indent, after_key)

    def _gather(
        self, struct: Any, plan: _Plan, prefix: str, found: list[tuple[str, _Member, Any]]
    ) -> None:
        """Collect what a struct's object holds: (name, field, value), flattened structs inside."""
        active = plan.union.get(_discriminant(struct)) if plan.union else None
        for member in plan.plain:
            if struct.has(member.name):
                self._gather_member(struct, member, prefix, found)
        if active is None:
            return  # no union, or a member that the schema does not know
        if plan.tag is not None:
            found.append((prefix + plan.tag, _TAG_MEMBER, active.tag_value))
            if active.kind == "void" and active.flat is None:
                return
        self._gather_member(struct, active, prefix, found)

    def _gather_member(
        self, struct: Any, member: _Member, prefix: str, found: list[tuple[str, _Member, Any]]
    ) -> None:
        value = struct[member.name]
        if member.flat is not None:
            self._gather(value, member.flat, prefix + member.prefix, found)
        else:
            found.append((prefix + member.key, member, value))

    def _value(
        self, value: Any, kind: str, sub: Any, writer: Writer, indent: int, after_key: bool
    ) -> Written:
        if kind in ("struct", "group"):
            return self._struct(value, self._plan(sub), writer, indent, after_key)
        if kind == "list":
            element, inner = sub.element_kind, sub.element_info
            items = [
                self._value(item, element, inner, writer, indent + (len(value) > 1), False)
                for item in value
            ]
            return writer.array(items, indent, after_key)
        if kind == "data":
            return writer.array([(str(byte), False) for byte in value], indent, after_key)
        return self._scalar_text(value, kind, writer), False

    def _json_value(
        self, struct: Any, plan: _Plan, writer: Writer, indent: int, after_key: bool
    ) -> Written:
        """The JSON that a json.capnp Value stands for."""

        def items(values: Any, after_key: bool) -> list[Written]:
            inner = indent + (len(values) > 1)
            return [self._struct(item, plan, writer, inner, after_key) for item in values]

        kind = struct.which()
        value = struct[kind]
        if kind == "array":
            return writer.array(items(value, False), indent, after_key)
        if kind == "object":
            written = items([field.value for field in value], True)
            names = [field.name for field in value]
            return writer.object(list(zip(names, written, strict=True)), indent, after_key)
        if kind == "call":
            return writer.call(value.function, items(value.params, False), indent)
        if kind == "number":
            return format_float(value, single=False), False
        if kind == "string":
            return writer.string(value), False
        if kind == "boolean":
            return "true" if value else "false", False
        return ("null" if kind == "null" else value), False

    def _scalar_text(self, value: Any, kind: str, writer: Writer) -> str:
        if kind == "text":
            return writer.string(value)
        if kind == "enum":
            name = self._enum_name(value)
            return str(value.raw) if name is None else writer.string(name)
        if kind in ("float32", "float64"):
            return _float(value)
        if kind in ("int64", "uint64"):
            return f'"{value}"'
        if kind == "bool":
            return "true" if value else "false"
        if kind == "void":
            return "null"
        if isinstance(value, int):
            return str(value)
        is_any = isinstance(value, (AnyPointerReader, AnyPointerBuilder))
        raise EncodeError(f"JSON has no form for {'an AnyPointer' if is_any else 'a capability'}")

    # --- reading ------------------------------------------------------------------------------

    def decode(self, text: bytes | str) -> Any:
        """A new message (the builder of its root struct) out of one JSON object.

        Raises:
            DecodeError: the text is no JSON, or a value does not fit its field.
        """
        if isinstance(text, bytes):
            text, self._has_escapes = decoded(text)
        parsed = parse_json(text)
        root = new_any_root().init_as_struct(self._kind)
        try:
            self._fill(root, self._root, parsed)
        except (EncodeError, OverflowError) as error:
            raise DecodeError(str(error)) from None
        return root

    def _fill(self, struct: Any, plan: _Plan, value: object) -> None:
        if plan.is_json:
            self._fill_json(struct, plan, value)
            return
        if not isinstance(value, JsonObject):
            raise DecodeError(f"an object is wanted for {plan.where}, not {_said(value)}")
        waiting: list[tuple[str, object]] = list(value)
        seen: set[str] = set()
        while True:
            left = [
                (name, item) for name, item in waiting
                if not self._set(struct, plan, name, item, seen, "")
            ]
            if not left or len(left) == len(waiting):
                return
            waiting = left

    def _fill_json(self, struct: Any, plan: _Plan, value: object) -> None:
        """Make a json.capnp Value of any JSON."""
        if value is None:
            struct.null = None
        elif isinstance(value, bool):
            struct.boolean = value
        elif isinstance(value, (int, float)):
            struct.number = _number(value, plan.where)
        elif isinstance(value, str):
            struct.string = self._text(value)
        elif isinstance(value, JsonObject):
            fields = struct.init("object", len(value))
            for field, (name, item) in zip(fields, value, strict=True):
                field.name = self._text(name)
                self._fill_json(field.init("value"), plan, item)
        else:
            assert isinstance(value, list)
            for element, item in zip(struct.init("array", len(value)), value, strict=True):
                self._fill_json(element, plan, item)

    def _set(
        self, struct: Any, plan: _Plan, name: str, value: object, seen: set[str], path: str
    ) -> bool:
        """Set what a name stands for; False when the union's tag must come first.

        `seen` holds the flattened structs, by the `path` to them, whose tags have come.
        """
        place = plan.places.get(name)
        if place is None:
            return True
        kind, member = place
        if kind == _TAG:
            if not isinstance(value, str):
                raise DecodeError(f"a string is wanted for {plan.where}.{name}, not {_said(value)}")
            chosen = plan.tags.get(value)
            if chosen is not None:
                # A member that is active already may have been set: names have no order.
                if plan.union.get(_discriminant(struct)) is not chosen:
                    _activate(struct, chosen)
                seen.add(path)
            return True
        if kind == _PLAIN:
            self._store(struct, member, value, f"{plan.where}.{name}")
            return True
        if kind == _FLAT:
            inner = _mutable(struct, member)
            rest = name[len(member.prefix):]
            return self._set(inner, member.flat, rest, value, seen, f"{path}.{member.name}")
        if path not in seen:
            return False
        active = plan.union[_discriminant(struct)]
        if kind == _VALUE:
            self._store(struct, active, value, f"{plan.where}.{name}")
            return True
        if active.flat is None or not name.startswith(active.prefix):
            return True
        inner = _mutable(struct, active)
        rest = name[len(active.prefix):]
        return self._set(inner, active.flat, rest, value, seen, f"{path}.{active.name}")

    def _store(self, struct: Any, member: _Member, value: object, where: str) -> None:
        kind = member.kind
        name = member.name
        if kind in ("struct", "group"):
            self._fill(struct.init(name), self._plan(member.sub), value)
        elif kind == "list":
            if not isinstance(value, list) or isinstance(value, JsonObject):
                raise DecodeError(f"a list is wanted for {where}, not {_said(value)}")
            self._fill_list(struct.init(name, len(value)), member.sub, value, where)
        elif member.bytes_form is not None:
            if not isinstance(value, str):
                raise DecodeError(f"a string is wanted for {where}, not {_said(value)}")
            struct[name] = member.bytes_form.decode(value, where)
        else:
            struct[name] = self._scalar(value, kind, member.sub, where)

    def _fill_list(self, items: Any, info: ListInfo, values: list[object], where: str) -> None:
        kind, sub = info.element_kind, info.element_info
        for index, value in enumerate(values):
            if kind == "struct":
                self._fill(items[index], self._plan(sub), value)
            elif kind == "list":
                if not isinstance(value, list) or isinstance(value, JsonObject):
                    raise DecodeError(f"a list is wanted in {where}, not {_said(value)}")
                self._fill_list(items.init(index, len(value)), sub, value, where)
            elif kind != "void":
                items[index] = self._scalar(value, kind, sub, where)

    def _scalar(self, value: object, kind: str, sub: Any, where: str) -> object:
        if kind == "void":
            return None
        if kind in _RANGES:
            return _integer(value, kind, where)
        if kind in ("float32", "float64"):
            return _number(value, where)
        if kind == "bool":
            if isinstance(value, bool):
                return value
            raise DecodeError(f"true or false is wanted for {where}, not {_said(value)}")
        if kind == "text":
            if isinstance(value, str):
                return self._text(value)
            raise DecodeError(f"a string is wanted for {where}, not {_said(value)}")
        if kind == "data":
            if isinstance(value, list) and not isinstance(value, JsonObject) and all(
                isinstance(byte, (int, float)) and not isinstance(byte, bool) and 0 <= byte <= 255
                and byte == int(byte) for byte in value
            ):
                return bytes(map(int, value))
            raise DecodeError(f"a list of numbers from 0 to 255 is wanted for {where}")
        if kind == "enum":
            return self._enum_value(value, sub, where)
        raise DecodeError(f"JSON has no form for {where}, which is of type {kind}")

    def _text(self, value: str) -> str | bytes:
        r"""A string as it is stored; of a lone surrogate (`\ud800`) the bytes of its number."""
        if not self._has_escapes:
            try:
                value.encode()
            except UnicodeEncodeError:
                return value.encode("utf-8", "surrogatepass")
        return value

    # --- enums --------------------------------------------------------------------------------

    def _enum(self, info: EnumInfo) -> tuple[dict[str, int], list[str]]:
        found = self._enums.get(info.node.id)
        if found is None:
            names = []
            for item in info.node.body.enumerants:
                names.append(_text_of(item.annotations, NAME) or item.name)
            found = {name: number for number, name in enumerate(names)}, names
            if len(found[0]) < len(names):
                raise SchemaError(f"{info.name}: two values have the same JSON name")
            self._enums[info.node.id] = found
        return found

    def _enum_name(self, value: EnumValue) -> str | None:
        names = self._enum(value.info)[1]
        return names[value.raw] if value.raw < len(names) else None

    def _enum_value(self, value: object, info: EnumInfo, where: str) -> int:
        if isinstance(value, str):
            number = self._enum(info)[0].get(value)
            if number is None:
                raise DecodeError(f"{value!r} is no value of {info.name} (for {where})")
            return number
        return _integer(value, "uint16", where)

    # --- plans --------------------------------------------------------------------------------

    def _plan(
        self, info: StructInfo, discriminator: tuple[str | None, str | None] | None = None,
        union_name: str | None = None,
    ) -> _Plan:
        """How a struct type is written; the other parameters come from a group's field."""
        key = info.scope[1]
        plan = self._plans.get(key)
        if plan is None:
            plan = _Plan(info.name)
            self._plans[key] = plan
            plan.is_json = info.node.id == JSON_VALUE
            if not plan.is_json:
                _PlanMaker(self, info, plan).make(discriminator, union_name)
            plan.ready = True
        return plan


class _Member:
    """One field: its JSON name (`key`), or the plan of the struct that is flattened into it."""

    __slots__ = ("bytes_form", "flat", "key", "kind", "name", "prefix", "sub", "tag_value")

    def __init__(self, name: str, kind: str, sub: Any) -> None:
        self.name = self.key = self.tag_value = name
        self.kind, self.sub, self.prefix = kind, sub, ""
        self.flat: Any = None  # _Plan | None, told apart by the kind of place
        self.bytes_form: _BytesForm | None = None


_TAG_MEMBER = _Member("", "text", None)
"""Stands for the tag of a union where a member is wanted."""

_PLAIN, _FLAT, _FLAT_UNION, _TAG, _VALUE = range(5)


class _Plan:
    """The members of a struct type, and what each JSON name stands for."""

    __slots__ = ("is_json", "places", "plain", "ready", "tag", "tags", "union", "where")

    def __init__(self, where: str) -> None:
        self.where, self.ready = where, False
        self.is_json = False  # it is json.capnp's Value, which stands for any JSON
        self.tag: str | None = None
        self.plain: list[_Member] = []
        self.union: dict[int, _Member] = {}
        self.tags: dict[str, _Member] = {}
        self.places: dict[str, tuple[int, Any]] = {}


class _PlanMaker:
    """Reads the annotations of one struct type."""

    def __init__(self, codec: AnnotatedJson, info: StructInfo, plan: _Plan) -> None:
        self._codec, self._info, self._plan = codec, info, plan

    def make(
        self, discriminator: tuple[str | None, str | None] | None, union_name: str | None
    ) -> None:
        node, plan = self._info.node, self._plan
        if discriminator is None:
            applied = _applied(node.annotations, DISCRIMINATOR)
            if applied is not None:
                discriminator = _two_texts(applied.value)
        value_name = None
        if discriminator is not None:
            plan.tag = discriminator[0] or union_name
            value_name = discriminator[1]
            if plan.tag is not None:
                plan.places[plan.tag] = (_TAG, None)
            if value_name is not None:
                self._place(value_name, _VALUE, None)
        for field in node.body.fields or ():
            self._field(field, value_name)

    def _place(self, name: str, kind: int, member: _Member | None) -> None:
        before = self._plan.places.get(name)
        if before is not None and not before[0] == kind == _FLAT_UNION:
            raise SchemaError(f"{self._plan.where}: the JSON name {name!r} stands for two members")
        self._plan.places[name] = (kind, member)

    def _field(self, field: Field, value_name: str | None) -> None:
        plan = self._plan
        member = self._member(field)
        applied = field.annotations
        in_union = field.discriminant_value != NO_DISCRIMINANT
        where = f"{plan.where}.{field.name}"
        named = _text_of(applied, NAME)
        if named is not None:
            member.key = named
        flatten = _applied(applied, FLATTEN)
        tagging = _applied(applied, DISCRIMINATOR)
        if tagging is not None and member.kind != "group":
            raise SchemaError(f"{where}: only unions can have a discriminator")
        for id, form in ((BASE64, _BASE64), (HEX, _HEX)):
            if _applied(applied, id) is not None:
                if member.kind != "data":
                    raise SchemaError(f"{where}: only Data can be written as {form.name}")
                member.bytes_form = form
        if flatten is not None and member.kind not in ("struct", "group"):
            raise SchemaError(f"{where}: only structs can be flattened")
        sub: _Plan | None = None
        if member.kind == "group":
            texts = _two_texts(tagging.value) if tagging is not None else None
            sub = self._codec._plan(
                member.sub, texts, field.name if flatten is not None else None
            )
        if flatten is not None:
            sub = sub or self._codec._plan(member.sub)
            if sub.is_json:
                raise SchemaError(f"{where}: a Value cannot be flattened")
            self._flatten(member, sub, flatten, in_union)
        member.tag_value = member.key
        if flatten is None:
            if in_union and value_name is not None:
                member.key = value_name
            else:
                self._place(member.key, _PLAIN, member)
        if in_union:
            plan.union[field.discriminant_value] = member
            plan.tags[member.tag_value] = member
        else:
            plan.plain.append(member)

    def _flatten(
        self, member: _Member, flat: _Plan, flatten: Annotation, in_union: bool
    ) -> None:
        if not flat.ready:
            raise SchemaError(f"{self._plan.where}.{member.name}: flattened into itself")
        member.flat = flat
        member.prefix = _two_texts(flatten.value)[0] or ""
        for name in flat.places:
            self._place(member.prefix + name, _FLAT_UNION if in_union else _FLAT, member)

    def _member(self, field: Field) -> _Member:
        registry, key = self._codec._registry, self._info.scope[1]
        if field.type is None:
            return _Member(
                field.name, "group", registry.struct_info(field.group_id, key[2])
            )
        closed = registry.close(field.type, key[2])
        sub = element = registry.info(closed)
        while isinstance(element, ListInfo):
            element = element.element_info
        if isinstance(element, EnumInfo):
            self._codec._enum(element)  # refuses names that stand for two values
        return _Member(field.name, closed[0], sub)


# --- annotations --------------------------------------------------------------------------------


def _applied(annotations: list[Annotation] | None, id: int) -> Annotation | None:
    for annotation in annotations or ():
        if annotation.id == id:
            return annotation
    return None


def _text_of(annotations: list[Annotation] | None, id: int) -> str | None:
    annotation = _applied(annotations, id)
    if annotation is None:
        return None
    raw: bytes = annotation.value.value or b""  # type: ignore[assignment]
    return raw.decode("utf-8", "surrogateescape")


def _options_type() -> Any:
    """A struct of two texts: what FlattenOptions and DiscriminatorOptions both can be read as."""
    registry = Registry(keeps_bytes=True)
    fields = [
        Field(
            name, offset, offset=offset, ordinal=offset, type=Type("text"),
            default_value=Value("text"),
        )
        for offset, name in enumerate(("first", "second"))
    ]
    node = Node(1 << 63, "options:Options", 8, 0, StructBody(pointer_count=2, fields=fields))
    registry.add([node])
    return struct_class(registry, registry.struct_info(node.id))


_options: list[Any] = []


def _two_texts(value: Value) -> tuple[str | None, str | None]:
    if value.value is None:
        return None, None
    if not _options:
        _options.append(_options_type())
    data: Any = value.value
    struct = any_root([data]).as_struct(_options[0])
    return (
        struct.first if struct.has("first") else None,
        struct.second if struct.has("second") else None,
    )


class _BytesForm:
    """Data as text."""

    __slots__ = ("_read", "encode", "name")

    def __init__(
        self, name: str, encode: Callable[[bytes], str], read: Callable[[str], bytes]
    ) -> None:
        self.name, self.encode, self._read = name, encode, read

    def decode(self, text: str, where: str) -> bytes:
        try:
            return self._read(text)
        except ValueError:
            raise DecodeError(f"{self.name} is wanted for {where}") from None


def _read_base64(text: str) -> bytes:
    compact = re.sub(r"\s+", "", text)
    return base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)


_BASE64 = _BytesForm("base64", lambda data: base64.b64encode(data).decode(), _read_base64)
_HEX = _BytesForm("hex", bytes.hex, lambda text: bytes.fromhex(text) if " " not in text else _bad())


def _bad() -> bytes:
    raise ValueError


# --- single values ------------------------------------------------------------------------------


def _discriminant(struct: Any) -> int:
    info: StructInfo = struct._info
    try:
        name = Struct.which(struct)
    except UnionError as error:
        return error.discriminant
    number = info.field(name)[2]
    assert number is not None
    return number


def _activate(struct: Any, member: _Member) -> None:
    """Give a field its default; a union's member is the active one then."""
    if member.kind == "group":
        struct.init(member.name)
    elif member.kind == "void":
        struct[member.name] = None
    else:
        struct.clear(member.name)


def _mutable(struct: Any, member: _Member) -> Any:
    """The struct or group in a field, made when it is not there."""
    if member.kind == "group" or struct.has(member.name):
        return struct[member.name]
    return struct.init(member.name)


_RANGES = {
    "int8": (-(1 << 7), 1 << 7), "int16": (-(1 << 15), 1 << 15), "int32": (-(1 << 31), 1 << 31),
    "int64": (-(1 << 63), 1 << 63), "uint8": (0, 1 << 8), "uint16": (0, 1 << 16),
    "uint32": (0, 1 << 32), "uint64": (0, 1 << 64),
}
_DIGITS = re.compile(r"[ \t\n\r\v\f]*[+-]?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,40})")


def _integer(value: object, kind: str, where: str) -> int:
    number: int
    if isinstance(value, str):
        if _DIGITS.fullmatch(value) is None:
            raise DecodeError(f"an integer is wanted for {where}, not {value[:40]!r}")
        number = int(value, 16 if "x" in value or "X" in value else 10)
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")) or int(value) != value:
            raise DecodeError(f"an integer is wanted for {where}, not {value}")
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        raise DecodeError(f"an integer is wanted for {where}, not {_said(value)}")
    low, high = _RANGES[kind]
    if not low <= number < high:
        raise DecodeError(f"{where} holds {low} to {high - 1}, not {_said(number)}")
    return number


_FLOATS = {
    "nan": float("nan"), "inf": float("inf"), "infinity": float("inf"), "-inf": float("-inf"),
    "-infinity": float("-inf"), "-nan": float("nan"),
}
_FLOAT = re.compile(r"[ \t\n\r\v\f]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def _number(value: object, where: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, str):
        found = _FLOATS.get(value.lower())
        if found is not None:
            return found
        if _FLOAT.fullmatch(value) is not None:
            return float(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    raise DecodeError(f"a number is wanted for {where}, not {_said(value)}")


def _float(value: float) -> str:
    if value != value:
        return '"NaN"'
    if value in (float("inf"), float("-inf")):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return format_float(value, single=False)


def _said(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, JsonObject):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return repr(value)[:60] if isinstance(value, str) else str(value)[:60]
