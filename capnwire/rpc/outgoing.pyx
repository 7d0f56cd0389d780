"""What goes to the peer: calls, returns, resolves, disembargoes.

`rpc.descriptors` has how capabilities are written, `rpc.messages` the messages' fixed parts.
Spec: rpc.capnp.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire.rpc.connection cimport (
    Answer, AnswerReference, Connection, Export, Question, RemotePromise, disconnected,
    new_question,
)
from capnwire.rpc.descriptors cimport (
    describe, kept_error, write_capabilities, write_exception, write_target,
)
from capnwire.rpc.layout cimport *
from capnwire.rpc.messages cimport (
    fill_call, fill_return, outgoing_call, outgoing_results, small_message,
)
from capnwire.service.reference cimport (
    CALL_HEADER, FAILED, NO_PIPELINING, ONLY_PIPELINE, PENDING, RETURNED, RETURN_CONTENT,
    RETURN_HEADER, BrokenReference, Call, Outcome, Reference, content_of,
    innermost, words_of,
)
from capnwire.wire.arena cimport Arena, BuilderArena, capabilities_of
from capnwire.wire.builder cimport init_struct
from capnwire.wire.memory cimport store16, store32
from capnwire.wire.reader cimport StructRef

from capnwire.errors import DecodeError, RemoteError


# ---------------------------------------------------------------- calls

cdef int send_call(
    Connection connection, Call call, uint32_t target_id, AnswerReference target
) except -1:
    """Send a call to an import, or to a capability in an answer that is to come."""
    cdef Question question
    cdef Answer answer = None
    cdef Outcome outcome = call.outcome
    cdef BuilderArena arena
    cdef uint8_t hints = call.hints
    cdef bint tail = False
    if connection.pipeline_only_ignored:
        hints &= ~<uint8_t>ONLY_PIPELINE
    if connection.error is not None:
        return outcome.settle(None, disconnected(connection))
    if target is not None and (target.question.finish_sent or target.question.no_finish):
        return outcome.settle(None, RemoteError(
            "Pipeline call on a request that returned no capabilities or was already closed."
        ))
    if isinstance(outcome, Answer):
        answer = <Answer>outcome
        tail = (
            answer.connection is connection and answer.state == PENDING
            and tail_possible(connection, answer, hints)
        )
    if (
        isinstance(outcome, Question) and (<Question>outcome).connection is connection
        and not (<Question>outcome).registered
    ):
        question = <Question>outcome
    else:
        question = new_question(connection)
    arena = call_message(connection, question, call, target_id, target)
    if arena is None:
        return 0
    ask(connection, question, call, arena, hints, tail)
    call.arena = None
    if tail:
        return tail_to(connection, answer, question)
    if question is outcome:
        return 0
    if call.hints & ONLY_PIPELINE and answer is None:
        question.hold(outcome)
        outcome.source = question
        return outcome.lead_to(question)
    return Outcome.follow(outcome, question)


cdef BuilderArena call_message(
    Connection connection, Question question, Call call, uint32_t target_id,
    AnswerReference target,
):
    """The message of a call but for its id and hints; None when the call has failed by it."""
    cdef BuilderArena arena
    cdef list exported = None
    cdef uint8_t* base
    try:
        arena = outgoing_call(call)
    except DecodeError as error:
        call.outcome.settle(None, RemoteError(str(error)))
        return None
    capabilities = arena.capabilities
    if capabilities is not None:
        exported = []
        write_capabilities(connection, arena, CALL_HEADER - 1, capabilities, exported)
    base = arena.root_segment.head.base
    if target is not None:
        write_target(arena, &arena.root_segment.head, base + 72, target)
    else:
        store32(base + 72, target_id)
    if words_of(arena) > connection.message_words:
        connection.give_back(exported)
        connection.due.clear()
        call.outcome.settle(None, RemoteError(
            f"the call takes {words_of(arena)} words, but a message has at most "
            f"{connection.message_words}"
        ))
        return None
    question.param_exports = exported
    return arena


cdef int ask(
    Connection connection, Question question, Call call, BuilderArena arena, uint8_t hints,
    bint tail,
) except -1:
    """Send the message of a call as a question."""
    cdef uint64_t table = ((arena.more_count + 3) >> 1) * 8
    connection.register(question, hints)
    fill_call(arena.root_segment.head.base, question.id, call, hints, tail)
    question.no_pipelining = hints & NO_PIPELINING and not tail
    question.redirected = tail
    question.sent_at = connection.outbox.size + table + 24
    question.sent_chunk = connection.outbox.closed
    question.words = words_of(arena)
    connection.call_bytes += table + question.words * 8
    connection.put(arena)
    if connection.outbox.closed != question.sent_chunk:
        question.sent_chunk = <uint64_t>-1
    return send_due(connection) if connection.due else 0


cdef int tail_possible(Connection connection, Answer answer, uint8_t hints) except -1:
    """Whether the peer may be asked to keep a call's results for its own question."""
    if connection.tail_calls is None:
        if not connection.peer_redirects:
            return False
    elif not connection.tail_calls:
        return False
    return not (
        answer.redirected or answer.no_pipelining or answer.only_pipeline or answer.finished
        or answer.cancelled or answer.waits_in is not None or hints
    )


