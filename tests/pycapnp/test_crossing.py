"""Programs under the drop-in and under pycapnp call each other, and get the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pycapnp.processes import environment

PROGRAM = str(Path(__file__).with_name("crossing.py"))
EXPECTED = [
    3, 9, 3, "opened", "opened", 3, "of the caller", "opened", "opened", "by a tail call", "kept",
    "kept", ["FAILED", True], "cancelled", 2450,
]


# pycapnp with itself loses its server at the tail call.
@pytest.mark.parametrize(
    ("server", "caller"),
    [("capnwire", "capnwire"), ("capnwire", "pycapnp"), ("pycapnp", "capnwire")],
)
def test_calls_give_the_same(tmp_path: Path, server: str, caller: str) -> None:
    if "pycapnp" in (server, caller) and not os.environ.get("CAPNWIRE_REQUIRE_PEERS"):
        pytest.importorskip("capnp")
    path = str(tmp_path / "socket")
    serving = subprocess.Popen(
        [sys.executable, PROGRAM, server, "serve", path], stdout=subprocess.PIPE,
        env=environment(of_pycapnp=server == "pycapnp"),
    )
    try:
        assert serving.stdout is not None
        assert serving.stdout.readline() == b"ready\n"
        done = subprocess.run(
            [sys.executable, PROGRAM, caller, "call", path], capture_output=True, check=False,
            env=environment(of_pycapnp=caller == "pycapnp"), timeout=60,
        )
        assert done.returncode == 0, done.stderr.decode()
        assert json.loads(done.stdout) == EXPECTED
        assert serving.wait(30) == 0
    finally:
        serving.kill()
        serving.wait()
        if serving.stdout is not None:
            serving.stdout.close()
