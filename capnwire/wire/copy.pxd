"""Whole-tree work over objects: deep copy, size, equality, canonical form, the traversal count.

Nothing here recurses: every walk has an explicit stack, so depth costs heap and not C stack.  Spec: encoding.md,
1.3 to 1.5; the count is described in `count_traversal`.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from capnwire.wire.arena cimport Arena, BuilderArena, Segment
from capnwire.wire.reader cimport ListRef, StructRef
from capnwire.wire.units cimport words_t


cdef int copy_struct(
    BuilderArena target, Segment* segment, uint8_t* place, Arena source, StructRef* struct
) except -1
cdef int copy_list(
    BuilderArena target, Segment* segment, uint8_t* place, Arena source, ListRef* list
) except -1
cdef int copy_pointer(
    BuilderArena target, Segment* segment, uint8_t* place, Arena source, Segment* source_segment,
    const uint8_t* source_place, uint32_t depth,
) except -1
cdef int total_size(
    Arena arena, StructRef* struct, uint64_t* words, uint64_t* capabilities
) except -1
cdef bint structs_equal(Arena left_arena, StructRef* left, Arena right_arena, StructRef* right) except -1
cdef bint lists_equal(Arena left_arena, ListRef* left, Arena right_arena, ListRef* right) except -1
cdef bytes canonical_struct(Arena arena, StructRef* struct)
cdef bytes canonical_list(Arena arena, ListRef* list)
cdef int64_t count_traversal(Arena arena, uint64_t cap) except -2
