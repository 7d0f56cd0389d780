"""The struct and list classes of the drop-in, and the slots of their fields.

pycapnp's names and rules over the native objects: everything that reads or writes a byte is called
from `capnwire._fast`, `_lists` and `_store`.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from capnwire._convert cimport BASE64, VERBOSE, WRAPPED, ref_of, to_dict, view_of_data
from capnwire._fast cimport (
    BUILDER_ROOT, Struct, StructBuilder, StructReader, check_alive, get_builder_field,
    get_reader_field, info_of, init_field, reader_of,
)
from capnwire._info cimport (
    ANY_LIST, DATA, ENUM, INTERFACE, IS_UNION_MEMBER, TEXT, Face, Field, StructInfo,
    disallow, info_of_type,
)
from capnwire._lists cimport (
    List, ListBuilder, ListReader, check_list, element_of, make_list,
)
from capnwire._load cimport is_set, load_discriminant_ahead, load_scalar, load_text
from capnwire._message cimport (
    MESSAGE_ARGUMENTS, MULTIPLE_ARGUMENTS, OPEN_ARGUMENTS, PyCFunction_New, PyMethodDef,
    arena_bytes, arena_segments, begin_message, bind_open, describe, messages_in, root_reader,
)
from capnwire._python cimport *
from capnwire._store cimport is_mapping
from capnwire.pycapnp._assign cimport assign, assign_dict, assign_element
from capnwire.pycapnp._values cimport _DynamicEnum, member_fields
from capnwire.wire.arena cimport (
    ARENA_STRICT, Arena, BuilderArena, Pin, closed_error, open_framed, pin_of,
)
from capnwire.wire.packed cimport pack_arena
from capnwire.wire.reader cimport StructRef

from warnings import warn

from capnwire.errors import FramingError, KjException

cdef extern from *:
    """
    /* Lists that programs turn into arrays element by element must not be buffers: the numbers
       would come out in other types. */
    static void capnwire_drop_buffer(PyObject* o) {
        PyTypeObject* type = (PyTypeObject*)o;
        if (type->tp_as_buffer == type->tp_base->tp_as_buffer) type->tp_as_buffer = NULL;
        else type->tp_as_buffer->bf_getbuffer = NULL;
    }
    """
    void capnwire_drop_buffer(object type)

cdef enum:
    BUILDER_WRITTEN = 2

cdef str NOT_THE_ROOT = "You can only call write() on the message's root struct."
cdef str WRITTEN = (
    "This message has already been written once. Be very careful that you're not setting "
    "Text/Struct/List fields more than once, since that will cause memory leaks (both in memory "
    "and in the serialized data). You can disable this warning by calling the `clear_write_flag` "
    "method of this object after every write."
)


# ---------------------------------------------------------------- the Python half

cdef object helpers = None


cdef object helper(str name):
    """A function of `capnwire.pycapnp.objects`, imported when first used."""
    global helpers
    if helpers is None:
        from capnwire.pycapnp import objects
        helpers = objects
    return getattr(helpers, name)


cdef object wrapped(object value, object info):
    """An AnyPointer or a capability as pycapnp's classes have it."""
    return helper("wrap")(value, info)


# ---------------------------------------------------------------- slots

cdef object get_reader(Struct self, Field* field):
    """The value of a field of a reader: what a slot calls."""
    cdef const uint8_t* place = NULL
    if not field.flags & IS_UNION_MEMBER:
        # The commonest kinds, without a second call (bench: log_inner).
        if field.kind <= ENUM:
            if self.arena.first.base == NULL:
                closed_error()
            return load_scalar(field, self.data, self.bits)
        if field.kind == TEXT:
            if self.arena.first.base == NULL:
                closed_error()
            if field.offset < self.pointers:
                place = self.data + (self.bits >> 3) + <size_t>field.offset * 8
            return load_text(self.arena, self.segment, place, field)
    if field.kind >= INTERFACE and field.kind <= ANY_LIST:
        return wrapped(
            get_reader_field(self, field), None if field.sub == NULL else <object>field.sub
        )
    return get_reader_field(self, field)


