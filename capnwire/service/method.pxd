"""What the schema says of a method, compiled: how arguments become parameters, values results."""

from cpython.object cimport PyObject
from libc.stdint cimport uint16_t, uint64_t

from capnwire._any cimport AnyPointerReader
from capnwire._fast cimport Struct
from capnwire._info cimport StructInfo
from capnwire.service.reference cimport Outcome
from capnwire.wire.arena cimport BuilderArena


cdef class Method:
    cdef readonly str name
    cdef readonly str interface_name
    cdef readonly uint64_t interface_id
    cdef readonly uint16_t method_id
    cdef readonly StructInfo params
    cdef readonly StructInfo results
    cdef readonly bint streaming
    cdef readonly tuple parameter_names     # in the order of positional arguments
    cdef readonly tuple result_names        # likewise of a tuple of results
    cdef readonly bint named_params         # the parameters are a struct of the schema's own
    cdef readonly bint results_hold_capabilities
    cdef uint64_t params_words
    cdef uint64_t results_words

    cdef BuilderArena new_params(self)
    cdef int store_arguments(self, BuilderArena arena, tuple args, dict named) except -1
    cdef AnyPointerReader pack_results(self, object value)
