"""From nodes to types: one registry holds the nodes of loaded schemas and the types made of them.

A type is closed over its brand: `struct_info(id, brand)` gives one `StructInfo` for each struct and
set of bindings.  Types are described by keys, plain tuples such as `("list", ("struct", 0x…, ()))`,
so that equal types are found again.  Field tables are filled when a type is first used.
"""

from __future__ import annotations

from _thread import RLock

from capnwire._info import EnumInfo, Face, InterfaceInfo, ListInfo, StructInfo
from capnwire.errors import SchemaError
from capnwire.schema.model import (
    NO_DISCRIMINANT,
    PRIMITIVE_BITS,
    Brand,
    EnumBody,
    Field,
    InterfaceBody,
    Node,
    StructBody,
    Type,
    Value,
)
from capnwire.schema.validate import validate_group, validate_node

__all__ = ["DEFAULT", "BrandKey", "Registry", "TypeKey", "registry_for", "registry_with"]

TYPE_CHECKING = False  # importing typing would take as long as loading a schema does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from capnwire.schema.model import Request

    TypeKey = tuple[Any, ...]
    BrandKey = tuple[Any, ...]
else:
    TypeKey = BrandKey = tuple

# TypeKey: ("text",) | ("list", key) | ("struct", id, brand) | ("enum", id) | …
# BrandKey: ((scope id, (key or None, …)), …), sorted by scope id

ANY = ("anyPointer",)
_ANY_KINDS = {
    "anyKind": "anyPointer", "struct": "anyStruct", "list": "anyList", "capability": "capability",
}
MOST_TUPLES = 512     # of a key: a generic type may nest itself in ever new ones
_MASKS = {
    kind: (1 << bits) - 1
    for kind, bits in PRIMITIVE_BITS.items()
    if bits and not kind.startswith("float")
}


