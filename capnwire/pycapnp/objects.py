"""The Python half of the drop-in's objects: AnyPointers, orphans, pickles, text, messages."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from capnwire._any import (
    AnyPointerBuilder,
    AnyPointerReader,
    OrphanHolder,
    any_root,
    new_any_root,
    new_orphan,
)
from capnwire._convert import set_object_wrapper  # type: ignore[import-not-found]
from capnwire._info import ListInfo
from capnwire.errors import CapnwireError, EncodeError, KjException
from capnwire.message.text import format_struct
from capnwire.pycapnp import _face
from capnwire.pycapnp._face import _DynamicListBuilder, _DynamicStructBuilder
from capnwire.pycapnp.files import next_message, segments_of, write_all
from capnwire.pycapnp.schemas import _ListSchema, schema_of
from capnwire.wire.packed import pack_segments

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "_DynamicObjectBuilder", "_DynamicObjectReader", "_DynamicOrphan",
    "_DynamicResizableListBuilder", "_MallocMessageBuilder", "_MessageBuilder", "_MessageReader",
    "_PackedFdMessageReader", "_PyCustomMessageBuilder", "_StreamFdMessageReader",
    "_write_message_to_fd", "_write_packed_message_to_fd", "schema_of", "write_all",
]


# ------------------------------------------------------------------ AnyPointers


def _list_type(schema: Any) -> ListInfo:
    """The list type that `as_list` and `init_as_list` are given."""
    info = getattr(schema, "_info", schema)
    return info if isinstance(info, ListInfo) else _ListSchema(schema)._info


class _DynamicObject:
    """What readers and builders of such a pointer share."""

    __slots__ = ("_pointer",)

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer

    @property
    def _parent(self) -> object:
        return self._pointer

    def as_struct(self, schema: Any) -> Any:
        """The struct that it names, seen as `schema`: a struct module or schema."""
        return self._pointer.as_struct(schema)

    def as_list(self, schema: Any) -> Any:
        """The list that it names, seen as a `_ListSchema`."""
        return self._pointer.as_list(_list_type(schema))

    def as_text(self) -> str:
        """The Text that it names."""
        found: str = self._pointer.as_text()
        return found

    def as_interface(self, schema: Any) -> Any:
        """The capability that it names, as a client of an interface."""
        return wrap(self._pointer.as_interface(), getattr(schema, "_info", schema))

    def __str__(self) -> str:
        return "<opaque pointer>"


class _DynamicObjectReader(_DynamicObject):
    """A pointer whose type the program names: `as_struct(S)`, `as_list(...)`, `as_text()`."""

    __slots__ = ()

    def as_data(self) -> bytes:
        """The Data that it names."""
        found: bytes = self._pointer.as_data()
        return found


class _DynamicObjectBuilder(_DynamicObject):
    """A pointer whose type the program names; `as_struct(S)` makes the struct when it is null."""

    __slots__ = ()

    def init_as_list(self, schema: Any, size: int) -> Any:
        """A new zeroed list of `size` elements."""
        return self._pointer.init_as_list(_list_type(schema), size)

    def set_as_text(self, text: str) -> None:
        """Store a Text."""
        self._pointer.set_as_text(text)

    def set(self, other: Any) -> None:
        """Store a copy of a struct, list, text, bytes or other AnyPointer."""
        self._pointer.set(getattr(other, "_pointer", other))

    def as_reader(self) -> _DynamicObjectReader:
        """A reader of the same pointer."""
        return _DynamicObjectReader(self._pointer.as_reader())


_capability: Callable[[Any, Any], Any] | None = None


def set_capability_wrapper(wrapper: Callable[[Any, Any], Any]) -> None:
    """Say what a capability, or None for a null one, is for the program."""
    global _capability
    _capability = wrapper


def wrap(value: Any, info: Any) -> Any:
    """An AnyPointer or capability as pycapnp's classes have it."""
    if isinstance(value, AnyPointerReader):
        return _DynamicObjectReader(value)
    if isinstance(value, AnyPointerBuilder):
        return _DynamicObjectBuilder(value)
    return value if _capability is None else _capability(value, info)


set_object_wrapper(wrap)


# ------------------------------------------------------------------ orphans and resizable lists


class _DynamicOrphan:
    """An object of a message that no pointer names; `adopt` puts it into a field.

    `value` is that of a Text or Data, which has no builder.
    """

    def __init__(self, holder: OrphanHolder, value: str | bytes | None = None) -> None:
        self._holder, self._value = holder, value

    @property
    def _parent(self) -> object:
        return self._holder

    def get(self) -> Any:
        """A builder of the orphan's struct or list, or the value of a Text or Data.

        Raises:
            KjException: it was adopted.
        """
        if not self._holder:
            raise KjException("this orphan was adopted, so there is nothing left to get")
        return self._holder.get() if self._value is None else self._value

    def __str__(self) -> str:
        return str(self.get())

    def __repr__(self) -> str:
        return repr(self.get()) if self._holder else "<capnp orphan null>"


