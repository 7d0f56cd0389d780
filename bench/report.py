"""What a run prints: the table (rich where installed), the targets, the growth, the notes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.harness import Row, Suite, machine, show

RATIO_PEERS = ("pycapnp", "capnpy", "orjson")
OURS = "capnwire"


def ratio(figures: dict[str, float], peer: str) -> str:
    """How many times ours goes into the peer's: above 1 we are ahead."""
    ours, theirs = figures.get(OURS), figures.get(peer)
    if not ours or not theirs:
        return "–"
    times = theirs / ours
    digits = 0 if times >= 100 else 1 if times >= 10 else 2
    return f"{times:.{digits}f} ×"


def table(suite: Suite, names: dict[str, str]) -> tuple[list[str], list[list[str]]]:
    peers = [peer for peer in suite.peers if peer in suite.versions]
    ratios = [peer for peer in RATIO_PEERS if peer in peers and OURS in peers]
    head = ["work", *(names[peer] for peer in peers), *(f"{peer} ÷ ours" for peer in ratios)]
    lines = []
    for row in suite.rows:
        figures = suite.figures.get(row.name, {})
        if row.sizes or not figures:
            continue
        lines.append([
            row.title,
            *(show(figures.get(peer), row.unit) for peer in peers),
            *(ratio(figures, peer) for peer in ratios),
        ])
    return head, lines


def verdicts(suite: Suite) -> list[dict[str, Any]]:
    """Each target with its bound and whether we keep it; None = could not be judged."""
    found = []
    for row in suite.rows:
        ours = suite.figures.get(row.name, {}).get(OURS)
        for target in row.targets:
            bound = target.bound(suite.figures, row.name)
            found.append({
                "row": row.name, "kind": "reach" if target.reach else "must",
                "target": target.text(row.unit), "ours": ours, "bound": bound, "unit": row.unit,
                "ok": None if ours is None or bound is None else ours <= bound,
            })
        if row.sizes:
            found.append({
                "row": row.name, "kind": "must", "target": f"≤ {row.growth:g}", "ours": ours,
                "bound": row.growth, "unit": "exponent",
                "ok": None if ours is None else ours <= row.growth,
            })
    return found


README_HIDES = ("msgspec json", "python floor", "capnpy ÷ ours", "orjson ÷ ours")


def markdown(suite: Suite, names: dict[str, str]) -> str:
    """The table in Markdown, without the columns that are of interest to few."""
    head, lines = table(suite, names)
    shown = [i for i, name in enumerate(head) if name not in README_HIDES]
    head, *lines = ([line[i] for i in shown] for line in [head, *lines])
    out = ["| " + " | ".join(head) + " |", "| --- " + "| ---: " * (len(head) - 1) + "|"]
    out += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(out)


def update(path: Path, suite: Suite, names: dict[str, str]) -> None:
    """Put the table between the suite's `figures` comments of a page, with what it ran on."""
    text = path.read_text()
    start = text.index(f"<!-- figures: python -m bench {suite.name} ")
    start = text.index("\n", start) + 1
    end = text.index("<!-- end of figures -->", start)
    where = machine()
    versions = ", ".join(f"{names[p]} {v}" for p, v in suite.versions.items() if p != "python")
    found = verdicts(suite)
    counts = [
        f"{sum(x['ok'] for x in judged)} of {len(judged)} {kind}"
        for kind in ("must", "reach")
        if (judged := [x for x in found if x["kind"] == kind and x["ok"] is not None])
    ]
    lost = ", ".join(dict.fromkeys(x["row"] for x in found if x["ok"] is False))
    path.write_text(
        f"{text[:start]}{markdown(suite, names)}\n\n"
        f"{where['python']}, {where['system']}, {where['cpu']}; {versions}; best of {suite.rounds} "
        f"rounds. Targets kept: {', '.join(counts)}; not: {lost or 'none'}.\n{text[end:]}"
    )


def _plain(head: list[str], lines: list[list[str]]) -> str:
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]

    def one(line: list[str]) -> str:
        first, *rest = line
        return "  ".join(
            [first.ljust(widths[0]), *(x.rjust(w) for x, w in zip(rest, widths[1:], strict=True))]
        )

    return "\n".join([one(head), "  ".join("─" * w for w in widths), *map(one, lines)])


def print_table(head: list[str], lines: list[list[str]]) -> None:
    """A table by rich on a terminal that is wide enough, else in plain text."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
        except ImportError:
            pass
        else:
            pretty = Table(header_style="bold")
            for i, name in enumerate(head):
                pretty.add_column(name, justify="right" if i else "left", no_wrap=not i)
            for line in lines:
                pretty.add_row(*line)
            Console().print(pretty)
            return
    print(_plain(head, lines))


def print_report(suite: Suite, names: dict[str, str], facts: dict[str, Any]) -> None:
    for key, value in machine().items():
        print(f"{key:8} {value}")
    print("versions " + ", ".join(f"{names[p]} {v}" for p, v in suite.versions.items()))
    print(
        f"rounds   best of {suite.rounds} × {suite.round_seconds:g} s, peers in turn, "
        f"log of {suite.events} events, messages written by {facts['writer']}\n"
        if facts else "rounds   peers in turn; each times many calls a round\n"
    )
    print_table(*table(suite, names))
    print()
    for row in suite.rows:
        for peer, times in suite.curves.get(row.name, {}).items():
            exponent = suite.figures[row.name].get(peer)
            steps = ", ".join(
                f"{size}: {show(time)}" for size, time in zip(row.sizes, times, strict=False)
            )
            print(f"{row.title}, {peer}: exponent {show(exponent, 'exponent')} ({steps})")
    print()
    _print_targets(verdicts(suite))
    for note in suite.notes:
        print(f"note: {note}")
    for wrong in suite.wrong:
        print(f"WRONG RESULT: {wrong}")


def _print_targets(found: list[dict[str, Any]]) -> None:
    words = {
        "must": {True: "pass", False: "FAIL", None: "–"},
        "reach": {True: "yes", False: "no", None: "–"},
    }
    for kind, marks in words.items():
        chosen = [x for x in found if x["kind"] == kind]
        if not chosen:
            continue
        for x in chosen:
            ours, bound = show(x["ours"], x["unit"]), show(x["bound"], x["unit"])
            mark = marks[x["ok"]]
            print(f"{kind:5} {mark:4} {x['row']:18} {ours:>9}  {x['target']} = {bound}")
        judged = [x for x in chosen if x["ok"] is not None]
        kept = sum(x["ok"] for x in judged)
        lost = ", ".join(dict.fromkeys(x["row"] for x in judged if not x["ok"]))
        print(f"{kind}: {kept} of {len(judged)} kept" + (f"; not: {lost}" if lost else "") + "\n")


def write_json(path: Path, suite: Suite, facts: dict[str, Any]) -> None:
    path.write_text(json.dumps({
        "suite": suite.name, "machine": machine(), "versions": suite.versions, **facts,
        "rounds": suite.rounds, "round_seconds": suite.round_seconds,
        "rows": {row.name: {"title": row.title, "unit": row.unit} for row in suite.rows},
        "figures": suite.figures, "curves": suite.curves, "targets": verdicts(suite),
        "notes": suite.notes, "wrong": suite.wrong,
    }, indent=1, ensure_ascii=False) + "\n")


def rows_named(rows: tuple[Row, ...], wanted: list[str]) -> tuple[Row, ...]:
    """The rows whose name contains one of the given words; all without any."""
    if not wanted:
        return rows
    return tuple(row for row in rows if any(word in row.name for word in wanted))
