"""Slips and tricks of a program: ordinary exceptions, which leave the message as it was."""

from __future__ import annotations

import copy
import ctypes
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import capnwire
from capnwire.errors import CapnwireError, EncodeError, EncodeTypeError, LimitError, UnionError
from capnwire.message.types import list_of

SCHEMA = """@0xb1f60c2d7e3a9485;
struct Node {
  value @0 :UInt32; next @1 :Node; text @2 :Text; data @3 :Data; list @4 :List(UInt32);
  nodes @5 :List(Node); texts @6 :List(Text); any @7 :AnyPointer; flag @8 :Bool; real @9 :Float32;
  color @10 :Color; long @11 :Int64; matrix @12 :List(List(UInt16)); other @13 :Small;
  u :union { a @14 :UInt32; g :group { x @15 :UInt32; t @16 :Text; } h @17 :Text; s @18 :Small; }
  self :group { y @19 :UInt16; label @20 :Text; }
}
struct Small { a @0 :UInt8; }
struct Peculiar { which @0 :Text; init @1 :Text; toDict @2 :Text; class @3 :Text; self @4 :Text; }
enum Color { red @0; green @1; }
struct Cycle {
    again @0 :Cycle = (number = 1); items @1 :List(Cycle) = [(number = 2)]; number @2 :Int32;
}
struct First { second @0 :Second; others @1 :List(Second); }
struct Second { first @0 :First; second @1 :Second; third @2 :Third; }
struct Third { first @0 :First; second @1 :Second; third @2 :Third; }
"""

FULL: dict[str, Any] = {
    "value": 7,
    "text": "hi",
    "data": b"abc",
    "list": [1, 2, 3],
    "nodes": [{"value": 1}, {}],
    "texts": ["x", "y"],
    "next": {"value": 8, "text": "inner"},
    "matrix": [[1], [2, 3]],
    "u": {"h": "chosen"},
    "self": {"y": 3, "label": "l"},
    "color": "green",
    "other": {"a": 1},
}


@pytest.fixture(scope="module")
def schema() -> ModuleType:
    return capnwire.load_text(SCHEMA, "misuse.capnp")


@pytest.fixture
def message(schema: ModuleType) -> Any:
    return schema.Node.new_message(**FULL)


# ---------------------------------------------------------------- refused values


