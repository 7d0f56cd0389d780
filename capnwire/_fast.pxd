"""The compiled face: where one attribute meets wire bytes, and messages are opened and made."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire._info cimport Field, StructInfo
from capnwire.wire.arena cimport Arena, BuilderArena, Segment
from capnwire.wire.reader cimport StructRef


cdef class Struct:
    """A struct in a message; its type says which.  48 bytes, not tracked by the collector."""

    cdef Arena arena
    cdef Segment* segment
    cdef uint8_t* data
    cdef uint32_t bits
    cdef uint16_t pointers
    cdef uint16_t depth                  # reader: nesting left; builder: BUILDER_* flags


cdef class StructReader(Struct):
    pass


cdef class StructBuilder(Struct):
    pass


cdef enum:
    BUILDER_ROOT = 1

cdef StructInfo info_of(object struct)
cdef object new_struct(
    PyObject* type, Arena arena, Segment* segment, uint8_t* data, uint32_t bits, uint32_t pointers,
    uint32_t depth,
)
cdef object reader_of(StructInfo info, Arena arena, StructRef* struct)
cdef object builder_of(StructInfo info, Arena arena, StructRef* struct)
cdef object new_root(StructInfo info, uint64_t first_words, object allocator)
cdef object late(str name)
cdef object get_reader_field(Struct self, Field* field)
cdef object get_builder_field(Struct self, Field* field)
cdef int set_builder_field(Struct self, PyObject* value, Field* field) except -1
cdef int check_alive(Struct struct) except -1
cdef bytes arena_bytes(BuilderArena arena)
cdef list arena_segments(BuilderArena arena)
cdef void reader_slots(void** getter) noexcept
cdef void builder_slots(void** getter, void** setter) noexcept
cdef list class_functions(StructInfo info)
cdef tuple struct_bases()
cdef void* type_call() noexcept
