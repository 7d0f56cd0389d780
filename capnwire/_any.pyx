"""AnyPointer, AnyStruct and AnyList; capabilities; orphans as Python sees them.

Spec: encoding.md, 1.1 (capability pointers); schema.capnp, Type.anyPointer.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from capnwire._fast cimport (
    Struct, builder_of, check_alive, info_of, late, reader_of,
)
from capnwire._info cimport (
    ANY_LIST, ANY_POINTER, ANY_STRUCT, DATA, LIST, STRUCT, TEXT, Field, ListInfo, StructInfo,
    disallow,
)
from capnwire._lists cimport List, list_builder, list_reader
from capnwire._message cimport arena_bytes, arena_segments
from capnwire._python cimport *
from capnwire._store cimport (
    new_list, same_elements, same_struct, store_new_pointer, writable_list, writable_struct,
    wrong_capability, wrong_type,
)
from capnwire.wire.arena cimport (
    ARENA_COUNT_MASK, ARENA_MUTABLE, Arena, BuilderArena, BuilderSegment, Segment, capabilities_of,
    check_open, is_dead, nesting_limit_of, new_builder_arena, open_segments,
)
from capnwire.wire.builder cimport (
    Orphan, adopt, disown, erase, init_struct, new_orphan_list, new_orphan_struct, orphan_list,
    orphan_struct, set_capability,
)
from capnwire.wire.canonical cimport structs_equal
from capnwire.wire.copy cimport canonical_struct, copy_pointer, total_size
from capnwire.wire.memory cimport load64
from capnwire.wire.pointer cimport is_capability
from capnwire.wire.reader cimport (
    BlobRef, ListRef, StructRef, read_blob, read_list, read_struct, read_text,
)
from capnwire.wire.units cimport SIZE_COMPOSITE, word_t

from capnwire.errors import EncodeError, EncodeTypeError, FramingError, PointerError, SchemaMismatch

cdef enum:
    NO_DEPTH_LIMIT = 0xFFFF


# ---------------------------------------------------------------- reading

cdef object any_reader(Arena arena, Segment* segment, const uint8_t* place, uint32_t depth):
    cdef AnyPointerReader made = AnyPointerReader.__new__(AnyPointerReader)
    made.arena = arena
    made.segment = segment
    made.place = place
    made.depth = depth
    return made


cdef object any_builder(BuilderArena arena, Segment* segment, uint8_t* place):
    cdef AnyPointerBuilder made = AnyPointerBuilder.__new__(AnyPointerBuilder)
    made.arena = arena
    made.segment = segment
    made.place = place
    return made


cdef StructInfo struct_info(object type):
    """The info behind `Person`, `Person.Reader` or a schema object."""
    info = type if isinstance(type, StructInfo) else getattr(type, "_info", None)
    if not isinstance(info, StructInfo):
        raise TypeError(f"a struct type is wanted, not {type!r}")
    return info


cdef ListInfo list_info(object type):
    """The info behind a list schema: itself, or what has one."""
    if isinstance(type, ListInfo):
        return type
    info = getattr(type, "_info", None)
    if not isinstance(info, ListInfo):
        raise TypeError(f"a list type is wanted, not {type!r}")
    return info


cdef Field field_for(StructInfo info) except *:
    cdef Field field
    memset(&field, 0, sizeof(Field))
    field.kind = STRUCT
    field.sub = <PyObject*>info
    return field


cdef class AnyPointerReader:
    """A pointer whose type the reader names: `as_struct(Person)`, `as_list(...)`, `as_text()`."""

    def __bool__(self):
        return pointer_of(self) != 0

    @property
    def is_null(self, /):
        """Whether the pointer is null."""
        return pointer_of(self) == 0

    def as_struct(self, type):
        """A reader of the struct, seen as `type`; null gives the empty struct."""
        cdef StructInfo info = struct_info(type)
        cdef StructRef struct
        cdef word_t pointer = pointer_of(self)
        if pointer == 0:
            struct.segment = self.segment
            struct.data = self.segment.base
            struct.bits, struct.pointers, struct.depth = 0, 0, 0
        else:
            read_struct(
                self.arena, self.segment, self.place, pointer, self.depth, &struct
            )
        return reader_of(info, self.arena, &struct)

    def as_list(self, type):
        """A reader of the list, seen as the list type; null gives an empty list."""
        cdef ListInfo info = list_info(type)
        cdef ListRef items
        cdef word_t pointer = pointer_of(self)
        if pointer == 0:
            items.segment, items.base, items.count = self.segment, self.segment.base, 0
            items.step, items.bits, items.pointers, items.depth = 0, 0, 0, 1
            items.element_size = info.element_size
        else:
            read_list(
                self.arena, self.segment, self.place, pointer, self.depth, info.element_size,
                &items,
            )
        return list_reader(info, self.arena, &items)

    def as_text(self, /):
        """The str of a Text; null gives the empty one."""
        cdef BlobRef blob
        cdef word_t pointer = pointer_of(self)
        if pointer == 0:
            return ""
        read_text(self.arena, self.segment, self.place, pointer, &blob)
        return capnwire_text(blob.data, blob.size, False)

    def as_data(self, /):
        """The bytes of a Data; null gives the empty one."""
        cdef BlobRef blob
        cdef word_t pointer = pointer_of(self)
        if pointer == 0:
            return b""
        read_blob(self.arena, self.segment, self.place, pointer, "Data", &blob)
        return PyBytes_FromStringAndSize(<const char*>blob.data, blob.size)

    def as_interface(self, type=None):
        """The capability as a client of the interface `type`, or None when null."""
        check_open(self.arena)
        return cast_capability(load_capability(self.arena, self.segment, self.place, NULL), type)

    def __eq__(self, other):
        if isinstance(other, (AnyPointerReader, AnyPointerBuilder)):
            return any_equal(self, other)
        return NotImplemented

    def __hash__(self):
        cdef StructRef struct
        cdef uint32_t flags = self.arena.first.id
        if (flags & ARENA_COUNT_MASK) == 0 or flags & ARENA_MUTABLE:
            raise TypeError("unhashable: this AnyPointer is over memory that can change")
        as_struct_of_one(self, &struct)
        return hash(canonical_struct(self.arena, &struct))

    @property
    def total_size(self, /):
        """What a copy would take, with the pointer: `word_count` and `cap_count`."""
        cdef StructRef struct
        cdef uint64_t words = 0, capabilities = 0
        as_struct_of_one(self, &struct)
        total_size(self.arena, &struct, &words, &capabilities)
        from capnwire._fast import MessageSize
        return MessageSize(words, capabilities)

    def __reduce__(self, /):
        return late("reduce_any")(self)

    def __copy__(self, /):
        return self

    def __deepcopy__(self, memo):
        return self

    def __str__(self):
        return "<opaque pointer>"

    def __repr__(self):
        return f"<capnwire.AnyPointerReader {'null' if self.is_null else 'set'}>"


cdef BuilderArena copy_of_any(
    Arena arena, Segment* segment, const uint8_t* place, uint32_t depth
):
    """A new message whose root pointer is a deep copy of a pointer (`place` NULL: null)."""
    cdef BuilderArena copy = new_builder_arena(1024)
    if place != NULL:
        copy_pointer(
            copy, &copy.root_segment.head, copy.root_segment.head.base, arena, segment, place,
            depth,
        )
    return copy


cdef inline word_t pointer_of(AnyPointerReader any) except? 0:
    check_open(any.arena)
    return load64(any.place) if any.place != NULL else 0


cdef int as_struct_of_one(AnyPointerReader any, StructRef* out) except -1:
    """The pointer as a struct that consists of it, to compare and hash it as one."""
    check_open(any.arena)
    out.segment = any.segment
    out.data = <uint8_t*>any.place
    out.bits = 0
    out.pointers = 1 if any.place != NULL else 0
    out.depth = <uint16_t>any.depth
    return 0


cdef bint any_equal(object left, object right) except -1:
    cdef StructRef mine, its
    if isinstance(left, AnyPointerBuilder):
        left = left.as_reader()
    if isinstance(right, AnyPointerBuilder):
        right = right.as_reader()
    as_struct_of_one(left, &mine)
    as_struct_of_one(right, &its)
    return structs_equal(
        (<AnyPointerReader>left).arena, &mine, (<AnyPointerReader>right).arena, &its
    )


# ---------------------------------------------------------------- building

cdef inline uint8_t* check_any(AnyPointerBuilder any) except NULL:
    """Where the pointer is; refuses one whose struct was overwritten."""
    if is_dead(<BuilderSegment*>any.segment, any.place):
        raise EncodeError("this AnyPointer is stale: what it was in was overwritten or moved")
    return any.place


cdef class AnyPointerBuilder:
    """A pointer whose type the builder names: `as_struct(Person)` makes the struct when null."""

    def __bool__(self):
        return load64(check_any(self)) != 0

    @property
    def is_null(self, /):
        """Whether the pointer is null."""
        return load64(check_any(self)) == 0

    def as_struct(self, type):
        """A builder of the struct, seen as `type`; made when null."""
        cdef StructInfo info = struct_info(type)
        cdef Field field = field_for(info)
        cdef StructRef struct
        writable_struct(self.arena, self.segment, check_any(self), &field, &struct)
        return builder_of(info, self.arena, &struct)

    def init_as_struct(self, type):
        """A new zeroed struct of `type`."""
        cdef StructInfo info = struct_info(type)
        cdef StructRef struct
        init_struct(
            self.arena, self.segment, check_any(self), info.data_words, info.pointer_count, &struct
        )
        return builder_of(info, self.arena, &struct)

    def as_list(self, type):
        """A builder of the list, seen as the list type; null gives an empty list."""
        cdef ListInfo info = list_info(type)
        cdef Field field
        cdef ListRef items
        memset(&field, 0, sizeof(Field))
        field.kind, field.sub = LIST, <PyObject*>info
        writable_list(self.arena, self.segment, check_any(self), &field, &items)
        return list_builder(info, self.arena, &items)

    def init_as_list(self, type, size):
        """A new zeroed list of `size` elements."""
        cdef ListInfo info = list_info(type)
        cdef ListRef items
        size = PyNumber_Index(<PyObject*>size)
        if size < 0:
            raise EncodeError(f"a list has no size of {size}", value=size)
        new_list(self.arena, self.segment, check_any(self), info, size, &items)
        return list_builder(info, self.arena, &items)

    def as_text(self, /):
        """The str of a Text; null gives the empty one."""
        return self.as_reader().as_text()

    def as_data(self, /):
        """The bytes of a Data; null gives the empty one."""
        return self.as_reader().as_data()

    def as_interface(self, type=None):
        """The capability as a client of the interface `type`, or None when null."""
        return cast_capability(
            load_capability(self.arena, self.segment, check_any(self), NULL), type
        )

    def set(self, value):
        """Store a copy of a struct, list, text, bytes, AnyPointer or capability; None clears."""
        cdef Orphan old
        if is_pointer_at(value, check_any(self)):
            return
        old = disown(self.arena, self.segment, check_any(self))
        try:
            store_any(self.arena, self.segment, check_any(self), NULL, <PyObject*>value)
        except BaseException:
            erase(self.arena, self.segment, check_any(self))
            adopt(self.arena, self.segment, check_any(self), old)
            raise

    def set_as_text(self, text):
        """Store a Text."""
        if not isinstance(text, str):
            raise TypeError(f"str is wanted, not {type(text).__name__}")
        self.set(text)

    def to_bytes(self, /):
        """The whole message that the pointer is in, framed."""
        return arena_bytes(self.arena)

    def to_segments(self, /):
        """The segments of the whole message, as a list of bytes."""
        return arena_segments(self.arena)

    def new_orphan(self, type, size=None):
        """A new zeroed struct, or list of `size`, in this message, which no pointer names yet."""
        return orphan_in(self.arena, type, size)

    def clear(self, /):
        """Make the pointer null."""
        erase(self.arena, self.segment, check_any(self))

    def as_reader(self, /):
        """A reader of the same pointer."""
        return any_reader(self.arena, self.segment, check_any(self), NO_DEPTH_LIMIT)

    def __eq__(self, other):
        if isinstance(other, (AnyPointerReader, AnyPointerBuilder)):
            return any_equal(self, other)
        return NotImplemented

    def __hash__(self):
        raise TypeError("unhashable: this AnyPointer is in a builder, which can change")

    @property
    def total_size(self, /):
        """What a copy would take, with the pointer: `word_count` and `cap_count`."""
        return self.as_reader().total_size

    def __reduce__(self, /):
        return late("reduce_any")(self)

    def __copy__(self, /):
        return late("copy_any")(self)

    def __deepcopy__(self, memo):
        return late("copy_any")(self)

    def __str__(self):
        return "<opaque pointer>"

    def __repr__(self):
        return f"<capnwire.AnyPointerBuilder {'null' if self.is_null else 'set'}>"


cdef int store_any(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """Store any kind of object at a null pointer; None leaves it null."""
    cdef Field wanted
    cdef uint32_t kind = ANY_POINTER if field == NULL else field.kind
    memset(&wanted, 0, sizeof(Field))
    wanted.kind = kind
    if field != NULL:
        wanted.owner, wanted.name = field.owner, field.name
    item = <object>value
    if item is None:
        return 0
    if isinstance(item, Struct) and kind != ANY_LIST:
        wanted.kind, info = STRUCT, info_of(item)
        wanted.sub = <PyObject*>info
    elif isinstance(item, List) and kind != ANY_STRUCT:
        wanted.kind, info = LIST, (<List>item).info
        wanted.sub = <PyObject*>info
    elif isinstance(item, str) and kind == ANY_POINTER:
        wanted.kind = TEXT
    elif isinstance(item, (AnyPointerReader, AnyPointerBuilder)):
        return copy_any(arena, segment, place, item)
    elif capnwire_has_buffer(value) and kind == ANY_POINTER:
        wanted.kind = DATA
    elif kind == ANY_POINTER:
        return store_capability(arena, segment, place, &wanted, value)
    else:
        raise wrong_type(&wanted, value, "a struct" if kind == ANY_STRUCT else "a list")
    return store_new_pointer(arena, segment, place, &wanted, value)


cdef bint is_pointer_at(object value, const uint8_t* place):
    """Whether a value is the AnyPointer at this very place, which then keeps what it has."""
    if isinstance(value, AnyPointerReader):
        return (<AnyPointerReader>value).place == place
    if isinstance(value, AnyPointerBuilder):
        return (<AnyPointerBuilder>value).place == place
    return False


cdef int copy_any(BuilderArena arena, Segment* segment, uint8_t* place, object source) except -1:
    """Deep-copy another AnyPointer, by way of a message of its own when it is in this one."""
    cdef AnyPointerReader reader = (
        source if isinstance(source, AnyPointerReader) else source.as_reader()
    )
    cdef BuilderArena other
    if pointer_of(reader) == 0:
        return 0
    if <Arena>reader.arena is not <Arena>arena:
        return copy_pointer(
            arena, segment, place, reader.arena, reader.segment, reader.place, reader.depth
        )
    other = copy_of_any(reader.arena, reader.segment, reader.place, reader.depth)
    return copy_pointer(
        arena, segment, place, other, &other.root_segment.head, other.root_segment.head.base,
        NO_DEPTH_LIMIT,
    )


# ---------------------------------------------------------------- capabilities

# Set by the service layer: `capability_stored(table, value, interface) -> index`.
cdef object capability_stored = None
# Set by the service layer: `capability_loaded(entry, interface) -> client`.
cdef object capability_loaded = None
cdef str service_name = ""
cdef object service = None


def set_service_module(str name):
    """Say which module makes clients and servers of interfaces; it is imported when first used."""
    global service_name
    service_name = name


def service_module():
    """The module that makes clients and servers of interfaces."""
    global service
    if service is None:
        from importlib import import_module
        service = import_module(service_name)
    return service


def set_capability_hooks(stored, loaded):
    """Say how a value becomes an entry of a capability table, and an entry what a program sees."""
    global capability_stored, capability_loaded
    capability_stored, capability_loaded = stored, loaded


cdef class UnresolvedCapability:
    """A capability pointer in a message that came without a capability table."""

    cdef readonly uint32_t index

    def __eq__(self, other):
        if isinstance(other, UnresolvedCapability):
            return self.index == (<UnresolvedCapability>other).index
        return NotImplemented

    def __hash__(self):
        return hash(self.index)

    def __repr__(self):
        return f"<external capability {self.index}>"

    def __str__(self):
        return "<external capability>"


cdef object cast_capability(object capability, object type):
    if type is None or capability is None or isinstance(capability, UnresolvedCapability):
        return capability
    return capability.cast_as(type)


cdef object load_capability(Arena arena, Segment* segment, const uint8_t* place, Field* field):
    """The entry of the message's capability table that a pointer names, or None when null.

    Raises:
        PointerError: the pointer is no capability, or its index is not in the table.
    """
    cdef word_t pointer = load64(place) if place != NULL else 0
    cdef UnresolvedCapability unresolved
    if pointer == 0:
        return None
    if not is_capability(pointer):
        raise PointerError("a capability is wanted, but the pointer is of another kind")
    table = capabilities_of(arena)
    if table is None:
        unresolved = UnresolvedCapability.__new__(UnresolvedCapability)
        unresolved.index = <uint32_t>(pointer >> 32)
        return unresolved
    if pointer >> 32 >= <uint64_t>len(table):
        raise PointerError(
            f"capability {pointer >> 32} is not in the message's table of {len(table)}"
        )
    entry = table[pointer >> 32]
    if entry is None:
        raise PointerError(f"capability {pointer >> 32} of the message's table is none")
    if capability_loaded is None:
        return entry
    return capability_loaded(
        entry, None if field == NULL or field.sub == NULL else <object>field.sub
    )


cdef int store_capability(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field, PyObject* value
) except -1:
    """Write a capability pointer; what may be stored is the service layer's business."""
    if isinstance(<object>value, UnresolvedCapability):
        return set_capability(arena, segment, place, (<UnresolvedCapability>value).index)
    if capability_stored is None:
        raise wrong_type(
            field, value,
            "a struct, list, str or buffer" if field.kind == ANY_POINTER else "a capability",
        )
    if arena.capabilities is None:
        arena.capabilities = []
    try:
        index = capability_stored(
            arena.capabilities, <object>value, None if field.sub == NULL else <object>field.sub
        )
    except EncodeTypeError as error:
        if field.kind == ANY_POINTER:
            raise wrong_type(
                field, value, "a struct, list, str, buffer or capability"
            ) from None
        raise wrong_capability(field, error) from None
    return set_capability(arena, segment, place, index)


