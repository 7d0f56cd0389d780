"""A bar on standard error for work that takes long, when a person sees it."""

from __future__ import annotations

import os
import stat
import sys
from time import monotonic
from types import TracebackType
from typing import Any, BinaryIO

__all__ = ["Meter"]

SOON_S = 1.0
"""Work that is done within this time shows no bar."""

INTERVAL_S = 0.1


class Meter:
    """Counts bytes read and `messages` done; draws a bar once that takes long."""

    def __init__(self, file: BinaryIO, *, is_quiet: bool = False) -> None:
        # Not between the lines of output on the same terminal.
        self._shown = not is_quiet and sys.stderr.isatty() and not sys.stdout.isatty()
        self._total = _size_of(file) if self._shown else None
        self._done = self.messages = 0
        self._next = monotonic() + SOON_S
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Meter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._update()
            self._bar.stop()

    def advance(self, size: int) -> None:
        """Note bytes that were read."""
        self._done += size
        if self._shown and monotonic() >= self._next:
            self._update()

    def count(self) -> None:
        """Note a message that was written."""
        self.messages += 1

    def _update(self) -> None:
        self._next = monotonic() + INTERVAL_S
        if self._bar is None:
            self._bar = _bar(known=self._total is not None)
            if self._bar is None:
                self._shown = False
                return
            self._task = self._bar.add_task("", total=self._total, messages=0)
            self._bar.start()
        self._bar.update(self._task, completed=self._done, messages=self.messages)


def _bar(*, known: bool) -> Any:
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
    except ImportError:
        return None
    columns: list[Any] = [BarColumn() if known else SpinnerColumn(), DownloadColumn()]
    columns += [TransferSpeedColumn(), TextColumn("{task.fields[messages]} messages")]
    if known:
        columns.append(TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _size_of(file: BinaryIO) -> int | None:
    """What is left of a regular file; None for pipes and terminals."""
    try:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return None
        return max(0, status.st_size - os.lseek(file.fileno(), 0, os.SEEK_CUR))
    except (OSError, ValueError):
        return None
