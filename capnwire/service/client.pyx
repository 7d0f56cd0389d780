"""What programs hold: capabilities typed by an interface, their methods, results not yet there."""

cimport cython
from libc.stdint cimport uint8_t, uint16_t

from capnwire._fast cimport builder_of
from capnwire._info cimport (
    ANY_POINTER, GROUP, INTERFACE, STRUCT, Field, InterfaceInfo, StructInfo, complete, find_field,
)
from capnwire.service.flow cimport Flow, flow_of, streamed
from capnwire.service.method cimport Method
from capnwire.service.reference cimport (
    CALL_CONTENT, NO_PIPELINING, ONLY_PIPELINE, Call, Outcome, Promise, Reference, Runtime,
    innermost,
)
from capnwire.service.server cimport LocalReference, local_reference
from capnwire.wire.arena cimport BuilderArena
from capnwire.wire.builder cimport init_struct
from capnwire.wire.reader cimport StructRef

from capnwire._any import set_capability_hooks
from capnwire.errors import EncodeTypeError, LocalProtocolError

# Set by the session layer: gives the runtime of the running loop, for calls on local objects.
cdef object find_runtime = None


def set_runtime_finder(finder):
    """Say how to find the runtime for a call on a local object."""
    global find_runtime
    find_runtime = finder


cdef class Capability:
    """A reference to an object here or in another vat, seen as an interface.

    Its methods start calls and give replies to be awaited.  Dropping the last reference releases
    the object.
    """

    def __init__(self, *args, **options):
        raise TypeError("capabilities come out of connections, replies and messages")

    def cast_as(self, interface):
        """The same capability seen as another interface; nothing is checked."""
        return client_of(interface_info(interface), self.reference)

    def __eq__(self, other):
        if not isinstance(other, Capability):
            return NotImplemented
        return innermost(self.reference) is innermost((<Capability>other).reference)

    def __hash__(self):
        cdef Reference target = innermost(self.reference)
        if isinstance(target, Promise):
            raise TypeError("unhashable: this capability is a promise, and may become any other")
        return hash(id(target))

    def __repr__(self):
        return f"<{type(self).__name__} client>"

    def __reduce__(self):
        raise TypeError("a capability cannot be pickled: it lives as long as its connection")

    @property
    def _reference(self):
        return self.reference


cdef Capability client_of(object interface, Reference reference):
    """A capability of an interface (InterfaceInfo, or None for any)."""
    cdef type kind = Capability
    cdef Capability made
    if interface is not None:
        kind = (<InterfaceInfo>interface).client
        if kind is None:
            from capnwire.service.interface import client_class
            kind = client_class(interface)
    made = kind.__new__(kind)
    made.reference = reference
    return made


cdef object interface_info(object interface):
    info = getattr(interface, "_info", interface)
    if not isinstance(info, InterfaceInfo):
        raise TypeError(f"an interface is wanted, not {interface!r}")
    return info


cdef Reference reference_of(object value, object interface):
    """The reference behind whatever a program may give as a capability.

    Raises:
        EncodeTypeError: it is none, or of another interface.
    """
    if isinstance(value, Reference):
        return value
    if isinstance(value, Capability):
        found = (<Capability>value).reference
    elif hasattr(type(value), "_capnwire_methods"):
        found = local_reference(value)
    else:
        raise EncodeTypeError(
            f"a capability or an instance of a server class is wanted, not {type(value).__name__}",
            value=value,
        )
    if interface is not None:
        known = getattr(type(value), "_capnwire_interfaces", None)
        if known is not None and interface.node.id not in known:
            raise EncodeTypeError(
                f"a {interface.name} is wanted, but {type(value).__name__} is none", value=value
            )
    return found


def _stored(table, value, interface):
    table.append(reference_of(value, interface))
    return len(table) - 1


def _loaded(reference, interface):
    return client_of(interface, reference)


set_capability_hooks(_stored, _loaded)


# ---------------------------------------------------------------- calling

@cython.final
cdef class ClientMethod:
    """A method as an attribute of a client class."""

    cdef readonly Method method

    def __init__(self, Method method):
        self.method = method

    def __get__(self, instance, owner):
        cdef BoundMethod bound
        if instance is None:
            return self
        bound = BoundMethod.__new__(BoundMethod)
        bound.capability, bound.method = instance, self.method
        return bound

    def __repr__(self):
        return repr(self.method)


@cython.final
@cython.freelist(64)
cdef class BoundMethod:
    """A method of a capability: calling it starts a call and gives the reply."""

    cdef Capability capability
    cdef readonly Method method

    def __call__(self, *args, **named):
        cdef BuilderArena arena = self.method.new_params()
        self.method.store_arguments(arena, args, named)
        return start(self.capability.reference, self.method, arena, 0)

    def pipelined(self, *args, **named):
        """Call for the capabilities in the results only: gives what `reply.pipeline` would.

        The results themselves are not sent.
        """
        cdef BuilderArena arena = self.method.new_params()
        self.method.store_arguments(arena, args, named)
        return start(self.capability.reference, self.method, arena, ONLY_PIPELINE)

    def request(self, **named):
        """A call to be filled: set fields of `request.params`, then `request.send()`."""
        cdef Request made = Request.__new__(Request)
        made.arena = self.method.new_params()
        made.method, made.reference = self.method, self.capability.reference
        made.fill(named)
        return made

    def __repr__(self):
        return f"<bound {self.method!r}>"


