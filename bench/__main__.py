"""`python -m bench codec [--quick] [--only ROW] [--without PEER] [--json FILE] [--markdown]`."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import data, report
from bench.against import PEERS
from bench.harness import ROOT, Suite


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("suite", choices=sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
    ))
    parser.add_argument("--quick", action="store_true", help="short rounds, a log of 9000 events")
    parser.add_argument("--only", action="append", default=[], metavar="ROW",
                        help="rows whose name contains this; may be repeated")
    parser.add_argument("--without", action="append", default=[], metavar="PEER",
                        help="leave a peer out (capnpy compiles for some seconds)")
    parser.add_argument("--rounds", type=int, default=None, help="rounds a row (at least 5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table as well")
    parser.add_argument("--update", type=Path, metavar="PAGE",
                        help="put the Markdown table into a page, between its `figures` comments")
    return parser.parse_args()


def write_messages(folder: Path, events: int) -> dict[str, object]:
    """Let a process of its own write the messages, by pycapnp where it is installed."""
    writer = "capnp" if importlib.util.find_spec("capnp") else "capnwire"
    program = (
        "import sys; from pathlib import Path; from bench import data;"
        "data.write_messages(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(folder), writer, str(events)], check=True, cwd=ROOT
    )
    facts: dict[str, object] = json.loads((folder / "facts.json").read_text())
    return facts


def main() -> int:
    options = arguments()
    module = importlib.import_module(f"bench.bench_{options.suite}")
    rows = report.rows_named(module.ROWS, options.only)
    if not rows:
        print(f"no row is called {' or '.join(options.only)}", file=sys.stderr)
        return 2
    events = data.QUICK_EVENTS if options.quick else data.EVENTS
    report.OURS = getattr(module, "OURS", report.OURS)
    # A suite may have peers of its own, whose adapters' names start with its prefix.
    prefix = getattr(module, "ADAPTERS", "")
    all_peers = getattr(module, "PEERS", PEERS)
    if wrong := set(options.without) - set(all_peers):
        print(f"no peer is called {', '.join(sorted(wrong))}: {', '.join(all_peers)}",
              file=sys.stderr)
        return 2
    peers = tuple(peer for peer in all_peers if peer not in options.without)
    names = {
        peer: importlib.import_module(f"bench.against.{prefix}{peer}").NAME for peer in peers
    }
    with tempfile.TemporaryDirectory(prefix="capnwire-bench-") as name:
        folder = Path(name)
        facts = write_messages(folder, events) if getattr(module, "MESSAGES", True) else {}
        suite = Suite(
            options.suite, rows, peers, folder, events,
            # Many short rounds rather than a few long ones: noise comes in seconds.
            round_seconds=0.03 if options.quick else 0.05,
            rounds=max(5, options.rounds or (5 if options.quick else 25)),
        )
        suite.run(lambda text: print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
                  if sys.stderr.isatty() else None)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
    report.print_report(suite, names, facts)
    if options.markdown:
        print(report.markdown(suite, names))
    if options.update:
        report.update(options.update, suite, names)
    if options.json:
        report.write_json(options.json, suite, facts)
    return 1 if suite.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