cdef object get_builder(Struct self, Field* field):
    """The value of a field of a builder: what a slot calls."""
    if field.kind >= INTERFACE and field.kind <= ANY_LIST:
        return wrapped(
            get_builder_field(self, field), None if field.sub == NULL else <object>field.sub
        )
    return get_builder_field(self, field)


cdef int set_builder(Struct self, PyObject* value, Field* field) except -1:
    """Set a field of a builder: what a slot calls."""
    check_alive(self)
    if value == NULL:
        raise AttributeError(f"a field cannot be deleted: {<object>field.name}")
    return assign(
        <BuilderArena>self.arena, self.segment, self.data, self.bits, field, value, False
    )


cdef object get_taken(Struct self, Field* field):
    """The attribute of the class that a field is named like: methods go before fields."""
    base = _DynamicStructBuilder if isinstance(self, StructBuilder) else _DynamicStructReader
    for kind in base.__mro__:
        if <object>field.name in kind.__dict__:
            return kind.__dict__[<object>field.name].__get__(self, type(self))
    raise AttributeError(<object>field.name)


cdef Field* field_of(Struct self, object name) except NULL:
    """The field of a name.

    Raises:
        KjException: there is none.
    """
    cdef StructInfo info = info_of_type(type(self))
    index = info.by_name.get(name)
    if index is None:
        raise KjException(f"struct has no such member; name = {name}, struct = {info.name}")
    return &info.fields[<uint32_t>index]


cdef str name_of(object field):
    """A field's name, given as itself, as a schema field or as a member of `P.S.Union`."""
    if isinstance(field, str):
        return field
    found = getattr(field, "_field_name", None)
    if found is None:
        found = getattr(field, "name", None)
    return str(field) if found is None else found


cdef object which_of(Struct self):
    """The active member of the unnamed union, which compares with names and numbers.

    Raises:
        KjException: there is no union, or its discriminant is unknown.
    """
    cdef StructInfo info = info_of_type(type(self))
    cdef uint32_t active
    if self.arena.first.base == NULL:
        closed_error()
    active = load_discriminant_ahead(self.arena, self.data, self.bits, info.discriminant_offset)
    if active >= info.member_count:
        raise KjException("Attempted to call which on a non-union type")
    return <object>PyTuple_GET_ITEM(<PyObject*>info.face_data, active)


cdef bint has_field(Struct self, Field* field) except -1:
    check_alive(self)
    return is_set(field, self.data, self.bits, self.pointers)


cdef object dict_of(Struct self, bint verbose, bint ordered, bint base64):
    cdef StructRef struct
    info = info_of(self)
    check_alive(self)
    ref_of(self, &struct)
    found = to_dict(
        info, self.arena, &struct,
        WRAPPED | (VERBOSE if verbose else 0) | (BASE64 if base64 else 0),
    )
    return helper("ordered")(found) if ordered else found


cdef class _DataView:
    """The exporter behind a view of a Data: it keeps the struct that gave it."""

    cdef object owner
    cdef Py_buffer inner

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(
            buffer, self, self.inner.buf, self.inner.len, self.inner.readonly, flags
        )

    def __dealloc__(self):
        PyBuffer_Release(&self.inner)


cdef object data_view(Struct self, object name):
    """A memoryview of a Data field, writable in builders.

    Raises:
        AttributeError: there is no such field.
        TypeError: the field is no Data.
    """
    cdef StructInfo info = info_of(self)
    cdef Field* field
    cdef uint8_t* place = NULL
    cdef _DataView view
    check_alive(self)
    if name not in info.by_name:
        raise AttributeError(f"struct has no such member; name = {name}, struct = {info.name}")
    field = &info.fields[<uint32_t>info.by_name[name]]
    if field.kind != DATA:
        raise TypeError(f"Field '{name}' is not a DATA field")
    if field.flags & IS_UNION_MEMBER and not has_field(self, field):
        raise KjException(
            f"Tried to get() a union member which is not currently initialized.; name = {name}"
        )
    if field.offset < self.pointers:
        place = self.data + (self.bits >> 3) + <size_t>field.offset * 8
    view = _DataView.__new__(_DataView)
    view.owner = self
    PyObject_GetBuffer(
        view_of_data(self.arena, self.segment, place, field, isinstance(self, StructBuilder)),
        &view.inner, PyBUF_SIMPLE,
    )
    return memoryview(view)


