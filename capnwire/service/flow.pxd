"""Streaming calls: bytes in flight against a window."""

from libc.stdint cimport uint64_t

from capnwire.service.reference cimport Call, Outcome, Reference


cdef class Flow:
    cdef readonly uint64_t window    # bytes
    cdef readonly uint64_t in_flight
    cdef uint64_t least              # between which the window is: both the same, it is fixed
    cdef uint64_t most
    cdef uint64_t largest            # bytes of the largest call so far
    cdef uint64_t answered           # bytes in all
    cdef object error                # of the first call that failed
    cdef object waiting              # deque of replies
    cdef object clock                # gives nanoseconds; None: the window is fixed

    # The round that is measured: from sending a call to sending the first after its answer.
    cdef StreamAnswer measured       # that call, until it is answered
    cdef uint64_t began
    cdef uint64_t answered_before
    cdef bint was_full
    cdef bint draining               # the round is for `shortest` only

    # What the rounds have shown.
    cdef double rate                 # bytes answered in a nanosecond
    cdef uint64_t shortest           # nanoseconds from a call to its answer
    cdef uint64_t shortest_since

    cdef bint has_room(self)
    cdef int set_window(self, uint64_t least, uint64_t most) except -1
    cdef int sent(self, StreamAnswer answer) except -1
    cdef int take_answer(self, StreamAnswer answer, object error) except -1
    cdef int next_round(self, StreamAnswer answer) except -1
    cdef int end_replies(self) except -1
    cdef int end(self, object reply) except -1


cdef class StreamAnswer(Outcome):
    cdef Flow flow
    cdef Outcome call                # what it follows
    cdef uint64_t size               # bytes


cdef object streamed(object reply, Outcome outcome, Reference target, Call call)
cdef Flow flow_of(Reference target, uint64_t least, uint64_t most)
