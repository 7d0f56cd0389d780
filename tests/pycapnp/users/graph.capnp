@0xc3f6a1d0b2e4f615;
# A graph of definitions, as coq-tactician's data.

struct Graph { nodes @0 :List(Node); edges @1 :List(Edge); root @2 :UInt32; }
struct Node {
  label :union {
    root @0 :Void; definition @1 :Definition; rel @2 :Void; app @3 :Void; int @4 :UInt64; text @5 :Text;
  }
  childrenIndex @6 :UInt32; childrenCount @7 :UInt16;
}
struct Definition { hash @0 :UInt64; name @1 :Text; union { axiom @2 :Void; proof @3 :List(Step); } }
struct Step { tactic @0 :Text; outcome @1 :List(UInt32); }
struct Edge { label @0 :Label; target @1 :UInt32; enum Label { sort @0; appFun @1; appArg @2; } }

struct Request { union { initialize @0 :Graph; predict @1 :Graph; synchronize @2 :UInt64; } }
struct Response { union { predictions @0 :List(Prediction); synchronized @1 :UInt64; none @2 :Void; } }
struct Prediction { tactic @0 :Text; confidence @1 :Float64; arguments @2 :List(UInt32); }

const protocolVersion :Int64 = 15;
