"""Calls on one capability arrive in the order they were made, whatever the messages' order.

Every interleaving of what is under way is tried; vats are joined in chains and rings.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.rpc.network import Network, explore

Choose = Callable[[int], int]


def own_object_returned(choose: Choose) -> None:
    """A's object goes to B and comes back; calls by the promise, before and after."""
    net = Network(["ab"])
    mine = net["a"].new()
    root = net["a"].to("b")
    net.settle()
    home = root.same(mine).pipeline.cap
    replies = [home.echo(1), home.echo(2)]
    net.collect()
    net.move(net.waiting()[choose(len(net.waiting())) if len(net.waiting()) > 1 else 0])
    replies.append(home.echo(3))
    net.settle(choose)
    replies.append(home.echo(4))
    net.settle(choose)
    assert net["a"].state.notes == [1, 2, 3, 4]
    assert [reply.result().n for reply in replies] == [1, 2, 3, 4]
    net.check()


def late_promise(choose: Choose) -> None:
    """B's promise resolves to A's object while calls are under way."""
    net = Network(["ab"])
    mine = net["a"].new()
    root = net["a"].to("b")
    root.hold(mine)
    promise = root.getPromise()
    net.settle()
    cap = promise.result().cap
    cap.echo(1)
    root.unblock(1)
    cap.echo(2)
    net.settle(choose)
    cap.echo(3)
    net.settle(choose)
    assert net["a"].state.notes == [1, 2, 3]
    net.check()


def each_other_s(choose: Choose) -> None:
    """Both vats hold a promise of the other's that resolves to an object of their own."""
    net = Network(["ab"])
    to_b, to_a = net["a"].to("b"), net["b"].to("a")
    to_b.hold(net["a"].new())
    to_a.hold(net["b"].new())
    net.settle()
    one, two = to_b.getPromise(), to_a.getPromise()
    net.settle()
    one, two = one.result().cap, two.result().cap
    one.echo(1)
    two.echo(11)
    net["a"].state.open(1)
    net["b"].state.open(1)
    one.echo(2)
    two.echo(12)
    net.settle(choose)
    one.echo(3)
    two.echo(13)
    net.settle(choose)
    assert net["a"].state.notes == [1, 2, 3]
    assert net["b"].state.notes == [11, 12, 13]
    net.check()


def through_a_third(choose: Choose) -> None:
    """A's object goes by B to C and comes back; calls by the promise all the while."""
    net = Network(["ab", "bc"])
    net["b"].to("c").echo(0)
    net.settle()
    net["b"].state.held = net["b"].to("c")
    relay = net["a"].to("b").getHeld()
    net.settle()
    relay = relay.result().cap
    mine = net["a"].new()
    home = relay.same(mine).pipeline.cap
    home.echo(1)
    home.echo(2)
    net.settle(choose)
    home.echo(3)
    net.settle(choose)
    assert net["a"].state.notes == [1, 2, 3]
    net.check()


def promise_by_a_third(choose: Choose) -> None:
    """C's promise, known to A by B, resolves to A's object."""
    net = Network(["ab", "bc"])
    net["b"].state.held = net["b"].to("c")
    relay = net["a"].to("b").getHeld()
    net.settle()
    relay = relay.result().cap
    relay.hold(net["a"].new())
    promise = relay.getPromise()
    net.settle()
    cap = promise.result().cap
    cap.echo(1)
    net["c"].state.open(1)
    cap.echo(2)
    net.settle(choose)
    cap.echo(3)
    net.settle(choose)
    assert net["a"].state.notes == [1, 2, 3]
    net.check()


SCENARIOS = [own_object_returned, late_promise, each_other_s, through_a_third, promise_by_a_third]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_every_interleaving_keeps_the_order(scenario: Callable[[Choose], None]) -> None:
    # Two wires between two vats: every order of the first dozen messages.
    two_vats = scenario in (own_object_returned, late_promise, each_other_s)
    assert explore(scenario, depth=12 if two_vats else 8) >= 10


