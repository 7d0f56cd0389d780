"""What arrives from the peer."""

from capnwire.rpc.connection cimport Connection

cdef int handle(Connection connection, bytes message) except -1
