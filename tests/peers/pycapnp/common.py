"""What the pycapnp server and client share: addresses, objects that count, conditions to wait for.

Not a test; runs with pycapnp alone, without capnwire.
"""

from __future__ import annotations

import asyncio
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import capnp

capnp.remove_import_hook()
SCHEMA = Path(__file__).resolve().parent.parent / "peer.capnp"
peer = capnp.load(str(SCHEMA), imports=[str(Path(capnp.__file__).parents[1])])


def options() -> Namespace:
    parser = ArgumentParser()
    parser.add_argument("--limit-words", type=int, default=8 << 20, help="the server's")
    parser.add_argument("address", help="tcp://host:port or unix:/path")
    parser.add_argument("names", nargs="*")
    return parser.parse_args()


def split(address: str) -> tuple[str, int] | str:
    if address.startswith("unix:"):
        return address.removeprefix("unix:")
    host, port = address.removeprefix("tcp://").rsplit(":", 1)
    return host, int(port)


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

    async def next(self, **_: Any) -> int:
        self._count += 1
        return self._count - 1

    async def name(self, **_: Any) -> str:
        return self._name


class Gate(peer.Gate.Server):
    """Gives this library what it lacks, a promise for a capability: a pipelined call on a gate."""

    def __init__(self) -> None:
        self._future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._reply = peer.Gate._new_client(self).open()
        self.promise = self._reply.counter

    async def open(self, **_: Any) -> Any:
        return await self._future

    async def fulfill(self, counter: Any) -> None:
        self._future.set_result(counter)
        await self._reply
        self._forget()

    async def reject(self, text: str) -> None:
        self._future.set_exception(Exception(text))
        try:
            await self._reply
        except capnp.KjException:
            self._forget()

    def _forget(self) -> None:
        # A cycle of gate, client and reply, which the collector cannot see.
        del self._reply, self.promise, self._future


def die_with_parent() -> None:
    """Exit once standard input ends."""

    def ended() -> None:
        if not os.read(0, 65536):
            os._exit(0)

    asyncio.get_running_loop().add_reader(0, ended)
