"""Storing values: type and range are checked here, for slots, keywords, dicts and lists alike.

A refused value leaves its field as it was.  The order in which a mapping gives its keys is the
order of allocation, as in the reference.  Spec: encoding.md, 1.1 (defaults, unions) and 1.7
(allocation).
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from libc.math cimport isfinite
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from capnwire._any cimport is_pointer_at, store_any, store_capability
from capnwire._convert cimport locate_list, locate_struct, ref_of
from capnwire._fast cimport Struct, check_alive, info_of
from capnwire._groups cimport store_group, store_new_group
from capnwire._info cimport (
    BOOL, DATA, ENUM, FLOAT32, FLOAT64, GROUP, INT8, INT16, INT32, INT64, INTERFACE,
    IS_UNION_MEMBER, KEEPS_BYTES, LIST, STRUCT, TEXT, UINT8, UINT16, UINT32, UINT64, EnumInfo,
    EnumValue, Field, ListInfo, StructInfo, complete, find_field,
)
from capnwire._lists cimport List, check_list
from capnwire._python cimport *
from capnwire._stack cimport capnwire_enter, capnwire_leave
from capnwire.wire.arena cimport Arena, BuilderArena, Segment, new_builder_arena
from capnwire.wire.builder cimport (
    Orphan, adopt, allocate, disown, erase, get_list, get_struct, init_list, init_struct,
)
from capnwire.wire.copy cimport copy_list, copy_pointer, copy_struct
from capnwire.wire.memory cimport (
    bits_of_float32, bits_of_float64, load16, load64, store16, store32, store64,
)
from capnwire.wire.pointer cimport list_shape
from capnwire.wire.reader cimport WANT_ANY, ListRef, StructRef, read_list
from capnwire.wire.units cimport SIZE_BYTE, SIZE_COMPOSITE

from _collections_abc import Mapping, Set

from capnwire.errors import EncodeError, EncodeTypeError

cdef enum:
    NO_DEPTH_LIMIT = 0xFFFF
    MAX_BLOB_BYTES = 0x1FFFFFFF
    MAX_LEVELS = 1000            # of nested mappings and sequences in one value: C stack

cdef extern from *:
    """
    static CAPNWIRE_THREAD int capnwire_nesting = 0;
    """
    int nesting "capnwire_nesting"


# ---------------------------------------------------------------- refusing

cdef str ELEMENT = "the element"


cdef str label(Field* field):
    """`Person.name`, or what a list element or bare value is called."""
    if field.owner == NULL:
        return ELEMENT
    name = <object>field.name if field.name != NULL else ELEMENT
    return f"{(<StructInfo>field.owner).name}.{name}"


cdef str shown(object value):
    try:
        text = repr(value)
    except Exception as error:
        text = f"<no repr: {type(error).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


cdef object place_of(Field* field):
    """The struct's and the field's name, as an EncodeError tells them."""
    if field.owner == NULL:
        return None, None
    return (<StructInfo>field.owner).name, <object>field.name if field.name != NULL else None


cdef object wrong_type(Field* field, PyObject* value, str wanted):
    struct, name = place_of(field)
    return EncodeTypeError(
        f"{label(field)}: {wanted} is wanted, not {type(<object>value).__name__} "
        f"{shown(<object>value)}",
        struct=struct, field=name, value=<object>value,
    )


cdef object wrong_value(Field* field, PyObject* value, str wanted):
    struct, name = place_of(field)
    return EncodeError(
        f"{label(field)}: {wanted} is wanted, not {shown(<object>value)}",
        struct=struct, field=name, value=<object>value,
    )


cdef object wrong_capability(Field* field, object error):
    """What the service layer has against a capability, told as an error of a field."""
    struct, name = place_of(field)
    return EncodeTypeError(f"{label(field)}: {error}", struct=struct, field=name, value=error.value)


cdef object error_of_element(object error, str list_name, object place, Py_ssize_t index):
    """The error of an element, which does not know where it is, told as one of its list.

    `place` is the struct's and the field's name; the error of a field within an element stays.
    """
    cdef str text = str(error)
    if error.struct is not None or not text.startswith(ELEMENT):
        return error
    struct, name = place
    return type(error)(
        f"{list_name}[{index}]{text[len(ELEMENT):]}", struct=struct, field=name, value=error.value
    )


# ---------------------------------------------------------------- storing scalars

cdef uint64_t integer_of(Field* field, PyObject* value, int64_t low, uint64_t high) except? 0:
    """The value as two's complement of 64 bits, checked to lie in [low, high].

    Takes ints, what has `__index__` (NumPy's integers), and floats that are whole numbers.
    """
    cdef int overflow = 0
    cdef long long number
    cdef unsigned long long large
    if PyFloat_Check(value):
        if not isfinite(PyFloat_AS_DOUBLE(value)) or not (<object>value).is_integer():
            raise wrong_value(field, value, f"an integer from {low} to {high}")
        exact = int(<object>value)
    elif PyLong_CheckExact(value):
        exact = <object>value
    elif PyIndex_Check(value):
        exact = PyNumber_Index(value)
    else:
        raise wrong_type(field, value, f"an integer from {low} to {high}")
    number = PyLong_AsLongLongAndOverflow(<PyObject*>exact, &overflow)
    if overflow == 0:
        if number >= low and (number < 0 or <uint64_t>number <= high):
            return <uint64_t>number
    elif overflow > 0 and high > 0x7FFFFFFFFFFFFFFF:
        try:
            large = PyLong_AsUnsignedLongLong(<PyObject*>exact)
            return large
        except OverflowError:
            pass
    raise wrong_value(field, value, f"an integer from {low} to {high}")


cdef double float_of(Field* field, PyObject* value) except? -1.0:
    if PyFloat_Check(value):
        return PyFloat_AS_DOUBLE(value)
    if PyUnicode_Check(value):
        raise wrong_type(field, value, "a number")
    try:
        return PyFloat_AsDouble(value)
    except TypeError:
        raise wrong_type(field, value, "a number") from None
    except OverflowError:
        raise wrong_value(field, value, "a number within the range of Float64") from None


cdef float float32_from(Field* field, PyObject* value) except? -1.0:
    cdef double wide = float_of(field, value)
    cdef float narrow = <float>wide
    if not isfinite(narrow) and isfinite(wide):
        raise wrong_value(field, value, "a number within the range of Float32")
    return narrow


cdef int bool_of(Field* field, PyObject* value) except -1:
    if value == Py_True:
        return 1
    if value == Py_False:
        return 0
    if type(<object>value).__name__ in ("bool_", "bool"):      # NumPy's
        return PyObject_IsTrue(value)
    raise wrong_type(field, value, "True or False")


cdef uint32_t enum_of(Field* field, PyObject* value) except? 0xFFFF:
    """The number of an enum's value: given by name, by value, or as a number, known or not."""
    cdef EnumInfo info = <EnumInfo>field.sub
    cdef EnumValue known
    if isinstance(<object>value, EnumValue):
        known = <EnumValue>value
        if known.info is not info and known.info.node.id != info.node.id:
            raise wrong_type(field, value, f"a value of enum {info.name}")
        return known.raw
    if PyUnicode_Check(value):
        known = info.by_name.get(<object>value)
        if known is None:
            raise wrong_value(field, value, f"the name of a value of enum {info.name}")
        return known.raw
    if PyFloat_Check(value) or not PyIndex_Check(value):
        raise wrong_type(field, value, f"a name or number of enum {info.name}")
    return <uint32_t>integer_of(field, value, 0, 0xFFFF)


cdef int store_scalar(uint8_t* data, Field* field, PyObject* value) except -1:
    """Store into the data section, which is large enough; the default is XORed on."""
    cdef uint32_t kind = field.kind
    cdef uint8_t* at = data + (field.offset >> 3)
    cdef uint64_t raw
    cdef uint8_t bit
    if kind == BOOL:
        bit = <uint8_t>(1 << (field.offset & 7))
        if bool_of(field, value) ^ field.mask:
            at[0] |= bit
        else:
            at[0] &= ~bit
    elif kind == UINT32:
        if not capnwire_small_int(value, &raw):
            raw = integer_of(field, value, 0, 0xFFFFFFFFU)
        store32(at, <uint32_t>(raw ^ field.mask))
    elif kind == UINT64:
        if not capnwire_small_int(value, &raw):
            raw = integer_of(field, value, 0, 0xFFFFFFFFFFFFFFFFU)
        store64(at, raw ^ field.mask)
    elif kind == INT64:
        if not capnwire_small_int(value, &raw):
            raw = integer_of(field, value, INT64_MIN, 0x7FFFFFFFFFFFFFFF)
        store64(at, raw ^ field.mask)
    elif kind == INT32:
        if not capnwire_small_int(value, &raw):
            raw = integer_of(field, value, -0x80000000, 0x7FFFFFFF)
        store32(at, <uint32_t>(raw ^ field.mask))
    elif kind == FLOAT64:
        if PyFloat_CheckExact(value):
            store64(at, bits_of_float64(PyFloat_AS_DOUBLE(value)) ^ field.mask)
        else:
            store64(at, bits_of_float64(float_of(field, value)) ^ field.mask)
    elif kind == FLOAT32:
        store32(at, bits_of_float32(float32_from(field, value)) ^ <uint32_t>field.mask)
    elif kind == UINT16:
        store16(at, <uint16_t>(integer_of(field, value, 0, 0xFFFF) ^ field.mask))
    elif kind == INT16:
        store16(at, <uint16_t>(integer_of(field, value, -0x8000, 0x7FFF) ^ field.mask))
    elif kind == ENUM:
        store16(at, <uint16_t>(enum_of(field, value) ^ field.mask))
    elif kind == UINT8:
        at[0] = <uint8_t>(integer_of(field, value, 0, 0xFF) ^ field.mask)
    elif kind == INT8:
        at[0] = <uint8_t>(integer_of(field, value, -0x80, 0x7F) ^ field.mask)
    elif value != Py_None:
        raise wrong_type(field, value, "None")
    return 0


# ---------------------------------------------------------------- storing pointers

cdef int store(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value,
) except -1:
    """Set any field of a struct of full size; a union member becomes the active one."""
    if field.flags & IS_UNION_MEMBER:
        return store_member(arena, segment, data, bits, field, value)
    if field.kind <= ENUM:
        return store_scalar(data, field, value)
    if field.kind == GROUP:
        return store_group(arena, segment, data, bits, field, value)
    data += (bits >> 3) + <size_t>field.offset * 8
    if field.kind == TEXT and PyUnicode_CheckExact(value) and load64(data) == 0:
        return store_text(arena, segment, data, field, value)
    return store_pointer(arena, segment, data, field, value, True)


cdef int store_member(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value,
) except -1:
    """Set a union member, then the discriminant: a refused value leaves the union as it was."""
    cdef bint active = load16(data + (field.discriminant_offset >> 3)) == field.discriminant
    cdef Field stored
    if field.kind <= ENUM:
        store_scalar(data, field, value)
    elif field.kind == GROUP:
        if active:
            store_group(arena, segment, data, bits, field, value)
        else:
            store_new_group(arena, segment, data, bits, field, value)
    else:
        stored = field[0]
        if not active:
            # A mapping then fills an empty struct: as `init` would, not the default.
            stored.default = NULL
        store_pointer(
            arena, segment, data + (bits >> 3) + <size_t>field.offset * 8, &stored, value, active
        )
    activate(field, data)
    return 0


cdef void activate(Field* field, uint8_t* data) noexcept:
    if field.flags & IS_UNION_MEMBER:
        store16(data + (field.discriminant_offset >> 3), field.discriminant)


cdef int store_pointer(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value,
    bint merging,
) except -1:
    """Set a pointer field; `merging` allows a mapping to be merged into the struct that is there.

    The old object is kept aside until the new value is stored, and put back when it is refused.
    """
    cdef Orphan old
    if load64(place) == 0:
        try:
            return store_new_pointer(arena, segment, place, field, value)
        except BaseException:
            erase(arena, segment, place)
            raise
    if merging and field.kind == STRUCT and is_mapping(value):
        return merge_at(arena, segment, place, field, value)
    if field.kind > INTERFACE and is_pointer_at(<object>value, place):
        return 0
    if field.kind >= STRUCT and isinstance(<object>value, Struct):
        if (<Struct>value).arena is arena and not info_of(<object>value).is_group:
            # Copied while the old object is in its place: it may be part of the value.
            whole = (<object>value).as_builder()
            return store_pointer(arena, segment, place, field, <PyObject*>whole, merging)
    old = disown(arena, segment, place)
    try:
        store_new_pointer(arena, segment, place, field, value)
    except BaseException:
        adopt(arena, segment, place, old)
        raise
    return 0


cdef bint is_mapping(PyObject* value):
    return PyDict_Check(value) or isinstance(<object>value, Mapping)


cdef int merge_at(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    cdef StructRef struct
    writable_struct(arena, segment, place, field, &struct)
    return merge(<StructInfo>field.sub, arena, &struct, value)


cdef int store_new_pointer(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """Store into a null pointer; None leaves it null."""
    cdef uint32_t kind = field.kind
    if kind == TEXT and PyUnicode_CheckExact(value):
        return store_text(arena, segment, place, field, value)
    if value == Py_None:
        return 0
    if kind == TEXT:
        return store_text(arena, segment, place, field, value)
    if kind == DATA:
        return store_data(arena, segment, place, field, value)
    if kind == LIST:
        return store_list(arena, segment, place, field, value)
    if kind == STRUCT:
        if is_mapping(value):
            return merge_at(arena, segment, place, field, value)
        return store_struct(arena, segment, place, field, value)
    if kind == INTERFACE:
        return store_capability(arena, segment, place, field, value)
    return store_any(arena, segment, place, field, value)


cdef uint8_t* new_blob(
    BuilderArena arena, Segment* segment, uint8_t* place, uint64_t size
) except NULL:
    """Zeroed room for a byte list at the null pointer `place`."""
    if size > MAX_BLOB_BYTES:
        raise EncodeError(f"{size} bytes are too many: a blob ends at {MAX_BLOB_BYTES}")
    return allocate(
        arena, &segment, &place, (size + 7) >> 3, list_shape(SIZE_BYTE, <uint32_t>size)
    )


cdef int store_text(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """A str, or bytes that are UTF-8, with the NUL that the wire wants."""
    cdef const char* text
    cdef Py_ssize_t size
    cdef uint8_t* at
    if PyUnicode_Check(value):
        if capnwire_compact_ascii(value):
            text = <const char*>PyUnicode_1BYTE_DATA(value)
            size = PyUnicode_GET_LENGTH(value)
        else:
            try:
                text = PyUnicode_AsUTF8AndSize(value, &size)
            except UnicodeEncodeError:
                if field.flags & KEEPS_BYTES:
                    return store_escaped(arena, segment, place, field, value)
                raise wrong_value(field, value, "text without lone surrogates") from None
        at = new_blob(arena, segment, place, <uint64_t>size + 1)
        memcpy(at, text, size)
        return 0
    if not isinstance(<object>value, (bytes, bytearray, memoryview)):
        raise wrong_type(field, value, "str")
    try:
        decoded = str(
            <object>value, "utf-8", "surrogateescape" if field.flags & KEEPS_BYTES else "strict"
        )
    except UnicodeDecodeError:
        raise wrong_value(field, value, "UTF-8") from None
    return store_text(arena, segment, place, field, <PyObject*>decoded)


cdef int store_escaped(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """A str in which surrogates from U+DC80 up stand for bytes that are not UTF-8."""
    cdef uint8_t* at
    cdef bytes raw
    try:
        raw = (<object>value).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise wrong_value(field, value, "text without lone surrogates") from None
    at = new_blob(arena, segment, place, <uint64_t>len(raw) + 1)
    memcpy(at, <const char*>raw, len(raw))
    return 0


cdef int store_data(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """The bytes of any buffer."""
    cdef Py_buffer view
    if not capnwire_has_buffer(value):
        raise wrong_type(field, value, "bytes or another buffer")
    try:
        PyObject_GetBuffer(<object>value, &view, PyBUF_SIMPLE)
    except (BufferError, ValueError):        # NumPy says ValueError of a strided array
        contiguous = bytes(<object>value)
        return store_data(arena, segment, place, field, <PyObject*>contiguous)
    try:
        memcpy(new_blob(arena, segment, place, view.len), view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int store_struct(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """A deep copy of a reader or builder of the field's type."""
    cdef StructInfo info = <StructInfo>field.sub
    cdef Struct struct
    cdef StructInfo found
    if not isinstance(<object>value, Struct):
        raise wrong_type(field, value, f"a struct {info.name} or a mapping")
    struct = <Struct>value
    found = info_of(struct)
    if found is not info and not same_struct(found, info):
        raise wrong_type(field, value, f"a struct {info.name} or a mapping")
    return copy_in(arena, segment, place, struct)


cdef int copy_in(
    BuilderArena arena, Segment* segment, uint8_t* place, Struct struct
) except -1:
    """Deep-copy a struct to a null pointer.

    From the same message by way of another: the copy's own pointer may lie inside the original.
    """
    cdef StructRef source
    cdef BuilderArena other
    check_alive(struct)
    ref_of(struct, &source)
    if <Arena>struct.arena is not <Arena>arena:
        return copy_struct(arena, segment, place, struct.arena, &source)
    other = new_builder_arena(1024)
    copy_struct(
        other, &other.root_segment.head, other.root_segment.head.base, struct.arena, &source
    )
    get_struct(
        other, &other.root_segment.head, other.root_segment.head.base, 0, 0, &source
    )
    source.depth = NO_DEPTH_LIMIT
    return copy_struct(arena, segment, place, other, &source)


cdef int merge(StructInfo info, BuilderArena arena, StructRef* struct, PyObject* mapping) except -1:
    """Set fields from a mapping, in the mapping's own order, which is the order of allocation.

    Raises:
        AttributeError: a key names no field.
    """
    if info.reader_type == NULL:
        complete(info)
    capnwire_enter(&nesting, MAX_LEVELS, " while a nested mapping is stored")
    try:
        if PyDict_CheckExact(mapping):
            return merge_dict(info, arena, struct, mapping)
        for name in <object>mapping:
            item = (<object>mapping)[name]
            store(
                arena, struct.segment, struct.data, struct.bits, find_field(info, name),
                <PyObject*>item,
            )
    finally:
        capnwire_leave(&nesting)
    return 0


cdef int merge_dict(
    StructInfo info, BuilderArena arena, StructRef* struct, PyObject* mapping
) except -1:
    cdef Py_ssize_t at = 0
    cdef PyObject* key
    cdef PyObject* value
    cdef uint32_t guess = 0
    while PyDict_Next(mapping, &at, &key, &value):
        # Held, as finding (a str's subclass has its own hash) and storing may run code that takes
        # them out of the dict.
        _held = <object>value
        if guess >= info.count or info.fields[guess].name != key:
            name = <object>key
            guess = find_field(info, name).index
        store(arena, struct.segment, struct.data, struct.bits, &info.fields[guess], value)
        guess += 1
    return 0


cdef int writable_struct(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, StructRef* out
) except -1:
    """The struct of a pointer field, to be written: made when null, grown when too small."""
    cdef StructInfo info = <StructInfo>field.sub
    cdef StructRef initial
    cdef PyObject* home
    if load64(place) == 0:
        if field.default == NULL:
            return init_struct(arena, segment, place, info.data_words, info.pointer_count, out)
        locate_struct(arena, segment, NULL, NO_DEPTH_LIMIT, field, &home, &initial)
        copy_struct(arena, segment, place, <Arena>home, &initial)
    return get_struct(arena, segment, place, info.data_words, info.pointer_count, out)


# ---------------------------------------------------------------- storing lists

cdef int new_list(
    BuilderArena arena, Segment* segment, uint8_t* place, ListInfo info, uint64_t count,
    ListRef* out,
) except -1:
    """A zeroed list of `count` elements; what was at the pointer is zeroed."""
    cdef StructInfo struct
    if info.element.kind == STRUCT:
        struct = <StructInfo>info.element.sub
        return init_list(
            arena, segment, place, SIZE_COMPOSITE, count, struct.data_words, struct.pointer_count,
            out,
        )
    return init_list(arena, segment, place, info.element_size, count, 0, 0, out)


cdef int writable_list(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, ListRef* out
) except -1:
    """The list of a pointer field, to be written: its default, or an empty one, when null."""
    cdef ListInfo info = <ListInfo>field.sub
    cdef StructInfo struct
    cdef ListRef initial
    cdef PyObject* home
    cdef uint32_t data_words = 0, pointers = 0
    if info.element.kind == STRUCT:
        struct = <StructInfo>info.element.sub
        data_words, pointers = struct.data_words, struct.pointer_count
    if load64(place) == 0:
        locate_list(arena, segment, NULL, NO_DEPTH_LIMIT, field, &home, &initial)
        if field.default == NULL:
            out[0] = initial
            return 0
        copy_list(arena, segment, place, <Arena>home, &initial)
    return get_list(
        arena, segment, place, info.element_size, data_words, pointers, out
    )


cdef int store_list(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """Any sequence, list of a message, or buffer of numbers."""
    cdef ListInfo info = <ListInfo>field.sub
    cdef ListRef items
    cdef Py_ssize_t count
    if PyList_CheckExact(value) or PyTuple_CheckExact(value):
        sequence = <object>value
    elif isinstance(<object>value, List):
        if same_elements((<List>value).info, info):
            return copy_list_in(arena, segment, place, <List>value)
        sequence = list(<object>value)
    elif capnwire_has_buffer(value) and store_buffer(arena, segment, place, field, value):
        return 0
    elif PyUnicode_Check(value) or is_mapping(value) or isinstance(<object>value, (bytes, Set)):
        raise wrong_type(field, value, "a sequence")
    else:
        try:
            sequence = list(<object>value)
        except TypeError:
            raise wrong_type(field, value, "a sequence") from None
    count = len(sequence)
    new_list(arena, segment, place, info, count, &items)
    capnwire_enter(&nesting, MAX_LEVELS, " while a nested sequence is stored")
    try:
        return store_elements(arena, field, &items, sequence, count)
    finally:
        capnwire_leave(&nesting)


cdef int store_elements(
    BuilderArena arena, Field* field, ListRef* items, object sequence, Py_ssize_t count
) except -1:
    cdef ListInfo info = <ListInfo>field.sub
    cdef Py_ssize_t i = 0
    cdef bint is_list = PyList_CheckExact(<PyObject*>sequence)
    try:
        for i in range(count):
            if is_list:
                if i >= PyList_GET_SIZE(<PyObject*>sequence):
                    break            # it shrank under us; the rest stays zero
                element = <object>PyList_GET_ITEM(<PyObject*>sequence, i)
            else:
                element = <object>PyTuple_GET_ITEM(<PyObject*>sequence, i)
            store_element(arena, info, items, <uint32_t>i, <PyObject*>element)
    except EncodeError as error:
        raise error_of_element(error, label(field), place_of(field), i) from None
    return 0


cdef int copy_list_in(
    BuilderArena arena, Segment* segment, uint8_t* place, List source
) except -1:
    """Deep-copy a list to a null pointer; from the same message by way of another."""
    cdef ListRef items
    cdef BuilderArena other
    check_list(source)
    items = source.ref
    if isinstance(source.arena, BuilderArena):
        items.depth = NO_DEPTH_LIMIT
    if <Arena>source.arena is not <Arena>arena:
        return copy_list(arena, segment, place, source.arena, &items)
    other = new_builder_arena(1024)
    place_in_other = other.root_segment.head.base
    copy_list(other, &other.root_segment.head, place_in_other, source.arena, &items)
    read_list(
        other, &other.root_segment.head, place_in_other, load64(place_in_other), NO_DEPTH_LIMIT,
        WANT_ANY, &items,
    )
    return copy_list(arena, segment, place, other, &items)


cdef int store_element(
    BuilderArena arena, ListInfo info, ListRef* items, uint32_t index, PyObject* value
) except -1:
    """Set one element of a list; structs are merged into or overwritten in place."""
    cdef uint8_t* at = items.base + (<uint64_t>index * items.step >> 3)
    cdef StructRef struct
    cdef uint32_t kind = info.element.kind
    if kind == STRUCT:
        struct.segment, struct.data, struct.bits = items.segment, at, items.bits
        struct.pointers = items.pointers
        return store_struct_element(arena, info, &struct, value)
    if kind == BOOL:
        if bool_of(&info.element, value):
            items.base[index >> 3] |= <uint8_t>(1 << (index & 7))
        else:
            items.base[index >> 3] &= ~<uint8_t>(1 << (index & 7))
        return 0
    if kind <= ENUM:
        return store_scalar(at, &info.element, value)
    return store_pointer(arena, items.segment, at + (items.bits >> 3), &info.element, value, True)


cdef int store_struct_element(
    BuilderArena arena, ListInfo info, StructRef* struct, PyObject* value
) except -1:
    cdef StructInfo element = <StructInfo>info.element.sub
    if PyDict_CheckExact(value) or is_mapping(value):
        return merge(element, arena, struct, value)
    if isinstance(<object>value, Struct):
        found = info_of(<object>value)
        if found is element or same_struct(found, element):
            return copy_into_element(arena, struct, <Struct>value)
    raise wrong_type(&info.element, value, f"a struct {element.name} or a mapping")


cdef int copy_into_element(BuilderArena arena, StructRef* struct, Struct source) except -1:
    """Overwrite an inline struct: as much of data and pointers as it has room for."""
    cdef StructRef copied
    cdef BuilderArena other
    if source.data == struct.data and source.arena is arena:
        return 0
    check_alive(source)
    ref_of(source, &copied)
    if <Arena>source.arena is not <Arena>arena and copied.pointers == 0:
        return overwrite_struct(arena, struct, source.arena, &copied)
    # Whole before anything is overwritten: the source may be part of it, or turn out malformed.
    other = new_builder_arena(1024)
    copy_struct(
        other, &other.root_segment.head, other.root_segment.head.base, source.arena, &copied
    )
    get_struct(other, &other.root_segment.head, other.root_segment.head.base, 0, 0, &copied)
    copied.depth = NO_DEPTH_LIMIT
    return overwrite_struct(arena, struct, other, &copied)


cdef int overwrite_struct(
    BuilderArena arena, StructRef* struct, Arena source_arena, StructRef* source
) except -1:
    cdef uint32_t size = struct.bits >> 3
    cdef uint32_t kept = min(size, source.bits >> 3)
    cdef uint32_t i
    cdef uint8_t* place = struct.data + size
    memcpy(struct.data, source.data, kept)
    memset(struct.data + kept, 0, size - kept)
    for i in range(struct.pointers):
        erase(arena, struct.segment, place)
        if i < source.pointers:
            copy_pointer(
                arena, struct.segment, place, source_arena, source.segment,
                source.data + (source.bits >> 3) + <size_t>i * 8, source.depth,
            )
        place += 8
    return 0


# ---------------------------------------------------------------- buffers of numbers

# Letter class and size of the elements, as `buffer_class` gives them.
cdef dict BUFFER_FORMATS = {
    INT8: "i1", INT16: "i2", INT32: "i4", INT64: "i8", UINT8: "u1", UINT16: "u2", UINT32: "u4",
    UINT64: "u8", FLOAT32: "f4", FLOAT64: "f8",
}


cdef int store_buffer(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """Copy a one-dimensional buffer of the list's own number type; 0 when it is something else."""
    cdef ListInfo info = <ListInfo>field.sub
    cdef ListRef items
    cdef Py_buffer view
    wanted = BUFFER_FORMATS.get(info.element.kind)
    if wanted is None:
        return 0
    source = memoryview(<object>value)
    if source.ndim != 1 or not source.c_contiguous or buffer_class(source) != wanted:
        return 0
    PyObject_GetBuffer(source, &view, PyBUF_SIMPLE)
    try:
        new_list(arena, segment, place, info, source.shape[0], &items)
        memcpy(items.base, view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return 1


cdef str buffer_class(object view):
    """`i2` for a memoryview of little-endian 16-bit signed integers, and so on; "" for others."""
    cdef str code = view.format
    if code[:1] in ("<", "=", "@"):
        code = code[1:]
    if len(code) != 1:
        return ""
    if code in "bhilqn":
        return f"i{view.itemsize}"
    if code in "BHILQN":
        return f"u{view.itemsize}"
    if code in "fd":
        return f"f{view.itemsize}"
    return ""


cdef bint same_elements(ListInfo left, ListInfo right):
    """Whether lists of these types have the same layout and meaning."""
    if left is right:
        return True
    if left.element.kind != right.element.kind:
        return False
    if left.element_info is None or left.element_info is right.element_info:
        return left.element_info is right.element_info
    if left.element.kind == LIST:
        return same_elements(left.element_info, right.element_info)
    if left.element.kind == STRUCT:
        return same_struct(left.element_info, right.element_info)
    return left.element_info.node.id == right.element_info.node.id


cdef bint same_struct(StructInfo left, StructInfo right):
    """Whether two infos stand for one struct, with bindings that do not contradict each other."""
    if left.node.id != right.node.id:
        return False
    mine, its = left.scope[1][2], dict(right.scope[1][2])
    for scope, bindings in mine:
        for own, other in zip(bindings, its.get(scope, ())):
            if own != other and own not in UNBOUND and other not in UNBOUND:
                return False
    return True


cdef tuple UNBOUND = (None, ("anyPointer",))
