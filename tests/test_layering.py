"""An import goes only to a lower rank or stays in its own package; asyncio has one home.

The ranks are those of CONTRIBUTING.md, Layout.  Sources are parsed, not imported, so that
compiled modules count too.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "capnwire"

RANKS = {
    "errors": 0,
    "limits": 0,
    "wire": 1,
    "typed": 3,
    "_fast": 2,
    "std": 2,
    "schema": 3,
    "message": 4,
    "compiler": 6,
    "codecs": 6,
    "service": 6,
    "rpc": 7,
    "web": 7,
    "loader": 8,
    "aio": 8,
    "pycapnp": 9,
    "importer": 9,
    "cli": 9,
    "__main__": 10,
    "": 10,  # capnwire/__init__.py
}

CYTHON_IMPORT = re.compile(
    r"^\s*(?:from\s+([\w.]+)\s+c?import\s+(\([^)]*\)|[^\n#]*)|c?import\s+([\w., ]+))", re.MULTILINE
)


def sources() -> list[Path]:
    return sorted(
        path
        for pattern in ("*.py", "*.pyx", "*.pxd", "*.pxi")
        for path in PACKAGE.rglob(pattern)
        if path.stat().st_size
    )


def part_of(dotted: str) -> str:
    """The ranked part of `capnwire.wire.arena`: `wire`; of `capnwire` itself: ``.

    The compiled face is one part, in however many extensions it is cut.
    """
    part = dotted.removeprefix("capnwire").lstrip(".").split(".")[0]
    return "_fast" if part.startswith("_") and part != "__main__" else part


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def python_imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, name) for name in _from(node.module or "", [
                alias.name for alias in node.names
            ]))


def cython_imports(path: Path) -> Iterator[tuple[int, str]]:
    text = re.sub(r'("""|\'\'\')(?:.|\n)*?\1', lambda m: "\n" * m[0].count("\n"), path.read_text())
    for match in CYTHON_IMPORT.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        module, names, plain = match.groups()
        if module:
            found = [x.split(" as ")[0].strip() for x in names.strip("() \n").split(",")]
            yield from ((line, name) for name in _from(module, found))
        else:
            yield from ((line, name.split(" as ")[0].strip()) for name in plain.split(","))


def _from(module: str, names: list[str]) -> Iterator[str]:
    """`from capnwire import errors` names `capnwire.errors`; deeper modules name themselves."""
    if module == "capnwire":
        yield from (
            f"capnwire.{name}" if part_of(f"capnwire.{name}") in RANKS else module
            for name in names
        )
    else:
        yield module


def imports(path: Path) -> Iterator[tuple[int, str]]:
    yield from python_imports(path) if path.suffix == ".py" else cython_imports(path)


def test_every_part_of_the_package_has_a_rank() -> None:
    parts = {part_of(module_of(path)) for path in sources()}
    assert parts <= RANKS.keys(), "give the new part a rank in CONTRIBUTING.md and here"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_to_a_lower_rank_or_stay_in_their_package(path: Path) -> None:
    own = part_of(module_of(path))
    wrong = [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {own or 'capnwire'} (rank {RANKS[own]}) "
        f"imports {name} (rank {RANKS[part_of(name)]})"
        for line, name in imports(path)
        if name.split(".")[0] == "capnwire"
        and part_of(name) != own
        and RANKS[part_of(name)] >= RANKS[own]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_aio_and_what_stands_above_it_imports_asyncio(path: Path) -> None:
    own = part_of(module_of(path))
    found = [line for line, name in imports(path) if name.split(".")[0] == "asyncio"]
    assert not found or RANKS[own] >= RANKS["aio"]


def test_the_ranks_of_a_wrong_import_are_seen() -> None:
    assert part_of("capnwire.wire.arena") == "wire"
    assert part_of("capnwire") == ""
    assert list(_from("capnwire", ["errors", "load"])) == ["capnwire.errors", "capnwire"]
    assert list(_from("capnwire.message.lists", ["ListReader"])) == ["capnwire.message.lists"]
