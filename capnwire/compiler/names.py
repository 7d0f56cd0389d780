"""What names mean: the tree of declarations, lookup, aliases, and brands of generic declarations.

A `Unit` is a declaration that becomes a node.  Evaluating an expression gives a `Resolved`: a
unit, a builtin or a generic parameter, with the brand that binds the parameters around it.
Spec: schema-language.md, 2.4 and 2.6.
"""

from __future__ import annotations

from capnwire.compiler.ids import child_id
from capnwire.compiler.syntax import Declaration, Expression, Name, Source
from capnwire.schema.model import Identifier

RECURSIVE = "Declaration recursively depends on itself."

# name: (kind of the type, anyPointer's kind, number in a file's identifiers)
BUILTINS: dict[str, tuple[str, str, int]] = {
    "Void": ("void", "", 1014), "Bool": ("bool", "", 1015),
    "Int8": ("int8", "", 1016), "Int16": ("int16", "", 1017),
    "Int32": ("int32", "", 1018), "Int64": ("int64", "", 1019),
    "UInt8": ("uint8", "", 1020), "UInt16": ("uint16", "", 1021),
    "UInt32": ("uint32", "", 1022), "UInt64": ("uint64", "", 1023),
    "Float32": ("float32", "", 1024), "Float64": ("float64", "", 1025),
    "Text": ("text", "", 1026), "Data": ("data", "", 1027), "List": ("list", "", 1028),
    "Object": ("anyPointer", "anyKind", 1029), "AnyPointer": ("anyPointer", "anyKind", 1030),
    "AnyStruct": ("anyPointer", "struct", 1031), "AnyList": ("anyPointer", "list", 1032),
    "Capability": ("anyPointer", "capability", 1033),
}
_BINDABLE_BUILTINS = frozenset(("Text", "Data", "List", "AnyPointer"))

_UNIT_KINDS = frozenset(("struct", "enum", "interface", "const", "annotation"))


class BrandScope:
    """The bindings of one declaration's generic parameters, in a chain from the leaf outwards.

    `params` None: the parameters are those of the place itself (`inherited`), or unbound.
    `compiled` keeps what types.py made of the chain.
    """

    __slots__ = ("compiled", "count", "id", "inherited", "params", "parent")

    def __init__(
        self, id: int, count: int, parent: BrandScope | None, *, inherited: bool = False,
        params: list[Resolved] | None = None,
    ) -> None:
        self.id, self.count, self.parent = id, count, parent
        self.inherited, self.params = inherited, params
        self.compiled: tuple[object, int] | None = None

    def pop(self, id: int) -> BrandScope:
        """The chain from the scope `id` outwards; without bindings if it is not on the chain."""
        scope: BrandScope | None = self
        while scope is not None:
            if scope.id == id:
                return scope
            scope = scope.parent
        return BrandScope(id, 0, None)

    def lookup(self, parameter: Resolved) -> Resolved:
        """What a parameter of one of the scopes is bound to."""
        scope = self.pop(parameter.scope_id)
        if scope.params is not None:
            return scope.params[parameter.index]
        if scope.inherited:
            return parameter
        return Resolved("builtin", parameter.source, parameter.expr, builtin="AnyPointer")


# That of all builtins but List: they take no parameters and stand in no scope.
_NO_PARAMETERS = BrandScope(0, 0, None)
_NO_PARAMETERS.compiled = (None, 0)


class Resolved:
    """What a name or type expression means, and where it was written.

    `kind`: unit, builtin, parameter (of the scope `scope_id`) or implicit (of a method).
    """

    __slots__ = ("brand", "builtin", "expr", "index", "kind", "scope_id", "source", "unit")

    def __init__(
        self, kind: str, source: Source, expr: Expression, *, unit: Unit | None = None,
        builtin: str = "", brand: BrandScope | None = None, scope_id: int = 0, index: int = 0,
    ) -> None:
        self.kind, self.source, self.expr = kind, source, expr
        self.unit, self.builtin, self.brand = unit, builtin, brand
        self.scope_id, self.index = scope_id, index

    def error(self, text: str) -> None:
        """Report `text` about the place where this was written."""
        self.source.error(self.expr.start, self.expr.end, text)

    @property
    def target(self) -> str:
        """The kind of declaration: struct, enum, interface, const, annotation, file, builtin …"""
        return self.unit.kind if self.unit is not None else self.kind

    def at(self, source: Source, expr: Expression) -> Resolved:
        """The same thing, written there."""
        return Resolved(
            self.kind, source, expr, unit=self.unit, builtin=self.builtin, brand=self.brand,
            scope_id=self.scope_id, index=self.index,
        )

    def within(self, outer: BrandScope) -> Resolved:
        """This, seen through the bindings of `outer`."""
        if self.kind == "parameter":
            return outer.lookup(self)
        if self.brand is None:
            return self
        bound = self.at(self.source, self.expr)
        bound.brand = _rebind(self.brand, outer)
        return bound


