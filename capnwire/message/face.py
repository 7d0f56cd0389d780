"""The Python half of struct and list objects: what runs once a message, not once a field.

`capnwire._fast` imports this module when one of these is first called.
"""

from __future__ import annotations

from capnwire._fast import Struct, StructBuilder, StructReader
from capnwire._info import EnumInfo, ListInfo, StructInfo
from capnwire._lists import List
from capnwire.errors import EncodeError, EncodeTypeError
from capnwire.message.files import (
    from_bytes_packed,
    read,
    read_multiple,
    read_multiple_bytes_packed,
    read_multiple_packed,
    read_packed,
    write,
    write_packed,
)
from capnwire.message.text import repr_of, text_of
from capnwire.message.types import branded, list_of, struct_class
from capnwire.schema.registry import registry_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from capnwire._any import AnyPointerBuilder, AnyPointerReader, OrphanHolder
    from capnwire.message.reflection import StructSchema

__all__ = [
    "ResizableList",
    "branded",
    "copy_any",
    "copy_list",
    "enum_by_id",
    "field_names",
    "from_bytes_packed",
    "read",
    "read_multiple",
    "read_multiple_bytes_packed",
    "read_multiple_packed",
    "read_packed",
    "reduce_any",
    "reduce_list",
    "reduce_struct",
    "repr_of",
    "schema_of",
    "text_of",
    "write",
    "write_packed",
]


def schema_of(info: StructInfo) -> StructSchema:
    """What `Person.schema` and `message.schema` give."""
    from capnwire.message.reflection import StructSchema

    return StructSchema(info.scope[0], info)


def field_names(info: StructInfo) -> tuple[str, ...]:
    """The names of all fields."""
    info.ensure()
    return tuple(info.by_name)


# ------------------------------------------------------------------ pickling


def reduce_struct(struct: Struct) -> tuple[object, ...]:
    """A struct pickles as the id of its type, its bindings and a message with a copy of it."""
    info: StructInfo = struct._info
    if struct.total_size.cap_count:
        raise TypeError(f"a {info.name} that holds capabilities cannot be pickled")
    return restore_struct, (
        info.node.id, info.scope[1][2], struct.to_bytes(), isinstance(struct, StructBuilder),
    )


def restore_struct(id: int, brand: tuple[object, ...], data: bytes, building: bool) -> object:
    """The inverse of `reduce_struct`; the schema must be loaded.

    Raises:
        SchemaError: no loaded schema has the type.
    """
    registry = registry_with(id)
    kind = struct_class(registry, registry.struct_info(id, brand))
    return kind.from_bytes(data, builder=building)  # type: ignore[attr-defined]


def enum_by_id(id: int) -> EnumInfo:
    """The enum of an id, for unpickling; the schema must be loaded."""
    info = registry_with(id).info(("enum", id))
    assert isinstance(info, EnumInfo)
    return info


def reduce_list(items: List) -> tuple[object, ...]:
    """A list pickles as the key of its type and a message with a copy of it."""
    from capnwire._any import new_any_root
    from capnwire.message.types import key_of

    registry, key = key_of(items.type)
    root = new_any_root()
    root.set(items)
    _refuse_capabilities(root, repr(items.type))
    return restore_list, (key, root.to_segments())


def _refuse_capabilities(root: AnyPointerBuilder, name: str) -> None:
    if root.total_size.cap_count:
        raise TypeError(f"a {name} that holds capabilities cannot be pickled or copied")


def reduce_any(any: AnyPointerReader | AnyPointerBuilder) -> tuple[object, ...]:
    """An AnyPointer pickles as a message with a copy of what it names."""
    from capnwire._any import AnyPointerBuilder, new_any_root

    root = new_any_root()
    root.set(any)
    _refuse_capabilities(root, "AnyPointer")
    return restore_any, (root.to_segments(), isinstance(any, AnyPointerBuilder))


def restore_any(
    segments: list[bytes], building: bool
) -> AnyPointerReader | AnyPointerBuilder:
    """The inverse of `reduce_any`."""
    from capnwire._any import any_root, new_any_root

    reader = any_root(segments)
    if not building:
        return reader
    root = new_any_root()
    root.set(reader)
    return root


def copy_any(any: AnyPointerBuilder) -> object:
    """A deep copy of an AnyPointer as the root of a new message."""
    return _again(reduce_any(any))


def restore_list(key: tuple[object, ...], segments: list[bytes]) -> object:
    """The inverse of `reduce_list`."""
    from capnwire._any import any_root

    inner = key
    while inner[0] == "list":
        inner = inner[1]  # type: ignore[assignment]
    if len(inner) > 1:
        info = registry_with(inner[1]).info(key)  # type: ignore[arg-type]
    else:
        info = _scalar_list(key)
    return any_root(segments).as_list(info)


def _scalar_list(key: tuple[Any, ...]) -> ListInfo:
    element: tuple[Any, ...] = key[1]
    if element[0] == "list":
        return ListInfo("list", _scalar_list(element))
    return ListInfo(element[0])


def copy_list(items: List) -> object:
    """A deep copy of a list as a reader."""
    return _again(reduce_list(items))


def _again(reduced: Any) -> object:
    function, arguments = reduced
    return function(*arguments)


# ------------------------------------------------------------------ building


class ResizableList:
    """A list field of structs whose length is known only at the end: `add()`, then `finish()`."""

    def __init__(self, parent: StructBuilder, name: str) -> None:
        kind, info, _, _ = parent._info.field(name)
        if not isinstance(info, ListInfo) or info.element_kind != "struct":
            raise EncodeTypeError(
                f"{parent._info.name}.{name} is no list of structs", struct=parent._info.name,
                field=name,
            )
        self._parent, self._name, self._info = parent, name, info
        self._items: list[StructBuilder] | None = []
        self._orphans: list[OrphanHolder] = []

    def _open(self) -> list[StructBuilder]:
        if self._items is None:
            raise EncodeError(f"the list {self._name!r} was finished", field=self._name)
        return self._items

    def add(self) -> StructBuilder:
        """A new element, to be filled before `finish()`."""
        from capnwire._any import new_orphan

        info: StructInfo = self._info.element_info
        orphan = new_orphan(self._parent, info)
        self._open().append(orphan.get())
        self._orphans.append(orphan)
        return self._open()[-1]

    def finish(self) -> None:
        """Write the list into its field; no element can be added afterwards."""
        items = self._open()
        target = self._parent.init(self._name, len(items))
        for index, item in enumerate(items):
            target[index] = item
        self._items = None
        self._orphans = []

    def __len__(self) -> int:
        return len(self._open())

    def __getitem__(self, index: int) -> StructBuilder:
        return self._open()[index]


__all__ += ["StructReader", "list_of", "restore_list", "restore_struct"]
