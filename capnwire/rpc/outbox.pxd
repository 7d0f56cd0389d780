"""Bytes to send."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire.wire.arena cimport BuilderArena


cdef class SegmentView:
    """A segment of a message that was sent, as a buffer, without a copy."""

    cdef BuilderArena arena
    cdef uint8_t* base
    cdef Py_ssize_t size
    cdef Py_ssize_t shape[1]


cdef class Outbox:
    cdef uint8_t* data
    cdef size_t size
    cdef size_t capacity
    cdef list chunks
    cdef readonly uint64_t waiting   # bytes in all
    cdef uint64_t closed             # how often `data` was closed: older positions are gone

    cdef uint8_t* more(self, size_t size) except NULL
    cdef int close_chunk(self) except -1
    cdef list take(self)
    cdef uint8_t* head(
        self, uint32_t words, uint16_t kind, uint32_t data, uint32_t pointers
    ) except NULL
    cdef int put(self, BuilderArena arena) except -1
    cdef int put_finish(self, uint32_t question, bint release_results) except -1
    cdef int put_release(self, uint32_t id, uint32_t count) except -1
    cdef int put_return(self, uint32_t answer, uint16_t tag, uint32_t other) except -1
    cdef int put_bootstrap(self, uint32_t question) except -1
