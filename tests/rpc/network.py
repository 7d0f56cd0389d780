"""Several vats joined pairwise; every message waits until a test lets it through."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from tests.rpc.pair import End, StepRuntime, frames_of
from tests.rpc.probe import Probe, State
from tests.rpc.wire import SCHEMA


class Vat:
    """A vat: its objects share a state; it has one end of a connection to each neighbour."""

    def __init__(self, network: Network, name: str) -> None:
        self.network, self.name = network, name
        self.state = State(network.runtime)
        self.root = Probe(self.state)
        self.ends: dict[str, End] = {}

    def new(self) -> Any:
        """A new object of this vat."""
        return Probe(self.state)

    def to(self, other: str) -> Any:
        """The root object of a neighbour."""
        return self.ends[other].bootstrap(SCHEMA.Probe)


class Network:
    """Vats called a, b, c, …, joined as `edges` says ("ab", "bc", …)."""

    def __init__(self, edges: Iterable[str], **options: Any) -> None:
        self.runtime = StepRuntime()
        self.vats: dict[str, Vat] = {}
        self.wires: dict[tuple[str, str], deque[bytes]] = {}
        self.options = options
        for left, right in edges:
            for name in (left, right):
                if name not in self.vats:
                    self.vats[name] = Vat(self, name)
            self.join(left, right)

    def join(self, left: str, right: str) -> None:
        for name, other in ((left, right), (right, left)):
            vat = self.vats[name]
            vat.ends[other] = End(self.runtime, vat.root, peer=other, **self.options)
            self.wires[name, other] = deque()

    def __getitem__(self, name: str) -> Vat:
        return self.vats[name]

    def collect(self) -> None:
        """Run what is ready everywhere; what is said then waits on the wires."""
        while True:
            said = False
            for name, vat in self.vats.items():
                for other, end in vat.ends.items():
                    frames = frames_of(end.rest())
                    said = said or bool(frames)
                    self.wires[name, other].extend(frames)
            if not said:
                return

    def waiting(self) -> list[tuple[str, str]]:
        """The wires with messages on them."""
        return [wire for wire, frames in self.wires.items() if frames]

    def move(self, wire: tuple[str, str], pieces: random.Random | None = None) -> None:
        """Let the next message of a wire arrive, whole or in pieces."""
        frame = self.wires[wire].popleft()
        end = self.vats[wire[1]].ends[wire[0]]
        at = 0
        while at < len(frame):
            size = len(frame) if pieces is None else pieces.randrange(1, len(frame) - at + 1)
            end.feed(frame[at : at + size])
            at += size
        self.collect()

    def settle(self, choose: Callable[[int], int] = lambda count: 0) -> int:
        """Deliver until nothing is under way, in the order that `choose` picks; gives how many."""
        self.collect()
        count = 0
        while wires := self.waiting():
            self.move(wires[choose(len(wires)) if len(wires) > 1 else 0])
            count += 1
        return count

    def check(self) -> None:
        """At rest, both ends of each connection agree, and nothing broke."""
        assert not self.runtime.errors, self.runtime.errors
        for name, vat in self.vats.items():
            for other, end in vat.ends.items():
                assert end.ended is None, end.ended
                mine, theirs = end.tables(), self.vats[other].ends[name].tables()
                assert mine["imports"] == theirs["exports"], (name, other)
                assert sorted(mine["questions"]) == theirs["answers"], (name, other)
                assert mine["embargoes"] == 0, (name, other)


def explore(scenario: Callable[[Callable[[int], int]], None], depth: int = 9) -> int:
    """Run a scenario with every sequence of its first `depth` choices; gives how many there are.

    Choices beyond are random ones, seeded by those before.
    """
    pending: list[list[int]] = [[]]
    runs = 0
    while pending:
        prefix = pending.pop()
        taken: list[tuple[int, int]] = []
        beyond = random.Random(repr(prefix))

        def choose(
            count: int, prefix: list[int] = prefix, taken: list[tuple[int, int]] = taken,
            beyond: random.Random = beyond,
        ) -> int:
            at = len(taken)
            if at >= depth:
                pick = beyond.randrange(count)
            else:
                pick = prefix[at] if at < len(prefix) else 0
            taken.append((pick, count))
            return pick

        try:
            scenario(choose)
        except Exception as error:
            raise AssertionError(f"choices: {[pick for pick, _ in taken]}") from error
        runs += 1
        for at in range(len(prefix), min(len(taken), depth)):
            before = [pick for pick, _ in taken[:at]]
            pending += [[*before, pick] for pick in range(1, taken[at][1])]
    return runs
