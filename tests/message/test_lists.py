"""Lists: sequences in the message, of every element type, nested, sliced, filled from anything."""

from __future__ import annotations

import array
from collections import UserDict, UserList, deque
from types import MappingProxyType
from typing import Any

import numpy
import pytest

import capnwire
from capnwire import EncodeError, EncodeTypeError

VALUES: dict[str, list[Any]] = {
    "voids": [None, None, None],
    "bools": [True, False, True, True, False, False, False, True, True],
    "int8s": [-128, 0, 127], "int16s": [-32768, 1, 32767], "int32s": [-(2**31), 5, 2**31 - 1],
    "int64s": [-(2**63), 6, 2**63 - 1], "uint8s": [0, 255], "uint16s": [0, 65535, 3],
    "uint32s": [0, 2**32 - 1], "uint64s": [0, 2**64 - 1], "float32s": [0.5, -0.0, float("inf")],
    "float64s": [1e300, -2.5], "texts": ["", "a", "ä☃"], "datas": [b"", b"\0\xff"],
    "colors": ["red", "lightGray"], "rows": [[1, -2], [], [3]], "deep": [[["a"], []], [], [["",
        "b"]]],
    "points": [{"x": 1, "y": 0, "label": "p"}, {"x": 0, "y": -1}],
    "pointRows": [[{"x": 1, "y": 0}], []], "empties": [{}, {}],
}


@pytest.mark.parametrize("field", VALUES)
@pytest.mark.parametrize("words", [None, 0])
def test_every_element_type_is_written_as_pycapnp_does_and_read_back(
    ours: Any, theirs: Any, field: str, words: int | None
) -> None:
    value = VALUES[field]
    message = ours.Lists.new_message(words, **{field: value})
    written = theirs.Lists.new_message(words, **{field: value}).to_bytes()
    assert message.to_bytes() == written
    for items in (ours.Lists.from_bytes(written)[field], message[field]):
        assert len(items) == len(value)
        assert items.to_list() == value == items.tolist()
        assert list(items) == value if field not in ("points", "pointRows", "empties") else True
        assert items == items.to_list() or field in ("points", "pointRows", "empties")


def test_indices_and_slices_are_those_of_a_sequence(ours: Any) -> None:
    numbers = [10, 11, 12, 13]
    items = ours.Lists.new_message(int32s=numbers).as_reader().int32s
    for index in range(-4, 4):
        assert items[index] == numbers[index]
    for index in (4, -5, 2**31, -(2**40)):
        with pytest.raises(IndexError, match="outside a list of 4"):
            items[index]
    for start in (None, 0, 1, -1, -3, 9):
        for stop in (None, 0, 2, -1, 9):
            for step in (None, 1, 2, -1, -3):
                assert items[start:stop:step] == numbers[start:stop:step]
    assert items[numpy.int64(2)] == 12
    with pytest.raises(TypeError):
        items["0"]
    with pytest.raises(IndexError):
        ours.Lists.new_message().as_reader().int32s[-1]


def test_lists_search_and_compare(ours: Any) -> None:
    reader = ours.Lists.new_message(int32s=[1, 2, 1], texts=["a", "b"]).as_reader()
    assert 2 in reader.int32s
    assert 3 not in reader.int32s
    assert reader.int32s.index(1, 1) == 2
    assert reader.int32s.count(1) == 2
    assert list(reversed(reader.int32s)) == [1, 2, 1]
    assert sorted(reader.texts, reverse=True) == ["b", "a"]
    with pytest.raises(ValueError, match="not in the list"):
        reader.texts.index("c")
    assert reader.int32s == [1, 2, 1] == reader.int32s
    assert reader.int32s != (1, 2, 1), "what is equal and has a hash has the same hash"
    assert reader.int32s != ours.Lists.new_message(int16s=[1, 2, 1]).as_reader().int16s
    assert reader.int32s != [1, 2]
    assert reader.int32s != "121"
    assert bytes(ours.Lists.new_message(uint8s=[1, 2]).as_reader().uint8s) == b"\1\2"


