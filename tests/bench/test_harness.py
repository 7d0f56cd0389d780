"""The harness: figures, targets and growth; no timing decides anything here."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bench import data, report
from bench.bench_codec import ROWS
from bench.harness import Row, Suite, Target, must, reach, show

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (3.21e-8, "s", "32.1 ns"), (9.996e-7, "s", "1000 ns"), (1.5e-6, "s", "1.50 µs"),
        (0.0123, "s", "12.3 ms"), (2.5, "s", "2.50 s"), (108.0, "B", "108 B"),
        (27.2e6, "B", "27.2 MB"), (1.0, "exponent", "1.00"), (None, "s", "–"),
    ],
)
def test_figures_are_shown_with_three_digits(value: float | None, unit: str, text: str) -> None:
    assert show(value, unit) == text


def test_a_target_is_a_share_of_the_peer_in_the_same_run() -> None:
    figures = {"row": {"capnwire": 40.0, "pycapnp": 440.0}, "other": {"pycapnp": 800.0}}
    assert must("pycapnp", 1 / 11).bound(figures, "row") == pytest.approx(40.0)
    assert must("pycapnp", 1 / 8, row="other").bound(figures, "row") == pytest.approx(100.0)
    assert must(None, plus=3e-6).bound(figures, "row") == 3e-6
    assert must("orjson", 1).bound(figures, "row") is None
    assert must("pycapnp", 1 / 11).text("s") == "≤ 1/11 × pycapnp"
    assert reach("python", 1, plus=3e-7).text("s") == "≤ python + 300 ns"


def suite(rows: tuple[Row, ...], figures: dict[str, dict[str, float]]) -> Suite:
    return Suite("codec", rows, ("capnwire", "pycapnp"), Path(), 1, 0.1, 5, figures=figures)


def test_a_missed_target_is_said_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (
        Row("won", "won", targets=(must("pycapnp", 0.5),)),
        Row("lost", "lost", targets=(must("pycapnp", 0.5),)),
        Row("open", "open", targets=(must("pycapnp", 0.5),)),
    )
    figures = {
        "won": {"capnwire": 1.0, "pycapnp": 3.0}, "lost": {"capnwire": 1.0, "pycapnp": 1.5},
        "open": {"pycapnp": 1.0},
    }
    run = suite(rows, figures)
    assert [x["ok"] for x in report.verdicts(run)] == [True, False, None]
    report.print_report(run, {}, {"writer": "nobody"})
    shown = capsys.readouterr().out
    assert "must  FAIL lost" in shown
    assert "must: 1 of 2 kept; not: lost" in shown


def test_a_table_goes_between_the_marks_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    head = "<!-- figures: python -m bench other -->\nkept\n<!-- end of figures -->\n"
    mark = "<!-- figures: python -m bench codec --update page.md -->\n"
    page.write_text(f"{head}{mark}old\n<!-- end of figures -->\nafter\n")
    run = suite((Row("won", "Won", targets=(must("pycapnp", 0.5),)),), {"won": {"pycapnp": 2.0}})
    run.versions.update(pycapnp="1")
    report.update(page, run, {"pycapnp": "pycapnp"})
    text = page.read_text()
    assert "| Won | 2.00 s |" in text
    assert "old" not in text
    assert text.startswith(f"{head}{mark}")
    assert text.endswith("<!-- end of figures -->\nafter\n")


def test_the_exponent_is_that_of_the_growth() -> None:
    sizes = [1, 2, 4, 8]
    assert data.exponent(sizes, [3.0 * x for x in sizes]) == pytest.approx(1)
    assert data.exponent(sizes, [0.5 * x * x for x in sizes]) == pytest.approx(2)
    assert data.exponent(sizes, [7.0] * 4) == pytest.approx(0)


def test_values_are_the_same_in_every_process() -> None:
    program = (
        "from bench import data; import random, json;"
        "print(json.dumps(data.as_json([data.event(i, random.Random(1)) for i in range(60)])))"
    )
    again = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    here = [data.event(i, random.Random(1)) for i in range(60)]
    assert json.loads(again.stdout) == data.as_json(here)


def test_every_kind_of_event_is_in_the_log() -> None:
    assert len(data.log_summary(2000)["kinds"]) == 22


def test_the_large_schema_has_the_size_it_claims() -> None:
    text = data.large_schema()
    assert text.count("struct Large") == 111
    assert text.count("  field") == 1400
    assert 2200 <= text.count("\n") <= 2500


def test_rows_are_named_once_and_targets_name_known_rows() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    for row in ROWS:
        for target in row.targets:
            assert isinstance(target, Target)
            assert target.row is None or target.row in names


@pytest.mark.slow
def test_the_command_runs_a_row_checks_it_and_keeps_the_figures(tmp_path: Path) -> None:
    pytest.importorskip("orjson")
    done = subprocess.run(
        [
            sys.executable, "-m", "bench", "codec", "--quick", "--only", "small_open",
            "--without", "capnpy", "--json", str(tmp_path / "figures.json"), "--markdown",
        ],
        cwd=ROOT, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kept = json.loads((tmp_path / "figures.json").read_text())
    assert kept["wrong"] == []
    assert kept["figures"]["small_open"]["json"] > 0
    assert "| Small: open, 5 fields |" in done.stdout
