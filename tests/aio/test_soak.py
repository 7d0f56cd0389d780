"""Many calls, connections and clients: memory stays flat, nothing is left, nothing breaks.

The normal run does little of each; `make soak` (CAPNWIRE_SOAK=1) a million calls, 10 000
connections and 100 clients for three minutes.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import capnwire
from capnwire.aio.runtime import runtime_of
from capnwire.errors import RemoteError
from tests.peers.ours import Calling, Counting, Level, Serving, at_rest, peer, rest

SOAK = os.environ.get("CAPNWIRE_SOAK", "") not in ("", "0")
CALLS = 1_000_000 if SOAK else 10_000
CONNECTIONS = 10_000 if SOAK else 200
CLIENTS = 100 if SOAK else 20
CLIENTS_S = float(os.environ.get("CAPNWIRE_SOAK_S") or 180) if SOAK else 1.0

BURST = 500
BLOCKS = 2_000  # allocations that may come and go by themselves
RESIDENT_BYTES = 16 << 20  # the same for memory, of fragments and of asyncio's buffers

pytestmark = pytest.mark.slow


class Broken(list[str]):
    """What the loop was told of and nobody caught."""

    def __call__(self, _: Any, context: dict[str, Any]) -> None:
        self.append(f"{context['message']}: {context.get('exception')!r}")


@asynccontextmanager
async def served(kind: str, folder: Path) -> AsyncIterator[Any]:
    """A listener; at the end nothing may be left of its clients."""
    broken = Broken()
    asyncio.get_running_loop().set_exception_handler(broken)
    serving = Serving()
    url = "tcp://127.0.0.1:0" if kind == "tcp" else f"unix:{folder}/soak"
    async with capnwire.serve(serving, url) as listener:
        yield listener
        for session in listener.sessions:
            await session.on_disconnect()
            assert not rest(session)
    await at_rest(serving)
    assert not runtime_of().running
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert broken == []


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Flat:
    """What memory is now, to be compared with what it was when warm."""

    def __init__(self) -> None:
        gc.collect()
        self.blocks, self.resident = sys.getallocatedblocks(), resident_bytes()
        self.files = len(os.listdir("/proc/self/fd"))

    def as_before(self, before: Flat) -> None:
        assert self.blocks - before.blocks < BLOCKS
        assert self.resident - before.resident < RESIDENT_BYTES
        assert self.files == before.files


async def with_nobody(listener: Any) -> Flat:
    """Memory once nothing is left of the clients that are gone."""
    while listener._sessions:
        await asyncio.sleep(0)
    return Flat()


async def at_ease(session: Any, server: Any) -> Flat:
    """Memory once nothing is left of what was done last."""
    while rest(session) != {"imports": {0: 1}}:
        await server.echoInt(0)
    return Flat()


async def plain(server: Any, alive: Level) -> int:
    replies = [server.echoInt(i) for i in range(BURST)]
    assert [(await reply).value for reply in replies] == list(range(BURST))
    return BURST


async def text(server: Any, alive: Level) -> int:
    assert (await server.echoText("Ünïcødé" * 100)).value == "Ünïcødé" * 100
    return 1


async def pipelined(server: Any, alive: Level) -> int:
    named = server.getNamed("soak").named
    replies = [named.next() for _ in range(20)]
    assert [(await reply).value for reply in replies] == list(range(20))
    return 21


async def failing(server: Any, alive: Level) -> int:
    with pytest.raises(RemoteError, match="soak"):
        await server.fail("overloaded", "soak")
    return 1


async def called_back(server: Any, alive: Level) -> int:
    async def twice(value: int) -> int:
        return value * 2

    assert (await server.callBack(Calling(twice, alive), 5)).sum == 20
    return 6


async def returned(server: Any, alive: Level) -> int:
    reply = server.echoCounter(Counting(alive))
    early = reply.counter
    replies = [early.next(), early.next()]
    await reply
    replies += [early.next(), early.next()]
    assert [(await each).value for each in replies] == [0, 1, 2, 3]
    return 5


async def cancelled(server: Any, alive: Level) -> int:
    reply = server.block()
    await server.echoInt(0)
    reply.cancel()
    return 2


async def streamed(server: Any, alive: Level) -> int:
    sink = server.openSink().sink
    for i in range(30):
        await sink.write(i, b"x" * 4096)
    assert (await sink.done()).writes == 30
    return 32


DOINGS: tuple[Callable[[Any, Level], Coroutine[Any, Any, int]], ...] = (
    plain, text, pipelined, failing, called_back, returned, cancelled, streamed,
)


async def do_calls(server: Any, wanted: int, rng: random.Random) -> None:
    """At least so many calls of all kinds; own objects are gone afterwards."""
    alive, done = Level(), 0
    while done < wanted:
        for doing in rng.sample(DOINGS, len(DOINGS)):
            done += await doing(server, alive)
    gc.collect()
    await alive.until(0)


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_many_calls_leave_memory_flat(kind: str, tmp_path: Path, rng: random.Random) -> None:
    async def main() -> None:
        async with served(kind, tmp_path) as listener:
            async with capnwire.connect(listener.addresses[0]) as session:
                server = session.bootstrap(peer.Peer)
                await do_calls(server, CALLS // 5, rng)
                before = await at_ease(session, server)
                await do_calls(server, CALLS, rng)
                (await at_ease(session, server)).as_before(before)

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_many_connections_leave_memory_flat(kind: str, tmp_path: Path) -> None:
    async def connect_times(address: str, count: int) -> None:
        for i in range(count):
            async with capnwire.connect(address) as session:
                named = session.bootstrap(peer.Peer).getNamed("soak").named
                blocked = session.bootstrap(peer.Peer).block()
                assert (await named.next()).value == 0
                if i % 3 == 0:
                    blocked.cancel()
            assert not rest(session)
            if i % 3:
                assert blocked.exception().kind == "DISCONNECTED"

    async def main() -> None:
        async with served(kind, tmp_path) as listener:
            await connect_times(listener.addresses[0], CONNECTIONS // 5)
            before = await with_nobody(listener)
            await connect_times(listener.addresses[0], CONNECTIONS)
            (await with_nobody(listener)).as_before(before)

    asyncio.run(main())


def test_many_clients_at_once_are_all_served(tmp_path: Path, rng: random.Random) -> None:
    async def client(address: str, until: float, seed: int) -> None:
        loop, own = asyncio.get_running_loop(), random.Random(seed)
        while loop.time() < until:
            async with capnwire.connect(address) as session:
                await do_calls(session.bootstrap(peer.Peer), BURST, own)

    async def clients(address: str, for_s: float) -> None:
        until = asyncio.get_running_loop().time() + for_s
        seeds = [rng.getrandbits(32) for _ in range(CLIENTS)]
        await asyncio.gather(*(client(address, until, seed) for seed in seeds))

    async def main() -> None:
        async with served("tcp", tmp_path) as listener:
            await clients(listener.addresses[0], CLIENTS_S / 5)
            before = await with_nobody(listener)
            await clients(listener.addresses[0], CLIENTS_S)
            (await with_nobody(listener)).as_before(before)

    asyncio.run(main())