cdef object copy_of(object value):
    """A struct or list as a pickle of it comes back: a reader of a message of its own."""
    function, arguments = value.__reduce__()
    return function(*arguments)


cdef list dir_of(Struct self):
    names = set(object.__dir__(self))
    names.update(info_of(self).by_name)
    return sorted(names)


# ---------------------------------------------------------------- structs

@cython.no_gc
cdef class _DynamicStructReader(StructReader):
    """A struct that is read: its fields are attributes."""

    @property
    def which(self, /):
        """The active member of the unnamed union; call it for its name."""
        return which_of(self)

    def _which(self, /):
        """As `which`."""
        return which_of(self)

    def _which_str(self, /):
        """The name of the active member."""
        return str(which_of(self))

    def _get(self, field):
        """A field by its name, also of one that is named like a method."""
        return get_reader(self, field_of(self, name_of(field)))

    def _has(self, field):
        """Whether a field is set: a pointer that is not null, an active member, any data field."""
        return has_field(self, field_of(self, name_of(field)))

    # Their `field` is a name, a schema field or a member of `P.S.Union`.
    _get_by_field, _has_by_field = _get, _has

    @property
    def schema(self, /):
        """The schema of the struct."""
        return helper("schema_of")(info_of(self))

    @property
    def _parent(self, /):
        """What keeps the message's memory."""
        return self.arena

    @property
    def is_root(self, /):
        """Always False."""
        return False

    def to_dict(self, verbose=False, ordered=False, encode_bytes_as_base64=False):
        """Everything in the struct as a dict."""
        return dict_of(self, verbose, ordered, encode_bytes_as_base64)

    def get_data_as_view(self, field):
        """A read-only memoryview of a Data field, without a copy."""
        return data_view(self, field)

    def __enter__(self, /):
        return self

    def __iter__(self):
        raise TypeError(f"'{type(self).__name__}' object is not iterable")

    def __dir__(self):
        return dir_of(self)

    def __str__(self):
        return helper("text_of")(self)

    def __repr__(self):
        return helper("repr_of")(self)

    def __eq__(self, other):
        return True if self is other else NotImplemented

    def __hash__(self):
        return <Py_ssize_t>(<size_t><PyObject*>self >> 4)

    def __reduce__(self, /):
        return helper("reduce_struct")(self)

    def __copy__(self, /):
        return copy_of(self)

    def __deepcopy__(self, memo):
        return copy_of(self)


cdef BuilderArena arena_to_write(Struct self):
    """The arena of a root builder, which is marked as written.

    Raises:
        KjException: the struct is not the root of its message.
    """
    check_alive(self)
    if not self.depth & BUILDER_ROOT:
        raise KjException(NOT_THE_ROOT)
    if self.depth & BUILDER_WRITTEN:
        warn(WRITTEN, stacklevel=1)
    self.depth |= BUILDER_WRITTEN
    return <BuilderArena>self.arena


