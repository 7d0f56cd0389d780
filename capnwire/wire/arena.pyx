"""Arenas: pins on foreign buffers, segment tables, the traversal budget, builder segments.

Spec: encoding.md, 1.4 (limits) and 1.7 (growth of segments).
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.bytes cimport PyBytes_CheckExact
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from capnwire.wire.copy cimport count_traversal, message_words
from capnwire.wire.memory cimport load32, prefetch
from capnwire.wire.units cimport MAX_SEGMENT_WORDS

from capnwire.errors import (
    DecodeError, EncodeError, FramingError, LimitError, TruncatedError,
)

cdef enum:
    AHEAD_BYTES = 4096           # how far ahead of a small message memory is asked for
    SMALL_WORDS = 256

cdef int64_t UNLIMITED = (<int64_t>1) << 62
cdef int64_t DEFAULT_TRAVERSAL_WORDS = 8 * 1024 * 1024
cdef uint32_t DEFAULT_NESTING = 64


# A message may lie in a Data of a message, and so on for as many levels as it has bytes: the
# trashcan lets the end of such a chain of views cost no stack.
@cython.trashcan(True)
cdef class Pin:
    """Holds a buffer export; released when the last reader or view over it is gone."""

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef class SegmentTable:
    """The segments of a message that has several, or a limit or capability table of its own."""

    def __dealloc__(self):
        free(self.segments)


@cython.no_gc
cdef class Arena:
    """A message being read."""


cdef Pin pin_of(object buffer):
    """Pin any exporter of a contiguous buffer.

    Raises:
        TypeError: it exports no buffer.
        BufferError: the buffer is not contiguous.
    """
    cdef Pin pin = Pin.__new__(Pin)
    PyObject_GetBuffer(buffer, &pin.view, PyBUF_SIMPLE)
    pin.exporter, pin.held = buffer, True
    return pin


cdef Arena arena_over(
    object pin, const uint8_t* base, uint32_t words, object limit, object nesting
):
    """An arena over one segment; `limit` and `nesting` None mean the defaults.

    Raises:
        ValueError: a limit is negative.
    """
    cdef Arena arena = Arena.__new__(Arena)
    arena.first.base = <uint8_t*>base
    arena.first.words = words
    arena.first.id = 1
    arena.pin = pin
    if limit is None:
        arena.budget = DEFAULT_TRAVERSAL_WORDS
    else:
        arena.budget = budget_from(limit)
        arena.first.id |= ARENA_STRICT
    if not PyBytes_CheckExact(pin):
        arena.first.id |= ARENA_MUTABLE
    if nesting is not None:
        attach_table(arena, nesting)
    return arena


cdef int64_t budget_from(object limit) except -1:
    if limit < 0:
        raise ValueError(f"traversal_limit_in_words is {limit}, but must not be negative")
    return UNLIMITED if limit > UNLIMITED else <int64_t>limit


cdef SegmentTable attach_table(Arena arena, object nesting):
    """Give a one-segment arena a table, for what the arena itself has no room to say."""
    cdef SegmentTable table = new_table(1)
    table.nesting_limit = nesting_from(nesting)
    table.segments[0] = arena.first
    table.segments[0].id = 0
    table.pin = arena.pin
    arena.pin = table
    return table


cdef uint32_t nesting_from(object nesting) except? 0:
    if nesting < 0:
        raise ValueError(f"nesting_limit is {nesting}, but must not be negative")
    return 0xFFFF if nesting > 0xFFFF else nesting


cdef Arena open_framed(
    object pin, const uint8_t* base, uint64_t size, object limit, object nesting, uint64_t* used
):
    """The message at the start of `size` bytes; `used` becomes the bytes it takes.

    Raises:
        TruncatedError: the bytes end before the message does.
        FramingError: the segment table is no segment table.
    """
    cdef uint64_t words, line
    if size < 8:
        raise TruncatedError(
            f"a message starts with 8 bytes of segment table, but {size} are left",
            wanted=8, found=size,
        )
    if load32(base) != 0:
        return open_several(pin, base, size, limit, nesting, used)
    words = load32(base + 4)
    if words > (size - 8) >> 3:
        return truncated(8 + words * 8, size)
    used[0] = 8 + words * 8
    if words <= SMALL_WORDS:
        # A log of small messages: where one starts is known only when the one before has arrived
        # from memory, so ask for what is a few messages ahead.
        for line in range(used[0] >> 6):
            prefetch(<size_t>base + AHEAD_BYTES + line * 64)
    return arena_over(pin, base + 8, <uint32_t>words, limit, nesting)


cdef object truncated(uint64_t wanted, uint64_t found):
    raise TruncatedError(
        f"the segment table claims a message of {wanted} bytes, but {found} are left",
        wanted=wanted, found=found,
    )


cdef Arena open_several(
    object pin, const uint8_t* base, uint64_t size, object limit, object nesting, uint64_t* used
):
    """A message of two or more segments."""
    cdef uint64_t count = <uint64_t>load32(base) + 1
    cdef uint64_t table_bytes = ((count + 2) >> 1) * 8
    cdef uint64_t total = 0
    cdef uint64_t i
    cdef SegmentTable table
    cdef const uint8_t* at
    if count > ARENA_COUNT_MASK:
        raise FramingError(
            f"the segment table claims {count} segments, but {ARENA_COUNT_MASK} is the most"
        )
    if table_bytes > size:
        return truncated(table_bytes, size)
    for i in range(count):
        total += load32(base + 4 + i * 4)
    if total > (size - table_bytes) >> 3:
        return truncated(table_bytes + total * 8, size)
    table = new_table(<uint32_t>count)
    at = base + table_bytes
    for i in range(count):
        table.segments[i].base = <uint8_t*>at
        table.segments[i].words = load32(base + 4 + i * 4)
        table.segments[i].id = <uint32_t>i
        at += <uint64_t>table.segments[i].words * 8
    used[0] = table_bytes + total * 8
    return arena_of_table(table, pin, not PyBytes_CheckExact(pin), limit, nesting)


cdef SegmentTable new_table(uint32_t count):
    cdef SegmentTable table = SegmentTable.__new__(SegmentTable)
    table.segments = <Segment*>calloc(count, sizeof(Segment))
    if table.segments == NULL:
        raise MemoryError
    table.count = count
    table.nesting_limit = DEFAULT_NESTING
    return table


cdef Arena arena_of_table(
    SegmentTable table, object pin, bint changeable, object limit, object nesting
):
    cdef Arena arena = arena_over(
        b"", table.segments[0].base, table.segments[0].words, limit, None
    )
    table.pin = pin
    if nesting is not None:
        table.nesting_limit = nesting_from(nesting)
    arena.pin = table
    arena.first.id = (arena.first.id & ARENA_STRICT) | table.count
    if changeable:
        arena.first.id |= ARENA_MUTABLE
    return arena


cdef Arena open_segments(list buffers, object limit, object nesting):
    """A message whose segments are buffers of their own.

    Raises:
        FramingError: there is no segment, or one is not a whole number of words.
    """
    cdef uint32_t i
    cdef SegmentTable table
    cdef Pin pin
    cdef bint changeable = False
    if not 0 < len(buffers) <= ARENA_COUNT_MASK:
        raise FramingError(f"a message has 1 to {ARENA_COUNT_MASK} segments, not {len(buffers)}")
    table = new_table(<uint32_t>len(buffers))
    pins = []
    for i in range(table.count):
        pin = pin_of(buffers[i])
        if pin.view.len & 7 or pin.view.len >> 3 > MAX_SEGMENT_WORDS:
            raise FramingError(
                f"segment {i} has {pin.view.len} bytes, not a whole number of words below 4 GiB"
            )
        changeable = changeable or not PyBytes_CheckExact(buffers[i])
        table.segments[i].base = <uint8_t*>pin.view.buf
        table.segments[i].words = <uint32_t>(pin.view.len >> 3)
        table.segments[i].id = i
        pins.append(pin)
    return arena_of_table(table, tuple(pins), changeable, limit, nesting)


cdef Segment* segment_at(Arena arena, uint32_t id) noexcept:
    """The segment with this id, or NULL."""
    cdef uint32_t count = arena.first.id & ARENA_COUNT_MASK
    cdef BuilderSegment* built
    if count == 0:
        built = builder_segment(<BuilderArena>arena, id)
        return NULL if built == NULL else &built.head
    if id >= count:
        return NULL
    if id == 0:
        return &arena.first
    return &(<SegmentTable>arena.pin).segments[id]


cdef uint32_t segment_count(Arena arena) noexcept:
    cdef uint32_t count = arena.first.id & ARENA_COUNT_MASK
    return count if count else (<BuilderArena>arena).more_count + 1


cdef uint32_t nesting_limit_of(Arena arena) noexcept:
    if (arena.first.id & ARENA_COUNT_MASK) == 0:
        return 0xFFFF
    if isinstance(arena.pin, SegmentTable):
        return (<SegmentTable>arena.pin).nesting_limit
    return DEFAULT_NESTING


cdef int closed_error() except -1:
    raise DecodeError("the message was closed when its `with` block was left")


cdef int budget_spent(Arena arena, words_t words) except -1:
    """Decide what an empty budget means: amplification, or a program that reads often.

    One depth-first count of what a complete reading would touch decides.  Within the cap the
    message cannot amplify, so the budget is lifted over immutable bytes, and renewed, doubling each
    time, over buffers that can be changed after the verdict.
    """
    cdef uint32_t flags = arena.first.id
    cdef int64_t limit = DEFAULT_TRAVERSAL_WORDS
    cdef int64_t total = 1       # the root pointer takes one word and costs two
    cdef uint32_t renewals
    if flags & ARENA_STRICT:
        arena.budget += <int64_t>words
        raise LimitError(
            "what is left of traversal_limit_in_words", limit=arena.budget, wanted=words
        )
    total += <int64_t>message_words(arena)
    if total > limit:
        limit = total
    if count_traversal(arena, limit) < 0:
        arena.budget += <int64_t>words
        # The verdict stands: counting again at each further read would be work without end.
        arena.first.id |= ARENA_STRICT
        raise LimitError("traversal_limit_in_words", limit=limit, wanted=limit + 1)
    # The count lets other threads run, and they may have closed the message.
    check_open(arena)
    renewals = flags >> ARENA_RENEWALS_SHIFT
    if not flags & ARENA_MUTABLE or renewals >= 40:
        arena.budget = UNLIMITED
        return 0
    arena.budget = (limit << renewals) if renewals < 30 else UNLIMITED
    arena.first.id = (flags & 0x03FFFFFF) | ((renewals + 1) << ARENA_RENEWALS_SHIFT)
    if arena.budget < <int64_t>words:
        arena.budget = <int64_t>words
    arena.budget -= <int64_t>words
    return 0


# ---------------------------------------------------------------- building

cdef enum:
    CACHED_WORDS = 1024          # the reference's size of a first segment
    CACHE_SLOTS = 16

# Zeroed first segments, kept because a calloc of 8 KiB for each small message costs a quarter of
# building it (bench: Small build).  Only the words that were used are zeroed again.
cdef uint8_t* cached[CACHE_SLOTS]
cdef int cached_count = 0


@cython.no_gc
cdef class BuilderArena(Arena):
    """A message being built: it owns its segments."""

    def __dealloc__(self):
        cdef uint32_t i
        release_segment(&self.root_segment)
        for i in range(self.more_count):
            release_segment(self.more[i])
            free(self.more[i])
        free(self.more)


cdef void release_segment(BuilderSegment* segment) noexcept:
    global cached_count
    free(segment.dead)
    if segment.owner != NULL:
        PyBuffer_Release(<Py_buffer*>segment.owner)
        free(segment.owner)
    elif segment.head.base == NULL:
        pass
    elif segment.capacity == CACHED_WORDS and cached_count < CACHE_SLOTS:
        memset(segment.head.base, 0, <size_t>segment.head.words * 8)
        cached[cached_count] = segment.head.base
        cached_count += 1
    else:
        free(segment.head.base)


cdef int obtain_memory(
    BuilderArena arena, BuilderSegment* segment, uint64_t words
) except -1:
    """Zeroed memory for a segment, from the cache, the heap or the caller's allocator."""
    global cached_count
    if words > MAX_SEGMENT_WORDS:
        raise EncodeError(
            f"a segment of {words} words is wanted, but {MAX_SEGMENT_WORDS} is the most"
        )
    if arena.allocator is not None:
        return memory_from_caller(arena, segment, words)
    if words == CACHED_WORDS and cached_count > 0:
        cached_count -= 1
        segment.head.base = cached[cached_count]
    else:
        segment.head.base = <uint8_t*>calloc(words, 8)
        if segment.head.base == NULL:
            raise MemoryError(f"no memory for a segment of {words} words")
    segment.capacity = <uint32_t>words
    return 0


