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
from tests.rpc.wire import DATA, RPC, SCHEMA, describe, kind_of, note_question

CONVERSATIONS = json.loads((DATA / "conversations.json").read_text())

NO_ABORT = "an abort in answer to an abort or to the end of the stream is optional"
ONE_CALL = "a transform that ends nowhere fails that call, not the connection"
NOT_CANCELED = "the canceled Return before the abort is an accident of the recorded peer"
PIPELINE_RELEASES = (
    "Finish says releaseResultCaps = true, so that a peer that returns all the same leaks nothing"
)
CANCELLABLE = "every method of ours may be cancelled: canceled at once, and the id is free"

DEVIATIONS: dict[str, tuple[str, dict[int, list[str]]]] = {
    "duplicate_question": (NOT_CANCELED, {-2: ["abort"]}),
    "duplicate_question_returned": (NOT_CANCELED, {-2: ["abort"]}),
    "pipeline_at_struct": (ONE_CALL, {-2: ["return exception"]}),
    "pipeline_at_struct_early": (ONE_CALL, {-2: ["return results", "return exception"]}),
    "pipeline_through_cap": (ONE_CALL, {-2: ["return exception"]}),
    "pipeline_at_root": (ONE_CALL, {-2: ["return exception"]}),
    "abort_received": (NO_ABORT, {-2: []}),
    "client_aborted": (NO_ABORT, {-4: []}),
    "disconnect": (NO_ABORT, {-2: []}),
    "disconnect_truncated": (NO_ABORT, {-2: []}),
    "client_embargo_disconnect": (NO_ABORT, {-2: []}),
    "call_too_large": ("beyond the limit of a message we abort and say so", {-2: ["abort"]}),
    "finish_at_once": (
        "a call finished before its method began is not begun", {-2: ["return results"]},
    ),
    "finish_not_cancellable": (CANCELLABLE, {-4: ["return canceled"], -3: ["return results"]}),
    "finish_not_cancellable_reuse": (
        CANCELLABLE, {-3: ["return canceled"], -2: ["return results"]},
    ),
    "stream_cancel": (CANCELLABLE, {2: ["return canceled", "return results"]}),
    "client_pipeline_only": (PIPELINE_RELEASES, {}),
    "client_pipeline_only_returned": (PIPELINE_RELEASES, {}),
    "resolve_not_promise": ("the capability of a message that is fatal is not released", {}),
    "client_unimplemented": (
        "a Call that comes back unimplemented fails that call only", {-4: [], -3: ["call"]},
    ),
    "return_duplicate": (
        "both Returns are read before the method goes on, so its answer never leaves",
        {-2: ["finish", "abort"]},
    ),
    "resolve_to_resolved": (
        "nobody holds promise 6 itself, so what it resolves to is released, and calls go by 6",
        {-4: ["release"], -2: ["call"]},
    ),
}
"""Scenarios where we do something else on purpose: why, and what we say in which steps instead."""


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
        self.our_ids: dict[int, int] = {}      # of our questions, by the recorded ids
        self.recorded_ids: dict[int, int] = {}
        self.expected: list[list[dict[str, Any]]] = []
        self.found: list[list[dict[str, Any]]] = []
        self.outcomes: list[tuple[Reply, Any]] = []

    def run(self) -> None:
        for step in self.scenario["steps"]:
            getattr(self, step[0])(*step[1:])
        self.rest([])

    def send(self, frames: list[str]) -> None:
        data = b""
        for text in frames:
            frame = bytes.fromhex(text)
            note_question(frame, self.theirs)
            data += self.renumbered(frame)
        self.end.feed(data)

    def renumbered(self, frame: bytes) -> bytes:
        """A Return with the id that our question has."""
        message = RPC.Message.from_bytes(frame)
        if kind_of(message) != "return":
            return frame
        id = message["return"].answerId
        if self.our_ids.get(id, id) == id:
            return frame
        builder = message.as_builder()
        builder["return"].answerId = self.our_ids[id]
        renumbered: bytes = builder.to_bytes()
        return renumbered

    def match_questions(
        self, found: list[dict[str, Any]], wanted: list[dict[str, Any]]
    ) -> None:
        """Give our questions the recorded ids: ours are free earlier, as we finish at once."""
        calls = [item for item in wanted if item["kind"] == "call"]
        for item in found:
            if item["kind"] == "call":
                if calls:
                    recorded = calls.pop(0)["question"]
                    self.our_ids[recorded] = item["question"]
                    self.recorded_ids[item["question"]] = recorded
                item["question"] = self.recorded_ids.get(item["question"], item["question"])
            elif item["kind"] == "finish":
                item["question"] = self.recorded_ids.get(item["question"], item["question"])
            elif item["kind"] == "return" and "other" in item:
                item["other"] = self.recorded_ids.get(item["other"], item["other"])
            if item.get("target", "").startswith("answer "):
                id, *path = item["target"][7:].split(".")
                item["target"] = "answer " + ".".join(
                    [str(self.recorded_ids.get(int(id), int(id))), *path]
                )

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
        self.match_questions(found, wanted)
        self.expected.append(wanted)
        self.found.append(found)

    def expect(self, frames: list[str], closed: str = "") -> None:
        self.rest(frames)
        if closed and self.scenario["name"] not in DEVIATIONS:
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
        self.check_outcomes(self.names.pop(step["name"]))

    def app_cancel(self, step: dict[str, Any]) -> None:
        self.names[step["of"]].cancel()

    def app_notes(self, step: dict[str, Any]) -> None:
        assert self.locals[step["of"]].state.notes == step["outcome"]

    def app_gate(self, step: dict[str, Any]) -> None:
        self.locals[step["of"]].state.open(step["mode"])

    def app_close(self, step: dict[str, Any]) -> None:
        self.end.connection.close()

    def check_outcomes(self, only: Any = None) -> None:
        """Compare what was awaited (of one dropped reply) with what the recorded program got."""
        chosen = [pair for pair in self.outcomes if only is None or pair[0] is only]
        self.outcomes = [pair for pair in self.outcomes if pair not in chosen]
        for reply, wanted in chosen:
            if wanted is None or not isinstance(reply, Reply) or reply.state == "pending":
                continue
            if "exception" in wanted:
                assert reply.state == "error"
                assert reply.value.kind == wanted["exception"]["type"]
                assert str(reply.value).startswith("remote exception: ") == wanted["exception"][
                    "description"
                ].startswith("remote exception: ")
            else:
                results = reply.result()
                found = {} if results is None else results.to_dict()
                assert {
                    name: "<cap>" if isinstance(wanted.get(name), str) else value
                    for name, value in found.items()
                } == wanted


