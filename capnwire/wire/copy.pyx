"""Whole-tree work over objects: deep copy, canonical form, total size, the traversal count.

Nothing here recurses: every walk has a stack on the heap, so that depth costs memory and never C
stack.  Comparing is in canonical.pyx.  Spec: encoding.md, 1.3 (list layouts), 1.4 (charges, total
size) and 1.5 (canonical form).
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from capnwire.wire.arena cimport (
    ARENA_COUNT_MASK, UNLIMITED, Arena, BuilderArena, Segment, budget_spent,
    capability_for_copy, nesting_limit_of, new_builder_arena, segment_at, segment_count,
)
from capnwire.wire.builder cimport allocate
from capnwire.wire.memory cimport load64, store64
from capnwire.wire.pointer cimport (
    data_words_of, element_size_of, far_is_double, far_offset, far_segment, is_capability, kind_of,
    list_count_of, list_shape, list_words, offset_of, pointer_count_of, struct_shape, tag_count_of,
    with_offset,
)
from capnwire.wire.reader cimport (
    WANT_ANY, ListRef, StructRef, read_list, read_struct, resolve,
)
from capnwire.wire.units cimport (
    KIND_FAR, KIND_LIST, KIND_OTHER, KIND_STRUCT, SIZE_BIT, SIZE_COMPOSITE, SIZE_POINTER,
    SIZE_VOID, word_t, words_t,
)

from capnwire.errors import EncodeError, PointerError


# ---------------------------------------------------------------- what all walks share

cdef void* push(Stack* stack, size_t frame_bytes) except NULL:
    """Room for one more frame; pointers to older frames are void afterwards."""
    cdef size_t capacity
    cdef void* frames
    if stack.count == stack.capacity:
        capacity = stack.capacity * 2 + 16
        frames = realloc(stack.frames, capacity * frame_bytes)
        if frames == NULL:
            raise MemoryError
        stack.frames = <uint8_t*>frames
        stack.capacity = capacity
    stack.count += 1
    return stack.frames + (stack.count - 1) * frame_bytes


cdef uint32_t kind_behind(Arena arena, Segment* segment, word_t pointer) noexcept:
    """The kind of a pointer, or of what its landing pad holds; nothing is charged or reported.

    A broken far pointer counts as a list: reading it as one tells what is wrong with it.
    """
    cdef words_t pad
    if kind_of(pointer) != KIND_FAR:
        return kind_of(pointer)
    segment = segment_at(arena, far_segment(pointer))
    pad = far_offset(pointer) + far_is_double(pointer)
    if segment == NULL or pad >= segment.words:
        return KIND_LIST
    pointer = load64(segment.base + pad * 8)
    return KIND_LIST if kind_of(pointer) == KIND_FAR else kind_of(pointer)


cdef int64_t capability_index(
    Arena arena, Segment* segment, const uint8_t* place, word_t pointer
) except -1:
    """The table index of a pointer that is neither struct nor list.

    Raises:
        PointerError: it is not a capability either.
    """
    cdef int64_t at
    resolve(arena, &segment, place, &pointer, &at)
    if not is_capability(pointer):
        raise PointerError(f"the pointer {pointer:#018x} is of no known type")
    return pointer >> 32


# ---------------------------------------------------------------- deep copy

cdef struct CopyFrame:
    # The pointers of one object that are still to be copied.
    Segment* source_segment
    const uint8_t* source    # next pointer
    Segment* segment         # of the target
    uint8_t* place           # where its copy goes
    uint32_t left            # pointers left in this element
    uint32_t pointers        # copied from each element
    uint32_t elements        # elements after this one
    uint32_t tail            # bytes of pointers that each element's copy leaves out
    uint32_t source_bytes    # of an element's data section, there
    uint32_t data_bytes      # and here
    uint32_t depth           # levels left below this object


cdef struct CopyWalk:
    Stack stack
    bint canonical           # drop trailing zero words and null pointers; refuse capabilities
    uint64_t left            # words that may still be copied: see words_allowed


cdef uint64_t words_allowed(Arena arena) noexcept:
    """What a walk through an arena may meet at most, in words.

    A reader's budget and nesting bound it.  A builder has neither: its objects form a tree, which
    cannot have more words than the message, unless somebody wrote into the memory of the segments
    that an allocator of theirs gave.
    """
    if arena.first.id & ARENA_COUNT_MASK:
        return <uint64_t>UNLIMITED
    return message_words(arena) + 1


cdef int take_words(uint64_t* left, words_t words) except -1:
    if words > left[0]:
        raise PointerError("the objects of this message form no tree: its memory was written over")
    left[0] -= words
    return 0


cdef uint32_t trimmed_words(const uint8_t* data, uint32_t bits) noexcept nogil:
    """Words of a data section without its trailing zero words."""
    cdef uint32_t words = bits >> 6
    cdef uint32_t i
    if bits & 63:            # an element of a primitive list seen as a struct
        for i in range(bits >> 3):
            if data[i]:
                return 1
        return 0
    while words and load64(data + <size_t>(words - 1) * 8) == 0:
        words -= 1
    return words


cdef uint32_t trimmed_pointers(const uint8_t* places, uint32_t count) noexcept nogil:
    """Pointers of a pointer section without its trailing null pointers."""
    while count and load64(places + <size_t>(count - 1) * 8) == 0:
        count -= 1
    return count


cdef int place_struct(
    BuilderArena target, Segment* segment, uint8_t* place, StructRef* struct, uint32_t depth,
    CopyWalk* walk,
) except -1:
    """Copy the data of a struct and leave its pointers, still null, on the stack."""
    cdef uint32_t words = (struct.bits + 63) >> 6
    cdef uint32_t pointers = struct.pointers
    cdef const uint8_t* places = struct.data + (struct.bits >> 3)
    cdef size_t size
    cdef uint8_t* copied
    cdef CopyFrame* frame
    if walk.canonical:
        words = trimmed_words(struct.data, struct.bits)
        pointers = trimmed_pointers(places, pointers)
    if words + pointers == 0:
        # Not null: an empty struct stays apart from no struct (encoding.md, 1.1).
        store64(place, with_offset(0, -1))
        return 0
    take_words(&walk.left, words + pointers)
    copied = allocate(target, &segment, &place, words + pointers, struct_shape(words, pointers))
    size = min(<size_t>words * 8, <size_t>(struct.bits >> 3))
    if size:
        memcpy(copied, struct.data, size)
    if pointers == 0:
        return 0
    frame = <CopyFrame*>push(&walk.stack, sizeof(CopyFrame))
    frame.source_segment = struct.segment
    frame.source = places
    frame.segment = segment
    frame.place = copied + <size_t>words * 8
    frame.left = pointers
    frame.pointers = pointers
    frame.elements = frame.tail = frame.source_bytes = frame.data_bytes = 0
    frame.depth = depth
    return 0


cdef int place_list(
    BuilderArena target, Segment* segment, uint8_t* place, ListRef* list, uint32_t depth,
    CopyWalk* walk,
) except -1:
    """Copy a list as it stands on the wire and leave its pointers, still null, on the stack.

    How the list was seen (`wanted`) plays no part: a struct list viewed as pointers and copied by
    that view's stride read out of bounds elsewhere (CVE-2022-46149).
    """
    cdef words_t words
    cdef size_t size
    cdef uint8_t* copied
    cdef CopyFrame* frame
    cdef uint32_t bits
    if list.element_size == SIZE_COMPOSITE:
        return place_struct_list(target, segment, place, list, depth, walk)
    words = list_words(list.element_size, list.count)
    take_words(&walk.left, words)
    copied = allocate(
        target, &segment, &place, words, list_shape(list.element_size, list.count)
    )
    if words == 0:
        return 0
    if list.element_size != SIZE_POINTER:
        bits = list.bits
        size = <size_t>((<words_t>list.count * bits + 7) >> 3)
        memcpy(copied, list.base, size)
        if list.element_size == SIZE_BIT and list.count & 7:
            copied[size - 1] &= (1 << (list.count & 7)) - 1
        return 0
    frame = <CopyFrame*>push(&walk.stack, sizeof(CopyFrame))
    frame.source_segment = list.segment
    frame.source = list.base
    frame.segment = segment
    frame.place = copied
    frame.left = frame.pointers = list.count
    frame.elements = frame.tail = frame.source_bytes = frame.data_bytes = 0
    frame.depth = depth
    return 0


cdef int place_struct_list(
    BuilderArena target, Segment* segment, uint8_t* place, ListRef* list, uint32_t depth,
    CopyWalk* walk,
) except -1:
    cdef uint32_t data_words = list.bits >> 6
    cdef uint32_t pointers = list.pointers
    cdef words_t words
    cdef uint8_t* copied
    cdef CopyFrame* frame
    if walk.canonical:
        common_size(list, &data_words, &pointers)
    words = <words_t>list.count * (data_words + pointers)
    take_words(&walk.left, words + 1)
    copied = allocate(
        target, &segment, &place, words + 1, list_shape(SIZE_COMPOSITE, <uint32_t>words)
    )
    store64(copied, (<word_t>list.count << 2) | struct_shape(data_words, pointers))
    copied += 8
    if words == 0:
        return 0
    if pointers == 0:
        copy_data_sections(copied, data_words * 8, list)
        return 0
    frame = <CopyFrame*>push(&walk.stack, sizeof(CopyFrame))
    frame.source_segment = list.segment
    frame.segment = segment
    frame.pointers = pointers
    frame.tail = (list.pointers - pointers) * 8
    frame.source_bytes = list.bits >> 3
    frame.data_bytes = data_words * 8
    frame.depth = depth
    if data_words:
        memcpy(copied, list.base, frame.data_bytes)
    frame.source = list.base + frame.source_bytes
    frame.place = copied + frame.data_bytes
    frame.left = pointers
    frame.elements = list.count - 1
    return 0


cdef void copy_data_sections(uint8_t* place, uint32_t size, ListRef* list) noexcept nogil:
    """The data sections of all elements of a struct list, `size` bytes of each."""
    cdef uint32_t i
    cdef size_t step = list.step >> 3
    if size == step:
        memcpy(place, list.base, size * <size_t>list.count)
        return
    for i in range(list.count):
        memcpy(place + i * <size_t>size, list.base + i * step, size)


cdef void common_size(ListRef* list, uint32_t* data_words, uint32_t* pointers) noexcept nogil:
    """The smallest element size that drops only zero words and null pointers of every element."""
    cdef const uint8_t* element = list.base
    data_words[0] = 0
    pointers[0] = 0
    if list.step == 0:
        return
    for _ in range(list.count):
        if data_words[0] == list.bits >> 6 and pointers[0] == list.pointers:
            return
        data_words[0] = max(data_words[0], trimmed_words(element, list.bits))
        pointers[0] = max(
            pointers[0], trimmed_pointers(element + (list.bits >> 3), list.pointers)
        )
        element += list.step >> 3


cdef int copy_one(
    BuilderArena target, Segment* segment, uint8_t* place, Arena source, Segment* source_segment,
    const uint8_t* source_place, uint32_t depth, CopyWalk* walk,
) except -1:
    """Copy the object of one non-null pointer; its own pointers go onto the stack."""
    cdef word_t pointer = load64(source_place)
    cdef uint32_t kind = kind_behind(source, source_segment, pointer)
    cdef StructRef struct
    cdef ListRef list
    cdef int64_t index
    if kind == KIND_STRUCT:
        read_struct(source, source_segment, source_place, pointer, depth, &struct)
        return place_struct(target, segment, place, &struct, depth - 1, walk)
    if kind == KIND_LIST:
        read_list(source, source_segment, source_place, pointer, depth, WANT_ANY, &list)
        return place_list(target, segment, place, &list, depth - 1, walk)
    index = capability_index(source, source_segment, source_place, pointer)
    if walk.canonical:
        raise EncodeError("a message with capabilities has no canonical form")
    index = capability_for_copy(target, source, <uint32_t>index)
    store64(place, <word_t>KIND_OTHER | (<word_t>index << 32))
    return 0


cdef int drain(BuilderArena target, Arena source, CopyWalk* walk) except -1:
    """Copy what the pointers on the stack name, depth first: the reference's allocation order."""
    cdef CopyFrame* frame
    cdef CopyFrame now
    while walk.stack.count:
        frame = <CopyFrame*>walk.stack.frames + (walk.stack.count - 1)
        if frame.left == 0:
            if frame.elements == 0:
                walk.stack.count -= 1
                continue
            frame.source += frame.tail
            if frame.data_bytes:
                memcpy(frame.place, frame.source, frame.data_bytes)
            frame.source += frame.source_bytes
            frame.place += frame.data_bytes
            frame.left = frame.pointers
            frame.elements -= 1
        now = frame[0]
        frame.source += 8
        frame.place += 8
        frame.left -= 1
        if load64(now.source) == 0:
            continue
        if now.left == 1 and now.elements == 0:
            walk.stack.count -= 1      # so that a long chain needs one frame, not one a link
        copy_one(
            target, now.segment, now.place, source, now.source_segment, now.source, now.depth,
            walk,
        )
    return 0


