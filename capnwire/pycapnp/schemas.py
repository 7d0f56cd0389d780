"""Schema objects: pycapnp's names over `capnwire.message.reflection`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capnwire._info import EnumInfo, InterfaceInfo, ListInfo, StructInfo
from capnwire.errors import KjException
from capnwire.message.reflection import Inheritance
from capnwire.pycapnp.modules import constant, list_info
from capnwire.schema.model import ConstBody, EnumBody, InterfaceBody, StructBody

if TYPE_CHECKING:
    from capnwire.pycapnp.registry import DropInRegistry
    from capnwire.schema.model import Field, Method, Node

__all__ = [
    "_EnumSchema", "_InterfaceMethod", "_InterfaceSchema", "_ListSchema", "_NodeReader",
    "_ParsedSchema", "_Schema", "_StructSchema", "_StructSchemaField", "schema_of",
]


class _NodeReader:
    """A node of a schema; `node` is the whole of it as a message of schema.capnp's `Node`."""

    def __init__(self, registry: DropInRegistry, node: Node) -> None:
        self._registry, self._node = registry, node

    @property
    def node(self) -> Any:
        """The node as a message."""
        from capnwire.pycapnp.registry import node_message

        readers = self._registry.node_readers
        found = readers.get(self._node.id)
        if found is None:
            found = readers[self._node.id] = node_message(self._node)
        return found

    @property
    def displayName(self) -> str:
        """The display name, `file.capnp:Outer.Inner`."""
        return self._node.display_name

    @property
    def scopeId(self) -> int:
        """The id of the enclosing declaration."""
        return self._node.scope_id

    @property
    def id(self) -> int:
        """The 64-bit id."""
        return self._node.id

    @property
    def nestedNodes(self) -> Any:
        """Name and id of the declarations inside."""
        return list(self.node.nestedNodes)

    @property
    def isStruct(self) -> bool:
        """Whether it is a struct."""
        return isinstance(self._node.body, StructBody)

    @property
    def isConst(self) -> bool:
        """Whether it is a constant."""
        return isinstance(self._node.body, ConstBody)

    @property
    def isInterface(self) -> bool:
        """Whether it is an interface."""
        return isinstance(self._node.body, InterfaceBody)

    @property
    def isEnum(self) -> bool:
        """Whether it is an enum."""
        return isinstance(self._node.body, EnumBody)


class _Schema:
    """The schema of a declaration or of a file."""

    def __init__(self, registry: DropInRegistry, node: Node) -> None:
        self._registry, self._node = registry, node

    def as_struct(self) -> _StructSchema:
        """This schema as that of a struct."""
        return self._as(StructBody, "struct")  # type: ignore[no-any-return]

    def as_enum(self) -> _EnumSchema:
        """This schema as that of an enum."""
        return self._as(EnumBody, "enum")  # type: ignore[no-any-return]

    def as_interface(self) -> _InterfaceSchema:
        """This schema as that of an interface."""
        return self._as(InterfaceBody, "interface")  # type: ignore[no-any-return]

    def _as(self, wanted: type, kind: str) -> Any:
        if not isinstance(self._node.body, wanted):
            raise KjException(f"Tried to use {self._node.display_name} as {kind}, which it is not")
        key = (kind, self._node.id) if kind == "enum" else (kind, self._node.id, ())
        return schema_of(self._registry.info(key))

    def as_const_value(self) -> Any:
        """The value of a constant."""
        body = self._node.body
        if not isinstance(body, ConstBody):
            raise KjException(f"Tried to use {self._node.display_name} as const, which it is not")
        return constant(self._registry, body.type, body.value)

    def get_proto(self) -> _NodeReader:
        """The node."""
        return _NodeReader(self._registry, self._node)

    @property
    def node(self) -> Any:
        """The node as a message of schema.capnp's `Node`."""
        return self.get_proto().node

    def __repr__(self) -> str:
        return f"<schema for {self._node.display_name}>"


class _ParsedSchema(_Schema):
    """A schema that was parsed from a file."""

    def get_nested(self, name: str) -> _ParsedSchema:
        """The schema of a declaration inside.

        Raises:
            KjException: there is none of that name.
        """
        for nested, id in self._node.nested or ():
            if nested == name and id in self._registry.nodes:
                return _ParsedSchema(self._registry, self._registry.node(id))
        raise KjException(f"no such nested declaration; {self._node.display_name} has no {name!r}")


class _StructSchema(_Schema):
    """The schema of a struct: its fields, in the order of their ordinals."""

    def __init__(self, info: StructInfo) -> None:
        super().__init__(info.scope[0], info.node)
        self._info = info
        self._fields: dict[str, _StructSchemaField] | None = None

    @property
    def fields(self) -> dict[str, _StructSchemaField]:
        """The fields by name."""
        if self._fields is None:
            self._fields = {
                field.name: _StructSchemaField(self, field, index)
                for index, field in enumerate(self._node.body.fields or ())  # type: ignore[union-attr]
            }
        return self._fields

    @property
    def fields_list(self) -> list[_StructSchemaField]:
        """The fields."""
        return list(self.fields.values())

    @property
    def fieldnames(self) -> tuple[str, ...]:
        """The names of all fields."""
        return tuple(self.fields)

    @property
    def union_fields(self) -> tuple[str, ...]:
        """The names of the members of the unnamed union."""
        return tuple(n for n, f in self.fields.items() if f._field.discriminant_value != 0xFFFF)

    @property
    def non_union_fields(self) -> tuple[str, ...]:
        """The names of the other fields."""
        return tuple(n for n, f in self.fields.items() if f._field.discriminant_value == 0xFFFF)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _StructSchema):
            return NotImplemented
        return self._info is other._info

    def __hash__(self) -> int:
        return hash(self._node.id)


