"""Messages with bytes changed, and everything that can be asked of one: for test_mutation.py.

Whatever the bytes say, each question is answered by a value or a CapnwireError, in bounded time.
"""

from __future__ import annotations

import contextlib
import faulthandler
import pickle
import random
import struct
import sys
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import capnwire
from capnwire.errors import CapnwireError
from capnwire.message.types import list_of
from capnwire.wire.framing import segments_to_bytes

SCHEMA = """@0xc52a6d25f0a9d1b7;
struct All {
  flag @0 :Bool = true; small @1 :Int8; half @2 :UInt16; word @3 :UInt32 = 7; long @4 :Int64;
  real @5 :Float32; double @6 :Float64 = 1.5; color @7 :Color; nothing @8 :Void;
  text @9 :Text; data @10 :Data = 0x"0102"; child @11 :All; children @12 :List(All);
  voids @13 :List(Void); flags @14 :List(Bool); bytes @15 :List(UInt8); shorts @16 :List(Int16);
  words @17 :List(UInt32); longs @18 :List(UInt64); doubles @19 :List(Float64);
  colors @20 :List(Color); texts @21 :List(Text); datas @22 :List(Data);
  matrix @23 :List(List(UInt16)); grid @24 :List(List(All)); any @25 :AnyPointer;
  anyStruct @26 :AnyStruct; anyList @27 :AnyList; capability @28 :Callable;
  capabilities @29 :List(Callable); box @30 :Box(Text); boxes @31 :List(Box(All));
  union {
    none @32 :Void; number @33 :UInt32; name @34 :Text;
    inner :group {
        x @35 :UInt16; items @36 :List(Point); which :union { a @37 :Void; b @38 :All; }
    }
    chosen @39 :List(Point);
  }
  point @40 :Point = (x = 3, label = "default"); points @41 :List(Point) = [(x = 1), (y = 2)];
  empty @42 :Empty; empties @43 :List(Empty);
}
struct Point { x @0 :Int32; y @1 :Int32; label @2 :Text; }
struct Empty {}
struct Box(T) { value @0 :T; other @1 :AnyPointer; next @2 :Box(T); }
enum Color { red @0; green @1; blue @2; }
interface Callable {}
"""

SECONDS = 10.0  # of the CPU for all questions about one mutant, under a sanitizer
VISITS = 400  # attributes looked at in one mutant: a cyclic one has no end


def load() -> ModuleType:
    return capnwire.load_text(SCHEMA, "all.capnp")


# ---------------------------------------------------------------- messages


def words(*items: int | bytes) -> bytes:
    return b"".join(
        item if isinstance(item, bytes) else struct.pack("<Q", item & 2**64 - 1) for item in items
    )


def samples(schema: ModuleType) -> dict[str, bytes]:
    """Messages that hold every kind of object, and every kind of pointer."""
    All = schema.All
    point = {"x": -1, "y": 2**31 - 1, "label": "p"}
    made = {
        "scalars": All.new_message(
            flag=False,
            small=-5,
            half=65535,
            word=8,
            long=-1,
            real=0.5,
            double=2.0,
            color="blue",
            number=3,
        ),
        "blobs": All.new_message(text="h\u00e9llo", data=b"\0\xff" * 5, name="n"),
        "lists": All.new_message(
            voids=[None] * 9,
            flags=[True, False, True] * 4,
            bytes=[1, 2, 3],
            shorts=[-1, 1],
            words=[5],
            longs=[2**64 - 1],
            doubles=[1.0, 2.0],
            colors=["red", "blue", 77],
        ),
        "pointer lists": All.new_message(
            texts=["a", "", "ccc"],
            datas=[b"", b"1"],
            matrix=[[1, 2], [], [3]],
            grid=[[{"word": 1}], []],
            empties=[{}] * 3,
            empty={},
        ),
        "structs": All.new_message(
            child={"word": 1, "child": {"text": "deep", "points": [point]}},
            point=point,
        ),
        "struct lists": All.new_message(children=[{"word": 1, "text": "x"}, {}, {"child": {}}]),
        "unions": All.new_message(
            inner={"x": 9, "items": [point, {}], "which": {"b": {"word": 3}}}
        ),
        "generics": All.new_message(
            box={"value": "v", "next": {"value": "w"}},
            boxes=[{"value": {"word": 1}, "next": {"value": {"text": "t"}}}],
        ),
    }
    pointed = All.new_message()
    pointed.any = All.new_message(word=5, texts=["in any"])
    pointed.anyStruct = schema.Point.new_message(x=1, label="l")
    pointed.anyList = All.new_message(children=[{"word": 2}, {}]).as_reader().children
    made["any pointers"] = pointed
    found = {name: message.to_bytes() for name, message in made.items()}
    scattered = All.new_message(
        1,
        text="far away",
        child={"text": "further"},
        children=[{"text": "z"}] * 2,
        texts=["p", "q"],
        matrix=[[1], [2]],
    )
    found["a segment an object"] = scattered.to_bytes()
    found["double far"] = double_far()
    found["older versions"] = older_versions()
    found["capabilities"] = capabilities()
    return found