@cython.no_gc
cdef class _DynamicStructBuilder(StructBuilder):
    """A struct that is built: its fields are attributes that can be set."""

    @property
    def which(self, /):
        """The active member of the unnamed union; call it for its name."""
        return which_of(self)

    def _which(self, /):
        """As `which`."""
        return which_of(self)

    def _which_str(self, /):
        """The name of the active member."""
        return str(which_of(self))

    def _get(self, field):
        """A field by its name, also of one that is named like a method."""
        return get_builder(self, field_of(self, name_of(field)))

    def _set(self, field, value):
        """Set a field by its name."""
        set_builder(self, <PyObject*>value, field_of(self, name_of(field)))

    def _has(self, field):
        """Whether a field is set: a pointer that is not null, an active member, any data field."""
        return has_field(self, field_of(self, name_of(field)))

    def init(self, field, size=None):
        """Start a field anew: a zeroed struct, group, list, Text, Data or AnyPointer."""
        cdef Field* found = field_of(self, name_of(field))
        if size is not None:
            size = int(size)          # programs divide, and pycapnp drops what is left
            if size < 0 or size > 0xFFFFFFFF:
                raise OverflowError(f"a size is an unsigned int, not {size}")
        made = init_field(self, found, size)
        if found.kind > INTERFACE and found.kind <= ANY_LIST:
            return wrapped(made, None)
        return made

    # Their `field` is a name, a schema field or a member of `P.S.Union`.
    _get_by_field, _set_by_field, _has_by_field, _init_by_field = _get, _set, _has, init

    def init_resizable_list(self, field):
        """A list of structs whose length is not known yet: `add()` elements, then `finish()`."""
        return helper("_DynamicResizableListBuilder")(self, name_of(field))

    def adopt(self, field, orphan):
        """Put an orphan of this message into a pointer field."""
        field_of(self, name_of(field))
        StructBuilder.adopt(self, name_of(field), helper("released")(orphan))

    def disown(self, field):
        """Take the object of a pointer field out of the message."""
        cdef Field* found = field_of(self, name_of(field))
        value = None
        if found.kind == TEXT or found.kind == DATA:
            value = get_builder(self, found)
        return helper("_DynamicOrphan")(StructBuilder.disown(self, name_of(field)), value)

    def from_dict(self, d):
        """Set fields from a dict; text for a Data field is decoded from base64."""
        cdef StructRef struct
        if not is_mapping(<PyObject*>d):
            raise TypeError(f"a dict is wanted, not {type(d).__name__}")
        check_alive(self)
        ref_of(self, &struct)
        assign_dict(info_of(self), <BuilderArena>self.arena, &struct, d)

    def as_reader(self, /):
        """A reader of the same memory."""
        cdef StructRef struct
        check_alive(self)
        ref_of(self, &struct)
        return reader_of(info_of(self), self.arena, &struct)

    def copy(self, num_first_segment_words=None, allocate_seg_callable=None):
        """A deep copy as a new message."""
        return StructBuilder.as_builder(self, num_first_segment_words, allocate_seg_callable)

    def to_bytes(self, /):
        """The framed message."""
        return arena_bytes(arena_to_write(self))

    def to_segments(self, /):
        """The segments of the message as a list of bytes."""
        return arena_segments(arena_to_write(self))

    def to_bytes_packed(self, /):
        """The packed message."""
        return pack_arena(arena_to_write(self))

    def _to_bytes_packed_helper(self, word_count=None):
        """As `to_bytes_packed`."""
        return self.to_bytes_packed()

    def write(self, file):
        """Write the framed message to a file object; the bytes are in the file when it returns."""
        helper("write_all")(file, arena_bytes(arena_to_write(self)))

    def write_packed(self, file):
        """Write the packed message to a file object; the bytes are in the file when it returns."""
        helper("write_all")(file, pack_arena(arena_to_write(self)))

    def write_async(self, stream):
        """Write the framed message to an AsyncIoStream; await the result."""
        return helper("write_async")(stream, arena_bytes(arena_to_write(self)))

    @property
    def _is_written(self, /):
        """Whether the message was written."""
        return (self.depth & BUILDER_WRITTEN) != 0

    @_is_written.setter
    def _is_written(self, value):
        if value:
            self.depth |= BUILDER_WRITTEN
        else:
            self.depth &= 0xFFFF ^ BUILDER_WRITTEN

    def clear_write_flag(self, /):
        """Forget that the message was written, so that writing it again warns no more."""
        self.depth &= 0xFFFF ^ BUILDER_WRITTEN

    @property
    def schema(self, /):
        """The schema of the struct."""
        return helper("schema_of")(info_of(self))

    @property
    def _parent(self, /):
        """What keeps the message's memory."""
        return self.arena

    def to_dict(self, verbose=False, ordered=False, encode_bytes_as_base64=False):
        """Everything in the struct as a dict."""
        return dict_of(self, verbose, ordered, encode_bytes_as_base64)

    def get_data_as_view(self, field):
        """A writable memoryview of a Data field in place."""
        return data_view(self, field)

    def __enter__(self, /):
        return self

    def __exit__(self, kind, value, traceback, /):
        """Nothing: a builder owns its memory."""

    def __iter__(self):
        raise TypeError(f"'{type(self).__name__}' object is not iterable")

    def __dir__(self):
        return dir_of(self)

    def __str__(self):
        return helper("text_of")(self)

    def __repr__(self):
        return helper("repr_of")(self)

    def __eq__(self, other):
        return True if self is other else NotImplemented

    def __hash__(self):
        return <Py_ssize_t>(<size_t><PyObject*>self >> 4)

    def __reduce__(self, /):
        return helper("reduce_struct")(self)

    def __copy__(self, /):
        return copy_of(self)

    def __deepcopy__(self, memo):
        return copy_of(self)


