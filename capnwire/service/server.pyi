"""Running methods: calls to a local object become calls of its functions."""

from typing import Any, final

from capnwire.service.method import Method
from capnwire.service.reference import Reference, Runtime

# `Any` below: servers are of the program's making, results and values of any type.

CONTEXT: object
"""Marks the parameter of a server's method that takes the call's `Context`."""
PARAMS: object
"""Marks the parameter that takes the whole struct of parameters."""

@final
class ServerMethod:
    """A method as a server class implements it."""

    def __init__(
        self, method: Method, function: Any, *, bound: bool, asynchronous: bool,
        positional: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...] = (),
        rest: tuple[str, ...] | None = None,
    ) -> None: ...
    @property
    def method(self) -> Method: ...

class ReplyBase:
    """The ancestor of what callers get, by which a returned, unawaited reply is recognised."""

@final
class LocalReference(Reference):
    """A reference to an object of this process."""

    @property
    def server(self) -> Any: ...
    def pump(self) -> None:
        """Start what may start now of the calls that wait."""

@final
class Context:
    """One running call, as the method that serves it sees it."""

    @property
    def peer(self) -> Any:
        """Who called: what the session says of the other side, or None for a local caller."""

    @property
    def params(self) -> Any:
        """The parameters as a struct."""

    @property
    def results(self) -> Any:
        """A builder of the results; return None from the method to send what it holds."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller does not want the results any more."""

    def release_params(self) -> None:
        """Drop the parameters and the capabilities in them, as far as the method holds none."""

    @property
    def is_started(self) -> bool:
        """Whether the coroutine has reached its first line."""

    @property
    def has_ended(self) -> bool:
        """Whether the caller has its answer."""

    def started(self) -> None:
        """The coroutine of the method is at its first line."""

    def complete(self, value: Any) -> None:
        """The method gave `value`."""

    def fail(self, error: BaseException) -> None:
        """The method raised `error`."""

    def abandoned(self) -> None:
        """The coroutine was cancelled, by the caller or from within."""

def reference_to(server: Any, runtime: Runtime | None = None) -> Reference:
    """The reference to an instance of a server class, which is to run where `runtime` says."""

CANCELLED: str
__pyx_capi__: dict[str, object]
__test__: dict[str, str]
