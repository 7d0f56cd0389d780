"""Field tables and the types made from them.

A struct's table is filled, and its Python types made, when it is first used, so that loading a
schema costs nothing for what a program never touches.  Types come from `PyType_FromSpec` with one
getset a field: 48-byte instances that the collector does not track.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport calloc, free

from capnwire._fast cimport builder_slots, late, reader_slots, struct_bases
from capnwire._message cimport class_functions, type_call
from capnwire.wire.arena cimport Arena, arena_over, UNLIMITED
from capnwire.wire.copy cimport count_traversal
from capnwire.wire.units cimport (
    SIZE_BIT, SIZE_BYTE, SIZE_COMPOSITE, SIZE_EIGHT, SIZE_FOUR, SIZE_POINTER, SIZE_TWO, SIZE_VOID,
)

from capnwire.errors import SchemaError, UnionError

cdef enum:
    MAX_DEFAULT_WORDS = 0x100000

cdef extern from *:
    """
    typedef struct { PyObject_HEAD PyObject* arena; } capnwire_struct_head;

    /* Also right for Python subclasses, whose own dealloc ends here. */
    static void capnwire_struct_dealloc(PyObject* o) {
        PyTypeObject* type = Py_TYPE(o);
        Py_XDECREF(((capnwire_struct_head*)o)->arena);
        type->tp_free(o);
        Py_DECREF(type);
    }
    static PyObject* capnwire_make_type(
        const char* name, PyObject* bases, PyGetSetDef* getset, Py_ssize_t size
    ) {
        PyType_Slot slots[] = {
            {Py_tp_dealloc, (void*)capnwire_struct_dealloc}, {getset ? Py_tp_getset : 0, getset},
            {0, NULL}
        };
        PyType_Spec spec = {
            name, (int)size, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots
        };
        PyObject* type = PyType_FromSpecWithBases(&spec, bases);
        if (type && PyType_IS_GC((PyTypeObject*)type)) {
            PyErr_SetString(PyExc_SystemError, "struct types must not be tracked by the collector");
            Py_CLEAR(type);
        }
        return type;
    }
    /* Only we make instances: a bare one would have no arena. */
    static int capnwire_disallow(PyObject* o) {
        PyTypeObject* type = (PyTypeObject*)o;
        type->tp_new = NULL;
        type->tp_vectorcall = NULL;
    #ifdef Py_TPFLAGS_DISALLOW_INSTANTIATION
        type->tp_flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
    #endif
        if (type->tp_dict && PyDict_GetItemString(type->tp_dict, "__new__")
            && PyDict_DelItemString(type->tp_dict, "__new__") < 0) return -1;
        PyType_Modified(type);
        return 0;
    }
    /* An instance must not turn into a builder, or into a struct of another size, by its
       __class__ being assigned. */
    static void capnwire_freeze(PyObject* type) {
        ((PyTypeObject*)type)->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
    }
    /* A descriptor of the type's own for a C method of a base: the interpreter calls a method
       without a detour only when it is described by the instance's very type. */
    static int capnwire_own_method(PyObject* type, const char* name) {
        PyObject* found = PyObject_GetAttrString(type, name);
        PyObject* own = NULL;
        int failed = found == NULL;
        if (found && Py_TYPE(found) == &PyMethodDescr_Type) {
            own = PyDescr_NewMethod((PyTypeObject*)type, ((PyMethodDescrObject*)found)->d_method);
            failed = own == NULL || PyObject_SetAttrString(type, name, own) < 0;
        }
        Py_XDECREF(own); Py_XDECREF(found);
        return failed ? -1 : 0;
    }
    /* A blank instance; the caller fills every field. */
    static PyObject* capnwire_allocate(PyObject* type) {
        return ((PyTypeObject*)type)->tp_alloc((PyTypeObject*)type, 0);
    }
    static void capnwire_set_call(PyObject* type, void* call) {
        ((PyTypeObject*)type)->tp_vectorcall = (vectorcallfunc)call;
    }
    static Py_ssize_t capnwire_basic_size(PyObject* type) {
        return ((PyTypeObject*)type)->tp_basicsize;
    }
    """
    ctypedef struct PyGetSetDef:
        const char* name
        void* get
        void* set
        const char* doc
        void* closure
    int capnwire_own_method(object type, const char* name) except -1
    object capnwire_make_type(const char* name, object bases, PyGetSetDef* getset, Py_ssize_t size)
    int capnwire_disallow(object type) except -1
    object capnwire_allocate(object type)
    Py_ssize_t capnwire_basic_size(object type)
    void capnwire_set_call(object type, void* call)
    void capnwire_freeze(object type)


cdef int disallow(object type) except -1:
    """Forbid instances of a class that are not made by this package."""
    return capnwire_disallow(type)


# ---------------------------------------------------------------- enums and interfaces

cdef class EnumValue:
    """A value of an enum: equal to its number and to its name.

    `name` is None for a number that the schema does not know; such a value survives reading and
    writing.  It hashes as its name, so it finds itself by name in a dict, but not by number.
    """

    def __str__(self):
        return str(self.raw) if self.name is None else self.name

    def __repr__(self):
        return f"<{self.info.name}.{self}>"

    def __int__(self):
        return self.raw

    def __index__(self):
        return self.raw

    def __hash__(self):
        return hash(self.raw) if self.name is None else hash(self.name)

    def __eq__(self, other):
        if isinstance(other, EnumValue):
            return self.raw == (<EnumValue>other).raw and same_enum(self, other)
        if isinstance(other, str):
            return self.name == other
        if isinstance(other, int):
            return self.raw == other
        return NotImplemented

    def __lt__(self, other):
        return self.raw < other.__index__() if hasattr(other, "__index__") else NotImplemented

    def __le__(self, other):
        return self.raw <= other.__index__() if hasattr(other, "__index__") else NotImplemented

    def __gt__(self, other):
        return self.raw > other.__index__() if hasattr(other, "__index__") else NotImplemented

    def __ge__(self, other):
        return self.raw >= other.__index__() if hasattr(other, "__index__") else NotImplemented

    def __reduce__(self):
        return _restore_enum, (self.info.node.id, self.raw)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


cdef bint same_enum(EnumValue left, EnumValue right):
    return left.info is right.info or left.info.node.id == right.info.node.id


def _restore_enum(id, raw):
    info = late("enum_by_id")(id)
    return (<EnumInfo>info).value(raw)


cdef class Face:
    """The base classes and slots of one API's types; made by the package that has them."""


