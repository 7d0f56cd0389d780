"""Enum values and union members as pycapnp's programs know them."""

from libc.stdint cimport uint32_t

from capnwire._info cimport EnumValue, StructInfo


cdef class _DynamicEnum(EnumValue):
    pass


cdef class _DynamicEnumField:
    cdef void* call                      # the vectorcall slot
    cdef readonly uint32_t raw
    cdef readonly str _str
    cdef StructInfo info


cdef tuple member_fields(StructInfo info)