ALL_DATA, ALL_POINTERS = 5, 29


def root_pointer(offset: int = 0) -> int:
    return offset << 2 | ALL_DATA << 32 | ALL_POINTERS << 48


def double_far() -> bytes:
    """A root and a Text, each through a landing pad in a segment between."""
    return segments_to_bytes(
        [
            words(1 << 3 | 6 | 2 << 32),  # root: double far, pad at 1 in segment 2
            words(*[0] * ALL_DATA, 3 << 3 | 6 | 2 << 32, *[0] * (ALL_POINTERS - 1)),
            words(
                0,
                0 << 3 | 2 | 1 << 32,
                root_pointer(),  # the root struct: word 0 of segment 1
                2 << 3 | 2 | 3 << 32,
                1 | 2 << 32 | 6 << 35,  # five letters and NUL: word 2 of segment 3
            ),
            words(0, 0, b"hello\0\0\0"),
        ]
    )


def older_versions() -> bytes:
    """Lists whose elements are smaller than the schema's, read as the schema's.

    children is a list of eight-byte values, boxes of pointers, bytes of bytes.
    """
    first = ALL_DATA + ALL_POINTERS + 1  # the word behind the root struct

    def list_at(index: int, target: int, size: int, count: int) -> int:
        return (target - (1 + ALL_DATA + index) - 1) << 2 | 1 | size << 32 | count << 35

    section = [0] * ALL_POINTERS
    section[3] = list_at(3, first, 5, 2)
    section[22] = list_at(22, first + 2, 6, 2)
    section[6] = list_at(6, first + 4, 2, 5)
    return segments_to_bytes(
        [words(root_pointer(), *[0] * ALL_DATA, *section, 1, 2, 0, 0, b"\1\2\3\4\5\0\0\0")]
    )


def capabilities() -> bytes:
    section = [0] * ALL_POINTERS
    for index in range(14, ALL_POINTERS):
        section[index] = 3 | index << 32
    return segments_to_bytes([words(root_pointer(), *[0] * ALL_DATA, *section)])


def mutants(data: bytes, rng: random.Random, per_byte: int) -> Iterator[bytes]:
    """Each byte changed to other values: all of them when `per_byte` is 255 or more."""
    for at in range(len(data)):
        values = (
            range(256)
            if per_byte >= 255
            else {
                0,
                0xFF,
                data[at] ^ 1 << rng.randrange(8),
                data[at] + 1 & 0xFF,
                data[at] - 1 & 0xFF,
                *(rng.randrange(256) for _ in range(per_byte)),
            }
        )
        chosen = list(values)
        if per_byte < 255:
            chosen = rng.sample(chosen, min(per_byte, len(chosen)))
        for value in chosen:
            if value != data[at]:
                yield data[:at] + bytes([value]) + data[at + 1 :]


