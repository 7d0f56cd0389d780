"""Schemas that other projects publish compile to the reference's bytes, or are refused by both.

They are fetched here (corpora.py): `pytest -m "not network"` leaves these tests out.
"""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from capnwire.compiler.driver import compile_files
from capnwire.compiler.emit_request import emit_request
from capnwire.errors import CompileError
from capnwire.schema.model import Node, Request
from tests.compiler.corpora import (
    SOURCES,
    Corpus,
    NoClient,
    Unreachable,
    directories_with,
    fetch,
)
from tests.compiler.reference import STD, Outcome, Reference, assert_equal, plain
from tests.conftest import REQUIRE_PEERS, lack

pytestmark = [pytest.mark.network, pytest.mark.slow]

DEBIAN_TOOL = "/usr/bin/capnp"
# A registry whose client is not part of a Python developer's machine may be out of reach.
OPTIONAL_CLIENTS = {"npm": "npm", "crate": "cargo", "go": "go"}


@pytest.fixture(scope="module")
def corpora() -> dict[str, Corpus | str]:
    """Each corpus, or why it cannot be had."""

    def attempt(name: str) -> Corpus | str:
        for pause_s in (2, 10, 30):  # a registry may be busy
            try:
                return fetch(name)
            except NoClient as problem:
                return str(problem)
            except Unreachable:
                time.sleep(pause_s)
        try:
            return fetch(name)
        except Unreachable as problem:
            return str(problem)

    with ThreadPoolExecutor(4) as pool:
        return dict(zip(SOURCES, pool.map(attempt, SOURCES), strict=True))


@pytest.fixture(params=["1.3", "0.9"])
def tool(
    request: pytest.FixtureRequest, capnp_tool: str, pycapnp: ModuleType
) -> tuple[Reference, str]:
    """A tool, and the profile that is as its requests are."""
    if request.param == "1.3":
        return Reference(capnp_tool, pycapnp), "current"
    if not os.path.exists(DEBIAN_TOOL):
        lack("the Debian package capnproto is not installed")
    return Reference(DEBIAN_TOOL, pycapnp), "1.0"


def take(corpora: dict[str, Corpus | str], name: str) -> Corpus:
    found = corpora[name]
    if isinstance(found, Corpus):
        return found
    client = OPTIONAL_CLIENTS.get(name.split()[0])
    if REQUIRE_PEERS and (client is None or shutil.which(client) is not None):
        lack(f"{name}: {found}")
    pytest.skip(f"{name}: {found}")


def compare(
    reference: Reference, profile: str, names: list[str], imports: list[Path]
) -> tuple[bool, list[str]]:
    """Whether both compile the files, to the same bytes, or else what both say against it."""
    outcome: Outcome = reference.run(
        Path.cwd(), names, options=[f"-I{path}" for path in imports]
    )
    try:
        ours = compile_files(
            names, import_paths=imports, standard_imports=False, profile=profile
        )
    except CompileError as error:
        said = [str(item) for item in error.diagnostics if item.severity == "error"]  # type: ignore[attr-defined]
        assert not outcome.request, f"only capnwire refuses {names}: {said[:5]}"
        if profile == "current":
            assert said == outcome.messages
        return False, said
    assert outcome.request, f"only the reference refuses {names}: {outcome.messages[:5]}"
    ours.version = reference.read_version(outcome.request)
    if emit_request(ours) != outcome.request:
        assert_equal(reference.read(outcome.request), ours)
        pytest.fail(f"the models of {names} are equal, but the bytes are not")
    return True, []


@pytest.mark.parametrize("name", SOURCES)
def test_published_schemas_compile_as_the_reference_compiles_them(
    corpora: dict[str, Corpus | str], tool: tuple[Reference, str], name: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    corpus = take(corpora, name)
    monkeypatch.chdir(corpus.root)
    monkeypatch.delenv("CAPNP_IGNORE_ISSUE_344", raising=False)
    own = [*corpus.import_paths(), STD]
    others = [other for other in corpora.values() if isinstance(other, Corpus)]
    more = [*own, *directories_with(others, "go.capnp", "ts.capnp")]
    same, refused, completed = 0, 0, 0
    for file in corpus.files:
        good, said = compare(*tool, [file], own)
        if not good and any("Import failed" in line for line in said):
            good, _ = compare(*tool, [file], more)
            completed += good
        same += good
        refused += not good
    requests = 0
    for group in [*corpus.groups(), corpus.files]:
        if len(group) > 1:
            requests += compare(*tool, group, own)[0]
            requests += compare(*tool, group[::-1], more)[0]
    with capsys.disabled():
        print(
            f"\n  {name}, profile {tool[1]}: {len(corpus.files)} schemas; {same} give the same "
            f"bytes ({completed} with imports of other packages), {refused} are refused by both; "
            f"{requests} requests of several files give the same bytes",
            end=" ",
        )


def test_published_schemas_need_no_file_that_only_annotations_come_from(
    corpora: dict[str, Corpus | str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = 0
    for name in SOURCES:
        if not name.startswith("go "):
            continue
        corpus = take(corpora, name)
        monkeypatch.chdir(corpus.root)
        whole = [*corpus.import_paths(), STD]
        without = [path for path in whole if not (path / "go.capnp").exists()]
        for file in corpus.files:
            if '"/go.capnp"' not in Path(file).read_text():
                continue
            bare = compile_files(
                [file], import_paths=without, standard_imports=False,
                missing_imports="ignore-annotations",
            )
            full = compile_files([file], import_paths=whole, standard_imports=False)
            assert plain(unannotated(bare)) == plain(unannotated(full))
            checked += 1
    assert checked > 20


def unannotated(request: Request) -> list[Node]:
    """The nodes of the requested file without what annotates them."""
    kept = [
        node for node in request.nodes
        if node.display_name.split(":")[0] == request.files[0].filename
    ]
    for node in kept:
        node.annotations = None
        for members in ("fields", "enumerants", "methods"):
            for member in getattr(node.body, members, None) or ():
                member.annotations = None
    return sorted(kept, key=lambda node: node.id)