cdef int copy_below(
    BuilderArena target, uint8_t* place, Arena source, CopyWalk* walk
) except -1:
    """Finish a copy whose root object has been placed.

    The root pointer is null meanwhile: an object copied into itself must not meet its own copy,
    or the walk would have no end.
    """
    cdef word_t root = load64(place)
    store64(place, 0)
    try:
        return drain(target, source, walk)
    finally:
        store64(place, root)
        free(walk.stack.frames)


cdef int copy_struct(
    BuilderArena target, Segment* segment, uint8_t* place, Arena source, StructRef* struct
) except -1:
    """Deep copy of a struct to the null pointer at `place`.

    An error leaves a partly filled object there.

    Raises:
        PointerError, LimitError: the source is malformed, too deep or too large.
    """
    cdef CopyWalk walk = CopyWalk(Stack(NULL, 0, 0), False, words_allowed(source))
    _pin = source.pin             # held, as an allocator may run code that closes the source
    place_struct(target, segment, place, struct, depth_below(source, struct.depth), &walk)
    return copy_below(target, place, source, &walk)


cdef int copy_list(
    BuilderArena target, Segment* segment, uint8_t* place, Arena source, ListRef* list
) except -1:
    """Deep copy of a list, in its wire layout, to the null pointer at `place`."""
    cdef CopyWalk walk = CopyWalk(Stack(NULL, 0, 0), False, words_allowed(source))
    _pin = source.pin
    place_list(target, segment, place, list, depth_below(source, list.depth), &walk)
    return copy_below(target, place, source, &walk)


