@0xe6b2a1d94f0c7358;
# What each peer serves and calls: one interface, implementable in every language.  The scenarios
# that use it are listed in README.md.  The builds add what a language's generator asks for.

enum Kind {
  failed @0;
  overloaded @1;
  disconnected @2;
  unimplemented @3;
}

enum Resolution {
  fresh @0;   # to a new Named of the server's
  held @1;    # to what hold() was given, maybe the caller's own object
  broken @2;  # to the exception "late broke"
}

interface Counter {
  # Gives 0, 1, 2, …: the order in which calls arrived.
  next @0 () -> (value :UInt32);
}

interface Named extends(Counter) {
  name @0 () -> (name :Text);
}

struct Called {
  value @0 :Int64;
  counter @1 :Counter;  # may stay null; callers may call on it early
}

interface Callback {
  call @0 (value :Int64) -> Called;
}

interface Sink {
  # Takes blocks in order.  A write with no bytes raises "empty block", which every later call on
  # this sink then meets.
  write @0 (index :UInt32, bytes :Data) -> stream;
  done @1 () -> (writes :UInt32, total :UInt64, inOrder :Bool);
}

interface Stranger {
  # No peer serves this one.
  unknown @0 () -> ();
}

interface Gate {
  # For peers that have a promise for a capability only as a pipelined call on an object of their own.
  open @0 () -> (counter :Counter);
}

struct Inner {
  pad @0 :Text;
  named @1 :Named;
}

struct Outer {
  inner @0 :Inner;
  pad @1 :Text;
}

interface Peer {
  # What is held, late or counted belongs to the server's process, so that two connections share it.

  echoInt @0 (value :Int64) -> (value :Int64);
  echoText @1 (value :Text) -> (value :Text);
  echoData @2 (value :Data) -> (value :Data);
  measure @3 (value :Data) -> (bytes :UInt64);
  big @4 (bytes :UInt32) -> (value :Data);                # bytes are index modulo 251

  fail @5 (kind :Kind, text :Text) -> (named :Named);     # raises text with this kind
  getNamed @6 (name :Text) -> (named :Named);             # a new one
  getNested @7 (name :Text) -> (outer :Outer);            # a new one in inner.named; pads are "x"
  echoCounter @8 (counter :Counter) -> (counter :Counter);

  callBack @9 (callback :Callback, times :UInt32) -> (sum :Int64);
  # Calls callback.call(0), call(1), …, each after the one before; the sum of what came back.

  forward @10 (callback :Callback, value :Int64) -> Called;
  # Answers with callback.call(value): a tail call where the peer has them.

  hold @11 (counter :Counter) -> ();
  held @12 () -> (counter :Counter);
  callHeld @13 () -> (value :UInt32);
  drop @14 () -> ();

  late @15 () -> (counter :Counter);                      # at once: a promise
  resolveLate @16 (how :Resolution) -> ();                # resolves all that late() gave so far

  block @17 () -> (counter :Counter);                     # ends only when cancelled
  waitBlocked @18 (count :UInt32) -> ();                  # once so many block() calls run
  waitAlive @19 (count :UInt32) -> ();                    # once so many Named of the server live

  openSink @20 () -> (sink :Sink);
  quit @21 () -> ();                                      # the process exits without an answer
}
