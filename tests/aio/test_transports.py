"""Sessions over each transport: TCP, TLS, Unix sockets, streams, subprocess pipes, packed."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import capnwire
from capnwire.aio.transports import UNTAKEN_BYTES, SocketPipe, packed_frames
from capnwire.errors import RemoteError
from tests.aio.service import DATA, SCHEMA, Calculator, Counter, Double, HeldTransport, run


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: those of Unix sockets have 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="cw") as name:
        yield Path(name)


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(DATA / "cert.pem", DATA / "key.pem")
    client = ssl.create_default_context(cafile=str(DATA / "cert.pem"))
    return server, client


async def exercise(session: Any) -> None:
    """A call, a pipeline, a callback, something large."""
    calculator = session.bootstrap(SCHEMA.Calculator)
    assert (await calculator.add(1, 2)).value == 3
    assert (await calculator.counter(1).counter.child().counter.next()).value == 102
    assert (await calculator.apply(Double(), 5)).value == 32
    data = bytes(range(256)) * 4096
    assert (await calculator.blob(data)).data == data


@pytest.mark.parametrize("kind", ["tcp", "tls", "unix"])
def test_sessions_run_over_sockets(kind: str, folder: Path) -> None:
    async def main() -> None:
        server_ssl, client_ssl = contexts() if kind == "tls" else (None, None)
        url = f"unix:{folder}/socket" if kind == "unix" else f"{kind}://localhost:0"
        async with capnwire.serve(Calculator(), url, ssl=server_ssl) as server:
            async with capnwire.connect(server.addresses[0], ssl=client_ssl) as session:
                await exercise(session)
                assert len(server.sessions) == 1
            with pytest.raises(RemoteError):
                await session.bootstrap(SCHEMA.Calculator).add(1, 1)

    run(main())


def test_a_factory_sees_who_connects() -> None:
    seen: list[Any] = []

    def factory(peer: Any) -> Any:
        seen.append(peer)
        return Counter(len(seen) * 10)

    async def main() -> None:
        async with capnwire.serve(factory, "tcp://127.0.0.1:0") as server:
            for number in (1, 2):
                async with capnwire.connect(server.addresses[0]) as session:
                    counter = session.bootstrap(SCHEMA.Counter)
                    assert (await counter.next()).value == number * 10 + 1
                    host, port = seen[-1]
                    assert (host, port) == session._pipe.transport.get_extra_info("sockname")

    run(main())


def test_a_method_sees_who_calls() -> None:
    async def main() -> None:
        async with (
            capnwire.serve(Calculator(), "tcp://127.0.0.1:0") as server,
            capnwire.connect(server.addresses[0]) as session,
        ):
            text = (await session.bootstrap(SCHEMA.Calculator).peer()).text
            assert text == repr(session._pipe.transport.get_extra_info("sockname"))

    run(main())


def test_the_client_s_side_offers_an_object_too() -> None:
    found: asyncio.Queue[int]

    async def main() -> None:
        nonlocal found
        found = asyncio.Queue()
        async with (
            capnwire.serve(Calculator(), "tcp://127.0.0.1:0") as server,
            capnwire.connect(server.addresses[0], bootstrap=Counter(41)) as session,
        ):
            await session.bootstrap(SCHEMA.Calculator).add(1, 1)
            counter = server.sessions[0].bootstrap(SCHEMA.Counter)
            assert (await counter.next()).value == 42

    run(main())


@pytest.mark.parametrize("packed", [False, True])
def test_sessions_run_over_streams(packed: bool) -> None:
    async def main() -> None:
        served: list[Any] = []

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.append(capnwire.over_streams(reader, writer, Calculator(), packed=packed))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        async with capnwire.over_streams(reader, writer, packed=packed) as session:
            await exercise(session)
        await served[0].wait_closed()
        server.close()
        await server.wait_closed()

    run(main())


def test_packed_bytes_that_are_no_messages_end_the_session() -> None:
    async def main() -> None:
        served: list[Any] = []

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.append(capnwire.over_streams(reader, writer, Calculator(), packed=True))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.write(b"\xff" * 9 + b"\0")  # a word of ones: no segment count
        assert await reader.read()
        assert "cannot be read" in str(await served[0].on_disconnect())
        writer.close()
        await writer.wait_closed()
        await served[0].wait_closed()
        server.close()
        await server.wait_closed()

    run(main())


CHILD = """
import asyncio, capnwire
from tests.aio.service import Calculator
async def main():
    session = await capnwire.over_stdio(Calculator())
    await session.on_disconnect()
