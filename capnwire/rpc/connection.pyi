"""One connection to another vat: its four tables, what is sent, what happens at its end."""

from collections.abc import Callable
from typing import Any, Protocol, final

from typing_extensions import Buffer

from capnwire.errors import RpcError
from capnwire.service.reference import Outcome, Promise, Reference, Runtime, Waiter

# `Any` below: what the session says of the peer.

class Owner(Protocol):
    """What a connection asks of its session."""

    def wake(self) -> None: ...
    def flush(self) -> None: ...
    def ring(self) -> None: ...
    def closed(self, error: RpcError) -> None: ...

@final
class Connection:
    """A two-party connection, sans I/O.

    `receive_data(bytes)` takes what arrived, `data_to_send()` gives what to write; `owner.wake()`
    says that there is output, `owner.flush()` that it should be written now, `owner.ring()` as
    `wake` from any thread, `owner.closed(error)` that it has ended.  `bootstrap` is a Reference,
    None, or a function of the peer's name that gives either.
    """

    peer: Any
    def __new__(
        cls, runtime: Runtime, owner: Owner, *,
        bootstrap: Reference | Callable[[Any], Reference | None] | None = None, peer: Any = None,
        tail_calls: bool | None = None, message_words: int = 8388608, call_limit: int = 10_000,
        byte_limit: int = 268435456, export_limit: int = 1_000_000,
        import_limit: int = 1_000_000, send_traces: bool = False,
        nesting_limit: int | None = None,
    ) -> Connection: ...
    @property
    def runtime(self) -> Runtime: ...
    @property
    def error(self) -> RpcError | None: ...
    @property
    def draining(self) -> bool: ...
    def receive_data(self, data: Buffer) -> None:
        """Take bytes from the peer's vat; never raises for what the peer did.

        Then write `data_to_send()`.

        Raises:
            LocalProtocolError: it runs already: a method that it called has come back here.
        """

    def receive_eof(self) -> None:
        """The peer will send nothing more."""

    def data_to_send(self) -> list[Buffer]:
        """What to write now, as a list of buffers."""

    @property
    def bytes_answered(self) -> int:
        """How much there was to write so far, without our own calls: what the peer has caused."""

    def bootstrap(self) -> Reference:
        """The reference to the peer's bootstrap object, at once.

        Raises:
            RemoteError: the connection has ended.
        """

    def abort(self, text: str) -> None:
        """End the connection and tell the peer why."""

    def close(self, text: str = "the connection was closed") -> None:
        """End the connection: everything under way fails as disconnected."""

    def drain(self) -> None:
        """Take no new calls (they are answered `disconnected`); those that run may end."""

    @property
    def is_receiving(self) -> bool:
        """Whether `receive_data` runs: a method that it called has come back here."""

    @property
    def message_limit_words(self) -> int:
        """The most words that a message may have."""

    @property
    def is_idle(self) -> bool:
        """Whether no call of either side is under way."""

    def tables(self) -> dict[str, Any]:
        """The ids in use: questions, answers, exports and imports with their counts, embargoes."""

    def exported(self, id: int) -> Reference | None:
        """The reference behind one of our exports, or None."""

    def resume(self) -> None:
        """Go on with what has come, after a method raised KeyboardInterrupt or SystemExit."""

    def note_dropped(self, weak: Any) -> None:
        """A reference is gone: called by its finaliser, in whatever thread that runs."""

    def too_many_imports(self) -> None:
        """More capabilities are held than the limit allows."""

    def too_many_exports(self) -> None:
        """The peer holds more than the limit allows."""

@final
class Question(Outcome):
    """A question of ours."""

    @property
    def id(self) -> int: ...

@final
class Answer(Outcome):
    """A question of the peer's."""

    @property
    def id(self) -> int: ...
    def cancel_later(self) -> None:
        """`cancel_now`, once the method had its chance to start."""

@final
class Export(Waiter):
    """One of our objects or promises that the peer knows by a number."""

    @property
    def id(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def reference(self) -> Reference: ...

@final
class Import:
    """One of the peer's objects or promises that we hold."""

    @property
    def id(self) -> int: ...
    @property
    def count(self) -> int: ...

@final
class ImportReference(Reference):
    """An object that the peer exports."""

    @property
    def id(self) -> int: ...

@final
class AnswerReference(Reference):
    """A capability in an answer that the peer is to give."""

@final
class RemotePromise(Promise):
    """A promise of the peer's."""

CANCELLED: str
PROTOCOL_CLOSED: str

__pyx_capi__: dict[str, object]
__test__: dict[str, str]
