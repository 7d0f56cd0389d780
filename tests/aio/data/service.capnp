@0xd1f0a3b5c7e9f102;
# What the tests of sessions serve.

interface Calculator @0xd1f0a3b5c7e9f103 {
  add @0 (left :Int32, right :Int32) -> (value :Int32);
  divide @1 (left :Int32, right :Int32 = 1) -> (quotient :Int32, rest :Int32);
  counter @2 (start :Int32) -> (counter :Counter);
  apply @3 (operation :Operation, times :UInt32) -> (value :Int32);
  fail @4 (kind :Text, text :Text) -> ();
  wait @5 () -> (result :Counter);
  nested @6 () -> (outer :Outer);
  same @7 (object :Counter) -> (object :Counter);
  stamp @8 Stamp -> Stamp;
  peer @9 () -> (text :Text);
  any @10 (value :AnyPointer) -> (value :AnyPointer);
  blob @11 (data :Data) -> (data :Data);
  order @12 (tag :Text, slow :Bool) -> ();
  later @13 (tag :Text) -> ();
  list @14 (counters :List(Counter)) -> (counters :List(Counter), total :Int32);
  unserved @15 () -> ();
}

interface Counter @0xd1f0a3b5c7e9f104 {
  next @0 () -> (value :Int32);
  child @1 () -> (counter :Counter);
}

interface LoudCounter @0xd1f0a3b5c7e9f105 extends(Counter, Named) {
  shout @0 () -> (text :Text);
}

interface Named @0xd1f0a3b5c7e9f106 {
  name @0 () -> (name :Text);
}

interface Operation @0xd1f0a3b5c7e9f107 {
  run @0 (value :Int32) -> (value :Int32);
}

struct Stamp @0xd1f0a3b5c7e9f108 {
  text @0 :Text;
  number @1 :UInt32;
}

struct Outer @0xd1f0a3b5c7e9f109 {
  inner :group {
    counter @0 :Counter;
    name @1 :Text;
  }
}

interface Sink @0xd1f0a3b5c7e9f10a {
  write @0 (data :Data) -> stream;
  done @1 () -> (bytes :UInt64, most :UInt32);
}

interface Store @0xd1f0a3b5c7e9f10b (Value) {
  get @0 () -> (value :Value);
  put @1 (value :Value) -> ();
  map @2 [Other] (other :Other) -> (other :Other, value :Value);
}

struct Holder @0xd1f0a3b5c7e9f10c {
  texts @0 :Store(Text);
  stamps @1 :Store(Stamp);
}

interface Stores @0xd1f0a3b5c7e9f10d {
  stores @0 () -> Holder;
}
