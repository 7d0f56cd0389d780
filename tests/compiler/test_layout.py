"""Where fields lie.  Whole structs are compared with the reference in test_driver.py."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from capnwire.compiler.driver import compile_text
from capnwire.compiler.structs import LG
from capnwire.errors import CompileError
from capnwire.schema.model import Request, StructBody
from tests.compiler.random_schemas import Member, SchemaMaker
from tests.compiler.reference import FILE_ID, Reference

TAG = "tag"


def places(text: str, **options: bool) -> dict[str, tuple[str, int]]:
    """(kind, bit offset or pointer index) of one struct's fields, and of its unions' `tag…`."""
    return places_in(compile_text(FILE_ID + text, **options))


def places_in(request: Request) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for node in request.nodes:
        body = node.body
        if not isinstance(body, StructBody):
            continue
        if body.discriminant_count:
            owner = node.name if body.is_group else ""
            found[TAG + owner] = ("data", body.discriminant_offset * 16)
        for field in body.fields or ():
            if field.type is None:
                continue
            lg = LG.get(field.type.kind)
            if lg is not None:
                found[field.name] = ("data", field.offset << lg)
            elif field.type.kind != "void":
                found[field.name] = ("pointer", field.offset)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "a @0 :Bool; b @1 :UInt32; c @2 :Bool; d @3 :UInt8; e @4 :UInt16; f @5 :Text;"
            "g @6 :UInt64; h @7 :Bool; i @8 :UInt32;",
            "a 0 b 32 c 1 d 8 e 16 f p0 g 64 h 2 i 128",
            id="holes are filled",
        ),
        pytest.param(
            "x @0 :UInt8; union { a @1 :UInt16; b @2 :UInt32; c @3 :UInt8; d @4 :Text;"
            "e @5 :UInt64; f @6 :Void; } y @7 :UInt32;",
            "x 0 a 16 tag 32 b 64 c 16 d p0 e 64 y 128",
            id="a location grows",
        ),
        pytest.param(
            "a @0 :UInt8; u :union { b @1 :UInt8; g :group { c @2 :UInt8; d @3 :UInt16;"
            "e @4 :UInt32; t @5 :Text; s @6 :Data; } h :group { i @7 :UInt64; j @8 :Text;"
            "k @9 :Bool; l @10 :UInt8; } } z @11 :UInt16;",
            "a 0 b 8 tagu 16 c 8 d 32 e 64 t p0 s p1 i 64 j p0 k 8 l 32 z 48",
            id="groups share locations",
        ),
        pytest.param(
            "u @1! :union { a @0 :UInt8; b @2 :UInt32; }", "a 0 tagu 16 b 32", id="numbered union",
        ),
        pytest.param(
            "a @0 :Void; union { b @1 :Void; c @2 :Void; } d @3 :UInt16;", "tag 0 d 16", id="voids",
        ),
        pytest.param(
            "u :union { a @0 :UInt16; g :group { b @1 :UInt16; c @2 :UInt16; } }"
            "v :union { d @3 :UInt8; e @4 :UInt64; } f @5 :UInt8;",
            "a 0 tagu 16 b 0 c 32 d 48 tagv 64 e 128 f 56",
            id="two unions",
        ),
        pytest.param(
            "a @0 :UInt64; union { b @1 :UInt64; g :group { c @2 :UInt64; d @3 :UInt64;"
            "e @4 :UInt8; } h :group { f @5 :UInt8; i @6 :UInt64; j @7 :UInt32; k @8 :UInt32; } }",
            "a 0 b 64 tag 128 c 64 d 192 e 144 f 144 i 64 j 192 k 224",
            id="smallest hole first",
        ),
        pytest.param(
            "union { a @0 :Bool; b :group { c @1 :Bool; d @2 :Bool; e @3 :UInt8; } } f @4 :Bool;"
            "g @5 :UInt8;",
            "a 0 tag 16 c 0 d 1 e 8 f 32 g 40",
            id="single bits",
        ),
    ],
)
def test_worked_examples(text: str, expected: str) -> None:
    words = expected.split()
    wanted = {
        name: ("pointer", int(place[1:])) if place[0] == "p" else ("data", int(place))
        for name, place in zip(words[::2], words[1::2], strict=True)
    }
    found = places(f"struct A {{ {text} }}")
    found = {name: place for name, place in found.items() if name not in "gh" or name in wanted}
    assert found == wanted


def test_issue_344_layout_when_asked_for() -> None:
    text = (
        "struct A { union { a @0 :Void; g :group { u :union { b @1 :UInt8; c @2 :UInt16; }"
        "d @3 :UInt32; } h @4 :UInt64; } }"
    )
    found = places(text, ignore_issue_344=True)
    assert found == {
        TAG: ("data", 0), "b": ("data", 16), "tagu": ("data", 32), "c": ("data", 16),
        "d": ("data", 64), "h": ("data", 64),
    }


def bare_struct(rng: random.Random, limit: int) -> tuple[SchemaMaker, Member]:
    """A struct with nested groups and unions, its fields numbered."""
    maker = SchemaMaker(rng.random())
    top = Member("group", "", "", "")
    maker.members(top, limit, 0, has_unnamed=False)
    for field in top.fields():
        kinds = ("Bool", "UInt8", "UInt16", "UInt32", "UInt64", "Void", "Text")
        field.tail = f":{rng.choice(kinds)};\n"
    maker.number(top)
    return maker, top


def text_of(maker: SchemaMaker, top: Member) -> str:
    maker.chance = lambda probability: True  # type: ignore[method-assign]  # no comments
    body = "".join(maker.show(member) for member in top.inner)
    return "\n".join(line.split("$")[0].rstrip("{ ") + " {" if "$" in line else line
                     for line in f"struct A {{ {body} }}".split("\n"))


def without_last(top: Member) -> bool:
    """Take the field with the highest number out; False if a group or union would be too small."""
    last = max(top.fields(), key=lambda field: field.ordinal or 0)
    stack = [top]
    while stack:
        parent = stack.pop()
        if last in parent.inner:
            if parent is not top and len(parent.inner) <= (2 if parent.kind == "union" else 1):
                return False
            parent.inner.remove(last)
            return True
        stack += parent.inner
    return False


def test_adding_a_field_with_a_higher_ordinal_moves_no_other(rng: random.Random) -> None:
    checked = 0
    for _ in range(150):
        maker, top = bare_struct(rng, rng.randint(2, 14))
        later = places(text_of(maker, top), ignore_issue_344=True)
        highest = max((union.ordinal or 0 for union in top.unions()), default=-1)
        while sum(1 for _ in top.fields()) > 1:
            last = max(field.ordinal or 0 for field in top.fields())
            if last < highest or not without_last(top):
                break
            earlier = places(text_of(maker, top), ignore_issue_344=True)
            moved = {
                name for name, place in earlier.items()
                if later.get(name) != place and not name.startswith(TAG)
            }
            assert not moved
            later = earlier
            checked += 1
    assert checked > 300


@pytest.mark.parametrize("number", range(40))
def test_refused_layouts_are_those_that_the_reference_refuses(
    reference: Reference, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: random.Random,
    number: int,
) -> None:
    monkeypatch.delenv("CAPNP_IGNORE_ISSUE_344", raising=False)
    maker, top = bare_struct(rng, 16)
    text = FILE_ID + text_of(maker, top)
    (tmp_path / "a.capnp").write_text(text)
    outcome = reference.run(tmp_path, ["a.capnp"])
    if outcome.crashed:
        with pytest.raises(CompileError, match="Bad news"):
            compile_text(text)
    else:
        found = places_in(compile_text(text))
        assert found == places_in(reference.read(outcome.request))
