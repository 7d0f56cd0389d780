"""Comparing by canonical content, and whether bytes are in canonical form.

Making the canonical form is copying (copy.pyx).  Nothing here recurses.  Spec: encoding.md, 1.5.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp

from capnwire.wire.arena cimport Arena, Pin, Segment, capabilities_of, pin_of
from capnwire.wire.copy cimport (
    Stack, capability_index, depth_below, kind_behind, push, take_words, words_allowed,
)
from capnwire.wire.memory cimport load64
from capnwire.wire.pointer cimport (
    data_words_of, element_bits, element_size_of, kind_of, list_count_of, list_words, offset_of,
    pointer_count_of, tag_count_of,
)
from capnwire.wire.reader cimport WANT_ANY, ListRef, StructRef, read_list, read_struct
from capnwire.wire.units cimport (
    KIND_LIST, KIND_STRUCT, SIZE_COMPOSITE, SIZE_POINTER, word_t, words_t,
)


# ---------------------------------------------------------------- equality

cdef struct Side:
    Segment* segment
    const uint8_t* element   # the element (or struct) being compared
    uint32_t bits            # of its data section
    uint32_t pointers
    uint32_t step            # bytes to the next element
    uint32_t depth


cdef struct PairFrame:
    Side left
    Side right
    uint32_t pointer         # index of the next pointer of this element
    uint32_t elements        # elements left, this one included


cdef bint data_equal(
    const uint8_t* left, uint32_t left_bits, const uint8_t* right, uint32_t right_bits
) noexcept nogil:
    """Whether two data sections hold the same; what one of them lacks counts as zero."""
    cdef uint32_t common = min(left_bits, right_bits) >> 3
    cdef uint32_t size = max(left_bits, right_bits) >> 3
    cdef uint32_t i
    cdef const uint8_t* longer = left if left_bits > right_bits else right
    if common and memcmp(left, right, common) != 0:
        return False
    for i in range(common, size):
        if longer[i]:
            return False
    return True


cdef inline word_t pointer_at(Side* side, uint32_t index) noexcept nogil:
    """A pointer of the element being compared, null when it has none with this index."""
    if index >= side.pointers:
        return 0
    return load64(side.element + (side.bits >> 3) + <size_t>index * 8)


cdef void side_of_struct(Side* side, StructRef* struct, uint32_t depth) noexcept nogil:
    side.segment = struct.segment
    side.element = struct.data
    side.bits = struct.bits
    side.pointers = struct.pointers
    side.step = 0
    side.depth = depth


cdef void side_of_list(Side* side, ListRef* list, uint32_t depth) noexcept nogil:
    side.segment = list.segment
    side.element = list.base
    side.bits = list.bits
    side.pointers = list.pointers
    side.step = list.step >> 3
    side.depth = depth


cdef bint push_structs(
    Stack* stack, StructRef* left, uint32_t left_depth, StructRef* right, uint32_t right_depth
) except -1:
    """Compare data sections; pointers go onto the stack.  False: the structs differ."""
    cdef PairFrame* frame
    if not data_equal(left.data, left.bits, right.data, right.bits):
        return False
    if left.pointers or right.pointers:
        frame = <PairFrame*>push(stack, sizeof(PairFrame))
        side_of_struct(&frame.left, left, left_depth)
        side_of_struct(&frame.right, right, right_depth)
        frame.pointer = 0
        frame.elements = 1
    return True


cdef bint push_lists(
    Stack* stack, ListRef* left, uint32_t left_depth, ListRef* right, uint32_t right_depth
) except -1:
    """Compare lists of data; elements that are or have pointers go onto the stack."""
    cdef PairFrame* frame
    cdef words_t bits
    cdef size_t size
    if left.element_size != right.element_size or left.count != right.count:
        return False
    if left.count == 0 or (left.step == 0 and right.step == 0):
        return True
    if left.element_size < SIZE_POINTER:
        bits = <words_t>left.count * left.bits
        size = bits >> 3
        if memcmp(left.base, right.base, size) != 0:
            return False
        # Only a list of Bool ends inside a byte; the rest of that byte is padding.
        return bits & 7 == 0 or (
            (left.base[size] ^ right.base[size]) & ((1 << (bits & 7)) - 1)
        ) == 0
    if not data_equal(left.base, left.bits, right.base, right.bits):
        return False
    frame = <PairFrame*>push(stack, sizeof(PairFrame))
    side_of_list(&frame.left, left, left_depth)
    side_of_list(&frame.right, right, right_depth)
    frame.pointer = 0
    frame.elements = left.count
    return True


cdef bint compare_pointers(
    Arena left_arena, Side* left, Arena right_arena, Side* right, uint32_t index, Stack* stack
) except -1:
    """Compare what two non-null pointers name, as far as that needs no other pointer."""
    cdef word_t left_pointer = pointer_at(left, index)
    cdef word_t right_pointer = pointer_at(right, index)
    cdef const uint8_t* left_place = left.element + (left.bits >> 3) + <size_t>index * 8
    cdef const uint8_t* right_place = right.element + (right.bits >> 3) + <size_t>index * 8
    cdef uint32_t kind = kind_behind(left_arena, left.segment, left_pointer)
    cdef StructRef left_struct, right_struct
    cdef ListRef left_list, right_list
    if kind != kind_behind(right_arena, right.segment, right_pointer):
        return False
    if kind == KIND_STRUCT:
        read_struct(
            left_arena, left.segment, left_place, left_pointer, left.depth, &left_struct
        )
        read_struct(
            right_arena, right.segment, right_place, right_pointer, right.depth, &right_struct
        )
        return push_structs(
            stack, &left_struct, left.depth - 1, &right_struct, right.depth - 1
        )
    if kind == KIND_LIST:
        read_list(
            left_arena, left.segment, left_place, left_pointer, left.depth, WANT_ANY, &left_list
        )
        read_list(
            right_arena, right.segment, right_place, right_pointer, right.depth, WANT_ANY,
            &right_list,
        )
        return push_lists(stack, &left_list, left.depth - 1, &right_list, right.depth - 1)
    return (
        capability_index(left_arena, left.segment, left_place, left_pointer)
        == capability_index(right_arena, right.segment, right_place, right_pointer)
        and capabilities_of(left_arena) is capabilities_of(right_arena)
    )


cdef bint drain_pairs(Arena left_arena, Arena right_arena, Stack* stack) except -1:
    """Compare what is on the stack until it is empty or something differs."""
    cdef PairFrame* frame
    cdef PairFrame now
    cdef bint left_null, right_null
    # Equal trees have no more pointers than either message has words.
    cdef uint64_t left = min(words_allowed(left_arena), words_allowed(right_arena))
    while stack.count:
        frame = <PairFrame*>stack.frames + (stack.count - 1)
        if frame.pointer >= max(frame.left.pointers, frame.right.pointers):
            frame.elements -= 1
            if frame.elements == 0:
                stack.count -= 1
                continue
            frame.left.element += frame.left.step
            frame.right.element += frame.right.step
            frame.pointer = 0
            if not data_equal(
                frame.left.element, frame.left.bits, frame.right.element, frame.right.bits
            ):
                return False
            continue
        left_null = pointer_at(&frame.left, frame.pointer) == 0
        right_null = pointer_at(&frame.right, frame.pointer) == 0
        if left_null != right_null:
            return False
        frame.pointer += 1
        if left_null:
            continue
        take_words(&left, 1)
        now = frame[0]
        if now.elements == 1 and now.pointer == max(now.left.pointers, now.right.pointers):
            stack.count -= 1
        if not compare_pointers(
            left_arena, &now.left, right_arena, &now.right, now.pointer - 1, stack
        ):
            return False
    return True


cdef bint structs_equal(
    Arena left_arena, StructRef* left, Arena right_arena, StructRef* right
) except -1:
    """Whether two structs have the same canonical content.

    Floats compare by their bits; capabilities are equal when they have the same index in the same
    table.

    Raises:
        PointerError, LimitError: one of them is malformed, too deep or too large.
    """
    cdef Stack stack = Stack(NULL, 0, 0)
    _left_pin, _right_pin = left_arena.pin, right_arena.pin   # held, whoever closes them meanwhile
    try:
        return push_structs(
            &stack, left, depth_below(left_arena, left.depth),
            right, depth_below(right_arena, right.depth),
        ) and drain_pairs(left_arena, right_arena, &stack)
    finally:
        free(stack.frames)


cdef bint lists_equal(
    Arena left_arena, ListRef* left, Arena right_arena, ListRef* right
) except -1:
    """Whether two lists have the same element size on the wire and the same canonical content."""
    cdef Stack stack = Stack(NULL, 0, 0)
    _left_pin, _right_pin = left_arena.pin, right_arena.pin
    try:
        return push_lists(
            &stack, left, depth_below(left_arena, left.depth),
            right, depth_below(right_arena, right.depth),
        ) and drain_pairs(left_arena, right_arena, &stack)
    finally:
        free(stack.frames)


# ---------------------------------------------------------------- is it canonical?

cdef struct CheckFrame:
    # The pointers of one object, to be checked in pre-order.
    uint64_t at              # word index of the next pointer
    uint32_t left            # pointers left in this element
    uint32_t pointers        # of each element
    uint32_t elements        # elements after this one
    uint32_t gap             # words from one pointer section to the next


cdef struct CheckWalk:
    Stack stack
    const uint8_t* base
    uint64_t words           # in the segment
    uint64_t head            # word at which the next object must start


def is_canonical(buffer, /):
    """Whether bytes are the canonical form of a message: one segment, without a segment table.

    Bytes that are no message at all are not canonical; only what is no buffer raises.
    """
    cdef Pin pin = pin_of(buffer)
    cdef CheckWalk walk
    if pin.view.len == 0 or pin.view.len & 7:
        return False
    walk = CheckWalk(
        Stack(NULL, 0, 0), <const uint8_t*>pin.view.buf, <uint64_t>pin.view.len >> 3, 1
    )
    try:
        push_check(&walk, 0, 1, 0, 0)
        return check_drain(&walk) and walk.head == walk.words
    finally:
        free(walk.stack.frames)


cdef int push_check(
    CheckWalk* walk, uint64_t at, uint32_t pointers, uint32_t elements, uint32_t gap
) except -1:
    cdef CheckFrame* frame = <CheckFrame*>push(&walk.stack, sizeof(CheckFrame))
    frame.at = at
    frame.left = frame.pointers = pointers
    frame.elements = elements
    frame.gap = gap
    return 0


cdef bint check_drain(CheckWalk* walk) except -1:
    cdef CheckFrame* frame
    cdef uint64_t at
    cdef word_t pointer
    while walk.stack.count:
        frame = <CheckFrame*>walk.stack.frames + (walk.stack.count - 1)
        if frame.left == 0:
            if frame.elements == 0:
                walk.stack.count -= 1
                continue
            frame.elements -= 1
            frame.at += frame.gap
            frame.left = frame.pointers
            continue
        at = frame.at
        frame.at += 1
        frame.left -= 1
        pointer = load64(walk.base + at * 8)
        if pointer == 0:
            continue
        if kind_of(pointer) == KIND_STRUCT:
            if not check_struct(walk, at, pointer):
                return False
        elif kind_of(pointer) != KIND_LIST or not check_list(walk, at, pointer):
            return False           # a far pointer, a capability, or a list that is not canonical
    return True


cdef bint check_struct(CheckWalk* walk, uint64_t at, word_t pointer) except -1:
    """A struct that starts at the head and whose sections end in something."""
    cdef uint32_t data_words = data_words_of(pointer)
    cdef uint32_t pointers = pointer_count_of(pointer)
    cdef uint64_t start = walk.head
    if data_words + pointers == 0:
        return offset_of(pointer) == -1
    if not starts_at_head(walk, at, pointer, data_words + pointers):
        return False
    walk.head += data_words + pointers
    if data_words and load64(walk.base + (start + data_words - 1) * 8) == 0:
        return False
    if pointers == 0:
        return True
    if load64(walk.base + (walk.head - 1) * 8) == 0:
        return False
    push_check(walk, start + data_words, pointers, 0, 0)
    return True


cdef bint starts_at_head(CheckWalk* walk, uint64_t at, word_t pointer, words_t words) noexcept:
    return (
        <int64_t>at + 1 + offset_of(pointer) == <int64_t>walk.head
        and words <= walk.words - walk.head
    )


cdef bint check_list(CheckWalk* walk, uint64_t at, word_t pointer) except -1:
    """A list that starts at the head and whose padding is zero."""
    cdef uint32_t size = element_size_of(pointer)
    cdef uint32_t count = list_count_of(pointer)
    cdef words_t words, bits
    cdef uint64_t start = walk.head
    cdef size_t i
    if size == SIZE_COMPOSITE:
        return check_struct_list(walk, at, pointer)
    words = list_words(size, count)
    if not starts_at_head(walk, at, pointer, words):
        return False
    walk.head += words
    if size == SIZE_POINTER:
        push_check(walk, start, count, 0, 0)
        return True
    bits = <words_t>count * element_bits(size)
    if bits & 7 and walk.base[start * 8 + (bits >> 3)] >> (bits & 7):
        return False
    for i in range(start * 8 + ((bits + 7) >> 3), walk.head * 8):
        if walk.base[i]:
            return False
    return True


cdef bint check_struct_list(CheckWalk* walk, uint64_t at, word_t pointer) except -1:
    """A struct list whose elements are no larger than the largest of them needs."""
    cdef words_t words = list_count_of(pointer)
    cdef uint64_t start, i
    cdef uint32_t data_words, pointers, step, count
    cdef word_t tag
    cdef bint data_needed, pointers_needed
    if not starts_at_head(walk, at, pointer, words + 1):
        return False
    tag = load64(walk.base + walk.head * 8)
    data_words = data_words_of(tag)
    pointers = pointer_count_of(tag)
    step = data_words + pointers
    count = tag_count_of(tag)
    if kind_of(tag) != KIND_STRUCT or <words_t>count * step != words:
        return False
    start = walk.head + 1
    walk.head = start + words
    if step == 0:
        return True
    data_needed = data_words == 0
    pointers_needed = pointers == 0
    for i in range(count):
        if data_needed and pointers_needed:
            break
        data_needed |= load64(walk.base + (start + i * step + max(data_words, 1U) - 1) * 8) != 0
        pointers_needed |= load64(walk.base + (start + (i + 1) * step - 1) * 8) != 0
    if not (data_needed and pointers_needed and count):
        return False
    if pointers:
        push_check(walk, start + data_words, pointers, count - 1, data_words)
    return True
