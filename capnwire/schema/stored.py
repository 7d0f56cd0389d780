"""Nodes as bytes for the cache of compiled schemas: fast to read back, for this Python only.

The fields of a struct stay bytes until they are asked for, since most programs use few of the
types that they load.  Only bytes that were checked against their checksum may be read here.
"""

from __future__ import annotations

from marshal import dumps, loads

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
    InterfaceBody,
    Method,
    Node,
    StructBody,
    Superclass,
    Type,
    Value,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["StoredStructBody", "pack_nodes", "unpack_nodes"]


class StoredStructBody(StructBody):
    """A struct's body whose fields are made when first asked for; it then is a `StructBody`."""

    __slots__ = ()

    @property
    def fields(self) -> list[Field] | None:  # type: ignore[override]
        """The fields, made now."""
        packed: Any = _fields.__get__(self)
        made = None if packed is None else [_field(item) for item in loads(packed[1])]
        _fields.__set__(self, made)
        self.__class__ = StructBody  # type: ignore[assignment]
        return made

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The names and ids of the groups, kept apart for those who need no more."""
        packed: Any = _fields.__get__(self)
        groups: list[tuple[str, int]] = [] if packed is None else packed[0]
        return groups

    def __eq__(self, other: object) -> bool:
        self.fields  # noqa: B018
        return StructBody.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]


_fields: Any = StructBody.__dict__["fields"]


# --- to tuples ----------------------------------------------------------------------------------


def pack_nodes(nodes: list[Node]) -> bytes:
    """Nodes as bytes."""
    return dumps([_pack_node(node) for node in nodes])


def _pack_node(node: Node) -> tuple[Any, ...]:
    body = node.body
    packed: tuple[Any, ...]
    if isinstance(body, StructBody):
        fields = body.fields
        packed = (
            "struct", body.data_word_count, body.pointer_count, body.preferred_list_encoding,
            body.is_group, body.discriminant_count, body.discriminant_offset,
            None if fields is None else (
                body.groups, dumps([_pack_field(field) for field in fields]),
            ),
        )
    elif isinstance(body, EnumBody):
        packed = (
            "enum",
            [(item.name, item.code_order, _pack_all(item.annotations)) for item in body.enumerants],
        )
    elif isinstance(body, InterfaceBody):
        packed = (
            "interface", [_pack_method(method) for method in body.methods],
            [(base.id, _pack_brand(base.brand)) for base in body.superclasses],
        )
    elif isinstance(body, ConstBody):
        packed = ("const", _pack_type(body.type), _pack_value(body.value))
    elif isinstance(body, AnnotationBody):
        packed = ("annotation", _pack_type(body.type), sorted(body.targets))
    else:
        packed = ("file",)
    return (
        node.id, node.display_name, node.display_name_prefix_length, node.scope_id,
        node.parameters, node.is_generic, node.nested, _pack_all(node.annotations),
        node.start_byte, node.end_byte, packed,
    )


def _pack_method(method: Method) -> tuple[Any, ...]:
    return (
        method.name, method.code_order, method.implicit_parameters, method.param_struct_type,
        _pack_brand(method.param_brand), method.result_struct_type,
        _pack_brand(method.result_brand), _pack_all(method.annotations),
    )


def _pack_field(field: Field) -> tuple[Any, ...]:
    return (
        field.name, field.code_order, _pack_all(field.annotations), field.discriminant_value,
        field.offset, None if field.type is None else _pack_type(field.type),
        None if field.default_value is None else _pack_value(field.default_value),
        field.had_explicit_default, field.group_id, field.ordinal,
    )


def _pack_all(annotations: list[Annotation] | None) -> list[tuple[Any, ...]] | None:
    if annotations is None:
        return None
    return [(item.id, _pack_value(item.value), _pack_brand(item.brand)) for item in annotations]


def _pack_value(value: Value) -> Any:
    return (value.kind, value.value, value.bits)


def _pack_type(type: Type) -> Any:
    kind = type.kind
    if kind == "list":
        assert type.element is not None
        return (kind, _pack_type(type.element))
    if kind in ("struct", "enum", "interface"):
        return (kind, type.type_id, _pack_brand(type.brand))
    if kind == "anyPointer":
        return (kind, type.any_kind, type.scope_id, type.parameter_index)
    return kind


def _pack_brand(brand: Brand | None) -> Any:
    if brand is None:
        return None
    return [
        (
            scope.scope_id,
            None if scope.bindings is None else [
                None if binding.type is None else _pack_type(binding.type)
                for binding in scope.bindings
            ],
        )
        for scope in brand.scopes
    ]


# --- and back -----------------------------------------------------------------------------------


def unpack_nodes(data: bytes) -> list[Node]:
    """The nodes that `pack_nodes` was given."""
    return [_node(item) for item in loads(data)]


def _node(packed: Any) -> Node:
    (
        id, display_name, prefix_length, scope_id, parameters, is_generic, nested, annotations,
        start, end, body,
    ) = packed
    return Node(
        id, display_name, prefix_length, scope_id, _BODIES[body[0]](body), parameters=parameters,
        is_generic=is_generic, nested=nested,
        annotations=None if annotations is None else _annotations(annotations),
        start_byte=start, end_byte=end,
    )


def _struct_body(packed: Any) -> StructBody:
    body = StoredStructBody.__new__(StoredStructBody)
    (
        _, body.data_word_count, body.pointer_count, body.preferred_list_encoding, body.is_group,
        body.discriminant_count, body.discriminant_offset, fields,
    ) = packed
    _fields.__set__(body, fields)
    return body


def _enum_body(packed: Any) -> EnumBody:
    return EnumBody([
        Enumerant(name, order, None if annotations is None else _annotations(annotations))
        for name, order, annotations in packed[1]
    ])


def _interface_body(packed: Any) -> InterfaceBody:
    methods = []
    for name, order, implicit, params, param_brand, results, result_brand, applied in packed[1]:
        methods.append(Method(
            name, order, implicit_parameters=implicit, param_struct_type=params,
            param_brand=_brand(param_brand), result_struct_type=results,
            result_brand=_brand(result_brand),
            annotations=None if applied is None else _annotations(applied),
        ))
    return InterfaceBody(methods, [Superclass(id, _brand(brand)) for id, brand in packed[2]])


_BODIES: dict[str, Any] = {
    "struct": _struct_body,
    "enum": _enum_body,
    "interface": _interface_body,
    "const": lambda packed: ConstBody(_type(packed[1]), Value(*packed[2])),
    "annotation": lambda packed: AnnotationBody(_type(packed[1]), frozenset(packed[2])),
    "file": lambda packed: FileBody(),
}


def _field(packed: Any) -> Field:
    name, order, applied, discriminant, offset, type, default, explicit, group, ordinal = packed
    return Field(
        name, order, annotations=None if applied is None else _annotations(applied),
        discriminant_value=discriminant, offset=offset,
        type=None if type is None else _type(type),
        default_value=None if default is None else Value(*default),
        had_explicit_default=explicit, group_id=group, ordinal=ordinal,
    )


def _annotations(packed: Any) -> list[Annotation]:
    return [Annotation(id, Value(*value), _brand(brand)) for id, value, brand in packed]


def _type(packed: Any) -> Type:
    if isinstance(packed, str):
        return Type(packed)
    kind = packed[0]
    if kind == "list":
        return Type(kind, element=_type(packed[1]))
    if kind == "anyPointer":
        return Type(
            kind, any_kind=packed[1], scope_id=packed[2], parameter_index=packed[3],
        )
    return Type(kind, type_id=packed[1], brand=_brand(packed[2]))


def _brand(packed: Any) -> Brand | None:
    if packed is None:
        return None
    return Brand([
        BrandScope(
            scope_id,
            None if bindings is None else [
                Binding(None if type is None else _type(type)) for type in bindings
            ],
        )
        for scope_id, bindings in packed
    ])
