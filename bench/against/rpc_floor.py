"""The floor: the bytes of a call sent and echoed by bare asyncio protocols; futures in memory."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path
from typing import Any

from bench.against import Measured
from bench.against.rpc_like import BLOB, TEXT, RpcPeer, ServerProcess, burst

NAME = "bare asyncio"
DISTRIBUTION = None

CALL_BYTES = 120         # a Call of one UInt32; its Return has 80


class EchoProtocol(asyncio.BufferedProtocol):
    """Sends everything back."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.buffer = memoryview(bytearray(256 * 1024))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, size: int) -> None:
        self.transport.write(bytes(self.buffer[:size]))


class Client(asyncio.BufferedProtocol):
    """A future for each message sent, resolved when as many bytes have come back."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.buffer = memoryview(bytearray(256 * 1024))
        self.waiting: deque[tuple[int, asyncio.Future[int]]] = deque()
        self.found = 0
        self.loop = asyncio.get_running_loop()
        self.timed = self
        self.later = self.echo

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, size: int) -> None:
        self.found += size
        while self.waiting and self.found >= self.waiting[0][0]:
            wanted, future = self.waiting.popleft()
            self.found -= wanted
            future.set_result(7)

    def send(self, data: bytes) -> asyncio.Future[int]:
        future: asyncio.Future[int] = self.loop.create_future()
        self.waiting.append((len(data), future))
        self.transport.write(data)
        return future

    def echo(self, n: int) -> asyncio.Future[int]:
        return self.send(bytes(CALL_BYTES))

    def bytes(self, data: bytes) -> asyncio.Future[int]:
        return self.send(data)

    def text(self, text: str) -> asyncio.Future[int]:
        return self.send(text.encode())


class Floor(RpcPeer):
    def __init__(self) -> None:
        self.server = ServerProcess("rpc_floor")

    def over_tcp(self, body: Any) -> float:
        async def main() -> float:
            loop = asyncio.get_running_loop()
            transport, client = await loop.create_connection(
                Client, "127.0.0.1", int(self.server.address)
            )
            value: float = await body(client)
            transport.close()
            return value

        return asyncio.run(main())

    tcp_burst_100 = tcp_burst_1000 = None  # type: ignore[assignment]

    def memory_burst_1000(self) -> Measured:
        async def main() -> float:
            loop = asyncio.get_running_loop()
            futures: list[asyncio.Future[int]] = []

            def resolve() -> None:
                for future in futures:
                    future.set_result(7)
                futures.clear()

            def call(n: int) -> asyncio.Future[int]:
                future = loop.create_future()
                if not futures:
                    loop.call_soon(resolve)
                futures.append(future)
                return future

            return await burst(call, 1000)

        return Measured(lambda: asyncio.run(main()))

    def wire_bytes(self) -> Measured:
        return Measured(lambda: float(2 * len(BLOB)))


def adapter(folder: Path, events: int) -> Any:
    assert len(TEXT) == len(BLOB)
    return Floor()


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(EchoProtocol, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__" and sys.argv[1:] == ["serve"]:
    asyncio.run(serve())
