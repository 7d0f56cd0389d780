"""Messages that are built whole."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t

from capnwire._any cimport AnyPointerReader
from capnwire.service.reference cimport Call
from capnwire.wire.arena cimport BuilderArena

cdef BuilderArena small_message(uint16_t kind, uint32_t data_words, uint32_t pointers)
cdef BuilderArena outgoing_call(Call call)
cdef BuilderArena outgoing_results(AnyPointerReader results)
cdef void fill_call(
    uint8_t* base, uint32_t question, Call call, uint8_t hints, bint tail
) noexcept
cdef void fill_return(uint8_t* base, uint32_t answer) noexcept