def _implicit(implicit: Implicit, source: Source, expr: Expression, index: int) -> Resolved:
    if implicit.scope_id:
        return Resolved("parameter", source, expr, scope_id=implicit.scope_id, index=index)
    # The reference has no place for it: what it says about it goes to the start of the file.
    return Resolved("implicit", source, Expression("unknown", 0, 0), index=index)


def _rebind(brand: BrandScope, outer: BrandScope) -> BrandScope:
    if brand.inherited:
        return outer.pop(brand.id)
    parent = _rebind(brand.parent, outer) if brand.parent is not None else None
    params = brand.params
    if params is not None:
        params = [param.within(outer) for param in params]
    return BrandScope(brand.id, brand.count, parent, params=params)


class Implicit:
    """A method's own parameters; `scope_id` is that of the struct being made for its list, or 0."""

    __slots__ = ("names", "scope_id")

    def __init__(self, names: list[Name], scope_id: int = 0) -> None:
        self.names, self.scope_id = names, scope_id


class Alias:
    """A `using` declaration: looked up where it stands, when first used."""

    __slots__ = ("busy", "decl", "done", "result")

    def __init__(self, decl: Declaration) -> None:
        self.decl, self.busy, self.done = decl, False, False
        self.result: Resolved | None = None


class Module:
    """One file: its text and its declarations; imports are looked for in `directory`."""

    __slots__ = (
        "directory", "display_name", "file", "identifiers", "path", "root", "root_directory",
        "source",
    )

    def __init__(
        self, source: Source, file: Declaration, *, path: str, root_directory: str,
        directory: str, display_name: str,
    ) -> None:
        self.source, self.file, self.path = source, file, path
        self.root_directory, self.directory = root_directory, directory
        self.display_name = display_name
        self.root: Unit  # set as soon as the module has its name
        self.identifiers: list[Identifier] = []


class Names:
    """What a session offers for looking names up; `Session` in driver.py.

    `may_miss`: an import may be missing if only annotations come from it.
    """

    __slots__ = ()

    may_miss = False

    def claim_id(self, unit: Unit) -> int:
        """The unit's id, made unique and entered in the table of all nodes."""
        raise NotImplementedError

    def import_module(self, importer: Module, path: str) -> Module | None:
        """The module that a path names, or None."""
        raise NotImplementedError

    def note_missing(self, source: Source, path: Name) -> None:
        """Say, once for each path, what to do about an import that is not there."""
        raise NotImplementedError


