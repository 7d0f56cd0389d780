"""What the RPC adapters share: timing one call and bursts, a server in its own process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.against import Measured
from bench.harness import ROOT

BLOB = bytes(range(256)) * 256
TEXT = "abcdefgh" * 8192

Call = Callable[..., Awaitable[Any]]


class ServerProcess:
    """`python -m bench.against.<module> serve`, which prints where it listens."""

    def __init__(self, module: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"bench.against.{module}", "serve"], cwd=ROOT,
            stdout=subprocess.PIPE, text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()

    def __del__(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


async def sequential(call: Call, *arguments: Any, count: int = 200, rounds: int = 5) -> float:
    """Seconds of one call, made one after the other; the best round."""
    for _ in range(20):
        await call(*arguments)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(count):
            await call(*arguments)
        best = min(best, (time.perf_counter() - start) / count)
    return best


async def burst(call: Call, count: int, rounds: int = 9) -> float:
    """Seconds of each of `count` calls made at once and gathered; the best round."""
    best = float("inf")
    for _ in range(rounds + 2):
        start = time.perf_counter()
        results = await asyncio.gather(*[call(n) for n in range(count)])
        best = min(best, (time.perf_counter() - start) / count)
        assert len(results) == count
    return best


class RpcPeer:
    """A peer's rows, from `over_tcp(body)` and `in_memory(body)`.

    Both run `body(peer)` where `peer` has the calls `echo`, `later`, `bytes` and `text`, whose
    awaited results are checked before anything is timed.
    """

    async def checked(self, calls: Any, body: Callable[[Any], Awaitable[float]]) -> float:
        assert await calls.echo(7) == 7
        assert bytes(await calls.bytes(BLOB)) == BLOB
        return await body(calls.timed)

    def over_tcp(self, body: Callable[[Any], Awaitable[float]]) -> float:
        raise NotImplementedError

    def tcp_tiny(self) -> Measured:
        return Measured(lambda: self.over_tcp(lambda calls: sequential(calls.echo, 7)))

    def tcp_tiny_async(self) -> Measured:
        return Measured(lambda: self.over_tcp(lambda calls: sequential(calls.later, 7)))

    def tcp_burst_100(self) -> Measured:
        return Measured(lambda: self.over_tcp(lambda calls: burst(calls.echo, 100, 30)))

    def tcp_burst_1000(self) -> Measured:
        return Measured(lambda: self.over_tcp(lambda calls: burst(calls.echo, 1000)))

    def tcp_bytes(self) -> Measured:
        return Measured(
            lambda: self.over_tcp(lambda calls: sequential(calls.bytes, BLOB, count=60))
        )

    def tcp_text(self) -> Measured:
        return Measured(lambda: self.over_tcp(lambda calls: sequential(calls.text, TEXT, count=60)))
