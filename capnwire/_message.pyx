"""Whole messages: opening buffers, making new messages, framing what was built.

The class functions of struct types are here: builtins bound to their `StructInfo`, called without
a frame.  Spec: encoding.md, 1.7 (Framing).
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from capnwire._convert cimport ref_of
from capnwire._fast cimport (
    BUILDER_ROOT, Struct, StructBuilder, builder_of, check_alive, reader_of,
)
from capnwire._groups cimport copy_group
from capnwire._info cimport StructInfo, complete, disallow, find_field, info_of_type
from capnwire._python cimport *
from capnwire._store cimport store
from capnwire.wire.arena cimport (
    Arena, BuilderArena, BuilderSegment, Pin, builder_segment, charge, nesting_limit_of,
    new_builder_arena, open_framed, pin_of,
)
from capnwire.wire.builder cimport get_struct, init_struct
from capnwire.wire.memory cimport load64, store32
from capnwire.wire.reader cimport StructRef, read_struct
from capnwire.wire.units cimport word_t

from capnwire.errors import FramingError

cdef extern from *:
    """
    #define CAPNWIRE_FAST (METH_FASTCALL | METH_KEYWORDS)
    """
    int CAPNWIRE_FAST

cdef enum:
    FIRST_SEGMENT_WORDS = 1024

cdef uint64_t first_words(object words) except? 0:
    if words is None:
        return FIRST_SEGMENT_WORDS
    words = PyNumber_Index(<PyObject*>words)
    if words < 0 or words > 0x1FFFFFFF:
        raise ValueError(f"num_first_segment_words is {words}, but must be 0 to 536870911")
    return words


cdef object root_reader(StructInfo info, Arena arena):
    """A reader of the root struct, which takes two words of the budget to reach."""
    cdef StructRef struct
    cdef word_t pointer
    if arena.first.words < 1:
        raise FramingError("the message did not contain a root pointer: its first segment is empty")
    charge(arena, 1)
    charge(arena, 1)
    pointer = load64(arena.first.base)
    if pointer == 0:
        struct.segment = &arena.first
        struct.data = arena.first.base
        struct.bits = 0
        struct.pointers = 0
        struct.depth = 0
    else:
        read_struct(
            arena, &arena.first, arena.first.base, pointer, nesting_limit_of(arena), &struct
        )
    return reader_of(info, arena, &struct)


cdef object root_builder(StructInfo info, BuilderArena arena):
    """The builder of the root struct of a message that has one, grown to what the schema wants."""
    cdef StructRef struct
    cdef Struct made
    cdef uint8_t* place = arena.root_segment.head.base
    if load64(place) == 0:
        init_struct(
            arena, &arena.root_segment.head, place, info.data_words, info.pointer_count, &struct
        )
    else:
        get_struct(
            arena, &arena.root_segment.head, place, info.data_words, info.pointer_count, &struct
        )
    made = builder_of(info, arena, &struct)
    made.depth = BUILDER_ROOT
    return made


cdef object new_root(StructInfo info, uint64_t words, object allocator):
    return root_builder(info, new_builder_arena(words, allocator))


cdef object copy_of_group(Struct group, StructInfo info):
    """A group as a message of its own: a struct of its parent's size with only its fields."""
    cdef StructRef target
    cdef Struct made = new_root(info, FIRST_SEGMENT_WORDS, None)
    ref_of(made, &target)
    copy_group(info, <BuilderArena>made.arena, &target, group)
    return made


cdef BuilderArena arena_of_root(Struct struct):
    """The arena to serialise: the struct's own when it is a root builder, else that of a copy."""
    check_alive(struct)
    if struct.depth & BUILDER_ROOT and isinstance(struct, StructBuilder):
        return <BuilderArena>struct.arena
    return <BuilderArena>(<Struct>struct.as_builder()).arena


cdef bytes arena_bytes(BuilderArena arena):
    """The framed message: segment table, then the segments (encoding.md, Framing)."""
    cdef uint32_t count = arena.more_count + 1
    cdef uint32_t i
    cdef uint64_t table = <uint64_t>((count + 2) >> 1) * 8
    cdef uint64_t total = table
    cdef BuilderSegment* segment
    for i in range(count):
        total += <uint64_t>builder_segment(arena, i).head.words * 8
    result = PyBytes_FromStringAndSize(NULL, total)
    cdef uint8_t* out = <uint8_t*>PyBytes_AS_STRING(result)
    store32(out, count - 1)
    for i in range(count):
        store32(out + 4 + <size_t>i * 4, builder_segment(arena, i).head.words)
    if (count & 1) == 0:
        store32(out + table - 4, 0)
    out += table
    for i in range(count):
        segment = builder_segment(arena, i)
        memcpy(out, segment.head.base, <size_t>segment.head.words * 8)
        out += <size_t>segment.head.words * 8
    return result


