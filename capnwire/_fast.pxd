"""The compiled face: where one attribute meets wire bytes, and messages are opened and made."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire._info cimport Field, StructInfo
from capnwire._python cimport Py_INCREF, capnwire_new_object
from capnwire.wire.arena cimport (
    ARENA_COUNT_MASK, Arena, BuilderArena, BuilderSegment, Segment, closed_error, is_dead,
)
from capnwire.wire.reader cimport StructRef


@cython.no_gc
cdef class Struct:
    """A struct in a message; its type says which.  48 bytes, not tracked by the collector."""

    cdef Arena arena
    cdef Segment* segment
    cdef uint8_t* data
    cdef uint32_t bits
    cdef uint16_t pointers
    cdef uint16_t depth                  # reader: nesting left; builder: BUILDER_* flags


@cython.no_gc
cdef class StructReader(Struct):
    pass


@cython.no_gc
cdef class StructBuilder(Struct):
    pass


cdef enum:
    BUILDER_ROOT = 1

cdef StructInfo info_of(object struct)
cdef object reader_of(StructInfo info, Arena arena, StructRef* struct)
cdef object builder_of(StructInfo info, Arena arena, StructRef* struct)
cdef object late(str name)
cdef object get_reader_field(Struct self, Field* field)
cdef object get_builder_field(Struct self, Field* field)
cdef int set_builder_field(Struct self, PyObject* value, Field* field) except -1
cdef object init_field(Struct self, Field* field, object size)
cdef int stale_error(Struct struct) except -1
cdef void reader_slots(void** getter) noexcept
cdef void builder_slots(void** getter, void** setter) noexcept
cdef tuple struct_bases()


cdef struct RawStruct:
    PyObject head
    PyObject* arena
    Segment* segment
    uint8_t* data
    uint32_t bits
    uint16_t pointers
    uint16_t depth


cdef inline object new_struct(
    PyObject* type, Arena arena, Segment* segment, uint8_t* data, uint32_t bits, uint32_t pointers,
    uint32_t depth,
):
    """An instance of a struct type, without running any Python."""
    struct = capnwire_new_object(type, sizeof(RawStruct))
    cdef RawStruct* raw = <RawStruct*><PyObject*>struct
    Py_INCREF(<PyObject*>arena)
    raw.arena = <PyObject*>arena
    raw.segment = segment
    raw.data = data
    raw.bits = bits
    raw.pointers = <uint16_t>pointers
    raw.depth = <uint16_t>depth
    return struct


cdef inline int check_alive(Struct struct) except -1:
    """Refuse a closed message, and a builder whose object was overwritten."""
    if struct.arena.first.base == NULL:
        closed_error()
    if (struct.arena.first.id & ARENA_COUNT_MASK) == 0:
        if (<BuilderSegment*>struct.segment).dead != NULL and struct.bits + struct.pointers:
            if is_dead(<BuilderSegment*>struct.segment, struct.data):
                stale_error(struct)
    return 0
