"""JSON as the reference tool writes and reads it: annotations, json.capnp's Value, odd strings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("click")

import capnwire.std
from capnwire.compiler.opened import OpenedSchema
from capnwire.errors import CapnwireError

sys.path.insert(0, str(Path(__file__).parent))
from test_convert import assert_same, converted, reference

STANDARD = [
    "--quiet", "--no-standard-import", f"-I{Path(next(iter(capnwire.std.__path__)))}",
]
PLAIN = (
    "struct S { name @0 :Text; d @1 :Data; l @2 :List(Text); s @3 :S; g :group { x @4 :Bool; } }"
)


@pytest.fixture
def compared(schema_file: Callable[..., Path], capnp_tool: str) -> Callable[..., None]:
    """Checks that a schema's struct S is read and written as the reference does it."""

    def compare(schema: str, text: bytes, source: str = "json") -> None:
        path = schema_file('using Json = import "/capnp/compat/json.capnp";\n' + schema)
        opened = OpenedSchema(path)
        for target, short in (("binary", False), ("text", False), ("json", False), ("json", True)):
            options = [*STANDARD, *(["--short"] if short else [])]
            code, wanted = reference(
                capnp_tool, "convert", *options, f"{source}:{target}", str(path), "S", input=text
            )
            try:
                ours = converted(opened, source, target, "S", text, short=short)
            except CapnwireError:
                assert code == 1, (schema, text, wanted)
            else:
                assert code == 0, (schema, text, ours)
                assert_same(ours, wanted, (target, text))

    return compare


@pytest.mark.parametrize(
    "value", [rb'"\ud800"', rb'"a\udc80\u00e9"', rb'"\u0000"', b'"\xff\xed\xa0\x80"', b'"\xc3\xa9"']
)
def test_odd_strings_become_the_references_bytes(
    compared: Callable[..., None], value: bytes
) -> None:
    compared(PLAIN, b'{"name":' + value + b',"l":[' + value + b"]}")


@pytest.mark.parametrize("name", ["name", "d", "l", "s", "g"])
def test_null_is_no_value(compared: Callable[..., None], name: str) -> None:
    compared(PLAIN, b'{"%s":null}' % name.encode())


@pytest.mark.parametrize("number", [b"-0", b"-0.0", b"0", b"-0e0"])
def test_a_zero_keeps_its_sign(compared: Callable[..., None], number: bytes) -> None:
    schema = "struct S { a @0 :Float32; b @1 :Float64; i @2 :Int8; u @3 :UInt64; v @4 :Json.Value;}"
    for name in (b"a", b"b", b"i", b"u", b"v"):
        compared(schema, b'{"%s":%s}' % (name, number))


