"""pycapnp's RPC: the C++ implementation in its own event loop under asyncio."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from bench.against.rpc_like import RpcPeer, ServerProcess
from bench.harness import ROOT

NAME = "pycapnp"
DISTRIBUTION = "pycapnp"


def load() -> tuple[Any, Any]:
    import capnp

    capnp.remove_import_hook()
    return capnp, capnp.load(str(ROOT / "bench/schemas/rpc.capnp"))


class Checked:
    def __init__(self, client: Any) -> None:
        self.timed = client

    async def echo(self, n: int) -> Any:
        return (await self.timed.echo(n)).n

    async def bytes(self, data: bytes) -> Any:
        return (await self.timed.bytes(data)).data


class Pycapnp(RpcPeer):
    def __init__(self) -> None:
        self.capnp, self.schema = load()
        self.server = ServerProcess("rpc_pycapnp")

    def over_tcp(self, body: Any) -> float:
        async def main() -> float:
            stream = await self.capnp.AsyncIoStream.create_connection(
                "127.0.0.1", int(self.server.address)
            )
            client = self.capnp.TwoPartyClient(stream)
            echo = client.bootstrap().cast_as(self.schema.Echo)
            return await self.checked(Checked(echo), body)

        return asyncio.run(self.capnp.run(main()))


def adapter(folder: Path, events: int) -> Any:
    return Pycapnp()


async def serve() -> None:
    capnp, schema = load()

    class Echo(schema.Echo.Server):  # type: ignore[misc, name-defined]
        async def echo(self, n: int, **_: Any) -> int:
            return n

        async def later(self, n: int, **_: Any) -> int:
            return n

        async def bytes(self, data: bytes, **_: Any) -> bytes:
            return data

        async def text(self, text: str, **_: Any) -> str:
            return text

    async def accept(stream: Any) -> None:
        await capnp.TwoPartyServer(stream, bootstrap=Echo()).on_disconnect()

    server = await capnp.AsyncIoStream.create_server(accept, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__" and sys.argv[1:] == ["serve"]:
    import capnp

    asyncio.run(capnp.run(serve()))
