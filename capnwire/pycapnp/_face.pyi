"""The struct and list classes of the drop-in."""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from typing_extensions import Self, disjoint_base

from capnwire._fast import StructBuilder, StructReader
from capnwire._info import Face, StructInfo
from capnwire._lists import List, ListBuilder, ListReader
from capnwire.pycapnp._values import _DynamicEnumField as _DynamicEnumField
from capnwire.pycapnp.schemas import _StructSchema

# `Any` throughout: fields are made from schemas at run time.

FACE: Face

class _DynamicStructReader(StructReader):
    """A struct that is read: its fields are attributes."""

    @property
    def which(self) -> _DynamicEnumField:
        """The active member of the unnamed union; call it for its name."""

    def _which(self) -> _DynamicEnumField: ...
    def _which_str(self) -> str: ...
    def _get(self, field: Any) -> Any:
        """A field by its name, also of one that is named like a method."""

    def _has(self, field: Any) -> bool:
        """Whether a field is set: a pointer that is not null, an active member, any data field."""

    def _get_by_field(self, field: Any) -> Any: ...
    def _has_by_field(self, field: Any) -> bool: ...
    @property
    def schema(self) -> _StructSchema:
        """The schema of the struct."""

    @property
    def _parent(self) -> object: ...
    @property
    def is_root(self) -> bool: ...
    def to_dict(
        self, verbose: Any = False, ordered: Any = False, encode_bytes_as_base64: Any = False
    ) -> dict[str, Any]:
        """Everything in the struct as a dict."""

    def get_data_as_view(self, field: str) -> memoryview:
        """A read-only memoryview of a Data field, without a copy."""

    def __enter__(self) -> Self: ...
    def __iter__(self) -> NoReturn: ...
    def __getattr__(self, name: str) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Any: ...
    def __deepcopy__(self, memo: Any) -> Any: ...

class _DynamicStructBuilder(StructBuilder):
    """A struct that is built: its fields are attributes that can be set."""

    @property
    def which(self) -> _DynamicEnumField:
        """The active member of the unnamed union; call it for its name."""

    def _which(self) -> _DynamicEnumField: ...
    def _which_str(self) -> str: ...
    def _get(self, field: Any) -> Any:
        """A field by its name, also of one that is named like a method."""

    def _set(self, field: Any, value: Any) -> None:
        """Set a field by its name."""

    def _has(self, field: Any) -> bool:
        """Whether a field is set: a pointer that is not null, an active member, any data field."""

    def _get_by_field(self, field: Any) -> Any: ...
    def _set_by_field(self, field: Any, value: Any) -> None: ...
    def _has_by_field(self, field: Any) -> bool: ...
    def _init_by_field(self, field: Any, size: int | None = None) -> Any: ...
    def init(self, field: Any, size: int | None = None) -> Any:
        """Start a field anew: a zeroed struct, group, list, Text, Data or AnyPointer."""

    def init_resizable_list(self, field: Any) -> Any:
        """A list of structs whose length is not known yet: `add()` elements, then `finish()`."""

    def adopt(self, field: Any, orphan: Any) -> None:
        """Put an orphan of this message into a pointer field."""

    def disown(self, field: Any) -> Any:
        """Take the object of a pointer field out of the message."""

    def from_dict(self, d: Any) -> None:
        """Set fields from a dict; text for a Data field is decoded from base64."""

    def as_reader(self) -> Any:
        """A reader of the same memory."""

    def copy(
        self, num_first_segment_words: int | None = None,
        allocate_seg_callable: Callable[[int], Any] | None = None,
    ) -> Any:
        """A deep copy as a new message."""

    def to_bytes(self) -> bytes:
        """The framed message."""

    def to_segments(self) -> list[bytes]:
        """The segments of the message as a list of bytes."""

    def to_bytes_packed(self) -> bytes:
        """The packed message."""

    def _to_bytes_packed_helper(self, word_count: Any = None) -> bytes: ...
    def write(self, file: Any) -> None:
        """Write the framed message to a file object; it is in the file when this returns."""

    def write_packed(self, file: Any) -> None:
        """Write the packed message to a file object; it is in the file when this returns."""

    def write_async(self, stream: Any) -> Any:
        """Write the framed message to an AsyncIoStream; await the result."""

    _is_written: bool
    def clear_write_flag(self) -> None:
        """Forget that the message was written, so that writing it again warns no more."""

    @property
    def schema(self) -> _StructSchema:
        """The schema of the struct."""

    @property
    def _parent(self) -> object: ...
    def to_dict(
        self, verbose: Any = False, ordered: Any = False, encode_bytes_as_base64: Any = False
    ) -> dict[str, Any]:
        """Everything in the struct as a dict."""

    def get_data_as_view(self, field: str) -> memoryview:
        """A writable memoryview of a Data field in place."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, value: object, traceback: object, /) -> None: ...
    def __iter__(self) -> NoReturn: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...  # type: ignore[override]
    def __copy__(self) -> Any: ...
    def __deepcopy__(self, memo: Any) -> Any: ...

class _DynamicListReader(ListReader):
    """A list that is read."""

    def __getitem__(self, index: Any, /) -> Any: ...
    def _get(self, index: Any) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    @property
    def _parent(self) -> object: ...
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Any: ...
    def __deepcopy__(self, memo: Any) -> Any: ...

class _DynamicListBuilder(ListBuilder):
    """A list that is built; its length is fixed."""

    def __getitem__(self, index: Any, /) -> Any: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    def __delitem__(self, index: Any, /) -> NoReturn: ...
    def _get(self, index: Any) -> Any: ...
    def _set(self, index: Any, value: Any) -> None: ...
    def init(self, index: Any, size: int | None = None) -> Any:
        """Start an element anew: a list of `size`, a Text or Data of `size` bytes."""

    def adopt(self, index: Any, orphan: Any) -> None:
        """Put an orphan of this message into a pointer element."""

    def disown(self, index: Any) -> Any:
        """Take the object of a pointer element out of the message."""

    def __iter__(self) -> Iterator[Any]: ...
    @property
    def _parent(self) -> object: ...
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self) -> Any: ...
    def __deepcopy__(self, memo: Any) -> Any: ...

@disjoint_base
class _DataView:
    """The exporter behind a view of a Data: it keeps the struct that gave it."""

class _EmptyListError(IndexError, ZeroDivisionError):
    """A negative index of an empty list, which pycapnp answers with ZeroDivisionError."""

def root_of(builder: Any) -> Any:
    """The builder, marked as the root of its message."""

def memory_of(list: List) -> memoryview:
    """A memoryview of a list of numbers, of the width that they have on the wire."""

def class_functions(info: StructInfo) -> dict[str, Callable[..., Any]]:
    """The functions of a struct module that run without a frame, by name."""

def _completed(info: StructInfo) -> None: ...

__test__: dict[str, str]
