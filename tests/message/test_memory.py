"""Memory stays flat over many opens, reads, builds and errors.

A shorter form runs always; CAPNWIRE_MEMORY_ROUNDS=1000000 runs the full one.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

import capnwire
from capnwire.errors import CapnwireError

ROUNDS = int(os.environ.get("CAPNWIRE_MEMORY_ROUNDS") or 6000)
SANITIZED = bool(os.environ.get("CAPNWIRE_SANITIZED"))  # its allocator keeps freed memory

SCHEMA = """@0xc9d2e5f8a1b4071b;
struct Node { value @0 :UInt32; text @1 :Text; nodes @2 :List(Node); data @3 :Data; next @4 :Node;
  color @5 :Color; any @6 :AnyPointer; union { a @7 :Void; g :group { t @8 :Text; } }
  texts @9 :List(Text); }
enum Color { red @0; }
"""


@pytest.fixture(scope="module")
def schema() -> ModuleType:
    return capnwire.load_text(SCHEMA, "memory.capnp")


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def objects() -> int:
    """Memory blocks that Python has given out."""
    gc.collect()
    return sys.getallocatedblocks()


def content() -> dict[str, Any]:
    return {
        "value": 1,
        "text": "text",
        "nodes": [{"text": "inner" * 4}] * 5,
        "data": b"x" * 3000,
        "next": {"value": 2},
        "color": "red",
        "g": {"t": "group"},
        "texts": ["a", "b"],
    }


def work_on(schema: ModuleType) -> dict[str, Callable[[], object]]:
    Node = schema.Node
    values = content()
    message = Node.new_message(**values)
    message.any = Node.new_message(text="any")
    data = message.to_bytes()
    packed = message.to_bytes_packed()
    buffer = bytearray(data)
    scattered = Node.new_message(1, **values).to_bytes()
    broken = data[:16] + b"\xff" * 40 + data[56:]
    reader = Node.from_bytes(data)

    def read() -> None:
        for source in (data, buffer, scattered):
            with Node.from_bytes(source) as opened:
                _ = opened.text, opened.nodes[2].text, opened.data, opened.next.value, opened.any
                _ = list(opened.nodes), opened.nodes[1:3], opened.color, opened.g.t, opened.which()
                _ = opened.get_data_as_view("data"), iter(opened.texts), opened.has("text")

    def convert() -> None:
        reader.to_dict()
        reader.to_dict(verbose=True)
        str(reader), repr(reader), hash(reader), reader == reader
        _ = reader.total_size, reader.to_canonical(), reader.nodes.to_list()

    def build() -> None:
        made = Node.new_message(**values)
        made.nodes = [{"value": 1}] * 3
        made.next = made
        made.any = made.nodes
        made.init("texts", 3)[0] = "t"
        made.adopt("next", made.disown("next"))
        made.disown("nodes")
        made.to_bytes(), made.to_bytes_packed(), made.copy()
        del made.text

    def grow() -> None:
        made = Node.new_message(1)
        for size in (10, 100, 1000, 10000):
            made.data = bytes(size)
        made.clear("data")

    def allocate() -> None:
        made = Node.new_message(4, lambda words: bytearray(words * 8))
        made.from_dict(values)

    def fail() -> None:
        for question in (
            lambda: Node.from_bytes(broken).to_dict(),
            lambda: Node.from_bytes(broken).as_builder(),
            lambda: Node.from_bytes(data[:50]),
            lambda: Node.from_bytes_packed(packed[:50]),
            lambda: Node.new_message(value=-1),
            lambda: Node.new_message(nodes=[{"text": 5}]),
            lambda: Node.new_message(g={"t": "x", "missing": 1}),
            lambda: reader.g.missing,
            # On a message of its own: what was begun and refused stays its dead space.
            lambda: setattr(Node.new_message(), "nodes", [{"value": -1}]),
            lambda: reader.to_dict()["missing"],
            lambda: Node.read(io.BytesIO(data[:-1])),
            lambda: Node.from_bytes(data, 10).to_dict(),
            lambda: Node.new_message(4, lambda words: None),
        ):
            try:
                question()
            except (CapnwireError, AttributeError, KeyError, TypeError):
                pass

    def stream() -> None:
        for _ in Node.read_multiple_bytes(data * 3):
            pass
        next(Node.read_multiple_bytes(buffer))
        list(Node.read_multiple(io.BytesIO(data * 2)))
        list(Node.read_multiple_packed(io.BytesIO(packed * 2)))
        Node.from_bytes_packed(packed)
        Node.from_segments([data[8:]])

    def pickled() -> None:
        import copy
        import pickle

        pickle.loads(pickle.dumps(reader)), copy.deepcopy(message), copy.copy(reader)

    return {
        "read": read,
        "convert": convert,
        "build": build,
        "grow": grow,
        "allocate": allocate,
        "fail": fail,
        "stream": stream,
        "pickle": pickled,
    }


NAMES = ["read", "convert", "build", "grow", "allocate", "fail", "stream", "pickle"]


@pytest.mark.parametrize("name", NAMES)
def test_memory_stays_flat(schema: ModuleType, name: str) -> None:
    work = work_on(schema)[name]
    rounds = max(
        100, ROUNDS // 30 if name in ("convert", "fail", "stream", "pickle") else ROUNDS // 9
    )
    for _ in range(100):
        work()
    sizes = [(objects(), resident())]
    # A leak shows each time; what the allocators keep, or others free meanwhile, does not.
    for _ in range(3):
        for _ in range(rounds):
            work()
        sizes.append((objects(), resident()))
    grown = [(b - a, d - c) for (a, c), (b, d) in pairwise(sizes)]
    assert min(blocks for blocks, _ in grown) < 50 + rounds // 100, grown
    if not SANITIZED:
        assert min(size for _, size in grown) < (1 << 20) + rounds * 16, grown


def test_schemas_that_are_dropped_give_their_memory_back() -> None:
    # The types of a schema live as long as their parser and their messages; descriptors keep some.
    def round() -> None:
        parser = capnwire.SchemaParser()
        module = parser.load_text(SCHEMA.replace("c9d2e5f8a1b4071b", "c9d2e5f8a1b4071c"))
        module.Node.new_message(text="t", next={"value": 1}).to_dict()

    for _ in range(5):
        round()
    blocks = objects()
    for _ in range(30):
        round()
    assert (objects() - blocks) / 30 < 60


def test_no_reference_counts_drift(schema: ModuleType) -> None:
    message = schema.Node.new_message(**content())
    reader = schema.Node.from_bytes(message.to_bytes())
    info = schema.Node._info
    things = [
        None,
        True,
        False,
        "text",
        schema.Node,
        info,
        type(reader),
        type(message),
        reader.color,
        type(reader.nodes),
        reader.nodes.type,
        schema.Node._info.keep if hasattr(info, "keep") else 0,
    ]
    for work in work_on(schema).values():
        work()
    gc.collect()
    before = [sys.getrefcount(thing) for thing in things]
    for work in work_on(schema).values():
        for _ in range(400):
            work()
    gc.collect()
    after = [sys.getrefcount(thing) for thing in things]
    for thing, old, new in zip(things, before, after, strict=True):
        assert abs(new - old) < 300, f"{thing!r}: {old} references before, {new} after"
