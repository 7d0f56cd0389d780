"""capnwire.pycapnp: the drop-in, running what is written for pycapnp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.against.pycapnp import Pycapnp

NAME = "drop-in"
DISTRIBUTION = "capnwire"


class DropIn(Pycapnp):
    import_name = "capnwire.pycapnp"
    distribution = DISTRIBUTION

    def from_array(self, array: Any) -> Any:
        return array


def adapter(folder: Path, events: int) -> Any:
    import capnwire.pycapnp as capnp

    capnp.install()
    capnp.remove_import_hook()
    return DropIn(capnp, folder, events)
