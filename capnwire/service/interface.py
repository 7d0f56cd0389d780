"""From an interface's schema to its classes: clients to call with, servers to derive from."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from capnwire.errors import SchemaError
from capnwire.schema.model import InterfaceBody, StructBody
from capnwire.service.client import Capability, ClientMethod
from capnwire.service.method import Method
from capnwire.service.server import CONTEXT, PARAMS, ServerMethod

if TYPE_CHECKING:
    from capnwire._info import InterfaceInfo, StructInfo
    from capnwire.schema.registry import Registry

__all__ = ["Server", "client_class", "methods_of", "server_class"]

STREAM_RESULT = 0x995F9A3377C0B16E
_CAPABILITIES = ("interface", "anyPointer", "anyStruct", "anyList", "capability")


def methods_of(
    info: InterfaceInfo, *, with_streams: bool = True
) -> dict[int, tuple[Method, ...]]:
    """The methods of an interface and of all that it extends, by the interfaces' ids.

    The interface itself comes first, the others follow depth first.  Without streams, calls of
    `-> stream` methods are as any other: they end when they are answered.
    """
    found: dict[int, tuple[Method, ...]] = {}
    registry, key = info.scope
    pending = [(key[1], key[2])]
    while pending:
        id, brand = pending.pop()
        if id in found:
            continue
        node = registry.node(id)
        body = node.body
        if not isinstance(body, InterfaceBody):
            raise SchemaError(f"{node.display_name} is extended, but is no interface")
        found[id] = tuple(
            _method(registry, node, number, method, brand, with_streams)
            for number, method in enumerate(body.methods)
        )
        pending += [
            (extended.id, registry.close_brand(extended.brand, brand))
            for extended in reversed(body.superclasses)
        ]
    return found


def _method(
    registry: Registry, node: Any, number: int, method: Any, brand: Any, with_streams: bool
) -> Method:
    params = registry.struct_info(
        method.param_struct_type, registry.close_brand(method.param_brand, brand)
    )
    results = registry.struct_info(
        method.result_struct_type, registry.close_brand(method.result_brand, brand)
    )
    return Method(
        method.name, info_name(registry, node), node.id, number, params, results,
        streaming=with_streams and method.result_struct_type == STREAM_RESULT,
        parameter_names=_names(params), result_names=_names(results),
        named_params=params.node.scope_id != 0,
        results_hold_capabilities=_holds_capabilities(registry, results, set()),
    )


def info_name(registry: Registry, node: Any) -> str:
    """The name of an interface without its file."""
    name: str = node.display_name.rpartition(":")[2]
    return name


def _names(info: StructInfo) -> tuple[str, ...]:
    body = info.node.body
    assert isinstance(body, StructBody)
    return tuple(
        field.name for field in sorted(body.fields or (), key=lambda field: field.code_order)
    )


def _holds_capabilities(registry: Registry, info: StructInfo, seen: set[Any]) -> bool:
    """Whether a struct can hold a capability at any depth."""
    key = info.scope[1]
    if key in seen:
        return False
    seen.add(key)
    for field in info.node.body.fields or ():
        kind = ("struct", field.group_id, key[2]) if field.type is None else registry.close(
            field.type, key[2]
        )
        while kind[0] == "list":
            kind = kind[1]
        if kind[0] in _CAPABILITIES:
            return True
        if kind[0] == "struct" and _holds_capabilities(
            registry, registry.info(kind), seen  # type: ignore[arg-type]
        ):
            return True
    return False


def _interface(info: InterfaceInfo) -> Any:
    from capnwire.message.types import declaration

    registry, key = info.scope
    return declaration(registry, info.node, key[2])


# ------------------------------------------------------------------ clients


def client_class(info: InterfaceInfo) -> type:
    """The class of capabilities of an interface: its methods are those of the schema."""
    if info.client is None:
        registry, _ = info.scope
        with registry._lock:
            if info.client is None:
                info.client = (registry.client_maker or _client_class)(info)
    made: type = info.client
    return made


def _client_class(info: InterfaceInfo) -> type:
    registry, _ = info.scope
    methods = methods_of(info)
    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": registry.module_name(info.node),
        "__doc__": f"A reference to an object with the interface {info.name}.",
        "_info": info,
        "_capnwire_interfaces": frozenset(methods),
    }
    for own in methods.values():
        for method in own:
            body.setdefault(method.name, ClientMethod(method))
    return type(info.name.rpartition(".")[2], (Capability,), body)


# ------------------------------------------------------------------ servers


class Server:
    """The ancestor of everything that implements an interface: `class Impl(Calculator.Server)`.

    A method of the schema is a method of the class, plain or `async`, with the parameters of the
    schema by name; `context` (if named so) is the call's `Context`, `params` the struct of all
    parameters.  It returns its only result, a tuple, a dict or a struct of the results, or a reply
    that was not awaited.
    """

    __slots__ = ("__weakref__", "_capnwire_reference")

    _capnwire_interfaces: frozenset[int] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._capnwire_interfaces = frozenset().union(
            *(base.__dict__.get("_capnwire_interfaces", ()) for base in cls.__mro__)
        )

    @classmethod
    def _capnwire_methods(cls) -> dict[int, tuple[ServerMethod | None, ...]]:
        """The methods that the class has, by interface and number."""
        table: dict[int, tuple[ServerMethod | None, ...]] | None
        table = cls.__dict__.get("_capnwire_table")
        if table is None:
            table = {}
            for base in reversed(cls.__mro__):
                info = base.__dict__.get("_info")
                if info is not None:
                    for id, methods in methods_of(info).items():
                        table[id] = tuple(cls._capnwire_method(method) for method in methods)
            cls._capnwire_table = table  # type: ignore[attr-defined]
        return table

    @classmethod
    def _capnwire_method(cls, method: Method) -> ServerMethod | None:
        """How the class implements a method; None when it does not."""
        return _server_method(cls, method)


def server_class(info: InterfaceInfo) -> type:
    """The class that implementations of an interface derive from."""
    if info.server is None:
        registry, _ = info.scope
        with registry._lock:
            if info.server is None:
                name = info.name.rpartition(".")[2]
                info.server = _server_class(name, info, registry)
    made: type = info.server
    return made


def _server_class(name: str, info: InterfaceInfo, registry: Registry) -> type:
    interfaces = frozenset(methods_of(info))

    class Made(Server):
        __slots__ = ()
        __doc__ = f"What implements {info.name} derives from this."
        _info = info
        _capnwire_interfaces = interfaces

        def __init_subclass__(cls, **options: Any) -> None:
            super().__init_subclass__(**options)
            cls._capnwire_methods()  # a wrong signature shows when the class is made

    Made.__name__, Made.__qualname__ = "Server", f"{info.name}.Server"
    Made.__module__ = registry.module_name(info.node)
    return Made


def _server_method(cls: type, method: Method) -> ServerMethod | None:
    found = inspect.getattr_static(cls, method.name, None)
    if found is None:
        return None
    plain = inspect.isfunction(found)
    function = found if plain else getattr(cls, method.name)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise TypeError(f"{cls.__name__}.{method.name} cannot be called as a method") from None
    parameters = list(signature.parameters.values())
    if plain:
        parameters = parameters[1:]
    positional: list[Any] = []
    keywords: list[tuple[str, Any]] = []
    rest = None
    fields = set(method.parameter_names)
    for parameter in parameters:
        what = _argument(cls, method, parameter, fields)
        if parameter.kind is parameter.VAR_KEYWORD:
            taken = {name for name in positional if isinstance(name, str)}
            taken |= {name for _, name in keywords if isinstance(name, str)}
            rest = tuple(name for name in method.parameter_names if name not in taken)
        elif what is None:
            continue
        elif parameter.kind is parameter.KEYWORD_ONLY or len(positional) != parameters.index(
            parameter
        ):
            keywords.append((parameter.name, what))
        else:
            positional.append(what)
    return ServerMethod(
        method, found if plain else method.name, bound=not plain,
        asynchronous=inspect.iscoroutinefunction(function), positional=tuple(positional),
        keywords=tuple(keywords), rest=rest,
    )


def _argument(cls: type, method: Method, parameter: inspect.Parameter, fields: set[str]) -> Any:
    """The field that a parameter takes, CONTEXT, PARAMS, or None to leave it to its default."""
    name = parameter.name
    if name in fields:
        return name
    if name.rstrip("_") in fields:
        return name.rstrip("_")
    if name in ("context", "_context"):
        return CONTEXT
    if name == "params":
        return PARAMS
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return None
    if parameter.default is not parameter.empty:
        return None
    raise TypeError(
        f"{cls.__name__}.{method.name} takes {name!r}, which is no parameter of the schema's "
        f"{method.interface_name}.{method.name} ({', '.join(method.parameter_names) or 'none'})"
    )
