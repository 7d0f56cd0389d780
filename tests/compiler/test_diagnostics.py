"""What is said about wrong schemas: texts, places and their order, as the reference says it."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from capnwire.compiler.diagnostics import Diagnostic
from capnwire.compiler.driver import compile_files, compile_text
from capnwire.errors import CompileError
from tests.compiler.reference import FILE_ID, STD, Reference

DATA = Path(__file__).parent / "data" / "questionable.txt"
QUESTIONABLE = DATA.read_text().rstrip("\n").split("\n---\n")

# Texts whose first line is not the file's id, or that are not UTF-8.
RAW = {
    "a NUL": FILE_ID.encode() + b"\0",
    "a NUL inside a word": FILE_ID.encode() + b"con\0st;",
    "a NUL inside a string": FILE_ID.encode() + b'const a :Text = "\0\xff\xfe";',
    "UTF-16": b"\xff\xfe@\0" + b"0\0x\0",
    "UTF-16 with the bytes exchanged": b"\xfe\xff",
    "stray UTF-16 mark": FILE_ID.encode() + b"a \xff\xfe",
    "other bytes above ASCII": FILE_ID.encode() + "struct É {}".encode(),
    "id without a semicolon": b"@0xb0b0b0b0b0b0b0b0",
    "block that does not end": b"struct A { \n\n\n  ",
    "word at the end": b"# c\nstruct",
    "place over several lines": FILE_ID.encode()
    + b"struct A { a @0 :Foo(\n\n Int8, Bar\n); b @1 :List(Int8,\nInt8); }",
    "constant of a wrong type over several lines": FILE_ID.encode()
    + b'const a :Int8 = "a"\n"b";\nconst c :List(Int8) = \n[\n"x",\n 1000];',
    "bytes, not characters, are counted": FILE_ID.encode()
    + 'const a :Text = "é" b; struct B { a @0 :Ü; }'.encode(),
    "constant in its own annotation": FILE_ID.encode()
    + b"annotation a(*) :P; struct P { x @0 :Int16; } const c :Int16 = 5 $a(x = .c);",
    "constants in one another's annotations": FILE_ID.encode()
    + b"annotation a(*) :P; struct P { x @0 :Int16; }\n"
    + b"const c :Int16 = 5 $a(x = .d); const d :Int16 = 6 $a(x = .c);",
    "tabs are one column": FILE_ID.encode() + b"\t\tconst a :\tFoo = 1;",
}

MODULES = (
    "checks", "driver", "layout", "lexer", "names", "nodes", "opened", "parser", "structs",
    "text_values", "types", "values",
)


def ours(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The messages about a.capnp, without the hints that only this compiler gives."""
    monkeypatch.chdir(directory)
    try:
        compile_files(["a.capnp"], standard_imports=False)
    except CompileError as error:
        found: list[Diagnostic] = error.diagnostics  # type: ignore[assignment]
        return [str(item) for item in found if item.severity == "error"]
    return []


