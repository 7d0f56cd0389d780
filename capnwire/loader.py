"""Loading schemas: from files, texts and code generator requests, into modules of types."""

from __future__ import annotations

import os
from types import ModuleType

from capnwire.errors import SchemaError
from capnwire.message.types import schema_module
from capnwire.schema import registry as registries
from capnwire.schema.model import FileBody

TYPE_CHECKING = False  # importing typing would take as long as loading a schema does
if TYPE_CHECKING:
    from collections.abc import Iterable

    from capnwire._fast import StructReader
    from capnwire.message.reflection import Schema
    from capnwire.schema.model import Node, Request
    from capnwire.schema.registry import Registry

__all__ = ["SchemaLoader", "SchemaParser", "load", "load_text"]

PathLike = "str | os.PathLike[str]"


def load(
    source: str | os.PathLike[str] | bytes, display_name: str | None = None,
    imports: Iterable[str | os.PathLike[str]] = (), *, missing_imports: str = "error",
) -> ModuleType:
    """Load a schema file and give a module whose attributes are its declarations.

    `source` is a path, or the bytes of a CodeGeneratorRequest.  `imports` are directories for
    absolute imports (`/capnp/c++.capnp` is bundled).  `missing_imports="ignore-annotations"`
    drops annotations from files that are not there (`go.capnp`).

    Raises:
        CompileError: the schema has errors; `diagnostics` lists them all.
        OSError: the file cannot be read.
        SchemaError: a request contradicts itself.
    """
    return SchemaParser(shared=True).load(
        source, display_name, imports, missing_imports=missing_imports
    )


def load_text(
    text: str, display_name: str = "schema.capnp", imports: Iterable[str | os.PathLike[str]] = (),
    *, missing_imports: str = "error",
) -> ModuleType:
    """Load a schema given as text; relative imports are looked for from the current directory.

    Raises:
        CompileError: the schema has errors.
    """
    return SchemaParser(shared=True).load_text(
        text, display_name, imports, missing_imports=missing_imports
    )


class SchemaParser:
    """Loads schemas whose types are its own, apart from those of `load` and of other parsers.

    `modules_by_id` maps the ids of structs to their classes once their module was loaded.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self._shared = shared
        self._registry: Registry | None = None

    def load(
        self, source: str | os.PathLike[str] | bytes, display_name: str | None = None,
        imports: Iterable[str | os.PathLike[str]] = (), *, missing_imports: str = "error",
    ) -> ModuleType:
        """As `capnwire.load`."""
        if isinstance(source, (bytes, bytearray, memoryview)):
            from capnwire.message.nodes import read_request

            return self._module(read_request(bytes(source)), display_name, None)
        from capnwire.compiler.cache import compile_cached

        path = os.fspath(source)
        request, is_known = compile_cached(path, list(imports), missing_imports)
        return self._module(request, display_name, os.path.abspath(path), are_checked=is_known)

    def load_text(
        self, text: str, display_name: str = "schema.capnp",
        imports: Iterable[str | os.PathLike[str]] = (), *, missing_imports: str = "error",
    ) -> ModuleType:
        """As `capnwire.load_text`."""
        from capnwire.compiler.driver import compile_text

        request = compile_text(
            text, filename=display_name, import_paths=list(imports), missing_imports=missing_imports
        )
        return self._module(request, display_name, None)

    @property
    def modules_by_id(self) -> dict[int, object]:
        """The declarations loaded so far, by the ids of their nodes."""
        from capnwire.message.types import declaration

        registry = self._registry
        if registry is None:
            return {}
        return {
            id: declaration(registry, node)
            for id, node in list(registry.nodes.items())
            if not isinstance(node.body, FileBody)
        }

    def _registry_for(self, nodes: list[Node], are_checked: bool) -> Registry:
        if self._shared:
            return registries.registry_for(nodes, are_checked=are_checked)
        if self._registry is None:
            self._registry = registries.Registry()
        self._registry.add(nodes, are_checked=are_checked)
        return self._registry

    def _module(
        self, request: Request, display_name: str | None, file: str | None, *,
        are_checked: bool = False,
    ) -> ModuleType:
        registry = self._registry_for(request.nodes, are_checked)
        if not request.files:
            raise SchemaError("the request names no file")
        node = registry.node(request.files[0].id)
        if not isinstance(node.body, FileBody):
            raise SchemaError(f"@0x{node.id:016x} is requested as a file, but is none")
        name = display_name or registries.module_name_of(node.display_name)
        registry.module_names.setdefault(node.id, registries.module_name_of(name))
        return schema_module(name, registry, node, file)


class SchemaLoader:
    """Takes schemas in node by node, as messages of schema.capnp's `Node`: from a peer, or a file.

    A node may name others that come later; it is an error only to use what is not there.
    """

    def __init__(self) -> None:
        self._registry = registries.Registry()

    def load(self, node: StructReader) -> Schema:
        """Take a node in, and give its schema.

        Raises:
            SchemaError: the node contradicts itself, or one of the same id that is here.
            DecodeError: its message is malformed.
        """
        from capnwire.message.nodes import read_node
        from capnwire.message.reflection import schema_for

        model = read_node(node)
        self._registry.add([model])
        return schema_for(self._registry, model)

    def load_dynamic(self, node: StructReader) -> Schema:
        """As `load`."""
        return self.load(node)

    def get(self, id: int) -> Schema:
        """The schema of an id.

        Raises:
            SchemaError: no node of this id was loaded.
        """
        from capnwire.message.reflection import schema_for

        return schema_for(self._registry, self._registry.node(id))


def _schema_capnp() -> Request:
    from capnwire.compiler.cache import compile_cached
    from capnwire.compiler.files import BUNDLED_DIRECTORY

    path = os.path.join(BUNDLED_DIRECTORY, "capnp", "schema.capnp")
    return compile_cached(path, src_prefixes=(BUNDLED_DIRECTORY,))[0]


registries.schema_source = _schema_capnp
