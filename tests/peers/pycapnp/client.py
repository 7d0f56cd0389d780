"""The pycapnp client: `client.py [--limit-words N] address scenario…`.

Runs each scenario on connections of its own and prints one line of JSON for it.  N is the server's
limit.
"""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import Any

import capnp
from common import Counting, Gate, Level, options, peer, split


class Calling(peer.Callback.Server):
    def __init__(self, function: Callable[[int], Awaitable[int]], alive: Level) -> None:
        self._function, self._alive = function, alive

    async def call(self, value: int, _context: Any, **_: Any) -> None:
        _context.results.value = await self._function(value)
        _context.results.counter = Counting(self._alive)


async def connect(address: str) -> tuple[Any, Any, Any]:
    """The stream, the client, which must outlive its use, and the bootstrap object."""
    place = split(address)
    if isinstance(place, str):
        stream = await capnp.AsyncIoStream.create_unix_connection(place)
    else:
        stream = await capnp.AsyncIoStream.create_connection(*place)
    client = capnp.TwoPartyClient(stream)
    return stream, client, client.bootstrap().cast_as(peer.Peer)


def expect_equal(got: object, wanted: object) -> None:
    if got != wanted:
        raise AssertionError(f"got {got!r}, wanted {wanted!r}")


async def expect_order(calls: list[Any]) -> None:
    for i, call in enumerate(calls):
        expect_equal((await call).value, i)


async def expect_failure(call: Any, kind: str, text: str) -> None:
    try:
        await call
    except capnp.KjException as error:
        if error.type != kind or text not in error.description:
            raise AssertionError(f"{error.type}: {error.description}, wanted {kind}") from error
    else:
        raise AssertionError(f"no exception, wanted {kind}: {text}")


