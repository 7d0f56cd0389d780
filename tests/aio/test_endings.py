"""What waits for an end gets one: drains, closings, cancelled tasks, loops that are over."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref
from typing import Any

import pytest

import capnwire
from capnwire.aio.transports import SocketPipe
from capnwire.errors import RemoteError
from tests.aio.service import SCHEMA, Calculator, Counter, HeldTransport, Sink, run
from tests.aio.test_misuse import Odd


def test_drains_at_the_same_time_all_end() -> None:
    async def main() -> None:
        calculator = Calculator()
        server, client = capnwire.memory_pair(calculator, None)
        reply = client.bootstrap(SCHEMA.Calculator).wait()
        await calculator.started.wait()
        drains = [asyncio.ensure_future(server.drain()) for _ in range(3)]
        await asyncio.sleep(0)
        calculator.gate.set()
        await reply
        assert await asyncio.gather(*drains) == [True] * 3

    run(main())


def test_a_loop_that_is_closed_is_not_kept() -> None:
    async def main() -> None:
        server, client = capnwire.memory_pair(Calculator(), None)
        assert (await client.bootstrap(SCHEMA.Calculator).add(1, 2)).value == 3
        loops.append(weakref.ref(asyncio.get_running_loop()))

    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []
    for _ in range(5):
        run(main())
    gc.collect()
    assert [loop() is None for loop in loops[:-1]] == [True] * 4, "a new one lets go of them"


def test_an_object_is_served_again_after_a_loop_was_closed_in_the_middle_of_a_call() -> None:
    sink = Sink()
    sink.gate = asyncio.Event()
    first = asyncio.new_event_loop()
    first.set_exception_handler(lambda loop, context: None)  # of the task that has no end
    pair = capnwire.memory_pair(sink, None, loop=first)
    reply = pair[1].bootstrap(SCHEMA.Sink).write(b"x")

    async def begun() -> None:
        while not sink.running:
            await asyncio.sleep(0)

    first.run_until_complete(begun())
    first.close()
    sink.gate = None

    async def main() -> None:
        _, client = capnwire.memory_pair(sink, None)
        called = client.bootstrap(SCHEMA.Sink)
        await called.write(b"yz")
        assert (await called.done()).bytes == 2

    run(main())
    assert reply.done(), "the window had room"


def test_whoever_connects_while_a_listener_closes_is_sent_away() -> None:
    async def main() -> None:
        server = await capnwire.serve(Calculator(), "tcp://127.0.0.1:0")
        late = server._protocol()
        await server.close()
        transport = HeldTransport()
        late.connection_made(transport)
        await late.session.on_disconnect()
        assert transport.closed
        late.connection_lost(None)
        assert not server._sessions

    run(main())


def test_what_a_method_returned_does_not_wait_for_the_collector() -> None:
    class Making(Calculator):
        async def wait(self) -> Any:
            counter = Counter()
            made.append(weakref.ref(counter))
            return counter

    made: list[weakref.ref[Counter]] = []

    async def main() -> None:
        server, client = capnwire.memory_pair(Making(), None)
        calculator = client.bootstrap(SCHEMA.Calculator)
        assert (await (await calculator.wait()).result.next()).value == 1
        for _ in range(6):
            await asyncio.sleep(0)
        assert made[0]() is None

    gc.disable()
    try:
        run(main())
    finally:
        gc.enable()


def test_a_task_that_is_cancelled_before_it_begins_answers_its_caller() -> None:
    async def main() -> None:
        calculator = Calculator()
        _, client = capnwire.memory_pair(calculator, None)
        called = client.bootstrap(SCHEMA.Calculator)
        await called.add(1, 1)
        before = asyncio.all_tasks()
        reply = called.wait()
        client.flush()
        for task in asyncio.all_tasks() - before:
            task.cancel()
        with pytest.raises(RemoteError, match="cancelled"):
            await reply
        assert (await called.add(1, 2)).value == 3, "the next calls start"
        assert not client.runtime.running

    run(main())


class Twofold(Calculator):
    """Its coroutine gives another."""

    async def wait(self) -> Any:
        return super().wait()


def test_cancelling_a_call_cancels_the_coroutine_that_its_coroutine_gave() -> None:
    async def main() -> None:
        calculator = Twofold()
        _, client = capnwire.memory_pair(calculator, None)
        called = client.bootstrap(SCHEMA.Calculator)
        reply = called.wait()
        await calculator.started.wait()
        reply.cancel()
        await calculator.cancelled.wait()
        assert (await called.add(1, 2)).value == 3

    run(main())


def test_closing_lets_the_peer_take_its_time_once() -> None:
    async def main() -> None:
        session = capnwire.Session()
        pipe = SocketPipe(lambda pipe, transport: session)
        transport = HeldTransport()
        pipe.connection_made(transport)
        reply = session.bootstrap(SCHEMA.Calculator).blob(bytes(1_000_000))
        session.flush()
        pipe.pause_writing()
        transport.size -= 8
        pipe.stuck()
        assert not transport.aborted
        session.close()
        await session.on_disconnect()
        transport.size -= 8
        pipe.stuck()
        assert transport.aborted
        pipe.connection_lost(None)
        with pytest.raises(RemoteError, match="closed"):
            await reply

    run(main())


def test_closed_streams_end_although_nobody_waits_for_it() -> None:
    async def main() -> None:
        served: asyncio.Queue[Any] = asyncio.Queue()

        def accept(reader: Any, writer: Any) -> None:
            session = capnwire.over_streams(reader, writer, Calculator(), write_timeout=0.05)
            while not writer.transport.get_write_buffer_size():
                writer.write(bytes(1000))
            served.put_nowait((session, writer))

        listener = await asyncio.start_server(accept, "127.0.0.1", 0)
        with socket.create_connection(listener.sockets[0].getsockname()[:2]):
            session, writer = await served.get()
            session.close()
            await writer.wait_closed()
        listener.close()

    run(main())


def test_an_exit_in_a_method_loses_nothing_that_came_with_it() -> None:
    loop = asyncio.new_event_loop()
    left, right = capnwire.memory_pair(Odd(SystemExit("out")), None, loop=loop)
    calculator = right.bootstrap(SCHEMA.Calculator)
    replies = [calculator.fail("", ""), calculator.blob(bytes(50_000)), calculator.add(1, 2)]
    with pytest.raises(SystemExit):
        loop.run_until_complete(replies[0])
    assert len(loop.run_until_complete(replies[1]).data) == 50_000
    assert loop.run_until_complete(replies[2]).value == 3
    with pytest.raises(RemoteError, match="out"):
        loop.run_until_complete(replies[0])
    left.close()
    loop.run_until_complete(right.wait_closed())
    loop.close()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_exit_in_a_method_ends_a_session_over_streams(error: type[BaseException]) -> None:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)
    left, right = socket.socketpair()

    async def sessions() -> tuple[Any, Any]:
        first = await asyncio.open_connection(sock=left)
        second = await asyncio.open_connection(sock=right)
        return (
            capnwire.over_streams(*first, Odd(error("out"))), capnwire.over_streams(*second)
        )

    server, client = loop.run_until_complete(sessions())
    reply = client.bootstrap(SCHEMA.Calculator).fail("", "")
    with pytest.raises(error):
        loop.run_until_complete(reply)
    assert "out" in str(loop.run_until_complete(server.on_disconnect()))
    with pytest.raises(RemoteError):
        loop.run_until_complete(reply)
    loop.run_until_complete(server.wait_closed())
    loop.run_until_complete(client.wait_closed())
    loop.close()
