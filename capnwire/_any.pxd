"""AnyPointer, AnyStruct and AnyList: pointers whose type the program names when it reads them."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t

from capnwire._info cimport Field
from capnwire.wire.arena cimport Arena, BuilderArena, Segment
from capnwire.wire.builder cimport Orphan


cdef class AnyPointerReader:
    cdef Arena arena
    cdef Segment* segment
    cdef const uint8_t* place        # NULL: beyond the struct's pointer section
    cdef uint32_t depth


cdef class AnyPointerBuilder:
    cdef BuilderArena arena
    cdef Segment* segment
    cdef uint8_t* place


cdef class OrphanHolder:
    cdef Orphan orphan
    cdef uint32_t kind               # of the field it was in, or would fit into
    cdef object info                 # StructInfo, ListInfo, InterfaceInfo or None

cdef object any_reader(Arena arena, Segment* segment, const uint8_t* place, uint32_t depth)
cdef object any_builder(BuilderArena arena, Segment* segment, uint8_t* place)
cdef int store_any(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1
cdef bint is_pointer_at(object value, const uint8_t* place)
cdef object load_capability(Arena arena, Segment* segment, const uint8_t* place, Field* field)
cdef int store_capability(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1
cdef object disown_field(BuilderArena arena, Segment* segment, uint8_t* place, Field* field)
cdef Orphan orphan_for(object orphan, Field* field, object place)
