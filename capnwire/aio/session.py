"""A session: one connection with its transport, in one loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from capnwire.aio.runtime import runtime_of
from capnwire.errors import RemoteError, RpcError
from capnwire.rpc.connection import Connection
from capnwire.service.client import Capability, client_for, reference_behind
from capnwire.service.interface import Server

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Session"]

READ_BYTES = 256 * 1024


class Session:
    """A connection to another vat."""

    def __init__(
        self, bootstrap: Any = None, *, peer: Any = None, loop: Any = None, **limits: Any
    ) -> None:
        self.runtime = runtime_of(loop)
        self._loop = self.runtime.loop
        self._pipe: Any = None
        self._ended = self._loop.create_future()
        self.connection = Connection(
            self.runtime, self, bootstrap=_source(bootstrap), peer=peer, **limits
        )

    # ------------------------------------------------------------ for programs

    @property
    def peer(self) -> Any:
        """The address of the other side, as the transport says it."""
        return self.connection.peer

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

    async def on_disconnect(self) -> RpcError:
        """Wait until the connection has ended; gives the reason."""
        reason: RpcError = await asyncio.shield(self._ended)
        return reason

    def abort(self, reason: str) -> None:
        """End the connection at once and tell the peer why."""
        self.connection.abort(reason)
        self.flush()

    async def drain(self, timeout: float | None = None) -> bool:
        """Take no new calls and wait until those that run have ended; says whether they have."""
        self.connection.drain()
        deadline = None if timeout is None else self._loop.time() + timeout
        while not self.connection.is_idle and not self.is_closed:
            left = None if deadline is None else deadline - self._loop.time()
            if left is not None and left <= 0:
                return False
            self._idle = self._loop.create_future()
            await asyncio.wait([self._idle, self._ended], timeout=left,
                               return_when=asyncio.FIRST_COMPLETED)
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
        self._loop.call_soon(self.flush)

    def ring(self) -> None:
        self.runtime.call(self.flush)

    def flush(self) -> None:
        """Write what there is to write."""
        chunks = self.connection.data_to_send()
        if chunks and self._pipe is not None:
            self._pipe.write(chunks)
        idle = getattr(self, "_idle", None)
        if idle is not None and not idle.done() and self.connection.is_idle:
            idle.set_result(None)

    def closed(self, error: RpcError) -> None:
        self._loop.call_soon(self._finish, error)

    def _finish(self, error: RpcError) -> None:
        self.flush()
        if self._pipe is not None:
            self._pipe.close()
        if not self._ended.done():
            self._ended.set_result(error)

    # ------------------------------------------------------------ for the transport

    def attach(self, pipe: Any) -> None:
        """Take the transport: something with write(chunks), close(), wait_closed()."""
        self._pipe = pipe
        self.flush()

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


def lost_error(text: str) -> RemoteError:
    """An error for what cannot go on."""
    return RemoteError(text, kind="DISCONNECTED")
