"""Loading schemas: `load`, `SchemaParser`, `SchemaLoader`, and the types that pickles name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from capnwire import loader as _schema_source  # noqa: F401 - where schema.capnp comes from
from capnwire._any import any_root
from capnwire._info import ListInfo
from capnwire.errors import KjException, SchemaError
from capnwire.message.nodes import read_node
from capnwire.pycapnp._face import FACE
from capnwire.pycapnp.modules import declared, schema_module
from capnwire.pycapnp.registry import DropInRegistry
from capnwire.pycapnp.schemas import _NodeReader, _Schema
from capnwire.schema.model import EnumBody, InterfaceBody, StructBody

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capnwire.schema.model import Node, Request

__all__ = [
    "SchemaLoader", "SchemaParser", "cleanup_global_schema_parser", "deregister_all_types", "load",
    "register_type",
]

_registries: WeakSet[DropInRegistry] = WeakSet()


class _ModulesById(Mapping[int, Any]):
    """The struct, enum and interface modules of a parser by the ids of their nodes."""

    def __init__(self, parser: SchemaParser) -> None:
        self._parser = parser

    def _nodes(self) -> dict[int, Node]:
        registry = self._parser._registry
        return {} if registry is None else registry.nodes

    def __getitem__(self, id: int) -> Any:
        node = self._nodes()[id]
        if not isinstance(node.body, (StructBody, EnumBody, InterfaceBody)):
            raise KeyError(id)
        registry = self._parser._registry
        assert registry is not None
        return declared(registry, node)

    def __iter__(self) -> Iterator[int]:
        wanted = (StructBody, EnumBody, InterfaceBody)
        return iter([id for id, node in self._nodes().items() if isinstance(node.body, wanted)])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class SchemaParser:
    """Loads schemas whose types are its own, apart from those of other parsers."""

    def __init__(self) -> None:
        self._registry: DropInRegistry | None = None
        self.modules_by_id: Mapping[int, Any] = _ModulesById(self)

    def load(
        self, file_name: str | os.PathLike[str], display_name: str | None = None,
        imports: Sequence[str | os.PathLike[str]] = (),
    ) -> ModuleType:
        """The module of a schema file.

        `imports` are directories for absolute imports; the schemas that come with capnwire are
        found without.  Annotations from files that are not there are left out.

        Raises:
            OSError: there is no such file.
            ValueError: its name does not end in `.capnp`.
            KjException: the schema has errors; the message lists all of them.
        """
        path = os.fspath(file_name)
        if not os.path.isfile(path):
            raise OSError(f"File not found: {path}")
        if not path.endswith(".capnp"):
            raise ValueError(f"File does not end with .capnp, {path}")
        shown = os.path.basename(path) if display_name is None else display_name
        request, is_known = self._parse_disk_file(path, [d for d in imports if os.path.isdir(d)])
        _rename(request, shown)
        registry = self._registry_for(request.nodes, is_known)
        return schema_module(shown, registry, registry.node(request.files[0].id), self, path)

    def _parse_disk_file(
        self, path: str, imports: Sequence[str | os.PathLike[str]]
    ) -> tuple[Request, bool]:
        from capnwire.compiler.cache import compile_cached

        return compile_cached(path, imports, "ignore-annotations")

    def _registry_for(self, nodes: list[Node], are_checked: bool) -> DropInRegistry:
        if self._registry is None or not self._registry.accept(nodes, are_checked=are_checked):
            # First use, or a file that has changed since: what was loaded keeps its own types.
            made = DropInRegistry()
            made.add(nodes, are_checked=are_checked)
            _registries.add(made)
            self._registry = made
        return self._registry


def _rename(request: Request, shown: str) -> None:
    """Give nodes the display names that they have in pycapnp: relative to the loaded file."""
    name = request.files[0].filename
    folder, shown_folder = os.path.dirname(name), os.path.dirname(shown)
    for node in request.nodes:
        file = node.display_name.partition(":")[0]
        if file == name:
            new = shown
        elif folder and file.startswith(folder + "/"):
            new = os.path.join(shown_folder, file[len(folder) + 1 :])
        else:
            continue
        node.display_name = new + node.display_name[len(file) :]
        node.display_name_prefix_length += len(new) - len(file)


_global_schema_parser: SchemaParser | None = None


def _parser() -> SchemaParser:
    global _global_schema_parser
    if _global_schema_parser is None:
        _global_schema_parser = SchemaParser()
    return _global_schema_parser


def load(
    file_name: str | os.PathLike[str], display_name: str | None = None,
    imports: Sequence[str | os.PathLike[str]] = (),
) -> ModuleType:
    """The module of a schema file, loaded by the parser that all of the process shares."""
    return _parser().load(file_name, display_name, imports)


def cleanup_global_schema_parser() -> None:
    """Forget the shared parser: what is loaded afterwards has types of its own."""
    global _global_schema_parser
    _global_schema_parser = None


class SchemaLoader:
    """Types of nodes that come one by one, from schema objects or as messages."""

    def __init__(self) -> None:
        self._registry = DropInRegistry()
        _registries.add(self._registry)

    def load(self, reader: _NodeReader) -> _Schema:
        """Take in the node that `schema.get_proto()` gives."""
        return self._add(reader._node)

    def load_dynamic(self, reader: Any) -> _Schema:
        """Take in a node that is a message of schema.capnp's `Node`."""
        return self._add(read_node(reader))

    def _add(self, node: Node) -> _Schema:
        self._registry.add([node])
        return _Schema(self._registry, node)

    def get(self, id_: int) -> _Schema:
        """The schema of a node that was taken in.

        Raises:
            KjException: there is none of this id.
        """
        return _Schema(self._registry, self._registry.node(id_))


def registry_with(id: int) -> DropInRegistry:
    """The registry that knows a node: the shared parser's, or another one.

    Raises:
        KjException: no loaded schema has it.
    """
    shared = None if _global_schema_parser is None else _global_schema_parser._registry
    if shared is not None and id in shared.nodes:
        return shared
    for registry in list(_registries):
        if id in registry.nodes:
            return registry
    raise SchemaError(f"no loaded schema has the id @0x{id:016x}: load it before unpickling")


def _struct_reducer(schema_id: int, data: bytes) -> Any:
    """What a pickled struct comes back by."""
    registry = registry_with(schema_id)
    module = declared(registry, registry.node(schema_id))
    return module.from_bytes(data, traversal_limit_in_words=2**61)


def _list_reducer(key: tuple[Any, ...], segments: list[bytes]) -> Any:
    """What a pickled list comes back by."""
    return any_root(segments).as_list(_list_info(key))


def _list_info(key: tuple[Any, ...]) -> ListInfo:
    element = key[1]
    if element[0] == "list":
        return ListInfo("list", _list_info(element), FACE)
    if len(element) == 1:
        return ListInfo(element[0], None, FACE)
    found = registry_with(element[1]).info(("list", element))
    assert isinstance(found, ListInfo)
    return found


def register_type(id: int, klass: Any) -> None:
    """Refused: pycapnp wraps structs of generated classes, which are not needed here."""
    raise KjException("register_type is for classes that capnpc-cython makes: not needed here")


def deregister_all_types() -> None:
    """Nothing, as there are no registered types."""


