"""The 64-bit pointer word: pure arithmetic on one word, no memory.

Spec: encoding.md, 1.1 Pointers.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t

from capnwire.wire.units cimport KIND_FAR, KIND_LIST, KIND_OTHER, KIND_STRUCT, word_t, words_t


cdef inline uint32_t kind_of(word_t pointer) noexcept nogil:
    """KIND_STRUCT, KIND_LIST, KIND_FAR or KIND_OTHER (bits 0-1)."""
    return pointer & 3


cdef inline int64_t offset_of(word_t pointer) noexcept nogil:
    """Signed words from the end of a struct or list pointer to its object (bits 2-31)."""
    return <int64_t>(<int32_t><uint32_t>(pointer & 0xFFFFFFFFU) >> 2)


cdef inline uint32_t data_words_of(word_t pointer) noexcept nogil:
    """Words of a struct's data section (bits 32-47)."""
    return (pointer >> 32) & 0xFFFF


cdef inline uint32_t pointer_count_of(word_t pointer) noexcept nogil:
    """Pointers of a struct's pointer section (bits 48-63)."""
    return pointer >> 48


cdef inline uint32_t element_size_of(word_t pointer) noexcept nogil:
    """SIZE_VOID to SIZE_COMPOSITE of a list pointer (bits 32-34)."""
    return (pointer >> 32) & 7


cdef inline uint32_t list_count_of(word_t pointer) noexcept nogil:
    """Elements of a list, or words without the tag for SIZE_COMPOSITE (bits 35-63)."""
    return pointer >> 35


cdef inline uint32_t tag_count_of(word_t tag) noexcept nogil:
    """Elements of a composite list, from its tag (bits 2-31, unsigned)."""
    return (tag & 0xFFFFFFFFU) >> 2


cdef inline words_t far_offset(word_t pointer) noexcept nogil:
    """Words from the start of the target segment to the landing pad (bits 3-31, unsigned)."""
    return (pointer >> 3) & 0x1FFFFFFF


cdef inline uint32_t far_is_double(word_t pointer) noexcept nogil:
    """1 when the landing pad has two words (bit 2)."""
    return (pointer >> 2) & 1


cdef inline uint32_t far_segment(word_t pointer) noexcept nogil:
    """The id of the segment that holds the landing pad (bits 32-63)."""
    return pointer >> 32


cdef inline bint is_capability(word_t pointer) noexcept nogil:
    """Whether a KIND_OTHER pointer is a capability: its low half is exactly 3."""
    return (pointer & 0xFFFFFFFFU) == KIND_OTHER


cdef inline word_t struct_shape(uint32_t data_words, uint32_t pointer_count) noexcept nogil:
    """A struct pointer with offset 0."""
    return (<word_t>data_words << 32) | (<word_t>pointer_count << 48)


cdef inline word_t list_shape(uint32_t element_size, uint32_t count) noexcept nogil:
    """A list pointer with offset 0; `count` is in words for SIZE_COMPOSITE."""
    return <word_t>KIND_LIST | (<word_t>element_size << 32) | (<word_t>count << 35)


cdef inline word_t with_offset(word_t shape, int64_t offset) noexcept nogil:
    """A struct or list pointer made from its shape and a signed offset in words."""
    return (shape & ~<word_t>0xFFFFFFFCU) | <word_t><uint32_t>(<uint32_t><int32_t>offset << 2)


cdef inline word_t far_pointer(
    uint32_t segment_id, words_t offset, uint32_t double_far
) noexcept nogil:
    return (
        <word_t>KIND_FAR | (<word_t>double_far << 2) | (<word_t>offset << 3)
        | (<word_t>segment_id << 32)
    )


cdef inline uint32_t element_bits(uint32_t element_size) noexcept nogil:
    """Data bits of one element for SIZE_VOID to SIZE_EIGHT; 0 for pointers and composites."""
    if element_size == 1:
        return 1
    if element_size == 0 or element_size > 5:
        return 0
    return 2 << element_size


cdef inline words_t list_words(uint32_t element_size, words_t count) noexcept nogil:
    """Words that `count` elements take for every element size but SIZE_COMPOSITE."""
    if element_size == 6:
        return count
    return (count * element_bits(element_size) + 63) >> 6
