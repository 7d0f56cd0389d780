"""The rules of rpc.capnp, one test each: what the core says to a peer, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

from capnwire.errors import RemoteError
from tests.rpc.pair import End
from tests.rpc.probe import Probe
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
    unimplemented,
)
from tests.rpc.wire import RPC, SCHEMA

CLOSED = "Pipeline call on a request that returned no capabilities or was already closed."


@pytest.fixture
def talker() -> Talker:
    made = Talker()
    made.begin()
    return made


def aborted(talker: Talker, *frames: bytes) -> str:
    """The reason with which the core aborts on these frames."""
    said = talker.say(*frames)
    assert said, "nothing was said"
    assert said[-1].startswith("abort: "), said
    assert talker.end.ended is not None
    assert talker.end.is_empty(), "an ended connection has empty tables"
    return said[-1][7:]


# ------------------------------------------------------------------ bootstrap


def test_bootstrap_gives_the_capability_itself_and_keeps_the_answer_until_finish() -> None:
    talker = Talker()
    assert talker.say(bootstrap(3)) == ["return 3 results [senderHosted 0]"]
    assert talker.end.tables()["answers"] == [3]
    talker.say(finish(3))
    assert talker.end.tables()["answers"] == []
    assert talker.end.tables()["exports"] == {0: 1}


def test_the_return_of_a_bootstrap_leaves_release_param_caps_true() -> None:
    talker = Talker()
    talker.say(bootstrap(0))
    assert RPC.Message.from_bytes(talker.frames[0])["return"].releaseParamCaps is True


def test_a_second_bootstrap_is_one_more_reference_to_the_same_export(talker: Talker) -> None:
    assert talker.say(bootstrap(1)) == ["return 1 results [senderHosted 0]"]
    assert talker.end.tables()["exports"] == {0: 2}


def test_without_a_bootstrap_object_a_broken_promise_is_given() -> None:
    talker = Talker(serve=False)
    assert talker.say(bootstrap(0)) == [
        "return 0 results [senderPromise 0]",
        "resolve 0 failed: This vat does not expose any public/bootstrap interfaces.",
    ]


def test_any_transform_on_a_bootstrap_answer_is_broken() -> None:
    talker = Talker()
    talker.say(bootstrap(0))
    assert "exception" in talker.say(call(1, (0, 0), "echo", n=1))[0]
    assert "exception" in talker.say(call(2, (0, None), "echo", n=1))[0]
    assert talker.say(call(3, (0,), "echo", n=1)) == ["return 3 results n=1 no finish"]


# ------------------------------------------------------------------ calls and returns


def test_results_without_capabilities_need_no_finish(talker: Talker) -> None:
    assert talker.say(call(5, 0, "echo", n=9)) == ["return 5 results n=9 no finish"]
    assert talker.end.tables()["answers"] == []


def test_results_with_capabilities_are_kept_until_finish(talker: Talker) -> None:
    assert talker.say(call(0, 0, "getCap")) == ["return 0 results [senderHosted 1]"]
    assert talker.end.tables()["answers"] == [0]
    assert talker.say(finish(0)) == []
    assert talker.end.tables() == {
        "questions": [], "answers": [], "exports": {0: 1, 1: 1}, "imports": {}, "embargoes": 0
    }


def test_finish_with_release_gives_the_results_capabilities_back(talker: Talker) -> None:
    talker.say(call(0, 0, "getCap"), finish(0, release=True))
    assert talker.end.tables()["exports"] == {0: 1}


def test_exceptions_are_kept_until_finish(talker: Talker) -> None:
    assert talker.say(call(0, 0, "fail", text="no luck")) == [
        "return 0 exception failed: no luck"
    ]
    assert talker.say(call(1, (0, 0), "echo", n=1)) == ["return 1 exception failed: no luck"]
    talker.say(finish(0), finish(1))
    assert talker.end.tables()["answers"] == []


def test_an_unknown_method_or_interface_is_unimplemented(talker: Talker) -> None:
    said = talker.say(call(0, 0, "echo", number=999), call(1, 0, "echo", interface=0xABC))
    assert [text[:32] for text in said] == [
        "return 0 exception unimplemented", "return 1 exception unimplemented"
    ]


def test_a_call_to_an_export_that_is_not_there_is_fatal(talker: Talker) -> None:
    assert "not a current export ID" in aborted(talker, call(0, 77, "echo"))


def test_a_question_id_in_use_is_fatal(talker: Talker) -> None:
    talker.say(call(0, 0, "block"))
    assert "already in use" in aborted(talker, call(0, 0, "echo"))


def test_finish_of_an_unknown_question_is_ignored(talker: Talker) -> None:
    assert talker.say(finish(99)) == []


def test_a_return_for_an_unknown_question_is_fatal(talker: Talker) -> None:
    assert "Invalid question ID" in aborted(talker, returns(7, "echo", n=1))


def test_two_pointers_with_one_index_are_one_capability(talker: Talker) -> None:
    talker.say(call(0, 0, "twice", [("senderHosted", 5)], a=pointer(0), b=pointer(0)))
    assert talker.end.tables()["imports"] == {}


def test_each_table_entry_counts_used_or_not(talker: Talker) -> None:
    said = talker.say(call(0, 0, "echo", [("senderHosted", 5), ("senderHosted", 5)], n=1))
    assert "release 5 2" in said


def test_capabilities_that_a_method_keeps_stay_imported(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    assert talker.end.tables()["imports"] == {5: 1}
    assert talker.say(call(0, 0, "drop")) == ["return 0 results no finish", "release 5 1"]


def test_release_param_caps_true_gives_every_export_of_the_parameters_back() -> None:
    talker = Talker(serve=False)
    client = talker.end.bootstrap(SCHEMA.Probe)
    talker.hear()
    talker.say(returns(0, caps=[("senderHosted", 0)]))
    reply = client.twice(Probe(talker.state), Probe(talker.state))
    talker.hear()
    assert talker.end.tables()["exports"] == {0: 1, 1: 1}
    talker.say(returns(0, "twice", release=True, no_finish=True))
    assert talker.end.tables()["exports"] == {}
    assert reply.done()


def test_none_and_indices_beyond_the_table_break_the_reading_of_that_field_only(
    talker: Talker,
) -> None:
    for caps in ([("none",)], [("senderHosted", 5)]):
        index = 0 if caps == [("none",)] else 3
        said = talker.say(call(0, 0, "same", caps, cap=pointer(index)))
        assert said[0].startswith("return 0 exception failed"), said
        talker.say(finish(0))
    assert talker.say(call(0, 0, "echo", n=1)) == ["return 0 results n=1 no finish"]


# ------------------------------------------------------------------ pipelining


def test_calls_on_an_answer_wait_for_it_and_go_before_its_return(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    assert talker.say(call(1, 0, "block"), call(2, (1, 0), "echo", n=4)) == []
    said = talker.say(call(3, 0, "unblock", mode=1))
    assert said.index("call 0 on imported 5 echo n=4 to yourself") < said.index(
        "return 1 results [receiverHosted 5]"
    )


def test_a_pipelined_call_on_a_finished_question_fails_alone(talker: Talker) -> None:
    assert talker.say(call(1, (9, 0), "echo")) == [f"return 1 exception failed: {CLOSED}"]


def test_a_transform_that_ends_nowhere_fails_that_call_alone(talker: Talker) -> None:
    talker.say(call(0, 0, "nested"))
    for number, path in enumerate(
        [(0,), (0, 0), (0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 1, 0), (0, 7)], 1
    ):
        assert talker.say(call(number, path, "echo"))[0].startswith(
            f"return {number} exception failed"
        )
    assert talker.say(call(9, (0, 0, 0, 1), "echo", n=1)) == ["return 9 results n=1 no finish"]
    assert talker.say(call(10, (0, None, 0, None, 0, 1), "echo", n=2)) == [
        "return 10 results n=2 no finish"
    ]


def test_an_unknown_transform_operation_is_fatal(talker: Talker) -> None:
    words = call(1, (0, 0), "echo", n=3)
    operation = (1).to_bytes(8, "little")
    at = next(at for at in range(len(words) - 8, 0, -8) if words[at : at + 8] == operation)
    data = words[:at] + (9).to_bytes(8, "little") + words[at + 8 :]
    assert "transform" in aborted(talker, data)


def test_no_promise_pipelining_binds_its_caller(talker: Talker) -> None:
    talker.say(call(0, 0, "getCap", hints=("noPromisePipelining",)))
    assert "noPromisePipelining hint" in talker.say(call(1, (0, 0), "echo"))[0]


def test_only_promise_pipeline_is_never_returned(talker: Talker) -> None:
    high = 1 << 31
    assert talker.say(call(high, 0, "getCap", hints=("onlyPromisePipeline",))) == []
    assert talker.say(call(1, (high, 0), "echo", n=3)) == ["return 1 results n=3 no finish"]
    assert talker.say(finish(high, release=True)) == []
    assert talker.end.tables()["answers"] == []
    assert talker.end.tables()["exports"] == {0: 1}


# ------------------------------------------------------------------ finish and cancellation


def test_finish_before_the_return_cancels_and_is_answered_once(talker: Talker) -> None:
    talker.say(call(0, 0, "blockThenCap"))
    assert talker.say(finish(0)) == ["return 0 canceled"]
    assert talker.state.notes == [1000, 9999]
    assert talker.end.tables()["answers"] == []


def test_waiting_pipelined_calls_keep_a_finished_question_running(talker: Talker) -> None:
    talker.say(call(0, 0, "block"), call(1, (0, 0), "echo", n=8), finish(0))
    assert sorted(talker.say(call(2, 0, "unblock", mode=0))) == [
        "return 0 canceled", "return 1 results n=8 no finish", "return 2 results no finish"
    ]
    assert talker.state.notes == [8]
    assert talker.end.tables()["answers"] == []


def test_a_finished_question_ends_with_the_last_call_that_waits_for_it(talker: Talker) -> None:
    talker.say(call(0, 0, "blockThenCap"), call(1, (0, 0), "echo"), call(2, (0, 0), "echo"))
    assert talker.say(finish(0)) == []
    assert talker.say(finish(1)) == ["return 1 canceled"]
    assert talker.state.notes == [1000]
    assert talker.say(finish(2)) == ["return 2 canceled", "return 0 canceled"]
    assert talker.state.notes == [1000, 9999], "the method got its cancellation"
    assert talker.end.tables()["answers"] == []


@pytest.mark.parametrize("workaround", [False, True])
def test_a_capability_that_was_passed_on_keeps_its_finished_question_running(
    talker: Talker, workaround: bool
) -> None:
    passed_on = call(1, 0, "hold", [("receiverAnswer", (0, 0))], cap=pointer(0))
    said = talker.say(call(0, 0, "block"), passed_on, finish(0, workaround=workaround))
    assert said == ["return 1 results no finish"]
    talker.say(call(2, 0, "callHeld", n=8))
    assert sorted(talker.say(call(3, 0, "unblock", mode=0))) == [
        "return 0 canceled", "return 2 results n=8 no finish", "return 3 results no finish"
    ]


def test_the_workaround_flag_lets_the_method_start_first(talker: Talker) -> None:
    said = talker.say(call(0, 0, "blockThenCap"), finish(0, workaround=True))
    assert said == ["return 0 canceled"]
    assert talker.state.notes == [1000, 9999]


def test_a_second_finish_is_ignored(talker: Talker) -> None:
    talker.say(call(0, 0, "block"), call(1, (0, 0), "echo", n=8))
    assert talker.say(finish(0), finish(0)) == []


# ------------------------------------------------------------------ exports, imports, release


def test_export_ids_are_the_lowest_free_ones(talker: Talker) -> None:
    for number in range(3):
        talker.say(call(number, 0, "getFresh"), finish(number))
    assert talker.end.tables()["exports"] == {0: 1, 1: 1, 2: 1, 3: 1}
    talker.say(release(2))
    assert talker.say(call(0, 0, "getFresh")) == ["return 0 results [senderHosted 2]"]


def test_one_object_is_one_export_with_a_count(talker: Talker) -> None:
    talker.say(call(0, 0, "two"), finish(0))
    assert talker.end.tables()["exports"] == {0: 1, 1: 2}
    talker.say(release(1, 2))
    assert talker.end.tables()["exports"] == {0: 1}


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (release(0, 2), "refcount below zero"),
        (release(9, 1), "invalid export ID"),
        (release(0, 0xFFFFFFFF), "refcount below zero"),
    ],
)
def test_releasing_too_much_is_fatal(talker: Talker, frame: bytes, reason: str) -> None:
    assert reason in aborted(talker, frame)


def test_what_comes_back_is_described_as_the_receiver_s(talker: Talker) -> None:
    assert talker.say(call(0, 0, "same", [("senderHosted", 5)], cap=pointer(0))) == [
        "return 0 results [receiverHosted 5]"
    ]
    assert talker.say(finish(0)) == ["release 5 1"]


def test_an_object_that_comes_home_is_the_object_itself(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("receiverHosted", 0)], cap=pointer(0)))
    assert talker.say(call(0, 0, "callHeld", n=6)) == ["return 0 results n=6 no finish"]


@pytest.mark.parametrize("cap", [("receiverHosted", 99), ("receiverAnswer", (99, 0))])
def test_receiver_descriptors_of_nothing_are_broken_not_fatal(talker: Talker, cap: Any) -> None:
    talker.say(call(0, 0, "hold", [cap], cap=pointer(0)))
    assert talker.say(call(0, 0, "callHeld"))[0].startswith("return 0 exception failed")


def test_a_third_party_capability_is_used_through_its_vine(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("thirdPartyHosted", 8)], cap=pointer(0)))
    assert talker.say(call(0, 0, "callHeld", n=2)) == [
        "call 0 on imported 8 echo n=2 noPromisePipelining"
    ]
    talker.say(returns(0, "echo", no_finish=True, n=3))
    assert talker.say(call(0, 0, "drop")) == ["return 0 results no finish", "release 8 1"]


# ------------------------------------------------------------------ promises


def test_an_unresolved_promise_is_exported_as_one_and_resolved_later(talker: Talker) -> None:
    assert talker.say(call(0, 0, "getPromise")) == ["return 0 results [senderPromise 1]"]
    talker.say(finish(0), call(1, 1, "echo", n=1))
    said = talker.say(call(2, 0, "unblock", mode=0))
    assert "resolve 1 senderHosted 2" in said
    assert "return 1 results n=1 no finish" in said
    assert talker.end.tables()["exports"] == {0: 1, 1: 1, 2: 1}


def test_calls_that_waited_on_a_promise_go_before_its_resolve(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    talker.say(call(0, 0, "getPromise"), finish(0), call(1, 1, "echo", n=1))
    said = talker.say(call(2, 0, "unblock", mode=1))
    assert said.index("call 0 on imported 5 echo n=1 to yourself") < said.index(
        "resolve 1 receiverHosted 5"
    )


def test_a_promise_of_null_becomes_an_object_that_fails(talker: Talker) -> None:
    talker.say(call(0, 0, "getPromise"), finish(0))
    assert "resolve 1 senderHosted 2" in talker.say(call(1, 0, "unblock", mode=3))
    assert talker.say(call(2, 2, "echo")) == [
        "return 2 exception failed: Called null capability."
    ]


def test_a_broken_promise_is_resolved_to_its_exception(talker: Talker) -> None:
    talker.say(call(0, 0, "getPromise"), finish(0))
    assert "resolve 1 failed: gate broke" in talker.say(call(1, 0, "unblock", mode=2))
    assert talker.say(call(2, 1, "echo")) == ["return 2 exception failed: gate broke"]


def test_a_promise_released_before_it_resolves_is_not_resolved(talker: Talker) -> None:
    talker.say(call(0, 0, "getPromise"), finish(0), release(1))
    assert talker.say(call(1, 0, "unblock", mode=0)) == ["return 1 results no finish"]


def hold_promise(talker: Talker, id: int) -> None:
    talker.say(call(0, 0, "hold", [("senderPromise", id)], cap=pointer(0)))


def test_a_resolved_promise_is_released_and_calls_go_to_its_target(talker: Talker) -> None:
    hold_promise(talker, 5)
    assert talker.say(resolve(5, "senderHosted", 6)) == ["release 5 1"]
    assert talker.say(call(0, 0, "callHeld", n=1)) == [
        "call 0 on imported 6 echo n=1 noPromisePipelining"
    ]


def test_a_resolve_to_an_exception_breaks_the_promise(talker: Talker) -> None:
    hold_promise(talker, 5)
    assert talker.say(resolve(5, reason="gone")) == ["release 5 1"]
    assert talker.say(call(0, 0, "callHeld")) == [
        "return 0 exception failed: remote exception: gone"
    ]


def test_a_resolve_of_an_unknown_promise_releases_the_new_capability(talker: Talker) -> None:
    assert talker.say(resolve(44, "senderHosted", 6)) == ["release 6 1"]
    assert talker.say(resolve(44, reason="x")) == []


def test_a_second_resolve_is_ignored_and_its_capability_released(talker: Talker) -> None:
    hold_promise(talker, 5)
    talker.say(call(0, 0, "callHeld", n=1))
    talker.say(call(1, 0, "same", [("senderPromise", 5)], cap=pointer(0)))
    talker.say(resolve(5, "senderHosted", 6))
    assert "release 7 1" in talker.say(resolve(5, "senderHosted", 7))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (resolve(5, "senderPromise", 5), "to itself"),
        (resolve(5, "senderHosted", 5), "to itself"),
        (resolve(5, "none"), "none"),
        (resolve(6, "senderHosted", 7), "non-promise import"),
        (resolve(6, reason="x"), "non-promise import"),
    ],
)
def test_wrong_resolves_are_fatal(talker: Talker, frame: bytes, reason: str) -> None:
    hold_promise(talker, 5)
    talker.say(call(0, 0, "block"), call(
        1, 0, "same", [("senderHosted", 6)], cap=pointer(0)
    ))
    assert reason in aborted(talker, frame)


def test_a_ring_of_promises_breaks_instead_of_turning(talker: Talker) -> None:
    hold_promise(talker, 5)
    talker.say(call(0, 0, "same", [("senderPromise", 6)], cap=pointer(0)))
    talker.say(resolve(5, "senderPromise", 6))
    talker.say(resolve(6, "senderPromise", 5))
    talker.say(call(1, 0, "callHeld", n=1))
    assert talker.end.ended is None


# ------------------------------------------------------------------ embargoes


def test_a_used_promise_that_leads_home_is_embargoed(talker: Talker) -> None:
    hold_promise(talker, 5)
    assert talker.say(call(0, 0, "callHeld", n=1)) == [
        "call 0 on imported 5 echo n=1 noPromisePipelining"
    ]
    assert talker.say(resolve(5, "receiverHosted", 0)) == [
        "disembargo imported 5 senderLoopback 0", "release 5 1"
    ]
    assert talker.say(call(1, 0, "callHeld", n=2)) == []
    talker.say(call(2, 0, "echo", n=1))       # the first call comes round
    assert talker.state.notes == [1]
    assert talker.say(disembargo(0, "receiverLoopback", 0)) == ["return 1 results n=2 no finish"]
    assert talker.state.notes == [1, 2]
    assert talker.end.tables()["embargoes"] == 0


def test_an_unused_promise_that_leads_home_needs_no_embargo(talker: Talker) -> None:
    hold_promise(talker, 5)
    assert talker.say(resolve(5, "receiverHosted", 0)) == ["release 5 1"]
    assert talker.say(call(0, 0, "callHeld", n=2)) == ["return 0 results n=2 no finish"]


def test_a_promise_described_to_its_host_counts_as_used(talker: Talker) -> None:
    hold_promise(talker, 5)
    assert talker.say(call(0, 0, "getHeld")) == ["return 0 results [receiverHosted 5]"]
    talker.say(finish(0))
    assert "disembargo imported 5 senderLoopback 0" in talker.say(
        resolve(5, "receiverHosted", 0)
    )


def test_a_promise_that_stays_with_the_peer_needs_no_embargo(talker: Talker) -> None:
    hold_promise(talker, 5)
    talker.say(call(0, 0, "callHeld", n=1))
    assert talker.say(resolve(5, "senderHosted", 6)) == ["release 5 1"]


@pytest.mark.parametrize("cap", [("receiverHosted", 99), ("receiverAnswer", (99, 0))])
def test_a_broken_target_needs_no_embargo(talker: Talker, cap: Any) -> None:
    hold_promise(talker, 5)
    talker.say(call(0, 0, "callHeld", n=1))
    assert talker.say(resolve(5, *cap)) == ["release 5 1"]


def test_a_chain_of_promises_is_embargoed_once_along_the_last_way(talker: Talker) -> None:
    hold_promise(talker, 5)
    talker.say(call(0, 0, "callHeld", n=1))
    assert talker.say(resolve(5, "senderPromise", 6)) == ["release 5 1"]
    assert talker.say(resolve(6, "receiverHosted", 0)) == [
        "disembargo imported 6 senderLoopback 0", "release 6 1"
    ]


def test_a_loopback_is_answered_when_its_target_points_back(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    talker.say(call(0, 0, "getPromise"), finish(0))
    talker.say(call(1, 0, "unblock", mode=1))
    assert talker.say(disembargo(1, "senderLoopback", 7)) == [
        "disembargo imported 5 receiverLoopback 7"
    ]


def test_a_loopback_waits_for_its_target_to_resolve(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    talker.say(call(0, 0, "getPromise"), finish(0))
    assert talker.say(disembargo(1, "senderLoopback", 7)) == []
    said = talker.say(call(1, 0, "unblock", mode=1))
    assert said.index("resolve 1 receiverHosted 5") < said.index(
        "disembargo imported 5 receiverLoopback 7"
    ) or "disembargo imported 5 receiverLoopback 7" in said


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (disembargo(0, "senderLoopback", 1), "does not point back"),
        (disembargo(77, "senderLoopback", 1), "not a current export ID"),
        (disembargo((9, 0), "senderLoopback", 1), "answer that is not there"),
        (disembargo(0, "receiverLoopback", 1), "Invalid embargo ID"),
        (disembargo(0, "accept"), "Unimplemented Disembargo"),
        (disembargo(0, "provide", 1), "Unimplemented Disembargo"),
    ],
)
def test_wrong_disembargoes_are_fatal(talker: Talker, frame: bytes, reason: str) -> None:
    assert reason in aborted(talker, frame)


def test_after_its_resolve_an_export_forwards_to_what_was_described(talker: Talker) -> None:
    """The four-way race: our promise led to a promise of the peer's, which then leads elsewhere."""
    talker.say(call(0, 0, "hold", [("senderPromise", 5)], cap=pointer(0)))
    talker.say(call(0, 0, "getPromise"), finish(0))
    assert "resolve 1 receiverHosted 5" in talker.say(call(1, 0, "unblock", mode=1))
    said = talker.say(resolve(5, "receiverHosted", 0))
    assert "disembargo imported 5 senderLoopback 0" in said
    assert "call 0 on imported 5 echo n=3 to yourself" in talker.say(call(2, 1, "echo", n=3))


