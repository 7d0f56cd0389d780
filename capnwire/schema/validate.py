"""Checks on nodes from outside, before a slot is made of them.

A CodeGeneratorRequest from elsewhere may say anything: fields beyond the sections, discriminants
twice, types nested without end.  The compiled face trusts what passes here.
Spec: limits-and-vulnerabilities.md (SchemaLoader field offsets, membersByDiscriminant).
"""

from __future__ import annotations

from capnwire.errors import SchemaError
from capnwire.schema.model import (
    NO_DISCRIMINANT,
    PRIMITIVE_BITS,
    ConstBody,
    Field,
    InterfaceBody,
    Node,
    StructBody,
    Type,
    Value,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from capnwire.schema.registry import Registry

__all__ = ["validate_group", "validate_node"]

MAX_TYPE_DEPTH = 64
MAX_MEMBERS = 65535
MAX_GROUP_DEPTH = 64


def validate_node(node: Node) -> None:
    """Check one node by itself.

    Raises:
        SchemaError: with the node, the member and what is wrong.
    """
    body = node.body
    _unique(node, [name for name, id in node.nested or ()], "declarations")
    if isinstance(body, StructBody):
        _validate_struct(node, body)
    elif isinstance(body, InterfaceBody):
        _unique(node, [method.name for method in body.methods], "methods")
    elif hasattr(body, "enumerants"):
        _unique(node, [entry.name for entry in body.enumerants], "enumerants")
    elif hasattr(body, "type"):
        _validate_type(node, body.type, "its type")
        if isinstance(body, ConstBody):
            _validate_default(node.display_name, body.type, body.value)


def validate_group(registry: Registry, node: Node, field: Field, group: Node) -> None:
    """Check that a group belongs to the field and struct that name it, and to no other.

    So groups are a tree, which conversions may walk without counting.

    Raises:
        SchemaError: with the field and what is wrong.
    """
    where = f"{node.display_name}.{field.name}"
    body, outer = group.body, node.body
    assert isinstance(body, StructBody)
    assert isinstance(outer, StructBody)
    if not body.is_group or group.scope_id != node.id:
        raise SchemaError(f"{where}: {group.display_name} is no group of it")
    if (body.data_word_count, body.pointer_count) != (outer.data_word_count, outer.pointer_count):
        raise SchemaError(f"{where}: its group has another size")
    depth = 0
    while isinstance(node.body, StructBody) and node.body.is_group:
        node, depth = registry.node(node.scope_id), depth + 1
        if depth > MAX_GROUP_DEPTH:
            raise SchemaError(f"{where}: groups nested more than {MAX_GROUP_DEPTH} deep")


def _validate_struct(node: Node, body: StructBody) -> None:
    fields = body.fields or []
    if not 0 <= body.data_word_count <= 0xFFFF or not 0 <= body.pointer_count <= 0xFFFF:
        raise SchemaError(f"{node.display_name}: its sections are larger than a struct can be")
    _unique(node, [field.name for field in fields], "fields")
    groups = [field.group_id for field in fields if field.type is None]
    if len(set(groups)) != len(groups):
        raise SchemaError(f"{node.display_name}: two fields share a group")
    members = 0
    seen = set()
    for field in fields:
        if field.discriminant_value != NO_DISCRIMINANT:
            members += 1
            number = field.discriminant_value
            if number in seen or number >= body.discriminant_count:
                raise SchemaError(
                    f"{node.display_name}.{field.name}: discriminant {field.discriminant_value} is "
                    f"used twice, or not below {body.discriminant_count}"
                )
            seen.add(field.discriminant_value)
        _validate_field(node, body, field)
    if members != body.discriminant_count:
        raise SchemaError(
            f"{node.display_name}: {members} union members, but a discriminant count of "
            f"{body.discriminant_count}"
        )
    if members and (body.discriminant_offset + 1) * 16 > body.data_word_count * 64:
        raise SchemaError(f"{node.display_name}: the discriminant lies outside the data section")


def _validate_field(node: Node, body: StructBody, field: Field) -> None:
    where = f"{node.display_name}.{field.name}"
    if field.type is None:
        return
    _validate_type(node, field.type, where)
    bits = PRIMITIVE_BITS.get(field.type.kind)
    if field.offset < 0:
        raise SchemaError(f"{where}: negative offset")
    if bits is None:
        if field.offset >= body.pointer_count:
            raise SchemaError(f"{where}: pointer {field.offset} of {body.pointer_count}")
    elif (field.offset + 1) * bits > body.data_word_count * 64:
        raise SchemaError(f"{where}: the field lies outside the data section")
    if field.default_value is not None:
        _validate_default(where, field.type, field.default_value)


def _validate_default(where: str, type: Type, value: Value) -> None:
    kinds = ("anyPointer", "struct", "list", "text", "data", "interface")
    if value.kind != type.kind and not (type.kind in kinds and value.kind in kinds):
        raise SchemaError(f"{where}: a default of kind {value.kind} for a field of {type.kind}")
    if isinstance(value.value, bytes) and value.kind not in ("text", "data") and (
        len(value.value) < 8 or len(value.value) % 8
    ):
        raise SchemaError(f"{where}: its default is not a whole number of words")


def _validate_type(node: Node, type: Type, where: str) -> None:
    depth = 0
    current: Type | None = type
    while current is not None:
        depth += 1
        if depth > MAX_TYPE_DEPTH:
            raise SchemaError(f"{where}: a type nested more than {MAX_TYPE_DEPTH} deep")
        if current.kind == "list" and current.element is None:
            raise SchemaError(f"{where}: a list without an element type")
        if current.brand is not None:
            for scope in current.brand.scopes:
                for binding in scope.bindings or ():
                    if binding.type is not None:
                        _validate_brand_depth(binding.type, where, 0)
        current = current.element


def _validate_brand_depth(type: Type, where: str, depth: int) -> None:
    if depth > MAX_TYPE_DEPTH:
        raise SchemaError(f"{where}: a brand nested more than {MAX_TYPE_DEPTH} deep")
    if type.element is not None:
        _validate_brand_depth(type.element, where, depth + 1)
    if type.brand is not None:
        for scope in type.brand.scopes:
            for binding in scope.bindings or ():
                if binding.type is not None:
                    _validate_brand_depth(binding.type, where, depth + 1)


def _unique(node: Node, names: list[str], what: str) -> None:
    if len(names) > MAX_MEMBERS:
        raise SchemaError(f"{node.display_name} has more than {MAX_MEMBERS} {what}")
    if len(set(names)) != len(names):
        raise SchemaError(f"{node.display_name}: two {what} of the same name")
    for name in names:
        if not name.isidentifier() or name.startswith("__"):
            raise SchemaError(f"{node.display_name}: {name!r} is no name for one of its {what}")
