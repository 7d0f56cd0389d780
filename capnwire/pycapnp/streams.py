"""Streams and the KJ loop of pycapnp's programs, over asyncio.

The loop is an attribute `_kj_loop` of the asyncio loop: it says when calls may be made, and ends
what is open when it is left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, ref

from capnwire.aio.runtime import runtime_of
from capnwire.aio.session import Session
from capnwire.aio.transports import write_all
from capnwire.errors import KjException, TruncatedError
from capnwire.message import files as native
from capnwire.wire.framing import FrameDecoder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from capnwire.pycapnp._face import _DynamicStructReader
    from capnwire.pycapnp.modules import _StructModule

__all__ = [
    "AsyncIoStream", "_AsyncIoStream", "_EventLoop", "current_loop", "kj_loop", "open_session",
    "read_async", "run", "write_message",
]

NOT_RUNNING = (
    "The KJ event-loop is not running (on this thread). Please start it through 'capnp.kj_loop()'"
)
MOST_WAITING = 1 << 20


# ------------------------------------------------------------------ the loop


class _EventLoop:
    """What is open while the KJ loop runs on an asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.promises: WeakSet[Any] = WeakSet()
        self.sessions: WeakSet[_StreamSession] = WeakSet()
        self.streams: WeakSet[_AsyncIoStream] = WeakSet()
        self.is_running = True

    def leave(self) -> None:
        """End everything that is open."""
        self.is_running = False
        for promise in list(self.promises):
            promise.break_off()
        for session in list(self.sessions):
            session.leave()
        for stream in list(self.streams):
            stream.close()


def current_loop() -> _EventLoop:
    """The KJ loop of the running asyncio loop.

    Raises:
        RuntimeError: it is not running.
    """
    try:
        found: _EventLoop = asyncio.get_running_loop()._kj_loop  # type: ignore[attr-defined]
    except (RuntimeError, AttributeError):
        raise RuntimeError(NOT_RUNNING) from None
    return found


class kj_loop:
    """`async with kj_loop():` calls can be made inside; leaving it ends what is open."""

    _entered: _EventLoop

    async def __aenter__(self) -> None:
        loop: Any = asyncio.get_running_loop()
        if hasattr(loop, "_kj_loop"):
            raise RuntimeError("The KJ event-loop is already running (on this thread).")
        self._entered = loop._kj_loop = _EventLoop(loop)

    async def __aexit__(self, *_: object) -> None:
        entered = self._entered
        loop: Any = entered.loop
        if getattr(loop, "_kj_loop", None) is entered:
            del loop._kj_loop
        entered.leave()


async def run(coro: Awaitable[Any]) -> Any:
    """Await something within the KJ loop: `asyncio.run(capnp.run(main()))`."""
    async with kj_loop():
        return await coro


# ------------------------------------------------------------------ streams


class _Protocol(asyncio.BufferedProtocol):
    """What a transport knows of a stream: not so much that it would keep it."""

    def __init__(self, kj: _EventLoop, connected: Callable[[_AsyncIoStream], None] | None) -> None:
        self._opening: _AsyncIoStream | None = _AsyncIoStream(kj)
        self._stream = ref(self._opening)
        self._connected = connected
        self._inbox = runtime_of(kj.loop).inbox

    def take(self) -> _AsyncIoStream:
        """The stream, which from now on lives as long as the program holds it."""
        stream, self._opening = self._opening, None
        assert stream is not None
        return stream

    def connection_made(self, transport: Any) -> None:
        assert self._opening is not None
        self._opening.opened(transport)
        if self._connected is not None:
            self._connected(self.take())

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._inbox

    def buffer_updated(self, size: int) -> None:
        stream = self._stream()
        if stream is not None:
            stream.received(bytes(self._inbox[:size]))

    def eof_received(self) -> bool:
        stream = self._stream()
        if stream is not None:
            stream.ended()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        stream = self._stream()
        if stream is not None:
            stream.lost(error)

    def pause_writing(self) -> None:
        stream = self._stream()
        if stream is not None:
            stream.full = True

    def resume_writing(self) -> None:
        stream = self._stream()
        if stream is not None:
            stream.resume_writing()


