"""pycapnp (the C++ implementation) as client and as server, over TCP and Unix sockets."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import capnwire
from capnwire.errors import RemoteError
from tests.aio.service import SCHEMA, Calculator, Counter, Double, run
from tests.conftest import import_peer

PEER = Path(__file__).parent / "pycapnp_peer.py"


@pytest.fixture(autouse=True)
def _peer() -> None:
    import_peer("capnp")


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cw") as name:
        yield Path(name)


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, str(PEER), *arguments, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def served_by_pycapnp(kind: str, folder: Path) -> AsyncIterator[str]:
    process = await start("serve", kind, f"{folder}/socket")
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode().strip()
    assert line, (await process.communicate())[1].decode()
    try:
        yield f"unix:{folder}/socket" if kind == "unix" else f"tcp://127.0.0.1:{line}"
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_pycapnp_uses_what_we_serve(kind: str, folder: Path) -> None:
    class Open(Calculator):
        def order(self, tag: str, slow: bool) -> Any:
            self.gate.set()

    async def main() -> None:
        calculator = Open()
        url = f"unix:{folder}/socket" if kind == "unix" else "tcp://127.0.0.1:0"
        async with capnwire.serve(calculator, url) as server:
            address = server.addresses[0].rpartition(":")[2]
            process = await start("use", kind, address)
            output, errors = await process.communicate()
            assert (output, process.returncode) == (b"done\n", 0), errors.decode()
            assert calculator.cancelled.is_set()
            for session in server.sessions:
                await session.on_disconnect()

    run(main())


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_we_use_what_pycapnp_serves(kind: str, folder: Path) -> None:
    async def main() -> None:
        async with served_by_pycapnp(kind, folder) as url, capnwire.connect(url) as session:
            calculator = session.bootstrap(SCHEMA.Calculator)
            assert (await calculator.add(1, 2)).value == 3
            found = await asyncio.gather(*(calculator.add(n, n) for n in range(300)))
            assert [results.value for results in found] == [2 * n for n in range(300)]
            assert (await calculator.divide(17, 5)).to_dict() == {"quotient": 3, "rest": 2}
            counter = calculator.counter(1).counter
            assert (await counter.next()).value == 2
            assert (await calculator.counter(1).counter.child().counter.next()).value == 102
            assert (await calculator.apply(Double(), 5)).value == 32
            mine = Counter(7)
            home = (await calculator.same(mine)).object
            assert capnwire.local_object(home) is mine
            early = calculator.same(mine).object
            calls = [early.next() for _ in range(3)]
            await calculator.add(1, 1)
            calls += [early.next() for _ in range(3)]
            assert [(await call).value for call in calls] == [8, 9, 10, 11, 12, 13]
            theirs = (await calculator.same(counter)).object
            assert theirs == counter
            data = bytes(range(256)) * 8192
            assert (await calculator.blob(data)).data == data
            with pytest.raises(RemoteError, match="no luck") as caught:
                await calculator.fail("", "no luck")
            assert caught.value.kind == "FAILED"
            late = calculator.wait().pipeline.result
            first = late.next()
            cancelled = calculator.wait()
            await calculator.add(1, 1)
            cancelled.cancel()
            assert (await calculator.peer()).text == "1"
            await calculator.order("open", False)
            assert (await first).value == 1001
            assert (await late.next()).value == 1002

    run(main())


def test_what_pycapnp_s_death_interrupts_fails_as_disconnected(folder: Path) -> None:
    async def main() -> None:
        process = await start("serve", "unix", f"{folder}/socket")
        assert process.stdout is not None
        await process.stdout.readline()
        async with capnwire.connect(f"unix:{folder}/socket") as session:
            calculator = session.bootstrap(SCHEMA.Calculator)
            await calculator.add(1, 1)
            reply = calculator.wait()
            await calculator.add(1, 1)
            process.kill()
            with pytest.raises(RemoteError) as caught:
                await reply
            assert caught.value.kind == "DISCONNECTED"
        await process.communicate()

    run(main())
