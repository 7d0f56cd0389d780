"""Schemas as objects: loading, reflection, constants, annotations, the import hook."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import capnwire
from tests.message.conftest import SCHEMA


def test_constants_are_python_values(ours: Any, theirs: Any) -> None:
    assert (ours.answer, ours.negative, ours.yes, ours.nothing) == (42, -5000000000, True, None)
    assert (ours.tau, ours.half, ours.greeting, ours.bytes) == (6.5, 0.5, "hello ☃", b"\0\xff")
    assert ours.favourite == "green"
    assert list(ours.primes) == [2, 3, 5] == list(theirs.primes)
    assert ours.home.to_dict() == {"x": 1, "y": -1, "label": "home"} == theirs.home.to_dict()
    assert ours.matrix.to_list() == [[{"x": 1, "y": 0}], []]
    assert ours.Annotated.inside == -3
    assert isinstance(ours.home, ours.Point.Reader)
    assert "answer" in ours.__all__
    assert "title" not in ours.__all__


@pytest.mark.parametrize(
    "name", ["Scalars", "Unions", "Groups", "Methods", "Tree", "Empty", "New", "Defaults",
        "Anything"]
)
def test_struct_schemas_say_what_pycapnp_s_say(ours: Any, theirs: Any, name: str) -> None:
    mine, other = getattr(ours, name).schema, getattr(theirs, name).schema
    assert mine.fieldnames == tuple(other.fieldnames)
    assert mine.union_fields == tuple(other.union_fields)
    assert mine.non_union_fields == tuple(other.non_union_fields)
    assert list(mine.fields) == list(other.fields)
    assert [field.name for field in mine.fields_list] == [
        field.proto.name for field in other.fields_list]
    # The nodes are the same messages, but for the name of the file.
    ours_node, their_node = mine.node.to_dict(), other.node.to_dict()
    for key in ("displayName", "displayNamePrefixLength"):
        del ours_node[key], their_node[key]
    for key in ("startByte", "endByte"):
        del ours_node[key]  # which pycapnp's schema.capnp does not know
    assert str(_plain(ours_node)) == str(_plain(their_node))
    assert mine.get_proto().id == other.get_proto().id == mine.id


def _plain(value: Any) -> Any:
    """Without the objects that stand for pointers of any type."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if isinstance(value, (int, float, str, bytes, type(None))) else "pointer"


def test_fields_have_schemas_of_their_types(ours: Any) -> None:
    fields = ours.Lists.schema.fields
    assert fields["points"].schema.elementType == ours.Point.schema
    assert fields["rows"].schema.element_type.element_kind == "int16"
    assert fields["int8s"].schema.elementType is None
    assert ours.Scalars.schema.fields["int8"].schema is None
    assert ours.Scalars.schema.fields["color"].schema.enumerants == {
        "red": 0, "green": 1, "blue": 2, "lightGray": 3}
    assert ours.Groups.schema.fields["place"].schema == ours.Groups.Place.schema
    assert ours.Tree.schema.fields["left"].schema == ours.Tree.schema
    assert ours.Tree.schema.fields["left"].schema.type is ours.Tree
    assert ours.Boxes.schema.fields["ofText"].schema.fields["value"].kind == "text"
    field = ours.Unions.schema.fields["number"]
    assert (field.kind, field.discriminant, field.ordinal, field.is_group) == ("int32", 1, 2, False)
    assert field.proto.slot.type.which() == "int32"
    assert field == ours.Unions.schema.fields_list[field.index]
    assert repr(field) == "<field schema for number>"


def test_schemas_are_equal_and_hash_by_what_they_stand_for(ours: Any) -> None:
    point = ours.Point.schema
    assert point == ours.Point.new_message().schema == ours.Point.new_message().as_reader().schema
    assert len({point, ours.Tree.schema, pickle.loads(pickle.dumps(point))}) == 2
    assert point != ours.Tree.schema
    assert point != None  # noqa: E711
    assert ours.Box[capnwire.types.Text].schema != ours.Box.schema
    other = capnwire.SchemaParser().load(SCHEMA)
    assert other.Point is not ours.Point
    assert other.Point.schema == point


def test_interfaces_tell_their_methods(ours: Any) -> None:
    schema = ours.Better.schema
    assert schema.method_names == ("list",)
    assert schema.method_names_inherited == {"list", "get", "put"}
    assert [base.name for base in schema.superclasses] == ["Service"]
    assert schema.extends(ours.Service.schema)
    assert not ours.Service.schema.extends(schema)
    method = schema.methods_inherited["put"]
    assert method.param_type.fieldnames == ("key", "value")
    assert method.result_type.fieldnames == ()
    assert (method.index, method.interface.name) == (1, "Service")
    assert method.proto.name == "put"
    assert ours.Service.schema.methods["get"].param_type == ours.Service.Request.schema


def test_annotations_are_found_on_nodes_and_as_values(ours: Any, theirs: Any) -> None:
    schema = ours.Annotated.schema
    ids = {name: getattr(ours, name).schema.id for name in ("title", "spot", "weight")}
    assert schema.annotations[ids["title"]] == "a struct"
    assert schema.annotations[ids["spot"]].to_dict() == {"x": 3, "y": 0, "label": "s"}
    assert schema.fields["field"].annotations == {ids["weight"]: 2.5, ids["title"]: "a field"}
    # As pycapnp's users do it:
    applied = {item.id: item.value for item in schema.node.annotations}
    assert applied[ids["title"]].text == "a struct"
    assert applied[ids["spot"]].struct.as_struct(ours.Point).label == "s"
    assert [item.id for item in schema.node.annotations] == [
        item.id for item in theirs.Annotated.schema.node.annotations]


