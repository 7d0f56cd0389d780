"""The compiled face: struct objects, the slots of their fields, opening and making messages.

One way through: a slot finds its field's record, checks that the message is open and the union
member active, and loads through `_load` and `wire.reader`; a setter stores through `_store`.  Whole
messages are opened and made in `_message`.  What runs once a message and not once a field is in
Python, in `capnwire.message`, and called through `late`.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from capnwire._any cimport (
    any_builder, any_reader, disown_field, load_capability, orphan_for,
)
from capnwire._convert cimport (
    BASE64, VERBOSE, check_printable, load_data, locate_list, locate_struct, ref_of, to_dict,
    view_of_data,
)
from capnwire._groups cimport clear_field, clear_group
from capnwire._info cimport (
    ANY_LIST, ANY_POINTER, ANY_STRUCT, DATA, ENUM, GROUP, INTERFACE, IS_UNION_MEMBER, LIST, STRUCT,
    TEXT, Field, ListInfo, StructInfo, complete, disallow, find_field, info_of_type, unknown_union,
    wrong_member,
)
from capnwire._lists cimport list_builder, list_reader
from capnwire._message cimport (
    arena_bytes, arena_of_root, arena_segments, copy_of_group, first_words, root_builder,
    root_reader,
)
from capnwire._load cimport (
    is_set, load_discriminant, load_discriminant_ahead, load_scalar, load_text,
)
from capnwire._python cimport *
from capnwire._store cimport (
    activate, is_mapping, merge, new_blob, new_list, store, writable_list,
    writable_struct,
)
from capnwire.wire.arena cimport (
    ARENA_COUNT_MASK, ARENA_MUTABLE, Arena, BuilderArena, closed_error, new_builder_arena,
    open_segments,
)
from capnwire.wire.builder cimport adopt, erase, init_struct
from capnwire.wire.canonical cimport structs_equal
from capnwire.wire.copy cimport canonical_struct, copy_struct, total_size
from capnwire.wire.packed cimport pack_arena
from capnwire.wire.reader cimport ListRef, StructRef

from capnwire.errors import EncodeError, EncodeTypeError

cdef object reader_of(StructInfo info, Arena arena, StructRef* struct):
    if info.reader_type == NULL:
        complete(info)
    return new_struct(
        info.reader_type, arena, struct.segment, struct.data, struct.bits, struct.pointers,
        struct.depth,
    )


cdef object builder_of(StructInfo info, Arena arena, StructRef* struct):
    if info.reader_type == NULL:
        complete(info)
    return new_struct(
        info.builder_type, arena, struct.segment, struct.data, struct.bits, struct.pointers, 0
    )


cdef StructInfo info_of(object struct):
    return info_of_type(type(struct))


cdef Arena content_of(Struct struct, StructRef* out):
    """What a struct is by itself, and its arena: a group is copied from among its parent's fields.

    The arena must be held as long as `out` is used.
    """
    cdef Struct own = struct
    cdef StructInfo info = info_of(struct)
    check_alive(struct)
    if info.is_group:
        own = copy_of_group(struct, info)
    ref_of(own, out)
    return own.arena


cdef int stale_error(Struct struct) except -1:
    raise EncodeError(
        f"this builder of {info_of(struct).name} is stale: its object was overwritten, or moved "
        "when it grew"
    )


# ---------------------------------------------------------------- slots

cdef object get_reader_field(Struct self, Field* field):
    """The value of a field of a reader: what a slot calls."""
    cdef uint32_t kind = field.kind
    cdef const uint8_t* place
    cdef StructRef struct
    cdef ListRef items
    cdef PyObject* home
    if self.arena.first.base == NULL:
        closed_error()
    if field.flags & IS_UNION_MEMBER:
        check_member(self, field)
    if kind <= ENUM:
        return load_scalar(field, self.data, self.bits)
    place = NULL
    if field.offset < self.pointers:
        place = self.data + (self.bits >> 3) + <size_t>field.offset * 8
    if kind == TEXT:
        return load_text(self.arena, self.segment, place, field)
    if kind == STRUCT:
        locate_struct(self.arena, self.segment, place, self.depth, field, &home, &struct)
        return reader_of(<StructInfo>field.sub, <Arena>home, &struct)
    if kind == LIST:
        locate_list(self.arena, self.segment, place, self.depth, field, &home, &items)
        return list_reader(<ListInfo>field.sub, <Arena>home, &items)
    if kind == DATA:
        return load_data(self.arena, self.segment, place, field)
    if kind == GROUP:
        ref_of(self, &struct)
        return reader_of(<StructInfo>field.sub, self.arena, &struct)
    if kind == INTERFACE:
        return load_capability(self.arena, self.segment, place, field)
    return any_reader(self.arena, self.segment, place, self.depth)


cdef inline int check_member(Struct self, Field* field) except -1:
    cdef uint32_t active = load_discriminant(self.data, self.bits, field.discriminant_offset)
    if active != field.discriminant:
        raise wrong_member(field, active)
    return 0


cdef object get_builder_field(Struct self, Field* field):
    """The value of a field of a builder; null structs are made, so that they can be filled."""
    cdef uint32_t kind = field.kind
    cdef uint8_t* place
    cdef StructRef struct
    cdef ListRef items
    check_alive(self)
    if field.flags & IS_UNION_MEMBER:
        check_member(self, field)
    if kind <= ENUM:
        return load_scalar(field, self.data, self.bits)
    place = self.data + (self.bits >> 3) + <size_t>field.offset * 8
    if kind == TEXT:
        return load_text(self.arena, self.segment, place, field)
    if kind == STRUCT:
        writable_struct(<BuilderArena>self.arena, self.segment, place, field, &struct)
        return builder_of(<StructInfo>field.sub, self.arena, &struct)
    if kind == LIST:
        writable_list(<BuilderArena>self.arena, self.segment, place, field, &items)
        return list_builder(<ListInfo>field.sub, <BuilderArena>self.arena, &items)
    if kind == DATA:
        return load_data(self.arena, self.segment, place, field)
    if kind == GROUP:
        ref_of(self, &struct)
        return builder_of(<StructInfo>field.sub, self.arena, &struct)
    if kind == INTERFACE:
        return load_capability(self.arena, self.segment, place, field)
    return any_builder(<BuilderArena>self.arena, self.segment, place)


cdef int set_builder_field(Struct self, PyObject* value, Field* field) except -1:
    """Set a field of a builder, or give it its default (`del`): what a slot calls."""
    check_alive(self)
    if value == NULL:
        return clear_field(<BuilderArena>self.arena, self.segment, self.data, self.bits, field)
    return store(<BuilderArena>self.arena, self.segment, self.data, self.bits, field, value)


cdef void reader_slots(void** getter) noexcept:
    getter[0] = <void*>get_reader_field


cdef void builder_slots(void** getter, void** setter) noexcept:
    getter[0] = <void*>get_builder_field
    setter[0] = <void*>set_builder_field


cdef tuple struct_bases():
    return StructReader, StructBuilder


# ---------------------------------------------------------------- the Python half

cdef str late_module = ""
cdef object late_loaded = None


def set_late_module(str name):
    """Say which module holds the Python half of the API; it is imported when first used."""
    global late_module
    late_module = name


cdef object late(str name):
    """A function of the Python half."""
    global late_loaded
    if late_loaded is None:
        from importlib import import_module
        late_loaded = import_module(late_module)
    return getattr(late_loaded, name)


# ---------------------------------------------------------------- struct objects

@cython.no_gc
cdef class Struct:
    """A struct in a message: the common half of readers and builders.

    Fields are attributes; `struct[name]` reaches those that are named like a method.  A struct
    keeps its message's memory alive.
    """

    def which(self, /):
        """The name of the active member of the struct's unnamed union.

        Raises:
            UnionError: the discriminant is one that the schema does not know, or there is no
                unnamed union.
        """
        cdef StructInfo info = info_of_type(type(self))
        cdef uint32_t active
        if info.reader_type == NULL:
            complete(info)
        if self.arena.first.base == NULL:
            closed_error()
        active = load_discriminant_ahead(self.arena, self.data, self.bits, info.discriminant_offset)
        if active >= info.member_count:
            raise unknown_union(info, active)
        return info.member_names[active]

    @property
    def schema(self, /):
        """The schema of the struct's type."""
        return late("schema_of")(info_of(self))

    def has(self, name):
        """Whether a field is set: a pointer that is not null, an active member, any data field.

        Raises:
            AttributeError: there is no such field.
        """
        cdef Field* field = find_field(info_of(self), name)
        check_alive(self)
        return is_set(field, self.data, self.bits, self.pointers)

    def _has(self, name):
        """As `has`."""
        return self.has(name)

    def _get(self, name):
        """As `struct[name]`."""
        return self[name]

    def to_dict(self, verbose=False, ordered=False, encode_bytes_as_base64=False):
        """Everything in the struct as a dict: the active union member, then the fields in order.

        Null pointers are left out unless `verbose`; enums are names (numbers when unknown), Void is
        None, Data is bytes or base64 text.  Capabilities and AnyPointers stay objects.  `ordered`
        is accepted for compatibility: dicts keep their order.

        Raises:
            DecodeError: something in it is wrong, or it makes more objects than its bytes pay for.
        """
        cdef StructRef struct
        cdef int options = (VERBOSE if verbose else 0) | (BASE64 if encode_bytes_as_base64 else 0)
        info = info_of(self)
        check_alive(self)
        ref_of(self, &struct)
        return to_dict(info, self.arena, &struct, options)

    def get_data_as_view(self, name):
        """A memoryview of a Data field in place: no copy; writable in builders.

        The view keeps the memory, also when its message is closed.

        Raises:
            TypeError: the field is no Data.
        """
        cdef Field* field = find_field(info_of(self), name)
        cdef uint8_t* place = NULL
        cdef bint building = isinstance(self, StructBuilder)
        check_alive(self)
        if field.kind != DATA:
            raise TypeError(f"{info_of(self).name}.{name} is not a DATA field")
        if field.flags & IS_UNION_MEMBER:
            check_member(self, field)
        if field.offset < self.pointers:
            place = self.data + (self.bits >> 3) + <size_t>field.offset * 8
        return view_of_data(self.arena, self.segment, place, field, building)

    @property
    def total_size(self, /):
        """What a copy of the struct would take: `word_count` and `cap_count`."""
        cdef uint64_t words = 0, capabilities = 0
        cdef StructRef struct
        check_alive(self)
        ref_of(self, &struct)
        total_size(self.arena, &struct, &words, &capabilities)
        return MessageSize(words, capabilities)

    def to_canonical(self, /):
        """The canonical form: one segment, without a segment table.

        Raises:
            EncodeError: it holds a capability.
        """
        cdef StructRef struct
        arena = content_of(self, &struct)
        return canonical_struct(arena, &struct)

    def as_builder(self, num_first_segment_words=None, allocate_seg_callable=None):
        """A deep copy as a new message, to be changed."""
        cdef StructRef struct
        cdef BuilderArena arena
        cdef StructInfo info = info_of(self)
        if info.is_group:
            return copy_of_group(self, info)
        # First what may run the caller's code, which may close this message.
        arena = new_builder_arena(
            first_words(num_first_segment_words), allocate_seg_callable
        )
        check_alive(self)
        ref_of(self, &struct)
        copy_struct(
            arena, &arena.root_segment.head, arena.root_segment.head.base, self.arena, &struct
        )
        return root_builder(info, arena)

    def copy(self, num_first_segment_words=None, allocate_seg_callable=None):
        """As `as_builder`."""
        return self.as_builder(num_first_segment_words, allocate_seg_callable)

    def to_bytes(self, /):
        """The struct as a framed message; what is no root is copied into a message of its own."""
        return arena_bytes(arena_of_root(self))

    def to_segments(self, /):
        """The segments of the message, as a list of bytes."""
        return arena_segments(arena_of_root(self))

    def to_bytes_packed(self, /):
        """As `to_bytes`, packed (encoding.md, Packing)."""
        return pack_arena(arena_of_root(self))

    def write(self, file):
        """Write the framed message to a file object, socket or path."""
        late("write")(self, file)

    def write_packed(self, file):
        """Write the packed message to a file object, socket or path."""
        late("write_packed")(self, file)

    @classmethod
    def from_bytes_packed(
        cls, buf, traversal_limit_in_words=None, nesting_limit=None
    ):
        """A reader of a packed message, which is unpacked first; trailing bytes are an error."""
        return late("from_bytes_packed")(cls, buf, traversal_limit_in_words, nesting_limit)

    @classmethod
    def from_segments(cls, segments, traversal_limit_in_words=None, nesting_limit=None):
        """A reader over the segments of a message, each a buffer, without a copy."""
        cdef Arena arena = open_segments(
            list(segments), traversal_limit_in_words, nesting_limit
        )
        return root_reader(info_of_type(cls), arena)

    @classmethod
    def read(cls, file, traversal_limit_in_words=None, nesting_limit=None):
        """A reader of the next message of a file object, socket or path.

        Raises:
            EOFError: there is no further message (a TruncatedError when one has begun).
        """
        return late("read")(cls, file, traversal_limit_in_words, nesting_limit)

    @classmethod
    def read_packed(cls, file, traversal_limit_in_words=None, nesting_limit=None):
        """As `read`, for packed messages; it never takes bytes of the message after."""
        return late("read_packed")(cls, file, traversal_limit_in_words, nesting_limit)

    @classmethod
    def read_multiple(
        cls, file, traversal_limit_in_words=None, nesting_limit=None, skip_copy=False
    ):
        """An iterator of readers over all messages of a file; a truncated last one raises."""
        return late("read_multiple")(cls, file, traversal_limit_in_words, nesting_limit)

    @classmethod
    def read_multiple_packed(
        cls, file, traversal_limit_in_words=None, nesting_limit=None, skip_copy=False
    ):
        """As `read_multiple`, for packed messages."""
        return late("read_multiple_packed")(cls, file, traversal_limit_in_words, nesting_limit)

    @classmethod
    def read_multiple_bytes_packed(
        cls, buf, traversal_limit_in_words=None, nesting_limit=None
    ):
        """An iterator of readers over packed messages, one after the other, in a buffer."""
        return late("read_multiple_bytes_packed")(
            cls, buf, traversal_limit_in_words, nesting_limit
        )

    @classmethod
    def __class_getitem__(cls, arguments):
        """`Box[Text]`: a generic struct with its parameters bound."""
        return late("branded")(cls, arguments)

    def __eq__(self, other):
        cdef StructRef left, right
        if not isinstance(other, Struct):
            return NotImplemented
        mine, its = info_of(self), info_of(other)
        if mine is not its and mine.node.id != its.node.id:
            return NotImplemented
        my_arena = content_of(self, &left)
        its_arena = content_of(other, &right)
        return structs_equal(my_arena, &left, its_arena, &right)

    def __hash__(self):
        cdef uint32_t flags = self.arena.first.id
        if (flags & ARENA_COUNT_MASK) == 0 or flags & ARENA_MUTABLE:
            raise TypeError(
                f"unhashable: this {info_of(self).name} is a builder or over a buffer that can "
                "change"
            )
        return hash(self.to_canonical())

    def _check_printable(self, /):
        """Raise LimitError when printing would read far more than the message has."""
        check_printable(self.arena)

    def __str__(self):
        return late("text_of")(self)

    def __repr__(self):
        return late("repr_of")(self)

    def __dir__(self):
        names = set(object.__dir__(self))
        names.update(late("field_names")(info_of(self)))
        return sorted(names)

    def __reduce__(self, /):
        return late("reduce_struct")(self)

    def __copy__(self, /):
        return self if isinstance(self, StructReader) else self.as_builder()

    def __deepcopy__(self, memo):
        return self if isinstance(self, StructReader) else self.as_builder()


