"""The RPC rows: calls over loopback TCP between two processes, and in memory.

A figure is the time of one call; `floor` does the same work with the same bytes and no RPC at all,
`frames` with lines of JSON, both over plain asyncio.
"""

from __future__ import annotations

from typing import Any

from bench.harness import Row, must, reach

PEERS = ("capnwire", "pycapnp", "floor", "frames", "capnweb")
ADAPTERS = "rpc_"
MESSAGES = False



def _row(name: str, title: str, rounds: int = 5, **options: Any) -> Row:
    """A row whose adapters time many calls themselves: few rounds are enough."""
    return Row(name, title, rounds=rounds, **options)


ROWS: tuple[Row, ...] = (
    _row("tcp_tiny", "TCP: a tiny call, one after the other",
        targets=(must("pycapnp", 1 / 2), reach("floor", 1.1))),
    _row("tcp_tiny_async", "TCP: the same, served by a coroutine",
        targets=(must("pycapnp", 0.6),)),
    _row("tcp_burst_100", "TCP: 100 at once, each", targets=(reach("frames", 1),)),
    _row("tcp_burst_1000", "TCP: 1000 at once, each",
        targets=(must("pycapnp", 1 / 6), reach("frames", 1))),
    _row("tcp_bytes", "TCP: 64 KB of bytes, there and back",
        targets=(must("pycapnp", 1 / 2), reach("floor", 1))),
    _row("tcp_text", "TCP: 64 KB of text, there and back", targets=(must("pycapnp", 1 / 2),)),
    _row("memory_tiny", "in memory: a tiny call"),
    _row("memory_burst_1000", "in memory: 1000 at once, each",
        targets=(must(None, plus=5.3e-6), must("capnweb", 1 / 2), reach("floor", 2))),
    _row("wire_bytes", "bytes on the wire, 64 KB there and back", unit="B",
        targets=(must(None, plus=131_700),), rounds=1),
    _row("memory_flight", "bytes kept for each of 10 000 calls, once done", unit="B",
        targets=(must(None, plus=16),), peers=("capnwire",), fresh=True),
)
