"""Capabilities, targets and exceptions in messages: written and read.

Spec: rpc.capnp, CapDescriptor, MessageTarget, PromisedAnswer, Exception.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcpy

from weakref import ref as weak_reference

from capnwire.rpc.connection cimport (
    Answer, AnswerReference, Connection, Export, Import, ImportReference, RemotePromise,
    protocol_error,
)
from capnwire.rpc.layout cimport *
from capnwire.service.reference cimport BrokenReference, Promise, Reference, innermost
from capnwire.wire.arena cimport Arena, BuilderArena, Segment, SegmentTable, attach_table
from capnwire.wire.builder cimport init_list, init_struct
from capnwire.wire.memory cimport load64, store16, store32
from capnwire.wire.reader cimport BlobRef, ListRef, StructRef, read_blob, read_list, read_text
from capnwire.wire.units cimport SIZE_BYTE, SIZE_COMPOSITE, word_t

from capnwire.rpc.tables import Dropped
from capnwire.errors import RemoteError

cdef enum:
    NESTING = 64
    LONGEST_TEXT = 0x10000       # of an exception that is sent
    LONGEST_PATH = 256

KINDS = ("FAILED", "OVERLOADED", "DISCONNECTED", "UNIMPLEMENTED")
PREFIX = "remote exception: "


# ---------------------------------------------------------------- writing

cdef int write_capabilities(
    Connection connection, BuilderArena arena, uint32_t word, list table, list exported
) except -1:
    """A Payload's capTable at a word of the first segment, for the references in `table`.

    They are replaced by what was described, which calls on the message's contents must go to for
    ever: a promise that resolves later must not change the way of calls that follow earlier ones.
    """
    cdef ListRef items
    cdef uint32_t i, count = <uint32_t>len(table)
    if count == 0:
        return 0                 # a null list, not one of no elements
    init_list(
        arena, &arena.root_segment.head, arena.root_segment.head.base + <size_t>word * 8,
        SIZE_COMPOSITE, count, 1, 1, &items,
    )
    for i in range(count):
        if table[i] is not None:
            table[i] = describe(
                connection, <Reference>table[i], arena, items.segment,
                items.base + <size_t>i * 16, exported,
            )
    return 0


cdef Reference describe(
    Connection connection, Reference reference, BuilderArena arena, Segment* segment,
    uint8_t* place, list exported,
):
    """Fill the CapDescriptor at `place`; gives what was described, after all known resolutions."""
    cdef Reference found = innermost(reference)
    cdef RemotePromise promise
    cdef Export entry
    if isinstance(found, RemotePromise) and (<RemotePromise>found).connection is connection:
        promise = <RemotePromise>found
        promise.mark_used()
        found = promise.raw
    if isinstance(found, ImportReference) and (<ImportReference>found).connection is connection:
        store16(place, CAP_RECEIVER_HOSTED)
        store32(place + DESCRIPTOR_ID, (<ImportReference>found).id)
        return found
    if isinstance(found, AnswerReference) and (<AnswerReference>found).connection is connection:
        store16(place, CAP_RECEIVER_ANSWER)
        write_answer(arena, segment, place + 8, <AnswerReference>found)
        return found
    entry = connection.exporting(found)
    exported.append(entry.id)
    store16(
        place,
        CAP_SENDER_PROMISE
        if isinstance(found, Promise) or is_broken(found) else CAP_SENDER_HOSTED,
    )
    store32(place + DESCRIPTOR_ID, entry.id)
    return found


cdef bint is_broken(Reference reference):
    return isinstance(reference, BrokenReference) and not (<BrokenReference>reference).is_null


cdef int write_answer(
    BuilderArena arena, Segment* segment, uint8_t* place, AnswerReference answer
) except -1:
    """A PromisedAnswer at a pointer."""
    cdef StructRef struct
    cdef ListRef items
    cdef uint32_t i, steps = <uint32_t>(PyBytes_GET_SIZE(answer.path) >> 1)
    init_struct(arena, segment, place, 1, 1, &struct)
    store32(struct.data, answer.question.id)
    if steps:
        init_list(arena, struct.segment, struct.data + 8, SIZE_COMPOSITE, steps, 1, 0, &items)
        for i in range(steps):
            store16(items.base + <size_t>i * 8, 1)
            memcpy(
                items.base + <size_t>i * 8 + OP_INDEX, PyBytes_AS_STRING(answer.path) + i * 2, 2
            )
    return 0


cdef int write_target(
    BuilderArena arena, Segment* segment, uint8_t* place, Reference raw
) except -1:
    """Fill the MessageTarget at `place`."""
    if isinstance(raw, ImportReference):
        store32(place, (<ImportReference>raw).id)
        return 0
    store16(place + TARGET_TAG, 1)
    return write_answer(arena, segment, place + 8, <AnswerReference>raw)


cdef int write_exception(
    BuilderArena arena, Segment* segment, uint8_t* place, object error, bint with_trace
) except -1:
    """An Exception at a pointer; what is no RemoteError is told by its text only."""
    cdef StructRef struct
    cdef ListRef items
    kind = error.kind if isinstance(error, RemoteError) else "FAILED"
    details = error.details if isinstance(error, RemoteError) else ()
    init_struct(arena, segment, place, 1, 3 if details else 2, &struct)
    store16(struct.data + EXCEPTION_TYPE, KINDS.index(kind) if kind in KINDS else 0)
    write_bytes(arena, struct.segment, struct.data + 8, text_bytes(str(error)))
    if with_trace and isinstance(error, RemoteError) and error.trace:
        write_bytes(arena, struct.segment, struct.data + 16, text_bytes(error.trace))
    if details:
        init_list(
            arena, struct.segment, struct.data + 24, SIZE_COMPOSITE, len(details), 1, 1, &items
        )
        for i, (id, data) in enumerate(details):
            write_detail(arena, &items, i, id, data)
    return 0


cdef int write_detail(
    BuilderArena arena, ListRef* items, uint32_t index, uint64_t id, bytes data
) except -1:
    cdef uint8_t* place = items.base + <size_t>index * 16
    memcpy(place, &id, 8)
    return write_bytes(arena, items.segment, place + 8, data)


cdef bytes text_bytes(str text):
    """UTF-8 with its NUL; cut when it is absurdly long."""
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > LONGEST_TEXT:
        encoded = encoded[:LONGEST_TEXT].decode("utf-8", "ignore").encode()
    return encoded + b"\0"


cdef int write_bytes(
    BuilderArena arena, Segment* segment, uint8_t* place, bytes data
) except -1:
    cdef ListRef items
    init_list(arena, segment, place, SIZE_BYTE, PyBytes_GET_SIZE(data), 0, 0, &items)
    memcpy(items.base, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return 0


cdef object kept_error(Connection connection, object error):
    """What is kept of an exception that the peer may ask for again: what it gets to know.

    Not the frames of whoever raised it, which hold the parameters of a call.
    """
    text = str(error)[:LONGEST_TEXT]
    if not isinstance(error, RemoteError):
        return RemoteError(text)
    return RemoteError(
        text, kind=error.kind, trace=error.trace if connection.send_traces else "",
        details=error.details,
    )


# ---------------------------------------------------------------- reading

cdef object read_exception(Arena arena, StructRef* struct):
    """A RemoteError of an Exception that arrived."""
    cdef uint16_t kind = u16(struct, EXCEPTION_TYPE)
    reason = text_at(arena, struct, 0)
    if not reason.startswith(PREFIX):
        reason = PREFIX + reason
    return RemoteError(
        reason, kind=KINDS[kind] if kind < 4 else "FAILED", trace=text_at(arena, struct, 1),
        details=read_details(arena, struct),
    )


cdef str text_at(Arena arena, StructRef* struct, uint32_t index):
    """A Text of an exception, leniently: bad UTF-8 is replaced."""
    cdef BlobRef blob
    cdef uint8_t* place = pointer_place(struct, index)
    cdef word_t pointer = load64(place) if place != NULL else 0
    if pointer == 0:
        return ""
    read_text(arena, struct.segment, place, pointer, &blob)
    return blob.data[:blob.size].decode("utf-8", "replace")


cdef tuple read_details(Arena arena, StructRef* struct):
    """(id, bytes) of each detail that later versions of the protocol have."""
    cdef uint8_t* place = pointer_place(struct, 2)
    cdef word_t pointer = load64(place) if place != NULL else 0
    cdef ListRef items
    cdef StructRef detail
    cdef BlobRef blob
    cdef uint32_t i
    if pointer == 0:
        return ()
    read_list(arena, struct.segment, place, pointer, struct.depth, SIZE_COMPOSITE, &items)
    found = []
    for i in range(min(items.count, 64)):
        element(&items, i, &detail)
        place = pointer_place(&detail, 0)
        data = b""
        if place != NULL and load64(place):
            read_blob(arena, detail.segment, place, load64(place), "Data", &blob)
            data = blob.data[:blob.size]
        found.append((u64(&detail, 0), data))
    return tuple(found)


cdef inline void element(ListRef* items, uint32_t index, StructRef* out) noexcept:
    out.segment = items.segment
    out.data = items.base + ((<uint64_t>index * items.step) >> 3)
    out.bits, out.pointers, out.depth = items.bits, items.pointers, items.depth


cdef bytes read_path(Arena arena, StructRef* answer):
    """The pointer indices of a PromisedAnswer's transform, 16 bits each; noops are left out.

    None when there are only noops: on a bootstrap answer those are not the same as nothing.
    """
    cdef uint8_t* place = pointer_place(answer, 0)
    cdef word_t pointer = load64(place) if place != NULL else 0
    cdef ListRef items
    cdef StructRef op
    cdef uint32_t i
    cdef uint16_t tag
    cdef bytearray path
    if pointer == 0:
        return b""
    read_list(arena, answer.segment, place, pointer, answer.depth, SIZE_COMPOSITE, &items)
    if items.count > LONGEST_PATH:
        raise protocol_error(f"a transform of {items.count} steps is too long")
    path = bytearray()
    for i in range(items.count):
        element(&items, i, &op)
        tag = u16(&op, OP_TAG)
        if tag == 0:
            continue
        if tag != 1:
            raise protocol_error(f"unknown transform operation {tag}")
        path += u16(&op, OP_INDEX).to_bytes(2, "little")
    if items.count and not path:
        return None
    return bytes(path)


cdef list receive_capabilities(
    Connection connection, Arena arena, StructRef* payload, set looping
):
    """The references of a Payload's capTable; those that live on this side also go to `looping`."""
    cdef uint8_t* place = pointer_place(payload, 1)
    cdef word_t pointer = load64(place) if place != NULL else 0
    cdef ListRef items
    cdef StructRef descriptor
    cdef uint32_t i
    cdef bint loops
    cdef Reference reference
    cdef list table = []
    if pointer == 0:
        return table
    read_list(arena, payload.segment, place, pointer, payload.depth, SIZE_COMPOSITE, &items)
    if items.count > connection.import_limit:
        raise protocol_error(
            f"import limit: a message with {items.count} capabilities, "
            f"{connection.import_limit} is the most"
        )
    for i in range(items.count):
        element(&items, i, &descriptor)
        loops = False
        reference = receive_descriptor(connection, arena, &descriptor, &loops)
        table.append(reference)
        if loops and looping is not None:
            looping.add(reference)
    return table