cdef struct RawEnumValue:
    PyObject head
    PyObject* info
    uint32_t raw
    PyObject* name


cdef object new_enum_value(EnumInfo info, uint32_t raw, object name):
    """A value of the class that the enum's face has for values."""
    made = capnwire_allocate(info.value_class)
    cdef RawEnumValue* value = <RawEnumValue*><PyObject*>made
    Py_INCREF(info)
    value.info = <PyObject*>info
    value.raw = raw
    Py_INCREF(name)
    value.name = <PyObject*>name
    return made


cdef class EnumInfo:
    """An enum: its node and its values, interned."""

    def __init__(self, str name, node, names, type=None, Face face=None):
        self.name, self.node, self.type = name, node, type
        self.value_class = EnumValue if face is None else face.enum_value
        values = []
        for raw, text in enumerate(names):
            value = new_enum_value(self, raw, intern_name(text))
            values.append(value)
        self.values = tuple(values)
        self.by_name = {value.name: value for value in values}

    def value(self, uint32_t raw):
        """The value with this number, known or not."""
        if raw < <uint32_t>len(self.values):
            return self.values[raw]
        return new_enum_value(self, raw, None)

    def set_type(self, type):
        """Name the namespace through which users see the values."""
        self.type = type


cdef class InterfaceInfo:
    """An interface: its node, and the classes that the service layer gives it."""

    def __init__(self, str name, node, scope=None):
        self.name, self.node, self.scope = name, node, scope


