"""Schema nodes as messages: between `schema.model` and the types of schema.capnp, both ways.

The one place that knows the fields of schema.capnp's `Node`.  Everything read here is from outside:
it is only taken over, `schema.validate` says whether it makes sense.
Spec: schema.capnp; code-generator-request.md, Null versus empty.
"""

from __future__ import annotations

import struct as packing
from collections.abc import Callable
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from capnwire._any import any_root, new_any_root
from capnwire.errors import SchemaError, TextError
from capnwire.message.types import schema_module
from capnwire.schema import registry as registries
from capnwire.schema.model import (
    Annotation,
    AnnotationBody,
    Binding,
    Brand,
    BrandScope,
    ConstBody,
    EnumBody,
    Enumerant,
    Field,
    FileBody,
    Identifier,
    InterfaceBody,
    Method,
    Node,
    Request,
    RequestedFile,
    SourceInfo,
    SourceMember,
    StructBody,
    Superclass,
    Type,
    Value,
)

if TYPE_CHECKING:
    from capnwire._fast import StructReader

__all__ = [
    "node_reader",
    "node_to_dict",
    "read_node",
    "read_request",
    "schema_types",
    "set_schema_source",
]

Read = TypeVar("Read")

# The readers and builders here are of types made at run time, hence `Any` throughout.

TARGETS = (
    "file", "const", "enum", "enumerant", "struct", "field", "union", "group", "interface",
    "method", "param", "annotation",
)
"""What an annotation may be put on: the names in `AnnotationBody.targets`."""

_TARGET_FIELDS = tuple((name, f"targets{name[0].upper()}{name[1:]}") for name in TARGETS)
_POINTER_VALUES = ("list", "struct", "anyPointer")

# ---------------------------------------------------------------- the types of schema.capnp

_types: ModuleType | None = None
_lock = RLock()


def set_schema_source(source: Callable[[], Request]) -> None:
    """Say where the nodes of the bundled schema.capnp come from; asked once, when first needed."""
    registries.schema_source = source


def schema_types() -> ModuleType:
    """The module of the bundled schema.capnp: its `Node`, `CodeGeneratorRequest` and so on."""
    global _types
    with _lock:
        if _types is None:
            if registries.schema_source is None:
                raise SchemaError("nobody has said where schema.capnp is to be had")
            request = registries.schema_source()
            registry = registries.registry_for(request.nodes)
            _types = schema_module(
                "capnwire.std.schema_capnp", registry, registry.node(request.files[0].id)
            )
        return _types


# ---------------------------------------------------------------- reading

def read_request(data: bytes) -> Request:
    """The CodeGeneratorRequest that a framed message holds, as the model.

    Nothing is believed of it beyond its being a message: check the nodes before they are used
    (`Registry.add` does).  Requests larger than the default traversal limit are read too.

    Raises:
        DecodeError: the bytes are no message of a CodeGeneratorRequest.
        SchemaError: two of its nodes have one id.
    """
    reader = schema_types().CodeGeneratorRequest.from_bytes(data)
    version = reader["capnpVersion"]
    request = Request(
        [read_node(node) for node in reader["nodes"]],
        [_read_file(file) for file in reader["requestedFiles"]],
        [_read_source_info(info) for info in reader["sourceInfo"]],
        (version["major"], version["minor"], version["micro"]),
    )
    seen = set()
    for node in request.nodes:
        if node.id in seen:
            raise SchemaError(f"the request has two nodes with the id @0x{node.id:016x}")
        seen.add(node.id)
    return request


def read_node(reader: StructReader) -> Node:
    """The model of a node that a message of schema.capnp's `Node` describes.

    Raises:
        DecodeError: the message is malformed, or of a kind that this version does not know.
    """
    any_reader: Any = reader
    kind = any_reader.which()
    size = any_reader["displayNamePrefixLength"]
    name = any_reader["displayName"]
    return Node(
        any_reader["id"], name, min(size, len(name)), any_reader["scopeId"],
        _BODIES[kind](any_reader[kind]),
        parameters=_list_or_none(any_reader, "parameters", _read_name),
        is_generic=any_reader["isGeneric"],
        nested=_list_or_none(any_reader, "nestedNodes", lambda item: (item["name"], item["id"])),
        annotations=_read_annotations(any_reader),
        start_byte=any_reader["startByte"], end_byte=any_reader["endByte"],
    )


def _list_or_none(reader: Any, name: str, read: Callable[[Any], Read]) -> list[Read] | None:
    return [read(item) for item in reader[name]] if reader.has(name) else None


def _read_name(reader: Any) -> str:
    name: str = reader["name"]
    return name


