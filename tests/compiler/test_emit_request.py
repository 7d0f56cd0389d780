"""Requests as bytes.  That they are the reference's is tested in test_driver.py."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import capnwire
from capnwire.compiler.driver import compile_files, compile_text
from capnwire.compiler.emit_request import emit_request
from tests.compiler.features import FEATURES
from tests.compiler.reference import FILE_ID, STD, Check, Reference, assert_equal


def test_request_read_back_says_what_was_written(reference: Reference, tmp_path: Path) -> None:
    for name, files in FEATURES.items():
        directory = tmp_path / name
        for path, text in files.items():
            file = directory / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        request = compile_files([directory / next(iter(files))])
        assert_equal(reference.read(emit_request(request)), request)


def test_version_is_that_of_the_request(reference: Reference) -> None:
    request = compile_text(FILE_ID)
    request.version = (1, 2, 3)
    assert reference.read_version(emit_request(request)) == (1, 2, 3)


def test_old_profile_is_smaller_and_reads_as_the_same_nodes(reference: Reference) -> None:
    path = STD / "capnp" / "schema.capnp"
    current, old = (compile_files([path], profile=profile) for profile in ("current", "1.0"))
    assert len(emit_request(old)) < len(emit_request(current))
    for node in current.nodes:
        node.start_byte = node.end_byte = 0
    read = reference.read(emit_request(old))
    assert read.nodes == current.nodes
    assert read.version[:2] == (1, 0)


def test_comments_and_texts_in_another_encoding_stay_as_they_are(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b'@0xb0b0b0b0b0b0b0b0; # f\xfcr\nstruct S { t @0 :Text = "\xe9"; # caf\xe9\n}'
    (tmp_path / "a.capnp").write_bytes(text)
    monkeypatch.chdir(tmp_path)
    outcome = reference.run(tmp_path, ["a.capnp"])
    request = compile_files(["a.capnp"])
    request.version = reference.read_version(outcome.request)
    assert emit_request(request) == outcome.request
    assert capnwire.load(outcome.request).S.schema.fields.keys() == {"t"}


def test_texts_in_another_encoding_stay_as_they_are_within_values(
    check_same: Check, tmp_path: Path
) -> None:
    (tmp_path / "t.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "a.capnp").write_text(
        f'{FILE_ID}struct S {{ t @0 :Text = "\\x80"; l @1 :List(Text) = ["\\xff", "ok"]; '
        "s @2 :S; }\n"
        'const s :S = (t = embed "t.txt", s = (t = "\\xe2\\x82", l = ["\\xc3\\xa9"]));\n'
    )
    check_same(tmp_path, ["a.capnp"])


def test_plugin_schema_loads_the_request(pycapnp: ModuleType, tmp_path: Path) -> None:
    data = emit_request(compile_text(f"{FILE_ID}struct A {{ a @0 :List(A) = [()]; }}"))
    schema = pycapnp.load(str(STD / "capnp" / "schema.capnp"), imports=[str(STD)])
    (request,) = schema.CodeGeneratorRequest.read_multiple_bytes(data)
    assert [node.displayName for node in request.nodes] == ["schema.capnp", "schema.capnp:A"]
