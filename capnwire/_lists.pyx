"""Lists in messages: sequences over the wire, buffers of numbers, bulk conversion.

Spec: encoding.md, 1.1 (Lists) and 1.3 (lists of another version).
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS, PyBUF_C_CONTIGUOUS, PyBUF_F_CONTIGUOUS, PyBUF_ND, PyBUF_STRIDES,
)
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from capnwire._any cimport (
    any_builder, any_reader, disown_field, load_capability, orphan_for,
)
from capnwire._convert cimport (
    BASE64, VERBOSE, check_printable, load_data, locate_list, to_list,
)
from capnwire._fast cimport builder_of, late, new_struct, reader_of
from capnwire._info cimport (
    BOOL, DATA, ENUM, FLOAT32, FLOAT64, INT8, INT16, INT32, INTERFACE, LIST, STRUCT, TEXT,
    UINT8, UINT16, UINT32, ListInfo, StructInfo, disallow,
)
from capnwire._load cimport load_scalar, load_text
from capnwire._python cimport *
from capnwire._store cimport (
    error_of_element, new_blob, new_list, same_elements, store_element, writable_list,
)
from capnwire.wire.arena cimport (
    ARENA_COUNT_MASK, ARENA_MUTABLE, Arena, BuilderArena, BuilderSegment, closed_error, is_dead,
)
from capnwire.wire.builder cimport adopt, erase
from capnwire.wire.canonical cimport lists_equal
from capnwire.wire.copy cimport canonical_list
from capnwire.wire.reader cimport ListRef, StructRef

from capnwire.errors import EncodeError, EncodeTypeError, LimitError

cdef enum:
    NO_DEPTH_LIMIT = 0xFFFF

# The buffer protocol's letters for the kinds from INT8 to FLOAT64.
cdef char* LETTERS = b"bhiqBHIQfd"
cdef char[20] FORMATS

cdef int CONTIGUOUS_ONLY = (
    (PyBUF_C_CONTIGUOUS | PyBUF_F_CONTIGUOUS | PyBUF_ANY_CONTIGUOUS) & ~PyBUF_STRIDES
)

cdef struct RawList:
    PyObject head
    PyObject* arena
    PyObject* info
    ListRef ref

cdef struct Exported:            # what a buffer of a list keeps while somebody looks at it
    PyObject* keep
    Py_ssize_t shape
    Py_ssize_t stride


cdef object make_list(PyObject* type, ListInfo info, Arena arena, ListRef* ref):
    made = capnwire_new_object(type, sizeof(RawList))
    cdef RawList* raw = <RawList*><PyObject*>made
    Py_INCREF(<PyObject*>arena)
    raw.arena = <PyObject*>arena
    Py_INCREF(<PyObject*>info)
    raw.info = <PyObject*>info
    raw.ref = ref[0]
    return made


cdef object list_reader(ListInfo info, Arena arena, ListRef* ref):
    return make_list(
        <PyObject*>ListReader if info.reader_type == NULL else info.reader_type, info, arena, ref
    )


cdef object list_builder(ListInfo info, BuilderArena arena, ListRef* ref):
    return make_list(
        <PyObject*>ListBuilder if info.builder_type == NULL else info.builder_type, info, arena,
        ref,
    )


cdef int check_list(List list) except -1:
    """Refuse a closed message, and a list builder whose list was overwritten."""
    cdef ListRef* ref = &list.ref
    if list.arena.first.base == NULL:
        closed_error()
    if (list.arena.first.id & ARENA_COUNT_MASK) == 0 and ref.count and ref.step:
        if is_dead(<BuilderSegment*>ref.segment, ref.base):
            raise EncodeError("this list is stale: it was overwritten, or moved when it grew")
    return 0


cdef object element_of(List list, uint32_t index):
    """Element `index`, which is in range, lazily: nested structs and lists stay in the message."""
    cdef ListRef* ref = &list.ref
    cdef ListInfo info = list.info
    cdef const uint8_t* at = ref.base + ((<uint64_t>index * ref.step) >> 3)
    cdef uint32_t kind = info.element.kind
    cdef StructRef struct
    cdef ListRef inner
    cdef PyObject* home
    cdef bint building = isinstance(list, ListBuilder)
    if kind == STRUCT:
        struct.segment, struct.data = ref.segment, <uint8_t*>at
        struct.bits, struct.pointers = ref.bits, ref.pointers
        if building:
            return builder_of(<StructInfo>info.element.sub, list.arena, &struct)
        struct.depth = element_depth(ref)
        return reader_of(<StructInfo>info.element.sub, list.arena, &struct)
    if kind == BOOL:
        return True if (ref.base[index >> 3] >> (index & 7)) & 1 else False
    if kind <= ENUM:
        return load_scalar(&info.element, at, ref.bits)
    if ref.pointers == 0:
        at = NULL
    else:
        at += ref.bits >> 3
    if kind == TEXT:
        return load_text(list.arena, ref.segment, at, &info.element)
    if kind == DATA:
        return load_data(list.arena, ref.segment, at, &info.element)
    if kind == LIST:
        if building:
            writable_list(
                <BuilderArena>list.arena, ref.segment, <uint8_t*>at, &info.element, &inner
            )
            return list_builder(<ListInfo>info.element.sub, <BuilderArena>list.arena, &inner)
        locate_list(list.arena, ref.segment, at, ref.depth, &info.element, &home, &inner)
        return list_reader(<ListInfo>info.element.sub, <Arena>home, &inner)
    if kind == INTERFACE:
        return load_capability(list.arena, ref.segment, at, &info.element)
    if building:
        return any_builder(<BuilderArena>list.arena, ref.segment, <uint8_t*>at)
    return any_reader(list.arena, ref.segment, at, ref.depth)


cdef inline uint16_t element_depth(ListRef* ref) except? 0xFFFE:
    """Elements of a struct list are one level below the list (encoding.md, 1.4)."""
    if ref.depth == 0:
        raise LimitError("nesting_limit left", limit=0, wanted=1)
    return NO_DEPTH_LIMIT if ref.depth == NO_DEPTH_LIMIT else ref.depth - 1


@cython.no_gc
cdef class List:
    """A list in a message: the common half of readers and builders; a Sequence."""

    def __len__(self):
        return self.ref.count

    def __getitem__(self, index):
        cdef Py_ssize_t start, stop, step, count, i
        # The index first: converting it may run code that closes or overwrites the message.
        if isinstance(index, slice):
            PySlice_Unpack(index, &start, &stop, &step)
            check_list(self)
            _pin = self.arena.pin     # held, as making objects may run a finalizer that closes it
            count = PySlice_AdjustIndices(self.ref.count, &start, &stop, step)
            return [element_of(self, <uint32_t>(start + i * step)) for i in range(count)]
        i = index_in(self, index)
        check_list(self)
        return element_of(self, <uint32_t>i)

    def __iter__(self):
        cdef ListIterator iterator = ListIterator.__new__(ListIterator)
        check_list(self)
        if self.info.element.kind == STRUCT:
            (<StructInfo>self.info.element.sub).ensure()
        iterator.items = self
        return iterator

    def __contains__(self, value):
        for item in self:
            if item is value or item == value:
                return True
        return False

    def index(self, value, start=0, stop=None):
        """The first position of a value.

        Raises:
            ValueError: it is not there.
        """
        for i in range(*slice(start, stop).indices(len(self))):
            if self[i] == value:
                return i
        raise ValueError(f"{value!r} is not in the list")

    def count(self, value):
        """How often a value occurs."""
        return sum(1 for item in self if item == value)

    def to_list(self, verbose=False, encode_bytes_as_base64=False):
        """Everything in the list as Python objects, structs as dicts, in one go."""
        cdef ListRef ref = self.ref
        cdef int options = (VERBOSE if verbose else 0) | (BASE64 if encode_bytes_as_base64 else 0)
        check_list(self)
        if isinstance(self.arena, BuilderArena):
            ref.depth = NO_DEPTH_LIMIT
        return to_list(self.info, self.arena, &ref, options)

    def tolist(self, /):
        """As `to_list()`, with NumPy's name."""
        return self.to_list()

    @property
    def type(self, /):
        """The ListInfo: what the elements are."""
        return self.info

    def _get(self, index):
        """As `list[index]`."""
        return self[index]

    def __eq__(self, other):
        # Not to a tuple: what is equal hashes alike, and lists have no hash.
        cdef ListRef left, right
        if isinstance(other, List) and same_elements(self.info, (<List>other).info):
            check_list(self)
            check_list(other)
            left, right = self.ref, (<List>other).ref
            if isinstance(self.arena, BuilderArena):
                left.depth = NO_DEPTH_LIMIT
            if isinstance((<List>other).arena, BuilderArena):
                right.depth = NO_DEPTH_LIMIT
            return lists_equal(self.arena, &left, (<List>other).arena, &right)
        if not isinstance(other, list):
            return NotImplemented
        if len(other) != len(self):
            return False
        for mine, its in zip(self, other):
            if not (mine is its or mine == its):
                return False
        return True

    def __hash__(self):
        cdef uint32_t flags = self.arena.first.id
        cdef ListRef ref = self.ref
        if (flags & ARENA_COUNT_MASK) == 0 or flags & ARENA_MUTABLE:
            raise TypeError(
                "unhashable: this list is in a builder or over a buffer that can change"
            )
        return hash(canonical_list(self.arena, &ref))

    def _check_printable(self, /):
        """Raise LimitError when printing would read far more than the message has."""
        check_printable(self.arena)

    def __str__(self):
        return late("text_of")(self)

    def __repr__(self):
        return late("repr_of")(self)

    def __reduce__(self, /):
        return late("reduce_list")(self)

    def __copy__(self, /):
        return self if isinstance(self, ListReader) else late("copy_list")(self)

    def __deepcopy__(self, memo):
        return late("copy_list")(self)

    def __getbuffer__(self, Py_buffer* view, int flags):
        export(self, view, flags)

    def __releasebuffer__(self, Py_buffer* view):
        cdef Exported* exported = <Exported*>view.internal
        Py_XDECREF(exported.keep)
        free(exported)