def compare(
    text: bytes, reference: Reference, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (directory / "b.capnp").write_text("@0xb0b0b0b0b0b0b0b1; const x :Int8 = 1;")
    (directory / "a.capnp").write_bytes(text)
    outcome = reference.run(directory, ["a.capnp"])
    found = ours(directory, monkeypatch)
    if "File does not declare an ID" in str(outcome.messages):
        found, outcome.messages = (
            [re.sub("@0x[0-9a-f]+;", "", line) for line in lines]
            for lines in (found, outcome.messages)
        )
    if outcome.crashed:
        # Where the reference gives up, this compiler has something to say or goes on.
        assert found[: len(outcome.messages)] == outcome.messages
    else:
        assert found == outcome.messages


@pytest.mark.parametrize("number", range(len(QUESTIONABLE)))
def test_messages_about_a_questionable_schema_are_those_of_the_reference(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    compare((FILE_ID + QUESTIONABLE[number]).encode(), reference, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", sorted(RAW))
def test_messages_about_a_questionable_file_are_those_of_the_reference(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    compare(RAW[name], reference, tmp_path, monkeypatch)


# Texts that need other files, which are beside them.
WITH_FILES = {
    "embed that is not there": 'const a :Text = embed "absent"; '
    'struct A { a @0 :Data = embed ""; }',
    "embed of a wrong type": 'const a :List(Int8) = embed "t.txt"; '
    'const b :Int8 = embed "t.txt";',
    "embed that is no message": 'const a :A = embed "t.txt"; struct A { b @0 :A = embed "t.txt"; '
    "}",
    "embed in a list": 'const a :List(Text) = [embed "t.txt", embed "absent", embed "t.txt"];',
    "import of itself": 'using A = import "a.capnp"; struct B { b @0 :A.B; c @1 :A.C; }',
    "imports in a circle": 'using C = import "c.capnp"; const a :Int8 = C.c; const b :Foo = 1;',
    "import used as a type": 'struct A { a @0 :import "b.capnp"; b @1 :import "b.capnp".x; }',
    "import of a member that is not there": 'struct A { a @0 :import "b.capnp".Foo.Bar; }',
    "import of a directory": 'struct A { a @0 :import "folder".A; b @1 :import "folder/".A; }',
    "import of a file without an id": 'struct A { a @0 :import "d.capnp".D; }',
    "import of a file that does not parse": 'struct A { a @0 :import "e.capnp".E; b @1 :Foo; }',
    "import of a file with the same id": 'using F = import "f.capnp"; struct A { a @0 :F.A; }',
    "constant of another file": 'const a :Int8 = import "b.capnp".x; '
    'const b :Text = import "b.capnp".x;',
    "annotation of another file": 'struct A $import "b.capnp".x { a @0 :Int8 '
    '$import "b.capnp".y; }',
    "superclass of another file": 'interface A extends (import "b.capnp".x, import "d.capnp".D) {}',
    "the same struct id in two files": 'using G = import "g.capnp"; struct A @0xb0b0b0b0b0b0b0b8 {'
    " g @0 :G.G; h @1 :Foo; }",
}
OTHERS = {
    "t.txt": "five!",
    "c.capnp": '@0xb0b0b0b0b0b0b0b2; using A = import "a.capnp"; const c :Int8 = A.a; '
    "const d :Bar = 2;",
    "d.capnp": "struct D {}",
    "e.capnp": "@0xb0b0b0b0b0b0b0b3; struct E { a @0 :Int8 } struct {",
    "f.capnp": "@0xb0b0b0b0b0b0b0b0; struct A { a @0 :Int8; }",
    "g.capnp": "@0xb0b0b0b0b0b0b0b4; struct G @0xb0b0b0b0b0b0b0b8 { a @0 :Int8; }",
}


@pytest.mark.parametrize("name", WITH_FILES)
def test_messages_about_other_files_are_those_of_the_reference(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    for path, text in OTHERS.items():
        (tmp_path / path).write_text(text)
    compare((FILE_ID + WITH_FILES[name]).encode(), reference, tmp_path, monkeypatch)


# What only this compiler says: it has limits, and some of it reads values, not schemas.
OWN_TEXTS = {
    "BAD_TYPE_NAME", "ENDS_EARLY", "FILE_NAME", "NO_CONSTANTS", "NO_EMBEDS", "NO_STRUCT",
    "NO_VALUE", "TOO_DEEP", "TOO_LARGE", "TOO_MANY_BINDINGS", "TOO_MANY_PARTS",
    "NO_FILE_ID",  # has a test of its own below
}


def test_every_text_of_the_compiler_is_said_in_these_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = set()
    for path, text in {**OTHERS, "b.capnp": "@0xb0b0b0b0b0b0b0b1; const x :Int8 = 1;"}.items():
        (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    texts = [*QUESTIONABLE, *WITH_FILES.values()]
    for whole in [*((FILE_ID + text).encode() for text in texts), *RAW.values()]:
        try:
            compile_text(whole, filename="a.capnp", standard_imports=False)
        except CompileError as error:
            said |= {item.text for item in error.diagnostics}  # type: ignore[attr-defined]
    unsaid = []
    for module in MODULES:
        for name, text in vars(import_module(f"capnwire.compiler.{module}")).items():
            if name.isupper() and isinstance(text, str) and name not in OWN_TEXTS:
                pattern = re.sub(r"\\\{.*?\\\}", ".*", re.escape(text))
                if name[0] != "_" and not any(re.fullmatch(pattern, item) for item in said):
                    unsaid.append(f"{module}.{name}")
    assert [item for item in unsaid if not item.endswith(".STREAM_PATH")] == []


def test_missing_id_is_reported_at_the_start_of_the_file() -> None:
    with pytest.raises(CompileError) as raised:
        compile_text("  # nothing\n", filename="a.capnp")
    (only,) = raised.value.diagnostics
    assert str(only).startswith("a.capnp:1:1: error: File does not declare an ID.  I've generated")


def test_missing_id_is_not_reported_beside_other_errors() -> None:
    with pytest.raises(CompileError) as raised:
        compile_text("struct A", filename="a.capnp")
    assert [str(item) for item in raised.value.diagnostics] == [
        "a.capnp:1:9: error: Parse error."
    ]


def test_copy_of_a_schema_is_reported_on_both_sides(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "copy.capnp").write_text("@0xb0b0b0b0b0b0b0b1; struct A {}")
    (tmp_path / "original.capnp").write_text("@0xb0b0b0b0b0b0b0b1; struct A {} # as well")
    text = 'using A = import "original.capnp"; using B = import "copy.capnp";'
    compare((FILE_ID + text).encode(), reference, tmp_path, monkeypatch)


def test_errors_of_imported_files_are_reported_where_they_are(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "c.capnp").write_text("@0xb0b0b0b0b0b0b0b1; struct A { a @0 :Foo; } struct {}")
    text = 'using C = import "c.capnp"; struct A { a @0 :C.A; b @1 :C.B; }'
    compare((FILE_ID + text).encode(), reference, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-Iinc", "src/deep/s.capnp"], id="as given"),
        pytest.param(["-I./inc/", "--src-prefix=src", "src/deep/s.capnp"], id="dots and slashes"),
        pytest.param(["-I../{here}/inc", "--src-prefix=./src/deep/", "src/deep/s.capnp"], id="up"),
        pytest.param(["-I{path}/inc", "--src-prefix={path}/src", "{path}/src/deep/s.capnp"],
                     id="absolute"),
        pytest.param(["-Iinc", "-I{path}/inc", "src/deep/s.capnp"], id="twice"),
        pytest.param(["-Iinc", "inc/i.capnp", "src/deep/s.capnp"], id="requested and imported"),
        pytest.param(["-Iinc", "src/deep/s.capnp", "inc/i.capnp"], id="imported and requested"),
        pytest.param(["-I.", "src/deep/s.capnp"], id="nothing found"),
        pytest.param(["-Iinc", "../{here}/src/../src/deep/s.capnp"], id="roundabout"),
    ],
)
def test_files_are_named_by_the_directories_as_the_caller_spells_them(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "i.capnp").write_text("@0xb0b0b0b0b0b0b0b1; struct A { a @0 :Foo; }")
    (tmp_path / "src" / "deep" / "s.capnp").write_text(
        FILE_ID + 'struct A { a @0 :import "/i.capnp".A; } const b :Bar = 1;'
    )
    monkeypatch.chdir(tmp_path)
    given = [item.format(here=tmp_path.name, path=tmp_path) for item in arguments]
    outcome = reference.run(tmp_path, given)
    with pytest.raises(CompileError) as raised:
        compile_files(
            [item for item in given if item[0] != "-"],
            import_paths=[item[2:] for item in given if item.startswith("-I")],
            src_prefixes=[item[13:] for item in given if item.startswith("--src-prefix=")],
            standard_imports=False,
        )
    found: list[Diagnostic] = raised.value.diagnostics  # type: ignore[assignment]
    assert [str(item) for item in found if item.severity == "error"] == outcome.messages


def test_unfinished_float_is_an_error_here() -> None:
    with pytest.raises(CompileError, match=r":2:22: error: Parse error\."):
        compile_text(f"{FILE_ID}const a :Float32 = 1e;")


def test_layout_that_old_releases_got_wrong_is_refused_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CAPNP_IGNORE_ISSUE_344", raising=False)
    text = (
        "struct A { union { a @0 :Void; g :group { u :union { b @1 :UInt8; c @2 :UInt16; } "
        "d @3 :UInt32; } h @4 :UInt64; } }"
    )
    with pytest.raises(CompileError, match=r"Bad news: Cap'n Proto 0\.5\.x") as raised:
        compile_text(FILE_ID + text)
    assert raised.value.diagnostics[0].line == 2  # type: ignore[attr-defined]
    compile_text(FILE_ID + text, ignore_issue_344=True)
    monkeypatch.setenv("CAPNP_IGNORE_ISSUE_344", "1")
    compile_text(FILE_ID + text)


def test_diagnostic_has_its_place_in_lines_columns_and_bytes() -> None:
    text = f"{FILE_ID}struct A {{\n  a @0 :Foo;\n}}\n"
    with pytest.raises(CompileError) as raised:
        compile_text(text, filename="dir/a.capnp")
    (only,) = raised.value.diagnostics
    assert isinstance(only, Diagnostic)
    assert (only.filename, only.line, only.column, only.end_column) == ("dir/a.capnp", 3, 9, 12)
    assert text[only.start_byte : only.end_byte] == "Foo"
    assert only.source_line == "  a @0 :Foo;"
    assert str(raised.value) == "dir/a.capnp:3:9-12: error: Not defined: Foo"


def test_rendered_diagnostic_points_at_the_place() -> None:
    with pytest.raises(CompileError) as raised:
        compile_text(f'{FILE_ID}const a :Text = "ü"; const b :Foo = 1;', filename="a.capnp")
    (only,) = raised.value.diagnostics
    assert only.render().split("\n") == [  # type: ignore[attr-defined]
        "a.capnp:2:32: error: Not defined: Foo",
        '    const a :Text = "ü"; const b :Foo = 1;',
        "                                  ^^^",
    ]


def test_broken_embedded_message_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "s.bin").write_bytes(bytes.fromhex("0000000001000000 0000000001000000"))
    file = tmp_path / "a.capnp"
    file.write_text(f'{FILE_ID}struct S {{ t @0 :Int64; }} const s :S = embed "s.bin";')
    with pytest.raises(CompileError, match="not a valid Cap'n Proto message"):
        compile_files([file])


def test_bundled_schemas_have_nothing_to_complain_about() -> None:
    for file in sorted(STD.rglob("*.capnp")):
        compile_files([file])
