"""The floor: what plain Python costs for the same shape of work."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench import data as values
from bench.against import Case, Measured

NAME = "python floor"
DISTRIBUTION = None


class Slotted:
    __slots__ = ("age", "name")


class Floor:
    def empty_call(self) -> Case:
        return Case(lambda: None)

    def field_uint32(self) -> Case:
        """A slot's attribute."""
        small = Slotted()
        small.age = values.SMALL["age"]
        return Case(lambda: small.age)

    def blob_bytes(self) -> Case:
        """memcpy of the blob into new bytes."""
        view = memoryview(values.blob())
        return Case(lambda: bytes(view))

    def nums_numpy(self) -> Case:
        """np.frombuffer: a view of memory that is already floats."""
        import numpy as np

        data = np.array(values.nums()).tobytes()
        return Case(lambda: np.frombuffer(data), lambda result: float(result.sum()))

    def shorts_set(self) -> Case:
        """memcpy of the numbers."""
        import numpy as np

        array = np.array(values.shorts(), dtype="<i2")
        return Case(array.tobytes, lambda result: np.frombuffer(result, "<i2").tolist())

    def shorts_read(self) -> Case:
        import numpy as np

        array = np.array(values.shorts(), dtype="<i2")
        return Case(array.copy, lambda result: result.tolist())

    def finished_to_bytes(self) -> Case:
        """memcpy of a megabyte."""
        view = memoryview(bytes(2**20))
        return Case(lambda: bytes(view), len)

    def import_time(self) -> Measured:
        """A whole interpreter that imports nothing."""

        def measure() -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
            return time.perf_counter() - start

        return Measured(measure)


def adapter(folder: Path, events: int) -> Any:
    return Floor()
