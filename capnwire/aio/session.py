"""A session: one connection with its transport, in one loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, overload

from capnwire.aio.runtime import runtime_of
from capnwire.rpc.connection import Connection
from capnwire.service.client import Capability, client_for, reference_behind
from capnwire.service.interface import Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from capnwire.errors import RpcError
    from capnwire.typed import InterfaceOf

    Client = TypeVar("Client")

__all__ = ["Session"]


class Session:
    """A connection to another vat: what `connect` gives.

    `bootstrap` is what this side offers to the other: an instance of a server class, a capability,
    or a function that gets the peer's address and gives one.  Limits, all of what the peer may do:
    `message_words` of one message and its `nesting_limit`; `call_limit` calls and `byte_limit`
    bytes of calls in flight and of results not finished (beyond them calls are answered
    `overloaded`, at twice as many unfinished the connection is aborted; calls of ours that were
    cancelled and that the peer has not answered count too); `export_limit` and
    `import_limit` capabilities held.
    `tail_calls` says whether the peer understands them; by default, once it has used them itself.
    With `send_traces`, exceptions that are sent carry their `trace`.  `write_timeout` is how many
    seconds the peer may take no output, and how many it has for the rest once a session is closed.
    """

    def __init__(
        self, bootstrap: Any = None, *, peer: Any = None, loop: Any = None,
        write_timeout: float | None = 60.0, **limits: Any,
    ) -> None:
        self.runtime = runtime_of(loop)
        self.loop: asyncio.AbstractEventLoop = self.runtime.loop
        self.write_timeout = write_timeout
        self._pipe: Any = None
        self._ended: asyncio.Future[RpcError] = self.loop.create_future()
        self._idle: asyncio.Future[None] | None = None
        self._callbacks: list[Callable[[RpcError], object]] = []
        self.connection = Connection(
            self.runtime, self, bootstrap=_source(bootstrap), peer=peer, **limits
        )

    # ------------------------------------------------------------ for programs

    @property
    def peer(self) -> Any:
        """The address of the other side, as the transport says it."""
        return self.connection.peer

    @overload
    def bootstrap(self, interface: type[InterfaceOf[Client, Any, Any]]) -> Client: ...

    @overload
    def bootstrap(self, interface: Any = None) -> Any: ...

    def bootstrap(self, interface: Any = None) -> Any:
        """The object that the other side offers to everybody, seen as `interface`; at once.

        Raises:
            RemoteError: the connection has ended.
        """
        return client_for(interface, self.connection.bootstrap())

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended."""
        return self.connection.error is not None

    @property
    def error(self) -> RpcError | None:
        """Why the connection has ended, or None."""
        error: RpcError | None = self.connection.error
        return error

    async def on_disconnect(self) -> RpcError:
        """Wait until the connection has ended; gives the reason."""
        return await asyncio.shield(self._ended)

    def add_disconnect_callback(self, callback: Callable[[RpcError], object]) -> None:
        """Call `callback(error)` in the loop once the connection has ended."""
        if self._ended.done():
            self.loop.call_soon(callback, self._ended.result())
        else:
            self._callbacks.append(callback)

    def abort(self, reason: str) -> None:
        """End the connection at once and tell the peer why."""
        self.connection.abort(reason)
        self.flush()

    async def drain(self, timeout: float | None = None) -> bool:
        """Take no new calls and wait until those that run have ended; says whether they have."""
        self.connection.drain()
        deadline = None if timeout is None else self.loop.time() + timeout
        while not self.connection.is_idle and not self.is_closed:
            left = None if deadline is None else deadline - self.loop.time()
            if left is not None and left <= 0:
                return False
            if self._idle is None:
                self._idle = self.loop.create_future()
            either: list[asyncio.Future[Any]] = [self._idle, self._ended]
            await asyncio.wait(either, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return True

    def close(self) -> None:
        """End the connection; what is under way fails as disconnected."""
        self.flush()
        self.connection.close()
        self.flush()

    async def wait_closed(self) -> None:
        """Wait until the transport is closed too."""
        await asyncio.shield(self._ended)
        if self._pipe is not None:
            await self._pipe.wait_closed()

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
        await self.wait_closed()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else "open"
        return f"<capnwire session with {self.peer!r}, {state}>"

    # ------------------------------------------------------------ for the connection

    def wake(self) -> None:
        """There is output: write it at the end of this turn of the loop."""
        self.runtime.schedule(self.flush)

    def ring(self) -> None:
        """As `wake`, from any thread."""
        self.runtime.call(self.flush)

    def flush(self) -> None:
        """Write what there is to write."""
        chunks = self.connection.data_to_send()
        if chunks and self._pipe is not None:
            self._pipe.write(chunks)
        if self._idle is not None and self.connection.is_idle:
            if not self._idle.done():
                self._idle.set_result(None)
            self._idle = None

    def closed(self, error: RpcError) -> None:
        """The connection has ended: the transport follows once everything is written."""
        if not self.loop.is_closed():
            self.loop.call_soon(self._finish, error)

    def _finish(self, error: RpcError) -> None:
        self.flush()
        if self._pipe is not None:
            self._pipe.close()
        if not self._ended.done():
            self._ended.set_result(error)
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self.loop.call_soon(callback, error)

    # ------------------------------------------------------------ for the transport

    def attach(self, pipe: Any) -> None:
        """Take the transport: something with write(chunks), close(), wait_closed()."""
        self._pipe = pipe
        self.flush()
        if self.is_closed:
            pipe.close()

    def received(self, data: Any) -> None:
        """Bytes have come."""
        self.connection.receive_data(data)
        self.flush()

    def lost(self, error: BaseException | None = None) -> None:
        """Nothing more will come."""
        if error is None:
            self.connection.receive_eof()
        else:
            self.connection.close(f"the connection was lost: {error}")


def _source(bootstrap: Any) -> Any:
    """What the core takes as bootstrap: a reference, or a function of the peer that gives one."""
    if bootstrap is None:
        return None
    if isinstance(bootstrap, (Server, Capability)):
        return reference_behind(bootstrap)
    if not callable(bootstrap):
        raise TypeError(
            "a bootstrap is an instance of a server class, a capability, or a function of the "
            f"peer's address that gives one, not {type(bootstrap).__name__}"
        )
    factory: Callable[[Any], Any] = bootstrap

    def reference(peer: Any) -> Any:
        made = factory(peer)
        return None if made is None else reference_behind(made)

    return reference
