"""The cache of compiled schemas: what counts as the same schema, what may happen to its files."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from capnwire.compiler import cache
from capnwire.compiler.driver import compile_files
from capnwire.errors import CompileError
from capnwire.loader import SchemaParser
from capnwire.schema import stored
from capnwire.schema.model import StructBody

sys.path.insert(0, str(Path(__file__).parent))
from random_schemas import make_schema

SCHEMA = """@0xbf5147bb5cf7b8e1;
using Other = import "other.capnp";
struct Person {
  name @0 :Text = "nobody";
  other @1 :Other.Thing;
  blob @2 :Data = embed "blob.bin";
  half @3 :Float32 = nan;
  group :group { x @4 :Int8; inner :union { a @5 :Void; b @6 :List(Person); } }
  box @7 :Box(Text);
}
struct Box(T) { it @0 :T; }
enum Color { red @0; green @1; }
interface Service extends (Other.Base) { call @0 [T] (p :Person, t :T) -> (c :Color); }
const preset :Person = (name = "x");
annotation mark(*) :Text;
"""
OTHER = "@0xbf5147bb5cf7b8e2;\nstruct Thing { a @0 :Int32; }\ninterface Base { m @0 (); }\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the schema; the cache is in its `cache`."""
    monkeypatch.setenv("CAPNWIRE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "main.capnp").write_text(SCHEMA)
    (tmp_path / "other.capnp").write_text(OTHER)
    (tmp_path / "blob.bin").write_bytes(b"\0\1\2")
    return tmp_path


def is_known(folder: Path, imports: tuple[str, ...] = ()) -> bool:
    """Load the schema; whether it came from the cache."""
    return cache.compile_cached(str(folder / "main.capnp"), imports, "error")[1]


def entries(folder: Path) -> list[Path]:
    return sorted((folder / "cache").iterdir())


def test_the_second_load_comes_from_the_cache_with_equal_nodes(folder: Path) -> None:
    path = str(folder / "main.capnp")
    first, known = cache.compile_cached(path, (), "error")
    assert not known
    second, known = cache.compile_cached(path, (), "error")
    assert known
    wanted = compile_files([path]).nodes
    assert [node.id for node in second.nodes] == [node.id for node in wanted]
    for mine, other in zip(second.nodes, wanted, strict=True):
        if isinstance(mine.body, StructBody):
            assert mine.body.groups == other.body.groups  # type: ignore[union-attr]
        assert mine == other
        assert repr(mine.body).partition("(")[0] == repr(other.body).partition("(")[0]
    assert first.files[0].id == second.files[0].id


def test_types_from_the_cache_are_those_of_the_schema(folder: Path) -> None:
    for _ in range(2):
        module = SchemaParser().load(folder / "main.capnp")
        person = module.Person.new_message(other={"a": 5}, group={"x": 3, "inner": {"b": []}})
        assert person.as_reader().name == "nobody"
        assert bytes(person.as_reader().blob) == b"\0\1\2"
        assert person.group.x == 3
        assert person.group.inner.which() == "b"
        assert module.preset.name == "x"
        assert module.Color.green == 1
        assert module.Person.Group.__name__


@pytest.mark.parametrize("name", ["main.capnp", "other.capnp", "blob.bin"])
def test_a_changed_file_is_compiled_again_even_with_the_same_time(folder: Path, name: str) -> None:
    is_known(folder)
    assert is_known(folder)
    path = folder / name
    status = path.stat()
    if name == "blob.bin":
        path.write_bytes(b"\0\1\3")
    else:
        text = path.read_text().replace("a @0 :Int32", "a @0 :Int16").replace("nobody", "nobodY")
        path.write_text(text)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert not is_known(folder)
    assert is_known(folder)
    module = SchemaParser().load(folder / "main.capnp")
    if name == "main.capnp":
        assert module.Person.new_message().name == "nobodY"
    if name == "blob.bin":
        assert bytes(module.Person.new_message().blob) == b"\0\1\3"


def test_a_schema_that_became_wrong_is_refused(folder: Path) -> None:
    is_known(folder)
    (folder / "other.capnp").write_text("@0xbf5147bb5cf7b8e2;\n")
    with pytest.raises(CompileError):
        is_known(folder)
    (folder / "other.capnp").unlink()
    with pytest.raises(CompileError):
        is_known(folder)


def test_a_file_that_now_comes_first_in_the_import_paths_counts(folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).mkdir()
    (folder / "main.capnp").write_text(SCHEMA.replace('"other.capnp"', '"/other.capnp"'))
    (folder / "two" / "other.capnp").write_text(OTHER)
    imports = (str(folder / "one"), str(folder / "two"))
    assert not is_known(folder, imports)
    assert is_known(folder, imports)
    (folder / "one" / "other.capnp").write_text(OTHER.replace("Int32", "Text"))
    assert not is_known(folder, imports)
    assert is_known(folder, imports)
    assert not is_known(folder, imports[:1])  # other options, another entry


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: data[:20], id="cut in the head"),
        pytest.param(lambda data: data[:-1], id="cut at the end"),
        pytest.param(lambda data: data[:100] + b"\xff" + data[101:], id="a byte changed"),
        pytest.param(lambda data: data + b"x", id="a byte more"),
        pytest.param(lambda data: b"\0" * len(data), id="zeroes"),
        pytest.param(lambda data: data[::-1], id="backwards"),
    ],
)
def test_a_broken_entry_is_compiled_again_and_replaced(folder: Path, spoil: object) -> None:
    is_known(folder)
    (entry,) = entries(folder)
    entry.write_bytes(spoil(entry.read_bytes()))  # type: ignore[operator]
    assert not is_known(folder)
    assert is_known(folder)


