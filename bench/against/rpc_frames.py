"""Lines of JSON by orjson over asyncio: what people write without an RPC system."""

from __future__ import annotations

import asyncio
import base64
import itertools
import sys
from pathlib import Path
from typing import Any

import orjson

from bench.against.rpc_like import RpcPeer, ServerProcess

NAME = "orjson lines"
DISTRIBUTION = "orjson"


class Lines(asyncio.Protocol):
    """Splits what comes into lines."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.rest = b""
        self.out: list[bytes] = []
        self.loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        for line in lines:
            self.line(orjson.loads(line))
        if self.out:
            self.flush()

    def line(self, message: Any) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        out, self.out = self.out, []
        if out:
            self.transport.write(b"".join(out))


class Server(Lines):
    def line(self, message: Any) -> None:
        id, name, argument = message
        self.out.append(orjson.dumps([id, argument]) + b"\n")


class Client(Lines):
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.ids = itertools.count()
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.timed = self

    def line(self, message: Any) -> None:
        id, value = message
        self.waiting.pop(id).set_result(value)

    def call(self, name: str, argument: Any) -> asyncio.Future[Any]:
        id = next(self.ids)
        future = self.waiting[id] = self.loop.create_future()
        if not self.out:
            self.loop.call_soon(self.flush)
        self.out.append(orjson.dumps([id, name, argument]) + b"\n")
        return future

    def echo(self, n: int) -> asyncio.Future[Any]:
        return self.call("echo", n)

    def later(self, n: int) -> asyncio.Future[Any]:
        return self.call("later", n)

    async def bytes(self, data: bytes) -> bytes:
        return base64.b64decode(await self.call("bytes", base64.b64encode(data).decode()))

    def text(self, text: str) -> asyncio.Future[Any]:
        return self.call("text", text)


class Frames(RpcPeer):
    def __init__(self) -> None:
        self.server = ServerProcess("rpc_frames")

    def over_tcp(self, body: Any) -> float:
        async def main() -> float:
            loop = asyncio.get_running_loop()
            transport, client = await loop.create_connection(
                Client, "127.0.0.1", int(self.server.address)
            )
            value = await self.checked(client, body)
            transport.close()
            return value

        return asyncio.run(main())


def adapter(folder: Path, events: int) -> Any:
    return Frames()


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__" and sys.argv[1:] == ["serve"]:
    asyncio.run(serve())
