"""Texts meant to hurt: each gives a request or a CompileError, soon, and never anything else."""

from __future__ import annotations

import os
import random
import re
import resource
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from capnwire.compiler.driver import compile_files, compile_text
from capnwire.compiler.emit_request import emit_request
from capnwire.errors import CompileError
from tests.compiler.mutations import mutated
from tests.compiler.random_schemas import make_schema
from tests.compiler.reference import FILE_ID, STD, Reference

MUTATED_COUNT = int(os.environ.get("CAPNWIRE_MUTATED_SCHEMAS") or 1000)
COMPARED_COUNT = int(os.environ.get("CAPNWIRE_COMPARED_MUTATIONS") or 400)
HANG_S = 60
MOST_MEMORY_KIB = 500 << 10

def attempt(text: str | bytes) -> str:
    """Compile; the error's text, or nothing."""
    try:
        compile_text(text if isinstance(text, bytes) else FILE_ID + text)
    except CompileError as error:
        for item in error.diagnostics:
            item.render()  # type: ignore[attr-defined]
        return str(error)
    return ""


@pytest.fixture
def watchdog() -> Iterator[Callable[[], None]]:
    """Call it before each text: one that takes too long fails the test, wherever it is."""

    def bark(number: int, frame: object) -> None:
        pytest.fail(f"no answer in {HANG_S} s")

    before = signal.signal(signal.SIGALRM, bark)
    try:
        yield lambda: signal.alarm(HANG_S) and None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_mutated_schema_gives_a_request_or_diagnostics(
    rng: random.Random, watchdog: Callable[[], None], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(MUTATED_COUNT):
        seed = rng.getrandbits(64)
        print(f"seed {seed}")
        text = mutated(seed)
        watchdog()
        attempt(text)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used
    assert grown < MOST_MEMORY_KIB


@pytest.mark.slow
def test_mutated_schema_gives_what_the_reference_gives(
    reference: Reference, rng: random.Random, watchdog: Callable[[], None], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "a.capnp"
    monkeypatch.setenv("CAPNP_IGNORE_ISSUE_344", "1")
    outcomes = {
        "the same bytes": 0, "the same messages": 0, "other messages": 0, "not UTF-8": 0,
        "the reference gives up": 0,
    }
    for _ in range(COMPARED_COUNT):
        seed = rng.getrandbits(64)
        file.write_bytes(mutated(seed))
        outcome = reference.run(tmp_path, ["a.capnp"], options=[f"-I{STD}"])
        watchdog()
        try:
            ours = compile_files(["a.capnp"], import_paths=[STD], standard_imports=False)
        except CompileError as error:
            found = without_made_up_id(error.diagnostics)
            messages = without_made_up_id(outcome.messages)
            if outcome.crashed:
                kind = "the reference gives up"
            elif found == messages:
                kind = "the same messages"
            elif any("UTF-8 is wanted" in line for line in found):
                kind = "not UTF-8"  # the message layer stores no such Text in a constant
            else:
                kind = "other messages"  # about what follows from an error, after several
                print(f"other messages: seed {seed}")
                assert messages, f"seed {seed}"
            outcomes[kind] += 1
        else:
            if outcome.crashed:
                outcomes["the reference gives up"] += 1
                continue
            assert outcome.request, f"seed {seed}: {outcome.messages}"
            ours.version = reference.read_version(outcome.request)
            assert emit_request(ours) == outcome.request, f"seed {seed}"
            outcomes["the same bytes"] += 1
    print(outcomes)
    assert outcomes["the reference gives up"] < COMPARED_COUNT / 8
    assert outcomes["other messages"] <= COMPARED_COUNT / 50


def without_made_up_id(diagnostics: Iterable[object]) -> list[str]:
    """The errors as lines, without ids, which are others each time if the file has none."""
    lines = [str(item) for item in diagnostics if getattr(item, "severity", "error") == "error"]
    return [re.sub(r"@0x[0-9a-f]+", "@0x", line) for line in lines]


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
