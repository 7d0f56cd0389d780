"""The scenarios that each client knows, and what each peer cannot do, with the reason.

Not a test.  README.md tells what each scenario does.
"""

from __future__ import annotations

from typing import NamedTuple

PEERS = ("cpp13", "cpp09", "rust", "go", "pycapnp")
LIMIT_WORDS = 65536  # what the server of `size_limit` takes

SCENARIOS = (
    "echo_int", "echo_text", "echo_data", "big_result", "burst", "order",
    "pipeline", "pipeline_nested", "pipeline_failed", "inheritance", "unimplemented", "exceptions",
    "pass_own", "hold_drop", "null_capability",
    "callback", "callback_reentrant", "callback_fails", "forward",
    "late", "late_broken", "late_param", "late_param_drop", "late_param_broken",
    "embargo_answer", "embargo_resolve",
    "cancel", "client_gone", "relay",
    "stream", "stream_error",
    "release",  # after the others: it waits until nothing of theirs lives in the server
)
ALONE = ("size_limit", "quit")  # each with a server of its own


class Limit(NamedTuple):
    """Scenarios that cannot succeed between these clients and servers."""

    clients: tuple[str, ...]
    servers: tuple[str, ...]
    scenarios: tuple[str, ...]
    detail: str | None  # part of what the client reports; None: see below
    reason: str
    ending: str = ""  # HANGS: the client waits for ever; RACES: it depends, so not run


HANGS, RACES = "hangs", "races"


KJ = ("cpp13", "cpp09", "pycapnp")
FORWARDED = ("forward", "embargo_answer", "embargo_resolve")

LIMITS = (
    Limit(
        ("rust",), KJ, FORWARDED, None,
        "KJ forwards calls by `sendResultsTo.yourself`; capnp-rpc 0.27 runs such a call and "
        "never sends `resultsSentElsewhere`",
        HANGS,
    ),
    Limit(
        ("go",), KJ, FORWARDED, "takeFromOtherQuestion",
        "KJ forwards calls as tail calls; go-capnp 3.1 knows neither `sendResultsTo.yourself` nor "
        "`takeFromOtherQuestion`",
    ),
    Limit(
        ("go",), (*PEERS, "capnwire"), ("late_param_drop",), None,
        "go-capnp 3.1 nearly always keeps the object that a local promise resolved to",
        RACES,
    ),
    Limit(
        ("go",), ("rust", "go", "capnwire"), ("embargo_answer",), None,
        "in go-capnp 3.1 a call on the own object now and then overtakes those on their way",
        RACES,
    ),
    Limit(("go",), ("go",), ("embargo_resolve",), None, "the same", RACES),
    Limit(
        (*PEERS, "capnwire"), ("pycapnp",), ("exceptions",), "message = Traceback",
        "pycapnp 2.2 sends each exception of a method as `failed`, with its traceback",
    ),
)


# What stays in the tables of a client of these servers after a scenario.
LEFTOVERS: dict[tuple[str, str], dict[str, object]] = {
    # capnp-rpc 0.27 sends no Return for a call that was finished early: its id stays in use.
    ("rust", "cancel"): {"questions": [1]},
    # Our Go server keeps the promise (go/server/main.go, Late), and so what it resolved to.
    ("go", "embargo_resolve"): {"exports": {0: 1}},
}


def limits_of(client: str, server: str) -> dict[str, Limit]:
    """The scenarios that cannot succeed between two programs."""
    return {
        scenario: limit
        for limit in LIMITS
        if client in limit.clients and server in limit.servers
        for scenario in limit.scenarios
    }