cdef int copy_pointer(
    BuilderArena target, Segment* segment, uint8_t* place, Arena source, Segment* source_segment,
    const uint8_t* source_place, uint32_t depth,
) except -1:
    """Deep copy of whatever a pointer names to the null pointer at `place`; null gives null."""
    cdef CopyWalk walk = CopyWalk(Stack(NULL, 0, 0), False, words_allowed(source))
    _pin = source.pin
    if load64(source_place) == 0:
        store64(place, 0)
        return 0
    copy_one(
        target, segment, place, source, source_segment, source_place,
        depth_below(source, depth), &walk,
    )
    return copy_below(target, place, source, &walk)


# ---------------------------------------------------------------- canonical form

cdef bytes canonical_struct(Arena arena, StructRef* struct):
    """The canonical bytes of a message whose root is this struct: one segment, no table.

    Raises:
        EncodeError: there are capabilities in it.
        PointerError, LimitError: it is malformed, too deep or too large.
    """
    cdef CopyWalk walk = CopyWalk(Stack(NULL, 0, 0), True, words_allowed(arena))
    cdef uint64_t words = 0, capabilities = 0
    cdef BuilderArena target
    _pin = arena.pin
    total_size(arena, struct, &words, &capabilities)
    target = new_builder_arena(words + 1)
    place_struct(
        target, &target.root_segment.head, target.root_segment.head.base, struct,
        depth_below(arena, struct.depth), &walk,
    )
    return finish_canonical(target, arena, &walk)