cdef int memory_from_caller(
    BuilderArena arena, BuilderSegment* segment, uint64_t words
) except -1:
    buffer = arena.allocator(words)
    cdef Py_buffer* view = <Py_buffer*>malloc(sizeof(Py_buffer))
    if view == NULL:
        raise MemoryError
    try:
        PyObject_GetBuffer(buffer, view, PyBUF_SIMPLE | PyBUF_WRITABLE)
    except BaseException:
        free(view)
        raise
    cdef Py_ssize_t i
    cdef Py_ssize_t size = view.len & ~<Py_ssize_t>7
    cdef bint zero = True
    for i in range(size):
        if (<uint8_t*>view.buf)[i]:
            zero = False
            break
    if not zero or <uint64_t>size < words * 8 or size > <Py_ssize_t>MAX_SEGMENT_WORDS * 8:
        PyBuffer_Release(view)
        free(view)
        raise EncodeError(
            f"the segment allocator was asked for {words} zeroed words and gave "
            + (f"{size} bytes" if zero else "memory that is not zero")
        )
    segment.owner = view
    segment.head.base = <uint8_t*>view.buf
    segment.capacity = <uint32_t>(size >> 3)
    return 0


cdef BuilderArena new_builder_arena(uint64_t first_words, object allocator=None):
    """A message with one segment whose first word is the null root pointer."""
    cdef BuilderArena arena = BuilderArena.__new__(BuilderArena)
    arena.allocator = allocator
    obtain_memory(arena, &arena.root_segment, first_words if first_words else 1)
    arena.root_segment.head.words = 1
    arena.next_words = arena.root_segment.capacity
    arena.first.base = arena.root_segment.head.base
    arena.budget = UNLIMITED
    return arena


