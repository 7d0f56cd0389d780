"""pycapnp's coercions: what its programs may store into which field, and what is refused.

The checks of types are here, the storing itself is `capnwire._store`'s.  What pycapnp refuses
though the value is plain (numbers of NumPy, subclasses, bytearray, any iterable) is taken.
"""

from cpython.object cimport PyObject
from libc.math cimport isinf
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from base64 import b64decode

from capnwire._any cimport AnyPointerBuilder, AnyPointerReader
from capnwire._fast cimport Struct, info_of
from capnwire._groups cimport clear_group
from capnwire._info cimport (
    BOOL, DATA, ENUM, FLOAT32, FLOAT64, GROUP, INT8, INTERFACE, IS_UNION_MEMBER, LIST, STRUCT,
    TEXT, EnumInfo, Field, ListInfo, StructInfo, complete,
)
from capnwire._lists cimport List
from capnwire._python cimport *
from capnwire._stack cimport capnwire_enter, capnwire_leave
from capnwire._store cimport (
    activate, is_mapping, new_list, store, store_data, store_element, writable_struct,
)
from capnwire.wire.arena cimport BuilderArena, Segment
from capnwire.wire.builder cimport Orphan, adopt, disown, erase, init_struct
from capnwire.wire.memory cimport load16
from capnwire.wire.reader cimport ListRef, StructRef

from collections.abc import Set

from capnwire.errors import EncodeError, EncodeTypeError, KjException


cdef enum:
    MAX_LEVELS = 1000            # of nested dicts and lists in one assignment: C stack

cdef extern from *:
    """
    static CAPNWIRE_THREAD int capnwire_nesting;
    """
    int nesting "capnwire_nesting"

cdef object capability_of = None


def set_capability_source(source):
    """Say how a value becomes a capability: `source(value, interface info)`, or TypeError."""
    global capability_of
    capability_of = source


# ---------------------------------------------------------------- refusing

class UnknownEnumerant(EncodeError, AttributeError):
    """An enum has no value of this name: pycapnp raises the one or the other."""


class UnknownMember(KjException, AttributeError):
    """A key names no field: pycapnp raises the one or the other."""


class OutOfRange(EncodeError, OverflowError):
    """An integer has more than 64 bits: pycapnp raises OverflowError then."""


cdef object out_of_range(object error):
    """The error of a refused value, as pycapnp has it."""
    value = error.value
    if not isinstance(value, int) or -2**63 <= value < 2**64:
        return error
    return OutOfRange(str(error), struct=error.struct, field=error.field, value=value)


cdef str place_of(Field* field):
    if field.owner == NULL or field.name == NULL:
        return "an element"
    return <object>field.name


cdef object mismatch(Field* field, PyObject* value):
    return EncodeTypeError(
        f"Value type mismatch: field '{place_of(field)}' cannot hold a "
        f"{type(<object>value).__name__}", field=place_of(field), value=<object>value,
    )


cdef object unsupported(Field* field, PyObject* value):
    return EncodeTypeError(
        f"Tried to set field: '{place_of(field)}' with a value of: '{<object>value}' which is an "
        f"unsupported type: '{type(<object>value)}'", field=place_of(field), value=<object>value,
    )


cdef int same_registry(StructInfo left, StructInfo right) except -1:
    """Whether two structs are one type: of one parser, whatever their type parameters."""
    return left is right or (
        left.node.id == right.node.id and left.scope[0] is right.scope[0]
    )


# ---------------------------------------------------------------- one field

cdef int assign(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value, bint in_dict,
) except -1:
    """Set a field; `in_dict` when the value comes from a dict or a keyword."""
    if field.kind == TEXT and PyUnicode_CheckExact(value):
        return store(arena, segment, data, bits, field, value)
    try:
        return assign_checked(arena, segment, data, bits, field, value, in_dict)
    except EncodeError as error:
        raise out_of_range(error) from None


cdef int assign_checked(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value, bint in_dict,
) except -1:
    cdef uint32_t kind = field.kind
    if kind <= FLOAT64:
        if kind >= INT8 and (PyBool_Check(value) or value == Py_None):
            raise mismatch(field, value)
        if kind == FLOAT32 and is_too_large(value):
            infinite = INFINITY if PyFloat_AS_DOUBLE(value) > 0 else -INFINITY
            return store(arena, segment, data, bits, field, <PyObject*>infinite)
        return store(arena, segment, data, bits, field, value)
    if kind == STRUCT or kind == LIST or kind == GROUP:
        return assign_composite(arena, segment, data, bits, field, value)
    held = plain_value(field, <object>value, in_dict)
    if kind == TEXT and isinstance(held, bytes):
        data += (bits >> 3) + <size_t>field.offset * 8
        store_bytes_of_text(arena, segment, data, field, held)
        activate(field, data - (bits >> 3) - <size_t>field.offset * 8)
        return 0
    return store(arena, segment, data, bits, field, <PyObject*>held)