@cython.final
cdef class Request:
    """A call that has not been sent: its parameters are built where they will be sent from."""

    cdef BuilderArena arena
    cdef Method method
    cdef Reference reference
    cdef readonly object params

    cdef int fill(self, dict named) except -1:
        cdef StructRef struct
        cdef StructInfo info = self.method.params
        if info.reader_type == NULL:
            complete(info)
        init_struct(
            self.arena, &self.arena.root_segment.head,
            self.arena.root_segment.head.base + <size_t>CALL_CONTENT * 8,
            info.data_words, info.pointer_count, &struct,
        )
        self.params = builder_of(info, self.arena, &struct)
        for name, value in named.items():
            setattr(self.params, name, value)
        return 0

    def send(self):
        """Start the call.

        Raises:
            LocalProtocolError: it was sent before.
        """
        cdef BuilderArena arena
        if self.arena is None:
            raise LocalProtocolError("a request is sent once")
        arena, self.arena, self.params = self.arena, None, None
        return start(self.reference, self.method, arena, 0)


cdef object start(Reference reference, Method method, BuilderArena arena, uint8_t hints):
    """Send a call on its way; gives the reply."""
    cdef Reference target = innermost(reference)
    cdef Runtime runtime = target.runtime
    cdef Outcome outcome = Outcome.__new__(Outcome) if hints else target.new_outcome()
    cdef Call call = Call.__new__(Call)
    if runtime is None:
        runtime = reference.runtime
    if runtime is None:
        if find_runtime is None:
            raise LocalProtocolError("a call needs a running session or loop")
        runtime = find_runtime()
    outcome.runtime = runtime
    call.interface_id, call.method_id = method.interface_id, method.method_id
    call.hints = hints
    if not method.results_hold_capabilities:
        call.hints |= NO_PIPELINING
    call.arena = arena
    call.segment = &arena.root_segment.head
    call.place = arena.root_segment.head.base + <size_t>CALL_CONTENT * 8
    call.depth = 0xFFFF
    call.outcome, call.runtime = outcome, runtime
    if hints & ONLY_PIPELINE:
        target.call(call)
        return pipeline_of(outcome, method)
    reply = runtime.new_reply(outcome, method)
    if method.streaming:
        return streamed(reply, outcome, target, call)
    target.call(call)
    return reply


# ---------------------------------------------------------------- streaming

def set_stream_window(capability, size_bytes, limit_bytes=None):
    """Let so many bytes of streaming calls on a capability be in flight from now on.

    With a limit it may become up to so many as the path turns out to hold more.
    """
    flow_of(
        innermost(reference_of(capability, None)), size_bytes,
        size_bytes if limit_bytes is None else limit_bytes,
    )


def stream_window(capability):
    """Bytes of streaming calls on a capability that may be in flight now; 0 before the first."""
    cdef Flow flow = innermost(reference_of(capability, None)).flow
    return 0 if flow is None else flow.window


def stream_bytes_in_flight(capability):
    """Bytes of streaming calls on a capability that have not been answered."""
    cdef Flow flow = innermost(reference_of(capability, None)).flow
    return 0 if flow is None else flow.in_flight


# ---------------------------------------------------------------- results not yet there

@cython.final
cdef class Pipeline:
    """Results that need not be there yet: structs and capabilities in them are attributes."""

    cdef Outcome outcome
    cdef object info                 # StructInfo, or None behind an AnyPointer
    cdef bytes path

    def __getattr__(self, name):
        cdef Field* field
        cdef Pipeline made
        if name.startswith("__") or self.info is None:
            raise AttributeError(name)
        field = find_field(<StructInfo>self.info, name)
        path = self.path
        if field.kind != GROUP:
            path += (<uint16_t>field.offset).to_bytes(2, "little")
        if field.kind == INTERFACE:
            return client_of(
                None if field.sub == NULL else <object>field.sub, self.outcome.pipeline(path)
            )
        if field.kind != STRUCT and field.kind != GROUP and field.kind != ANY_POINTER:
            raise AttributeError(
                f"{(<StructInfo>self.info).name}.{name} is neither a struct nor a capability, so "
                "it is there only once the reply is awaited"
            )
        made = Pipeline.__new__(Pipeline)
        made.outcome, made.path = self.outcome, path
        made.info = None if field.sub == NULL else <object>field.sub
        return made

    def __getitem__(self, name):
        return self.__getattr__(name)

    def cast_as(self, interface):
        """The AnyPointer as a capability of an interface."""
        return client_of(interface_info(interface), self.outcome.pipeline(self.path))

    def as_struct(self, kind):
        """The AnyPointer as a struct."""
        cdef Pipeline made = Pipeline.__new__(Pipeline)
        made.outcome, made.path, made.info = self.outcome, self.path, kind._info
        return made

    def __repr__(self):
        return "<capnwire results not yet there>"


def pipeline_of(Outcome outcome, method):
    """The results of a call, known or not."""
    cdef Pipeline made = Pipeline.__new__(Pipeline)
    made.outcome, made.path = outcome, b""
    made.info = None if method is None else (<Method>method).results
    return made


def client_for(interface, Reference reference):
    """A capability seen as an interface (None: any)."""
    return client_of(None if interface is None else interface_info(interface), reference)


def reference_behind(value):
    """The reference behind a capability or an instance of a server class."""
    return reference_of(value, None)


def local_object(capability):
    """The object of this process that a capability refers to, or None."""
    cdef Reference reference
    if capability is None:
        return None
    reference = innermost(reference_of(capability, None))
    return (<LocalReference>reference).server if isinstance(reference, LocalReference) else None
