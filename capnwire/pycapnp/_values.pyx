"""Enum values and union members as pycapnp's programs know them: equal to numbers and to names.

`which` is a property whose value can be called, so that `message.which == "x"` and
`message.which() == "x"` both work.
"""

from cpython.object cimport Py_EQ, Py_NE, PyObject, PyObject_RichCompare
from libc.stdint cimport uint32_t, uint64_t

from capnwire._info cimport EnumInfo, EnumValue, StructInfo
from capnwire._python cimport PyUnicode_CheckExact, capnwire_small_int

cdef extern from *:
    """
    /* Instances keep their vectorcall function at `offset`. */
    static void capnwire_vectorcall_at(PyObject* o, Py_ssize_t offset) {
        PyTypeObject* type = (PyTypeObject*)o;
        type->tp_vectorcall_offset = offset;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        PyType_Modified(type);
    }
    """
    void capnwire_vectorcall_at(object type, Py_ssize_t offset)


cdef class _DynamicEnum(EnumValue):
    """A value of an enum: compares by name with a str, by number with everything else."""

    @property
    def _parent(self, /):
        return None

    def _as_str(self, /):
        """The name, or the number of a value that the schema does not know."""
        return self.__str__()

    def __str__(self):
        return str(self.raw) if self.name is None else self.name

    def __repr__(self):
        return f"<{self} enum>"

    def __hash__(self):
        return hash(self.raw) if self.name is None else hash(self.name)

    def __richcmp__(self, other, int op):
        cdef uint64_t number
        if PyUnicode_CheckExact(<PyObject*>other) or isinstance(other, str):
            if self.name is other and (op == Py_EQ or op == Py_NE):
                return op == Py_EQ
            return PyObject_RichCompare(
                str(self.raw) if self.name is None else self.name, other, op
            )
        if (op == Py_EQ or op == Py_NE) and capnwire_small_int(<PyObject*>other, &number):
            return (self.raw == number) == (op == Py_EQ)
        if isinstance(other, EnumValue):
            return PyObject_RichCompare(self.raw, (<EnumValue>other).raw, op)
        return PyObject_RichCompare(self.raw, other, op)

    def __reduce__(self, /):
        return _restore_enum, (self.info.node.id, self.raw)


enum_by_id = None
"""Set by the parser: `enum_by_id(id) -> EnumInfo`, for unpickling."""


def set_enum_source(source):
    """Say how an enum is found by its id."""
    global enum_by_id
    enum_by_id = source


def _restore_enum(id, raw):
    info = enum_by_id(id)
    return (<EnumInfo>info).value(raw)


cdef class _DynamicEnumField:
    """The active member of a union: equal to its name and number; calling it gives the name."""

    def __call__(self):
        return self._str

    def __str__(self):
        return self._str

    def __repr__(self):
        return f"<{self._str} which-enum>"

    def __hash__(self):
        return hash(self._str)

    def __richcmp__(self, other, int op):
        if PyUnicode_CheckExact(<PyObject*>other) or isinstance(other, str):
            if self._str is other and (op == Py_EQ or op == Py_NE):
                return op == Py_EQ
            return PyObject_RichCompare(self._str, other, op)
        if isinstance(other, _DynamicEnumField):
            return PyObject_RichCompare(self.raw, (<_DynamicEnumField>other).raw, op)
        return PyObject_RichCompare(self.raw, other, op)

    def __reduce__(self, /):
        return str, (self._str,)


cdef object name_of_field(PyObject* self, PyObject** args, size_t flags, PyObject* names):
    """Calling a union member, without an argument tuple."""
    if (flags << 1) or names != NULL:
        raise TypeError("which() takes no arguments")
    return (<_DynamicEnumField>self)._str


cdef tuple member_fields(StructInfo info):
    """What `which` gives for each discriminant of a struct's union."""
    cdef _DynamicEnumField field
    fields = []
    for raw, name in enumerate(info.member_names):
        field = _DynamicEnumField.__new__(_DynamicEnumField)
        field.call = <void*>name_of_field
        field.raw, field._str, field.info = <uint32_t>raw, name, info
        fields.append(field)
    return tuple(fields)


cdef _DynamicEnumField _probe = _DynamicEnumField.__new__(_DynamicEnumField)
_probe.call = <void*>name_of_field
capnwire_vectorcall_at(
    _DynamicEnumField, <char*>&_probe.call - <char*><PyObject*>_probe
)
