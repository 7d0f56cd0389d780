"""Connecting and listening: TCP, TLS, Unix sockets, pairs in memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from capnwire.aio.session import READ_BYTES, Session

if TYPE_CHECKING:
    import ssl as ssl_module
    from collections.abc import Generator

__all__ = ["Listener", "connect", "pipe_pair", "serve"]


class SocketPipe(asyncio.BufferedProtocol):
    """An asyncio transport under a session."""

    def __init__(self, session: Session | None, listener: Listener | None = None) -> None:
        self.session, self.listener = session, listener
        self.transport: Any = None
        self.buffer = bytearray(READ_BYTES)
        self.view = memoryview(self.buffer)
        self.paused = False
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        if self.session is None:
            assert self.listener is not None
            self.session = self.listener._accepted(self, transport)
        self.session.connection.peer = _peer_of(transport)
        self.session.attach(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.view

    def buffer_updated(self, size: int) -> None:
        assert self.session is not None
        self.session.received(bytes(self.view[:size]))

    def eof_received(self) -> bool:
        assert self.session is not None
        self.session.lost()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        assert self.session is not None
        self.session.lost(error)
        if not self.gone.done():
            self.gone.set_result(None)
        if self.listener is not None:
            self.listener._sessions.discard(self.session)

    def pause_writing(self) -> None:
        self.paused = True
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self.paused = False
        self.transport.resume_reading()

    def write(self, chunks: list[Any]) -> None:
        if len(chunks) == 1:
            self.transport.write(chunks[0])
        else:
            self.transport.writelines(chunks)

    def close(self) -> None:
        self.transport.close()

    async def wait_closed(self) -> None:
        await asyncio.shield(self.gone)


def _peer_of(transport: Any) -> Any:
    return transport.get_extra_info("peername") or transport.get_extra_info("sockname")


def _parse(url: str) -> tuple[str, Any]:
    """(kind, address) of a url."""
    if url.startswith("unix:"):
        path = url[5:]
        return "unix", path[2:] if path.startswith("//") else path
    parts = urlsplit(url)
    if parts.scheme not in ("tcp", "tls") or parts.port is None:
        raise ValueError(
            f"{url!r} is none of tcp://host:port, tls://host:port and unix:/path"
        )
    return parts.scheme, (parts.hostname or "", parts.port)


class _Connecting:
    """What `connect` gives: `async with` it, or await it for the session."""

    def __init__(self, url: str, ssl: Any, timeout: float | None, options: dict[str, Any]) -> None:
        self._url, self._ssl, self._timeout, self._options = url, ssl, timeout, options
        self._session: Session | None = None

    async def _connect(self) -> Session:
        kind, address = _parse(self._url)
        loop = asyncio.get_running_loop()
        session = Session(**self._options)
        if kind == "unix":
            making = loop.create_unix_connection(lambda: SocketPipe(session), address)
        else:
            ssl = (self._ssl if self._ssl is not None else True) if kind == "tls" else None
            making = loop.create_connection(
                lambda: SocketPipe(session), address[0], address[1], ssl=ssl
            )
        await asyncio.wait_for(making, self._timeout)
        return session

    def __await__(self) -> Generator[Any, None, Session]:
        return self._connect().__await__()

    async def __aenter__(self) -> Session:
        self._session = await self._connect()
        return self._session

    async def __aexit__(self, *error: object) -> None:
        assert self._session is not None
        await self._session.__aexit__(*error)


def connect(
    url: str, *, bootstrap: Any = None, ssl: ssl_module.SSLContext | None = None,
    timeout: float | None = None, **options: Any,
) -> _Connecting:
    """A session with the vat at a url: `async with capnwire.connect("tcp://host:port") as session`.

    `bootstrap` is what this side offers to the other.
    """
    return _Connecting(url, ssl, timeout, {"bootstrap": bootstrap, **options})


class Listener:
    """Serves an object to whoever connects."""

    def __init__(self, implementation: Any, options: dict[str, Any]) -> None:
        self._implementation, self._options = implementation, options
        self._server: Any = None
        self._sessions: set[Session] = set()
        self.addresses: list[str] = []

    def _accepted(self, pipe: SocketPipe, transport: Any) -> Session:
        session = Session(self._implementation, **self._options)
        self._sessions.add(session)
        return session

    async def _listen(self, url: str, ssl: Any) -> Listener:
        kind, address = _parse(url)
        loop = asyncio.get_running_loop()
        if kind == "unix":
            self._server = await loop.create_unix_server(lambda: SocketPipe(None, self), address)
            self.addresses = [f"unix:{address}"]
            return self
        self._server = await loop.create_server(
            lambda: SocketPipe(None, self), address[0] or None, address[1],
            ssl=ssl if kind == "tls" else None,
        )
        for socket in self._server.sockets:
            host, port = socket.getsockname()[:2]
            self.addresses.append(
                f"{kind}://[{host}]:{port}" if ":" in host else f"{kind}://{host}:{port}"
            )
        return self

    @property
    def sessions(self) -> list[Session]:
        """The sessions that are open."""
        return [session for session in self._sessions if not session.is_closed]

    async def close(self, *, drain: float | None = None) -> None:
        """Listen no more and end all sessions, after up to `drain` seconds for running calls."""
        self._server.close()
        sessions = list(self._sessions)
        if drain is not None and sessions:
            await asyncio.gather(*(session.drain(drain) for session in sessions))
        for session in sessions:
            session.close()
        for session in sessions:
            await session.wait_closed()
        await self._server.wait_closed()

    async def __aenter__(self) -> Listener:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Serving:
    def __init__(self, listener: Listener, url: str, ssl: Any) -> None:
        self._listener, self._url, self._ssl = listener, url, ssl

    def __await__(self) -> Generator[Any, None, Listener]:
        return self._listener._listen(self._url, self._ssl).__await__()

    async def __aenter__(self) -> Listener:
        return await self._listener._listen(self._url, self._ssl)

    async def __aexit__(self, *error: object) -> None:
        await self._listener.__aexit__(*error)


def serve(
    implementation: Any, url: str, *, ssl: ssl_module.SSLContext | None = None, **options: Any
) -> _Serving:
    """Serve an object at a url: `async with capnwire.serve(Impl(), "tcp://localhost:0") as server`.

    `implementation` is an instance of a server class, a capability, or a function that gets the
    address of each client and gives one.
    """
    return _Serving(Listener(implementation, options), url, ssl)


class _MemoryPipe:
    """One end of a pair in memory."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.other: _MemoryPipe
        self.inbox: list[Any] = []
        self.busy = self.ended = False

    def write(self, chunks: list[Any]) -> None:
        other = self.other
        other.inbox += chunks
        if not other.busy:
            other.deliver()

    def deliver(self) -> None:
        self.busy = True
        try:
            while self.inbox:
                chunks, self.inbox = self.inbox, []
                for chunk in chunks:
                    self.session.connection.receive_data(chunk)
                self.session.flush()
            if self.ended:
                self.session.lost()
        finally:
            self.busy = False

    def close(self) -> None:
        other = self.other
        if not other.ended:
            other.ended = True
            if not other.busy:
                other.deliver()

    async def wait_closed(self) -> None:
        return


def pipe_pair(
    left: Any = None, right: Any = None, **options: Any
) -> tuple[Session, Session]:
    """Two sessions joined in memory; each offers its bootstrap to the other."""
    options.setdefault("tail_calls", True)
    first = Session(left, peer="memory", **options)
    second = Session(right, peer="memory", **options)
    one, two = _MemoryPipe(first), _MemoryPipe(second)
    one.other, two.other = two, one
    first.attach(one)
    second.attach(two)
    return first, second
