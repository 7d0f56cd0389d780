@0xc3f6a1d0b2e4f612;
# A device of an FPGA: flat lists of strings, tiles and sites, with annotations that say what refers to what.

annotation stringRef(field) :StringRef;
struct StringRef { type @0 :Kind; field @1 :Text; enum Kind { rootValue @0; parentValue @1; } }

struct Device {
  name @0 :Text;
  strList @1 :List(Text);
  tileTypes @2 :List(TileType);
  tiles @3 :List(Tile);
  nodes @4 :List(Node);
  struct TileType {
    name @0 :UInt32 $stringRef(type = rootValue, field = "strList");
    wires @1 :List(UInt32);
    pips @2 :List(Pip);
  }
  struct Pip {
    wire0 @0 :UInt32; wire1 @1 :UInt32; directional @2 :Bool;
    union { conventional @3 :Void; pseudoCells @4 :List(Cell); }
  }
  struct Cell { bel @0 :UInt32; pins @1 :List(UInt32); }
  struct Tile { name @0 :UInt32; type @1 :UInt32; row @2 :UInt16; col @3 :UInt16; }
  struct Node { wires @0 :List(UInt32); }
}
