"""Storing values into fields and list elements, with every check."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire._fast cimport Struct
from capnwire._info cimport Field, ListInfo, StructInfo
from capnwire.wire.arena cimport Arena, BuilderArena, Segment
from capnwire.wire.reader cimport ListRef, StructRef

cdef int store(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value,
) except -1
cdef int store_element(
    BuilderArena arena, ListInfo info, ListRef* items, uint32_t index, PyObject* value
) except -1
cdef int merge(StructInfo info, BuilderArena arena, StructRef* struct, PyObject* mapping) except -1
cdef void activate(Field* field, uint8_t* data) noexcept
cdef int writable_struct(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, StructRef* out
) except -1
cdef int writable_list(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, ListRef* out
) except -1
cdef int new_list(
    BuilderArena arena, Segment* segment, uint8_t* place, ListInfo info, uint64_t count,
    ListRef* out,
) except -1
cdef int store_new_pointer(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1
cdef int store_text(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1
cdef int store_data(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1
cdef uint8_t* new_blob(
    BuilderArena arena, Segment* segment, uint8_t* place, uint64_t size
) except NULL
cdef bint is_mapping(PyObject* value)
cdef bint same_struct(StructInfo left, StructInfo right)
cdef object wrong_capability(Field* field, object error)
cdef object error_of_element(object error, str list_name, object place, Py_ssize_t index)
cdef object wrong_type(Field* field, PyObject* value, str wanted)
cdef bint same_elements(ListInfo left, ListInfo right)
cdef dict BUFFER_FORMATS
