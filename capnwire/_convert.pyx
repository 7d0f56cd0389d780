"""Loading whole values: dicts and lists made in one C loop over the field table, views of Data.

What is eager here (`to_dict`) is lazy in `_fast` (attributes); both load scalars and text through
`_load`.  Spec: encoding.md, 1.1 (defaults, unions) and 1.3.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from capnwire._any cimport any_reader, load_capability
from capnwire._fast cimport Struct
from capnwire._info cimport (
    BOOL, DATA, ENUM, GROUP, INTERFACE, LIST, STRUCT, TEXT, EnumValue, Field, ListInfo,
    StructInfo, complete,
)
from capnwire._load cimport load_discriminant, load_scalar, load_text
from capnwire._python cimport *
from capnwire._stack cimport capnwire_may_nest
from capnwire.wire.arena cimport (
    ARENA_STRICT, UNLIMITED, Arena, BuilderArena, Segment, check_open,
)
from capnwire.wire.copy cimport count_traversal, message_words
from capnwire.wire.memory cimport load64
from capnwire.wire.reader cimport (
    BlobRef, ListRef, StructRef, read_blob, read_list, read_struct,
)
from capnwire.wire.units cimport word_t

from binascii import b2a_base64

from capnwire.errors import LimitError

cdef enum:
    NO_DEPTH_LIMIT = 0xFFFF
    MAX_LEVELS = 1000            # of nested dicts and lists in one conversion: C stack
    MAX_UNPAID = 0x800000        # words worth of objects that no byte pays for
    MAX_SHARED_WORDS = 0x100000  # read in one conversion, however few the message has
    MAX_PRINTED_WORDS = 0x40000
    MAX_ABSENT_DEPTH = 64        # of absent structs within absent structs
    MAX_ABSENT = 65536           # of them within one


# ---------------------------------------------------------------- loading

cdef inline bint find_blob(
    PyObject** arena, Segment** segment, const uint8_t** place, Field* field, word_t* pointer
) noexcept:
    """The pointer of a Data field, its default's when null; False when there is neither."""
    pointer[0] = load64(place[0]) if place[0] != NULL else 0
    if pointer[0] == 0:
        if field.default == NULL:
            return False
        arena[0] = field.default
        segment[0] = &(<Arena>field.default).first
        place[0] = segment[0].base
        pointer[0] = load64(place[0])
    return True


cdef object load_data(Arena arena, Segment* segment, const uint8_t* place, Field* field):
    """A copy of a Data as `bytes`."""
    cdef BlobRef blob
    cdef word_t pointer
    cdef PyObject* home = <PyObject*>arena
    if not find_blob(&home, &segment, &place, field, &pointer):
        return b""
    read_blob(<Arena>home, segment, place, pointer, "Data", &blob)
    return PyBytes_FromStringAndSize(<const char*>blob.data, blob.size)


cdef class BlobView:
    """The exporter behind a memoryview of a Data: it keeps the memory of a closed message."""

    cdef object keep               # what owns the memory
    cdef const uint8_t* data
    cdef Py_ssize_t size
    cdef bint writable

    def __getbuffer__(self, Py_buffer* view, int flags):
        from_memory(self, view, flags)

    def __len__(self):
        return self.size


cdef char* BYTE_FORMAT = b"B"


cdef int from_memory(BlobView blob, Py_buffer* view, int flags) except -1:
    if flags & 1 and not blob.writable:
        raise BufferError("this Data belongs to a message that is only read")
    view.obj = blob
    view.buf = <void*>blob.data
    view.len = blob.size
    view.readonly = not blob.writable
    view.itemsize = 1
    view.format = BYTE_FORMAT if flags & 4 else NULL
    view.ndim = 1
    view.shape = &blob.size if flags & 8 else NULL
    view.strides = &view.itemsize if flags & 16 else NULL
    view.suboffsets = NULL
    view.internal = NULL
    return 0


cdef object view_of_data(
    Arena arena, Segment* segment, const uint8_t* place, Field* field, bint writable
):
    """A memoryview of a Data in place; it pins the buffer, also when the message is closed."""
    cdef BlobRef blob
    cdef word_t pointer
    cdef PyObject* home = <PyObject*>arena
    cdef BlobView view = BlobView.__new__(BlobView)
    check_open(arena)            # now, as making an object may run a finalizer that closes it
    if find_blob(&home, &segment, &place, field, &pointer):
        read_blob(<Arena>home, segment, place, pointer, "Data", &blob)
        view.data = blob.data
        view.size = blob.size
        view.writable = writable and home == <PyObject*>arena
        view.keep = <object>home if writable else (<Arena>home).pin
    else:
        view.data = <const uint8_t*>""
        view.writable = writable
    return memoryview(view)


