"""The command line, `capnwire`: one file a command.  It needs the `cli` extra (click and rich)."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    try:
        import click  # noqa: F401
    except ImportError:
        print(
            "capnwire: the command line needs click and rich: pip install 'capnwire[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    from capnwire.cli.program import run

    sys.exit(run(sys.argv[1:]))
