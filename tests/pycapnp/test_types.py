"""A typed program that uses the drop-in passes mypy --strict, and gets what it expects."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WRONG = """
import capnwire.pycapnp as capnp
from capnwire.pycapnp.lib.capnp import _StructModule

def use(kind: _StructModule) -> int:
    message: int = kind.new_message()
    kind.new_message("many")
    kind.read_multiple_bytes()
    return kind.from_bytes(b"")
capnp.load(5)
capnp.TwoPartyClient(None, "many")
"""


def mypy(*arguments: str) -> str:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *arguments], capture_output=True, check=False,
        cwd=HERE.parents[1], timeout=300,
    )
    return done.stdout.decode()


def test_a_program_is_typed() -> None:
    assert mypy(str(HERE / "typed" / "program.py")).startswith("Success")


def test_slips_are_found(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    found = mypy(str(file))
    for line in (6, 7, 8, 9, 10, 11):
        assert f"wrong.py:{line}: error" in found