cdef list arena_segments(BuilderArena arena):
    """Every segment as bytes."""
    cdef uint32_t i
    cdef BuilderSegment* segment
    segments = []
    for i in range(arena.more_count + 1):
        segment = builder_segment(arena, i)
        segments.append(
            PyBytes_FromStringAndSize(
                <const char*>segment.head.base, <Py_ssize_t>segment.head.words * 8
            )
        )
    return segments


cdef Struct begin_message(
    StructInfo info, PyObject** args, Py_ssize_t count, PyObject* names
):
    """A new message as the arguments of `new_message` describe it, its fields not yet set."""
    cdef uint64_t words = FIRST_SEGMENT_WORDS
    allocator = None
    if info.reader_type == NULL:
        complete(info)
    if count > 2:
        raise TypeError(f"new_message takes at most 2 positional arguments, not {count}")
    if count > 0:
        words = first_words(<object>args[0])
    if count > 1:
        allocator = <object>args[1]
    if names != NULL:
        special = special_arguments(info, args, count, names)
        if special is not None:
            words, allocator = first_words(special[0]), special[1] or allocator
    return new_root(info, words, allocator)


cdef object new_message(PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names):
    """`Person.new_message(num_first_segment_words=None, allocate_seg_callable=None, **fields)`."""
    cdef StructInfo info = <StructInfo>self
    cdef Py_ssize_t i, named = 0 if names == NULL else PyTuple_GET_SIZE(names)
    cdef PyObject* name
    cdef uint32_t guess = 0
    cdef Struct made = begin_message(info, args, count, names)
    for i in range(named):
        name = PyTuple_GET_ITEM(names, i)
        if guess >= info.count or info.fields[guess].name != name:
            if <object>name in MESSAGE_ARGUMENTS:
                continue
            guess = find_field(info, <object>name).index
        store(
            <BuilderArena>made.arena, made.segment, made.data, made.bits, &info.fields[guess],
            args[count + i],
        )
        guess += 1
    return made


cdef tuple MESSAGE_ARGUMENTS = ("num_first_segment_words", "allocate_seg_callable")


cdef tuple special_arguments(
    StructInfo info, PyObject** args, Py_ssize_t count, PyObject* names
):
    """The keywords about the message, not fields (which have no underscore), or None."""
    cdef Py_ssize_t i
    cdef PyObject* name
    found = None
    for i in range(PyTuple_GET_SIZE(names)):
        name = PyTuple_GET_ITEM(names, i)
        if i < <Py_ssize_t>info.count and info.fields[i].name == name:
            continue
        if <object>name in MESSAGE_ARGUMENTS:
            found = found or [None, None]
            found[MESSAGE_ARGUMENTS.index(<object>name)] = <object>args[count + i]
    return None if found is None else tuple(found)


cdef object call_type(PyObject* self, PyObject** args, size_t flags, PyObject* names):
    """`Person(...)` is `Person.new_message(...)`."""
    cdef Py_ssize_t count = flags & ~(<size_t>1 << (8 * sizeof(size_t) - 1))
    info = info_of_type(<object>self)
    return new_message(<PyObject*>info, args, count, names)


cdef void* type_call() noexcept:
    """What calling a struct class runs (its vectorcall)."""
    return <void*>call_type


cdef object bind_open(
    str function, PyObject** args, Py_ssize_t count, PyObject* names, tuple allowed, list values
):
    """Positional and keyword arguments of the fast class functions, into `values`."""
    cdef Py_ssize_t i, named = 0 if names == NULL else PyTuple_GET_SIZE(names)
    if count > len(allowed):
        raise TypeError(f"{function}() takes at most {len(allowed)} arguments, not {count}")
    for i in range(count):
        values[i] = <object>args[i]
    for i in range(named):
        name = <object>PyTuple_GET_ITEM(names, i)
        if name not in allowed:
            raise TypeError(f"{function}() got an unexpected argument {name!r}")
        if allowed.index(name) < count:
            raise TypeError(f"{function}() got {name!r} twice")
        values[allowed.index(name)] = <object>args[count + i]
    if values[0] is None:
        raise TypeError(f"{function}() needs a buffer")


cdef tuple OPEN_ARGUMENTS = ("buf", "traversal_limit_in_words", "nesting_limit", "builder")


