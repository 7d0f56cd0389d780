"""Running methods: calls to a local object become calls of its functions.

Calls on one object start in the order in which they arrived, plain functions and coroutines alike;
while a streaming call runs, the others wait.
"""

cimport cython
from cpython.object cimport PyObject

from capnwire._fast cimport Struct, builder_of, get_reader_field, reader_of
from capnwire._info cimport StructInfo, complete, find_field
from capnwire.service.method cimport Method
from capnwire.service.reference cimport (
    PENDING, RETURN_CONTENT, RETURN_HEADER, Call, Outcome, Reference, Runtime, adopt, content_of,
    new_header,
)
from capnwire.wire.arena cimport BuilderArena
from capnwire.wire.builder cimport init_struct
from capnwire.wire.memory cimport load64
from capnwire.wire.reader cimport StructRef, read_struct
from capnwire.wire.units cimport word_t

from collections import OrderedDict
from weakref import ref as weak_reference

from capnwire.errors import LocalProtocolError, RemoteError
from capnwire.service.reference import CANCELLED

cdef extern from "Python.h":
    object PyObject_Vectorcall(object function, PyObject** args, size_t count, PyObject* names)
    bint PyCoro_CheckExact(PyObject* o)
    ctypedef struct PyAsyncMethods:
        void* am_await
    ctypedef struct TypeObject "PyTypeObject":
        PyAsyncMethods* tp_as_async
    TypeObject* Py_TYPE(object o)

cdef enum:
    MOST_ARGUMENTS = 24

CONTEXT = object()
"""Marks the parameter of a server's method that takes the call's `Context`."""
PARAMS = object()
"""Marks the parameter that takes the whole struct of parameters."""


@cython.final
cdef class ServerMethod:
    """A method as a server class implements it."""

    def __init__(
        self, Method method, function, *, bint bound, bint asynchronous, tuple positional,
        tuple keywords=(), rest=None,
    ):
        self.method, self.function = method, function
        self.bound, self.asynchronous = bound, asynchronous
        self.positional, self.keywords, self.rest = positional, keywords, rest
        if len(positional) >= MOST_ARGUMENTS:
            self.positional, self.keywords = (), tuple((name, name) for name in positional)


cdef class ReplyBase:
    """The ancestor of what callers get, by which a returned, unawaited reply is recognised."""


@cython.final
cdef class LocalReference(Reference):
    """A reference to an object of this process."""

    cdef int call(self, Call call) except -1:
        cdef ServerMethod entry
        if self.runtime is None:
            self.runtime = call.runtime
        if call.from_wire and not self.scheduled and not self.queue and self.streaming is None:
            entry = self.find(call)
            if self.may_start(entry):
                return self.deliver(call, entry)
        call.from_wire = False
        if self.queue is None:
            self.queue = OrderedDict()
        call.outcome.waits_in = self
        self.queue[call.outcome] = call
        return self.schedule(call)

    cdef int unqueue(self, Outcome outcome) except -1:
        if outcome is not self.streaming:
            self.queue.pop(outcome, None)
            return 0
        self.streaming = None
        if outcome.error is not None and not outcome.cancelled:
            self.failure = outcome.error
        if self.queue:
            self.scheduled = True
            outcome.runtime.later(self.pump)
        return 0

    cdef int schedule(self, Call call) except -1:
        if self.scheduled or self.streaming is not None:
            return 0
        self.scheduled = True
        return call.runtime.later(self.pump)

    cdef ServerMethod find(self, Call call):
        cdef tuple methods
        if call.interface_id == self.last_interface and self.last_methods is not None:
            methods = self.last_methods
        else:
            methods = self.table.get(call.interface_id)
            if methods is None:
                return None
            self.last_interface, self.last_methods = call.interface_id, methods
        return methods[call.method_id] if call.method_id < len(methods) else None

    cdef bint may_start(self, ServerMethod entry):
        return self.unstarted == 0 or (entry is not None and entry.asynchronous)

    def pump(self):
        """Start what may start now of the calls that wait."""
        cdef Call call
        cdef ServerMethod entry
        self.scheduled = False
        while self.queue and self.streaming is None and not self.scheduled:
            call = next(iter(self.queue.values()))
            entry = self.find(call)
            if not self.may_start(entry):
                break
            del self.queue[call.outcome]
            call.outcome.waits_in = None
            self.deliver(call, entry)

    cdef int deliver(self, Call call, ServerMethod entry) except -1:
        """Run a method, or at least make the task that will."""
        cdef Outcome outcome = call.outcome
        cdef Context context
        if entry is None:
            return outcome.settle(None, unknown_method(self, call))
        if self.failure is not None:
            return outcome.settle(None, self.failure)
        adopt(call.arena, call.runtime)
        context = Context.__new__(Context)
        context.call, context.entry, context.reference = call, entry, self
        if entry.method.streaming:
            self.streaming, outcome.waits_in = outcome, self
        try:
            result = invoke(self.server, entry, context)
        except BaseException as error:
            outcome.settle(None, as_remote(error))
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return 0
        if entry.asynchronous or PyCoro_CheckExact(<PyObject*>result):
            context.spawn(result)
            return 0
        context.finish(result)
        return 0


