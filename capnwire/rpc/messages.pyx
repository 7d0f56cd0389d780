"""Messages that are built whole: calls and returns around their contents, and the small ones.

What is written word by word into the outbox is `rpc.outbox`'s.  Spec: rpc.capnp.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t

from capnwire._any cimport AnyPointerReader
from capnwire.rpc.layout cimport *
from capnwire.service.reference cimport (
    CALL_CONTENT, CALL_HEADER, RETURN_CONTENT, RETURN_HEADER, Call, new_header,
)
from capnwire.wire.arena cimport (
    ARENA_COUNT_MASK, Arena, BuilderArena, Segment, new_builder_arena,
)
from capnwire.wire.copy cimport copy_pointer
from capnwire.wire.memory cimport load64, store16, store32, store64
from capnwire.wire.pointer cimport struct_shape, with_offset

cdef enum:
    SMALL_MESSAGE = 64           # words


cdef BuilderArena small_message(uint16_t kind, uint32_t data_words, uint32_t pointers):
    """A Message whose body is a struct at word 3; its fields are left to the caller."""
    cdef BuilderArena arena = new_builder_arena(SMALL_MESSAGE)
    cdef uint8_t* base = arena.root_segment.head.base
    arena.root_segment.head.words = 3 + data_words + pointers
    store64(base, struct_shape(1, 1))
    store64(base + 8, kind)
    store64(base + 16, struct_shape(data_words, pointers))
    return arena


cdef BuilderArena outgoing_call(Call call):
    """The message to send a call in: the one its parameters were built in, or a copy.

    Raises:
        DecodeError: parameters that came from elsewhere cannot be read.
    """
    cdef BuilderArena arena
    if call.arena.first.id & ARENA_COUNT_MASK == 0:
        arena = <BuilderArena>call.arena
        if (
            call.place == arena.root_segment.head.base + <size_t>CALL_CONTENT * 8
            and load64(arena.root_segment.head.base) == 0
        ):
            return arena
    return copied(call.arena, call.segment, call.place, call.depth, CALL_HEADER, CALL_CONTENT)


cdef BuilderArena outgoing_results(AnyPointerReader results):
    """The same for results."""
    cdef BuilderArena arena
    if results.arena.first.id & ARENA_COUNT_MASK == 0:
        arena = <BuilderArena>results.arena
        if (
            results.place == arena.root_segment.head.base + <size_t>RETURN_CONTENT * 8
            and load64(arena.root_segment.head.base) == 0
        ):
            return arena
    return copied(
        results.arena, results.segment, results.place, results.depth, RETURN_HEADER, RETURN_CONTENT
    )


cdef BuilderArena copied(
    Arena source, Segment* segment, const uint8_t* place, uint32_t depth, uint32_t header,
    uint32_t content,
):
    cdef BuilderArena arena = new_header(header, 16)
    if place != NULL and load64(place):
        copy_pointer(
            arena, &arena.root_segment.head,
            arena.root_segment.head.base + <size_t>content * 8, source, segment, place, depth,
        )
    return arena


cdef void fill_call(
    uint8_t* base, uint32_t question, Call call, uint8_t hints, bint tail
) noexcept:
    """The words in front of a call's parameters, all but its target's id and its capTable."""
    store64(base, struct_shape(1, 1))
    store64(base + 8, MESSAGE_CALL)
    store64(base + 16, struct_shape(3, 3))
    store32(base + 24 + CALL_QUESTION, question)
    store16(base + 24 + CALL_METHOD, call.method_id)
    store16(base + 24 + CALL_SEND_RESULTS_TO, SEND_TO_YOURSELF if tail else SEND_TO_CALLER)
    store64(base + 24 + CALL_INTERFACE, call.interface_id)
    base[24 + CALL_FLAGS] = <uint8_t>(hints << 1)
    store64(base + 48, with_offset(struct_shape(1, 1), 2))
    store64(base + 56, with_offset(struct_shape(0, 2), 3))


cdef void fill_return(uint8_t* base, uint32_t answer) noexcept:
    """The words in front of a Return's results."""
    store64(base, struct_shape(1, 1))
    store64(base + 8, MESSAGE_RETURN)
    store64(base + 16, struct_shape(2, 1))
    store32(base + 24 + RETURN_ANSWER, answer)
    base[24 + RETURN_FLAGS] = 1 << RETURN_KEEP_PARAMS_BIT
    store64(base + 40, struct_shape(0, 2))
