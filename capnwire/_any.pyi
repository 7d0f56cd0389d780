"""AnyPointer, AnyStruct and AnyList; capabilities; orphans as Python sees them."""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn, final

from typing_extensions import Buffer, Self

from capnwire._fast import MessageSize, StructBuilder

# `Any` below: struct classes, list types and capabilities are made at run time.

@final
class AnyPointerReader:
    """A pointer whose type the reader names: `as_struct(Person)`, `as_list(...)`, `as_text()`."""

    def __bool__(self) -> bool: ...
    @property
    def is_null(self) -> bool:
        """Whether the pointer is null."""

    def as_struct(self, type: Any) -> Any:
        """A reader of the struct, seen as `type`; null gives the empty struct."""

    def as_list(self, type: Any) -> Any:
        """A reader of the list, seen as the list type; null gives an empty list."""

    def as_text(self, /) -> str:
        """The str of a Text; null gives the empty one."""

    def as_data(self, /) -> bytes:
        """The bytes of a Data; null gives the empty one."""

    def as_interface(self, type: Any = None) -> Any:
        """The capability as a client of the interface `type`, or None when null."""

    def __eq__(self, other: object, /) -> bool: ...
    @property
    def total_size(self) -> MessageSize:
        """What a copy would take, with the pointer: `word_count` and `cap_count`."""

    def __copy__(self, /) -> Self: ...
    def __deepcopy__(self, memo: Any) -> Self: ...
    def __hash__(self) -> int: ...

@final
class AnyPointerBuilder:
    """A pointer whose type the builder names: `as_struct(Person)` makes the struct when null."""

    def __bool__(self) -> bool: ...
    @property
    def is_null(self) -> bool:
        """Whether the pointer is null."""

    def as_struct(self, type: Any) -> Any:
        """A builder of the struct, seen as `type`; made when null."""

    def init_as_struct(self, type: Any) -> Any:
        """A new zeroed struct of `type`."""

    def as_list(self, type: Any) -> Any:
        """A builder of the list, seen as the list type; null gives an empty list."""

    def init_as_list(self, type: Any, size: int) -> Any:
        """A new zeroed list of `size` elements."""

    def as_text(self, /) -> str:
        """The str of a Text; null gives the empty one."""

    def as_data(self, /) -> bytes:
        """The bytes of a Data; null gives the empty one."""

    def as_interface(self, type: Any = None) -> Any:
        """The capability as a client of the interface `type`, or None when null."""

    def set(self, value: Any) -> None:
        """Store a copy of a struct, list, text, bytes, AnyPointer or capability; None clears."""

    def set_as_text(self, text: str) -> None:
        """Store a Text."""

    def to_bytes(self, /) -> bytes:
        """The whole message that the pointer is in, framed."""

    def to_segments(self, /) -> list[bytes]:
        """The segments of the whole message."""

    def new_orphan(self, type: Any, size: int | None = None) -> OrphanHolder:
        """A new zeroed struct, or list of `size`, in this message, which no pointer names yet."""

    def clear(self, /) -> None:
        """Make the pointer null."""

    def as_reader(self, /) -> AnyPointerReader:
        """A reader of the same pointer."""

    def __eq__(self, other: object, /) -> bool: ...
    @property
    def total_size(self) -> MessageSize:
        """What a copy would take, with the pointer: `word_count` and `cap_count`."""

    def __copy__(self, /) -> Self: ...
    def __deepcopy__(self, memo: Any) -> Self: ...
    def __hash__(self) -> NoReturn: ...

@final
class UnresolvedCapability:
    """A capability pointer in a message that came without a capability table."""

    @property
    def index(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class OrphanHolder:
    """An object of a message that no pointer names: made by `disown`, put into place by `adopt`."""

    def get(self, /) -> Any:
        """A builder of the orphan's struct or list.

        Raises:
            SchemaMismatch: it is null (adopted already), or neither a struct nor a list.
        """

    def __bool__(self) -> bool: ...

def set_service_module(name: str) -> None:
    """Say which module makes clients and servers of interfaces; it is imported when first used."""

def service_module() -> ModuleType:
    """The module that makes clients and servers of interfaces."""

def set_capability_hooks(
    stored: Callable[[list[Any], Any, Any], int] | None, loaded: Callable[[Any, Any], Any] | None
) -> None:
    """Say how a value becomes an entry of a capability table, and an entry what a program sees."""


def new_orphan(message: StructBuilder, type: Any, size: int | None = None) -> OrphanHolder:
    """A new zeroed struct, or list of `size`, in a builder's message, which nothing names yet."""

def any_root(
    segments: Sequence[Buffer], traversal_limit_in_words: int | None = None,
    nesting_limit: int | None = None,
) -> AnyPointerReader:
    """The root pointer of a message given as its segments."""

def new_any_root(
    num_first_segment_words: int = 1024,
    allocate_seg_callable: Callable[[int], Buffer] | None = None,
) -> AnyPointerBuilder:
    """The root pointer of a new, empty message."""

__pyx_capi__: dict[str, object]
__test__: dict[str, str]