asyncio.run(main())
"""


def test_sessions_run_over_the_pipes_of_a_subprocess() -> None:
    async def main() -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CHILD, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2],
        )
        async with capnwire.over_streams(process.stdout, process.stdin) as session:
            await exercise(session)
        assert await process.wait() == 0
        process._transport.close()

    run(main())


def test_a_peer_that_goes_away_without_a_word_is_noticed() -> None:
    async def main() -> None:
        calculator = Calculator()
        async with (
            capnwire.serve(calculator, "tcp://127.0.0.1:0") as server,
            capnwire.connect(server.addresses[0]) as session,
        ):
            session.bootstrap(SCHEMA.Calculator).wait()
            await calculator.started.wait()
            session._pipe.transport.abort()
            await calculator.cancelled.wait()
            assert (await session.on_disconnect()).kind == "DISCONNECTED"

    run(main())


def test_an_open_connection_takes_little_memory() -> None:
    async def main() -> None:
        async with capnwire.serve(Calculator(), "tcp://127.0.0.1:0") as server:
            async def session() -> Any:
                made = await capnwire.connect(server.addresses[0])
                assert (await made.bootstrap(SCHEMA.Calculator).add(1, 1)).value == 2
                return made

            sessions = [await session()]
            tracemalloc.start()
            try:
                sessions += [await session() for _ in range(20)]
                gc.collect()
                kept, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert kept / 20 < 32 * 1024, "both ends of it"
            for each in sessions:
                each.close()
                await each.wait_closed()

    run(main())


def test_closing_a_listener_drains_its_sessions() -> None:
    async def main() -> None:
        calculator = Calculator()
        server = await capnwire.serve(calculator, "tcp://127.0.0.1:0")
        async with capnwire.connect(server.addresses[0]) as session:
            reply = session.bootstrap(SCHEMA.Calculator).wait()
            await calculator.started.wait()
            closing = asyncio.ensure_future(server.close(drain=20))
            await asyncio.sleep(0)
            calculator.gate.set()
            assert (await reply).result is not None
            await closing
            await session.on_disconnect()

    run(main())


def test_nobody_at_an_address_is_an_os_error() -> None:
    async def main() -> None:
        with socket.socket() as taken:  # so that nobody else comes to listen there
            taken.bind(("127.0.0.1", 0))
            with pytest.raises(OSError):
                await capnwire.connect("tcp://{}:{}".format(*taken.getsockname()))

    run(main())


@pytest.mark.parametrize("url", ["http://x:1", "tcp://host", "unix:", "file:///x", "nonsense"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        capnwire.connect(url)


class Recorder:
    """A transport that keeps what a session sends."""

    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, chunks: list[Any]) -> None:
        for chunk in chunks:
            self.data += chunk

    def close(self) -> None: ...

    async def wait_closed(self) -> None: ...


def recorded_calls(count: int, size: int) -> bytes:
    """What a client sends that calls `blob` so often with so many bytes, which do not pack."""
    recorder = Recorder()
    session = capnwire.Session()
    session.attach(recorder)
    calculator = session.bootstrap(SCHEMA.Calculator)
    replies = [calculator.blob(b"\1" * size) for _ in range(count)]
    session.flush()
    frames = bytes(recorder.data)
    for reply in replies:
        reply.cancel()
    session.close()
    return frames


async def send_raw(url: str, frames: bytes) -> Any:
    """Connect and send; what comes is read only when the caller does."""
    host, port = url.removeprefix("tcp://").rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port), limit=1)
    writer.write(frames)
    return reader, writer


async def first_session(server: Any) -> Any:
    while not server.sessions:
        await asyncio.sleep(0)
    return server.sessions[0]


def test_a_peer_that_takes_no_output_is_given_up() -> None:
    async def main() -> None:
        frames = recorded_calls(40, 1_000_000)
        async with capnwire.serve(
            Calculator(), "tcp://127.0.0.1:0", write_timeout=0.05
        ) as server:
            _, writer = await send_raw(server.addresses[0], frames)
            served = await first_session(server)
            assert "taken no output" in str(await served.on_disconnect())
            writer.transport.abort()

    run(main())


def filled(session: Any) -> None:
    """Answer until some bytes stay here, too few for the transport to say so."""
    transport = session._pipe.transport
    while not transport.get_write_buffer_size():
        transport.write(bytes(1000))
    assert not session._pipe.paused


def test_closing_ends_although_the_peer_takes_none_of_the_last_bytes() -> None:
    async def main() -> None:
        server = await capnwire.serve(Calculator(), "tcp://127.0.0.1:0", write_timeout=0.05)
        with socket.create_connection(server.addresses[0].removeprefix("tcp://").split(":")):
            filled(await first_session(server))
            await server.close()

    run(main())


def test_closing_streams_ends_although_the_peer_takes_none_of_the_last_bytes() -> None:
    async def main() -> None:
        served: asyncio.Queue[Any] = asyncio.Queue()

        def accept(reader: Any, writer: Any) -> None:
            session = capnwire.over_streams(reader, writer, Calculator(), write_timeout=0.05)
            while not writer.transport.get_write_buffer_size():
                writer.write(bytes(1000))
            served.put_nowait(session)

        listener = await asyncio.start_server(accept, "127.0.0.1", 0)
        with socket.create_connection(listener.sockets[0].getsockname()[:2]):
            session = await served.get()
            session.close()
            await session.wait_closed()
        listener.close()

    run(main())


@pytest.mark.parametrize("packed", [False, True])
def test_a_peer_that_takes_no_output_of_streams_is_given_up(packed: bool) -> None:
    async def main() -> None:
        frames = recorded_calls(60, 1_000_000)
        served: asyncio.Queue[Any] = asyncio.Queue()

        def accept(*streams: Any) -> None:
            options = {"packed": packed, "write_timeout": 0.05}
            served.put_nowait(capnwire.over_streams(*streams, Calculator(), **options))

        listener = await asyncio.start_server(accept, "127.0.0.1", 0)
        host, port = listener.sockets[0].getsockname()[:2]
        sent = packed_frames(frames) if packed else frames
        _, writer = await send_raw(f"tcp://{host}:{port}", sent)
        session = await served.get()
        assert "taken no output" in str(await session.on_disconnect())
        await session.wait_closed()
        writer.transport.abort()
        listener.close()

    run(main())


def test_reading_stops_while_the_peer_takes_no_answers() -> None:
    async def main() -> None:
        frames = recorded_calls(60, 1_000_000)
        async with capnwire.serve(
            Calculator(), "tcp://127.0.0.1:0", write_timeout=None
        ) as server:
            reader, writer = await send_raw(server.addresses[0], frames)
            transport = (await first_session(server))._pipe.transport
            while transport.is_reading():
                await asyncio.sleep(0)
            assert UNTAKEN_BYTES < transport.get_write_buffer_size() < UNTAKEN_BYTES + 2_200_000
            taken = 0
            while taken < 60_000_000:
                taken += len(await reader.read(1 << 20))
            assert transport.is_reading()
            writer.transport.abort()

    run(main())


@pytest.mark.parametrize("kind", ["tcp", "tls", "streams"])
def test_a_burst_larger_than_any_buffer_is_answered_while_it_is_sent(kind: str) -> None:
    async def called(session: Any) -> None:
        calculator = session.bootstrap(SCHEMA.Calculator)
        data = bytes(100_000)
        for results in await asyncio.gather(*(calculator.blob(data) for _ in range(400))):
            assert len(results.data) == 100_000

    async def main() -> None:
        if kind == "streams":
            served: list[Any] = []
            listener = await asyncio.start_server(
                lambda *streams: served.append(capnwire.over_streams(*streams, Calculator())),
                "127.0.0.1", 0,
            )
            streams = await asyncio.open_connection(*listener.sockets[0].getsockname()[:2])
            async with capnwire.over_streams(*streams) as session:
                await called(session)
            await served[0].wait_closed()
            listener.close()
            return
        server_ssl, client_ssl = contexts() if kind == "tls" else (None, None)
        async with (
            capnwire.serve(Calculator(), f"{kind}://localhost:0", ssl=server_ssl) as server,
            capnwire.connect(server.addresses[0], ssl=client_ssl) as session,
        ):
            await called(session)

    run(main())


def test_a_peer_that_takes_some_output_is_given_more_time() -> None:
    async def main() -> None:
        session = capnwire.Session()
        pipe = SocketPipe(lambda pipe, transport: session)
        transport = HeldTransport()
        pipe.connection_made(transport)
        calculator = session.bootstrap(SCHEMA.Calculator)
        reply = calculator.blob(bytes(1_000_000))
        session.flush()
        pipe.pause_writing()
        for _ in range(3):
            transport.size -= 8
            pipe.stuck()
            assert not session.is_closed
        pipe.stuck()
        assert transport.aborted
        with pytest.raises(RemoteError, match="taken no output"):
            await reply
        pipe.connection_lost(None)

    run(main())
