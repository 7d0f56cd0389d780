"""Schemas that use one feature of the language each; not a test.

Each is a mapping of file names to texts, the first of which is compiled.
"""

from __future__ import annotations

_LITERALS = r"""
const voidValue :Void = void;
const yes :Bool = true;
const no :Bool = false;
const int8Low :Int8 = -128;
const int8High :Int8 = 127;
const hex :Int16 = -0x7fff;
const octal :Int32 = 0755;
const int64Low :Int64 = -9223372036854775808;
const uint64High :UInt64 = 18446744073709551615;
const wrapped :UInt64 = 100000000000000000000;
const spaced :Int8 = - 5;
const minusZero :Int8 = -0;
const floatFromInt :Float32 = 7;
const floatFromNegative :Float64 = -7;
const big :Float64 = 18446744073709551615;
const dotted :Float32 = 1.;
const exponent :Float64 = 1e-300;
const upper :Float64 = 2E+5;
const tiny :Float32 = 1e-45;
const tooBig :Float32 = 1e39;
const huge :Float64 = 1e400;
const infinite :Float32 = inf;
const negativeInfinite :Float64 = -inf;
const notANumber :Float32 = nan;
const notANumber64 :Float64 = nan;
const text :Text = "plain";
const escapes :Text = "\a\b\f\n\r\t\v\'\"\\\?\x41\101\0\7";
const joined :Text = "a" "b"
  "c";
const empty :Text = "";
const backtick :Text = `raw "text" \n
;
const backticks :Text =
  `first
  `second
;
const unicodeText :Text = "ünï ☃";
const data :Data = 0x"00 01
  ff aB";
const dataFromText :Data = "text";
const paddedHex :Data = 0x" 01 02 ";
const parenthesised :Int8 = (((1)));
const list :List(Int8) = [1, 2, 3,];
const emptyList :List(Text) = [];
const bits :List(Bool) = [true, false, true];
const voids :List(Void) = [void, void];
const nested :List(List(Text)) = [["a", ""], [], ["b"]];
const blobs :List(Data) = ["a", 0x"00"];
const floats :List(Float32) = [1, nan, -inf];
"""

_UNIONS = """
struct Named { a @0 :Int8; u :union { b @1 :Int8; c @2 :Text; g :group { d @3 :Int16; } } }
struct Unnamed { union { a @0 :Void; b @1 :Int32; } c @2 :Int8; }
struct Numbered { u @1! :union { a @0 :UInt8; b @2 :UInt32; } }
struct NumberedFirst { u @0! :union { a @1 :UInt8; b @2 :UInt32; } }
struct Shuffled { union { a @3 :Text; b @0 :Int8; } c @2 :Int64; d @1 :Bool;
  v :union { e @4 :Void; f @6 :Void; } g @5 :Int8; }
struct Grouped { g :group { a @0 :Int8; union { b @2 :Int8; c @3 :Text; } } h :group {
  d @1 :Int64; } }
struct Deep { u :union { v :union { a @0 :Int8; b @1 :Int16; } w :group { x :union { c @2 :Void;
  d @3 :List(Deep); } } } }
struct Voids { a @0 :Void; union { b @1 :Void; c @2 :Void; } d @3 :UInt16; }
struct Keywords { struct @0 :Int8; union @1 :Int8; import @2 :Int8; true @3 :Bool; void @4 :Void;
  stream @5 :Text; embed @6 :Text; group @7 :Int8; using @8 :Int8; enum @9 :Int8; }
"""