class _StructSchemaField:
    """A field of a struct."""

    def __init__(self, struct: _StructSchema, field: Field, index: int) -> None:
        self._struct, self._field, self._index = struct, field, index
        self._field_name = field.name

    @property
    def proto(self) -> Any:
        """The field as a message of schema.capnp's `Field`."""
        return self._struct.node.struct.fields[self._index]

    @property
    def schema(self) -> Any:
        """The schema of a struct, group, enum, interface or list.

        Raises:
            KjException: the field's type has no schema: "Schema type is unknown".
        """
        info = self._struct._info
        registry = self._struct._registry
        brand = info.scope[1][2]
        if self._field.type is None:
            return schema_of(registry.struct_info(self._field.group_id, brand))
        return _schema_or_error(registry.info(registry.close(self._field.type, brand)))

    def __repr__(self) -> str:
        return f"<field schema for {self._field.name}>"


class _EnumSchema:
    """The schema of an enum."""

    def __init__(self, info: EnumInfo) -> None:
        self._info = info

    @property
    def enumerants(self) -> dict[str, int]:
        """The numbers of the values by name."""
        return {name: value.raw for name, value in self._info.by_name.items()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _EnumSchema):
            return NotImplemented
        return self._info is other._info

    def __hash__(self) -> int:
        return hash(self._info.node.id)

    @property
    def node(self) -> Any:
        """The node as a message of schema.capnp's `Node`."""
        return _NodeReader(self._info.scope[0], self._info.node).node

    def get_proto(self) -> _NodeReader:
        """The node."""
        return _NodeReader(self._info.scope[0], self._info.node)


class _InterfaceSchema(Inheritance):
    """The schema of an interface."""

    def __init__(self, info: InterfaceInfo) -> None:
        self._info = info

    @property
    def id(self) -> int:
        """The 64-bit id."""
        found: int = self._info.node.id
        return found

    @property
    def node(self) -> Any:
        """The node as a message of schema.capnp's `Node`."""
        return _NodeReader(self._info.scope[0], self._info.node).node

    def get_proto(self) -> _NodeReader:
        """The node."""
        return _NodeReader(self._info.scope[0], self._info.node)

    @property
    def methods(self) -> dict[str, _InterfaceMethod]:
        """The interface's own methods by name."""
        return {
            method.name: _InterfaceMethod(self, method, index)
            for index, method in enumerate(self._info.node.body.methods)
        }

    @property
    def superclasses(self) -> list[_InterfaceSchema]:
        """The interfaces that this one extends directly."""
        registry, key = self._info.scope
        return [
            schema_of(
                registry.info(("interface", base.id, registry.close_brand(base.brand, key[2])))
            )
            for base in self._info.node.body.superclasses
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _InterfaceSchema):
            return NotImplemented
        return self._info is other._info

    def __hash__(self) -> int:
        return hash(self._info.node.id)

    def __repr__(self) -> str:
        return f"<schema for {self._info.node.display_name}>"


class _InterfaceMethod:
    """A method of an interface: the structs it takes and gives."""

    def __init__(self, interface: _InterfaceSchema, method: Method, index: int) -> None:
        self._interface, self._method, self._index = interface, method, index

    @property
    def param_type(self) -> _StructSchema:
        """The struct of the parameters."""
        made: _StructSchema = self._struct(
            self._method.param_struct_type, self._method.param_brand
        )
        return made

    @property
    def result_type(self) -> _StructSchema:
        """The struct of the results."""
        made: _StructSchema = self._struct(
            self._method.result_struct_type, self._method.result_brand
        )
        return made

    def _struct(self, id: int, brand: Any) -> Any:
        registry, key = self._interface._info.scope
        return schema_of(registry.struct_info(id, registry.close_brand(brand, key[2])))


class _ListSchema:
    """The schema of a list of structs, enums, interfaces, lists or one of `capnp.types`."""

    def __init__(self, schema: Any = None) -> None:
        self._info: ListInfo = schema if isinstance(schema, ListInfo) else list_info(schema)

    @property
    def elementType(self) -> Any:
        """The schema of the elements.

        Raises:
            KjException: they have none: "Schema type is unknown".
        """
        return _schema_or_error(self._info.element_info)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ListSchema):
            return NotImplemented
        left, right = self._info, other._info
        return (left.element_kind, left.element_info) == (right.element_kind, right.element_info)

    def __hash__(self) -> int:
        return hash(self._info.element_kind)


def _schema_or_error(info: object) -> Any:
    if info is None:
        raise KjException("Schema type is unknown")
    return schema_of(info)


def schema_of(info: Any) -> Any:
    """The schema object of a struct, enum, interface or list."""
    if isinstance(info, ListInfo):
        return _ListSchema(info)
    if isinstance(info, StructInfo):
        if info.type is None:
            info.scope[0].module_of(info)
        module = info.type.__dict__
        found = module.get("_schema")
        if found is None:
            found = module["_schema"] = _StructSchema(info)
        return found
    if isinstance(info, EnumInfo):
        return _EnumSchema(info)
    assert isinstance(info, InterfaceInfo)
    return _InterfaceSchema(info)