@cython.no_gc
cdef class StructReader(Struct):
    """A struct that is read in place; also the context manager of its message."""

    def __getitem__(self, name):
        return get_reader_field(self, find_field(info_of(self), name))

    def __enter__(self, /):
        return self

    def __exit__(self, kind, value, traceback, /):
        """Close the message unless it is over `bytes`, so that its buffer can be released."""
        if self.arena.first.id & ARENA_MUTABLE:
            close_arena(self.arena)

    def close(self, /):
        """Release the buffer: every later access through any reader of this message raises.

        Views that were given out keep the buffer; a message over `bytes` stays readable.
        """
        if self.arena.first.id & ARENA_MUTABLE:
            close_arena(self.arena)

    @property
    def is_root(self, /):
        """Always False: kept for compatibility."""
        return False


cdef int close_arena(Arena arena) except -1:
    if (arena.first.id & ARENA_COUNT_MASK) == 0:
        return 0
    arena.first.base = NULL
    arena.first.words = 0
    # Whoever is in the middle of reading looks for no other segment either.
    arena.first.id = (arena.first.id & ~<uint32_t>ARENA_COUNT_MASK) | 1
    arena.pin = None
    return 0


@cython.no_gc
cdef class StructBuilder(Struct):
    """A struct that is being built."""

    def __getitem__(self, name):
        return get_builder_field(self, find_field(info_of(self), name))

    def __setitem__(self, name, value):
        set_builder_field(self, <PyObject*>value, find_field(info_of(self), name))

    def __delitem__(self, name):
        set_builder_field(self, NULL, find_field(info_of(self), name))

    def _set(self, name, value):
        """As `struct[name] = value`."""
        self[name] = value

    def from_dict(self, mapping):
        """Set fields from a mapping: in its order, merging into structs that are there.

        Raises:
            AttributeError: a key names no field.
            TypeError: it is no mapping.
            EncodeError: a value does not fit; fields before it are set.
        """
        cdef StructRef struct
        if not is_mapping(<PyObject*>mapping):
            raise TypeError(
                f"a mapping of {info_of(self).name}'s fields is wanted, not "
                f"{type(mapping).__name__}"
            )
        check_alive(self)
        ref_of(self, &struct)
        merge(info_of(self), <BuilderArena>self.arena, &struct, <PyObject*>mapping)

    def init(self, name, size=None):
        """Start a field anew: a zeroed struct, group, list, Text or Data, which is given back.

        `size` counts a list's elements or a blob's bytes.

        Raises:
            TypeError: the field needs a size, or takes none.
            EncodeError: the size is more than the format allows.
        """
        return init_field(self, find_field(info_of(self), str_of(name)), size)

    def init_resizable_list(self, name):
        """A list whose length is not known yet: `add()` elements, then `finish()`."""
        return late("ResizableList")(self, name)

    def clear(self, name):
        """Give a field its default: zero data, a null pointer."""
        set_builder_field(self, NULL, find_field(info_of(self), name))

    def disown(self, name):
        """Take the object of a pointer field out of the message; the field becomes null."""
        cdef Field* field = find_field(info_of(self), name)
        check_alive(self)
        if field.kind <= ENUM or field.kind == GROUP:
            raise TypeError(f"{info_of(self).name}.{name} is no pointer, so it cannot be disowned")
        if field.flags & IS_UNION_MEMBER:
            check_member(self, field)
        return disown_field(
            <BuilderArena>self.arena, self.segment,
            self.data + (self.bits >> 3) + <size_t>field.offset * 8, field,
        )

    def adopt(self, name, orphan):
        """Put an orphan of this message into a pointer field; the orphan is null afterwards.

        Raises:
            EncodeError: the orphan is of another message, or of another type.
        """
        cdef Field* field = find_field(info_of(self), name)
        if field.kind <= ENUM or field.kind == GROUP:
            raise TypeError(f"{info_of(self).name}.{name} is no pointer, so it adopts nothing")
        adopted = orphan_for(orphan, field, f"{info_of(self).name}.{name}")
        check_alive(self)
        adopt(
            <BuilderArena>self.arena, self.segment,
            self.data + (self.bits >> 3) + <size_t>field.offset * 8, adopted,
        )
        activate(field, self.data)

    def as_reader(self, /):
        """A reader of the same memory: later changes through builders are seen by it."""
        cdef StructRef struct
        check_alive(self)
        ref_of(self, &struct)
        return reader_of(info_of(self), self.arena, &struct)

    @property
    def is_root(self, /):
        """Whether this is the root struct of its message."""
        return (self.depth & BUILDER_ROOT) != 0

    def __hash__(self):
        raise TypeError(f"unhashable: a builder of {info_of(self).name} can change")