cdef char* letter_of(uint32_t kind) noexcept:
    """The buffer protocol's format of a kind of number, or NULL."""
    if kind == ENUM:
        kind = UINT16
    if kind < INT8 or kind > FLOAT64:
        return NULL
    cdef char* format = &FORMATS[(kind - INT8) * 2]
    format[0] = LETTERS[kind - INT8]
    return format


cdef int export(List list, Py_buffer* view, int flags) except -1:
    """The numbers in place, as a one-dimensional (perhaps strided) buffer.

    It keeps the memory by itself, also when the message is closed meanwhile.
    """
    cdef ListRef* ref = &list.ref
    cdef char* letter = letter_of(list.info.element.kind)
    cdef bint building = isinstance(list, ListBuilder)
    cdef Py_ssize_t size
    cdef Exported* exported
    check_list(list)
    if letter == NULL:
        raise BufferError(f"a {list.info!r} has no buffer: only lists of numbers have")
    size = element_size(list.info.element.kind)
    if flags & 1 and not building:
        raise BufferError("this list belongs to a message that is only read")
    if ref.count and ref.step != size * 8 and (
        not flags & PyBUF_STRIDES & ~PyBUF_ND or flags & CONTIGUOUS_ONLY
    ):
        raise BufferError("this list is strided: its elements are structs on the wire")
    exported = <Exported*>malloc(sizeof(Exported))
    if exported == NULL:
        raise MemoryError
    keep = list.arena if building or list.arena.pin is None else list.arena.pin
    Py_INCREF(<PyObject*>keep)
    exported.keep = <PyObject*>keep
    exported.shape = ref.count
    exported.stride = ref.step >> 3 if ref.count else size
    view.obj = list
    view.buf = ref.base
    view.len = ref.count * size
    view.readonly = not building
    view.itemsize = size
    view.format = letter if flags & 4 else NULL
    view.ndim = 1
    view.shape = &exported.shape if flags & 8 else NULL
    view.strides = &exported.stride if flags & 0x10 else NULL
    view.suboffsets = NULL
    view.internal = exported
    return 0