def root_of(Struct builder):
    """The builder, marked as the root of its message."""
    builder.depth |= BUILDER_ROOT
    return builder


# ---------------------------------------------------------------- lists

class _EmptyListError(IndexError, ZeroDivisionError):
    """A negative index of an empty list, which pycapnp answers with ZeroDivisionError."""


cdef uint32_t position(List list, object index) except? 0xFFFFFFFF:
    """The place of an index: negative ones go round as often as it takes."""
    cdef long long i
    cdef long long count = list.ref.count
    if isinstance(index, float):
        index = int(index)
    try:
        i = index
    except TypeError:
        raise TypeError("an integer is required") from None
    if i < 0:
        if count == 0:
            raise _EmptyListError("Out of bounds")
        i %= count
        if i < 0:
            i += count
    if i >= count:
        raise IndexError("Out of bounds")
    return <uint32_t>i


cdef object item_of(List list, object index):
    cdef Py_ssize_t i
    check_list(list)
    if isinstance(index, slice):
        return [
            element(list, <uint32_t>i) for i in range(*index.indices(list.ref.count))
        ]
    return element(list, position(list, index))


cdef object element(List list, uint32_t index):
    cdef uint32_t kind = list.info.element.kind
    found = element_of(list, index)
    if kind >= INTERFACE and kind <= ANY_LIST:
        return wrapped(found, list.info.element_info)
    return found


cdef object iterate(List list):
    cdef uint32_t kind = list.info.element.kind
    if kind >= INTERFACE and kind <= ANY_LIST:
        return iter([element(list, <uint32_t>i) for i in range(list.ref.count)])
    return List.__iter__(list)


@cython.no_gc
cdef class _DynamicListReader(ListReader):
    """A list that is read."""

    def __getitem__(self, index):
        return item_of(self, index)

    def _get(self, index):
        """As `list[index]`."""
        return item_of(self, index)

    def __iter__(self):
        return iterate(self)

    @property
    def _parent(self, /):
        """What keeps the message's memory."""
        return self.arena

    def __array__(self, dtype=None, copy=None):
        return helper("array_of")(self, dtype)

    def __str__(self):
        return helper("text_of")(self)

    def __repr__(self):
        return helper("repr_of")(self)

    def __eq__(self, other):
        return True if self is other else NotImplemented

    def __hash__(self):
        return <Py_ssize_t>(<size_t><PyObject*>self >> 4)

    def __reduce__(self, /):
        return helper("reduce_list")(self)

    def __copy__(self, /):
        return copy_of(self)

    def __deepcopy__(self, memo):
        return copy_of(self)


