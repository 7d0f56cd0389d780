"""Random schema texts that are valid, apart from what issue 344 makes of their layout.

Not a test.  One seed gives one text; the texts use every kind of declaration, type and value.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

PRIMITIVES = (
    "Void", "Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
    "Float32", "Float64",
)
POINTERS = ("Text", "Data", "AnyPointer", "AnyStruct", "AnyList", "Capability")
RANGES = {
    "Int8": 7, "Int16": 15, "Int32": 31, "Int64": 63, "UInt8": 8, "UInt16": 16, "UInt32": 32,
    "UInt64": 64,
}
PRELUDE = """
annotation aText(*) :Text;
annotation aVoid(*) :Void;
annotation aInt(*) :Int32;
annotation aPoint(*) :Point;
annotation aList(*) :List(UInt8);
annotation aColor(*) :Color;
annotation aGeneric(*) :Box(Text);
enum Color { red @0; green @1; blue @2; }
struct Point { x @0 :Int32; name @1 :Text; color @2 :Color; union { less @3 :Void; more @4 :Point; }
  g :group { a @5 :UInt8; b @6 :List(Point); } tail @7 :Data; any @8 :AnyPointer; }
struct Box(T) { value @0 :T; struct Inner(U) { t @0 :T; u @1 :U; } inner @1 :Inner(Data);
  plain @2 :Int8; }
