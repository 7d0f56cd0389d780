"""The text format, read: `(name = "Ada", tags = ["x"])` to a message.

The grammar is that of values in schemas, without constants and embedded files.  Values may follow
one another; `TextSplitter` finds where each ends as bytes arrive.  Spec: tool.md, Text format.
"""

from __future__ import annotations

import re
from typing import Any

from capnwire._any import new_any_root
from capnwire._info import StructInfo
from capnwire.compiler.diagnostics import Diagnostic, Reporter
from capnwire.compiler.encode_values import ValueEncoder
from capnwire.compiler.opened import parse_expression
from capnwire.compiler.syntax import Expression, Name, Source
from capnwire.compiler.values import FAILED, Evaluator, ValueSource, _Failed
from capnwire.errors import CapnwireError, CompileError
from capnwire.message.splitter import Splitter
from capnwire.schema.model import Binding, Brand, BrandScope, Node, Type
from capnwire.schema.registry import Registry

__all__ = ["TextReader", "TextSplitter"]

NO_CONSTANTS = "External constants not allowed."
NO_EMBEDS = "External embeds not allowed."
ENDS_EARLY = "The text ends in the middle of a value."
NO_VALUE = "A value in parentheses is wanted here."
TOO_DEEP = "Nested too deeply."
FILE_NAME = "(text input)"


class TextReader:
    """Reads values of one struct type."""

    def __init__(self, kind: type) -> None:
        info: StructInfo = kind._info  # type: ignore[attr-defined]
        registry, key = info.scope
        self._type = type_of_key(key)
        self._nodes = _Nodes(registry)
        self._encoder = ValueEncoder([])
        self._encoder._registry = registry

    def read(self, text: bytes | str) -> Any:
        """A new message (the builder of its root pointer) with the one value that a text is.

        Raises:
            CompileError: with what is wrong, and where in the text.
        """
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        diagnostics: list[Diagnostic] = []
        source = Source(raw.decode("latin-1"), Reporter(FILE_NAME, diagnostics))
        root = new_any_root()
        try:
            expr = parse_expression(source)
            if expr is not None:
                tree = _TextEvaluator(self._nodes, source).evaluate(expr, self._type)
                if not diagnostics and not isinstance(tree, _Failed):
                    self._encoder._place(root, self._type, tree)
        except RecursionError:
            source.error(0, 0, TOO_DEEP)
        except CapnwireError as error:
            source.error(0, len(source.text), str(error))
        if diagnostics:
            raise CompileError(list(diagnostics))
        return root


class _Nodes(ValueSource):
    """What the evaluator asks of a session, out of a registry."""

    __slots__ = ("measures", "registry", "trees", "unusable")

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.measures = {}
        self.trees = []
        self.unusable = set()

    def schema(self, type_id: int) -> Node | None:
        return self.registry.nodes.get(type_id)


class _TextUnit:
    """What the evaluator asks of a unit: the place to report to."""

    __slots__ = ("source",)

    def __init__(self, source: Source) -> None:
        self.source = source


class _TextEvaluator(Evaluator):
    """Values that stand by themselves: no constants, no embedded files."""

    __slots__ = ()

    def __init__(self, nodes: _Nodes, source: Source) -> None:
        super().__init__(nodes, _TextUnit(source))  # type: ignore[arg-type]

    def _constant(self, expr: Expression, *, is_bare: bool) -> Any:
        return self.error(expr, NO_CONSTANTS)

    def _embed(self, expr: Expression, type: Type) -> Any:
        path: Name = expr.value  # type: ignore[assignment]
        self.unit.source.error(path.start, path.end, NO_EMBEDS)
        return FAILED


def type_of_key(key: tuple[Any, ...]) -> Type:
    """The schema's words for a type that the registry names by its key."""
    kind = key[0]
    if kind == "list":
        return Type("list", element=type_of_key(key[1]))
    if kind in ("struct", "interface"):
        scopes = [
            BrandScope(
                scope_id,
                [Binding(None if bound is None else type_of_key(bound)) for bound in bindings],
            )
            for scope_id, bindings in key[2]
        ]
        return Type(kind, type_id=key[1], brand=Brand(scopes) if scopes else None)
    if kind == "enum":
        return Type(kind, type_id=key[1])
    any_kind = {
        "anyPointer": "anyKind", "anyStruct": "struct", "anyList": "list",
        "capability": "capability",
    }.get(kind)
    return Type(kind) if any_kind is None else Type("anyPointer", any_kind=any_kind)


# --- where values end ---------------------------------------------------------------------------

_OUTSIDE = re.compile(rb'[()\[\]"`#]|[^\s()\[\]"`#]')
_NESTED = re.compile(rb'[()\[\]"`#]')
_STRING = re.compile(rb'(?:[^"\\\n]|\\.)*', re.DOTALL)
MAX_DEPTH = 64


class TextSplitter(Splitter):
    """Cuts bytes that arrive in pieces into texts of one value each.

    Raises:
        CompileError: something stands between values, or the text ends inside one.
    """

    _nested, _outside = _NESTED, _OUTSIDE

    def next_text(self) -> bytes | None:
        """The next whole text, or None while bytes of it are missing."""
        data = self._data
        while True:
            if self._in_string:
                match = _STRING.match(data, self._at)
                assert match is not None
                self._at = end = match.end()
                if end + 1 >= len(data) and (end == len(data) or data[end] == 0x5C):
                    self._incomplete()
                    return None
                if data[end] != 0x22:
                    raise _problem(bytes(data), "Parse error.", end)
                self._at, self._in_string = end + 1, False
            start = self._next_mark()
            if start is None:
                return None
            mark = data[start]
            if mark == 0x23 or (mark == 0x60 and self._depth):
                self._at = start
                end = data.find(b"\n", start)
                if end < 0 and not (self._ended and mark == 0x23 and not self._depth):
                    self._incomplete()
                    return None
                self._at = len(data) if end < 0 else end + 1
                if not self._depth:
                    self._drop(self._at)
            elif mark == 0x22 and self._depth:
                self._at, self._in_string = start + 1, True
            elif mark in b"([" and (self._depth or mark == 0x28):
                self._enter(start)
                if self._depth > MAX_DEPTH:
                    raise _problem(bytes(data), TOO_DEEP, start)
            elif mark in b")]" and self._depth:
                text = self._leave(start)
                if text is not None:
                    return text
            else:
                raise _problem(bytes(data), NO_VALUE, start)

    def _incomplete(self) -> None:
        if self._ended and self._data:
            raise _problem(bytes(self._data), ENDS_EARLY, len(self._data))


def _problem(text: bytes, said: str, at: int = 0) -> CompileError:
    diagnostics: list[Diagnostic] = []
    source = Source(text.decode("latin-1"), Reporter(FILE_NAME, diagnostics))
    source.error(at, at, said)
    return CompileError(list(diagnostics))
