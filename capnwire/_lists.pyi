"""Lists in messages: sequences over the wire, buffers of numbers, bulk conversion."""

from collections.abc import Iterator
from typing import Any, SupportsIndex, final, overload

from typing_extensions import Buffer, Self, disjoint_base

from capnwire._any import OrphanHolder
from capnwire._info import ListInfo

# `Any` below: what the elements are is in the schema.

@disjoint_base
class List(Buffer):
    """A list in a message: the common half of readers and builders; a Sequence."""

    def _check_printable(self, /) -> None: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Any: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __contains__(self, value: object, /) -> bool: ...
    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """The first position of a value.

        Raises:
            ValueError: it is not there.
        """

    def count(self, value: Any) -> int:
        """How often a value occurs."""

    def to_list(self, verbose: bool = False, encode_bytes_as_base64: bool = False) -> list[Any]:
        """Everything in the list as Python objects, structs as dicts, in one go."""

    def tolist(self, /) -> list[Any]:
        """As `to_list()`, with NumPy's name."""

    @property
    def type(self) -> ListInfo:
        """What the elements are."""

    def _get(self, index: Any) -> Any: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __copy__(self, /) -> Self: ...
    def __deepcopy__(self, memo: Any) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

class ListReader(List):
    """A list that is read in place."""

class ListBuilder(List):
    """A list that is being built; its length is fixed."""

    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    def _set(self, index: Any, value: Any) -> None: ...
    def init(self, index: int, size: int | None = None) -> Any:
        """Start an element anew: a list of `size`, a blob of `size` bytes, or a zeroed struct."""

    def disown(self, index: int) -> OrphanHolder:
        """Take the object of a pointer element out of the message; the element becomes null."""

    def adopt(self, index: int, orphan: OrphanHolder) -> None:
        """Put an orphan of this message into a pointer element."""

    def as_reader(self, /) -> ListReader:
        """A reader of the same memory."""

@final
class ListIterator(Iterator[Any]):
    """Goes through a list once."""

    def __iter__(self) -> Self: ...
    def __length_hint__(self, /) -> int: ...
    def __next__(self) -> Any: ...

__pyx_capi__: dict[str, object]
__test__: dict[str, str]
