"""Loading scalars and text: inline, for the slots and for the bulk loops alike."""

from cpython.object cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from capnwire._info cimport (
    BOOL, ENUM, FLOAT32, FLOAT64, GROUP, INT8, INT16, INT32, INT64, IS_UNION_MEMBER, KEEPS_BYTES,
    UINT8, UINT16, UINT32, UINT64, EnumInfo, Field, StructInfo,
)
from capnwire._python cimport *
from capnwire.wire.arena cimport Arena, Segment
from capnwire.wire.memory cimport float32_of, float64_of, load16, load32, load64, prefetch
from capnwire.wire.reader cimport BlobRef, read_text
from capnwire.wire.units cimport word_t


cdef inline object enum_value(EnumInfo info, uint32_t raw):
    """The interned value, or a new nameless one for a number that the schema does not know."""
    if raw < <uint32_t>PyTuple_GET_SIZE(<PyObject*>info.values):
        return <object>PyTuple_GET_ITEM(<PyObject*>info.values, raw)
    return info.value(raw)


cdef inline uint32_t load_discriminant(
    const uint8_t* data, uint32_t bits, uint32_t offset
) noexcept:
    """The discriminant at a bit offset of a struct's data; 0 beyond it."""
    return load16(data + (offset >> 3)) if offset + 16 <= bits else 0


cdef inline uint32_t load_discriminant_ahead(
    Arena arena, const uint8_t* data, uint32_t bits, uint32_t offset
) noexcept:
    """As `load_discriminant`; asks for that of the next message of a log."""
    # Its union lies behind this one's end, its segment table and root.
    prefetch(
        <size_t>arena.first.base + <size_t>arena.first.words * 8 + 16 + (offset >> 3)
    )
    return load_discriminant(data, bits, offset)


cdef inline bint is_set(
    Field* field, const uint8_t* data, uint32_t bits, uint32_t pointers
) noexcept:
    """Whether a pointer is not null; of the other fields, whether a member of a union is active."""
    if field.flags & IS_UNION_MEMBER and (
        load_discriminant(data, bits, field.discriminant_offset) != field.discriminant
    ):
        return False
    if field.kind <= ENUM or field.kind == GROUP:
        return True
    return field.offset < pointers and load64(
        data + (bits >> 3) + <size_t>field.offset * 8
    ) != 0


cdef inline object load_scalar(Field* field, const uint8_t* data, uint32_t bits):
    """The value of a field of the data section; beyond the section it is the default."""
    cdef uint32_t kind = field.kind
    cdef uint32_t at = field.offset
    cdef uint64_t raw = field.mask
    if kind == BOOL:
        if at < bits:
            raw ^= (data[at >> 3] >> (at & 7)) & 1
        return True if raw else False
    if kind == UINT32 or kind == INT32 or kind == FLOAT32:
        if at + 32 <= bits:
            raw ^= load32(data + (at >> 3))
        if kind == UINT32:
            return PyLong_FromLong(<long>raw)
        if kind == INT32:
            return PyLong_FromLong(<int32_t>raw)
        return PyFloat_FromDouble(float32_of(<uint32_t>raw))
    if kind == UINT64 or kind == INT64 or kind == FLOAT64:
        if at + 64 <= bits:
            raw ^= load64(data + (at >> 3))
        if kind == UINT64:
            return capnwire_uint64(raw)
        if kind == INT64:
            return PyLong_FromLongLong(<int64_t>raw)
        return PyFloat_FromDouble(float64_of(raw))
    if kind == UINT16 or kind == INT16 or kind == ENUM:
        if at + 16 <= bits:
            raw ^= load16(data + (at >> 3))
        if kind == UINT16:
            return PyLong_FromLong(<long>raw)
        if kind == INT16:
            return PyLong_FromLong(<int16_t>raw)
        return enum_value(<EnumInfo>field.sub, <uint32_t>raw)
    if kind == UINT8 or kind == INT8:
        if at + 8 <= bits:
            raw ^= data[at >> 3]
        return PyLong_FromLong(<long>raw if kind == UINT8 else <int8_t>raw)
    return None


cdef inline object load_text(Arena arena, Segment* segment, const uint8_t* place, Field* field):
    """The str of a Text pointer; null, or `place` NULL, gives the default."""
    cdef BlobRef blob
    cdef word_t pointer = load64(place) if place != NULL else 0
    if pointer == 0:
        if field.default == NULL:
            return ""
        arena = <Arena>field.default
        segment = &arena.first
        place = segment.base
        pointer = load64(place)
    read_text(arena, segment, place, pointer, &blob)
    return capnwire_text(blob.data, blob.size, field.flags & KEEPS_BYTES)
