"""Chains of promises, calls and outcomes, as long as a peer or a program likes, cost no stack."""

from __future__ import annotations

from typing import Any

import pytest

from capnwire.errors import RemoteError
from capnwire.service.client import client_for
from capnwire.service.reference import new_promise
from capnwire.service.server import reference_to
from tests.rpc.pair import Pair, Reply, StepRuntime
from tests.rpc.probe import Probe, State
from tests.rpc.talker import Talker, bootstrap, call, disembargo, finish, pointer, resolve
from tests.rpc.wire import SCHEMA
from tests.stack import on_a_small_stack

# ---------------------------------------------------------------- what a peer builds


@pytest.mark.parametrize("end", ["resolved", "eof", "dropped"])
def test_a_long_chain_of_promises_costs_no_stack(end: str) -> None:
    def converse() -> None:
        talker = Talker(import_limit=100_000)
        talker.begin()
        talker.say(call(0, 0, "hold", [("senderPromise", 1)], cap=pointer(0)))
        talker.say(call(0, 0, "callHeld", n=1))
        for number in range(1, 20_000):
            talker.end.feed(resolve(number, "senderPromise", number + 1))
        talker.hear()
        assert talker.end.ended is None
        if end == "resolved":
            assert talker.say(resolve(20_000, "receiverHosted", 0)) == [
                "disembargo imported 20000 senderLoopback 0", "release 20000 1"]
        if end != "dropped":
            talker.end.connection.receive_eof()

    on_a_small_stack(converse)


@pytest.mark.parametrize("end", ["unblock", "eof", "dropped"])
def test_calls_that_wait_behind_one_another_cost_no_stack(end: str) -> None:
    def converse() -> None:
        talker = Talker(call_limit=50_000)
        talker.begin()
        talker.say(call(0, 0, "block"))
        for number in range(1, 10_000):
            talker.end.feed(call(number, (number - 1, 0), "same",
                                 [("receiverAnswer", (number - 1, 0))], cap=pointer(0)))
        if end == "unblock":
            talker.say(call(20_000, 0, "unblock", mode=0))
        assert talker.end.ended is None
        if end != "dropped":
            talker.end.connection.receive_eof()
            talker.hear()
            assert talker.end.is_empty()

    on_a_small_stack(converse)


@pytest.mark.parametrize("end", ["unblock", "finish", "eof", "dropped"])
def test_calls_that_fail_one_after_the_other_cost_no_stack(end: str) -> None:
    said = []

    def converse() -> None:
        talker = Talker()
        talker.begin()
        talker.say(call(0, 0, "block"))
        for number in range(1, 5_000):
            talker.end.feed(call(number, (number - 1, 0), "getCap"))
        if end == "unblock":
            said.extend(talker.say(call(5_000, 0, "unblock", mode=2)))
        elif end == "finish":
            said.extend(talker.say(finish(0)))
        if end != "dropped":
            talker.end.connection.receive_eof()
            talker.hear()
            assert talker.end.is_empty()

    on_a_small_stack(converse)
    if end == "unblock":
        assert len(said) == 5_001
        assert sum(text.endswith("failed: gate broke") for text in said) == 5_000


@pytest.mark.parametrize("end", ["unblock", "eof", "dropped"])
@pytest.mark.parametrize("held", ["of the caller", "of another vat"])
def test_calls_that_are_forwarded_one_behind_the_other_cost_no_stack(held: str, end: str) -> None:
    def converse() -> None:
        talker = Talker(call_limit=10_000)
        other = Pair(None, Probe(State(talker.runtime)), runtime=talker.runtime)
        talker.begin()
        if held == "of the caller":
            talker.say(call(0, 0, "hold", [("senderHosted", 7)], cap=pointer(0)), finish(0))
        else:
            talker.state.held = other.left.bootstrap(SCHEMA.Probe)
        talker.say(call(0, 0, "block"))
        for number in range(1, 5_000):
            talker.end.feed(call(number, (number - 1, 0), "getCap"))
        said = talker.say(call(5_000, 0, "unblock", mode=1))
        if held == "of the caller":
            assert sum(" getCap" in text for text in said) == 4_999, said[:4]
        other.settle()
        if end == "eof":
            talker.end.connection.receive_eof()
            talker.hear()
            other.settle()
            assert talker.end.is_empty()
        elif held == "of another vat":
            said += talker.hear()
            assert sum(" results" in text for text in said) == 5_001, said[:4]
        assert talker.end.ended is None or end == "eof"

    on_a_small_stack(converse)


def test_calls_behind_an_embargo_cost_no_stack() -> None:
    def converse() -> None:
        talker = Talker(call_limit=10_000)
        talker.say(bootstrap(0))
        talker.say(call(1, 0, "hold", [("senderPromise", 1)], cap=pointer(0)), finish(1))
        talker.say(call(1, 0, "block"), call(2, (1, 0), "echo", n=2))
        talker.say(call(3, 0, "unblock", mode=1))
        assert talker.say(resolve(1, "receiverHosted", 0)) == [
            "disembargo imported 1 senderLoopback 0"]
        for number in range(10, 10_000):
            talker.end.feed(call(number, (1, 0), "echo", n=number))
        said = talker.say(disembargo(0, "receiverLoopback", 0))
        sent = [text for text in said if text.startswith("call")]
        assert sent == [f"call {n - 9} on imported 1 echo n={n} to yourself"
                        for n in range(10, 10_000)]

    on_a_small_stack(converse)


# ---------------------------------------------------------------- what a program builds


