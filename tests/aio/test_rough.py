"""Rough going: single bytes, cuts at every message, flipped bits, collectors in other threads."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import capnwire
from capnwire.aio.transports import MemoryPipe
from capnwire.errors import CapnwireError
from tests.aio.service import SCHEMA, Calculator, Counter, Double, run
from tests.conftest import SEED
from tests.rpc.pair import frames_of


class RoughPipe(MemoryPipe):
    """A pipe whose messages are treated one by one: cut in pieces, changed, swallowed."""

    def __init__(self, session: Any, treat: Callable[[RoughPipe, bytes], list[bytes]]) -> None:
        super().__init__(session)
        self.treat = treat

    def write(self, chunks: list[Any]) -> None:
        pieces: list[Any] = []
        for frame in frames_of(b"".join(chunks)):
            pieces += self.treat(self, frame)
        super().write(pieces)


def rough_pair(served: Any, treat: Callable[[RoughPipe, bytes], list[bytes]]) -> Any:
    first, second = capnwire.Session(served), capnwire.Session()
    one, two = RoughPipe(first, treat), RoughPipe(second, treat)
    one.other, two.other = two, one
    first.attach(one)
    second.attach(two)
    return first, second


async def scenario(client: Any) -> list[Any]:
    """Starts calls of many kinds; gives their replies."""
    calculator = client.bootstrap(SCHEMA.Calculator)
    mine = Counter(5)
    replies = [calculator.add(1, 2), calculator.apply(Double(), 3), calculator.divide(9, 2)]
    pending = calculator.counter(1)
    replies += [pending, pending.counter.child().counter.next()]
    home = calculator.same(mine)
    replies += [home, home.object.next(), home.object.next()]
    replies += [calculator.fail("", "x"), calculator.wait(), calculator.unserved()]
    replies.append(replies[-2].pipeline.result.next())
    for _ in range(12):
        await asyncio.sleep(0)
    return replies


async def all_over(client: Any, server: Any, replies: list[Any]) -> None:
    """Once both ends are closed nothing is left open."""
    client.close()
    server.close()
    for _ in range(12):
        await asyncio.sleep(0)
    assert all(reply.done() for reply in replies)
    for reply in replies:
        if not reply.cancelled():
            reply.exception()
    for session in (client, server):
        assert not any(session.connection.tables().values())
    assert not client.runtime.running


def test_single_bytes_are_as_good_as_whole_messages() -> None:
    async def main() -> None:
        served = Calculator()
        server, client = rough_pair(
            served, lambda pipe, frame: [frame[at : at + 1] for at in range(len(frame))]
        )
        replies = await scenario(client)
        served.gate.set()
        for reply in replies[:8]:
            await reply
        assert [(await replies[at]).value for at in (6, 7)] == [6, 7]
        assert (await replies[-1]).value == 1001
        await all_over(client, server, replies)

    run(main())


def test_the_end_at_any_message_leaves_nothing_open() -> None:
    async def main() -> None:
        for last in range(60):
            seen = 0

            def treat(pipe: RoughPipe, frame: bytes, last: int = last) -> list[bytes]:
                nonlocal seen
                seen += 1
                if seen == last:
                    loop = asyncio.get_running_loop()
                    loop.call_soon(pipe.session.close)
                return [frame] if seen <= last else []

            server, client = rough_pair(Calculator(), treat)
            replies = await scenario(client)
            await all_over(client, server, replies)
            del server, client, replies

    run(main())


def test_flipped_bits_end_in_answers_or_ends() -> None:
    async def main() -> None:
        for number in range(150):
            source = random.Random(f"{SEED} {number}")

            def treat(
                pipe: RoughPipe, frame: bytes, source: random.Random = source
            ) -> list[bytes]:
                if source.random() < 0.15:
                    changed = bytearray(frame)
                    changed[source.randrange(len(changed))] ^= 1 << source.randrange(8)
                    return [bytes(changed)]
                return [frame]

            server, client = rough_pair(Calculator(), treat)
            try:
                replies = await scenario(client)
            except CapnwireError:
                replies = []
            await all_over(client, server, replies)

    run(main())


def test_collectors_in_other_threads_release_what_is_dropped() -> None:
    stop = threading.Event()
    boxes: list[Any] = []

    def collect() -> None:
        while not stop.is_set():
            with suppress(IndexError):  # the other thread takes some
                while True:
                    boxes.pop()
            gc.collect(0)

    async def main() -> None:
        server, client = capnwire.memory_pair(Calculator(), None)
        calculator = client.bootstrap(SCHEMA.Calculator)
        threads = [threading.Thread(target=collect) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for number in range(400):
                results = await asyncio.gather(*(calculator.counter(n) for n in range(4)))
                counters = [result.counter for result in results]
                assert (await counters[0].next()).value == 1
                cycle: list[Any] = [counters[1]]
                cycle.append(cycle)
                boxes.extend(counters[2:])
                del results, counters, cycle
                if number % 50 == 0:
                    gc.collect()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        boxes.clear()
        gc.collect()
        for _ in range(100):
            await asyncio.sleep(0)
            if len(server.connection.tables()["exports"]) == 1:
                break
        assert server.connection.tables()["exports"] == {0: 1}
        client.close()
        server.close()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        run(main())
    finally:
        sys.setswitchinterval(interval)


def test_two_hundred_connections_leave_nothing_behind() -> None:
    async def main() -> None:
        calculator = Calculator()
        async with capnwire.serve(calculator, "tcp://127.0.0.1:0") as server:
            for _ in range(20):
                sessions = await asyncio.gather(
                    *(capnwire.connect(server.addresses[0]) for _ in range(10))
                )
                clients = [session.bootstrap(SCHEMA.Calculator) for session in sessions]
                await asyncio.gather(*(client.add(1, 1) for client in clients))
                for session in sessions:
                    session.close()
                await asyncio.gather(*(session.wait_closed() for session in sessions))
            while server.sessions:
                await asyncio.sleep(0)

    run(main())


def test_sessions_run_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with (
            capnwire.serve(Calculator(), "tcp://127.0.0.1:0") as server,
            capnwire.connect(server.addresses[0]) as session,
        ):
            calculator = session.bootstrap(SCHEMA.Calculator)
            assert (await calculator.add(1, 2)).value == 3
            assert (await calculator.apply(Double(), 5)).value == 32
            data = bytes(range(256)) * 8192
            assert (await calculator.blob(data)).data == data
            found = await asyncio.gather(*(calculator.add(n, n) for n in range(500)))
            assert [results.value for results in found] == [2 * n for n in range(500)]
            # More than the buffers of both sides hold.
            found = await asyncio.gather(*(calculator.blob(bytes(100_000)) for _ in range(400)))
            assert all(len(results.data) == 100_000 for results in found)

    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()