cdef int store_bytes_of_text(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, bytes text
) except -1:
    """Store a Text given as bytes, which nobody needs to be able to decode."""
    ended = text + b"\0"
    erase(arena, segment, place)
    return store_data(arena, segment, place, field, <PyObject*>ended)


cdef object INFINITY = float("inf")


cdef inline bint is_too_large(PyObject* value):
    """Whether a float becomes infinite as a Float32, which pycapnp lets pass."""
    return PyFloat_CheckExact(value) and isinf(<float>PyFloat_AS_DOUBLE(value)) and not isinf(
        PyFloat_AS_DOUBLE(value)
    )


cdef object plain_value(Field* field, object value, bint in_dict):
    """What is stored for a value of a field that is no number, struct, group or list."""
    cdef uint32_t kind = field.kind
    if kind == ENUM:
        return enum_value(field, value)
    if kind == INTERFACE:
        if capability_of is None:
            raise mismatch(field, <PyObject*>value)
        return capability_of(value, None if field.sub == NULL else <object>field.sub)
    if value is None:
        raise mismatch(field, <PyObject*>value)
    if kind == TEXT:
        if isinstance(value, str):
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise mismatch(field, <PyObject*>value)
    if kind == DATA:
        if isinstance(value, str):
            return b64decode(value) if in_dict else value.encode()
        return value
    return any_value(field, value)


cdef object any_value(Field* field, object value):
    """A value for an AnyPointer; bytes become a Text there, as in pycapnp."""
    if isinstance(value, (bytes, memoryview)):
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            return value
    if isinstance(value, (Struct, List, str, bytes, bytearray, memoryview, AnyPointerReader,
                          AnyPointerBuilder)):
        return value
    pointer = getattr(value, "_pointer", None)
    if isinstance(pointer, (AnyPointerReader, AnyPointerBuilder)):
        return pointer
    if isinstance(value, (dict, list, tuple, int, float)) or capability_of is None:
        raise mismatch(field, <PyObject*>value)
    return capability_of(value, None)


cdef object enum_value(Field* field, object value):
    """An enum's value by name, number or value; the name may be bytes."""
    if isinstance(value, bytes):
        value = (<bytes>value).decode()
    if isinstance(value, str):
        if value not in (<EnumInfo>field.sub).by_name:
            raise UnknownEnumerant(
                f"enum has no such enumerant; name = {value}, enum = {(<EnumInfo>field.sub).name}",
                field=place_of(field), value=value,
            )
    elif value is None or isinstance(value, (bool, float)):
        raise mismatch(field, <PyObject*>value)
    elif hasattr(value, "raw"):
        return value.raw
    return value


# ---------------------------------------------------------------- structs, groups and lists

cdef int assign_composite(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value,
) except -1:
    cdef uint8_t* place
    cdef bint active = True
    if field.flags & IS_UNION_MEMBER:
        active = load16(data + (field.discriminant_offset >> 3)) == field.discriminant
    if isinstance(<object>value, Struct):
        if field.kind == LIST or not same_registry(
            <StructInfo>field.sub, info_of(<object>value)
        ):
            raise mismatch(field, value)
        return store(arena, segment, data, bits, field, value)
    if field.kind == GROUP:
        if not is_mapping(value):
            raise mismatch(field, value)
        return assign_group(arena, segment, data, bits, field, value, active)
    place = data + (bits >> 3) + <size_t>field.offset * 8
    if field.kind == STRUCT:
        if not is_mapping(value):
            raise mismatch(field, value)
        assign_struct(arena, segment, place, field, value, active)
    else:
        if not assign_list(arena, segment, place, field, value):
            return store(arena, segment, data, bits, field, value)
    activate(field, data)
    return 0


cdef int assign_group(
    BuilderArena arena, Segment* segment, uint8_t* data, uint32_t bits, Field* field,
    PyObject* value, bint active,
) except -1:
    cdef StructInfo info = <StructInfo>field.sub
    cdef StructRef struct
    if info.reader_type == NULL:
        complete(info)
    struct.segment, struct.data, struct.bits = segment, data, bits
    struct.pointers = info.pointer_count
    if not active:
        clear_group(info, arena, segment, data, bits)
    activate(field, data)
    return assign_dict(info, arena, &struct, <object>value)


