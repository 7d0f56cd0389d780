@0xd2b1c4a57f3e9a10;
# The messages of the codec rows.

struct Small {
  id @0 :UInt64;
  name @1 :Text;
  email @2 :Text;
  age @3 :UInt32;
  active @4 :Bool;
}

struct Row {
  id @0 :UInt64;
  name @1 :Text;
  score @2 :Float64;
}

struct Rows {
  rows @0 :List(Row);
}

struct Blob {
  data @0 :Data;
}

struct Nums {
  xs @0 :List(Float64);
}

struct Shorts {
  xs @0 :List(Int16);
}

struct Texts {
  xs @0 :List(Text);
}
