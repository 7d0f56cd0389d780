"""What carries a session's bytes: sockets, asyncio streams, memory."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from capnwire.aio.runtime import READ_BYTES
from capnwire.errors import DecodeError
from capnwire.wire.packed import PackedDecoder, pack_segments

if TYPE_CHECKING:
    from collections.abc import Callable

    from capnwire.aio.session import Session

__all__ = ["MemoryPipe", "SocketPipe", "StreamPipe"]

UNTAKEN_BYTES = 16 * 1024 * 1024


class SocketPipe(asyncio.BufferedProtocol):
    """An asyncio transport under a session.

    Reading stops while the peer takes none of the answers that it asked for.  Calls of our own that
    wait to be taken don't count: their answers must get in for the peer to go on.
    """

    def __init__(
        self, accept: Callable[[SocketPipe, Any], Session],
        ended: Callable[[Session], None] | None = None,
    ) -> None:
        self._accept, self._ended = accept, ended
        self.session: Session
        self.transport: Any = None
        self.timer: asyncio.TimerHandle | None = None
        self.paused = self.holding = False
        self.answered = self.written = self.taken = 0
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        """The transport is there."""
        self.transport = transport
        self.session = self._accept(self, transport)
        self.session.connection.peer = peer_of(transport)
        self.session.attach(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the transport puts what comes; it is copied out before anything else is read."""
        return self.session.runtime.inbox

    def buffer_updated(self, size: int) -> None:
        """So many bytes have come."""
        self.session.received(bytes(self.session.runtime.inbox[:size]))

    def eof_received(self) -> bool:
        """The peer will send nothing more."""
        self.session.lost()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The transport is gone."""
        self.session.lost(error)
        if self.timer is not None:
            self.timer.cancel()
        if not self.gone.done():
            self.gone.set_result(None)
        if self._ended is not None:
            self._ended(self.session)

    def pause_writing(self) -> None:
        """The peer takes no output for now."""
        self.paused = True
        self.answered = self.session.connection.bytes_answered
        self.wait_for_peer()

    def resume_writing(self) -> None:
        """The peer takes output again."""
        self.paused = False
        if self.transport.is_closing():
            return
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.holding:
            self.holding = False
            self.transport.resume_reading()

    def wait_for_peer(self) -> None:
        """Give the peer `write_timeout` to take anything."""
        timeout = self.session.write_timeout
        if timeout is not None:
            self.taken = self.written - self.transport.get_write_buffer_size()
            self.timer = self.session.loop.call_later(timeout, self.stuck)

    def stuck(self) -> None:
        """The time is over."""
        took_some = self.written - self.transport.get_write_buffer_size() > self.taken
        if took_some and not self.session.is_closed:
            self.wait_for_peer()
            return
        self.timer = None
        self.session.connection.close(no_output(self.session))
        self.transport.abort()

    def write(self, chunks: list[Any]) -> None:
        """Send buffers."""
        self.written += sum(map(len, chunks))
        write_all(self.transport, chunks)
        if self.paused and not self.holding:
            answered = self.session.connection.bytes_answered
            if answered - self.answered > UNTAKEN_BYTES and not self.transport.is_closing():
                self.holding = True
                self.transport.pause_reading()

    def close(self) -> None:
        """Close once everything is sent, or `write_timeout` is over."""
        self.transport.close()
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if self.transport.get_write_buffer_size():
            self.wait_for_peer()

    async def wait_closed(self) -> None:
        """Wait until all is closed."""
        await asyncio.shield(self.gone)


def write_all(transport: Any, chunks: list[Any]) -> None:
    """Write buffers; the last one by `write`.

    `writelines` of Python 3.12 and 3.13 never pauses its protocol.
    """
    if len(chunks) > 1:
        transport.writelines(chunks[:-1])
    transport.write(chunks[-1])


def no_output(session: Session) -> str:
    """Why a session is given up."""
    return f"the peer has taken no output for {session.write_timeout} seconds"


def peer_of(transport: Any) -> Any:
    """The address of the other side; of a Unix socket, the path that it was made with."""
    return transport.get_extra_info("peername") or transport.get_extra_info("sockname")


class MemoryPipe:
    """One end of a pair in memory: what is written arrives within the call."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.other: MemoryPipe
        self.inbox: deque[Any] = deque()
        self.busy = self.ended = False

    def write(self, chunks: list[Any]) -> None:
        """Send buffers."""
        other = self.other
        other.inbox += chunks
        if not other.busy:
            other.deliver()

    def deliver(self) -> None:
        """Let what was written arrive."""
        if self.session.connection.is_receiving:
            self.session.loop.call_soon(self.deliver)
            return
        self.busy = True
        try:
            while self.inbox:
                while self.inbox:
                    self.session.connection.receive_data(self.inbox.popleft())
                self.session.flush()
        finally:
            self.busy = False
            if self.inbox:  # a method has left the loop
                self.session.loop.call_soon(self.deliver)
        if self.ended:
            self.session.lost()

    def close(self) -> None:
        """Close once everything is sent."""
        other = self.other
        if not other.ended:
            other.ended = True
            self.session.loop.call_soon(other.deliver)

    async def wait_closed(self) -> None:
        """Wait until all is closed."""
        return


