"""The registry of a parser of the drop-in: the same nodes, with types of the drop-in's face."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capnwire._info import EnumInfo, InterfaceInfo, StructInfo
from capnwire.pycapnp import _values
from capnwire.pycapnp._face import FACE
from capnwire.schema.registry import ANY, Registry

if TYPE_CHECKING:
    from capnwire.schema.model import Node, Type
    from capnwire.schema.registry import BrandKey, TypeKey

__all__ = ["DropInRegistry", "schema_nodes"]


class DropInRegistry(Registry):
    """Nodes of one parser; two registries never share a type."""

    face = FACE

    def close(self, type: Type, brand: BrandKey) -> TypeKey:
        """As the base class; a Capability, AnyStruct or AnyList is any AnyPointer."""
        key = super().close(type, brand)
        return ANY if key[0] in ("capability", "anyStruct", "anyList") else key

    def module_of(self, info: StructInfo | EnumInfo | InterfaceInfo) -> object:
        """What stands for a declaration: a struct, enum or interface module."""
        from capnwire.pycapnp.modules import module_of

        return module_of(self, info)

    def complete(self, info: StructInfo) -> None:
        """Fill a struct's field table, with its module in place."""
        self.module_of(info)
        super().complete(info)


_schema: DropInRegistry | None = None


def schema_nodes() -> DropInRegistry:
    """The registry with the drop-in's types of schema.capnp, made when first needed."""
    global _schema
    if _schema is None:
        from capnwire.message.nodes import schema_types

        native = schema_types().Node.schema._registry
        made = DropInRegistry()
        made.nodes.update(native.nodes)
        _schema = made
    return _schema


def node_message(node: Node) -> object:
    """A node as a message of schema.capnp's `Node` in the drop-in's types."""
    from capnwire.message.nodes import node_reader, schema_types

    registry = schema_nodes()
    info = registry.struct_info(schema_types().Node.schema.id)
    data = node_reader(node).to_bytes()
    module = registry.module_of(info)
    return module.from_bytes(data, 2**61)  # type: ignore[attr-defined]


def _enum_by_id(id: int) -> EnumInfo:
    from capnwire.pycapnp.parser import registry_with

    found = registry_with(id).info(("enum", id))
    assert isinstance(found, EnumInfo)
    return found


_values.set_enum_source(_enum_by_id)