def test_a_module_s_schema_names_what_is_inside(ours: Any) -> None:
    assert ours.schema.node.which() == "file"
    assert ours.schema.get_nested("Point") == ours.Point.schema
    assert ours.schema.get_nested("answer").as_const_value() == 42
    assert ours.schema.get_nested("Color").as_enum().enumerants["blue"] == 2
    assert ours.schema.get_nested("Service").as_interface().get_nested("Mode").as_enum()
    with pytest.raises(AttributeError):
        ours.schema.get_nested("Nope")
    with pytest.raises(capnwire.SchemaError, match="is no struct"):
        ours.schema.as_struct()
    with pytest.raises(AttributeError, match="Nope"):
        ours.Nope  # noqa: B018


# ---------------------------------------------------------------- loading


def test_a_schema_is_loaded_from_a_path_a_text_and_by_many_threads(
    tmp_path: Path, schema_file: Callable[..., Path]
) -> None:
    path = schema_file("struct Loaded { a @0 :Int8; }")
    assert capnwire.load(path).Loaded.new_message(a=3).a == 3
    assert capnwire.load(str(path)).Loaded is capnwire.load(path).Loaded
    assert capnwire.load(path).__file__ == str(path)
    text = capnwire.load_text("@0xb4d29c3c8e1f7a55; struct Loaded { b @0 :Text; }")
    assert text.Loaded.new_message(b="t").b == "t"
    path = schema_file("struct Threaded { a @0 :Int8; b @1 :List(Threaded); }", "threads.capnp")
    found: list[Any] = []

    def load() -> None:
        kind = capnwire.load(path).Threaded
        found.append((kind, kind.Reader, kind.new_message(a=1, b=[{"a": 2}]).to_bytes()))

    threads = [threading.Thread(target=load) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert len(set(found)) == 1


def test_errors_name_the_place(tmp_path: Path, schema_file: Callable[..., Path]) -> None:
    with pytest.raises(capnwire.CompileError) as caught:
        capnwire.load(schema_file("struct Broken { a @0 :Nope; }", "broken.capnp"))
    assert "broken.capnp:2" in str(caught.value)
    assert "Nope" in str(caught.value)
    assert len(caught.value.diagnostics) == 1
    with pytest.raises(OSError, match=r"missing\.capnp"):
        capnwire.load(tmp_path / "missing.capnp")


def test_a_changed_schema_is_loaded_beside_the_old_one(schema_file: Callable[..., Path]) -> None:
    path = schema_file("struct Changing { a @0 :Int8; }", "changing.capnp")
    before = capnwire.load(path)
    head = path.read_text().split("\n", 1)[0]
    path.write_text(f"{head}\nstruct Changing {{ a @0 :Int8; b @1 :Text; }}")
    after = capnwire.load(path)
    assert before.Changing is not after.Changing
    data = after.Changing.new_message(a=1, b="x").to_bytes()
    assert before.Changing.from_bytes(data).a == 1


def test_imports_are_searched_in_the_directories_given(
    tmp_path: Path, schema_file: Callable[..., Path]
) -> None:
    schema_file("struct Shared { a @0 :Int8; }", "lib/shared.capnp")
    path = schema_file('using S = import "/shared.capnp"; struct User { s @0 :S.Shared; }',
        "user.capnp")
    module = capnwire.load(path, imports=[tmp_path / "lib"])
    assert module.User.new_message(s={"a": 4}).s.a == 4
    with pytest.raises(capnwire.CompileError):
        capnwire.SchemaParser().load(path)


def test_the_import_hook_works_while_it_is_there(
    tmp_path: Path, schema_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hooked_one", "hooked-two", "hooked three", "pack/hooked_four"):
        schema_file(f"# {name}\nstruct S {{ a @0 :Int8; }}", f"{name}.capnp")
    (tmp_path / "pack" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError):
        import hooked_one_capnp
    capnwire.add_import_hook()
    capnwire.add_import_hook()
    try:
        import hooked_one_capnp
        import hooked_three_capnp
        import hooked_two_capnp
        from pack import hooked_four_capnp

        for module in (hooked_one_capnp, hooked_two_capnp, hooked_three_capnp, hooked_four_capnp):
            assert module.S.new_message(a=5).a == 5
        assert hooked_one_capnp.__file__ == str(tmp_path / "hooked_one.capnp")
        assert hooked_four_capnp.__name__ == "pack.hooked_four_capnp"
        assert hooked_four_capnp.__spec__.origin == hooked_four_capnp.__file__
        assert pickle.loads(pickle.dumps(hooked_one_capnp.S.new_message(a=2))).a == 2
        assert pickle.loads(pickle.dumps(hooked_four_capnp.S)) is hooked_four_capnp.S
        with pytest.raises(ImportError):
            import not_there_capnp  # noqa: F401
    finally:
        capnwire.remove_import_hook()
        capnwire.remove_import_hook()
        for name in [name for name in sys.modules if "hooked_" in name or name == "pack"]:
            del sys.modules[name]
    with pytest.raises(ImportError):
        import hooked_two_capnp


def test_a_contradicting_schema_gives_the_same_types_each_time() -> None:
    texts = [f"@0xb4d29c3c8e1f7a56; struct A {{ a @0 :{kind}; }}" for kind in ("Int8", "Text")]
    first, second = ([capnwire.load_text(text).A for _ in range(3)] for text in texts)
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] is not second[0]
    assert capnwire.load_text(texts[0]).A is first[0]
    assert second[0].new_message(a="t").a == "t"
