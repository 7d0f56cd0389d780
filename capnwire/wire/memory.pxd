"""Unaligned little-endian loads and stores: the only place where wire bytes become integers.

`prefetch(address)` asks for memory that will soon be wanted; any address will do, nothing is read.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #if defined(_MSC_VER)
    #define capnwire_prefetch(address) ((void)(address))
    #else
    #define capnwire_prefetch(address) __builtin_prefetch((const void*)(address))
    #endif
    """
    void prefetch "capnwire_prefetch"(size_t address) noexcept nogil


cdef inline uint16_t load16(const uint8_t* place) noexcept nogil:
    cdef uint16_t value
    memcpy(&value, place, 2)
    return value


cdef inline uint32_t load32(const uint8_t* place) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, place, 4)
    return value


cdef inline uint64_t load64(const uint8_t* place) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, place, 8)
    return value


cdef inline void store16(uint8_t* place, uint16_t value) noexcept nogil:
    memcpy(place, &value, 2)


cdef inline void store32(uint8_t* place, uint32_t value) noexcept nogil:
    memcpy(place, &value, 4)


cdef inline void store64(uint8_t* place, uint64_t value) noexcept nogil:
    memcpy(place, &value, 8)


cdef inline double float64_of(uint64_t bits) noexcept nogil:
    cdef double value
    memcpy(&value, &bits, 8)
    return value


cdef inline float float32_of(uint32_t bits) noexcept nogil:
    cdef float value
    memcpy(&value, &bits, 4)
    return value


cdef inline uint64_t bits_of_float64(double value) noexcept nogil:
    cdef uint64_t bits
    memcpy(&bits, &value, 8)
    return bits


cdef inline uint32_t bits_of_float32(float value) noexcept nogil:
    cdef uint32_t bits
    memcpy(&bits, &value, 4)
    return bits