cdef BuilderSegment* builder_segment(BuilderArena arena, uint32_t id) noexcept:
    if id == 0:
        return &arena.root_segment
    return arena.more[id - 1] if id <= arena.more_count else NULL


cdef uint8_t* arena_allocate(
    BuilderArena arena, words_t words, BuilderSegment** segment
) except NULL:
    """Zeroed room in the last segment, or in a new one; gives the place and its segment."""
    cdef BuilderSegment* last = (
        arena.more[arena.more_count - 1] if arena.more_count else &arena.root_segment
    )
    if words > last.capacity - last.head.words:
        last = add_segment(arena, words)
    segment[0] = last
    cdef uint8_t* place = last.head.base + <size_t>last.head.words * 8
    last.head.words += <uint32_t>words
    return place


cdef BuilderSegment* add_segment(BuilderArena arena, words_t words) except NULL:
    # A caller's allocator is told what is needed and grows as it likes, as in pycapnp.
    cdef uint64_t size = words
    if arena.allocator is None and arena.next_words > words:
        size = arena.next_words
    cdef BuilderSegment** more
    cdef uint32_t room
    cdef BuilderSegment* segment = <BuilderSegment*>calloc(1, sizeof(BuilderSegment))
    if segment == NULL:
        raise MemoryError
    try:
        obtain_memory(arena, segment, size)
    except BaseException:
        free(segment)
        raise
    # Only now, as the caller's allocator may have built on this message and added segments itself.
    if arena.more_count == arena.more_capacity:
        room = arena.more_capacity * 2 + 4
        more = <BuilderSegment**>realloc(arena.more, room * sizeof(BuilderSegment*))
        if more == NULL:
            release_segment(segment)
            free(segment)
            raise MemoryError
        arena.more = more
        arena.more_capacity = room
    segment.head.id = arena.more_count + 1
    arena.more[arena.more_count] = segment
    arena.more_count += 1
    arena.next_words = min(arena.next_words + segment.capacity, <uint64_t>MAX_SEGMENT_WORDS)
    return segment


