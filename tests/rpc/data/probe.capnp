@0xbf5147b1c2a9f6d1;
# The interface of the recorded conversations.

using Cxx = import "/capnp/c++.capnp";

interface Probe @0x9a11c0de00000001 {
  echo @0 (n :UInt32) -> (n :UInt32);
  getCap @1 () -> (cap :Probe);               # the server's one child object, the same reference every time
  getFresh @2 () -> (cap :Probe);             # a new object every time
  hold @3 (cap :Probe) -> ();                 # keep a reference (replaces the one held)
  getHeld @4 () -> (cap :Probe);              # the reference held
  callHeld @5 (n :UInt32) -> (n :UInt32);     # await held.echo(n), give its n back
  block @6 () -> (cap :Probe);                # waits until unblock; see there
  unblock @7 (mode :UInt16) -> ();            # 0: child object, 1: reference held, 2: exception "gate broke", 3: null
  fail @8 (text :Text) -> ();                 # raises text
  getPromise @9 () -> (cap :Probe);           # at once: the `cap` of a local, unfinished call of block()
  tail @10 (n :UInt32) -> (n :UInt32);        # tail call of held.echo(n)
  nested @11 () -> (outer :Outer);            # outer.inner.cap = child object
  same @12 (cap :Probe) -> (cap :Probe);      # gives its argument back
  two @13 () -> (a :Probe, b :Probe);         # child object twice
  drop @14 () -> ();                          # forget the reference held
  push @15 (n :UInt32) -> stream;             # note n; n = 666 raises; waits for the gate when n = 77
  notes @16 () -> (list :List(UInt32));       # every n that echo and push have seen, in order
  twice @17 (a :Probe, b :Probe) -> ();       # ignores its arguments
  blockThenCap @18 () -> (cap :Probe) $Cxx.allowCancellation;   # notes 1000, waits until unblock, then the child object; cancelled, it notes 9999
  big @19 (words :UInt32) -> (blob :Data);    # zeros
}

interface Sub @0x9a11c0de00000002 extends(Probe) {
  extra @0 () -> (n :UInt32);                 # 42
}

interface Stranger @0x9a11c0de00000003 {
  ping @0 () -> ();
}

struct Outer @0x9a11c0de00000004 {
  inner @0 :Inner;
}
struct Inner @0x9a11c0de00000005 {
  pad @0 :Text;
  cap @1 :Probe;
}
