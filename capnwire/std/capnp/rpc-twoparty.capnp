@0xa184c7885cdaf2a1;
# What the parameters of rpc.capnp mean on a connection between exactly two vats, such as one
# TCP connection.

using Cxx = import "/capnp/c++.capnp";

$Cxx.namespace("capnp::rpc::twoparty");

enum Side {
  # The two ends of the connection.

  server @0;
  client @1;
}

struct VatId {
  # Names a vat by the end that it is at.

  side @0 :Side;
  # The end whose bootstrap interface is asked for.
}

struct ProvisionId {
  # Would name a hand-over to a third vat. With two vats there is none, except for joins.

  joinId @0 :UInt32;
  # The join that the hand-over belongs to.
}

struct RecipientId {
  # Nobody else is there to receive.
}

struct ThirdPartyCapId {
  # Nobody else is there to host.
}

struct JoinKeyPart {
  # One of the parts by which several Join requests are recognised as one.

  joinId @0 :UInt32;
  # The same in all parts; chosen by the vat that joins.
  partCount @1 :UInt16;
  # How many parts there are.
  partNum @2 :UInt16;
  # Which of them this is, counted from 0.
}

struct JoinResult {
  # What a Join gives.

  joinId @0 :UInt32;
  # Copied from the request.
  succeeded @1 :Bool;
  # Whether all parts reached the same object. All results of one join agree.
  cap @2 :Capability;
  # The object that was joined; set in one of the results only.
}
