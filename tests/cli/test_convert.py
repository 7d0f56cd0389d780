"""`convert` agrees with the reference tool, byte for byte, between every pair of formats."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("click")

from capnwire.cli.formats import FORMATS, Codec
from capnwire.compiler.opened import OpenedSchema
from capnwire.errors import CapnwireError, CompileError

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "compiler"))
from random_messages import PLAIN_TEXTS, MessageMaker  # noqa: E402
from random_schemas import make_schema  # noqa: E402

SCHEMA = """
using Json = import "/capnp/compat/json.capnp";
struct Person {
  name @0 :Text;
  age @1 :UInt8;
  tags @2 :List(Text);
  color @3 :Color;
  union {
    none @4 :Void; nick @5 :Text; boss @17 :Person; inside :group { p @18 :Int8; q @19 :Text; }
  }
  g :group { x @6 :Int32; y @7 :Text; }
  any @8 :AnyPointer;
  cap @9 :Service;
  data @10 :Data;
  single @11 :Float32;
  friend @12 :Person;
  others @13 :List(Person);
  un :union { u1 @14 :Void; u2 @15 :Person; }
  preset @16 :Text = "preset";
  wide @20 :Int64 = -7;
  flags @21 :List(Bool);
  matrix @22 :List(List(Float64));
  voids @23 :List(Void);
  colors @24 :List(Color);
  blobs @25 :List(Data);
  box @26 :Box(Text, Person);
  double @27 :Float64 = 2.5;
}
enum Color { red @0; green @1; }
interface Service { call @0 (); }
struct Box(T, U) { t @0 :T; u @1 :U; struct Inner { q @0 :T; } }
struct Empty {}
struct Shaped {
  a @0 :Text $Json.name("alpha");
  l @1 :List(List(Text));
  s @2 :List(Shaped);
  m @3 :Data $Json.base64;
  h @4 :Data $Json.hex;
  n @5 :Text;
  f @6 :Flat $Json.flatten(prefix = "pre_");
  un :union $Json.flatten() $Json.discriminator() {
    x @7 :Int32; y @8 :Void; z @9 :Text $Json.name("zed");
    fl @11 :Flat $Json.flatten(prefix = "u_");
  }
  e @10 :Named;
  tagged @12 :Tagged;
  valued :union $Json.flatten() $Json.discriminator(name = "kind", valueName = "content") {
    one @13 :Text; two @14 :Int32; three @15 :Void;
  }
}
struct Twice {
  a @0 :Choice $Json.flatten(prefix = "a_");
  b @1 :Choice $Json.flatten(prefix = "b_");
}
struct Choice $Json.discriminator(name = "kind") {
  union { p @0 :Flat $Json.flatten(); q @1 :Flat $Json.flatten(prefix = "x"); r @2 :Void; }
}
enum Named { one @0 $Json.name("uno"); two @1; }
struct Flat { p @0 :Text; q @1 :Int64; }
struct Tagged $Json.discriminator(name = "type") { union { v @0 :Void; w @1 :Text; } z @2 :UInt16; }
"""


def reference(tool: str, *arguments: str, input: bytes) -> tuple[int, bytes]:
    done = subprocess.run([tool, *arguments], input=input, capture_output=True, check=False)
    return done.returncode, done.stdout


class _Pieces(io.BytesIO):
    """A file that gives its bytes in small pieces, from the first read on."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(997)


def assert_same(ours: bytes, wanted: bytes, about: object) -> None:
    """Without pytest's comparison, which takes minutes for long bytes."""
    if ours != wanted:
        at = next((i for i, pair in enumerate(zip(ours, wanted,
            strict=False)) if pair[0] != pair[1]), -1)
        pytest.fail(
            f"{about}: differs at byte {at}: {ours[max(0, at - 60) : at + 60]!r} "
            f"for {wanted[max(0, at - 60) : at + 60]!r}", pytrace=False,
        )


def converted(opened: OpenedSchema, source: str, target: str, type: str, data: bytes,
    **options: Any) -> bytes:
    codec = Codec(source, target, opened.struct(type), **options)
    first = data[:10]
    return b"".join(codec.convert(first, _Pieces(data[10:])))


@pytest.fixture
def zoo(schema_file: Callable[..., Path]) -> tuple[Path, OpenedSchema]:
    path = schema_file(SCHEMA)
    return path, OpenedSchema(path)


