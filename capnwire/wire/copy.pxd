"""Whole-tree work over objects: deep copy, size, canonical form, the traversal count.

Nothing here recurses: every walk has an explicit stack, so depth costs heap and not C stack.
Spec: encoding.md, 1.3 to 1.5; the count is described in `count_traversal`.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from capnwire.wire.arena cimport ARENA_COUNT_MASK, Arena, BuilderArena, Segment
from capnwire.wire.reader cimport ListRef, StructRef
from capnwire.wire.units cimport word_t, words_t


cdef enum:
    NO_DEPTH_LIMIT = 0xFFFFFFFFU


cdef struct Stack:
    uint8_t* frames          # of the size that each walk passes to push(); free() it at the end
    size_t count
    size_t capacity


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
cdef bytes canonical_struct(Arena arena, StructRef* struct)
cdef bytes canonical_list(Arena arena, ListRef* list)
cdef int64_t count_traversal(Arena arena, uint64_t cap) except -2
cdef uint64_t message_words(Arena arena) noexcept
cdef uint64_t words_allowed(Arena arena) noexcept
cdef int take_words(uint64_t* left, words_t words) except -1

# What the walks share; canonical.pyx uses it too.
cdef void* push(Stack* stack, size_t frame_bytes) except NULL
cdef uint32_t kind_behind(Arena arena, Segment* segment, word_t pointer) noexcept
cdef int64_t capability_index(
    Arena arena, Segment* segment, const uint8_t* place, word_t pointer
) except -1


cdef inline uint32_t depth_below(Arena arena, uint32_t depth) noexcept:
    """Nesting levels left: a reader's `depth`; a builder made its tree itself and has no limit."""
    return depth if arena.first.id & ARENA_COUNT_MASK else NO_DEPTH_LIMIT