# ---------------------------------------------------------------- lists

cdef dict KINDS = {
    "void": VOID, "bool": BOOL, "int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64,
    "uint8": UINT8, "uint16": UINT16, "uint32": UINT32, "uint64": UINT64, "float32": FLOAT32,
    "float64": FLOAT64, "enum": ENUM, "text": TEXT, "data": DATA, "struct": STRUCT, "list": LIST,
    "interface": INTERFACE, "anyPointer": ANY_POINTER, "anyStruct": ANY_STRUCT,
    "anyList": ANY_LIST, "capability": INTERFACE, "group": GROUP,
}

cdef uint8_t[22] ELEMENT_SIZES = [
    SIZE_VOID, SIZE_BIT, SIZE_BYTE, SIZE_TWO, SIZE_FOUR, SIZE_EIGHT, SIZE_BYTE, SIZE_TWO,
    SIZE_FOUR, SIZE_EIGHT, SIZE_FOUR, SIZE_EIGHT, SIZE_TWO, SIZE_POINTER, SIZE_POINTER,
    SIZE_COMPOSITE, SIZE_POINTER, SIZE_POINTER, SIZE_POINTER, SIZE_POINTER, SIZE_POINTER, 0,
]

cdef uint8_t[13] FIELD_BITS = [0, 1, 8, 16, 32, 64, 8, 16, 32, 64, 32, 64, 16]


cdef class ListInfo:
    """The type of a list: what its elements are (`element_kind`, with `element_info`)."""

    def __init__(self, str kind, info=None, Face face=None, bint keeps_bytes=False):
        wanted = ELEMENT_INFOS.get(kind)
        if (info is not None) if wanted is None else not isinstance(info, wanted):
            raise TypeError(f"a list of {kind} cannot be described by {info!r}")
        if self.element_kind is not None:
            raise TypeError("the type of a list cannot be changed")
        self.element_kind = kind
        self.element_info = info
        if face is not None:
            self.reader_type = <PyObject*>face.list_reader
            self.builder_type = <PyObject*>face.list_builder
        self.element.kind = KINDS[kind]
        self.element.sub = NULL if info is None else <PyObject*>info
        self.element.flags = KEEPS_BYTES if keeps_bytes else 0
        self.element_size = ELEMENT_SIZES[self.element.kind]

    @property
    def node(self):
        return None if self.element_info is None else self.element_info.node

    def __repr__(self):
        inner = self.element_info
        if isinstance(inner, ListInfo):
            return f"List({inner!r})"
        return f"List({self.element_kind if inner is None else inner.name})"


# ---------------------------------------------------------------- structs

