"""Depth that data or a program decides costs no more C stack than there is, in both faces."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import capnwire
import capnwire.pycapnp as dropin
from capnwire import LimitError, SchemaError
from tests.stack import on_a_small_stack

# Importing it installs an import hook, which other tests do without.
dropin.remove_import_hook()

TEXT = """@0xf1a2c3d4e5b60718;
struct Tree { left @0 :Tree; children @1 :List(Tree); data @2 :Data; bytes @3 :List(UInt8);
  group :group { inner @4 :Tree; } }
struct More(T) { value @0 :T; next @1 :More(Pair(T, Text)); twice @2 :More(Pair(T, T)); }
struct Pair(A, B) { a @0 :A; b @1 :B; }
"""
LEVELS = 20_000


@pytest.fixture(scope="module", params=["native", "drop-in"])
def schema(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The schema above, as either face shows it."""
    path: Path = tmp_path_factory.mktemp("depth") / "depth.capnp"
    path.write_text(TEXT)
    face: Any = capnwire if request.param == "native" else dropin
    return face.load(str(path))


def nested_messages(pointer: int) -> bytes:
    """A message whose Tree has another message in a list of bytes, and so on.

    `pointer` is the list's number in the struct, which has five.
    """
    size, out = 0, []
    for _ in range(LEVELS):
        words = [0, 0, 0, 0, 0]
        words[pointer] = (4 - pointer) << 2 | 1 | 2 << 32 | size << 35 if size else 0
        # One segment; its root is a struct of five pointers.
        out.append(struct.pack("<IIQ5Q", 0, 6 + size // 8, 5 << 48, *words))
        size += 56
    return b"".join(reversed(out))


def peel(tree: Any, data: Any, take: Callable[[Any], memoryview]) -> None:
    """Open the messages in a message, all of which are alive then; and free them."""
    node = tree.from_bytes(data)
    depth = 1
    while len(inner := take(node)):
        node = tree.from_bytes(inner, traversal_limit_in_words=2**40)
        depth += 1
    assert depth == LEVELS


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_messages_in_data_of_messages_cost_no_stack(schema: Any, kind: type) -> None:
    data = kind(nested_messages(2))
    on_a_small_stack(
        lambda: peel(schema.Tree, data, lambda node: node.get_data_as_view("data"))
    )


def test_messages_in_lists_of_messages_cost_no_stack() -> None:
    tree = capnwire.load_text(TEXT).Tree
    data = nested_messages(3)
    on_a_small_stack(lambda: peel(tree, data, lambda node: memoryview(node.bytes)))


PATHS = {"structs": ("left",), "lists": ("children", 0), "groups": ("group", "inner")}


def dict_of(levels: int, path: tuple[Any, ...]) -> dict[str, Any]:
    """A Tree in a Tree at `path`, and so on."""
    value: Any = {}
    for _ in range(levels):
        for step in reversed(path):
            value = [value] if step == 0 else {step: value}
    made: dict[str, Any] = value
    return made


def levels_of(value: Any, path: tuple[Any, ...]) -> int:
    """How often `path` can be followed in a dict."""
    levels = 0
    try:
        while True:
            for step in path:
                value = value[step]
            levels += 1
    except KeyError:
        return levels


def builder_of(schema: Any, levels: int, path: tuple[Any, ...]) -> Any:
    """The same as a builder."""
    node = message = schema.Tree.new_message()
    for _ in range(levels):
        if path[0] == "children":
            node = node.init("children", 1)[0]
        else:
            for step in path:
                node = node.init(step)
    return message


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("levels", [30, 300, LEVELS])
def test_dicts_are_stored_and_made_as_deep_as_there_is_stack(
    schema: Any, path: tuple[Any, ...], levels: int
) -> None:
    value = dict_of(levels, path)
    built = builder_of(schema, levels, path)
    written = built.to_bytes()

    def store() -> None:
        try:
            stored = schema.Tree.new_message(**value)
        except RecursionError:
            assert levels > 30
        else:
            assert levels < LEVELS
            assert stored.to_bytes() == written

    def convert() -> None:
        try:
            made = built.to_dict()
        except LimitError:
            assert levels > 30
        else:
            assert levels < LEVELS
            assert levels_of(made, path) == levels

    for work in (store, convert):
        on_a_small_stack(work)
    if levels < LEVELS:
        assert schema.Tree.new_message(**value).to_bytes() == written
        assert levels_of(built.to_dict(), path) == levels


@pytest.mark.parametrize("field", ["next", "twice"])
def test_a_generic_type_that_nests_itself_in_ever_new_ones_ends(schema: Any, field: str) -> None:
    node = schema.More.new_message()
    with pytest.raises(SchemaError, match="bound to too many types"):
        for _ in range(200):
            node = node.init(field)
