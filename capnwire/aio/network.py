"""Connecting and listening: TCP, TLS, Unix sockets, streams, pairs in memory."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from capnwire.aio.session import Session
from capnwire.aio.transports import MemoryPipe, SocketPipe, StreamPipe

if TYPE_CHECKING:
    import ssl as ssl_module
    from collections.abc import Generator

__all__ = ["Listener", "connect", "memory_pair", "over_stdio", "over_streams", "serve"]


def parse(url: str) -> tuple[str, Any]:
    """The kind of a url (tcp, tls or unix) and its address.

    Raises:
        ValueError: it is none of these.
    """
    if url.startswith("unix:"):
        path = url[5:]
        path = path[2:] if path.startswith("//") else path
        if path:
            return "unix", path
    else:
        parts = urlsplit(url)
        if parts.scheme in ("tcp", "tls") and parts.port is not None:
            return parts.scheme, (parts.hostname or "", parts.port)
    raise ValueError(f"{url!r} is none of tcp://host:port, tls://host:port and unix:path")


class Connecting:
    """What `connect` gives: `async with` it, or await it for the session."""

    def __init__(self, url: str, ssl: Any, timeout: float | None, options: dict[str, Any]) -> None:
        self._kind, self._address = parse(url)
        self._ssl, self._timeout, self._options = ssl, timeout, options
        self._session: Session | None = None

    async def _connect(self) -> Session:
        loop = asyncio.get_running_loop()
        session = Session(**self._options)

        def protocol() -> SocketPipe:
            return SocketPipe(lambda pipe, transport: session)

        if self._kind == "unix":
            making = loop.create_unix_connection(protocol, self._address)
        else:
            host, port = self._address
            ssl = (True if self._ssl is None else self._ssl) if self._kind == "tls" else None
            making = loop.create_connection(protocol, host, port, ssl=ssl)
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
) -> Connecting:
    """Connect to the vat at a url: `async with capnwire.connect("tcp://host:port") as session`.

    The url is tcp://host:port, tls://host:port (`ssl` may give the context) or unix:path;
    `timeout` is for connecting.  `bootstrap` and the other options are those of `Session`.

    Raises:
        ValueError: the url is none of these.
    """
    return Connecting(url, ssl, timeout, {"bootstrap": bootstrap, **options})


class Listener:
    """Serves an object to whoever connects; `addresses` are urls to connect to."""

    def __init__(self, implementation: Any, options: dict[str, Any]) -> None:
        self._implementation, self._options = implementation, options
        self._server: Any = None
        self._sessions: set[Session] = set()
        self._closed = False
        self.addresses: list[str] = []

    def _accept(self, pipe: SocketPipe, transport: Any) -> Session:
        session = Session(self._implementation, **self._options)
        self._sessions.add(session)
        if self._closed:  # it was on its way: nobody else would end it
            session.close()
        return session

    def _protocol(self) -> SocketPipe:
        return SocketPipe(self._accept, self._sessions.discard)

    async def _listen(self, kind: str, address: Any, ssl: Any) -> Listener:
        loop = asyncio.get_running_loop()
        # What no session takes is refused here, not when the first client comes.
        Session(self._implementation, **self._options).close()
        if kind == "unix":
            self._server = await loop.create_unix_server(self._protocol, address)
            self.addresses = [f"unix:{address}"]
            return self
        self._server = await loop.create_server(
            self._protocol, address[0] or None, address[1], ssl=ssl
        )
        for socket in self._server.sockets:
            host, port = socket.getsockname()[:2]
            self.addresses.append(f"{kind}://{f'[{host}]' if ':' in host else host}:{port}")
        return self

    @property
    def sessions(self) -> list[Session]:
        """The sessions that are open."""
        return [session for session in self._sessions if not session.is_closed]

    async def close(self, *, drain: float | None = None) -> None:
        """Listen no more and end all sessions, after up to `drain` seconds for running calls."""
        self._closed = True
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


class Serving:
    """What `serve` gives: `async with` it, or await it for the listener."""

    def __init__(self, listener: Listener, url: str, ssl: Any) -> None:
        self._listener, self._ssl = listener, ssl
        self._kind, self._address = parse(url)
        if (self._kind == "tls") != (ssl is not None):
            raise ValueError("a tls:// url needs `ssl`, an SSLContext; only such a url takes it")

    def __await__(self) -> Generator[Any, None, Listener]:
        return self._listener._listen(self._kind, self._address, self._ssl).__await__()

    async def __aenter__(self) -> Listener:
        return await self

    async def __aexit__(self, *error: object) -> None:
        await self._listener.__aexit__(*error)


def serve(
    implementation: Any, url: str, *, ssl: ssl_module.SSLContext | None = None, **options: Any
) -> Serving:
    """Serve an object at a url: `async with capnwire.serve(Impl(), "tcp://localhost:0") as server`.

    `implementation` is an instance of a server class, a capability, or a function that gets each
    client's address and gives one.  The options are those of `Session`, for every client.

    Raises:
        ValueError: the url is none of tcp://, tls:// and unix:.
    """
    return Serving(Listener(implementation, options), url, ssl)


def memory_pair(left: Any = None, right: Any = None, **options: Any) -> tuple[Session, Session]:
    """Two sessions joined in memory; each offers its object to the other."""
    options.setdefault("tail_calls", True)
    first = Session(left, peer="memory", **options)
    second = Session(right, peer="memory", **options)
    one, two = MemoryPipe(first), MemoryPipe(second)
    one.other, two.other = two, one
    first.attach(one)
    second.attach(two)
    return first, second


def over_streams(
    reader: asyncio.StreamReader, writer: Any, bootstrap: Any = None, *, packed: bool = False,
    **options: Any,
) -> Session:
    """A session over a pair of asyncio streams, such as the pipes of a subprocess.

    With `packed`, both directions are packed.
    """
    options.setdefault("peer", writer.get_extra_info("peername", None))
    session = Session(bootstrap, **options)
    session.attach(StreamPipe(session, reader, writer, packed))
    return session


async def over_stdio(bootstrap: Any = None, *, packed: bool = False, **options: Any) -> Session:
    """A session over standard input and output: for the program that a peer has started."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, sys.stdout.buffer
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    return over_streams(reader, writer, bootstrap, packed=packed, peer="stdio", **options)
