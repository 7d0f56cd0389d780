"""Messages written under one version of a schema and read under another, in both directions.

Every change that the language allows, by hand and at random; pycapnp reads and writes the same.
Changes that it does not allow are seen as such.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import capnwire
from capnwire.compiler.driver import compile_text
from capnwire.schema.compat import compare_schemas
from tests.evolution.versions import Version, flat

HEAD = "@0xb0b0b0b0b0b0b0b0;\n"
ID = "@0xb0b0b0b0b0b0b0b1"
Load = Callable[[str], list[Any]]


@pytest.fixture
def load(pycapnp: ModuleType, tmp_path: Path) -> Load:
    """The struct `S` of a schema, of capnwire and of pycapnp."""
    parsers = []  # a parser's modules must not outlive it

    def both(text: str) -> list[Any]:
        parsers.append(pycapnp.SchemaParser())
        path = tmp_path / f"version{len(parsers)}.capnp"
        path.write_text(text)
        return [capnwire.load(path).S, parsers[-1].load(str(path)).S]

    return both


def plain(value: Any) -> Any:
    """A message's dict as plain Python values, null and empty pointers left out."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if item not in ("", b"", [])}
    return [plain(item) for item in value] if isinstance(value, list) else value


def check(load: Load, old: str, new: str, examples: list[tuple[str, Any, Any]]) -> None:
    """Each writer's message gives each reader what is expected.

    `examples` are (version that writes, message, what the other version reads of it).
    """
    versions = {"old": load(HEAD + old), "new": load(HEAD + new)}
    for writer, message, expected in examples:
        reader = "new" if writer == "old" else "old"
        for write in versions[writer]:
            data = write.new_message(**message).to_bytes()
            for read in versions[reader]:
                with read.from_bytes(data) as opened:
                    assert plain(opened.to_dict()) == plain(expected)


def breaking(old: str, new: str) -> list[str]:
    nodes = [compile_text(HEAD + text, ignore_issue_344=True).nodes for text in (old, new)]
    return [change.text for change in compare_schemas(*nodes) if change.breaks]


def lists_of(element: str) -> list[tuple[str, Any, Any]]:
    values = {"Text": ["a", ""], "Data": [b"a", b""], "List(Int8)": [[1, -1], []],
              "Float32": [1.5, -2.0], "E": ["b", "a"], "Inner": [{"x": 3}, {"x": 0}]}
    items = values.get(element, [1, 0, 3])
    wrapped = [{"v": item, "more": 9, "name": ""} for item in items]
    return [
        ("old", {"l": items}, {"l": wrapped}),
        ("new", {"l": [{**item, "name": "n"} for item in wrapped]}, {"l": items}),
        ("new", {"l": []}, {"l": []}),
    ]


