"""What arrives from the peer: one function for each kind of message.

A rule that the peer broke raises RemoteProtocolError, which ends the connection.  Spec: rpc.capnp.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire._any cimport any_reader
from capnwire.rpc.connection cimport (
    Answer, AnswerReference, Connection, Export, Import, ImportReference, Question, RemotePromise,
    protocol_error,
)
from capnwire.rpc.descriptors cimport (
    attach_capabilities, read_exception, read_path, receive_capabilities, receive_descriptor,
)
from capnwire.rpc.layout cimport *
from capnwire.rpc.outgoing cimport send_disembargo, send_return
from capnwire.service.reference cimport (
    NO_PIPELINING, ONLY_PIPELINE, PENDING, RETURN_CONTENT, RETURN_HEADER, Call, Promise,
    QueuedReference, Reference, Waiter, broken, content_of, innermost, new_header,
)
from capnwire.service.server cimport as_remote
from capnwire.wire.arena cimport (
    Arena, BuilderArena, nesting_limit_of, new_builder_arena, open_framed,
)
from capnwire.wire.builder cimport init_struct, set_capability
from capnwire.wire.copy cimport copy_struct
from capnwire.wire.memory cimport load64
from capnwire.wire.pointer cimport pointer_count_of
from capnwire.wire.reader cimport StructRef, read_struct

from capnwire.errors import RemoteError, RemoteProtocolError

UNIMPLEMENTED_KIND = "Peer did not implement required RPC message type."
CLOSED_ANSWER = "Pipeline call on a request that returned no capabilities or was already closed."
NO_BOOTSTRAP = "This vat does not expose any public/bootstrap interfaces."
OLD_BOOTSTRAP = (
    "This vat only supports a bootstrap interface, not the old Cap'n-Proto-0.4-style named exports."
)


cdef int handle(Connection connection, bytes message) except -1:
    """One whole, framed message."""
    cdef uint64_t used
    cdef StructRef root, body
    cdef uint16_t kind
    cdef Arena arena = open_framed(
        message, <const uint8_t*>PyBytes_AS_STRING(message), PyBytes_GET_SIZE(message), None,
        connection.nesting_limit, &used,
    )
    if arena.first.words < 1 or load64(arena.first.base) == 0:
        raise protocol_error(UNIMPLEMENTED_KIND)
    read_struct(
        arena, &arena.first, arena.first.base, load64(arena.first.base), nesting_limit_of(arena),
        &root,
    )
    kind = u16(&root, 0)
    if kind <= MESSAGE_RELEASE or kind == MESSAGE_BOOTSTRAP or kind == MESSAGE_DISEMBARGO:
        read_pointed(arena, &root, 0, &body)
    if kind == MESSAGE_CALL:
        return receive_call(connection, arena, &body, <uint64_t>PyBytes_GET_SIZE(message) >> 3)
    if kind == MESSAGE_RETURN:
        return receive_return(connection, arena, &body)
    if kind == MESSAGE_FINISH:
        return receive_finish(connection, &body)
    if kind == MESSAGE_RELEASE:
        return connection.release_export(u32(&body, RELEASE_ID), u32(&body, RELEASE_COUNT))
    if kind == MESSAGE_RESOLVE:
        return receive_resolve(connection, arena, &body)
    if kind == MESSAGE_DISEMBARGO:
        return receive_disembargo(connection, arena, &body)
    if kind == MESSAGE_BOOTSTRAP:
        return receive_bootstrap(connection, &body)
    if kind == MESSAGE_ABORT:
        return connection.end(read_exception(arena, &body))
    if kind == MESSAGE_UNIMPLEMENTED:
        return receive_unimplemented(connection, arena, &body)
    return send_unimplemented(connection, arena, &root)


# ---------------------------------------------------------------- calls

cdef Answer new_answer(Connection connection, uint32_t id):
    cdef Answer answer
    if id in connection.answers:
        raise protocol_error("questionId is already in use")
    if <uint64_t>len(connection.answers) >= 2 * <uint64_t>connection.call_limit:
        raise protocol_error(
            f"call limit: {len(connection.answers)} questions are unfinished, twice what may be "
            "in flight"
        )
    answer = Answer.__new__(Answer)
    answer.connection, answer.id, answer.runtime = connection, id, connection.runtime
    connection.answers[id] = answer
    return answer


cdef Reference target_of(Connection connection, Arena arena, StructRef* holder, bint is_call):
    """The reference that a MessageTarget names."""
    cdef StructRef target, promised
    cdef uint16_t tag
    cdef Export entry
    cdef Answer answer
    read_pointed(arena, holder, 0, &target)
    tag = u16(&target, TARGET_TAG)
    if tag == 0:
        entry = connection.exports.get(u32(&target, TARGET_IMPORT))
        if entry is None:
            raise protocol_error("Message target is not a current export ID.")
        return entry.reference
    if tag != 1:
        raise protocol_error(f"unknown message target type {tag}")
    read_pointed(arena, &target, 0, &promised)
    path = read_path(arena, &promised)
    answer = connection.answers.get(u32(&promised, ANSWER_QUESTION))
    if answer is None:
        if is_call:
            return broken(RemoteError(CLOSED_ANSWER))
        raise protocol_error("Disembargo of an answer that is not there")
    if answer.no_pipelining and is_call:
        return broken(RemoteError(
            "caller specified noPromisePipelining hint, but then tried to pipeline"
        ))
    return answer.capability(path)


cdef int receive_call(
    Connection connection, Arena arena, StructRef* body, uint64_t words
) except -1:
    cdef uint32_t id = u32(body, CALL_QUESTION)
    cdef uint16_t send_to = u16(body, CALL_SEND_RESULTS_TO)
    cdef uint8_t flags = u8(body, CALL_FLAGS)
    cdef Reference target
    cdef StructRef payload
    cdef Answer answer
    cdef Call call
    cdef list table
    cdef uint8_t* place
    if send_to > SEND_TO_YOURSELF:
        raise protocol_error("Unsupported `Call.sendResultsTo`.")
    if id in connection.answers:
        raise protocol_error("questionId is already in use")
    target = target_of(connection, arena, body, True)
    read_pointed(arena, body, 1, &payload)
    table = receive_capabilities(connection, arena, &payload, None)
    place = pointer_place(&payload, 0)
    if table or (place != NULL and pointer_count_of(load64(place))):
        attach_capabilities(arena, table)
    answer = new_answer(connection, id)
    answer.redirected = send_to == SEND_TO_YOURSELF
    if answer.redirected:
        connection.peer_redirects = True
    answer.no_pipelining = (flags >> CALL_NO_PIPELINING_BIT) & 1
    answer.only_pipeline = (flags >> CALL_ONLY_PIPELINE_BIT) & 1
    if connection.draining:
        return answer.settle(None, RemoteError("this vat is shutting down", kind="DISCONNECTED"))
    if connection.calls_in >= connection.call_limit:
        return answer.settle(None, RemoteError(
            f"call limit: {connection.call_limit} calls are in flight", kind="OVERLOADED"
        ))
    if (connection.words_in + words) * 8 > connection.byte_limit and connection.words_in:
        return answer.settle(None, RemoteError(
            f"byte limit: calls in flight and results not finished take {connection.byte_limit} "
            "bytes", kind="OVERLOADED",
        ))
    answer.words = words
    connection.calls_in += 1
    connection.words_in += words
    call = Call.__new__(Call)
    call.interface_id, call.method_id = u64(body, CALL_INTERFACE), u16(body, CALL_METHOD)
    call.hints = (flags >> 1) & (NO_PIPELINING | ONLY_PIPELINE)
    call.from_wire = True
    call.arena, call.segment, call.place = arena, payload.segment, place
    call.depth = payload.depth
    call.outcome, call.runtime = answer, connection.runtime
    return target.call(call)


cdef int receive_bootstrap(Connection connection, StructRef* body) except -1:
    cdef Answer answer = new_answer(connection, u32(body, 0))
    cdef BuilderArena arena
    cdef uint8_t* place = pointer_place(body, 0)
    answer.is_bootstrap = True
    if place != NULL and load64(place):
        return answer.settle(None, RemoteError(OLD_BOOTSTRAP))
    source = connection.bootstrap_source
    if callable(source):
        try:
            source = source(connection.peer)
        except Exception as error:
            connection.runtime.report(error, "the bootstrap factory failed")
            source = broken(as_remote(error))
    if source is None:
        source = broken(RemoteError(NO_BOOTSTRAP))
    arena = new_header(RETURN_HEADER, 0)
    arena.capabilities = [<Reference?>source]
    set_capability(
        arena, &arena.root_segment.head,
        arena.root_segment.head.base + <size_t>RETURN_CONTENT * 8, 0,
    )
    return answer.settle(content_of(arena, RETURN_CONTENT), None)


cdef int receive_finish(Connection connection, StructRef* body) except -1:
    cdef Answer answer = connection.answers.get(u32(body, FINISH_QUESTION))
    cdef uint8_t flags = u8(body, FINISH_FLAGS)
    cdef bint release = not flags & (1 << FINISH_KEEP_RESULTS_BIT)
    if answer is None or answer.finished:
        return 0                 # allowed: it may cross a Return with noFinishNeeded
    answer.finished, answer.release_results = True, release
    if answer.returned:
        if release and answer.result_exports:
            connection.give_back(answer.result_exports)
        answer.result_exports = None
        if answer.state == PENDING and answer.tail is None and not answer.is_needed():
            answer.cancel_now()  # taken for a question of ours that is over
        return connection.remove_answer(answer)
    if answer.state != PENDING:  # redirected: the results wait here for nobody
        return send_return(connection, answer)
    if answer.is_needed():
        return 0
    if not flags & (1 << FINISH_NO_WORKAROUND_BIT):
        return connection.runtime.later(answer.cancel_later)
    return answer.cancel_now()


# ---------------------------------------------------------------- returns

cdef int receive_return(Connection connection, Arena arena, StructRef* body) except -1:
    cdef uint32_t id = u32(body, RETURN_ANSWER)
    cdef uint8_t flags = u8(body, RETURN_FLAGS)
    cdef uint16_t tag = u16(body, RETURN_TAG)
    cdef Question question
    cdef StructRef inner
    cdef list exports, table
    cdef Answer answer
    cdef uint8_t* place
    if id >= 0x80000000U:
        if id in connection.high_questions:
            connection.pipeline_only_ignored = True
        return 0                 # a peer that disregards onlyPromisePipeline
    question = connection.questions.get(id)
    if question is None:
        raise protocol_error("Invalid question ID in Return message.")
    if question.has_returned:
        raise protocol_error("Duplicate Return.")
    question.has_returned = True
    connection.uncount_question(question)
    question.no_finish = (flags >> RETURN_NO_FINISH_BIT) & 1
    exports, question.param_exports = question.param_exports, None
    if not flags & (1 << RETURN_KEEP_PARAMS_BIT):
        connection.give_back(exports)
    if question.finish_sent:
        if tag == RETURN_TAKE_FROM:
            take_answer(connection, u32(body, RETURN_OTHER_QUESTION))
        return connection.forget_question(question)
    if question.redirected and tag not in (RETURN_ELSEWHERE, RETURN_CANCELED):
        raise protocol_error(
            "Tail call `Return` must set `resultsSentElsewhere`, not `results` or `exception`."
        )
    if tag == RETURN_RESULTS:
        read_pointed(arena, body, 0, &inner)
        question.looping = set()
        table = receive_capabilities(connection, arena, &inner, question.looping)
        place = pointer_place(&inner, 0)
        if table or (place != NULL and pointer_count_of(load64(place))):
            attach_capabilities(arena, table)
        return question.settle(any_reader(arena, inner.segment, place, inner.depth), None)
    if tag == RETURN_EXCEPTION:
        read_pointed(arena, body, 0, &inner)
        return question.settle(None, read_exception(arena, &inner))
    if tag == RETURN_CANCELED:
        raise protocol_error("Return message falsely claims call was canceled.")
    if tag == RETURN_ELSEWHERE:
        if not question.redirected:
            raise protocol_error(
                "`Return` had `resultsSentElsewhere` but this was not a tail call."
            )
        return question.maybe_finish()
    if tag == RETURN_TAKE_FROM:
        answer = take_answer(connection, u32(body, RETURN_OTHER_QUESTION))
        question.all_loop = True
        return question.follow(answer)
    raise protocol_error("Unknown 'Return' type.")


cdef Answer take_answer(Connection connection, uint32_t id):
    """The answer whose results the peer wants for a question of ours; it is told they left."""
    cdef Answer answer = connection.answers.get(id)
    if answer is None:
        raise protocol_error("`Return.takeFromOtherQuestion` had invalid answer ID.")
    if not answer.redirected or answer.taken:
        raise protocol_error(
            "`Return.takeFromOtherQuestion` referenced a call that did not use "
            "`sendResultsTo.yourself`."
        )
    answer.taken = True
    answer.returned = True       # but in flight until its method ends
    connection.outbox.put_return(id, RETURN_ELSEWHERE, 0)
    if answer.finished:
        connection.remove_answer(answer)
    return answer


# ---------------------------------------------------------------- promises

cdef int receive_resolve(Connection connection, Arena arena, StructRef* body) except -1:
    cdef Import entry = connection.imports.get(u32(body, RESOLVE_PROMISE))
    cdef uint16_t tag = u16(body, RESOLVE_TAG)
    cdef StructRef inner
    cdef bint loops = False
    cdef Reference target
    cdef RemotePromise promise
    read_pointed(arena, body, 0, &inner)
    if tag == 0:
        if u16(&inner, DESCRIPTOR_TAG) == CAP_NONE:
            raise protocol_error("'Resolve' contained 'CapDescriptor.none'.")
        if entry is not None and not entry.is_promise:
            raise protocol_error("Got 'Resolve' for a non-promise import.")
        if (
            entry is not None and not entry.resolved
            and u32(&inner, DESCRIPTOR_ID) == entry.id
            and u16(&inner, DESCRIPTOR_TAG) in (CAP_SENDER_PROMISE, CAP_SENDER_HOSTED)
        ):
            raise protocol_error(f"'Resolve' of promise {entry.id} to itself.")
        target = receive_descriptor(connection, arena, &inner, &loops)
    elif tag == 1:
        target = connection.broken_here(read_exception(arena, &inner))
    else:
        raise protocol_error("Unknown 'Resolve' type.")
    if entry is None:
        return 0                 # released before; the new capability is dropped with `target`
    if not entry.is_promise:
        raise protocol_error("Got 'Resolve' for a non-promise import.")
    if entry.resolved:
        return 0
    entry.resolved = True
    promise = None if entry.promise is None else entry.promise()
    if promise is None:
        return 0
    return promise.become(target, loops)


@cython.final
cdef class Loopback(Waiter):
    """A Disembargo that waits until its target has resolved."""

    cdef Connection connection
    cdef uint32_t id

    cdef int promise_resolved(self, Promise promise, Reference target) except -1:
        self.connection.loopbacks.discard(self)
        try:
            return loop_back(self.connection, target, self.id)
        except RemoteProtocolError as error:
            return self.connection.abort_with(str(error))


cdef int loop_back(Connection connection, Reference target, uint32_t id) except -1:
    """Answer a senderLoopback once its target points back to the sender."""
    cdef Reference end = innermost(target)
    cdef Loopback waiter
    if isinstance(end, RemotePromise) and (<RemotePromise>end).connection is connection:
        end = (<RemotePromise>end).raw
    if isinstance(end, ImportReference) and (<ImportReference>end).connection is connection:
        return send_disembargo(connection, end, 1, id)
    if isinstance(end, AnswerReference) and (<AnswerReference>end).connection is connection:
        return send_disembargo(connection, end, 1, id)
    if isinstance(end, Promise):
        if <uint32_t>len(connection.loopbacks) >= connection.call_limit:
            raise protocol_error(f"call limit: {len(connection.loopbacks)} Disembargoes wait")
        waiter = Loopback.__new__(Loopback)
        waiter.connection, waiter.id = connection, id
        connection.loopbacks.add(waiter)
        return (<Promise>end).wait(waiter)
    raise protocol_error(
        "'Disembargo' of type 'senderLoopback' sent to an object that does not point back to the "
        "sender."
    )


cdef int receive_disembargo(Connection connection, Arena arena, StructRef* body) except -1:
    cdef uint16_t tag = u16(body, DISEMBARGO_TAG)
    cdef uint32_t id = u32(body, DISEMBARGO_ID)
    if tag == 0:
        return loop_back(connection, target_of(connection, arena, body, False), id)
    if tag == 1:
        found = connection.embargoes.remove(id)
        if found is None:
            raise protocol_error("Invalid embargo ID in 'Disembargo.context.receiverLoopback'.")
        embargo, target = found
        return (<QueuedReference>embargo).resolve(<Reference>target)
    raise protocol_error("Unimplemented Disembargo type.")


# ---------------------------------------------------------------- unimplemented

cdef int send_unimplemented(Connection connection, Arena arena, StructRef* root) except -1:
    """Send a message of an unknown kind back."""
    cdef BuilderArena answer = new_builder_arena(64)
    cdef StructRef message
    init_struct(
        answer, &answer.root_segment.head, answer.root_segment.head.base, 1, 1, &message
    )
    copy_struct(answer, message.segment, message.data + 8, arena, root)
    return connection.put(answer)


cdef int receive_unimplemented(Connection connection, Arena arena, StructRef* message) except -1:
    """The peer did not know a message of ours."""
    cdef uint16_t kind = u16(message, 0), tag
    cdef StructRef body, inner, third
    cdef Question question
    read_pointed(arena, message, 0, &body)
    if kind == MESSAGE_RESOLVE and message.pointers:
        if u16(&body, RESOLVE_TAG) != 0:
            return 0
        read_pointed(arena, &body, 0, &inner)
        tag = u16(&inner, DESCRIPTOR_TAG)
        if tag == CAP_SENDER_HOSTED or tag == CAP_SENDER_PROMISE:
            return connection.release_export(u32(&inner, DESCRIPTOR_ID), 1)
        if tag == CAP_THIRD_PARTY:
            read_pointed(arena, &inner, 0, &third)
            return connection.release_export(u32(&third, VINE_ID), 1)
        return 0
    if kind == MESSAGE_RETURN and message.pointers:
        return 0
    if kind == MESSAGE_CALL and message.pointers:
        question = connection.questions.get(u32(&body, CALL_QUESTION))
        if question is None or question.has_returned:
            return 0
        return call_unimplemented(connection, question)
    raise protocol_error(UNIMPLEMENTED_KIND)


cdef int call_unimplemented(Connection connection, Question question) except -1:
    """A peer that cannot do what a call asked for: it has kept nothing of it."""
    question.has_returned = question.no_finish = True
    connection.uncount_question(question)
    connection.give_back(question.param_exports)
    question.param_exports = None
    if question.redirected:
        connection.tail_calls = False
    if question.finish_sent:
        return connection.forget_question(question)
    return question.settle(None, RemoteError(
        "the peer does not implement this kind of call", kind="UNIMPLEMENTED"
    ))
