@0xb312981b2552a250;
# The messages that two vats exchange over one connection. Every reference between the vats is
# a number in a table: questions and answers for calls, exports and imports for capabilities.
# Types of AnyPointer fields that name vats, hand-overs and the like depend on the kind of
# network; rpc-twoparty.capnp has those of a plain connection.

using Cxx = import "/capnp/c++.capnp";

$Cxx.namespace("capnp::rpc");

struct Message {
  # One message. Whoever receives a kind that it does not know sends it back as
  # `unimplemented`.

  union {
    unimplemented @0 :Message;
    # The other vat did not understand this message of ours.
    abort @1 :Exception;
    # The connection cannot go on, and why. Nothing follows.
    bootstrap @8 :Bootstrap;
    call @2 :Call;
    return @3 :Return;
    finish @4 :Finish;
    resolve @5 :Resolve;
    release @6 :Release;
    disembargo @13 :Disembargo;
    obsoleteSave @7 :AnyPointer;
    # No longer used; Persistent.save took its place.
    obsoleteDelete @9 :AnyPointer;
    # No longer used.
    provide @10 :Provide;
    accept @11 :Accept;
    join @12 :Join;
  }
}

struct Bootstrap {
  # Asks for the object that a vat offers to everybody. Answered by a Return.

  questionId @0 :UInt32;
  # A number of the sender's that is free; it lives until Finish and Return have both passed.
  deprecatedObjectId @1 :AnyPointer;
  # Formerly chose between several public objects. Leave it null.
}

struct Call {
  # Calls a method. Answered by a Return.

  questionId @0 :UInt32;
  # A number of the sender's that is free; it lives until Finish and Return have both passed.
  target @1 :MessageTarget;
  # The object to call.
  interfaceId @2 :UInt64;
  # The interface that declares the method: one that the object has, or inherits.
  methodId @3 :UInt16;
  # The method's number in that interface.
  allowThirdPartyTailCall @8 :Bool = false;
  # The receiver may let another vat send the results.
  noPromisePipelining @9 :Bool = false;
  # The sender will not call anything on the results before they are there.
  onlyPromisePipeline @10 :Bool = false;
  # The sender wants the results for such calls only, not the results themselves.
  params @4 :Payload;
  # The arguments.
  sendResultsTo :union {
    # Where the results go.
    caller @5 :Void;
    # Back, in the Return.
    yourself @6 :Void;
    # They stay with the receiver, for a later Return to refer to: this is a tail call's
    # second half.
    thirdParty @7 :AnyPointer;
    # To another vat.
  }
}

struct Return {
  # Ends a call (or another question), with its results or without.

  answerId @0 :UInt32;
  # The questionId of the question.
  releaseParamCaps @1 :Bool = true;
  # Every capability in the parameters is given back once, as by a Release for each.
  noFinishNeeded @8 :Bool = false;
  # The answer is forgotten already, so no Finish is due. Allowed only if the results hold no
  # capabilities.
  union {
    results @2 :Payload;
    exception @3 :Exception;
    canceled @4 :Void;
    resultsSentElsewhere @5 :Void;
    # The results are not here, as sendResultsTo wanted.
    takeFromOtherQuestion @6 :UInt32;
    # The results are those of another question, one that the receiver was asked with
    # `yourself`.
    acceptFromThirdParty @7 :AnyPointer;
    # The results wait at another vat.
  }
}

struct Finish {
  # The sender needs the answer no more. Before the Return, it also asks to cancel the call.

  questionId @0 :UInt32;
  # The question.
  releaseResultCaps @1 :Bool = true;
  # Every capability in the results is given back once.
  requireEarlyCancellationWorkaround @2 :Bool = true;
  # Whether the receiver must bear in mind that the sender, an old one, may finish a call
  # before it was started. New senders set it to false.
}

struct Resolve {
  # What an exported promise turned out to be.

  promiseId @0 :UInt32;
  # The promise, in the sender's export table.
  union {
    cap @1 :CapDescriptor;
    # The object that it now stands for.
    exception @2 :Exception;
    # Why there will be none.
  }
}

