"""What programs hold: capabilities typed by an interface, and their methods."""

from capnwire.service.method cimport Method
from capnwire.service.reference cimport Call, Outcome, Reference


cdef class Capability:
    cdef object __weakref__
    cdef Reference reference

cdef Capability client_of(object interface, Reference reference)
cdef Reference reference_of(object value, object interface)
