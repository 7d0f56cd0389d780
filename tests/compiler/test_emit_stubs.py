"""Stubs: mypy and pyright accept right programs and refuse each wrong line of the others."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from capnwire.compiler.driver import compile_files
from capnwire.compiler.emit_stubs import emit_stubs, module_path
from tests.conftest import lack

sys.path.insert(0, str(Path(__file__).parent))
from random_schemas import make_batch

HERE = Path(__file__).parent / "typing"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the stubs and the programs."""
    made = tmp_path_factory.mktemp("typing")
    request = compile_files(
        [HERE / "calc.capnp", HERE / "other.capnp"], src_prefixes=[HERE],
    )
    for name, text in emit_stubs(request).items():
        path = made.joinpath(*module_path(name).split(".")).with_suffix(".pyi")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("right.py", "wrong.py"):
        shutil.copy(HERE / name, made / name)
    configure_pyright(made)
    return made


def configure_pyright(folder: Path) -> None:
    (folder / "pyrightconfig.json").write_text(
        json.dumps({
            "extraPaths": [str(ROOT)], "reportMissingModuleSource": False,
            "reportUnnecessaryComparison": True, "pythonVersion": "3.11",
            "typeCheckingMode": "standard",
        })
    )


def mypy(folder: Path, *files: str) -> tuple[int, str]:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty",
         "--python-version", "3.11", "--disable-error-code", "unused-ignore",
         "--cache-dir", str(folder / ".mypy_cache"), *files],
        cwd=folder, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def pyright(folder: Path, *files: str) -> tuple[int, str]:
    command = shutil.which("pyright", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if command is None:
        lack("there is no pyright")
    # Without Node it fetches one, which may fail; what it says of schemas is no matter of that.
    probe = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
    if probe.returncode:
        lack(f"pyright cannot be run: {probe.stderr[-200:]}")
    done = subprocess.run(
        [command, *files], cwd=folder, capture_output=True, text=True, check=False,
    )
    return done.returncode, done.stdout


def complaints(output: str, name: str) -> set[int]:
    """The lines of a file that a checker says something is wrong with."""
    return {
        int(match[1])
        for match in re.finditer(rf"(?m)^\s*(?:\S*/)?{name}:(\d+)(?::\d+)?\s*[:-]+ error", output)
    }


Check = Callable[..., "tuple[int, str]"]
CHECKERS = pytest.mark.parametrize("check", [mypy, pyright])


@CHECKERS
def test_stubs_are_right_themselves(folder: Path, check: Check) -> None:
    code, output = check(folder, "calc_capnp.pyi", "other_capnp.pyi")
    assert not complaints(output, "calc_capnp.pyi"), output
    assert not complaints(output, "other_capnp.pyi"), output
    assert code == 0 or check is mypy, output


@CHECKERS
def test_right_programs_are_accepted(folder: Path, check: Check) -> None:
    _, output = check(folder, "right.py")
    assert "right.py" not in output.replace("in right.py", ""), output


@CHECKERS
def test_each_wrong_line_is_refused_and_no_other(folder: Path, check: Check) -> None:
    _, output = check(folder, "wrong.py")
    lines = (HERE / "wrong.py").read_text().splitlines()
    wanted = {number for number, line in enumerate(lines, 1) if "# refused" in line}
    assert complaints(output, "wrong.py") == wanted, output


INHERITANCE = """
@0x9f0a4b3c2d1e5f60;
interface A { go @0 (x :Int32) -> (y :Text); }
interface B extends(A) { stay @0 () -> (s :Text); }
interface BaseFirst extends(A, B) {}
interface P { go @0 (x :Text) -> (z :Int32); }
interface X extends(B, P) {}
interface Y extends(P, B) {}
interface OrdersCross extends(X, Y) {}
interface SameName extends(A, P) {}
interface OwnName extends(SameName) { go @0 () -> (v :Int8); stop @1 () -> (w :Int8); }
interface G(T) extends(A, H(T)) {}
interface H(T) extends(A) { t @0 (t :T) -> (u :T); }
interface TwoBrands extends(H(Text), G(Data)) {}
"""
INHERITED = """
import inheritance_capnp as m


async def use(
    first: m.BaseFirst.Client, cross: m.OrdersCross.Client, own: m.OwnName.Client,
) -> None:
    text: str = (await first.go(x=1)).y + (await first.stay()).s + (await cross.stay()).s
    a: m.A.Client = first
    p: m.P.Client = cross
    anything = await own.go()
    number: int = (await own.stop()).w
    (await first.stay()).no  # refused
    await cross.no()  # refused
"""


@CHECKERS
def test_every_inheritance_of_interfaces_is_one_of_classes(tmp_path: Path, check: Check) -> None:
    (tmp_path / "inheritance.capnp").write_text(INHERITANCE)
    (tmp_path / "inherited.py").write_text(INHERITED)
    request = compile_files([tmp_path / "inheritance.capnp"], src_prefixes=[tmp_path])
    configure_pyright(tmp_path)
    for name, text in emit_stubs(request).items():
        (tmp_path / f"{module_path(name)}.pyi").write_text(text)
    _, output = check(tmp_path, "inheritance_capnp.pyi", "inherited.py")
    assert not complaints(output, "inheritance_capnp.pyi"), output
    lines = INHERITED.splitlines()
    wanted = {number for number, line in enumerate(lines, 1) if "# refused" in line}
    assert complaints(output, "inherited.py") == wanted, output


@CHECKERS
def test_stubs_of_random_schemas_are_right(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, check: Check
) -> None:
    monkeypatch.setenv("CAPNP_IGNORE_ISSUE_344", "1")
    schemas = make_batch(rng.random(), 8, tmp_path)
    request = compile_files([tmp_path / name for name in schemas], src_prefixes=[tmp_path])
    configure_pyright(tmp_path)
    stubs = emit_stubs(request)
    for name, text in stubs.items():
        (tmp_path / f"{module_path(name)}.pyi").write_text(text)
        compile(text, name, "exec")
    _, output = check(tmp_path, *(f"{module_path(name)}.pyi" for name in stubs))
    assert " error: " not in output, output


def test_right_programs_run(folder: Path) -> None:
    for name in ("calc.capnp", "other.capnp"):
        shutil.copy(HERE / name, folder / name)
    program = (
        "import asyncio, sys, typing\n"
        "typing.assert_type = lambda value, kind: value\n"
        "import capnwire\n"
        "capnwire.add_import_hook()\n"
        "open('file', 'wb').write(__import__('calc_capnp').Person.new_message().to_bytes())\n"
        "import right\n"
        "person = right.building()\n"
        "right.constants()\n"
        "right.generics(right.calc_capnp.Box[right.calc_capnp.Person].new_message().to_bytes())\n"
        "person.nick = 'x'\n"
        "assert right.reading(person.to_bytes()) == 'x'\n"
        "right.takes_readers(person.as_reader(), person.as_reader())\n"
        "from capnwire.aio.network import memory_pair\n"
        "async def call():\n"
        "    here, there = memory_pair(None, right.Plain())\n"
        "    await right.calling(here.bootstrap(right.calc_capnp.Calculator))\n"
        "asyncio.run(call())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