def test_no_byte_of_an_entry_can_be_changed_unnoticed(folder: Path) -> None:
    is_known(folder)
    (entry,) = entries(folder)
    whole = entry.read_bytes()
    for at in range(0, len(whole), 97):
        entry.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert cache._read(str(entry)) is None


@pytest.mark.parametrize("value", ["", "off", "0", "OFF"])
def test_the_cache_can_be_turned_off(
    folder: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CAPNWIRE_CACHE", value)
    assert not is_known(folder)
    assert not is_known(folder)
    assert not (folder / "cache").exists()


def test_a_directory_that_cannot_be_written_to_is_no_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("CAPNWIRE_CACHE", str(folder / "file" / "cache"))
    assert not is_known(folder)
    assert not is_known(folder)


def test_the_directory_is_that_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPNWIRE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.cache_directory() == os.path.join("/somewhere", "capnwire")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.cache_directory() == os.path.expanduser("~/.cache/capnwire")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.cache_directory() == os.path.expanduser("~/Library/Caches/capnwire")


def test_the_directory_does_not_grow_without_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_ENTRIES", 8)
    for number in range(30):
        (folder / f"s{number}.capnp").write_text(f"@0x{0x8000000000000000 + number:x};\n")
        cache.compile_cached(str(folder / f"s{number}.capnp"))
        assert cache.compile_cached(str(folder / f"s{number}.capnp"))[1]
        assert len(entries(folder)) <= 9


def test_processes_at_once_all_load_and_leave_one_entry(folder: Path) -> None:
    program = (
        "import capnwire, sys\n"
        "for _ in range(5):\n"
        "    module = capnwire.SchemaParser().load(sys.argv[1])\n"
        "    assert module.Person.new_message().name == 'nobody'\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(folder / "main.capnp")])
        for _ in range(6)
    ]
    assert [process.wait(60) for process in running] == [0] * 6
    assert len(entries(folder)) == 1


def test_nodes_of_random_schemas_come_back_equal(
    tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPNP_IGNORE_ISSUE_344", "1")
    for _ in range(30):
        path = tmp_path / "random.capnp"
        path.write_text(make_schema(rng.random()))
        nodes = compile_files([path]).nodes
        again = stored.unpack_nodes(stored.pack_nodes(nodes))
        for mine, other in zip(again, nodes, strict=True):
            assert other == mine
            assert mine == other
