"""Objects that programs implement: the reference to one, and how its methods are run."""

from libc.stdint cimport uint64_t

from capnwire.service.method cimport Method
from capnwire.service.reference cimport Call, Outcome, Reference


cdef class ServerMethod:
    cdef readonly Method method
    cdef object function
    cdef bint bound                  # `function` is a name, to be looked up on the object
    cdef bint asynchronous
    cdef tuple positional            # what each positional argument is: a field, CONTEXT or PARAMS
    cdef tuple keywords              # (argument, what), for those that follow
    cdef tuple rest                  # fields for **kwargs, or None


cdef class LocalReference(Reference):
    cdef readonly object server
    cdef dict table                  # interface id -> tuple of ServerMethod or None by method id
    cdef uint64_t last_interface
    cdef tuple last_methods
    cdef object queue                # outcome -> the call that waits its turn
    cdef bint scheduled
    cdef int unstarted               # coroutines that have not reached their first line
    cdef Outcome streaming           # the streaming call that runs: all others wait for it
    cdef object failure              # what a streaming call failed with: all later calls fail alike

    cdef ServerMethod find(self, Call call)
    cdef bint may_start(self, ServerMethod entry)
    cdef int deliver(self, Call call, ServerMethod entry) except -1
    cdef int schedule(self, Call call) except -1


cdef class Context:
    cdef Call call
    cdef ServerMethod entry
    cdef LocalReference reference
    cdef object made_results
    cdef bint has_started
    cdef int spawned                 # coroutines made for it
    cdef int running                 # the number of the one that runs, or 0

    cdef int spawn(self, object coroutine) except -1
    cdef int ended(self) except -1
    cdef int finish(self, object value) except -1


cdef LocalReference local_reference(object server)
cdef object as_remote(object error)