cdef object unknown_method(LocalReference reference, Call call):
    name = type(reference.server).__name__
    if call.interface_id in reference.table:
        return RemoteError(
            f"Method not implemented: {name} has no method {call.method_id} of interface "
            f"@0x{call.interface_id:016x}", kind="UNIMPLEMENTED",
        )
    return RemoteError(
        f"Requested interface not implemented: {name} has no interface "
        f"@0x{call.interface_id:016x}", kind="UNIMPLEMENTED",
    )


cdef object as_remote(object error):
    """What a caller gets to know of an exception: its kind and message."""
    if isinstance(error, RemoteError):
        return error
    kind = "UNIMPLEMENTED" if isinstance(error, NotImplementedError) else "FAILED"
    try:
        text = str(error)
    except Exception:
        text = ""
    made = RemoteError(text or type(error).__name__, kind=kind)
    made.__cause__ = error
    return made


cdef object read_params(Context context):
    cdef StructRef struct
    cdef Call call = context.call
    cdef word_t pointer
    if call.arena is None:
        raise LocalProtocolError("the parameters of this call were released")
    pointer = load64(call.place) if call.place != NULL else 0
    if pointer == 0:
        struct.segment = call.segment
        struct.data = call.segment.base
        struct.bits, struct.pointers, struct.depth = 0, 0, 0
    else:
        read_struct(call.arena, call.segment, call.place, pointer, call.depth, &struct)
    return reader_of(context.entry.method.params, call.arena, &struct)


cdef object argument(Context context, Struct params, object what):
    if what is CONTEXT:
        return context
    if what is PARAMS:
        return params
    return get_reader_field(params, find_field(context.entry.method.params, what))


cdef object invoke(object server, ServerMethod entry, Context context):
    """Call the function that implements a method, with the fields of the parameters."""
    cdef PyObject* given[MOST_ARGUMENTS + 1]
    cdef Py_ssize_t i, count = len(entry.positional), skip = 0 if entry.bound else 1
    cdef Struct params = None
    function = getattr(server, entry.function) if entry.bound else entry.function
    if count or entry.keywords or entry.rest is not None:
        params = read_params(context)
    held = []
    if skip:
        given[0] = <PyObject*>server
    for i in range(count):
        value = argument(context, params, entry.positional[i])
        held.append(value)
        given[i + skip] = <PyObject*>value
    if not entry.keywords and entry.rest is None:
        return PyObject_Vectorcall(function, given, count + skip, NULL)
    named = {name: argument(context, params, what) for name, what in entry.keywords}
    if entry.rest is not None:
        for name in entry.rest:
            named[name] = argument(context, params, name)
    if skip:
        held.insert(0, server)
    return function(*held, **named)


