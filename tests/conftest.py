"""What all tests share: the peers to test against, the seeds and hypothesis' profiles.

A peer that is not installed skips its tests and says so; with CAPNWIRE_REQUIRE_PEERS=1 (CI) it
fails them instead.
"""

from __future__ import annotations

import importlib
import os
import random
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

# Tests neither read nor fill the cache of whoever runs them; those of the cache set their own.
os.environ.setdefault("CAPNWIRE_CACHE", "off")

REQUIRE_PEERS = os.environ.get("CAPNWIRE_REQUIRE_PEERS", "") not in ("", "0")
SEED = int(os.environ.get("CAPNWIRE_SEED") or random.SystemRandom().randrange(2**32))

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # the property tests then skip themselves by `importorskip`
    settings = None  # type: ignore[assignment,misc]
else:
    _slow_machines = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings.register_profile(
        "dev", max_examples=60, deadline=None, print_blob=True,
        suppress_health_check=_slow_machines,
    )
    settings.register_profile(  # the same examples each time: what holds here holds there
        "ci", max_examples=200, deadline=None, derandomize=True,
        suppress_health_check=_slow_machines,
    )
    settings.register_profile(
        "fuzz", max_examples=3000, deadline=None, print_blob=True,
        suppress_health_check=_slow_machines,
    )
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_report_header() -> list[str]:
    return [
        f"capnwire: seed {SEED} (repeat with CAPNWIRE_SEED={SEED}), peers "
        + ("required" if REQUIRE_PEERS else "skipped when missing"),
    ]


def lack(reason: str) -> NoReturn:
    """Skip for want of a peer, or fail where every peer is demanded."""
    if REQUIRE_PEERS:
        pytest.fail(f"CAPNWIRE_REQUIRE_PEERS is set, but {reason}", pytrace=False)
    pytest.skip(reason)


def import_peer(name: str) -> ModuleType:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the peers' own warnings are not ours to fail on
            return importlib.import_module(name)
    except ImportError as error:
        lack(f"{name} cannot be imported: {error}")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Random numbers that depend on the run's seed and on the test's name only."""
    return random.Random(f"{SEED}:{request.node.nodeid}")


@pytest.fixture(scope="session")
def pycapnp() -> ModuleType:
    """The `capnp` package of pycapnp, with its import hook taken out again."""
    module = import_peer("capnp")
    module.remove_import_hook()
    return module


@pytest.fixture(scope="session")
def capnp_tool() -> str:
    """The path of the reference's `capnp` command."""
    beside = Path(sys.executable).with_name("capnp")
    if beside.exists():
        return str(beside)
    found = shutil.which("capnp")
    if found is None:
        lack("there is no `capnp` command, neither beside the interpreter nor on PATH")
    return found


@pytest.fixture(scope="session")
def capnpy(capnp_tool: str) -> Iterator[ModuleType]:
    """capnpy, with the `capnp` command it calls on PATH."""
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(capnp_tool).parent}{os.pathsep}{before}"
    try:
        yield import_peer("capnpy")
    finally:
        os.environ["PATH"] = before


@pytest.fixture
def schema_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a schema text into this test's directory and give its path."""

    def write(text: str, name: str = "schema.capnp") -> Path:
        if "@0x" not in text.split("\n", 1)[0]:
            text = f"@0x{random.Random(text).getrandbits(63) | 1 << 63:016x};\n{text}"
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write