_GENERICS = """
struct Box(T) { value @0 :T; struct Inner(U) { t @0 :T; u @1 :U; } inner @1 :Inner(Text);
  same @2 :Inner(T); own @3 :Box(T); plain @4 :Box; enum E { e @0; } e @5 :E;
  using Alias = Inner(Data); using Open = Inner; alias @6 :Alias; open @7 :Open(List(Int8));
  group :group { g @8 :T; union { h @9 :T; i @10 :Void; } } const k :Box(Text) = (value = "k"); }
struct Three(A, B, C) { list @0 :List(Box(C)); inner @1 :Box(A).Inner(B);
  lists @2 :List(List(Box(B))); }
struct Use { a @0 :Box(Text); b @1 :Box(Box(Data)).Inner(List(Text)); c @2 :Box(Use).Alias;
  d @3 :Box(Text).Open(Data); e @4 :Box.Inner; f @5 :Box(I(Text)).E = e; g @6 :Three(Text,
  Data, Use);
  h @7 :Box(AnyPointer); }
interface I(T) { one @0 (a :T) -> (b :Box(T)); two @1 [P, Q] (a :P, b :Q, c :T) -> Box(P);
  three @2 [P] Box(P) -> (d :Box(P).Inner(T)); four @3 Box(T).Inner(Text) -> stream;
  struct Nested { x @0 :T; } five @4 Nested -> Nested; interface J(U) extends (I(U)) {} }
interface K extends (I(Text), I(Box(Data)).J(Text)) { six @0 I(Text).Nested; }
const boxed :Box(Text) = (value = "a", inner = (t = "b", u = "c"), own = (value = "d"));
const inner :Box(Text).Inner(List(Int8)) = (t = "t", u = [1, 2]);
const shortBox :Box(Text) = "short";
const dataBox :Box(Data) = (value = 0x"00");
annotation note(*) :Box(Text);
annotation marker @0xb0b0b0b0b0b0b0b7 (struct) :Void;
struct Noted $note(value = "n", same = (u = "s")) $marker {}
struct Scope(T) { annotation inside(field) :T; annotation counted(struct) :Int8; }
struct Annotated $Scope(Text).counted(5) { a @0 :Int8 $Scope(Text).inside("x"); }
"""

_VALUES = """
enum Color { red @0; green @1; }
struct Point { x @0 :Int32 = 5; y @1 :Text = "why"; color @2 :Color = green;
  union { less @3 :Void; more @4 :Point; } g :group { a @5 :UInt8; b @6 :List(Point); }
  data @7 :Data = 0x"0a0b"; list @8 :List(UInt16) = [1, 2]; any @9 :AnyPointer; s @10 :AnyStruct;
  l @11 :AnyList; i @12 :Face; self @13 :Point = (x = 1, self = (y = "deep"));
  colors @14 :List(Color)
  = [green, red]; u :union { p @15 :Float32 = 1.5; q @16 :List(Text) = ["", "a"]; } }
interface Face { call @0 (p :Point = (x = 7), n :Point = null, t :Text = null, d :Data = "d",
  a :AnyPointer = null, i :Face = null, l :List(Int8) = null, e :Color = green); }
struct Empty {}
struct OneGroup { g :group { v @0 :Int16; } }
const first :Point = 9;
const grouped :OneGroup = (g = 3);
const point :Point = (x = -1, color = green, more = (x = 2, more = (x = 3)), g = (a = 1,
  b = [5, (y = "e"),
  ()]), any = .words, s = .origin, l = .words, u = (q = ["z"]));
const origin :Point = ();
const void2 :Point = (less = void);
const words :List(Text) = ["a", .point.y2, "c"];
"""
_VALUES = _VALUES.replace('"a", .point.y2, "c"', '"a", .word, "c"') + """
const word :Text = "word";
const empty :Empty = ();
const empties :List(Empty) = [(), ()];
const any :AnyPointer = .point;
const anyList :AnyList = .words;
const anyStruct :AnyStruct = .origin;
const copy :Point = .point;
const number :Int8 = .otherNumber;
const otherNumber :Int8 = 3;
const fromEnum :Int32 = .color;
const color :Color = green;
const holder :Int8 = Holder.inside;
struct Holder { const inside :Int8 = 1; const list :List(Int8) = [.number, Holder.inside]; }
struct Bits { a @0 :Bool = true; b @1 :Bool; c @2 :Int64 = -1; d @3 :Float64 = nan;
  e @4 :Float32 = -0.0; }
"""

