"""A peer that speaks frame by frame: builds messages word for word, hears what the core says."""

from __future__ import annotations

from typing import Any

from capnwire._any import any_root
from tests.rpc.pair import End, StepRuntime, frames_of
from tests.rpc.probe import Probe, State
from tests.rpc.wire import METHODS, RPC, _Typed, describe, note_question

PROBE_ID = 0x9A11C0DE00000001
NUMBERS = {method.name: number for (id, number), method in METHODS.items() if id == PROBE_ID}


def pointer(index: int) -> Any:
    """A capability pointer with an index, to be stored in a message."""
    return any_root([(3 | index << 32).to_bytes(8, "little")]).as_interface()


def set_target(target: Any, where: Any) -> None:
    """`7` is import 7; `(3, 0, 1)` the field 1 of field 0 in answer 3."""
    if isinstance(where, int):
        target.importedCap = where
        return
    set_answer(target.init("promisedAnswer"), where)


def set_answer(answer: Any, where: tuple[int, ...]) -> None:
    answer.questionId = where[0]
    if len(where) > 1:
        ops = answer.init("transform", len(where) - 1)
        for op, index in zip(ops, where[1:], strict=True):
            if index is None:
                op.noop = None
            else:
                op.getPointerField = index


def set_descriptor(item: Any, cap: Any) -> None:
    """("senderHosted", 5), ("receiverAnswer", (3, 0)), ("none",), …"""
    kind, *value = cap
    if kind == "none":
        item.none = None
    elif kind == "receiverAnswer":
        set_answer(item.init("receiverAnswer"), value[0])
    elif kind == "thirdPartyHosted":
        item.init("thirdPartyHosted").vineId = value[0]
    else:
        setattr(item, kind, value[0])


def set_payload(payload: Any, info: Any, fields: dict[str, Any], caps: list[Any]) -> None:
    content = payload.content.init_as_struct(_Typed(info))
    for name, value in fields.items():
        setattr(content, name, value)
    set_caps(payload, caps)


def set_caps(payload: Any, caps: list[Any]) -> None:
    if caps:
        table = payload.init("capTable", len(caps))
        for item, cap in zip(table, caps, strict=True):
            set_descriptor(item, cap)


def message(kind: str) -> tuple[Any, Any]:
    made = RPC.Message.new_message()
    return made, made.init(kind)


def bootstrap(question: int) -> bytes:
    made, body = message("bootstrap")
    body.questionId = question
    return made.to_bytes()


def call(
    question: int, target: Any, method: str, caps: Any = (), to: str = "caller",
    hints: tuple[str, ...] = (), interface: int = PROBE_ID, number: int | None = None,
    **fields: Any,
) -> bytes:
    made, body = message("call")
    body.questionId = question
    set_target(body.init("target"), target)
    body.interfaceId = interface
    body.methodId = NUMBERS[method] if number is None else number
    for hint in hints:
        setattr(body, hint, True)
    setattr(body.sendResultsTo, to, None)
    set_payload(
        body.init("params"), METHODS[PROBE_ID, NUMBERS[method]].params, fields, list(caps)
    )
    return made.to_bytes()


def returns(
    answer: int, method: str | None = None, caps: Any = (), release: bool = False,
    no_finish: bool = False, which: str = "results", other: int = 0, reason: str = "",
    kind: str = "failed", **fields: Any,
) -> bytes:
    made, body = message("return")
    body.answerId, body.releaseParamCaps, body.noFinishNeeded = answer, release, no_finish
    if which == "results" and method is None:
        payload = body.init("results")
        payload.content.set(pointer(0))
        set_caps(payload, list(caps))
    elif which == "results":
        set_payload(
            body.init("results"), METHODS[PROBE_ID, NUMBERS[str(method)]].results, fields,
            list(caps),
        )
    elif which == "exception":
        body.init("exception").reason = reason
        body.exception.type = kind
    elif which == "takeFromOtherQuestion":
        body.takeFromOtherQuestion = other
    else:
        setattr(body, which, None)
    return made.to_bytes()


