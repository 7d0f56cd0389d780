"""Segment tables: frames around messages, written at once and read as their bytes arrive.

What the segments hold is not looked at here.  Spec: encoding.md, 1.7.
"""

cimport cython
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE,
)
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

from capnwire.wire.arena cimport Pin, pin_of
from capnwire.wire.memory cimport load32, store32
from capnwire.wire.units cimport MAX_SEGMENT_WORDS

from capnwire.errors import EncodeError, FramingError, LimitError, TruncatedError


cdef enum:
    # A count of 0xFFFFFFFF overflowed 32 bits elsewhere, the one below it the size of the table.
    FIRST_BAD_COUNT = 0xFFFFFFFEU
    KEPT_BYTES = 0x100000        # an empty queue gives back more memory than this


cdef uint64_t segment_count_of(const uint8_t* data) except 0:
    cdef uint32_t last = load32(data)
    if last >= FIRST_BAD_COUNT:
        raise FramingError(f"the segment table starts with {last:#x}, which is no segment count")
    return <uint64_t>last + 1


cdef uint64_t framed_bytes(const uint8_t* data, uint64_t size) except 0:
    """Bytes of the framed message that starts with these, as far as they tell.

    More than `size` when bytes are missing; the exact size once the table is whole.

    Raises:
        FramingError: the count of segments is impossible.
    """
    cdef uint64_t count, table, words, i
    if size < 8:
        return 8
    count = segment_count_of(data)
    table = table_bytes(count)
    if size < table:
        return table
    words = 0
    for i in range(count):
        words += load32(data + 4 + i * 4)
    return table + words * 8


# ---------------------------------------------------------------- whole messages

cdef bytes segment_table(list sizes):
    """The segment table for segments of so many bytes each.

    Raises:
        EncodeError: there are none, or a size is no whole number of words, or is too large.
    """
    cdef uint64_t count = len(sizes)
    cdef uint64_t size, i
    cdef bytes table
    cdef uint8_t* place
    if count == 0 or count >= FIRST_BAD_COUNT:
        raise EncodeError(f"a message has at least one segment, and this has {count}")
    table = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>table_bytes(count))
    place = <uint8_t*>PyBytes_AS_STRING(table)
    store32(place, <uint32_t>(count - 1))
    for i in range(count):
        size = sizes[i]
        if size & 7 or size >> 3 > MAX_SEGMENT_WORDS:
            raise EncodeError(
                f"segment {i} has {size} bytes: a segment is a whole number of words, at most "
                f"{MAX_SEGMENT_WORDS} of them"
            )
        store32(place + 4 + i * 4, <uint32_t>(size >> 3))
    if count & 1 == 0:
        store32(place + 4 + count * 4, 0)
    return table


cdef bytes frame(list segments):
    cdef list pins = [pin_of(segment) for segment in segments]
    cdef bytes table = segment_table([(<Pin>pin).view.len for pin in pins])
    cdef size_t at = PyBytes_GET_SIZE(table)
    cdef size_t size = at
    cdef Pin pin
    cdef bytes message
    cdef char* place
    for pin in pins:
        size += pin.view.len
    message = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
    place = PyBytes_AS_STRING(message)
    memcpy(place, PyBytes_AS_STRING(table), at)
    for pin in pins:
        if pin.view.len:
            memcpy(place + at, pin.view.buf, pin.view.len)
        at += pin.view.len
    return message


def segments_to_bytes(segments):
    """The framed message: the segment table and the segments, joined once.

    Raises:
        EncodeError: there is no segment, or one is no whole number of words, or is too large.
    """
    return frame(list(segments))


def expected_size(prefix, /):
    """Bytes of the framed message that starts with `prefix`, as far as `prefix` tells.

    At least 8.  Exact once `prefix` holds the whole segment table; before that, the size up to
    which bytes are needed to tell more.

    Raises:
        FramingError: the count of segments is impossible.
    """
    cdef Pin pin = pin_of(prefix)
    return framed_bytes(<const uint8_t*>pin.view.buf, <uint64_t>pin.view.len)


def message_end(buffer, start=0, /):
    """The index behind the framed message that starts at `start`.

    There is no limit here on segments or size: the buffer is all there.

    Raises:
        TruncatedError: the buffer ends before the message does.
        FramingError: the count of segments is impossible.
        IndexError: `start` is outside the buffer.
    """
    cdef Pin pin = pin_of(buffer)
    cdef uint64_t size = pin.view.len
    cdef uint64_t wanted, at
    if start < 0 or start > size:
        raise IndexError(f"start is {start}, but the buffer has {size} bytes")
    at = start
    wanted = framed_bytes(<const uint8_t*>pin.view.buf + at, size - at)
    if wanted > size - at:
        raise truncated(wanted, size - at)
    return at + wanted


cdef object truncated(uint64_t wanted, uint64_t found):
    return TruncatedError(
        f"a message of at least {wanted} bytes ends after {found}", wanted=wanted, found=found
    )


# ---------------------------------------------------------------- as bytes arrive

