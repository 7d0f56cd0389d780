"""Statements to declarations, tokens to expressions.

A declaration that does not parse is reported and left out; the rest of the file goes on.  Names
are not looked up here.  Spec: schema-language.md, 2.2.
"""

from __future__ import annotations

from capnwire.compiler.lexer import lex
from capnwire.compiler.syntax import (
    Applied,
    Declaration,
    Expression,
    Name,
    Ordinal,
    Param,
    Params,
    Source,
    Statement,
    Token,
)

ANNOTATION_TARGETS = (
    "file", "const", "enum", "enumerant", "struct", "field", "union", "group", "interface",
    "method", "param", "annotation",
)

EMPTY_ITEM = "Parse error: Empty list item."
INVALID_ID = "Invalid ID.  Please generate a new one with 'capnpc -i'."
ORDINAL_TOO_BIG = "Ordinals cannot be greater than 65535."
WANTS_BLOCK = "This statement should end with a block, not a semicolon."
WANTS_SEMICOLON = "This statement should end with a semicolon, not a block."
UNION_NUMBER = (
    "As of Cap'n Proto v0.3, it is no longer necessary to assign numbers to unions. However, "
    "removing the number will break binary compatibility. If this is an old protocol and you need "
    "to retain compatibility, please add an exclamation point after the number to indicate that it "
    "is really needed, e.g. `foo @1! :union {`. If this is a new protocol or compatibility doesn't "
    "matter, just remove the @n entirely. Sorry for the inconvenience, and thanks for being an "
    "early adopter!  :)"
)
UNION_COLON = (
    "As of Cap'n Proto v0.3, the 'union' keyword should be prefixed with a colon for named unions, "
    "e.g. `foo :union {`."
)
USING_NEEDS_NAME = (
    "'using' declaration without '=' must specify a named declaration from a different scope."
)
DUPLICATE_TARGET = "Duplicate target specification."
BAD_TARGET = "Not a valid annotation target."
WILDCARD_WITH_OTHERS = "Wildcard should not be specified together with other targets."
TOO_MANY_PARTS = "Expression has too many parts."

MAX_PARTS = 200
"""Suffixes (`.name`, `(…)`) of one expression; each is one level when it is evaluated."""

_END: Token = ("end", None, 0, 0)
_BLOCK_KINDS = frozenset(("enum", "struct", "interface", "union", "group", "file"))