class Bad:
    """Nothing at all."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr either")


def failing() -> Iterator[int]:
    yield 1
    raise KeyError("in the middle")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("value", -1),
        ("value", 2**32),
        ("value", "1"),
        ("value", None),
        ("value", 1.5),
        ("value", float("nan")),
        ("value", float("inf")),
        ("value", 10**400),
        ("value", Bad()),
        ("value", 1j),
        ("value", b"1"),
        ("long", 2**63),
        ("long", -(2**63) - 1),
        ("flag", 1),
        ("flag", "True"),
        ("real", 1e39),
        ("real", 10**400),
        ("real", "1"),
        ("color", "blue"),
        ("color", 65536),
        ("color", -1),
        ("color", 1.0),
        ("text", 5),
        ("text", b"\xff"),
        ("text", "\ud800"),
        ("text", ["a"]),
        ("data", 5),
        ("data", "text"),
        ("data", [1, 2]),
        ("list", 5),
        ("list", "123"),
        ("list", b"123"),
        ("list", {1: 2}),
        ("list", {1, 2}),
        ("list", [1, -1]),
        ("list", [1, "2"]),
        ("list", [1, None]),
        ("list", failing),
        ("texts", "abc"),
        ("texts", ["a", 5]),
        ("texts", ["a", b"\xff"]),
        ("matrix", [[1], 2]),
        ("matrix", [[1], [70000]]),
        ("nodes", [{"value": 1}, {"value": -1}]),
        ("nodes", [5]),
        ("nodes", {"value": 1}),
        ("nodes", [{"missing": 1}]),
        ("nodes", [{"next": {"value": -1}}]),
        ("next", 5),
        ("next", [1]),
        ("next", "x"),
        ("any", 5),
        ("any", {"a": 1}),
        ("any", Bad()),
    ],
    ids=lambda value: str(value)[:20] if not isinstance(value, Bad) else "Bad",
)
def test_a_refused_value_leaves_its_field_as_it_was(
    schema: ModuleType, message: Any, field: str, value: object
) -> None:
    before, data = message.to_dict(), message.to_bytes()
    with pytest.raises((EncodeError, AttributeError, TypeError, KeyError)):
        setattr(message, field, value() if callable(value) else value)
    assert message.to_dict() == before
    assert schema.Node.from_bytes(data) == message
    empty = schema.Node.new_message()
    with pytest.raises((EncodeError, AttributeError, TypeError, KeyError)):
        setattr(empty, field, value() if callable(value) else value)
    assert empty == schema.Node.new_message()
    with pytest.raises((EncodeError, AttributeError, TypeError, KeyError)):
        schema.Node.new_message(**{field: value() if callable(value) else value})


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("a", -1),
        ("a", "x"),
        ("h", 5),
        ("s", 5),
        ("s", {"a": 300}),
        ("g", {"x": -1}),
        ("g", {"t": "new", "x": "bad"}),
        ("g", {"x": 5, "missing": 1}),
        ("g", 5),
        ("g", None),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "active", [("h", "kept"), ("a", 9), ("s", {"a": 4}), ("g", {"x": 1, "t": "t"})], ids=str
)
def test_a_refused_union_member_leaves_the_active_one(
    schema: ModuleType, active: tuple[str, Any], member: str, value: object
) -> None:
    message = schema.Node.new_message(u=dict([active]))
    before = message.to_dict()
    with pytest.raises((EncodeError, AttributeError)):
        setattr(message.u, member, value)
    assert message.u.which() == active[0]
    if active[0] == member and isinstance(value, dict):
        # Merged into what is there, in the mapping's own order: what came first is set.
        assert message.u.to_dict()[member].keys() == before["u"][member].keys()
    else:
        assert message.to_dict() == before


def test_a_refused_list_element_leaves_it(schema: ModuleType, message: Any) -> None:
    message.nodes = [{"value": 3, "text": "kept", "list": [1]}]
    broken = bytearray(schema.Node.new_message(text="t", nodes=[{"text": "x"}]).to_bytes())
    size = len(broken)
    refused = 0
    for at in range(16, size, 8):
        data = bytes(broken[:at]) + b"\xfe\xff\xff\xff\xff\xff\xff\xff" + bytes(broken[at + 8 :])
        try:
            message.nodes[0] = schema.Node.from_bytes(data)
        except CapnwireError:
            refused += 1
            assert message.nodes[0].to_dict()["text"] == "kept"
            assert list(message.nodes[0].list) == [1]
        message.nodes = [{"value": 3, "text": "kept", "list": [1]}]
    assert refused > 3
    for index, value in ((0, 5), (0, {"value": -1}), (0, None)):
        with pytest.raises(EncodeError):
            message.nodes[index] = value
    with pytest.raises(EncodeError):
        message.list = [1]
        message.list[0] = 2**32
    assert list(message.list) == [1]
    with pytest.raises(ValueError, match="keeps its length"):
        message.list[:] = [1, 2]


@pytest.mark.parametrize("index", [3, -4, 2**31, 2**63, -(2**63) - 1])
def test_indices_out_of_range(message: Any, index: int) -> None:
    for items in (message.list, message.as_reader().list, message.as_reader().nodes):
        with pytest.raises(IndexError):
            _ = items[index]
    with pytest.raises(IndexError):
        message.list[index] = 1


@pytest.mark.parametrize("index", [1.0, "0", None, b"0"])
def test_indices_of_the_wrong_type(message: Any, index: object) -> None:
    for items in (message.list, message.as_reader().nodes):
        with pytest.raises(TypeError):
            _ = items[index]


@pytest.mark.parametrize("size", [-1, 2**29, 2**64, 2**200])
@pytest.mark.parametrize("field", ["list", "nodes", "text", "data", "texts"])
def test_sizes_that_the_format_has_no_room_for(message: Any, field: str, size: int) -> None:
    before = message.to_bytes()
    with pytest.raises(EncodeError):
        message.init(field, size)
    assert message.to_bytes() == before


def test_lists_of_structs_end_with_the_words_of_a_segment(message: Any) -> None:
    with pytest.raises(EncodeError, match="too long"):
        message.init("nodes", 2**27)


@pytest.mark.parametrize(
    ("field", "size"),
    [
        ("value", None),
        ("value", 3),
        ("next", 3),
        ("list", None),
        ("list", "3"),
        ("list", 1.5),
        ("any", 3),
        ("text", None),
        ("missing", None),
    ],
)
def test_init_of_the_wrong_thing(message: Any, field: str, size: Any) -> None:
    before = message.to_dict()
    with pytest.raises((TypeError, AttributeError)):
        message.init(field, size)
    assert message.to_dict() == before


@pytest.mark.parametrize("words", [-1, 2**29, 2**64, "4", 1.5, b""])
def test_first_segments_that_cannot_be(schema: ModuleType, words: Any) -> None:
    for make in (
        lambda: schema.Node.new_message(words),
        lambda: schema.Node.new_message().copy(words),
        lambda: capnwire.MessageBuilder(words),
    ):
        with pytest.raises((ValueError, TypeError, AttributeError, OverflowError)):
            make()


@pytest.mark.parametrize("limit", [-1, "5", 1.5j, b""])
def test_limits_that_cannot_be(schema: ModuleType, limit: Any) -> None:
    data = schema.Node.new_message().to_bytes()
    for open_it in (
        lambda: schema.Node.from_bytes(data, limit),
        lambda: schema.Node.from_bytes(data, None, limit),
        lambda: schema.Node.from_segments([data[8:]], limit),
        lambda: list(schema.Node.read_multiple_bytes(data, limit)),
    ):
        with pytest.raises((ValueError, TypeError)):
            open_it()
    assert schema.Node.from_bytes(data, 10**30, 10**30).value == 0


# ---------------------------------------------------------------- instances, types, descriptors


def test_only_the_package_makes_instances(schema: ModuleType) -> None:
    Node = schema.Node
    for make in (
        lambda: object.__new__(Node.Reader),
        lambda: Node.Reader.__new__(Node.Reader),
        lambda: Node.Reader(),
        lambda: Node.Builder(),
        lambda: capnwire.Struct(),
        lambda: capnwire.ListReader(),
        lambda: capnwire.ListBuilder(),
        lambda: capnwire.EnumValue(),
        lambda: capnwire.AnyPointerReader(),
        lambda: capnwire.AnyPointerBuilder(),
        lambda: type(iter(Node.new_message(list=[1]).list))(),
        lambda: type(Node.new_message(next={}).disown("next"))(),
        lambda: type(Node.read_multiple_bytes(b""))(),
        lambda: type("Sub", (Node.Reader,), {})(),
        lambda: type("Sub", (Node,), {})(),
        lambda: type("Sub", (capnwire.ListReader,), {})(),
        lambda: object.__new__(type("Sub", (Node.Builder,), {})),
        lambda: type("Sub", (Node.Reader, schema.Small.Reader), {})(),
    ):
        with pytest.raises((TypeError, AttributeError)):
            make()


def test_an_instance_keeps_its_type(schema: ModuleType, message: Any) -> None:
    reader = schema.Node.from_bytes(message.to_bytes())
    for instance, kind in (
        (reader, schema.Node.Builder),
        (message, schema.Node.Reader),
        (reader, schema.Small.Reader),
        (message, schema.Small.Builder),
        (message.nodes, capnwire.ListReader),
        (reader, type("Sub", (schema.Node.Reader,), {})),
    ):
        with pytest.raises(TypeError):
            instance.__class__ = kind


def test_descriptors_refuse_other_types(schema: ModuleType, message: Any) -> None:
    reader = schema.Node.from_bytes(message.to_bytes())
    getter = schema.Node.Reader.__dict__["text"]
    setter = schema.Node.Builder.__dict__["text"]
    for call in (
        lambda: getter.__get__(message),
        lambda: getter.__get__(schema.Small.new_message()),
        lambda: setter.__set__(reader, "x"),
        lambda: setter.__get__(reader),
        lambda: getter.__get__(5),
        lambda: setter.__set__(schema.Small.new_message(), "x"),
        lambda: capnwire.StructBuilder.init(reader, "next"),
        lambda: capnwire.Struct.to_dict(5),
        lambda: capnwire.StructBuilder.__setitem__(reader, "text", "x"),
        lambda: capnwire.ListBuilder.__setitem__(reader.list, 0, 1),
        lambda: capnwire.new_orphan(None, schema.Node),
        lambda: capnwire.new_orphan(5, schema.Node),
        lambda: capnwire.new_orphan(reader, schema.Node),
        lambda: capnwire.new_orphan(message, None),
        lambda: reader.any.as_struct(None),
        lambda: reader.any.as_list(schema.Node),
        lambda: reader.any.as_struct(list_of(capnwire.types.Text)),
        lambda: reader.any.as_list(int),
        lambda: schema.Node.from_segments(5),
        lambda: schema.Node.from_segments([5]),
        lambda: schema.Node.from_bytes(None),
        lambda: schema.Node.from_bytes("text"),
        lambda: schema.Node.from_bytes(),
        lambda: schema.Node.from_bytes(b"", unknown=1),
        lambda: schema.Node.from_bytes(b"", b"", b"", b"", b""),
        lambda: message.adopt("next", None),
        lambda: message.adopt("next", message),
        lambda: message.adopt("value", message.disown("next")),
        lambda: message.disown("value"),
        lambda: message.nodes.disown(0),
        lambda: message.list.init(0),
        lambda: message.list.init(0, 3),
    ):
        with pytest.raises((TypeError, EncodeTypeError)):
            call()
    for field in ("text", "value", "nodes"):
        with pytest.raises(AttributeError):
            setattr(reader, field, None)
    with pytest.raises(AttributeError):
        reader.new_attribute = 5
    with pytest.raises(TypeError):
        reader["text"] = "x"
    with pytest.raises(TypeError):
        reader.list[0] = 1


def test_a_type_without_a_description_opens_nothing(schema: ModuleType) -> None:
    data = bytes(8)
    for kind in (
        capnwire.Struct,
        type("Sub", (schema.Node.Reader,), {"_info": None}),
        type("Sub", (schema.Node.Reader,), {"_info": 5}),
    ):
        with pytest.raises((TypeError, AttributeError)):
            kind.from_segments([data])


def test_descriptions_of_types_are_made_once(schema: ModuleType, message: Any) -> None:
    kind = message.nodes.type
    for change in (
        lambda: kind.__init__("uint8"),
        lambda: type(kind)("struct"),
        lambda: type(kind)("enum", kind),
        lambda: type(kind)("list", schema.Node._info),
        lambda: type(kind)("uint8", kind),
        lambda: schema.Node._info.__init__("X", schema.Small._info.node, None, None),
        lambda: schema.Node._info.define("X", "y", [], 0),
    ):
        with pytest.raises(TypeError):
            change()
    assert [node.value for node in message.nodes] == [1, 0]


def test_fields_named_like_methods(schema: ModuleType) -> None:
    message = schema.Peculiar.new_message()
    for name in ("which", "init", "toDict", "class", "self"):
        message[name] = name
    reader = schema.Peculiar.from_bytes(message.to_bytes())
    assert [reader[name] for name in ("which", "init", "toDict", "class", "self")] == [
        "which",
        "init",
        "toDict",
        "class",
        "self",
    ]
    with pytest.raises(UnionError):
        reader.which()


# ---------------------------------------------------------------- a message within itself


def test_a_message_assigned_into_itself(schema: ModuleType, message: Any) -> None:
    original = message.to_dict()
    message.next = message
    assert message.to_dict() == original | {"next": original}
    once = message.to_dict()
    message.next.next = message
    assert message.to_dict() == original | {"next": original | {"next": once}}
    message.nodes = [message, message.next]
    message.nodes[1] = message
    message.any = message
    message.any = message.any
    for name in ("list", "nodes", "texts", "text", "data", "matrix", "next", "self", "u"):
        before = message.to_dict()[name]
        setattr(message, name, getattr(message, name))
        assert message.to_dict()[name] == before
        message.from_dict({name: getattr(message, name)})
        assert message.to_dict()[name] == before
    assert message.nodes[0].next.next.to_dict() == once
    assert schema.Node.from_bytes(message.to_bytes()) == message


def test_views_of_a_message_stored_into_itself(message: Any) -> None:
    message.data = message.get_data_as_view("data")
    assert message.data == b"abc"
    message.list = memoryview(message.list)
    assert list(message.list) == [1, 2, 3]
    message.list = memoryview(message.list)[::-1]
    assert list(message.list) == [3, 2, 1]
    message.list[:] = message.list
    assert list(message.list) == [3, 2, 1]


# ---------------------------------------------------------------- depth

DEPTH = 200_000


@pytest.fixture(scope="module")
def deep(schema: ModuleType) -> Any:
    message = schema.Node.new_message()
    node = message
    for _ in range(DEPTH):
        node = node.next
    node.value = 5
    return message


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(str, id="str"),
        pytest.param(lambda message: message.to_dict(), id="to_dict"),
        pytest.param(lambda message: message.to_dict(verbose=True), id="to_dict verbose"),
        pytest.param(lambda message: pickle.loads(pickle.dumps(message)).to_dict(), id="pickle"),
        pytest.param(lambda message: list(walk(message.as_reader())), id="a reader"),
        pytest.param(
            lambda message: type(message).from_bytes(message.to_bytes()).to_dict(), id="bytes"
        ),
    ],
)
def test_what_is_bounded_says_so(deep: Any, question: Callable[[Any], object]) -> None:
    with pytest.raises(LimitError, match="nesting"):
        question(deep)


def walk(node: Any) -> Iterator[int]:
    while node.has("next"):
        node = node.next
        yield 1


def test_what_has_no_bound_needs_no_stack(schema: ModuleType, deep: Any) -> None:
    words = deep.total_size.word_count
    assert words > DEPTH * 10
    copied = deep.copy()
    assert copied == deep
    assert copied.total_size.word_count == words
    assert len(deep.to_canonical()) // 8 < words
    assert repr(deep).startswith("<Node builder unreadable: the nesting")
    assert len(pickle.dumps(deep)) > words * 8
    target = schema.Node.new_message()
    target.next = deep
    target.any = deep
    target.nodes = [deep.next, deep]
    orphan = target.disown("next")
    target.adopt("next", orphan)
    orphan = target.disown("next")
    del orphan
    target.clear("nodes")
    target.init("any")
    assert not any(target.to_bytes()[8 + 8 + len(schema.Node.new_message().to_bytes()) :])
    assert copy.deepcopy(deep) == deep


def test_threads_with_small_stacks(schema: ModuleType) -> None:
    def run() -> None:
        node = message = schema.Node.new_message()
        for index in range(3000):
            node = node.next if index % 2 else node.init("nodes", 1)[0]
        for question in (message.to_dict, lambda: str(message), lambda: repr(message)):
            try:
                question()
            except (LimitError, RecursionError):
                pass
        loop: dict[str, Any] = {}
        loop["next"] = loop
        try:
            schema.Node.new_message(**loop)
        except RecursionError:
            ended.append(True)

    ended: list[bool] = []
    before = threading.stack_size(2 << 20)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert ended


@pytest.mark.parametrize("limit", [None, 10**6], ids=["Python's limit", "a limit beyond the stack"])
def test_values_that_hold_themselves(schema: ModuleType, limit: int | None) -> None:
    mapping: dict[str, Any] = {"value": 1}
    mapping["next"] = mapping
    items: list[Any] = []
    items.append({"nodes": items})
    both: dict[str, Any] = {}
    both["nodes"] = [both, both]
    rows: list[Any] = []
    rows.append(rows)
    message = schema.Node.new_message(text="kept")
    before = sys.getrecursionlimit()
    try:
        if limit:
            sys.setrecursionlimit(limit)
        for value in (mapping, {"nodes": items}, both, {"u": {"g": mapping}}):
            with pytest.raises((RecursionError, AttributeError)):
                message.from_dict(value)
        with pytest.raises((RecursionError, EncodeError)):
            message.matrix = rows
        with pytest.raises(RecursionError):
            schema.Node.new_message(next=mapping)
    finally:
        sys.setrecursionlimit(before)
    assert message.text == "kept"
    assert schema.Node.new_message(next={"value": 3}).next.value == 3


def test_types_that_hold_themselves_in_a_verbose_dict(schema: ModuleType) -> None:
    empty = schema.Node.new_message().to_dict(verbose=True)
    assert empty["next"] is None or empty["next"]["next"] is None
    for kind in (schema.Cycle, schema.First, schema.Third):
        for struct in (kind.new_message(), kind.from_segments([bytes(8)])):
            assert struct.to_dict(verbose=True).keys() == set(kind._info.by_name)
    assert schema.Cycle.new_message().to_dict() == {"number": 0}


# ---------------------------------------------------------------- callbacks that misbehave


def test_collections_that_change_while_they_are_stored(schema: ModuleType) -> None:
    items: list[Any] = []

    class Shrinks:
        def __index__(self) -> int:
            items.clear()
            return 1

    items += [Shrinks(), 2, 3] * 100
    message = schema.Node.new_message(list=items)
    assert list(message.list)[:2] == [1, 0]

    class Grows:
        def __index__(self) -> int:
            mapping[f"more{len(mapping)}"] = 1
            return 1

    mapping: dict[str, Any] = {"value": Grows(), "text": "t"}
    with pytest.raises(AttributeError, match="more"):
        message.from_dict(mapping)

    class Forgets:
        def __index__(self) -> int:
            forgetful.clear()
            return 1

    forgetful: dict[str, Any] = {"value": Forgets(), "text": "t" * 1000, "data": b"d" * 1000}
    message.from_dict(forgetful)


def test_sequences_that_lie_about_their_length(schema: ModuleType) -> None:
    class Lies(list):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 10**6

    class Endless:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> int:
            if index > 5:
                raise IndexError
            return index

    message = schema.Node.new_message()
    message.list = Lies([1, 2])
    assert list(message.list)[:2] == [1, 2]
    message.list = Endless()
    assert list(message.list) == [0, 1, 2, 3, 4, 5]


def test_buffers_of_other_shapes(schema: ModuleType) -> None:
    numpy = pytest.importorskip("numpy")
    message = schema.Node.new_message()
    message.list = numpy.arange(6, dtype="u4")[::2]
    assert list(message.list) == [0, 2, 4]
    message.list = numpy.arange(3, dtype=">u4")
    assert list(message.list) == [0, 1, 2]
    message.list = numpy.zeros(0, dtype="u4")
    assert list(message.list) == []
    for wrong in (
        numpy.zeros((2, 2), dtype="u4"),
        numpy.array([1.5]),
        numpy.array(["a"]),
        numpy.array(5),
        numpy.array([-1]),
        numpy.array([2**40]),
    ):
        with pytest.raises((EncodeError, TypeError)):
            message.list = wrong
    assert list(message.list) == []
    message.data = numpy.zeros((2, 3), dtype="u1")
    assert message.data == bytes(6)
    message.data = memoryview(b"abcdef")[::2]
    assert message.data == b"ace"
    message.data = (ctypes.c_uint16 * 2)(1, 2)
    assert message.data == b"\1\0\2\0"


def test_consumers_that_want_contiguous_memory(schema: ModuleType) -> None:
    old = capnwire.load_text(
        "@0xb1f60c2d7e3a9486;\n"
        "struct Old { rows @0 :List(Row); struct Row { a @0 :UInt32; b @1 :UInt32; } }",
        "old",
    )
    new = capnwire.load_text("@0xb1f60c2d7e3a9487;\nstruct New { rows @0 :List(UInt32); }", "new")
    data = old.Old.new_message(rows=[{"a": 1, "b": 9}, {"a": 2, "b": 9}]).to_bytes()
    rows = new.New.from_bytes(data).rows
    assert memoryview(rows).tolist() == [1, 2]
    assert memoryview(rows).strides == (8,)
    api = ctypes.pythonapi.PyObject_GetBuffer
    api.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    view = ctypes.create_string_buffer(256)
    for flags in (0, 8, 0x38, 0x58, 0x98, 0x1):
        with pytest.raises(BufferError):
            api(rows, view, flags)
