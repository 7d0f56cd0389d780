"""A thread of little stack, in which what recurses by what it is given falls."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable

# musl's default.  The sanitizers' frames are several times as large, and CPython 3.13 frees 10 000
# objects one within the other before its trashcan takes any (Py_C_RECURSION_LIMIT).
STACK_KIB = 8192 if sys.version_info >= (3, 13) else 128
if os.environ.get("CAPNWIRE_SANITIZED"):
    STACK_KIB = max(STACK_KIB, 1024)


def on_a_small_stack(work: Callable[[], None]) -> None:
    """Do some work, and free what it leaves, in a thread of little stack."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)
        gc.collect()

    gc.collect()
    before = threading.stack_size(STACK_KIB * 1024)
    thread = threading.Thread(target=run)
    thread.start()
    threading.stack_size(before)
    thread.join()
    for failure in failures:
        raise failure
