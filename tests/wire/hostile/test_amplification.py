"""Few bytes that name much: zero-size elements, shared subtrees, cycles (CVE-2015-2312, -2313)."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from capnwire.errors import LimitError
from tests.wire.hostile.words import (
    COMPOSITE,
    POINTER,
    VOID,
    Branches,
    Root,
    Tree,
    far_pointer,
    framed,
    list_pointer,
    questions,
    root_with,
    struct_pointer,
    tag,
    to_more,
    words,
)

MOST = 2**29 - 1
DEFAULT = 8 * 1024 * 1024


HANG_S = 60
"""What is stopped takes milliseconds, what is not would take hours: this tells them apart."""


def in_time(question: object) -> object:
    started = time.process_time()
    try:
        return question()  # type: ignore[operator]
    finally:
        assert time.process_time() - started < HANG_S


def void_list(count: int) -> bytes:
    return root_with("voids", list_pointer(to_more("voids"), VOID, count))


def empty_structs(count: int, field: str = "empties") -> bytes:
    # at 19: a tag of `count` elements of no words; the list has no words at all
    return root_with(field, list_pointer(to_more(field), COMPOSITE, 0), tag(count, 0, 0))


@pytest.mark.parametrize(
    ("data", "field"),
    [
        pytest.param(void_list(MOST), "voids", id="Void"),
        pytest.param(empty_structs(2**30 - 1), "empties", id="structs without fields"),
        pytest.param(
            empty_structs(2**30 - 1, "rows"), "rows", id="structs whose fields are absent"
        ),
        pytest.param(empty_structs(2**30 - 1, "voids"), "voids", id="structs seen as Void"),
    ],
)
def test_zero_size_elements_are_charged_one_by_one(data: bytes, field: str) -> None:
    for name, question in questions(Root, data, field):
        if name == "total_size":
            # Elements of no size are not visited to be measured (CVE-2015-2313).
            assert in_time(question).word_count < 30  # type: ignore[attr-defined]
            continue
        with pytest.raises(
            LimitError, match="traversal_limit_in_words is 8388608|printing may read"
        ):
            in_time(question)


def test_an_explicit_limit_is_kept_to_the_element() -> None:
    # root: 2 to reach it, 18 words; then one for each Void
    data = void_list(1000)
    assert len(Root.from_bytes(data, 20 + 1000).voids) == 1000
    with pytest.raises(LimitError, match="is 1000, but this read needs 1001") as caught:
        _ = Root.from_bytes(void_list(1001), 20 - 2 + 1000 + 2).voids
    assert (caught.value.limit, caught.value.wanted) == (1000, 1001)


def test_an_honest_list_of_void_is_read_again_and_again() -> None:
    reader = Root.from_bytes(void_list(1_000_000))
    for _ in range(100):
        assert len(reader.voids) == 1_000_000


def test_bulk_conversion_makes_no_more_objects_than_the_limit_pays_for() -> None:
    # 8 million structs without bytes pass the traversal limit; as dicts they would take gigabytes.
    data = empty_structs(DEFAULT - 1000, "rows")
    reader = Root.from_bytes(data)
    assert len(reader.rows) == DEFAULT - 1000
    tracemalloc.start()
    try:
        with pytest.raises(LimitError, match="elements without bytes"):
            in_time(reader.to_dict)
        with pytest.raises(LimitError, match="elements without bytes"):
            in_time(reader.rows.to_list)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_printing_makes_no_more_text_than_bytes_pay_for() -> None:
    reader = Root.from_bytes(void_list(DEFAULT - 1000))
    for question in (lambda: str(reader), lambda: str(reader.voids)):
        with pytest.raises(LimitError, match="printing may read"):
            in_time(question)
    assert "unreadable: the number of words" in in_time(lambda: repr(reader))  # type: ignore[operator]


def test_the_elements_that_are_paid_for_are_paid_for_together() -> None:
    # A list of 20 000 pointers, all of which name one list of a million Voids.
    count = 20_000
    pointers = [list_pointer(count - index - 1 + 0, VOID, 1_000_000) for index in range(count)]
    data = root_with("pairs", list_pointer(to_more("pairs"), POINTER, count), *pointers)
    for name, question in questions(Root, data, "pairs"):
        if name in ("attribute", "total_size"):
            continue
        with pytest.raises(LimitError):
            in_time(question)


# ---------------------------------------------------------------- shared subtrees


def shared_levels(levels: int) -> bytes:
    """Each struct's two pointers name the next: `levels` structs, 2**levels leaves.

    at 0: the root pointer; struct i at 1 + 2i: both pointers name 1 + 2(i + 1).
    """
    made = [struct_pointer(0, 0, 2)]
    for index in range(levels):
        at = 1 + 2 * index
        following = at + 2
        made += [
            struct_pointer(following - at - 1, 0, 2),
            struct_pointer(following - at - 2, 0, 2),
        ]
    return framed(words(*made, 0, 0))


@pytest.mark.parametrize("levels", [30, 40, 60])
def test_a_shared_subtree_is_stopped(levels: int) -> None:
    data = shared_levels(levels)
    for name, question in questions(Tree, data, "left"):
        if name == "attribute":
            question()
            continue
        with pytest.raises(LimitError):
            in_time(lambda question=question: question())


def test_a_small_shared_subtree_is_honest() -> None:
    reader = Tree.from_bytes(shared_levels(10))
    assert reader.as_builder().total_size.word_count == 2 * (2**11 - 1)
    assert reader == reader.as_builder()


def test_the_verdict_stands() -> None:
    # Counting takes milliseconds: a program that goes on asking must not pay for it each time.
    reader = Branches.from_bytes(wide_sharing(3000))
    kids = []
    refused = 0
    started = time.process_time()
    for index in range(20_000):
        try:
            kids.append(reader.kids[index % 1000].kids)
        except LimitError:
            refused += 1
    assert refused > 10_000
    assert time.process_time() - started < 5


def wide_sharing(count: int = 1000) -> bytes:
    """A list of many structs, all of which have one list of 4000 words as their kids.

    at 0: root pointer; at 1, 2, 3: its pointers; at 4: tag; at 5 + 3i: element i; behind them the
    list of 4000 words, whose 1333 elements have no pointers set.
    """
    made = [struct_pointer(0, 0, 3), list_pointer(2, COMPOSITE, 3 * count), 0, 0, tag(count, 0, 3)]
    for index in range(count):
        at = 5 + 3 * index
        made += [list_pointer(5 + 3 * count - at - 1, COMPOSITE, 3999), 0, 0]
    return framed(words(*made, tag(1333, 0, 3), *[0] * 3999))


def test_shared_lists_are_counted_as_often_as_they_are_named() -> None:
    # 1000 x 4000 words = 4 M words: below the limit of 8 M, read again and again
    reader = Branches.from_bytes(wide_sharing())
    assert reader.total_size.word_count == 3 + 3001 + 1000 * 4000
    assert len(reader.as_builder().kids) == 1000


@pytest.mark.parametrize(
    "data",
    [
        # at 0: root at 1; at 1, 2: two pointers that both name the struct at 1
        pytest.param(
            framed(
                words(struct_pointer(0, 0, 2), struct_pointer(-1, 0, 2), struct_pointer(-2, 0, 2))
            ),
            id="near",
        ),
        # segment 1: a pad that names the struct that holds the far pointers
        pytest.param(
            framed(
                words(far_pointer(1, 0)),
                words(struct_pointer(0, 0, 2), far_pointer(1, 0), far_pointer(1, 0)),
            ),
            id="far",
        ),
    ],
)
def test_cycles_end_with_the_nesting_or_the_traversal_limit(data: bytes) -> None:
    reader = Tree.from_bytes(data)
    depth = 0
    node = reader
    with pytest.raises(LimitError, match="nesting_limit"):
        while True:
            node = node.left
            depth += 1
    assert depth == 63
    for name, question in questions(Tree, data, "left"):
        if name == "attribute":
            continue
        with pytest.raises(LimitError):
            in_time(lambda question=question: question())


def test_a_list_that_holds_itself() -> None:
    # at 19: a tag of one Root without data; at 20 to 36: its pointers, of which children (20 + 3)
    # names the tag again: offset 19 - 23 - 1
    element = [0] * 17
    element[3] = list_pointer(-5, COMPOSITE, 17)
    data = root_with(
        "children", list_pointer(to_more("children"), COMPOSITE, 17), tag(1, 0, 17), *element
    )
    for name, question in questions(Root, data, "children"):
        if name == "attribute":
            continue
        with pytest.raises(LimitError, match="nesting"):
            in_time(lambda question=question: question())


# ---------------------------------------------------------------- honest messages


def test_honest_messages_of_any_size_are_read_any_number_of_times() -> None:
    message = Branches.new_message(kids=[{"texts": ["x" * 50] * 10}] * 1000)
    for buffer in (message.to_bytes(), bytearray(message.to_bytes())):
        reader = Branches.from_bytes(buffer)
        for _ in range(150):
            assert len(reader.to_dict()["kids"]) == 1000
        for index in range(20_000):
            assert len(reader.kids[index % 1000].texts) == 10


def test_an_explicit_limit_is_strict() -> None:
    data = Branches.new_message(kids=[{"texts": ["x" * 50] * 10}] * 10).to_bytes()
    reader = Branches.from_bytes(data, 5000)
    with pytest.raises(LimitError, match="traversal_limit_in_words"):
        for _ in range(1000):
            _ = reader.kids
    assert len(Branches.from_bytes(data, 5000).kids) == 10
