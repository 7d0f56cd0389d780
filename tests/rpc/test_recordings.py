"""Conversations recorded with C++ 1.4.0, held again with our core in its place, in both roles.

Messages are compared by content; ids are bound, and so is the order of calls, resolves and
disembargoes, and of a Return after the calls that went before it.  Free: when Finish and Release go
out, answers of unrelated questions, texts of the application's exceptions.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.rpc.pair import End, Reply, StepRuntime, frames_of
from tests.rpc.probe import Probe, State
from tests.rpc.wire import DATA, SCHEMA, describe, note_question

CONVERSATIONS = json.loads((DATA / "conversations.json").read_text())

DEVIATIONS: dict[str, str] = {}
"""Scenarios where we do something else on purpose, and why."""


def load(name: str) -> dict[str, Any]:
    return next(item for item in CONVERSATIONS if item["name"] == name)


class Replay:
    """Our core in the recorded peer's place."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.runtime = StepRuntime()
        self.state = State(self.runtime)
        is_server = scenario["role"] == "server"
        options = {}
        if "options" in scenario:
            options["message_words"] = scenario["options"]["traversal_limit_in_words"]
        self.end = End(
            self.runtime, Probe(self.state) if is_server else None, **options
        )
        self.names: dict[str, Any] = {}
        self.locals: dict[str, Probe] = {}
        self.ours: dict[int, Any] = {}       # results of the questions we asked
        self.theirs: dict[int, Any] = {}     # … and of those the recording's other end asked
        self.recorded: dict[int, Any] = {}   # the recorded peer's questions
        self.expected: list[list[dict[str, Any]]] = []
        self.found: list[list[dict[str, Any]]] = []
        self.outcomes: list[tuple[Reply, Any]] = []

    def run(self) -> None:
        for step in self.scenario["steps"]:
            getattr(self, step[0])(*step[1:])
        self.rest([])

    def send(self, frames: list[str]) -> None:
        data = b"".join(bytes.fromhex(frame) for frame in frames)
        for frame in frames:
            note_question(bytes.fromhex(frame), self.theirs)
        self.end.feed(data)

    def bytes(self, data: str) -> None:
        self.end.feed(bytes.fromhex(data))

    def rest(self, expected: list[str]) -> None:
        found = []
        for frame in frames_of(self.end.rest()):
            note_question(frame, self.ours)
            found.append(describe(frame, self.theirs))
        wanted = []
        for text in expected:
            note_question(bytes.fromhex(text), self.recorded)
            wanted.append(describe(bytes.fromhex(text), self.theirs))
        self.expected.append(wanted)
        self.found.append(found)

    def expect(self, frames: list[str], closed: str = "") -> None:
        self.rest(frames)
        if closed:
            assert self.end.ended is not None, "the recorded peer ended the connection here"

    def closeWriting(self) -> None:
        self.end.connection.receive_eof()

    def close(self) -> None:
        self.end.connection.receive_eof()

    # -------------------------------------------------------- the program that uses the client

    def app(self, step: dict[str, Any]) -> None:
        getattr(self, "app_" + step["op"])(step)

    def app_bootstrap(self, step: dict[str, Any]) -> None:
        self.names[step["as"]] = self.end.bootstrap(SCHEMA.Probe)

    def app_local(self, step: dict[str, Any]) -> None:
        made = Probe(State(self.runtime))
        self.names[step["as"]] = made.client()
        self.locals[step["as"]] = made

    def arguments(self, step: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self.names[value[1:]] if isinstance(value, str) and value[:1] == "@" else value
            for name, value in step.get("params", {}).items()
        }

    def app_call(self, step: dict[str, Any]) -> None:
        method = getattr(self.names[step["on"]], step["method"])
        self.names[step["as"]] = method(**self.arguments(step))

    def app_pipelineOnly(self, step: dict[str, Any]) -> None:
        method = getattr(self.names[step["on"]], step["method"])
        self.names[step["as"]] = method.pipelined(**self.arguments(step))

    def app_pipeline(self, step: dict[str, Any]) -> None:
        reply = self.names[step["of"]]
        found = reply.pipeline if isinstance(reply, Reply) else reply
        for name in step["path"]:
            found = found[name]
        self.names[step["as"]] = found

    def app_await(self, step: dict[str, Any]) -> None:
        self.outcomes.append((self.names[step["of"]], step.get("outcome")))

    def app_field(self, step: dict[str, Any]) -> None:
        self.names[step["as"]] = getattr(self.names[step["of"]].result(), step["name"])

    def app_drop(self, step: dict[str, Any]) -> None:
        del self.names[step["name"]]

    def app_cancel(self, step: dict[str, Any]) -> None:
        self.names[step["of"]].cancel()

    def app_notes(self, step: dict[str, Any]) -> None:
        assert self.locals[step["of"]].state.notes == step["outcome"]

    def app_gate(self, step: dict[str, Any]) -> None:
        self.locals[step["of"]].state.open(step["mode"])

    def app_close(self, step: dict[str, Any]) -> None:
        self.end.connection.close()

    def check_outcomes(self) -> None:
        for reply, wanted in self.outcomes:
            if wanted is None or not isinstance(reply, Reply) or reply.state == "pending":
                continue
            if "exception" in wanted:
                assert reply.state == "error"
                assert reply.value.kind == wanted["exception"]["type"]
                assert str(reply.value).startswith("remote exception: ") == wanted["exception"][
                    "description"
                ].startswith("remote exception: ")
            else:
                found = reply.result().to_dict()
                assert {
                    name: "<cap>" if isinstance(wanted.get(name), str) else value
                    for name, value in found.items()
                } == wanted


