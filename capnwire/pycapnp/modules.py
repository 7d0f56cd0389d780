"""What stands for the declarations of a schema: struct, enum and interface modules."""

from __future__ import annotations

import enum
from types import ModuleType
from typing import TYPE_CHECKING, Any

from capnwire._any import any_root
from capnwire._info import EnumInfo, InterfaceInfo, ListInfo, StructInfo
from capnwire.message.types import Scalar, value_of
from capnwire.pycapnp import _face
from capnwire.schema.model import (
    AnnotationBody,
    ConstBody,
    EnumBody,
    InterfaceBody,
    StructBody,
)
from capnwire.schema.registry import segment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Literal, overload

    from capnwire.pycapnp._face import _DynamicStructBuilder, _DynamicStructReader
    from capnwire.pycapnp.registry import DropInRegistry
    from capnwire.schema.model import Node, Type, Value
    from capnwire.schema.registry import BrandKey

__all__ = [
    "_EnumModule", "_InterfaceModule", "_StructModule", "_StructModuleWhich", "declared",
    "module_of", "schema_module",
]


class _Module:
    """A declaration: its nested declarations are attributes, made when first asked for."""

    _info: Any

    @property
    def _registry(self) -> DropInRegistry:
        registry: DropInRegistry = self._info.scope[0]
        return registry

    @property
    def schema(self) -> Any:
        """The schema of the declaration."""
        found = self.__dict__.get("schema")
        if found is None:
            from capnwire.pycapnp.schemas import schema_of

            found = self.__dict__["schema"] = schema_of(self._info)
        return found

    @property
    def _nodeSchema(self) -> Any:
        from capnwire.pycapnp.schemas import _ParsedSchema

        return _ParsedSchema(self._registry, self._info.node)

    @property
    def _nodeProto(self) -> Any:
        return self._nodeSchema.get_proto()

    def __getattr__(self, name: str) -> Any:
        found = self._find(name)
        if found is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        self.__dict__[name] = found
        return found

    def _find(self, name: str) -> Any:
        registry = self._registry
        for nested, id in self._info.node.nested or ():
            if nested == name and id in registry.nodes:
                node = registry.node(id)
                brand = self._info.scope[1][2] if node.is_generic else ()
                return declared(registry, node, brand)
        return None

    def _names(self) -> list[str]:
        return [name for name, id in self._info.node.nested or () if id in self._registry.nodes]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._names()})

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_module, (self._info.node.id,)


def _restore_module(id: int) -> object:
    from capnwire.pycapnp.parser import registry_with

    registry = registry_with(id)
    return declared(registry, registry.node(id))