def normal(message: dict[str, Any]) -> str:
    """What is compared of a message: texts of exceptions are the application's."""
    message = dict(message)
    if "reason" in message:
        message["reason"] = "…"
    if message["kind"] == "call":
        message["hints"] = [hint for hint in message["hints"] if hint != "noPromisePipelining"]
    return json.dumps(message, sort_keys=True, default=repr)


ORDERED = ("call", "resolve", "disembargo", "bootstrap")


def calls_bound_to(message: dict[str, Any], earlier: list[str]) -> list[str]:
    """The calls that a Return must follow: the one it takes results from, those to its results."""
    if message["kind"] != "return":
        return []
    targets = {
        cap.replace("receiverHosted", "imported") for cap in message.get("caps", ())
    }
    found = []
    for text in earlier:
        call = json.loads(text)
        if call["kind"] == "call" and (
            call["target"] in targets or call["question"] == message.get("other")
        ):
            found.append(text)
    return found


def compare(replay: Replay, strict: bool = True) -> None:
    """Step by step what is bound, over all steps what may come earlier or later."""
    for number, (wanted, found) in enumerate(zip(replay.expected, replay.found, strict=True)):
        bound = [normal(item) for item in wanted if item["kind"] not in ("finish", "release")]
        ours = [normal(item) for item in found if item["kind"] not in ("finish", "release")]
        assert Counter(ours) == Counter(bound), f"step {number}"
        assert [text for text in ours if json.loads(text)["kind"] in ORDERED] == [
            text for text in bound if json.loads(text)["kind"] in ORDERED
        ], f"order in step {number}"
        for at, text in enumerate(bound):
            before = calls_bound_to(json.loads(text), bound[:at])
            ours_before = ours[: ours.index(text)]
            assert all(call in ours_before for call in before), f"a Return overtakes in {number}"
    loose_wanted = Counter(
        normal(item) for step in replay.expected for item in step
        if item["kind"] in ("finish", "release")
    )
    loose_found = Counter(
        normal(item) for step in replay.found for item in step
        if item["kind"] in ("finish", "release")
    )
    if not strict:
        return
    assert not loose_wanted - loose_found
    extra = [json.loads(text) for text in loose_found - loose_wanted]
    # The recorded peer keeps an answer as long as its results are held; we finish at once.
    assert all(item["kind"] == "finish" and not item["release"] for item in extra), extra


@pytest.mark.parametrize("scenario", CONVERSATIONS, ids=lambda scenario: scenario["name"])
def test_our_core_says_what_the_reference_said(scenario: dict[str, Any]) -> None:
    replay = Replay(scenario)
    _, instead = DEVIATIONS.get(scenario["name"], ("", {}))
    replay.run()
    for step, kinds in instead.items():
        assert [
            " ".join([item["kind"], *([item["which"]] if item["kind"] == "return" else [])])
            for item in replay.found[step]
        ] == kinds, f"step {step}"
        replay.expected[step] = replay.found[step]
    compare(replay, scenario["name"] not in DEVIATIONS)
    if scenario["name"] == "client_unimplemented":
        assert [reply.value.kind for reply, _ in replay.outcomes[:1]] == ["UNIMPLEMENTED"]
    else:
        replay.check_outcomes()
    assert not replay.runtime.errors
