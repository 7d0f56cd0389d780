"""The drop-in, and schemas of our own for it."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import capnwire.pycapnp as dropin

# Importing it installs an import hook, as pycapnp does; other tests do without.
dropin.remove_import_hook()

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def capnp() -> ModuleType:
    return dropin


@pytest.fixture(scope="session")
def kinds() -> Any:
    return dropin.load(str(HERE / "data" / "kinds.capnp"))


@pytest.fixture
def kind(kinds: Any) -> Any:
    return kinds.Kinds
