"""A message under construction whose root is chosen later."""

from __future__ import annotations

from capnwire._any import new_any_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from capnwire._any import AnyPointerBuilder, OrphanHolder
    from capnwire._fast import StructBuilder

__all__ = ["MessageBuilder"]


class MessageBuilder:
    """A new message: `init_root(Person)` starts its root struct.

    `size` is the number of words of the first segment (1024 when None);
    `allocate_seg_callable(words)` gives zeroed writable buffers for the segments.
    """

    def __init__(
        self, size: int | None = None,
        allocate_seg_callable: Callable[[int], bytearray] | None = None,
    ) -> None:
        self._root = new_any_root(1024 if size is None else size, allocate_seg_callable)

    def init_root(self, kind: Any) -> StructBuilder:
        """A new zeroed root struct of a type."""
        made: StructBuilder = self._root.init_as_struct(kind)
        return made

    def get_root(self, kind: Any) -> StructBuilder:
        """The root struct seen as a type; made when there is none."""
        root: StructBuilder = self._root.as_struct(kind)
        return root

    def get_root_as_any(self) -> AnyPointerBuilder:
        """The root pointer."""
        return self._root

    def set_root(self, value: Any) -> None:
        """Make the root a copy of a struct, list or other pointer value."""
        self._root.set(value)

    def new_orphan(self, kind: Any, size: int | None = None) -> OrphanHolder:
        """A new struct or list in this message that nothing names yet."""
        return self._root.new_orphan(kind, size)

    def to_segments(self) -> list[bytes]:
        """The segments as bytes."""
        return self._root.to_segments()

    def to_bytes(self) -> bytes:
        """The framed message."""
        return self._root.to_bytes()