@cython.final
cdef class Context:
    """One running call, as the method that serves it sees it."""

    @property
    def peer(self):
        """Who called: what the session says of the other side, or None for a local caller."""
        return self.call.outcome.peer()

    @property
    def params(self):
        """The parameters as a struct."""
        return read_params(self)

    @property
    def results(self):
        """A builder of the results; return None from the method to send what it holds."""
        cdef StructInfo info
        cdef BuilderArena arena
        cdef StructRef struct
        if self.made_results is None:
            info = self.entry.method.results
            if info.reader_type == NULL:
                complete(info)
            arena = new_header(RETURN_HEADER, self.entry.method.results_words)
            init_struct(
                arena, &arena.root_segment.head,
                arena.root_segment.head.base + <size_t>RETURN_CONTENT * 8,
                info.data_words, info.pointer_count, &struct,
            )
            self.made_results = builder_of(info, arena, &struct)
        return self.made_results

    @property
    def is_cancelled(self):
        """Whether the caller does not want the results any more."""
        return self.call.outcome.cancelled

    def release_params(self):
        """Drop the parameters and the capabilities in them, as far as the method holds none."""
        self.call.arena = None

    def started(self):
        """The coroutine of the method is at its first line."""
        cdef LocalReference reference = self.reference
        if self.has_started:
            return
        self.has_started = True
        reference.unstarted -= 1
        if reference.unstarted == 0 and reference.queue:
            reference.schedule(self.call)

    def complete(self, value):
        """The method gave `value`."""
        self.ended()
        self.finish(value)

    def fail(self, error):
        """The method raised `error`."""
        self.ended()
        self.call.outcome.settle(None, as_remote(error))

    def abandoned(self):
        """The coroutine was cancelled, by the caller or from within."""
        self.started()
        self.ended()
        self.call.outcome.settle(None, RemoteError(CANCELLED))

    @property
    def is_started(self):
        """Whether the coroutine has reached its first line."""
        return self.has_started

    @property
    def has_ended(self):
        """Whether the caller has its answer."""
        return self.call.outcome.state != PENDING

    cdef int spawn(self, object coroutine) except -1:
        cdef Outcome outcome = self.call.outcome
        cdef int number = self.spawned + 1
        self.spawned = self.running = number
        self.has_started = False
        self.reference.unstarted += 1
        task = self.call.runtime.spawn(coroutine, self)
        # Started eagerly, it may be over, or its end may have made the next.
        if self.running == number and outcome.state == PENDING:
            outcome.task = task
        return 0

    cdef int ended(self) except -1:
        """The coroutine is over."""
        self.running = 0
        self.call.outcome.task = None
        return self.call.outcome.method_ended()

    cdef int finish(self, object value) except -1:
        """Settle the outcome by what the method returned."""
        cdef Outcome outcome = self.call.outcome
        cdef Struct built
        if isinstance(value, ReplyBase):
            return outcome.follow(<Outcome>value._outcome)
        if isinstance(value, Outcome):
            return outcome.follow(<Outcome>value)
        if outcome.state != PENDING:
            return 0
        if is_awaitable(value):
            return self.spawn(wait_for(value))
        if value is None and self.made_results is not None:
            built = <Struct>self.made_results
            return outcome.settle(content_of(<BuilderArena>built.arena, RETURN_CONTENT), None)
        try:
            results = self.entry.method.pack_results(value)
        except Exception as error:
            return outcome.settle(None, as_remote(error))
        return outcome.settle(results, None)


cdef inline bint is_awaitable(object value) noexcept:
    cdef PyAsyncMethods* methods = Py_TYPE(value).tp_as_async
    return methods != NULL and methods.am_await != NULL


async def wait_for(awaitable):
    """What a plain function that returned an awaitable comes to."""
    return await awaitable


cdef LocalReference local_reference(object server):
    """The reference to an object: the same as long as anybody has it."""
    cdef LocalReference made, found
    known = getattr(server, "_capnwire_reference", None)
    if known is not None:
        found = known()
        # What waited or ran in a loop that is closed would hold up the object for ever.
        if found is not None and (found.runtime is None or not found.runtime.is_over):
            return found
    made = LocalReference.__new__(LocalReference)
    made.server = server
    made.table = type(server)._capnwire_methods()
    server._capnwire_reference = weak_reference(made)
    return made


def reference_to(server, Runtime runtime=None):
    """The reference to an instance of a server class, which is to run where `runtime` says."""
    cdef LocalReference reference = local_reference(server)
    if reference.runtime is None:
        reference.runtime = runtime
    return reference
