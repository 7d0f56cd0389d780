"""The one way through a pointer when reading: bounds, kind, nesting and charges are checked here.

All functions are given a pointer word that is not null.  Positions are compared as word indices
relative to the segment, never as addresses.  Spec: encoding.md, 1.1, 1.3 and 1.4.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from capnwire.wire.arena cimport Arena, Segment, charge
from capnwire.wire.memory cimport load64
from capnwire.wire.pointer cimport (
    data_words_of, element_size_of, kind_of, list_count_of, offset_of, pointer_count_of,
)
from capnwire.wire.units cimport (
    KIND_FAR, KIND_LIST, KIND_STRUCT, SIZE_BYTE, word_t, words_t,
)


cdef enum:
    WANT_ANY = 8             # a list as it stands, whatever its elements


cdef struct StructRef:
    Segment* segment
    uint8_t* data
    uint32_t bits            # of the data section; 8 to 32 when a primitive list is read as structs
    uint16_t pointers        # the pointer section starts at data + bits / 8
    uint16_t depth           # nesting levels left below this struct


cdef struct ListRef:
    Segment* segment
    uint8_t* base            # first element (after the tag)
    uint32_t count
    uint32_t step            # bits from one element to the next
    uint32_t bits            # data bits of one element
    uint16_t pointers        # pointers of one element
    uint16_t depth
    uint32_t element_size    # as found on the wire: SIZE_VOID to SIZE_COMPOSITE


cdef struct BlobRef:
    const uint8_t* data
    uint32_t size            # bytes


cdef int resolve_far(Arena arena, Segment** segment, word_t* pointer, int64_t* at) except -1
cdef int not_a_struct(word_t pointer) except -1
cdef int out_of_bounds(str what, int64_t at, words_t words, Segment* segment) except -1
cdef int too_deep() except -1
cdef int not_bytes(word_t pointer, str what) except -1
cdef int not_terminated() except -1
cdef int read_list(
    Arena arena, Segment* segment, const uint8_t* place, word_t pointer, uint32_t depth,
    uint32_t wanted, ListRef* out,
) except -1


cdef inline int resolve(
    Arena arena, Segment** segment, const uint8_t* place, word_t* pointer, int64_t* at
) except -1:
    """Follow far pointers; leaves the pointer that describes the object and its word index."""
    if kind_of(pointer[0]) == KIND_FAR:
        return resolve_far(arena, segment, pointer, at)
    at[0] = (
        <int64_t>((place - <const uint8_t*>segment[0].base) >> 3) + 1 + offset_of(pointer[0])
    )
    return 0


cdef inline int read_struct(
    Arena arena, Segment* segment, const uint8_t* place, word_t pointer, uint32_t depth,
    StructRef* out,
) except -1:
    """The struct that a non-null pointer at `place` names; `depth` is what its holder has left."""
    cdef int64_t at
    cdef uint32_t data_words, pointers
    resolve(arena, &segment, place, &pointer, &at)
    if kind_of(pointer) != KIND_STRUCT:
        not_a_struct(pointer)
        return -1
    if depth == 0:
        too_deep()
        return -1
    data_words = data_words_of(pointer)
    pointers = pointer_count_of(pointer)
    if at < 0 or at > segment.words or data_words + pointers > segment.words - at:
        if data_words + pointers == 0:
            at = 0           # a zero-size struct may point anywhere
        else:
            out_of_bounds("struct", at, data_words + pointers, segment)
            return -1
    charge(arena, data_words + pointers)
    out.segment = segment
    out.data = segment.base + at * 8
    out.bits = data_words * 64
    out.pointers = pointers
    out.depth = depth - 1
    return 0


cdef inline int read_blob(
    Arena arena, Segment* segment, const uint8_t* place, word_t pointer, str what, BlobRef* out
) except -1:
    """The bytes of a byte list: Data as it is, Text with its NUL."""
    cdef int64_t at
    cdef words_t words
    cdef uint32_t size
    resolve(arena, &segment, place, &pointer, &at)
    if kind_of(pointer) != KIND_LIST or element_size_of(pointer) != SIZE_BYTE:
        not_bytes(pointer, what)
        return -1
    size = list_count_of(pointer)
    words = (<words_t>size + 7) >> 3
    if at < 0 or at > segment.words or words > <words_t>(segment.words - at):
        if words == 0:
            at = 0
        else:
            out_of_bounds(what, at, words, segment)
            return -1
    charge(arena, words)
    out.data = segment.base + at * 8
    out.size = size
    return 0


cdef inline int read_text(
    Arena arena, Segment* segment, const uint8_t* place, word_t pointer, BlobRef* out
) except -1:
    """The bytes of a Text without its NUL, which must be there."""
    read_blob(arena, segment, place, pointer, "Text", out)
    if out.size == 0 or out.data[out.size - 1] != 0:
        not_terminated()
        return -1
    out.size -= 1
    return 0
