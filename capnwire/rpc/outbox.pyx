"""Bytes to send: frames one after the other in one buffer, large segments beside it uncopied.

Spec: rpc.capnp; encoding.md, Framing.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from capnwire.rpc.layout cimport (
    FINISH_FLAGS, MESSAGE_BOOTSTRAP, MESSAGE_FINISH, MESSAGE_RELEASE, MESSAGE_RETURN,
)
from capnwire.wire.arena cimport BuilderArena, BuilderSegment, builder_segment
from capnwire.wire.memory cimport store16, store32, store64
from capnwire.wire.pointer cimport struct_shape

cdef enum:
    IN_PLACE_BYTES = 0x4000          # segments at least this large are not copied
    KEPT_BYTES = 0x40000


@cython.final
cdef class SegmentView:
    """A segment of a message that was sent, as a buffer."""

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        self.shape[0] = self.size
        buffer.buf = self.base
        buffer.obj = self
        buffer.len = self.size
        buffer.itemsize = 1
        buffer.readonly = 1
        buffer.ndim = 1
        buffer.format = b"B"
        buffer.shape = self.shape
        buffer.strides = &buffer.itemsize
        buffer.suboffsets = NULL
        buffer.internal = NULL

    def __releasebuffer__(self, Py_buffer* buffer):
        pass


@cython.final
cdef class Outbox:
    """Frames that wait to be written."""

    def __cinit__(self):
        self.chunks = []

    def __dealloc__(self):
        free(self.data)

    cdef uint8_t* more(self, size_t size) except NULL:
        """Room for `size` bytes, counted as written."""
        cdef size_t capacity = self.capacity
        cdef uint8_t* data
        if size > capacity - self.size:
            capacity = max(self.size + size, capacity * 2, <size_t>4096)
            data = <uint8_t*>realloc(self.data, capacity)
            if data == NULL:
                raise MemoryError
            self.data, self.capacity = data, capacity
        self.size += size
        self.waiting += size
        return self.data + self.size - size

    cdef int close_chunk(self) except -1:
        if self.size:
            self.chunks.append(PyBytes_FromStringAndSize(<char*>self.data, self.size))
            self.size = 0
            self.closed += 1
        return 0

    cdef list take(self):
        """Everything, as buffers in order; then the outbox is empty."""
        cdef list chunks
        self.close_chunk()
        chunks, self.chunks = self.chunks, []
        self.waiting = 0
        if self.capacity > KEPT_BYTES:
            free(self.data)
            self.data, self.capacity = NULL, 0
        return chunks

    cdef int put(self, BuilderArena arena) except -1:
        """A whole message, framed."""
        cdef uint32_t count = arena.more_count + 1, i
        cdef size_t table = ((count + 2) >> 1) * 8
        cdef size_t size
        cdef uint8_t* place = self.more(table)
        cdef BuilderSegment* segment
        cdef SegmentView view
        store32(place, count - 1)
        if (count & 1) == 0:
            store32(place + table - 4, 0)
        for i in range(count):
            store32(place + 4 + <size_t>i * 4, builder_segment(arena, i).head.words)
        for i in range(count):
            segment = builder_segment(arena, i)
            size = <size_t>segment.head.words * 8
            if size >= IN_PLACE_BYTES:
                self.close_chunk()
                view = SegmentView.__new__(SegmentView)
                view.arena, view.base, view.size = arena, segment.head.base, size
                self.chunks.append(memoryview(view))
                self.waiting += size
            elif size:
                memcpy(self.more(size), segment.head.base, size)
        return 0

    cdef uint8_t* head(
        self, uint32_t words, uint16_t kind, uint32_t data, uint32_t pointers
    ) except NULL:
        """One segment with a Message whose body is a struct; gives the body."""
        cdef uint8_t* place = self.more(8 + <size_t>words * 8)
        memset(place, 0, 8 + <size_t>words * 8)
        store32(place + 4, words)
        store64(place + 8, struct_shape(1, 1))
        store16(place + 16, kind)
        store64(place + 24, struct_shape(data, pointers))
        return place + 32

    cdef int put_finish(self, uint32_t question, bint release_results) except -1:
        cdef uint8_t* body = self.head(4, MESSAGE_FINISH, 1, 0)
        store32(body, question)
        body[FINISH_FLAGS] = 2 if release_results else 3
        return 0

    cdef int put_release(self, uint32_t id, uint32_t count) except -1:
        cdef uint8_t* body = self.head(4, MESSAGE_RELEASE, 1, 0)
        store32(body, id)
        store32(body + 4, count)
        return 0

    cdef int put_return(self, uint32_t answer, uint16_t tag, uint32_t other) except -1:
        """A Return without contents: canceled, sent elsewhere, taken from another question."""
        cdef uint8_t* body = self.head(6, MESSAGE_RETURN, 2, 1)
        store32(body, answer)
        body[4] = 1              # releaseParamCaps = false
        store16(body + 6, tag)
        store32(body + 8, other)
        return 0

    cdef int put_bootstrap(self, uint32_t question) except -1:
        cdef uint8_t* body = self.head(5, MESSAGE_BOOTSTRAP, 1, 1)
        store32(body, question)
        return 0
