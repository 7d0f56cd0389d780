"""The compiled numbers of `rpc/layout.pxd` are those of our own compiled rpc.capnp."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import capnwire
from capnwire.schema.model import PRIMITIVE_BITS, StructBody
from tests.rpc.wire import RPC

LAYOUT = Path(capnwire.__file__).parent / "rpc/layout.pxd"
NUMBERS = {
    name: int(value, 0)
    for name, value in re.findall(r"^    ([A-Z_]+) = (\d+)", LAYOUT.read_text(), re.MULTILINE)
}


def node(*names: str) -> Any:
    found: Any = RPC
    for name in names:
        found = getattr(found, name)
    return found._info.node


def field(struct: Any, name: str) -> Any:
    return next(field for field in struct.body.fields if field.name == name)


def byte(struct: Any, name: str) -> int:
    """The byte at which a data field starts."""
    found = field(struct, name)
    return int(found.offset * PRIMITIVE_BITS[found.type.kind] // 8)


def tag(struct: Any) -> int:
    body = struct.body
    assert isinstance(body, StructBody)
    return body.discriminant_offset * 2


def group(struct: Any, name: str) -> Any:
    registry = RPC._registry
    return registry.node(field(struct, name).group_id)


CALL, RETURN = node("Call"), node("Return")

FIELDS = {
    "CALL_QUESTION": byte(CALL, "questionId"),
    "CALL_METHOD": byte(CALL, "methodId"),
    "CALL_INTERFACE": byte(CALL, "interfaceId"),
    "CALL_SEND_RESULTS_TO": tag(group(CALL, "sendResultsTo")),
    "CALL_FLAGS": field(CALL, "allowThirdPartyTailCall").offset // 8,
    "CALL_NO_PIPELINING_BIT": field(CALL, "noPromisePipelining").offset % 8,
    "CALL_ONLY_PIPELINE_BIT": field(CALL, "onlyPromisePipeline").offset % 8,
    "RETURN_ANSWER": byte(RETURN, "answerId"),
    "RETURN_FLAGS": field(RETURN, "releaseParamCaps").offset // 8,
    "RETURN_KEEP_PARAMS_BIT": field(RETURN, "releaseParamCaps").offset % 8,
    "RETURN_NO_FINISH_BIT": field(RETURN, "noFinishNeeded").offset % 8,
    "RETURN_TAG": tag(RETURN),
    "RETURN_OTHER_QUESTION": byte(RETURN, "takeFromOtherQuestion"),
    "FINISH_QUESTION": byte(node("Finish"), "questionId"),
    "FINISH_FLAGS": field(node("Finish"), "releaseResultCaps").offset // 8,
    "FINISH_KEEP_RESULTS_BIT": field(node("Finish"), "releaseResultCaps").offset % 8,
    "FINISH_NO_WORKAROUND_BIT": field(
        node("Finish"), "requireEarlyCancellationWorkaround"
    ).offset % 8,
    "RESOLVE_PROMISE": byte(node("Resolve"), "promiseId"),
    "RESOLVE_TAG": tag(node("Resolve")),
    "RELEASE_ID": byte(node("Release"), "id"),
    "RELEASE_COUNT": byte(node("Release"), "referenceCount"),
    "DISEMBARGO_ID": byte(group(node("Disembargo"), "context"), "senderLoopback"),
    "DISEMBARGO_TAG": tag(group(node("Disembargo"), "context")),
    "TARGET_IMPORT": byte(node("MessageTarget"), "importedCap"),
    "TARGET_TAG": tag(node("MessageTarget")),
    "ANSWER_QUESTION": byte(node("PromisedAnswer"), "questionId"),
    "OP_TAG": tag(node("PromisedAnswer", "Op")),
    "OP_INDEX": byte(node("PromisedAnswer", "Op"), "getPointerField"),
    "DESCRIPTOR_TAG": tag(node("CapDescriptor")),
    "DESCRIPTOR_ID": byte(node("CapDescriptor"), "senderHosted"),
    "VINE_ID": byte(node("ThirdPartyCapDescriptor"), "vineId"),
    "EXCEPTION_TYPE": byte(node("Exception"), "type"),
}

MEMBERS = {
    "MESSAGE": (node("Message"), {
        "UNIMPLEMENTED": "unimplemented", "ABORT": "abort", "CALL": "call", "RETURN": "return",
        "FINISH": "finish", "RESOLVE": "resolve", "RELEASE": "release", "BOOTSTRAP": "bootstrap",
        "DISEMBARGO": "disembargo",
    }),
    "SEND": (group(CALL, "sendResultsTo"), {"TO_CALLER": "caller", "TO_YOURSELF": "yourself"}),
    "RETURN": (RETURN, {
        "RESULTS": "results", "EXCEPTION": "exception", "CANCELED": "canceled",
        "ELSEWHERE": "resultsSentElsewhere", "TAKE_FROM": "takeFromOtherQuestion",
    }),
    "CAP": (node("CapDescriptor"), {
        "NONE": "none", "SENDER_HOSTED": "senderHosted", "SENDER_PROMISE": "senderPromise",
        "RECEIVER_HOSTED": "receiverHosted", "RECEIVER_ANSWER": "receiverAnswer",
        "THIRD_PARTY": "thirdPartyHosted",
    }),
}

WANTED = dict(FIELDS)
for _prefix, (_struct, _members) in MEMBERS.items():
    for _name, _member in _members.items():
        WANTED[f"{_prefix}_{_name}"] = field(_struct, _member).discriminant_value


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_a_compiled_number_is_the_schema_s(name: str) -> None:
    assert NUMBERS[name] == WANTED[name]


def test_no_number_is_left_out() -> None:
    assert NUMBERS.keys() == WANTED.keys()


@pytest.mark.parametrize(
    ("names", "data", "pointers"),
    [
        (("Message",), 1, 1), (("Call",), 3, 3), (("Return",), 2, 1), (("Finish",), 1, 0),
        (("Resolve",), 1, 1), (("Release",), 1, 0), (("Disembargo",), 1, 1),
        (("MessageTarget",), 1, 1), (("Payload",), 0, 2), (("CapDescriptor",), 1, 1),
        (("PromisedAnswer",), 1, 1), (("PromisedAnswer", "Op"), 1, 0), (("Bootstrap",), 1, 1),
        (("ThirdPartyCapDescriptor",), 1, 1),
    ],
)
def test_the_structs_have_the_sizes_that_are_written(
    names: tuple[str, ...], data: int, pointers: int
) -> None:
    body = node(*names).body
    assert (body.data_word_count, body.pointer_count) == (data, pointers)


@pytest.mark.parametrize(
    ("struct", "pointers"),
    [
        ("Call", ["target", "params"]), ("Payload", ["content", "capTable"]),
        ("Exception", ["reason", "trace"]),
    ],
)
def test_pointers_stand_where_they_are_written(struct: str, pointers: list[str]) -> None:
    assert [field(node(struct), name).offset for name in pointers] == list(range(len(pointers)))
