"""The names of pycapnp's extension, private ones too: `capnp.lib.capnp`."""

from __future__ import annotations

from typing import Any

from capnwire._fast import MessageSize as _MessageSize
from capnwire.errors import KjException
from capnwire.pycapnp import parser as _parser_module
from capnwire.pycapnp import types
from capnwire.pycapnp._face import (
    _DynamicListBuilder,
    _DynamicListReader,
    _DynamicStructBuilder,
    _DynamicStructReader,
)
from capnwire.pycapnp._values import _DynamicEnum, _DynamicEnumField
from capnwire.pycapnp.files import any_messages_packed as read_multiple_bytes_packed
from capnwire.pycapnp.hook import (
    _capnp_paths,
    _Importer,
    _Loader,
    add_import_hook,
    remove_import_hook,
)
from capnwire.pycapnp.modules import (
    _EnumModule,
    _InterfaceModule,
    _SchemaType,
    _StructModule,
    _StructModuleWhich,
    _Type,
)
from capnwire.pycapnp.objects import (
    _DynamicObjectBuilder,
    _DynamicObjectReader,
    _DynamicOrphan,
    _DynamicResizableListBuilder,
    _MallocMessageBuilder,
    _MessageBuilder,
    _MessageReader,
    _PackedFdMessageReader,
    _PyCustomMessageBuilder,
    _StreamFdMessageReader,
    _write_message_to_fd,
    _write_packed_message_to_fd,
)
from capnwire.pycapnp.parser import (
    SchemaLoader,
    SchemaParser,
    _list_reducer,
    _struct_reducer,
    cleanup_global_schema_parser,
    deregister_all_types,
    load,
    register_type,
)
from capnwire.pycapnp.schemas import (
    _EnumSchema,
    _InterfaceMethod,
    _InterfaceSchema,
    _ListSchema,
    _NodeReader,
    _ParsedSchema,
    _Schema,
    _StructSchema,
    _StructSchemaField,
)

__all__ = [
    "KjException",
    "SchemaLoader",
    "SchemaParser",
    "_DynamicEnum",
    "_DynamicEnumField",
    "_DynamicListBuilder",
    "_DynamicListReader",
    "_DynamicObjectBuilder",
    "_DynamicObjectReader",
    "_DynamicOrphan",
    "_DynamicResizableListBuilder",
    "_DynamicStructBuilder",
    "_DynamicStructReader",
    "_EnumModule",
    "_EnumSchema",
    "_Importer",
    "_InterfaceMethod",
    "_InterfaceModule",
    "_InterfaceSchema",
    "_ListSchema",
    "_Loader",
    "_MallocMessageBuilder",
    "_MessageBuilder",
    "_MessageReader",
    "_MessageSize",
    "_NodeReader",
    "_PackedFdMessageReader",
    "_ParsedSchema",
    "_PyCustomMessageBuilder",
    "_Schema",
    "_SchemaType",
    "_StreamFdMessageReader",
    "_StructModule",
    "_StructModuleWhich",
    "_StructSchema",
    "_StructSchemaField",
    "_Type",
    "_capnp_paths",
    "_list_reducer",
    "_struct_reducer",
    "_write_message_to_fd",
    "_write_packed_message_to_fd",
    "add_import_hook",
    "cleanup_global_schema_parser",
    "deregister_all_types",
    "load",
    "read_multiple_bytes_packed",
    "register_type",
    "remove_import_hook",
    "types",
]

_LATE = (
    "AsyncIoStream", "TwoPartyClient", "TwoPartyServer", "_AsyncIoStream", "_CallContext",
    "_CapabilityClient", "_DynamicCapabilityClient", "_DynamicCapabilityServer",
    "_DynamicStructPipeline", "_EventLoop", "_Promise", "_RemotePromise", "_Request", "_Response",
    "fill_context", "kj_loop", "run", "void_task_done_callback",
)
"""What needs asyncio, and is imported when it is first asked for."""

_CAPNP_VERSION_MAJOR, _CAPNP_VERSION_MINOR, _CAPNP_VERSION_MICRO = 1, 4, 0
_CAPNP_VERSION = 1004000


def _init_capnp_api() -> None:
    """Kept for its name: there is no C++ API to make ready."""


def __getattr__(name: str) -> Any:
    if name == "_global_schema_parser":
        return _parser_module._global_schema_parser
    if name == "_importer":
        from capnwire.pycapnp import hook

        return hook._importer
    if name in _LATE:
        from capnwire.pycapnp import rpc

        found = globals()[name] = getattr(rpc, name)
        return found
    if name in ("array", "asyncio", "base64", "contextlib"):
        from importlib import import_module

        return import_module(name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, "_global_schema_parser", "_importer"})
