"""What a peer makes this side hold: it is counted, the count comes back, nothing outlasts it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Generator
from typing import Any

import pytest

from capnwire.service.client import client_for, set_stream_window, stream_bytes_in_flight
from capnwire.service.reference import new_promise
from tests.rpc.pair import Cancelled, End, Pair, StepRuntime
from tests.rpc.probe import Probe, State
from tests.rpc.talker import (
    Talker,
    call,
    disembargo,
    finish,
    pointer,
    resolve,
    returns,
    unimplemented,
)
from tests.rpc.wire import SCHEMA


def count(kind: str) -> int:
    gc.collect()
    return sum(type(found).__name__ == kind for found in gc.get_objects())


def served(kind: type[Probe], **options: Any) -> Talker:
    """A talker to a Probe of another class."""
    talker = Talker(serve=False, **options)
    talker.end = End(talker.runtime, kind(talker.state), **options)
    talker.begin()
    return talker


def holding(cap: tuple[Any, ...], **options: Any) -> Talker:
    """A talker whose Probe holds a capability of the talker's."""
    talker = Talker(**options)
    talker.begin()
    talker.say(call(0, 0, "hold", [cap], cap=pointer(0)))
    return talker


# ------------------------------------------------------------------ answers


def test_calls_on_an_answer_that_failed_name_no_places() -> None:
    talker = Talker(export_limit=100)
    talker.begin()
    talker.say(call(0, 0, "fail"))
    for _ in range(200):
        talker.say(call(1, (0, 0), "echo"), finish(1))
    assert talker.end.ended is None


def test_results_for_pipelined_calls_only_count_as_bytes_in_flight() -> None:
    talker = Talker(byte_limit=1_000_000)
    talker.begin()
    for number in range(3):
        talker.say(call(number, 0, "big", hints=("onlyPromisePipeline",), words=50_000))
    said = talker.say(call(3, 0, "echo", n=1))
    assert said[0].startswith("return 3 exception overloaded: byte limit")
    talker.say(*map(finish, range(4)))
    assert talker.say(call(3, 0, "echo", n=1)) == ["return 3 results n=1 no finish"]


class Mark:
    """What a failing method has in its frame."""


class Failing(Probe):
    marks: list[weakref.ref[Mark]] = []

    def fail(self, text: str) -> None:
        mark = Mark()
        self.marks.append(weakref.ref(mark))
        raise RuntimeError(text)

    async def block(self) -> None:
        await self.gate()
        self.fail("late")


def test_an_exception_that_was_sent_holds_nothing_of_the_method_that_raised_it() -> None:
    talker = served(Failing)
    assert talker.say(call(0, 0, "fail", text="x")) == ["return 0 exception failed: x"]
    talker.say(call(1, 0, "block"), call(2, (1, 0), "hold", [("receiverAnswer", (1, 0))]))
    said = talker.say(call(3, 0, "unblock"))
    assert "return 1 exception failed: late" in said
    assert "return 2 exception failed: late" in said
    gc.collect()
    assert [mark() for mark in Failing.marks] == [None, None]
    assert talker.say(call(4, (0, 0), "echo")) == ["return 4 exception failed: x"]


class Slow(Probe):
    """Cancelled, it waits once more."""

    async def block(self) -> Any:
        try:
            await self.gate()
        except Cancelled:
            await self.gate()
            raise


def test_a_method_that_goes_on_after_its_cancellation_stays_in_flight() -> None:
    talker = served(Slow, call_limit=3)
    for _ in range(3):
        assert talker.say(call(1, 0, "block")) == []
        assert talker.say(finish(1)) == ["return 1 canceled"]
    assert len(talker.runtime.tasks) == 3
    assert talker.say(call(1, 0, "echo"))[0].startswith("return 1 exception overloaded")
    talker.state.open(0)
    talker.say(finish(1))
    assert not talker.runtime.tasks
    assert talker.say(call(1, 0, "echo", n=3)) == ["return 1 results n=3 no finish"]