cdef bytes canonical_list(Arena arena, ListRef* list):
    """The canonical bytes of a message whose root is this list; see `canonical_struct`."""
    cdef CopyWalk walk = CopyWalk(Stack(NULL, 0, 0), True, words_allowed(arena))
    cdef SizeWalk size = SizeWalk(Stack(NULL, 0, 0), 0, 0, words_allowed(arena))
    cdef BuilderArena target
    _pin = arena.pin
    measure_list(list, depth_below(arena, list.depth), &size)
    measure(arena, &size)
    target = new_builder_arena(size.words + 1)
    place_list(
        target, &target.root_segment.head, target.root_segment.head.base, list,
        depth_below(arena, list.depth), &walk,
    )
    return finish_canonical(target, arena, &walk)


cdef bytes finish_canonical(BuilderArena target, Arena source, CopyWalk* walk):
    copy_below(target, target.root_segment.head.base, source, walk)
    if target.more_count:
        raise EncodeError("the message was changed while its canonical form was made")
    return PyBytes_FromStringAndSize(
        <char*>target.root_segment.head.base,
        <Py_ssize_t>target.root_segment.head.words * 8,
    )


# ---------------------------------------------------------------- total size

cdef struct SizeFrame:
    # The pointers of one object whose targets are still to be measured.
    Segment* segment
    const uint8_t* place     # next pointer
    uint32_t left            # pointers left in this element
    uint32_t pointers        # of each element
    uint32_t elements        # elements after this one
    uint32_t gap             # bytes from one pointer section to the next
    uint32_t depth


