"""One connection to another vat: its four tables, what is in them, what happens at its end.

`rpc.incoming` has what arrives, `rpc.outgoing` what is sent.  Nothing here waits, reads a clock or
touches a socket.  Spec: rpc.capnp.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t

from collections import deque
from weakref import ref as weak_reference

from capnwire._any cimport AnyPointerReader
from capnwire.rpc.descriptors cimport kept_error, write_exception
from capnwire.rpc.incoming cimport handle
from capnwire.rpc.layout cimport *
from capnwire.rpc.messages cimport small_message
from capnwire.rpc.outbox cimport Outbox
from capnwire.rpc.outgoing cimport (
    send_call, send_disembargo, send_resolve, send_return, tail_possible, tail_to,
)
from capnwire.rpc.tables cimport IdTable
from capnwire.service.reference cimport (
    ONLY_PIPELINE, PENDING, RETURNED, BrokenReference, Call, Outcome, Promise, QueuedReference,
    Reference, Runtime, SwitchedReference, Waiter, broken, capability_at, innermost, new_switched,
    shared_settle,
)
from capnwire.wire.arena cimport BuilderArena
from capnwire.wire.framing cimport FrameDecoder
from capnwire.wire.memory cimport store16, store64

from capnwire.rpc.tables import Dropped
from capnwire.service.reference import CANCELLED
from capnwire.errors import (
    DecodeError, LimitError, LocalProtocolError, RemoteError, RemoteProtocolError,
)

cdef enum:
    FLUSH_BYTES = 0x10000        # more output than this does not wait for the end of the turn
    MOST_SEGMENTS = 0x10000
    HIGH_QUESTION = 0x80000000U
    HELD_HERE = 2                # references to a promise: of its answer's table and of the loop

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject* o)

PROTOCOL_CLOSED = "the connection was closed"


cdef object protocol_error(str text):
    return RemoteProtocolError(text)


cdef object disconnected(Connection connection):
    """What every use of a connection that has ended fails with."""
    return RemoteError(
        str(connection.error) if connection.error is not None else PROTOCOL_CLOSED,
        kind="DISCONNECTED",
    )


# ---------------------------------------------------------------- questions

@cython.final
cdef class Question(Outcome):
    """A question of ours."""

    cdef int settle(self, AnyPointerReader results, object error) except -1:
        cdef dict promises
        cdef RemotePromise promise
        cdef Reference target
        if self.state != PENDING:
            return 0
        promises, self.promises = self.promises, None
        if promises is not None:
            for path, weak in promises.items():
                promise = weak()
                if promise is None:
                    continue
                target = broken(error) if error is not None else capability_at(results, path)
                if target.runtime is None:
                    target.runtime = self.runtime
                promise.become(target, error is None and self.loops(target))
        shared_settle(self, results, error)
        self.looping = None
        return self.maybe_finish()

    cdef bint loops(self, Reference target):
        """Whether calls on a capability in the results may still be coming round by the peer."""
        return self.all_loop or (self.looping is not None and target in self.looping)

    cdef Reference pipeline(self, bytes path):
        cdef AnswerReference raw
        cdef RemotePromise made
        if self.state != PENDING:
            return Outcome.pipeline(self, path)
        if self.connection.error is not None:
            return self.connection.broken_here(disconnected(self.connection))
        if self.finish_sent or self.no_pipelining:
            return self.connection.broken_here(RemoteError(
                "caller specified noPromisePipelining hint, but then tried to pipeline"
                if self.no_pipelining else CANCELLED
            ))
        if self.promises is None:
            self.promises = {}
            self.used_paths = set()
        weak = self.promises.get(path)
        if weak is not None:
            made = weak()
            if made is not None:
                return made
        raw = AnswerReference.__new__(AnswerReference)
        raw.connection, raw.question, raw.path = self.connection, self, path
        raw.runtime = self.runtime
        self.hold(raw)
        made = RemotePromise.__new__(RemotePromise)
        made.connection, made.raw, made.runtime = self.connection, raw, self.runtime
        made.used = path in self.used_paths
        self.promises[path] = weak_reference(made)
        return made

    cdef Outcome followed(self):
        return None              # calls on its capabilities go to the peer

    cdef int hold(self, object holder) except -1:
        """Finish only after `holder` is gone."""
        token = Dropped(holder, self.connection.drop_hook)
        token.owner = self
        self.connection.tokens.add(token)
        self.holders += 1
        return 0

    cdef int cancel(self) except -1:
        if not self.registered:
            return Outcome.cancel(self)
        if self.state != PENDING or self.cancelled:
            return 0
        self.cancelled = True
        return self.maybe_finish()

    cdef int leave(self) except -1:
        # Capabilities of the results may still be wanted.
        return self.maybe_finish() if self.registered else Outcome.leave(self)

    cdef int maybe_finish(self) except -1:
        """Send Finish when it is due: nothing here can use the answer any more."""
        if not self.registered or self.finish_sent or self.connection.error is not None:
            return 0
        if self.no_finish and self.state != PENDING:
            return self.connection.forget_question(self)
        if self.holders:
            return 0
        if self.tail_of is not None:
            return self.finish(not self.has_returned) if self.tail_ended else 0
        if self.state != PENDING:
            return self.finish(not self.has_returned)
        if (self.reply is not None or self.sinks) and not self.cancelled:
            return 0
        if self.source is not None:      # an answer of ours, by `takeFromOtherQuestion`
            source, self.source = self.source, None
            (<Outcome>source).source_unwanted(self)
        return self.finish(True)

    cdef int finish(self, bint release_results) except -1:
        self.finish_sent = True
        self.promises = self.used_paths = None
        if not self.no_finish:
            self.connection.outbox.put_finish(self.id, release_results)
            self.connection.output()
        if self.has_returned or self.only_pipeline:
            return self.connection.forget_question(self)
        return self.connection.count_question(self)

    cdef object peer(self):
        return self.connection.peer


# ---------------------------------------------------------------- answers

@cython.final
cdef class Answer(Outcome):
    """A question of the peer's."""

    cdef int settle(self, AnyPointerReader results, object error) except -1:
        if self.state != PENDING:
            return 0
        if error is not None:
            error = kept_error(self.connection, error)
        elif self.pipelined is not None:
            self.early = dict(self.pipelined)
        return shared_settle(self, results, error)

    cdef int settled(self) except -1:
        return send_return(self.connection, self)

    cdef int follow(self, Outcome source) except -1:
        """Take the results from elsewhere: by a tail call where that is possible."""
        cdef Question question
        if self.state != PENDING:
            return 0
        if isinstance(source, Question):
            question = <Question>source
            if (
                question.connection is self.connection and question.state == PENDING
                and question.registered and not question.redirected and not question.cancelled
                and question.sent_chunk == self.connection.outbox.closed
                and not question.sinks and not is_awaited(question.reply)
                and tail_possible(self.connection, self, 0)
                and not question.only_pipeline
            ):
                store16(
                    self.connection.outbox.data + question.sent_at + CALL_SEND_RESULTS_TO,
                    SEND_TO_YOURSELF,
                )
                self.connection.outbox.data[question.sent_at + CALL_FLAGS] = 0
                question.redirected = True
                question.no_pipelining = False
                question.reply = None
                return tail_to(self.connection, self, question)
        return Outcome.follow(self, source)

    cdef Reference capability(self, bytes path):
        """What a message of the peer's means by a place in this answer."""
        cdef Reference early, strict
        cdef Reference found
        cdef SwitchedReference place
        if path is None:         # noops only
            if self.is_bootstrap:
                return broken(RemoteError("a transform on a bootstrap answer leads nowhere"))
            path = b""
        if self.state != RETURNED:
            if self.state == PENDING and (self.pipelined is None or path not in self.pipelined):
                self.connection.count_place(self)
            return self.pipeline(path)
        strict = capability_at(self.results, path)
        if isinstance(strict, Promise) and not isinstance(strict, RemotePromise):
            found = self.connection.exported_as(strict)
            if found is not None:
                strict = found
        early = None if self.early is None else self.early.get(path)
        if early is None:
            return strict
        early = innermost(early)
        if isinstance(early, SwitchedReference):
            return early
        if isinstance(early, QueuedReference) and (<QueuedReference>early).embargoed:
            # Calls that went before wait here for a Disembargo; later ones must not pass them.
            place = self.early[path] = new_switched(<Promise>early, strict)
            return place
        return strict

    cdef bint is_needed(self):
        """Whether a finished question goes on.

        It does for a question of ours that took the results, for calls that wait for a capability
        in them, and for whoever holds one: a peer may pass it on and finish its question at once.
        """
        if self.sinks:
            return True
        while self.pipelined:
            path, promise = self.pipelined.popitem()
            if is_wanted(promise, HELD_HERE - 1):
                self.pipelined[path] = promise
                return True
        return False             # and no place is looked at again

    cdef int cancel_now(self) except -1:
        """The peer has finished the question before it was answered."""
        if self.state != PENDING or self.cancelled:
            return 0
        self.cancelled = True
        task, source = self.task, self.source
        self.task = self.source = None
        self.stopping = task is not None
        self.settle(None, RemoteError(CANCELLED))
        if source is not None:
            (<Outcome>source).source_unwanted(self)
        if task is not None:
            task.cancel()
        return 0

    def cancel_later(self):
        """`cancel_now`, once the method had its chance to start."""
        if self.connection.error is None and not self.is_needed():
            self.cancel_now()

    cdef int cancel(self) except -1:
        return self.cancel_now()

    cdef int lead_to(self, Outcome source) except -1:
        Outcome.lead_to(self, source)
        return self.call_unqueued()      # calls that waited here have gone on

    cdef int method_ended(self) except -1:
        if not self.stopping:
            return 0
        self.stopping = False
        return self.connection.uncount(self)

    cdef int call_unqueued(self) except -1:
        return self.runtime.later(self.cancel_later) if self.finished else 0

    cdef object peer(self):
        return self.connection.peer


