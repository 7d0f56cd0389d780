@0xc3f6a1d0b2e4f616;
# The state of a model: large sparse lists, as nupic's.

struct Random { seed @0 :UInt64; state @1 :List(Int32); }
struct Cells {
  columns @0 :UInt32; activeCells @1 :List(UInt32); permanences @2 :List(Segment); random @3 :Random;
  name @4 :Text; threshold @5 :Float32; verbosity @6 :Int16; learning @7 :Bool;
  struct Segment { cell @0 :UInt32; synapses @1 :List(Synapse); }
  struct Synapse { presynaptic @0 :UInt32; permanence @1 :Float32; }
}
struct Region { cells @0 :Cells; params @1 :List(Param); struct Param { key @0 :Text; value @1 :Text; } }
