"""The objects that the tests of sessions serve, and a transport that they hold up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import capnwire
from capnwire.errors import RemoteError

DATA = Path(__file__).parent / "data"
SCHEMA = capnwire.load(DATA / "service.capnp")


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine; two minutes are for ever."""
    async def limited() -> None:
        await asyncio.wait_for(coroutine, 120)

    asyncio.run(limited())


class Counter(SCHEMA.Counter.Server):
    """Counts."""

    def __init__(self, start: int = 0) -> None:
        self.value = start

    def next(self) -> int:
        self.value += 1
        return self.value

    async def child(self) -> Any:
        return Counter(self.value + 100)


class Loud(SCHEMA.LoudCounter.Server):
    """Inherits two interfaces."""

    def next(self) -> int:
        return 7

    def name(self) -> str:
        return "loud"

    def shout(self) -> str:
        return "HEY"


class Double(SCHEMA.Operation.Server):
    """An operation that a client serves."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    async def run(self, value: int) -> int:
        self.seen.append(value)
        return value * 2


class Calculator(SCHEMA.Calculator.Server):
    """The bootstrap object."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.gate = asyncio.Event()
        self.log: list[str] = []

    def add(self, left: int, right: int) -> int:
        return left + right

    async def divide(self, left: int, right: int) -> Any:
        return divmod(left, right)

    def counter(self, start: int) -> Any:
        return {"counter": Counter(start)}

    async def apply(self, operation: Any, times: int) -> int:
        value = 1
        for _ in range(times):
            value = (await operation.run(value)).value
        return value

    def fail(self, kind: str, text: str) -> None:
        if kind == "NotImplementedError":
            raise NotImplementedError(text)
        if kind:
            raise RemoteError(text, kind=kind)
        raise ValueError(text)

    async def wait(self) -> Any:
        self.started.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return Counter(1000)

    def nested(self, context: Any) -> None:
        inner = context.results.outer.inner
        inner.counter = Counter(50)
        inner.name = "x"

    def same(self, object: Any) -> Any:
        return object

    def stamp(self, params: Any) -> Any:
        return SCHEMA.Stamp.new_message(text=params.text + "!", number=params.number + 1)

    def peer(self, _context: Any) -> str:
        return repr(_context.peer)

    def any(self, value: Any) -> Any:
        return value

    def blob(self, data: bytes) -> bytes:
        return data

    def order(self, tag: str, slow: bool) -> Any:
        if slow:
            return self._slow(tag)
        self.log.append(tag)
        return None

    async def _slow(self, tag: str) -> None:
        self.log.append(tag)
        await asyncio.sleep(0)

    async def later(self, tag: str) -> None:
        self.log.append(tag)
        await asyncio.sleep(0)

    async def list(self, counters: Any) -> Any:
        total = sum([(await counter.next()).value for counter in counters])
        return {"counters": list(counters), "total": total}


class Sink(SCHEMA.Sink.Server):
    """Takes a stream; sees how many calls of it run at once."""

    def __init__(self) -> None:
        self.bytes = self.running = self.most = 0
        self.gate: asyncio.Event | None = None

    async def write(self, data: bytes) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        if data == b"bad":
            self.running -= 1
            raise RemoteError("full", kind="OVERLOADED")
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)
        self.bytes += len(data)
        self.running -= 1

    def done(self) -> Any:
        return self.bytes, self.most


class HeldTransport:
    """A transport whose peer takes only what a test lets it take."""

    def __init__(self) -> None:
        self.size = 0
        self.closed = self.aborted = False

    def get_extra_info(self, name: str) -> str:
        return name

    def get_write_buffer_size(self) -> int:
        return self.size

    def writelines(self, chunks: list[Any]) -> None:
        self.size += sum(map(len, chunks))

    def write(self, chunk: Any) -> None:
        self.size += len(chunk)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True