cdef bint is_wanted(object promise, Py_ssize_t held):
    """Whether calls wait in a place of an answer, or anybody has it but these holders."""
    return isinstance(promise, QueuedReference) and (
        bool((<QueuedReference>promise).queue) or Py_REFCNT(<PyObject*>promise) > held
    )


cdef bint is_awaited(object reply):
    """Whether somebody waits for a reply already."""
    return reply is not None and bool(getattr(reply, "_callbacks", None))


# ---------------------------------------------------------------- exports and imports

@cython.final
cdef class Export(Waiter):
    """One of our objects or promises that the peer knows by a number."""

    cdef int promise_resolved(self, Promise promise, Reference target) except -1:
        """The promise took a step: tell the peer, unless it is a step to a promise of our own."""
        cdef Connection connection = self.connection
        cdef Reference found = innermost(target)
        if connection.error is not None or self.count == 0:
            return 0
        if self.canonical:
            connection.exports_by.pop(self.reference, None)
            self.canonical = False
        if isinstance(found, RemotePromise) and (<RemotePromise>found).connection is connection:
            self.reference = found       # described, and thereby made strict, below
        elif isinstance(found, Promise):
            self.reference = found
            if found not in connection.exports_by:
                connection.exports_by[found] = self
                self.canonical = True
                return (<Promise>found).wait(self)
        return send_resolve(connection, self, found)


