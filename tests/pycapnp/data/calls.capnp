@0xb0c6f0c5a5b6d1e2;

interface Store {
  put @0 (n :Int32) -> stream;
  count @1 () -> (n :Int32);
  open @2 () -> (item :Item, held :Held);
  keep @3 (any :Capability) -> (any :Capability);
  wait @4 () -> ();
  deep @5 (levels :Int32) -> (chain :Chain);
  add @6 (left :Int32, right :Int32 = 5) -> (sum :Int32);
  nameOf @7 (item :Item) -> (name :Text);
  tail @8 (item :Item) -> (name :Text);
  fail @9 (text :Text) -> ();
}

interface Item { name @0 () -> (name :Text); }

struct Held { item @0 :Item; any @1 :Capability; number @2 :Int32; group :group { item @3 :Item; } }

struct Chain { next @0 :Chain; }
