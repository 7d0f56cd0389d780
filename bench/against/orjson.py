"""orjson, with base64 for bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.against.text_like import TextLike

NAME = "orjson"
DISTRIBUTION = "orjson"


def adapter(folder: Path, events: int) -> Any:
    import orjson

    return TextLike(orjson.dumps, orjson.loads, "orjson", "orjson")