class _StructModuleWhich(enum.Enum):
    """The members of a union; they compare with discriminants and with names."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other in (self.name, self._field_name)
        if isinstance(other, _StructModuleWhich):
            return bool(self.value == other.value)
        return bool(other == self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    @property
    def _field_name(self) -> str:
        return self.name[:1].lower() + self.name[1:]


def _which_enum(schema_of: Any, names: list[tuple[str, int]]) -> Any:
    factory: Any = _StructModuleWhich
    made: Any = factory("StructModuleWhich", names)
    made.schema = schema_of
    return made


class _StructModule(_Module):
    """A struct: call it, or `new_message()`, for a builder; `from_bytes()` and others read."""

    def __init__(self, schema: Any, name: str | None = None, *_: object) -> None:
        info = getattr(schema, "_info", schema)
        self.__dict__["_info"] = info
        self.__dict__.update(_face.class_functions(info))

    def __call__(self, *args: Any, **kwargs: Any) -> _DynamicStructBuilder:
        return self.new_message(*args, **kwargs)

    if TYPE_CHECKING:  # what `class_functions` gives

        def new_message(
            self, num_first_segment_words: int | None = None,
            allocate_seg_callable: Callable[[int], Any] | None = None, **kwargs: Any,
        ) -> _DynamicStructBuilder: ...

        @overload
        def from_bytes(
            self, buf: Any, traversal_limit_in_words: int | None = None,
            nesting_limit: int | None = None, builder: Literal[False] = False,
        ) -> _DynamicStructReader: ...

        @overload
        def from_bytes(
            self, buf: Any, traversal_limit_in_words: int | None = None,
            nesting_limit: int | None = None, *, builder: Literal[True],
        ) -> _DynamicStructBuilder: ...

        def from_bytes(self, *args: Any, **options: Any) -> Any: ...

        def read_multiple_bytes(
            self, buf: Any, traversal_limit_in_words: int | None = None,
            nesting_limit: int | None = None,
        ) -> Iterator[_DynamicStructReader]: ...

    @property
    def Reader(self) -> type:
        """The class of this struct's readers, for `isinstance`."""
        self._info.ensure()
        made: type = self._info.Reader
        return made

    @property
    def Builder(self) -> type:
        """The class of this struct's builders, for `isinstance`."""
        self._info.ensure()
        made: type = self._info.Builder
        return made

    def _find(self, name: str) -> Any:
        found = super()._find(name)
        if found is not None:
            return found
        body = self._info.node.body
        fields = body.fields or ()
        if name == "Union" and body.discriminant_count:
            if all(field.discriminant_value != 0xFFFF for field in fields):
                return _which_enum(self.schema, _members(fields, capital=True))
            return None
        for field in fields:
            if field.type is None and field.name[:1].upper() + field.name[1:] == name:
                return self._group(field)
        return None

    def _group(self, field: Any) -> Any:
        registry = self._registry
        info = registry.struct_info(field.group_id, self._info.scope[1][2])
        if info.node.body.discriminant_count:
            from capnwire.pycapnp.schemas import schema_of

            return _which_enum(schema_of(info), _members(info.node.body.fields, capital=False))
        return registry.module_of(info)

    def _names(self) -> list[str]:
        groups = [
            field.name[:1].upper() + field.name[1:]
            for field in self._info.node.body.fields or () if field.type is None
        ]
        return [*super()._names(), *groups]

    # The rest runs once a message.

    def from_bytes_packed(
        self, buf: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> _DynamicStructReader:
        """A reader of a packed message."""
        from capnwire.pycapnp import files

        return files.from_bytes_packed(self, buf, traversal_limit_in_words, nesting_limit)

    def from_segments(
        self, segments: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> _DynamicStructReader:
        """A reader over the segments of a message, each a buffer, without a copy."""
        root = any_root(
            segments,
            DEFAULT_LIMIT if traversal_limit_in_words is None else traversal_limit_in_words,
            nesting_limit,
        )
        found: _DynamicStructReader = root.as_struct(self)
        return found

    def read(
        self, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> _DynamicStructReader:
        """A reader of the next message of a file object, socket or file descriptor."""
        from capnwire.pycapnp import files

        return files.read(self, file, traversal_limit_in_words, nesting_limit)

    def read_packed(
        self, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> _DynamicStructReader:
        """As `read`, for packed messages; it never takes bytes of the message after."""
        from capnwire.pycapnp import files

        return files.read_packed(self, file, traversal_limit_in_words, nesting_limit)

    def read_multiple(
        self, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None, skip_copy: bool = False,
    ) -> Iterator[_DynamicStructReader]:
        """An iterator of readers; a truncated last message warns and ends it."""
        from capnwire.pycapnp import files

        return files.read_multiple(self, file, traversal_limit_in_words, nesting_limit)

    def read_multiple_packed(
        self, file: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None, skip_copy: bool = False,
    ) -> Iterator[_DynamicStructReader]:
        """As `read_multiple`, for packed messages."""
        from capnwire.pycapnp import files

        return files.read_multiple_packed(self, file, traversal_limit_in_words, nesting_limit)

    def read_multiple_bytes_packed(
        self, buf: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> Iterator[_DynamicStructReader]:
        """An iterator of readers over packed messages in a buffer."""
        from capnwire.pycapnp import files

        return files.read_multiple_bytes_packed(
            self, buf, traversal_limit_in_words, nesting_limit
        )

    async def read_async(
        self, stream: Any, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> _DynamicStructReader | None:
        """A reader of the next message of an AsyncIoStream, or None at its end."""
        from capnwire.pycapnp import rpc

        return await rpc.read_async(self, stream, traversal_limit_in_words, nesting_limit)


DEFAULT_LIMIT = 8 * 1024 * 1024


def _members(fields: Any, *, capital: bool) -> list[tuple[str, int]]:
    found = [
        (
            field.name[:1].upper() + field.name[1:] if capital else field.name,
            field.discriminant_value,
        )
        for field in fields if field.discriminant_value != 0xFFFF
    ]
    return sorted(found, key=lambda member: member[1])


class _EnumModule(_Module):
    """An enum: its values are plain numbers."""

    def __init__(self, schema: Any, name: str | None = None) -> None:
        info = getattr(schema, "_info", schema)
        self.__dict__["_info"] = info
        for name, value in info.by_name.items():
            self.__dict__[name] = value.raw


class _InterfaceModule(_Module):
    """An interface: `Server` is the class to derive servers from, `_new_client` serves one here."""

    def __init__(self, schema: Any, name: str | None = None) -> None:
        self.__dict__["_info"] = getattr(schema, "_info", schema)

    @property
    def Server(self) -> type:
        """The base class of servers of this interface."""
        from capnwire.pycapnp import rpc

        found: type = rpc.server_class(self)
        self.__dict__["Server"] = found
        return found

    def _new_client(self, server: object) -> Any:
        from capnwire.pycapnp import rpc

        return rpc.new_client(self, server)


def module_of(registry: DropInRegistry, info: StructInfo | EnumInfo | InterfaceInfo) -> Any:
    """The module of a struct, enum or interface: one for each type."""
    with registry._lock:
        if info.type is None:
            if isinstance(info, StructInfo):
                info.set_type(_StructModule(info))
            elif isinstance(info, EnumInfo):
                info.set_type(_EnumModule(info))
            else:
                info.type = _InterfaceModule(info)
        return info.type


def declared(registry: DropInRegistry, node: Node, brand: BrandKey = ()) -> Any:
    """What a module has for a declaration; None for annotations and files."""
    body = node.body
    if isinstance(body, StructBody):
        return module_of(registry, registry.struct_info(node.id, brand))
    if isinstance(body, EnumBody):
        return module_of(registry, registry.info(("enum", node.id)))  # type: ignore[arg-type]
    if isinstance(body, InterfaceBody):
        info = registry.info(("interface", node.id, brand))
        return module_of(registry, info)  # type: ignore[arg-type]
    if isinstance(body, ConstBody):
        return constant(registry, body.type, body.value)
    assert isinstance(body, AnnotationBody) or body is not None
    return None


def constant(registry: DropInRegistry, type: Type, value: Value) -> Any:
    """The Python value of a constant."""
    key = registry.close(type, ())
    kind = key[0]
    if kind not in ("struct", "list", "anyPointer", "interface"):
        return value_of(registry, type, value)
    root = any_root([segment_of(value) or b"\0" * 8])
    if kind == "struct":
        return root.as_struct(registry.module_of(registry.info(key)))  # type: ignore[arg-type]
    return root.as_list(registry.info(key)) if kind == "list" else root


def schema_module(
    name: str, registry: DropInRegistry, node: Node, parser: object, file: str | None
) -> ModuleType:
    """The module of a loaded file."""
    from capnwire.pycapnp.schemas import _ParsedSchema

    module = ModuleType(name)
    schema = _ParsedSchema(registry, node)
    module.__dict__.update(
        _parser=parser, _nodeSchema=schema, schema=schema, __file__=file,
        __path__=[file.rpartition("/")[0]] if file else [],
    )
    for nested, id in node.nested or ():
        if id in registry.nodes:
            found = registry.node(id)
            if not isinstance(found.body, AnnotationBody):
                module.__dict__[nested] = declared(registry, found)
    module.__dict__["_nodeProto"] = schema.get_proto()
    return module


class _SchemaType(Scalar):
    """A type without a declaration: `capnp.types.UInt16`."""


class _Type:
    """Kept for its name."""


def list_info(element: Any) -> ListInfo:
    """The list type of an element: a module, a schema, a list schema or one of `capnp.types`."""
    if isinstance(element, Scalar):
        return ListInfo(element._key[0], None, _face.FACE)
    info = getattr(element, "_info", element)
    if isinstance(info, ListInfo):
        return ListInfo("list", info, _face.FACE)
    for kind, wanted in (("struct", StructInfo), ("enum", EnumInfo), ("interface", InterfaceInfo)):
        if isinstance(info, wanted):
            found = info.scope[0].info(("list", info.scope[1]))
            assert isinstance(found, ListInfo), kind
            return found
    raise TypeError(f"a schema, a module or one of capnp.types is wanted, not {element!r}")
