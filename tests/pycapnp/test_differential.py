"""Hundreds of small expressions answered by pycapnp and by the drop-in.

An exception of the drop-in may be of more classes than pycapnp's: whoever catches one catches it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pycapnp.processes import environment

PROBES = Path(__file__).with_name("probes.py")

# Where the drop-in answers otherwise, and why.
BETTER = {
    "to_dict verbose keys": "an interface that is null does not spoil the dict",
    "set color int 77": "an enumerant that the schema does not know has its number as text",
    "set shorts dict {}": "KjException and TypeError, not what a missing method happens to raise",
    "dict shorts dict {}": "the same",
    "set leaves dict {}": "the same",
    "dict leaves dict {}": "the same",
    "set any dict {}": "the same",
    "dict any dict {}": "the same",
}


def answers(which: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROBES), which], capture_output=True, timeout=120,
        check=False, env=environment(of_pycapnp=which == "pycapnp"),
    )
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_probe_is_answered_alike() -> None:
    if not os.environ.get("CAPNWIRE_REQUIRE_PEERS"):
        pytest.importorskip("capnp")
    ours, theirs = answers("capnwire"), answers("pycapnp")
    assert ours.keys() == theirs.keys()
    assert len(ours) > 300
    wrong = {}
    for name, answer in ours.items():
        expected = theirs[name]
        same = answer == expected
        if isinstance(answer, dict) and isinstance(expected, dict) and "raises" in expected:
            same = bool(set(answer.get("raises", ())) & set(expected["raises"]))
        if same == (name in BETTER):
            wrong[name] = (answer, expected)
    assert not wrong
