"""Capabilities and calls without a connection: references, promises, calls and their outcomes."""

cimport cython
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire._any cimport AnyPointerReader
from capnwire.wire.arena cimport Arena, BuilderArena, Segment


cdef enum:
    PENDING = 0
    RETURNED = 1
    FAILED = 2

# Call.hints, as in rpc.capnp's Call.
cdef enum:
    NO_PIPELINING = 1        # its caller will not call anything on the results
    ONLY_PIPELINE = 2        # its caller wants the results for such calls only

# Words in front of the content of a message made here, for the header of whoever sends it.
cdef enum:
    CALL_CONTENT = 11        # rpc.capnp: root, Message, Call, MessageTarget, then Payload
    CALL_HEADER = 13
    RETURN_CONTENT = 6       # root, Message, Return, then Payload
    RETURN_HEADER = 8


cdef class Runtime:
    """What the core needs of the loop that it lives in."""

    cdef object ready                # deque of works: callables without arguments
    cdef bint draining
    cdef public bint is_over         # its loop is closed: nothing runs here any more
    cdef public object reply_type    # a future's class: called with `reply_options`
    cdef public dict reply_options
    cdef public uint64_t stream_window         # bytes in flight of streaming calls, by default
    cdef public uint64_t stream_window_limit   # what the window may become
    cdef public object clock                   # gives nanoseconds; None: windows are fixed
    cdef uint32_t nested             # steps that run one within the other
    cdef object put_off              # deque of those that were too many for the stack

    cdef int later(self, object work) except -1
    cdef int take_step(self, uint8_t step, object whose, object first, object second) except -1
    cdef object new_reply(self, Outcome outcome, object method)


cdef class Call:
    """One call on its way to an object, with its parameters and the outcome to be settled."""

    cdef readonly uint64_t interface_id
    cdef readonly uint16_t method_id
    cdef uint8_t hints
    cdef bint from_wire              # a connection delivers it: user code may run at once
    cdef Arena arena                 # of the parameters
    cdef Segment* segment
    cdef uint8_t* place              # their pointer, or NULL
    cdef uint32_t depth
    cdef readonly Outcome outcome
    cdef readonly Runtime runtime


# Outcomes and references hold one another in chains whose length a peer decides: the trashcan
# lets the end of such a chain cost no stack.  The definition in the .pyx needs it too: what stands
# here is seen by the modules that derive from these.
@cython.trashcan(True)
cdef class Outcome:
    """What a call gives, once it is known; calls on capabilities in it can be made before."""

    cdef object __weakref__
    cdef uint8_t state
    cdef bint cancelled
    cdef readonly AnyPointerReader results
    cdef readonly object error
    cdef Outcome source              # the outcome that this one will be equal to
    cdef dict sinks                  # the outcomes that will be equal to this one, or None
    cdef object reply                # the future of a program, or None
    cdef object method               # its Method, to type the results
    cdef dict pipelined              # path -> Reference, or None
    cdef object task                 # what runs: has cancel(), or None
    cdef Reference waits_in          # in whose queue its call is, or which waits for its end
    cdef Runtime runtime

    cdef int settle(self, AnyPointerReader results, object error) except -1
    cdef int settled(self) except -1
    cdef int tell(self) except -1
    cdef int follow(self, Outcome source) except -1
    cdef int lead_to(self, Outcome source) except -1
    cdef int leave(self) except -1
    cdef Reference pipeline(self, bytes path)
    cdef Outcome followed(self)
    cdef int cancel(self) except -1
    cdef int source_unwanted(self, Outcome sink) except -1
    cdef int call_unqueued(self) except -1
    cdef int method_ended(self) except -1
    cdef object peer(self)


@cython.trashcan(True)
cdef class Reference:
    """A capability as calls see it."""

    cdef object __weakref__
    cdef readonly Runtime runtime
    cdef object flow                 # the state of streaming calls, or None

    cdef int call(self, Call call) except -1
    cdef int unqueue(self, Outcome outcome) except -1
    cdef Outcome new_outcome(self)


cdef class Waiter:
    """Is told when a promise took its next step."""

    cdef Promise waits_for

    cdef int wait_no_more(self) except -1
    cdef int promise_resolved(self, Promise promise, Reference target) except -1


cdef class Promise(Reference):
    """A reference to what is not known yet; once it is, `target`."""

    cdef readonly Reference target
    cdef dict waiters                # in the order in which they came, or None

    cdef int take(self, Call call) except -1
    cdef int resolve(self, Reference target) except -1
    cdef int finish_resolve(self) except -1
    cdef int wait(self, Waiter waiter) except -1


cdef class QueuedReference(Promise):
    """A promise of this process: calls wait in it."""

    cdef dict queue                  # outcome -> the call that waits
    cdef Outcome maker               # whose results it is in, while it is not resolved
    cdef bint embargoed              # waits for a Disembargo to come back


cdef class SwitchedReference


cdef class StrictSwitch(Waiter):
    cdef object place                    # weak, of the SwitchedReference
    cdef SwitchedReference waited_in     # the same, while calls wait in it
    cdef Reference target


cdef class SwitchedReference(QueuedReference):
    cdef StrictSwitch switch


cdef class BrokenReference(Reference):
    """Every call on it fails alike."""

    cdef readonly object error
    cdef readonly bint is_null


cdef Reference innermost(Reference reference)
cdef SwitchedReference new_switched(Promise embargo, Reference target)
cdef BrokenReference broken(object error)
cdef BrokenReference null_reference()
cdef Reference capability_at(AnyPointerReader results, bytes path)
cdef int adopt(Arena arena, Runtime runtime) except -1
cdef object fresh_error(object error)
cdef BuilderArena new_header(uint32_t header_words, uint64_t content_words)
cdef AnyPointerReader content_of(BuilderArena arena, uint32_t word)
cdef uint64_t words_of(BuilderArena arena) noexcept
cdef int shared_settle(Outcome outcome, AnyPointerReader results, object error) except -1
