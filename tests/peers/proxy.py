"""A proxy between a client and a server that can spoil what passes, message by message.

Not a test.  A shape takes the messages of one direction and yields what is written instead; raising
`Cut` ends the connection at that point, both ways.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import AsyncIterator, Callable

Shape = Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]]


class Cut(Exception):
    """End the connection here."""


async def messages_of(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Whole messages with their segment tables (encoding.md, Serialization Over a Stream)."""
    while True:
        try:
            head = await reader.readexactly(8)
            segments = struct.unpack_from("<I", head)[0] + 1
            head += await reader.readexactly((segments // 2 * 2) * 4)
            words = sum(struct.unpack_from(f"<{segments}I", head, 4))
            body = await reader.readexactly(words * 8)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        yield head + body


async def unchanged(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for message in messages:
        yield message


async def bytewise(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """One byte at a time."""
    async for message in messages:
        for at in range(len(message)):
            yield message[at : at + 1]


def delayed(rng: random.Random, most_s: float = 0.003) -> Shape:
    """Each message late by a random time, in pieces of random sizes."""

    async def shape(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for message in messages:
            await asyncio.sleep(rng.random() * most_s)
            at = rng.randrange(len(message))
            yield message[:at]
            yield message[at:]

    return shape


def corrupted(rng: random.Random, share: float = 0.2) -> Shape:
    """A random byte of some messages changed."""

    async def shape(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for message in messages:
            spoilt = bytearray(message)
            if rng.random() < share:
                spoilt[rng.randrange(len(spoilt))] ^= rng.randrange(1, 256)
            yield bytes(spoilt)

    return shape


def dropped(rng: random.Random, share: float = 0.2) -> Shape:
    """Some messages left out, whole or in part."""

    async def shape(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for message in messages:
            if rng.random() >= share:
                yield message
            elif rng.random() < 0.5:
                at = rng.randrange(len(message))
                yield message[:at] + message[at + 1 + rng.randrange(len(message) - at) :]

    return shape


def cut_after(count_bytes: int) -> Shape:
    """The connection ends after so many bytes."""

    async def shape(messages: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        left = count_bytes
        async for message in messages:
            yield message[:left]
            left -= len(message)
            if left <= 0:
                raise Cut

    return shape


class Proxy:
    """Listens at `address` and passes each connection on to `target` (tcp:// or unix:)."""

    def __init__(
        self, target: str, *, to_server: Shape = unchanged, to_client: Shape = unchanged,
        on_message: Callable[[], object] = lambda: None,
    ) -> None:
        self._target, self._shapes, self._on_message = target, (to_server, to_client), on_message
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        self._listener = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.address = f"tcp://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listener.wait_closed()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        writers = [writer]
        try:
            far_reader, far_writer = await self._connect()
            writers.append(far_writer)
            ways = [
                asyncio.ensure_future(self._pass(reader, far_writer, self._shapes[0])),
                asyncio.ensure_future(self._pass(far_reader, writer, self._shapes[1])),
            ]
            try:
                done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
                for way in done:
                    way.exception()
            finally:
                for way in ways:
                    way.cancel()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            for each in writers:
                each.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._target.startswith("unix:"):
            return await asyncio.open_unix_connection(self._target[5:])
        host, port = self._target.removeprefix("tcp://").rsplit(":", 1)
        return await asyncio.open_connection(host, int(port))

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, shape: Shape
    ) -> None:
        async for piece in shape(self._noted(reader)):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()

    async def _noted(self, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
        async for message in messages_of(reader):
            yield message
            self._on_message()