cdef Reference receive_descriptor(
    Connection connection, Arena arena, StructRef* descriptor, bint* loops
):
    """The reference that a CapDescriptor names, None for `none`; counts what it gives.

    `loops` becomes true when it lives on this side: calls in flight may still be coming round.
    """
    cdef uint16_t tag = u16(descriptor, DESCRIPTOR_TAG)
    cdef uint32_t id = u32(descriptor, DESCRIPTOR_ID)
    cdef StructRef inner
    cdef Export entry
    cdef Answer answer
    if tag == CAP_NONE:
        return None
    if tag == CAP_SENDER_HOSTED:
        return importing(connection, id, False)
    if tag == CAP_SENDER_PROMISE:
        return importing(connection, id, True)
    if tag == CAP_RECEIVER_HOSTED:
        entry = connection.exports.get(id)
        if entry is None:
            return connection.broken_here(RemoteError("invalid 'receiverHosted' export ID"))
        loops[0] = True
        return entry.reference
    if tag == CAP_RECEIVER_ANSWER:
        read_pointed(arena, descriptor, 0, &inner)
        path = read_path(arena, &inner)
        answer = connection.answers.get(u32(&inner, ANSWER_QUESTION))
        if answer is None:
            return connection.broken_here(RemoteError("invalid 'receiverAnswer'"))
        loops[0] = True
        return answer.capability(path)
    if tag == CAP_THIRD_PARTY:
        # Level 1: the vine is as good as the object (rpc.capnp, ThirdPartyCapDescriptor).
        read_pointed(arena, descriptor, 0, &inner)
        return importing(connection, u32(&inner, VINE_ID), False)
    raise protocol_error(f"unknown CapDescriptor type {tag}")


