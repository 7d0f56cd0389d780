"""pycapnp's coercions when a value is stored."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t

from capnwire._info cimport Field, ListInfo, StructInfo
from capnwire.wire.arena cimport BuilderArena, Segment
from capnwire.wire.reader cimport ListRef, StructRef

cdef int assign(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value, bint in_dict,
) except -1
cdef int assign_element(
    BuilderArena arena, ListInfo info, ListRef* items, uint32_t index, PyObject* value
) except -1
cdef int assign_dict(
    StructInfo info, BuilderArena arena, StructRef* struct, object mapping
) except -1
cdef int same_registry(StructInfo left, StructInfo right) except -1
