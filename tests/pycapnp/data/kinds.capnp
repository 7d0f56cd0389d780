@0xb0c6f0c5a5b6d1e1;

enum Color { red @0; green @1; blue @2; }

struct Leaf { number @0 :Int32; text @1 :Text; }

struct Node { value @0 :UInt32; next @1 :Node; children @2 :List(Node); }

struct Box(T) { value @0 :T; }

struct Boxes { text @0 :Box(Text); leaf @1 :Box(Leaf); }

struct Names { schema @0 :Text; copy @1 :UInt32; which @2 :UInt8; write @3 :Text; get @4 :Int8; }

struct Choice {
  union {
    none @0 :Void;
    number @1 :Int64;
    leaf @2 :Leaf;
    words @3 :List(Text);
    pair :group { left @4 :Int32; right @5 :Text; }
  }
}

struct Event {
  time @0 :UInt64;
  union {
    leaf @1 :Leaf;
    leaves @2 :List(Leaf);
    color @3 :Color;
  }
}

interface Echo { echo @0 (text :Text) -> (text :Text); }

struct Kinds {
  bool @0 :Bool;
  i8 @1 :Int8; i16 @2 :Int16; i32 @3 :Int32; i64 @4 :Int64;
  u8 @5 :UInt8; u16 @6 :UInt16; u32 @7 :UInt32; u64 @8 :UInt64;
  f32 @9 :Float32; f64 @10 :Float64;
  text @11 :Text; data @12 :Data; color @13 :Color; leaf @14 :Leaf; void @15 :Void;
  shorts @16 :List(Int16); texts @17 :List(Text); datas @18 :List(Data); leaves @19 :List(Leaf);
  colors @20 :List(Color); bools @21 :List(Bool); floats @22 :List(Float32);
  nested @23 :List(List(Int32)); any @24 :AnyPointer; echo @25 :Echo;
  group :group { number @26 :Int32; word @27 :Text = "given"; }
  choice :union { one @28 :Int32; two @29 :Text; }
  some @30 :List(UInt64) = [1, 2, 3];
  preset @31 :Leaf = (number = 7, text = "seven");
}

const leaf :Leaf = (number = 5, text = "five");
const colors :List(Color) = [blue, red];
const favourite :Color = green;
const answer :Int32 = 42;