cdef int tail_to(Connection connection, Answer answer, Question question) except -1:
    """The results of the peer's question are those of our question to the peer."""
    answer.tail, question.tail_of = question, answer
    answer.source = question
    answer.lead_to(question)
    answer.returned = True
    connection.uncount(answer)
    connection.count_question(question)
    connection.outbox.put_return(answer.id, RETURN_TAKE_FROM, question.id)
    return connection.output()


# ---------------------------------------------------------------- returns

cdef int send_return(Connection connection, Answer answer) except -1:
    """Answer a question of the peer's, once."""
    cdef BuilderArena arena
    cdef uint8_t* base
    cdef list exported = None
    if connection.error is not None:
        return 0
    connection.uncount(answer)
    if answer.returned:
        if answer.results is None or answer.finished:
            return 0
        return connection.keep_results(answer, words_held(answer.results.arena))
    if answer.only_pipeline and not answer.finished:
        if answer.state == RETURNED:
            strict_table(connection, answer)
            connection.keep_results(answer, words_held(answer.results.arena))
        answer.returned = True
        return 0
    if answer.finished:
        answer.returned = True
        if not answer.only_pipeline:
            connection.outbox.put_return(
                answer.id, RETURN_ELSEWHERE if answer.redirected else RETURN_CANCELED, 0
            )
        connection.remove_answer(answer)
        return connection.output()
    if answer.redirected:
        if answer.results is not None:
            connection.keep_results(answer, words_held(answer.results.arena))
        return 0
    answer.returned = True
    if answer.error is not None:
        return return_exception(connection, answer)
    try:
        arena = outgoing_results(answer.results)
    except DecodeError as error:
        answer.state, answer.error, answer.results = FAILED, RemoteError(str(error)), None
        return return_exception(connection, answer)
    capabilities = arena.capabilities
    if capabilities is not None and capabilities:
        exported = []
        write_capabilities(connection, arena, RETURN_HEADER - 1, capabilities, exported)
    if words_of(arena) > connection.message_words:
        connection.give_back(exported)
        connection.due.clear()
        answer.state, answer.results = FAILED, None
        answer.error = RemoteError(
            f"the results take {words_of(arena)} words, but a message has at most "
            f"{connection.message_words}"
        )
        return return_exception(connection, answer)
    base = arena.root_segment.head.base
    fill_return(base, answer.id)
    if answer.is_bootstrap:
        base[24 + RETURN_FLAGS] = 0          # releaseParamCaps stays true
    elif not capabilities:
        base[24 + RETURN_FLAGS] |= 1 << RETURN_NO_FINISH_BIT
    answer.result_exports = exported
    answer.results = content_of(arena, RETURN_CONTENT)
    connection.put(arena)
    if connection.due:
        send_due(connection)
    if not answer.is_bootstrap and not capabilities:
        return connection.remove_answer(answer)
    return connection.keep_results(answer, words_of(arena))


