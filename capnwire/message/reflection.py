"""What a program can ask of a schema: its nodes, fields, enumerants and methods.

`.node` and `.proto` are messages of schema.capnp, made when first asked for; everything else comes
from the model.  Two schemas are equal when they stand for the same type with the same bindings.
"""

from __future__ import annotations

from capnwire._info import EnumInfo, InterfaceInfo, ListInfo, StructInfo
from capnwire.errors import SchemaError
from capnwire.schema.model import (
    NO_DISCRIMINANT,
    AnnotationBody,
    ConstBody,
    EnumBody,
    FileBody,
    InterfaceBody,
    StructBody,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from capnwire._fast import StructReader
    from capnwire.schema.model import Annotation, Field, Method, Node
    from capnwire.schema.registry import BrandKey, Registry, TypeKey

__all__ = [
    "EnumSchema",
    "InterfaceMethod",
    "InterfaceSchema",
    "ListSchema",
    "Schema",
    "StructField",
    "StructSchema",
    "schema_for",
]

TypeSchema = "StructSchema | EnumSchema | InterfaceSchema | ListSchema"


class Schema:
    """The schema of a declaration or of a whole file.

    `id` is its id, `name` its name within the file (`Outer.Inner`).
    """

    def __init__(self, registry: Registry, node: Node, brand: BrandKey = ()) -> None:
        self._registry, self._node, self._brand = registry, node, brand

    @property
    def id(self) -> int:
        """The 64-bit id."""
        return self._node.id

    @property
    def name(self) -> str:
        """The name within the file, `Outer.Inner`; a file's own is the last part of its path."""
        from capnwire.schema.registry import qualified_name

        return qualified_name(self._node)

    @property
    def node(self) -> StructReader:
        """The node as a message of schema.capnp's `Node`, equal for equal schemas."""
        from capnwire.message.nodes import node_reader

        readers: dict[int, Any] = self._registry.node_readers
        found: StructReader | None = readers.get(self._node.id)
        if found is None:
            found = readers[self._node.id] = node_reader(self._node)
        return found

    def get_proto(self) -> StructReader:
        """As `node`."""
        return self.node

    @property
    def annotations(self) -> dict[int, object]:
        """The values of the annotations put on the declaration, by the annotations' ids."""
        return _annotation_values(self._registry, self._node.annotations)

    def get_nested(self, name: str) -> Schema:
        """The schema of a declaration inside this one.

        Raises:
            AttributeError: there is none of that name, or it is not loaded.
        """
        for nested, id in self._node.nested or ():
            if nested == name and id in self._registry.nodes:
                return schema_for(self._registry, self._registry.node(id))
        raise AttributeError(f"{self._node.display_name} declares no {name!r}")

    def as_struct(self) -> StructSchema:
        """This schema, when it is a struct's.

        Raises:
            SchemaError: it is none.
        """
        if not isinstance(self, StructSchema):
            raise SchemaError(f"{self._node.display_name} is no struct")
        return self

    def as_enum(self) -> EnumSchema:
        """This schema, when it is an enum's.

        Raises:
            SchemaError: it is none.
        """
        if not isinstance(self, EnumSchema):
            raise SchemaError(f"{self._node.display_name} is no enum")
        return self

    def as_interface(self) -> InterfaceSchema:
        """This schema, when it is an interface's.

        Raises:
            SchemaError: it is none.
        """
        if not isinstance(self, InterfaceSchema):
            raise SchemaError(f"{self._node.display_name} is no interface")
        return self

    def as_const_value(self) -> object:
        """The value, when this is a constant's schema.

        Raises:
            SchemaError: it is none.
        """
        from capnwire.message.types import value_of

        body = self._node.body
        if not isinstance(body, ConstBody):
            raise SchemaError(f"{self._node.display_name} is no constant")
        return value_of(self._registry, body.type, body.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return (
            self._node.id == other._node.id and self._brand == other._brand
            and self._node.body == other._node.body
        )

    def __hash__(self) -> int:
        return hash((self._node.id, self._brand))

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_schema, (self._node.id, self._brand)

    def __repr__(self) -> str:
        return f"<schema for {self._node.display_name}>"


class StructSchema(Schema):
    """The schema of a struct or group: its fields, in the order of their ordinals."""

    def __init__(self, registry: Registry, info: StructInfo) -> None:
        super().__init__(registry, info.node, info.scope[1][2])
        self._info = info
        self._fields: dict[str, StructField] | None = None

    @property
    def fields(self) -> Mapping[str, StructField]:
        """The fields by name."""
        if self._fields is None:
            body = self._node.body
            assert isinstance(body, StructBody)
            self._fields = {
                field.name: StructField(self, field, index)
                for index, field in enumerate(body.fields or ())
            }
        return self._fields

    @property
    def fields_list(self) -> tuple[StructField, ...]:
        """The fields."""
        return tuple(self.fields.values())

    @property
    def fieldnames(self) -> tuple[str, ...]:
        """The names of all fields."""
        return tuple(self.fields)

    @property
    def union_fields(self) -> tuple[str, ...]:
        """The names of the members of the unnamed union."""
        return tuple(name for name, field in self.fields.items() if field.discriminant is not None)

    @property
    def non_union_fields(self) -> tuple[str, ...]:
        """The names of the fields outside the unnamed union."""
        return tuple(name for name, field in self.fields.items() if field.discriminant is None)

    @property
    def type(self) -> type:
        """The struct class."""
        from capnwire.message.types import struct_class

        return struct_class(self._registry, self._info)


class StructField:
    """A field: its `name`, its `schema` and what the node says of it (`proto`).

    `index` is its position among the struct's fields; `discriminant` its number in the
    unnamed union or None; `ordinal` the number after the @, None for groups without one.
    """

    def __init__(self, struct: StructSchema, field: Field, index: int) -> None:
        self._struct, self._field, self.index = struct, field, index
        self.name: str = field.name

    @property
    def struct(self) -> StructSchema:
        """The schema of the struct that has the field."""
        return self._struct

    @property
    def proto(self) -> StructReader:
        """The field as a message of schema.capnp's `Field`."""
        node: Any = self._struct.node
        found: StructReader = node["struct"]["fields"][self.index]
        return found

    @property
    def is_group(self) -> bool:
        """Whether the field is a group or a named union."""
        return self._field.type is None

    @property
    def kind(self) -> str:
        """What the field is: "int32", "text", "struct", "group" and so on, bindings put in."""
        return str(self._key()[0]) if self._field.type is not None else "group"

    @property
    def discriminant(self) -> int | None:
        """The field's number in the struct's unnamed union."""
        number = self._field.discriminant_value
        return None if number == NO_DISCRIMINANT else number

    @property
    def ordinal(self) -> int | None:
        """The number that the schema text gives after the @."""
        return self._field.ordinal

    @property
    def schema(self) -> Any:
        """The schema of a struct, group, enum, interface or list; None for everything else."""
        struct = self._struct
        if self._field.type is None:
            return StructSchema(
                struct._registry, struct._registry.struct_info(self._field.group_id, struct._brand)
            )
        return _schema_of_key(struct._registry, self._key())

    @property
    def annotations(self) -> dict[int, object]:
        """The values of the annotations put on the field, by the annotations' ids."""
        return _annotation_values(self._struct._registry, self._field.annotations)

    def _key(self) -> TypeKey:
        assert self._field.type is not None
        return self._struct._registry.close(self._field.type, self._struct._brand)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StructField):
            return NotImplemented
        return self._struct == other._struct and self.index == other.index

    def __hash__(self) -> int:
        return hash((self._struct, self.index))

    def __repr__(self) -> str:
        return f"<field schema for {self.name}>"


class EnumSchema(Schema):
    """The schema of an enum."""

    def __init__(self, registry: Registry, info: EnumInfo) -> None:
        super().__init__(registry, info.node)
        self._info = info

    @property
    def enumerants(self) -> dict[str, int]:
        """The numbers of the values by name, in the order of the numbers."""
        return {name: value.raw for name, value in self._info.by_name.items()}

    def enumerant_annotations(self, name: str) -> dict[int, object]:
        """The values of the annotations put on an enumerant, by the annotations' ids.

        Raises:
            KeyError: the enum has no value of this name.
        """
        body = self._node.body
        assert isinstance(body, EnumBody)
        return _annotation_values(
            self._registry, body.enumerants[self.enumerants[name]].annotations
        )


class Inheritance:
    """What an interface has with those that it extends: needs `id`, `methods`, `superclasses`."""

    @property
    def methods_inherited(self: Any) -> dict[str, Any]:
        """All methods by name: its own, then those of what it extends, nearest first."""
        found: dict[str, Any] = {}
        for interface in self._lineage():
            for name, method in interface.methods.items():
                found.setdefault(name, method)
        return found

    @property
    def method_names(self: Any) -> tuple[str, ...]:
        """The names of the interface's own methods."""
        return tuple(self.methods)

    @property
    def method_names_inherited(self) -> set[str]:
        """The names of all methods."""
        return set(self.methods_inherited)

    def _lineage(self) -> list[Any]:
        """This interface and all that it extends, each once."""
        found: dict[int, Any] = {}
        waiting: list[Any] = [self]
        while waiting:
            interface = waiting.pop(0)
            if interface.id not in found:
                found[interface.id] = interface
                waiting += interface.superclasses
        return list(found.values())


class InterfaceSchema(Inheritance, Schema):
    """The schema of an interface: its methods, in the order of their ordinals."""

    def __init__(self, registry: Registry, info: InterfaceInfo) -> None:
        super().__init__(registry, info.node, info.scope[1][2])
        self._info = info
        body = self._node.body
        assert isinstance(body, InterfaceBody)
        self._body = body

    @property
    def methods(self) -> dict[str, InterfaceMethod]:
        """The interface's own methods by name."""
        return {
            method.name: InterfaceMethod(self, method, index)
            for index, method in enumerate(self._body.methods)
        }

    @property
    def superclasses(self) -> list[InterfaceSchema]:
        """The interfaces that this one extends directly."""
        found = []
        for base in self._body.superclasses:
            brand = self._registry.close_brand(base.brand, self._brand)
            found.append(_schema_of_key(self._registry, ("interface", base.id, brand)))
        return found

    def extends(self, other: InterfaceSchema) -> bool:
        """Whether the interface is `other` or extends it, directly or not."""
        return any(interface.id == other.id for interface in self._lineage())


class InterfaceMethod:
    """A method: `name`, its `index` within `interface`, and the structs it takes and gives."""

    def __init__(self, interface: InterfaceSchema, method: Method, index: int) -> None:
        self.interface, self.name, self.index = interface, method.name, index
        self._method = method

    @property
    def param_type(self) -> StructSchema:
        """The struct of the parameters."""
        return self._struct(self._method.param_struct_type, self._method.param_brand)

    @property
    def result_type(self) -> StructSchema:
        """The struct of the results."""
        return self._struct(self._method.result_struct_type, self._method.result_brand)

    @property
    def proto(self) -> StructReader:
        """The method as a message of schema.capnp's `Method`."""
        node: Any = self.interface.node
        found: StructReader = node["interface"]["methods"][self.index]
        return found

    @property
    def annotations(self) -> dict[int, object]:
        """The values of the annotations put on the method, by the annotations' ids."""
        return _annotation_values(self.interface._registry, self._method.annotations)

    def _struct(self, id: int, brand: Any) -> StructSchema:
        registry = self.interface._registry
        closed = registry.close_brand(brand, self.interface._brand)
        return StructSchema(registry, registry.struct_info(id, closed))

    def __repr__(self) -> str:
        return f"<method schema for {self.name}>"


class ListSchema:
    """The schema of a list type; `AnyPointer.as_list` and `init_as_list` take it."""

    def __init__(self, registry: Registry | None, info: ListInfo) -> None:
        self._registry, self._info = registry, info

    @property
    def element_type(self) -> Any:
        """The schema of the elements; None for numbers, Text, Data and AnyPointer."""
        return _schema_of_info(self._registry, self._info.element_info)

    elementType = element_type

    @property
    def element_kind(self) -> str:
        """What the elements are: "int32", "text", "struct", "list" and so on."""
        return str(self._info.element_kind)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ListSchema):
            return NotImplemented
        return (
            self.element_kind == other.element_kind and self.element_type == other.element_type
        )

    def __hash__(self) -> int:
        return hash((self.element_kind, self.element_type))

    def __repr__(self) -> str:
        return f"<schema for {self._info!r}>"