LEGAL: dict[str, tuple[str, str, list[tuple[str, Any, Any]]]] = {
    "a field is added": (
        "struct S { a @0 :Int32; t @1 :Text; }",
        "struct S { a @0 :Int32; t @1 :Text; b @2 :Int16 = 7; l @3 :List(Text); }",
        [
            ("old", {"a": 5, "t": "x"}, {"a": 5, "t": "x", "b": 7, "l": []}),
            ("new", {"a": 5, "t": "x", "b": 1, "l": ["y"]}, {"a": 5, "t": "x"}),
            ("new", {}, {"a": 0, "t": ""}),
        ],
    ),
    "the first field is added to an empty struct": (
        "struct S {}", "struct S { a @0 :Int32 = 3; t @1 :Text; }",
        [("old", {}, {"a": 3, "t": ""}), ("new", {"a": 1, "t": "x"}, {})],
    ),
    "fields move into a group": (
        "struct S { a @0 :Int32; t @1 :Text; b @2 :Bool; }",
        "struct S { g :group { a @0 :Int32; t @1 :Text; c @3 :Int8; } b @2 :Bool; }",
        [
            ("old", {"a": 5, "t": "x", "b": True}, {"g": {"a": 5, "t": "x", "c": 0}, "b": True}),
            ("new", {"g": {"a": 5, "t": "x", "c": 1}, "b": True}, {"a": 5, "t": "x", "b": True}),
        ],
    ),
    "a field becomes a member of a new unnamed union": (
        "struct S { a @0 :Int32; b @1 :Int32; }",
        "struct S { union { a @0 :Int32; t @2 :Text; v @3 :Void; } b @1 :Int32; }",
        [
            ("old", {"a": 5, "b": 6}, {"a": 5, "b": 6}),
            ("new", {"a": 5, "b": 6}, {"a": 5, "b": 6}),
            ("new", {"t": "x", "b": 6}, {"a": 0, "b": 6}),
        ],
    ),
    "a field becomes a member of a new named union": (
        "struct S { a @0 :Text; b @1 :Int32; }",
        "struct S { u :union { a @0 :Text; c @2 :UInt64; } b @1 :Int32; }",
        [
            ("old", {"a": "x", "b": 6}, {"u": {"a": "x"}, "b": 6}),
            ("new", {"u": {"a": "x"}, "b": 6}, {"a": "x", "b": 6}),
            ("new", {"u": {"c": 1}, "b": 6}, {"a": "", "b": 6}),
        ],
    ),
    "a member of a union becomes a group": (
        "struct S { union { a @0 :Int8; b @1 :Text; } }",
        "struct S { union { a @0 :Int8; g :group { b @1 :Text; c @2 :Int32; } } }",
        [
            ("old", {"a": 5}, {"a": 5}),
            ("old", {"b": "x"}, {"g": {"b": "x", "c": 0}}),
            ("new", {"g": {"b": "x", "c": 3}}, {"b": "x"}),
        ],
    ),
    "a union gets a member": (
        "struct S { union { a @0 :Int8; b @1 :Text; } c @2 :Int8; }",
        "struct S { union { a @0 :Int8; b @1 :Text; d @3 :Int64; } c @2 :Int8; }",
        [
            ("old", {"b": "x", "c": 1}, {"b": "x", "c": 1}),
            ("new", {"b": "x", "c": 1}, {"b": "x", "c": 1}),
        ],
    ),
    "the text has another order": (
        "struct S { a @0 :Int8; b @1 :Int64; union { c @2 :Text; d @3 :Void; } e @4 :Int8; }",
        "struct S { e @4 :Int8; union { d @3 :Void; c @2 :Text; } b @1 :Int64; a @0 :Int8; }",
        [
            (way, {"a": 1, "b": 2, "c": "x", "e": 3}, {"a": 1, "b": 2, "c": "x", "e": 3})
            for way in ("old", "new")
        ],
    ),
    "names change": (
        (f"struct S {{ a @0 :In; u :union {{ b @1 :E; c @2 :Void; }} }}"
            f" struct In {ID} {{ x @0 :Int8; }}"
        f" enum E {ID[:-1]}2 {{ p @0; q @1; }}"),
        (f"struct S {{ one @0 :Inner; or :union {{ two @1 :Kind; c @2 :Void; }} }}"
        f" struct Inner {ID} {{ ex @0 :Int8; }} enum Kind {ID[:-1]}2 {{ pe @0; qu @1; }}"),
        [
            ("old", {"a": {"x": 1}, "u": {"b": "q"}}, {"one": {"ex": 1}, "or": {"two": "qu"}}),
            ("new", {"one": {"ex": 1}, "or": {"two": "qu"}}, {"a": {"x": 1}, "u": {"b": "q"}}),
        ],
    ),
    "a type moves to another scope": (
        f"struct S {{ a @0 :In; struct In {ID} {{ x @0 :Int8; }} }}",
        f"struct S {{ a @0 :Out.In; }} struct Out {{ struct In {ID} {{ x @0 :Int8; }} }}",
        [("old", {"a": {"x": 1}}, {"a": {"x": 1}}), ("new", {"a": {"x": 1}}, {"a": {"x": 1}})],
    ),
    "enumerants are added": (
        "struct S { e @0 :E; l @1 :List(E); } enum E { a @0; b @1; }",
        "struct S { e @0 :E; l @1 :List(E); } enum E { c @2; a @0; b @1; }",
        [
            ("old", {"e": "b", "l": ["b", "a"]}, {"e": "b", "l": ["b", "a"]}),
            ("new", {"e": "b", "l": ["b"]}, {"e": "b", "l": ["b"]}),
        ],
    ),
    "a struct behind pointers grows": (
        "struct S { p @0 :In; l @1 :List(In); } struct In { x @0 :UInt8; }",
        ("struct S { p @0 :In; l @1 :List(In); }"
        " struct In { x @0 :UInt8; y @1 :UInt64 = 9; t @2 :Text; }"),
        [
            (
                "old", {"p": {"x": 1}, "l": [{"x": 2}, {"x": 3}]},
                {
                    "p": {"x": 1, "y": 9, "t": ""},
                    "l": [{"x": 2, "y": 9, "t": ""}, {"x": 3, "y": 9, "t": ""}],
                },
            ),
            (
                "new", {"p": {"x": 1, "t": "x"}, "l": [{"x": 2, "y": 1}, {"x": 3, "t": "z"}]},
                {"p": {"x": 1}, "l": [{"x": 2}, {"x": 3}]},
            ),
        ],
    ),
    "a struct becomes generic": (
        "struct S { b @0 :Box; } struct Box { a @0 :Text; n @1 :Int8; }",
        "struct S { b @0 :Box(Text); } struct Box(T) { a @0 :T; n @1 :Int8; }",
        [
            ("old", {"b": {"a": "x", "n": 1}}, {"b": {"a": "x", "n": 1}}),
            ("new", {"b": {"n": 1}}, {"b": {"a": "", "n": 1}}),
        ],
    ),
    "constants change": (
        "struct S { a @0 :Int8 = 3; } const k :Int8 = 1;",
        "struct S { a @0 :Int8 = 3; } const k :Text = \"x\"; const other :S = (a = 5);",
        [("old", {"a": 1}, {"a": 1}), ("new", {}, {"a": 3})],
    ),
    **{
        f"a list of {element} becomes one of structs": (
            (f"struct S {{ l @0 :List({element}); }} enum E {{ a @0; b @1; }}"
            " struct Inner { x @0 :Int8; }"),
            ("struct S { l @0 :List(In); } enum E { a @0; b @1; } struct Inner { x @0 :Int8; }"
            f" struct In {{ v @0 :{element}; more @1 :Int32 = 9; name @2 :Text; }}"),
            lists_of(element),
        )
        for element in (
            "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32",
            "E", "Text", "Data", "List(Int8)",
        )
    },
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_change_keeps_messages_in_both_directions(load: Load, name: str) -> None:
    old, new, examples = LEGAL[name]
    check(load, old, new, examples)


UNJUDGED = ("a struct becomes generic", "constants change")


@pytest.mark.parametrize("name", [name for name in LEGAL if name not in UNJUDGED])
def test_legal_change_is_seen_as_legal(name: str) -> None:
    old, new, _ = LEGAL[name]
    assert breaking(old, new) == []


ILLEGAL = {
    "a field changes its size": ("struct S { a @0 :Int32; }", "struct S { a @0 :Int64; }"),
    "a field becomes a pointer": ("struct S { a @0 :Int32; }", "struct S { a @0 :Text; }"),
    "a default changes": ("struct S { a @0 :Int32 = 1; }", "struct S { a @0 :Int32 = 2; }"),
    "ordinals are exchanged": (
        "struct S { a @0 :Int32; b @1 :Int32; c @2 :Text; }",
        "struct S { a @0 :Int32; b @2 :Int32; c @1 :Text; }",
    ),
    "a field is taken out and its number used again": (
        "struct S { a @0 :Int32; b @1 :Int64; c @2 :Int8; }",
        "struct S { a @0 :Int32; c @1 :Int8; }",
    ),
    "old fields move into one union": (
        "struct S { a @0 :Int32; b @1 :Int32; }",
        "struct S { union { a @0 :Int32; b @1 :Int32; } }",
    ),
    "a union's members change their numbers": (
        "struct S { union { a @0 :Int32; b @1 :Text; } }",
        "struct S { union { b @0 :Text; a @1 :Int32; } }",
    ),
    "a union becomes plain fields": (
        "struct S { union { a @0 :Int32; b @1 :Int32; } }",
        "struct S { a @0 :Int32; b @1 :Int32; }",
    ),
    "a list of Bool becomes one of structs": (
        "struct S { l @0 :List(Bool); }", "struct S { l @0 :List(In); } struct In { v @0 :Bool; }",
    ),
    "a list's elements change": (
        "struct S { l @0 :List(Int8); }", "struct S { l @0 :List(Int16); }",
    ),
    "a list of structs gets another first field": (
        "struct S { l @0 :List(Int8); }", "struct S { l @0 :List(In); } struct In { v @0 :Int32; }",
    ),
    "text becomes a struct": (
        "struct S { p @0 :Text; }", "struct S { p @0 :In; } struct In { v @0 :Int8; }",
    ),
    "enumerants change their numbers": (
        "struct S { e @0 :E; } enum E { a @0; b @1; }",
        "struct S { e @0 :E; } enum E { b @0; a @1; }",
    ),
    "methods change their numbers": (
        "interface I { a @0 (x :Int8); b @1 (y :Text); } struct S {}",
        "interface I { b @0 (y :Text); a @1 (x :Int8); } struct S {}",
    ),
    "a parameter changes its type": (
        "interface I { a @0 (x :Int8); } struct S {}",
        "interface I { a @0 (x :Int64); } struct S {}",
    ),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal_change_is_seen_as_such(name: str) -> None:
    assert breaking(*ILLEGAL[name])


def test_enumerant_that_is_new_is_a_number_to_an_old_reader(load: Load) -> None:
    old, their_old = load(HEAD + "struct S { e @0 :E; l @1 :List(E); } enum E { a @0; }")
    for new in load(HEAD + "struct S { e @0 :E; l @1 :List(E); } enum E { b @1; a @0; }"):
        data = new.new_message(e="b", l=["b", "a"]).to_bytes()
        with old.from_bytes(data) as opened, their_old.from_bytes(data) as theirs:
            assert opened.to_dict() == {"e": 1, "l": [1, "a"]}
            assert opened.e.raw == theirs.e.raw == 1  # whose to_dict() gives up


def test_methods_may_be_added_and_reordered() -> None:
    old = "interface I { a @0 (x :Int8); }"
    new = "interface I { b @1 (); a @0 (x :Int8, y :Text) -> (z :Int8); }"
    assert breaking(old, new) == []


def test_numbered_union_takes_in_a_field_that_came_before_it(load: Load) -> None:
    # A retroactive union: its discriminant stands where the field with its number would.
    check(
        load, "struct S { a @0 :Int32; }",
        "struct S { u @1! :union { a @0 :Int32; b @2 :Text; } }",
        [("old", {"a": 5}, {"u": {"a": 5}}), ("new", {"u": {"a": 5}}, {"a": 5})],
    )


@pytest.mark.parametrize("number", range(25))
def test_random_legal_changes_keep_messages_in_both_directions(
    load: Load, rng: random.Random, monkeypatch: pytest.MonkeyPatch, number: int,
) -> None:
    monkeypatch.setenv("CAPNP_IGNORE_ISSUE_344", "1")
    seed = rng.getrandbits(64)
    print(f"seed {seed}")
    version = Version(random.Random(seed))
    for _ in range(version.rng.randint(1, 8)):
        version.add_field()
    versions = [version]
    for _ in range(5):
        later = versions[-1].copy()
        for _ in range(later.rng.randint(1, 3)):
            print(later.evolve())
        versions.append(later)
    loaded = [load(version.text()) for version in versions]
    for first, second in [(0, 1), (0, 5), (1, 3), (2, 5), (4, 5)]:
        for writer, reader in ((first, second), (second, first)):
            message, written = versions[writer].message()
            known = {field.name for field in versions[reader].top.fields()}
            for write in loaded[writer]:
                data = write.new_message(**message).to_bytes()
                for read in loaded[reader]:
                    with read.from_bytes(data) as opened:
                        found = flat(plain(opened.to_dict()), versions[reader])
                    wanted = {name: written[name] for name in known & set(written)}
                    assert plain({name: found.get(name, "") for name in wanted}) == plain(wanted)
        old, new = (versions[index].text() for index in (first, second))
        assert breaking(old.split("\n", 1)[1], new.split("\n", 1)[1]) == []
