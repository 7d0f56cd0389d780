"""The compiled face: struct objects, opening and making messages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from typing_extensions import Buffer, Self, disjoint_base

from capnwire._any import OrphanHolder
from capnwire._info import StructInfo

# `Any` below: which fields a struct has, and of what types, is in its schema; `capnwire gen` writes
# stubs that say it.

def set_late_module(name: str) -> None:
    """Say which module holds the Python half of the API; it is imported when first used."""

class MessageSize:
    """What a struct takes: `word_count` words of 8 bytes and `cap_count` capabilities."""

    __slots__ = ("cap_count", "word_count")
    word_count: int
    cap_count: int
    def __init__(self, word_count: int, cap_count: int) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

@disjoint_base
class Struct:
    """A struct in a message: the common half of readers and builders.

    Fields are attributes; `struct[name]` reaches those that are named like a method.  A struct
    keeps its message's memory alive.
    """

    # The class functions of a schema's types; bare `Struct` has none of them.
    _info: StructInfo
    new_message: Callable[..., Any]
    """`new_message(num_first_segment_words=None, allocate_seg_callable=None, **fields)`."""
    from_bytes: Callable[..., Any]
    """`from_bytes(buf, traversal_limit_in_words=None, nesting_limit=None, builder=False)`."""
    read_multiple_bytes: Callable[..., Iterator[Any]]
    """`read_multiple_bytes(buf, traversal_limit_in_words=None, nesting_limit=None)`."""

    def __class_getitem__(cls, arguments: Any) -> Any:
        """`Box[Text]`: a generic struct with its parameters bound."""

    def __getitem__(self, name: str, /) -> Any: ...
    def which(self, /) -> str:
        """The name of the active member of the struct's unnamed union.

        Raises:
            UnionError: the discriminant is one that the schema does not know, or there is no
                unnamed union.
        """

    @property
    def schema(self) -> Any:
        """The schema of the struct's type."""

    def _check_printable(self, /) -> None: ...
    def has(self, name: str) -> bool:
        """Whether a field is set: a pointer that is not null, an active member, any data field.

        Raises:
            AttributeError: there is no such field.
        """

    def _has(self, name: str) -> bool: ...
    def _get(self, name: str) -> Any: ...
    def to_dict(
        self, verbose: bool = False, ordered: bool = False, encode_bytes_as_base64: bool = False
    ) -> dict[str, Any]:
        """Everything in the struct as a dict: the active union member, then the fields in order.

        Raises:
            DecodeError: something in it is wrong, or it makes more objects than its bytes pay for.
        """

    def get_data_as_view(self, name: str) -> memoryview:
        """A memoryview of a Data field in place: no copy; writable in builders.

        Raises:
            TypeError: the field is no Data.
        """

    @property
    def total_size(self) -> MessageSize:
        """What a copy of the struct would take."""

    def to_canonical(self, /) -> bytes:
        """The canonical form: one segment, without a segment table.

        Raises:
            EncodeError: it holds a capability.
        """

    def as_builder(
        self, num_first_segment_words: int | None = None,
        allocate_seg_callable: Callable[[int], Buffer] | None = None,
    ) -> Any:
        """A deep copy as a new message, to be changed."""

    def copy(
        self, num_first_segment_words: int | None = None,
        allocate_seg_callable: Callable[[int], Buffer] | None = None,
    ) -> Any:
        """As `as_builder`."""

    def to_bytes(self, /) -> bytes:
        """The struct as a framed message; what is no root is copied into a message of its own."""

    def to_segments(self, /) -> list[bytes]:
        """The segments of the message."""

    def to_bytes_packed(self, /) -> bytes:
        """As `to_bytes`, packed (encoding.md, Packing)."""

    def write(self, file: Any) -> None:
        """Write the framed message to a file object, socket or path."""

    def write_packed(self, file: Any) -> None:
        """Write the packed message to a file object, socket or path."""

    @classmethod
    def from_bytes_packed(
        cls, buf: Buffer, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> Any:
        """A reader of a packed message, which is unpacked first; trailing bytes are an error."""

    @classmethod
    def from_segments(
        cls, segments: Sequence[Buffer], traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> Any:
        """A reader over the segments of a message, each a buffer, without a copy."""

    @classmethod
    def read(
        cls, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> Any:
        """A reader of the next message of a file object, socket or path.

        Raises:
            EOFError: there is no further message (a TruncatedError when one has begun).
        """

    @classmethod
    def read_packed(
        cls, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> Any:
        """As `read`, for packed messages; it never takes bytes of the message after."""

    @classmethod
    def read_multiple(
        cls, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None, skip_copy: bool = False,
    ) -> Iterator[Any]:
        """Readers over all messages of a file; a truncated last one raises."""

    @classmethod
    def read_multiple_packed(
        cls, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None, skip_copy: bool = False,
    ) -> Iterator[Any]:
        """As `read_multiple`, for packed messages."""

    @classmethod
    def read_multiple_bytes_packed(
        cls, buf: Buffer, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> Iterator[Any]:
        """Readers over packed messages, one after the other, in a buffer."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __dir__(self) -> list[str]: ...
    def __copy__(self, /) -> Self: ...
    def __deepcopy__(self, memo: Any) -> Self: ...

class StructReader(Struct):
    """A struct that is read in place; also the context manager of its message."""

    def __enter__(self, /) -> Self: ...
    def __exit__(self, kind: Any, value: Any, traceback: Any, /) -> None: ...
    def close(self, /) -> None:
        """Release the buffer: every later access through any reader of this message raises.

        Views that were given out keep the buffer; a message over `bytes` stays readable.
        """

    @property
    def is_root(self) -> bool: ...
    def __hash__(self) -> int: ...

class StructBuilder(Struct):
    """A struct that is being built."""

    def __setitem__(self, name: str, value: Any, /) -> None: ...
    def __delitem__(self, name: str, /) -> None: ...
    def _set(self, name: str, value: Any) -> None: ...
    def from_dict(self, mapping: Mapping[str, Any]) -> None:
        """Set fields from a mapping: in its order, merging into structs that are there.

        Raises:
            AttributeError: a key names no field.
            TypeError: it is no mapping.
            EncodeError: a value does not fit; fields before it are set.
        """

    # Stubs of schemas say for each field whether it takes a size.
    init: Callable[..., Any]
    """`init(name, size=None)`: start a field anew, and give it back: a zeroed struct, group, list,
    Text or Data.

    Raises:
        TypeError: the field needs a size, or takes none.
        EncodeError: the size is more than the format allows.
    """

    def init_resizable_list(self, name: str) -> Any:
        """A list whose length is not known yet: `add()` elements, then `finish()`."""

    def clear(self, name: str) -> None:
        """Give a field its default: zero data, a null pointer."""

    def disown(self, name: str) -> OrphanHolder:
        """Take the object of a pointer field out of the message; the field becomes null."""

    def adopt(self, name: str, orphan: OrphanHolder) -> None:
        """Put an orphan of this message into a pointer field; the orphan is null afterwards.

        Raises:
            EncodeError: the orphan is of another message, or of another type.
        """

    def as_reader(self, /) -> Any:
        """A reader of the same memory: later changes through builders are seen by it."""

    @property
    def is_root(self) -> bool:
        """Whether this is the root struct of its message."""

    def __hash__(self) -> NoReturn: ...

__pyx_capi__: dict[str, object]
__test__: dict[str, str]