class Forwarder(SCHEMA.Probe.Server):
    """Gives what the next one gives; the last waits for `gate`."""

    def __init__(self, next: Any, gate: Reply) -> None:
        self.next, self.gate = next, gate

    def getCap(self) -> Any:
        return self.wait() if self.next is None else self.next.getCap()

    async def wait(self) -> Any:
        return await self.gate

    async def echo(self, n: int) -> int:
        if self.next is None:
            await self.gate
        value: int = (await self.next.echo(n)).n
        return value


def forwarders(runtime: StepRuntime, count: int) -> tuple[Any, Reply]:
    """The first of a chain, and what its last one waits for."""
    gate, client = Reply(), None
    for _ in range(count):
        client = client_for(SCHEMA.Probe, reference_to(Forwarder(client, gate), runtime))
    return client, gate


@pytest.mark.parametrize(
    "end", ["object", "import", "promise", "lost import", "error", "dropped", "eof"]
)
@pytest.mark.parametrize("only", [False, True], ids=["results", "only the pipeline"])
def test_calls_behind_a_local_promise_cost_no_stack(end: str, only: bool) -> None:
    def converse() -> None:
        runtime = StepRuntime()
        pair = Pair(None, Probe(State(runtime)), runtime=runtime)
        remote = pair.left.bootstrap(SCHEMA.Probe)
        pair.settle()
        promise, resolve_promise = new_promise(runtime)
        client = client_for(SCHEMA.Probe, promise)
        for _ in range(5_000):
            if only:
                client = client.getCap.pipelined().cap
            else:
                client = client.getCap().pipeline.cap
        reply = client.echo(5)
        if end == "object":
            resolve_promise(reference_to(Probe(State(runtime)), runtime))
        elif end == "promise":
            resolve_promise(remote.block().pipeline.cap._reference)
            remote.unblock(0)
        elif end == "error":
            resolve_promise(RemoteError("broken"))
        elif end != "dropped":
            if end == "lost import":
                pair.left.connection.receive_eof()
            resolve_promise(remote._reference)
            if end == "eof":
                pair.left.connection.receive_eof()
        pair.settle()
        if end in ("object", "import", "promise"):
            assert reply.result().n == 5
        else:
            assert reply.state == ("pending" if end == "dropped" else "error")

    on_a_small_stack(converse)


def test_pipelining_on_a_long_chain_of_forwarded_calls_costs_no_stack() -> None:
    def converse() -> None:
        runtime = StepRuntime()
        client, gate = forwarders(runtime, 20_000)
        reply = client.getCap()
        runtime.run_ready()
        echoed = reply.pipeline.cap.echo(3)
        runtime.run_ready()
        assert not echoed.done()
        gate.set_result(Probe(State(runtime)))
        runtime.run_ready()
        assert echoed.result().n == 3
        assert reply.result().cap is not None

    on_a_small_stack(converse)


def test_cancelling_a_long_chain_of_calls_that_await_one_another_costs_no_stack() -> None:
    def converse() -> None:
        runtime = StepRuntime()
        client, _gate = forwarders(runtime, 5_000)
        reply = client.echo(1)
        runtime.run_ready()
        assert len(runtime.tasks) == 5_000
        reply.cancel()
        runtime.run_ready()
        assert not runtime.tasks

    on_a_small_stack(converse)


def test_a_call_that_ends_in_itself_fails() -> None:
    class Circle(SCHEMA.Probe.Server):
        def getCap(self) -> Any:
            return replies[1]

        def getFresh(self) -> Any:
            return replies[0]

    runtime = StepRuntime()
    client = client_for(SCHEMA.Probe, reference_to(Circle(), runtime))
    replies: list[Any] = [client.getCap(), client.getFresh()]
    runtime.run_ready()
    for reply in replies:
        with pytest.raises(RemoteError, match="a call waits for its own results"):
            reply.result()


def test_many_capabilities_are_dropped_at_once() -> None:
    runtime = StepRuntime()
    pair = Pair(None, Probe(State(runtime)), runtime=runtime)
    remote = pair.left.bootstrap(SCHEMA.Probe)
    made = [remote.getFresh.pipelined().cap for _ in range(10_000)]
    pair.settle()
    del made
    pair.settle()
    assert pair.left.tables()["questions"] == []
    assert pair.right.tables()["answers"] == []


def test_calls_on_each_promise_of_a_long_chain_stay_in_order() -> None:
    runtime = StepRuntime()
    state = State(runtime)
    pair = Pair(None, Probe(state), runtime=runtime)
    remote = pair.left.bootstrap(SCHEMA.Probe)
    pair.settle()
    promise, resolve_promise = new_promise(runtime)
    client = client_for(SCHEMA.Probe, promise)
    for number in range(300):
        client.echo(3 * number)
        after = client.getCap().pipeline.cap
        client.echo(3 * number + 1)
        client.echo(3 * number + 2)
        client = after
    resolve_promise(remote._reference)
    client.echo(900)
    pair.settle()
    assert sorted(state.notes) == list(range(901))
    for number in range(300):
        at = [state.notes.index(3 * number + step) for step in range(3)]
        assert at == sorted(at)


def test_a_promise_of_a_call_that_goes_on_outlives_who_was_to_get_its_results() -> None:
    class Keeper(Probe):
        def getCap(self) -> Any:
            self.reply = self.get_child().block()
            self.kept = self.reply.pipeline.cap
            return self.reply

    runtime = StepRuntime()
    keeper = Keeper(State(runtime))
    pair = Pair(None, keeper, runtime=runtime)
    reply = pair.left.bootstrap(SCHEMA.Probe).getCap()
    lost = reply.pipeline.cap.echo(1)
    pair.settle()
    pair.right.connection.receive_eof()
    kept = keeper.kept.echo(2)
    keeper.unblock(0)
    pair.settle()
    assert kept.result().n == 2
    assert keeper.state.notes == [2]
    assert lost.state == "pending"
