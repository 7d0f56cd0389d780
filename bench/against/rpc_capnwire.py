"""capnwire's RPC over asyncio."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from typing import Any

import capnwire
from bench.against import Measured
from bench.against.rpc_like import BLOB, RpcPeer, ServerProcess, burst, sequential
from bench.harness import ROOT, current_rss_bytes

NAME = "capnwire"
DISTRIBUTION = "capnwire"

SCHEMA = capnwire.load(ROOT / "bench/schemas/rpc.capnp")


class Echo(SCHEMA.Echo.Server):
    def __init__(self) -> None:
        self.gate = asyncio.Event()

    def echo(self, n: int) -> int:
        return n

    async def later(self, n: int) -> int:
        return n

    def bytes(self, data: bytes) -> bytes:
        return data

    def text(self, text: str) -> str:
        return text

    async def block(self) -> None:
        await self.gate.wait()


class Checked:
    """Plain values, for checking; `timed` is what is timed."""

    def __init__(self, client: Any) -> None:
        self.timed = client

    async def echo(self, n: int) -> Any:
        return (await self.timed.echo(n)).n

    async def bytes(self, data: bytes) -> Any:
        return (await self.timed.bytes(data)).data


class Capnwire(RpcPeer):
    def __init__(self) -> None:
        self.server = ServerProcess("rpc_capnwire")

    def over_tcp(self, body: Any) -> float:
        async def main() -> float:
            async with capnwire.connect(self.server.address) as session:
                return await self.checked(Checked(session.bootstrap(SCHEMA.Echo)), body)

        return asyncio.run(main())

    def in_memory(self, body: Any) -> float:
        async def main() -> float:
            server, client = capnwire.memory_pair(Echo(), None)
            value = await self.checked(Checked(client.bootstrap(SCHEMA.Echo)), body)
            server.close()
            client.close()
            return value

        return asyncio.run(main())

    def memory_tiny(self) -> Measured:
        return Measured(lambda: self.in_memory(lambda calls: sequential(calls.echo, 7)))

    def memory_burst_1000(self) -> Measured:
        return Measured(lambda: self.in_memory(lambda calls: burst(calls.echo, 1000)))

    def wire_bytes(self) -> Measured:
        async def main() -> float:
            server, client = capnwire.memory_pair(Echo(), None)
            echo = client.bootstrap(SCHEMA.Echo)
            await echo.echo(1)
            sizes: list[int] = []
            for session in (server, client):
                pipe = session._pipe
                write = pipe.write

                def counted(chunks: Any, write: Any = write) -> None:
                    sizes.extend(memoryview(chunk).nbytes for chunk in chunks)
                    write(chunks)

                pipe.write = counted
            await echo.bytes(BLOB)
            server.close()
            return float(sum(sizes))

        return Measured(lambda: asyncio.run(main()))

    def memory_flight(self) -> Measured:
        async def main() -> float:
            served = Echo()
            server, client = capnwire.memory_pair(served, None, call_limit=20_000)
            echo = client.bootstrap(SCHEMA.Echo)
            before, turns = 0, 10
            for turn in range(turns + 3):
                served.gate.clear()
                replies = [echo.block() for _ in range(10_000)]
                await asyncio.sleep(0.05)
                served.gate.set()
                await asyncio.gather(*replies)
                del replies
                gc.collect()
                if turn == 2:
                    before = current_rss_bytes()
            after = current_rss_bytes()
            server.close()
            # The allocator takes a page more now and then: what is kept, each turn keeps.
            return max(after - before, 0) / turns / 10_000

        return Measured(lambda: asyncio.run(main()))


def adapter(folder: Path, events: int) -> Any:
    return Capnwire()


async def serve() -> None:
    async with capnwire.serve(Echo(), "tcp://127.0.0.1:0") as listener:
        print(listener.addresses[0], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__" and sys.argv[1:] == ["serve"]:
    asyncio.run(serve())