def chain(choose: Choose, names: str, edges: list[str]) -> None:
    """The first vat's object goes to the last and comes back, by all between."""
    net = Network(edges)
    first, last = names[0], names[-1]
    for left, right in pairwise(names[1:]):
        net[left].state.held = net[left].to(right)
    relay = net[first].to(names[1])
    for _ in names[2:]:
        reply = relay.getHeld()
        relay = reply.pipeline.cap
    mine = net[first].new()
    relay.hold(mine)
    late = relay.getPromise().pipeline.cap
    home = relay.same(mine).pipeline.cap
    for number in range(1, 4):
        home.echo(number)
        late.echo(100 + number)
        if number == 2:
            net.collect()
    net[last].state.open(1)
    net.settle(choose)
    net[last].state.open(1)
    home.echo(4)
    late.echo(104)
    net.settle(choose)
    notes = net[first].state.notes
    assert [note for note in notes if note < 100] == [1, 2, 3, 4]
    assert [note for note in notes if note > 100] == [101, 102, 103, 104]
    net.check()


@pytest.mark.parametrize("names", ["abc", "abcd"])
@pytest.mark.parametrize("tail_calls", [True, False])
def test_chains_of_vats_keep_the_order(names: str, tail_calls: bool) -> None:
    edges = [left + right for left, right in pairwise(names)]
    for seed in range(60):
        source = random.Random(seed)
        try:
            chain(source.randrange, names, edges)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error


def test_a_ring_of_vats_keeps_the_order() -> None:
    """A's object goes round by B and C, and comes back to A over another connection."""
    for seed in range(60):
        source = random.Random(seed)
        net = Network(["ab", "bc", "ca"])
        net["b"].state.held = net["b"].to("c")
        net["c"].state.held = net["c"].to("a")
        relay = net["a"].to("b").getHeld().pipeline.cap
        far = relay.getHeld().pipeline.cap          # A's root, by C, by B
        for number in range(1, 6):
            far.echo(number)
            net.collect()
            if net.waiting():
                net.move(source.choice(net.waiting()))
        net.settle(source.randrange)
        far.echo(6)
        net.settle(source.randrange)
        assert net["a"].state.notes == [1, 2, 3, 4, 5, 6], seed
        net.check()


def test_calls_pipelined_on_a_forwarded_call_are_forwarded_at_once() -> None:
    net = Network(["ab", "bc"])
    net["b"].state.held = net["b"].to("c")
    relay = net["a"].to("b").getHeld()
    net.settle()
    relay = relay.result().cap
    child = relay.block().pipeline.cap
    reply = child.echo(5)
    net.settle()
    calls: list[Any] = net["c"].ends["b"].tables()["answers"]
    assert len(calls) == 2, "both calls wait at C, not at B"
    net["c"].state.open(0)
    net.settle()
    assert reply.result().n == 5


def test_an_error_on_the_way_reaches_whoever_waits() -> None:
    net = Network(["ab", "bc"])
    net["b"].state.held = net["b"].to("c")
    relay = net["a"].to("b").getHeld()
    net.settle()
    relay = relay.result().cap
    waiting = relay.block()
    pipelined = waiting.pipeline.cap.echo(1)
    net.settle()
    net["b"].ends["c"].connection.close("the link is down")
    net.settle()
    assert (waiting.value.kind, pipelined.value.kind) == ("DISCONNECTED", "DISCONNECTED")
    assert net["a"].ends["b"].ended is None, "other connections go on"


def test_a_cancelled_call_is_cancelled_along_the_way() -> None:
    net = Network(["ab", "bc"])
    net["b"].state.held = net["b"].to("c")
    relay = net["a"].to("b").getHeld()
    net.settle()
    waiting = relay.result().cap.blockThenCap()
    net.settle()
    assert net["c"].state.notes == [1000]
    waiting.cancel()
    net.settle()
    assert net["c"].state.notes == [1000, 9999]
    net.check()