_ANNOTATIONS = """
annotation onFile(file) :Text;
annotation onConst(const) :Int8;
annotation onEnum(enum) :Void;
annotation onEnumerant(enumerant) :Text;
annotation onStruct(struct) :Thing;
annotation onField(field) :List(Text);
annotation onUnion(union) :Kind;
annotation onGroup(group) :Float64;
annotation onInterface(interface) :Bool;
annotation onMethod(method) :Data;
annotation onParam(param) :UInt64;
annotation onAnnotation(annotation) :Void $onAnnotation2;
annotation onAnnotation2(annotation, struct, field) :Void;
annotation none() :Void;
annotation anywhere(*) :AnyPointer;
$onFile("file");
$import "other.capnp".imported("x");
struct Thing { a @0 :Int8; b @1 :Text; }
enum Kind $onEnum { x @0 $onEnumerant("e"); y @1; }
const k :Int8 = 1 $onConst(2);
const thing :Thing = (a = 1);
struct S $onStruct(a = 1, b = "b") $onAnnotation2 { f @0 :Int8 = 2 $onField(["a"]) $onAnnotation2;
  u :union $onUnion(y) { a @1 :Int8 $anywhere(.thing); b @2 :Int8; } g :group $onGroup(1.5) {
  h @3 :Int8; } }
interface I $onInterface(true) {
  m @0 (p :Int8 $onParam(5)) -> (r :Int8 $onParam(0x10)) $onMethod("m"); }
annotation last(*) :Void $onAnnotation;
"""

