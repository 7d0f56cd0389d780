"""The pycapnp server: `server.py [--limit-words N] address`.

Prints its address and serves until its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import capnp
from common import Counting, Gate, Level, die_with_parent, options, peer, split


class Collecting(peer.Sink.Server):
    def __init__(self) -> None:
        self._writes, self._total, self._in_order = 0, 0, True
        self._error: Exception | None = None

    async def write(self, index: int, bytes: bytes, **_: Any) -> None:
        if not bytes:
            self._error = ValueError("empty block")
        if self._error is not None:  # by hand, for here a streaming call is a call like others
            raise self._error
        self._in_order = self._in_order and index == self._writes
        self._writes += 1
        self._total += len(bytes)

    async def done(self, **_: Any) -> tuple[int, int, bool]:
        if self._error is not None:
            raise self._error
        return self._writes, self._total, self._in_order


class Serving(peer.Peer.Server):
    def __init__(self) -> None:
        self._blocked, self._alive = Level(), Level()
        self._held: Any = None
        self._late: list[Gate] = []

    async def echoInt(self, value: int, **_: Any) -> int:
        return value

    async def echoText(self, value: str, **_: Any) -> str:
        return value

    async def echoData(self, value: bytes, **_: Any) -> bytes:
        return value

    async def measure(self, value: bytes, **_: Any) -> int:
        return len(value)

    async def big(self, bytes: int, **_: Any) -> Any:
        return (b"".join(map(_byte, range(251))) * (bytes // 251 + 1))[:bytes]

    async def fail(self, kind: Any, text: str, **_: Any) -> None:
        raise capnp.KjException(text, type=str(kind).upper())

    async def getNamed(self, name: str, **_: Any) -> Counting:
        return Counting(self._alive, name)

    async def getNested(self, name: str, _context: Any, **_: Any) -> None:
        outer = _context.results.init("outer")
        outer.pad = "x"
        outer.inner.pad = "x"
        outer.inner.named = Counting(self._alive, name)

    async def echoCounter(self, _context: Any, **_: Any) -> None:
        if _context.params._has("counter"):
            _context.results.counter = _context.params.counter

    async def callBack(self, callback: Any, times: int, **_: Any) -> int:
        total = 0
        for value in range(times):
            total += (await callback.call(value)).value
        return total

    async def forward(self, callback: Any, value: int, _context: Any, **_: Any) -> None:
        # By hand, for a tail call back to the caller aborts this process.
        called = await callback.call(value)
        _context.results.value = called.value
        if called._has("counter"):
            _context.results.counter = called.counter

    async def hold(self, _context: Any, **_: Any) -> None:
        params = _context.params
        self._held = params.counter if params._has("counter") else None

    async def held(self, _context: Any, **_: Any) -> None:
        if self._held is not None:
            _context.results.counter = self._held

    async def callHeld(self, **_: Any) -> int:
        if self._held is None:
            raise ValueError("nothing is held")
        return (await self._held.next()).value

    async def drop(self, **_: Any) -> None:
        self._held = None

    async def late(self, **_: Any) -> Any:
        self._late.append(Gate())
        return self._late[-1].promise

    async def resolveLate(self, how: Any, **_: Any) -> None:
        gates, self._late = self._late, []
        for gate in gates:
            if how == "fresh":
                await gate.fulfill(Counting(self._alive))
            elif how == "held":
                await gate.fulfill(self._held)
            else:
                await gate.reject("late broke")

    async def block(self, **_: Any) -> None:
        self._blocked.add(1)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._blocked.add(-1)

    async def waitBlocked(self, count: int, **_: Any) -> None:
        await self._blocked.until(count)

    async def waitAlive(self, count: int, **_: Any) -> None:
        await self._alive.until(count)

    async def openSink(self, **_: Any) -> Collecting:
        return Collecting()

    async def quit(self, **_: Any) -> None:
        os._exit(0)


def _byte(value: int) -> bytes:
    return bytes([value])


async def main() -> None:
    given = options()
    serving = Serving()

    async def connected(stream: Any) -> None:
        server = capnp.TwoPartyServer(
            stream, bootstrap=serving, traversal_limit_in_words=given.limit_words
        )
        await server.on_disconnect()

    place = split(given.address)
    if isinstance(place, str):
        listener = await capnp.AsyncIoStream.create_unix_server(connected, place)
        print(f"unix:{place}", flush=True)
    else:
        listener = await capnp.AsyncIoStream.create_server(connected, *place)
        host, port = listener.sockets[0].getsockname()
        print(f"tcp://{host}:{port}", flush=True)
    die_with_parent()
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(capnp.run(main()))