cdef int mark_dead(BuilderSegment* segment, const uint8_t* data, words_t words) except -1:
    """Remember that an object was overwritten, so that builders of it can refuse to write."""
    if words == 0:
        return 0
    if segment.dead == NULL:
        segment.dead = <uint64_t*>calloc((segment.capacity + 63) >> 6, 8)
        if segment.dead == NULL:
            raise MemoryError
    cdef words_t at = (data - segment.head.base) >> 3
    cdef words_t end = at + words
    while at < end and at & 63:
        segment.dead[at >> 6] |= <uint64_t>1 << (at & 63)
        at += 1
    while at + 64 <= end:
        segment.dead[at >> 6] = ~<uint64_t>0
        at += 64
    while at < end:
        segment.dead[at >> 6] |= <uint64_t>1 << (at & 63)
        at += 1
    return 0


cdef bint is_dead(BuilderSegment* segment, const uint8_t* data) noexcept nogil:
    cdef words_t at
    if segment.dead == NULL:
        return False
    at = (data - segment.head.base) >> 3
    return (segment.dead[at >> 6] >> (at & 63)) & 1


cdef object capabilities_of(Arena arena):
    """The capability table of a message, or None."""
    if (arena.first.id & ARENA_COUNT_MASK) == 0:
        return (<BuilderArena>arena).capabilities
    if isinstance(arena.pin, SegmentTable):
        return (<SegmentTable>arena.pin).capabilities
    return None


cdef int64_t capability_for_copy(BuilderArena target, Arena source, uint32_t index) except -1:
    """The index under which a capability of `source` is known in `target`; it is added there."""
    table = capabilities_of(source)
    if table is None or target is source:
        return index
    if index >= len(table):
        raise DecodeError(f"capability {index} is not in the table of {len(table)} entries")
    if target.capabilities is None:
        target.capabilities = []
    target.capabilities.append(table[index])
    return len(target.capabilities) - 1