cdef int locate_struct(
    Arena arena, Segment* segment, const uint8_t* place, uint32_t depth, Field* field,
    PyObject** home, StructRef* out,
) except -1:
    """The struct of a pointer field: in the message, or its default, or the empty struct.

    `home` becomes the arena that holds it, borrowed.
    """
    cdef word_t pointer = load64(place) if place != NULL else 0
    home[0] = <PyObject*>arena
    if pointer == 0:
        if field.default == NULL:
            out.segment = segment
            out.data = segment.base
            out.bits = 0
            out.pointers = 0
            out.depth = <uint16_t>depth
            return 0
        home[0] = field.default
        arena = <Arena>field.default
        segment = &arena.first
        place = segment.base
        pointer = load64(place)
        depth = NO_DEPTH_LIMIT
    return read_struct(arena, segment, place, pointer, depth, out)


cdef int locate_list(
    Arena arena, Segment* segment, const uint8_t* place, uint32_t depth, Field* field,
    PyObject** home, ListRef* out,
) except -1:
    """The list of a pointer field: in the message, or its default, or an empty one."""
    cdef word_t pointer = load64(place) if place != NULL else 0
    cdef ListInfo info = <ListInfo>field.sub
    home[0] = <PyObject*>arena
    if pointer == 0:
        if field.default == NULL:
            memset(out, 0, sizeof(ListRef))
            out.segment = segment
            out.base = segment.base
            out.element_size = info.element_size
            out.depth = <uint16_t>depth
            return 0
        home[0] = field.default
        arena = <Arena>field.default
        segment = &arena.first
        place = segment.base
        pointer = load64(place)
        depth = NO_DEPTH_LIMIT
    return read_list(arena, segment, place, pointer, depth, info.element_size, out)


# ---------------------------------------------------------------- whole values

cdef struct Absent:
    PyObject* info
    Absent* outer


cdef struct Walk:
    int options                  # VERBOSE, BASE64
    uint32_t level               # nested dicts and lists so far
    int64_t unpaid               # words' worth of objects that no byte of the message pays for
    Absent* absent               # the absent structs whose defaults are being made, inner first
    uint32_t made_up             # made below the outermost of them
    PyObject* arena              # of the message that is converted
    int64_t most                 # words that may be read of it
    int64_t floor                # its budget when they have been


cdef dict to_dict(StructInfo info, Arena arena, StructRef* struct, int options):
    """A dict of everything in a struct, made in one go."""
    cdef Walk walk
    # The pin is held so that nobody can close the buffer while the loop runs.
    _pin = arena.pin
    start_walk(arena, options, &walk)
    return struct_to_dict(info, arena, struct, &walk)


cdef list to_list(ListInfo info, Arena arena, ListRef* items, int options):
    """A list of everything in a list, made in one go."""
    cdef Walk walk
    _pin = arena.pin
    start_walk(arena, options, &walk)
    return list_to_objects(info, arena, items, &walk)


cdef int start_walk(Arena arena, int options, Walk* walk) except -1:
    """Begin a conversion, and bound the words that it reads by those that there are.

    The traversal limit alone lets a hundred bytes, shared often, become a gigabyte of dicts.
    An explicit limit is what the caller wants, and a builder's objects are its own.
    """
    walk.options = options
    walk.level = 0
    walk.unpaid = MAX_UNPAID
    walk.absent = NULL
    walk.arena = <PyObject*>arena
    # The root pointer takes one word and is charged two.
    walk.most = max(<int64_t>message_words(arena) + 1, <int64_t>MAX_SHARED_WORDS)
    if isinstance(arena, BuilderArena) or arena.first.id & ARENA_STRICT:
        walk.floor = -UNLIMITED
        return 0
    if arena.budget < walk.most:
        arena.budget = walk.most
    walk.floor = arena.budget - walk.most
    return 0


cdef int too_much_shared(Arena arena, Walk* walk) except -1:
    """Refuse a message that names too much; other threads may have spent its budget meanwhile."""
    if count_traversal(arena, walk.most + MAX_UNPAID - walk.unpaid) >= 0:
        walk.floor = arena.budget - walk.most
        return 0
    raise LimitError(
        "the number of words that one conversion may read", limit=walk.most, wanted=walk.most + 1
    )


