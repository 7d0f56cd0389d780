"""The fixed layouts of rpc.capnp's messages, and loads from structs that are laid out so.

A test holds the numbers against our own compiled rpc.capnp.  Spec: rpc.capnp.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire.wire.arena cimport Arena
from capnwire.wire.memory cimport load16, load32, load64
from capnwire.wire.reader cimport StructRef, read_struct
from capnwire.wire.units cimport word_t

# Message's union: word 0, bits 0-15; its one pointer holds the body.
cdef enum:
    MESSAGE_UNIMPLEMENTED = 0
    MESSAGE_ABORT = 1
    MESSAGE_CALL = 2
    MESSAGE_RETURN = 3
    MESSAGE_FINISH = 4
    MESSAGE_RESOLVE = 5
    MESSAGE_RELEASE = 6
    MESSAGE_BOOTSTRAP = 8
    MESSAGE_DISEMBARGO = 13

# Offsets in bytes, `_bit` in bits; sizes as (data words, pointers) in the comments.
cdef enum:
    CALL_QUESTION = 0            # Call (3, 3): target, params, thirdParty
    CALL_METHOD = 4
    CALL_SEND_RESULTS_TO = 6
    CALL_INTERFACE = 8
    CALL_FLAGS = 16
    CALL_NO_PIPELINING_BIT = 1
    CALL_ONLY_PIPELINE_BIT = 2
    RETURN_ANSWER = 0            # Return (2, 1)
    RETURN_FLAGS = 4
    RETURN_KEEP_PARAMS_BIT = 0   # releaseParamCaps, whose default is true
    RETURN_NO_FINISH_BIT = 1
    RETURN_TAG = 6
    RETURN_OTHER_QUESTION = 8
    FINISH_QUESTION = 0          # Finish (1, 0)
    FINISH_FLAGS = 4
    FINISH_KEEP_RESULTS_BIT = 0  # releaseResultCaps, whose default is true
    FINISH_NO_WORKAROUND_BIT = 1
    RESOLVE_PROMISE = 0          # Resolve (1, 1)
    RESOLVE_TAG = 4
    RELEASE_ID = 0               # Release (1, 0)
    RELEASE_COUNT = 4
    DISEMBARGO_ID = 0            # Disembargo (1, 1)
    DISEMBARGO_TAG = 4
    TARGET_IMPORT = 0            # MessageTarget (1, 1)
    TARGET_TAG = 4
    ANSWER_QUESTION = 0          # PromisedAnswer (1, 1)
    OP_TAG = 0                   # PromisedAnswer.Op (1, 0)
    OP_INDEX = 2
    DESCRIPTOR_TAG = 0           # CapDescriptor (1, 1)
    DESCRIPTOR_ID = 4
    VINE_ID = 0                  # ThirdPartyCapDescriptor (1, 1)
    EXCEPTION_TYPE = 4           # Exception (1, 3): reason, trace, details

cdef enum:
    SEND_TO_CALLER = 0
    SEND_TO_YOURSELF = 1

cdef enum:
    RETURN_RESULTS = 0
    RETURN_EXCEPTION = 1
    RETURN_CANCELED = 2
    RETURN_ELSEWHERE = 3
    RETURN_TAKE_FROM = 4

cdef enum:
    CAP_NONE = 0
    CAP_SENDER_HOSTED = 1
    CAP_SENDER_PROMISE = 2
    CAP_RECEIVER_HOSTED = 3
    CAP_RECEIVER_ANSWER = 4
    CAP_THIRD_PARTY = 5


cdef inline uint16_t u16(StructRef* struct, uint32_t at) noexcept nogil:
    """16 bits at a byte of the data section; zero beyond it."""
    return load16(struct.data + at) if at * 8 + 16 <= struct.bits else 0


cdef inline uint32_t u32(StructRef* struct, uint32_t at) noexcept nogil:
    return load32(struct.data + at) if at * 8 + 32 <= struct.bits else 0


cdef inline uint64_t u64(StructRef* struct, uint32_t at) noexcept nogil:
    return load64(struct.data + at) if at * 8 + 64 <= struct.bits else 0


cdef inline uint8_t u8(StructRef* struct, uint32_t at) noexcept nogil:
    return struct.data[at] if at * 8 + 8 <= struct.bits else 0


cdef inline uint8_t* pointer_place(StructRef* struct, uint32_t index) noexcept nogil:
    """Where a pointer is, or NULL beyond the pointer section."""
    if index >= struct.pointers:
        return NULL
    return struct.data + (struct.bits >> 3) + <size_t>index * 8


cdef inline int read_pointed(
    Arena arena, StructRef* holder, uint32_t index, StructRef* out
) except -1:
    """The struct behind a pointer; a null pointer gives the empty struct."""
    cdef uint8_t* place = pointer_place(holder, index)
    cdef word_t pointer = load64(place) if place != NULL else 0
    if pointer == 0:
        out.segment, out.data = holder.segment, holder.segment.base
        out.bits, out.pointers, out.depth = 0, 0, 0
        return 0
    return read_struct(arena, holder.segment, place, pointer, holder.depth, out)
