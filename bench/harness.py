"""How things are measured: workers, rounds, targets and growth; nothing about what is measured.

Each peer has a process of its own.  All peers of a row are prepared and checked for equal
results before anything is timed; then rounds go round the peers in turn, so that a noisy
second hits all of them, and the best round counts.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


# ── what adapters measure with ──────────────────────────────────────────────────────────────────


def current_rss_bytes() -> int:
    """Resident memory of this process, in bytes (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def fresh_process_seconds(statement: str, setup: str = "", *, cached: bool = False) -> float:
    """Seconds that `statement` takes in a new interpreter with an empty cache directory.

    With `cached` it runs once before, in another interpreter, over the same cache directory.
    """
    # Without `site`, whose .pth files may import half of the standard library before the clock
    # starts; what it would always have imported is imported first.
    program = (
        "import sys, time, os, site\n"
        f"sys.path[:] = {[path for path in sys.path if path]!r}\n"
        f"{setup}\n"
        "start = time.perf_counter()\n"
        f"{statement}\n"
        "seconds = time.perf_counter() - start\n"
        "sys.stdout.write(repr(seconds))\n"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "XDG_CACHE_HOME": cache,
            "CAPNWIRE_CACHE": os.path.join(cache, "capnwire"),
            "PYTHONPATH": str(ROOT),
        }
        # Bytecode is there once a package is installed; it must not be compiled again each time.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(2 if cached else 1):
            done = subprocess.run(
                [sys.executable, "-S", "-c", program], env=environment, cwd=cache, check=True,
                capture_output=True, text=True,
            )
    return float(done.stdout)


def installed_bytes(import_name: str, distribution: str | None) -> float:
    """Bytes of a distribution's files, compiled .pyc left out.

    A package that is installed in place counts what its wheel would hold.
    """
    module = sys.modules.get(import_name) or __import__(import_name)
    folder = Path(str(module.__file__)).parent
    if distribution is not None and not folder.is_relative_to(ROOT / import_name):
        files = importlib.metadata.files(distribution) or []
        return sum(
            os.path.getsize(path)
            for path in (file.locate() for file in files)
            if os.path.isfile(path) and not str(path).endswith(".pyc")
        )
    kept = (".py", ".pyi", ".pxd", ".so", ".capnp", ".typed", ".bin")
    return sum(
        path.stat().st_size for path in folder.rglob("*") if path.suffix in kept
    )


# ── what a row is ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Target:
    """Ours must be at most `factor` × the peer's figure (of `row`, else this row) + `plus`.

    Without a peer, `plus` alone is the bound.  `reach` is where we want to be; else it's a must.
    """

    peer: str | None
    factor: float = 0.0
    plus: float = 0.0
    row: str | None = None
    reach: bool = False

    def bound(self, figures: dict[str, dict[str, float]], row: str) -> float | None:
        if self.peer is None:
            return self.plus
        theirs = figures.get(self.row or row, {}).get(self.peer)
        return None if theirs is None else theirs * self.factor + self.plus

    def text(self, unit: str) -> str:
        if self.peer is None:
            return f"≤ {show(self.plus, unit)}"
        factor = self.factor
        if factor == 1:
            amount = ""
        elif factor < 1 and abs(1 / factor - round(1 / factor)) < 1e-9:
            amount = f"1/{round(1 / factor)} × "
        else:
            amount = f"{factor:g} × "
        plus = f" + {show(self.plus, unit)}" if self.plus else ""
        where = f" ({self.row})" if self.row else ""
        return f"≤ {amount}{self.peer}{where}{plus}"


def must(
    peer: str | None, factor: float = 0.0, *, plus: float = 0.0, row: str | None = None
) -> Target:
    return Target(peer, factor, plus, row)


def reach(
    peer: str | None, factor: float = 0.0, *, plus: float = 0.0, row: str | None = None
) -> Target:
    return Target(peer, factor, plus, row, reach=True)


@dataclass(frozen=True)
class Row:
    """One line of the table: its name in the adapters, its title, the right result, its targets.

    `fresh` gives each peer a new process for the row; `rounds` overrides their number; `sizes`
    makes it a growth row, whose figure is the exponent and whose bound is `growth`.
    """

    name: str
    title: str
    expected: Callable[[int], Any] | None = None
    targets: tuple[Target, ...] = ()
    unit: str = "s"
    fresh: bool = False
    rounds: int | None = None
    sizes: tuple[int, ...] = ()
    growth: float = 1.15
    peers: tuple[str, ...] = field(default=())


def show(value: float | None, unit: str = "s") -> str:
    """A figure with three digits and a unit that suits it."""
    if value is None:
        return "–"
    if unit == "s":
        for scale, name in ((1e-6, "ns"), (1e-3, "µs"), (1.0, "ms")):
            if abs(value) < scale:
                return f"{_digits(value / scale * 1000)} {name}"
        return f"{_digits(value)} s"
    if unit == "B":
        if value >= 1e6:
            return f"{_digits(value / 1e6)} MB"
        return f"{_digits(value / 1e3)} KB" if value >= 1e4 else f"{value:.0f} B"
    return f"{value:.2f}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


# ── workers ─────────────────────────────────────────────────────────────────────────────────────


class WorkerFailed(Exception):
    """A worker died, or its peer raised."""


class Worker:
    """A peer's process; lines of JSON go to it and come back."""

    def __init__(self, peer: str, suite: str, folder: Path, events: int) -> None:
        self.peer, self.version = peer, ""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker", peer, suite, str(folder), str(events)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT,
        )
        answer = self._answer()
        self.missing = answer.get("unavailable")
        self.version = answer.get("version", "")

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WorkerFailed(f"{self.peer}: the worker ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to a request; `crashed` when the process did not live to give one."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer tells how it ended
        try:
            return self._answer()
        except WorkerFailed as error:
            return {"crashed": str(error)}

    @property
    def ended(self) -> bool:
        """Whether the process is no longer there."""
        return self._process.poll() is not None

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@dataclass
class Suite:
    """A run: which peers, how long, and what came out."""

    name: str
    rows: tuple[Row, ...]
    peers: tuple[str, ...]
    folder: Path
    events: int
    round_seconds: float
    rounds: int
    figures: dict[str, dict[str, float]] = field(default_factory=dict)
    curves: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    def run(self, progress: Callable[[str], None]) -> None:
        workers: dict[str, Worker] = {}
        try:
            for peer in self.peers:
                progress(f"start {peer}")
                worker = self._worker(peer)
                if worker.missing is not None:
                    self.notes.append(f"{peer} left out: {worker.missing}")
                    worker.close()
                    continue
                self.versions[peer] = worker.version
                workers[peer] = worker
            for row in self.rows:
                progress(row.title)
                wanted = {p: w for p, w in workers.items() if not row.peers or p in row.peers}
                if row.sizes:
                    self._grow(row, wanted)
                elif row.fresh:
                    self.figures[row.name] = self._fresh(row, wanted)
                else:
                    self.figures[row.name] = self._time(row, wanted)
                workers.update(wanted)  # those that crashed were started again
        finally:
            for worker in workers.values():
                worker.close()

    def _worker(self, peer: str) -> Worker:
        return Worker(peer, self.name, self.folder, self.events)

    def _prepare(self, row: Row, worker: Worker, size: int | None) -> dict[str, Any] | None:
        answer = worker.ask(op="prepare", row=row.name, size=size, seconds=self.round_seconds)
        if "crashed" in answer:
            self.wrong.append(f"{row.name}: {answer['crashed']}")
            return None
        if "wrong" in answer:
            self.wrong.append(f"{row.name}: {worker.peer} {answer['wrong']}")
            return None
        if "failed" in answer:
            self.notes.append(f"{row.name}: {worker.peer} failed: {answer['failed']}")
            return None
        if "unavailable" in answer:
            if answer["unavailable"]:
                self.notes.append(f"{row.name}: {worker.peer} cannot: {answer['unavailable']}")
            return None
        return answer

    def _time(
        self, row: Row, workers: dict[str, Worker], size: int | None = None
    ) -> dict[str, float]:
        ready, wires = {}, {}
        for peer, worker in list(workers.items()):
            answer = self._prepare(row, worker, size)
            if worker.ended:
                workers[peer] = self._worker(peer)
            if answer is not None:
                ready[peer] = worker
                if answer.get("wire"):
                    wires[peer] = answer["wire"]
        if len(set(wires.values())) > 1:
            self.notes.append(f"{row.name}: the bytes written differ between {', '.join(wires)}")
        best: dict[str, float] = {}
        for _ in range(row.rounds or self.rounds):
            for peer, worker in list(ready.items()):
                answer = worker.ask(op="round")
                if "figure" not in answer:
                    reason = answer.get("failed") or answer.get("crashed")
                    self.wrong.append(f"{row.name}: {peer} failed: {reason}")
                    del ready[peer]
                    if worker.ended:
                        workers[peer] = self._worker(peer)
                    continue
                best[peer] = min(best.get(peer, float("inf")), answer["figure"])
        return best

    def _fresh(self, row: Row, workers: dict[str, Worker]) -> dict[str, float]:
        best: dict[str, float] = {}
        for peer in workers:
            for _ in range(row.rounds or 3):
                worker = self._worker(peer)
                try:
                    if self._prepare(row, worker, None) is None:
                        break
                    answer = worker.ask(op="round")
                    if "figure" not in answer:
                        self.wrong.append(f"{row.name}: {peer} failed: {answer}")
                        break
                    figure = answer["figure"]
                    best[peer] = min(best.get(peer, float("inf")), figure)
                finally:
                    worker.close()
        return best

    def _grow(self, row: Row, workers: dict[str, Worker]) -> None:
        from bench.data import exponent

        curves: dict[str, list[float]] = {}
        for size in row.sizes:
            for peer, figure in self._time(row, workers, size).items():
                curves.setdefault(peer, []).append(figure)
        self.curves[row.name] = curves
        self.figures[row.name] = {
            peer: exponent(list(row.sizes), times)
            for peer, times in curves.items()
            if len(times) == len(row.sizes)
        }


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    model = ""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        model = platform.processor()
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": f"{model or 'unknown'} × {os.cpu_count()}",
    }