cdef int assign_struct(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value,
    bint active,
) except -1:
    """Merge a dict into the struct of a pointer field, or into a new one of an inactive member."""
    cdef StructInfo info = <StructInfo>field.sub
    cdef StructRef struct
    if active:
        writable_struct(arena, segment, place, field, &struct)
    else:
        init_struct(arena, segment, place, info.data_words, info.pointer_count, &struct)
    return assign_dict(info, arena, &struct, <object>value)


cdef int assign_list(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """Store a sequence as a new list; 0 when the value is one that `store` takes as it is.

    The old list is put back when an element is refused.
    """
    cdef ListInfo info = <ListInfo>field.sub
    cdef ListRef items
    cdef Orphan old
    cdef uint32_t kind = info.element.kind
    cdef Py_ssize_t i
    if isinstance(<object>value, List):
        if (<List>value).info is info:
            return 0
        sequence = list(<object>value)
    elif PyList_CheckExact(value) or PyTuple_CheckExact(value):
        if kind <= FLOAT64 and kind != BOOL and kind != FLOAT32 and not has_bool(<object>value):
            return 0
        sequence = <object>value
    elif isinstance(<object>value, (str, bytes, Set)) or is_mapping(value) or value == Py_None:
        raise mismatch(field, value)
    elif capnwire_has_buffer(value) and kind <= FLOAT64:
        return 0
    else:
        try:
            sequence = list(<object>value)
        except TypeError:
            raise unsupported(field, value) from None
    old = disown(arena, segment, place)
    try:
        new_list(arena, segment, place, info, len(sequence), &items)
        capnwire_enter(&nesting, MAX_LEVELS, " while a nested sequence is stored")
        try:
            for i, item in enumerate(sequence):
                if i >= <Py_ssize_t>items.count:
                    break
                assign_element(arena, info, &items, <uint32_t>i, <PyObject*>item)
        finally:
            capnwire_leave(&nesting)
    except BaseException:
        erase(arena, segment, place)
        adopt(arena, segment, place, old)
        raise
    return 1


cdef bint has_bool(object sequence):
    for item in sequence:
        if item is True or item is False or item is None:
            return True
    return False


cdef int assign_element(
    BuilderArena arena, ListInfo info, ListRef* items, uint32_t index, PyObject* value
) except -1:
    """Set one element of a list."""
    cdef uint32_t kind = info.element.kind
    cdef uint8_t* at = items.base + (<uint64_t>index * items.step >> 3)
    cdef StructRef struct
    if kind == STRUCT:
        if is_mapping(value):
            struct.segment, struct.data = items.segment, at
            struct.bits, struct.pointers = items.bits, items.pointers
            return assign_dict(<StructInfo>info.element.sub, arena, &struct, <object>value)
        if not isinstance(<object>value, Struct) or not same_registry(
            <StructInfo>info.element.sub, info_of(<object>value)
        ):
            raise mismatch(&info.element, value)
        return store_element(arena, info, items, index, value)
    if kind == LIST:
        at += items.bits >> 3
        if assign_list(arena, items.segment, at, &info.element, value):
            return 0
        return store_element(arena, info, items, index, value)
    if kind <= FLOAT64:
        if kind >= INT8 and (PyBool_Check(value) or value == Py_None):
            raise mismatch(&info.element, value)
        if kind == FLOAT32 and is_too_large(value):
            infinite = INFINITY if PyFloat_AS_DOUBLE(value) > 0 else -INFINITY
            return store_element(arena, info, items, index, <PyObject*>infinite)
        try:
            return store_element(arena, info, items, index, value)
        except EncodeError as error:
            raise out_of_range(error) from None
    held = plain_value(&info.element, <object>value, False)
    if kind == TEXT and isinstance(held, bytes):
        return store_bytes_of_text(
            arena, items.segment, at + (items.bits >> 3), &info.element, held
        )
    return store_element(arena, info, items, index, <PyObject*>held)


cdef int assign_dict(
    StructInfo info, BuilderArena arena, StructRef* struct, object mapping
) except -1:
    """Set fields from a mapping, in its order; the key `which` is passed over.

    Raises:
        UnknownMember: a key names no field.
    """
    cdef uint32_t guess = 0
    if info.reader_type == NULL:
        complete(info)
    capnwire_enter(&nesting, MAX_LEVELS, " while a nested mapping is stored")
    try:
        for key, value in mapping.items():
            if guess >= info.count or info.fields[guess].name != <PyObject*>key:
                if key == "which":
                    continue
                index = info.by_name.get(key)
                if index is None:
                    raise UnknownMember(
                        f"struct has no such member; name = {key}, struct = {info.name}"
                    )
                guess = <uint32_t>index
            assign(
                arena, struct.segment, struct.data, struct.bits, &info.fields[guess],
                <PyObject*>value, True,
            )
            guess += 1
    finally:
        capnwire_leave(&nesting)
    return 0
