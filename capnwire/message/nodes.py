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
    from capnwire._fast import StructBuilder, StructReader

__all__ = [
    "fill_file",
    "fill_node",
    "fill_source_info",
    "node_reader",
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

_source: Callable[[], Request] | None = None
_types: ModuleType | None = None
_lock = RLock()


def set_schema_source(source: Callable[[], Request]) -> None:
    """Say where the nodes of the bundled schema.capnp come from; asked once, when first needed."""
    global _source
    _source = source


def schema_types() -> ModuleType:
    """The module of the bundled schema.capnp: its `Node`, `CodeGeneratorRequest` and so on."""
    global _types
    with _lock:
        if _types is None:
            if _source is None:
                raise SchemaError("nobody has said where schema.capnp is to be had")
            request = _source()
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
    """The bytes of a Text value, UTF-8 or not: a schema may say `"\\xff"`."""
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
        reader["id"], doc_comment=_text_or_none(reader, "docComment"),
        members=_list_or_none(
            reader, "members", lambda item: SourceMember(_text_or_none(item, "docComment"))
        ),
        start_byte=reader["startByte"], end_byte=reader["endByte"],
    )


def _text_or_none(reader: Any, name: str) -> str | None:
    return reader[name] if reader.has(name) else None


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
    builder = schema_types().Node.new_message(64)
    fill_node(builder, node)
    kind: Any = schema_types().Node
    reader: StructReader = kind.from_bytes(builder.to_bytes())
    return reader


def fill_node(builder: StructBuilder, node: Node) -> None:
    """Write a node into an empty builder of schema.capnp's `Node`.

    The order of allocation is that of the calls here; copy the result where another is wanted.
    """
    target: Any = builder
    target["id"], target["displayName"] = node.id, node.display_name
    target["displayNamePrefixLength"] = node.display_name_prefix_length
    target["scopeId"], target["isGeneric"] = node.scope_id, node.is_generic
    target["startByte"], target["endByte"] = node.start_byte, node.end_byte
    _fill_list(target, "parameters", node.parameters, _fill_name)
    _fill_list(target, "nestedNodes", node.nested, _fill_nested)
    _fill_list(target, "annotations", node.annotations, _fill_annotation)
    body = node.body
    if isinstance(body, FileBody):
        target["file"] = None
    elif isinstance(body, StructBody):
        _fill_struct(target.init("struct"), body)
    elif isinstance(body, EnumBody):
        _fill_list(target.init("enum"), "enumerants", body.enumerants, _fill_enumerant)
    elif isinstance(body, InterfaceBody):
        interface = target.init("interface")
        _fill_list(interface, "methods", body.methods, _fill_method)
        _fill_list(interface, "superclasses", body.superclasses, _fill_superclass)
    elif isinstance(body, ConstBody):
        const = target.init("const")
        _fill_type(const.init("type"), body.type)
        _fill_value(const, "value", body.value)
    else:
        annotation = target.init("annotation")
        _fill_type(annotation.init("type"), body.type)
        for name, field in _TARGET_FIELDS:
            annotation[field] = name in body.targets


def _fill_list(
    target: Any, name: str, items: list[Any] | None, fill: Callable[[Any, Any], None]
) -> None:
    if items is None:
        return
    made = target.init(name, len(items))
    for index, item in enumerate(items):
        fill(made[index], item)


def _fill_name(target: Any, name: str) -> None:
    target["name"] = name


def _fill_nested(target: Any, entry: tuple[str, int]) -> None:
    target["name"], target["id"] = entry


def _fill_struct(target: Any, body: StructBody) -> None:
    target["dataWordCount"], target["pointerCount"] = body.data_word_count, body.pointer_count
    target["preferredListEncoding"] = body.preferred_list_encoding
    target["isGroup"] = body.is_group
    target["discriminantCount"] = body.discriminant_count
    target["discriminantOffset"] = body.discriminant_offset
    _fill_list(target, "fields", body.fields, _fill_field)


def _fill_field(target: Any, field: Field) -> None:
    target["name"], target["codeOrder"] = field.name, field.code_order
    _fill_list(target, "annotations", field.annotations, _fill_annotation)
    target["discriminantValue"] = field.discriminant_value
    if field.type is None:
        target.init("group")["typeId"] = field.group_id
    else:
        slot = target.init("slot")
        slot["offset"] = field.offset
        _fill_type(slot.init("type"), field.type)
        if field.default_value is not None:
            _fill_value(slot, "defaultValue", field.default_value)
        slot["hadExplicitDefault"] = field.had_explicit_default
    if field.ordinal is not None:
        target["ordinal"]["explicit"] = field.ordinal


def _fill_enumerant(target: Any, item: Enumerant) -> None:
    target["name"], target["codeOrder"] = item.name, item.code_order
    _fill_list(target, "annotations", item.annotations, _fill_annotation)


