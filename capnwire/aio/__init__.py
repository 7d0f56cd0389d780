"""RPC over asyncio: connect, serve, sessions."""

from capnwire.aio.network import Listener, connect, pipe_pair, serve
from capnwire.aio.session import Session

__all__ = ["Listener", "Session", "connect", "pipe_pair", "serve"]
