"""Resolved names to the model's types and brands, and types seen through a brand.

Spec: schema-language.md, 2.6.
"""

from __future__ import annotations

from capnwire.compiler.names import BUILTINS, BrandScope, Implicit, Resolved, Unit, expression_text
from capnwire.compiler.syntax import Expression
from capnwire.schema.model import Binding, Brand, Type
from capnwire.schema.model import BrandScope as BoundScope

OBJECT_RENAMED = (
    "As of Cap'n Proto 0.4, 'Object' has been renamed to 'AnyPointer'.  Sorry for the "
    "inconvenience, and thanks for being an early adopter.  :)"
)

MAX_BINDINGS = 10_000
TOO_MANY_BINDINGS = "Type is too large."

_PLAIN = {name: Type(kind) for name, (kind, any_kind, _) in BUILTINS.items() if not any_kind}
_BROKEN = (_PLAIN["Void"], False)
_BROKEN_LIST = (Type("list", element=_PLAIN["Void"]), False)


def compile_type(
    unit: Unit, expr: Expression, implicit: Implicit | None = None,
) -> tuple[Type, bool]:
    """The type that an expression in `unit` stands for, and whether it is whole.

    After reporting an error, Void stands for what is not known, as in `List(Void)`.
    """
    resolved = unit.evaluate(expr, implicit)
    return _BROKEN if resolved is None else _resolved_type(resolved)


def _resolved_type(resolved: Resolved) -> tuple[Type, bool]:
    kind = resolved.target
    if kind in ("struct", "enum", "interface"):
        assert resolved.unit is not None
        return Type(kind, type_id=resolved.unit.id, brand=compile_brand(resolved.brand)), True
    if kind == "builtin":
        if resolved.builtin == "List":
            return _list_type(resolved)
        return _builtin_type(resolved), True
    if kind == "parameter":
        return Type(
            "anyPointer", any_kind="parameter", scope_id=resolved.scope_id,
            parameter_index=resolved.index,
        ), True
    if kind == "implicit":
        return Type(
            "anyPointer", any_kind="implicitMethodParameter", parameter_index=resolved.index,
        ), True
    if kind == "missing":
        resolved.error(f"Import failed: {resolved.builtin}")
    else:
        resolved.error(f"'{expression_text(resolved.expr)}' is not a type.")
    return _BROKEN


def _builtin_type(resolved: Resolved) -> Type:
    name = resolved.builtin
    if name == "Object":
        resolved.error(OBJECT_RENAMED)
    plain = _PLAIN.get(name)
    if plain is not None:
        # Types are never changed once made, so those without parts are shared.
        return plain
    return Type("anyPointer", any_kind=BUILTINS[name][1])


def _list_type(resolved: Resolved) -> tuple[Type, bool]:
    params = resolved.brand.params if resolved.brand is not None else None
    if params is None:
        resolved.error("'List' requires exactly one parameter.")
        return _BROKEN_LIST
    element, is_whole = _resolved_type(params[0])
    if element.kind == "anyPointer":
        kind = element.any_kind
        # The reference reads a parameter's index as if it were the kind of an unconstrained
        # AnyPointer, so the first two parameters of a generic are refused as elements.
        number = {"anyKind": 0, "struct": 1}.get(kind, 2)
        if kind in ("parameter", "implicitMethodParameter"):
            number = element.parameter_index
        if number < 2:
            name = "AnyStruct" if number else "AnyPointer"
            resolved.error(f"'List({name})' is not supported.")
            return _BROKEN_LIST
    return Type("list", element=element), is_whole


def compile_brand(brand: BrandScope | None) -> Brand | None:
    """The scopes of a brand that say something, or None if none does."""
    return _sized_brand(brand)[0]


def _sized_brand(brand: BrandScope | None) -> tuple[Brand | None, int]:
    """A brand and how many bindings are in it, on all levels.

    Kept with the chain: aliases let a few lines name a type that would fill the memory if it were
    written out, so its size must be known without doing so.
    """
    if brand is None:
        return None, 0
    if brand.compiled is not None:
        return brand.compiled  # type: ignore[return-value]
    scopes = []
    size = 0
    is_whole = True
    scope: BrandScope | None = brand
    while scope is not None:
        if scope.params:
            bindings = []
            for param in scope.params:
                type, type_is_whole = _resolved_type(param)
                is_whole = is_whole and type_is_whole
                bindings.append(Binding(type))
                size += 1 + _sized_brand(param.brand)[1]
                if size > MAX_BINDINGS:
                    param.error(TOO_MANY_BINDINGS)
                    return None, 0
            scopes.append(BoundScope(scope.id, bindings))
        elif scope.inherited and scope.count:
            scopes.append(BoundScope(scope.id, None))
        scope = scope.parent
    made = (Brand(scopes) if scopes else None, size)
    if is_whole:
        brand.compiled = made
    return made


def bind_type(type: Type, brand: Brand | None) -> Type:
    """A type found inside a declaration, seen through the brand that it is used with."""
    if type.kind == "list":
        assert type.element is not None
        element = bind_type(type.element, brand)
        return type if element is type.element else Type("list", element=element)
    if type.kind == "anyPointer":
        if type.any_kind != "parameter":
            return type
        for scope in brand.scopes if brand is not None else ():
            if scope.scope_id == type.scope_id:
                if scope.bindings is None:
                    return type
                bound = scope.bindings[type.parameter_index].type
                if bound is not None:
                    return bound
        return Type("anyPointer")
    if type.brand is None:
        return type
    scopes = []
    for scope in type.brand.scopes:
        if scope.bindings is None:
            outer = [s for s in brand.scopes if s.scope_id == scope.scope_id] if brand else []
            scopes.extend(outer)
        else:
            bindings = [
                Binding(bind_type(item.type, brand) if item.type is not None else None)
                for item in scope.bindings
            ]
            scopes.append(BoundScope(scope.scope_id, bindings))
    return Type(type.kind, type_id=type.type_id, brand=Brand(scopes) if scopes else None)


def type_text(type: Type, short_name: str = "") -> str:
    """A type as messages name it; `short_name` is that of a declared type."""
    if type.kind in ("struct", "enum", "interface"):
        return short_name
    if type.kind == "anyPointer":
        return "AnyPointer"
    if type.kind.startswith("uint"):
        return "UI" + type.kind[2:]
    return type.kind.capitalize()
