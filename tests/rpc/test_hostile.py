"""Whatever a peer sends ends in an answer, or an abort that says why: no crash, hang or leak."""

from __future__ import annotations

import gc
import json
import random
import weakref
from typing import Any

import pytest

from tests.conftest import SEED
from tests.rpc.pair import End, StepRuntime
from tests.rpc.probe import Probe, State
from tests.rpc.talker import (
    Talker,
    abort,
    bootstrap,
    call,
    disembargo,
    finish,
    pointer,
    release,
    resolve,
    returns,
)
from tests.rpc.wire import DATA, SCHEMA, note_question

CONVERSATIONS = json.loads((DATA / "conversations.json").read_text())


def frames_said(scenario: dict[str, Any]) -> list[bytes]:
    """What the recorded program sent to the peer whose place we take."""
    frames = []
    for step in scenario["steps"]:
        if step[0] == "send":
            frames += [bytes.fromhex(text) for text in step[1]]
        elif step[0] == "bytes":
            frames.append(bytes.fromhex(step[1]))
    return frames


class Victim:
    """A core that serves a Probe and also has questions of its own under way."""

    def __init__(self, **options: Any) -> None:
        self.runtime = StepRuntime()
        self.state = State(self.runtime)
        self.end = End(self.runtime, Probe(self.state), **options)
        self.client = self.end.bootstrap(SCHEMA.Probe)
        self.replies = [self.client.echo(1), self.client.getCap(), self.client.block()]
        self.caps = [self.replies[1].pipeline.cap]
        self.replies.append(self.caps[0].echo(2))
        self.end.rest()

    def feed(self, data: bytes) -> None:
        self.end.feed(data)
        self.end.rest()

    def finish(self) -> None:
        """End the connection; everything must be over then."""
        self.end.connection.receive_eof()
        self.end.rest()
        assert self.end.ended is not None
        assert str(self.end.ended)
        assert self.end.is_empty()
        for reply in self.replies:
            assert reply.done()
        assert not self.runtime.errors, self.runtime.errors
        self.state.open(0)
        self.end.rest()
        assert not self.runtime.tasks


def test_a_stream_cut_anywhere_ends_in_a_disconnect() -> None:
    data = b"".join([
        bootstrap(0), call(1, 0, "block"), call(2, (1, 0), "echo", n=1),
        call(3, 0, "hold", [("senderPromise", 5)], cap=pointer(0)), call(4, 0, "callHeld", n=1),
        resolve(5, "receiverHosted", 0), finish(1),
    ])
    for size in range(len(data) + 1):
        victim = Victim()
        victim.feed(data[:size])
        victim.finish()


def test_a_stream_byte_by_byte_is_the_same_stream() -> None:
    frames = [bootstrap(0), call(1, (0,), "echo", n=5), call(2, (0,), "getCap")]
    whole, pieces = Talker(), Talker()
    said = whole.say(*frames)
    for frame in frames:
        note_question(frame, pieces.mine)
        for byte in frame:
            pieces.end.feed(bytes([byte]))
    assert pieces.hear() == said


@pytest.mark.parametrize("scenario", CONVERSATIONS, ids=lambda scenario: scenario["name"])
def test_corrupted_conversations_are_survived(scenario: dict[str, Any]) -> None:
    frames = frames_said(scenario)
    if not frames:
        pytest.skip("nothing is sent")
    source = random.Random(f"{SEED} {scenario['name']}")
    for _ in range(25):
        victim = Victim(message_words=100_000)
        broken = [bytearray(frame) for frame in frames]
        for _ in range(source.choice([1, 1, 2, 8])):
            frame = source.choice(broken)
            frame[source.randrange(len(frame))] ^= 1 << source.randrange(8)
        for frame in broken:
            victim.feed(bytes(frame))
        victim.finish()


@pytest.mark.parametrize("scenario", CONVERSATIONS, ids=lambda scenario: scenario["name"])
def test_conversations_out_of_order_are_survived(scenario: dict[str, Any]) -> None:
    frames = frames_said(scenario)
    source = random.Random(f"{SEED} {scenario['name']}")
    for _ in range(15):
        victim = Victim(message_words=100_000)
        mixed = frames * 2
        source.shuffle(mixed)
        for frame in mixed[: source.randrange(len(mixed) + 1)]:
            victim.feed(frame)
        victim.finish()


