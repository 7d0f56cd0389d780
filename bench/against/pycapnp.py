"""pycapnp: the C++ runtime through its dynamic API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.against import Case
from bench.against.capnp_like import CapnpLike

NAME = "pycapnp"
DISTRIBUTION = "pycapnp"


class Pycapnp(CapnpLike):
    import_name = "capnp"
    distribution = DISTRIBUTION

    def open(self, kind: Any, data: bytes) -> Any:
        # A message that is read over and over is charged each time.
        return kind.from_bytes(data, traversal_limit_in_words=2**62).__enter__()

    # Writing a message twice warns unless the flag is cleared (50 ns, part of the price).

    def packed_encode(self) -> Case:
        message = self.open(self.codec.Rows, self.read("rows_large")).as_builder()

        def run() -> bytes:
            message.clear_write_flag()
            return message.to_bytes_packed()

        return Case(run, wire=bytes, value=len)

    def finished_to_bytes(self) -> Case:
        built = self.codec.Blob.new_message(data=bytes(2**20 - 64))

        def run() -> bytes:
            built.clear_write_flag()
            return built.to_bytes()

        return Case(run, len)


def adapter(folder: Path, events: int) -> Any:
    import capnp

    capnp.remove_import_hook()
    return Pycapnp(capnp, folder, events)
