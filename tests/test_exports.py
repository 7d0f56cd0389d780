"""The public names: `__all__` is true everywhere, and importing the package stays cheap."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

capnwire = pytest.importorskip("capnwire", reason="the package is not built")

MUST_STAY_OUT = {"dataclasses", "typing", "enum", "re", "asyncio", "numpy"}
OPTIONAL = {"click", "rich", "numpy", "orjson", "pyarrow", "uvloop"}


def _module_names() -> Iterator[str]:
    yield "capnwire"
    for found in pkgutil.walk_packages(capnwire.__path__, "capnwire."):
        if not found.name.endswith("__main__"):
            yield found.name
    # Listing the packages imports the drop-in, which installs its import hook, as pycapnp does.
    importlib.import_module("capnwire.pycapnp").remove_import_hook()


def load(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"{name} needs {error.name}")
        raise


@pytest.mark.parametrize("name", list(_module_names()))
def test_every_name_in_all_exists_and_stands_once(name: str) -> None:
    module = load(name)
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names)
    missing = [name for name in names if not hasattr(module, name)]
    assert not missing


def test_the_package_names_what_it_exports() -> None:
    assert "load" in capnwire.__all__
    assert all(not name.startswith("_") or name == "__version__" for name in capnwire.__all__)


def test_type_checkers_see_every_name_that_is_imported_late() -> None:
    (block,) = (
        statement for statement in ast.parse(Path(capnwire.__file__).read_text()).body
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
    )
    seen = {
        name.asname or name.name
        for statement in block.body if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }
    assert seen == {*capnwire._LATE, "types"}


def test_every_error_of_messages_and_schemas_is_exported_from_the_package() -> None:
    from capnwire import errors

    missing = [
        name
        for name in errors.__all__
        if not hasattr(capnwire, name) and not issubclass(getattr(errors, name), errors.RpcError)
    ]
    assert not missing


def imported_by(statement: str) -> set[str]:
    """Top-level modules that a fresh interpreter has only because of `statement`."""
    program = (
        "import sys; before = set(sys.modules)\n"
        f"{statement}\n"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{program}"],
        capture_output=True, text=True, check=True,
    )
    return set(done.stdout.split())


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    assert not imported_by("import capnwire") & MUST_STAY_OUT


def test_the_version_is_that_of_the_metadata() -> None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("capnwire")
    except PackageNotFoundError:
        pytest.skip("the package is not installed")
    assert getattr(capnwire, "__version__", installed) == installed