cdef str str_of(object name):
    """A field's name, given as itself or as a member of an enumeration of names."""
    return name if isinstance(name, str) else str(getattr(name, "name", name))


cdef object init_field(Struct self, Field* field, object size):
    cdef BuilderArena arena = <BuilderArena>self.arena
    cdef uint8_t* place = self.data + (self.bits >> 3) + <size_t>field.offset * 8
    cdef StructRef struct
    cdef ListRef items
    cdef uint32_t kind = field.kind
    cdef StructInfo info = <StructInfo>field.owner
    name = <object>field.name
    if kind == STRUCT or kind == GROUP or kind >= INTERFACE:
        if size is not None:
            raise EncodeTypeError(f"{info.name}.{name} takes no size", struct=info.name, field=name)
    elif kind == LIST or kind == TEXT or kind == DATA:
        size = size_of(size, info, name)
    check_alive(self)
    if kind == STRUCT:
        info = <StructInfo>field.sub
        init_struct(arena, self.segment, place, info.data_words, info.pointer_count, &struct)
        made = builder_of(info, arena, &struct)
    elif kind == LIST:
        new_list(arena, self.segment, place, <ListInfo>field.sub, size, &items)
        made = list_builder(<ListInfo>field.sub, arena, &items)
    elif kind == GROUP:
        clear_group(<StructInfo>field.sub, arena, self.segment, self.data, self.bits)
        ref_of(self, &struct)
        made = builder_of(<StructInfo>field.sub, arena, &struct)
    elif kind == TEXT or kind == DATA:
        erase(arena, self.segment, place)
        new_blob(arena, self.segment, place, <uint64_t>size + (1 if kind == TEXT else 0))
        activate(field, self.data)
        return get_builder_field(self, field)
    elif kind == ANY_POINTER or kind == ANY_STRUCT or kind == ANY_LIST:
        erase(arena, self.segment, place)
        made = any_builder(arena, self.segment, place)
    else:
        raise EncodeTypeError(
            f"{info.name}.{name} is neither a pointer nor a group, so it has nothing to init",
            struct=info.name, field=name,
        )
    activate(field, self.data)
    return made


cdef object size_of(object size, StructInfo info, str name):
    if size is None:
        raise EncodeTypeError(
            f"{info.name}.{name} needs a size", struct=info.name, field=name
        )
    size = PyNumber_Index(<PyObject*>size)
    if size < 0 or size > 0x1FFFFFFF:
        raise EncodeError(
            f"{info.name}.{name}: a size of 0 to 536870911 is wanted, not {size}",
            struct=info.name, field=name, value=size,
        )
    return size


class MessageSize:
    """What a struct takes: `word_count` words of 8 bytes and `cap_count` capabilities."""

    __slots__ = ("word_count", "cap_count")

    def __init__(self, word_count, cap_count):
        self.word_count, self.cap_count = word_count, cap_count

    def __repr__(self):
        return f"MessageSize(word_count={self.word_count}, cap_count={self.cap_count})"

    def __eq__(self, other):
        if not isinstance(other, MessageSize):
            return NotImplemented
        return (self.word_count, self.cap_count) == (other.word_count, other.cap_count)

    def __hash__(self):
        return hash((self.word_count, self.cap_count))


for _type in (Struct, StructReader, StructBuilder):
    disallow(_type)
