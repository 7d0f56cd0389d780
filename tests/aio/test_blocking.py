"""The blocking face: calls from threads without a loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import capnwire
from capnwire.errors import RemoteError
from tests.aio.service import SCHEMA, Calculator, Double


@pytest.fixture
def url() -> Iterator[str]:
    """A Calculator served by a loop in a thread."""
    ready: list[str] = []
    started, stop = threading.Event(), threading.Event()

    async def main() -> None:
        async with capnwire.serve(Calculator(), "tcp://127.0.0.1:0") as server:
            ready.append(server.addresses[0])
            started.set()
            await asyncio.get_running_loop().run_in_executor(None, stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert started.wait(20)
    yield ready[0]
    stop.set()
    thread.join()


def test_calls_block_until_the_results_are_there(url: str) -> None:
    with capnwire.connect_sync(url) as session:
        calculator = session.bootstrap(SCHEMA.Calculator)
        assert calculator.add(1, right=2).value == 3
        assert calculator.divide(7, 2).to_dict() == {"quotient": 3, "rest": 1}
        counter = calculator.counter(5).counter
        assert counter.next().value == 6
        assert calculator.nested().outer.inner.counter.next().value == 51
        assert calculator.same(counter).object == counter
        assert not session.is_closed
        assert session.peer[0] == "127.0.0.1"
    assert session.is_closed


def test_objects_given_to_the_peer_are_called_in_the_session_s_thread(url: str) -> None:
    with capnwire.connect_sync(url) as session:
        assert session.bootstrap(SCHEMA.Calculator).apply(Double(), 4).value == 16


def test_calls_come_from_any_thread(url: str) -> None:
    with capnwire.connect_sync(url) as session, ThreadPoolExecutor(8) as pool:
        calculator = session.bootstrap(SCHEMA.Calculator)
        found = list(pool.map(lambda n: calculator.add(n, n).value, range(100)))
        assert found == [2 * n for n in range(100)]


def test_replies_can_be_started_and_pipelined(url: str) -> None:
    with capnwire.connect_sync(url) as session:
        calculator = session.bootstrap(SCHEMA.Calculator)
        reply = calculator.counter.start(1)
        assert reply.pipeline.counter.next().value == 2
        assert reply.result().counter.next().value == 3


def test_errors_and_timeouts_are_raised(url: str) -> None:
    with capnwire.connect_sync(url) as session:
        calculator = session.bootstrap(SCHEMA.Calculator)
        with pytest.raises(RemoteError, match="no luck"):
            calculator.fail("", "no luck")
        with pytest.raises(TimeoutError):
            calculator.wait.with_timeout(0.01)()
        waiting = calculator.wait.start()
        waiting.cancel()
        assert calculator.add(1, 1).value == 2


def test_a_call_from_the_session_s_own_thread_is_refused(url: str) -> None:
    with capnwire.connect_sync(url) as session:
        calculator = session.bootstrap(SCHEMA.Calculator)

        class Asks(SCHEMA.Operation.Server):
            def run(self, value: int) -> int:
                return int(calculator.add(value, 1).value)

        with pytest.raises(RemoteError, match="own thread"):
            calculator.apply(Asks(), 1)


# The exit ends the session's thread, which is what is tested.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_callback_that_exits_ends_the_session_and_what_waits_for_it(url: str) -> None:
    class Exits(SCHEMA.Operation.Server):
        def run(self, value: int) -> int:
            raise SystemExit(value)

    with capnwire.connect_sync(url) as session:
        calculator = session.bootstrap(SCHEMA.Calculator)
        with pytest.raises(RemoteError) as caught:
            calculator.apply(Exits(), 1)
        assert caught.value.kind == "DISCONNECTED"
        with pytest.raises(RemoteError, match="the session is closed"):
            calculator.add(1, 2)
        assert session.is_closed


def test_a_closed_session_says_so(url: str) -> None:
    session = capnwire.connect_sync(url)
    calculator = session.bootstrap(SCHEMA.Calculator)
    reply = calculator.add.start(1, 2)
    assert reply.result().value == 3
    session.close()
    session.close()
    for use in (session.bootstrap, reply.result, lambda: calculator.add(1, 2)):
        with pytest.raises(RemoteError, match="the session is closed") as caught:
            use()
        assert caught.value.kind == "DISCONNECTED"


def test_nobody_there_is_an_os_error() -> None:
    with pytest.raises(OSError):
        capnwire.connect_sync("tcp://127.0.0.1:1")
