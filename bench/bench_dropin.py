"""The drop-in beside pycapnp: the codec rows, and the programs of pycapnp's users.

The programs are those of tests/pycapnp/users, where their results are compared.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import bench_codec
from bench.against import Case
from bench.against.pycapnp import Pycapnp
from bench.harness import Row

PEERS = ("dropin", "pycapnp")
OURS = "dropin"

USERS = Path(__file__).resolve().parent.parent / "tests" / "pycapnp" / "users"
PROGRAMS = {
    "openpilot": "openpilot: 120 steps of its processes",
    "logreader": "LogReader: 2100 events sorted, filtered, saved",
    "fpga": "fpga-interchange: a device packed, read, reflected on",
    "mas": "mas: capabilities and AnyPointers over sockets",
    "bitcoin": "Bitcoin Core: pipelined calls over a Unix socket",
    "pytact": "PyTact: packed requests over a socket",
    "nupic": "nupic: a model to a file and back",
}
SCALE = 3

_CODEC = (
    "empty_call", "field_uint32", "field_text", "small_open", "small_build", "rows_iterate",
    "rows_to_dicts", "rows_from_dicts", "sparse_open", "blob_bytes", "shorts_set", "shorts_read",
    "packed_encode", "packed_decode", "import_time", "load_first", "load_cached",
)
_MUST = ("log_list", "log_rss", "log_which", "log_inner", "kept_message")


def _codec_rows() -> list[Row]:
    rows = {row.name: row for row in bench_codec.ROWS}
    # The log's figures are what the drop-in promises; the others are native's, for comparison.
    return [replace(rows[name], targets=()) for name in _CODEC] + [rows[name] for name in _MUST]


def _program(name: str) -> Any:
    def run(self: Any) -> Case:
        self.library.add_import_hook()
        spec = importlib.util.spec_from_file_location(f"user_{name}", USERS / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)

        def wire(result: Any) -> bytes:
            return hashlib.sha256(json.dumps(result, default=str).encode()).digest()

        return Case(lambda: module.main(SCALE), wire=wire)

    return run


for _name in PROGRAMS:
    setattr(Pycapnp, f"user_{_name}", _program(_name))

ROWS: tuple[Row, ...] = (
    *_codec_rows(),
    *(Row(f"user_{name}", title, None) for name, title in PROGRAMS.items()),
)
