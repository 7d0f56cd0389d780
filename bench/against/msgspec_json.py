"""msgspec's json format with typed structs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.against.msgspec_like import MsgspecLike

NAME = "msgspec json"
DISTRIBUTION = "msgspec"


def adapter(folder: Path, events: int) -> Any:
    import msgspec

    return MsgspecLike(msgspec, msgspec.json)
