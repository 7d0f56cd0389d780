"""Writing in place: allocation, pointers and landing pads, upgrades, zeroing, orphans.

Allocation follows the reference (the pointer's own segment, else the last one with a landing pad,
else a new one), so that equal build orders give equal bytes.  Spec: encoding.md, 1.3 and 1.7.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from capnwire.wire.arena cimport Arena, BuilderArena, BuilderSegment, Segment
from capnwire.wire.memory cimport store64
from capnwire.wire.pointer cimport with_offset
from capnwire.wire.reader cimport ListRef, StructRef
from capnwire.wire.units cimport word_t, words_t


cdef class Orphan:
    """An object of a builder that no pointer of its message names (yet, or any more).

    `tag` is the pointer without its offset, or a whole far or capability pointer; 0 = null.
    Dropping an orphan zeroes the object.
    """

    cdef BuilderArena arena
    cdef BuilderSegment* segment
    cdef uint8_t* data
    cdef word_t tag


cdef uint8_t* allocate_far(
    BuilderArena arena, Segment** segment, uint8_t** place, words_t words
) except NULL
cdef int erase(BuilderArena arena, Segment* segment, uint8_t* place) except -1
cdef int init_struct(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t data_words, uint32_t pointers,
    StructRef* out,
) except -1
cdef int init_list(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t element_size, words_t count,
    uint32_t data_words, uint32_t pointers, ListRef* out,
) except -1
cdef int get_struct(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t data_words, uint32_t pointers,
    StructRef* out,
) except -1
cdef int get_list(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t wanted, uint32_t data_words,
    uint32_t pointers, ListRef* out,
) except -1
cdef int set_capability(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t index
) except -1
cdef Orphan disown(BuilderArena arena, Segment* segment, uint8_t* place)
cdef int adopt(BuilderArena arena, Segment* segment, uint8_t* place, Orphan orphan) except -1
cdef Orphan new_orphan_struct(BuilderArena arena, uint32_t data_words, uint32_t pointers)
cdef Orphan new_orphan_list(
    BuilderArena arena, uint32_t element_size, words_t count, uint32_t data_words, uint32_t pointers
)
cdef int orphan_struct(
    Orphan orphan, uint32_t data_words, uint32_t pointers, StructRef* out
) except -1
cdef int orphan_list(
    Orphan orphan, uint32_t wanted, uint32_t data_words, uint32_t pointers, ListRef* out
) except -1


cdef inline uint8_t* allocate(
    BuilderArena arena, Segment** segment, uint8_t** place, words_t words, word_t shape
) except NULL:
    """Room for an object named by the null pointer at `place`; writes that pointer.

    Leaves the object's segment in `segment` and the pointer that describes it (itself or the
    landing pad) in `place`.  The memory is zero.  Not for zero-size structs.
    """
    cdef BuilderSegment* own = <BuilderSegment*>segment[0]
    cdef uint8_t* object_at
    if words <= own.capacity - own.head.words:
        object_at = own.head.base + <words_t>own.head.words * 8
        own.head.words += <uint32_t>words
    else:
        object_at = allocate_far(arena, segment, place, words)
    store64(place[0], with_offset(shape, ((object_at - place[0]) >> 3) - 1))
    return object_at