class Unit:
    """A declaration that becomes a node, with the names declared in it."""

    __slots__ = (
        "_expanded", "aliases", "brand", "busy", "children", "decl", "display_name", "generic",
        "id", "kind", "members", "module", "names", "parent", "result", "state",
    )

    def __init__(
        self, names: Names, module: Module, decl: Declaration, parent: Unit | None,
        display_name: str,
    ) -> None:
        self.names, self.module, self.decl, self.parent = names, module, decl, parent
        self.kind, self.display_name = decl.kind, display_name
        if decl.id is not None:
            self.id = decl.id.value
        else:
            self.id = child_id(parent.id if parent is not None else 0, decl.name.text)
        self.id = names.claim_id(self)
        outer = parent.brand if parent is not None else None
        self.brand: BrandScope = BrandScope(self.id, len(decl.params), outer, inherited=True)
        self.generic: bool = bool(decl.params) or (parent is not None and parent.generic)
        self.children: list[Unit] = []
        self.aliases: list[Alias] = []
        self.members: dict[str, Unit | Alias] = {}
        self._expanded = False
        self.busy = False
        self.state = 0
        self.result: object = None

    @property
    def source(self) -> Source:
        """Where the unit is written."""
        return self.module.source

    @property
    def file(self) -> Unit:
        """The unit of the file."""
        unit = self
        while unit.parent is not None:
            unit = unit.parent
        return unit

    def error(self, text: str) -> None:
        """Report `text` about the unit's name."""
        name = self.decl.name
        self.module.source.error(name.start, name.end, text)

    def expand(self) -> None:
        """Make the units declared inside this one."""
        if self._expanded:
            return
        self._expanded = True
        prefix = self.display_name + (":" if self.parent is None else ".")
        aliases: dict[str, Unit | Alias] = {}
        for decl in self.decl.nested:
            name = decl.name.text
            if decl.kind in _UNIT_KINDS:
                child = Unit(self.names, self.module, decl, self, prefix + name)
                self.children.append(child)
                self.members.setdefault(name, child)
            elif decl.kind == "using":
                alias = Alias(decl)
                self.aliases.append(alias)
                aliases.setdefault(name, alias)
        for name, alias_or_unit in aliases.items():
            self.members.setdefault(name, alias_or_unit)

    def member(self, name: str) -> Unit | Alias | None:
        """What is declared under that name directly in this unit."""
        self.expand()
        return self.members.get(name)

    # --- evaluation ------------------------------------------------------------------------

    def evaluate(
        self, expr: Expression, implicit: Implicit | None = None,
    ) -> Resolved | None:
        """What an expression means in this unit; None after reporting what is wrong with it."""
        kind = expr.kind
        if kind == "relative" or kind == "absolute":
            found = self._named(expr, implicit, absolute=kind == "absolute")
        elif kind == "import":
            found = self._imported(expr)
        elif kind == "member":
            found = self._member_of(expr, implicit)
        elif kind == "apply":
            return self._apply(expr, implicit)
        else:
            if kind != "unknown":
                self.source.error(expr.start, expr.end, "Expected name.")
            return None
        if found is not None and found.kind in ("unit", "builtin"):
            number = found.unit.id if found.unit is not None else BUILTINS[found.builtin][2]
            self.module.identifiers.append(Identifier(expr.start, expr.end, number))
        return found

    def _named(
        self, expr: Expression, implicit: Implicit | None, *, absolute: bool,
    ) -> Resolved | None:
        name: Name = expr.value  # type: ignore[assignment]
        text = name.text
        source = self.source
        if not absolute and implicit:
            for index, param in enumerate(implicit.names):
                if param.text == text:
                    return _implicit(implicit, source, expr, index)
        unit: Unit | None = self.file if absolute else self
        while unit is not None:
            if not unit._expanded:
                unit.expand()
            entry = unit.members.get(text)
            if entry is not None:
                found = unit.entry(entry, unit.brand, source, expr)
                if found is None:
                    break
                return found
            if not absolute:
                for index, param in enumerate(unit.decl.params):
                    if param.text == text:
                        return Resolved(
                            "parameter", source, expr, scope_id=unit.id, index=index,
                        )
            unit = None if absolute else unit.parent
        else:
            if not absolute and text in BUILTINS:
                brand = BrandScope(0, 1, None) if text == "List" else _NO_PARAMETERS
                return Resolved("builtin", source, expr, builtin=text, brand=brand)
        source.error(name.start, name.end, f"Not defined: {text}")
        return None

    def entry(
        self, entry: Unit | Alias, brand: BrandScope, source: Source, expr: Expression,
    ) -> Resolved | None:
        """A member of this unit, seen through `brand`."""
        if isinstance(entry, Unit):
            inner = BrandScope(entry.id, len(entry.decl.params), brand)
            return Resolved("unit", source, expr, unit=entry, brand=inner)
        found = self.resolve_alias(entry)
        if found is None:
            return None
        if brand is not self.brand:
            found = found.within(brand)
        return found.at(source, expr)

    def resolve_alias(self, alias: Alias) -> Resolved | None:
        """What an alias of this unit stands for; None after an error or in a circle."""
        if not alias.done:
            if alias.busy:
                return None
            alias.busy = True
            assert alias.decl.type is not None
            alias.result = self.evaluate(alias.decl.type)
            alias.busy, alias.done = False, True
        return alias.result

    def _imported(self, expr: Expression) -> Resolved | None:
        path: Name = expr.value  # type: ignore[assignment]
        module = self.names.import_module(self.module, path.text)
        if module is None:
            if self.names.may_miss:
                return Resolved("missing", self.source, expr, builtin=path.text)
            self.names.note_missing(self.source, path)
            self.source.error(path.start, path.end, f"Import failed: {path.text}")
            return None
        root = module.root
        return Resolved("unit", self.source, expr, unit=root, brand=BrandScope(root.id, 0, None))

    def _member_of(self, expr: Expression, implicit: Implicit | None) -> Resolved | None:
        assert expr.base is not None
        base = self.evaluate(expr.base, implicit)
        if base is None:
            return None
        name: Name = expr.value  # type: ignore[assignment]
        if base.kind == "missing":
            return base
        if base.unit is not None:
            entry = base.unit.member(name.text)
            if entry is not None:
                assert base.brand is not None
                found = base.unit.entry(entry, base.brand, self.source, expr)
                if found is not None:
                    return found
        text = expression_text(expr.base)
        self.source.error(name.start, name.end, f"'{text}' has no member named '{name.text}'")
        return None

    def _apply(self, expr: Expression, implicit: Implicit | None) -> Resolved | None:
        assert expr.base is not None
        base = self.evaluate(expr.base, implicit)
        if base is None:
            return None
        params: list[Resolved] = []
        for name, item in expr.items:
            if name is not None:
                self.source.error(name.start, name.end, "Named parameter not allowed here.")
            param = self.evaluate(item, implicit)
            if param is not None:
                params.append(param)
        if len(params) < len(expr.items) or base.brand is None:
            return base
        brand = base.brand
        problem = ""
        if brand.params:
            problem = "Double-application of generic parameters."
        elif len(params) > brand.count:
            problem = "Too many generic parameters."
            if brand.count == 0:
                problem = "Declaration does not accept generic parameters."
        elif len(params) < brand.count:
            problem = "Not enough generic parameters."
        if problem:
            self.source.error(expr.start, expr.end, problem)
            return base
        if base.kind != "builtin":
            for param in params:
                _check_bindable(param)
        applied = base.at(self.source, expr)
        applied.brand = BrandScope(brand.id, brand.count, brand.parent, params=params)
        return applied


