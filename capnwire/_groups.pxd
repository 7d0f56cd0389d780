"""Storing into groups, copying and clearing them."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t

from capnwire._fast cimport Struct
from capnwire._info cimport Field, StructInfo
from capnwire.wire.arena cimport BuilderArena, Segment
from capnwire.wire.reader cimport StructRef

cdef int store_group(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value,
) except -1
cdef int store_new_group(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value,
) except -1
cdef int copy_group(
    StructInfo info, BuilderArena arena, StructRef* target, Struct source
) except -1
cdef int clear_group(
    StructInfo info, BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits
) except -1
cdef int clear_field(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field
) except -1
