"""Names for the integers of the wire: a count says in its type what it counts.

Spec: encoding.md, 1.1 and 1.2.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef uint64_t word_t      # one 8-byte word as it stands on the wire
ctypedef uint64_t words_t     # a count of words
ctypedef uint64_t bits_t      # a count of bits

cdef enum:
    WORD_BYTES = 8
    MAX_SEGMENT_WORDS = 0x1FFFFFFF      # 2**29 - 1
    MAX_LIST_ELEMENTS = 0x1FFFFFFF

# Element sizes of list pointers (the C of encoding.md 1.1).
cdef enum:
    SIZE_VOID = 0
    SIZE_BIT = 1
    SIZE_BYTE = 2
    SIZE_TWO = 3
    SIZE_FOUR = 4
    SIZE_EIGHT = 5
    SIZE_POINTER = 6
    SIZE_COMPOSITE = 7

# Kinds of pointers: the two low bits.
cdef enum:
    KIND_STRUCT = 0
    KIND_LIST = 1
    KIND_FAR = 2
    KIND_OTHER = 3