# ---------------------------------------------------------------- orphans

cdef class OrphanHolder:
    """An object of a message that no pointer names: made by `disown`, put into place by `adopt`.

    Dropping it zeroes the object.
    """

    def get(self, /):
        """A builder of the orphan's struct or list.

        Raises:
            SchemaMismatch: it is null (adopted already), or neither a struct nor a list.
        """
        cdef StructRef struct
        cdef ListRef items
        cdef StructInfo info
        cdef uint32_t data_words, pointers
        if isinstance(self.info, StructInfo):
            info = <StructInfo>self.info
            orphan_struct(self.orphan, info.data_words, info.pointer_count, &struct)
            return builder_of(<StructInfo>self.info, self.orphan.arena, &struct)
        if isinstance(self.info, ListInfo):
            element_shape(<ListInfo>self.info, &data_words, &pointers)
            orphan_list(
                self.orphan, (<ListInfo>self.info).element_size, data_words, pointers, &items
            )
            return list_builder(<ListInfo>self.info, self.orphan.arena, &items)
        raise SchemaMismatch("this orphan is neither a struct nor a list")

    def __bool__(self):
        return bool(self.orphan)

    def __repr__(self):
        return f"<capnwire orphan {'set' if self else 'null'}>"


cdef void element_shape(ListInfo info, uint32_t* data_words, uint32_t* pointers) noexcept:
    """The sections of a list's elements; zero unless they are structs."""
    data_words[0] = pointers[0] = 0
    if info.element.kind == STRUCT:
        data_words[0] = (<StructInfo>info.element.sub).data_words
        pointers[0] = (<StructInfo>info.element.sub).pointer_count


