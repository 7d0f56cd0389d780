"""capnwire's own server of peer.capnp and client of all scenarios, as the other peers have them.

Not a test.  They run in the test's process, so that a test sees their tables too.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import capnwire
from capnwire.aio.runtime import runtime_of
from capnwire.errors import RemoteError
from capnwire.service.client import client_for, reference_behind
from capnwire.service.reference import new_promise

peer = capnwire.load(Path(__file__).parent / "peer.capnp")


def promise_of(interface: Any) -> tuple[Any, Callable[[Any], None]]:
    """A capability that is not known yet, and the function that says what it is or why not."""
    reference, resolve = new_promise(runtime_of())

    def settle(target: Any) -> None:
        resolve(target if isinstance(target, BaseException) else reference_behind(target))

    return client_for(interface, reference), settle


class Level:
    """A number to wait for."""

    def __init__(self) -> None:
        self.value = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def add(self, difference: int) -> None:
        self.value += difference
        for wanted, future in self._waiting:
            if wanted == self.value and not future.done():
                future.set_result(None)
        self._waiting = [pair for pair in self._waiting if not pair[1].done()]

    async def until(self, wanted: int) -> None:
        if self.value != wanted:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((wanted, future))
            await future


class Counting(peer.Named.Server):
    def __init__(self, alive: Level, name: str = "") -> None:
        self._alive, self._name, self._count = alive, name, 0
        alive.add(1)

    def __del__(self) -> None:
        self._alive.add(-1)

    def next(self) -> int:
        self._count += 1
        return self._count - 1

    async def name(self) -> str:
        return self._name


class Collecting(peer.Sink.Server):
    def __init__(self) -> None:
        self._writes, self._total, self._in_order = 0, 0, True

    async def write(self, index: int, bytes: bytes) -> None:
        if not bytes:
            raise ValueError("empty block")
        self._in_order = self._in_order and index == self._writes
        self._writes += 1
        self._total += len(bytes)

    def done(self) -> tuple[int, int, bool]:
        return self._writes, self._total, self._in_order


class Serving(peer.Peer.Server):
    """`quit` calls what it is given: a test's way to end the connections."""

    def __init__(self, quit: Callable[[], object] = lambda: None) -> None:
        self._blocked, self._alive = Level(), Level()
        self._held: Any = None
        self._late: list[Callable[[Any], None]] = []
        self._quit = quit

    def echoInt(self, value: int) -> int:
        return value

    async def echoText(self, value: str) -> str:
        return value

    def echoData(self, value: bytes) -> bytes:
        return value

    def measure(self, value: bytes) -> int:
        return len(value)

    def big(self, bytes_: int) -> bytes:
        return (bytes(range(251)) * (bytes_ // 251 + 1))[:bytes_]

    def fail(self, kind: Any, text: str) -> None:
        raise RemoteError(text, kind=str(kind).upper())

    async def getNamed(self, name: str) -> Counting:
        return Counting(self._alive, name)

    def getNested(self, name: str) -> Any:
        inner = {"pad": "x", "named": Counting(self._alive, name)}
        return {"outer": {"pad": "x", "inner": inner}}

    def echoCounter(self, counter: Any) -> Any:
        return {"counter": counter}

    async def callBack(self, callback: Any, times: int) -> int:
        total: int = 0
        for value in range(times):
            total += (await callback.call(value)).value
        return total

    def forward(self, callback: Any, value: int) -> Any:
        return callback.call(value)

    def hold(self, counter: Any) -> None:
        self._held = counter

    def held(self) -> Any:
        return {"counter": self._held}

    async def callHeld(self) -> int:
        if self._held is None:
            raise ValueError("nothing is held")
        value: int = (await self._held.next()).value
        return value

    def drop(self) -> None:
        self._held = None

    def late(self) -> Any:
        promise, settle = promise_of(peer.Counter)
        self._late.append(settle)
        return {"counter": promise}

    def resolveLate(self, how: Any) -> None:
        late, self._late = self._late, []
        for settle in late:
            if how == "fresh":
                settle(Counting(self._alive))
            elif how == "held":
                settle(self._held)
            else:
                settle(RemoteError("late broke"))

    async def block(self) -> None:
        self._blocked.add(1)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._blocked.add(-1)

    async def waitBlocked(self, count: int) -> None:
        await self._blocked.until(count)

    async def waitAlive(self, count: int) -> None:
        await self._alive.until(count)

    def openSink(self) -> Collecting:
        return Collecting()

    async def quit(self) -> None:
        self._quit()
        await asyncio.get_running_loop().create_future()


class Calling(peer.Callback.Server):
    def __init__(self, function: Callable[[int], Awaitable[int]], alive: Level) -> None:
        self._function, self._alive = function, alive

    async def call(self, value: int) -> Any:
        return {"value": await self._function(value), "counter": Counting(self._alive)}


async def expect_order(calls: list[Any]) -> None:
    assert [(await call).value for call in calls] == list(range(len(calls)))


async def expect_failure(call: Any, kind: str, text: str) -> None:
    got = "no exception"
    try:
        await call
    except RemoteError as error:
        if error.kind == kind and text in str(error):
            return
        got = f"{error.kind}: {error}"
    raise AssertionError(f"{got}, wanted {kind}: {text}")


class Run:
    """The scenarios by name; `address` is where to connect a second time."""

    def __init__(self, session: Any, address: str, limit_words: int) -> None:
        self.session, self.address, self.limit_words = session, address, limit_words
        self.alive = Level()
        self.server = session.bootstrap(peer.Peer)

    async def echo_int(self) -> None:
        for value in (0, -1, -(2**63), 2**63 - 1):
            assert (await self.server.echoInt(value)).value == value

    async def echo_text(self) -> None:
        for text in ("", "plain", "Ünïcødé ✓ 😀"):
            assert (await self.server.echoText(text)).value == text

    async def echo_data(self) -> None:
        for size in (0, 1, 256, 1_000_000):
            data = (bytes(range(256)) * (size // 256 + 1))[:size]
            assert (await self.server.echoData(data)).value == data

    async def big_result(self) -> None:
        got = (await self.server.big(3_000_000)).value
        assert got == (bytes(range(251)) * 11953)[:3_000_000]

    async def burst(self) -> None:
        await expect_order([self.server.echoInt(i) for i in range(1000)])

    async def order(self) -> None:
        named = (await self.server.getNamed("order")).named
        await expect_order([named.next() for _ in range(100)])

    async def pipeline(self) -> None:
        reply = self.server.getNamed("early")
        name, first = reply.named.name(), reply.named.next()
        assert (await name).name == "early"
        assert (await first).value == 0
        assert (await (await reply).named.next()).value == 1

    async def pipeline_nested(self) -> None:
        reply = self.server.getNested("deep")
        assert (await reply.outer.inner.named.name()).name == "deep"
        outer = (await reply).outer
        assert (outer.pad, outer.inner.pad) == ("x", "x")

    async def pipeline_failed(self) -> None:
        reply = self.server.fail("failed", "no object")
        await expect_failure(reply.named.next(), "FAILED", "no object")
        await expect_failure(reply, "FAILED", "no object")
        assert (await self.server.echoInt(1)).value == 1

    async def inheritance(self) -> None:
        counter = (await self.server.getNamed("both")).named.cast_as(peer.Counter)
        assert (await counter.next()).value == 0
        assert (await counter.cast_as(peer.Named).name()).name == "both"

    async def unimplemented(self) -> None:
        call = self.server.cast_as(peer.Stranger).unknown()
        await expect_failure(call, "UNIMPLEMENTED", "")
        assert (await self.server.echoInt(1)).value == 1

    async def exceptions(self) -> None:
        for kind in ("failed", "overloaded", "disconnected", "unimplemented"):
            await expect_failure(self.server.fail(kind, "ä reason"), kind.upper(), "ä reason")
        assert (await self.server.echoInt(1)).value == 1

    async def pass_own(self) -> None:
        mine = Counting(self.alive)
        back = (await self.server.echoCounter(mine)).counter
        assert capnwire.local_object(back) is mine
        assert (await back.next()).value == 0
        assert mine.next() == 1

    async def hold_drop(self) -> None:
        await self.server.hold(Counting(self.alive))
        assert (await self.server.callHeld()).value == 0
        assert (await self.server.callHeld()).value == 1
        assert self.alive.value == 1
        await self.server.drop()
        await self.alive.until(0)

    async def release(self) -> None:
        gc.collect()
        await self.server.waitAlive(0)
        first = (await self.server.getNamed("first")).named
        second = (await self.server.getNamed("second")).named
        await self.server.waitAlive(2)
        del first, second
        await self.server.waitAlive(0)

    async def null_capability(self) -> None:
        assert (await self.server.echoCounter(None)).counter is None
        await self.server.hold(None)
        await expect_failure(self.server.callHeld(), "FAILED", "")

    async def callback(self) -> None:
        seen = []

        async def ten_times(value: int) -> int:
            seen.append(value)
            return value * 10

        assert (await self.server.callBack(Calling(ten_times, self.alive), 5)).sum == 100
        assert seen == [0, 1, 2, 3, 4]

    async def callback_reentrant(self) -> None:
        async def ask_back(value: int) -> int:
            back: int = (await self.server.echoInt(value + 1)).value
            return back

        assert (await self.server.callBack(Calling(ask_back, self.alive), 5)).sum == 15

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
        assert called.value == 42
        assert (await first).value == 0
        assert (await called.counter.next()).value == 1

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
        promise, settle = promise_of(peer.Counter)
        await self.server.hold(promise)
        calls = [self.server.callHeld(), self.server.callHeld()]
        assert (await self.server.echoInt(1)).value == 1
        settle(Counting(self.alive))
        await expect_order([*calls, self.server.callHeld()])

    async def late_param_drop(self) -> None:
        promise, settle = promise_of(peer.Counter)
        await self.server.hold(promise)
        settle(Counting(self.alive))
        assert (await self.server.callHeld()).value == 0
        del promise, settle
        await self.server.drop()
        await self.alive.until(0)

    async def late_param_broken(self) -> None:
        promise, settle = promise_of(peer.Counter)
        await self.server.hold(promise)
        call = self.server.callHeld()
        assert (await self.server.echoInt(1)).value == 1
        settle(RemoteError("param broke"))
        await expect_failure(call, "FAILED", "param broke")

    async def embargo_answer(self) -> None:
        reply = self.server.echoCounter(Counting(self.alive))
        early = reply.counter
        calls = [early.next(), early.next()]
        response = await reply
        # early is now our own object, but two calls are on their way
        await expect_order([*calls, early.next(), early.next()])
        assert (await response.counter.next()).value == 4

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
        assert (await self.server.echoInt(1)).value == 1

    async def relay(self) -> None:
        """Connection two holds what connection one is given, and calls it: the server forwards."""
        async with capnwire.connect(self.address) as session:
            second = session.bootstrap(peer.Peer)
            await second.hold(Counting(self.alive))
            assert (await self.server.callHeld()).value == 0
            through = (await self.server.held()).counter
            assert (await second.callHeld()).value == 1
            assert (await through.next()).value == 2
            # And the other way round: this process forwards from one connection to the other.
            await second.hold((await self.server.getNamed("relayed")).named)
            assert (await self.server.callHeld()).value == 0
            await self.server.drop()

    async def client_gone(self) -> None:
        async with capnwire.connect(self.address) as session:
            call = session.bootstrap(peer.Peer).block()
            await self.server.waitBlocked(1)
        await self.server.waitBlocked(0)
        await expect_failure(call, "DISCONNECTED", "")

    async def stream(self) -> None:
        sink = (await self.server.openSink()).sink
        for i in range(500):
            await sink.write(i, bytes(4096))
        done = await sink.done()
        assert (done.writes, done.total, done.inOrder) == (500, 500 * 4096, True)

    async def stream_error(self) -> None:
        sink = (await self.server.openSink()).sink
        writes = [sink.write(i, b"" if i == 1 else b"0123456789") for i in range(3)]
        await expect_failure(sink.done(), "FAILED", "empty block")
        # How soon a write itself says so depends on the window.
        await asyncio.wait([asyncio.ensure_future(write) for write in writes])
        for write in writes:
            write.exception()

    async def size_limit(self) -> None:
        under = (self.limit_words - 256) * 8
        assert (await self.server.measure(bytes(under))).bytes == under
        assert (await self.server.measure(bytes(under))).bytes == under
        await expect_failure(self.server.measure(bytes(under + 512 * 8)), "DISCONNECTED", "")
        async with capnwire.connect(self.address) as session:
            assert (await session.bootstrap(peer.Peer).echoInt(1)).value == 1

    async def quit(self) -> None:
        named = (await self.server.getNamed("gone")).named
        blocked = self.server.block()
        pending = blocked.counter.next()
        await expect_failure(self.server.quit(), "DISCONNECTED", "")
        await expect_failure(pending, "DISCONNECTED", "")
        await expect_failure(blocked, "DISCONNECTED", "")
        await expect_failure(named.next(), "DISCONNECTED", "")
        await self.session.on_disconnect()


async def run_scenario(
    name: str, address: str, *, limit_words: int = 0, leftovers: dict[str, Any] | None = None
) -> None:
    """One scenario on a connection of its own, whose tables must be empty at the end.

    `leftovers` is what the peer lets nobody clear away.
    """
    async with capnwire.connect(address) as session:
        run = Run(session, address, limit_words)
        await getattr(run, name)()
        if not session.is_closed:
            await _empty(session, run, leftovers or {})


async def _empty(session: Any, run: Run, leftovers: dict[str, Any]) -> None:
    """Ask the server until, besides its bootstrap object, neither side holds anything."""
    await run.server.drop()
    gc.collect()
    while rest(session) != {"imports": {0: 1}, **leftovers}:
        await run.server.echoInt(0)
    run.server = None
    await asyncio.sleep(0)
    assert rest(session) == leftovers


def rest(session: Any) -> dict[str, Any]:
    """What the tables hold."""
    return {name: held for name, held in session.connection.tables().items() if held}


async def at_rest(serving: Serving) -> None:
    """Wait until a server whose clients are gone has nothing left of them."""
    serving.drop()
    serving._late.clear()
    await serving._blocked.until(0)
    while runtime_of().running:  # methods
        await asyncio.sleep(0)
    await all_gone(serving._alive)


async def all_gone(alive: Level) -> None:
    """Wait until no object of that count lives; the collector has to find what an error keeps."""
    while alive.value:
        gc.collect()
        await asyncio.sleep(0)
