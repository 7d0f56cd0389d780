"""Two vats at random: calls, pipelines, capabilities passed, promises, cancels, pieces, the end.

At rest both sides' tables are equal, each capability's calls arrived in their order and each
question is answered once; when everything is dropped, the tables are empty.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from capnwire.errors import RemoteError
from tests.rpc.network import Network
from tests.rpc.pair import Cancelled, Reply
from tests.rpc.probe import Probe

SIDES = st.sampled_from("ab")
SEEDS = st.integers(0, 2**32)


class Handle:
    """A capability in the hands of one vat; its calls are numbered."""

    def __init__(self, number: int, cap: Any) -> None:
        self.number, self.cap, self.calls = number, cap, 0


class TwoVats(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        # The collector runs when a rule says so, and over what comes now: the same steps are the
        # same states.
        gc.disable()
        gc.collect()
        gc.freeze()
        self.net = Network(["ab"])
        self.handles: dict[str, list[Handle]] = {"a": [], "b": []}
        self.count = 0
        self.replies: list[Reply] = []
        self.waiting: dict[str, list[Reply]] = {"a": [], "b": []}
        for side, other in ("ab", "ba"):
            self.root(side, other)

    def root(self, side: str, other: str) -> None:
        self.take(side, self.net[side].to(other))

    def take(self, side: str, cap: Any) -> None:
        self.count += 1
        self.handles[side].append(Handle(self.count, cap))

    def pick(self, side: str, seed: int) -> Handle:
        handles = self.handles[side]
        return handles[seed % len(handles)]

    def keep(self, reply: Reply) -> Reply:
        self.replies.append(reply)
        return reply

    # -------------------------------------------------------- what programs do

    @rule(side=SIDES, seed=SEEDS)
    def echo(self, side: str, seed: int) -> None:
        handle = self.pick(side, seed)
        handle.calls += 1
        self.keep(handle.cap.echo(handle.number * 10_000 + handle.calls))

    @rule(side=SIDES, seed=SEEDS, method=st.sampled_from(
        ["getCap", "getFresh", "getHeld", "getPromise", "block"]
    ))
    def get(self, side: str, seed: int, method: str) -> None:
        reply = self.keep(getattr(self.pick(side, seed).cap, method)())
        self.take(side, reply.pipeline.cap)
        self.waiting[side].append(reply)

    @rule(side=SIDES, seed=SEEDS, other=SEEDS, method=st.sampled_from(["same", "hold"]))
    def give(self, side: str, seed: int, other: int, method: str) -> None:
        given = self.pick(side, other).cap
        reply = self.keep(getattr(self.pick(side, seed).cap, method)(given))
        if method == "same":
            self.take(side, reply.pipeline.cap)

    @rule(side=SIDES, seed=SEEDS)
    def give_own(self, side: str, seed: int) -> None:
        reply = self.keep(self.pick(side, seed).cap.same(self.net[side].new()))
        self.take(side, reply.pipeline.cap)

    @rule(side=SIDES)
    def use_results(self, side: str) -> None:
        for reply in self.waiting[side]:
            if reply.done() and reply.state == "result":
                self.waiting[side].remove(reply)
                if reply.result().cap is not None:
                    self.take(side, reply.result().cap)
                return

    @rule(side=SIDES, mode=st.integers(0, 3))
    def open_gates(self, side: str, mode: int) -> None:
        self.net[side].state.open(mode)

    @rule(side=SIDES, seed=SEEDS)
    def tail(self, side: str, seed: int) -> None:
        other = "b" if side == "a" else "a"
        if self.net[other].state.held is not None:
            self.keep(self.pick(side, seed).cap.tail(7))

    @rule(seed=SEEDS)
    def cancel(self, seed: int) -> None:
        if self.replies:
            reply = self.replies[seed % len(self.replies)]
            reply.cancel()

    @rule(side=SIDES, seed=SEEDS)
    def drop(self, side: str, seed: int) -> None:
        handles = self.handles[side]
        if len(handles) > 1:
            handles.pop(1 + seed % (len(handles) - 1))

    @rule()
    def find_garbage(self) -> None:
        gc.collect()

    # -------------------------------------------------------- what the network does

    @rule(seed=SEEDS)
    def collect(self, seed: int) -> None:
        self.net.collect()

    @precondition(lambda self: self.net.waiting())
    @rule(seed=SEEDS, pieces=st.booleans())
    def move(self, seed: int, pieces: bool) -> None:
        wires = self.net.waiting()
        self.net.move(wires[seed % len(wires)], random.Random(seed) if pieces else None)

    @rule(seed=SEEDS)
    def rest(self, seed: int) -> None:
        source = random.Random(seed)
        self.net.settle(source.randrange)
        self.net.check()
        self.check_order()

    def check_order(self) -> None:
        for name in "ab":
            last: dict[int, int] = {}
            for note in self.net[name].state.notes:
                handle, call = divmod(note, 10_000)
                if handle:
                    assert last.get(handle, 0) < call, f"handle {handle}: {call} came late"
                    last[handle] = call

    def check_answers(self) -> None:
        for reply in self.replies:
            assert reply.done(), "a question was not answered"
            if reply.state == "error" and not isinstance(reply.value, Cancelled):
                assert reply.value.kind in ("FAILED", "UNIMPLEMENTED"), reply.value

    # -------------------------------------------------------- the end

    def open_all(self, go_on: Callable[[], object]) -> None:
        """Until no call waits at a gate: one that passes may let another come to the next."""
        go_on()
        while any(self.net[name].state.gates for name in "ab"):
            for name in "ab":
                self.net[name].state.open(0)
            go_on()

    def teardown(self) -> None:
        try:
            self.end()
        finally:
            gc.enable()

    def end(self) -> None:
        self.open_all(self.net.settle)
        self.net.check()
        self.check_order()
        self.check_answers()
        self.replies.clear()
        self.waiting = {"a": [], "b": []}
        for name in "ab":
            self.handles[name].clear()
            self.net[name].state.held = self.net[name].state.child = None
        # What one side lets go may be all that kept something on the other.
        while gc.collect() or self.net.settle():
            pass
        for name, other in ("ab", "ba"):
            tables = self.net[name].ends[other].tables()
            assert not any(tables.values()), (name, tables)
        assert not self.net.runtime.tasks
        assert not self.net.runtime.errors


class CutOff(TwoVats):
    """The same, and the connection may be cut at any time."""

    @rule()
    def nothing(self) -> None: ...

    def end(self) -> None:
        self.net.collect()
        end = self.net["a"].ends["b"]
        end.connection.receive_eof()
        self.net["b"].ends["a"].connection.receive_eof()
        self.open_all(self.net.collect)
        for reply in self.replies:
            assert reply.done(), "a question was left open by the end of its connection"
        for name, other in ("ab", "ba"):
            assert not any(self.net[name].ends[other].tables().values())
        assert not self.net.runtime.tasks
        assert not self.net.runtime.errors


@pytest.mark.parametrize("cancelled_first", [True, False])
def test_a_cancelled_call_whose_results_are_one_of_our_own_answers_is_finished(
    cancelled_first: bool,
) -> None:
    """Its pipelined capability is held on: b passes the call back to a, where it waits."""
    net = Network(["ab"])
    far = net["a"].to("b")
    own = far.same(net["a"].new())
    promise = own.pipeline.cap.getPromise()
    last = promise.pipeline.cap.same(net["a"].new())
    held = last.pipeline.cap
    if cancelled_first:
        last.cancel()
    net.settle()
    assert net["a"].ends["b"].tables()["answers"], "the call has come back"
    last.cancel()
    late = held.echo(5)
    net["a"].state.open(0)
    net.settle()
    assert late.result().n == 5, "the capability of the results still works"
    assert net["a"].state.notes == [5]
    del far, own, promise, last, held, late
    net["a"].state.child = None
    gc.collect()
    net.settle()
    for name, other in ("ab", "ba"):
        assert not any(net[name].ends[other].tables().values())


def test_calls_on_results_that_a_cancelled_call_has_sent_elsewhere_are_made() -> None:
    """B passes the call back to a, whose own question, cancelled, takes the results at once."""
    net = Network(["ab"])
    waiting = net["a"].to("b").same(net["a"].new()).pipeline.cap.block()
    reply = waiting.pipeline.cap.echo(5)
    waiting.cancel()
    net.settle()
    net["a"].state.open(0)
    net.settle()
    assert reply.result().n == 5
    assert net["a"].state.notes == [5]


def test_objects_that_never_left_their_vat_are_called_in_its_loop() -> None:
    """Given as parameters and as results of calls that no connection has seen."""
    net = Network(["ab"])
    own = net["a"].new().client()
    fresh = own.getFresh()
    net.settle()
    reply = fresh.result().cap.echo(1)
    same = own.same(Probe(net["a"].state))
    holding = own.hold(Probe(net["a"].state))
    net.settle()
    replies = [reply, same.result().cap.echo(2), net["a"].state.held.echo(3)]
    net.settle()
    assert holding.done()
    assert [reply.result().n for reply in replies] == [1, 2, 3]


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_calls_that_wait_for_their_own_results_fail(calls: int) -> None:
    """The first is made on what b holds; b comes to hold the results of the last."""
    net = Network(["ab"])
    far = net["a"].to("b")
    gate = far.block()
    first = gate.pipeline.cap.getHeld()
    replies = [first]
    for _ in range(calls):
        replies.append(replies[-1].pipeline.cap.same(net["a"].new()))
    holding = far.hold(replies[-1].pipeline.cap)
    net.settle()
    assert holding.done()
    assert not any(reply.done() for reply in replies)
    net["b"].state.open(0)
    net.settle()
    for reply in replies[1:]:
        with pytest.raises(RemoteError, match="a call waits for its own results"):
            reply.result()
    net["b"].state.held = net["b"].state.child = None
    del far, gate, first, replies, holding, reply
    gc.collect()
    net.settle()
    for name, other in ("ab", "ba"):
        assert not any(net[name].ends[other].tables().values())


@pytest.mark.parametrize("machine", [TwoVats, CutOff])
def test_calls_that_wait_behind_sixty_gates_are_answered(machine: type[TwoVats]) -> None:
    """On an object that came home, so that the cut connection does not end them."""
    run = machine()
    run.give_own("a", 0)
    run.rest(0)
    run.waiting["a"] += run.replies
    run.use_results("a")
    for _ in range(60):
        run.get("a", len(run.handles["a"]) - 1, "block")
    run.teardown()


TestTwoVats = TwoVats.TestCase
TestCutOff = CutOff.TestCase
