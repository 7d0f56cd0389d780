"""Numbers, booleans, enums and Void: where they lie, what they take, what they refuse."""

from __future__ import annotations

import math
import struct
from enum import IntEnum
from fractions import Fraction
from typing import Any

import numpy
import pytest

from capnwire import EncodeError, EncodeTypeError

RANGES = {
    "int8": (-(2**7), 2**7 - 1), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1), "uint8": (0, 2**8 - 1), "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1), "uint64": (0, 2**64 - 1),
}
LAYOUT = [
    # field, value, index of the word, the word: hand-worked from the ordinals
    ("bool", True, 1, 0x0000_0000_0000_0001),
    ("int8", -1, 1, 0x0000_0000_0000_FF00),
    ("int16", -2, 1, 0x0000_0000_FFFE_0000),
    ("int32", -3, 1, 0xFFFF_FFFD_0000_0000),
    ("int64", -4, 2, 0xFFFF_FFFF_FFFF_FFFC),
    ("uint8", 200, 3, 0x0000_0000_0000_00C8),
    ("uint16", 40000, 3, 0x0000_0000_9C40_0000),
    ("uint32", 4000000000, 3, 0xEE6B_2800_0000_0000),
    ("uint64", 2**64 - 2, 4, 0xFFFF_FFFF_FFFF_FFFE),
    ("float32", 1.5, 5, 0x0000_0000_3FC0_0000),
    ("float64", -2.0, 6, 0xC000_0000_0000_0000),
    ("color", "blue", 5, 0x0000_0002_0000_0000),
]


@pytest.mark.parametrize(("field", "value", "at", "word"), LAYOUT, ids=[row[0] for row in LAYOUT])
def test_a_field_lies_where_its_ordinal_puts_it(
    ours: Any, words_of: Any, framed: Any, field: str, value: Any, at: int, word: int
) -> None:
    words = words_of(ours.Scalars.new_message(**{field: value}))
    assert words == [0x0000_0006_0000_0000, *(word if i == at else 0 for i in range(1, 7))]
    assert getattr(ours.Scalars.from_bytes(framed(*words)), field) == value


