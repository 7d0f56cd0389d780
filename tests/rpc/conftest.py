"""What the tests of the core share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def only_their_own_garbage() -> Iterator[None]:
    """These tests collect garbage often, which costs what is alive: not what was before them."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
