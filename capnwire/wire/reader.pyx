"""Following pointers when reading: far pointers, lists of every kind, and the errors.

Spec: encoding.md, 1.1 (pointers), 1.3 (reading rules between versions), 1.4 (charges).
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from capnwire.wire.arena cimport Arena, Segment, charge, segment_at, segment_count
from capnwire.wire.memory cimport load64
from capnwire.wire.pointer cimport (
    data_words_of, element_bits, element_size_of, far_is_double, far_offset, far_segment, kind_of,
    list_count_of, list_words, offset_of, pointer_count_of, tag_count_of,
)
from capnwire.wire.units cimport (
    KIND_FAR, KIND_LIST, KIND_STRUCT, SIZE_BIT, SIZE_COMPOSITE, SIZE_POINTER, SIZE_VOID, word_t,
    words_t,
)

from capnwire.errors import LimitError, PointerError, TextError

KIND_NAMES = ("struct", "list", "far", "capability or unknown")
SIZE_NAMES = ("Void", "Bool", "byte", "two-byte", "four-byte", "eight-byte", "pointer", "struct")


cdef int resolve_far(Arena arena, Segment** segment, word_t* pointer, int64_t* at) except -1:
    """Follow a far pointer: leaves the describing pointer, the object's segment and word index."""
    cdef word_t far = pointer[0]
    cdef words_t pad = far_offset(far)
    cdef uint32_t size = 1 + far_is_double(far)
    cdef Segment* target = landing_segment(arena, far_segment(far))
    cdef const uint8_t* place
    if pad > target.words or size > target.words - pad:
        return out_of_bounds("landing pad", pad, size, target)
    charge(arena, size)
    place = target.base + pad * 8
    pointer[0] = load64(place)
    if size == 1:
        if kind_of(pointer[0]) == KIND_FAR:
            raise PointerError("the landing pad of a far pointer is itself a far pointer")
        segment[0] = target
        at[0] = <int64_t>pad + 1 + offset_of(pointer[0])
        return 0
    far = pointer[0]
    pointer[0] = load64(place + 8)
    if kind_of(far) != KIND_FAR:
        raise PointerError("a double-far landing pad starts with a pointer that is not far")
    if kind_of(pointer[0]) == KIND_FAR:
        raise PointerError("the tag of a double-far landing pad is a far pointer")
    segment[0] = landing_segment(arena, far_segment(far))
    at[0] = <int64_t>far_offset(far)
    return 0


cdef Segment* landing_segment(Arena arena, uint32_t id) except NULL:
    cdef Segment* target = segment_at(arena, id)
    if target == NULL:
        raise PointerError(
            f"a far pointer names segment {id}, but the message has {segment_count(arena)}"
        )
    return target


cdef int read_list(
    Arena arena, Segment* segment, const uint8_t* place, word_t pointer, uint32_t depth,
    uint32_t wanted, ListRef* out,
) except -1:
    """The list that a non-null pointer names, seen as elements of size `wanted` (or WANT_ANY)."""
    cdef int64_t at
    cdef words_t words
    cdef uint32_t found
    resolve(arena, &segment, place, &pointer, &at)
    if kind_of(pointer) != KIND_LIST:
        raise PointerError(
            f"a list is wanted, but the pointer is a {KIND_NAMES[kind_of(pointer)]} pointer"
        )
    if depth == 0:
        return too_deep()
    found = element_size_of(pointer)
    out.element_size = found
    out.depth = <uint16_t>(depth - 1)
    out.count = list_count_of(pointer)
    if found == SIZE_COMPOSITE:
        return read_composite(arena, segment, at, pointer, wanted, out)
    words = list_words(found, out.count)
    if at < 0 or at > segment.words or words > <words_t>(segment.words - at):
        if words:
            return out_of_bounds("list", at, words, segment)
        at = 0
    charge(arena, out.count if found == SIZE_VOID else words)
    out.segment = segment
    out.base = segment.base + at * 8
    out.bits = element_bits(found)
    out.pointers = 1 if found == SIZE_POINTER else 0
    out.step = out.bits + out.pointers * 64
    if wanted == found or wanted == WANT_ANY:
        return 0
    if found == SIZE_BIT or wanted == SIZE_BIT:
        return wrong_elements(wanted, found)
    if wanted == SIZE_COMPOSITE:
        return 0
    if element_bits(wanted) > out.bits or (wanted == SIZE_POINTER) > out.pointers:
        return wrong_elements(wanted, found)
    return 0


cdef int read_composite(
    Arena arena, Segment* segment, int64_t at, word_t pointer, uint32_t wanted, ListRef* out
) except -1:
    """A list of structs: checked against its tag, then against what is wanted of it."""
    cdef words_t words = list_count_of(pointer)
    cdef word_t tag
    cdef uint32_t data_words
    if at < 0 or at >= segment.words or words > <words_t>(segment.words - at - 1):
        return out_of_bounds("struct list", at, words + 1, segment)
    charge(arena, words + 1)
    tag = load64(segment.base + at * 8)
    if kind_of(tag) != KIND_STRUCT:
        raise PointerError("the tag of a struct list is not a struct pointer")
    data_words = data_words_of(tag)
    out.segment = segment
    out.base = segment.base + at * 8 + 8
    out.count = tag_count_of(tag)
    out.bits = data_words * 64
    out.pointers = <uint16_t>pointer_count_of(tag)
    out.step = out.bits + <uint32_t>out.pointers * 64
    if <words_t>out.count * (out.step >> 6) > words:
        raise PointerError(
            f"a struct list has {out.count} elements of {out.step >> 6} words in {words} words"
        )
    if out.step == 0:
        charge(arena, out.count)
    if wanted == SIZE_COMPOSITE or wanted == WANT_ANY or wanted == SIZE_VOID:
        return 0
    if wanted == SIZE_BIT:
        return wrong_elements(wanted, SIZE_COMPOSITE)
    if wanted == SIZE_POINTER:
        if out.pointers == 0:
            return wrong_elements(wanted, SIZE_COMPOSITE)
    elif data_words == 0:
        return wrong_elements(wanted, SIZE_COMPOSITE)
    return 0


cdef int wrong_elements(uint32_t wanted, uint32_t found) except -1:
    raise PointerError(
        f"a list of {SIZE_NAMES[wanted]} elements is wanted, but the message has a list of "
        f"{SIZE_NAMES[found]} elements"
    )


cdef int not_a_struct(word_t pointer) except -1:
    raise PointerError(
        f"a struct is wanted, but the pointer is a {KIND_NAMES[kind_of(pointer)]} pointer"
    )


cdef int not_bytes(word_t pointer, str what) except -1:
    if kind_of(pointer) != KIND_LIST:
        raise PointerError(
            f"{what} is wanted, but the pointer is a {KIND_NAMES[kind_of(pointer)]} pointer"
        )
    raise PointerError(
        f"{what} is wanted, but the message has a list of "
        f"{SIZE_NAMES[element_size_of(pointer)]} elements"
    )


cdef int not_terminated() except -1:
    raise TextError("a Text does not end in a NUL byte")


cdef int out_of_bounds(str what, int64_t at, words_t words, Segment* segment) except -1:
    raise PointerError(
        f"a {what} of {words} words at word {at} leaves its segment of {segment.words} words"
    )


cdef int too_deep() except -1:
    raise LimitError("nesting_limit left", limit=0, wanted=1)
