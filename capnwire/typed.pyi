"""The types that generated stubs name: lists of known elements, enums, calls and their replies.

There is nothing here at run time.
"""

from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import Any, Generic, Literal, SupportsIndex, TypeAlias, TypeVar, overload

from typing_extensions import Buffer

from capnwire._any import AnyPointerBuilder, AnyPointerReader
from capnwire._fast import Struct
from capnwire._info import ListInfo
from capnwire._lists import ListBuilder, ListReader

_Element = TypeVar("_Element", covariant=True)
_Built = TypeVar("_Built")
_Stored = TypeVar("_Stored")
_Read = TypeVar("_Read")
_Results = TypeVar("_Results", covariant=True)
_Params = TypeVar("_Params", covariant=True)
_Pipeline = TypeVar("_Pipeline", covariant=True)
_Client = TypeVar("_Client")

Data: TypeAlias = bytes | bytearray | memoryview
AnyPointer: TypeAlias = Any
"""What an AnyPointer field takes: a struct, list, text, bytes, capability, or None."""

_R = TypeVar("_R", covariant=True)
_B = TypeVar("_B", covariant=True)
_S = TypeVar("_S", covariant=True)

class Kind(Generic[_R, _B, _S]):
    """A type of `capnwire.types`: what readers and builders give of it, and what is stored."""

class StructOf(Struct, Generic[_R, _B, _S]):
    """What the class of a struct type has; its reader, its builder, and what can be stored."""

    @overload
    @classmethod
    def from_bytes(
        cls, buf: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None, builder: Literal[False] = False,
    ) -> _R: ...
    @overload
    @classmethod
    def from_bytes(
        cls, buf: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None, *, builder: Literal[True],
    ) -> _B: ...
    @classmethod
    def read_multiple_bytes(
        cls, buf: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> Iterator[_R]: ...
    @classmethod
    def from_bytes_packed(
        cls, buf: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> _R: ...
    @classmethod
    def from_segments(
        cls, segments: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> _R: ...
    @classmethod
    def read(
        cls, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> _R: ...
    @classmethod
    def read_packed(
        cls, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> _R: ...
    @classmethod
    def read_multiple(
        cls, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None, skip_copy: bool = False,
    ) -> Iterator[_R]: ...
    @classmethod
    def read_multiple_packed(
        cls, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None, skip_copy: bool = False,
    ) -> Iterator[_R]: ...
    @classmethod
    def read_multiple_bytes_packed(
        cls, buf: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> Iterator[_R]: ...
    def as_builder(
        self, num_first_segment_words: int | None = None,
        allocate_seg_callable: Callable[[int], Buffer] | None = None,
    ) -> _B: ...
    def copy(
        self, num_first_segment_words: int | None = None,
        allocate_seg_callable: Callable[[int], Buffer] | None = None,
    ) -> _B: ...

class ReaderOf(ListReader, Generic[_Element]):
    """A list that is read in place."""

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> _Element: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[_Element]: ...
    def __iter__(self) -> Iterator[_Element]: ...

class BuilderOf(ListBuilder, Generic[_Built, _Stored, _Read]):
    """A list that is being built; its length is fixed."""

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> _Built: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[_Built]: ...
    def __iter__(self) -> Iterator[_Built]: ...
    def __setitem__(self, index: SupportsIndex, value: _Stored, /) -> None: ...
    def init(self, index: int, size: int | None = None) -> _Built: ...
    def as_reader(self, /) -> ReaderOf[_Read]: ...

class Enum:
    """A value of an enum; `name` is None when the schema does not know its number."""

    @property
    def raw(self) -> int: ...
    @property
    def name(self) -> str | None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __lt__(self, other: SupportsIndex, /) -> bool: ...
    def __le__(self, other: SupportsIndex, /) -> bool: ...
    def __gt__(self, other: SupportsIndex, /) -> bool: ...
    def __ge__(self, other: SupportsIndex, /) -> bool: ...

class Annotation:
    """The declaration of an annotation."""

    @property
    def schema(self) -> Any: ...

class InterfaceOf(Generic[_R, _B, _S]):
    """An interface: `Server` is what implementations derive from, `Client` what calls them."""

Bindable: TypeAlias = Kind[_R, _B, _S] | type[StructOf[_R, _B, _S]] | type[InterfaceOf[_R, _B, _S]]
"""What a type parameter can be bound to, but for lists, whose types are made at run time."""
AnyBindable: TypeAlias = Bindable[Any, Any, Any] | ListInfo

class Capability:
    """A reference to an object in this or another vat."""

    @overload
    def cast_as(self, interface: type[InterfaceOf[_Client, Any, Any]]) -> _Client: ...
    @overload
    def cast_as(self, interface: Any) -> Any:
        """The same capability seen as another interface; nothing is checked."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

class Reply(Awaitable[_Results], Generic[_Results, _Pipeline]):
    """A call under way: await it for the results, or use capabilities in them before."""

    def __await__(self) -> Generator[Any, None, _Results]: ...
    @property
    def pipeline(self) -> _Pipeline: ...
    def cancel(self, msg: Any = None) -> bool: ...
    def cancelled(self) -> bool: ...
    def done(self) -> bool: ...
    def result(self) -> _Results: ...
    def exception(self) -> BaseException | None: ...
    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...

class Request(Generic[_Params, _Results]):
    """A call that has not been sent: set fields of `params`, then `send()`."""

    @property
    def params(self) -> _Params: ...
    def send(self) -> _Results: ...

class Context(Generic[_Params, _Results]):
    """A running call, as the method that serves it sees it."""

    @property
    def params(self) -> _Params: ...
    @property
    def results(self) -> _Results: ...
    @property
    def peer(self) -> Any: ...
    @property
    def is_cancelled(self) -> bool: ...
    def release_params(self) -> None: ...

class AnyPipeline:
    """An AnyPointer in results that are not there yet."""

    @overload
    def cast_as(self, interface: type[InterfaceOf[_Client, Any, Any]]) -> _Client: ...
    @overload
    def cast_as(self, interface: Any) -> Any: ...
    def as_struct(self, kind: Any) -> Any: ...

__all__ = [
    "Annotation",
    "AnyBindable",
    "AnyPipeline",
    "AnyPointer",
    "AnyPointerBuilder",
    "AnyPointerReader",
    "Bindable",
    "BuilderOf",
    "Capability",
    "Context",
    "Data",
    "Enum",
    "InterfaceOf",
    "Kind",
    "ListInfo",
    "ReaderOf",
    "Reply",
    "Request",
    "StructOf",
]
