"""Schema text to statements and tokens.

The text comes as one character a byte (latin-1), so that every offset is a byte offset.  A token
is `(kind, value, start, end)` with the kinds `name`, `op`, `string` and `binary` (bytes), `int`,
`float`, and the two lists `(` and `[`, whose value is a list of items, each a list of tokens.
One regular expression finds one token with the space before it.  Spec: schema-language.md, 2.1.
"""

from __future__ import annotations

import re

from capnwire.compiler.syntax import Source, Statement, Token

MAX_NESTING = 64
"""Blocks and lists inside each other; more is refused, since the parser recurses into them."""

_SPACE = r"[ \f\n\r\t\v]*(?:(?:\#[^\n]*|\xef\xbb\xbf)[ \f\n\r\t\v]*)*"
_ESCAPE = r"""\\(?:[abfnrtv'"\\?]|x[0-9a-fA-F]{2}|[0-7]{1,3})"""

_TOKEN = re.compile(
    _SPACE
    + r"(?:([A-Za-z_][A-Za-z0-9_]*)"  # 1 name
    + r"|([!$%&*+\-./:<=>?@^|~]+)"  # 2 operator
    + r"|(0[0-7]*(?![0-7A-Za-z_.])|[1-9][0-9]*(?![0-9A-Za-z_.])"  # 3 int
    + r"|0x[0-9a-fA-F]+(?![0-9A-Za-z_.]))"
    + r"|([;{}(),\[\]])"  # 4 structure
    + rf'|"((?:[^"\\\n]|{_ESCAPE})*)"'  # 5 string
    + r"|`([^\r\n]*)"  # 6 line string
    + r"|([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.]))"  # 7 float
    + r'|0x"([ \f\n\r\t\v]*(?:[0-9a-fA-F]{2}[ \f\n\r\t\v]*)+)"'  # 8 binary
    + r"|(\x00|\xff\xfe|\xfe\xff)"  # 9 not UTF-8
    + r"|(\Z))"  # 10 end
)
_AFTER_SPACE = re.compile(_SPACE)
_DOC = re.compile(r"[ \f\r\t\v]*\n?((?:[ \f\r\t\v]*\#[^\n]*(?:\n|\Z))+)")
_DOC_LINE = re.compile(r"[ \f\r\t\v]*\# ?([^\n]*)(?:\n|\Z)")
_ESCAPES = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_PLAIN_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "'": "'", '"': '"', "\\": "\\", "?": "?",
}
# How far the reference's lexer looks into a token that it then refuses.
_PARTIAL = re.compile(
    rf'0x"[ \f\n\r\t\v]*(?:[0-9a-fA-F]{{2}}[ \f\n\r\t\v]*)*[0-9a-fA-F]?'
    rf'|"(?:[^"\\\n]|{_ESCAPE})*(?:\\(?:x[0-9a-fA-F]?)?)?'
    r"|0x[0-9a-fA-F]*|[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?"
    r"|\xef\xbb?|\xff|\xfe"
)

NOT_UTF8 = "Non-UTF-8 input detected. Cap'n Proto schema files must be UTF-8 text."
TOO_DEEP = "Nested too deeply."