def normal(message: dict[str, Any]) -> str:
    """What is compared of a message: texts of exceptions are the application's."""
    message = dict(message)
    if "reason" in message:
        message["reason"] = "…"
    if message["kind"] == "call" and "noPromisePipelining" in message["hints"]:
        message["hints"] = [*message["hints"]]
    return json.dumps(message, sort_keys=True, default=repr)


ORDERED = ("call", "resolve", "disembargo", "bootstrap")


def compare(replay: Replay) -> None:
    """Step by step what is bound, over all steps what may come earlier or later."""
    for number, (wanted, found) in enumerate(zip(replay.expected, replay.found, strict=True)):
        bound = [normal(item) for item in wanted if item["kind"] not in ("finish", "release")]
        ours = [normal(item) for item in found if item["kind"] not in ("finish", "release")]
        assert Counter(ours) == Counter(bound), f"step {number}"
        assert [text for text in ours if json.loads(text)["kind"] in ORDERED] == [
            text for text in bound if json.loads(text)["kind"] in ORDERED
        ], f"order in step {number}"
        for at, text in enumerate(bound):
            if json.loads(text)["kind"] == "return":
                before = [item for item in bound[:at] if json.loads(item)["kind"] == "call"]
                assert [
                    item for item in ours[: ours.index(text)]
                    if json.loads(item)["kind"] == "call"
                ][: len(before)] == before
    loose_wanted = Counter(
        normal(item) for step in replay.expected for item in step
        if item["kind"] in ("finish", "release")
    )
    loose_found = Counter(
        normal(item) for step in replay.found for item in step
        if item["kind"] in ("finish", "release")
    )
    assert loose_found == loose_wanted


@pytest.mark.parametrize("scenario", CONVERSATIONS, ids=lambda scenario: scenario["name"])
def test_our_core_says_what_the_reference_said(scenario: dict[str, Any]) -> None:
    if scenario["name"] in DEVIATIONS:
        pytest.skip(DEVIATIONS[scenario["name"]])
    replay = Replay(scenario)
    replay.run()
    compare(replay)
    replay.check_outcomes()
    assert not replay.runtime.errors