class _AsyncIoStream:
    """A connected stream, for messages or for calls; closed when nobody holds it any more."""

    @staticmethod
    async def create_connection(
        host: str | None = None, port: Any = None, **kwargs: Any
    ) -> _AsyncIoStream:
        """A stream connected over TCP, TLS (`ssl=`) or a given socket (`sock=`)."""
        kj = current_loop()
        _, made = await kj.loop.create_connection(
            lambda: _Protocol(kj, None), host, port, **kwargs
        )
        return made.take()

    @staticmethod
    async def create_unix_connection(path: Any = None, **kwargs: Any) -> _AsyncIoStream:
        """A stream connected to a Unix socket."""
        kj = current_loop()
        _, made = await kj.loop.create_unix_connection(
            lambda: _Protocol(kj, None), path, **kwargs
        )
        return made.take()

    @staticmethod
    async def create_server(
        callback: Callable[[_AsyncIoStream], Any], host: Any = None, port: Any = None,
        **kwargs: Any,
    ) -> Any:
        """An asyncio server; `callback(stream)` runs for each connection, as a task if async.

        The stream is closed when such a task ends.
        """
        kj = current_loop()
        return await kj.loop.create_server(_acceptor(kj, callback), host, port, **kwargs)

    @staticmethod
    async def create_unix_server(
        callback: Callable[[_AsyncIoStream], Any], path: Any = None, **kwargs: Any
    ) -> Any:
        """As `create_server`, at a Unix socket."""
        kj = current_loop()
        return await kj.loop.create_unix_server(_acceptor(kj, callback), path, **kwargs)

    def __init__(self, kj: _EventLoop) -> None:
        self._kj = kj
        self._transport: Any = None
        self._chunks: deque[bytes] = deque()
        self._waiting = 0
        self._paused = self._ended = False
        self._reader: asyncio.Future[None] | None = None
        self._writers: list[asyncio.Future[None]] = []
        self.full = False
        self._session: _StreamSession | None = None
        self._gone = self._kj.loop.create_future()
        self._kj.streams.add(self)

    def __del__(self) -> None:
        if self._transport is not None and not self._ended:
            try:
                self._kj.loop.call_soon_threadsafe(self._transport.close)
            except RuntimeError:
                pass             # the loop is closed, and its transports with it

    # The protocol's half.

    def opened(self, transport: Any) -> None:
        """The connection is there."""
        self._transport = transport

    def received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._session is not None:
            self._session.received(data)
            return
        self._chunks.append(data)
        self._waiting += len(data)
        if self._waiting > MOST_WAITING and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def ended(self) -> None:
        """No more bytes will come."""
        self._ended = True
        if self._session is not None:
            self._session.lost()
        self._wake()

    def lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        self._ended = True
        if self._session is not None:
            self._session.lost(error)
        self._wake()
        self.resume_writing()
        if not self._gone.done():
            self._gone.set_result(None)

    def resume_writing(self) -> None:
        """The transport takes more."""
        self.full = False
        writers, self._writers = self._writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(None)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # The program's half.

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed."""
        await asyncio.shield(self._gone)

    # The session's half: it is its transport.

    def attach(self, session: _StreamSession) -> None:
        """Give everything that comes, and has come, to a session."""
        if self._session is not None:
            raise KjException("this stream is used by another client or server")
        self._session = session
        session.attach(self)
        chunks, self._chunks = self._chunks, deque()
        for chunk in chunks:
            session.received(chunk)
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        if self._ended:
            session.lost()

    def write(self, chunks: list[Any]) -> None:
        """Write a session's output, unless the program has closed the stream under it."""
        if not self._transport.is_closing():
            write_all(self._transport, chunks)

    # Messages.

    async def read(self, size: int) -> bytes:
        """Between 1 and `size` bytes, or b"" at the end."""
        while not self._chunks:
            if self._ended:
                return b""
            if self._reader is not None:
                raise KjException("this stream is being read elsewhere")
            self._reader = self._kj.loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        chunk = self._chunks.popleft()
        if len(chunk) > size:
            self._chunks.appendleft(chunk[size:])
            chunk = chunk[:size]
        self._waiting -= len(chunk)
        if self._paused and self._waiting <= MOST_WAITING // 2:
            self._paused = False
            self._transport.resume_reading()
        return chunk

    async def send(self, data: bytes) -> None:
        """Write bytes, and wait until the transport has taken them."""
        if self._ended or self._transport.is_closing():
            raise KjException("the stream was closed", type="DISCONNECTED")
        self._transport.write(data)
        while self.full and not self._ended:
            writer = self._kj.loop.create_future()
            self._writers.append(writer)
            await writer


