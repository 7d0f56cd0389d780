"""The sdist and the wheel build, hold what they should and work in an empty environment."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.package

SCHEMA = """@0xc2d3a5b9e1f40817;
struct Person { id @0 :UInt64; name @1 :Text; tags @2 :List(Text); }
"""

PROGRAM = """
import sys, capnwire
assert "site-packages" in capnwire.__file__, capnwire.__file__
schema = capnwire.load(sys.argv[1])
data = schema.Person.new_message(id=7, name="Ada", tags=["a", "b"]).to_bytes()
with schema.Person.from_bytes(data) as person:
    assert (person.id, person.name, list(person.tags)) == (7, "Ada", ["a", "b"])
outside = {"numpy", "orjson", "click", "rich", "capnp", "Cython"} & set(sys.modules)
assert not outside, outside
print("works")
"""


def run(*command: object, cwd: Path) -> str:
    environment = {
        key: value for key, value in os.environ.items()
        if not key.startswith(("PYTHON", "CAPNWIRE_SANITIZE", "LD_PRELOAD"))
    }
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, capture_output=True, text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An sdist of the tree, and the wheel built from that sdist alone."""
    folder = tmp_path_factory.mktemp("package")
    backend = "import setuptools.build_meta as b; print(b.build_sdist({!r}))"
    run(sys.executable, "-c", backend.format(str(folder)), cwd=ROOT)
    (sdist,) = folder.glob("capnwire-*.tar.gz")
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder / "unpacked", filter="data")
        else:
            archive.extractall(folder / "unpacked")
    (tree,) = (folder / "unpacked").iterdir()
    backend = "import setuptools.build_meta as b; print(b.build_wheel({!r}))"
    run(sys.executable, "-c", backend.format(str(folder)), cwd=tree)
    (wheel,) = folder.glob("capnwire-*.whl")
    return sdist, wheel


def test_the_sdist_holds_sources_and_nothing_built(archives: tuple[Path, Path]) -> None:
    with tarfile.open(archives[0]) as archive:
        names = [name.split("/", 1)[-1] for name in archive.getnames()]
    assert {"LICENSE", "README.md", "pyproject.toml", "setup.py", "Makefile"} <= set(names)
    assert "capnwire/py.typed" in names
    assert [name for name in names if name.endswith((".c", ".so", ".pyc"))] == []
    missing = [
        str(path.relative_to(ROOT))
        for suffix in ("*.pyx", "*.pxd", "*.py", "*.pyi", "*.capnp")
        for path in (ROOT / "capnwire").rglob(suffix)
        if str(path.relative_to(ROOT)) not in names
    ]
    assert missing == []


def test_the_wheel_holds_extensions_stubs_and_schemas(archives: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(archives[1]) as archive:
        names = archive.namelist()
        size_bytes = sum(item.file_size for item in archive.infolist())
    assert any(name.startswith("capnwire/") and name.endswith(".so") for name in names)
    assert "capnwire/py.typed" in names
    schemas = {str(path.relative_to(ROOT)) for path in (ROOT / "capnwire").rglob("*.capnp")}
    assert schemas <= set(names)
    assert [name for name in names if name.split("/")[0] in ("tests", "bench", "examples")] == []
    assert [name for name in names if name.endswith((".c", ".pyc"))] == []
    assert size_bytes <= 6_000_000


def test_the_wheel_works_in_an_empty_environment(
    archives: tuple[Path, Path], tmp_path: Path
) -> None:
    venv.create(tmp_path / "env", with_pip=True, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--no-deps", "--no-index", archives[1], cwd=tmp_path)
    (tmp_path / "person.capnp").write_text(SCHEMA)
    assert "works" in run(python, "-c", PROGRAM, tmp_path / "person.capnp", cwd=tmp_path)
