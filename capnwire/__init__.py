"""Cap'n Proto for Python, done natively: `capnwire.load("person.capnp").Person.new_message(…)`.

Names are imported when first used, so that `import capnwire` costs a few milliseconds.
"""

from capnwire import _any, _fast
from capnwire.errors import (
    CapnwireError,
    CompileError,
    DecodeError,
    EncodeError,
    EncodeTypeError,
    FramingError,
    KjException,
    LimitError,
    PackingError,
    PointerError,
    SchemaError,
    SchemaMismatch,
    TextError,
    TruncatedError,
    UnionError,
    Utf8Error,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # the names of _LATE, and `types`
    from capnwire._any import AnyPointerBuilder, AnyPointerReader, UnresolvedCapability, new_orphan
    from capnwire._fast import Struct, StructBuilder, StructReader
    from capnwire._info import EnumValue
    from capnwire._lists import ListBuilder, ListReader
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
    from capnwire.errors import LocalProtocolError, RemoteError, RemoteProtocolError, RpcError
    from capnwire.importer import add_import_hook, remove_import_hook
    from capnwire.loader import SchemaLoader, SchemaParser, load, load_text
    from capnwire.message import scalars as types
    from capnwire.message.builder import MessageBuilder
    from capnwire.message.types import list_of
    from capnwire.service.client import Capability, local_object, set_stream_window
    from capnwire.wire.canonical import is_canonical
    from capnwire.wire.framing import FrameDecoder
    from capnwire.wire.packed import PackedDecoder, pack, unpack

__version__ = "0.1.0"

_fast.set_late_module("capnwire.message.face")
_any.set_service_module("capnwire.service.interface")

_LATE = {
    "AnyPointerBuilder": "capnwire._any",
    "AnyPointerReader": "capnwire._any",
    "BlockingSession": "capnwire.aio.blocking",
    "Capability": "capnwire.service.client",
    "EnumValue": "capnwire._info",
    "FrameDecoder": "capnwire.wire.framing",
    "ListBuilder": "capnwire._lists",
    "ListReader": "capnwire._lists",
    "Listener": "capnwire.aio.network",
    "LocalProtocolError": "capnwire.errors",
    "MessageBuilder": "capnwire.message.builder",
    "PackedDecoder": "capnwire.wire.packed",
    "RemoteError": "capnwire.errors",
    "RemoteProtocolError": "capnwire.errors",
    "Reply": "capnwire.aio.runtime",
    "RpcError": "capnwire.errors",
    "SchemaLoader": "capnwire.loader",
    "SchemaParser": "capnwire.loader",
    "Session": "capnwire.aio.session",
    "Struct": "capnwire._fast",
    "StructBuilder": "capnwire._fast",
    "StructReader": "capnwire._fast",
    "UnresolvedCapability": "capnwire._any",
    "add_import_hook": "capnwire.importer",
    "connect": "capnwire.aio.network",
    "connect_sync": "capnwire.aio.blocking",
    "is_canonical": "capnwire.wire.canonical",
    "list_of": "capnwire.message.types",
    "load": "capnwire.loader",
    "load_text": "capnwire.loader",
    "local_object": "capnwire.service.client",
    "memory_pair": "capnwire.aio.network",
    "new_orphan": "capnwire._any",
    "over_stdio": "capnwire.aio.network",
    "over_streams": "capnwire.aio.network",
    "pack": "capnwire.wire.packed",
    "remove_import_hook": "capnwire.importer",
    "serve": "capnwire.aio.network",
    "set_stream_window": "capnwire.service.client",
    "unpack": "capnwire.wire.packed",
}

__all__ = [
    "AnyPointerBuilder",
    "AnyPointerReader",
    "BlockingSession",
    "Capability",
    "CapnwireError",
    "CompileError",
    "DecodeError",
    "EncodeError",
    "EncodeTypeError",
    "EnumValue",
    "FrameDecoder",
    "FramingError",
    "KjException",
    "LimitError",
    "ListBuilder",
    "ListReader",
    "Listener",
    "LocalProtocolError",
    "MessageBuilder",
    "PackedDecoder",
    "PackingError",
    "PointerError",
    "RemoteError",
    "RemoteProtocolError",
    "Reply",
    "RpcError",
    "SchemaError",
    "SchemaLoader",
    "SchemaMismatch",
    "SchemaParser",
    "Session",
    "Struct",
    "StructBuilder",
    "StructReader",
    "TextError",
    "TruncatedError",
    "UnionError",
    "UnresolvedCapability",
    "Utf8Error",
    "add_import_hook",
    "connect",
    "connect_sync",
    "is_canonical",
    "list_of",
    "load",
    "load_text",
    "local_object",
    "memory_pair",
    "new_orphan",
    "over_stdio",
    "over_streams",
    "pack",
    "remove_import_hook",
    "serve",
    "set_stream_window",
    "types",
    "unpack",
]


def __getattr__(name: str) -> object:
    if name == "types":
        value: object = _module("capnwire.message.scalars")
    elif name in _LATE:
        value = getattr(_module(_LATE[name]), name)
    else:
        raise AttributeError(f"module 'capnwire' has no attribute {name!r}")
    globals()[name] = value
    return value


def _module(name: str) -> object:
    import sys

    __import__(name)
    return sys.modules[name]


def __dir__() -> "list[str]":
    return sorted({*globals(), *__all__})
