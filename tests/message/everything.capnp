@0x9c4a3f2b1d0e8f77;

struct Scalars {
  nothing @0 :Void;
  bool @1 :Bool;
  int8 @2 :Int8;
  int16 @3 :Int16;
  int32 @4 :Int32;
  int64 @5 :Int64;
  uint8 @6 :UInt8;
  uint16 @7 :UInt16;
  uint32 @8 :UInt32;
  uint64 @9 :UInt64;
  float32 @10 :Float32;
  float64 @11 :Float64;
  color @12 :Color;
}

enum Color { red @0; green @1; blue @2; lightGray @3; }

struct Defaults {
  bool @0 :Bool = true;
  int8 @1 :Int8 = -5;
  int16 @2 :Int16 = -12345;
  int32 @3 :Int32 = -123456789;
  int64 @4 :Int64 = -9223372036854775808;
  uint8 @5 :UInt8 = 255;
  uint16 @6 :UInt16 = 54321;
  uint32 @7 :UInt32 = 4000000000;
  uint64 @8 :UInt64 = 18446744073709551615;
  float32 @9 :Float32 = 1.5;
  float64 @10 :Float64 = -1e100;
  color @11 :Color = blue;
  text @12 :Text = "default";
  data @13 :Data = 0x"01 02 ff";
  point @14 :Point = (x = 1, label = "origin");
  numbers @15 :List(Int32) = [1, -2, 3];
  texts @16 :List(Text) = ["a", "b"];
  points @17 :List(Point) = [(x = 5), (label = "p")];
  notANumber @18 :Float64 = nan;
}

struct Point {
  x @0 :Int32;
  y @1 :Int32;
  label @2 :Text;
}

struct Tree {
  value @0 :Int32;
  left @1 :Tree;
  right @2 :Tree;
  children @3 :List(Tree);
}

struct Lists {
  voids @0 :List(Void);
  bools @1 :List(Bool);
  int8s @2 :List(Int8);
  int16s @3 :List(Int16);
  int32s @4 :List(Int32);
  int64s @5 :List(Int64);
  uint8s @6 :List(UInt8);
  uint16s @7 :List(UInt16);
  uint32s @8 :List(UInt32);
  uint64s @9 :List(UInt64);
  float32s @10 :List(Float32);
  float64s @11 :List(Float64);
  texts @12 :List(Text);
  datas @13 :List(Data);
  colors @14 :List(Color);
  points @15 :List(Point);
  rows @16 :List(List(Int16));
  deep @17 :List(List(List(Text)));
  pointRows @18 :List(List(Point));
  empties @19 :List(Empty);
}

struct Empty {}

struct Blobs {
  text @0 :Text;
  data @1 :Data;
  other @2 :Text;
}

struct Groups {
  before @0 :Int32;
  place :group {
    street @1 :Text;
    number @2 :UInt16 = 7;
    deeper :group { flag @3 :Bool; tree @4 :Tree; }
  }
  after @5 :Text;
}

struct Unions {
  common @0 :Text;
  union {
    nothing @1 :Void;
    number @2 :Int32;
    text @3 :Text;
    point @4 :Point;
    numbers @5 :List(Int32);
    pair :group { first @10 :Text; second @11 :Int64; }
  }
  named :union {
    flag @6 :Bool;
    label @7 :Text;
    inner :union { a @8 :UInt16; b @9 :UInt16; }
  }
}

struct Methods {
  copy @0 :Text;
  which @1 :Int32;
  schema @2 :Point;
  init @3 :List(Int16);
  write @4 :Data;
  union { toDict @5 :Void; clear @6 :Bool; }
  reader :group { total @7 :Int8; }
}

struct Box(T) {
  value @0 :T;
  next @1 :Box(T);
  struct Inner(U) { outer @0 :T; own @1 :U; }
  note @2 :Text;
}

struct Boxes {
  ofText @0 :Box(Text);
  ofPoint @1 :Box(Point);
  ofList @2 :Box(List(UInt16));
  inner @3 :Box(Text).Inner(Data);
  plain @4 :Box;
  ofBox @5 :Box(Box(Data));
}

struct Anything {
  any @0 :AnyPointer;
  anyStruct @1 :AnyStruct;
  anyList @2 :AnyList;
  capability @3 :Capability;
  service @4 :Service;
  services @5 :List(Service);
  union { none @6 :Void; some @7 :AnyPointer; }
}

interface Service {
  struct Request { key @0 :Text; }
  const limit :UInt32 = 99;
  enum Mode { slow @0; fast @1; }
  get @0 Request -> (value :Data);
  put @1 (key :Text, value :Data) -> ();
}

interface Better extends(Service) {
  list @0 (mode :Service.Mode) -> (keys :List(Text));
}

annotation title(*) :Text;
annotation weight(*) :Float64;
annotation spot(*) :Point;

struct Annotated $title("a struct") $spot(x = 3, label = "s") {
  field @0 :Int8 $weight(2.5) $title("a field");
  const inside :Int8 = -3;
}

const answer :Int32 = 42;
const negative :Int64 = -5000000000;
const yes :Bool = true;
const nothing :Void = void;
const tau :Float64 = 6.5;
const half :Float32 = 0.5;
const greeting :Text = "hello ☃";
const bytes :Data = 0x"00 ff";
const favourite :Color = green;
const primes :List(UInt16) = [2, 3, 5];
const home :Point = (x = 1, y = -1, label = "home");
const matrix :List(List(Point)) = [[(x = 1)], []];

struct Old {
  a @0 :Int32;
  b @1 :Text;
  numbers @2 :List(UInt16);
  texts @3 :List(Text);
  voids @4 :List(Void);
  items @5 :List(OldItem);
  child @6 :Old;
}
struct OldItem { x @0 :Int32; name @1 :Text; }

struct New {
  a @0 :Int32;
  b @1 :Text;
  numbers @2 :List(Number);
  texts @3 :List(Labelled);
  voids @4 :List(Number);
  items @5 :List(NewItem);
  child @6 :New;
  c @7 :Int64 = 77;
  d @8 :Text = "new";
  union { e @9 :UInt8; f @10 :Text; }
}
struct Number { value @0 :UInt16; extra @1 :Int64 = 9; more @2 :Text; }
struct Labelled { text @0 :Text; weight @1 :Float64 = 1; }
struct NewItem { x @0 :Int32; name @1 :Text; y @2 :Int64 = 5; list @3 :List(Int8); }
