"""What programs hold: capabilities typed by an interface, their methods, results not yet there."""

from collections.abc import Callable
from typing import Any, NoReturn, final

from typing_extensions import disjoint_base

from capnwire.service.method import Method
from capnwire.service.reference import Outcome, Reference, Runtime

# `Any` below: interfaces, structs and replies are made at run time.

@disjoint_base
class Capability:
    """A reference to an object here or in another vat, seen as an interface.

    Its methods start calls and give replies to be awaited.  Dropping the last reference releases
    the object.
    """

    def __init__(self, *args: Any, **options: Any) -> None: ...
    def cast_as(self, interface: Any) -> Any:
        """The same capability seen as another interface; nothing is checked."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> NoReturn: ...
    @property
    def _reference(self) -> Reference: ...
    def __getattr__(self, name: str) -> Any: ...

@final
class ClientMethod:
    """A method as an attribute of a client class."""

    def __init__(self, method: Method) -> None: ...
    @property
    def method(self) -> Method: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...

@final
class BoundMethod:
    """A method of a capability: calling it starts a call and gives the reply."""

    @property
    def method(self) -> Method: ...
    def __call__(self, *args: Any, **named: Any) -> Any: ...
    def pipelined(self, *args: Any, **named: Any) -> Pipeline:
        """Call for the capabilities in the results only: gives what `reply.pipeline` would.

        The results themselves are not sent.
        """

    def request(self, **named: Any) -> Request:
        """A call to be filled: set fields of `request.params`, then `request.send()`."""

@final
class Request:
    """A call that has not been sent: its parameters are built where they will be sent from."""

    @property
    def params(self) -> Any: ...
    def send(self) -> Any:
        """Start the call.

        Raises:
            LocalProtocolError: it was sent before.
        """

@final
class Pipeline:
    """Results that need not be there yet: structs and capabilities in them are attributes."""

    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def cast_as(self, interface: Any) -> Any:
        """The AnyPointer as a capability of an interface."""

    def as_struct(self, kind: Any) -> Pipeline:
        """The AnyPointer as a struct."""

def set_runtime_finder(finder: Callable[[], Runtime] | None) -> None:
    """Say how to find the runtime for a call on a local object."""

def set_stream_window(capability: Any, size_bytes: int, limit_bytes: int | None = None) -> None:
    """Let so many bytes of streaming calls on a capability be in flight from now on.

    With a limit it may become up to so many as the path turns out to hold more.
    """

def stream_window(capability: Any) -> int:
    """Bytes of streaming calls on a capability that may be in flight now; 0 before the first."""

def stream_bytes_in_flight(capability: Any) -> int:
    """Bytes of streaming calls on a capability that have not been answered."""

def pipeline_of(outcome: Outcome, method: Method | None) -> Pipeline:
    """The results of a call, known or not."""

def client_for(interface: Any, reference: Reference) -> Any:
    """A capability seen as an interface (None: any)."""

def reference_behind(value: Any) -> Reference:
    """The reference behind a capability or an instance of a server class."""

def local_object(capability: Any) -> Any:
    """The object of this process that a capability refers to, or None."""

__pyx_capi__: dict[str, object]
__test__: dict[str, str]
