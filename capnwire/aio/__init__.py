"""RPC over asyncio: connect, serve, sessions.  Only here is asyncio imported."""

from capnwire.aio.blocking import BlockingSession, connect_sync
from capnwire.aio.network import (
    Listener,
    connect,
    memory_pair,
    over_stdio,
    over_streams,
    serve,
)
from capnwire.aio.runtime import Reply
from capnwire.aio.session import Session

__all__ = [
    "BlockingSession",
    "Listener",
    "Reply",
    "Session",
    "connect",
    "connect_sync",
    "memory_pair",
    "over_stdio",
    "over_streams",
    "serve",
]
