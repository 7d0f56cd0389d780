"""Lists in messages: sequences over the wire, with views and bulk conversion."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t

from capnwire._info cimport ListInfo
from capnwire.wire.arena cimport Arena, BuilderArena, Segment
from capnwire.wire.reader cimport ListRef


@cython.no_gc
cdef class List:
    cdef Arena arena
    cdef ListInfo info
    cdef ListRef ref


@cython.no_gc
cdef class ListReader(List):
    pass


@cython.no_gc
cdef class ListBuilder(List):
    pass


cdef object list_reader(ListInfo info, Arena arena, ListRef* ref)
cdef object list_builder(ListInfo info, BuilderArena arena, ListRef* ref)
cdef int check_list(List list) except -1
cdef object element_of(List list, uint32_t index)
cdef object make_list(PyObject* type, ListInfo info, Arena arena, ListRef* ref)