def _read_struct(reader: Any) -> StructBody:
    return StructBody(
        data_word_count=reader["dataWordCount"], pointer_count=reader["pointerCount"],
        preferred_list_encoding=reader["preferredListEncoding"].raw, is_group=reader["isGroup"],
        discriminant_count=reader["discriminantCount"],
        discriminant_offset=reader["discriminantOffset"],
        fields=_list_or_none(reader, "fields", _read_field),
    )


def _read_field(reader: Any) -> Field:
    field = Field(
        reader["name"], reader["codeOrder"], annotations=_read_annotations(reader),
        discriminant_value=reader["discriminantValue"],
    )
    if reader.which() == "slot":
        slot = reader["slot"]
        field.offset, field.type = slot["offset"], _read_type(slot["type"])
        field.default_value = _read_value(slot["defaultValue"])
        field.had_explicit_default = slot["hadExplicitDefault"]
    else:
        field.group_id = reader["group"]["typeId"]
    ordinal = reader["ordinal"]
    if ordinal.which() == "explicit":
        field.ordinal = ordinal["explicit"]
    return field


def _read_enum(reader: Any) -> EnumBody:
    return EnumBody(
        [
            Enumerant(item["name"], item["codeOrder"], _read_annotations(item))
            for item in reader["enumerants"]
        ]
    )


def _read_interface(reader: Any) -> InterfaceBody:
    methods = [
        Method(
            item["name"], item["codeOrder"],
            implicit_parameters=[_read_name(name) for name in item["implicitParameters"]],
            param_struct_type=item["paramStructType"],
            param_brand=_read_brand(item, "paramBrand"),
            result_struct_type=item["resultStructType"],
            result_brand=_read_brand(item, "resultBrand"), annotations=_read_annotations(item),
        )
        for item in reader["methods"]
    ]
    bases = [Superclass(item["id"], _read_brand(item, "brand")) for item in reader["superclasses"]]
    return InterfaceBody(methods, bases)


def _read_const(reader: Any) -> ConstBody:
    return ConstBody(_read_type(reader["type"]), _read_value(reader["value"]))


def _read_annotation_declaration(reader: Any) -> AnnotationBody:
    targets = frozenset(name for name, field in _TARGET_FIELDS if reader[field])
    return AnnotationBody(_read_type(reader["type"]), targets)


_BODIES: dict[str, Callable[[Any], Any]] = {
    "file": lambda reader: FileBody(), "struct": _read_struct, "enum": _read_enum,
    "interface": _read_interface, "const": _read_const, "annotation": _read_annotation_declaration,
}


def _read_annotations(reader: Any) -> list[Annotation] | None:
    return _list_or_none(reader, "annotations", _read_annotation)


def _read_annotation(reader: Any) -> Annotation:
    brand = _read_brand(reader, "brand")
    value = _read_value(reader["value"])
    return Annotation(reader["id"], value, brand if brand is not None and brand.scopes else None)


def _read_brand(reader: Any, name: str) -> Brand | None:
    if not reader.has(name):
        return None
    return Brand([_read_scope(scope) for scope in reader[name]["scopes"]])


def _read_scope(reader: Any) -> BrandScope:
    if reader.which() == "inherit":
        return BrandScope(reader["scopeId"], None)
    return BrandScope(
        reader["scopeId"],
        [
            Binding(_read_type(item["type"]) if item.which() == "type" else None)
            for item in reader["bind"]
        ],
    )


def _read_type(reader: Any) -> Type:
    kind = reader.which()
    if kind == "list":
        return Type(kind, element=_read_type(reader["list"]["elementType"]))
    if kind in ("enum", "struct", "interface"):
        named = reader[kind]
        return Type(kind, type_id=named["typeId"], brand=_read_brand(named, "brand"))
    if kind != "anyPointer":
        return Type(kind)
    inner = reader["anyPointer"]
    which = inner.which()
    if which == "unconstrained":
        return Type(kind, any_kind=inner[which].which())
    index = inner[which]["parameterIndex"]
    if which == "parameter":
        scope_id = inner[which]["scopeId"]
        return Type(kind, any_kind=which, scope_id=scope_id, parameter_index=index)
    return Type(kind, any_kind=which, parameter_index=index)


def _read_value(reader: Any) -> Value:
    kind = reader.which()
    if kind in ("void", "interface"):
        return Value(kind)
    if kind in _POINTER_VALUES:
        if not reader.has(kind):
            return Value(kind)
        # One segment with room for all of it, so that it stays one.
        root = new_any_root(reader.total_size.word_count)
        root.set(reader[kind])
        return Value(kind, root.to_segments()[0])
    if kind in ("text", "data"):
        if not reader.has(kind):
            return Value(kind)
        return Value(kind, _text_bytes(reader) if kind == "text" else reader[kind])
    if kind == "float32" or kind == "float64":
        return Value(kind, reader[kind], _float_bits(reader, kind))
    return Value(kind, reader[kind])


