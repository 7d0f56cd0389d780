"""Whole messages: the functions that other modules call."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from capnwire._fast cimport Struct
from capnwire._info cimport StructInfo
from capnwire.wire.arena cimport Arena, BuilderArena

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        const char* ml_name
        void* ml_meth
        int ml_flags
        const char* ml_doc
    object PyCFunction_New(PyMethodDef* method, object self)


cdef class MessageIterator:
    """Readers over the messages of a buffer, one after the other; they share its pin."""

    cdef StructInfo info
    cdef object pin, limit, nesting
    cdef const uint8_t* at
    cdef uint64_t left
    cdef uint32_t flags                  # ARENA_* for every message


cdef MessageIterator messages_in(
    StructInfo info, object buf, object limit, object nesting, uint32_t flags
)
cdef uint64_t first_words(object words) except? 0
cdef object root_reader(StructInfo info, Arena arena)
cdef object root_builder(StructInfo info, BuilderArena arena)
cdef object new_root(StructInfo info, uint64_t words, object allocator)
cdef object copy_of_group(Struct group, StructInfo info)
cdef BuilderArena arena_of_root(Struct struct)
cdef bytes arena_bytes(BuilderArena arena)
cdef list arena_segments(BuilderArena arena)
cdef list class_functions(StructInfo info)
cdef int describe(PyMethodDef* method, const char* name, void* function, const char* doc) except -1
cdef Struct begin_message(
    StructInfo info, PyObject** args, Py_ssize_t count, PyObject* names
)
cdef object bind_open(
    str function, PyObject** args, Py_ssize_t count, PyObject* names, tuple allowed, list values
)
cdef tuple MESSAGE_ARGUMENTS
cdef tuple OPEN_ARGUMENTS
cdef tuple MULTIPLE_ARGUMENTS
cdef void* type_call() noexcept