def released(orphan: Any) -> OrphanHolder:
    """What `adopt` takes out of an orphan."""
    if not isinstance(orphan, _DynamicOrphan):
        raise TypeError(f"an orphan is wanted, not {type(orphan).__name__}")
    if not orphan._holder:
        raise KjException("this orphan was adopted before")
    return orphan._holder


class _DynamicResizableListBuilder:
    """A list of structs that grows: `add()` elements, then `finish()`."""

    def __init__(self, parent: Any, field: str, schema: Any = None) -> None:
        info = parent._info
        if field not in info.by_name:
            raise KjException(f"struct has no such member; name = {field}")
        element = info.field(field)[1]
        if not isinstance(element, ListInfo) or element.element_kind != "struct":
            raise KjException(f"{field} is no list of structs, so it cannot be resizable")
        self._message, self._field, self._parent = parent, field, parent
        self._schema = element.element_info
        self._module = self._schema.scope[0].module_of(self._schema)
        self._list: list[Any] = []
        self._orphans: list[OrphanHolder] = []
        self._finished = False

    def add(self) -> Any:
        """A new element, to be filled before `finish()`."""
        if self._finished:
            raise KjException("this list was finished")
        orphan = new_orphan(self._message, self._module)
        self._orphans.append(orphan)
        self._list.append(orphan.get())
        return self._list[-1]

    def finish(self) -> None:
        """Write the list into its field."""
        if self._finished:
            raise KjException("this list was finished")
        target = self._message.init(self._field, len(self._list))
        for index, item in enumerate(self._list):
            target[index] = item
        self._finished = True
        self._orphans.clear()
        self._list = list(target)

    def _get(self, index: int) -> Any:
        return self[index]

    def __getitem__(self, index: int) -> Any:
        return self._list[index]

    def __len__(self) -> int:
        return len(self._list)


# ------------------------------------------------------------------ pickles


def reduce_struct(struct: Any) -> tuple[object, ...]:
    """A struct pickles as its type's id and a message with a copy; it comes back as reader."""
    from capnwire.pycapnp.parser import _struct_reducer

    builder = struct if isinstance(struct, _DynamicStructBuilder) else struct.as_builder()
    if not builder.is_root:
        builder = _DynamicStructBuilder.copy(builder)
    info = struct._info
    data = b"".join(_framed(builder))
    return _struct_reducer, (info.node.id, data)


def _framed(builder: Any) -> list[bytes]:
    written = builder._is_written
    builder._is_written = False
    data: bytes = _DynamicStructBuilder.to_bytes(builder)
    builder._is_written = written
    return [data]


def reduce_list(items: Any) -> tuple[object, ...]:
    """A list pickles as its type and a message with a copy of it; it comes back as reader."""
    from capnwire.pycapnp.parser import _list_reducer

    root = new_any_root()
    root.set(items)
    key = _key_of(items.type)
    return _list_reducer, (key, root.to_segments())


def _key_of(info: ListInfo) -> tuple[object, ...]:
    element: Any = info.element_info
    if element is None:
        return ("list", (info.element_kind,))
    if isinstance(element, ListInfo):
        return ("list", _key_of(element))
    return ("list", element.scope[1])


# ------------------------------------------------------------------ text, dicts and arrays


def text_of(value: Any) -> str:
    """What `str(message)` gives."""
    return format_struct(value)


def repr_of(value: Any) -> str:
    """What `repr(message)` gives; a message that cannot be read says why instead."""
    try:
        text = format_struct(value, pretty=False)
    except CapnwireError as error:
        text = f"unreadable: {error}"
    if hasattr(value, "__len__"):
        kind = "builder" if isinstance(value, _DynamicListBuilder) else "reader"
        return f"<capnp list {kind} {text}>"
    kind = "builder" if isinstance(value, _DynamicStructBuilder) else "reader"
    return f"<{value._info.node.display_name} {kind} {text}>"


def ordered(value: Any) -> Any:
    """What `to_dict(ordered=True)` gives: an OrderedDict wherever there is a dict."""
    if isinstance(value, dict):
        return OrderedDict((key, ordered(item)) for key, item in value.items())
    return [ordered(item) for item in value] if isinstance(value, list) else value