def _text_bytes(reader: Any) -> bytes:
    r"""The bytes of a Text value, UTF-8 or not: a schema may say `"\xff"`."""
    try:
        text: str = reader["text"]
        return text.encode()
    except TextError:
        # The canonical form of a Value that is a text: a data word, a pointer, the bytes.
        segment: bytes = reader.to_canonical()
        count = int.from_bytes(segment[20:24], "little") >> 3
        content = segment[24 : 24 + count]
        if segment[4:8] != b"\1\0\1\0" or content[-1:] != b"\0":
            raise
        return content[:-1]


def _float_bits(reader: Any, kind: str) -> int:
    """The exact bits of a float, which a Python float need not keep for NaN."""
    data = reader.to_canonical()[8:24].ljust(16, b"\0")
    return int.from_bytes(data[4:8] if kind == "float32" else data[8:16], "little")


def _read_source_info(reader: Any) -> SourceInfo:
    return SourceInfo(
        reader["id"], doc_comment=_doc_comment(reader),
        members=_list_or_none(reader, "members", lambda item: SourceMember(_doc_comment(item))),
        start_byte=reader["startByte"], end_byte=reader["endByte"],
    )


def _doc_comment(reader: Any) -> str | None:
    try:
        return reader["docComment"] if reader.has("docComment") else None
    except TextError:
        return None  # in another encoding, which is no reason to refuse the schema


def _read_file(reader: Any) -> RequestedFile:
    identifiers = None
    if reader.has("fileSourceInfo"):
        identifiers = [
            _read_identifier(item) for item in reader["fileSourceInfo"]["identifiers"]
        ]
    imports = [(item["name"], item["id"]) for item in reader["imports"]]
    return RequestedFile(reader["id"], reader["filename"], imports, identifiers)


def _read_identifier(reader: Any) -> Identifier:
    start, end = reader["startByte"], reader["endByte"]
    if reader.which() == "typeId":
        return Identifier(start, end, reader["typeId"])
    member = reader["member"]
    return Identifier(start, end, 0, (member["parentTypeId"], member["ordinal"]))


# ---------------------------------------------------------------- writing

def node_reader(node: Node) -> StructReader:
    """A node as a message of its own: what reflection gives as `.node`."""
    kind: Any = schema_types().Node
    reader: StructReader = kind.from_bytes(kind.new_message(64, **node_to_dict(node)).to_bytes())
    return reader



def node_to_dict(node: Node, *, positions: bool = True) -> dict[str, Any]:
    """What `from_dict` makes schema.capnp's `Node` of; `positions` as of 1.1 on."""
    made: dict[str, Any] = {
        "id": node.id, "displayName": node.display_name,
        "displayNamePrefixLength": node.display_name_prefix_length, "scopeId": node.scope_id,
        "isGeneric": node.is_generic,
    }
    if positions:
        made["startByte"], made["endByte"] = node.start_byte, node.end_byte
    if node.nested is not None:
        made["nestedNodes"] = [{"name": name, "id": id} for name, id in node.nested]
    if node.parameters is not None:
        made["parameters"] = [{"name": name} for name in node.parameters]
    _add_annotations(made, node.annotations)
    body = node.body
    if isinstance(body, StructBody):
        made["struct"] = _struct(body)
    elif isinstance(body, EnumBody):
        made["enum"] = {"enumerants": [_member(item) for item in body.enumerants]}
    elif isinstance(body, InterfaceBody):
        made["interface"] = _interface(body)
    elif isinstance(body, ConstBody):
        made["const"] = {"type": _type(body.type), "value": _value(body.value)}
    elif isinstance(body, AnnotationBody):
        made["annotation"] = _annotation_body(body)
    else:
        made["file"] = None
    return made


def _add_annotations(made: dict[str, Any], annotations: list[Annotation] | None) -> None:
    if annotations is not None:
        made["annotations"] = [
            {
                "id": item.id, "value": _value(item.value),
                "brand": {} if item.brand is None else _brand(item.brand),
            }
            for item in annotations
        ]


def _member(item: Any) -> dict[str, Any]:
    """What fields, enumerants and methods have in common."""
    made = {"name": item.name, "codeOrder": item.code_order}
    _add_annotations(made, item.annotations)
    return made