cdef class StructInfo:
    """The type of a struct or group; `completer(info)` fills the field table on first use."""

    def __init__(self, str name, node, scope, completer, bint is_group=False, Face face=None):
        if self.by_name is not None:
            raise TypeError("the type of a struct cannot be changed")
        self.name, self.node, self.scope, self.completer = name, node, scope, completer
        self.is_group, self.face = is_group, face
        body = node.body
        self.data_words, self.pointer_count = body.data_word_count, body.pointer_count
        self.by_name = {}
        self.member_names = ()
        self.keep = []

    def __dealloc__(self):
        forget(self)
        free(self.fields)
        free(self.plain)
        free(self.members)

    def __repr__(self):
        return f"<StructInfo {self.name}>"

    @property
    def discriminant_count(self):
        return self.member_count

    def set_type(self, type):
        """Say which public class stands for the struct (made when the schema is loaded)."""
        self.type = type

    def ensure(self):
        """Fill the table now."""
        if self.reader_type == NULL:
            complete(self)

    def define(
        self, str qualname, str module, list fields, uint32_t discriminant_offset,
        bint keeps_bytes=False,
    ):
        """Fill the table and make the types: called by the completer.

        `fields` holds (name, kind, offset, mask, sub, default, discriminant): offset in units of
        the field's size; mask the raw bits of the default; default None or a segment that starts
        with the pointer; discriminant None outside a union.  `keeps_bytes`: Text need not be
        UTF-8, and has surrogate escapes then.
        """
        cdef uint32_t count = <uint32_t>len(fields)
        if self.reader_type != NULL:
            raise TypeError("the type of a struct cannot be changed")
        # After a first try that failed; its tables stay, as descriptors may point into them.
        self.count = self.plain_count = self.member_count = 0
        self.fields = <Field*>calloc(count + 1, sizeof(Field))
        self.plain = <Field**>calloc(count + 1, sizeof(Field*))
        self.members = <Field**>calloc(count + 1, sizeof(Field*))
        if self.fields == NULL or self.plain == NULL or self.members == NULL:
            raise MemoryError
        self.discriminant_offset = discriminant_offset * 16
        names = {}
        for i, record in enumerate(fields):
            fill_field(self, &self.fields[i], <uint32_t>i, record)
            if keeps_bytes:
                self.fields[i].flags |= KEEPS_BYTES
            if record[6] is None:
                self.plain[self.plain_count] = &self.fields[i]
                self.plain_count += 1
            else:
                if record[6] >= count or self.members[record[6]] != NULL:
                    raise SchemaError(f"{self.name}: discriminant {record[6]} is out of place")
                self.members[record[6]] = &self.fields[i]
                self.member_count += 1
                names[record[6]] = record[0]
        self.count = count
        self.member_names = tuple(names[i] for i in range(len(names)))
        make_types(self, qualname, module)

    def field(self, name):
        """(kind, sub, discriminant or None, offset) of a field, for what is written in Python."""
        if self.reader_type == NULL:
            complete(self)
        cdef Field* field = find_field(self, name)
        return (
            field.kind, None if field.sub == NULL else <object>field.sub,
            field.discriminant if field.flags & IS_UNION_MEMBER else None, field.offset,
        )


cdef int fill_field(StructInfo info, Field* field, uint32_t index, tuple record) except -1:
    """One record of the table, checked against the sections that the struct has."""
    cdef uint32_t size
    name, kind, offset, mask, sub, default, discriminant = record
    name = intern_name(name)
    info.keep.append(name)
    field.name = <PyObject*>name
    field.kind = KINDS[kind]
    field.index = index
    field.owner = <PyObject*>info
    info.by_name[name] = index
    if sub is not None:
        info.keep.append(sub)
        field.sub = <PyObject*>sub
    if default is not None:
        arena = default_arena(default)
        info.keep.append(arena)
        field.default = <PyObject*>arena
    if discriminant is not None:
        field.flags |= IS_UNION_MEMBER
        field.discriminant = discriminant
        field.discriminant_offset = info.discriminant_offset
        if info.discriminant_offset + 16 > info.data_words * 64:
            raise SchemaError(f"{info.name}: the discriminant lies outside the data section")
    field.mask = mask
    if field.kind <= ENUM:
        size = FIELD_BITS[field.kind]
        if size and (offset + 1) * size > info.data_words * 64:
            raise SchemaError(f"{info.name}.{name} lies outside the data section")
        field.offset = offset * size
    elif field.kind != GROUP:
        if offset >= info.pointer_count:
            raise SchemaError(f"{info.name}.{name} lies outside the pointer section")
        field.offset = offset
    return 0


cdef str intern_name(str name):
    import sys
    return sys.intern(name)


