@0xc3f6a1d0b2e4f613;
# Channels that carry anything between components, as the flow-based programs of MAS.

struct IP { attributes @0 :List(KV); content @1 :AnyPointer; struct KV { key @0 :Text; value @1 :AnyPointer; } }
struct Weather { day @0 :UInt32; temperature @1 :Float64; station @2 :Text; }

interface Identifiable { info @0 () -> (id :Text, name :Text); }

interface Channel extends(Identifiable) {
  struct Msg { union { value @0 :AnyPointer; done @1 :Void; } }
  interface Reader { read @0 () -> Msg; close @1 (); }
  interface Writer { write @0 Msg; close @1 (); }
  endpoints @0 () -> (reader :Reader, writer :Writer);
}

interface Model { run @0 (weather :AnyPointer, rest :Channel.Reader) -> (sum :Float64, days :UInt32); }
