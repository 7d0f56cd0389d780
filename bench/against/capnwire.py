"""capnwire itself, through its public API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench import data as values
from bench.against import Case, Unavailable
from bench.against.capnp_like import CapnpLike

NAME = "capnwire"
DISTRIBUTION = "capnwire"


class Capnwire(CapnpLike):
    import_name = "capnwire"
    distribution = DISTRIBUTION

    def rows_column(self) -> Case:
        message = self.open(self.codec.Rows, self.read("rows"))
        rows = message.rows
        if not hasattr(rows, "column"):
            raise Unavailable("no column()")
        return Case(lambda: rows.column("score"), lambda result: result.tolist())

    def blob_view(self) -> Case:
        data, from_bytes = self.read("blob"), self.codec.Blob.from_bytes

        def run() -> memoryview:
            with from_bytes(data) as message:
                return message.get_data_as_view("data")

        return Case(run, bytes)

    def blob_view_large(self) -> Case:
        data, from_bytes = self.read("blob_large"), self.codec.Blob.from_bytes

        def run() -> memoryview:
            with from_bytes(data) as message:
                return message.get_data_as_view("data")

        return Case(run, len)

    def nums_numpy(self) -> Case:
        import numpy as np

        message = self.open(self.codec.Nums, self.read("nums"))
        return Case(lambda: np.asarray(message.xs), lambda result: float(result.sum()))

    def from_array(self, array: Any) -> Any:
        return array

    def shorts_read(self) -> Case:
        import numpy as np

        message = self.open(self.codec.Shorts, self.read("shorts"))
        return Case(lambda: np.asarray(message.xs), lambda result: result.tolist())

    def grow_numpy(self, size: int) -> Case:
        import numpy as np

        built = self.codec.Nums.new_message(xs=values.nums()[:size])
        message = self.open(self.codec.Nums, built.to_bytes())
        return Case(lambda: np.asarray(message.xs), len)


def adapter(folder: Path, events: int) -> Any:
    import capnwire

    if not hasattr(capnwire, "load"):
        raise Unavailable("capnwire has no load(): are the extensions built?")
    return Capnwire(capnwire, folder, events)