cdef struct SizeWalk:
    Stack stack
    uint64_t words
    uint64_t capabilities
    uint64_t left            # words that may still be met


cdef enum:
    ADVANCE_WORDS = 0x40000000    # more than the elements of any list, by pointer or by tag


cdef int read_list_unamplified(
    Arena arena, Segment* segment, const uint8_t* place, word_t pointer, uint32_t depth,
    ListRef* out,
) except -1:
    """`read_list`, but elements of no size cost nothing: this walk never visits them."""
    arena.budget += ADVANCE_WORDS
    try:
        read_list(arena, segment, place, pointer, depth, WANT_ANY, out)
    finally:
        arena.budget -= ADVANCE_WORDS
    if out.step == 0:
        arena.budget += out.count
    if arena.budget < 0:
        return budget_spent(arena, 0)
    return 0


cdef int measure_struct(StructRef* struct, uint32_t depth, SizeWalk* walk) except -1:
    cdef SizeFrame* frame
    cdef words_t words = ((struct.bits + 63) >> 6) + struct.pointers
    take_words(&walk.left, words)
    walk.words += words
    if struct.pointers:
        frame = <SizeFrame*>push(&walk.stack, sizeof(SizeFrame))
        frame.segment = struct.segment
        frame.place = struct.data + (struct.bits >> 3)
        frame.left = frame.pointers = struct.pointers
        frame.elements = frame.gap = 0
        frame.depth = depth
    return 0


cdef int measure_list(ListRef* list, uint32_t depth, SizeWalk* walk) except -1:
    cdef SizeFrame* frame
    cdef words_t words
    if list.element_size == SIZE_COMPOSITE:
        # What a copy takes: surplus words behind the last element are not counted.
        words = 1 + <words_t>list.count * (list.step >> 6)
    else:
        words = list_words(list.element_size, list.count)
    take_words(&walk.left, words)
    walk.words += words
    if list.pointers and list.count:
        frame = <SizeFrame*>push(&walk.stack, sizeof(SizeFrame))
        frame.segment = list.segment
        frame.place = list.base + (list.bits >> 3)
        frame.left = frame.pointers = list.pointers
        frame.elements = list.count - 1
        frame.gap = list.bits >> 3
        frame.depth = depth
    return 0


cdef int measure(Arena arena, SizeWalk* walk) except -1:
    """Measure what is on the stack; the budget gets back what this took from it."""
    cdef SizeFrame* frame
    cdef SizeFrame now
    cdef word_t pointer
    cdef uint32_t kind
    cdef StructRef struct
    cdef ListRef list
    try:
        while walk.stack.count:
            frame = <SizeFrame*>walk.stack.frames + (walk.stack.count - 1)
            if frame.left == 0:
                if frame.elements == 0:
                    walk.stack.count -= 1
                    continue
                frame.place += frame.gap
                frame.left = frame.pointers
                frame.elements -= 1
            now = frame[0]
            frame.place += 8
            frame.left -= 1
            pointer = load64(now.place)
            if pointer == 0:
                continue
            if now.left == 1 and now.elements == 0:
                walk.stack.count -= 1
            kind = kind_behind(arena, now.segment, pointer)
            if kind == KIND_STRUCT:
                read_struct(arena, now.segment, now.place, pointer, now.depth, &struct)
                measure_struct(&struct, now.depth - 1, walk)
            elif kind == KIND_LIST:
                read_list_unamplified(arena, now.segment, now.place, pointer, now.depth, &list)
                measure_list(&list, now.depth - 1, walk)
            else:
                capability_index(arena, now.segment, now.place, pointer)
                walk.capabilities += 1
    finally:
        free(walk.stack.frames)
    # Whoever asks is about to read or copy the same words, and pays for that.
    arena.budget += <int64_t>walk.words
    return 0


