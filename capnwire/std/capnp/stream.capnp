@0x86c366a91393f3f8;
# The result type of streaming methods. A code generator that does not know about streaming
# sees an ordinary method with an empty result.

using Cxx = import "/capnp/c++.capnp";

$Cxx.namespace("capnp");

struct StreamResult @0x995f9a3377c0b16e {
  # What `-> stream` stands for: a result without contents, whose arrival says that there is
  # room for the next call.
}
