"""Random schemas and values, against pycapnp and the `capnp` tool.

Each pair of a schema and a value is built by us and by pycapnp in the same order of keys: the bytes
are the same, in one segment or in many, packed too; both read both alike, print them alike, and
the canonical form is the tool's.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, note
from hypothesis import strategies as st

import capnwire
from tests.property.peer import Peer
from tests.property.schemas import SchemaMaker

FIRST_SEGMENTS = (None, 0, 1, 2, 3, 5, 8, 20, 64)
VALUES = 4
WANTED_PAIRS = {"ci": 2000, "fuzz": 30000}


class Bench:
    """What the examples share: the peer's process, a directory, the count of pairs."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.peer, self.pairs, self.files = directory, Peer(), 0, 0

    def write(self, text: str) -> str:
        self.files += 1
        path = self.directory / f"random{self.files}.capnp"
        path.write_text(text)
        return str(path)


@pytest.fixture(scope="module")
def bench(pycapnp: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    # Layouts that early releases compiled wrongly are refused unless this is set, here as there.
    os.environ["CAPNP_IGNORE_ISSUE_344"] = "1"
    made = Bench(tmp_path_factory.mktemp("property"))
    try:
        yield made
    finally:
        made.peer.close()
        del os.environ["CAPNP_IGNORE_ISSUE_344"]
    print(f"{made.pairs} pairs of schemas and values")
    assert made.pairs >= WANTED_PAIRS.get(os.environ.get("HYPOTHESIS_PROFILE", ""), 1)


def canonical_by_tool(tool: str, data: bytes) -> bytes:
    done = subprocess.run(
        [tool, "convert", "--quiet", "binary:canonical"], input=data, capture_output=True,
            check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@given(seed=st.integers(0, 2**64 - 1), structs=st.integers(2, 6))
def test_messages_are_pycapnp_s_to_the_byte(
    bench: Bench, capnp_tool: str, seed: int, structs: int
) -> None:
    maker = SchemaMaker(seed, structs)
    note(f"seed {seed}, {structs} structs:\n{maker.text}")
    path = bench.write(maker.text)
    module = capnwire.SchemaParser().load(path)
    items = []
    for made in maker.structs:
        kind = getattr(module, made.name)
        for index in range(VALUES):
            value = maker.value(made)
            words = None if index == 0 else maker.rng.choice(FIRST_SEGMENTS)
            message = kind.new_message(words, **value)
            items.append((made.name, value, words, message.to_bytes(), message.to_bytes_packed()))
    for item, theirs in zip(items, bench.peer.ask(path, items), strict=True):
        name, value, words, data, packed = item
        note(f"{name}.new_message({words}, **{value})")
        assert not isinstance(theirs, str), theirs
        kind = getattr(module, name)
        reader = kind.from_bytes(data)
        known = repr(reader.to_dict())
        assert (data, packed) == theirs[:2]
        assert known == theirs[2] == theirs[3]
        assert str(reader) == theirs[4]
        check_ourselves(kind, reader, value, data, packed)
        bench.pairs += 1
    name, _, _, data, _ = maker.rng.choice(items)
    canonical = getattr(module, name).from_bytes(data).to_canonical()
    assert canonical == canonical_by_tool(capnp_tool, data)


def check_ourselves(
    kind: Any, reader: Any, value: dict[str, Any], data: bytes, packed: bytes
) -> None:
    """Every way to the same message gives the same content."""
    known = repr(reader.to_dict())
    assert repr(kind.from_bytes_packed(packed).to_dict()) == known
    segments = kind.new_message(1, **value).to_segments()
    scattered = kind.from_segments(segments)
    assert repr(scattered.to_dict()) == known
    assert scattered == reader
    assert hash(scattered) == hash(reader)
    copied = reader.as_builder()
    assert copied == reader
    canonical = reader.to_canonical()
    assert capnwire.is_canonical(canonical)
    assert kind.from_segments([canonical]).to_canonical() == canonical
    assert kind.from_segments([canonical]) == reader
    assert repr(kind.new_message(**reader.to_dict()).as_reader().to_dict()) == known
