"""The schema that the tests of messages share, loaded by us and by pycapnp."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import capnwire

SCHEMA = Path(__file__).with_name("everything.capnp")


@pytest.fixture(scope="session")
def ours() -> ModuleType:
    """The shared schema, loaded by capnwire."""
    return capnwire.load(SCHEMA)


@pytest.fixture(scope="session")
def theirs(pycapnp: ModuleType) -> ModuleType:
    """The shared schema, loaded by pycapnp."""
    module: ModuleType = pycapnp.load(str(SCHEMA))
    return module


@pytest.fixture
def decode(capnp_tool: str) -> Callable[..., str]:
    """What `capnp convert binary:text` prints of a message of the shared schema."""

    def run(data: bytes, name: str, *options: str) -> str:
        done = subprocess.run(
            [capnp_tool, "convert", "--quiet", *options, "binary:text", str(SCHEMA), name],
            input=data, capture_output=True, check=True,
        )
        return done.stdout.decode().rstrip("\n")

    return run


@pytest.fixture
def encode(capnp_tool: str) -> Callable[[str, str], bytes]:
    """The message that `capnp convert text:binary` makes of a text."""

    def run(text: str, name: str) -> bytes:
        return subprocess.run(
            [capnp_tool, "convert", "text:binary", str(SCHEMA), name], input=text.encode(),
            capture_output=True, check=True,
        ).stdout

    return run


def message(*words: int) -> bytes:
    """A message of one segment, of these words."""
    return struct.pack(f"<II{len(words)}Q", 0, len(words), *words)


@pytest.fixture
def framed() -> Callable[..., bytes]:
    return message


def root_words(data: bytes) -> list[int]:
    """The words of the only segment of a message."""
    assert data[:4] == b"\0\0\0\0"
    return list(struct.unpack(f"<{len(data) // 8 - 1}Q", data[8:]))


@pytest.fixture
def words_of() -> Callable[[Any], list[int]]:
    return lambda built: root_words(built.to_bytes())