@cython.final
cdef class ByteQueue:
    """Bytes that arrived and were not taken yet.

    Memory follows what arrived, never what a table claims; each byte is moved a bounded number of
    times, also when they come one by one.
    """

    def __dealloc__(self):
        free(self.owned)

    cdef int append(self, object data) except -1:
        cdef Pin pin
        if self.start == self.end and PyBytes_CheckExact(data):
            self.chunk = data
            self.data = <const uint8_t*>PyBytes_AS_STRING(data)
            self.start = 0
            self.end = PyBytes_GET_SIZE(data)
            return 0
        pin = pin_of(data)
        self.reserve(pin.view.len)
        if pin.view.len:
            memcpy(self.owned + self.end, pin.view.buf, pin.view.len)
        self.end += pin.view.len
        return 0

    cdef int reserve(self, size_t more) except -1:
        """Make room for `more` bytes behind `end` in memory of our own."""
        cdef size_t size = self.end - self.start
        cdef size_t capacity = self.capacity
        cdef void* owned
        if self.chunk is None and more <= capacity - self.end:
            return 0
        # Moved to the front only when at least half of the memory has been taken: linear in all.
        if self.chunk is None and self.start >= size and more <= capacity - size:
            memmove(self.owned, self.owned + self.start, size)
            self.start = 0
            self.end = size
            return 0
        if self.chunk is None:
            size = self.end
        if more > capacity - size or capacity < size:
            capacity = max(size + more, capacity + (capacity >> 1))
            owned = realloc(self.owned, capacity)
            if owned == NULL:
                raise MemoryError
            self.owned = <uint8_t*>owned
            self.capacity = capacity
        if self.chunk is not None:
            memcpy(self.owned, self.data + self.start, size)
            self.chunk = None
            self.start = 0
            self.end = size
        self.data = self.owned
        return 0

    cdef bytes take(self, size_t size):
        """The next bytes, taken out; a queue that is one such `bytes` object gives that."""
        cdef bytes taken
        if self.chunk is not None and self.start == 0 and size == self.end:
            taken = self.chunk
        else:
            taken = PyBytes_FromStringAndSize(
                <const char*>self.data + self.start, <Py_ssize_t>size
            )
        self.skip(size)
        return taken

    cdef void skip(self, size_t size) noexcept:
        """Take bytes out without giving them."""
        self.start += size
        if self.start == self.end:
            self.start = self.end = 0
            self.chunk = None
            if self.capacity > KEPT_BYTES:
                free(self.owned)
                self.owned = NULL
                self.capacity = 0
            self.data = self.owned


@cython.final
cdef class FrameDecoder:
    """Framed messages out of bytes that arrive in pieces; see framing.pyi."""

    def __cinit__(self, *, segment_limit=512, message_limit_words=8 * 1024 * 1024):
        self.queue = ByteQueue.__new__(ByteQueue)
        self.segment_limit = segment_limit
        self.message_limit_words = message_limit_words

    def feed(self, data, /):
        """Take bytes; nothing is decoded yet.

        A `bytes` object is kept, not copied, when no other bytes wait.

        Raises:
            ValueError: `finish()` was called before.
        """
        self.check()
        if self.finished:
            raise ValueError("no bytes can follow finish()")
        self.queue.append(data)

    def next_message(self):
        """The next whole message with its segment table, or None while bytes of it are missing.

        Raises:
            LimitError: it has more segments or more words than allowed.
            FramingError: its count of segments is impossible.
            TruncatedError: it is not whole and `finish()` was called.
        """
        self.check()
        return self.next_or_none()

    def __iter__(self):
        return self

    def __next__(self):
        self.check()
        message = self.next_or_none()
        if message is None:
            raise StopIteration
        return message

    @property
    def needed(self):
        """Bytes without which there is no next message; 0 when one is ready.

        Before the table is whole, this is what the table lacks, and more may be needed then.
        """
        cdef uint64_t wanted
        cdef uint64_t found = self.queue.end - self.queue.start
        self.check()
        wanted = self.wanted_or_fail()
        return wanted - found if wanted > found else 0

    def finish(self):
        """Say that no bytes follow; messages that are whole can still be taken.

        Raises:
            TruncatedError: the next message has begun and is not whole.
        """
        self.check()
        self.finished = True
        if self.wanted_or_fail() > self.queue.end - self.queue.start:
            self.missing()

    def close(self):
        """The same as `finish()`."""
        self.finish()

    cdef int check(self) except -1:
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        return 0

    cdef int missing(self) except -1:
        """The message at the start is not whole: that is an error once no bytes can follow."""
        cdef uint64_t found = self.queue.end - self.queue.start
        if self.finished and found:
            self.failure = truncated(self.wanted(), found)
            raise self.failure
        return 0

    cdef uint64_t wanted_or_fail(self) except 0:
        try:
            return self.wanted()
        except (FramingError, LimitError) as error:
            self.failure = error
            raise

    cdef bytes next_or_none(self):
        """The next message, or None while it is not whole."""
        cdef uint64_t wanted = self.wanted_or_fail()
        if wanted > self.queue.end - self.queue.start:
            self.missing()
            return None
        self.table_read = self.words = 0
        return self.queue.take(wanted)

    cdef uint64_t wanted(self) except 0:
        """Bytes of the message at the start of the queue, as far as the queue tells.

        Each size in the table is looked at once, however small the pieces are.

        Raises:
            LimitError: too many segments, or too many words in them.
            FramingError: the count of segments is impossible.
        """
        cdef const uint8_t* data = self.queue.data + self.queue.start
        cdef uint64_t found = self.queue.end - self.queue.start
        cdef uint64_t count, known
        if found < 8:
            return 8
        count = segment_count_of(data)
        if count > self.segment_limit:
            raise LimitError("segment_limit", limit=self.segment_limit, wanted=count)
        known = min(count, (found >> 2) - 1)
        while self.table_read < known:
            self.words += load32(data + 4 + self.table_read * 4)
            self.table_read += 1
        if self.words > self.message_limit_words:
            raise LimitError(
                "message_limit_words", limit=self.message_limit_words, wanted=self.words
            )
        return table_bytes(count) + (self.words * 8 if known == count else 0)
