"""Whole messages: opening buffers, making new messages."""

from collections.abc import Iterator
from typing import Any, final

from typing_extensions import Self

# `Any` below: the readers' type is made from a schema.

@final
class MessageIterator(Iterator[Any]):
    """Readers over the messages of a buffer, one after the other; they share its pin."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

__pyx_capi__: dict[str, object]
__test__: dict[str, str]