FEATURES: dict[str, dict[str, str | bytes]] = {
    "literals": {"a.capnp": _LITERALS},
    "unions and groups": {"a.capnp": _UNIONS},
    "generics": {"a.capnp": _GENERICS},
    "values": {"a.capnp": _VALUES},
    "annotations": {
        "a.capnp": _ANNOTATIONS,
        "other.capnp": "@0xb0b0b0b0b0b0b0b1; annotation imported(file) :Text;",
    },
    "file with a byte order mark and carriage returns": {
        "a.capnp": b"\xef\xbb\xbf@0xb0b0b0b0b0b0b0b0;\r\n# doc\r\nstruct A { # of A\r\n"
        b" a @0 :Int8;\r\n\r\n# no\r\n}\r\n"
    },
    "doc comments": {
        "a.capnp": """# not the doc
@0xb0b0b0b0b0b0b0b0; # file doc
  #  more
# and more

# not this
struct A { # of A
  # second line
  a @0 :Int8; # of a
  b @1 :Int8;

  # not of b
  c @2 :Int8;
  # of c
  u :union { # of u
    x @3 :Int8; y @4 :Int8; # of y
  } # not of u
  v :union { x @5 :Int8; y @6 :Int8;
  }
  # of v
  union { # of nothing
   p @7 :Int8; q @8 :Int8; }
  g :group { #of g
    z @9 :Text; } struct N {} # of N
} # not of A
enum E { a @0; # of a
  b @1; #
  # after an empty line
} # of E
interface I { # of I
  m @0 () -> (); # of m
  n @1 (a :Int8) -> A;
}
const k :Int8 = 1; # of k
annotation an(*) :Void; # of an
using X = A; # of X
#last"""
    },
    "names": {
        "a.capnp": """
using B = import "b.capnp"; using B.Top; using B.Top.Inner; using Chain = B.Link;
  using Short = A.Inner;
struct A { struct Inner { x @0 :Inner; y @1 :A.Inner; z @2 : .A; w @3 :Outer; using Here = .Outer;
  v @4 :Here; } a @0 :Inner; b @1 :B.Top; c @2 :Top.Inner; d @3 :Chain;
  e @4 :import "b.capnp".Top.Inner;
  f @5 :Short; using Int8 = Text; g @6 :Int8; h @7 :Short.Here; enum Int16 { z @0; } i @8 :Int16; }
struct Outer { const inner :Int8 = 1; a @0 :Int8 = .Outer.inner; }
const k :Int8 = import "b.capnp".k; const l :Int8 = B.Top.k;
using import "b.capnp".An; struct Text2 { t @0 :An.Deep; }
""",
        "b.capnp": """@0xb0b0b0b0b0b0b0b1;
struct Top { struct Inner { a @0 :Int8; } const k :Int8 = 2; }
using Link = Top.Inner; const k :Int8 = 5; struct An { struct Deep { x @0 :Top; } } struct Unused {}
using import "c/c.capnp".Far; struct UsesFar { f @0 :Far; }""",
        "c/c.capnp": '@0xb0b0b0b0b0b0b0b2; struct Far { b @0 :import "../b.capnp".Top; }',
    },
    "imports into each other": {
        "a.capnp": 'using B = import "b.capnp"; struct A { b @0 :B.B; c @1 :List(B.C);'
        " e @2 :B.E = y; }",
        "b.capnp": '@0xb0b0b0b0b0b0b0b1; using A = import "a.capnp"; struct B { a @0 :A.A; }'
        "struct C { d @0 :D; } struct D {} struct Unused {} enum E { x @0; y @1; }",
    },
    "imports from the import path": {
        "a.capnp": 'using Schema = import "/capnp/schema.capnp";'
        'using Cxx = import "/capnp/c++.capnp";'
        '$Cxx.namespace("n"); struct A { n @0 :Schema.Node;'
        ' t @1 :import "/capnp/rpc.capnp".Exception.Type; }'
        "const node :Schema.Node = (displayName = \"d\", struct = (dataWordCount = 1, fields = ["
        "(name = \"f\", slot = (type = (list = (elementType = (int8 = void)))))]));"
    },
    "interfaces": {
        "a.capnp": """
interface Base { a @0 (); b @2 (x :Int8, y :Text) -> (z :Base); c @1 Args -> Args; }
interface Derived extends (Base, Other) { a @0 () -> stream; }
interface Other { struct Deep { o @0 :Other; } deep @0 Deep; }
struct Args { base @0 :Base; cap @1 :Capability; list @2 :List(Base); }
interface Implicit { f @0 [T] (a :T) -> (b :List(Other)); g @1 [T, U] (a :T, b :U) -> Pair(T, U); }
struct Pair(A, B) { a @0 :A; b @1 :B; }
"""
    },
    "given ids": {
        "a.capnp": """struct A @0xb0b0b0b0b0b0b0b1 { struct B {} enum C @0xb0b0b0b0b0b0b0b2 {} }
interface I @0xb0b0b0b0b0b0b0b3 { m @0 () -> (); } const k @0xb0b0b0b0b0b0b0b4 :Int8 = 1;
annotation n @0xb0b0b0b0b0b0b0b5 (*) :Void; enum E @0xb0b0b0b0b0b0b0b6 { x @1; y @0; }"""
    },
    "embedded files": {
        "a.capnp": 'const t :Text = embed "t.txt"; const d :Data = embed "t.txt";'
        " struct S { a @0 :Text;"
        ' b @1 :Int64; } const s :S = embed "s.bin"; struct H { s @0 :S = embed "s.bin"; '
        'l @1 :List(S); } const h :H = (s = embed "s.bin", l = [embed "s.bin", (b = 1)]);',
        "t.txt": "line\nline\n",
        "s.bin": bytes.fromhex(
            "0000000004000000 0000000001000100 0700000000000000 0100000012000000 6100000000000000"
        ),
    },
    "empty brackets behind what takes no parameters": {
        "a.capnp": """
struct A { x @0 :Int32; struct C { z @0 :A(); } }
struct B { a @0 :A(); b @1 :A()(); c @2 :A().C(); d @3 :List(A()); e @4 :G(A()).H(); }
struct G(T) { struct H { t @0 :T; } }
const k :A() = (x = 1);
interface I { m @0 A -> A (); }
"""
    },
    "annotated constants used within values": {
        "a.capnp": """
annotation point(*) :P;
struct P { x @0 :Int16; n @1 :Text; }
struct S {
  a @0 :P = (x = .k) $point(.origin);
  b @1 :Int16 = .later;
  struct T { const inner :Int16 = 3 $point(x = .later, n = .text); }
}
const k :Int16 = S.T.inner $point(.origin);
const later :Int16 = 7 $point(n = "later");
const text :Text = "t" $point(.other);
const other :P = (x = 1) $point(x = 2);
const origin :P = (x = .later, n = .text);
"""
    },
    "dots in the file name": {"a.b.capnp": "struct A { struct B {} }"},
    "empty file": {"a.capnp": ""},
}
for _files in FEATURES.values():
    _main = next(iter(_files))
    _text = _files[_main]
    if isinstance(_text, str) and "@0xb0b0b0b0b0b0b0b0;" not in _text:
        _files[_main] = f"@0xb0b0b0b0b0b0b0b0;\n{_text}"
