"""References, promises, calls and outcomes: the half of RPC that needs no connection.

A call goes to a reference, which settles the call's outcome some time later.  Order: calls on one
reference arrive in the order they were made, also through promises.  User code runs from a
runtime's ready queue or from a connection that delivers a message, never from within a resolve.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire._any cimport AnyPointerReader, any_reader
from capnwire._fast cimport reader_of
from capnwire.service.method cimport Method
from capnwire.wire.arena cimport (
    Arena, BuilderArena, Segment, builder_segment, capabilities_of, check_open, new_builder_arena,
)
from capnwire.wire.memory cimport load16, load64
from capnwire.wire.pointer cimport is_capability
from capnwire.wire.reader cimport StructRef, read_struct
from capnwire.wire.units cimport word_t

from collections import deque
from weakref import ref as weak_reference

from capnwire.errors import DecodeError, LocalProtocolError, RemoteError

cdef enum:
    NO_DEPTH_LIMIT = 0xFFFF
    SMALL_SEGMENT = 48           # words beyond the parameters that the first segment has room for
    LARGEST_GUESS = 8192
    DEEPEST_STEP = 64            # steps that run one within the other: C stack
    LONGEST_WAIT = 100           # calls that wait for one another: looked through for a circle

CANCELLED = "the call was cancelled"


# The steps that lead to one another along chains whose length a peer or a program decides.
cdef enum:
    SETTLE = 0                   # (outcome, results, error)
    RESOLVE = 1                  # (promise, target, None)
    CANCEL = 2                   # (outcome, None, None)


# ---------------------------------------------------------------- runtime

cdef class Runtime:
    """The loop that objects live in, as the core sees it; `aio` and the tests derive from it.

    `reply_type(**reply_options)` makes what a caller gets: something with `done`, `set_result` and
    `set_exception`, and room for `_outcome` and `_method`.  `clock()` gives nanoseconds; without
    it, the windows of streams are fixed.
    """

    def __cinit__(self, *args, **options):
        self.ready = deque()
        self.put_off = deque()
        self.reply_options = {}
        self.stream_window, self.stream_window_limit = 0x10000, 0x400000

    cdef int later(self, object work) except -1:
        """Let `work()` run soon, not within the caller."""
        self.ready.append(work)
        if len(self.ready) == 1 and not self.draining:
            self.wake()
        return 0

    cdef int take_step(self, uint8_t step, object whose, object first, object second) except -1:
        """Take a step now, or, too deep within others, when the outermost of them ends."""
        if self.nested == DEEPEST_STEP:
            self.put_off.append((step, whose, first, second))
            return 0
        self.nested += 1
        try:
            step_now(step, whose, first, second)
        finally:
            try:
                while self.nested == 1 and self.put_off:
                    step, whose, first, second = self.put_off.popleft()
                    step_now(step, whose, first, second)
            finally:
                self.nested -= 1
        return 0

    def soon(self, work):
        """Let `work()` run soon, not within the caller."""
        self.later(work)

    def run_ready(self):
        """Run what is ready now; what that makes ready waits for the next time."""
        if self.draining:
            return
        self.draining = True
        try:
            # Not until it is empty: objects that call one another would keep the loop for ever.
            for _ in range(len(self.ready)):
                work = self.ready.popleft()
                try:
                    work()
                except Exception as error:
                    self.report(error, "a deferred step failed")
        finally:
            self.draining = False
            if self.ready:
                self.wake()

    @property
    def has_ready(self):
        """Whether something waits to be run."""
        return bool(self.ready)

    def wake(self):
        """See to it that `run_ready()` is called soon."""

    def ring(self):
        """As `wake`, but callable from any thread and from finalisers."""
        self.wake()

    def spawn(self, coroutine, context):
        """Run a method's coroutine: `context.started()`, then `complete(value)` or `fail(error)`.

        Gives something with `cancel()`.
        """
        raise NotImplementedError

    @property
    def starts_eagerly(self):
        """Whether `spawn` runs the coroutine up to its first wait before it returns."""
        return False

    def report(self, error, text):
        """Tell somebody about an exception that no caller gets."""
        raise error

    cdef object new_reply(self, Outcome outcome, object method):
        reply = self.reply_type(**self.reply_options)
        reply._outcome = outcome
        reply._method = method
        outcome.reply = reply
        outcome.method = method
        return reply


# ---------------------------------------------------------------- calls

@cython.final
@cython.freelist(64)
cdef class Call:
    """One call on its way."""


# ---------------------------------------------------------------- outcomes

@cython.freelist(64)
@cython.trashcan(True)
cdef class Outcome:
    """The results of a call once they are known."""

    cdef int settle(self, AnyPointerReader results, object error) except -1:
        """The call has ended: with results, or with an exception."""
        return shared_settle(self, results, error)

    cdef int settled(self) except -1:
        """Called when the state has just become final, after the promises in it were resolved."""
        return 0

    cdef int tell(self) except -1:
        """Wake whoever awaits the reply."""
        reply, self.reply = self.reply, None
        if reply.done():
            return 0
        if self.error is not None:
            reply.set_exception(fresh_error(self.error))
            return 0
        if self.results is not None:
            adopt(self.results.arena, self.runtime)
        try:
            value = typed_results(self.results, self.method)
        except Exception as error:
            reply.set_exception(error)
            return 0
        reply.set_result(value)
        return 0

    cdef int follow(self, Outcome source) except -1:
        """Be equal to `source` from now on."""
        cdef Outcome other = source
        if self.state != PENDING:
            return 0
        if source.state != PENDING:
            return self.settle(source.results, source.error)
        while other is not None and other is not self:
            other = other.followed()
        if other is self:
            return self.settle(None, RemoteError("a call waits for its own results"))
        self.source = source
        if source.sinks is None:
            source.sinks = {}
        source.sinks[self] = None
        self.lead_to(source)
        return self.leave() if self.cancelled else 0

    cdef int lead_to(self, Outcome source) except -1:
        """Let what waits for capabilities in the results wait for those of `source`."""
        if self.pipelined is not None:
            for path, promise in list(self.pipelined.items()):
                (<Promise>promise).resolve(source.pipeline(path))
        return 0

    cdef int leave(self) except -1:
        """Follow no more: this outcome is not wanted."""
        source, self.source = self.source, None
        (<Outcome>source).source_unwanted(self)
        return self.settle(None, RemoteError(CANCELLED))

    cdef Reference pipeline(self, bytes path):
        """The capability at `path` (16-bit pointer indices) in the results, known or not."""
        cdef Reference made
        cdef Outcome origin = self
        cdef Outcome next
        if self.state != PENDING:
            made = (
                capability_at(self.results, path) if self.state == RETURNED else broken(self.error)
            )
            if made.runtime is None:
                made.runtime = self.runtime
            return made
        if self.pipelined is None:
            self.pipelined = {}
        found = self.pipelined.get(path)
        if found is not None:
            return found
        # Not by recursion: a chain of calls that end in calls is as long as their callees like.
        while origin.state == PENDING:
            next = origin.followed()
            if next is None:
                break
            origin = next
        if origin is not self:
            made = origin.pipeline(path)
        else:
            made = new_queued(self.runtime)
            (<QueuedReference>made).maker = self
        self.pipelined[path] = made
        return made

    cdef Outcome followed(self):
        """The outcome whose capabilities are those of this one, or None."""
        return self.source

    cdef int cancel(self) except -1:
        """Nobody wants the results any more."""
        if self.state != PENDING or self.cancelled:
            return 0
        self.cancelled = True
        if self.source is not None:
            return self.leave()
        if self.task is not None:
            self.task.cancel()
        elif self.waits_in is not None:
            return self.settle(None, RemoteError("the call was cancelled before it started"))
        return 0

    cdef int source_unwanted(self, Outcome sink) except -1:
        """An outcome that follows this one is not wanted any more."""
        if self.sinks is not None:
            self.sinks.pop(sink, None)
        if not self.sinks and self.reply is None:
            cancel_within(self)
        return 0

    cdef int call_unqueued(self) except -1:
        """The last call that waited for a capability of the results is not wanted any more."""
        return 0

    cdef int method_ended(self) except -1:
        """The coroutine that ran for this outcome is over; it may have been settled long ago."""
        return 0

    cdef object peer(self):
        """Who called, when it came over a connection."""
        return None


cdef int shared_settle(Outcome outcome, AnyPointerReader results, object error) except -1:
    cdef dict sinks, pipelined
    if outcome.state != PENDING:
        return 0
    outcome.results, outcome.error = results, error
    outcome.state = RETURNED if error is None else FAILED
    outcome.source = outcome.task = None
    waits_in, outcome.waits_in = outcome.waits_in, None
    if waits_in is not None:
        (<Reference>waits_in).unqueue(outcome)
    pipelined, outcome.pipelined = outcome.pipelined, None
    if pipelined is not None:
        for path, promise in pipelined.items():
            # Others are those of an outcome that this one followed, which may go on.
            if isinstance(promise, QueuedReference) and (
                (<QueuedReference>promise).maker is outcome
            ):
                (<QueuedReference>promise).resolve(
                    broken(error) if error is not None else capability_at(results, path)
                )
    outcome.settled()
    sinks, outcome.sinks = outcome.sinks, None
    if sinks is not None:
        for sink in sinks:
            settle_within(outcome.runtime, <Outcome>sink, results, error)
    if outcome.reply is not None:
        outcome.tell()
    return 0


cdef int adopt(Arena arena, Runtime runtime) except -1:
    """Let the capabilities of a message that live in no loop yet live in this one."""
    cdef list table = None if arena is None else capabilities_of(arena)
    if table is not None:
        for found in table:
            if found is not None and (<Reference>found).runtime is None:
                (<Reference>found).runtime = runtime
    return 0


cdef int step_now(uint8_t step, object whose, object first, object second) except -1:
    if step == SETTLE:
        return (<Outcome>whose).settle(first, second)
    if step == RESOLVE:
        return Promise.resolve(<Promise>whose, first)
    return (<Outcome>whose).cancel()


cdef int step_within(
    Runtime runtime, uint8_t step, object whose, object first, object second
) except -1:
    if runtime is None:
        return step_now(step, whose, first, second)
    return runtime.take_step(step, whose, first, second)


cdef int settle_within(
    Runtime runtime, Outcome outcome, AnyPointerReader results, object error
) except -1:
    """Settle an outcome because another was settled: a long chain of them takes no stack."""
    return step_within(runtime, SETTLE, outcome, results, error)


cdef int cancel_within(Outcome outcome) except -1:
    """Cancel an outcome because another was cancelled, or the task that awaits it."""
    return step_within(outcome.runtime, CANCEL, outcome, None, None)


cdef object typed_results(AnyPointerReader results, object method):
    cdef StructRef struct
    cdef word_t pointer
    if method is None:
        return results
    check_open(results.arena)
    pointer = load64(results.place) if results.place != NULL else 0
    if pointer == 0:
        struct.segment = results.segment
        struct.data = results.segment.base
        struct.bits, struct.pointers, struct.depth = 0, 0, 0
    else:
        read_struct(
            results.arena, results.segment, results.place, pointer, results.depth, &struct
        )
    return reader_of((<Method>method).results, results.arena, &struct)


cdef object fresh_error(object error):
    """An exception to raise: each caller gets one of its own, as tracebacks pile up on them."""
    if type(error) is RemoteError:
        return error.again()
    return error


# ---------------------------------------------------------------- references

@cython.trashcan(True)
cdef class Reference:
    """A capability as calls see it."""

    cdef int call(self, Call call) except -1:
        """Take a call and settle its outcome some time later."""
        raise NotImplementedError

    cdef int unqueue(self, Outcome outcome) except -1:
        """The call of `outcome`, which waits here, is not to be made any more."""
        return 0

    cdef Outcome new_outcome(self):
        """The outcome that suits a call made here best."""
        cdef Outcome outcome = Outcome.__new__(Outcome)
        outcome.runtime = self.runtime
        return outcome


cdef class Waiter:
    """Is told when a promise took its next step."""

    cdef int wait_no_more(self) except -1:
        cdef Promise promise
        promise, self.waits_for = self.waits_for, None
        if promise is not None and promise.waiters is not None:
            promise.waiters.pop(self, None)
        return 0

    cdef int promise_resolved(self, Promise promise, Reference target) except -1:
        return 0


cdef class Promise(Reference):
    """A reference to what is not known yet."""

    cdef int call(self, Call call) except -1:
        cdef Reference target = innermost(self)
        if target is self:
            return self.take(call)
        return target.call(call)

    cdef Outcome new_outcome(self):
        cdef Reference target = innermost(self)
        if target is self:
            return Reference.new_outcome(self)
        return target.new_outcome()

    cdef int take(self, Call call) except -1:
        """A call while nothing is known."""
        raise NotImplementedError

    cdef int resolve(self, Reference target) except -1:
        """Become `target`; a second time is ignored."""
        cdef Reference end = innermost(target)
        if self.target is not None:
            return 0
        if end is self:
            target = end = broken(RemoteError("a promise resolved to itself"))
        if self.flow is not None and end.flow is None:
            end.flow = self.flow     # a stream goes on where the promise led
        self.target = target
        return self.finish_resolve()

    cdef int finish_resolve(self) except -1:
        """Tell the waiters."""
        cdef dict waiters
        waiters, self.waiters = self.waiters, None
        if waiters is not None:
            for waiter in waiters:
                if (<Waiter>waiter).waits_for is self:
                    (<Waiter>waiter).waits_for = None
                    (<Waiter>waiter).promise_resolved(self, self.target)
        return 0

    cdef int wait(self, Waiter waiter) except -1:
        """Tell `waiter` when `target` is there."""
        if self.waiters is None:
            self.waiters = {}
        self.waiters[waiter] = None
        waiter.waits_for = self
        return 0


cdef QueuedReference new_queued(Runtime runtime):
    cdef QueuedReference made = QueuedReference.__new__(QueuedReference)
    made.runtime = runtime
    return made


cdef class QueuedReference(Promise):
    """A promise of this process: calls wait in it."""

    cdef int take(self, Call call) except -1:
        if waits_for(self, call.outcome):
            return call.outcome.settle(None, RemoteError("a call waits for its own results"))
        if self.queue is None:
            self.queue = {}
        call.from_wire = False
        call.outcome.waits_in = self
        self.queue[call.outcome] = call
        return 0

    cdef int unqueue(self, Outcome outcome) except -1:
        if self.queue is not None:
            self.queue.pop(outcome, None)
        if not self.queue and self.maker is not None:
            return self.maker.call_unqueued()
        return 0

    cdef int resolve(self, Reference target) except -1:
        """Become `target`; until then calls wait here, also when that is put off."""
        return step_within(self.runtime, RESOLVE, self, target, None)

    cdef int finish_resolve(self) except -1:
        """Forward what waited, in order, before anybody hears of the target."""
        cdef dict queue
        cdef Reference target
        queue, self.queue = self.queue, None
        self.maker = None
        if queue is not None:
            for outcome, call in queue.items():
                if (<Outcome>outcome).state != PENDING:
                    continue
                (<Outcome>outcome).waits_in = None
                target = innermost(self.target)
                target.call(<Call>call)
        return Promise.finish_resolve(self)


cdef bint waits_for(QueuedReference promise, Outcome outcome):
    """Whether a promise is in the results of `outcome`, or of a call that waits for them."""
    cdef Outcome maker
    for _ in range(LONGEST_WAIT):
        maker = promise.maker
        if maker is outcome:
            return True
        if maker is None or not isinstance(maker.waits_in, QueuedReference):
            return False
        promise = <QueuedReference>maker.waits_in
    return False


@cython.final
cdef class SwitchedReference(QueuedReference):
    """A place of an answer whose earlier calls wait for an embargo: later ones wait here."""

    cdef int take(self, Call call) except -1:
        self.switch.waited_in = self
        return QueuedReference.take(self, call)

    cdef int unqueue(self, Outcome outcome) except -1:
        QueuedReference.unqueue(self, outcome)
        if not self.queue:
            self.switch.waited_in = None
        return 0


@cython.final
cdef class StrictSwitch(Waiter):
    """Lets calls through to `target` once the embargo before them is lifted.

    It goes with its place: a peer may never lift the embargo.
    """

    def place_dropped(self, weak):
        self.place = None
        self.wait_no_more()

    cdef int promise_resolved(self, Promise promise, Reference target) except -1:
        place = None if self.place is None else self.place()
        self.place = self.waited_in = None
        return 0 if place is None else (<SwitchedReference>place).resolve(self.target)


cdef SwitchedReference new_switched(Promise embargo, Reference target):
    cdef SwitchedReference made = SwitchedReference.__new__(SwitchedReference)
    cdef StrictSwitch switch = StrictSwitch.__new__(StrictSwitch)
    made.runtime, made.switch = embargo.runtime, switch
    switch.place, switch.target = weak_reference(made, switch.place_dropped), target
    embargo.wait(switch)
    return made


cdef Reference innermost(Reference reference):
    """What a reference has become by now; shortens the way for the next time."""
    cdef Reference end = reference
    cdef Reference next
    while isinstance(end, Promise) and (<Promise>end).target is not None:
        end = (<Promise>end).target
    while reference is not end:
        next = (<Promise>reference).target
        if next is end:
            break
        (<Promise>reference).target = end
        reference = next
    return end


cdef class BrokenReference(Reference):
    """Every call on it fails alike."""

    cdef int call(self, Call call) except -1:
        return settle_within(call.runtime, call.outcome, None, self.error)


cdef BrokenReference broken(object error):
    cdef BrokenReference made = BrokenReference.__new__(BrokenReference)
    made.error = error
    return made


cdef BrokenReference null_reference():
    cdef BrokenReference made = broken(RemoteError("Called null capability."))
    made.is_null = True
    return made


cdef Reference capability_at(AnyPointerReader results, bytes path):
    """The capability that `path` leads to; a broken one when it leads nowhere."""
    try:
        return walk(results, path)
    except DecodeError as error:
        return broken(RemoteError(
            f"Pipeline call on a request that returned no capability there: {error}"
        ))


cdef Reference walk(AnyPointerReader results, bytes path):
    cdef StructRef struct
    cdef Arena arena = results.arena
    cdef Segment* segment = results.segment
    cdef const uint8_t* place = results.place
    cdef uint32_t depth = results.depth
    cdef const uint8_t* steps = <const uint8_t*>PyBytes_AS_STRING(path)
    cdef Py_ssize_t i
    cdef uint16_t index
    cdef word_t pointer
    check_open(arena)
    for i in range(PyBytes_GET_SIZE(path) >> 1):
        pointer = load64(place) if place != NULL else 0
        if pointer == 0:
            return null_reference()
        read_struct(arena, segment, place, pointer, depth, &struct)
        index = load16(steps + i * 2)
        segment, depth = struct.segment, struct.depth
        place = NULL
        if index < struct.pointers:
            place = struct.data + (struct.bits >> 3) + <size_t>index * 8
    pointer = load64(place) if place != NULL else 0
    if pointer == 0:
        return null_reference()
    if not is_capability(pointer):
        raise DecodeError("the pointer is no capability")
    table = capabilities_of(arena)
    if table is None or pointer >> 32 >= <uint64_t>len(table):
        raise DecodeError(f"capability {pointer >> 32} is not in the message's table")
    found = table[pointer >> 32]
    if found is None:
        return null_reference()
    return found


# ---------------------------------------------------------------- messages with room for a header

cdef BuilderArena new_header(uint32_t header_words, uint64_t content_words):
    """A message whose content follows `header_words` zero words; the root is left to the sender."""
    cdef BuilderArena arena
    if content_words > LARGEST_GUESS:
        content_words = LARGEST_GUESS
    arena = new_builder_arena(header_words + content_words + SMALL_SEGMENT)
    arena.root_segment.head.words = header_words
    return arena


cdef uint64_t words_of(BuilderArena arena) noexcept:
    """Words of a message without its segment table."""
    cdef uint64_t words = 0
    cdef uint32_t i
    for i in range(arena.more_count + 1):
        words += builder_segment(arena, i).head.words
    return words


cdef AnyPointerReader content_of(BuilderArena arena, uint32_t word):
    """The content of such a message, as its reader sees it."""
    return any_reader(
        arena, &arena.root_segment.head, arena.root_segment.head.base + <size_t>word * 8,
        NO_DEPTH_LIMIT,
    )


# ---------------------------------------------------------------- what Python code may use

def new_promise(Runtime runtime):
    """A local promise and the function that resolves it: with a reference or an exception."""
    cdef QueuedReference promise = new_queued(runtime)

    def resolve(target):
        if isinstance(target, BaseException):
            target = broken(target)
        elif target is None:
            target = null_reference()
        promise.resolve(<Reference?>target)

    return promise, resolve


def broken_reference(error):
    """A reference on which every call fails with `error`."""
    return broken(error)


def cancel_outcome(Outcome outcome):
    """Tell the callee that nobody wants the results any more."""
    cancel_within(outcome)


def pipelined(Outcome outcome, bytes path):
    """The capability at `path` in results that need not be there yet."""
    return outcome.pipeline(path)


def misuse(text):
    """An error for what a program may not do now."""
    return LocalProtocolError(text)
