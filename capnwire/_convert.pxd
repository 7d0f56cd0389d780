"""Loading whole values: dicts, lists and views."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire._fast cimport Struct
from capnwire._info cimport Field, ListInfo, StructInfo
from capnwire.wire.arena cimport Arena, BuilderArena, Segment
from capnwire.wire.reader cimport ListRef, StructRef

cdef enum:
    VERBOSE = 1
    BASE64 = 2
    WRAPPED = 4                          # AnyPointers and capabilities by `set_object_wrapper`

cdef object load_data(Arena arena, Segment* segment, const uint8_t* place, Field* field)
cdef object view_of_data(
    Arena arena, Segment* segment, const uint8_t* place, Field* field, bint writable
)
cdef int locate_struct(
    Arena arena, Segment* segment, const uint8_t* place, uint32_t depth, Field* field,
    PyObject** home, StructRef* out,
) except -1
cdef int locate_list(
    Arena arena, Segment* segment, const uint8_t* place, uint32_t depth, Field* field,
    PyObject** home, ListRef* out,
) except -1
cdef dict to_dict(StructInfo info, Arena arena, StructRef* struct, int options)
cdef list to_list(ListInfo info, Arena arena, ListRef* items, int options)
cdef void ref_of(Struct struct, StructRef* out) noexcept
cdef int check_printable(Arena arena) except -1
