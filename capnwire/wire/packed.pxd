"""Packing: the functions that other modules call.  Spec: encoding.md, 1.6."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint64_t

from capnwire.wire.arena cimport BuilderArena
from capnwire.wire.framing cimport ByteQueue


cdef struct Unpacking:
    # Where unpacking stands; both sides move by whole steps (a tag and all that belongs to it).
    const uint8_t* source
    const uint8_t* source_end
    uint8_t* place
    uint8_t* place_end


cdef struct Growing:
    # Output that grows with what was written into it; release() it at the end.
    PyObject* holder         # NULL, or a bytes object of `capacity` bytes
    uint8_t* start
    size_t used
    size_t capacity


cdef class PackedDecoder:
    cdef readonly uint64_t segment_limit
    cdef readonly uint64_t message_limit_words
    cdef ByteQueue queue
    cdef Growing message           # the message so far, unpacked
    cdef uint64_t wanted           # its bytes, as far as its table tells
    cdef object failure            # None, or the exception that every later call raises again
    cdef bint finished
    cdef bint busy                 # somebody unpacks, and lets other threads run meanwhile

    cdef int check(self) except -1
    cdef int missing(self) except -1
    cdef bint advance(self) except -1
    cdef bytes next_or_none(self)


cdef bytes pack_parts(list parts)
cdef bytes pack_arena(BuilderArena arena)
