@0xa93d51e7c0b8264f;
# What a small fleet of machines reports.

struct Record {
  id @0 :UInt64;
  machine @1 :Text;
  time @2 :Float64;
  level @3 :Level;
  position @4 :Position;
  samples @5 :List(Float32);

  union {
    idle @6 :Void;
    reading @7 :Reading;
    picture @8 :Data;
    fault @9 :Fault;
  }

  enum Level {
    debug @0;
    info @1;
    warning @2;
    critical @3;
  }
}

struct Position {
  latitude @0 :Float64;
  longitude @1 :Float64;
}

struct Reading {
  temperature @0 :Float32;
  pressure @1 :Float32;
  rounds @2 :UInt32;
}

struct Fault {
  code @0 :UInt16;
  text @1 :Text;
}
