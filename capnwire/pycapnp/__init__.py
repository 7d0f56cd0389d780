"""capnwire in pycapnp's shape: `import capnwire.pycapnp as capnp` runs programs written for it.

`install()` makes it answer to `import capnp` itself.  Importing it installs the import hook, as
pycapnp does.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from capnwire.pycapnp import lib, types, version
from capnwire.pycapnp.lib import capnp as _extension
from capnwire.pycapnp.lib.capnp import (
    KjException,
    SchemaLoader,
    SchemaParser,
    _DynamicListBuilder,
    _DynamicListReader,
    _DynamicOrphan,
    _DynamicResizableListBuilder,
    _DynamicStructBuilder,
    _DynamicStructReader,
    _init_capnp_api,
    _InterfaceModule,
    _ListSchema,
    _MallocMessageBuilder,
    _PackedFdMessageReader,
    _PyCustomMessageBuilder,
    _StreamFdMessageReader,
    _StructModule,
    _write_message_to_fd,
    _write_packed_message_to_fd,
    add_import_hook,
    cleanup_global_schema_parser,
    deregister_all_types,
    load,
    read_multiple_bytes_packed,
    register_type,
    remove_import_hook,
)
from capnwire.pycapnp.version import version as __version__

if TYPE_CHECKING:  # the names of _LATE
    from capnwire.pycapnp.rpc import (
        AsyncIoStream,
        TwoPartyClient,
        TwoPartyServer,
        _CapabilityClient,
        _DynamicCapabilityClient,
        _EventLoop,
        fill_context,
        kj_loop,
        run,
        void_task_done_callback,
    )

__all__ = [
    "AsyncIoStream", "KjException", "SchemaLoader", "SchemaParser", "TwoPartyClient",
    "TwoPartyServer", "_CapabilityClient", "_DynamicCapabilityClient", "_DynamicListBuilder",
    "_DynamicListReader", "_DynamicOrphan", "_DynamicResizableListBuilder", "_DynamicStructBuilder",
    "_DynamicStructReader", "_EventLoop", "_InterfaceModule", "_ListSchema",
    "_MallocMessageBuilder", "_PackedFdMessageReader", "_PyCustomMessageBuilder",
    "_StreamFdMessageReader", "_StructModule", "__version__", "_init_capnp_api",
    "_write_message_to_fd", "_write_packed_message_to_fd", "add_import_hook",
    "cleanup_global_schema_parser", "deregister_all_types", "fill_context", "install", "kj_loop",
    "lib", "load", "read_multiple_bytes_packed", "register_type", "remove_import_hook", "run",
    "types", "version", "void_task_done_callback",
]

_LATE = frozenset((
    "AsyncIoStream", "TwoPartyClient", "TwoPartyServer", "_CapabilityClient",
    "_DynamicCapabilityClient", "_EventLoop", "array", "asyncio", "base64", "contextlib",
    "fill_context", "kj_loop", "run", "void_task_done_callback",
))


def __getattr__(name: str) -> Any:
    if name in _LATE:
        found = globals()[name] = getattr(_extension, name)
        return found
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})


def install() -> None:
    """Answer to `import capnp` from now on, in this process; call it before a program's own import.

    Pickles then name types as pycapnp's do, so that both can read them.

    Raises:
        ImportError: pycapnp itself was imported before.
    """
    package = sys.modules[__name__]
    there = sys.modules.get("capnp")
    if there is not None and there is not package and hasattr(there, "load"):
        raise ImportError("pycapnp was imported before capnwire.pycapnp.install()")
    sys.modules["capnp"] = package
    sys.modules["capnp.lib"] = lib
    sys.modules["capnp.lib.capnp"] = _extension
    sys.modules["capnp.version"] = version
    sys.modules["capnp.types"] = types
    _extension._struct_reducer.__module__ = "capnp.lib.capnp"
    _extension._list_reducer.__module__ = "capnp.lib.capnp"


add_import_hook()