def test_a_promise_led_round_by_our_own_export_is_embargoed(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 9)], cap=pointer(0)))
    talker.say(call(0, 0, "getPromise"), finish(0))
    talker.say(call(1, 0, "unblock", mode=1))
    talker.say(call(2, 0, "hold", [("senderPromise", 5)], cap=pointer(0)))
    talker.say(call(3, 0, "callHeld", n=1))
    assert "disembargo imported 5 senderLoopback 0" in talker.say(
        resolve(5, "receiverHosted", 1)
    )


# ------------------------------------------------------------------ tail calls


def test_a_method_that_returns_a_reply_tail_calls(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    assert talker.say(call(1, 0, "tail", n=7)) == [
        "call 0 on imported 5 echo n=7 to yourself", "return 1 takeFromOtherQuestion 0"
    ]
    assert talker.say(returns(0, which="resultsSentElsewhere")) == []
    assert talker.say(finish(1)) == ["finish 0"]
    assert talker.end.tables()["questions"] == []


def test_without_tail_calls_results_are_copied() -> None:
    talker = Talker(tail_calls=False)
    talker.begin()
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    assert talker.say(call(1, 0, "tail", n=7)) == [
        "call 0 on imported 5 echo n=7 noPromisePipelining"
    ]
    said = talker.say(returns(0, "echo", n=8))
    assert sorted(said) == ["finish 0", "return 1 results n=8 no finish"]


def test_by_default_tail_calls_wait_until_the_peer_has_used_them() -> None:
    talker = Talker(tail_calls=None)
    talker.begin()
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    assert "to yourself" not in talker.say(call(1, 0, "tail", n=7))[0]
    talker.say(call(2, 0, "echo", to="yourself", n=1), finish(2))
    assert "to yourself" in talker.say(call(3, 0, "tail", n=7))[0]


def test_results_kept_for_the_peer_s_question_are_taken_by_ours(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    talker.say(call(1, 0, "callHeld", n=4))
    assert talker.say(call(2, 0, "echo", to="yourself", n=40)) == []
    said = talker.say(returns(0, which="takeFromOtherQuestion", other=2))
    assert said[0] == "return 2 resultsSentElsewhere"
    assert "return 1 results n=40 no finish" in said


def test_a_cancelled_call_that_waits_for_an_answer_of_ours_stops_it(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    talker.say(call(1, 0, "callHeld", n=4))
    talker.say(call(2, 0, "blockThenCap", to="yourself"))
    said = talker.say(returns(0, which="takeFromOtherQuestion", other=2))
    assert said == ["return 2 resultsSentElsewhere"]
    assert talker.say(finish(1, workaround=True)) == ["return 1 canceled", "finish 0 release"]
    assert talker.state.notes == [1000, 9999], "the method got its cancellation"
    talker.say(finish(2))
    assert talker.end.tables()["questions"] == talker.end.tables()["answers"] == []


def test_results_kept_for_the_peer_that_it_finishes_are_sent_elsewhere(talker: Talker) -> None:
    talker.say(call(2, 0, "echo", to="yourself", n=40))
    assert talker.say(finish(2)) == ["return 2 resultsSentElsewhere"]
    assert talker.end.tables()["answers"] == []


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (returns(0, which="takeFromOtherQuestion", other=77), "invalid answer ID"),
        (returns(0, which="takeFromOtherQuestion", other=1), "did not use"),
        (returns(0, which="resultsSentElsewhere"), "not a tail call"),
        (returns(0, which="canceled"), "falsely claims"),
        (returns(0, which="acceptFromThirdParty"), "Unknown 'Return' type"),
    ],
)
def test_wrong_returns_are_fatal(talker: Talker, frame: bytes, reason: str) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    talker.say(call(1, 0, "callHeld", n=4))
    assert reason in aborted(talker, frame)


def test_results_of_a_tail_call_are_fatal(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    talker.say(call(1, 0, "tail", n=7))
    assert "resultsSentElsewhere" in aborted(talker, returns(0, "echo", n=1))


def test_results_to_a_third_party_are_refused(talker: Talker) -> None:
    frame = RPC.Message.from_bytes(call(0, 0, "echo")).as_builder()
    frame.call.sendResultsTo.init("thirdParty")
    assert "sendResultsTo" in aborted(talker, frame.to_bytes())


# ------------------------------------------------------------------ unimplemented and abort


@pytest.mark.parametrize("kind", ["provide", "accept", "join", "obsoleteSave", "obsoleteDelete"])
def test_unknown_kinds_of_messages_are_sent_back(talker: Talker, kind: str) -> None:
    made = RPC.Message.new_message()
    made.init(kind)
    assert talker.say(made.to_bytes()) == [f"unimplemented {kind}"]
    assert talker.end.ended is None


def test_unimplemented_for_a_resolve_releases_what_it_introduced(talker: Talker) -> None:
    talker.say(call(0, 0, "getPromise"), finish(0))
    talker.say(call(1, 0, "unblock", mode=0))
    sent = next(
        frame for frame in talker.frames if RPC.Message.from_bytes(frame).which() == "resolve"
    )
    assert talker.end.tables()["exports"] == {0: 1, 1: 1, 2: 1}
    assert talker.say(unimplemented(sent)) == []
    assert talker.end.tables()["exports"] == {0: 1, 1: 1}


def test_unimplemented_for_a_return_is_ignored(talker: Talker) -> None:
    assert talker.say(unimplemented(returns(0, "echo", n=1))) == []


def test_unimplemented_for_a_call_fails_that_question(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    talker.say(call(1, 0, "callHeld", n=4))
    said = talker.say(unimplemented(talker.frames[0]))
    assert said[0].startswith("return 1 exception unimplemented"), said
    assert talker.end.tables()["questions"] == []


def test_unimplemented_for_a_redirected_call_turns_tail_calls_off(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    talker.say(call(1, 0, "tail", n=4))
    talker.say(unimplemented(talker.frames[0]))
    assert "to yourself" not in talker.say(call(2, 0, "tail", n=4))[0]


@pytest.mark.parametrize("frame", [finish(0), release(0), bootstrap(0)])
def test_unimplemented_for_anything_else_is_fatal(talker: Talker, frame: bytes) -> None:
    assert "did not implement" in aborted(talker, unimplemented(frame))


def test_an_abort_fails_everything_as_disconnected(talker: Talker) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    client = talker.end.bootstrap(SCHEMA.Probe)
    reply = client.echo(1)
    talker.hear()
    talker.say(abort("enough"))
    assert isinstance(reply.value, RemoteError)
    assert (reply.value.kind, str(reply.value)) == ("DISCONNECTED", "remote exception: enough")
    later = client.echo(1)
    assert later.value.kind == "DISCONNECTED"
    assert talker.end.is_empty()


def test_the_end_of_the_stream_fails_everything_as_disconnected(talker: Talker) -> None:
    reply = talker.end.bootstrap(SCHEMA.Probe).echo(1)
    talker.hear()
    talker.say(call(3, 0, "blockThenCap"))
    talker.end.connection.receive_eof()
    talker.hear()
    assert reply.value.kind == "DISCONNECTED"
    assert talker.state.notes == [1000, 9999], "running methods are cancelled"


def test_nothing_is_said_after_an_abort(talker: Talker) -> None:
    aborted(talker, call(0, 77, "echo"))
    assert talker.say(call(1, 0, "echo"), finish(0)) == []


# ------------------------------------------------------------------ exceptions


@pytest.mark.parametrize("kind", ["failed", "overloaded", "disconnected", "unimplemented"])
def test_exceptions_keep_their_kind_and_get_a_prefix_once(talker: Talker, kind: str) -> None:
    talker.say(call(0, 0, "hold", [("senderHosted", 5)], cap=pointer(0)))
    for reason in ("lost", "remote exception: lost"):
        talker.say(call(1, 0, "callHeld", n=1))
        said = talker.say(returns(0, which="exception", reason=reason, kind=kind))
        assert f"return 1 exception {kind}: remote exception: lost" in said
        talker.say(finish(1))


# ------------------------------------------------------------------ our own questions


def test_a_question_id_is_free_only_after_return_and_finish() -> None:
    talker = Talker(serve=False)
    client = talker.end.bootstrap(SCHEMA.Probe)
    talker.hear()
    talker.say(returns(0, caps=[("senderHosted", 0)]))
    first = client.block()
    assert talker.hear() == ["call 0 on imported 0 block"]
    first.cancel()
    assert talker.hear() == ["finish 0 release"]
    client.echo(1)
    assert talker.hear() == ["call 1 on imported 0 echo n=1 noPromisePipelining"]
    talker.say(returns(0, which="canceled"))
    client.echo(2)
    assert talker.hear() == ["call 0 on imported 0 echo n=2 noPromisePipelining"]


def test_after_no_finish_needed_no_finish_is_sent() -> None:
    talker = Talker(serve=False)
    client = talker.end.bootstrap(SCHEMA.Probe)
    talker.hear()
    assert talker.say(returns(0, caps=[("senderHosted", 0)])) == ["finish 0"]
    client.echo(1)
    talker.hear()
    assert talker.say(returns(0, "echo", no_finish=True, n=1)) == []
    assert talker.end.tables()["questions"] == []


def test_a_cancelled_question_with_pipelined_capabilities_is_kept_for_them() -> None:
    talker = Talker(serve=False)
    client = talker.end.bootstrap(SCHEMA.Probe)
    talker.hear()
    talker.say(returns(0, caps=[("senderHosted", 0)]))
    reply = client.getCap()
    cap = reply.pipeline.cap
    talker.hear()
    reply.cancel()
    assert talker.hear() == []
    cap.echo(1)
    assert talker.hear() == ["call 1 on answer 0.0 echo n=1 noPromisePipelining"]
    del cap
    assert talker.hear() == ["finish 0 release"]


def test_results_that_come_after_the_finish_give_nothing() -> None:
    talker = Talker(serve=False)
    client = talker.end.bootstrap(SCHEMA.Probe)
    talker.hear()
    talker.say(returns(0, caps=[("senderHosted", 0)]))
    reply = client.getCap()
    talker.hear()
    reply.cancel()
    assert talker.hear() == ["finish 0 release"]
    assert talker.say(returns(0, "getCap", [("senderHosted", 4)], cap=pointer(0))) == []
    assert talker.end.tables()["imports"] == {0: 1}
    assert talker.end.tables()["questions"] == []


def test_a_pipelined_answer_that_leads_home_is_embargoed() -> None:
    talker = Talker(serve=False)
    client = talker.end.bootstrap(SCHEMA.Probe)
    talker.hear()
    talker.say(returns(0, caps=[("senderHosted", 0)]))
    mine = Probe(talker.state)
    reply = client.same(mine)
    early = reply.pipeline.cap
    early.echo(1)
    talker.hear()
    said = talker.say(returns(0, "same", [("receiverHosted", 0)], cap=pointer(0)))
    assert said == ["disembargo answer 0.0 senderLoopback 0", "finish 0"]
    early.echo(2)
    assert talker.hear() == []
    talker.say(call(0, 0, "echo", n=1))
    talker.say(disembargo(0, "receiverLoopback", 0))
    assert talker.state.notes == [1, 2]


def test_calls_while_draining_are_refused(talker: Talker) -> None:
    talker.end.connection.drain()
    assert talker.say(call(0, 0, "echo"))[0].startswith("return 0 exception disconnected")


# ------------------------------------------------------------------ limits


def test_beyond_twice_the_call_limit_the_connection_is_aborted() -> None:
    talker = Talker(call_limit=3)
    talker.begin()
    said = talker.say(*(call(number, 0, "block") for number in range(6)))
    assert [text.split(":")[0] for text in said] == [
        f"return {number} exception overloaded" for number in (3, 4, 5)
    ]
    assert "call limit" in aborted(talker, call(6, 0, "echo"))


def test_imports_have_a_limit() -> None:
    talker = Talker(import_limit=4)
    talker.begin()
    caps = [("senderHosted", number) for number in range(5)]
    assert "import limit" in aborted(talker, call(0, 0, "echo", caps))


def test_exports_have_a_limit() -> None:
    talker = Talker(export_limit=4)
    talker.begin()
    for number in range(4):
        talker.say(call(number, 0, "getFresh"))
    assert talker.end.ended is not None
    assert "export limit" in str(talker.end.ended)


def test_messages_have_a_limit() -> None:
    talker = Talker(message_words=200)
    talker.begin()
    assert "limit" in aborted(talker, call(0, 0, "fail", text="x" * 2000))


class Telling(Probe):
    """A Probe whose exceptions say more."""

    def fail(self, text: str) -> None:
        raise RemoteError(text, trace="line 7", details=((5, b"more"), (6, b"")))


@pytest.mark.parametrize("send_traces", [False, True])
def test_traces_are_sent_only_when_asked_for_and_details_always(send_traces: bool) -> None:
    talker = Talker(serve=False)
    talker.end = End(talker.runtime, Telling(talker.state), send_traces=send_traces)
    talker.begin()
    talker.say(call(0, 0, "fail", text="x"))
    frame = talker.frames[0]
    trace = RPC.Message.from_bytes(frame)["return"].exception.trace
    assert trace == ("line 7" if send_traces else "")
    other = Talker(serve=False)
    reply = other.end.bootstrap(SCHEMA.Probe).fail("x")
    other.hear()
    other.say(returns(0, caps=[("senderHosted", 0)]))
    moved = RPC.Message.from_bytes(frame).as_builder()
    moved["return"].answerId = 1
    other.say(moved.to_bytes())
    assert reply.value.details == ((5, b"more"), (6, b""))
    assert reply.value.trace == trace