cdef inline int check_level(uint32_t level) except -1:
    if level >= MAX_LEVELS:
        raise LimitError("the nesting of converted values", limit=MAX_LEVELS, wanted=level + 1)
    if not capnwire_may_nest(level):
        raise LimitError(
            "the nesting for which this thread has stack", limit=level, wanted=level + 1
        )
    return 0


cdef dict struct_to_dict(StructInfo info, Arena arena, StructRef* struct, Walk* walk):
    cdef uint32_t i, discriminant
    cdef Field* field
    cdef dict result = {}
    if info.reader_type == NULL:
        complete(info)
    check_level(walk.level)
    if arena.budget < walk.floor and <PyObject*>arena == walk.arena:
        too_much_shared(arena, walk)
    walk.level += 1
    if info.member_count:
        discriminant = load_discriminant(struct.data, struct.bits, info.discriminant_offset)
        if discriminant < info.member_count:
            field = info.members[discriminant]
            PyDict_SetItem(result, field.name, field_to_object(field, arena, struct, walk))
    for i in range(info.plain_count):
        field = info.plain[i]
        if field.kind <= ENUM:
            if field.kind == ENUM:
                PyDict_SetItem(result, field.name, enum_to_object(field, struct.data, struct.bits))
            else:
                PyDict_SetItem(result, field.name, load_scalar(field, struct.data, struct.bits))
        elif field.kind == GROUP or walk.options & VERBOSE or not is_null(field, struct):
            PyDict_SetItem(result, field.name, field_to_object(field, arena, struct, walk))
    walk.level -= 1
    return result


cdef inline bint is_null(Field* field, StructRef* struct) noexcept:
    return field.offset >= struct.pointers or load64(
        struct.data + (struct.bits >> 3) + <size_t>field.offset * 8
    ) == 0


cdef object enum_to_object(Field* field, const uint8_t* data, uint32_t bits):
    """The name of an enum's value, or its number when the schema has no name for it."""
    cdef EnumValue value = load_scalar(field, data, bits)
    return value.raw if value.name is None else value.name


cdef object field_to_object(Field* field, Arena arena, StructRef* struct, Walk* walk):
    """The whole value of any field."""
    cdef const uint8_t* place = NULL
    if field.kind < ENUM:
        return load_scalar(field, struct.data, struct.bits)
    if field.kind == ENUM:
        return enum_to_object(field, struct.data, struct.bits)
    if field.kind == GROUP:
        return struct_to_dict(<StructInfo>field.sub, arena, struct, walk)
    if field.offset < struct.pointers:
        place = struct.data + (struct.bits >> 3) + <size_t>field.offset * 8
    return pointer_to_object(field, arena, struct.segment, place, struct.depth, walk)


cdef object pointer_to_object(
    Field* field, Arena arena, Segment* segment, const uint8_t* place, uint32_t depth, Walk* walk
):
    cdef StructRef inner
    cdef ListRef items
    cdef PyObject* home
    cdef uint32_t kind = field.kind
    if kind == TEXT:
        return load_text(arena, segment, place, field)
    if kind == DATA:
        data = load_data(arena, segment, place, field)
        return b2a_base64(data, newline=False).decode("ascii") if walk.options & BASE64 else data
    if kind == STRUCT:
        locate_struct(arena, segment, place, depth, field, &home, &inner)
        if place == NULL or load64(place) == 0:
            return absent_to_object(<StructInfo>field.sub, <Arena>home, &inner, NULL, walk)
        return struct_to_dict(<StructInfo>field.sub, <Arena>home, &inner, walk)
    if kind == LIST:
        locate_list(arena, segment, place, depth, field, &home, &items)
        if field.default != NULL and (place == NULL or load64(place) == 0):
            return absent_to_object(<ListInfo>field.sub, <Arena>home, NULL, &items, walk)
        return list_to_objects(<ListInfo>field.sub, <Arena>home, &items, walk)
    if kind == INTERFACE:
        found = load_capability(arena, segment, place, field)
    else:
        found = any_reader(arena, segment, place, depth)
    if walk.options & WRAPPED:
        return object_wrapper(found, None if field.sub == NULL else <object>field.sub)
    return found


cdef object object_wrapper = None


def set_object_wrapper(wrapper):
    """Say what AnyPointers and capabilities become in dicts: `wrapper(object, interface info)`."""
    global object_wrapper
    object_wrapper = wrapper


