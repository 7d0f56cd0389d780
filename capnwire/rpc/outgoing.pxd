"""What goes to the peer."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t

from capnwire.rpc.connection cimport Answer, AnswerReference, Connection, Export, Question
from capnwire.service.reference cimport Call, Reference

cdef int send_call(
    Connection connection, Call call, uint32_t target_id, AnswerReference target
) except -1
cdef int tail_possible(Connection connection, Answer answer, uint8_t hints) except -1
cdef int tail_to(Connection connection, Answer answer, Question question) except -1
cdef int send_return(Connection connection, Answer answer) except -1
cdef int send_resolve(Connection connection, Export entry, Reference reference) except -1
cdef int send_disembargo(
    Connection connection, Reference raw, uint16_t tag, uint32_t id
) except -1
