"""Pointer values as bytes: the trees that values.py made become messages, by the message API.

Runs last, when a compilation has no errors and all nodes are known; the types are made by a
registry of its own.  Each value becomes one segment whose first word points to the object.
"""

from __future__ import annotations

from typing import Any

from capnwire._any import new_any_root
from capnwire.compiler.values import BAD_EMBED, Embedded, Typed
from capnwire.errors import CapnwireError, EncodeError
from capnwire.message.types import struct_class
from capnwire.schema.model import Node, Type
from capnwire.schema.registry import Registry


class BadValue(Exception):
    """A tree cannot be written; the text says why."""


class ValueEncoder:
    """Writes trees by the types that some nodes describe."""

    def __init__(self, nodes: list[Node]) -> None:
        self._registry = Registry(keeps_bytes=True)
        self._registry.add(nodes)

    def encode(self, type: Type, tree: object) -> bytes:
        """One segment that begins with the pointer to the value.

        Raises:
            BadValue: an embedded message is broken.
        """
        root = new_any_root()
        try:
            self._place(root, type, tree)
        except EncodeError as error:
            raise BadValue(f"Value cannot be stored: {error}.") from None
        except CapnwireError:
            raise BadValue(BAD_EMBED) from None
        words = sum(len(segment) for segment in root.to_segments()) // 8
        # Copied once more, so that the objects lie in the order of their pointers.
        whole = new_any_root(words + 1)
        whole.set(root.as_reader())
        segments = whole.to_segments()
        assert len(segments) == 1
        return bytes(segments[0])

    def _place(self, pointer: Any, type: Type, tree: object) -> None:
        """Write a tree at an AnyPointer builder."""
        if isinstance(tree, Typed):
            self._place(pointer, tree.type, tree.tree)
            return
        info: Any = self._registry.info(self._registry.close(type, ()))
        if isinstance(tree, list):
            self._fill_list(pointer.init_as_list(info, len(tree)), tree)
            return
        kind = struct_class(self._registry, info)
        if isinstance(tree, Embedded):
            pointer.set(_embedded(tree, kind))
        else:
            assert isinstance(tree, dict)
            self._fill(pointer.init_as_struct(kind), tree)

    def _fill(self, struct: Any, tree: dict[str, object]) -> None:
        for name, value in tree.items():
            if isinstance(value, Typed):
                self._place(struct.init(name), value.type, value.tree)
            elif isinstance(value, Embedded):
                struct[name] = _embedded(value, type(struct.init(name))._info.type)
            elif isinstance(value, dict):
                self._fill(struct.init(name), value)
            elif isinstance(value, list):
                self._fill_list(struct.init(name, len(value)), value)
            else:
                struct[name] = value

    def _fill_list(self, items: Any, tree: list[object]) -> None:
        for index, value in enumerate(tree):
            if isinstance(value, dict):
                self._fill(items[index], value)
            elif isinstance(value, list):
                self._fill_list(items.init(index, len(value)), value)
            elif isinstance(value, Typed):
                self._place(items[index], value.type, value.tree)
            elif isinstance(value, Embedded):
                items[index] = _embedded(value, items.type.element_info.type)
            elif value is not None:
                items[index] = value


def _embedded(tree: Embedded, kind: Any) -> Any:
    """The root of an embedded message as a struct."""
    return kind.from_bytes(tree.message, traversal_limit_in_words=1 << 60)