def array_of(items: Any, dtype: Any) -> Any:
    """What `np.array(list)` gives: the types that it gives for the list's Python values."""
    import numpy

    kind = items.type.element_kind
    if kind.startswith("float"):
        made = numpy.asarray(_face.memory_of(items)).astype("float64")
    elif kind.startswith(("int", "uint")) and kind != "interface":
        raw = numpy.asarray(_face.memory_of(items))
        wide = "int64"
        if kind == "uint64" and len(raw) and int(raw.max()) > 2**63 - 1:
            wide = "uint64"
        made = raw.astype(wide)
    elif kind == "bool":
        made = numpy.array(list(items), dtype="bool")
    elif kind in ("text", "data"):
        made = numpy.array(list(items))
    else:
        made = numpy.empty(len(items), dtype=object)
        for index, item in enumerate(items):
            made[index] = item
    return made if dtype is None else made.astype(dtype)


# ------------------------------------------------------------------ messages


class _MessageBuilder:
    """A message under construction whose root is chosen later."""

    def __init__(self, *_: object) -> None:
        raise NotImplementedError("an abstract class: use _MallocMessageBuilder")

    _root: AnyPointerBuilder

    def init_root(self, schema: Any) -> Any:
        """A new zeroed root struct."""
        return _face.root_of(self._root.init_as_struct(schema))

    def get_root(self, schema: Any) -> Any:
        """The root struct, made when there is none."""
        return _face.root_of(self._root.as_struct(schema))

    def get_root_as_any(self) -> _DynamicObjectBuilder:
        """The root pointer."""
        return _DynamicObjectBuilder(self._root)

    def set_root(self, new_root: Any) -> Any:
        """Make the root a copy of a struct, and give its builder."""
        self._root.set(new_root)
        return self.get_root(new_root.schema)

    def new_orphan(self, schema: Any) -> _DynamicOrphan:
        """A new struct in this message that nothing names yet."""
        return _DynamicOrphan(self._root.new_orphan(schema))

    def get_segments_for_output(self) -> list[bytes]:
        """The segments as bytes."""
        return [] if self._root.is_null else self._root.to_segments()

    def _to_bytes(self) -> bytes:
        if self._root.is_null:
            raise EncodeError("Tried to serialize uninitialized message.")
        return self._root.to_bytes()


class _MallocMessageBuilder(_MessageBuilder):
    """A message in memory of its own; `size` is the number of words of its first segment."""

    def __init__(self, size: int | None = None) -> None:
        self._root = new_any_root(1024 if size is None else size)


class _PyCustomMessageBuilder(_MessageBuilder):
    """A message in memory that `allocate_seg_callable(minimum_words)` gives, zeroed."""

    def __init__(
        self, allocate_seg_callable: Callable[[int], Any], size: int | None = None
    ) -> None:
        self._root = new_any_root(1024 if size is None else size, allocate_seg_callable)


class _MessageReader:
    """A message that was read; `get_root(S)` gives its root."""

    def __init__(self, *_: object) -> None:
        raise NotImplementedError("an abstract class: use _StreamFdMessageReader")

    _pointer: AnyPointerReader

    def _open(self, message: bytes, limit: int | None, nesting: int | None) -> None:
        self._pointer = any_root(
            segments_of(message), 8 * 1024 * 1024 if limit is None else limit, nesting
        )

    @property
    def _parent(self) -> object:
        return self._pointer

    def get_root(self, schema: Any) -> Any:
        """The root struct."""
        return self._pointer.as_struct(schema)

    def get_root_as_any(self) -> _DynamicObjectReader:
        """The root pointer."""
        return _DynamicObjectReader(self._pointer)


class _StreamFdMessageReader(_MessageReader):
    """The next framed message of a file object, socket or file descriptor."""

    def __init__(
        self, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> None:
        self._open(
            next_message(file, traversal_limit_in_words),
            traversal_limit_in_words, nesting_limit,
        )


class _PackedFdMessageReader(_MessageReader):
    """The next packed message of a file object, socket or file descriptor."""

    def __init__(
        self, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> None:
        self._open(
            next_message(file, traversal_limit_in_words, packed=True),
            traversal_limit_in_words, nesting_limit,
        )


def _write_message_to_fd(fd: int, message: _MessageBuilder) -> None:
    """Write a framed message to a file descriptor."""
    write_all(fd, message._to_bytes())


def _write_packed_message_to_fd(fd: int, message: _MessageBuilder) -> None:
    """Write a packed message to a file descriptor."""
    message._to_bytes()
    write_all(fd, pack_segments(message.get_segments_for_output()))


def write_async(stream: Any, data: bytes) -> Any:
    """Write a framed message to an AsyncIoStream."""
    from capnwire.pycapnp import rpc

    return rpc.write_message(stream, data)
