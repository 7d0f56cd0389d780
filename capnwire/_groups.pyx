"""Groups: views of their parent's sections, so that storing and clearing one goes field by field.

Spec: encoding.md, 1.1 (groups and unions) and 1.3.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy, memset

from capnwire._convert cimport ref_of
from capnwire._fast cimport Struct, check_alive, info_of
from capnwire._info cimport (
    BOOL, ENUM, FLOAT32, GROUP, INT8, INT16, INT32, UINT8, UINT16, UINT32, VOID, Field, StructInfo,
    complete,
)
from capnwire._load cimport load_discriminant
from capnwire._python cimport *
from capnwire._store cimport activate, is_mapping, merge, same_struct, wrong_type
from capnwire.wire.arena cimport Arena, BuilderArena, Segment, new_builder_arena
from capnwire.wire.builder cimport adopt, disown, erase, init_struct
from capnwire.wire.copy cimport copy_pointer
from capnwire.wire.memory cimport load16, load64, store16
from capnwire.wire.reader cimport StructRef

cdef enum:
    NO_DEPTH_LIMIT = 0xFFFF


cdef int store_new_group(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value,
) except -1:
    """Set a group that is not the active member: it shares its place with the one that is.

    What is there is kept aside until the value is stored, and put back when it is refused.  What
    `clear_group` would have left is put back too, so that the bytes are the reference's.
    """
    cdef StructInfo info = <StructInfo>field.sub
    cdef uint8_t* place = data + (bits >> 3)
    cdef uint32_t i
    cdef bytes kept = PyBytes_FromStringAndSize(<const char*>data, bits >> 3)
    cdef list orphans = []
    for i in range(info.pointer_count):
        orphans.append(
            disown(arena, segment, place + <size_t>i * 8)
            if has_pointer(info, i) and load64(place + <size_t>i * 8) else None
        )
    try:
        clear_group(info, arena, segment, data, bits)
        store_group(arena, segment, data, bits, field, value)
    except BaseException:
        clear_group(info, arena, segment, data, bits)
        memcpy(data, <const char*>kept, bits >> 3)
        for i in range(info.pointer_count):
            if orphans[i] is not None:
                adopt(arena, segment, place + <size_t>i * 8, orphans[i])
        raise
    for i in range(info.pointer_count):
        if orphans[i] is not None and not (
            uses_pointer(info, i, NULL) or uses_pointer(info, i, data)
        ):
            adopt(arena, segment, place + <size_t>i * 8, orphans[i])
    return 0


cdef bint has_pointer(StructInfo info, uint32_t index) except -1:
    """Whether a group, or a group in it, has the pointer of this index."""
    cdef uint32_t i
    cdef Field* field
    if info.reader_type == NULL:
        complete(info)
    for i in range(info.count):
        field = &info.fields[i]
        if field.kind == GROUP:
            if has_pointer(<StructInfo>field.sub, index):
                return True
        elif field.kind > ENUM and field.offset == index:
            return True
    return False


cdef bint uses_pointer(StructInfo info, uint32_t index, const uint8_t* data) except -1:
    """Whether a group uses the pointer in its present state, or (`data` NULL) in its first one."""
    cdef uint32_t i, active = 0
    if info.reader_type == NULL:
        complete(info)
    for i in range(info.plain_count):
        if field_uses_pointer(info.plain[i], index, data):
            return True
    if info.member_count == 0:
        return False
    if data != NULL:
        active = load16(data + (info.discriminant_offset >> 3))
    return active < info.member_count and field_uses_pointer(info.members[active], index, data)


cdef bint field_uses_pointer(Field* field, uint32_t index, const uint8_t* data) except -1:
    if field.kind == GROUP:
        return uses_pointer(<StructInfo>field.sub, index, data)
    return field.kind > ENUM and field.offset == index


cdef int store_group(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value,
) except -1:
    """Merge a mapping into a group, or set all of its fields from a group of the same type."""
    cdef StructInfo info = <StructInfo>field.sub
    cdef StructRef struct
    if info.reader_type == NULL:
        complete(info)
    struct.segment, struct.data, struct.bits = segment, data, bits
    struct.pointers = info.pointer_count
    if is_mapping(value):
        return merge(info, arena, &struct, value)
    if isinstance(<object>value, Struct):
        found = info_of(<object>value)
        if found is info or same_struct(found, info):
            return copy_group(info, arena, &struct, <Struct>value)
    raise wrong_type(field, value, f"a group {info.name} or a mapping")


cdef int copy_group(
    StructInfo info, BuilderArena arena, StructRef* target, Struct source
) except -1:
    """Make a group what another of its type is: its fields, and nothing of the struct around it."""
    cdef StructRef where, between
    cdef BuilderArena other
    check_alive(source)
    if source.data == target.data and source.arena is arena:
        return 0
    ref_of(source, &where)
    # By way of a struct of its own: the source may be part of the target, or turn out malformed.
    other = new_builder_arena(1024)
    init_struct(
        other, &other.root_segment.head, other.root_segment.head.base, info.data_words,
        info.pointer_count, &between,
    )
    between.depth = NO_DEPTH_LIMIT
    copy_fields(info, other, &between, source.arena, &where)
    return copy_fields(info, arena, target, other, &between)


cdef int copy_fields(
    StructInfo info, BuilderArena arena, StructRef* target, Arena source_arena, StructRef* source
) except -1:
    """Copy the fields of a group, in the order of `to_dict`; an unknown discriminant as it is."""
    cdef uint32_t i, active
    if info.reader_type == NULL:
        complete(info)
    active = load_discriminant(source.data, source.bits, info.discriminant_offset)
    if info.member_count:
        if active < info.member_count:
            copy_slot(info.members[active], arena, target, source_arena, source)
        store16(target.data + (info.discriminant_offset >> 3), <uint16_t>active)
    for i in range(info.plain_count):
        copy_slot(info.plain[i], arena, target, source_arena, source)
    return 0


cdef int copy_slot(
    Field* field, BuilderArena arena, StructRef* target, Arena source_arena, StructRef* source
) except -1:
    """Copy a field as its bits, or what its pointer names; what the source lacks becomes zero."""
    cdef uint32_t width
    cdef uint8_t* to = target.data + (field.offset >> 3)
    cdef uint8_t bit = <uint8_t>(1 << (field.offset & 7))
    if field.kind == GROUP:
        return copy_fields(<StructInfo>field.sub, arena, target, source_arena, source)
    if field.kind > ENUM:
        to = target.data + (target.bits >> 3) + <size_t>field.offset * 8
        erase(arena, target.segment, to)
        if field.offset < source.pointers:
            return copy_pointer(
                arena, target.segment, to, source_arena, source.segment,
                source.data + (source.bits >> 3) + <size_t>field.offset * 8, source.depth,
            )
        return 0
    width = bits_of(field.kind)
    if field.offset + width > source.bits:
        return clear_slot(arena, target.segment, target.data, target.bits, field)
    if width == 1:
        to[0] = (to[0] & ~bit) | (source.data[field.offset >> 3] & bit)
    else:
        memcpy(to, source.data + (field.offset >> 3), width >> 3)
    return 0


cdef uint32_t bits_of(uint32_t kind) noexcept:
    """Bits in the data section."""
    if kind == BOOL:
        return 1
    if kind == INT8 or kind == UINT8:
        return 8
    if kind == INT16 or kind == UINT16 or kind == ENUM:
        return 16
    if kind == INT32 or kind == UINT32 or kind == FLOAT32:
        return 32
    return 0 if kind == VOID else 64


cdef int clear_group(
    StructInfo info, BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits
) except -1:
    """Give a group its first state, as the reference does, also the groups within.

    Of its union the first member is cleared and made active; what the others have left behind
    stays, and whoever makes one of them active overwrites it.
    """
    cdef uint32_t i
    if info.reader_type == NULL:
        complete(info)
    if info.member_count:
        clear_slot(arena, segment, data, bits, info.members[0])
        store16(data + (info.discriminant_offset >> 3), 0)
    for i in range(info.plain_count):
        clear_slot(arena, segment, data, bits, info.plain[i])
    return 0


cdef int clear_slot(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field
) except -1:
    """Zero the bits of a field, or what its pointer names."""
    cdef uint8_t* at = data + (field.offset >> 3)
    if field.kind == GROUP:
        return clear_group(<StructInfo>field.sub, arena, segment, data, bits)
    if field.kind > ENUM:
        return erase(arena, segment, data + (bits >> 3) + <size_t>field.offset * 8)
    if field.kind == BOOL:
        at[0] &= ~<uint8_t>(1 << (field.offset & 7))
    else:
        memset(at, 0, bits_of(field.kind) >> 3)
    return 0


cdef int clear_field(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field
) except -1:
    """Give a field its default; a union member becomes the active one."""
    clear_slot(arena, segment, data, bits, field)
    activate(field, data)
    return 0
