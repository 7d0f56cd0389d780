@0xbf5147bb5cf7b8d1;
# The schema that the stubs of the typing tests are made from.

using Schema = import "/capnp/schema.capnp";
using Json = import "/capnp/compat/json.capnp";
using Other = import "other.capnp";

struct Person {
  # A person.
  name @0 :Text;
  # Its name.
  age @1 :UInt8;
  tags @2 :List(Text);
  color @3 :Color;
  union {
    none @4 :Void;
    nick @5 :Text;
    boss @6 :Person;
    inside :group { p @20 :Int8; q @21 :Text; }
  }
  g :group { x @7 :Int32; y @8 :Text; }
  any @9 :AnyPointer;
  calc @10 :Calculator;
  data @11 :Data;
  f @12 :Float32;
  friends @13 :List(Person);
  box @14 :Box(Text);
  matrix @15 :List(List(Float64));
  colors @16 :List(Color);
  phone @17 :Phone;
  topColor @18 : .Color;
  pair @19 :Box(Person).Inner(Text);
  flag @22 :Bool;
  other @23 :Other.Thing;
  node @24 :Schema.Node;
  json @25 :Json.Value;
  shelf @26 :Other.Shelf(Text, Person);
  store @27 :Store(Text, Person);

  struct Phone {
    number @0 :Text;
    import @1 :Text;
    copy @2 :Int32;
    int @3 :Int8;
    property @4 :Text;
    str @5 :Text;
  }
  enum Color { dark @0; light @1; }
}

enum Color { red @0; green @1; name @2; import @3; }

struct Box(T) {
  it @0 :T;
  more :group { x @1 :T; y @2 :Int8; }
  union { v @3 :Void; w @4 :T; }
  struct Inner(U) { t @0 :T; u @1 :U; }
  next @5 :Box(T);
  class @6 :List(Box(T));
  calc @7 :Calculator;
}

struct Outer { struct Map(K, V) { key @0 :K; value @1 :V; } }

interface Store(K, V) extends (Base) {
  get @0 (key :K) -> (value :V, box :Box(V));
  put @1 (key :K, value :V) -> ();
  open @2 () -> (store :Store(K, V));
  keep @3 Box(V) -> Box(K);
}

interface Texts extends (Store(Text, Text)) {}

interface Base { ping @0 () -> (); }

interface Calculator extends (Base) {
  # Calculates.
  add @0 (left :Int64, right :Int64) -> (sum :Int64);
  # Adds.
  div @1 (a :Int64, b :Int64) -> (q :Int64, r :Int64);
  person @2 (p :Person) -> Person;
  sub @3 () -> (calc :Calculator, node :Person);
  write @4 (data :Data) -> stream;
  byStruct @5 Person -> (box :Box(Person));
  interface Nested { m @0 (); }
}

const preset :Person = (name = "x");
const limit :Int32 = 5;
const sizes :List(UInt8) = [1, 2];
annotation mark(*) :Text;
