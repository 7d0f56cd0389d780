"""The public objects that stand for declarations: schema modules, struct classes, enums, lists.

They are made when a module's attribute is first asked for.
"""

from __future__ import annotations

from types import ModuleType

from capnwire._any import any_root, service_module
from capnwire._info import (
    EnumInfo,
    EnumValue,
    InterfaceInfo,
    ListInfo,
    StructInfo,
    make_struct_type,
)
from capnwire.errors import SchemaError
from capnwire.schema.model import (
    AnnotationBody,
    ConstBody,
    EnumBody,
    InterfaceBody,
    Node,
    StructBody,
    Type,
    Value,
)
from capnwire.schema.registry import (
    BrandKey,
    Registry,
    TypeKey,
    qualified_name,
    registry_with,
    segment_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from capnwire.message.reflection import StructSchema

__all__ = [
    "AnnotationType",
    "EnumType",
    "InterfaceType",
    "branded",
    "declaration",
    "list_of",
    "schema_module",
    "value_of",
]


def schema_module(
    name: str, registry: Registry, node: Node, file: str | None = None
) -> ModuleType:
    """The module of a loaded schema file: its declarations are attributes.

    A plain module without `__getattr__`: CPython then reads its attributes several times as fast.
    """
    from capnwire.message.reflection import Schema

    module = ModuleType(name, f"The declarations of {node.display_name}.")
    names = []
    for nested, id in node.nested or ():
        if id in registry.nodes:
            value = declaration(registry, registry.node(id))
            module.__dict__[nested] = value
            if not isinstance(value, AnnotationType):
                names.append(nested)
    module.__dict__.update(
        _registry=registry, _node=node, __file__=file, __all__=names, schema=Schema(registry, node)
    )
    return module


class EnumType:
    """An enum: its values are attributes; `Color("red")` and `Color(2)` look values up."""

    _info: EnumInfo
    _registry: Registry

    def __init__(self, info: EnumInfo, registry: Registry) -> None:
        self.__dict__.update(_info=info, _registry=registry, __name__=info.name.rpartition(".")[2])

    def __getattr__(self, name: str) -> EnumValue:
        value: EnumValue | None = self._info.by_name.get(name)
        if value is None:
            raise AttributeError(f"enum {self._info.name} has no value {name!r}")
        return value

    def __getitem__(self, name: str) -> EnumValue:
        """The value of a name, also of one that is named like an attribute of this class."""
        value: EnumValue = self._info.by_name[name]
        return value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"enum {self._info.name} cannot be changed")

    def __call__(self, value: object) -> EnumValue:
        """The value of a name or a number (known or not).

        Raises:
            ValueError: there is no value of this name, or the number is not one of 16 bits.
        """
        if isinstance(value, str):
            if value not in self._info.by_name:
                raise ValueError(f"enum {self._info.name} has no value {value!r}")
            found: EnumValue = self._info.by_name[value]
            return found
        number = int(value)  # type: ignore[call-overload]
        if not 0 <= number <= 0xFFFF:
            raise ValueError(f"an enum value is 0 to 65535, not {number}")
        known: EnumValue = self._info.value(number)
        return known

    @property
    def schema(self) -> object:
        """The schema of the enum."""
        from capnwire.message.reflection import EnumSchema

        return EnumSchema(self._registry, self._info)

    def __iter__(self) -> Iterator[EnumValue]:
        return iter(self._info.values)

    def __len__(self) -> int:
        return len(self._info.values)

    def __contains__(self, value: object) -> bool:
        return value in self._info.values

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._info.by_name})

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_declaration, (self._info.node.id,)

    def __repr__(self) -> str:
        return f"<enum {self._info.name}>"


