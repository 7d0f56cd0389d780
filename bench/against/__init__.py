"""The peers, one file each, with the same functions.

A file holds `NAME`, `DISTRIBUTION` (for the version), and `adapter(data)`, which gives an object
with a method for each row that the peer can do.  A row's method prepares everything and gives a
`Case`; a missing method shows as "–".  Each peer runs in its own process (`bench.worker`), and
the import of the peer is done by `adapter`, not by the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Case(NamedTuple):
    """What to time for one row and how to see that it did the work.

    `run` is timed.  `value` turns its result into the plain value that `ROWS[row].expected`
    names.  One `run` does `per` units of work; the figure is divided by it.  `wire` gives the
    bytes a writer made, to compare writers with each other.
    """

    run: Callable[[], Any]
    value: Callable[[Any], Any] = lambda result: result
    per: int = 1
    wire: Callable[[Any], bytes] | None = None


class Measured(NamedTuple):
    """A row that is measured whole, not in a loop: `measure` gives the figure itself."""

    measure: Callable[[], float]


class Unavailable(Exception):
    """The peer cannot do this row here; the text says why."""


PEERS = ("capnwire", "pycapnp", "capnpy", "json", "orjson", "msgspec", "msgspec_json", "python")