def random_frame(source: random.Random) -> bytes:
    """A well-formed message with ids that may or may not exist."""
    id = source.choice([0, 0, 1, 2, 3, 5, 1 << 31, 0xFFFFFFFF])
    other = source.choice([0, 1, 2, 3, 5])
    target: Any = source.choice([0, 1, (other,), (other, 0), (other, 0, 0)])
    cap: Any = source.choice([
        ("none",), ("senderHosted", other), ("senderPromise", other), ("receiverHosted", other),
        ("receiverAnswer", (other, 0)), ("thirdPartyHosted", other),
    ])
    return source.choice([
        lambda: bootstrap(id),
        lambda: call(id, target, source.choice(["echo", "getCap", "block", "getPromise", "tail"])),
        lambda: call(id, target, "hold", [cap], cap=pointer(0), to=source.choice(
            ["caller", "yourself"]
        )),
        lambda: call(id, target, "same", [cap], cap=pointer(0)),
        lambda: call(id, target, "unblock", mode=source.randrange(4)),
        lambda: call(id, target, "callHeld", hints=source.choice([
            (), ("noPromisePipelining",), ("onlyPromisePipeline",),
        ])),
        lambda: returns(id, "getCap", [cap], cap=pointer(0), release=source.random() < 0.2),
        lambda: returns(id, caps=[cap], no_finish=source.random() < 0.5),
        lambda: returns(id, which=source.choice(
            ["exception", "canceled", "resultsSentElsewhere", "takeFromOtherQuestion"]
        ), other=other),
        lambda: finish(id, release=source.random() < 0.5, workaround=source.random() < 0.5),
        lambda: finish(other),
        lambda: release(other, source.choice([0, 1, 1, 1, 2])),
        lambda: resolve(other, *cap),
        lambda: resolve(other, reason="x"),
        lambda: disembargo(target, source.choice(["senderLoopback", "receiverLoopback"]), other),
    ])()


def test_random_messages_are_survived() -> None:
    ends: dict[str, int] = {}
    for number in range(1500):
        source = random.Random(f"{SEED} {number}")
        victim = Victim(tail_calls=source.choice([True, False, None]))
        victim.feed(returns(0, caps=[("senderHosted", 0)]) + bootstrap(0))
        for _ in range(source.randrange(1, 25)):
            victim.feed(random_frame(source))
            if victim.end.ended is not None:
                reason = str(victim.end.ended)
                ends[reason[:30]] = ends.get(reason[:30], 0) + 1
                break
        victim.finish()
    assert len(ends) > 8, "many kinds of reasons were met"


def test_garbage_is_survived() -> None:
    source = random.Random(SEED)
    for size in [1, 7, 8, 9, 64, 1000, 10_000] * 10:
        victim = Victim()
        victim.feed(source.randbytes(size))
        victim.finish()


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex("ffffffffffffffff"),
        bytes.fromhex("00000000ffffffff"),
        bytes.fromhex("0000000000000000"),
        bytes.fromhex("0000000001000000") + bytes(8),
        bytes.fromhex("0000000001000000") + bytes.fromhex("0000000001000000"),
        bytes.fromhex("0000000001000000") + bytes.fromhex("fcffffff00000000"),
        bytes.fromhex("0000000001000000") + bytes.fromhex("0300000000000000"),
    ],
    ids=["count of segments", "size", "no words", "null root", "root out of bounds", "empty root",
         "capability root"],
)
def test_frames_that_hold_no_message_end_the_connection(data: bytes) -> None:
    victim = Victim()
    victim.feed(data + bytes(64))
    victim.finish()


def test_a_flood_of_unfinished_questions_is_ended() -> None:
    talker = Talker(call_limit=100)
    talker.begin()
    for number in range(1000):
        talker.end.feed(call(number, 0, "fail"))
    assert "call limit" in str(talker.end.ended)


def test_a_flood_of_bootstraps_is_ended() -> None:
    talker = Talker(call_limit=100)
    for number in range(1000):
        talker.end.feed(bootstrap(number))
    assert "call limit" in str(talker.end.ended)


