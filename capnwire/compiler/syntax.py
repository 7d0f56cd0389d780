"""The syntax tree: statements and tokens from the lexer, declarations and expressions from the
parser.

Offsets are byte offsets into the file's text.  Nothing here knows what a name means.
"""

from __future__ import annotations

from capnwire.compiler.diagnostics import Reporter

Token = tuple[str, object, int, int]
"""(kind, value, start, end); the kinds are listed in lexer.py."""


class Statement:
    """Tokens up to `;`, or up to a `{ block }`; `block` is None for the former."""

    __slots__ = ("block", "doc", "end", "start", "tokens")

    def __init__(self, tokens: list[Token], start: int) -> None:
        self.tokens, self.start, self.end = tokens, start, start
        self.block: list[Statement] | None = None
        self.doc: str | None = None


class Name:
    """An identifier where it stands."""

    __slots__ = ("end", "start", "text")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end


class Expression:
    """One expression; what `value` and `items` hold depends on `kind`.

    int, negative (the magnitude), float, string and binary (bytes): `value`.  relative, absolute,
    import and embed: `value` is a Name (for the last two, the path).  list: `items` are (None,
    expression).  tuple: `items` are (Name or None, expression).  member: `value` is the Name,
    `base` what it is taken of.  apply: `base` applied to the tuple `items`.  unknown: a part that
    did not parse.
    """

    __slots__ = ("base", "end", "items", "kind", "start", "value")

    def __init__(
        self, kind: str, start: int, end: int, value: object = None,
        items: list[tuple[Name | None, Expression]] | None = None,
        base: Expression | None = None,
    ) -> None:
        self.kind, self.start, self.end, self.value = kind, start, end, value
        self.items: list[tuple[Name | None, Expression]] = items if items is not None else []
        self.base = base


class Applied:
    """`$name(value)`: an annotation as applied; `value` None if there are no parentheses."""

    __slots__ = ("name", "value")

    def __init__(self, name: Expression, value: Expression | None) -> None:
        self.name, self.value = name, value


class Param:
    """A parameter in a method's list."""

    __slots__ = ("annotations", "default", "end", "name", "start", "type")

    def __init__(
        self, name: Name, type: Expression, default: Expression | None,
        annotations: list[Applied], start: int, end: int,
    ) -> None:
        self.name, self.type, self.default, self.annotations = name, type, default, annotations
        self.start, self.end = start, end


class Params:
    """A method's parameters or results: a `list`, an expression (`type`) or `stream`."""

    __slots__ = ("end", "items", "kind", "start", "type")

    def __init__(
        self, kind: str, start: int, end: int, items: list[Param] | None = None,
        type: Expression | None = None,
    ) -> None:
        self.kind, self.start, self.end, self.type = kind, start, end, type
        self.items: list[Param] = items if items is not None else []


class Ordinal:
    """The number after `@`."""

    __slots__ = ("end", "start", "value")

    def __init__(self, value: int, start: int, end: int) -> None:
        self.value, self.start, self.end = value, start, end


class Declaration:
    """One declaration.  `kind`: file using const enum enumerant struct field union group interface
    method annotation, and at file level also id and applied.

    `type` is also a using's target; `value` a default or a constant's value; `params` are generic
    parameters, or a method's implicit ones; `superclasses` an interface's bases.
    """

    __slots__ = (
        "annotations", "end", "doc", "generic", "id", "kind", "name", "nested", "ordinal",
        "params", "requests", "results", "start", "superclasses", "targets", "type", "value",
    )

    def __init__(self, kind: str, name: Name) -> None:
        self.kind, self.name = kind, name
        self.start = self.end = 0
        self.id: Ordinal | None = None
        self.ordinal: Ordinal | None = None
        self.doc: str | None = None
        self.type: Expression | None = None
        self.value: Expression | None = None
        self.annotations: list[Applied] = []
        self.nested: list[Declaration] = []
        self.generic = False
        self.params: list[Name] = []
        self.superclasses: list[Expression] = []
        self.targets: frozenset[str] = frozenset()
        self.requests: Params | None = None
        self.results: Params | None = None


class Source:
    """One file's text, one character a byte, and where to report what is wrong with it."""

    __slots__ = ("reporter", "text")

    def __init__(self, text: str, reporter: Reporter) -> None:
        self.text, self.reporter = text, reporter

    def error(self, start: int, end: int, text: str) -> None:
        """Report `text` about the bytes from `start` to `end`."""
        self.reporter.add(self.text, start, end, text)