cdef Arena default_arena(bytes segment):
    """An arena over a default value: counted once here, then read without a limit.

    Raises:
        SchemaError: it names far more than its bytes: it has cycles, or is shared over and over.
    """
    if len(segment) < 8:
        raise SchemaError("a default value is shorter than its pointer")
    cdef Arena probe = arena_over(
        segment, <const uint8_t*>PyBytes_AS_STRING(segment), <uint32_t>(len(segment) >> 3), None,
        0xFFFF,
    )
    if count_traversal(probe, max(<uint64_t>MAX_DEFAULT_WORDS, <uint64_t>len(segment) >> 3)) < 0:
        raise SchemaError("a default value names more than a reader could take")
    cdef Arena arena = arena_over(
        segment, <const uint8_t*>PyBytes_AS_STRING(segment), <uint32_t>(len(segment) >> 3), None,
        None,
    )
    arena.budget = UNLIMITED
    return arena


cdef PyGetSetDef* slot_table(StructInfo info, bint building, object base) except NULL:
    """One getset a field; a field named like a method leaves the method (reach it by `[name]`)."""
    cdef PyGetSetDef* table = <PyGetSetDef*>calloc(info.count + 1, sizeof(PyGetSetDef))
    cdef uint32_t i, at = 0
    cdef void* getter = NULL
    cdef void* setter = NULL
    if table == NULL:
        raise MemoryError
    for i in range(info.count):
        name = <object>info.fields[i].name
        if hasattr(base, name):
            continue
        encoded = name.encode()
        info.keep.append(encoded)
        table[at].name = PyBytes_AS_STRING(encoded)
        if building:
            builder_slots(&getter, &setter)
        else:
            reader_slots(&getter)
        table[at].get, table[at].set = getter, setter
        table[at].closure = &info.fields[i]
        at += 1
    return table


cdef PyGetSetDef* face_slot_table(StructInfo info, Face face, bint building) except NULL:
    """As `slot_table`, with a face's slots; a field whose name is taken can still be set."""
    cdef PyGetSetDef* table = <PyGetSetDef*>calloc(info.count + 1, sizeof(PyGetSetDef))
    cdef uint32_t i
    if table == NULL:
        raise MemoryError
    for i in range(info.count):
        name = <object>info.fields[i].name
        encoded = name.encode()
        info.keep.append(encoded)
        table[i].name = PyBytes_AS_STRING(encoded)
        table[i].get = face.get_builder if building else face.get_reader
        if name in (face.builder_taken if building else face.reader_taken):
            table[i].get = face.get_taken
        table[i].set = face.set_builder if building else NULL
        table[i].closure = &info.fields[i]
    return table


cdef int make_face_types(StructInfo info, Face face) except -1:
    """A struct's types in a face: each is called as its base class is."""
    for base, building in ((face.struct_reader, False), (face.struct_builder, True)):
        made = named_type(
            base.__name__, base.__module__, (base,), face_slot_table(info, face, building)
        )
        seal(made, info)
        if building:
            info.Builder = made
        else:
            info.Reader = made
    face.completed(info)
    info.builder_type = <PyObject*>info.Builder
    info.reader_type = <PyObject*>info.Reader
    return 0


cdef int make_types(StructInfo info, str qualname, str module) except -1:
    """`Person.Reader` and `Person.Builder`, subclasses of `Person`."""
    cdef PyGetSetDef* getset
    if info.face is not None:
        return make_face_types(info, info.face)
    if info.type is None:
        info.type = make_struct_type(info, qualname, module)
    reader_base, builder_base = struct_bases()
    for base, label in ((reader_base, "Reader"), (builder_base, "Builder")):
        getset = slot_table(info, base is builder_base, base)
        # Descriptors point into the table for as long as the type lives, so it is never freed.
        made = named_type(f"{qualname}.{label}", module, (info.type, base), getset)
        seal(made, info)
        if base is reader_base:
            info.Reader = made
        else:
            info.Builder = made
    info.type.Reader, info.type.Builder = info.Reader, info.Builder
    info.builder_type = <PyObject*>info.Builder
    info.reader_type = <PyObject*>info.Reader
    return 0


cdef int seal(object type, StructInfo info) except -1:
    """What readers' and builders' types have in common; nothing of it can be changed afterwards."""
    type._info = info
    capnwire_own_method(type, "which")
    capnwire_freeze(type)
    return 0