class StreamPipe:
    """A pair of asyncio streams, packed or not: also the pipes of a subprocess."""

    def __init__(
        self, session: Session, reader: asyncio.StreamReader, writer: Any, packed: bool
    ) -> None:
        self.session, self.reader, self.writer = session, reader, writer
        self.answered = self.written = 0
        self.decoder = (
            PackedDecoder(
                segment_limit=0x10000, message_limit_words=session.connection.message_limit_words
            ) if packed else None
        )
        self.task = session.loop.create_task(self.read())
        session.runtime.keep(self.task)

    async def read(self) -> None:
        """Read until the end of the stream."""
        error: BaseException | None = None
        try:
            while data := await self.reader.read(READ_BYTES):
                self.take(data)
                if self.session.is_closed:
                    return
                if not await self.are_taken():
                    self.session.connection.close(no_output(self.session))
                    self.writer.transport.abort()
                    return
        except asyncio.CancelledError:
            pass
        except (OSError, EOFError) as found:
            error = found
        except BaseException as found:  # of a method that leaves the loop: nobody reads any more
            self.session.lost(found)
            raise
        self.session.lost(error)

    async def are_taken(self) -> bool:
        """Wait while the peer takes none of the answers that it asked for; not for ever."""
        answered = self.session.connection.bytes_answered
        waiting = self.writer.transport.get_write_buffer_size
        if waiting() == 0:
            self.answered = answered
        if answered - self.answered <= UNTAKEN_BYTES:
            return True
        while True:
            taken = self.written - waiting()
            try:
                await asyncio.wait_for(self.writer.drain(), self.session.write_timeout)
            except asyncio.TimeoutError:
                if self.written - waiting() <= taken:
                    return False
            else:
                self.answered = answered
                return True

    def take(self, data: bytes) -> None:
        """Hand on what came; packed bytes that are no messages end the connection."""
        if self.decoder is None:
            self.session.received(data)
            return
        try:
            self.decoder.feed(data)
            for message in self.decoder:
                self.session.received(message)
        except DecodeError as error:
            self.session.abort(f"a packed message cannot be read: {error}")

    def write(self, chunks: list[Any]) -> None:
        """Send buffers."""
        if self.decoder is not None:
            chunks = [packed_frames(b"".join(chunks))]
        self.written += sum(map(len, chunks))
        write_all(self.writer, chunks)

    def close(self) -> None:
        """Close once everything is sent, or `write_timeout` is over."""
        self.writer.close()
        self.task.cancel()
        timeout = self.session.write_timeout
        if timeout is not None and self.writer.transport.get_write_buffer_size():
            self.session.loop.call_later(timeout, self.give_up)

    def give_up(self) -> None:
        """The time is over."""
        if self.writer.transport.get_write_buffer_size():
            self.writer.transport.abort()

    async def wait_closed(self) -> None:
        """Wait until all is closed."""
        await asyncio.wait([self.task])
        wait = getattr(self.writer, "wait_closed", None)
        if wait is not None:
            timeout = self.session.write_timeout
            try:
                await asyncio.wait_for(wait(), timeout)
            except asyncio.TimeoutError:
                self.writer.transport.abort()
            except OSError:
                pass


def packed_frames(data: bytes) -> bytes:
    """Framed messages, each packed by itself: no run crosses the end of one."""
    packed = []
    view = memoryview(data)
    while view:
        count = int.from_bytes(view[:4], "little") + 1
        at = (count + 2) // 2 * 8
        segments = []
        for i in range(count):
            size = int.from_bytes(view[4 + 4 * i : 8 + 4 * i], "little") * 8
            segments.append(view[at : at + size])
            at += size
        packed.append(pack_segments(segments))
        view = view[at:]
    return b"".join(packed)