cdef Py_ssize_t element_size(uint32_t kind) noexcept:
    """Bytes of a number."""
    if kind == INT8 or kind == UINT8:
        return 1
    if kind == INT16 or kind == UINT16 or kind == ENUM:
        return 2
    if kind == INT32 or kind == UINT32 or kind == FLOAT32:
        return 4
    return 8


cdef uint32_t index_in(List list, object index) except? 0xFFFFFFFF:
    cdef Py_ssize_t i = PyNumber_AsSsize_t(index, <PyObject*>IndexError)
    if i < 0:
        i += list.ref.count
    if not 0 <= i < list.ref.count:
        raise IndexError(f"index {index} is outside a list of {list.ref.count}")
    return <uint32_t>i


cdef class ListIterator:
    """Goes through a list once."""

    cdef List items
    cdef uint32_t at

    def __iter__(self):
        return self

    def __length_hint__(self, /):
        return self.items.ref.count - self.at

    def __next__(self):
        cdef List items = self.items
        cdef ListRef* ref = &items.ref
        cdef StructInfo info
        cdef uint32_t i = self.at
        if i >= ref.count:
            raise StopIteration
        self.at = i + 1
        if items.arena.first.base == NULL:
            closed_error()
        if items.info.element.kind == STRUCT and ref.depth and not isinstance(items, ListBuilder):
            info = <StructInfo>items.info.element.sub
            return new_struct(
                info.reader_type, items.arena, ref.segment,
                ref.base + <uint64_t>i * (ref.step >> 3), ref.bits, ref.pointers,
                element_depth(ref),
            )
        check_list(items)
        return element_of(items, i)