T = " struct T { x @0 :Text; y @1 :Int8; }"
ANNOTATED = {
    "struct S { a @0 :Text $Json.flatten(); }": [b"{}"],
    "struct S { a @0 :Int32 $Json.base64; }": [b"{}"],
    "struct S { a @0 :Text $Json.hex; }": [b"{}"],
    'struct S { a @0 :S $Json.flatten(prefix = "x"); }': [b"{}"],
    "struct S { v @0 :Json.Value $Json.flatten(); }": [b"{}"],
    'struct S { a @0 :Text $Json.name("b"); b @1 :Text; }': [b"{}"],
    'struct S { a @0 :Text $Json.name(""); b @1 :Text; }': [b'{"":"x"}'],
    'struct S { a @0 :Text $Json.name("\\xff\\"x"); }': [b'{"\xff\\"x":"y"}', b'{"a":"y"}'],
    "struct S { union { a @0 :Void; b @1 :T $Json.flatten(); } }" + T: [
        b"{}", b'{"x":"t"}', b'{"b":{"x":"t"}}',
    ],
    "struct S $Json.discriminator() { union { a @0 :Void; b @1 :T $Json.flatten(); } }" + T: [
        b"{}", b'{"x":"t"}',
    ],
    'struct S $Json.discriminator(name = "k") '
    "{ union { a @0 :Void; b @1 :T $Json.flatten(); } }" + T: [
        b"{}", b'{"k":"b","x":"t","y":3}', b'{"x":"t","k":"b"}', b'{"k":"zz","x":"t"}', b'{"k":1}',
    ],
    "struct S { u :union $Json.flatten() { a @0 :Void; b @1 :T $Json.flatten(); } }" + T: [
        b"{}", b'{"a":null}', b'{"u":"b","x":"t"}',
    ],
    'struct S $Json.discriminator(name = "k") { union { a @0 :Void; b @1 :Text; } k @2 :Text; }':
        [b"{}"],
    'struct S $Json.discriminator(name = "k", valueName = "v") '
    "{ union { a @0 :Int8; b @1 :Text; } }": [
        b'{"k":"b","v":"t"}', b'{"k":"a","v":3}', b'{"k":"a","v":"t"}', b'{"v":"t"}',
    ],
    'struct S $Json.discriminator(valueName = "v") { union { a @0 :Int32; b @1 :Text; } }': [
        b"{}", b'{"v":3}',
    ],
    'struct S $Json.discriminator(name = "k") { x @0 :Text; }': [b'{"x":"t"}', b'{"k":"x"}'],
    'struct S { g :group $Json.flatten(prefix = "p") { a @0 :Text; b @1 :Text; } }': [
        b'{"pa":"1","pb":"2"}', b'{"a":"1"}',
    ],
    'struct S { g :group $Json.flatten(prefix = "p") { a @0 :Text; b @1 :Text; } pa @2 :Text; }':
        [b"{}"],
    "struct S { t @0 :T $Json.flatten(); v @1 :T $Json.flatten(); }" + T: [b"{}"],
    "struct S { l @0 :List(Data) $Json.base64; }": [b"{}"],
    "struct S { e @0 :E; l @1 :List(E); } "
    'enum E { a @0 $Json.name("A"); b @1; c @2 $Json.name("a"); }': [
        b'{"e":"A","l":["b","a","A",2,7]}', b'{"e":"c"}', b'{"e":"B"}',
    ],
    'struct S { e @0 :E; } enum E { a @0 $Json.name("A"); b @1 $Json.name("A"); }': [b'{"e":1}'],
    'struct S { d @0 :Data $Json.base64; h @1 :Data = "yy" $Json.hex; }': [
        b'{"d":"AAEC/w==","h":"00fF"}', b'{"d":"AAEC/w"}', b'{"d":"A A\\nEC"}', b'{"d":"","h":""}',
        b'{"d":[1]}', b'{"h":null}', b"{}",
    ],
}


@pytest.mark.parametrize("schema", ANNOTATED)
def test_annotations_mean_what_they_mean_to_the_reference(
    compared: Callable[..., None], schema: str
) -> None:
    for text in ANNOTATED[schema]:
        compared(schema, text)


VALUES = """
struct S { v @0 :Json.Value; w @1 :List(Json.Value); t @2 :Text; }
interface Listener { tell @0 (v :Json.Value) $Json.notification; }
"""
LONG = b"long " * 15
JSON_TEXTS = [
    b'{"v":1}', b'{"v":{"a":[1,2.5,"x",null,true,{}]},"w":[1,"a",{}]}', b'{"v":null}', b"{}",
    b'{"v":"1"}', b'{"v":{"null":null}}', b'{"w":[]}', b'{"v":1e400}', b'{"v":{"a":1,"a":2}}',
    b'{"v":12345678901234567890}', b'{"v":[[],{}]}', b'{"v":"\xff"}', b'{"w":[null],"v":false}',
    b'{"v":{"key":"' + LONG + b'","other":["' + LONG + b'",{"x":"' + LONG + b'","y":0}]}}',
]
VALUE_TEXTS = [
    b"(v = (number = 5))", b'(v = (call = (function = "f", params = [(number = 1)])))',
    b'(v = (raw = "xyz"), w = [(raw = "q"), ()])', b'(v = (string = "\\xff"))',
    b'(v = (object = [(name = "a", value = (null = void)), (name = "b")]))', b"(v = ())",
    b'(v = (call = (function = "f", params = [(number = 1), (string = "' + LONG + b'")])))',
    b"(v = (number = nan))", b"(v = (number = -inf))", b"(v = (number = 1e22))",
]


def test_json_values_stand_for_any_json(compared: Callable[..., None]) -> None:
    for text in JSON_TEXTS:
        compared(VALUES, text)
    for text in VALUE_TEXTS:
        compared(VALUES, text, "text")
