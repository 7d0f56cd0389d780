"""The reference compiler, and comparing with it, for the tests of the compiler."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import pytest

from capnwire.compiler.driver import compile_files
from capnwire.compiler.emit_request import emit_request
from capnwire.schema.model import Request
from tests.compiler.reference import STD, Check, Reference, assert_equal


@pytest.fixture(scope="session")
def reference(capnp_tool: str, pycapnp: ModuleType) -> Reference:
    """The reference's tool."""
    return Reference(capnp_tool, pycapnp)


@pytest.fixture
def check_same(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Compile files with both compilers; the requests must be the same bytes."""

    def check(
        directory: Path, names: Iterable[str], *, imports: Iterable[str] = (str(STD),),
        prefixes: Iterable[str] = (),
    ) -> Request:
        names, imports, prefixes = list(names), list(imports), list(prefixes)
        options = [f"-I{path}" for path in imports]
        options += [f"--src-prefix={path}" for path in prefixes]
        outcome = reference.run(directory, names, options=options)
        assert outcome.request, f"the reference refuses {names}: {outcome.messages}"
        monkeypatch.chdir(directory)
        ours = compile_files(
            names, import_paths=imports, src_prefixes=prefixes, standard_imports=False
        )
        theirs = reference.read(outcome.request)
        ours.version = theirs.version
        assert_equal(theirs, ours)
        assert emit_request(ours) == outcome.request
        return ours

    return check