cdef object disown_field(
    BuilderArena arena, Segment* segment, uint8_t* place, Field* field
):
    cdef OrphanHolder holder = OrphanHolder.__new__(OrphanHolder)
    holder.orphan = disown(arena, segment, place)
    holder.kind = field.kind
    holder.info = None if field.sub == NULL else <object>field.sub
    return holder


cdef Orphan orphan_for(object orphan, Field* field, object place):
    """What a pointer of a field's type may adopt; `place` is its name.

    Raises:
        TypeError: it is no orphan.
        EncodeTypeError: it is one of another type.
    """
    cdef OrphanHolder holder
    if not isinstance(orphan, OrphanHolder):
        raise TypeError(f"an orphan is wanted for {place}, not {type(orphan).__name__}")
    holder = <OrphanHolder>orphan
    if holder.orphan and not fits(holder, field):
        raise EncodeTypeError(f"the orphan is of another type than {place}")
    return holder.orphan


cdef bint fits(OrphanHolder holder, Field* field):
    """Whether an orphan has a field's type; of a bare AnyPointer only its reader can tell."""
    cdef uint32_t mine = holder.kind, wanted = field.kind
    if mine == ANY_POINTER or wanted == ANY_POINTER:
        return True
    if mine == ANY_STRUCT or wanted == ANY_STRUCT:
        return mine in (STRUCT, ANY_STRUCT) and wanted in (STRUCT, ANY_STRUCT)
    if mine == ANY_LIST or wanted == ANY_LIST:
        return mine in (LIST, ANY_LIST) and wanted in (LIST, ANY_LIST)
    if mine != wanted or mine == TEXT or mine == DATA:
        return mine == wanted
    if mine == STRUCT:
        return same_struct(holder.info, <StructInfo>field.sub)
    if mine == LIST:
        return same_elements(holder.info, <ListInfo>field.sub)
    return holder.info is None or field.sub == NULL or (
        holder.info.node.id == (<object>field.sub).node.id
    )


