"""Depth: the nesting limit for structs, lists and elements, and how it is named."""

from __future__ import annotations

import pytest

from capnwire.errors import LimitError
from tests.wire.hostile.words import (
    COMPOSITE,
    POINTER,
    Branches,
    Tree,
    framed,
    list_pointer,
    struct_pointer,
    tag,
    words,
)


def chain(links: int) -> bytes:
    """At 0: the root pointer; struct i at 1 + 2i: its left names the next, its right is null."""
    made = [struct_pointer(0, 0, 2)]
    for _ in range(links - 1):
        made += [struct_pointer(1, 0, 2), 0]
    return framed(words(*made, 0, 0))


def list_chain(links: int) -> bytes:
    """Each struct has a list of one struct: at 0 the root, then pointers (3), tag, pointers …"""
    made = [struct_pointer(0, 0, 3)]
    for _ in range(links):
        made += [list_pointer(2, COMPOSITE, 3), 0, 0, tag(1, 0, 3)]
    return framed(words(*made, 0, 0, 0))


@pytest.mark.parametrize("limit", [1, 2, 10, 64, 1000])
def test_as_many_structs_as_the_limit_says(limit: int) -> None:
    node = Tree.from_bytes(chain(limit + 1), None, limit)
    for _ in range(limit - 1):
        node = node.left
    with pytest.raises(LimitError, match="nesting_limit left is 0"):
        _ = node.left
    assert Tree.from_bytes(chain(limit), None, limit).as_builder() is not None
    with pytest.raises(LimitError, match="nesting_limit"):
        Tree.from_bytes(chain(limit + 1), None, limit).as_builder()


def test_the_default_is_64() -> None:
    assert Tree.from_bytes(chain(64)).to_dict()
    for question in (
        lambda reader: reader.to_dict(),
        lambda reader: reader.as_builder(),
        str,
        lambda reader: reader.to_canonical(),
        lambda reader: reader.total_size,
        hash,
        lambda reader: reader == reader,
    ):
        question(Tree.from_bytes(chain(64)))
        with pytest.raises(LimitError, match="nesting_limit"):
            question(Tree.from_bytes(chain(65)))


def test_no_nesting_at_all() -> None:
    with pytest.raises(LimitError, match="nesting_limit"):
        Tree.from_bytes(chain(1), None, 0)
    assert Tree.from_bytes(framed(words(0)), None, 0).to_dict() == {}


def test_elements_are_a_level_below_their_list() -> None:
    # 64 levels: the root, then a list and its element for each link: 31 links and one list
    assert Branches.from_bytes(list_chain(31)).to_dict()
    for question in (lambda reader: reader.to_dict(), str):
        with pytest.raises(LimitError, match="nesting_limit"):
            question(Branches.from_bytes(list_chain(32)))
    node = Branches.from_bytes(list_chain(40))
    for _ in range(31):
        node = node.kids[0]
    kids = node.kids
    assert len(kids) == 1
    for question in (
        lambda: kids[0],
        lambda: next(iter(kids)),
        lambda: kids[:],
        lambda: kids.to_list(),
    ):
        with pytest.raises(LimitError, match="nesting_limit"):
            question()


def test_a_hundred_thousand_levels_within_the_limit_need_no_stack() -> None:
    data = chain(60_000)
    reader = Tree.from_bytes(data, 1 << 40, 65535)
    assert reader.total_size.word_count == 120_000
    copied = reader.as_builder()
    assert copied == reader
    assert len(reader.to_canonical()) == 60_000 * 8
    for question in (reader.to_dict, lambda: str(reader)):
        with pytest.raises(LimitError, match="nesting"):
            question()
    assert "unreadable" in repr(reader)


def test_lists_of_lists_count_each_level() -> None:
    # at 0: the root; at 1, 2: its pointers; from 3 on lists of one pointer to the next, then none
    made = [list_pointer(0, POINTER, 1) for _ in range(100)]
    first = list_pointer(1, POINTER, 1)
    data = framed(words(struct_pointer(0, 0, 2), first, 0, *made, list_pointer(0, POINTER, 0)))
    reader = Branches.from_bytes(data)
    with pytest.raises(LimitError, match="nesting_limit"):
        reader.as_builder()
