"""Shapes, made from hand-written tables: what each type is in JSON, and what it refuses."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import pytest

from capnwire.codecs import json as codec
from capnwire.codecs.json import Json, JsonError, parse
from capnwire.codecs.shapes import KeyCount, StructShape, Trouble, struct_shape
from capnwire.errors import DecodeError, EncodeError, LimitError


class Info:
    """A hand-made `StructInfo`: fields are (kind, sub, discriminant, offset)."""

    def __init__(self, name: str, **fields: tuple[int, Any, int | None]) -> None:
        self.name = name
        self.by_name = {key: i for i, key in enumerate(fields)}
        self.fields = fields

    def ensure(self) -> None:
        pass

    def field(self, name: str) -> tuple[int, Any, int | None, int]:
        return (*self.fields[name], 0)


def list_of(kind: str, info: Any = None) -> SimpleNamespace:
    return SimpleNamespace(element_kind=kind, element_info=info)


COLOR = SimpleNamespace(name="Color", values=[SimpleNamespace(name=x) for x in ("red", "green")])
INNER = Info("Inner", x=(2, None, None))
INNER.fields["next"] = (15, INNER, None)
INNER.by_name["next"] = 1
GROUP = Info("Group", left=(0, None, 0), right=(13, None, 1))
THING = Info(
    "Thing",
    void=(0, None, None), bool=(1, None, None), i8=(2, None, None), u32=(8, None, None),
    i64=(5, None, None), u64=(9, None, None), f32=(10, None, None), f64=(11, None, None),
    text=(13, None, None), data=(14, None, None), color=(12, COLOR, None),
    inner=(15, INNER, None), list=(16, list_of("list", list_of("uint8")), None),
    things=(16, list_of("struct", INNER), None), any=(18, None, None), cap=(17, None, None),
    group=(21, GROUP, None), one=(6, None, 0), two=(0, None, 1), three=(13, None, 2),
)


@pytest.fixture(scope="module")
def shape() -> StructShape:
    return struct_shape(THING)


ROUND_TRIPS = [
    pytest.param({"void": None}, {"void": None}, id="Void is null"),
    pytest.param({"bool": True}, {"bool": True}, id="Bool"),
    pytest.param({"i8": -128}, {"i8": -128}, id="smallest Int8"),
    pytest.param({"u32": 2**32 - 1}, {"u32": 2**32 - 1}, id="largest UInt32 is a number"),
    pytest.param({"i64": -(2**63)}, {"i64": str(-(2**63))}, id="Int64 is a string"),
    pytest.param({"u64": 2**64 - 1}, {"u64": str(2**64 - 1)}, id="UInt64 is a string"),
    pytest.param({"f64": 0.1}, {"f64": 0.1}, id="Float64"),
    pytest.param({"f64": math.inf}, {"f64": "Infinity"}, id="infinity"),
    pytest.param({"f32": -math.inf}, {"f32": "-Infinity"}, id="negative infinity"),
    pytest.param({"text": "x\0é𝄞"}, {"text": "x\0é𝄞"}, id="Text with NUL and beyond the BMP"),
    pytest.param({"data": b"\0\xff"}, {"data": "AP8="}, id="Data is base64"),
    pytest.param({"color": "green"}, {"color": "green"}, id="enum by name"),
    pytest.param({"color": 7}, {"color": 7}, id="unknown enum value by number"),
    pytest.param({"inner": {"x": 1, "next": {}}}, {"inner": {"x": 1, "next": {}}}, id="structs"),
    pytest.param({"list": [[1], [], [2, 3]]}, {"list": [[1], [], [2, 3]]}, id="lists of lists"),
    pytest.param({"group": {"left": None}}, {"group": {"left": None}}, id="union in a group"),
    pytest.param({"one": 5}, {"one": 5}, id="union member by name"),
    pytest.param({"two": None}, {"two": None}, id="Void union member"),
    pytest.param({"three": None}, {"three": None}, id="union member that is null"),
]


@pytest.mark.parametrize(("plain", "tree"), ROUND_TRIPS)
def test_values_become_json_and_come_back(
    shape: StructShape, plain: dict[str, Any], tree: dict[str, Any]
) -> None:
    assert shape.to_json(plain) == tree
    assert shape.from_json(json.loads(json.dumps(tree)), KeyCount(64)) == plain


def test_nan_is_a_string_and_comes_back(shape: StructShape) -> None:
    assert shape.to_json({"f64": math.nan}) == {"f64": "NaN"}
    assert math.isnan(shape.from_json({"f64": "NaN"}, KeyCount(64))["f64"])


def test_a_known_enum_number_is_written_as_its_name(shape: StructShape) -> None:
    assert shape.to_json({"color": 1}) == {"color": "green"}


def test_null_pointers_are_left_out_both_ways(shape: StructShape) -> None:
    assert shape.to_json({"text": None, "inner": None, "any": None, "cap": None}) == {}
    assert shape.from_json({"text": None, "things": None, "any": None}, KeyCount(64)) == {}


def test_integers_of_64_bits_are_also_read_from_numbers(shape: StructShape) -> None:
    assert shape.from_json({"i64": -5, "u64": 2**64 - 1}, KeyCount(64)) == {
        "i64": -5, "u64": 2**64 - 1,
    }


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        pytest.param([], "$", id="an array for a struct"),
        pytest.param(None, "$", id="null for a struct"),
        pytest.param({"nope": 1}, "$.nope", id="unknown key"),
        pytest.param({"void": 0}, "$.void", id="number for Void"),
        pytest.param({"bool": 1}, "$.bool", id="1 for true"),
        pytest.param({"bool": None}, "$.bool", id="null for Bool"),
        pytest.param({"i8": True}, "$.i8", id="true for 1"),
        pytest.param({"i8": 128}, "$.i8", id="one above Int8"),
        pytest.param({"i8": -129}, "$.i8", id="one below Int8"),
        pytest.param({"i8": 1.0}, "$.i8", id="a float for an integer"),
        pytest.param({"i8": "1"}, "$.i8", id="a string for a small integer"),
        pytest.param({"u32": -1}, "$.u32", id="negative for unsigned"),
        pytest.param({"u64": str(2**64)}, "$.u64", id="one above UInt64"),
        pytest.param({"i64": str(2**63)}, "$.i64", id="one above Int64"),
        pytest.param({"i64": ""}, "$.i64", id="empty string for Int64"),
        pytest.param({"i64": "-"}, "$.i64", id="a lone sign"),
        pytest.param({"i64": "+1"}, "$.i64", id="a plus sign"),
        pytest.param({"i64": " 1"}, "$.i64", id="a space before a number"),
        pytest.param({"i64": "1_0"}, "$.i64", id="an underscore in a number"),
        pytest.param({"i64": "٣"}, "$.i64", id="a digit that is not ASCII"),
        pytest.param({"i64": "0x10"}, "$.i64", id="hexadecimal"),
        pytest.param({"i64": "9" * 100_000}, "$.i64", id="100 000 digits"),
        pytest.param({"f64": "1.5"}, "$.f64", id="a string for a float"),
        pytest.param({"f64": "nan"}, "$.f64", id="nan in lower case"),
        pytest.param({"f64": 10**400}, "$.f64", id="an integer too large for a float"),
        pytest.param({"f64": math.inf}, "$.f64", id="a number that overflowed"),
        pytest.param({"f32": 1e39}, "$.f32", id="too large for Float32"),
        pytest.param({"f64": True}, "$.f64", id="true for a float"),
        pytest.param({"text": 1}, "$.text", id="number for Text"),
        pytest.param({"text": "\ud800"}, "$.text", id="lone surrogate"),
        pytest.param({"data": "AP8"}, "$.data", id="base64 without its padding"),
        pytest.param({"data": "AP 8="}, "$.data", id="a space in base64"),
        pytest.param({"data": "é"}, "$.data", id="base64 that is not ASCII"),
        pytest.param({"data": [0, 255]}, "$.data", id="an array for Data"),
        pytest.param({"color": "blue"}, "$.color", id="unknown enum name"),
        pytest.param({"color": 65536}, "$.color", id="enum number beyond 16 bits"),
        pytest.param({"color": -1}, "$.color", id="negative enum number"),
        pytest.param({"color": None}, "$.color", id="null for an enum"),
        pytest.param({"list": {}}, "$.list", id="an object for a list"),
        pytest.param({"list": [[1], [2, 256]]}, "$.list[1][1]", id="an element's path"),
        pytest.param({"things": [{"x": 1}, None]}, "$.things[1]", id="null in a list"),
        pytest.param({"things": [{"next": {"x": "a"}}]}, "$.things[0].next.x", id="a long path"),
        pytest.param({"any": {}}, "$.any", id="AnyPointer"),
        pytest.param({"cap": {}}, "$.cap", id="capability"),
        pytest.param({"one": 1, "two": None}, "$.two", id="two members of a union"),
        pytest.param({"three": None, "one": 1}, "$.one", id="two members, one null"),
        pytest.param({"group": {"left": None, "right": "x"}}, "$.group.right", id="in a group"),
    ],
)
def test_what_the_schema_does_not_allow_is_refused_with_its_path(
    shape: StructShape, tree: Any, path: str
) -> None:
    with pytest.raises(Trouble) as caught:
        shape.from_json(tree, KeyCount(64))
    assert caught.value.path == path
    assert len(str(caught.value)) < 250  # hostile values are not echoed at length


@pytest.mark.parametrize(
    ("plain", "wrong_type"),
    [
        pytest.param({"nope": 1}, False, id="unknown field"),
        pytest.param({"i8": 128}, False, id="out of range"),
        pytest.param({"i8": "1"}, True, id="str for an integer"),
        pytest.param({"bool": 1}, True, id="int for a Bool"),
        pytest.param({"text": b"x"}, True, id="bytes for Text"),
        pytest.param({"text": "\udc80"}, False, id="lone surrogate"),
        pytest.param({"data": "x"}, True, id="str for Data"),
        pytest.param({"color": "blue"}, False, id="unknown enum name"),
        pytest.param({"list": 5}, True, id="int for a List"),
        pytest.param({"inner": []}, True, id="list for a struct"),
        pytest.param({"any": object()}, True, id="AnyPointer"),
        pytest.param({"one": 1, "two": None}, False, id="two members of a union"),
    ],
)
def test_what_a_message_cannot_hold_is_not_written(
    shape: StructShape, plain: Any, wrong_type: bool
) -> None:
    with pytest.raises(Trouble) as caught:
        shape.to_json(plain)
    assert caught.value.wrong_type is wrong_type


def test_nesting_is_bounded_while_decoding(shape: StructShape) -> None:
    tree: dict[str, Any] = {}
    for _ in range(62):
        tree = {"next": tree}
    assert shape.from_json({"inner": tree}, KeyCount(64))
    with pytest.raises(LimitError, match="nesting of JSON is 64"):
        shape.from_json({"inner": {"next": tree}}, KeyCount(64))


class FakeMessage:
    """Stands for a reader: gives back the dict it was made from."""

    def __init__(self, **contents: Any) -> None:
        self.contents = contents

    def as_reader(self) -> FakeMessage:
        return self

    def to_dict(self) -> dict[str, Any]:
        return self.contents


@pytest.fixture
def kind(shape: StructShape, monkeypatch: pytest.MonkeyPatch) -> type:
    class Thing(FakeMessage):
        @classmethod
        def new_message(cls, **contents: Any) -> Any:
            return cls(**contents)

    monkeypatch.setattr(codec, "shape_of", lambda kind: shape)
    return Thing


@pytest.fixture(params=[False, True], ids=["json", "orjson"])
def text(request: pytest.FixtureRequest) -> Json:
    if request.param:
        pytest.importorskip("orjson")
    return Json(use_orjson=request.param)


@pytest.mark.parametrize(("plain", "tree"), ROUND_TRIPS)
def test_both_parsers_agree(text: Json, kind: Any, plain: Any, tree: Any) -> None:
    data = text.encode((kind, plain))
    assert json.loads(data) == tree
    assert text.decode(kind, data).to_dict() == plain


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(b"", "malformed", id="nothing"),
        pytest.param(b"{", "malformed", id="cut off"),
        pytest.param(b"{} {}", "malformed", id="two values"),
        pytest.param(b"{'i8':1}", "malformed", id="single quotes"),
        pytest.param(b'{"i8":1,}', "malformed", id="trailing comma"),
        pytest.param(b'{"i8":01}', "malformed", id="leading zero"),
        pytest.param(b'{"text":"\t"}', "malformed", id="raw control character"),
        pytest.param(b"\xef\xbb\xbf{}", "malformed", id="byte order mark"),
        pytest.param(b'{"text":"\xff"}', "UTF-8", id="not UTF-8"),
        pytest.param(b'{"text":"\xed\xa0\x80"}', "UTF-8", id="surrogate encoded as UTF-8"),
        pytest.param(b'{"text":"\\ud800"}', "surrogate", id="escaped lone surrogate"),
        pytest.param(b'{"i8":1,"i8":2}', "twice", id="duplicate key"),
        pytest.param(b'{"i8":1,"i\\u0038":2}', "twice", id="duplicate key, one escaped"),
        pytest.param(b'{"i8" : 1, "i8" : 2}', "twice", id="duplicate key, spaced"),
        pytest.param(b'{"inner":{"x":1,"x":1}}', "twice", id="duplicate key within"),
        pytest.param(b'{"f64":NaN}', "NaN", id="NaN literal"),
        pytest.param(b'{"f64":-Infinity}', "Infinity", id="Infinity literal"),
        pytest.param(b'{"f64":1e999}', "out of range|malformed", id="a float that overflows"),
        pytest.param(b'{"f64":' + b"9" * 5000 + b"}", "5000 digits", id="5000 digits"),
        pytest.param(b'{"u64":18446744073709551616}', "UInt64", id="a number above UInt64"),
        pytest.param(b"[" * 100_000, "nested|malformed", id="100 000 open arrays"),
        pytest.param(b'{"inner":' * 3000 + b"{}" + b"}" * 3000, "nest|no such field", id="deep"),
    ],
)
def test_hostile_text_is_refused(text: Json, kind: Any, data: bytes, found: str) -> None:
    with pytest.raises(DecodeError, match=found):
        text.decode(kind, data)


def test_the_error_has_the_path(text: Json, kind: Any) -> None:
    with pytest.raises(JsonError, match=r"^\$\.things\[1\]\.x: 300 is out of range for Int8") as e:
        text.decode(kind, b'{"things":[{"x":1},{"x":300}]}')
    assert e.value.path == "$.things[1].x"


def test_quotes_and_colons_in_text_do_not_confuse_the_search_for_duplicates(
    text: Json, kind: Any
) -> None:
    plain = {"text": 'a":"b\\', "things": [{"x": 1}, {"x": 2}]}
    assert text.decode(kind, text.encode((kind, plain))).to_dict() == plain
    spaced = b'{ "text" : "a:b" , "i8" :\n1 }'
    assert text.decode(kind, spaced).to_dict() == {"text": "a:b", "i8": 1}


def test_only_bytes_are_decoded(text: Json, kind: Any) -> None:
    assert text.decode(kind, bytearray(b"{}")).to_dict() == {}
    assert text.decode(kind, memoryview(b"{}")).to_dict() == {}
    with pytest.raises(TypeError, match="not str"):
        text.decode(kind, "{}")  # type: ignore[arg-type]


def test_an_encoding_error_names_the_path(text: Json, kind: Any) -> None:
    with pytest.raises(EncodeError, match=r"\$\.list\[0\]\[1\]: 256 is out of range for UInt8"):
        text.encode((kind, {"list": [[1, 256]]}))


def test_parse_accepts_what_json_allows() -> None:
    assert parse(b' [1, "x", null, {"a": -1.5e3}] ') == [1, "x", None, {"a": -1500.0}]
