"""Random schema texts that are valid, apart from what issue 344 makes of their layout.

Not a test.  One seed gives one text; the texts use every kind of declaration, type and value, and
those of a batch import one another.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

PRIMITIVES = (
    "Void", "Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
    "Float32", "Float64",
)
POINTERS = ("Text", "Data", "AnyPointer", "AnyStruct", "AnyList", "Capability")
RANGES = {
    "Int8": 7, "Int16": 15, "Int32": 31, "Int64": 63, "UInt8": 8, "UInt16": 16, "UInt32": 32,
    "UInt64": 64,
}
TARGETS = (
    "file", "const", "enum", "enumerant", "struct", "field", "union", "group", "interface",
    "method", "param", "annotation",
)
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
        self.type = ""

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
    """Makes one schema text, which may import the schemas of other makers."""

    def __init__(
        self, seed: object, neighbours: Sequence[tuple[str, SchemaMaker]] = (), *,
        for_old_tools: bool = False,
    ) -> None:
        self.rng = random.Random(str(seed))
        # Since 1.0 a value may stand for a struct whose first field it fits.
        self.short = not for_old_tools
        self.neighbours = neighbours
        self.count = 0
        self.generics: list[str] = []
        self.structs = ["Point", "P", "Empty", "TextBox", "Box"]
        # Of generic declarations and of those inside others: each part's name and parameters.
        self.paths: list[list[tuple[str, int]]] = []
        self.scope: list[tuple[str, int]] = []
        self.fields: dict[str, Member] = {}
        self.enums = ["Color"]
        self.enumerants = {"Color": ["red", "green", "blue"]}
        self.interfaces = ["Base(Text)"]
        self.constants: dict[str, list[str]] = {"Int32": [".number"], "List(Text)": [".words"]}
        self.declared: list[tuple[str, tuple[str, ...], str]] = []

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def id(self) -> str:
        """An explicit id, now and then."""
        return f" @0x{self.rng.getrandbits(63) | 1 << 63:x}" if self.chance(0.07) else ""

    def text(self) -> str:
        """The whole schema."""
        parts = [f"@0x{self.rng.getrandbits(63) | 1 << 63:016x};{self.comment()}", PRELUDE]
        for number, (file, other) in enumerate(self.neighbours):
            parts.append(self.imported(f"Other{number}", file, other))
        # Structs that others name before they stand there.
        later = [self.name("Later") for _ in range(self.rng.choice((0, 0, 1, 2)))]
        self.structs += later
        made = [self.declaration(0) for _ in range(self.rng.choice((1, 1, 2, 3, 5)))]
        made += [self.struct(0, name) for name in later]
        if self.chance(0.3):
            applied = self.annotations("file").replace("$aVoid ", "")
            made.append(f"{applied or '$aVoid'};{self.comment()}")
        self.rng.shuffle(made)
        whole = "\n".join(parts + made) + "\n"
        if self.chance(0.05):
            whole = whole.replace("\n", "\r\n")
        return "\xef\xbb\xbf".encode("latin-1").decode() + whole if self.chance(0.05) else whole

    def imported(self, alias: str, file: str, other: SchemaMaker) -> str:
        """An import, with what it brings."""
        self.structs += [f"{alias}.Point", f'import "{file}".Point']
        for name in other.structs:
            if name.startswith(("Struct", "Later")):
                self.structs.append(f"{alias}.{name}")
        for path in other.paths:
            self.paths.append([(alias, 0), *path])
        self.interfaces += [f"{alias}.{name}" for name in other.interfaces if name.isalnum()]
        for name in other.enums:
            if name.startswith("Enum"):
                self.enums.append(f"{alias}.{name}")
                self.enumerants[f"{alias}.{name}"] = other.enumerants[name]
        for type, names in other.constants.items():
            if type in RANGES or type == "Text":
                here = [f"{alias}{name}" for name in names if name[0] == "."]
                self.constants.setdefault(type, []).extend(here)
        for name, targets, type in other.declared:
            if type in PRIMITIVES or type in ("Text", "Data"):
                self.declared.append((f"{alias}.{name}", targets, type))
        embedded = f'const {self.name("embedded")} :Data = embed "{file}";\n'
        return f'using {alias} = import "{file}";\n{embedded if self.chance(0.02) else ""}'

    def declaration(self, depth: int) -> str:
        make = self.rng.choices(
            (self.struct, self.enum, self.interface, self.constant, self.alias, self.annotation),
            (8, 1, 2, 2, 1, 1),
        )[0]
        return make(depth)

    def comment(self) -> str:
        if self.chance(0.75):
            return "\n"
        return "  # " + self.rng.choice(("doc", "ä ☃", "two\n# lines", "", " indented")) + "\n"

    def annotations(self, target: str) -> str:
        """Annotations that may be applied to a declaration of that kind."""
        if self.chance(0.8):
            return ""
        fitting = [item for item in self.declared if target in item[1]]
        if fitting and self.chance(0.6):
            name, _, type = self.rng.choice(fitting)
            if type == "Void":
                return f" ${name}"
            value = self.value(type)
            if value is not None:
                return f" ${name}({value[1:-1] if value[0] == '(' else value})"
        return " " + self.rng.choice(
            (
                '$aText("x")', "$aVoid", "$aInt(-5)", "$aInt(.number)",
                '$aPoint(x = 5, name = "q")',
                "$aPoint(.origin)", "$aList([1, 2, 0xff])", "$aColor(green)", "$aVoid $aInt(3)",
                '$aGeneric(value = "t", inner = (t = "v", u = 0x"00 ff"))',
                "$aPoint(7)" if self.short else "$aVoid",
            )
        )

    def annotation(self, depth: int) -> str:
        """The declaration of an annotation."""
        outer, self.generics = self.generics, []
        name, type = self.name("note"), self.type()
        self.generics = outer
        if self.chance(0.3):
            targets, shown = TARGETS, "*"
        else:
            targets = tuple(self.rng.sample(TARGETS, self.rng.randint(1, 5)))
            shown = ", ".join(targets)
        applied = self.annotations("annotation")
        if depth == 0:
            self.declared.append((name, targets, type))
        return f"annotation {name}{self.id()} ({shown}) :{type}{applied};{self.comment()}"

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
        if depth < 3 and self.paths and self.chance(0.1):
            return self.instance(depth + 1)
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

    def instance(self, depth: int) -> str:
        """A struct that is generic or inside another, with its parameters or without."""
        parts = []
        for name, count in self.rng.choice(self.paths):
            bound = ", ".join(self.bindable(depth) for _ in range(count))
            parts.append(f"{name}({bound})" if count and self.chance(0.8) else name)
        return ".".join(parts)

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
        known = self.constants.get(type)
        # The reference takes no constant for an enum, and gives up at one of type AnyPointer.
        if known and type not in (*self.enumerants, "AnyPointer") and self.chance(0.1):
            return rng.choice(known)
        if type in RANGES:
            top = 1 << RANGES[type]
            low = 0 if type[0] == "U" else -top
            number = rng.choice((low, top - 1, 0, rng.randrange(low, top), 1))
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
            names = self.enumerants.get(type)
            return rng.choice(names) if names else None
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
                    "(g = (a = 7, b = [(x = 1), (), (more = (less = void))]))",
                    "9" if self.short else "(x = 9)", "(any = .words)",
                    '(tail = 0x"01", any = .origin)',
                )
            )
        if type == "Empty":
            return "()"
        if type == "TextBox":
            whole = ('(value = "v")', '(inner = (t = "t", u = "u"), plain = -1)')
            return rng.choice((*whole, '"w"' if self.short else "()"))
        if type == "AnyPointer":
            return rng.choice((".origin", ".words"))
        if type in self.fields and depth < 3:
            return self.struct_value(self.fields[type], depth)
        return "()" if type in self.structs and type != "Box" else None

    def struct_value(self, parent: Member, depth: int) -> str:
        """Some of a struct's or group's fields; of a union, one."""
        texts = []
        members = parent.inner
        if parent.kind == "union":
            members = [self.rng.choice(members)]
        for member in members:
            if parent.kind != "union" and self.chance(0.5):
                continue
            if member.kind == "field":
                value = self.value(member.type, depth + 1)
                if value is not None:
                    texts.append(f"{member.name} = {value}")
            elif member.name:
                texts.append(f"{member.name} = {self.struct_value(member, depth + 1)}")
            else:
                inner = self.struct_value(member, depth + 1)[1:-1]
                if inner:
                    texts.append(inner)
        return f"({', '.join(texts)})"

    def default(self, type: str) -> str:
        if self.chance(0.7):
            return ""
        made = self.value(type)
        return "" if made is None else f" = {made}"

    # --- declarations ------------------------------------------------------------------------

    def constant(self, depth: int) -> str:
        while True:
            type = self.type()
            if type in self.generics:
                continue
            value = self.value(type)
            if value is not None:
                name = self.name("k")
                if depth == 0:
                    self.constants.setdefault(type, []).append(f".{name}")
                elif depth == 1 and not self.scope[0][1]:
                    self.constants.setdefault(type, []).append(f"{self.scope[0][0]}.{name}")
                head = f"const {name}{self.id()} :{type} = {value}"
                return f"{head}{self.annotations('const')};{self.comment()}"

    def alias(self, depth: int) -> str:
        name = self.name("Alias")
        target = self.rng.choice(self.structs + self.enums + self.interfaces)
        if self.paths and self.chance(0.4):
            target = self.instance(1)
            while "AnyList" in target or "Capability" in target:
                target = self.instance(1)  # the reference gives up at lists of these in an alias
            if depth == 0 and not self.generics:
                self.structs.append(name)
        return f"using {name} = {target};\n"

    def enum(self, depth: int) -> str:
        name = self.name("Enum")
        count = self.rng.randint(0, 6)
        numbers = self.rng.sample(range(count), count)
        names = [self.name("item") for _ in numbers]
        items = [
            f"  {item} @{number}{self.annotations('enumerant')};{self.comment()}"
            for item, number in zip(names, numbers, strict=True)
        ]
        if depth == 0:
            self.enums.append(name)
            self.enumerants[name] = names
        head = f"enum {name}{self.id()}{self.annotations('enum')}"
        return f"{head} {{{self.comment()}{''.join(items)}}}\n"

    def interface(self, depth: int) -> str:
        name = self.name("Interface")
        outer = list(self.generics)
        params = ""
        if self.chance(0.3):
            own = [self.name("T") for _ in range(self.rng.randint(1, 2))]
            params = f"({', '.join(own)})"
            self.generics += own
        own_count = len(self.generics) - len(outer)
        bases = [base for base in self.interfaces if self.chance(0.2)]
        if self.generics and self.chance(0.2):
            bases.append(f"Base({self.rng.choice(self.generics)})")
        self.scope.append((name, own_count))
        extends = f" extends ({', '.join(bases)})" if bases else ""
        count = self.rng.randint(0, 4)
        methods = [self.method(number) for number in self.rng.sample(range(count), count)]
        if depth < 2 and self.chance(0.2):
            methods.append(self.declaration(depth + 1))
        self.generics = outer
        self.scope.pop()
        if depth == 0:
            bound = ", ".join(self.bindable(1) for _ in range(own_count))
            self.interfaces.append(f"{name}({bound})" if own_count else name)
        head = f"interface {name}{self.id()}{params}{extends}{self.annotations('interface')}"
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
        head = f"  {name} @{number}{implicit} {request}{arrow}{self.annotations('method')}"
        return f"{head};{self.comment()}"

    def params(self) -> str:
        if self.chance(0.3):
            bound = f"Box({self.bindable(1)})"
            return self.rng.choice((*self.structs, bound, f"{bound}.Inner({self.bindable(1)})"))
        items = []
        for _ in range(self.rng.randrange(5)):
            type = self.type()
            default = self.default(type)
            if type in POINTERS and self.chance(0.2):
                default = " = null"
            items.append(f"{self.name('p')} :{type}{default}{self.annotations('param')}")
        return f"({', '.join(items)})"

    def struct(self, depth: int, name: str = "") -> str:
        is_later = bool(name)
        name = name or self.name("Struct")
        outer = list(self.generics)
        params = ""
        if not is_later and self.chance(0.2):
            own = [self.name("T") for _ in range(self.rng.randint(1, 3))]
            params = f"({', '.join(own)})"
            self.generics += own
        self.scope.append((name, len(self.generics) - len(outer)))
        top = Member("group", "", "", "")
        self.members(top, self.rng.choice((0, 3, 3, 8, 8, 20)), 0, has_unnamed=False)
        self.number(top)
        nested = ""
        while depth < 2 and self.chance(0.3):
            nested += self.declaration(depth + 1)
        self.generics = outer
        if depth or params:
            if not any(part.startswith("Interface") for part, _ in self.scope):
                self.paths.append(list(self.scope))
        elif not is_later:
            self.structs.append(name)
        if depth == 0 and not params:
            self.fields[name] = top
        self.scope.pop()
        body = "".join(self.show(member) for member in top.inner)
        head = f"struct {name}{self.id()}{params}{self.annotations('struct')}"
        return f"{head} {{{self.comment()}{nested}{body}}}{self.comment()}"

    def members(self, parent: Member, count: int, depth: int, *, has_unnamed: bool) -> None:
        in_union = parent.kind == "union"
        for _ in range(count):
            roll = self.rng.random()
            if depth < 4 and roll < 0.15:
                member = Member("group", self.name("g"), ":group", self.annotations("group"))
                self.members(member, self.rng.randint(1, 4), depth + 1, has_unnamed=False)
            elif depth < 4 and roll < 0.3:
                unnamed = not in_union and not has_unnamed and self.chance(0.5)
                has_unnamed = has_unnamed or unnamed
                name = "" if unnamed else self.name("u")
                tail = "" if unnamed else self.annotations("union")
                member = Member("union", name, "union" if unnamed else ":union", tail)
                member.numbered = not unnamed and self.chance(0.2)
                self.members(member, self.rng.randint(2, 5), depth + 1, has_unnamed=True)
            else:
                type = self.type()
                applied = self.annotations("field")
                tail = f":{type}{self.default(type)}{applied};{self.comment()}"
                member = Member("field", self.name("f"), "", tail)
                member.type = type
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


def make_batch(
    seed: object, count: int, directory: Path, *, for_old_tools: bool = False
) -> list[str]:
    """Write schemas that import some of those before them; gives the files' names."""
    makers: list[tuple[str, SchemaMaker]] = []
    for number in range(count):
        own = random.Random(f"{seed}:{number}")
        near = makers[-8:]
        neighbours = own.sample(near, min(len(near), own.choice((0, 0, 0, 1, 2))))
        maker = SchemaMaker(f"{seed}:{number}:text", neighbours, for_old_tools=for_old_tools)
        name = f"random{number}.capnp"
        (directory / name).write_bytes(maker.text().encode())
        makers.append((name, maker))
    return [name for name, _ in makers]