@pytest.mark.parametrize("type", ["Person", "Shaped", "Empty", "Tagged", "Twice"])
@pytest.mark.parametrize("short", [False, True])
def test_every_pair_of_formats_agrees(
    zoo: tuple[Path, OpenedSchema], capnp_tool: str, rng: random.Random, type: str, short: bool,
) -> None:
    path, opened = zoo
    maker = MessageMaker(opened.registry, rng)
    key = opened.struct(type)._info.scope[1]  # type: ignore[attr-defined]
    options = ["--quiet", *(["--short"] if short else [])]
    for _ in range(2):
        text = maker.struct(key).encode()
        for source in FORMATS:
            code, given = reference(
                capnp_tool, "convert", *options, f"text:{source}", str(path), type, input=text,
            )
            assert code == 0, text
            ours = converted(opened, "text", source, type, text, short=short)
            assert_same(ours, given, (source, text))
            for target in FORMATS:
                code, wanted = reference(
                    capnp_tool, "convert", *options, f"{source}:{target}", str(path), type,
                    input=given,
                )
                assert code == 0, (source, target, text)
                ours = converted(opened, source, target, type, given, short=short)
                assert_same(ours, wanted, (source, target, text))


def test_streams_of_random_messages_agree(
    zoo: tuple[Path, OpenedSchema], capnp_tool: str, rng: random.Random,
) -> None:
    path, opened = zoo
    maker = MessageMaker(opened.registry, rng, PLAIN_TEXTS)
    key = opened.struct("Person")._info.scope[1]  # type: ignore[attr-defined]
    text = "\n".join(maker.struct(key) for _ in range(15)).encode()
    for target in ("binary", "packed", "text", "json"):
        wanted = reference(
            capnp_tool, "convert", "--quiet", f"text:{target}", str(path), "Person", input=text,
        )
        assert wanted[0] == 0
        assert_same(converted(opened, "text", target, "Person", text), wanted[1], target)
        for again in ("binary", "packed", "text", "json"):
            code, expected = reference(
                capnp_tool, "convert", "--quiet", f"{target}:{again}", str(path), "Person",
                input=wanted[1],
            )
            assert code == 0
            ours = converted(opened, target, again, "Person", wanted[1])
            assert_same(ours, expected, (target, again))


@pytest.mark.parametrize("type", ["Box(Text, Person)", "Box(Text, Person).Inner",
    "Box(List(Text), Data)"])
def test_generic_types_agree(
    zoo: tuple[Path, OpenedSchema], capnp_tool: str, rng: random.Random, type: str,
) -> None:
    path, opened = zoo
    maker = MessageMaker(opened.registry, rng)
    text = maker.struct(opened.struct(type)._info.scope[1]).encode()  # type: ignore[attr-defined]
    for target in FORMATS:
        wanted = reference(
            capnp_tool, "convert", "--quiet", f"text:{target}", str(path), type, input=text
        )
        assert wanted[0] == 0
        assert_same(converted(opened, "text", target, type, text), wanted[1], text)


@pytest.mark.parametrize("words", [1, 3, 16, 100])
def test_segment_sizes_agree(
    zoo: tuple[Path, OpenedSchema], capnp_tool: str, rng: random.Random, words: int,
) -> None:
    path, opened = zoo
    maker = MessageMaker(opened.registry, rng, PLAIN_TEXTS)
    key = opened.struct("Person")._info.scope[1]  # type: ignore[attr-defined]
    text = "".join(maker.struct(key) for _ in range(5)).encode()
    for target in ("binary", "packed"):
        wanted = reference(
            capnp_tool, "convert", "--quiet", f"--segment-size={words}", f"text:{target}",
            str(path),
            "Person", input=text,
        )
        assert wanted[0] == 0
        ours = converted(opened, "text", target, "Person", text, segment_words=words)
        assert_same(ours, wanted[1], text)


