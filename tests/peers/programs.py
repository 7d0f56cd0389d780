"""Starts the peers' programs, as `make peers` built them, and reads what they say.

Not a test.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from tests.conftest import lack
from tests.peers.scenarios import LIMIT_WORDS

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("CAPNWIRE_PEERS") or ROOT / "build" / "peers")
PATIENCE_S = 180  # of a test with a program that must end


def program(peer: str, role: str) -> str:
    """The path of a peer's `server` or `client`; skips, or fails where every peer is demanded."""
    path = BUILT / peer / role
    if not path.exists():
        lack(f"{path} is not there: `make peers` builds it")
    return str(path)


def environment() -> dict[str, str]:
    """Ours, without what is meant for this interpreter alone."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in ("LD_PRELOAD", "PYTHONMALLOC", "PYTHONPATH")
    }


class ServerProgram:
    """A peer's server, alive within the `with`; `address` is where it listens."""

    def __init__(
        self, peer: str, address: str, *, limit_words: int | None = None, may_crash: bool = False
    ) -> None:
        options = [] if limit_words is None else ["--limit-words", str(limit_words)]
        self._command = [program(peer, "server"), *options, address]
        self._may_crash = may_crash

    def __enter__(self) -> ServerProgram:
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
            stderr=subprocess.DEVNULL if self._may_crash else None, text=True,
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert self.address, f"{self._command[0]} ended with {self.process.wait(PATIENCE_S)}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()  # it ends with its standard input
        status = self.process.wait(PATIENCE_S)
        self.process.stdout.close()
        if error is None and not self._may_crash:
            assert status in (0, -signal.SIGKILL), f"{self._command[0]} ended with {status}"


class Outcomes(dict[str, str]):
    """What a client reported: "" for a success, else why not; `missing` when it went away."""


def client_command(peer: str, address: str, scenarios: Iterable[str]) -> list[str]:
    """The command line for some scenarios; the limit is that of the server of `size_limit`."""
    return [program(peer, "client"), "--limit-words", str(LIMIT_WORDS), address, *scenarios]


def read_outcomes(text: str) -> Outcomes:
    """One line of JSON for each scenario; the libraries may print lines of their own."""
    outcomes = Outcomes()
    for line in text.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            outcomes[said["name"]] = "" if said["ok"] else said["detail"] or "failed"
    return outcomes


def run_client(
    peer: str, address: str, scenarios: Iterable[str], *, patience_s: float = PATIENCE_S
) -> Outcomes:
    """Run scenarios one after the other and report each; those cut off by the time are "hangs"."""
    scenarios = list(scenarios)
    command = client_command(peer, address, scenarios)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env=environment(), text=True, errors="replace"
    ) as process:
        try:
            text, _ = process.communicate(timeout=patience_s)
            missing = f"the client ended with {process.returncode}"
        except subprocess.TimeoutExpired:
            process.kill()
            text, _ = process.communicate()
            missing = "hangs"
    outcomes = read_outcomes(text)
    for name in scenarios:
        outcomes.setdefault(name, missing)
    return outcomes
