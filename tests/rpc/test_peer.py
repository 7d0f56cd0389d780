"""A peer at random that keeps the rules: whatever it did, once it has cleared up nothing is left.

Not of what it called, held, promised, took or passed on; neither in tables and counts nor in
memory.  It makes no call wait for itself, as only its end would free that.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from typing import Any

import pytest

from tests.conftest import SEED
from tests.rpc.talker import Talker, call, disembargo, finish, pointer, release, resolve, returns

METHODS = (
    "echo", "getCap", "block", "block", "blockThenCap", "hold", "hold", "callHeld", "callHeld",
    "tail", "same", "push", "unblock", "getPromise", "fail", "big", "drop", "getHeld", "getHeld",
)
# Calls whose results may become those of a question: they wait for none.
TAKEN = ("echo", "getCap", "block", "blockThenCap", "getPromise", "getHeld")
HINTS = ((), (), (), ("noPromisePipelining",), ("onlyPromisePipeline",))
OURS = (
    "Answer", "AnswerReference", "Call", "Context", "Dropped", "Export", "Import",
    "ImportReference", "Loopback", "Outcome", "Question", "QueuedReference", "RemotePromise",
    "StrictSwitch", "SwitchedReference",
)
BYTES = 400_000


class Asked:
    """A question of the peer's."""

    def __init__(self, *, redirected: bool, may_be_taken: bool, only_pipeline: bool) -> None:
        self.redirected, self.may_be_taken = redirected, may_be_taken
        self.only_pipeline = only_pipeline
        self.returned = self.finished = self.over = False