@pytest.mark.parametrize(
    "make",
    [list, tuple, deque, UserList, iter, lambda x: (i for i in x),
     lambda x: array.array("i", x), lambda x: numpy.array(x), lambda x: numpy.array(x, "<i4"),
     lambda x: numpy.array(x, ">i4"), lambda x: numpy.array(x, "i8")[::1], lambda x: range(1, 4),
     lambda x: memoryview(array.array("i", x)), lambda x: numpy.array(x * 2, "i4")[:3]],
    ids=["list", "tuple", "deque", "UserList", "iterator", "generator", "array", "numpy",
         "numpy i4", "numpy big-endian", "numpy i8", "range", "memoryview", "numpy part"],
)
def test_a_list_is_set_from_any_sequence(ours: Any, make: Any) -> None:
    message = ours.Lists.new_message(int32s=make([1, 2, 3]))
    assert list(message.int32s) == [1, 2, 3]
    message.int16s = [5, 5, 5]
    message.int16s = make([1, 2, 3])
    assert list(ours.Lists.from_bytes(message.to_bytes()).int16s) == [1, 2, 3]


@pytest.mark.parametrize("wrong", ["abc", {"a": 1}, {1, 2}, 5, b"ab", 1.5, object()])
def test_a_list_refuses_what_is_no_sequence(ours: Any, wrong: Any) -> None:
    message = ours.Lists.new_message(int32s=[7])
    with pytest.raises(EncodeTypeError, match=r"Lists\.int32s: a sequence is wanted"):
        message.int32s = wrong
    assert list(message.int32s) == [7]


@pytest.mark.parametrize(
    ("field", "value"),
    [("int8s", [1, 128]), ("int8s", [1, "x"]), ("texts", ["a", 5]), ("datas", [b"", "x"]),
     ("colors", ["red", "pink"]), ("points", [{"x": 1}, {"x": "y"}]), ("points", [{"nope": 1}]),
     ("rows", [[1], ["x"]]), ("rows", [[1], 5]), ("bools", [True, 1]), ("voids", [None, 0]),
     ("int8s", numpy.array([1, 500])), ("points", [None])],
)
def test_a_refused_element_leaves_the_list_as_it_was(ours: Any, field: str, value: Any) -> None:
    message = ours.Lists.new_message(**{field: VALUES[field]})
    with pytest.raises((EncodeError, AttributeError)):
        message[field] = value
    assert message[field].to_list() == VALUES[field]


@pytest.mark.parametrize("field", ["int8s", "texts", "points"])
def test_a_list_replaced_while_it_is_iterated_is_stale(ours: Any, field: str) -> None:
    message = ours.Lists.new_message(**{field: VALUES[field]})
    with pytest.raises(EncodeError, match="stale"):
        for item in message[field]:
            if field == "points":
                item.to_dict()
            message.init(field, 2)


def test_elements_are_set_one_by_one(ours: Any, theirs: Any) -> None:
    made = []
    for module in (ours, theirs):
        message = module.Lists.new_message()
        numbers, texts = message.init("int16s", 3), message.init("texts", 2)
        numbers[0], numbers[2] = 5, -6
        texts[1] = "long enough to take words"
        points = message.init("points", 2)
        points[1].x = 4
        points[0] = {"label": "first"}
        rows = message.init("rows", 2)
        rows.init(0, 2)[1] = 9
        colors = message.init("colors", 2)
        colors[1] = "blue"
        made.append(message.to_bytes())
    assert made[0] == made[1]


def test_slices_are_set_without_changing_the_length(ours: Any) -> None:
    message = ours.Lists.new_message(int32s=[1, 2, 3, 4])
    message.int32s[1:3] = [8, 9]
    message.int32s[::-3] = [7, 6]
    message.int32s[-3] = 5
    assert list(message.int32s) == [6, 5, 9, 7]
    with pytest.raises(ValueError, match="keeps its length"):
        message.int32s[1:3] = [1]
    with pytest.raises(NotImplementedError):
        del message.int32s[0]
    with pytest.raises(IndexError):
        message.int32s[4] = 1
    with pytest.raises(TypeError):
        message.as_reader().int32s[0] = 1


def test_a_list_can_be_assigned_to_itself_and_to_others(ours: Any) -> None:
    message = ours.Lists.new_message(int32s=[1, 2], points=[{"x": 1, "label": "a"}])
    message.int32s = message.int32s
    message.points = message.points
    message.pointRows = [message.points, message.as_reader().points]
    message.float64s = message.int32s
    assert message.to_dict() == {
        "int32s": [1, 2], "points": [{"x": 1, "y": 0, "label": "a"}], "float64s": [1.0, 2.0],
        "pointRows": [[{"x": 1, "y": 0, "label": "a"}]] * 2,
    }
    message.points[0] = message.points[0]
    message.rows = [[1], [2]]
    message.rows[0] = message.rows[1]
    assert message.rows.to_list() == [[2], [2]]
    assert message.points[0].label == "a"