def test_results_that_are_never_finished_count_as_bytes_in_flight() -> None:
    talker = Talker(byte_limit=1_000_000)
    talker.begin()
    for number in range(3):
        talker.say(call(number, 0, "big", to="yourself", words=50_000))
    said = talker.say(call(3, 0, "echo", n=1))
    assert said[0].startswith("return 3 exception overloaded: byte limit")
    talker.say(*map(finish, range(4)))
    assert talker.say(call(3, 0, "echo", n=1)) == ["return 3 results n=1 no finish"]


def test_a_flood_of_disembargoes_is_ended() -> None:
    talker = Talker(call_limit=100)
    talker.begin()
    talker.say(call(0, 0, "block"))
    for number in range(101):
        talker.end.feed(disembargo((0, 0), "senderLoopback", number))
    assert "call limit: 100 Disembargoes" in str(talker.end.ended)


def test_a_transform_that_is_too_long_is_ended() -> None:
    talker = Talker()
    talker.begin()
    talker.say(call(0, 0, "getCap"))
    said = talker.say(call(1, (0, *[0] * 10_000), "echo"))
    assert "too long" in said[-1]


@pytest.mark.parametrize("place", ["pending answer", "streaming object"])
def test_cancelled_calls_that_wait_are_forgotten(place: str) -> None:
    talker = Talker()
    talker.begin()
    target: Any = 0
    if place == "pending answer":
        talker.say(call(0, 0, "block"))
        target = (0, 0)
    else:
        talker.say(call(0, 0, "push", n=77))
    gc.collect()
    before = count_calls()
    for _ in range(100):
        assert talker.say(call(1, target, "echo")) == []
        assert talker.say(finish(1)) == ["return 1 canceled"]
    gc.collect()
    assert count_calls() == before


def count_calls() -> int:
    return sum(type(found).__name__ == "Call" for found in gc.get_objects())


@pytest.mark.parametrize("cleared", [False, True])
def test_places_of_pending_answers_count_as_exports(cleared: bool) -> None:
    talker = Talker(export_limit=100)
    talker.begin()
    for _ in range(3):
        talker.say(call(0, 0, "block"))
        for place in range(90):
            talker.say(call(1, (0, place), "echo"))
            talker.say(finish(1))
            talker.say(call(1, (0, place), "echo"))
            talker.say(finish(1))
        assert talker.end.ended is None
        if cleared:
            talker.say(finish(0))
        else:
            talker.say(call(2, 0, "unblock", mode=0))
            talker.say(finish(2))
            talker.say(finish(0))
    talker.say(call(0, 0, "block"))
    for place in range(100):
        talker.say(call(1, (0, place), "echo"))
        talker.say(finish(1))
    assert "export limit: more than 100" in str(talker.end.ended)


def test_an_import_mentioned_without_end_keeps_its_count() -> None:
    talker = Talker()
    talker.begin()
    caps = [("senderHosted", 5)] * 1000
    for _ in range(20):
        talker.say(call(0, 0, "hold", caps, cap=pointer(0)))
    assert talker.end.tables()["imports"] == {5: 20_000}
    assert "release 5 20000" in talker.say(call(0, 0, "drop"))


def test_an_end_leaves_nothing_behind() -> None:
    victim = Victim()
    victim.feed(b"".join([
        returns(0, caps=[("senderHosted", 0)]), bootstrap(0), call(1, 0, "block"),
        call(2, (1, 0), "getCap"), call(3, 0, "hold", [("senderPromise", 5)], cap=pointer(0)),
        call(4, 0, "callHeld"), call(5, 0, "getPromise"),
    ]))
    weak = weakref.ref(victim.end)
    connection = victim.end.connection
    victim.feed(abort("x"))
    victim.finish()
    del victim
    gc.collect()
    assert weak() is not None, "the connection holds its owner"
    del connection
    gc.collect()
    assert weak() is None


def test_other_connections_go_on() -> None:
    runtime = StepRuntime()
    state = State(runtime)
    served = Probe(state)
    good, bad = End(runtime, served), End(runtime, served)
    good.feed(bootstrap(0))
    bad.feed(bootstrap(0))
    bad.feed(call(1, 99, "echo"))
    assert bad.ended is not None
    good.rest()
    good.feed(call(1, 0, "echo", n=3))
    assert good.rest()
    assert state.notes == [3]
