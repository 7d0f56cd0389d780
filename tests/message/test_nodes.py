"""Schema nodes as messages: what the reference's requests say is read, and hostile ones refused."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import capnwire
from capnwire.compiler.driver import compile_files
from capnwire.loader import SchemaLoader
from capnwire.message.nodes import node_reader, read_node, read_request, schema_types
from capnwire.schema.model import Node

STD = Path(capnwire.__file__).parent / "std"
SCHEMA = """
@0x9eb32e19f86ee174;
annotation note(*) :Text;
annotation point(*) :Point;
struct Point $note("p") { x @0 :Int32 = 5; y @1 :Float32 = nan;
  tags @2 :List(Text) = ["a", "b"]; raw @3 :Data = 0x"00ff"; odd @4 :Text = "\\xff";
  inner @5 :Point = (x = 1, tags = []); }
struct Box(T) { value @0 :T; union { a @1 :Void; b :group { c @2 :Bool = true; } } }
enum Color { red @0 $note("r"); green @1; }
interface Base(T) { get @0 (key :T) -> (box :Box(T)) $point((x = 3)); }
interface Derived extends(Base(Text)) { put @0 [X] (key :X) -> stream; }
const origin :Point = (x = 0, y = 1.5);
const list :List(List(UInt16)) = [[1], [], [2, 3]];
"""


@pytest.fixture
def compiled(
    schema_file: Callable[..., Path], capnp_tool: str
) -> Callable[[str], tuple[bytes, Path]]:
    def compile(text: str) -> tuple[bytes, Path]:
        path = schema_file(text.strip(), "sample.capnp")
        done = subprocess.run(
            [capnp_tool, "compile", "-o-", f"-I{STD}", path.name], cwd=path.parent,
            capture_output=True, check=True,
        )
        return done.stdout, path

    return compile


def test_the_reference_s_request_is_read_as_our_compiler_s_nodes(
    compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, path = compiled(SCHEMA)
    monkeypatch.chdir(path.parent)
    request, ours = read_request(data), compile_files([path.name])
    assert request.version == (1, 3, 0)
    assert request.nodes == ours.nodes
    assert request.files == ours.files
    assert request.source_info == ours.source_info


@pytest.mark.parametrize("name", ["schema", "rpc", "rpc-twoparty", "c++", "stream", "persistent"])
def test_bundled_schemas_are_read_from_the_reference_s_requests(
    name: str, capnp_tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(STD)
    file = f"capnp/{name}.capnp"
    done = subprocess.run(
        [capnp_tool, "compile", "-o-", "-I.", file], capture_output=True, check=True
    )
    assert read_request(done.stdout).nodes == compile_files([file]).nodes


def test_nodes_survive_being_written_and_read(compiled: Any) -> None:
    for node in read_request(compiled(SCHEMA)[0]).nodes:
        assert read_node(node_reader(node)) == node


def test_a_request_loads_as_its_schema_does(compiled: Any) -> None:
    data, path = compiled(SCHEMA)
    module = capnwire.load(data)
    assert module.Point.new_message().as_reader().tags[1] == "b"
    assert module.origin.y == 1.5
    assert [list(row) for row in module.list] == [[1], [], [2, 3]]
    # The same schema by text stands for the same types, wherever its file lies.
    assert capnwire.load(path).Point is module.Point


def test_a_request_beyond_the_default_traversal_limit_is_read() -> None:
    types = schema_types()
    request = types.CodeGeneratorRequest.new_message()
    nodes = request.init("nodes", 3)
    for index in range(3):
        nodes[index].id = index + 1
        nodes[index].displayName = "x" * (25 << 20)
        nodes[index].file = None
    assert [node.id for node in read_request(request.to_bytes()).nodes] == [1, 2, 3]


def file_node(id: int = 0xF000) -> dict[str, Any]:
    return {"id": id, "displayName": "f.capnp", "file": None,
            "nestedNodes": [{"name": "S", "id": 0x1000}]}


def struct_node(id: int = 0x1000, **body: Any) -> dict[str, Any]:
    return {"id": id, "displayName": "f.capnp:S", "displayNamePrefixLength": 8, "scopeId": 0xF000,
            "struct": {"dataWordCount": 1, "pointerCount": 1, **body}}


def slot(name: str, kind: str, offset: int, value: Any = None, **more: Any) -> dict[str, Any]:
    type = {"list": {"elementType": {"void": None}}} if kind == "list" else {kind: None}
    return {"name": name, **more,
            "slot": {"offset": offset, "type": type, "defaultValue": {kind: value}}}


def request_of(*nodes: dict[str, Any]) -> bytes:
    files = [{"id": 0xF000, "filename": "f.capnp"}]
    made: bytes = schema_types().CodeGeneratorRequest.new_message(
        nodes=nodes, requestedFiles=files
    ).to_bytes()
    return made


def group(name: str, id: int) -> dict[str, Any]:
    return {"name": name, "group": {"typeId": id}}


def group_node(id: int, scope: int, *fields: Any) -> dict[str, Any]:
    node = struct_node(id, isGroup=True, fields=list(fields))
    return {**node, "scopeId": scope}


HOSTILE = {
    "data field outside the section": [struct_node(fields=[slot("a", "int64", 1, 0)])],
    "bool outside the section": [struct_node(fields=[slot("a", "bool", 64, False)])],
    "pointer outside the section": [struct_node(fields=[slot("a", "text", 1, None)])],
    "huge offset": [struct_node(fields=[slot("a", "int8", 0xFFFFFFFF, 0)])],
    "same name twice": [struct_node(fields=[slot("a", "bool", 0, False), slot("a", "bool", 1,
        False)])],
    "name that is no name": [struct_node(fields=[slot("a b", "bool", 0, False)])],
    "name with NUL": [struct_node(fields=[slot("a\0", "bool", 0, False)])],
    "name of a special method": [struct_node(fields=[slot("__class__", "bool", 0, False)])],
    "discriminant twice": [struct_node(discriminantCount=2, fields=[
        slot("a", "bool", 16, False, discriminantValue=0),
        slot("b", "bool", 17, False, discriminantValue=0)])],
    "discriminant beyond the count": [struct_node(discriminantCount=1, fields=[
        slot("a", "bool", 16, False, discriminantValue=7)])],
    "discriminant outside the section": [struct_node(
        discriminantCount=2, discriminantOffset=4, fields=[
            slot("a", "void", 0, None, discriminantValue=0),
            slot("b", "void", 0, None, discriminantValue=1)])],
    "huge discriminant offset": [struct_node(
        discriminantCount=2, discriminantOffset=0xFFFFFFFF, fields=[
            slot("a", "void", 0, None, discriminantValue=0),
            slot("b", "void", 0, None, discriminantValue=1)])],
    "count without members": [struct_node(discriminantCount=3)],
    "default of another kind": [struct_node(fields=[
        {"name": "a", "slot": {"type": {"int8": None}, "defaultValue": {"text": "x"}}}])],
    "group that is missing": [struct_node(fields=[group("g", 0x2000)])],
    "group that is no group": [struct_node(fields=[group("g", 0x2000)]), struct_node(0x2000)],
    "group of another struct": [
        struct_node(fields=[group("g", 0x2000)]), group_node(0x2000, 0x3000), struct_node(0x3000)],
    "group of itself": [struct_node(isGroup=True, fields=[group("g", 0x1000)])],
    "groups in a ring": [
        struct_node(fields=[group("g", 0x2000)]),
        group_node(0x2000, 0x1000, group("h", 0x3000)),
        group_node(0x3000, 0x2000, group("g", 0x2000))],
    "group shared by two fields": [
        struct_node(fields=[group("g", 0x2000), group("h", 0x2000)]), group_node(0x2000, 0x1000)],
    "group of another size": [
        struct_node(fields=[group("g", 0x2000)]),
        {**group_node(0x2000, 0x1000), "struct": {"isGroup": True, "dataWordCount": 9}}],
    "the same id twice": [struct_node(), struct_node()],
    "file that is no file": [{**struct_node(0xF000), "nestedNodes": []}],
}


def use(module: Any) -> None:
    module.S.new_message().to_dict()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_request_that_contradicts_itself_is_refused(name: str) -> None:
    nodes: list[Any] = HOSTILE[name]
    if not any(node["id"] == 0xF000 for node in nodes):
        nodes = [file_node(), *nodes]
    with pytest.raises(capnwire.SchemaError):
        use(capnwire.SchemaParser().load(request_of(*nodes)))


def test_a_group_ring_is_not_walked() -> None:
    nodes = [
        file_node(), {**group_node(0x1000, 0x2000, group("a", 0x2000)), "scopeId": 0x2000},
        group_node(0x2000, 0x1000, group("b", 0x1000)),
    ]
    with pytest.raises(capnwire.SchemaError, match="nested more than"):
        use(capnwire.SchemaParser().load(request_of(*nodes)))


def test_a_type_nested_without_end_is_refused() -> None:
    type: dict[str, Any] = {"void": None}
    for _ in range(30):
        type = {"list": {"elementType": type}}
    fields = [{"name": "a", "slot": {"type": type, "defaultValue": {"list": None}}}]
    module = capnwire.SchemaParser().load(request_of(file_node(), struct_node(fields=fields)))
    assert len(module.S.new_message().a) == 0
    for _ in range(40):
        type = {"list": {"elementType": type}}
    fields = [{"name": "a", "slot": {"type": type, "defaultValue": {"list": None}}}]
    with pytest.raises((capnwire.SchemaError, capnwire.DecodeError)):
        capnwire.SchemaParser().load(request_of(file_node(), struct_node(fields=fields)))


@pytest.mark.parametrize("data", [b"", b"\0" * 7, b"\0" * 16, b"\xff" * 64, b"nonsense" * 3])
def test_bytes_that_are_no_request_are_refused(data: bytes) -> None:
    with pytest.raises((capnwire.SchemaError, capnwire.DecodeError)):
        capnwire.load(data)


def test_every_changed_byte_of_a_request_gives_an_error_or_a_module(compiled: Any,
    rng: Any) -> None:
    data = bytearray(compiled(SCHEMA)[0])
    for at in rng.sample(range(len(data)), min(len(data), 1500)):
        before = data[at]
        data[at] ^= 1 << rng.randrange(8)
        try:
            module = capnwire.SchemaParser().load(bytes(data))
            for name in module.__all__:
                kind = getattr(module, name)
                if hasattr(kind, "new_message"):
                    str(kind.new_message().to_dict(verbose=True))
        except (capnwire.SchemaError, capnwire.DecodeError):
            pass
        data[at] = before


def test_a_loader_takes_nodes_in_any_order(compiled: Any) -> None:
    nodes = read_request(compiled(SCHEMA)[0]).nodes
    loader = SchemaLoader()

    def named(name: str) -> Node:
        return next(node for node in nodes if node.display_name.endswith(f":{name}"))

    for node in reversed(nodes):
        assert loader.load(node_reader(node)).id == node.id
    schema = loader.get(named("Point").id).as_struct()
    message = capnwire.MessageBuilder().init_root(schema)
    message.x = 7
    assert schema.type.from_bytes(message.to_bytes()).x == 7  # type: ignore[attr-defined]
    with pytest.raises(capnwire.SchemaError, match="no enum"):
        loader.get(named("Point").id).as_enum()
    with pytest.raises(capnwire.SchemaError, match="no node with id"):
        loader.get(5)


def test_a_loader_refuses_another_node_of_the_same_id() -> None:
    loader = SchemaLoader()
    node = schema_types().Node
    loader.load(node.from_bytes(node.new_message(**struct_node()).to_bytes()))
    loader.load(node.from_bytes(node.new_message(**struct_node()).to_bytes()))
    other = struct_node(fields=[slot("a", "bool", 0, False)])
    with pytest.raises(capnwire.SchemaError, match="other contents"):
        loader.load(node.from_bytes(node.new_message(**other).to_bytes()))
