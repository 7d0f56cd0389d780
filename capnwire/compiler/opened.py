"""A schema file that stays open after it was compiled: types and constants by their names in it.

This is what tools need that take a type on the command line, such as `Box(Text).Inner`.
Spec: tool.md, `convert` and `eval`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from capnwire.compiler.diagnostics import Diagnostic, Reporter
from capnwire.compiler.driver import TOO_DEEP, Session, _options
from capnwire.compiler.lexer import lex
from capnwire.compiler.names import Module, Unit
from capnwire.compiler.parser import _Cursor, _expression, _Mismatch
from capnwire.compiler.syntax import Expression, Source
from capnwire.compiler.types import compile_type
from capnwire.errors import CompileError, SchemaError
from capnwire.message.types import struct_class, value_of
from capnwire.schema.model import ConstBody, Field, StructBody
from capnwire.schema.registry import Registry

__all__ = ["NameProblem", "OpenedSchema", "parse_expression"]

BAD_TYPE_NAME = "Couldn't parse type name."
NO_STRUCT = "Type is not a struct."

_PATH = re.compile(r"[A-Za-z_]\w*(?:\[\d+\])*(?:\.[A-Za-z_]\w*(?:\[\d+\])*)*", re.ASCII)
_STEP = re.compile(r"\.?([A-Za-z_]\w*)|\[(\d+)\]", re.ASCII)


class NameProblem(SchemaError):
    """A name given by the user means nothing in the schema, or not what is wanted."""


def parse_expression(source: Source) -> Expression | None:
    """The one expression that a text consists of; None after reporting what is wrong with it."""
    before = len(source.reporter.diagnostics)
    whole = Source(source.text + "\n;", source.reporter)
    lexed = lex(whole)
    if lexed.failed or len(source.reporter.diagnostics) > before:
        return None
    statements = lexed.statements
    end = len(source.text)
    if len(statements) != 1 or statements[0].block is not None or not statements[0].tokens:
        source.error(0, end, "Parse error.")
        return None
    cursor = _Cursor(source, statements[0].tokens)
    try:
        expr = _expression(cursor)
        cursor.end()
    except _Mismatch:
        tokens = cursor.tokens
        at = tokens[cursor.at][2] if cursor.at < len(tokens) else end
        source.error(at, at, "Parse error.")
        return None
    return expr if len(source.reporter.diagnostics) == before else None


class OpenedSchema:
    """A compiled schema file whose names can be asked for.

    The parameters are those of `compile_files`; the file needs no id.

    Raises:
        CompileError: the schema has errors.
        OSError: the file cannot be read.
    """

    def __init__(
        self, path: str | os.PathLike[str], *,
        import_paths: Iterable[str | os.PathLike[str]] = (), standard_imports: bool = True,
        missing_imports: str = "error",
    ) -> None:
        options = _options(
            import_paths, standard_imports=standard_imports, missing_imports=missing_imports,
            allow_missing_id=True,
        )
        session = Session(options)
        self._module: Module = session.load(options.finder.requested(os.fspath(path)))
        self._root: Unit = self._module.root
        self.registry = Registry(keeps_bytes=True)
        try:
            session.visit(self._root)
            _refuse(session.diagnostics)
            session.encode_values()
            self.registry.add(session._all_nodes())
        except RecursionError:
            self._module.source.error(0, 0, TOO_DEEP)
        except CompileError:
            raise
        except SchemaError as problem:
            self._module.source.error(0, 0, f"{problem}.")
        _refuse(session.diagnostics)
        self._session = session

    def struct(self, name: str) -> type:
        """The class of a struct type, named as in the schema: `Person`, `Box(Text).Inner`.

        Raises:
            NameProblem: there is no such type, or it is no struct.
        """
        diagnostics: list[Diagnostic] = []
        source = Source(name.encode("utf-8", "surrogateescape").decode("latin-1"),
                        Reporter("type", diagnostics))
        expr = parse_expression(source)
        if expr is None:
            raise NameProblem(f"{name}: {BAD_TYPE_NAME}")
        # What is wrong is reported about the text that the name is, not about the schema's.
        outer, self._module.source = self._module.source, source
        try:
            type, is_whole = compile_type(self._root, expr)
        finally:
            self._module.source = outer
        if not is_whole or diagnostics:
            said = diagnostics[0]
            place = f"{said.start_byte + 1}"
            if said.end_byte > said.start_byte:
                place += f"-{said.end_byte}"
            raise NameProblem(f"{name}: {place}: {said.text}")
        key = self.registry.close(type, ())
        if key[0] != "struct":
            raise NameProblem(f"{name}: {NO_STRUCT}")
        return struct_class(self.registry, self.registry.info(key))  # type: ignore[arg-type]

    # ------------------------------------------------------------ values by path

    def value(self, path: str) -> tuple[object, tuple[Any, ...]]:
        """A constant, a field's default or a part of one: `limits.sizes[2]`; with its type's key.

        Raises:
            NameProblem: the path leads to nothing that has a value.
        """
        if _PATH.fullmatch(path) is None:
            raise NameProblem(f"{path}: invalid syntax")
        unit: Unit = self._root
        found: _Found | None = None
        seen = ""
        for step in _STEP.finditer(path):
            name = step[1]
            before, seen = seen, path[: step.end()]
            if found is not None:
                found = self._inside(found, path, before, seen, name, step[2])
                continue
            if name is None:
                raise NameProblem(f"{path}: '{before}' is not a list.")
            member = unit.member(name)
            if isinstance(member, Unit):
                unit = member
                if unit.kind == "const":
                    found = self._constant(unit)
                continue
            if unit.kind == "struct" and (field := self._field(unit.id, name)) is not None:
                found = self._default(unit.id, field)
                continue
            if unit.kind == "struct":
                raise NameProblem(f"{path}: '{before}' has no member '{name}'.")
            raise NameProblem(f"{path}: '{name}' is not defined.")
        if found is None:
            raise NameProblem(f"{path}: '{seen}' cannot be evaluated.")
        return found.value, found.key

    def _constant(self, unit: Unit) -> _Found:
        body = self.registry.node(unit.id).body
        assert isinstance(body, ConstBody)
        return _Found(
            value_of(self.registry, body.type, body.value), self.registry.close(body.type, ()),
        )

    def _field(self, id: int, name: str) -> Field | None:
        body = self.registry.node(id).body
        assert isinstance(body, StructBody)
        for field in body.fields or ():
            if field.name == name:
                return field
        return None

    def _default(self, id: int, field: Field) -> _Found:
        if field.type is None:
            kind = struct_class(self.registry, self.registry.struct_info(id))
            message = kind.new_message()  # type: ignore[attr-defined]
            message.init(field.name)
            return _Found(message.as_reader()[field.name], ("struct", field.group_id, ()))
        assert field.default_value is not None
        key = self.registry.close(field.type, ())
        return _Found(value_of(self.registry, field.type, field.default_value), key)

    def _inside(
        self, found: _Found, path: str, before: str, seen: str, name: str | None, index: str | None,
    ) -> _Found:
        value, key = found.value, found.key
        if name is None:
            assert index is not None
            if key[0] != "list":
                raise NameProblem(f"{path}: '{before}' is not a list.")
            if int(index) >= len(value):  # type: ignore[arg-type]
                raise NameProblem(f"{path}: '{seen}' is out-of-bounds.")
            return _Found(value[int(index)], key[1])  # type: ignore[index]
        if key[0] not in ("struct", "group"):
            raise NameProblem(f"{path}: '{before}' is not a struct.")
        field = self._field(key[1], name)
        if field is None:
            raise NameProblem(f"{path}: '{before}' has no member '{name}'.")
        if field.type is None:
            return _Found(value[name], ("struct", field.group_id, key[2]))  # type: ignore[index]
        return _Found(value[name], self.registry.close(field.type, key[2]))  # type: ignore[index]



class _Found:
    """A value on the way along a path, with its type."""

    __slots__ = ("key", "value")

    def __init__(self, value: object, key: tuple[Any, ...]) -> None:
        self.value, self.key = value, key


def _refuse(diagnostics: list[Diagnostic]) -> None:
    if any(item.severity == "error" for item in diagnostics):
        raise CompileError(list(diagnostics))


