"""The standard library's json, with base64 for bytes: what needs no installation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bench.against.text_like import TextLike

NAME = "json+base64"
DISTRIBUTION = None


def adapter(folder: Path, events: int) -> Any:
    return TextLike(lambda value: json.dumps(value).encode(), json.loads, "json")