cdef object from_bytes(PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names):
    """`Person.from_bytes(buf, traversal_limit_in_words, nesting_limit, builder)`."""
    cdef StructInfo info = <StructInfo>self
    cdef object limit = None, nesting = None, buf, builder = False
    cdef uint64_t used
    cdef Pin pin
    if count == 1 and names == NULL:
        buf = <object>args[0]
    else:
        values = [None, None, None, False]
        bind_open("from_bytes", args, count, names, OPEN_ARGUMENTS, values)
        buf, limit, nesting, builder = values
    if type(buf) is bytes:
        reader = root_reader(info, open_framed(
            buf, <const uint8_t*>PyBytes_AS_STRING(buf), PyBytes_GET_SIZE(buf), limit, nesting,
            &used,
        ))
    else:
        pin = pin_of(buf)
        reader = root_reader(info, open_framed(
            pin, <const uint8_t*>pin.view.buf, pin.view.len, limit, nesting, &used
        ))
    return reader.as_builder() if builder else reader


cdef class MessageIterator:
    """Readers over the messages of a buffer, one after the other; they share its pin."""

    def __iter__(self):
        return self

    def __next__(self):
        cdef uint64_t used = 0
        cdef uint64_t left = self.left
        cdef Arena arena
        if left == 0:
            self.pin = None
            raise StopIteration
        arena = open_framed(self.pin, self.at, left, self.limit, self.nesting, &used)
        if self.left != left:
            raise ValueError("this iterator is being advanced elsewhere")
        self.at += used
        self.left -= used
        arena.first.id |= self.flags
        return root_reader(self.info, arena)


cdef tuple MULTIPLE_ARGUMENTS = ("buf", "traversal_limit_in_words", "nesting_limit")


cdef object read_multiple_bytes(
    PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names
):
    """`Person.read_multiple_bytes(buf, traversal_limit_in_words=None, nesting_limit=None)`."""
    values = [None, None, None]
    bind_open("read_multiple_bytes", args, count, names, MULTIPLE_ARGUMENTS, values)
    return messages_in(<StructInfo>self, values[0], values[1], values[2], 0)


cdef MessageIterator messages_in(
    StructInfo info, object buf, object limit, object nesting, uint32_t flags
):
    """The messages of a buffer; each arena gets the ARENA_* `flags`."""
    cdef MessageIterator messages = MessageIterator.__new__(MessageIterator)
    cdef Pin pin
    messages.info, messages.limit, messages.nesting = info, limit, nesting
    messages.flags = flags
    if type(buf) is bytes:
        messages.pin = buf
        messages.at = <const uint8_t*>PyBytes_AS_STRING(buf)
        messages.left = PyBytes_GET_SIZE(buf)
    else:
        pin = pin_of(buf)
        messages.pin = pin
        messages.at = <const uint8_t*>pin.view.buf
        messages.left = pin.view.len
    return messages


cdef PyMethodDef[3] CLASS_METHODS


cdef int describe(PyMethodDef* method, const char* name, void* function, const char* doc) except -1:
    """Fill in a function that is called with an array of arguments and a tuple of names."""
    method.ml_name = name
    method.ml_meth = function
    method.ml_flags = CAPNWIRE_FAST
    method.ml_doc = doc
    return 0


describe(
    &CLASS_METHODS[0], b"new_message", <void*>new_message,
    b"new_message($self, /, num_first_segment_words=None, allocate_seg_callable=None, **fields)\n"
    b"--\n\nA builder of a new message, with fields set from the keywords in their order.\n\n"
    b"Raises:\n    AttributeError: a keyword names no field.\n"
    b"    EncodeError: a value does not fit.",
)
describe(
    &CLASS_METHODS[1], b"from_bytes", <void*>from_bytes,
    b"from_bytes($self, /, buf, traversal_limit_in_words=None, nesting_limit=None, builder=False)\n"
    b"--\n\nA reader of a framed message in any buffer, without a copy; or a builder of a copy.\n\n"
    b"The reader keeps the buffer; as a context manager it closes the message at the end, unless\n"
    b"the buffer is `bytes`.  Bytes after the message are ignored.  An explicit limit is kept\n"
    b"strictly.\n\nRaises:\n    FramingError: the bytes are no whole message.\n"
    b"    DecodeError: the root is not a struct within the message.",
)
describe(
    &CLASS_METHODS[2], b"read_multiple_bytes", <void*>read_multiple_bytes,
    b"read_multiple_bytes($self, /, buf, traversal_limit_in_words=None, nesting_limit=None)\n"
    b"--\n\nAn iterator of readers over the framed messages of a buffer, without a copy.\n\n"
    b"A truncated last message raises TruncatedError after the good ones were given.",
)


cdef list class_functions(StructInfo info):
    """The class functions of a struct type, bound to its info."""
    return [
        ("new_message", PyCFunction_New(&CLASS_METHODS[0], info)),
        ("from_bytes", PyCFunction_New(&CLASS_METHODS[1], info)),
        ("read_multiple_bytes", PyCFunction_New(&CLASS_METHODS[2], info)),
    ]


disallow(MessageIterator)