struct Empty {}
interface Base(T) { get @0 () -> (it :T); }
const number :Int32 = 42;
const origin :Point = (x = 1, name = "origin", g = (b = [(x = 5), (name = "")]));
const words :List(Text) = ["a", "", "b\\n" "c"];
using P = Point;
using TextBox = Box(Text);
"""


class Member:
    """A field with its ordinal still to come, a group or a union."""

    def __init__(self, kind: str, name: str, head: str, tail: str) -> None:
        self.kind, self.name, self.head, self.tail = kind, name, head, tail
        self.inner: list[Member] = []
        self.ordinal: int | None = None
        self.numbered = False

    def fields(self) -> Iterator[Member]:
        """The fields in this member."""
        if self.kind == "field":
            yield self
        for member in self.inner:
            yield from member.fields()

    def unions(self) -> Iterator[Member]:
        """The unions in this member that want an ordinal, inner ones first."""
        for member in self.inner:
            yield from member.unions()
        if self.numbered:
            yield self


class SchemaMaker:
    """Makes one schema text."""

    def __init__(self, seed: object) -> None:
        self.rng = random.Random(str(seed))
        self.count = 0
        self.generics: list[str] = []
        self.structs = ["Point", "P", "Empty", "TextBox", "Box"]
        self.enums = ["Color"]
        self.interfaces = ["Base(Text)"]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def text(self) -> str:
        """The whole schema."""
        parts = [f"@0x{self.rng.getrandbits(63) | 1 << 63:016x};", PRELUDE]
        if self.chance(0.3):
            parts.append('$aText("file");')
        for _ in range(self.rng.randint(1, 5)):
            parts.append(self.declaration(0))
        return "\n".join(parts) + "\n"

    def declaration(self, depth: int) -> str:
        make = self.rng.choices(
            (self.struct, self.enum, self.interface, self.constant, self.alias),
            (8, 1, 2, 2, 1),
        )[0]
        return make(depth)

    def comment(self) -> str:
        if self.chance(0.75):
            return "\n"
        return "  # " + self.rng.choice(("doc", "ä ☃", "two\n# lines", "", " indented")) + "\n"

    def annotations(self) -> str:
        if self.chance(0.8):
            return ""
        return " " + self.rng.choice(
            (
                '$aText("x")', "$aVoid", "$aInt(-5)", "$aInt(.number)",
                '$aPoint(x = 5, name = "q")',
                "$aPoint(.origin)", "$aList([1, 2, 0xff])", "$aColor(green)", "$aVoid $aInt(3)",
                '$aGeneric(value = "t", inner = (t = "v", u = 0x"00 ff"))', "$aPoint(7)",
            )
        )

    # --- types and values --------------------------------------------------------------------

    def type(self, depth: int = 0) -> str:
        kind = self.rng.random()
        if kind < 0.5:
            return self.rng.choice(PRIMITIVES)
        if kind < 0.6:
            return self.rng.choice(self.enums)
        return self.pointer_type(depth)

    def pointer_type(self, depth: int = 0) -> str:
        kind = self.rng.random()
        if self.generics and kind < 0.15:
            return self.rng.choice(self.generics)
        if depth < 3 and kind < 0.35:
            return f"List({self.element(depth + 1)})"
        if depth < 3 and kind < 0.5:
            bound = self.bindable(depth + 1)
            inner = self.bindable(depth + 1)
            return self.rng.choice((f"Box({bound})", f"Box({bound}).Inner({inner})"))
        if kind < 0.7:
            return self.rng.choice(self.structs)
        if kind < 0.75:
            return self.rng.choice(self.interfaces)
        return self.rng.choice(POINTERS)

    def element(self, depth: int) -> str:
        while True:
            made = self.type(depth)
            if made not in ("AnyPointer", "AnyStruct") and made not in self.generics:
                return made

    def bindable(self, depth: int) -> str:
        while True:
            made = self.pointer_type(depth)
            if made not in ("AnyStruct", "AnyList", "Capability"):
                return made

    def value(self, type: str, depth: int = 0) -> str | None:
        """A literal of that type, or None if there is none to write."""
        rng = self.rng
        if type in RANGES:
            top = 1 << RANGES[type]
            low = 0 if type[0] == "U" else -top
            number = rng.choice((low, top - 1, 0, rng.randrange(low, top), 1))
            if type == "Int32" and self.chance(0.1):
                return ".number"
            return rng.choice((str(number), f"{'-' if number < 0 else ''}{abs(number):#x}"))
        if type in ("Float32", "Float64"):
            return rng.choice(
                ("nan", "inf", "-inf", "1.5", "-2", "1e-7", "3.4e38", "0.1", "-0.0", "1e400", "7")
            )
        if type == "Bool":
            return rng.choice(("true", "false"))
        if type == "Void":
            return "void"
        if type in self.enums:
            return "red" if type == "Color" else None
        if type == "Text":
            return rng.choice(('"text"', '""', '"a" "b"', '"\\x41\\101\\0\\n\\t"', '"ünï"'))
        if type == "Data":
            return rng.choice(('"data"', '0x"00 01ff"', '"" ""'))
        return self.deep_value(type, depth)

    def deep_value(self, type: str, depth: int) -> str | None:
        rng = self.rng
        if "AnyList" in type or "Capability" in type:
            return None  # the reference cannot hold lists of these
        if type.startswith("List("):
            inner = type[5:-1]
            items = [self.value(inner, depth + 1) for _ in range(rng.randrange(4))]
            return "[" + ", ".join(item for item in items if item is not None) + "]"
        if type in ("Point", "P"):
            return rng.choice(
                (
                    ".origin", "()", "(x = 5)", '(name = "n", color = blue)', "(more = (x = 1))",
                    "(g = (a = 7, b = [(x = 1), (), (more = (less = void))]))", "9",
                    "(any = .words)",
                    '(tail = 0x"01", any = .origin)',
                )
            )
        if type == "Empty":
            return "()"
        if type == "TextBox":
            return rng.choice(('(value = "v")', '(inner = (t = "t", u = "u"), plain = -1)', '"w"'))
        if type == "AnyPointer":
            return rng.choice((".origin", ".words"))
        return None

    def default(self, type: str) -> str:
        if self.chance(0.7):
            return ""
        made = self.value(type)
        return "" if made is None else f" = {made}"

    # --- declarations ------------------------------------------------------------------------

    def constant(self, depth: int) -> str:
        while True:
            type = self.type()
            value = self.value(type)
            if value is not None and type not in self.generics:
                head = f"const {self.name('k')} :{type} = {value}"
                return f"{head}{self.annotations()};{self.comment()}"

    def alias(self, depth: int) -> str:
        return f"using {self.name('Alias')} = {self.rng.choice(self.structs + self.enums)};\n"

    def enum(self, depth: int) -> str:
        name = self.name("Enum")
        count = self.rng.randint(0, 6)
        numbers = self.rng.sample(range(count), count)
        items = [
            f"  {self.name('item')} @{number}{self.annotations()};{self.comment()}"
            for number in numbers
        ]
        if depth == 0:
            self.enums.append(name)
        return f"enum {name}{self.annotations()} {{{self.comment()}{''.join(items)}}}\n"

    def interface(self, depth: int) -> str:
        name = self.name("Interface")
        outer = list(self.generics)
        params = ""
        if self.chance(0.3):
            own = [self.name("T") for _ in range(self.rng.randint(1, 2))]
            params = f"({', '.join(own)})"
            self.generics += own
        bases = [base for base in self.interfaces if self.chance(0.2)]
        extends = f" extends ({', '.join(bases)})" if bases else ""
        count = self.rng.randint(0, 4)
        methods = [self.method(number) for number in self.rng.sample(range(count), count)]
        if depth < 2 and self.chance(0.2):
            methods.append(self.declaration(depth + 1))
        self.generics = outer
        if depth == 0:
            self.interfaces.append(name)
        head = f"interface {name}{params}{extends}{self.annotations()}"
        return f"{head} {{{self.comment()}{''.join(methods)}}}\n"

    def method(self, number: int) -> str:
        outer = list(self.generics)
        implicit = ""
        if self.chance(0.25):
            own = [self.name("M") for _ in range(self.rng.randint(1, 2))]
            implicit = f" [{', '.join(own)}]"
            self.generics += own
        request, result = self.params(), self.params()
        self.generics = outer
        arrow = "" if self.chance(0.2) else f" -> {result}"
        if self.chance(0.1):
            arrow = " -> stream"
        name = self.name("method")
        return f"  {name} @{number}{implicit} {request}{arrow}{self.annotations()};{self.comment()}"

    def params(self) -> str:
        if self.chance(0.3):
            return self.rng.choice(self.structs + ["Box(Data)", "Box(Text).Inner(Point)"])
        items = []
        for _ in range(self.rng.randrange(5)):
            type = self.type()
            default = self.default(type)
            if type in POINTERS and self.chance(0.2):
                default = " = null"
            items.append(f"{self.name('p')} :{type}{default}{self.annotations()}")
        return f"({', '.join(items)})"

    def struct(self, depth: int) -> str:
        name = self.name("Struct")
        outer = list(self.generics)
        params = ""
        if self.chance(0.2):
            own = [self.name("T") for _ in range(self.rng.randint(1, 3))]
            params = f"({', '.join(own)})"
            self.generics += own
        top = Member("group", "", "", "")
        self.members(top, self.rng.choice((0, 3, 8, 20)), 0, has_unnamed=False)
        self.number(top)
        nested = ""
        while depth < 2 and self.chance(0.3):
            nested += self.declaration(depth + 1)
        self.generics = outer
        if depth == 0:
            self.structs.append(name)
        id = f" @0x{self.rng.getrandbits(63) | 1 << 63:x}" if self.chance(0.1) else ""
        body = "".join(self.show(member) for member in top.inner)
        head = f"struct {name}{id}{params}{self.annotations()}"
        return f"{head} {{{self.comment()}{nested}{body}}}{self.comment()}"

    def members(self, parent: Member, count: int, depth: int, *, has_unnamed: bool) -> None:
        in_union = parent.kind == "union"
        for _ in range(count):
            roll = self.rng.random()
            if depth < 4 and roll < 0.15:
                member = Member("group", self.name("g"), ":group", self.annotations())
                self.members(member, self.rng.randint(1, 4), depth + 1, has_unnamed=False)
            elif depth < 4 and roll < 0.3:
                unnamed = not in_union and not has_unnamed and self.chance(0.5)
                has_unnamed = has_unnamed or unnamed
                name = "" if unnamed else self.name("u")
                tail = "" if unnamed else self.annotations()
                member = Member("union", name, "union" if unnamed else ":union", tail)
                member.numbered = not unnamed and self.chance(0.2)
                self.members(member, self.rng.randint(2, 5), depth + 1, has_unnamed=True)
            else:
                type = self.type()
                tail = f":{type}{self.default(type)}{self.annotations()};{self.comment()}"
                member = Member("field", self.name("f"), "", tail)
            parent.inner.append(member)

    def number(self, top: Member) -> None:
        order = list(top.fields())
        if self.chance(0.6):
            # Mostly in the order of the text, as people write.
            keyed = [
                (index + self.rng.choice((0, 0, 3, 40)) * self.rng.random(), member)
                for index, member in enumerate(order)
            ]
            order = [member for _, member in sorted(keyed, key=lambda pair: pair[0])]
        unions = list(top.unions())
        # The reference's own loader wants nothing between a union's first member and its number,
        # so only the last one, having no numbered union inside, may come after that member.
        for union in unions:
            is_late = union is unions[-1] and len(list(union.unions())) == 1
            first = min(
                order.index(slot)
                for slots in (union.fields(), union.unions())
                for slot in slots
                if slot in order
            )
            order.insert(self.rng.randint(0, first + is_late), union)
        for ordinal, member in enumerate(order):
            member.ordinal = ordinal

    def show(self, member: Member) -> str:
        number = "" if member.ordinal is None else f" @{member.ordinal}"
        if member.kind == "field":
            return f"  {member.name}{number} {member.tail}"
        inner = "".join(map(self.show, member.inner))
        mark = "!" if number else ""
        head = f"  {member.name}{number}{mark} {member.head}{member.tail}"
        return f"{head} {{{self.comment()}{inner}  }}{self.comment()}"


def make_schema(seed: object) -> str:
    """The text that belongs to a seed."""
    return SchemaMaker(seed).text()