def schema_for(registry: Registry, node: Node, brand: BrandKey = ()) -> Schema:
    """The schema of a node, of the class that goes with its kind."""
    body = node.body
    if isinstance(body, (FileBody, ConstBody, AnnotationBody)):
        return Schema(registry, node)
    if isinstance(body, EnumBody):
        found: Schema = _schema_of_key(registry, ("enum", node.id))
        return found
    kind = "struct" if isinstance(body, StructBody) else "interface"
    made: Schema = _schema_of_key(registry, (kind, node.id, brand))
    return made


def _schema_of_key(registry: Registry, key: TypeKey) -> Any:
    return _schema_of_info(registry, registry.info(key))


def _schema_of_info(registry: Registry | None, info: object) -> Any:
    if isinstance(info, ListInfo):
        return ListSchema(registry, info)
    if isinstance(info, StructInfo):
        return StructSchema(info.scope[0], info)
    if isinstance(info, InterfaceInfo):
        return InterfaceSchema(info.scope[0], info)
    if isinstance(info, EnumInfo):
        return EnumSchema(info.scope[0], info)
    return None


def _annotation_values(
    registry: Registry, annotations: list[Annotation] | None
) -> dict[int, object]:
    """The Python values of applied annotations whose declarations are loaded."""
    from capnwire.message.types import value_of

    found: dict[int, object] = {}
    for annotation in annotations or ():
        declared = registry.nodes.get(annotation.id)
        if declared is not None and isinstance(declared.body, AnnotationBody):
            brand = registry.close_brand(annotation.brand, ())
            found[annotation.id] = value_of(
                registry, declared.body.type, annotation.value, brand
            )
    return found


def _restore_schema(id: int, brand: BrandKey) -> Schema:
    from capnwire.schema.registry import registry_with

    registry = registry_with(id)
    return schema_for(registry, registry.node(id), brand)