@cython.no_gc
cdef class _DynamicListBuilder(ListBuilder):
    """A list that is built; its length is fixed."""

    def __getitem__(self, index):
        return item_of(self, index)

    def __setitem__(self, index, value):
        check_list(self)
        assign_element(
            <BuilderArena>self.arena, self.info, &self.ref, position(self, index),
            <PyObject*>value,
        )

    def __delitem__(self, index):
        raise NotImplementedError("Subscript deletion not supported")

    def _get(self, index):
        """As `list[index]`."""
        return item_of(self, index)

    def _set(self, index, value):
        """As `list[index] = value`."""
        self[index] = value

    def init(self, index, size=None):
        """Start an element anew: a list of `size`, a Text or Data of `size` bytes."""
        return ListBuilder.init(self, position(self, index), size)

    def adopt(self, index, orphan):
        """Put an orphan of this message into a pointer element."""
        ListBuilder.adopt(self, position(self, index), helper("released")(orphan))

    def disown(self, index):
        """Take the object of a pointer element out of the message."""
        cdef uint32_t at = position(self, index)
        cdef uint32_t kind = self.info.element.kind
        value = element(self, at) if kind == TEXT or kind == DATA else None
        return helper("_DynamicOrphan")(ListBuilder.disown(self, at), value)

    def __iter__(self):
        return iterate(self)

    @property
    def _parent(self, /):
        """What keeps the message's memory."""
        return self.arena

    def __array__(self, dtype=None, copy=None):
        return helper("array_of")(self, dtype)

    def __str__(self):
        return helper("text_of")(self)

    def __repr__(self):
        return helper("repr_of")(self)

    def __eq__(self, other):
        return True if self is other else NotImplemented

    def __hash__(self):
        return <Py_ssize_t>(<size_t><PyObject*>self >> 4)

    def __reduce__(self, /):
        return helper("reduce_list")(self)

    def __copy__(self, /):
        return copy_of(self)

    def __deepcopy__(self, memo):
        return copy_of(self)


def memory_of(List list not None):
    """A memoryview of a list of numbers, of the width that they have on the wire."""
    check_list(list)
    return memoryview(make_list(<PyObject*>ListReader, list.info, list.arena, &list.ref))


# ---------------------------------------------------------------- whole messages

cdef object new_message(PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names):
    """`P.S.new_message(num_first_segment_words, allocate_seg_callable, **fields)`."""
    cdef StructInfo info = <StructInfo>self
    cdef Py_ssize_t i, named = 0 if names == NULL else PyTuple_GET_SIZE(names)
    cdef PyObject* name
    cdef uint32_t guess = 0
    cdef Struct made = begin_message(info, args, count, names)
    for i in range(named):
        name = PyTuple_GET_ITEM(names, i)
        if guess >= info.count or info.fields[guess].name != name:
            if <object>name in MESSAGE_ARGUMENTS or <object>name == "which":
                continue
            guess = <uint32_t>(field_of(made, <object>name).index)
        assign(
            <BuilderArena>made.arena, made.segment, made.data, made.bits, &info.fields[guess],
            args[count + i], True,
        )
        guess += 1
    return made


cdef object from_bytes(PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names):
    """`P.S.from_bytes(buf, traversal_limit_in_words, nesting_limit, builder)`."""
    cdef StructInfo info = <StructInfo>self
    cdef object limit = None, nesting = None, buf, builder = False
    cdef const uint8_t* base
    cdef uint64_t size, used
    cdef Pin pin
    cdef Arena arena
    if count == 1 and names == NULL:
        buf = <object>args[0]
    else:
        values = [None, None, None, False]
        bind_open("from_bytes", args, count, names, OPEN_ARGUMENTS, values)
        buf, limit, nesting, builder = values
    if type(buf) is bytes:
        owner = buf
        base = <const uint8_t*>PyBytes_AS_STRING(buf)
        size = PyBytes_GET_SIZE(buf)
    else:
        owner = pin = pin_of(buf)
        base = <const uint8_t*>pin.view.buf
        size = pin.view.len
        if type(buf) is memoryview and type(buf.obj) is bytes:
            owner = buf.obj      # nobody can change it: such readers are kept beyond the `with`
    if size & 7:
        raise ValueError("input length must be a multiple of eight bytes")
    if size == 0:
        raise FramingError("Message did not contain a root pointer.")
    arena = open_framed(owner, base, size, limit, nesting, &used)
    arena.first.id |= ARENA_STRICT
    reader = root_reader(info, arena)
    return reader.as_builder() if builder else reader


