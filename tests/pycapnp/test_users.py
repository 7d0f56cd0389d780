"""Programs as pycapnp's users write them give the same under pycapnp and under the drop-in.

Each runs in a process of its own, knowing only `import capnp`; `python -m bench dropin` times them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pycapnp.processes import environment

USERS = Path(__file__).parent / "users"
PROGRAMS = sorted(path.stem for path in USERS.glob("*.py") if path.stem != "run")


def run(which: str, program: str) -> Any:
    done = subprocess.run(
        [sys.executable, str(USERS / "run.py"), which, program, "1"],
        capture_output=True, timeout=120, check=False,
        env=environment(of_pycapnp=which == "pycapnp"),
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["result"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_gives_the_same(program: str) -> None:
    if not os.environ.get("CAPNWIRE_REQUIRE_PEERS"):
        pytest.importorskip("capnp")
    ours = run("capnwire", program)
    assert ours
    assert ours == run("pycapnp", program)