class Given:
    """Something to be awaited that is no reply."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


class Twofold(Probe):
    async def block(self) -> Any:
        return Given()


def test_a_coroutine_that_gives_an_awaitable_lets_the_next_calls_start() -> None:
    talker = served(Twofold)
    assert talker.say(call(0, 0, "block")) == ["return 0 results no finish"]
    assert talker.say(call(0, 0, "echo", n=3)) == ["return 0 results n=3 no finish"]


def test_a_method_that_outlives_its_connection_ends_in_peace() -> None:
    talker = served(Slow)
    talker.say(call(1, 0, "block"), finish(1), call(2, 0, "block"))
    talker.end.connection.receive_eof()
    talker.hear()
    talker.state.open(0)
    talker.hear()
    assert not talker.runtime.tasks
    assert talker.end.connection.is_idle


# ------------------------------------------------------------------ questions


@pytest.mark.parametrize("method", ["callHeld", "tail"])
def test_questions_that_a_peer_causes_and_never_answers_count_as_its_calls(method: str) -> None:
    talker = holding(("senderHosted", 5), call_limit=10)
    for _ in range(10):
        talker.say(call(1, 0, method, n=1))
        talker.say(finish(1))
    assert len(talker.end.tables()["questions"]) == 10
    assert talker.say(call(1, 0, "echo"))[0].startswith("return 1 exception overloaded")
    talker.say(finish(1))
    which = "resultsSentElsewhere" if method == "tail" else "canceled"
    talker.say(*(returns(number, which=which) for number in range(10)))
    assert talker.end.tables()["questions"] == []
    assert talker.say(call(1, 0, "echo", n=1)) == ["return 1 results n=1 no finish"]


def test_unimplemented_for_a_call_that_was_finished_frees_its_id() -> None:
    talker = holding(("senderHosted", 5))
    talker.say(call(1, 0, "callHeld", n=1))
    frame = talker.frames[0]
    assert talker.say(finish(1)) == ["return 1 canceled", "finish 0 release"]
    assert talker.say(unimplemented(frame)) == []
    assert talker.end.tables()["questions"] == []


def test_a_redirected_call_that_is_unimplemented_is_not_finished() -> None:
    talker = holding(("senderHosted", 5))
    talker.say(call(1, 0, "tail", n=1))
    assert talker.say(unimplemented(talker.frames[0])) == []
    assert talker.end.tables()["questions"] == []
    assert talker.say(finish(1)) == []
    assert talker.end.tables()["answers"] == []


# ------------------------------------------------------------------ results from elsewhere


def test_a_call_that_took_its_own_results_fails() -> None:
    talker = holding(("senderHosted", 5))
    assert talker.say(call(1, 0, "tail", to="yourself", n=1)) == [
        "call 0 on imported 5 echo n=1 noPromisePipelining"]
    assert talker.say(returns(0, which="takeFromOtherQuestion", other=1)) == [
        "return 1 resultsSentElsewhere", "finish 0"]
    talker.say(finish(1))
    assert talker.end.tables()["questions"] == talker.end.tables()["answers"] == []


def test_a_taken_call_that_nobody_waits_for_is_cancelled_by_its_finish() -> None:
    talker = holding(("senderHosted", 5))
    talker.say(call(1, 0, "callHeld", n=1))
    talker.say(finish(1))
    talker.say(call(2, 0, "blockThenCap", to="yourself"))
    assert talker.say(returns(0, which="takeFromOtherQuestion", other=2)) == [
        "return 2 resultsSentElsewhere"]
    talker.say(finish(2))
    assert not talker.runtime.tasks
    assert talker.state.notes == [1000, 9999]


def test_a_taken_call_goes_on_for_our_question_when_the_calls_on_it_are_cancelled() -> None:
    talker = holding(("senderHosted", 5))
    talker.say(call(1, 0, "callHeld", n=1))
    talker.say(call(2, 0, "block", to="yourself"), call(3, (2, 0), "echo"))
    talker.say(returns(0, which="takeFromOtherQuestion", other=2), finish(2))
    assert talker.say(finish(3)) == ["return 3 canceled"]
    assert len(talker.runtime.tasks) == 2, "neither has been cancelled"
    said = talker.say(call(3, 0, "unblock", mode=0))
    assert not any("cancelled" in text for text in said)


def test_a_taken_call_is_in_flight_until_it_ends() -> None:
    talker = holding(("senderHosted", 5), call_limit=3)
    for number in range(3):
        talker.say(call(1, 0, "callHeld", to="yourself"))
        talker.say(returns(number, which="takeFromOtherQuestion", other=1), finish(1))
    assert talker.end.tables()["answers"] == []
    assert len(talker.runtime.tasks) == 3, "each waits for itself"
    assert talker.say(call(1, 0, "echo"))[0].startswith("return 1 exception overloaded")


def test_a_call_that_is_taken_after_its_finish_frees_its_id() -> None:
    talker = holding(("senderHosted", 5))
    talker.say(call(1, 0, "callHeld"))
    talker.say(call(2, 0, "block", to="yourself"), call(3, (2, 0), "echo"), finish(2))
    assert talker.say(returns(0, which="takeFromOtherQuestion", other=2)) == [
        "return 2 resultsSentElsewhere"]
    assert talker.say(call(2, 0, "echo", n=7)) == ["return 2 results n=7 no finish"]
    said = talker.say(call(2, 0, "unblock", mode=0))
    assert "return 3 results n=0 no finish" in said
    assert talker.end.tables()["answers"] == talker.end.tables()["questions"] == []


def test_a_finished_call_for_pipelining_only_ends_once_the_calls_on_it_are_sent_on() -> None:
    talker = holding(("senderHosted", 5))
    talker.say(call(1, 0, "block"), call(2, (1, 0), "getHeld", hints=("onlyPromisePipeline",)))
    assert talker.say(call(3, (2, 0), "echo", n=1), finish(2)) == []
    high = 1 << 31
    said = talker.say(call(4, 0, "unblock", mode=1))
    assert f"call {high} on imported 5 getHeld onlyPromisePipeline" in said
    assert f"call 0 on answer {high}.0 echo n=1 to yourself" in said
    assert f"finish {high} release" in said
    talker.say(returns(0, which="resultsSentElsewhere"), finish(1), finish(3))
    assert talker.end.tables()["answers"] == talker.end.tables()["questions"] == []


# ------------------------------------------------------------------ promises and embargoes


def test_embargoes_that_are_never_lifted_count_as_imports() -> None:
    talker = Talker(import_limit=10)
    talker.begin()
    for number in range(9):
        talker.say(call(0, 0, "hold", [("senderPromise", 5)], cap=pointer(0)))
        talker.say(call(0, 0, "getHeld"), finish(0))
        talker.say(resolve(5, "receiverHosted", 0))
        assert talker.end.tables()["embargoes"] == number + 1
    caps = [("senderHosted", 6), ("senderHosted", 7)]
    assert "import limit: more than 10" in talker.say(call(0, 0, "twice", caps))[-1]


def test_embargoes_of_results_count_as_imports() -> None:
    talker = Talker(serve=False, import_limit=10)
    client = talker.end.bootstrap(SCHEMA.Probe)
    talker.hear()
    talker.say(returns(0, caps=[("senderHosted", 0)]))
    mine = Probe(talker.state)
    for _ in range(10):
        early = client.same(mine).pipeline.cap
        early.echo(1)
        talker.hear()
        assert talker.end.ended is None
        talker.say(returns(0, "same", [("receiverHosted", 0)], cap=pointer(0)))
    assert "import limit: more than 10" in str(talker.end.ended)


def test_disembargoes_that_wait_for_a_promise_end_with_their_connection() -> None:
    talker = Talker()
    talker.begin()
    talker.say(call(0, 0, "getPromise"), finish(0))
    assert talker.say(disembargo(1, "senderLoopback", 7)) == []
    talker.end.connection.receive_eof()
    talker.hear()
    gc.collect()
    assert talker.state.gates, "the promise is not resolved"
    assert count("Loopback") == 0


def test_places_behind_an_embargo_end_with_their_answer() -> None:
    talker = Talker()
    talker.begin()
    talker.say(call(0, 0, "hold", [("senderPromise", 5)], cap=pointer(0)), finish(0))
    talker.say(call(0, 0, "callHeld", n=1))
    talker.say(resolve(5, "receiverHosted", 0))
    assert talker.end.tables()["embargoes"] == 1
    for _ in range(5):
        talker.say(call(1, 0, "block"), call(2, (1, 0), "echo"), call(3, 0, "unblock", mode=1))
        talker.say(call(4, (1, 0), "echo"))
        assert count("StrictSwitch") == 1
        talker.say(finish(1), finish(2), finish(4))
        assert count("StrictSwitch") == 0
    assert talker.end.tables()["answers"] == [0]


@pytest.mark.parametrize("place", ["local promise", "streaming object"])
def test_cancelled_calls_of_a_program_leave_the_queue_they_wait_in(place: str) -> None:
    runtime = StepRuntime()
    state = State(runtime)
    target = client_for(SCHEMA.Probe, new_promise(runtime)[0])
    if place == "streaming object":
        target = Probe(state).client()
        target.push(77)
        runtime.run_ready()
    before = count("Call")
    for _ in range(10):
        target.echo(1).cancel()
    assert count("Call") == before
    state.open(0)
    runtime.run_ready()
    assert state.notes in ([], [77])


# ------------------------------------------------------------------ streams


@pytest.mark.parametrize("sent", [False, True])
def test_cancelled_streaming_calls_leave_the_window(sent: bool) -> None:
    runtime = StepRuntime()
    state = State(runtime)
    pair = Pair(Probe(state), runtime=runtime)
    client = pair.right.bootstrap(SCHEMA.Probe)
    pair.settle()
    set_stream_window(client, 0)
    for _ in range(3):
        reply = client.push(77)
        if sent:
            pair.settle()
        reply.cancel()
        pair.settle()
    assert stream_bytes_in_flight(client) == 0
    later = client.push(1)
    pair.settle()
    assert later.result() is None
    assert state.notes[-1] == 1


class Passing(Probe):
    """Its stream ends up with whoever it holds."""

    def push(self, n: int) -> Any:
        return self.state.held.echo(n)


def test_a_streaming_call_that_is_passed_on_holds_its_object_up_until_it_ends() -> None:
    talker = served(Passing)
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    assert talker.say(call(1, 0, "push", n=7), call(2, 0, "echo", n=1)) == [
        "call 0 on imported 5 echo n=7 noPromisePipelining"]
    said = talker.say(returns(0, "echo", n=7, no_finish=True))
    assert "return 2 results n=1 no finish" in said