cdef object read_multiple_bytes(
    PyObject* self, PyObject** args, Py_ssize_t count, PyObject* names
):
    """`P.S.read_multiple_bytes(buf, traversal_limit_in_words, nesting_limit)`."""
    values = [None, None, None]
    bind_open("read_multiple_bytes", args, count, names, MULTIPLE_ARGUMENTS, values)
    return messages_in(<StructInfo>self, values[0], values[1], values[2], ARENA_STRICT)


cdef PyMethodDef[3] CLASS_METHODS


describe(
    &CLASS_METHODS[0], b"new_message", <void*>new_message,
    b"new_message($self, /, num_first_segment_words=None, allocate_seg_callable=None, **kwargs)\n"
    b"--\n\nA builder of a new message, with fields set from the keywords.",
)
describe(
    &CLASS_METHODS[1], b"from_bytes", <void*>from_bytes,
    b"from_bytes($self, /, buf, traversal_limit_in_words=None, nesting_limit=None, builder=False)\n"
    b"--\n\nA reader of a framed message, which is its own context manager.",
)
describe(
    &CLASS_METHODS[2], b"read_multiple_bytes", <void*>read_multiple_bytes,
    b"read_multiple_bytes($self, /, buf, traversal_limit_in_words=None, nesting_limit=None)\n"
    b"--\n\nAn iterator of readers over the framed messages of a buffer.",
)


def class_functions(StructInfo info not None):
    """The functions of a struct module that run without a frame, by name."""
    return {
        "new_message": PyCFunction_New(&CLASS_METHODS[0], info),
        "from_bytes": PyCFunction_New(&CLASS_METHODS[1], info),
        "read_multiple_bytes": PyCFunction_New(&CLASS_METHODS[2], info),
    }


# ---------------------------------------------------------------- the face

def _completed(StructInfo info):
    info.face_data = member_fields(info)


# Names that a program of pycapnp reaches as attributes of the class, never as fields.
cdef frozenset READER_TAKEN = frozenset((
    "as_builder", "get_data_as_view", "is_root", "schema", "to_dict", "total_size", "which",
))
cdef frozenset BUILDER_TAKEN = frozenset((
    "adopt", "as_reader", "clear_write_flag", "copy", "disown", "from_dict", "get_data_as_view",
    "init", "init_resizable_list", "is_root", "schema", "to_bytes", "to_bytes_packed", "to_dict",
    "to_segments", "total_size", "which", "write", "write_async", "write_packed",
))


cdef Face make_face():
    cdef Face face = Face.__new__(Face)
    face.struct_reader, face.struct_builder = _DynamicStructReader, _DynamicStructBuilder
    face.list_reader, face.list_builder = _DynamicListReader, _DynamicListBuilder
    face.enum_value = _DynamicEnum
    face.reader_taken, face.builder_taken = READER_TAKEN, BUILDER_TAKEN
    face.completed = _completed
    face.get_reader = <void*>get_reader
    face.get_builder = <void*>get_builder
    face.set_builder = <void*>set_builder
    face.get_taken = <void*>get_taken
    return face


for _type in (_DynamicListReader, _DynamicListBuilder):
    capnwire_drop_buffer(_type)
for _type in (
    _DynamicStructReader, _DynamicStructBuilder, _DynamicListReader, _DynamicListBuilder,
):
    disallow(_type)

FACE = make_face()
