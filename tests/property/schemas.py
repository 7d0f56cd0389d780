"""Random schemas with everything in them, and random values that fit them.

Not a test.  One seed gives one schema text of several structs, and as many values as are asked for.
A value is a dict for `new_message(**value)`: some of the fields, in any order.
"""

from __future__ import annotations

import random
import struct
from typing import Any

INTEGERS = {
    "Int8": (-(1 << 7), (1 << 7) - 1), "Int16": (-(1 << 15), (1 << 15) - 1),
    "Int32": (-(1 << 31), (1 << 31) - 1), "Int64": (-(1 << 63), (1 << 63) - 1),
    "UInt8": (0, (1 << 8) - 1), "UInt16": (0, (1 << 16) - 1), "UInt32": (0, (1 << 32) - 1),
    "UInt64": (0, (1 << 64) - 1),
}
SCALARS = (*INTEGERS, "Bool", "Void", "Float32", "Float64")
TEXTS = ("", "a", "hello world", "ä☃𝄞", "tab\tnewline\n\"quoted\" \\ 'x'", "\x01\x7f", "x" * 30,
         "seven..", "eight...", "y" * 200)
FLOATS = (0.0, -0.0, 1.0, -1.5, 0.1, 1e-7, 1e20, 123456789.0, 5e-324, 1.7976931348623157e308,
          float("inf"), float("-inf"), float("nan"))
FLOATS32 = (0.0, -0.0, 1.0, -2.25, 1e-45, 3.4028234663852886e38, float("inf"), float("-inf"),
            float("nan"))
MAX_DEPTH = 4
PRELUDE = """
struct Box(T) { value @0 :T; number @1 :UInt8 = 7; more @2 :List(Box(T));
  struct Inner(U) { t @0 :T; u @1 :U; } }
struct Empty {}
interface Service { call @0 () -> (); }
"""


def as_float32(value: float) -> float:
    made: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return made


class Enum:
    def __init__(self, name: str, values: list[str]) -> None:
        self.name, self.values = name, values

    def text(self) -> str:
        inner = " ".join(f"{value} @{index};" for index, value in enumerate(self.values))
        return f"enum {self.name} {{ {inner} }}"


class Field:
    """A field: `type` is a scalar's name, or ("list", type), ("enum", Enum) and so on."""

    def __init__(self, name: str, type: Any) -> None:
        self.name, self.type, self.default, self.ordinal = name, type, "", 0


class Group:
    """A group, a named union, or (name None) the unnamed union; `is_union` tells which."""

    def __init__(self, name: str | None, is_union: bool, members: list[Any]) -> None:
        self.name, self.is_union, self.members = name, is_union, members


class Struct:
    def __init__(self, name: str) -> None:
        self.name = name
        self.members: list[Any] = []