def _fill_method(target: Any, method: Method) -> None:
    target["name"], target["codeOrder"] = method.name, method.code_order
    target["paramStructType"] = method.param_struct_type
    target["resultStructType"] = method.result_struct_type
    _fill_list(target, "annotations", method.annotations, _fill_annotation)
    _fill_brand(target, "paramBrand", method.param_brand)
    _fill_brand(target, "resultBrand", method.result_brand)
    _fill_list(target, "implicitParameters", method.implicit_parameters, _fill_name)


def _fill_superclass(target: Any, base: Superclass) -> None:
    target["id"] = base.id
    _fill_brand(target, "brand", base.brand)


def _fill_annotation(target: Any, annotation: Annotation) -> None:
    target["id"] = annotation.id
    _fill_value(target, "value", annotation.value)
    _fill_brand(target, "brand", annotation.brand)
    if annotation.brand is None:
        target.init("brand")


def _fill_brand(target: Any, name: str, brand: Brand | None) -> None:
    if brand is not None:
        _fill_list(target.init(name), "scopes", brand.scopes, _fill_scope)


def _fill_scope(target: Any, scope: BrandScope) -> None:
    target["scopeId"] = scope.scope_id
    if scope.bindings is None:
        target["inherit"] = None
    else:
        _fill_list(target, "bind", scope.bindings, _fill_binding)


def _fill_binding(target: Any, binding: Binding) -> None:
    if binding.type is None:
        target["unbound"] = None
    else:
        _fill_type(target.init("type"), binding.type)


def _fill_type(target: Any, type: Type) -> None:
    kind = type.kind
    if kind == "list":
        if type.element is None:
            raise SchemaError("a list type without an element type cannot be written")
        _fill_type(target.init("list").init("elementType"), type.element)
    elif kind in ("enum", "struct", "interface"):
        named = target.init(kind)
        named["typeId"] = type.type_id
        _fill_brand(named, "brand", type.brand)
    elif kind != "anyPointer":
        target[kind] = None
    elif type.any_kind in ("parameter", "implicitMethodParameter"):
        parameter = target.init(kind).init(type.any_kind)
        parameter["parameterIndex"] = type.parameter_index
        if type.any_kind == "parameter":
            parameter["scopeId"] = type.scope_id
    else:
        target.init(kind).init("unconstrained")[type.any_kind] = None


def _fill_value(parent: Any, name: str, value: Value) -> None:
    kind, content = value.kind, value.value
    if kind in ("float32", "float64") and content != content:
        parent[name] = _nan_value(value)
        return
    target = parent.init(name)
    if kind in _POINTER_VALUES:
        if isinstance(content, bytes):
            target[kind] = any_root([content])
        else:
            target.init(kind)
    elif kind in ("text", "data") and content is None:
        target.clear(kind)
    else:
        target[kind] = content


def _nan_value(value: Value) -> Any:
    """A NaN with exactly its bits, which assigning a Python float need not keep."""
    kind: Any = schema_types().Value
    pointer = 2 << 32 | 1 << 48
    which, low, high = (10, value.bits, 0) if value.kind == "float32" else (11, 0, value.bits)
    return kind.from_segments([packing.pack("<QHxxIQQ", pointer, which, low, high, 0)])


def fill_source_info(builder: StructBuilder, info: SourceInfo) -> None:
    """Write a node's doc comments and positions into an empty builder of `Node.SourceInfo`."""
    target: Any = builder
    target["id"], target["startByte"], target["endByte"] = info.id, info.start_byte, info.end_byte
    if info.doc_comment is not None:
        target["docComment"] = info.doc_comment
    _fill_list(target, "members", info.members, _fill_source_member)


def _fill_source_member(target: Any, member: SourceMember) -> None:
    if member.doc_comment is not None:
        target["docComment"] = member.doc_comment


def fill_file(builder: StructBuilder, file: RequestedFile, *, identifiers: bool = True) -> None:
    """Write a requested file into an empty builder of `RequestedFile`.

    `identifiers=False` leaves the pointer that holds resolved names null, as compilers before
    1.1 did.
    """
    target: Any = builder
    target["id"], target["filename"] = file.id, file.filename
    _fill_list(target, "imports", file.imports, _fill_nested)
    if identifiers:
        _fill_list(
            target.init("fileSourceInfo"), "identifiers", file.identifiers or [], _fill_identifier
        )


def _fill_identifier(target: Any, item: Identifier) -> None:
    target["startByte"], target["endByte"] = item.start_byte, item.end_byte
    if item.member is None:
        target["typeId"] = item.type_id
    else:
        member = target.init("member")
        member["parentTypeId"], member["ordinal"] = item.member