def _struct(body: StructBody) -> dict[str, Any]:
    made: dict[str, Any] = {
        "dataWordCount": body.data_word_count, "pointerCount": body.pointer_count,
        "preferredListEncoding": body.preferred_list_encoding, "isGroup": body.is_group,
        "discriminantCount": body.discriminant_count,
        "discriminantOffset": body.discriminant_offset,
    }
    if body.fields is not None:
        made["fields"] = [_field(field) for field in body.fields]
    return made


def _field(field: Field) -> dict[str, Any]:
    made = _member(field)
    made["discriminantValue"] = field.discriminant_value
    if field.type is not None:
        assert field.default_value is not None
        made["slot"] = {
            "offset": field.offset, "type": _type(field.type),
            "defaultValue": _value(field.default_value),
            "hadExplicitDefault": field.had_explicit_default,
        }
    else:
        made["group"] = {"typeId": field.group_id}
    if field.ordinal is None:
        made["ordinal"] = {"implicit": None}
    else:
        made["ordinal"] = {"explicit": field.ordinal}
    return made


def _interface(body: InterfaceBody) -> dict[str, Any]:
    bases = []
    for base in body.superclasses:
        made: dict[str, Any] = {"id": base.id}
        if base.brand is not None:
            made["brand"] = _brand(base.brand)
        bases.append(made)
    return {"methods": [_method(method) for method in body.methods], "superclasses": bases}


def _method(method: Method) -> dict[str, Any]:
    made = _member(method)
    made["paramStructType"] = method.param_struct_type
    made["resultStructType"] = method.result_struct_type
    made["implicitParameters"] = [{"name": name} for name in method.implicit_parameters]
    if method.param_brand is not None:
        made["paramBrand"] = _brand(method.param_brand)
    if method.result_brand is not None:
        made["resultBrand"] = _brand(method.result_brand)
    return made


def _annotation_body(body: AnnotationBody) -> dict[str, Any]:
    made: dict[str, Any] = {"type": _type(body.type)}
    for target in body.targets:
        made[f"targets{target.capitalize()}"] = True
    return made


def _brand(brand: Brand) -> dict[str, Any]:
    scopes = []
    for scope in brand.scopes:
        made: dict[str, Any] = {"scopeId": scope.scope_id}
        if scope.bindings is None:
            made["inherit"] = None
        else:
            made["bind"] = [
                {"unbound": None} if binding.type is None else {"type": _type(binding.type)}
                for binding in scope.bindings
            ]
        scopes.append(made)
    return {"scopes": scopes}


def _type(type: Type) -> dict[str, Any]:
    kind = type.kind
    if kind == "list":
        assert type.element is not None
        return {"list": {"elementType": _type(type.element)}}
    if kind in ("enum", "struct", "interface"):
        made: dict[str, Any] = {"typeId": type.type_id}
        if type.brand is not None:
            made["brand"] = _brand(type.brand)
        return {kind: made}
    if kind != "anyPointer":
        return {kind: None}
    if type.any_kind == "parameter":
        inner: dict[str, Any] = {
            "scopeId": type.scope_id, "parameterIndex": type.parameter_index,
        }
        return {"anyPointer": {"parameter": inner}}
    if type.any_kind == "implicitMethodParameter":
        inner = {"parameterIndex": type.parameter_index}
        return {"anyPointer": {"implicitMethodParameter": inner}}
    return {"anyPointer": {"unconstrained": {type.any_kind: None}}}


def _value(value: Value) -> Any:
    kind, content = value.kind, value.value
    if kind in _POINTER_VALUES and isinstance(content, bytes):
        # Defaults hold nothing that amplifies: they were copied when they were read.
        content = any_root([content], 1 << 60)
    elif kind in ("float32", "float64") and content != content:
        return _raw_value(kind, value.bits, b"")
    elif kind == "text" and isinstance(content, bytes):
        try:
            return {kind: content.decode()}
        except UnicodeDecodeError:
            return _raw_value(kind, 0, content + b"\0")
    return {kind: content}


def _raw_value(kind: str, bits: int, text: bytes) -> Any:
    """A Value by its bits: a NaN, which Python's floats need not keep, or a Text not UTF-8."""
    reader: Any = schema_types().Value
    low, high = (bits, 0) if kind == "float32" else (0, bits)
    words = packing.pack(
        "<QHxxIQQ", 2 << 32 | 1 << 48, {"float32": 10, "float64": 11, "text": 12}[kind], low, high,
        1 | 2 << 32 | len(text) << 35 if text else 0,
    )
    return reader.from_segments([words + text + b"\0" * (-len(text) % 8)])
