"""A pycapnp process that serves, or uses, what `data/service.capnp` describes.

`python pycapnp_peer.py serve|use tcp|unix ADDRESS`; a server prints its port (or "ready").
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import capnp

capnp.remove_import_hook()
TESTS = Path(__file__).parents[1]
SCHEMA = capnp.load(
    str(TESTS / "aio/data/service.capnp"), imports=[str(TESTS.parent / "capnwire/std")]
)


class Counter(SCHEMA.Counter.Server):
    def __init__(self, start: int) -> None:
        self.value = start

    async def next(self, **_: Any) -> int:
        self.value += 1
        return self.value

    async def child(self, **_: Any) -> Any:
        return Counter(self.value + 100)


class Double(SCHEMA.Operation.Server):
    async def run(self, value: int, **_: Any) -> int:
        return value * 2


class Calculator(SCHEMA.Calculator.Server):
    def __init__(self) -> None:
        self.cancelled = 0
        self.gate = asyncio.Event()

    async def add(self, left: int, right: int, **_: Any) -> int:
        return left + right

    async def divide(self, left: int, right: int, **_: Any) -> Any:
        return divmod(left, right)

    async def counter(self, start: int, **_: Any) -> Any:
        return Counter(start)

    async def apply(self, operation: Any, times: int, **_: Any) -> int:
        value = 1
        for _ in range(times):
            value = (await operation.run(value)).value
        return value

    async def fail(self, kind: str, text: str, **_: Any) -> None:
        raise ValueError(text)

    async def wait(self, **_: Any) -> Any:
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return Counter(1000)

    async def same(self, object: Any, **_: Any) -> Any:
        return object

    async def blob(self, data: bytes, **_: Any) -> bytes:
        return data

    async def order(self, tag: str, slow: bool, **_: Any) -> None:
        self.gate.set()

    async def peer(self, **_: Any) -> str:
        return str(self.cancelled)


async def serve(kind: str, address: str) -> None:
    async def accept(stream: Any) -> None:
        await capnp.TwoPartyServer(stream, bootstrap=Calculator()).on_disconnect()

    if kind == "unix":
        server = await capnp.AsyncIoStream.create_unix_server(accept, address)
        print("ready", flush=True)
    else:
        server = await capnp.AsyncIoStream.create_server(accept, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


async def use(kind: str, address: str) -> None:
    if kind == "unix":
        stream = await capnp.AsyncIoStream.create_unix_connection(address)
    else:
        stream = await capnp.AsyncIoStream.create_connection("127.0.0.1", int(address))
    client = capnp.TwoPartyClient(stream)
    calculator = client.bootstrap().cast_as(SCHEMA.Calculator)
    assert (await calculator.add(1, 2)).value == 3
    found = await asyncio.gather(*(calculator.add(n, n) for n in range(300)))
    assert [results.value for results in found] == [2 * n for n in range(300)]
    results = await calculator.divide(17, 5)
    assert (results.quotient, results.rest) == (3, 2)
    counter = calculator.counter(1).counter
    assert (await counter.next()).value == 2
    assert (await calculator.counter(1).counter.child().counter.next()).value == 102
    assert (await calculator.apply(Double(), 5)).value == 32
    mine = Counter(7)
    same = (await calculator.same(mine)).object
    assert (await same.next()).value == 8
    early = calculator.same(mine).object
    assert [(await early.next()).value for _ in range(3)] == [9, 10, 11]
    theirs = (await calculator.same(counter)).object
    assert (await theirs.next()).value == 3
    data = bytes(range(256)) * 8192
    assert (await calculator.blob(data)).data == data
    for kind_name, expected in (("", "FAILED"), ("OVERLOADED", "OVERLOADED")):
        found = await failure(calculator.fail(kind_name, "no luck"))
        assert "no luck" in found.description
        assert found.type == expected, found.type
    assert (await failure(calculator.unserved())).type == "UNIMPLEMENTED"
    waiting = calculator.wait()
    late = waiting.result.next()
    task = asyncio.ensure_future(hold(calculator.wait()))
    await calculator.add(1, 1)
    task.cancel()
    await asyncio.wait([task])
    await calculator.order("open", False)
    assert (await late).value == 1001
    print("done", flush=True)


async def failure(promise: Any) -> Any:
    try:
        await promise
    except capnp.KjException as error:
        return error
    raise AssertionError("it should have failed")


async def hold(promise: Any) -> Any:
    return await promise


if __name__ == "__main__":
    what, kind, address = sys.argv[1:]
    asyncio.run(capnp.run({"serve": serve, "use": use}[what](kind, address)))