def changed(data: bytes, rng: random.Random) -> bytes:
    """One to three bytes changed, or bytes cut out or put in."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at = rng.randrange(len(data))
        kind = rng.random()
        if kind < 0.8:
            value = rng.choice([0, 0xFF, rng.randrange(256), data[at] ^ 1 << rng.randrange(8)])
            data = data[:at] + bytes([value]) + data[at + 1 :]
        elif kind < 0.9:
            data = data[:at] + data[at + rng.choice([1, 2, 8]) :]
        else:
            data = data[:at] + rng.randbytes(rng.choice([1, 2, 8])) + data[at:]
        if not data:
            return b"\0"
    return data


def changed_again(data: bytes, rng: random.Random) -> bytes:
    """One more word of the message overwritten: a pointer of some kind, or anything."""
    at = rng.randrange(len(data) // 8) * 8
    word = rng.choice(
        [
            rng.randrange(2**64),
            rng.randrange(2**8),
            rng.randrange(4) | rng.randrange(32) << 2,
            rng.randrange(8) << 32
            | rng.randrange(64) << 35
            | 1
            | rng.randrange(-8, 40) << 2 & 0xFFFFFFFC,
            rng.randrange(4) << 32
            | rng.randrange(4) << 48
            | rng.randrange(-40, 40) << 2 & 0xFFFFFFFC,
            rng.randrange(3) << 32 | rng.randrange(40) << 3 | rng.choice([2, 6]),
        ]
    )
    return data[:at] + struct.pack("<Q", word) + data[at + 8 :]


# ---------------------------------------------------------------- questions


class Examiner:
    """Asks a message everything; anything but a value or a CapnwireError is raised."""

    def __init__(self, schema: ModuleType) -> None:
        self.schema = schema
        self.left = 0

    def ask(self, question: Callable[[], Any]) -> Any:
        """The answer, or the CapnwireError that it ended with."""
        try:
            return question()
        except CapnwireError as error:
            return error

    def examine(self, data: bytes, *, limit: int | None, building: bool) -> None:
        """Everything about one message."""
        faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
        started = time.process_time()
        try:
            reader = self.ask(lambda: self.schema.All.from_bytes(data, limit))
            if not isinstance(reader, CapnwireError):
                self.left = VISITS
                self.struct(reader)
                # Anew, as an explicit limit counts all that was read before.
                self.whole(lambda: self.schema.All.from_bytes(data, limit))
                if building:
                    self.build(data, limit)
        finally:
            faulthandler.cancel_dump_traceback_later()
        taken = time.process_time() - started
        assert taken < SECONDS, f"{taken:.1f} s for {data.hex()}"

    def whole(self, fresh: Callable[[], Any]) -> None:
        ask = self.ask
        ask(lambda: fresh().to_dict())
        ask(lambda: fresh().to_dict(verbose=True, encode_bytes_as_base64=True))
        ask(lambda: str(fresh()))
        assert isinstance(repr(fresh()), str)
        size = ask(lambda: fresh().total_size)
        copied = ask(lambda: fresh().as_builder())
        canonical = ask(lambda: fresh().to_canonical())
        digest = ask(lambda: hash(fresh()))
        assert isinstance(digest, CapnwireError) == isinstance(canonical, CapnwireError)
        if isinstance(canonical, CapnwireError):
            ask(lambda: fresh() == fresh())
        else:
            assert capnwire.is_canonical(canonical)
            assert fresh() == fresh()
        if isinstance(size, CapnwireError):
            return
        if not isinstance(copied, CapnwireError):
            # A root smaller than the schema's is copied and then grown.
            assert copied.total_size.word_count >= size.word_count
            ask(copied.to_dict)
            ask(lambda: str(copied))
            if not isinstance(canonical, CapnwireError):
                assert copied == fresh()
                assert copied.to_canonical() == canonical
                again = pickle.loads(pickle.dumps(fresh()))
                assert again.to_canonical() == canonical

    def struct(self, reader: Any) -> None:
        ask = self.ask
        ask(reader.which)
        reader._info.ensure()
        for name in reader._info.by_name:
            if self.left <= 0:
                return
            self.left -= 1
            ask(lambda name=name: reader.has(name))
            self.value(ask(lambda name=name: reader[name]))

    def value(self, value: Any) -> None:
        if isinstance(value, capnwire.Struct):
            self.struct(value)
        elif isinstance(value, (capnwire.ListReader, capnwire.ListBuilder)):
            self.list(value)
        elif isinstance(value, (capnwire.AnyPointerReader, capnwire.AnyPointerBuilder)):
            self.any(value)

    def list(self, items: Any) -> None:
        ask = self.ask
        for index in range(min(len(items), 8)):
            if self.left <= 0:
                return
            self.left -= 1
            self.value(ask(lambda index=index: items[index]))
        ask(lambda: items[-1] if len(items) else None)
        ask(lambda: items[:3])
        if len(items) < 1000:
            ask(items.to_list)
            ask(lambda: items == items)
            ask(lambda: repr(items))
        with contextlib.suppress(BufferError):
            ask(lambda: bytes(memoryview(items)))

    def any(self, pointer: Any) -> None:
        ask = self.ask
        for question in (
            lambda: pointer.is_null,
            pointer.as_text,
            pointer.as_data,
            pointer.as_interface,
            lambda: pointer.as_struct(self.schema.Point).label,
            lambda: pointer.as_struct(self.schema.Empty),
            lambda: pointer == pointer,
            lambda: repr(pointer),
        ):
            ask(question)
        for element in ("Void", "Bool", "UInt8", "Int64", "Text", "AnyPointer"):
            items = ask(
                lambda element=element: pointer.as_list(list_of(getattr(capnwire.types, element)))
            )
            if not isinstance(items, CapnwireError):
                ask(lambda items=items: [items[index] for index in range(min(3, len(items)))])
        found = ask(lambda: pointer.as_struct(self.schema.All))
        if not isinstance(found, CapnwireError) and self.left > 0:
            self.left -= 20
            self.struct(found)

    def build(self, data: bytes, limit: int | None) -> None:
        """A builder over a copy: what is read may be moved and rewritten."""
        ask = self.ask
        builder = ask(lambda: self.schema.All.from_bytes(data, limit, builder=True))
        if isinstance(builder, CapnwireError):
            return
        self.left = VISITS // 2
        self.struct(builder)
        orphans = []
        for name in ("child", "children", "texts", "any", "point", "matrix", "boxes", "data"):
            ask(lambda name=name: orphans.append((name, builder.disown(name))))  # noqa: F821
        for name, orphan in orphans[::2]:
            ask(orphan.get)
            ask(lambda name=name, orphan=orphan: builder.adopt(name, orphan))
        for name, value in (
            ("text", "new"),
            ("child", {"word": 3, "child": {"text": "q"}}),
            ("words", [1, 2]),
            ("inner", {"x": 1}),
            ("points", [{"x": 2}]),
            ("any", b"1"),
            ("chosen", [{"label": "c"}]),
        ):
            ask(lambda name=name, value=value: builder.__setitem__(name, value))
        for name in builder._info.by_name:
            ask(lambda name=name: builder.clear(name))
        del orphans
        ask(builder.to_bytes)
        ask(builder.to_dict)
