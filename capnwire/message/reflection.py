"""What a program can ask of a schema: its nodes, fields, enumerants and methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capnwire.schema.model import Node
    from capnwire.schema.registry import Registry

__all__ = ["Schema"]


class Schema:
    """The schema of a declaration."""

    def __init__(self, registry: Registry, node: Node) -> None:
        self._registry, self._node = registry, node