def unescape(text: str) -> bytes:
    """The bytes of a string literal's inside."""
    if "\\" not in text:
        return text.encode("latin-1")

    def one(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "x":
            return chr(int(code[1:], 16))
        if code[0] in "01234567":
            return chr(int(code, 8) & 0xFF)
        return _PLAIN_ESCAPES[code]

    return _ESCAPES.sub(one, text).encode("latin-1")


def _integer(text: str) -> int:
    if text[0] != "0" or len(text) == 1:
        # Digits beyond 64 bits wrap around; a long run of them must not cost quadratic time.
        return int(text) & 0xFFFFFFFFFFFFFFFF if len(text) < 100 else _wrapped(text, 10)
    digits = text[2:] if text[1] == "x" else text[1:]
    return int(digits, 16 if text[1] == "x" else 8) & 0xFFFFFFFFFFFFFFFF


def _wrapped(digits: str, base: int) -> int:
    value = 0
    for digit in digits:
        value = (value * base + int(digit)) & 0xFFFFFFFFFFFFFFFF
    return value


class _Failure(Exception):
    """The text cannot be cut into tokens; `at` is as far as could be read."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class LexedFile:
    """The statements of a file and its own doc comments' finder."""

    __slots__ = ("failed", "statements")

    def __init__(self, statements: list[Statement], failed: bool) -> None:
        self.statements, self.failed = statements, failed


def lex(source: Source) -> LexedFile:
    """Cut a file into statements; on failure report one error and give none."""
    try:
        return LexedFile(_Lexer(source).run(), False)
    except _Failure as failure:
        source.error(failure.at, failure.at, "Parse error.")
    return LexedFile([], True)


class _Lexer:
    """The state while cutting: the open blocks and the open lists of the current statement."""

    def __init__(self, source: Source) -> None:
        self.source, self.text = source, source.text

    def run(self) -> list[Statement]:
        """The file's statements.

        Raises:
            _Failure: the text ends too early or has a character that starts no token.
        """
        text, match_token = self.text, _TOKEN.match
        statements: list[Statement] = []
        blocks: list[tuple[list[Statement], Statement]] = []
        tokens: list[Token] = []
        lists: list[tuple[str, int, list[Token], list[list[Token]]]] = []
        position = 0
        while True:
            match = match_token(text, position)
            if match is None:
                raise _Failure(self.furthest(position))
            position = match.end()
            group = match.lastindex
            if group == 1:
                start, position = match.span(1)
                tokens.append(("name", match[1], start, position))
            elif group == 2:
                start, position = match.span(2)
                tokens.append(("op", match[2], start, position))
            elif group == 3:
                tokens.append(("int", _integer(match[3]), match.start(3), position))
            elif group == 4:
                mark = match[4]
                if mark == ";" and not lists:
                    statement = Statement(tokens, tokens[0][2] if tokens else position - 1)
                    position = self.finish(statement, position)
                    statements.append(statement)
                    tokens = []
                elif mark in "([":
                    self.check_depth(len(lists), position)
                    lists.append((mark, position - 1, tokens, []))
                    tokens = []
                elif mark in "),]" and lists:
                    tokens = self.in_list(mark, position, tokens, lists)
                elif mark == "{" and not lists:
                    self.check_depth(len(blocks), position)
                    statement = Statement(tokens, tokens[0][2] if tokens else position - 1)
                    position = self.finish(statement, position)
                    blocks.append((statements, statement))
                    statements, tokens = [], []
                elif mark == "}" and blocks and not tokens and not lists:
                    block = statements
                    statements, statement = blocks.pop()
                    statement.block = block
                    position = self.finish(statement, position)
                    statements.append(statement)
                else:
                    raise _Failure(position - 1)
            elif group == 10:
                if blocks or tokens or lists:
                    raise _Failure(position)
                return statements
            else:
                tokens.append(self.literal(match, position))

    def check_depth(self, depth: int, position: int) -> None:
        """Refuse to go deeper, at the opening mark before `position`."""
        if depth == MAX_NESTING:
            self.source.error(position - 1, position, TOO_DEEP)
            raise _Failure(position)

    def literal(self, match: re.Match[str], end: int) -> Token:
        """A string, float or binary token; reports bytes that are not UTF-8."""
        group = match.lastindex or 0
        if group == 5:
            return ("string", unescape(match[5]), match.start(5) - 1, end)
        if group == 6:
            return ("string", match[6].encode("latin-1") + b"\n", match.start(6) - 1, end)
        if group == 7:
            return ("float", float(match[7]), match.start(7), end)
        if group == 8:
            return ("binary", bytes.fromhex("".join(match[8].split())), match.start(8) - 3, end)
        self.source.error(match.start(9), end, NOT_UTF8)
        raise _Failure(end)

    def in_list(
        self, mark: str, end: int, tokens: list[Token],
        lists: list[tuple[str, int, list[Token], list[list[Token]]]],
    ) -> list[Token]:
        """Take a `,` or closing mark inside a list; gives the token list to go on with."""
        opening, start, outer, items = lists[-1]
        if mark == ",":
            items.append(tokens)
            return []
        if (opening == "(") != (mark == ")"):
            raise _Failure(end - 1)
        if tokens:
            items.append(tokens)
        # A trailing comma leaves no item behind; the parser reports other empty items.
        outer.append((opening, items, start, end))
        lists.pop()
        return outer

    def finish(self, statement: Statement, position: int) -> int:
        """Read the doc comment after `;`, `{` or `}`; gives where to go on."""
        statement.end = position
        match = _DOC.match(self.text, position)
        if match is not None:
            if statement.doc is None:
                lines = _DOC_LINE.findall(match[1])
                raw = "\n".join(lines) + "\n"
                statement.doc = raw.encode("latin-1").decode("utf-8", "surrogateescape")
            statement.end = match.end()
            return match.end()
        return position

    def furthest(self, position: int) -> int:
        """Where reading stopped inside the token that begins at or after `position`."""
        space = _AFTER_SPACE.match(self.text, position)
        start = space.end() if space is not None else position
        partial = _PARTIAL.match(self.text, start)
        return partial.end() if partial is not None else start
