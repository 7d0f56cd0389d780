"""Writing in place: allocation across segments, upgrades of existing objects, zeroing, orphans.

Spec: encoding.md, 1.3 (what a builder does with objects of another version) and 1.7 (allocation).
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from capnwire.wire.arena cimport (
    BuilderArena, BuilderSegment, Segment, arena_allocate, builder_segment, mark_dead,
)
from capnwire.wire.memory cimport load64, store64
from capnwire.wire.pointer cimport (
    data_words_of, element_bits, element_size_of, far_is_double, far_offset, far_pointer,
    far_segment, kind_of, list_count_of, list_shape, list_words, offset_of, pointer_count_of,
    struct_shape, tag_count_of, with_offset,
)
from capnwire.wire.reader cimport (
    ListRef, StructRef, not_a_struct, out_of_bounds, read_list, resolve,
)
from capnwire.wire.units cimport (
    KIND_FAR, KIND_LIST, KIND_OTHER, KIND_STRUCT, MAX_LIST_ELEMENTS, MAX_SEGMENT_WORDS,
    SIZE_COMPOSITE, SIZE_POINTER, word_t, words_t,
)

from capnwire.errors import EncodeError, SchemaMismatch

cdef enum:
    NO_DEPTH_LIMIT = 0xFFFF      # what a builder's own objects are read with


cdef uint8_t* allocate_far(
    BuilderArena arena, Segment** segment, uint8_t** place, words_t words
) except NULL:
    """Room in another segment behind a landing pad; writes the far pointer at `place`."""
    cdef BuilderSegment* target
    if words >= MAX_SEGMENT_WORDS:
        raise EncodeError(
            f"an object of {words} words is wanted, but {MAX_SEGMENT_WORDS - 1} is the most"
        )
    cdef uint8_t* pad = arena_allocate(arena, words + 1, &target)
    store64(place[0], far_pointer(target.head.id, (pad - target.head.base) >> 3, 0))
    segment[0] = &target.head
    place[0] = pad
    return pad + 8


# ---------------------------------------------------------------- zeroing

cdef struct EraseFrame:
    Segment* segment
    uint8_t* object_at       # zeroed when the frame is done
    words_t words
    uint8_t* at              # next pointer
    uint32_t left            # pointers left in this run
    uint32_t run             # pointers of each element
    uint32_t elements        # further elements
    uint32_t skip            # bytes from the end of one run to the start of the next


cdef class EraseStack:
    """Frames of objects being zeroed: depth costs heap, never C stack.

    With `sought`, nothing is zeroed: the same walk looks for the object that holds that place.
    """

    cdef EraseFrame* frames
    cdef size_t count
    cdef size_t capacity
    cdef const uint8_t* sought
    cdef bint found

    def __dealloc__(self):
        free(self.frames)


cdef EraseFrame* push_frame(EraseStack stack) except NULL:
    cdef EraseFrame* frames
    if stack.count == stack.capacity:
        frames = <EraseFrame*>realloc(stack.frames, (stack.capacity * 2 + 16) * sizeof(EraseFrame))
        if frames == NULL:
            raise MemoryError
        stack.frames = frames
        stack.capacity = stack.capacity * 2 + 16
    stack.count += 1
    return &stack.frames[stack.count - 1]


cdef int wipe(Segment* segment, uint8_t* object_at, words_t words) except -1:
    memset(object_at, 0, words * 8)
    return mark_dead(<BuilderSegment*>segment, object_at, words)


cdef inline bint within(int64_t at, words_t words, Segment* segment) noexcept nogil:
    return at >= 0 and at <= segment.words and words <= <words_t>(segment.words - at)


cdef uint8_t* pad_of(BuilderArena arena, word_t far, Segment** segment) noexcept:
    """The landing pad of a far pointer, or NULL when there is none.

    What a builder wrote itself is in bounds; but whoever gave the memory (`allocate_seg_callable`)
    can write into it as well.
    """
    cdef BuilderSegment* built = builder_segment(arena, far_segment(far))
    if built == NULL or not within(far_offset(far), 1 + far_is_double(far), &built.head):
        return NULL
    segment[0] = &built.head
    return built.head.base + far_offset(far) * 8


cdef int enter(
    BuilderArena arena, Segment* segment, uint8_t* place, EraseStack stack
) except -1:
    """Zero what one pointer names, if that has no pointers; else push a frame for it."""
    cdef word_t pointer = load64(place)
    cdef BuilderSegment* home
    cdef uint8_t* pad
    cdef uint32_t pad_words
    cdef word_t far
    cdef int64_t at
    if stack.sought == NULL:
        store64(place, 0)
    if pointer == 0 or kind_of(pointer) == KIND_OTHER:
        return 0
    if kind_of(pointer) != KIND_FAR:
        at = ((place - segment.base) >> 3) + 1 + offset_of(pointer)
        return enter_object(segment, at, pointer, stack)
    pad = pad_of(arena, pointer, &segment)
    if pad == NULL:
        return 0
    pad_words = 1 + far_is_double(pointer)
    pointer = load64(pad + (pad_words - 1) * 8)
    at = ((pad - segment.base) >> 3) + 1 + offset_of(pointer)
    if pad_words == 2:
        far = load64(pad)
        home = builder_segment(arena, far_segment(far))
        if kind_of(far) != KIND_FAR or home == NULL:
            return 0
        segment = &home.head
        at = far_offset(far)
    if stack.sought == NULL:
        memset(pad, 0, pad_words * 8)
    return enter_object(segment, at, pointer, stack) if kind_of(pointer) < KIND_FAR else 0


cdef int enter_object(
    Segment* segment, int64_t index, word_t pointer, EraseStack stack
) except -1:
    """Zero an object without pointers, or push a frame for it; one out of bounds is left alone."""
    cdef uint32_t data_words = 0, pointers = 0, count = 1, size
    cdef words_t words
    cdef word_t tag
    cdef uint8_t* object_at = segment.base + index * 8
    cdef uint8_t* first = object_at
    if kind_of(pointer) == KIND_STRUCT:
        data_words = data_words_of(pointer)
        pointers = pointer_count_of(pointer)
        words = data_words + pointers
        if not within(index, words, segment):
            return 0
    else:
        size = element_size_of(pointer)
        words = list_words(size, list_count_of(pointer))
        if size == SIZE_COMPOSITE:
            words = <words_t>list_count_of(pointer) + 1
        if not within(index, words, segment):
            return 0
        if size == SIZE_COMPOSITE:
            tag = load64(object_at)
            first = object_at + 8
            data_words = data_words_of(tag)
            pointers = pointer_count_of(tag)
            count = tag_count_of(tag)
            if <words_t>count * (data_words + pointers) >= words:
                return 0
        elif size == SIZE_POINTER:
            pointers = list_count_of(pointer)
    if stack.sought != NULL:
        if object_at <= stack.sought < object_at + words * 8:
            stack.found = True
            return 0
    if pointers == 0 or count == 0:
        return 0 if stack.sought != NULL else wipe(segment, object_at, words)
    cdef EraseFrame* frame = push_frame(stack)
    frame.segment, frame.object_at, frame.words = segment, object_at, words
    frame.at = first + <words_t>data_words * 8
    frame.left = frame.run = pointers
    frame.elements = count - 1
    frame.skip = data_words * 8
    return 0


cdef int erase(BuilderArena arena, Segment* segment, uint8_t* place) except -1:
    """Make the pointer at `place` null and zero everything it names.

    Builders of those objects raise from now on.
    """
    cdef word_t pointer = load64(place)
    if pointer == 0:
        return 0
    if kind_of(pointer) == KIND_OTHER:
        store64(place, 0)
        return 0
    cdef EraseStack stack = EraseStack.__new__(EraseStack)
    enter(arena, segment, place, stack)
    return drain(arena, stack)


cdef int drain(BuilderArena arena, EraseStack stack) except -1:
    cdef EraseFrame* frame
    cdef uint8_t* at
    while stack.count and not stack.found:
        frame = &stack.frames[stack.count - 1]
        if frame.left == 0:
            if frame.elements == 0:
                if stack.sought == NULL:
                    wipe(frame.segment, frame.object_at, frame.words)
                stack.count -= 1
                continue
            frame.elements -= 1
            frame.at += frame.skip
            frame.left = frame.run
            continue
        at = frame.at
        frame.at += 8
        frame.left -= 1
        if load64(at):
            enter(arena, frame.segment, at, stack)
    return 0


cdef int erase_pointer_only(BuilderArena arena, Segment* segment, uint8_t* place) except -1:
    """Make the pointer null and zero its landing pads, but leave the object."""
    cdef word_t pointer = load64(place)
    cdef uint8_t* pad
    if kind_of(pointer) == KIND_FAR:
        pad = pad_of(arena, pointer, &segment)
        if pad != NULL:
            memset(pad, 0, 8 + 8 * far_is_double(pointer))
    store64(place, 0)
    return 0


# ---------------------------------------------------------------- new objects

cdef int init_struct(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t data_words, uint32_t pointers,
    StructRef* out,
) except -1:
    """A new zeroed struct at a pointer; what was there before is zeroed."""
    erase(arena, segment, place)
    out.bits = data_words * 64
    out.pointers = <uint16_t>pointers
    out.depth = 0
    if data_words + pointers == 0:
        store64(place, with_offset(0, -1))
        out.segment = segment
        out.data = place
        return 0
    out.data = allocate(
        arena, &segment, &place, data_words + pointers, struct_shape(data_words, pointers)
    )
    out.segment = segment
    return 0


cdef int init_list(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t element_size, words_t count,
    uint32_t data_words, uint32_t pointers, ListRef* out,
) except -1:
    """A new zeroed list at a pointer; what was there before is zeroed.

    Raises:
        EncodeError: the list would be too long for the format (2**29 - 1 elements or words).
    """
    cdef words_t words
    cdef uint8_t* base
    check_list_size(element_size, count, data_words + pointers)
    erase(arena, segment, place)
    if element_size == SIZE_COMPOSITE:
        words = count * (data_words + pointers)
        base = allocate(
            arena, &segment, &place, words + 1, list_shape(SIZE_COMPOSITE, <uint32_t>words)
        )
        store64(base, (count << 2) | struct_shape(data_words, pointers))
        base += 8
    else:
        words = list_words(element_size, count)
        base = allocate(arena, &segment, &place, words, list_shape(element_size, <uint32_t>count))
    fill_list(out, segment, base, element_size, count, data_words, pointers)
    return 0


cdef int check_list_size(uint32_t element_size, words_t count, words_t element_words) except -1:
    if count > MAX_LIST_ELEMENTS or (
        element_size == SIZE_COMPOSITE and count * element_words >= MAX_SEGMENT_WORDS
    ):
        raise EncodeError(
            f"a list of {count} elements is too long: the format ends at {MAX_LIST_ELEMENTS} "
            "elements, and at as many words"
        )
    return 0


cdef void fill_list(
    ListRef* out, Segment* segment, uint8_t* base, uint32_t element_size, words_t count,
    uint32_t data_words, uint32_t pointers,
) noexcept:
    out.segment = segment
    out.base = base
    out.count = <uint32_t>count
    out.element_size = element_size
    out.depth = 0
    if element_size == SIZE_COMPOSITE:
        out.bits = data_words * 64
        out.pointers = <uint16_t>pointers
    else:
        out.bits = element_bits(element_size)
        out.pointers = 1 if element_size == SIZE_POINTER else 0
    out.step = out.bits + <uint32_t>out.pointers * 64


cdef int set_capability(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t index
) except -1:
    erase(arena, segment, place)
    store64(place, <word_t>KIND_OTHER | (<word_t>index << 32))
    return 0


# ---------------------------------------------------------------- existing objects

cdef int get_struct(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t data_words, uint32_t pointers,
    StructRef* out,
) except -1:
    """The struct at a non-null pointer, moved to a larger place when it is smaller than wanted."""
    cdef word_t pointer = load64(place)
    cdef Segment* home = segment
    cdef int64_t at
    cdef uint32_t old_words, old_pointers
    resolve(arena, &home, place, &pointer, &at)
    if kind_of(pointer) != KIND_STRUCT:
        return not_a_struct(pointer)
    old_words = data_words_of(pointer)
    old_pointers = pointer_count_of(pointer)
    if old_words + old_pointers and not within(at, old_words + old_pointers, home):
        return out_of_bounds("struct", at, old_words + old_pointers, home)
    if old_words >= data_words and old_pointers >= pointers:
        out.segment = home
        out.data = home.base + at * 8
        out.bits = old_words * 64
        out.pointers = <uint16_t>old_pointers
        out.depth = 0
        return 0
    cdef uint8_t* old = home.base + at * 8
    erase_pointer_only(arena, segment, place)
    init_struct(
        arena, segment, place, max(old_words, data_words), max(old_pointers, pointers), out
    )
    move_struct(arena, out.segment, out.data, out.bits, home, old, old_words, old_pointers)
    return wipe(home, old, old_words + old_pointers)


cdef int move_struct(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Segment* old_segment,
    uint8_t* old, uint32_t old_words, uint32_t old_pointers,
) except -1:
    """Data and pointers of a struct to another, zeroed place that is at least as large."""
    cdef uint32_t i
    memcpy(data, old, <size_t>old_words * 8)
    for i in range(old_pointers):
        transfer(
            arena, segment, data + (bits >> 3) + <size_t>i * 8, old_segment,
            old + (<size_t>old_words + i) * 8,
        )
    return 0


cdef int transfer(
    BuilderArena arena, Segment* segment, uint8_t* place, Segment* old_segment, uint8_t* old_place
) except -1:
    """Move a pointer to the null pointer at `place`; its object stays where it is."""
    cdef word_t pointer = load64(old_place)
    cdef uint8_t* object_at
    if pointer == 0 or kind_of(pointer) >= KIND_FAR:
        store64(place, pointer)
        return 0
    object_at = old_place + 8 + offset_of(pointer) * 8
    return point_at(arena, segment, place, old_segment, object_at, pointer)


cdef int point_at(
    BuilderArena arena, Segment* segment, uint8_t* place, Segment* home, uint8_t* object_at,
    word_t shape,
) except -1:
    """Write a pointer to an object that exists, through a landing pad when it lives elsewhere.

    The pad goes beside the object when a word is free there, else two words anywhere make a double
    far, as the reference does it.
    """
    cdef BuilderSegment* own = <BuilderSegment*>home
    cdef BuilderSegment* pad_segment
    cdef uint8_t* pad
    if kind_of(shape) == KIND_STRUCT and shape >> 32 == 0:
        store64(place, with_offset(0, -1))
        return 0
    if segment == home:
        store64(place, with_offset(shape, ((object_at - place) >> 3) - 1))
        return 0
    if own.head.words < own.capacity:
        pad = own.head.base + <size_t>own.head.words * 8
        own.head.words += 1
        store64(pad, with_offset(shape, ((object_at - pad) >> 3) - 1))
        store64(place, far_pointer(home.id, (pad - home.base) >> 3, 0))
        return 0
    pad = arena_allocate(arena, 2, &pad_segment)
    store64(pad, far_pointer(home.id, (object_at - home.base) >> 3, 0))
    store64(pad + 8, with_offset(shape, 0))
    store64(place, far_pointer(pad_segment.head.id, (pad - pad_segment.head.base) >> 3, 1))
    return 0


cdef int get_list(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t wanted, uint32_t data_words,
    uint32_t pointers, ListRef* out,
) except -1:
    """The list at a non-null pointer, seen as elements of size `wanted`.

    Struct lists that are too small, and primitive lists wanted as structs, are moved to a larger
    place.

    Raises:
        PointerError: the elements on the wire cannot be seen that way.
    """
    read_list(arena, segment, place, load64(place), NO_DEPTH_LIMIT, wanted, out)
    out.depth = 0
    if wanted != SIZE_COMPOSITE:
        return 0
    if (
        out.element_size == SIZE_COMPOSITE and out.bits >= data_words * 64
        and out.pointers >= pointers
    ):
        return 0
    return upgrade_list(arena, segment, place, data_words, pointers, out)


cdef int upgrade_list(
    BuilderArena arena, Segment* segment, uint8_t* place, uint32_t data_words, uint32_t pointers,
    ListRef* out,
) except -1:
    """Move a list to new elements that hold what the old ones had and what is wanted."""
    cdef ListRef old = out[0]
    cdef uint32_t i
    cdef uint8_t* source
    cdef uint8_t* target
    cdef words_t old_words
    data_words = max(data_words, (old.bits + 63) >> 6)
    pointers = max(pointers, <uint32_t>old.pointers)
    check_list_size(SIZE_COMPOSITE, old.count, data_words + pointers)
    erase_pointer_only(arena, segment, place)
    init_list(
        arena, segment, place, SIZE_COMPOSITE, old.count, data_words, pointers, out
    )
    for i in range(old.count):
        source = old.base + (<words_t>i * old.step >> 3)
        target = out.base + (<words_t>i * out.step >> 3)
        memcpy(target, source, old.bits >> 3)
        move_pointers(arena, out, target, &old, source)
    if old.element_size == SIZE_COMPOSITE:
        old_words = (<words_t>old.count * old.step >> 6) + 1
        return wipe(old.segment, old.base - 8, old_words)
    return wipe(old.segment, old.base, list_words(old.element_size, old.count))


cdef int move_pointers(
    BuilderArena arena, ListRef* out, uint8_t* target, ListRef* old, uint8_t* source
) except -1:
    cdef uint32_t i
    for i in range(old.pointers):
        transfer(
            arena, out.segment, target + (out.bits >> 3) + <size_t>i * 8,
            old.segment, source + (old.bits >> 3) + <size_t>i * 8,
        )
    return 0


# ---------------------------------------------------------------- orphans

cdef class Orphan:
    """An object that belongs to a message but is named by no pointer in it.

    Made by `disown()` and `new_orphan()`; `adopt()` puts it into place.  Dropping it zeroes it.
    """

    def __dealloc__(self):
        if self.tag and self.arena is not None and kind_of(self.tag) != KIND_OTHER:
            try:
                drop_orphan(self)
            except MemoryError:
                pass          # nothing is lost but the zeroing of dead space

    def __bool__(self):
        return self.tag != 0


cdef int drop_orphan(Orphan orphan) except -1:
    cdef EraseStack stack = EraseStack.__new__(EraseStack)
    cdef word_t tag = orphan.tag
    cdef word_t far = tag
    orphan.tag = 0
    if kind_of(tag) == KIND_FAR:
        enter(orphan.arena, &orphan.segment.head, <uint8_t*>&far, stack)
    else:
        enter_object(&orphan.segment.head, index_of(orphan), tag, stack)
    return drain(orphan.arena, stack)


cdef int64_t index_of(Orphan orphan) noexcept:
    return (orphan.data - orphan.segment.head.base) >> 3


cdef bint holds(Orphan orphan, const uint8_t* place) except -1:
    """Whether a place lies in an orphan or in anything below it."""
    cdef EraseStack stack = EraseStack.__new__(EraseStack)
    cdef word_t far = orphan.tag
    if far == 0 or kind_of(far) == KIND_OTHER:
        return False
    stack.sought = place
    if kind_of(far) == KIND_FAR:
        enter(orphan.arena, &orphan.segment.head, <uint8_t*>&far, stack)
    else:
        enter_object(&orphan.segment.head, index_of(orphan), far, stack)
    drain(orphan.arena, stack)
    return stack.found


cdef Orphan disown(BuilderArena arena, Segment* segment, uint8_t* place):
    """Take the object at a pointer out of the tree; the pointer becomes null."""
    cdef Orphan orphan = Orphan.__new__(Orphan)
    cdef word_t pointer = load64(place)
    cdef word_t described = pointer
    cdef Segment* home = segment
    cdef int64_t at = 0
    orphan.arena = arena
    if pointer == 0:
        return orphan
    if kind_of(pointer) != KIND_OTHER:
        resolve(arena, &home, place, &described, &at)
        orphan.data = home.base + at * 8
    orphan.segment = <BuilderSegment*>home
    orphan.tag = with_offset(pointer, -1) if kind_of(pointer) < KIND_FAR else pointer
    store64(place, 0)
    return orphan


cdef int adopt(
    BuilderArena arena, Segment* segment, uint8_t* place, Orphan orphan
) except -1:
    """Put an orphan at a pointer, zeroing what was there; the orphan is null afterwards.

    Raises:
        EncodeError: it belongs to another message, or the pointer lies in the orphan itself.
    """
    if orphan.tag and orphan.arena is not arena:
        raise EncodeError("an orphan can only be adopted by the message that it belongs to")
    if holds(orphan, place):
        raise EncodeError("an orphan cannot be adopted into itself: the message would have a cycle")
    cdef word_t tag = orphan.tag
    erase(arena, segment, place)
    orphan.tag = 0
    if tag == 0 or kind_of(tag) >= KIND_FAR:
        store64(place, tag)
        return 0
    return point_at(arena, segment, place, &orphan.segment.head, orphan.data, tag)


cdef Orphan new_orphan_struct(BuilderArena arena, uint32_t data_words, uint32_t pointers):
    cdef Orphan orphan = Orphan.__new__(Orphan)
    orphan.arena = arena
    orphan.data = arena_allocate(arena, data_words + pointers, &orphan.segment)
    orphan.tag = with_offset(struct_shape(data_words, pointers), -1)
    return orphan


cdef Orphan new_orphan_list(
    BuilderArena arena, uint32_t element_size, words_t count, uint32_t data_words,
    uint32_t pointers,
):
    cdef Orphan orphan = Orphan.__new__(Orphan)
    cdef words_t words
    check_list_size(element_size, count, data_words + pointers)
    orphan.arena = arena
    if element_size == SIZE_COMPOSITE:
        words = count * (data_words + pointers)
        orphan.data = arena_allocate(arena, words + 1, &orphan.segment)
        store64(orphan.data, (count << 2) | struct_shape(data_words, pointers))
        orphan.tag = with_offset(list_shape(SIZE_COMPOSITE, <uint32_t>words), -1)
    else:
        words = list_words(element_size, count)
        orphan.data = arena_allocate(arena, words, &orphan.segment)
        orphan.tag = with_offset(list_shape(element_size, <uint32_t>count), -1)
    return orphan


cdef int orphan_struct(
    Orphan orphan, uint32_t data_words, uint32_t pointers, StructRef* out
) except -1:
    """The struct of an orphan, to be read and written; moved when it is smaller than wanted."""
    cdef word_t tag = orphan_tag(orphan)
    cdef BuilderSegment* segment
    cdef uint8_t* seat
    if tag == 0 or kind_of(tag) != KIND_STRUCT:
        raise SchemaMismatch("the orphan is null or holds no struct")
    out.segment = &orphan.segment.head
    out.data = orphan.data
    out.bits = data_words_of(tag) * 64
    out.pointers = <uint16_t>pointer_count_of(tag)
    out.depth = 0
    if data_words_of(tag) < data_words or out.pointers < pointers:
        seat = seated(orphan, &segment)
        try:
            get_struct(orphan.arena, &segment.head, seat, data_words, pointers, out)
        finally:
            unseat(orphan, &segment.head, seat)
    return 0


cdef int orphan_list(
    Orphan orphan, uint32_t wanted, uint32_t data_words, uint32_t pointers, ListRef* out
) except -1:
    """The list of an orphan, seen as elements of size `wanted`, to be read and written.

    Raises:
        PointerError: the elements on the wire cannot be seen that way.
    """
    cdef word_t tag = orphan_tag(orphan)
    cdef BuilderSegment* segment
    cdef uint8_t* seat
    if tag == 0 or kind_of(tag) != KIND_LIST:
        raise SchemaMismatch("the orphan is null or holds no list")
    if element_size_of(tag) == wanted and wanted != SIZE_COMPOSITE:
        fill_list(
            out, &orphan.segment.head, orphan.data, wanted, list_count_of(tag), 0, 0
        )
        return 0
    if element_size_of(tag) == wanted:
        tag = load64(orphan.data)
        if data_words_of(tag) >= data_words and pointer_count_of(tag) >= pointers:
            fill_list(
                out, &orphan.segment.head, orphan.data + 8, SIZE_COMPOSITE, tag_count_of(tag),
                data_words_of(tag), pointer_count_of(tag),
            )
            return 0
    seat = seated(orphan, &segment)
    try:
        get_list(orphan.arena, &segment.head, seat, wanted, data_words, pointers, out)
    finally:
        unseat(orphan, &segment.head, seat)
    return 0


cdef uint8_t* seated(Orphan orphan, BuilderSegment** segment) except NULL:
    """A pointer for an orphan that has to grow: what moves objects needs one to write to."""
    cdef uint8_t* seat = arena_allocate(orphan.arena, 1, segment)
    adopt(orphan.arena, &segment[0].head, seat, orphan)
    return seat


cdef int unseat(Orphan orphan, Segment* segment, uint8_t* seat) except -1:
    cdef Orphan moved = disown(orphan.arena, segment, seat)
    orphan.segment, orphan.data, orphan.tag = moved.segment, moved.data, moved.tag
    moved.tag = 0
    return 0


cdef word_t orphan_tag(Orphan orphan) except? 0:
    """The pointer that describes an orphan's object, through its far pointer if it has one."""
    cdef word_t pointer = orphan.tag
    cdef Segment* home
    cdef int64_t at
    if pointer == 0:
        return 0
    home = &orphan.segment.head
    if kind_of(pointer) == KIND_FAR:
        resolve(orphan.arena, &home, home.base, &pointer, &at)
    return pointer
