"""All codecs over real messages: what goes in comes out, and hostile bytes are refused."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest

capnwire = pytest.importorskip("capnwire", reason="the package is not built")
codecs = pytest.importorskip("capnwire.codecs")
hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")

SCHEMA = """@0xd8a2c1b49e6f0537;
struct Thing {
  void @0 :Void;
  flag @1 :Bool;
  small @2 :Int8;
  word @3 :UInt32;
  long @4 :Int64;
  ulong @5 :UInt64;
  half @6 :Float32;
  full @7 :Float64;
  text @8 :Text;
  data @9 :Data;
  color @10 :Color;
  inner @11 :Thing;
  bytes @12 :List(List(UInt8));
  things @13 :List(Thing);
  colors @14 :List(Color);
  any @15 :AnyPointer;
  place :group {
    x @16 :Int32;
    y @17 :Int32;
  }
  choice :union {
    none @18 :Void;
    number @19 :UInt16;
    word @20 :Text;
  }
  union {
    first @21 :Void;
    second @22 :Text;
    third @23 :Place;
  }
  boxed @24 :Box(Text);

  enum Color { red @0; green @1; }
  struct Place { name @0 :Text = "nowhere"; }
  struct Box(T) { value @0 :T; }
}
"""


@pytest.fixture(scope="module")
def thing(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("schema") / "thing.capnp"
    path.write_text(SCHEMA)
    return capnwire.load(str(path)).Thing


FULL = {
    "flag": True, "small": -128, "word": 2**32 - 1, "long": -(2**63), "ulong": 2**64 - 1,
    "half": 0.5, "full": 1e300, "text": 'é"\\\n\0x', "data": bytes(range(256)), "color": "green",
    "inner": {"text": "within", "second": "x"}, "bytes": [[], [1, 2], [255]],
    "things": [{"small": 1}, {"small": 2}], "colors": ["green", "red"],
    "place": {"x": -1, "y": 2}, "choice": {"word": "w"}, "third": {"name": "here"},
    "boxed": {"value": "in a box"},
}


@pytest.mark.parametrize("name", ["capnp", "packed", "json"])
def test_every_codec_gives_back_what_it_was_given(thing: Any, name: str) -> None:
    codec = codecs.get(name)
    builder = thing.new_message(**FULL)
    for value in ((thing, FULL), builder, builder.as_reader()):
        assert codec.decode(thing, codec.encode(value)).to_dict() == builder.to_dict()


@pytest.mark.parametrize("name", ["capnp", "packed", "json"])
def test_a_struct_within_a_message_is_encoded_alone(thing: Any, name: str) -> None:
    codec = codecs.get(name)
    inner = thing.new_message(**FULL).as_reader().inner
    assert codec.decode(thing, codec.encode(inner)).text == "within"


@pytest.mark.parametrize("name", ["capnp", "packed", "json"])
def test_what_is_no_struct_is_a_type_error(thing: Any, name: str) -> None:
    with pytest.raises(TypeError):
        codecs.get(name).encode({"text": "a dict without its type"})


def test_names_are_those_that_get_knows() -> None:
    assert set(codecs.names()) == {"capnp", "packed", "json"}
    assert [codecs.get(name).name for name in codecs.names()] == list(codecs.names())
    with pytest.raises(LookupError, match=r"'yaml'; there are capnp"):
        codecs.get("yaml")


def test_json_is_as_documented(thing: Any) -> None:
    tree = json.loads(codecs.get("json").encode((thing, FULL)))
    assert tree["ulong"] == str(2**64 - 1)
    assert tree["word"] == 2**32 - 1
    assert tree["data"].startswith("AAEC")
    assert tree["color"] == "green"
    assert tree["third"] == {"name": "here"}
    assert tree["choice"] == {"word": "w"}
    assert "first" not in tree
    assert "any" not in tree


def test_an_unknown_enum_value_survives(thing: Any) -> None:
    codec = codecs.get("json")
    built = thing.new_message()
    built.color = 77
    text = codec.encode(built)
    assert json.loads(text)["color"] == 77
    assert int(codec.decode(thing, text).color) == 77


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 0.0, -0.0, 5e-324])
def test_every_float_survives(thing: Any, value: float) -> None:
    codec = codecs.get("json")
    found = codec.decode(thing, codec.encode((thing, {"full": value, "half": value}))).full
    assert struct.pack("<d", found) == struct.pack("<d", value)


def test_what_json_cannot_hold_is_an_encode_error(thing: Any) -> None:
    built = thing.new_message()
    built.any = thing.new_message(text="hidden")
    with pytest.raises(capnwire.EncodeError, match=r"\$\.any: AnyPointer"):
        codecs.get("json").encode(built)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("capnp", b""), ("capnp", b"\xff" * 64), ("capnp", bytes(4)), ("packed", b""),
        ("packed", b"\xff"), ("json", b""), ("json", b"[]"), ("json", b'{"inner":{"inner":1}}'),
    ],
)
def test_hostile_bytes_are_a_decode_error(thing: Any, name: str, data: bytes) -> None:
    with pytest.raises(capnwire.DecodeError):
        codecs.get(name).decode(thing, data).to_dict()


def test_json_text_of_a_message_can_be_mutated_without_any_other_error(
    thing: Any, rng: Any
) -> None:
    codec = codecs.get("json")
    text = codec.encode((thing, FULL))
    alphabet = b'{}[],:"\\0123456789-.eEtrufalsn \xff\xed\xa0'
    for _ in range(400):
        mutant = bytearray(text)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(mutant))
            if rng.random() < 0.3:
                del mutant[at : at + rng.randrange(1, 20)]
            else:
                mutant[at:at] = bytes(rng.choices(alphabet, k=rng.randrange(1, 4)))
        try:
            found = codec.decode(thing, bytes(mutant))
        except capnwire.DecodeError:
            continue
        codec.encode(found)


texts = st.text(st.characters(codec="utf-8"), max_size=20)


@hypothesis.given(
    contents=st.recursive(
        st.fixed_dictionaries(
            {},
            optional={
                "flag": st.booleans(),
                "small": st.integers(-128, 127),
                "ulong": st.integers(0, 2**64 - 1),
                "long": st.integers(-(2**63), 2**63 - 1),
                "half": st.floats(width=32, allow_nan=False),
                "full": st.floats(allow_nan=False),
                "text": texts,
                "data": st.binary(max_size=40),
                "color": st.sampled_from(["red", "green"]),
                "bytes": st.lists(st.lists(st.integers(0, 255), max_size=3), max_size=3),
                "second": texts,
            },
        ),
        lambda inner: st.fixed_dictionaries(
            {}, optional={"inner": inner, "things": st.lists(inner, max_size=3)}
        ),
        max_leaves=6,
    )
)
def test_any_message_survives_json(thing: Any, contents: dict[str, Any]) -> None:
    built = thing.new_message(**contents)
    codec = codecs.get("json")
    assert codec.decode(thing, codec.encode(built)).to_dict() == built.to_dict()
