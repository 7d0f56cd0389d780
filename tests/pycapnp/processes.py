"""The environment of the processes that tests start."""

import os
import sys

SANITIZER = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS", "PYTHONMALLOC")


def environment(*, of_pycapnp: bool) -> dict[str, str]:
    """This process's, with its path; pycapnp, which reads freed memory, runs without sanitizer."""
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for name in SANITIZER if of_pycapnp else ():
        found.pop(name, None)
    return found