class InterfaceType:
    """An interface: its nested declarations are attributes, and so are `Server`, the base class of
    what implements it, and `Client`, the class of references to such objects.
    """

    Server: type
    Client: type

    def __init__(self, info: InterfaceInfo, registry: Registry) -> None:
        self._info, self._registry = info, registry
        self.__name__ = info.name.rpartition(".")[2]

    def __getattr__(self, name: str) -> type:
        if name not in ("Server", "Client"):
            raise AttributeError(f"an interface has no declaration {name!r}")
        service = service_module()
        make = service.server_class if name == "Server" else service.client_class
        made: type = make(self._info)
        return made

    @property
    def schema(self) -> object:
        """The schema of the interface."""
        from capnwire.message.reflection import InterfaceSchema

        return InterfaceSchema(self._registry, self._info)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_declaration, (self._info.node.id, self._info.scope[1][2])

    def __repr__(self) -> str:
        return f"<interface {self._info.name}>"


class AnnotationType:
    """An annotation's declaration; there is nothing to do with it but to look at its node."""

    def __init__(self, registry: Registry, node: Node) -> None:
        self._registry, self._node = registry, node
        self.__name__ = node.name

    @property
    def schema(self) -> object:
        """The schema of the annotation."""
        from capnwire.message.reflection import Schema

        return Schema(self._registry, self._node)

    def __repr__(self) -> str:
        return f"<annotation {qualified_name(self._node)}>"


def declaration(registry: Registry, node: Node, brand: BrandKey = ()) -> object:
    """What stands for a declaration: a struct class, enum, interface or constant's value."""
    body = node.body
    if isinstance(body, StructBody):
        return struct_class(registry, registry.struct_info(node.id, brand))
    if isinstance(body, EnumBody):
        enum = registry.info(("enum", node.id))
        assert isinstance(enum, EnumInfo)
        with registry._lock:
            if enum.type is None:
                enum.set_type(EnumType(enum, registry))
            return enum.type
    if isinstance(body, InterfaceBody):
        interface = registry.info(("interface", node.id, brand))
        assert isinstance(interface, InterfaceInfo)
        with registry._lock:
            if interface.type is None:
                interface.type = InterfaceType(interface, registry)
                _attach_nested(registry, interface.type, node, brand)
            return interface.type
    if isinstance(body, ConstBody):
        return value_of(registry, body.type, body.value)
    if isinstance(body, AnnotationBody):
        return AnnotationType(registry, node)
    raise SchemaError(f"{node.display_name} is a file, not a declaration")


def struct_class(registry: Registry, info: StructInfo) -> type:
    """`Person`: made with its nested declarations and the classes of its groups."""
    with registry._lock:
        if info.type is None:
            kind = make_struct_type(info, info.name, registry.module_name(info.node))
            for label in ("Reader", "Builder"):
                setattr(kind, label, _Late(info, label))
            kind.schema = _SchemaOf(info)  # type: ignore[attr-defined]
            _attach_nested(registry, kind, info.node, info.scope[1][2])
        made: type = info.type
        return made


class _Late:
    """`Person.Reader` until it is first asked for: then the struct's field table is filled."""

    def __init__(self, info: StructInfo, label: str) -> None:
        self._info, self._label = info, label

    def __get__(self, instance: object, owner: type) -> type:
        self._info.ensure()
        made: type = getattr(self._info, self._label)
        return made


class _SchemaOf:
    """`Person.schema` and `message.schema`: made when first asked for."""

    def __init__(self, info: StructInfo) -> None:
        self._info = info
        self._schema: StructSchema | None = None

    def __get__(self, instance: object, owner: type) -> StructSchema:
        if self._schema is None:
            from capnwire.message.reflection import StructSchema

            self._schema = StructSchema(self._info.scope[0], self._info)
        return self._schema


def _attach_nested(registry: Registry, holder: object, node: Node, brand: BrandKey) -> None:
    for name, id in node.nested or ():
        nested = registry.nodes.get(id)
        if nested is not None:
            inner = declaration(registry, nested, brand if nested.is_generic else ())
            _attach(holder, name, inner)
    if isinstance(node.body, StructBody):
        for name, id in node.body.groups:
            group = struct_class(registry, registry.struct_info(id, brand))
            _attach(holder, name[:1].upper() + name[1:], group)