cdef object absent_to_object(
    object info, Arena arena, StructRef* struct, ListRef* items, Walk* walk
):
    """An absent struct or list: its defaults; None where a type would recur for ever."""
    cdef uint32_t level = walk.level
    cdef Absent mine
    cdef Absent* outer = walk.absent
    cdef uint32_t depth = 0
    while outer != NULL:
        depth += 1
        # A generic type may nest itself in ever new ones, so depth counts as well as recurrence.
        if outer.info == <PyObject*>info or depth >= MAX_ABSENT_DEPTH:
            return None
        outer = outer.outer
    walk.made_up = 0 if depth == 0 else walk.made_up + 1
    if walk.made_up > MAX_ABSENT:
        raise LimitError(
            "the structs in the defaults of one absent struct", limit=MAX_ABSENT,
            wanted=walk.made_up,
        )
    mine.info = <PyObject*>info
    mine.outer = walk.absent
    walk.absent = &mine
    try:
        if struct != NULL:
            return struct_to_dict(<StructInfo>info, arena, struct, walk)
        return list_to_objects(<ListInfo>info, arena, items, walk)
    finally:
        walk.absent = mine.outer
        walk.level = level


cdef list list_to_objects(ListInfo info, Arena arena, ListRef* items, Walk* walk):
    cdef uint32_t i
    cdef uint32_t count = items.count
    cdef const uint8_t* at = items.base
    cdef uint32_t step = items.step >> 3
    cdef uint32_t kind = info.element.kind
    cdef list result
    cdef StructRef struct
    check_level(walk.level)
    if arena.budget < walk.floor and <PyObject*>arena == walk.arena and items.step:
        too_much_shared(arena, walk)
    if items.step == 0 and count:
        pay_for_nothing(info, count, walk)
    result = PyList_New(count)
    walk.level += 1
    if kind == STRUCT:
        if items.depth == 0 and count:
            raise LimitError("nesting_limit left", limit=0, wanted=1)
        struct.segment = items.segment
        struct.bits = items.bits
        struct.pointers = items.pointers
        struct.depth = items.depth - 1
        for i in range(count):
            struct.data = <uint8_t*>at
            fill(result, i, struct_to_dict(<StructInfo>info.element.sub, arena, &struct, walk))
            at += step
    elif kind == BOOL:
        for i in range(count):
            fill(result, i, True if (at[i >> 3] >> (i & 7)) & 1 else False)
    elif kind < ENUM:
        for i in range(count):
            fill(result, i, load_scalar(&info.element, at, items.bits))
            at += step
    elif kind == ENUM:
        for i in range(count):
            fill(result, i, enum_to_object(&info.element, at, items.bits))
            at += step
    else:
        at += items.bits >> 3
        for i in range(count):
            fill(result, i, pointer_to_object(
                &info.element, arena, items.segment, at if items.pointers else NULL, items.depth,
                walk,
            ))
            at += step
    walk.level -= 1
    return result


cdef inline void fill(list result, Py_ssize_t i, object value):
    Py_INCREF(<PyObject*>value)
    PyList_SET_ITEM(result, i, value)


cdef int pay_for_nothing(ListInfo info, uint32_t count, Walk* walk) except -1:
    """Elements without bytes still become objects: 24 bytes can name 8 million empty structs."""
    cdef int64_t each = 1
    if info.element.kind == STRUCT:
        each = 16 + 2 * <int64_t>(<StructInfo>info.element.sub).count
    if count * each > walk.unpaid:
        raise LimitError(
            "what a conversion may make from elements without bytes (in words)",
            limit=walk.unpaid, wanted=count * each,
        )
    walk.unpaid -= count * each
    walk.floor -= count          # they were charged as well
    return 0


cdef void ref_of(Struct struct, StructRef* out) noexcept:
    """Where a struct is, with the depth that its readers may use."""
    out.segment = struct.segment
    out.data = struct.data
    out.bits = struct.bits
    out.pointers = struct.pointers
    out.depth = NO_DEPTH_LIMIT if isinstance(struct.arena, BuilderArena) else struct.depth


cdef int check_printable(Arena arena) except -1:
    """Refuse to print a message that names far more than it has words: Python prints slowly."""
    cdef int64_t most
    if isinstance(arena, BuilderArena):
        return 0
    check_open(arena)
    most = max(<int64_t>message_words(arena) + 1, <int64_t>MAX_PRINTED_WORDS)
    if count_traversal(arena, most) < 0:
        raise LimitError(
            "the number of words that printing may read", limit=most, wanted=most + 1
        )
    return 0