def test_random_schemas_agree(
    schema_file: Callable[..., Path], capnp_tool: str, rng: random.Random,
) -> None:
    compared = 0
    for _ in range(25):
        path = schema_file(make_schema(rng.random()), f"s{compared}.capnp")
        try:
            opened = OpenedSchema(path)
        except CompileError:
            continue
        names = [
            node.display_name.rpartition(":")[2] for node in opened.registry.nodes.values()
            if "$" not in node.display_name and hasattr(node.body, "fields")
            and not node.body.is_group and not node.is_generic and path.name in node.display_name
        ]
        maker = MessageMaker(opened.registry, rng)
        for name in rng.sample(names, min(4, len(names))):
            key = opened.struct(name)._info.scope[1]  # type: ignore[attr-defined]
            text = maker.struct(key).encode()
            for target in ("binary", "text", "canonical"):
                wanted = reference(
                    capnp_tool, "convert", "--quiet", f"text:{target}", str(path), name, input=text
                )
                if wanted[0]:
                    with pytest.raises(CapnwireError):
                        converted(opened, "text", target, name, text)
                    continue
                assert_same(converted(opened, "text", target, name, text), wanted[1], (path, name))
                compared += 1
    assert compared > 20


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([0], id="null"),
        pytest.param([0xFFFFFFFC], id="an empty struct"),
        pytest.param([1 << 32, 5], id="shorter than the type"),
        pytest.param([(9 << 32) | (1 << 48), 1, 2, 3, 4, 5, 6, 7, 8, 9, 0], id="longer"),
        pytest.param([2 | (1 << 3), 0, 1 << 32, 7], id="a gap and a far pointer"),
    ],
)
def test_unusual_roots_are_copied_as_the_reference_does(
    zoo: tuple[Path, OpenedSchema], capnp_tool: str, words: list[int],
) -> None:
    path, opened = zoo
    body = b"".join(word.to_bytes(8, "little") for word in words)
    data = b"\0\0\0\0" + len(words).to_bytes(4, "little") + body
    for target in FORMATS:
        wanted = reference(
            capnp_tool, "convert", "--quiet", f"binary:{target}", str(path), "Person", input=data
        )
        try:
            ours = 0, converted(opened, "binary", target, "Person", data)
        except CapnwireError:
            ours = 1, b""
        assert ours[0] == wanted[0], (target, wanted)
        if not ours[0]:
            assert_same(ours[1], wanted[1], target)
        if target not in ("text", "json") and not ours[0]:
            plain = b"".join(Codec("binary", target, None).convert(data, io.BytesIO()))
            assert_same(plain, wanted[1], target)


def shuffled(value: object, rng: random.Random) -> object:
    """The same JSON with the members of its objects in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        rng.shuffle(items)
        return {name: shuffled(item, rng) for name, item in items}
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("type", ["Person", "Shaped", "Tagged", "Twice"])
def test_json_in_any_order_is_read_as_the_reference_does(
    zoo: tuple[Path, OpenedSchema], capnp_tool: str, rng: random.Random, type: str,
) -> None:
    path, opened = zoo
    maker = MessageMaker(opened.registry, rng, PLAIN_TEXTS)
    key = opened.struct(type)._info.scope[1]  # type: ignore[attr-defined]
    for _ in range(15):
        text = maker.struct(key).encode()
        data = converted(opened, "text", "json", type, text)
        mixed = json.dumps(shuffled(json.loads(data), rng), ensure_ascii=False).encode()
        assert converted(opened, "json", "json", type, mixed) == data
        if type != "Person":
            continue  # the reference forgets a member when its tag comes after it
        code, wanted = reference(
            capnp_tool, "convert", "--quiet", "json:binary", str(path), type, input=mixed
        )
        assert code == 0, mixed
        assert_same(converted(opened, "json", "binary", type, mixed), wanted, mixed)


NOT_UTF8 = (
    rb'(name = "\xff\xfe", tags = ["\x80", "\xc3\xa9", "\xed\xa0\x80"], '
    rb'friend = (name = "a\xffb"), others = [(name = "\xe2\x82")], '
    rb'box = (t = "\xf0\x9f"), preset = "' + b"x\xff" * 60 + b'")'
)


@pytest.mark.parametrize("short", [False, True])
def test_bytes_that_are_not_utf8_are_carried_on(
    zoo: tuple[Path, OpenedSchema], capnp_tool: str, short: bool
) -> None:
    path, opened = zoo
    options = ["--quiet", *(["--short"] if short else [])]
    for source in FORMATS:
        code, given = reference(
            capnp_tool, "convert", *options, f"text:{source}", str(path), "Person", input=NOT_UTF8,
        )
        assert code == 0
        for target in FORMATS:
            _, wanted = reference(
                capnp_tool, "convert", *options, f"{source}:{target}", str(path), "Person",
                input=given,
            )
            ours = converted(opened, source, target, "Person", given, short=short)
            assert_same(ours, wanted, (source, target))
