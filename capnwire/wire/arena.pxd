"""What owns the memory of a message: segments, the pin on a foreign buffer, the traversal budget.

A reader's arena pins its buffer; a builder's arena owns its segments and never moves them.  Spec:
encoding.md, 1.4 and 1.7.
"""

from cpython.buffer cimport Py_buffer
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from capnwire.wire.units cimport words_t


cdef struct Segment:
    uint8_t* base
    uint32_t words       # reader: the segment's size; builder: words in use
    uint32_t id


cdef class Pin:
    """Holds a buffer export for as long as somebody reads it."""

    cdef object exporter             # an object, as Cython's trashcan wants to see one
    cdef Py_buffer view
    cdef bint held


cdef class SegmentTable:
    """Hangs on an arena's `pin` when one inline segment cannot say it all.

    Several segments, a nesting limit other than the default, or a capability table.
    """

    cdef object pin                # bytes, Pin, or a tuple of them
    cdef Segment* segments
    cdef uint32_t count
    cdef uint32_t nesting_limit
    cdef object capabilities       # None, or the opaque capability table of an RPC message


cdef class Arena:
    """A message being read: 48 bytes, not tracked by the collector.

    `first` is segment 0; its `id` holds the number of segments (24 bits; 0 = this is a
    BuilderArena) and ARENA_* flags.  `first.base` is NULL once the message is closed.
    """

    cdef object pin                # bytes, Pin or SegmentTable; None when closed
    cdef int64_t budget            # words that may still be traversed
    cdef Segment first


cdef enum:
    ARENA_COUNT_MASK = 0x00FFFFFF
    ARENA_STRICT = 0x01000000      # the caller gave a limit: no count, no renewal
    ARENA_MUTABLE = 0x02000000     # the buffer can change under us: renew, never lift
    ARENA_RENEWALS_SHIFT = 26      # 6 bits: how often the budget was renewed


cdef struct BuilderSegment:
    Segment head                   # must stay first: a Segment* of a builder points here
    uint32_t capacity              # words
    uint64_t* dead                 # NULL, or one bit a word: objects that were overwritten
    void* owner                    # NULL: the memory is ours; else the allocator's Py_buffer*


cdef class BuilderArena(Arena):
    """A message being built; every segment stays where it is until the arena dies."""

    cdef BuilderSegment root_segment
    cdef BuilderSegment** more     # segments 1, 2, ...
    cdef uint32_t more_count
    cdef uint32_t more_capacity
    cdef uint64_t next_words       # size of the next segment, by the reference's growth
    cdef object capabilities       # None, or the list that capability pointers index
    cdef object allocator          # None, or the caller's allocate(words) -> zeroed buffer


cdef int64_t DEFAULT_TRAVERSAL_WORDS
cdef uint32_t DEFAULT_NESTING

cdef int budget_spent(Arena arena, words_t words) except -1
cdef int closed_error() except -1
cdef Segment* segment_at(Arena arena, uint32_t id) noexcept
cdef uint32_t segment_count(Arena arena) noexcept
cdef uint32_t nesting_limit_of(Arena arena) noexcept

cdef Arena arena_over(object pin, const uint8_t* base, uint32_t words, object limit, object nesting)
cdef Pin pin_of(object buffer)
cdef Arena open_framed(
    object pin, const uint8_t* base, uint64_t size, object limit, object nesting, uint64_t* used
)
cdef Arena open_segments(list buffers, object limit, object nesting)
cdef object capabilities_of(Arena arena)
cdef SegmentTable attach_table(Arena arena, object nesting)
cdef BuilderArena new_builder_arena(uint64_t first_words, object allocator=*)
cdef int64_t UNLIMITED
cdef uint8_t* arena_allocate(
    BuilderArena arena, words_t words, BuilderSegment** segment
) except NULL
cdef int mark_dead(BuilderSegment* segment, const uint8_t* data, words_t words) except -1
cdef bint is_dead(BuilderSegment* segment, const uint8_t* data) noexcept nogil
cdef BuilderSegment* builder_segment(BuilderArena arena, uint32_t id) noexcept
cdef int64_t capability_for_copy(BuilderArena target, Arena source, uint32_t index) except -1


cdef inline int charge(Arena arena, words_t words) except -1:
    """Take `words` from the traversal budget before they are read.

    Charged before the read: a list of Void costs one word for each element, or an 8-byte pointer
    could name 2**29 of them (encoding.md, 1.4).
    """
    arena.budget -= <int64_t>words
    if arena.budget < 0:
        return budget_spent(arena, words)
    return 0


cdef inline int check_open(Arena arena) except -1:
    if arena.first.base == NULL:
        return closed_error()
    return 0