class Registry:
    """The nodes of some schemas by id, and the types made of them.

    With `keeps_bytes`, Text need not be UTF-8: other bytes are read and stored as the surrogates of
    PEP 383, so that tools carry them on.
    """

    class_maker: Callable[[Registry, StructInfo], type] | None = None
    """Set by the message layer: makes a struct's public class with its nested declarations."""

    face: Face | None = None
    """Whose types are made: None stands for the native API."""

    client_maker: Callable[[InterfaceInfo], type] | None = None
    """Set for a face: makes the class of an interface's clients."""

    def __init__(self, *, keeps_bytes: bool = False) -> None:
        self.nodes: dict[int, Node] = {}
        self._infos: dict[TypeKey, StructInfo | EnumInfo | ListInfo | InterfaceInfo] = {}
        self._lock = RLock()
        self.module_names: dict[int, str] = {}
        self.node_readers: dict[int, object] = {}
        self._keeps_bytes = keeps_bytes

    # ------------------------------------------------------------ nodes

    def conflicts(self, nodes: list[Node]) -> bool:
        """Whether a node is known here under the same id with other contents."""
        return any(
            (known := self.nodes.get(node.id)) is not None and not same_meaning(known, node)
            for node in nodes
        )

    def add(self, nodes: list[Node], *, are_checked: bool = False) -> None:
        """Take nodes in, all or none; they are checked first, unless that was done before.

        Raises:
            SchemaError: a node contradicts itself or one that is here.
        """
        if not are_checked:
            for node in nodes:
                validate_node(node)
        with self._lock:
            if self.conflicts(nodes):
                raise SchemaError("a node of this id with other contents was added before")
            for node in nodes:
                self.nodes.setdefault(node.id, node)

    def accept(self, nodes: list[Node], *, are_checked: bool = False) -> bool:
        """Take nodes in unless they contradict what is here; says whether they were taken."""
        with self._lock:
            if self.conflicts(nodes):
                return False
            self.add(nodes, are_checked=are_checked)
            return True

    def node(self, id: int) -> Node:
        """The node of an id.

        Raises:
            SchemaError: it was not loaded.
        """
        try:
            return self.nodes[id]
        except KeyError:
            raise SchemaError(f"no node with id @0x{id:016x} is loaded") from None

    def file_of(self, node: Node) -> Node:
        """The file node that a node is declared in (itself, when it is one)."""
        seen = 0
        while node.scope_id and seen < 1000:
            node, seen = self.node(node.scope_id), seen + 1
        return node

    # ------------------------------------------------------------ types

    def close(self, type: Type, brand: BrandKey) -> TypeKey:
        """The key of a type as it is written in a scope whose parameters `brand` binds."""
        kind = type.kind
        if kind == "list":
            assert type.element is not None
            return ("list", self.close(type.element, brand))
        if kind in ("struct", "interface"):
            return (kind, type.type_id, self.close_brand(type.brand, brand))
        if kind == "enum":
            return ("enum", type.type_id)
        if kind != "anyPointer":
            return (kind,)
        if type.any_kind == "parameter":
            for scope_id, bindings in brand:
                if scope_id == type.scope_id:
                    if type.parameter_index < len(bindings):
                        return bindings[type.parameter_index] or ANY
                    return ANY
            return ANY
        return (_ANY_KINDS.get(type.any_kind, "anyPointer"),)

    def close_brand(self, brand: Brand | None, outer: BrandKey) -> BrandKey:
        """The bindings that a brand names, with the enclosing ones put in for what it inherits."""
        if brand is None:
            return ()
        closed = []
        for scope in brand.scopes:
            if scope.bindings is None:
                closed += [entry for entry in outer if entry[0] == scope.scope_id]
            else:
                bound = tuple(
                    None if binding.type is None else self.close(binding.type, outer)
                    for binding in scope.bindings
                )
                closed.append((scope.scope_id, bound))
        return tuple(sorted(closed, key=lambda entry: entry[0]))

    def info(self, key: TypeKey) -> StructInfo | EnumInfo | ListInfo | InterfaceInfo | None:
        """What the compiled face needs of a type; None for scalars, Text, Data and AnyPointer."""
        if len(key) == 1:
            return None
        found = self._infos.get(key)
        if found is None:
            with self._lock:
                found = self._infos.get(key)
                if found is None:
                    found = self._infos[key] = self._make(key)
        return found

    def struct_info(self, id: int, brand: BrandKey = ()) -> StructInfo:
        """The info of a struct or group; see `info`."""
        info = self.info(("struct", id, brand))
        assert isinstance(info, StructInfo)
        return info

    def _make(self, key: TypeKey) -> StructInfo | EnumInfo | ListInfo | InterfaceInfo:
        kind = key[0]
        if tuples_in(key) > MOST_TUPLES:
            raise SchemaError(
                f"{self.node(key[1]).display_name if kind != 'list' else 'List'} is bound to too "
                "many types, one within the other"
            )
        if kind == "list":
            return ListInfo(key[1][0], self.info(key[1]), self.face, self._keeps_bytes)
        node = self.node(key[1])
        if kind == "enum":
            if not isinstance(node.body, EnumBody):
                raise SchemaError(f"{node.display_name} is used as an enum, but is none")
            enum = EnumInfo(
                qualified_name(node), node, [entry.name for entry in node.body.enumerants],
                face=self.face,
            )
            enum.scope = (self, key)
            return enum
        if kind == "interface":
            if not isinstance(node.body, InterfaceBody):
                raise SchemaError(f"{node.display_name} is used as an interface, but is none")
            return InterfaceInfo(qualified_name(node), node, (self, key))
        if not isinstance(node.body, StructBody):
            raise SchemaError(f"{node.display_name} is used as a struct, but is none")
        return StructInfo(
            qualified_name(node), node, (self, key), self.complete, node.body.is_group, self.face
        )

    def complete(self, info: StructInfo) -> None:
        """Fill a struct's field table; called by the compiled face on first use."""
        with self._lock:
            if info.Reader is not None:
                return
            if info.type is None and self.face is None and Registry.class_maker is not None:
                Registry.class_maker(self, info)
            node: Node = info.node
            brand: BrandKey = info.scope[1][2]
            fields = [
                self._record(node, field, brand) for field in node.body.fields or ()  # type: ignore[union-attr]
            ]
            info.define(
                info.name, self.module_name(node), fields, node.body.discriminant_offset,  # type: ignore[union-attr]
                self._keeps_bytes,
            )

    def module_name(self, node: Node) -> str:
        """The Python name of the module that a node's file was loaded as."""
        try:
            file = self.file_of(node)
        except SchemaError:
            return "capnwire.schemas"
        return self.module_names.get(file.id) or module_name_of(file.display_name)

    def _record(self, node: Node, field: Field, brand: BrandKey) -> tuple[Any, ...]:
        """(name, kind, offset, mask, sub, default, discriminant), as `define` wants it."""
        discriminant = (
            None if field.discriminant_value == NO_DISCRIMINANT else field.discriminant_value
        )
        if field.type is None:
            group = self.info(("struct", field.group_id, brand))
            assert isinstance(group, StructInfo)
            validate_group(self, node, field, group.node)
            return (field.name, "group", 0, 0, group, None, discriminant)
        key = self.close(field.type, brand)
        default = None
        if key[0] not in PRIMITIVE_BITS and field.default_value is not None:
            default = segment_of(field.default_value)
        return (
            field.name, key[0], field.offset, mask_of(field.default_value), self.info(key), default,
            discriminant,
        )