def _attach(holder: object, name: str, value: object) -> None:
    """Make a declaration an attribute, unless it is named like a method, or like `Reader`.

    `schema.get_nested(name)` reaches it all the same.
    """
    if not hasattr(type(holder) if isinstance(holder, InterfaceType) else holder, name):
        setattr(holder, name, value)


_POINTER_KEYS = (
    "struct", "list", "anyPointer", "anyStruct", "anyList", "interface", "capability",
)


def value_of(registry: Registry, type: Type, value: Value, brand: BrandKey = ()) -> object:
    """The Python value of a constant or annotation: a scalar, str, bytes, enum value or reader."""
    key = registry.close(type, brand)
    kind = key[0]
    if kind == "enum":
        info = registry.info(key)
        assert isinstance(info, EnumInfo)
        return info.value(int(value.value or 0))  # type: ignore[call-overload]
    if kind == "void":
        return None
    if kind == "text":
        return (value.value or b"").decode("utf-8", "surrogateescape")  # type: ignore[attr-defined]
    if kind == "data":
        return value.value or b""
    if kind not in _POINTER_KEYS:
        return value.value
    root = any_root([segment_of(value) or b"\0" * 8])
    if kind == "struct":
        return root.as_struct(struct_class(registry, registry.info(key)))  # type: ignore[arg-type]
    return root.as_list(registry.info(key)) if kind == "list" else root


class Scalar:
    """A type without a declaration, to name element types and brand bindings with."""

    def __init__(self, name: str, kind: str) -> None:
        self.__name__, self._key = name, (kind,)

    def __repr__(self) -> str:
        return f"<capnwire type {self.__name__}>"


def key_of(type: object) -> tuple[Registry | None, TypeKey]:
    """The registry and key of anything that names a type."""
    if isinstance(type, Scalar):
        return None, type._key
    info = type if isinstance(type, ListInfo) else getattr(type, "_info", None)
    if isinstance(info, (StructInfo, EnumInfo, InterfaceInfo)):
        scope: tuple[Registry, TypeKey] = info.scope
        return scope
    if isinstance(info, ListInfo):
        inner = info.element_info
        if inner is None:
            return None, ("list", (info.element_kind,))
        registry, key = key_of(_InfoHolder(inner))
        return registry, ("list", key)
    raise TypeError(f"a type of a schema or of capnwire.types is wanted, not {type!r}")


class _InfoHolder:
    def __init__(self, info: object) -> None:
        self._info = info


def list_of(element: object) -> ListInfo:
    """The list type of elements of a struct class, enum, list type or one of `capnwire.types`."""
    registry, key = key_of(element)
    info = getattr(element, "_info", None)
    if isinstance(element, ListInfo):
        return ListInfo("list", element)
    if registry is not None:
        found = registry.info(("list", key))
        assert isinstance(found, ListInfo)
        return found
    return ListInfo(key[0], info)


def branded(kind: type, arguments: object) -> type:
    """`Box[Text]`: a generic struct with its own parameters bound.

    Raises:
        TypeError: the struct is not generic, or takes another number of parameters.
    """
    info: StructInfo = kind._info  # type: ignore[attr-defined]
    given = arguments if isinstance(arguments, tuple) else (arguments,)
    registry, key = info.scope
    wanted = info.node.parameters or []
    if len(given) != len(wanted):
        raise TypeError(f"{info.name} takes {len(wanted)} type parameters, not {len(given)}")
    bound = tuple(key_of(argument)[1] for argument in given)
    for binding in bound:
        if binding[0] not in ("text", "data", "list", "struct", "interface", "anyPointer"):
            raise TypeError("only pointer types can be bound to type parameters")
    outer = tuple(entry for entry in key[2] if entry[0] != info.node.id)
    brand = tuple(sorted((*outer, (info.node.id, bound)), key=lambda entry: entry[0]))
    return struct_class(registry, registry.struct_info(info.node.id, brand))


def _restore_declaration(id: int, brand: BrandKey = ()) -> object:
    registry = registry_with(id)
    return declaration(registry, registry.node(id), brand)


Registry.class_maker = staticmethod(struct_class)
