"""Random structs and what a later version may make of them; not a test.

A `Version` is a struct's members with their ordinals.  `evolve` changes it as the language
allows: fields and groups keep their ordinals and types, and move only where their bits stay.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from tests.compiler.random_schemas import Member

SCALARS: dict[str, int] = {
    "UInt8": 8, "UInt16": 16, "UInt32": 32, "UInt64": 64,
}
TYPES = (*SCALARS, "Bool", "Void", "Text", "Data", "Float64", "List(UInt16)", "Inner")
PRELUDE = "struct Inner { x @0 :UInt32; y @1 :Text; }\n"


class Version:
    """One version of the struct `S`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.top = Member("group", "", "", "")
        self.ordinals = self.names = 0

    def copy(self) -> Version:
        """The same version, to be changed."""
        other = copy.copy(self)
        other.top = copy.deepcopy(self.top)
        return other

    def text(self) -> str:
        """The schema."""
        body = "".join(map(_show, self.top.inner))
        return f"@0xb0b0b0b0b0b0b0b0;\n{PRELUDE}struct S @0xb0b0b0b0b0b0b0b1 {{\n{body}}}\n"

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def new_field(self) -> Member:
        """A field with the next ordinal."""
        field = Member("field", self.name("f"), "", "")
        field.type = self.rng.choice(TYPES)
        field.ordinal = self.ordinals
        self.ordinals += 1
        return field

    # --- the legal changes ------------------------------------------------------------------

    def evolve(self) -> str:
        """Make one change; gives its name."""
        change = self.rng.choice(
            (self.add_field, self.add_field, self.group, self.unionise, self.permute, self.rename)
        )
        change()
        return change.__name__

    def add_field(self) -> None:
        """A field with the next ordinal, anywhere."""
        self.rng.choice(list(_parents(self.top))).inner.append(self.new_field())

    def group(self) -> None:
        """Some members of a struct or group, or one of a union, into a group."""
        parent = self.rng.choice(list(_parents(self.top)))
        if not parent.inner:
            return
        count = 1 if parent.kind == "union" else self.rng.randint(1, len(parent.inner))
        taken = self.rng.sample(parent.inner, count)
        if parent.kind == "union" and taken[0].kind != "field":
            return
        group = Member("group", self.name("g"), ":group", "")
        group.inner = taken
        parent.inner = [member for member in parent.inner if member not in taken] + [group]

    def unionise(self) -> None:
        """A field becomes the first member of a new union."""
        places = [
            (parent, field) for parent in _parents(self.top) for field in parent.inner
            if field.kind == "field"
        ]
        if not places:
            return
        parent, member = self.rng.choice(places)
        unnamed = parent.kind != "union" and all(item.name for item in parent.inner)
        name = "" if unnamed and self.rng.random() < 0.5 else self.name("u")
        union = Member("union", name, ":union" if name else "union", "")
        union.inner = [member, *(self.new_field() for _ in range(self.rng.randint(1, 3)))]
        parent.inner[parent.inner.index(member)] = union

    def permute(self) -> None:
        """Another order in the text."""
        for parent in _parents(self.top):
            self.rng.shuffle(parent.inner)

    def rename(self) -> None:
        """Another name for a group or union; the tests know the fields by theirs."""
        groups = [member for member in _parents(self.top) if member.name]
        if groups:
            self.rng.choice(groups).name = self.name("renamed")

    # --- values -----------------------------------------------------------------------------

    def value(self, type: str) -> Any:
        rng = self.rng
        if type in SCALARS:
            return rng.getrandbits(SCALARS[type]) | 1
        if type == "Inner":
            return {"x": rng.getrandbits(32), "y": rng.choice(("", "inner"))}
        return {
            "Bool": True, "Void": None, "Text": f"text {rng.random()}", "Data": rng.randbytes(5),
            "Float64": rng.random() + 1, "List(UInt16)": [rng.getrandbits(16) for _ in range(3)],
        }[type]

    def message(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Values for a new message as a dict, and by the names of the fields alone.

        In each union the first member in the order of ordinals is set, which is the one that a
        version without the union has as a plain field.
        """
        leaves: dict[str, Any] = {}
        return self._fill(self.top, leaves), leaves

    def _fill(self, parent: Member, leaves: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        members = parent.inner
        if parent.kind == "union":
            members = [min(members, key=_lowest)]
        for member in members:
            if member.kind == "field":
                made[member.name] = leaves[member.name] = self.value(member.type)
            elif member.name:
                made[member.name] = self._fill(member, leaves)
            else:
                made.update(self._fill(member, leaves))
        return made


def flat(found: dict[str, Any], version: Version) -> dict[str, Any]:
    """The fields of a message's dict by their names alone."""
    inside = {member.name: member for member in _parents(version.top) if member.name}
    leaves: dict[str, Any] = {}
    for name, value in found.items():
        if name in inside:
            leaves.update(flat(value, version))
        else:
            leaves[name] = value
    return leaves


def _parents(top: Member) -> Iterator[Member]:
    yield top
    for member in top.inner:
        if member.kind != "field":
            yield from _parents(member)


def _lowest(member: Member) -> int:
    return min(field.ordinal or 0 for field in member.fields())


def _show(member: Member) -> str:
    if member.kind == "field":
        return f"  {member.name} @{member.ordinal} :{member.type};\n"
    return f"  {member.name} {member.head} {{\n{''.join(map(_show, member.inner))}  }}\n"
