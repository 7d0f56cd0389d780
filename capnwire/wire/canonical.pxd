"""Comparing by canonical content: what other modules call.  Spec: encoding.md, 1.5."""

from capnwire.wire.arena cimport Arena
from capnwire.wire.reader cimport ListRef, StructRef


cdef bint structs_equal(
    Arena left_arena, StructRef* left, Arena right_arena, StructRef* right
) except -1
cdef bint lists_equal(
    Arena left_arena, ListRef* left, Arena right_arena, ListRef* right
) except -1
