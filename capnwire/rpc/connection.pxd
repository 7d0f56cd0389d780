"""The two-party connection: its tables, references to the other vat, and what arrives."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from capnwire._any cimport AnyPointerReader
from capnwire.rpc.outbox cimport Outbox
from capnwire.rpc.tables cimport IdTable
from capnwire.service.reference cimport (
    Call, Outcome, Promise, QueuedReference, Reference, Runtime, Waiter,
)
from capnwire.wire.arena cimport Arena, BuilderArena, Segment
from capnwire.wire.framing cimport FrameDecoder
from capnwire.wire.reader cimport StructRef


cdef class Question(Outcome):
    """A question of ours; its id is taken until Return has come and Finish is sent."""

    cdef Connection connection
    cdef readonly uint32_t id
    cdef bint registered
    cdef bint has_returned
    cdef bint finish_sent
    cdef bint no_finish              # the callee has forgotten it already
    cdef bint redirected             # sent with `sendResultsTo.yourself`
    cdef bint no_pipelining
    cdef bint only_pipeline
    cdef uint32_t holders            # AnswerReferences that are alive
    cdef list param_exports          # ids that the parameters mention
    cdef dict promises               # path -> weak reference to a RemotePromise
    cdef set used_paths
    cdef set looping                 # capabilities in the results that live on this side
    cdef bint all_loop               # the results are those of an answer of ours
    cdef uint64_t words              # of the Call
    cdef bint counted                # as one of the calls in flight
    cdef uint64_t sent_chunk         # where the Call is while it waits to be written
    cdef size_t sent_at
    cdef Answer tail_of              # the answer that takes its results from this question
    cdef bint tail_ended

    cdef int maybe_finish(self) except -1
    cdef bint loops(self, Reference target)
    cdef int hold(self, object holder) except -1
    cdef int finish(self, bint release_results) except -1


cdef class Answer(Outcome):
    """A question of the peer's."""

    cdef Connection connection
    cdef readonly uint32_t id
    cdef bint returned
    cdef bint finished
    cdef bint redirected             # its results stay here until they are asked for
    cdef bint taken
    cdef bint no_pipelining
    cdef bint only_pipeline
    cdef bint is_bootstrap
    cdef bint release_results
    cdef Question tail               # its results are those of a question to the same peer
    cdef list result_exports
    cdef uint64_t kept_words         # of results that stay here until Finish
    cdef dict early                  # promises that were given out before the Return
    cdef uint32_t places             # of the results, named by the peer before the Return
    cdef bint stopping               # its method was cancelled, and has not ended
    cdef uint64_t words

    cdef Reference capability(self, bytes path)
    cdef bint is_needed(self)
    cdef int cancel_now(self) except -1


cdef class Export(Waiter):
    cdef Connection connection
    cdef readonly uint32_t id
    cdef readonly uint32_t count     # references that the peer holds
    cdef readonly Reference reference
    cdef bint canonical              # `reference` is described by this id


cdef class Import:
    cdef readonly uint32_t id
    cdef readonly uint32_t count     # references received and not given back
    cdef object reference            # weak, of the ImportReference
    cdef object promise              # weak, of the RemotePromise, or None
    cdef bint is_promise
    cdef bint resolved


cdef class ImportReference(Reference):
    """An object that the peer exports."""

    cdef Connection connection
    cdef readonly uint32_t id


cdef class AnswerReference(Reference):
    """A capability in an answer that the peer is to give."""

    cdef Connection connection
    cdef Question question
    cdef bytes path


cdef class RemotePromise(Promise):
    """A promise of the peer's: calls go to `raw` until it resolves."""

    cdef Connection connection
    cdef Reference raw
    cdef bint used

    cdef int become(self, Reference target, bint loops) except -1
    cdef int mark_used(self) except -1


cdef class Connection:
    cdef readonly Runtime runtime
    cdef public object peer
    cdef object owner                # the session: wake(), closed(error)
    cdef object bootstrap_source     # Reference, or a function of the peer that gives one
    cdef Outbox outbox
    cdef FrameDecoder decoder
    cdef IdTable questions
    cdef dict high_questions
    cdef uint32_t next_high
    cdef dict answers
    cdef IdTable exports
    cdef dict exports_by             # reference -> Export
    cdef dict imports
    cdef IdTable embargoes
    cdef object dropped              # deque of dead weak references
    cdef object drop_hook
    cdef set tokens                  # weak references that must outlive their objects
    cdef bint send_traces
    cdef list due                    # (export id, error): Resolves that follow the current message
    cdef bint receiving
    cdef bint emptying               # data_to_send() runs: what is put out now goes with it
    cdef bint woken
    cdef readonly object error       # why it ended, or None
    cdef bint aborted
    cdef object tail_calls           # True, False, or None: once the peer has used them itself
    cdef bint peer_redirects
    cdef bint pipeline_only_ignored  # the peer returns what need not be returned
    cdef readonly bint draining
    cdef uint64_t message_words
    cdef object nesting_limit        # of what arrives; None: the default
    cdef uint32_t call_limit
    cdef uint64_t byte_limit
    cdef uint32_t export_limit
    cdef uint32_t import_limit
    cdef uint32_t calls_in           # of the peer's, and of ours that only the peer waits for
    cdef uint64_t words_in           # of those calls, and of results that answers keep
    cdef uint32_t places             # of answers that the peer calls before they are known
    cdef set loopbacks               # Disembargoes of the peer's that wait for a promise
    cdef uint64_t bytes_out          # written so far
    cdef uint64_t call_bytes         # of our calls, written or not

    cdef int output(self) except -1
    cdef int see_to_export_room(self) except -1
    cdef bint has_import_room(self)
    cdef str import_limit_text(self)
    cdef Export exporting(self, Reference reference)
    cdef Reference broken_here(self, object error)
    cdef Reference exported_as(self, Reference reference)
    cdef int register(self, Question question, uint8_t hints) except -1
    cdef int count_question(self, Question question) except -1
    cdef int uncount_question(self, Question question) except -1
    cdef int end_call(self, uint64_t words) except -1
    cdef int uncount(self, Answer answer) except -1
    cdef int count_place(self, Answer answer) except -1
    cdef int keep_results(self, Answer answer, uint64_t words) except -1
    cdef int remove_answer(self, Answer answer) except -1
    cdef int forget_question(self, Question question) except -1
    cdef int abort_with(self, str text) except -1
    cdef int put(self, BuilderArena arena) except -1
    cdef int give_back(self, list exports) except -1
    cdef int release_export(self, uint32_t id, uint32_t count) except -1
    cdef int drain_dropped(self) except -1
    cdef int end(self, object error) except -1


cdef object protocol_error(str text)
cdef object disconnected(Connection connection)
cdef Question new_question(Connection connection)
