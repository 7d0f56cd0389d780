"""Streaming calls: bytes in flight against a window, which is fixed or follows the path.

A call is always sent; its reply completes at once while the window has room, else when enough has
been answered.  After one failed, all later ones are sent but fail alike.

Given a clock, the window is twice what the path holds: the rate at which bytes are answered, times
the shortest time that an answer took.  So the callee always has the next call there, and as much
again waits at most; the window doubles from one answer to the next until the rate does not follow.
"""

cimport cython
from libc.stdint cimport uint64_t

from capnwire._any cimport AnyPointerReader
from capnwire.service.reference cimport (
    PENDING, RETURNED, Call, Outcome, Reference, Runtime, fresh_error, words_of,
)
from capnwire.wire.arena cimport BuilderArena

from collections import deque

cdef enum:
    SLOWNESS = 8                     # a lower rate counts for this part of what was known

# Calls that wait in a queue make every answer late: so often, in nanoseconds, the queue is let
# run empty for one answer.
cdef uint64_t SHORTEST_LASTS = <uint64_t>10_000_000_000


@cython.final
cdef class Flow:
    """The streaming calls of one capability."""

    def __cinit__(self):
        self.waiting = deque()

    cdef bint has_room(self):
        return self.in_flight < self.window + self.largest

    cdef int set_window(self, uint64_t least, uint64_t most) except -1:
        self.least, self.most = least, max(least, most)
        self.window = min(max(self.window, self.least), self.most)
        return self.end_replies()

    cdef int sent(self, StreamAnswer answer) except -1:
        """A call is about to leave."""
        if self.measured is None and self.least < self.most and self.clock is not None:
            self.next_round(answer)
        self.in_flight += answer.size
        self.largest = max(self.largest, answer.size)
        if not self.has_room():
            self.was_full = True
        return 0

    cdef int take_answer(self, StreamAnswer answer, object error) except -1:
        """A call is not in flight any more."""
        cdef uint64_t now, took
        self.in_flight -= answer.size
        self.answered += answer.size
        if error is not None and self.error is None:
            self.error = error
        if answer is self.measured:
            self.measured = None
            now = self.clock()
            took = now - self.began if now > self.began else 1
            if self.draining or self.shortest == 0 or took <= self.shortest:
                self.shortest, self.shortest_since = took, now
        return self.end_replies()

    cdef int next_round(self, StreamAnswer answer) except -1:
        """The call that was measured is answered: see what that says of the path."""
        cdef uint64_t now = self.clock()
        cdef double rate, wanted
        if self.shortest and not self.draining:
            # Here, not when the answer came: what was sent in one go is often answered in one go.
            rate = <double>(self.answered - self.answered_before) / <double>(now - self.began + 1)
            if rate > self.rate:
                self.rate = rate
            elif self.was_full:
                # Had the window not been full, the rate would be the caller's and not the path's.
                self.rate += (rate - self.rate) / SLOWNESS
        if self.shortest and now - self.shortest_since > SHORTEST_LASTS:
            self.draining, self.window = True, self.least
            if not self.has_room():
                return 0
        else:
            self.draining = False
            wanted = 2 * self.rate * <double>self.shortest
            self.window = (
                max(self.least, <uint64_t>wanted) if wanted < <double>self.most else self.most
            )
            self.end_replies()
        self.measured, self.began, self.answered_before = answer, now, self.answered
        self.was_full = False
        return 0

    cdef int end_replies(self) except -1:
        while self.waiting and (self.error is not None or self.has_room()):
            self.end(self.waiting.popleft())
        return 0

    cdef int end(self, object reply) except -1:
        if reply.done():
            return 0
        if self.error is not None:
            reply.set_exception(fresh_error(self.error))
        else:
            reply.set_result(None)
        return 0


@cython.final
cdef class StreamAnswer(Outcome):
    """Follows a streaming call, to take its bytes out of flight."""

    cdef int settle(self, AnyPointerReader results, object error) except -1:
        if self.state != PENDING:
            return 0
        self.state = RETURNED
        if self.call.cancelled:      # like its object, its stream goes on
            error = None
        self.call = None
        return self.flow.take_answer(self, error)


cdef object streamed(object reply, Outcome outcome, Reference target, Call call):
    """Send a streaming call; gives the reply that completes when the next may be sent."""
    cdef StreamAnswer answer = StreamAnswer.__new__(StreamAnswer)
    cdef Runtime runtime = call.runtime
    cdef Flow flow = target.flow
    if flow is None:
        flow = flow_of(target, runtime.stream_window, runtime.stream_window_limit)
    flow.clock = runtime.clock
    answer.flow, answer.call = flow, outcome
    answer.size = words_of(<BuilderArena>call.arena) * 8
    outcome.reply = None
    outcome.sinks = {answer: None}
    flow.sent(answer)
    target.call(call)
    if flow.error is not None or flow.has_room():
        flow.end(reply)
    else:
        flow.waiting.append(reply)
    return reply


cdef Flow flow_of(Reference target, uint64_t least, uint64_t most):
    """The state of a capability's streaming calls, its window between `least` and `most`."""
    cdef Flow flow = target.flow
    if flow is None:
        target.flow = flow = Flow.__new__(Flow)
    flow.set_window(least, most)
    return flow