def _check_bindable(param: Resolved) -> None:
    if param.kind == "builtin":
        fits = param.builtin in _BINDABLE_BUILTINS
    elif param.kind == "unit":
        fits = param.target in ("struct", "interface")
    else:
        fits = True
    if not fits:
        param.error("Sorry, only pointer types can be used as generic parameters.")


_TEXT_ESCAPES = {
    7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 39: "\\'", 34: '\\"',
    92: "\\\\",
}


def quoted(data: bytes) -> str:
    """A string as a literal."""
    parts = []
    for byte in data:
        if byte in _TEXT_ESCAPES:
            parts.append(_TEXT_ESCAPES[byte])
        elif byte < 32 or byte == 127:
            parts.append(f"\\{byte:03o}")
        else:
            parts.append(chr(byte))
    text = "".join(parts).encode("latin-1").decode("utf-8", "replace")
    return f'"{text}"'


def expression_text(expr: Expression) -> str:
    """An expression as text, for messages."""
    kind, value = expr.kind, expr.value
    if kind in ("relative", "absolute", "import", "embed"):
        name: Name = value  # type: ignore[assignment]
        if kind == "relative":
            return name.text
        return f".{name.text}" if kind == "absolute" else f"{kind} {quoted(name.text.encode())}"
    if kind == "member":
        assert expr.base is not None
        return f"{expression_text(expr.base)}.{value.text}"  # type: ignore[attr-defined]
    if kind == "apply":
        assert expr.base is not None
        return f"{expression_text(expr.base)}({_items_text(expr, '(', ')')})"
    if kind == "tuple":
        return _items_text(expr, "(", ")")
    if kind == "list":
        return _items_text(expr, "[", "]")
    if kind == "string":
        return quoted(value)  # type: ignore[arg-type]
    if kind == "binary":
        return f'0x"{value.hex(" ")}"'  # type: ignore[attr-defined]
    if kind == "negative":
        return f"-{value}"
    return f"{value:g}" if kind == "float" else str(value) if kind == "int" else "<parse error>"


def _items_text(expr: Expression, opening: str, closing: str) -> str:
    parts = []
    for name, item in expr.items:
        text = expression_text(item)
        parts.append(f"{name.text} = {text}" if name is not None else text)
    return f"{opening} {', '.join(parts)} {closing}"
