"""The codec rows: which work, what its right result is, and the figures to reach."""

from __future__ import annotations

from typing import Any

from bench import data
from bench.harness import Row, must, reach

_CAPNP = ("capnwire", "pycapnp")


def _small(events: int) -> tuple[Any, ...]:
    return tuple(data.SMALL.values())


def _rows(events: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = data.rows()["rows"]
    return rows


def _rows_total(events: int) -> float:
    total = 0.0
    for row in data.rows()["rows"]:
        total += row["id"] + row["score"]
    return total


def _nums_total(events: int) -> float:
    import numpy as np

    return float(np.array(data.nums()).sum())


ROWS: tuple[Row, ...] = (
    Row("empty_call", "an empty call", lambda n: None),
    Row(
        "field_uint32", "open struct: a UInt32", lambda n: data.SMALL["age"],
        (must("pycapnp", 1 / 11), reach("python", 1, plus=12e-9)),
    ),
    Row(
        "field_text", "open struct: a Text (13 characters)", lambda n: data.SMALL["name"],
        (must("pycapnp", 1 / 7), reach("capnpy", 1 / 2)),
    ),
    Row(
        "small_open", "Small: open, 5 fields", _small,
        (must("pycapnp", 1 / 12), reach("orjson", 1)),
    ),
    Row(
        "small_build", "Small: keywords to bytes", lambda n: data.SMALL,
        (must("pycapnp", 1 / 17), reach("capnpy", 0.7)),
    ),
    Row(
        "rows_iterate", "1000 rows: iterate, 2 fields", _rows_total,
        (must("pycapnp", 1 / 11), reach("msgspec", 1 / 2)),
    ),
    Row(
        "rows_to_dicts", "1000 rows: to dicts", _rows,
        (must("pycapnp", 1 / 26), must("orjson", 1), reach("orjson", 0.8)),
    ),
    Row(
        "rows_from_dicts", "1000 rows: dicts to bytes", _rows,
        (must("pycapnp", 1 / 70), must("orjson", 1), reach("orjson", 0.6)),
    ),
    Row(
        "rows_column", "1000 rows: a column to NumPy",
        lambda n: [row["score"] for row in data.rows()["rows"]], (must(None, plus=3e-6),),
    ),
    Row(
        "sparse_open", "Sparse: open, 5 of 256 fields",
        lambda n: tuple(data.sparse()[name] for name in data.SPARSE_FIELDS),
        (must("pycapnp", 1 / 15), must("orjson", 1 / 33), reach("capnpy", 1 / 3)),
    ),
    Row(
        "blob_bytes", "32 KiB Data: open, bytes", lambda n: data.blob(),
        (must("python", 1, plus=500e-9), reach("python", 1, plus=300e-9)),
    ),
    Row(
        "blob_view", "32 KiB Data: open, view", lambda n: data.blob(),
        (must("pycapnp", 1 / 8, row="blob_bytes"), reach(None, plus=200e-9)),
    ),
    Row(
        "blob_view_large", "4 MiB Data: open, view", lambda n: 4 * 2**20,
        (must("capnwire", 1.25, row="blob_view"),),
    ),
    Row(
        "nums_numpy", "1 M Float64 to NumPy", _nums_total,
        (must(None, plus=3e-6),),
    ),
    Row(
        "shorts_set", "8192 Int16 from ndarray", lambda n: data.shorts(),
        (must("pycapnp", 1 / 50), reach("python", 2)),
    ),
    Row(
        "shorts_read", "8192 Int16 to ndarray", lambda n: data.shorts(),
        (must("pycapnp", 1 / 50), reach("python", 1)),
    ),
    Row(
        "log_list", "log: list(read_multiple_bytes)", lambda n: n,
        (must("pycapnp", 1 / 4), reach("pycapnp", 1 / 6)),
    ),
    Row(
        "log_rss", "log: resident bytes a message", None,
        (must(None, plus=128), reach(None, plus=108)), unit="B", fresh=True, rounds=2,
    ),
    Row(
        "log_which", "log: which(), each", lambda n: data.log_summary(n)["kinds"],
        (must("pycapnp", 1 / 12), reach("pycapnp", 1 / 16)),
    ),
    Row(
        "log_inner", "log: inner struct × 3 fields, each",
        lambda n: data.log_summary(n)["total"],
        (must("pycapnp", 1 / 12), reach("pycapnp", 1 / 16)),
    ),
    Row(
        "packed_encode", "packed: encode 2.9 MB", None,
        (must("pycapnp", 1), reach("pycapnp", 0.7)),
    ),
    Row(
        "packed_decode", "packed: decode 2.9 MB", lambda n: (60_000, "user-59999"),
        (must("pycapnp", 1), reach("pycapnp", 0.85)),
    ),
    Row(
        "finished_to_bytes", "a finished 1 MB message: to_bytes", None,
        (must("pycapnp", 1), reach("python", 1, plus=1e-6)),
    ),
    Row(
        "import_time", "import, fresh process", None,
        (must("pycapnp", 1 / 4), reach(None, plus=8e-3)), rounds=10,
    ),
    Row(
        "load_first", "load a 2300-line schema, first time", None,
        (must("pycapnp", 15), reach("pycapnp", 5)), rounds=5,
    ),
    Row(
        "load_cached", "… again, from the cache", None,
        (must("pycapnp", 1), reach("pycapnp", 1 / 2)), rounds=5,
    ),
    Row(
        "installed_size", "installed size", None,
        (must(None, plus=6e6), reach(None, plus=3e6)), unit="B", rounds=1,
    ),
    Row(
        "kept_message", "a kept message (reader and arena)", None,
        (must(None, plus=128), reach(None, plus=96)), unit="B", fresh=True, rounds=2,
    ),
    Row(
        "grow_rows", "growth: rows", sizes=(250, 500, 1000, 2000, 4000, 8000), unit="exponent",
        peers=_CAPNP,
    ),
    Row(
        "grow_segments", "growth: segments", sizes=(16, 64, 256, 1024), unit="exponent",
        peers=_CAPNP,
    ),
    Row(
        "grow_log", "growth: messages in a log", sizes=(500, 1000, 2000, 4000, 8000),
        unit="exponent", peers=_CAPNP,
    ),
    Row(
        "grow_schema", "growth: structs in a schema", sizes=(28, 56, 111, 222),
        unit="exponent", peers=_CAPNP, rounds=2,
    ),
    Row(
        "grow_field_number", "growth: a field's number", sizes=(4, 16, 64, 256),
        unit="exponent", growth=0.1, peers=_CAPNP,
    ),
    Row(
        "grow_message_size", "growth: a field by message size", sizes=(500, 1000, 2000, 4000, 8000),
        unit="exponent", growth=0.1, peers=_CAPNP,
    ),
    Row(
        "grow_numpy", "growth: List(Float64) to NumPy", sizes=(1000, 10_000, 100_000, 1_000_000),
        unit="exponent", growth=0.1, peers=("capnwire",),
    ),
)