cdef int total_size(
    Arena arena, StructRef* struct, uint64_t* words, uint64_t* capabilities
) except -1:
    """Words that a copy of a struct takes, without landing pads, and its capability pointers.

    Raises:
        PointerError, LimitError: it is malformed, too deep or too large.
    """
    cdef SizeWalk walk = SizeWalk(Stack(NULL, 0, 0), 0, 0, words_allowed(arena))
    measure_struct(struct, depth_below(arena, struct.depth), &walk)
    measure(arena, &walk)
    words[0] = walk.words
    capabilities[0] = walk.capabilities
    return 0


# ---------------------------------------------------------------- the traversal count

cdef struct CountFrame:
    const uint8_t* place     # next pointer
    Segment* segment
    uint32_t left            # pointers left in this element
    uint32_t pointers        # of each element
    uint32_t elements        # elements after this one
    uint32_t gap             # bytes from one pointer section to the next
    uint32_t depth


cdef struct CountWalk:
    Stack stack
    Segment* segments
    uint32_t segment_count
    uint64_t words           # counted so far


cdef inline bint within(int64_t at, words_t words, Segment* segment) noexcept nogil:
    return at >= 0 and at <= segment.words and words <= <words_t>(segment.words - at)


cdef bint count_far(
    CountWalk* walk, Segment** segment, word_t* pointer, int64_t* at
) noexcept nogil:
    """Follow and count a far pointer; False when a reader would refuse it."""
    cdef word_t far = pointer[0]
    cdef words_t pad = far_offset(far)
    cdef uint32_t size = 1 + far_is_double(far)
    cdef Segment* home
    if far_segment(far) >= walk.segment_count:
        return False
    home = &walk.segments[far_segment(far)]
    if not within(<int64_t>pad, size, home):
        return False
    walk.words += size
    pointer[0] = load64(home.base + (pad + size - 1) * 8)
    if size == 1:
        at[0] = <int64_t>pad + 1 + offset_of(pointer[0])
    else:
        far = load64(home.base + pad * 8)
        if kind_of(far) != KIND_FAR or far_segment(far) >= walk.segment_count:
            return False
        home = &walk.segments[far_segment(far)]
        at[0] = <int64_t>far_offset(far)
    segment[0] = home
    return kind_of(pointer[0]) < KIND_FAR


cdef int count_frame(
    CountWalk* walk, Segment* segment, const uint8_t* place, uint32_t pointers, uint32_t elements,
    uint32_t gap, uint32_t depth,
) noexcept nogil:
    """Remember pointers to follow; -2 when memory is short."""
    cdef CountFrame* frame
    cdef size_t capacity
    cdef void* frames
    if walk.stack.count == walk.stack.capacity:
        capacity = walk.stack.capacity * 2 + 64
        frames = realloc(walk.stack.frames, capacity * sizeof(CountFrame))
        if frames == NULL:
            return -2
        walk.stack.frames = <uint8_t*>frames
        walk.stack.capacity = capacity
    frame = <CountFrame*>walk.stack.frames + walk.stack.count
    walk.stack.count += 1
    frame.place = place
    frame.segment = segment
    frame.left = frame.pointers = pointers
    frame.elements = elements
    frame.gap = gap
    frame.depth = depth
    return 0


