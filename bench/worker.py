"""A peer's process, driven by `harness.Worker`: `python -m bench.worker PEER SUITE DIR EVENTS`."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import os
import sys
import time
import traceback
from itertools import repeat
from pathlib import Path
from typing import Any

from bench.against import Case, Measured, Unavailable


def elapsed(run: Any, loops: int) -> float:
    """Seconds for `loops` calls, the collector on."""
    clock = time.perf_counter
    iterations = repeat(None, loops)
    start = clock()
    for _ in iterations:
        run()
    return clock() - start


def calibrate(run: Any, seconds: float) -> int:
    """How many calls fill about `seconds`."""
    loops = 1
    while True:
        took = elapsed(run, loops)
        if took >= seconds or loops >= 10_000_000:
            return loops
        # Grow by what is missing, at most tenfold: the first calls are the slow ones.
        loops = max(loops + 1, min(loops * 10, int(loops * seconds / max(took, 1e-9) * 1.05)))


class Server:
    """Answers `prepare` and `round` for one peer."""

    def __init__(self, adapter: Any, rows: dict[str, Any], events: int) -> None:
        self.adapter, self.rows, self.events = adapter, rows, events
        self.case: Case | Measured | None = None
        self.loops = 1

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            if request["op"] == "prepare":
                return self.prepare(request)
            return {"figure": self.round()}
        except Unavailable as error:
            return {"unavailable": str(error)}
        except Exception as error:
            traceback.print_exc()
            return {"failed": f"{type(error).__name__}: {error}"}

    def prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        self.case = None
        make = getattr(self.adapter, request["row"], None)
        if make is None:
            return {"unavailable": ""}
        size = request["size"]
        case = make() if size is None else make(size)
        answer: dict[str, Any] = {}
        if isinstance(case, Case):
            row = self.rows[request["row"]]
            result = case.run()
            if row.expected is not None:
                found, expected = case.value(result), row.expected(self.events)
                if found != expected:
                    return {"wrong": f"gave {found!r:.200}, not {expected!r:.200}"}
            if case.wire is not None:
                answer["wire"] = hashlib.sha256(case.wire(result)).hexdigest()
            del result
            self.loops = calibrate(case.run, request["seconds"])
        self.case = case
        return answer

    def round(self) -> float:
        if isinstance(self.case, Measured):
            return self.case.measure()
        assert self.case is not None
        return elapsed(self.case.run, self.loops) / self.loops / self.case.per


def main() -> None:
    peer, suite, folder, events = sys.argv[1:]
    # Whatever a peer prints goes to stderr; the answers have their own descriptor.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(answer: dict[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    rows_of = importlib.import_module(f"bench.bench_{suite}")
    prefix = getattr(rows_of, "ADAPTERS", "")
    try:
        module = importlib.import_module(f"bench.against.{prefix}{peer}")
        adapter = module.adapter(Path(folder), int(events))
    except (ImportError, Unavailable) as error:
        send({"unavailable": str(error)})
        return
    distribution = module.DISTRIBUTION
    version = importlib.metadata.version(distribution) if distribution else getattr(
        module, "VERSION", sys.version.split()[0]
    )
    send({"version": version})
    rows = {row.name: row for row in rows_of.ROWS}
    server = Server(adapter, rows, int(events))
    for line in sys.stdin:
        send(server.answer(json.loads(line)))


if __name__ == "__main__":
    main()