cdef Reference importing(Connection connection, uint32_t id, bint promise):
    """The reference to an export of the peer's that was mentioned once more."""
    cdef Import entry = connection.imports.get(id)
    cdef ImportReference raw = None
    cdef RemotePromise made = None
    if entry is None:
        if not connection.has_import_room():
            raise protocol_error(connection.import_limit_text())
        entry = Import.__new__(Import)
        entry.id = id
        connection.imports[id] = entry
    if entry.count == 0xFFFFFFFFU:
        raise protocol_error(f"import {id} was mentioned too often")
    entry.count += 1
    if entry.reference is not None:
        raw = entry.reference()
    if raw is None:
        raw = ImportReference.__new__(ImportReference)
        raw.connection, raw.id, raw.runtime = connection, id, connection.runtime
        entry.reference = Dropped(raw, connection.drop_hook)
        entry.reference.owner = entry
    if not promise:
        return raw
    entry.is_promise = True
    if entry.promise is not None:
        made = entry.promise()
        if made is not None:
            return made
    if entry.resolved:
        return raw
    made = RemotePromise.__new__(RemotePromise)
    made.connection, made.raw, made.runtime = connection, raw, connection.runtime
    entry.promise = weak_reference(made)
    return made


cdef int attach_capabilities(Arena arena, list table) except -1:
    """Let the capability pointers of a message that arrived mean the references in `table`."""
    if isinstance(arena.pin, SegmentTable):
        (<SegmentTable>arena.pin).capabilities = table
    else:
        attach_table(arena, NESTING).capabilities = table
    return 0
