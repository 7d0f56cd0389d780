@0xc3f6a1d0b2e4f614;
# A node that is driven over a Unix socket, as Bitcoin Core's.

struct Context { thread @0 :Thread; callbackThread @1 :Thread; }
interface ThreadMap { makeThread @0 (name :Text) -> (result :Thread); }
interface Thread { getName @0 () -> (result :Text); }
interface Init { construct @0 () -> (threadMap :ThreadMap); makeMining @1 (context :Context) -> (result :Mining); }
struct BlockRef { hash @0 :Data; height @1 :Int32; }
interface Mining {
  getTip @0 (context :Context) -> (result :BlockRef, hasResult :Bool);
  createNewBlock @1 (context :Context, options :Options) -> (result :BlockTemplate);
  struct Options { useMempool @0 :Bool = true; reserve @1 :UInt64 = 8000; }
}
interface BlockTemplate { getBlock @0 (context :Context) -> (result :Data); destroy @1 (context :Context) -> (); }