@cython.final
cdef class Import:
    """One of the peer's objects or promises that we hold."""


@cython.final
cdef class ImportReference(Reference):
    """An object that the peer exports."""

    cdef int call(self, Call call) except -1:
        return send_call(self.connection, call, self.id, None)

    cdef Outcome new_outcome(self):
        return new_question(self.connection)


@cython.final
cdef class AnswerReference(Reference):
    """A capability in an answer that the peer is to give."""

    cdef int call(self, Call call) except -1:
        return send_call(self.connection, call, 0, self)

    cdef Outcome new_outcome(self):
        return new_question(self.connection)


@cython.final
cdef class RemotePromise(Promise):
    """A promise of the peer's."""

    cdef int take(self, Call call) except -1:
        self.mark_used()
        return self.raw.call(call)

    cdef Outcome new_outcome(self):
        cdef Reference target = innermost(self)
        return new_question(self.connection) if target is self else target.new_outcome()

    cdef int mark_used(self) except -1:
        """Something went the way over the peer, and may come back by it."""
        cdef AnswerReference raw
        if not self.used:
            self.used = True
            if isinstance(self.raw, AnswerReference):
                raw = <AnswerReference>self.raw
                if raw.question.used_paths is not None:
                    raw.question.used_paths.add(raw.path)
        return 0

    cdef int become(self, Reference target, bint loops) except -1:
        """Resolve; when `target` lives on this side and calls are under way, after an embargo."""
        cdef Reference end = innermost(target)
        cdef QueuedReference embargo
        if self.target is not None:
            return 0
        if isinstance(end, BrokenReference):
            pass
        elif loops and self.used and self.connection.error is None:
            embargo = QueuedReference.__new__(QueuedReference)
            embargo.runtime, embargo.embargoed = self.runtime, True
            if not self.connection.has_import_room():
                self.runtime.later(self.connection.too_many_imports)
            send_disembargo(
                self.connection, self.raw, 0, self.connection.embargoes.add((embargo, target))
            )
            target = embargo
        elif (
            self.used and isinstance(end, RemotePromise)
            and (<RemotePromise>end).connection is self.connection
        ):
            (<RemotePromise>end).mark_used()
        Promise.resolve(self, target)
        self.raw = None
        return 0


