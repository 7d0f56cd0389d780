"""The id tables of a connection."""

from libc.stdint cimport uint32_t, uint64_t


cdef class IdTable:
    """What is known under ids that this side chooses: the lowest free one first."""

    cdef list items
    cdef uint64_t* used              # one bit an id
    cdef uint32_t words
    cdef uint32_t first              # the first word of `used` that may have a free bit
    cdef readonly uint32_t count

    cdef uint32_t add(self, object item) except? 0xFFFFFFFF
    cdef object get(self, uint32_t id)
    cdef object remove(self, uint32_t id)
    cdef list values(self)