def new_orphan(Struct message not None, type, size=None):
    """A new zeroed struct, or list of `size`, in a builder's message, which nothing names yet."""
    check_alive(message)
    if not isinstance(message.arena, BuilderArena):
        raise TypeError("an orphan is made in a builder's message")
    return orphan_in(<BuilderArena>message.arena, type, size)


cdef OrphanHolder orphan_in(BuilderArena arena, object type, object size):
    cdef OrphanHolder holder = OrphanHolder.__new__(OrphanHolder)
    cdef StructInfo info
    cdef ListInfo items
    if size is None:
        info = struct_info(type)
        holder.orphan = new_orphan_struct(arena, info.data_words, info.pointer_count)
        holder.kind, holder.info = STRUCT, info
        return holder
    items = list_info(type)
    size = PyNumber_Index(<PyObject*>size)
    if size < 0:
        raise EncodeError(f"a list has no size of {size}", value=size)
    if items.element.kind == STRUCT:
        info = <StructInfo>items.element.sub
        holder.orphan = new_orphan_list(
            arena, SIZE_COMPOSITE, size, info.data_words, info.pointer_count
        )
    else:
        holder.orphan = new_orphan_list(arena, items.element_size, size, 0, 0)
    holder.kind, holder.info = LIST, items
    return holder


def any_root(segments, traversal_limit_in_words=None, nesting_limit=None):
    """The root pointer of a message given as its segments."""
    cdef Arena arena = open_segments(list(segments), traversal_limit_in_words, nesting_limit)
    if arena.first.words < 1:
        raise FramingError("the message did not contain a root pointer: its first segment is empty")
    return any_reader(
        arena, &arena.first, arena.first.base, nesting_limit_of(arena)
    )


def new_any_root(num_first_segment_words=1024, allocate_seg_callable=None):
    """The root pointer of a new, empty message."""
    num_first_segment_words = PyNumber_Index(<PyObject*>num_first_segment_words)
    if not 0 <= num_first_segment_words <= 0x1FFFFFFF:
        raise ValueError(
            f"num_first_segment_words is {num_first_segment_words}, but must be 0 to 536870911"
        )
    cdef BuilderArena arena = new_builder_arena(num_first_segment_words, allocate_seg_callable)
    return any_builder(arena, &arena.root_segment.head, arena.root_segment.head.base)


for _type in (AnyPointerReader, AnyPointerBuilder, UnresolvedCapability, OrphanHolder):
    disallow(_type)
