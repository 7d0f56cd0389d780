"""The segment table in front of a message, and the queue of bytes that decoders read from.

Spec: encoding.md, 1.7.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef class ByteQueue:
    """Bytes that arrived and were not taken yet; a `bytes` object is kept as it is, not copied."""

    cdef bytes chunk               # the whole queue when it is (the end of) one bytes object
    cdef uint8_t* owned
    cdef size_t capacity           # of `owned`
    cdef const uint8_t* data       # into `chunk` or `owned`
    cdef size_t start              # first byte not taken
    cdef size_t end

    cdef int append(self, object data) except -1
    cdef int reserve(self, size_t more) except -1
    cdef bytes take(self, size_t size)
    cdef void skip(self, size_t size) noexcept


cdef class FrameDecoder:
    cdef readonly uint32_t segment_limit
    cdef readonly uint64_t message_limit_words
    cdef ByteQueue queue
    cdef object failure            # None, or the exception that every later call raises again
    cdef bint finished
    cdef uint64_t table_read       # segment sizes of the message at the start already added up
    cdef uint64_t words            # their sum

    cdef int check(self) except -1
    cdef uint64_t wanted(self) except 0
    cdef int missing(self) except -1
    cdef uint64_t wanted_or_fail(self) except 0
    cdef bytes next_or_none(self)


cdef uint64_t framed_bytes(const uint8_t* data, uint64_t size) except 0
cdef bytes segment_table(list sizes)
cdef bytes frame(list segments)


cdef inline uint64_t table_bytes(uint64_t segment_count) noexcept nogil:
    """Bytes of a segment table: the count, a size for each segment, zeroes up to a word."""
    return ((segment_count + 2) >> 1) * 8
