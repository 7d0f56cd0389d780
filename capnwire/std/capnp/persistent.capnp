@0xb8630836983feed7;
# Capabilities that outlive a connection: they are saved to a token and restored from it
# later.

using Cxx = import "/capnp/c++.capnp";

$Cxx.namespace("capnp");

interface Persistent @0xc8cb212fcd9f5691(SturdyRef, Owner) {
  # Implemented by objects that can be saved. What a token looks like (SturdyRef) and how its
  # owner is named (Owner) is up to the realm that issues it.

  save @0 SaveParams -> SaveResults;
  # Make a token by which the object can be found again.

  struct SaveParams {
    sealFor @0 :Owner;
    # Who may use the token; anybody else who presents it is refused.
  }

  struct SaveResults {
    sturdyRef @0 :SturdyRef;
    # The token. Keep it as secret as the capability itself.
  }
}

annotation persistent(field, interface) :Void;
# Marks interfaces and fields whose capabilities are expected to implement Persistent.