class SchemaMaker:
    """One random schema: `text`, and `structs` that `value(struct)` makes values for."""

    def __init__(self, seed: object, structs: int = 4) -> None:
        self.rng = random.Random(str(seed))
        self.names = 0
        self.enums = [
            Enum(f"E{index}", [f"e{index}v{i}" for i in range(self.rng.choice((1, 2, 5)))])
            for index in range(2)
        ]
        self.structs = [Struct(f"S{index}") for index in range(structs)]
        for made in self.structs:
            made.members = self.members(self.rng.choice((0, 1, 2, 4, 8, 14)), 0, union=True)
            self.number(made)
        for made in self.structs:
            for field in self.fields_of(made.members):
                field.default = self.default(field.type)
        self.text = self.schema_text()

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self) -> str:
        self.names += 1
        return f"f{self.names}"

    # --- structs -----------------------------------------------------------------------------

    def members(self, count: int, depth: int, *, union: bool) -> list[Any]:
        made: list[Any] = []
        for _ in range(count):
            kind = self.rng.random()
            if kind < 0.1 and depth < 3:
                made.append(Group(self.name(), False, self.members(
                    self.rng.choice((1, 2, 3)), depth + 1, union=True)))
            elif kind < 0.2 and depth < 3:
                made.append(Group(self.name(), True, self.union(depth)))
            else:
                made.append(Field(self.name(), self.type(0)))
        if union and self.chance(0.35) and depth < 3:
            made.insert(self.rng.randrange(len(made) + 1), Group(None, True, self.union(depth)))
        return made

    def union(self, depth: int) -> list[Any]:
        # The first member is a scalar: pycapnp follows an absent struct there without end.
        first = Field(self.name(), self.rng.choice(SCALARS))
        return [first, *self.members(self.rng.choice((1, 2, 4)), depth + 1, union=False)]

    def fields_of(self, members: list[Any]) -> list[Field]:
        found: list[Field] = []
        for member in members:
            if isinstance(member, Field):
                found.append(member)
            else:
                found += self.fields_of(member.members)
        return found

    def number(self, made: Struct) -> None:
        fields = self.fields_of(made.members)
        if all(isinstance(member, Field) for member in made.members):
            self.rng.shuffle(fields)  # in any order, where no union's layout depends on it
        for ordinal, field in enumerate(fields):
            field.ordinal = ordinal

    # --- types -------------------------------------------------------------------------------

    def type(self, depth: int) -> Any:
        kind = self.rng.random()
        if kind < 0.5:
            return self.rng.choice(SCALARS)
        if kind < 0.66:
            return self.rng.choice(("Text", "Data"))
        if kind < 0.72:
            return ("enum", self.rng.choice(self.enums))
        if kind < 0.86:
            return ("struct", self.rng.choice(self.structs))
        if kind < 0.88:
            return ("empty",)
        if kind < 0.91:
            return ("box", self.rng.choice(("Text", "Data", ("struct", self.structs[0]),
                                            ("list", "UInt16"))))
        if kind < 0.93 and depth == 0:
            return self.rng.choice((("any",), ("service",)))
        if depth < 3:
            return ("list", self.type(depth + 1))
        return "UInt32"

    def type_text(self, type: Any) -> str:
        if isinstance(type, str):
            return type
        kind = type[0]
        if kind == "list":
            return f"List({self.type_text(type[1])})"
        if kind == "box":
            return f"Box({self.type_text(type[1])})"
        if kind in ("enum", "struct"):
            name: str = type[1].name
            return name
        return {"empty": "Empty", "any": "AnyPointer", "service": "Service"}[kind]

    # --- text --------------------------------------------------------------------------------

    def schema_text(self) -> str:
        parts = [f"@0x{self.rng.getrandbits(63) | 1 << 63:016x};", PRELUDE]
        parts += [enum.text() for enum in self.enums]
        parts += [f"struct {made.name} {{ {self.members_text(made.members)} }}"
                  for made in self.structs]
        return "\n".join(parts) + "\n"

    def members_text(self, members: list[Any]) -> str:
        parts = []
        for member in members:
            if isinstance(member, Field):
                parts.append(
                    f"{member.name} @{member.ordinal} :{self.type_text(member.type)}"
                    f"{member.default};"
                )
            else:
                word = "union" if member.is_union else "group"
                head = word if member.name is None else f"{member.name} :{word}"
                parts.append(f"{head} {{ {self.members_text(member.members)} }}")
        return " ".join(parts)

    # --- values ------------------------------------------------------------------------------

    def value(self, made: Struct) -> dict[str, Any]:
        """A value of a struct."""
        return self.members_value(made.members, 0)

    def members_value(self, members: list[Any], depth: int) -> dict[str, Any]:
        entries: list[tuple[str, Any]] = []
        for member in members:
            if isinstance(member, Field):
                if self.chance(0.75):
                    self.add_field(entries, member, depth)
            elif member.name is None:
                self.add_active(entries, member.members, depth)
            elif self.chance(0.75):
                if member.is_union:
                    inner: list[tuple[str, Any]] = []
                    self.add_active(inner, member.members, depth)
                    if inner:
                        entries.append((member.name, dict(inner)))
                else:
                    entries.append((member.name, self.members_value(member.members, depth)))
        self.rng.shuffle(entries)
        return dict(entries)

    def add_active(self, entries: list[tuple[str, Any]], members: list[Any], depth: int) -> None:
        if not self.chance(0.85):
            return
        member = self.rng.choice(members)
        if isinstance(member, Field):
            self.add_field(entries, member, depth)
        elif member.is_union:
            inner: list[tuple[str, Any]] = []
            self.add_active(inner, member.members, depth)
            if inner:
                entries.append((member.name, dict(inner)))
        else:
            entries.append((member.name, self.members_value(member.members, depth)))

    def add_field(self, entries: list[tuple[str, Any]], field: Field, depth: int) -> None:
        if field.type in (("any",), ("service",)):
            return
        if depth < MAX_DEPTH or isinstance(field.type, str) or field.type[0] == "enum":
            entries.append((field.name, self.value_of(field.type, depth)))

    def value_of(self, type: Any, depth: int) -> Any:
        if isinstance(type, str):
            return self.scalar(type)
        kind = type[0]
        if kind == "enum":
            return self.rng.choice(type[1].values)
        if kind == "list":
            sizes = (0, 1, 2, 3, 9) if depth < 2 else (0, 1, 2)
            size = self.rng.choice(sizes)
            if depth == 0 and isinstance(type[1], str) and self.chance(0.05):
                size = 1500
            return [self.value_of(type[1], depth + 1) for _ in range(size)]
        if kind == "struct":
            if depth >= MAX_DEPTH:
                return {}
            return self.members_value(type[1].members, depth + 1)
        if kind == "box":
            box: dict[str, Any] = {}
            if self.chance(0.8):
                box["value"] = self.value_of(type[1], depth + 1)
            if self.chance(0.3):
                box["number"] = self.scalar("UInt8")
            if self.chance(0.3) and depth < MAX_DEPTH:
                box["more"] = [self.value_of(type, depth + 2) for _ in range(self.rng.randint(0,
                    2))]
            return box
        return {}

    def scalar(self, type: str) -> Any:
        rng = self.rng
        if type in INTEGERS:
            low, high = INTEGERS[type]
            return rng.choice((low, high, 0, 1, rng.randint(low, high), rng.randint(0, 100)))
        if type == "Bool":
            return rng.random() < 0.5
        if type == "Void":
            return None
        if type == "Float32":
            return rng.choice((*FLOATS32, as_float32(rng.uniform(-1e6, 1e6))))
        if type == "Float64":
            return rng.choice((*FLOATS, rng.uniform(-1e9, 1e9)))
        if type == "Text":
            return rng.choice(TEXTS)
        return rng.choice((b"", b"\0", b"\xff\x80", rng.randbytes(rng.randrange(40))))

    # --- defaults ----------------------------------------------------------------------------

    def default(self, type: Any) -> str:
        if not self.chance(0.3) or type in (("any",), ("service",)) or type == "Void":
            return ""
        if not isinstance(type, str) and type[0] == "box":
            return ""
        return f" = {self.literal(type, self.value_of(type, 2))}"

    def literal(self, type: Any, value: Any) -> str:
        if isinstance(type, str):
            return self.scalar_literal(type, value)
        if type[0] == "list":
            return f"[{', '.join(self.literal(type[1], item) for item in value)}]"
        if type[0] == "struct":
            return self.members_literal(type[1].members, value)
        if type[0] == "box":
            inner = {"value": type[1], "number": "UInt8", "more": ("list", type)}
            parts = [f"{name} = {self.literal(inner[name], item)}" for name, item in value.items()]
            return f"({', '.join(parts)})"
        return "()" if type[0] == "empty" else str(value)

    def members_literal(self, members: list[Any], value: dict[str, Any]) -> str:
        known: dict[str, Any] = {}
        for member in members:
            inner = member.members if getattr(member, "name", "") is None else [member]
            known.update((item.name, item) for item in inner)
        parts = []
        for name, item in value.items():
            member = known[name]
            if isinstance(member, Field):
                parts.append(f"{name} = {self.literal(member.type, item)}")
            else:
                parts.append(f"{name} = {self.members_literal(member.members, item)}")
        return f"({', '.join(parts)})"

    def scalar_literal(self, type: str, value: Any) -> str:
        if value is None:
            return "void"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, bytes):
            return f'0x"{value.hex()}"' if value else '""'
        if isinstance(value, float):
            return repr(value).replace("e+", "e")
        if isinstance(value, int):
            return str(value)
        escaped = "".join(
            c if c.isprintable() and c not in "\"\\" else f"\\x{ord(c):02x}" for c in value
        )
        return f'"{escaped}"'