struct Release {
  # Gives references to an import back.

  id @0 :UInt32;
  # The import, that is, the receiver's export.
  referenceCount @1 :UInt32;
  # How many references: as many as were received and not given back, or fewer.
}

struct Disembargo {
  # Travels the way that earlier calls took, so that calls on a shorter way do not overtake
  # them.

  target @0 :MessageTarget;
  # Where the earlier calls went.
  context :union {
    senderLoopback @1 :UInt32;
    # The way leads back to the sender. The number is the sender's own.
    receiverLoopback @2 :UInt32;
    # The answer to senderLoopback, with its number.
    accept @3 :Void;
    # For an object that is handed over between vats: what an Accept waits for.
    provide @4 :UInt32;
    # For an object that is handed over between vats: names the Provide.
  }
}

struct Provide {
  # Prepares to hand a capability to another vat, which will come for it with Accept.

  questionId @0 :UInt32;
  target @1 :MessageTarget;
  recipient @2 :AnyPointer;
  # Who is going to come.
}

struct Accept {
  # Takes a capability that another vat has provided.

  questionId @0 :UInt32;
  provision @1 :AnyPointer;
  # Which one.
  embargo @2 :Bool;
  # Hold calls back until the Disembargo arrives.
}

struct Join {
  # Asks whether several capabilities are one object. One message goes through each of them.

  questionId @0 :UInt32;
  target @1 :MessageTarget;
  keyPart @2 :AnyPointer;
  # This message's part of the key by which they recognise each other.
}

struct MessageTarget {
  # What a call or a disembargo is addressed to.

  union {
    importedCap @0 :UInt32;
    # One of the receiver's exports.
    promisedAnswer @1 :PromisedAnswer;
    # A capability in an answer, which need not have been returned yet.
  }
}

struct Payload {
  # Arguments or results, with the capabilities in them.

  content @0 :AnyPointer;
  # The struct. Capability pointers in it are indexes into capTable.
  capTable @1 :List(CapDescriptor);
  # The capabilities, each counted as one reference given.
}

struct CapDescriptor {
  # A capability as it is sent.

  union {
    none @0 :Void;
    # No capability; like a null pointer.
    senderHosted @1 :UInt32;
    # One of the sender's exports.
    senderPromise @2 :UInt32;
    # One of the sender's exports that will be followed by a Resolve.
    receiverHosted @3 :UInt32;
    # One that the receiver exported: it comes back.
    receiverAnswer @4 :PromisedAnswer;
    # One inside an answer that the receiver is to give.
    thirdPartyHosted @5 :ThirdPartyCapDescriptor;
    # One that lives in another vat.
  }
  attachedFd @6 :UInt8 = 255;
  # The file descriptor that came with the message and belongs to the capability, by its
  # index. 255 stands for none.
}

struct PromisedAnswer {
  # A place in an answer.

  questionId @0 :UInt32;
  # The question whose answer it is.
  transform @1 :List(Op);
  # The way from the root of the results to the place.

  struct Op {
    # One step.

    union {
      noop @0 :Void;
      getPointerField @1 :UInt16;
      # Follow the pointer with this index in the pointer section.
    }
  }
}

struct ThirdPartyCapDescriptor {
  # How to reach an object in another vat.

  id @0 :AnyPointer;
  # What to say there to get it.
  vineId @1 :UInt32;
  # An export of the sender that forwards to it, for receivers that cannot connect, and that
  # keeps the offer alive until released.
}

struct Exception {
  # Why something failed.

  reason @0 :Text;
  # For people to read.
  type @3 :Type;
  # For programs to act on.
  obsoleteIsCallersFault @1 :Bool;
  # No longer used.
  obsoleteDurability @2 :UInt16;
  # No longer used.
  trace @4 :Text;
  # Where it happened on the other side, if that side tells.

  enum Type {
    failed @0;
    # Anything else; trying again is not expected to help.
    overloaded @1;
    # There is too much to do just now; trying later may help.
    disconnected @2;
    # A connection on the way was lost; connecting anew may help.
    unimplemented @3;
    # The object does not have the method.
  }
}