@pytest.mark.parametrize("field", RANGES)
def test_integers_take_their_range_and_no_more(ours: Any, field: str) -> None:
    low, high = RANGES[field]
    message = ours.Scalars.new_message()
    for value in {low, high, 0, 1, high // 2, low // 2}:
        setattr(message, field, value)
        assert message[field] == value
        assert ours.Scalars.from_bytes(message.to_bytes())[field] == value
    setattr(message, field, 1)
    for value in (low - 1, high + 1, 2**70, -(2**70)):
        with pytest.raises(EncodeError) as caught:
            setattr(message, field, value)
        assert (caught.value.struct, caught.value.field, caught.value.value) == (
            "Scalars", field, value)
        assert f"an integer from {low} to {high} is wanted" in str(caught.value)
    assert message[field] == 1


@pytest.mark.parametrize("field", RANGES)
def test_integers_take_whatever_is_an_integer(ours: Any, field: str) -> None:
    class Level(IntEnum):
        HIGH = 3

    message = ours.Scalars.new_message()
    for value in (3.0, numpy.int8(3), numpy.uint64(3), numpy.float64(3), Level.HIGH,
        numpy.array(3)):
        message[field] = 0
        message[field] = value
        assert message[field] == 3
        assert type(message[field]) is int
    for value in (3.5, math.nan, math.inf, numpy.float32(0.5)):
        with pytest.raises(EncodeError):
            message[field] = value
    for wrong in ("3", None, b"3", [], Fraction(3), 3j):
        with pytest.raises(EncodeTypeError):
            message[field] = wrong
    assert message[field] == 3


def test_bools_take_bools(ours: Any) -> None:
    message = ours.Scalars.new_message()
    for value in (True, numpy.bool_(True)):
        message.bool = value
        assert message.bool is True
        message.bool = False
    for wrong in (1, 0, "true", None, 1.0):
        with pytest.raises(EncodeTypeError):
            message.bool = wrong


@pytest.mark.parametrize("field", ["float32", "float64"])
def test_floats_take_numbers(ours: Any, field: str) -> None:
    message = ours.Scalars.new_message()
    for value in (0.0, -0.0, 1.5, math.inf, -math.inf, 3, numpy.float32(2.5), numpy.int16(7), True):
        message[field] = value
        assert message[field] == value
        assert math.copysign(1, message[field]) == math.copysign(1, value)
    message[field] = math.nan
    assert math.isnan(message[field])
    for wrong in ("1.5", None, b"", 1j):
        with pytest.raises(EncodeTypeError):
            message[field] = wrong
    with pytest.raises(EncodeError):
        message[field] = 10**400


def test_float32_rounds_and_refuses_what_is_too_large(ours: Any) -> None:
    message = ours.Scalars.new_message(float32=0.1)
    assert message.float32 == struct.unpack("<f", struct.pack("<f", 0.1))[0]
    with pytest.raises(EncodeError, match="within the range of Float32"):
        message.float32 = 1e39


@pytest.mark.parametrize(
    ("field", "pattern", "size"),
    [("float32", 0x7FA0_0001, 4), ("float32", 0xFFC0_1234, 4),
     ("float64", 0x7FF0_0000_0000_0001, 8), ("float64", 0xFFF8_0000_0000_BEEF, 8)],
)
def test_the_bits_of_nan_survive_copies(
    ours: Any, framed: Any, field: str, pattern: int, size: int
) -> None:
    words = [0] * 6
    words[4 if size == 4 else 5] = pattern
    data = framed(0x0000_0006_0000_0000, *words)
    reader = ours.Scalars.from_bytes(data)
    assert math.isnan(reader[field])
    assert reader.as_builder().to_bytes() == data
    assert reader == ours.Scalars.from_bytes(data)


def test_void_takes_none_and_gives_none(ours: Any) -> None:
    message = ours.Scalars.new_message(nothing=None)
    assert message.nothing is None
    with pytest.raises(EncodeTypeError):
        message.nothing = 0


def test_del_and_clear_give_back_the_default(ours: Any) -> None:
    message = ours.Defaults.new_message(int32=4, text="x", numbers=[1])
    del message.int32
    message.clear("text")
    del message["numbers"]
    assert (message.int32, message.text, list(message.as_reader().numbers)) == (
        -123456789, "default", [1, -2, 3])
    assert not message.has("text")


# ---------------------------------------------------------------- enums


def test_enums_are_set_by_name_number_and_value(ours: Any) -> None:
    message = ours.Scalars.new_message()
    for value in ("lightGray", 3, ours.Color.lightGray, numpy.int64(3)):
        message.color = "red"
        message.color = value
        assert message.color == "lightGray" == str(message.color)
        assert message.color == 3 == int(message.color) == message.color.raw
        assert message.color == ours.Color.lightGray
    for wrong in ("purple", "LIGHTGRAY", ""):
        with pytest.raises(EncodeError, match="name of a value of enum Color"):
            message.color = wrong
    for wrong in (None, 1.5, [], b"red"):
        with pytest.raises(EncodeTypeError):
            message.color = wrong
    for number in (-1, 65536):
        with pytest.raises(EncodeError):
            message.color = number
    assert message.color == "lightGray"


def test_a_value_of_another_enum_is_refused(ours: Any) -> None:
    with pytest.raises(EncodeTypeError, match="a value of enum Color"):
        ours.Scalars.new_message(color=ours.Service.Mode.fast)


def test_unknown_enum_values_survive_and_are_read(ours: Any) -> None:
    message = ours.Scalars.new_message(color=777)
    reader = ours.Scalars.from_bytes(message.to_bytes())
    assert reader.color == 777
    assert (reader.color.name, str(reader.color)) == (None, "777")
    assert reader.to_dict()["color"] == 777
    assert "color = (777)" in str(reader)
    again = ours.Scalars.new_message(color=reader.color)
    assert again.as_reader() == reader
    assert ours.Scalars.new_message(**reader.to_dict()).as_reader() == reader


def test_enum_values_hash_as_their_names(ours: Any) -> None:
    table = {ours.Color.red: 1, ours.Color(9): 2}
    assert table["red"] == 1
    assert table[9] == 2
    assert list(ours.Color) == ["red", "green", "blue", "lightGray"]
    assert ours.Color("blue") is ours.Color.blue is ours.Color(2)
    assert ours.Color.red < ours.Color.blue
    assert ours.Color["green"] == 1
    with pytest.raises(ValueError, match="no value 'pink'"):
        ours.Color("pink")
    with pytest.raises(AttributeError):
        ours.Color.pink  # noqa: B018
    with pytest.raises(AttributeError):
        ours.Color.red = 5


# ---------------------------------------------------------------- defaults


def test_defaults_are_read_from_nothing(ours: Any, theirs: Any, framed: Any) -> None:
    empty = framed(0)
    reader = ours.Defaults.from_bytes(empty)
    with theirs.Defaults.from_bytes(empty) as other:
        for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                     "uint64", "float32", "float64", "text", "data"):
            assert reader[name] == getattr(other, name), name
            assert type(reader[name]) is type(getattr(other, name))
        assert reader.color == str(other.color) == "blue"
        assert (reader.point.x, reader.point.label) == (1, "origin")
        assert list(reader.numbers) == list(other.numbers) == [1, -2, 3]
        assert list(reader.texts) == list(other.texts) == ["a", "b"]
        assert reader.points.to_list() == [{"x": 5, "y": 0}, {"x": 0, "y": 0, "label": "p"}]
        assert math.isnan(reader.notANumber)
        assert repr(reader.to_dict()) == repr(other.to_dict())
        assert repr(reader.to_dict(verbose=True)) == repr(other.to_dict(verbose=True))


def test_defaults_are_xored_onto_what_is_stored(ours: Any, theirs: Any) -> None:
    values: dict[str, Any] = {
        "bool": False, "int8": -5, "int16": 0, "int32": 1, "int64": 0, "uint8": 0, "uint16": 54321,
        "uint32": 1, "uint64": 0, "float32": 0.0, "float64": -1e100, "color": "red",
        "notANumber": 0.0,
    }
    mine, other = ours.Defaults.new_message(**values), theirs.Defaults.new_message(**values)
    written = other.to_bytes()
    assert mine.to_bytes() == written
    assert ours.Defaults.from_bytes(written).to_dict() == values


def test_a_builder_makes_a_copy_of_a_default_to_change(ours: Any, theirs: Any) -> None:
    made = []
    for module in (ours, theirs):
        message = module.Defaults.new_message()
        message.point.y = 4
        message.numbers[1] = 9
        made.append(message.to_bytes())
    assert made[0] == made[1]
    reader = ours.Defaults.from_bytes(made[0])
    assert reader.point.to_dict() == {"x": 1, "y": 4, "label": "origin"}
    assert list(reader.numbers) == [1, 9, 3]
    # The default itself is as it was.
    assert ours.Defaults.new_message().as_reader().point.y == 0
