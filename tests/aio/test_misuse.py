"""Servers and callers that do what they should not: it costs a call, not the connection."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import capnwire
from capnwire.errors import RemoteError
from tests.aio.service import SCHEMA, Calculator, run


class Mute(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Base(BaseException):
    """No Exception."""


class Odd(Calculator):
    """Raises what it is told to, from a plain method and from a coroutine."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def fail(self, kind: str, text: str) -> None:
        raise self.error

    async def later(self, tag: str) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Mute(), "Mute"), (asyncio.CancelledError(), "cancelled|CancelledError"),
        (GeneratorExit(), "GeneratorExit"), (StopIteration(5), "5|StopIteration"),
        (Base("from below"), "from below"), (RemoteError("x", kind=5), "x"),  # type: ignore[arg-type]
        (ValueError("\ud800"), r"\?"), (MemoryError(), "MemoryError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@pytest.mark.parametrize("kind", ["tcp", "memory"])
def test_whatever_a_method_raises_fails_its_call_only(
    kind: str, error: BaseException, text: str
) -> None:
    async def calls(session: Any) -> None:
        calculator = session.bootstrap(SCHEMA.Calculator)
        replies = [calculator.fail("", ""), calculator.later(""), calculator.add(1, 2)]
        for reply in replies[:2]:
            with pytest.raises(RemoteError, match=text) as caught:
                await reply
            assert caught.value.kind == "FAILED"
        assert (await replies[2]).value == 3

    async def main() -> None:
        # A task's BaseException is also the loop's to report.
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        if kind == "memory":
            left, right = capnwire.memory_pair(Odd(error), None)
            await calls(right)
            left.close()
            return
        async with (
            capnwire.serve(Odd(error), "tcp://127.0.0.1:0") as server,
            capnwire.connect(server.addresses[0]) as session,
        ):
            await calls(session)

    run(main())


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_exit_in_a_method_leaves_the_loop_and_answers_what_came(
    error: type[BaseException]
) -> None:
    loop = asyncio.new_event_loop()
    left, right = capnwire.memory_pair(Odd(error("out")), None, loop=loop)
    calculator = right.bootstrap(SCHEMA.Calculator)
    replies = [calculator.fail("", ""), calculator.add(1, 2)]
    with pytest.raises(error):
        loop.run_until_complete(replies[0])
    with pytest.raises(RemoteError, match="out"):
        loop.run_until_complete(replies[0])
    assert loop.run_until_complete(replies[1]).value == 3
    left.close()
    loop.run_until_complete(right.wait_closed())
    loop.close()


@pytest.mark.parametrize("details", [((1, "text"),), ((-1, b""),), ((2**64, b""),)])
def test_details_of_another_type_are_refused_where_they_are_given(details: Any) -> None:
    with pytest.raises(TypeError, match="details"):
        RemoteError("x", details=details)


@pytest.mark.parametrize(
    ("served", "options", "text"),
    [
        (5, {}, "a bootstrap is"), (Calculator, {"message_wrods": 5}, "message_wrods"),
        (Calculator, {"call_limit": "many"}, "integer|int"),
    ],
)
def test_what_no_session_takes_is_refused_before_anybody_connects(
    served: Any, options: dict[str, Any], text: str
) -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match=text):
            await capnwire.serve(served, "tcp://127.0.0.1:0", **options)

    run(main())


def test_a_call_from_another_thread_is_sent_without_waiting_for_the_loop_s_next_event() -> None:
    async def main() -> None:
        served = Calculator()
        async with (
            capnwire.serve(served, "tcp://127.0.0.1:0") as server,
            capnwire.connect(server.addresses[0]) as session,
        ):
            calculator = session.bootstrap(SCHEMA.Calculator)
            await calculator.add(0, 0)
            waits = threading.Event()
            thread = threading.Thread(target=lambda: (waits.wait(), calculator.wait()))
            thread.start()
            asyncio.get_running_loop().call_soon(waits.set)
            await served.started.wait()
            thread.join()

    run(main())


def test_a_method_may_close_its_own_connection() -> None:
    class Closes(Calculator):
        def add(self, left: int, right: int) -> int:
            sessions[0].close()
            return left + right

    sessions: list[Any] = []

    async def main() -> None:
        async with (
            capnwire.serve(Closes(), "tcp://127.0.0.1:0") as server,
            capnwire.connect(server.addresses[0]) as session,
        ):
            calculator = session.bootstrap(SCHEMA.Calculator)
            assert (await calculator.divide(9, 4)).quotient == 2
            sessions.extend(server.sessions)
            replies = [calculator.add(1, 2), calculator.add(3, 4)]
            for reply in replies:
                with pytest.raises(RemoteError) as caught:
                    await reply
                assert caught.value.kind == "DISCONNECTED"

    run(main())
