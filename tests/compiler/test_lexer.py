"""Text to statements and tokens."""

from __future__ import annotations

import pytest

from capnwire.compiler.diagnostics import Diagnostic, Reporter
from capnwire.compiler.lexer import MAX_NESTING, lex
from capnwire.compiler.syntax import Source, Statement


def run(text: str | bytes) -> tuple[list[Statement], list[str]]:
    data = text if isinstance(text, bytes) else text.encode()
    found: list[Diagnostic] = []
    lexed = lex(Source(data.decode("latin-1"), Reporter("a", found)))
    return lexed.statements, [str(item) for item in found]


def tokens(text: str | bytes) -> list[tuple[str, object]]:
    statements, errors = run(text if isinstance(text, bytes) else text + ";")
    assert errors == []
    return [token[:2] for token in statements[0].tokens]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0", [("int", 0)], id="zero"),
        pytest.param("017", [("int", 15)], id="octal"),
        pytest.param("08", [("int", 0), ("int", 8)], id="no octal digit: two numbers"),
        pytest.param("0xfF", [("int", 255)], id="hexadecimal"),
        pytest.param("100000000000000000000", [("int", 7766279631452241920)], id="wraps at 2**64"),
        pytest.param("0x1" + "0" * 16, [("int", 0)], id="hexadecimal wraps too"),
        pytest.param("1.", [("float", 1.0)], id="no digit after the point"),
        pytest.param("1e3", [("float", 1000.0)], id="exponent alone"),
        pytest.param("1.5E-1", [("float", 0.15)], id="negative exponent"),
        pytest.param("a.b", [("name", "a"), ("op", "."), ("name", "b")], id="member"),
        pytest.param(":.Foo", [("op", ":."), ("name", "Foo")], id="operators are greedy"),
        pytest.param("=-1", [("op", "=-"), ("int", 1)], id="sign sticks to the equals sign"),
        pytest.param("- 5", [("op", "-"), ("int", 5)], id="sign apart"),
        pytest.param("-> @!$*", [("op", "->"), ("op", "@!$*")], id="runs end at a space"),
        pytest.param("_a1 _", [("name", "_a1"), ("name", "_")], id="underscores"),
        pytest.param('"a\\x41\\101\\n\\?"', [("string", b"aAA\n?")], id="escapes"),
        pytest.param('"\\777"', [("string", b"\xff")], id="octal escape is one byte"),
        pytest.param('"ü"', [("string", "ü".encode())], id="bytes of a string are kept"),
        pytest.param("`a \\n\n", [("string", b"a \\n\n")], id="line string"),
        pytest.param("`\n`b\r\n", [("string", b"\n"), ("string", b"b\n")], id="two line strings"),
        pytest.param('0x"0a  fF"', [("binary", b"\x0a\xff")], id="bytes with a space"),
        pytest.param("[]", [("[", [])], id="empty list"),
        pytest.param("(1,)", [("(", [[("int", 1, 1, 2)]])], id="trailing comma"),
    ],
)
def test_tokens(text: str, expected: list[tuple[str, object]]) -> None:
    assert tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('"abc', 5), ('"ab\\qc"', 5), ('"\\x1g"', 5), ('0x"";', 4), ('0x"0 1";', 5), ("0x;", 3),
        ("12a;", 3), ("1.5.5;", 4), ("(1;", 3), ("(1];", 3), ("}", 1), ("a", 2), ("a }", 3),
        ("a { b }", 7), ("'x'", 1), ("é", 1), ("012a;", 4),
    ],
)
def test_failure_is_reported_where_reading_stopped(text: str, column: int) -> None:
    statements, errors = run(text)
    assert statements == []
    assert errors == [f"a:1:{column}: error: Parse error."]


def test_byte_order_mark_is_space_anywhere() -> None:
    assert tokens(b"\xef\xbb\xbfa \xef\xbb\xbf b;") == [("name", "a"), ("name", "b")]


def test_statement_spans_its_doc_comment_to_the_last_newline() -> None:
    text = "a b;  # doc\n  #more\n\n# not\nc;"
    statements, _ = run(text)
    first, second = statements
    assert first.doc == "doc\nmore\n"
    assert text[first.start : first.end] == "a b;  # doc\n  #more\n"
    assert (second.doc, text[second.start : second.end]) == (None, "c;")


def test_doc_comment_after_the_opening_brace_wins() -> None:
    statements, _ = run("a { # inner\n b; # of b\n} # outer\n")
    assert statements[0].doc == "inner\n"
    assert statements[0].block is not None
    assert statements[0].block[0].doc == "of b\n"


def test_doc_comment_may_follow_the_closing_brace() -> None:
    statements, _ = run("a {}\n# outer")
    assert statements[0].doc == "outer\n"


@pytest.mark.parametrize("pair", ["()", "[]", "{}"])
def test_nesting_is_bounded(pair: str) -> None:
    opening, closing = pair
    head = "a " if pair == "{}" else ""
    tail = "" if pair == "{}" else ";"
    deep = f"{(head + opening) * MAX_NESTING}{closing * MAX_NESTING}{tail}"
    assert run(deep)[1] == []
    deeper = f"{(head + opening) * (MAX_NESTING + 1)}{closing * (MAX_NESTING + 1)}{tail}"
    assert "Nested too deeply" in run(deeper)[1][0]