cdef object named_type(str qualname, str module, tuple bases, PyGetSetDef* getset):
    name = f"{module}.{qualname}".encode()
    type = capnwire_make_type(
        PyBytes_AS_STRING(name), bases, getset, capnwire_basic_size(bases[0])
    )
    NAMES.append(name)           # tp_name points into it
    type.__qualname__ = qualname
    type.__module__ = module
    return type


cdef list NAMES = []


def make_struct_type(StructInfo info, str qualname, str module):
    """The public class of a struct: `Person`, with `new_message`, `from_bytes` and the rest.

    `Person.Reader` and `Person.Builder` derive from it; nested declarations become its attributes.
    """
    from capnwire._fast import Struct
    type = named_type(qualname, module, (Struct,), NULL)
    type._info = info
    info.type = type
    for name, function in class_functions(info):
        setattr(type, name, function)
    capnwire_set_call(type, type_call())
    return type


cdef int complete(StructInfo info) except -1:
    """Run the completer; it must have called `define`."""
    if info.reader_type == NULL:
        info.completer(info)
        if info.reader_type == NULL:
            raise SchemaError(f"{info.name} could not be completed")
    return 0


cdef Field* find_field(StructInfo info, object name) except NULL:
    """The field of this name.

    Raises:
        AttributeError: there is none.
        TypeError: the name is no str; so are `list(struct)` and `in`, which ask for item 0.
    """
    if info.reader_type == NULL:
        complete(info)
    index = info.by_name.get(name)
    if index is None:
        if not isinstance(name, str):
            raise TypeError(
                f"a field of {info.name} is named by a str, not by {type(name).__name__} {name!r}"
            )
        raise AttributeError(f"struct {info.name} has no field {name!r}")
    return &info.fields[<uint32_t>index]


cdef object unknown_union(StructInfo info, uint32_t discriminant):
    if info.member_count == 0:
        return UnionError(f"{info.name} has no unnamed union", discriminant=discriminant)
    return UnionError(
        f"{info.name}: the union's discriminant is {discriminant}, which this schema does not know",
        discriminant=discriminant,
    )


cdef object wrong_member(Field* field, uint32_t discriminant):
    cdef StructInfo info = <StructInfo>field.owner
    active = (
        f"{info.member_names[discriminant]!r} is"
        if discriminant < info.member_count else f"discriminant {discriminant} is"
    )
    return UnionError(
        f"{info.name}.{<object>field.name} is not the active member of its union: {active}",
        discriminant=discriminant,
    )


# ---------------------------------------------------------------- from a type to its info

cdef struct CacheEntry:
    PyObject* type
    PyObject* info

# A direct-mapped cache: types of ours only, dropped with their info, so an address cannot lie.
cdef CacheEntry[1024] cache


cdef inline uint32_t slot_of(const void* type) noexcept:
    return <uint32_t>(((<size_t>type) >> 5) ^ ((<size_t>type) >> 14)) & 1023


cdef StructInfo info_of_type(object type):
    """The info of a struct type or of a Python subclass of one."""
    cdef CacheEntry* entry = &cache[slot_of(<PyObject*>type)]
    cdef StructInfo info
    if entry.type == <PyObject*>type:
        return <StructInfo>entry.info
    info = type._info
    if info is None:
        raise TypeError(f"{type!r} is no struct type")
    if info.Reader is type or info.Builder is type or info.type is type:
        entry.type = <PyObject*>type
        entry.info = <PyObject*>info
    return info


cdef void forget(StructInfo info) noexcept:
    cdef uint32_t i
    for i in range(1024):
        if cache[i].info == <PyObject*>info:
            cache[i].type = NULL
            cache[i].info = NULL


cdef dict ELEMENT_INFOS = {
    "struct": StructInfo, "group": StructInfo, "enum": EnumInfo, "list": ListInfo,
    "interface": InterfaceInfo,
}

disallow(EnumValue)