def tuples_in(key: TypeKey) -> int:
    """How many tuples a key is made of."""
    count, left = 0, [key]
    while left:
        left += [item for item in left.pop() if type(item) is tuple]
        count += 1
    return count


def same_meaning(left: Node, right: Node) -> bool:
    """Whether two nodes of one id say the same, wherever their files were found."""
    return left is right or (
        left.scope_id == right.scope_id and left.body == right.body
        and left.nested == right.nested and left.parameters == right.parameters
        and left.is_generic == right.is_generic and left.annotations == right.annotations
    )


def qualified_name(node: Node) -> str:
    """`Outer.Inner` of a node: its display name without the file."""
    file, colon, name = node.display_name.rpartition(":")
    return name if colon else node.name


def module_name_of(display_name: str) -> str:
    """A Python name for the module of a file: `dir/foo-bar.capnp` gives `foo_bar_capnp`.

    What is such a name already, within a package too (`pkg.foo_capnp`), stays.
    """
    if display_name.endswith("_capnp") and all(map(str.isidentifier, display_name.split("."))):
        return display_name
    stem = display_name.replace("\\", "/").rpartition("/")[2]
    return "".join(c if c.isalnum() else "_" for c in stem) or "schema"


def mask_of(value: Value | None) -> int:
    """The raw bits of a default in the data section; 0 for pointers."""
    if value is None or not value.value:
        return value.bits if value is not None and value.kind.startswith("float") else 0
    kind = value.kind
    if kind.startswith("float"):
        return value.bits
    mask = _MASKS.get(kind)
    return 0 if mask is None else int(value.value) & mask  # type: ignore[call-overload]


def segment_of(value: Value) -> bytes | None:
    """A pointer default as one segment that starts with the pointer; None when it is null."""
    content = value.value
    if content is None:
        return None
    assert isinstance(content, bytes)
    if value.kind not in ("text", "data"):
        return content
    raw = content + b"\0" if value.kind == "text" else content
    pointer = 1 | (2 << 32) | (len(raw) << 35)
    return pointer.to_bytes(8, "little") + raw + b"\0" * (-len(raw) % 8)


schema_source: Callable[[], Request] | None = None
"""Set by the loader: gives the nodes of the bundled schema.capnp."""

DEFAULT = Registry()
"""Where `capnwire.load` puts schemas that do not contradict one another."""

_others: list[Registry] = []


def registry_for(nodes: list[Node], *, are_checked: bool = False) -> Registry:
    """The first registry whose nodes these do not contradict, with them; a new one if need be."""
    for known in (DEFAULT, *_others):
        if known.accept(nodes, are_checked=are_checked):
            return known
    registry = Registry()
    registry.add(nodes, are_checked=are_checked)
    _others.append(registry)
    return registry


def registry_with(id: int) -> Registry:
    """The registry that knows a node: for pickles, which name types by id.

    Raises:
        SchemaError: no loaded schema has it.
    """
    for registry in (DEFAULT, *reversed(_others)):
        if id in registry.nodes:
            return registry
    raise SchemaError(f"no loaded schema has the id @0x{id:016x}: load it before unpickling")