cdef Question new_question(Connection connection):
    cdef Question made = Question.__new__(Question)
    made.connection = connection
    made.runtime = connection.runtime
    return made


# ---------------------------------------------------------------- the connection

@cython.final
cdef class Connection:
    """A two-party connection, sans I/O.

    `receive_data(bytes)` takes what arrived, `data_to_send()` gives what to write; `owner.wake()`
    says that there is output, `owner.flush()` that it should be written now, `owner.ring()` as
    `wake` from any thread, `owner.closed(error)` that it has ended.  `bootstrap` is a Reference,
    None, or a function of the peer's name that gives either.
    """

    def __cinit__(
        self, Runtime runtime, owner, *, bootstrap=None, peer=None, tail_calls=None,
        message_words=8 * 1024 * 1024, call_limit=10_000, byte_limit=256 * 1024 * 1024,
        export_limit=1_000_000, import_limit=1_000_000, send_traces=False, nesting_limit=None,
    ):
        self.runtime, self.owner, self.peer = runtime, owner, peer
        self.bootstrap_source, self.tail_calls = bootstrap, tail_calls
        self.send_traces = send_traces
        self.outbox = Outbox()
        self.decoder = FrameDecoder(
            segment_limit=MOST_SEGMENTS, message_limit_words=message_words
        )
        self.questions, self.exports, self.embargoes = IdTable(), IdTable(), IdTable()
        self.high_questions, self.answers, self.imports, self.exports_by = {}, {}, {}, {}
        self.tokens, self.loopbacks = set(), set()
        self.dropped = deque()
        self.drop_hook = self.note_dropped
        self.due = []
        self.message_words, self.byte_limit = message_words, byte_limit
        self.call_limit, self.export_limit = call_limit, export_limit
        self.import_limit, self.nesting_limit = import_limit, nesting_limit

    # ------------------------------------------------------------ what the session calls

    def receive_data(self, data):
        """Take bytes from the peer's vat; never raises for what the peer did.

        Then write `data_to_send()`.
        """
        cdef bytes message
        if self.receiving:
            raise LocalProtocolError("receive_data() runs: it cannot be entered from a method")
        if self.error is not None:
            return
        self.receiving = True
        try:
            self.decoder.queue.append(data)
            while self.error is None:
                message = self.decoder.next_or_none()
                if message is None:
                    break
                handle(self, message)
        except RemoteProtocolError as error:
            self.abort_with(str(error))
        except LimitError as error:
            self.abort_with(f"message limit: {error}")
        except DecodeError as error:
            self.abort_with(f"a message cannot be read: {error}")
        except BaseException:
            self.runtime.later(self.resume)
            raise
        finally:
            self.receiving = False

    def resume(self):
        """Go on with what has come, after a method raised KeyboardInterrupt or SystemExit."""
        self.receive_data(b"")
        self.owner.flush()

    def receive_eof(self):
        """The peer will send nothing more."""
        if self.error is None:
            self.end(RemoteError("Peer disconnected.", kind="DISCONNECTED"))

    def data_to_send(self):
        """What to write now, as a list of buffers."""
        self.woken = False
        if not self.emptying:
            self.emptying = True
            try:
                self.drain_dropped()
            finally:
                self.emptying = False
        self.bytes_out += self.outbox.waiting
        return self.outbox.take()

    @property
    def bytes_answered(self):
        """How much there was to write so far, without our own calls: what the peer has caused."""
        return self.bytes_out + self.outbox.waiting - self.call_bytes

    def bootstrap(self):
        """The reference to the peer's bootstrap object, at once.

        Raises:
            RemoteError: the connection has ended.
        """
        cdef Question question
        if self.error is not None:
            raise disconnected(self)
        question = new_question(self)
        question.id = self.questions.add(question)
        question.registered = True
        reference = question.pipeline(b"")
        self.outbox.put_bootstrap(question.id)
        self.output()
        return reference

    def abort(self, text):
        """End the connection and tell the peer why."""
        self.abort_with(text)

    def close(self, text=PROTOCOL_CLOSED):
        """End the connection: everything under way fails as disconnected."""
        if self.error is None:
            self.end(RemoteError(text, kind="DISCONNECTED"))

    def drain(self):
        """Take no new calls (they are answered `disconnected`); those that run may end."""
        self.draining = True

    @property
    def is_receiving(self):
        """Whether `receive_data` runs: a method that it called has come back here."""
        return self.receiving

    @property
    def message_limit_words(self):
        """The most words that a message may have."""
        return self.message_words

    @property
    def is_idle(self):
        """Whether no call of either side is under way."""
        return not self.calls_in and not self.questions.count and not self.high_questions

    def tables(self):
        """The ids in use: questions, answers, exports and imports with their counts, embargoes."""
        cdef Export export
        cdef Import held
        return {
            "questions": [
                (<Question>question).id
                for question in [*self.questions.values(), *self.high_questions.values()]
            ],
            "answers": sorted(self.answers),
            "exports": {
                (<Export>export).id: (<Export>export).count for export in self.exports.values()
            },
            "imports": {id: (<Import>held).count for id, held in self.imports.items()},
            "embargoes": self.embargoes.count,
        }

    def exported(self, id):
        """The reference behind one of our exports, or None."""
        cdef Export entry = self.exports.get(id)
        return None if entry is None else entry.reference

    # ------------------------------------------------------------ output

    cdef int output(self) except -1:
        """There is something to write."""
        if self.receiving or self.emptying:
            return 0
        if not self.woken:
            self.woken = True
            self.owner.wake()
        if self.outbox.waiting > FLUSH_BYTES:
            self.owner.flush()
        return 0

    cdef int put(self, BuilderArena arena) except -1:
        self.outbox.put(arena)
        return self.output()

    def note_dropped(self, weak):
        """A reference is gone: called by its finaliser, in whatever thread that runs."""
        self.dropped.append(weak)
        if not self.woken and self.error is None:
            self.woken = True
            self.owner.ring()

    cdef int drain_dropped(self) except -1:
        """Give back what was dropped since."""
        cdef Import entry
        cdef Question question
        while self.dropped:
            weak = self.dropped.popleft()
            owner = weak.owner
            if isinstance(owner, Import):
                entry = <Import>owner
                if entry.reference is weak and self.imports.get(entry.id) is entry:
                    del self.imports[entry.id]
                    if self.error is None:
                        self.outbox.put_release(entry.id, entry.count)
            else:
                question = <Question>owner
                self.tokens.discard(weak)
                question.holders -= 1
                question.maybe_finish()
        return 0

    # ------------------------------------------------------------ calls

    cdef int register(self, Question question, uint8_t hints) except -1:
        """Give a question its id; ids from 2**31 are for those whose Return is not wanted."""
        question.registered = True
        if hints & ONLY_PIPELINE:
            question.only_pipeline = True
            question.id = HIGH_QUESTION + self.next_high
            self.next_high = (self.next_high + 1) & 0x7FFFFFFF
            while question.id in self.high_questions:
                question.id = HIGH_QUESTION + self.next_high
                self.next_high = (self.next_high + 1) & 0x7FFFFFFF
            self.high_questions[question.id] = question
        else:
            question.id = self.questions.add(question)
        return 0

    cdef int forget_question(self, Question question) except -1:
        """Return has come and Finish is sent: the id is free."""
        if not question.registered:
            return 0
        question.registered = False
        if question.only_pipeline:
            self.high_questions.pop(question.id, None)
        else:
            self.questions.remove(question.id)
        return question.settle(None, RemoteError(CANCELLED)) if question.state == PENDING else 0

    cdef int count_question(self, Question question) except -1:
        """Nothing here waits for a question's Return any more, but its peer takes up room.

        It counts like a call of the peer's, which may have caused it.
        """
        if not question.counted:
            question.counted = True
            self.calls_in += 1
            self.words_in += question.words
        return 0

    cdef int uncount_question(self, Question question) except -1:
        if question.counted:
            question.counted = False
            self.end_call(question.words)
        return 0

    # ------------------------------------------------------------ returns

    cdef int uncount(self, Answer answer) except -1:
        """A call of the peer's is not in flight any more, unless its method goes on."""
        if answer.words and not answer.stopping and self.error is None:
            self.end_call(answer.words)
            answer.words = 0
        return 0

    cdef int end_call(self, uint64_t words) except -1:
        self.calls_in -= 1
        self.words_in -= words
        if self.draining and not self.calls_in:
            self.owner.wake()
        return 0

    cdef int keep_results(self, Answer answer, uint64_t words) except -1:
        """An answer's results stay here until Finish: they count like a call in flight."""
        if not answer.kept_words:
            answer.kept_words = words
            self.words_in += words
        return 0

    cdef int count_place(self, Answer answer) except -1:
        """One place more of an answer that the peer names before it is known."""
        self.see_to_export_room()
        answer.places += 1
        self.places += 1
        return 0

    cdef int remove_answer(self, Answer answer) except -1:
        """An answer's id is free."""
        if self.answers.get(answer.id) is answer:
            del self.answers[answer.id]
            self.words_in -= answer.kept_words
            self.places -= answer.places
            answer.kept_words = answer.places = 0
        answer.early = None
        if answer.pipelined is not None:
            # Results that were sent elsewhere may still be to come, and calls wait for them.
            answer.pipelined = {
                path: promise for path, promise in answer.pipelined.items()
                if is_wanted(promise, HELD_HERE)
                and (<QueuedReference>promise).maker is answer
            } if answer.state == PENDING else None
        if answer.tail is not None:
            answer.tail.tail_ended = True
            answer.tail.maybe_finish()
        return 0

    # ------------------------------------------------------------ exports

    cdef Export exporting(self, Reference reference):
        """The export entry of a local reference, with one count more."""
        cdef Export entry = self.exports_by.get(reference)
        if entry is not None:
            entry.count += 1
            return entry
        self.see_to_export_room()
        entry = Export.__new__(Export)
        entry.connection, entry.reference, entry.count = self, reference, 1
        if reference.runtime is None:
            reference.runtime = self.runtime
        entry.id = self.exports.add(entry)
        if isinstance(reference, BrokenReference) and not (<BrokenReference>reference).is_null:
            self.due.append(entry)
            return entry
        self.exports_by[reference] = entry
        entry.canonical = True
        if isinstance(reference, Promise):
            (<Promise>reference).wait(entry)
        return entry

    cdef int see_to_export_room(self) except -1:
        """One capability more will be named by the peer: end the connection if that is too many."""
        if self.places + self.exports.count >= self.export_limit:
            self.runtime.later(self.too_many_exports)
        return 0

    cdef bint has_import_room(self):
        """Whether one more capability may be held; embargoes count until they are lifted."""
        return <uint64_t>len(self.imports) + self.embargoes.count < self.import_limit

    def too_many_imports(self):
        """More capabilities are held than the limit allows."""
        self.abort_with(self.import_limit_text())

    cdef str import_limit_text(self):
        return f"import limit: more than {self.import_limit} capabilities are held"

    cdef Reference broken_here(self, object error):
        """A reference that fails every call, and can be called in this connection's loop."""
        cdef Reference made = broken(error)
        made.runtime = self.runtime
        return made

    def too_many_exports(self):
        """The peer holds more than the limit allows."""
        self.abort_with(
            f"export limit: more than {self.export_limit} capabilities are exported or pipelined"
        )

    cdef Reference exported_as(self, Reference reference):
        cdef Export entry = self.exports_by.get(reference)
        return None if entry is None else entry.reference

    cdef int release_export(self, uint32_t id, uint32_t count) except -1:
        """The peer gives back `count` references to one of our exports."""
        cdef Export entry = self.exports.get(id)
        if entry is None:
            raise protocol_error("Tried to release invalid export ID.")
        if count > entry.count:
            raise protocol_error("Tried to drop export's refcount below zero.")
        entry.count -= count
        if entry.count:
            return 0
        self.exports.remove(id)
        if entry.canonical:
            self.exports_by.pop(entry.reference, None)
        return entry.wait_no_more()

    cdef int give_back(self, list exports) except -1:
        if exports is not None:
            for id in exports:
                self.release_export(id, 1)
        return 0

    # ------------------------------------------------------------ the end

    cdef int abort_with(self, str text) except -1:
        """Send an abort and end."""
        cdef BuilderArena arena
        cdef uint8_t* base
        if self.error is not None:
            return 0
        arena = small_message(MESSAGE_ABORT, 0, 0)
        base = arena.root_segment.head.base
        store64(base + 16, 0)
        error = RemoteProtocolError(text)
        write_exception(arena, &arena.root_segment.head, base + 16, error, False)
        self.outbox.put(arena)
        self.aborted = True
        return self.end(error)

    cdef int end(self, object error) except -1:
        """Fail everything that is under way; all tables are empty afterwards."""
        cdef Question question
        cdef Answer answer
        cdef RemotePromise promise
        if self.error is not None:
            return 0
        self.error = error
        failure = disconnected(self)
        questions = [*self.questions.values(), *self.high_questions.values()]
        answers = list(self.answers.values())
        exports = self.exports.values()
        imports = list(self.imports.values())
        embargoes = self.embargoes.values()
        self.questions, self.exports, self.embargoes = IdTable(), IdTable(), IdTable()
        self.high_questions, self.answers, self.imports, self.exports_by = {}, {}, {}, {}
        waiters = [*exports, *self.loopbacks]
        self.tokens, self.loopbacks = set(), set()
        self.due = []
        for waiter in waiters:
            (<Waiter>waiter).wait_no_more()
        # Before the questions: a method that waits for one of them hears one thing only.
        for answer in answers:
            answer.cancel_now()
            answer.results, answer.early = None, None
        for question in questions:
            question.registered = False
            question.settle(None, failure)
        for found in imports:
            promise = None if (<Import>found).promise is None else (<Import>found).promise()
            if promise is not None:
                promise.become(self.broken_here(failure), False)
        for embargo, _ in embargoes:
            (<QueuedReference>embargo).resolve(self.broken_here(failure))
        self.calls_in, self.words_in = 0, 0
        self.bootstrap_source = self.decoder = None
        self.woken = True
        self.owner.closed(error)
        return 0