class _Mismatch(Exception):
    """The tokens are no such thing; `at` is the index of the token that was not expected."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class _Cursor:
    """A place in a row of tokens; `seen` is the last token that was looked at and left.

    `whole` is the list that the tokens are an item of.
    """

    __slots__ = ("at", "seen", "source", "tokens", "whole")

    def __init__(self, source: Source, tokens: list[Token], whole: Token = _END) -> None:
        self.source, self.tokens, self.at, self.seen = source, tokens, 0, -1
        self.whole = whole

    def peek(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def is_op(self, text: str) -> bool:
        """Whether the next token is that operator; takes it if so."""
        token = self.peek()
        if token[0] == "op" and token[1] == text:
            self.at += 1
            return True
        return False

    def is_word(self, text: str) -> bool:
        """Whether the next token is that word; takes it if so."""
        token = self.peek()
        if token[0] == "name" and token[1] == text:
            self.at += 1
            return True
        return False

    def op(self, text: str) -> None:
        if not self.is_op(text):
            raise _Mismatch(self.at)

    def word(self, text: str) -> None:
        if not self.is_word(text):
            raise _Mismatch(self.at)

    def take(self, kind: str) -> Token:
        token = self.peek()
        if token[0] != kind:
            raise _Mismatch(self.at)
        self.at += 1
        return token

    def name(self) -> Name:
        token = self.take("name")
        return Name(token[1], token[2], token[3])  # type: ignore[arg-type]

    def end(self) -> None:
        """The tokens must all have been taken."""
        if self.at < len(self.tokens):
            raise _Mismatch(self.at)

    def end_unseen(self) -> None:
        """Like `end`, where the grammar ends without having looked at a further token."""
        if self.at < len(self.tokens):
            raise _Mismatch(self.at - 1)

    def list_items(self, kind: str) -> list[_Cursor]:
        whole = self.take(kind)
        items: list[list[Token]] = whole[1]  # type: ignore[assignment]
        return [_Cursor(self.source, item, whole) for item in items]

    def report_item(self, mismatch: _Mismatch) -> None:
        """Report that this list item does not parse."""
        tokens = self.tokens
        if not tokens:
            self.source.error(self.whole[2], self.whole[3], EMPTY_ITEM)
            return
        best = max(mismatch.at, self.seen) + 1
        first = tokens[best] if best < len(tokens) else tokens[0]
        self.source.error(first[2], tokens[-1][3], "Parse error.")


# --- expressions -------------------------------------------------------------------------------


def _expression(cursor: _Cursor) -> Expression:
    expr = _base(cursor)
    parts = 0
    while cursor.at < len(cursor.tokens):
        token = cursor.tokens[cursor.at]
        if token[0] == "op" and token[1] == ".":
            cursor.at += 1
            if cursor.peek()[0] != "name":
                cursor.seen = cursor.at
                cursor.at -= 1
                break
            name = cursor.name()
            expr = Expression("member", expr.start, name.end, name, base=expr)
        elif token[0] == "(":
            items = _tuple_items(cursor)
            expr = Expression("apply", expr.start, token[3], items=items, base=expr)
        else:
            break
        parts += 1
        if parts > MAX_PARTS:
            cursor.source.error(expr.start, expr.end, TOO_MANY_PARTS)
            raise _Mismatch(cursor.at)
    return expr


def _base(cursor: _Cursor) -> Expression:
    token = cursor.peek()
    kind, value, start, end = token
    if kind == "name":
        cursor.at += 1
        if value in ("import", "embed"):
            path = cursor.peek()
            if path[0] == "string":
                cursor.at += 1
                text = path[1].decode("utf-8", "replace")  # type: ignore[attr-defined]
                return Expression(value, start, path[3], Name(text, path[2], path[3]))
        return Expression("relative", start, end, Name(value, start, end))  # type: ignore[arg-type]
    if kind == "int" or kind == "float" or kind == "binary":
        cursor.at += 1
        return Expression(kind, start, end, value)
    if kind == "string":
        parts = [value]
        cursor.at += 1
        while cursor.peek()[0] == "string":
            parts.append(cursor.peek()[1])
            end = cursor.peek()[3]
            cursor.at += 1
        return Expression("string", start, end, b"".join(parts))  # type: ignore[arg-type]
    if kind == "[":
        items = [(None, _whole_item(item)) for item in cursor.list_items("[")]
        return Expression("list", start, end, items=items)  # type: ignore[arg-type]
    if kind == "(":
        tuple_items = _tuple_items(cursor)
        if len(tuple_items) == 1 and tuple_items[0][0] is None:
            return tuple_items[0][1]
        return Expression("tuple", start, end, items=tuple_items)
    if cursor.is_op("-"):
        return _negative(cursor, start)
    if cursor.is_op("."):
        name = cursor.name()
        return Expression("absolute", start, name.end, name)
    raise _Mismatch(cursor.at)


def _negative(cursor: _Cursor, start: int) -> Expression:
    kind, value, inner, end = cursor.peek()
    # The place of a negative number is that of its digits.
    if kind == "int":
        cursor.at += 1
        return Expression("negative", inner, end, value)
    if kind == "float":
        cursor.at += 1
        return Expression("float", inner, end, -value)  # type: ignore[operator]
    cursor.word("inf")
    return Expression("float", start, end, float("-inf"))


def _whole_item(cursor: _Cursor) -> Expression:
    """The expression that a list item is, or an unknown one after reporting it."""
    return _tuple_item(cursor, may_have_name=False)[1]


def _tuple_item(cursor: _Cursor, *, may_have_name: bool) -> tuple[Name | None, Expression]:
    tokens = cursor.tokens
    name = None
    try:
        if (
            may_have_name and len(tokens) > 1
            and tokens[0][0] == "name" and tokens[1][:2] == ("op", "=")
        ):
            name = cursor.name()
            cursor.at = 2
        expr = _expression(cursor)
        cursor.end()
        return name, expr
    except _Mismatch as mismatch:
        cursor.report_item(mismatch)
        return None, Expression("unknown", 0, 0)


def _tuple_items(cursor: _Cursor) -> list[tuple[Name | None, Expression]]:
    return [_tuple_item(item, may_have_name=True) for item in cursor.list_items("(")]


def _annotations(cursor: _Cursor) -> list[Applied]:
    applied: list[Applied] = []
    while cursor.at < len(cursor.tokens) and cursor.is_op("$"):
        applied.append(_applied(_expression(cursor)))
    return applied


def _applied(expr: Expression) -> Applied:
    if expr.kind != "apply" or expr.base is None:
        return Applied(expr, None)
    items = expr.items
    if len(items) == 1 and items[0][0] is None:
        return Applied(expr.base, items[0][1])
    return Applied(expr.base, Expression("tuple", 0, 0, items=items))


# --- pieces of declarations --------------------------------------------------------------------


def _uid(cursor: _Cursor) -> Ordinal | None:
    if not cursor.is_op("@"):
        return None
    _, value, start, end = cursor.take("int")
    if value < 1 << 63:  # type: ignore[operator]
        cursor.source.error(start, end, INVALID_ID)
    return Ordinal(value, start, end)  # type: ignore[arg-type]


def _ordinal(cursor: _Cursor) -> Ordinal:
    cursor.op("@")
    _, value, start, end = cursor.take("int")
    if value > 0xFFFF:  # type: ignore[operator]
        cursor.source.error(start, end, ORDINAL_TOO_BIG)
    return Ordinal(value, start, end)  # type: ignore[arg-type]


def _names(cursor: _Cursor, kind: str) -> list[Name]:
    names = []
    for item in cursor.list_items(kind):
        try:
            name = item.name()
            item.end_unseen()
            names.append(name)
        except _Mismatch as mismatch:
            item.report_item(mismatch)
            names.append(Name("", 0, 0))  # it counts all the same
    return names


def _params(cursor: _Cursor) -> Params:
    token = cursor.peek()
    if token[0] == "(":
        items = []
        for item in cursor.list_items("("):
            try:
                items.append(_param(item))
            except _Mismatch as mismatch:
                item.report_item(mismatch)
        return Params("list", token[2], token[3], items)
    if cursor.is_word("stream"):
        return Params("stream", token[2], token[3])
    expr = _expression(cursor)
    return Params("type", expr.start, expr.end, type=expr)


def _param(cursor: _Cursor) -> Param:
    name = cursor.name()
    cursor.op(":")
    type = _expression(cursor)
    default = _expression(cursor) if cursor.is_op("=") else None
    annotations = _annotations(cursor)
    cursor.end()
    return Param(name, type, default, annotations, cursor.tokens[0][2], cursor.tokens[-1][3])


# --- declarations ------------------------------------------------------------------------------


def _using(cursor: _Cursor) -> Declaration:
    tokens = cursor.tokens
    if len(tokens) > 2 and tokens[1][0] == "name" and tokens[2][:2] == ("op", "="):
        decl = Declaration("using", cursor.name())
        cursor.at += 1
        decl.type = _expression(cursor)
        return decl
    expr = _expression(cursor)
    if expr.kind == "member":
        name: Name = expr.value  # type: ignore[assignment]
    else:
        cursor.source.error(expr.start, expr.end, USING_NEEDS_NAME)
        name = Name("", expr.start, expr.end)
    decl = Declaration("using", name)
    decl.type = expr
    return decl


def _const(cursor: _Cursor) -> Declaration:
    decl = Declaration("const", cursor.name())
    decl.id = _uid(cursor)
    cursor.op(":")
    decl.type = _expression(cursor)
    cursor.op("=")
    decl.value = _expression(cursor)
    decl.annotations = _annotations(cursor)
    return decl


def _enum(cursor: _Cursor) -> Declaration:
    decl = Declaration("enum", cursor.name())
    decl.id = _uid(cursor)
    decl.annotations = _annotations(cursor)
    return decl


def _generic_head(cursor: _Cursor, kind: str) -> Declaration:
    decl = Declaration(kind, cursor.name())
    decl.id = _uid(cursor)
    if cursor.peek()[0] == "(":
        decl.generic = True
        decl.params = _names(cursor, "(")
    return decl


def _struct(cursor: _Cursor) -> Declaration:
    decl = _generic_head(cursor, "struct")
    decl.annotations = _annotations(cursor)
    return decl


def _interface(cursor: _Cursor) -> Declaration:
    decl = _generic_head(cursor, "interface")
    if cursor.is_word("extends"):
        decl.superclasses = [_whole_item(item) for item in cursor.list_items("(")]
    decl.annotations = _annotations(cursor)
    return decl


def _annotation(cursor: _Cursor) -> Declaration:
    decl = Declaration("annotation", cursor.name())
    decl.id = _uid(cursor)
    found: list[Token] = []
    items = cursor.list_items("(")
    for item in items:
        try:
            token = item.peek()
            if not item.is_op("*"):
                item.name()
            item.end_unseen()
            found.append(token)
        except _Mismatch as mismatch:
            item.report_item(mismatch)
    cursor.op(":")
    decl.type = _expression(cursor)
    decl.annotations = _annotations(cursor)
    targets: set[str] = set()
    for kind, name, start, end in found:
        if kind == "op":
            if len(items) > 1:
                cursor.source.error(start, end, WILDCARD_WITH_OTHERS)
            targets.update(ANNOTATION_TARGETS)
        elif name not in ANNOTATION_TARGETS:
            cursor.source.error(start, end, BAD_TARGET)
        elif name in targets:
            cursor.source.error(start, end, DUPLICATE_TARGET)
        else:
            targets.add(name)
    decl.targets = frozenset(targets)
    return decl


_GENERIC = {
    "using": _using, "const": _const, "enum": _enum, "struct": _struct, "interface": _interface,
    "annotation": _annotation,
}


def _generic(cursor: _Cursor) -> Declaration:
    """A declaration that may stand in files, structs and interfaces."""
    parse = _GENERIC.get(cursor.take("name")[1])  # type: ignore[call-overload]
    if parse is None:
        raise _Mismatch(cursor.at - 1)
    decl: Declaration = parse(cursor)
    return decl


def _file_member(cursor: _Cursor) -> Declaration:
    token = cursor.peek()
    if token[0] == "name":
        return _generic(cursor)
    decl = Declaration("id", Name("", token[2], token[3]))
    if token[:2] == ("op", "@"):
        decl.id = _uid(cursor)
        cursor.end_unseen()
        return decl
    if token[:2] == ("op", "$"):
        cursor.at += 1
        decl.kind = "applied"
        decl.annotations = [_applied(_expression(cursor))]
        return decl
    raise _Mismatch(0)


def _struct_member(cursor: _Cursor) -> Declaration:
    tokens = cursor.tokens
    first = tokens[0]
    if first[0] == "name" and len(tokens) > 1 and tokens[1][0] == "op":
        mark = tokens[1][1]
        if mark == "@":
            return _numbered_member(cursor)
        if mark == ":":
            return _scope_member(cursor)
    if first[:2] == ("name", "union") and len(tokens) == 1:
        cursor.at = 1
        return Declaration("union", Name("", first[2], first[3]))
    if first[0] == "name" and first[1] in _GENERIC:
        return _generic(cursor)
    # The alternatives look at the token after a name, whatever the name is.
    raise _Mismatch(min(1, len(tokens) - 1) if first[0] == "name" else 0)


def _numbered_member(cursor: _Cursor) -> Declaration:
    """A field, or a union with an ordinal of its own."""
    name = cursor.name()
    ordinal = _ordinal(cursor)
    after = cursor.at
    tokens = cursor.tokens
    if (
        ordinal.value <= 0xFFFF and len(tokens) > 4
        and tokens[3][1] == ":" and tokens[4][1] != "union"
    ):
        return _field(cursor, name, ordinal)
    has_bang = cursor.is_op("!")
    has_colon = cursor.is_op(":")
    if cursor.is_word("union"):
        if not has_bang:
            cursor.source.error(ordinal.start, ordinal.end, UNION_NUMBER)
        if not has_colon:
            cursor.source.error(ordinal.start, ordinal.end, UNION_COLON)
        decl = Declaration("union", name)
        decl.ordinal = ordinal
        decl.annotations = _annotations(cursor)
        return decl
    looked_at = cursor.at
    cursor.at = after
    if ordinal.value > 0xFFFF:
        # Reported for each alternative that reads it, as the reference does.
        cursor.source.error(ordinal.start, ordinal.end, ORDINAL_TOO_BIG)
    if cursor.peek()[:2] != ("op", ":"):
        raise _Mismatch(max(cursor.at, looked_at))
    return _field(cursor, name, ordinal)


def _field(cursor: _Cursor, name: Name, ordinal: Ordinal) -> Declaration:
    """The rest of a field, from the colon on."""
    decl = Declaration("field", name)
    decl.ordinal = ordinal
    cursor.op(":")
    if cursor.at + 1 == len(cursor.tokens) and cursor.peek()[0] == "name":
        decl.type = _base(cursor)  # a plain name and nothing else, as most fields have
        return decl
    decl.type = _expression(cursor)
    if cursor.is_op("="):
        decl.value = _expression(cursor)
    decl.annotations = _annotations(cursor)
    return decl


def _scope_member(cursor: _Cursor) -> Declaration:
    name = cursor.name()
    cursor.op(":")
    kind = cursor.take("name")
    if kind[1] not in ("union", "group"):
        raise _Mismatch(cursor.at - 1)
    decl = Declaration(kind[1], name)
    decl.annotations = _annotations(cursor)
    return decl


def _enum_member(cursor: _Cursor) -> Declaration:
    decl = Declaration("enumerant", cursor.name())
    decl.ordinal = _ordinal(cursor)
    decl.annotations = _annotations(cursor)
    return decl


def _interface_member(cursor: _Cursor) -> Declaration:
    tokens = cursor.tokens
    if not (len(tokens) > 1 and tokens[0][0] == "name" and tokens[1][:2] == ("op", "@")):
        if tokens[0][0] == "name" and tokens[0][1] not in _GENERIC:
            raise _Mismatch(min(1, len(tokens) - 1))
        return _generic(cursor)
    decl = Declaration("method", cursor.name())
    decl.ordinal = _ordinal(cursor)
    if cursor.peek()[0] == "[":
        decl.params = _names(cursor, "[")
    decl.requests = _params(cursor)
    if cursor.is_op("->"):
        decl.results = _params(cursor)
    decl.annotations = _annotations(cursor)
    return decl


_MEMBERS = {
    "file": _file_member, "struct": _struct_member, "union": _struct_member,
    "group": _struct_member, "enum": _enum_member, "interface": _interface_member,
}


def _declaration(source: Source, statement: Statement, parent: str) -> Declaration | None:
    """The declaration that a statement is, with its members; None after reporting an error."""
    if not statement.tokens:
        source.error(statement.start, statement.start, "Parse error.")
        return None
    cursor = _Cursor(source, statement.tokens)
    try:
        decl = _MEMBERS[parent](cursor)
        cursor.end()
    except _Mismatch as mismatch:
        tokens = statement.tokens
        best = max(mismatch.at, cursor.seen) + 1
        at = tokens[best][2] if best < len(tokens) else tokens[-1][3]
        source.error(at, at, "Parse error.")
        return None
    decl.start, decl.end, decl.doc = statement.start, statement.end, statement.doc
    if decl.kind in _BLOCK_KINDS:
        if statement.block is None:
            source.error(statement.start, statement.end, WANTS_BLOCK)
        else:
            for inner in statement.block:
                member = _declaration(source, inner, decl.kind)
                if member is not None:
                    decl.nested.append(member)
    elif statement.block is not None:
        source.error(statement.start, statement.end, WANTS_SEMICOLON)
    return decl


ONE_ID = "File can only have one ID."


def parse_file(source: Source) -> tuple[Declaration, bool]:
    """The declaration that a file is, and whether its text could be cut into statements at all.

    The file's `id` is that of its `@0x…;` statement, its annotations those of its `$…;`
    statements.
    """
    lexed = lex(source)
    file = Declaration("file", Name("", 0, 0))
    file.end = len(source.text)
    for statement in lexed.statements:
        decl = _declaration(source, statement, "file")
        if decl is None:
            continue
        if decl.kind == "id":
            if file.id is not None:
                source.error(statement.start, statement.end, ONE_ID)
            else:
                file.id, file.doc = decl.id, decl.doc
        elif decl.kind == "applied":
            file.annotations.extend(decl.annotations)
        else:
            file.nested.append(decl)
    return file, not lexed.failed