def finish(question: int, release: bool = False, workaround: bool = False) -> bytes:
    made, body = message("finish")
    body.questionId, body.releaseResultCaps = question, release
    body.requireEarlyCancellationWorkaround = workaround
    return made.to_bytes()


def release(id: int, count: int = 1) -> bytes:
    made, body = message("release")
    body.id, body.referenceCount = id, count
    return made.to_bytes()


def resolve(promise: int, *cap: Any, reason: str = "") -> bytes:
    made, body = message("resolve")
    body.promiseId = promise
    if cap:
        set_descriptor(body.init("cap"), cap)
    else:
        body.init("exception").reason = reason
    return made.to_bytes()


def disembargo(target: Any, context: str, id: int = 0) -> bytes:
    made, body = message("disembargo")
    set_target(body.init("target"), target)
    setattr(body.context, context, None if context == "accept" else id)
    return made.to_bytes()


def abort(reason: str) -> bytes:
    made, body = message("abort")
    body.reason = reason
    return made.to_bytes()


def unimplemented(frame: bytes) -> bytes:
    made = RPC.Message.new_message()
    made.unimplemented = RPC.Message.from_bytes(frame)
    return made.to_bytes()


class Talker:
    """Speaks to one core that serves a Probe (and may use what the talker offers)."""

    def __init__(self, serve: bool = True, **options: Any) -> None:
        self.runtime = StepRuntime()
        self.state = State(self.runtime)
        self.end = End(self.runtime, Probe(self.state) if serve else None, **options)
        self.mine: dict[int, Any] = {}
        self.theirs: dict[int, Any] = {}
        self.frames: list[bytes] = []

    def say(self, *frames: bytes) -> list[str]:
        """Send frames in one write; gives what the core says to that."""
        for frame in frames:
            note_question(frame, self.mine)
        self.end.feed(b"".join(frames))
        return self.hear()

    def hear(self) -> list[str]:
        """What the core says once it is at rest, as short texts."""
        self.frames = frames_of(self.end.rest())
        for frame in self.frames:
            note_question(frame, self.theirs)
        return [short(describe(frame, self.mine)) for frame in self.frames]

    def begin(self) -> None:
        """Ask for the bootstrap object: it is import 0 from then on."""
        assert self.say(bootstrap(0), finish(0)) == ["return 0 results [senderHosted 0]"]


def short(found: dict[str, Any]) -> str:
    """`return 3 results {'n': 1}`; ids and what matters."""
    kind = found["kind"]
    caps = f" {found['caps']}" if found.get("caps") else ""
    caps = caps.replace("'", "")
    content = found.get("content")
    fields = ""
    if isinstance(content, dict):
        plain = {name: value for name, value in content.items() if not isinstance(value, str)}
        fields = "".join(f" {name}={value}" for name, value in plain.items())
    if kind == "call":
        to = " to yourself" if found["to"] == "yourself" else ""
        hints = "".join(f" {hint}" for hint in found["hints"])
        where = f"call {found['question']} on {found['target']} {found['method']}"
        return f"{where}{fields}{caps}{to}{hints}"
    if kind == "return":
        text = f"return {found['answer']} {found['which']}{fields}{caps}"
        if found["which"] == "exception":
            text += f" {found['type']}: {found['reason']}"
        if "other" in found:
            text += f" {found['other']}"
        return text + (" no finish" if found["no_finish"] else "") + (
            " release" if found["release"] and found["which"] != "results" else ""
        )
    if kind == "bootstrap":
        return f"bootstrap {found['question']}"
    if kind == "finish":
        return f"finish {found['question']}" + (" release" if found["release"] else "")
    if kind == "release":
        return f"release {found['id']} {found['count']}"
    if kind == "resolve":
        return f"resolve {found['promise']} " + (
            found["cap"] if "cap" in found else f"{found['type']}: {found['reason']}"
        )
    if kind == "disembargo":
        return f"disembargo {found['target']} {found['which']} {found.get('id')}"
    if kind == "abort":
        return f"abort: {found['reason']}"
    return f"{kind} {found.get('message', '')}"
