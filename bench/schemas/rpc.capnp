@0xe3b1c7d5a9f80261;
# What the RPC rows call.

interface Echo @0xe3b1c7d5a9f80262 {
  echo @0 (n :UInt32) -> (n :UInt32);
  later @1 (n :UInt32) -> (n :UInt32);     # the same, served by a coroutine
  bytes @2 (data :Data) -> (data :Data);
  text @3 (text :Text) -> (text :Text);
  block @4 () -> ();
  open @5 () -> ();
}