class Peer:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.talker = Talker(call_limit=60, byte_limit=BYTES, tail_calls=rng.random() < 0.5)
        self.talker.begin()
        self.asked: dict[int, Asked] = {}
        self.owed: dict[int, bool] = {}  # questions of the core's: whether the results stay here
        self.finished: set[int] = set()  # those of them that it has finished
        self.lifts: list[int] = []
        self.promises: list[int] = []
        self.last_promise = 1000
        self.before = self.objects()

    @property
    def exports(self) -> dict[int, int]:
        found: dict[int, int] = self.talker.end.tables()["exports"]
        return found

    def objects(self) -> Counter[str]:
        gc.collect()
        names = (type(each).__name__ for each in gc.get_objects())
        return Counter(name for name in names if name in OURS)

    # ------------------------------------------------------------------ what is said

    def say(self, *frames: bytes) -> None:
        self.hear(self.talker.say(*frames))

    def hear(self, said: list[str]) -> None:
        assert self.talker.end.ended is None
        for text in said:
            words = text.split()
            if words[0] == "return":
                asked = self.asked[int(words[1])]
                assert not asked.returned, "each question is answered once"
                asked.returned = True
                asked.over = asked.finished or text.endswith("no finish")
            elif words[0] == "call":
                self.owed[int(words[1])] = "to yourself" in text
            elif words[0] == "finish" and int(words[1]) in self.owed:
                self.finished.add(int(words[1]))
            elif words[0] == "disembargo" and words[-2] == "senderLoopback":
                self.lifts.append(int(words[-1]))
        self.asked = {id: asked for id, asked in self.asked.items() if not asked.over}

    # ------------------------------------------------------------------ steps

    def capability(self, *, of_answers: bool = False) -> tuple[Any, ...]:
        kind = self.rng.randrange(5)
        if kind == 0:
            self.last_promise += 1
            self.promises.append(self.last_promise)
            return "senderPromise", self.last_promise
        if kind == 1:
            return "receiverHosted", 0
        if kind == 2 and of_answers and self.asked:
            return "receiverAnswer", (self.rng.choice(list(self.asked)), 0)
        if kind == 3 and self.promises:
            return "senderPromise", self.rng.choice(self.promises)
        return "senderHosted", self.rng.randrange(1, 8)

    def ask(self) -> None:
        rng = self.rng
        used = {*self.asked, *self.talker.end.tables()["answers"]}
        if len(used) > 80:
            return
        id = next(id for id in range(100) if id not in used)
        method, hints = rng.choice(METHODS), rng.choice(HINTS)
        pending = [(id, 0) for id, asked in self.asked.items() if not asked.finished]
        target: Any = rng.choice([0, *pending, *pending, *self.exports])
        caps = [self.capability(of_answers=method == "same")] if method in ("hold", "same") else []
        fields = {
            "hold": {"cap": pointer(0)}, "same": {"cap": pointer(0)}, "big": {"words": 10},
            "unblock": {"mode": rng.randrange(4)}, "push": {"n": rng.choice([1, 77])},
        }.get(method, {})
        redirected = rng.random() < 0.2
        self.asked[id] = Asked(
            redirected=redirected, may_be_taken=target == 0 and method in TAKEN,
            only_pipeline="onlyPromisePipeline" in hints,
        )
        to = "yourself" if redirected else "caller"
        self.say(call(id, target, method, caps, to, hints, **fields))

    def finish(self) -> None:
        ids = [id for id, asked in self.asked.items() if not asked.finished]
        if ids:
            id = self.rng.choice(ids)
            asked = self.asked[id]
            asked.finished, asked.over = True, asked.returned or asked.only_pipeline
            release, workaround = self.rng.random() < 0.3, self.rng.random() < 0.3
            self.say(finish(id, release, workaround))

    def answer(self) -> None:
        if not self.owed:
            return
        rng, id = self.rng, self.rng.choice(list(self.owed))
        is_finished = id in self.finished
        self.finished.discard(id)
        if self.owed.pop(id):
            self.say(returns(id, which="resultsSentElsewhere"))
            return
        kind = rng.choice(["taken", "taken", "exception", "capability", "null", "canceled"])
        kept = [
            other for other, asked in self.asked.items() if asked.redirected
            and asked.may_be_taken and not asked.returned and not asked.finished
        ]
        if kind == "taken" and kept:
            self.say(returns(id, which="takeFromOtherQuestion", other=rng.choice(kept)))
        elif kind == "canceled" and is_finished:
            self.say(returns(id, which=kind))
        elif kind == "exception":
            self.say(returns(id, which=kind, reason="x"))
        elif kind == "capability":
            caps = [self.capability(of_answers=True)]
            self.say(returns(id, "getCap", caps, cap=pointer(0)))
        else:
            self.say(returns(id, "getCap", no_finish=rng.random() < 0.5))

    def lift(self) -> None:
        if self.lifts:
            id = self.lifts.pop(self.rng.randrange(len(self.lifts)))
            self.say(disembargo(0, "receiverLoopback", id))

    def resolve(self) -> None:
        if self.promises:
            id = self.promises.pop(self.rng.randrange(len(self.promises)))
            cap = self.capability()
            self.say(resolve(id, reason="x") if cap == ("senderPromise", id) else resolve(id, *cap))

    def step(self) -> None:
        self.rng.choices(
            [self.ask, self.finish, self.answer, self.lift, self.resolve], [45, 20, 20, 7, 5]
        )[0]()

    # ------------------------------------------------------------------ the end

    def clear_up(self) -> None:
        """Answer, finish, resolve and release everything; what that causes as well."""
        state = self.talker.state
        at_rest = False
        while not at_rest:
            state.open(0)
            self.hear(self.talker.hear())
            while any(not asked.finished for asked in self.asked.values()):
                self.finish()
            while self.owed:
                self.answer()
            while self.lifts:
                self.lift()
            while self.promises:
                id = self.promises.pop()
                self.say(resolve(id, reason="x"))
            at_rest = state.held is state.child is None
            state.held = state.child = None
            gc.collect()
            self.hear(self.talker.hear())
            held = {id: count - (id == 0) for id, count in self.exports.items()}
            self.say(*(release(id, count) for id, count in held.items() if count))
            at_rest = at_rest and not (
                self.asked or self.owed or self.lifts or self.promises or state.gates
            ) and len(held) == 1

    def check(self) -> None:
        talker = self.talker
        assert talker.end.tables() == {
            "questions": [], "answers": [], "exports": {0: 1}, "imports": {}, "embargoes": 0
        }
        assert talker.end.connection.is_idle
        assert not talker.runtime.tasks
        assert not talker.runtime.errors
        # The bytes in flight are none, neither more nor less, by what is still let in.
        for words, which in ((49_940, "results"), (49_990, "exception")):
            assert talker.say(call(1, 0, "big", to="yourself", words=words)) == []
            said = talker.say(call(2, 0, "echo", n=1))
            assert said[0].startswith(f"return 2 {which}"), words * 8
            talker.say(finish(1), finish(2))
        assert not self.objects() - self.before


@pytest.mark.parametrize("number", range(32))
def test_a_peer_that_has_cleared_up_leaves_nothing_behind(number: int) -> None:
    peer = Peer(random.Random(f"{SEED} {number}"))
    for steps in (20, 80):
        for _ in range(steps):
            peer.step()
        peer.clear_up()
        peer.check()
