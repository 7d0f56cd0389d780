"""The tests that README.md names are there."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_test_that_the_table_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (HERE / "README.md").read_text()))
    there = {
        name
        for file in HERE.glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(named) > 60
    assert named <= there
