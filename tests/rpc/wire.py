"""RPC messages as plain values, for comparing: `describe(frame, questions)`.

A Call's parameters and a Return's results are decoded by the schema of the recorded conversations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import capnwire
from capnwire.service.interface import methods_of

DATA = Path(__file__).parent / "data"
SCHEMA = capnwire.load(DATA / "probe.capnp")
RPC = capnwire.load(Path(capnwire.__file__).parent / "std/capnp/rpc.capnp")

METHODS: dict[tuple[int, int], Any] = {}
for _interface in (SCHEMA.Probe, SCHEMA.Sub, SCHEMA.Stranger):
    for _id, _methods in methods_of(_interface._info).items():
        for _number, _method in enumerate(_methods):
            METHODS[_id, _number] = _method


class _Typed:
    def __init__(self, info: Any) -> None:
        self._info = info


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (int, float, str, bytes, bool)):
        return value
    return repr(value)


def _target(target: Any) -> str:
    if target.which() == "importedCap":
        return f"imported {target.importedCap}"
    return f"answer {_promised(target.promisedAnswer)}"


def _promised(answer: Any) -> str:
    return ".".join([
        str(answer.questionId),
        *(
            "noop" if op.which() == "noop" else str(op.getPointerField) for op in answer.transform
        ),
    ])


def _descriptor(item: Any) -> str:
    kind = item.which()
    if kind == "none":
        return "none"
    if kind == "receiverAnswer":
        return f"receiverAnswer {_promised(item.receiverAnswer)}"
    if kind == "thirdPartyHosted":
        return f"thirdPartyHosted vine {item.thirdPartyHosted.vineId}"
    return f"{kind} {getattr(item, kind)}"


def _payload(payload: Any, info: Any) -> dict[str, Any]:
    content: Any
    try:
        if info is None:
            content = payload.content.as_interface()
            content = repr(content)
        else:
            content = _plain(payload.content.as_struct(_Typed(info)).to_dict())
    except capnwire.CapnwireError as error:
        content = f"unreadable: {error}"
    return {"content": content, "caps": [_descriptor(item) for item in payload.capTable]}


def kind_of(message: Any) -> str:
    """The kind of a message; `unknown` when it is from the future."""
    try:
        kind: str = message.which()
    except capnwire.UnionError:
        return "unknown"
    return kind


def describe(frame: bytes, questions: dict[int, Any]) -> dict[str, Any]:
    """A message as a dict; `questions` remembers the methods of its sender's calls by question.

    For a Return, give the questions of the other side.
    """
    message = RPC.Message.from_bytes(frame)
    kind = kind_of(message)
    if kind == "unknown":
        return {"kind": kind}
    body = message[kind]
    found: dict[str, Any] = {"kind": kind}
    if kind == "bootstrap":
        found["question"] = body.questionId
    elif kind == "call":
        method = METHODS.get((body.interfaceId, body.methodId))
        found.update(
            question=body.questionId, target=_target(body.target),
            method=method.name if method else f"{body.interfaceId:#x}.{body.methodId}",
            to=body.sendResultsTo.which(),
            hints=[
                name for name in ("noPromisePipelining", "onlyPromisePipeline") if body[name]
            ],
        )
        if method is not None:
            found.update(_payload(body.params, method.params))
    elif kind == "return":
        which = body.which()
        found.update(
            answer=body.answerId, which=which, release=body.releaseParamCaps,
            no_finish=body.noFinishNeeded,
        )
        if which == "results":
            found.update(_payload(body.results, questions.get(body.answerId)))
        elif which == "exception":
            found.update(type=str(body.exception.type), reason=body.exception.reason)
        elif which == "takeFromOtherQuestion":
            found["other"] = body.takeFromOtherQuestion
    elif kind == "finish":
        found.update(question=body.questionId, release=body.releaseResultCaps)
    elif kind == "release":
        found.update(id=body.id, count=body.referenceCount)
    elif kind == "resolve":
        which = body.which()
        found.update(promise=body.promiseId, which=which)
        if which == "cap":
            found["cap"] = _descriptor(body.cap)
        else:
            found.update(type=str(body.exception.type), reason=body.exception.reason)
    elif kind == "disembargo":
        which = body.context.which()
        found.update(target=_target(body.target), which=which)
        if which.endswith("Loopback"):
            found["id"] = body.context[which]
    elif kind == "abort":
        found.update(type=str(body.type), reason=body.reason)
    elif kind == "unimplemented":
        found["message"] = kind_of(body)
    return found


def note_question(frame: bytes, questions: dict[int, Any]) -> None:
    """Remember which results a question of the frame's sender will have."""
    message = RPC.Message.from_bytes(frame)
    if kind_of(message) == "bootstrap":
        questions[message.bootstrap.questionId] = None
    elif kind_of(message) == "call":
        method = METHODS.get((message.call.interfaceId, message.call.methodId))
        questions[message.call.questionId] = method.results if method else None