def test_struct_elements_take_any_mapping_and_structs_of_their_type(ours: Any) -> None:
    point = ours.Point.new_message(x=1, label="b")
    values = [{"x": 1, "label": "b"}, point, point.as_reader(), UserDict(x=1, label="b"),
              MappingProxyType({"x": 1, "label": "b"})]
    message = ours.Lists.new_message(points=values)
    assert message.points.to_list() == [{"x": 1, "y": 0, "label": "b"}] * 5
    with pytest.raises(EncodeTypeError, match="a struct Point or a mapping"):
        message.points[0] = ours.Tree.new_message()
    assert message.points[0].x == 1


def test_init_refuses_sizes_that_no_list_has(ours: Any) -> None:
    message = ours.Lists.new_message()
    for size in (-1, 1 << 29, 2**64):
        with pytest.raises(EncodeError):
            message.init("int32s", size)
    for size in (None, "3", 1.5):
        with pytest.raises((TypeError, AttributeError)):
            message.init("int32s", size)
    assert not message.has("int32s")
    assert len(message.init("int32s", numpy.int8(3))) == 3


def test_resizable_lists_grow_and_finish(ours: Any, theirs: Any) -> None:
    message = ours.Lists.new_message()
    items = message.init_resizable_list("points")
    for x in range(3):
        items.add().x = x
    items[0].label = "first"
    assert len(items) == 3
    items.finish()
    assert [point.x for point in message.points] == [0, 1, 2]
    assert message.points[0].label == "first"
    with pytest.raises(EncodeError, match="was finished"):
        items.add()
    with pytest.raises(EncodeTypeError, match="no list of structs"):
        message.init_resizable_list("int32s")


# ---------------------------------------------------------------- numbers in place

NUMBERS = {
    "int8s": "i1", "int16s": "i2", "int32s": "i4", "int64s": "i8", "uint8s": "u1", "uint16s": "u2",
    "uint32s": "u4", "uint64s": "u8", "float32s": "f4", "float64s": "f8",
}


@pytest.mark.parametrize("field", NUMBERS)
def test_lists_of_numbers_are_numpy_arrays_without_a_copy(ours: Any, field: str) -> None:
    data = ours.Lists.new_message(**{field: [1, 2, 3]}).to_bytes()
    items = ours.Lists.from_bytes(data)[field]
    seen = numpy.asarray(items)
    assert seen.dtype == numpy.dtype("<" + NUMBERS[field])
    assert seen.tolist() == [1, 2, 3]
    assert not seen.flags.writeable
    inside = numpy.frombuffer(data, "u1")
    assert numpy.shares_memory(inside, seen)
    built = ours.Lists.new_message(**{field: numpy.arange(5).astype(NUMBERS[field])})
    numpy.asarray(built[field])[:] = 7
    assert list(built[field]) == [7] * 5


def test_an_array_outlives_its_closed_message(ours: Any) -> None:
    raw = bytearray(ours.Lists.new_message(int64s=[4, 5]).to_bytes())
    with ours.Lists.from_bytes(raw) as reader:
        seen = numpy.asarray(reader.int64s)
    assert seen.tolist() == [4, 5]
    with pytest.raises(BufferError):
        raw.append(0)
    del seen
    raw.append(0)


def test_other_lists_have_no_buffer(ours: Any) -> None:
    reader = ours.Lists.new_message(**VALUES).as_reader()
    for field in ("bools", "voids", "texts", "points", "rows"):
        with pytest.raises((BufferError, TypeError)):
            memoryview(reader[field])


def test_numbers_that_lie_in_structs_are_a_strided_buffer(ours: Any) -> None:
    data = ours.New.new_message(numbers=[{"value": 3}, {"value": 4}]).to_bytes()
    items = ours.Old.from_bytes(data).numbers
    assert list(items) == [3, 4]
    assert numpy.asarray(items).tolist() == [3, 4]
    assert numpy.asarray(items).strides == (24,)


def test_list_types_name_their_elements(ours: Any) -> None:
    reader = ours.Lists.new_message().as_reader()
    assert repr(reader.rows.type) == "List(List(int16))"
    assert repr(reader.points.type) == "List(Point)"
    assert capnwire.list_of(ours.Point).element_kind == "struct"
    assert repr(capnwire.list_of(capnwire.list_of(capnwire.types.Text))) == "List(List(text))"