cdef int count_list(
    CountWalk* walk, Segment* segment, int64_t at, word_t pointer, uint32_t depth, uint64_t cap
) noexcept nogil:
    """Count a list without what its pointers name."""
    cdef uint32_t size = element_size_of(pointer)
    cdef words_t count = list_count_of(pointer)
    cdef words_t words, elements
    cdef uint32_t data_words, pointers
    cdef word_t tag
    if size == SIZE_VOID:
        walk.words += count
        return 0
    words = count + 1 if size == SIZE_COMPOSITE else list_words(size, count)
    if words == 0 or not within(at, words, segment):
        return 0
    walk.words += words
    # Blobs are read at any depth; a reader refuses other lists before it looks at an element.
    if depth == 0 or size < SIZE_POINTER or walk.words > cap:
        return 0
    if size == SIZE_POINTER:
        return count_frame(
            walk, segment, segment.base + at * 8, <uint32_t>count, 0, 0, depth - 1
        )
    tag = load64(segment.base + at * 8)
    data_words = data_words_of(tag)
    pointers = pointer_count_of(tag)
    elements = tag_count_of(tag)
    if kind_of(tag) != KIND_STRUCT or elements * (data_words + pointers) > count:
        return 0
    if data_words + pointers == 0:
        walk.words += elements
    if pointers == 0 or elements == 0:
        return 0
    return count_frame(
        walk, segment, segment.base + (at + 1 + data_words) * 8, pointers,
        <uint32_t>elements - 1, data_words * 8, depth - 1,
    )


cdef int64_t count_words(CountWalk* walk, uint64_t cap) noexcept nogil:
    """Empty the stack; the words counted, -1 above `cap`, -2 when memory is short."""
    cdef CountFrame* frame
    cdef Segment* segment
    cdef const uint8_t* place
    cdef word_t pointer
    cdef uint32_t data_words, pointers, depth
    cdef int64_t at
    while walk.stack.count:
        if walk.words > cap:
            return -1
        frame = <CountFrame*>walk.stack.frames + (walk.stack.count - 1)
        while frame.left and load64(frame.place) == 0:
            frame.place += 8
            frame.left -= 1
        if frame.left == 0:
            if frame.elements == 0:
                walk.stack.count -= 1
                continue
            frame.elements -= 1
            frame.place += frame.gap
            frame.left = frame.pointers
            continue
        place = frame.place
        segment = frame.segment
        depth = frame.depth
        frame.place += 8
        frame.left -= 1
        pointer = load64(place)
        if kind_of(pointer) >= KIND_FAR:
            if kind_of(pointer) == KIND_OTHER or not count_far(walk, &segment, &pointer, &at):
                continue
        else:
            at = (place - segment.base >> 3) + 1 + offset_of(pointer)
        if kind_of(pointer) == KIND_LIST:
            if count_list(walk, segment, at, pointer, depth, cap) < 0:
                return -2
            continue
        data_words = data_words_of(pointer)
        pointers = pointer_count_of(pointer)
        if depth == 0 or not within(at, data_words + pointers, segment):
            continue
        walk.words += data_words + pointers
        if pointers and count_frame(
            walk, segment, segment.base + (at + data_words) * 8, pointers, 0, 0, depth - 1
        ) < 0:
            return -2
    return -1 if walk.words > cap else <int64_t>walk.words


cdef uint64_t message_words(Arena arena) noexcept:
    """The words of all segments."""
    cdef uint64_t total = 0
    cdef uint32_t i
    for i in range(segment_count(arena)):
        total += segment_at(arena, i).words
    return total


cdef int64_t count_traversal(Arena arena, uint64_t cap) except -2:
    """Words that one complete reading from the root may touch, or -1 when they exceed `cap`.

    Counted are words, landing pads and elements of no size, an object once for each pointer that
    names it; a pointer that a reader would refuse is a leaf.  Within the cap, a message cannot make
    its reader do more work than it has bytes for.  The stack has at most one frame for each level
    of the nesting limit (1 to 3 ns a word).
    """
    cdef CountWalk walk = CountWalk(Stack(NULL, 0, 0), NULL, segment_count(arena), 2)
    cdef uint32_t i
    cdef int64_t result
    cdef Segment* segment
    cdef uint32_t depth = depth_below(arena, nesting_limit_of(arena))
    _pin = arena.pin              # held, as others run meanwhile and may close the message
    walk.segments = <Segment*>malloc(walk.segment_count * sizeof(Segment))
    if walk.segments == NULL:
        raise MemoryError
    for i in range(walk.segment_count):
        segment = segment_at(arena, i)
        walk.segments[i] = segment[0]
    try:
        if walk.segments[0].words == 0:
            return 0
        with nogil:
            result = count_frame(
                &walk, &walk.segments[0], walk.segments[0].base, 1, 0, 0, depth
            )
            if result == 0:
                result = count_words(&walk, cap)
    finally:
        free(walk.segments)
        free(walk.stack.frames)
    if result == -2:
        raise MemoryError
    return result
