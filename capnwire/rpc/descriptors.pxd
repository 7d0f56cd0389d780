"""Capabilities, targets and exceptions in messages: written and read."""

from libc.stdint cimport uint8_t, uint32_t

from capnwire.rpc.connection cimport Connection
from capnwire.service.reference cimport Reference
from capnwire.wire.arena cimport Arena, BuilderArena, Segment
from capnwire.wire.reader cimport StructRef

cdef int write_capabilities(
    Connection connection, BuilderArena arena, uint32_t word, list table, list exported
) except -1
cdef Reference describe(
    Connection connection, Reference reference, BuilderArena arena, Segment* segment,
    uint8_t* place, list exported,
)
cdef int write_target(
    BuilderArena arena, Segment* segment, uint8_t* place, Reference raw
) except -1
cdef int write_exception(
    BuilderArena arena, Segment* segment, uint8_t* place, object error, bint with_trace
) except -1
cdef object kept_error(Connection connection, object error)
cdef object read_exception(Arena arena, StructRef* struct)
cdef Reference receive_descriptor(
    Connection connection, Arena arena, StructRef* descriptor, bint* loops
)
cdef list receive_capabilities(
    Connection connection, Arena arena, StructRef* payload, set looping
)
cdef int attach_capabilities(Arena arena, list table) except -1
cdef bytes read_path(Arena arena, StructRef* answer)
cdef Reference importing(Connection connection, uint32_t id, bint promise)