AsyncIoStream = _AsyncIoStream


def _acceptor(
    kj: _EventLoop, callback: Callable[[_AsyncIoStream], Any]
) -> Callable[[], _Protocol]:
    tasks: set[Any] = set()

    async def serve(coroutine: Any, stream: _AsyncIoStream) -> None:
        try:
            await coroutine
        finally:
            stream.close()

    def connected(stream: _AsyncIoStream) -> None:
        value = callback(stream)
        if asyncio.iscoroutine(value):
            task = kj.loop.create_task(serve(value, stream))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def accept() -> _Protocol:
        if not kj.is_running:
            raise RuntimeError(NOT_RUNNING)
        return _Protocol(kj, connected)

    return accept


async def read_async(
    kind: _StructModule, stream: _AsyncIoStream, limit: int | None, nesting: int | None
) -> _DynamicStructReader | None:
    """A reader of the next message of a stream, or None at its end."""
    _check(stream)
    decoder = FrameDecoder(message_limit_words=native._limit_words(limit))
    while True:
        message = decoder.next_message()
        if message is not None:
            return kind.from_bytes(message, limit, nesting)
        data = await stream.read(decoder.needed)
        if not data:
            try:
                decoder.finish()
            except TruncatedError as error:
                raise KjException("Premature EOF", type="DISCONNECTED") from error
            return None
        decoder.feed(data)


async def write_message(stream: _AsyncIoStream, data: bytes) -> None:
    """Write a framed message to a stream."""
    _check(stream)
    await stream.send(data)


def _check(stream: Any) -> None:
    current_loop()
    if not isinstance(stream, _AsyncIoStream):
        raise TypeError(f"an AsyncIoStream is wanted, not {type(stream).__name__}")


# ------------------------------------------------------------------ sessions


class _End(asyncio.Future):  # type: ignore[type-arg]
    """The end of a session, which lives as long as somebody waits for it."""

    session: _StreamSession


class _StreamSession(Session):
    """A session over a stream, which the KJ loop ends when it is left."""

    def __init__(self, kj: _EventLoop, bootstrap: Any, limits: dict[str, Any]) -> None:
        super().__init__(bootstrap, **limits)
        self._kj = kj
        self.is_left = False
        kj.sessions.add(self)

    def leave(self) -> None:
        """The KJ loop has ended."""
        self.is_left = True
        self.close()

    def disconnected(self) -> asyncio.Future[None]:
        """A future that is done when the connection has ended, which it keeps open."""
        future = _End(loop=self.loop)
        future.session = self

        def ended(_: object) -> None:
            if not future.done():
                future.set_result(None)

        self.add_disconnect_callback(ended)
        return future

    def _finish(self, error: Any) -> None:
        super()._finish(error)
        self._kj.sessions.discard(self)


def open_session(
    stream: Any, bootstrap: Any, limit: int | None, nesting: int | None
) -> _StreamSession:
    """A session over a stream."""
    kj = current_loop()
    if not isinstance(stream, _AsyncIoStream):
        raise ValueError(f"an AsyncIoStream is wanted, not {type(stream).__name__}")
    limits: dict[str, Any] = {
        "peer": stream._transport.get_extra_info("peername"), "nesting_limit": nesting,
    }
    if limit is not None:
        limits["message_words"] = max(64, min(limit, (1 << 61) - 1))
    session = _StreamSession(kj, bootstrap, limits)
    stream.attach(session)
    return session