@cython.no_gc
cdef class ListReader(List):
    """A list that is read in place."""


@cython.no_gc
cdef class ListBuilder(List):
    """A list that is being built; its length is fixed."""

    def __setitem__(self, index, value):
        cdef Py_ssize_t start, stop, step, count, i
        if not isinstance(index, slice):
            i = index_in(self, index)
            check_list(self)
            set_element(self, i, <PyObject*>value)
            return
        PySlice_Unpack(index, &start, &stop, &step)
        count = PySlice_AdjustIndices(self.ref.count, &start, &stop, step)
        values = list(value)
        check_list(self)
        if len(values) != count:
            raise ValueError(
                f"{len(values)} values for a slice of {count}: a list keeps its length"
            )
        for i in range(count):
            element = values[i]
            set_element(self, start + i * step, <PyObject*>element)

    def _set(self, index, value):
        """As `list[index] = value`."""
        self[index] = value

    def init(self, index, size=None):
        """Start an element anew: a list of `size`, a blob of `size` bytes, or a zeroed struct."""
        cdef uint8_t* place
        cdef ListRef inner
        cdef uint32_t kind = self.info.element.kind
        cdef BuilderArena arena = <BuilderArena>self.arena
        at = index_in(self, index)
        check_list(self)
        place = self.ref.base + ((<uint64_t>at * self.ref.step) >> 3) + (self.ref.bits >> 3)
        if kind == STRUCT and size is None:
            zero_element(arena, &self.ref, <uint32_t>at)
            return self[at]
        if kind != LIST and kind != TEXT and kind != DATA or size is None:
            raise EncodeTypeError(f"an element of {self.info!r} cannot be started with size {size}")
        size = PyNumber_Index(<PyObject*>size)
        check_list(self)
        if size < 0 or size > 0x1FFFFFFE:
            raise EncodeError(f"a size of 0 to 536870910 is wanted, not {size}", value=size)
        if kind == LIST:
            new_list(arena, self.ref.segment, place, <ListInfo>self.info.element.sub, size, &inner)
            return list_builder(<ListInfo>self.info.element.sub, arena, &inner)
        erase(arena, self.ref.segment, place)
        new_blob(arena, self.ref.segment, place, <uint64_t>size + (1 if kind == TEXT else 0))
        return self[at]

    def disown(self, index):
        """Take the object of a pointer element out of the message; the element becomes null."""
        cdef uint8_t* place = pointer_place(self, index)
        check_list(self)
        return disown_field(
            <BuilderArena>self.arena, self.ref.segment, place, &self.info.element
        )

    def adopt(self, index, orphan):
        """Put an orphan of this message into a pointer element."""
        cdef uint8_t* place = pointer_place(self, index)
        adopted = orphan_for(orphan, &self.info.element, f"{self.info!r}[{index}]")
        check_list(self)
        adopt(<BuilderArena>self.arena, self.ref.segment, place, adopted)

    def as_reader(self, /):
        """A reader of the same memory."""
        cdef ListRef ref = self.ref
        check_list(self)
        ref.depth = NO_DEPTH_LIMIT
        return list_reader(self.info, self.arena, &ref)


cdef int set_element(List list, Py_ssize_t index, PyObject* value) except -1:
    """Set an element that is there; what is refused is named with the list's type and the index."""
    try:
        return store_element(
            <BuilderArena>list.arena, list.info, &list.ref, <uint32_t>index, value
        )
    except EncodeError as error:
        raise error_of_element(error, repr(list.info), (None, None), index) from None


cdef int zero_element(BuilderArena arena, ListRef* ref, uint32_t index) except -1:
    """Zero an inline struct and whatever it names."""
    cdef uint32_t i
    cdef uint8_t* at = ref.base + (<uint64_t>index * ref.step >> 3)
    memset(at, 0, ref.bits >> 3)
    for i in range(ref.pointers):
        erase(arena, ref.segment, at + (ref.bits >> 3) + <size_t>i * 8)
    return 0


cdef uint8_t* pointer_place(List list, object index) except NULL:
    """Where the pointer of an element is."""
    cdef uint32_t kind = list.info.element.kind
    if kind <= ENUM or kind == STRUCT:
        raise TypeError(f"elements of {list.info!r} are no pointers")
    return list.ref.base + (
        (<uint64_t>index_in(list, index) * list.ref.step) >> 3
    ) + (list.ref.bits >> 3)


for _type in (List, ListReader, ListBuilder, ListIterator):
    disallow(_type)