class Run:
    def __init__(self, given: Namespace, connection: tuple[Any, Any, Any]) -> None:
        self.given, self.alive = given, Level()
        self.stream, self.client, self.server = connection

    async def echo_int(self) -> None:
        for value in (0, -1, -(2**63), 2**63 - 1):
            expect_equal((await self.server.echoInt(value)).value, value)

    async def echo_text(self) -> None:
        for text in ("", "plain", "Ünïcødé ✓ 😀"):
            expect_equal((await self.server.echoText(text)).value, text)

    async def echo_data(self) -> None:
        for size in (0, 1, 256, 1_000_000):
            data = (bytes(range(256)) * (size // 256 + 1))[:size]
            expect_equal((await self.server.echoData(data)).value == data, True)

    async def burst(self) -> None:
        await expect_order([self.server.echoInt(i) for i in range(1000)])

    async def order(self) -> None:
        named = (await self.server.getNamed("order")).named
        await expect_order([named.next() for _ in range(100)])

    async def pipeline(self) -> None:
        reply = self.server.getNamed("early")
        name, first = reply.named.name(), reply.named.next()
        expect_equal((await name).name, "early")
        expect_equal((await first).value, 0)
        expect_equal((await (await reply).named.next()).value, 1)

    async def pipeline_nested(self) -> None:
        reply = self.server.getNested("deep")
        expect_equal((await reply.outer.inner.named.name()).name, "deep")
        outer = (await reply).outer
        expect_equal((outer.pad, outer.inner.pad), ("x", "x"))

    async def pipeline_failed(self) -> None:
        reply = self.server.fail("failed", "no object")
        await expect_failure(reply.named.next(), "FAILED", "no object")
        await expect_failure(reply, "FAILED", "no object")
        expect_equal((await self.server.echoInt(1)).value, 1)

    async def inheritance(self) -> None:
        counter = (await self.server.getNamed("both")).named.upcast(peer.Counter)
        expect_equal((await counter.next()).value, 0)
        expect_equal((await counter.cast_as(peer.Named).name()).name, "both")

    async def unimplemented(self) -> None:
        call = self.server.cast_as(peer.Stranger).unknown()
        await expect_failure(call, "UNIMPLEMENTED", "")
        expect_equal((await self.server.echoInt(1)).value, 1)

    async def exceptions(self) -> None:
        for kind in ("failed", "overloaded", "disconnected", "unimplemented"):
            await expect_failure(self.server.fail(kind, "ä reason"), kind.upper(), "ä reason")
        expect_equal((await self.server.echoInt(1)).value, 1)

    async def pass_own(self) -> None:
        mine = peer.Named._new_client(Counting(self.alive))
        back = (await self.server.echoCounter(mine)).counter
        expect_equal((await back.next()).value, 0)
        expect_equal((await mine.next()).value, 1)

    async def hold_drop(self) -> None:
        await self.server.hold(Counting(self.alive))
        expect_equal((await self.server.callHeld()).value, 0)
        expect_equal((await self.server.callHeld()).value, 1)
        expect_equal(self.alive.value, 1)
        await self.server.drop()
        await self.alive.until(0)

    async def release(self) -> None:
        await self.server.waitAlive(0)
        first = (await self.server.getNamed("first")).named
        second = (await self.server.getNamed("second")).named
        await self.server.waitAlive(2)
        del first, second
        await self.server.waitAlive(0)

    async def null_capability(self) -> None:
        expect_equal((await self.server.echoCounter())._has("counter"), False)
        await self.server.hold()
        await expect_failure(self.server.callHeld(), "FAILED", "")

    async def callback(self) -> None:
        seen = []

        async def ten_times(value: int) -> int:
            seen.append(value)
            return value * 10

        expect_equal((await self.server.callBack(Calling(ten_times, self.alive), 5)).sum, 100)
        expect_equal(seen, [0, 1, 2, 3, 4])

    async def callback_reentrant(self) -> None:
        async def ask_back(value: int) -> int:
            return (await self.server.echoInt(value + 1)).value

        expect_equal((await self.server.callBack(Calling(ask_back, self.alive), 5)).sum, 15)

    async def callback_fails(self) -> None:
        async def fail(_: int) -> int:
            raise ValueError("callback broke")

        call = self.server.callBack(Calling(fail, self.alive), 1)
        await expect_failure(call, "FAILED", "callback broke")

    async def forward(self) -> None:
        async def increment(value: int) -> int:
            return value + 1

        reply = self.server.forward(Calling(increment, self.alive), 41)
        first = reply.counter.next()
        called = await reply
        expect_equal(called.value, 42)
        expect_equal((await first).value, 0)
        expect_equal((await called.counter.next()).value, 1)

    async def late(self) -> None:
        counter = (await self.server.late()).counter
        calls = [counter.next(), counter.next()]
        await self.server.resolveLate("fresh")
        await expect_order([*calls, counter.next()])

    async def late_broken(self) -> None:
        counter = (await self.server.late()).counter
        call = counter.next()
        await self.server.resolveLate("broken")
        await expect_failure(call, "FAILED", "late broke")
        await expect_failure(counter.next(), "FAILED", "late broke")

    async def late_param(self) -> None:
        gate = Gate()
        await self.server.hold(gate.promise)
        calls = [self.server.callHeld(), self.server.callHeld()]
        expect_equal((await self.server.echoInt(1)).value, 1)
        await gate.fulfill(Counting(self.alive))
        await expect_order([*calls, self.server.callHeld()])

    async def late_param_drop(self) -> None:
        gate = Gate()
        await self.server.hold(gate.promise)
        await gate.fulfill(Counting(self.alive))
        expect_equal((await self.server.callHeld()).value, 0)
        await self.server.drop()
        await self.alive.until(0)

    async def late_param_broken(self) -> None:
        gate = Gate()
        await self.server.hold(gate.promise)
        call = self.server.callHeld()
        expect_equal((await self.server.echoInt(1)).value, 1)
        await gate.reject("param broke")
        await expect_failure(call, "FAILED", "param broke")

    async def embargo_answer(self) -> None:
        reply = self.server.echoCounter(Counting(self.alive))
        early = reply.counter
        calls = [early.next(), early.next()]
        response = await reply
        # early is now our own object, but two calls are on their way
        await expect_order([*calls, early.next(), early.next()])
        expect_equal((await response.counter.next()).value, 4)

    async def embargo_resolve(self) -> None:
        await self.server.hold(Counting(self.alive))
        counter = (await self.server.late()).counter
        calls = [counter.next(), counter.next()]
        resolved = self.server.resolveLate("held")
        calls.append(counter.next())
        await resolved
        await expect_order([*calls, counter.next(), counter.next()])
        await self.server.drop()

    async def cancel(self) -> None:
        call = self.server.block()
        await self.server.waitBlocked(1)
        call.cancel()
        await self.server.waitBlocked(0)
        expect_equal((await self.server.echoInt(1)).value, 1)

    async def relay(self) -> None:
        """Connection two holds what connection one is given, and calls it: the server forwards."""
        stream, client, second = await connect(self.given.address)
        await second.hold(Counting(self.alive))
        expect_equal((await self.server.callHeld()).value, 0)
        through = (await self.server.held()).counter
        expect_equal((await second.callHeld()).value, 1)
        expect_equal((await through.next()).value, 2)
        # And the other way round: this process forwards from one connection to the other.
        await second.hold((await self.server.getNamed("relayed")).named)
        expect_equal((await self.server.callHeld()).value, 0)
        await self.server.drop()
        client.close()
        stream.close()

    async def client_gone(self) -> None:
        stream, client, second = await connect(self.given.address)
        call = second.block()
        await self.server.waitBlocked(1)
        client.close()
        stream.close()
        await self.server.waitBlocked(0)
        del call

    async def stream_writes(self) -> None:
        sink = (await self.server.openSink()).sink
        await asyncio.gather(*(_wait(sink.write(i, bytes(4096))) for i in range(500)))
        done = await sink.done()
        expect_equal((done.writes, done.total, done.inOrder), (500, 500 * 4096, True))

    async def stream_error(self) -> None:
        sink = (await self.server.openSink()).sink
        writes = [sink.write(i, b"" if i == 1 else b"0123456789") for i in range(3)]
        await expect_failure(sink.done(), "FAILED", "empty block")
        await expect_failure(writes[2], "FAILED", "empty block")

    async def size_limit(self) -> None:
        under = (self.given.limit_words - 256) * 8
        expect_equal((await self.server.measure(bytes(under))).bytes, under)
        expect_equal((await self.server.measure(bytes(under))).bytes, under)
        try:
            await self.server.measure(bytes((self.given.limit_words + 256) * 8))
        except capnp.KjException:
            pass
        else:
            raise AssertionError("a message above the limit was taken")
        _stream, _client, second = await connect(self.given.address)
        expect_equal((await second.echoInt(1)).value, 1)

    async def big_result(self) -> None:
        got = (await self.server.big(3_000_000)).value
        expect_equal(len(got), 3_000_000)
        expect_equal(got == (bytes(range(251)) * 11953)[:3_000_000], True)

    async def quit(self) -> None:
        named = (await self.server.getNamed("gone")).named
        blocked = self.server.block()
        pending = blocked.counter.next()
        await expect_failure(self.server.quit(), "DISCONNECTED", "")
        await expect_failure(pending, "DISCONNECTED", "")
        await expect_failure(named.next(), "DISCONNECTED", "")
        await self.client.on_disconnect()


async def _wait(call: Any) -> Any:
    return await call


async def main() -> None:
    given = options()
    for name in given.names:
        detail = ""
        try:
            run = Run(given, await connect(given.address))
            await getattr(run, {"stream": "stream_writes"}.get(name, name))()
        except (AssertionError, capnp.KjException) as error:
            detail = f"{type(error).__name__}: {error}"
        print(json.dumps({"name": name, "ok": not detail, "detail": detail}), flush=True)


if __name__ == "__main__":
    asyncio.run(capnp.run(main()))