cdef uint64_t words_held(Arena arena):
    """Words that results keep: of others' messages, the first segment is what counts."""
    if isinstance(arena, BuilderArena):
        return words_of(<BuilderArena>arena)
    return arena.first.words


cdef int return_exception(Connection connection, Answer answer) except -1:
    cdef BuilderArena arena = small_message(MESSAGE_RETURN, 2, 1)
    cdef uint8_t* base = arena.root_segment.head.base
    store32(base + 24 + RETURN_ANSWER, answer.id)
    if not answer.is_bootstrap:
        base[24 + RETURN_FLAGS] = 1 << RETURN_KEEP_PARAMS_BIT
    store16(base + 24 + RETURN_TAG, RETURN_EXCEPTION)
    write_exception(
        arena, &arena.root_segment.head, base + 40, answer.error, connection.send_traces
    )
    connection.put(arena)
    return connection.keep_results(answer, words_of(arena))


cdef int strict_table(Connection connection, Answer answer) except -1:
    """What `describe` would do to the results' capabilities, for results that are not sent."""
    cdef list table = capabilities_of(answer.results.arena)
    cdef uint32_t i
    if table is not None:
        for i in range(<uint32_t>len(table)):
            if table[i] is not None:
                table[i] = strict(connection, <Reference>table[i])
    return 0


cdef Reference strict(Connection connection, Reference reference):
    cdef Reference found = innermost(reference)
    if isinstance(found, RemotePromise) and (<RemotePromise>found).connection is connection:
        (<RemotePromise>found).mark_used()
        return (<RemotePromise>found).raw
    return found


# ---------------------------------------------------------------- resolves, disembargoes

cdef int send_due(Connection connection) except -1:
    """Resolve broken capabilities that the last message introduced as promises."""
    cdef list due
    cdef Export entry
    due, connection.due = connection.due, []
    for entry in due:
        send_resolve(connection, entry, entry.reference)
    return 0


cdef int send_resolve(Connection connection, Export entry, Reference reference) except -1:
    """Tell the peer what a promise of ours has become."""
    cdef BuilderArena arena = small_message(MESSAGE_RESOLVE, 1, 1)
    cdef uint8_t* base = arena.root_segment.head.base
    cdef StructRef struct
    cdef list exported = []
    store32(base + 24 + RESOLVE_PROMISE, entry.id)
    if isinstance(reference, BrokenReference) and not (<BrokenReference>reference).is_null:
        store16(base + 24 + RESOLVE_TAG, 1)
        error = kept_error(connection, (<BrokenReference>reference).error)
        write_exception(
            arena, &arena.root_segment.head, base + 32, error, connection.send_traces
        )
        entry.reference = connection.broken_here(error)
        return connection.put(arena)
    init_struct(arena, &arena.root_segment.head, base + 32, 1, 1, &struct)
    entry.reference = describe(
        connection, reference, arena, struct.segment, struct.data, exported
    )
    connection.put(arena)
    return send_due(connection) if connection.due else 0


cdef int send_disembargo(
    Connection connection, Reference raw, uint16_t tag, uint32_t id
) except -1:
    """Send a Disembargo along the way that calls on `raw` take."""
    cdef BuilderArena arena = small_message(MESSAGE_DISEMBARGO, 1, 1)
    cdef uint8_t* base = arena.root_segment.head.base
    cdef StructRef struct
    store32(base + 24 + DISEMBARGO_ID, id)
    store16(base + 24 + DISEMBARGO_TAG, tag)
    init_struct(arena, &arena.root_segment.head, base + 32, 1, 1, &struct)
    write_target(arena, struct.segment, struct.data, raw)
    return connection.put(arena)
