@0x8ef99297a43a5e34;
# JSON values as messages, and the annotations that shape how structs are turned into JSON.

using Cxx = import "/capnp/c++.capnp";

$Cxx.namespace("capnp::json");

struct Value {
  # Any JSON value.

  union {
    null @0 :Void;
    boolean @1 :Bool;
    number @2 :Float64;
    string @3 :Text;
    array @4 :List(Value);
    object @5 :List(Field);
    call @6 :Call;
    # Not JSON: a function call in the text, for dialects that have it.
    raw @7 :Text;
    # Text that is written as it is. Whoever makes it answers for it being JSON.
  }

  struct Field {
    # One entry of an object. Order and repeated names are kept.

    name @0 :Text;
    value @1 :Value;
  }

  struct Call {
    # A name applied to arguments.

    function @0 :Text;
    params @1 :List(Value);
  }
}

annotation name @0xfa5b1fd61c2e7c3d(enumerant, field, union, group, method) :Text;

annotation flatten @0x82d3e852af0336bf(field, union, group) :FlattenOptions;
# Puts the fields of a struct or group next to those of what contains it, instead of into an
# object of their own.

struct FlattenOptions {
  prefix @0 :Text = "";
  # Put before the name of each field that moves.
}

annotation discriminator @0xcfa794e8d19a0162(struct, union) :DiscriminatorOptions;
# Says how to write which member of a union is active.

struct DiscriminatorOptions {
  name @0 :Text;
  # The field that tells the member's name; if absent, the name of the union.
  valueName @1 :Text;
  # The field that holds the member's value; if absent, the member's own name.
}

annotation base64 @0xd7d879450a253e4b(field) :Void;
# Writes a Data field as a string in Base64.

annotation hex @0xf061e22f0ae5c7b5(field) :Void;
# Writes a Data field as a string of hexadecimal digits.

annotation notification @0xa0a054dea32fd98c(method) :Void;
# Marks methods that are sent as notifications, to which no answer comes.
