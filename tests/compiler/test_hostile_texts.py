"""Texts meant to hurt: each gives a request or a CompileError, soon, and never anything else."""

from __future__ import annotations

import random

import pytest

from capnwire.compiler.driver import compile_text
from capnwire.errors import CompileError
from tests.compiler.random_schemas import make_schema
from tests.compiler.reference import FILE_ID

PIECES = [
    b"(", b")", b"{", b"}", b"[", b"]", b";", b",", b"@", b"@0", b":", b"=", b"$", b".", b"union ",
    b"struct ", b"using ", b'import "x"', b'embed "x"', b"->", b"-", b'"', b"\\", b'0x"', b"\0",
    b"\xff\xfe", b"\xef\xbb\xbf", b"#", b"9" * 30, b"stream", b"extends", b"Text", b"List(",
    b"Point",
    b"null", b"void", b".origin", b"Box", b"1e400", b"*", b"\n", b"`x\n", b"group", b"$aInt",
    b"@70000", b'import "schema.capnp"', b'embed "schema.capnp"', b"\xc3", b"using A = A;",
]


def attempt(text: str | bytes) -> str:
    """Compile; the error's text, or nothing."""
    try:
        compile_text(text if isinstance(text, bytes) else FILE_ID + text)
    except CompileError as error:
        for item in error.diagnostics:
            item.render()  # type: ignore[attr-defined]
        return str(error)
    return ""


def mutate(text: bytearray, rng: random.Random) -> bytearray:
    if rng.random() < 0.2:
        return text[: rng.randrange(len(text))]
    for _ in range(rng.randint(1, 6)):
        start = rng.randrange(len(text) + 1)
        end = start + rng.choice((0, 1, 1, 3, 10, 60))
        kind = rng.random()
        if kind < 0.5:
            text[start:end] = rng.choice(PIECES)
        elif kind < 0.7:
            del text[start:end]
        elif kind < 0.85:
            other = rng.randrange(len(text) + 1)
            text[start:start] = text[other : other + rng.randrange(80)]
        else:
            text[start:end] = rng.randbytes(end - start)
    return text


@pytest.mark.parametrize("batch", range(4))
def test_mutated_schema_gives_a_request_or_diagnostics(rng: random.Random, batch: int) -> None:
    for _ in range(100):
        seed = rng.getrandbits(64)
        print(f"seed {seed}")
        own = random.Random(seed)
        attempt(bytes(mutate(bytearray(make_schema(seed).encode()), own)))


def test_every_beginning_of_a_schema_gives_a_request_or_diagnostics() -> None:
    whole = make_schema("beginnings").encode()
    for end in range(0, len(whole), 7):
        attempt(whole[:end])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"const a :Int8 = {'(' * 100_000}{')' * 100_000};", "Nested too deeply",
            id="parentheses",
        ),
        pytest.param("struct A {" * 5000 + "}" * 5000, "Nested too deeply", id="blocks"),
        pytest.param(f"const a :A{'.b' * 100_000} = 1;", "too many parts", id="member of member"),
        pytest.param(
            "".join(f"const a{i} :Int8 = .a{i + 1};" for i in range(3000))
            + "const a3000 :Int8 = 1;",
            "too deeply", id="chain of constants",
        ),
        pytest.param(
            "".join(f"using A{i} = A{i + 1};" for i in range(5000)) + "using A5000 = Int8;"
            "const a :A0 = 1;",
            "too deeply", id="chain of aliases",
        ),
        pytest.param(
            "struct A(T, U) {} using B0 = A(Text, Text);"
            + "".join(f"using B{i + 1} = A(B{i}, B{i});" for i in range(40))
            + "struct C { x @0 :B40; }",
            "Type is too large", id="type that doubles with each alias",
        ),
        pytest.param(
            "struct S { a @0 :List(S); } const c0 :S = ();"
            + "".join(f"const c{i + 1} :S = (a = [.c{i}, .c{i}]);" for i in range(40)),
            "Value is too large", id="value that doubles with each constant",
        ),
        pytest.param(
            "struct S { a @0 :S; } const c0 :S = ();"
            + "".join(f"const c{i + 1} :S = (a = .c{i});" for i in range(70)),
            "Value is too large", id="value deeper than readers go",
        ),
        pytest.param(
            f"const a :UInt64 = {'1' * 200_000}; const b :UInt64 = 0x{'f' * 200_000};"
            f"const c :Float64 = {'9' * 200_000};",
            "", id="long numbers",
        ),
        pytest.param("const a :Text = " + '"a" ' * 20_000 + ";", "", id="many strings"),
        pytest.param(f"struct A {{ {'f @0 :Foo; ' * 5000} }}", "Not defined", id="many errors"),
        pytest.param("#" * 1_000_000, "", id="long comment"),
        pytest.param('const a :Data = 0x"' + "01 " * 50_000, "Parse error", id="bytes without end"),
        pytest.param('const a :Data = 0x"' + " " * 50_000, "Parse error", id="spaces without end"),
        pytest.param(
            f"const a :Float32 = 1{'0' * 50_000}x;", "Parse error", id="digits and a letter"
        ),
        pytest.param('const a :Text = "\ud800";', "", id="lone surrogate"),
        pytest.param(
            'using A = import "a\\x00b"; const b :Text = embed "\\x00";', "failed", id="NUL"
        ),
        pytest.param(
            'using A = import "../../../../etc/passwd";', "Import failed", id="up and away"
        ),
        pytest.param('using A = import "/../etc/passwd";', "Import failed", id="up from a root"),
        pytest.param('using A = import "";', "Import failed", id="empty import"),
        pytest.param('const a :Data = embed "/etc/passwd";', "Couldn't read", id="absolute embed"),
        pytest.param(
            "struct A { union {"
            + "".join(f"f{i} :group {{ a{i} @{i} :UInt64; }}" for i in range(3000)) + "} }",
            "", id="union of many groups",
        ),
        pytest.param(
            "struct A { union { g :group {" + "".join(f"a{i} @{i} :UInt64;" for i in range(2000))
            + "} h :group {" + "".join(f"b{i} @{2000 + i} :UInt64;" for i in range(2000)) + "} } }",
            "", id="many locations",
        ),
    ],
)
def test_attack_is_bounded(text: str, expected: str) -> None:
    found = attempt(text)
    assert expected in found
    assert bool(found) == bool(expected)


def test_interpreter_works_after_a_stack_that_was_too_deep() -> None:
    text = "".join(f"const a{i} :Int8 = .a{i + 1};" for i in range(3000))
    assert "too deeply" in attempt(f"{text}const a3000 :Int8 = 1;")
    assert attempt("const a :Int8 = 1;") == ""
