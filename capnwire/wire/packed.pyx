"""Packing: zero bytes squeezed out of words, at once or as bytes arrive.

What the words mean is not looked at, but for the segment tables that tell where messages end.
Spec: encoding.md, 1.6.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from capnwire.wire.arena cimport BuilderArena, BuilderSegment, Pin, builder_segment, pin_of
from capnwire.wire.framing cimport ByteQueue, framed_bytes, segment_table, table_bytes
from capnwire.wire.memory cimport load32, load64, store64

from capnwire.errors import (
    EncodeError, FramingError, LimitError, PackingError, TruncatedError,
)


cdef extern from "Python.h":
    # Declared here by PyObject*, for bytes objects that nobody else can see yet.
    PyObject* PyBytes_FromStringAndSize(const char* source, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject** holder, Py_ssize_t size) except -1
    char* PyBytes_AS_STRING(PyObject* holder)
    void Py_XDECREF(PyObject* holder)


cdef enum:
    MAX_RUN = 255                # words behind a 00 or ff word that one count byte can name
    MAX_STEP = 8 + 8 * MAX_RUN   # bytes that one step can unpack to
    MAX_PACKED_STEP = 2 + MAX_STEP
    PACK_BLOCK = 4096            # words packed before room is looked for again


cdef int make_room(Growing* output, size_t more) except -1:
    """Room for `more` bytes; what is written already stays."""
    cdef size_t capacity
    if more <= output.capacity - output.used:
        return 0
    capacity = max(output.used + more, output.capacity + (output.capacity >> 1))
    if output.holder == NULL:
        output.holder = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>capacity)
    else:
        _PyBytes_Resize(&output.holder, <Py_ssize_t>capacity)
    output.start = <uint8_t*>PyBytes_AS_STRING(output.holder)
    output.capacity = capacity
    return 0


cdef bytes finish_output(Growing* output):
    """What was written; `output` is empty then."""
    cdef bytes written
    if output.used == 0:
        release(output)
        return b""
    if output.capacity - output.used > output.used >> 3:
        # Copied, and not shrunk in place: of a shrunk block glibc learns the wrong size, so that
        # the next one comes from fresh pages again (4 MB: 1.5 ms against 0.3).
        written = <bytes>PyBytes_FromStringAndSize(
            <char*>output.start, <Py_ssize_t>output.used
        )
        Py_XDECREF(<PyObject*>written)
    else:
        _PyBytes_Resize(&output.holder, <Py_ssize_t>output.used)
        written = <bytes>output.holder
    release(output)
    return written


cdef void release(Growing* output) noexcept:
    Py_XDECREF(output.holder)
    output[0] = Growing(NULL, NULL, 0, 0)


# ---------------------------------------------------------------- packing

cdef inline uint64_t nonzero_bytes(uint64_t word) noexcept nogil:
    """The top bit of each byte that is not zero."""
    return (((word & 0x7F7F7F7F7F7F7F7FU) + 0x7F7F7F7F7F7F7F7FU) | word) & 0x8080808080808080U


cdef inline uint64_t tag_of(uint64_t word) noexcept nogil:
    """Bit i is set when byte i is not zero."""
    return ((nonzero_bytes(word) >> 7) * 0x0102040810204080U) >> 56


cdef struct Spread:
    # How the bytes of one tag move between their places in a word and the packed bytes: first by
    # 4 places, then by 2, then by 1 (packing goes the other way).  A mask selects the bytes that
    # take part, at their place nearer to the packed bytes.
    uint64_t by_four
    uint64_t by_two
    uint64_t by_one
    uint64_t packed          # selects the packed bytes of the tag


cdef Spread spreads[256]
cdef uint8_t bits_in[256]


cdef void fill_spreads() noexcept:
    cdef uint64_t tag, place, packed, distance
    cdef Spread* spread
    for tag in range(256):
        spread = &spreads[tag]
        packed = 0
        for place in range(8):
            if not (tag >> place) & 1:
                continue
            distance = place - packed
            if distance & 4:
                spread.by_four |= <uint64_t>0xFF << (8 * packed)
            if distance & 2:
                spread.by_two |= <uint64_t>0xFF << (8 * (packed + (distance & 4)))
            if distance & 1:
                spread.by_one |= <uint64_t>0xFF << (8 * (packed + (distance & 6)))
            spread.packed |= <uint64_t>0xFF << (8 * packed)
            packed += 1
        bits_in[tag] = <uint8_t>packed


fill_spreads()


cdef inline const uint8_t* end_of_zeroes(
    const uint8_t* at, const uint8_t* end
) noexcept nogil:
    """The first word that is not zero."""
    while end - at >= 32:
        if load64(at) | load64(at + 8) | load64(at + 16) | load64(at + 24):
            break
        at += 32
    while at < end and load64(at) == 0:
        at += 8
    return at


cdef inline const uint8_t* end_of_full(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """The first word with two or more zero bytes: the reference's runs stop there."""
    cdef uint64_t zeroes
    while at < end:
        zeroes = nonzero_bytes(load64(at)) ^ 0x8080808080808080U
        if zeroes & (zeroes - 1):
            break
        at += 8
    return at


cdef inline uint64_t squeeze(uint64_t word, Spread* spread) noexcept nogil:
    """The bytes of a word that are not zero, side by side (a third of a loop's time over bytes)."""
    cdef uint64_t moved = (word >> 8) & spread.by_one
    word = (word ^ (moved << 8)) | moved
    moved = (word >> 16) & spread.by_two
    word = (word ^ (moved << 16)) | moved
    moved = (word >> 32) & spread.by_four
    return (word ^ (moved << 32)) | moved


cdef inline uint64_t spread_out(uint64_t packed, Spread* spread) noexcept nogil:
    """The word whose bytes, but for the zero ones, `packed` starts with."""
    cdef uint64_t word = packed & spread.packed
    cdef uint64_t moved = word & spread.by_four
    word = (word ^ moved) | (moved << 32)
    moved = word & spread.by_two
    word = (word ^ moved) | (moved << 16)
    moved = word & spread.by_one
    return (word ^ moved) | (moved << 8)


cdef uint8_t* pack_words(
    const uint8_t** source, const uint8_t* block_end, const uint8_t* end, uint8_t* place
) noexcept nogil:
    """Pack up to `block_end`; a run that starts before it is taken whole, up to `end`.

    Writes at most 10 bytes for each word, and 8 bytes more that do not count.
    """
    cdef const uint8_t* at = source[0]
    cdef const uint8_t* run
    cdef const uint8_t* limit
    cdef uint64_t word, tag
    while at < block_end:
        word = load64(at)
        tag = tag_of(word)
        at += 8
        place[0] = <uint8_t>tag
        place += 1
        if tag == 0:
            limit = at + min(<size_t>(end - at), <size_t>(MAX_RUN * 8))
            run = end_of_zeroes(at, limit)
            place[0] = <uint8_t>((run - at) >> 3)
            place += 1
            at = run
        elif tag == 0xFF:
            store64(place, word)
            limit = at + min(<size_t>(end - at), <size_t>(MAX_RUN * 8))
            run = end_of_full(at, limit)
            place[8] = <uint8_t>((run - at) >> 3)
            memcpy(place + 9, at, run - at)
            place += 9 + (run - at)
            at = run
        else:
            store64(place, squeeze(word, &spreads[tag]))
            place += bits_in[tag]
    source[0] = at
    return place


cdef int pack_into(Growing* output, object part) except -1:
    """Pack one write."""
    cdef Pin pin = pin_of(part)
    if pin.view.len & 7:
        raise EncodeError(f"only whole words can be packed, and {pin.view.len} bytes are not")
    return pack_bytes(output, <const uint8_t*>pin.view.buf, pin.view.len)


cdef int pack_bytes(Growing* output, const uint8_t* at, uint64_t size) except -1:
    """Pack one write: the reference never lets a run cross from one write to the next."""
    cdef const uint8_t* end = at + size
    cdef const uint8_t* block_end
    cdef uint8_t* place
    while at < end:
        block_end = at + min(<size_t>(end - at), <size_t>(PACK_BLOCK * 8))
        make_room(output, <size_t>((block_end - at) >> 3) * 10 + MAX_PACKED_STEP + 8)
        place = output.start + output.used
        with nogil:
            place = pack_words(&at, block_end, end, place)
        output.used = place - output.start
    return 0


cdef bytes pack_parts(list parts):
    cdef Growing output = Growing(NULL, NULL, 0, 0)
    try:
        for part in parts:
            pack_into(&output, part)
        return finish_output(&output)
    finally:
        release(&output)


cdef bytes pack_arena(BuilderArena arena):
    """A message that was built, packed where it lies."""
    cdef Growing output = Growing(NULL, NULL, 0, 0)
    cdef uint32_t i, count = arena.more_count + 1
    cdef BuilderSegment* segment
    sizes = [<uint64_t>builder_segment(arena, i).head.words * 8 for i in range(count)]
    try:
        pack_into(&output, segment_table(sizes))
        for i in range(count):
            segment = builder_segment(arena, i)
            pack_bytes(&output, segment.head.base, sizes[i])
        return finish_output(&output)
    finally:
        release(&output)


def pack(buffer, /):
    """The words of a buffer, packed as one write.

    Raises:
        EncodeError: the buffer is no whole number of words.
    """
    return pack_parts([buffer])


def pack_segments(segments):
    """A message, packed as the reference writes it: its table and each segment by itself.

    Raises:
        EncodeError: there is no segment, or one is no whole number of words, or is too large.
    """
    cdef list parts = list(segments)
    return pack_parts([segment_table([memoryview(part).nbytes for part in parts]), *parts])


# ---------------------------------------------------------------- unpacking

cdef enum:
    SOURCE_USED_UP = 0           # the next step is not whole, or there is none
    OUTPUT_FULL = 1              # the next step does not fit behind `place`


cdef inline bint unpack_last(Unpacking* state, uint64_t tag) noexcept nogil:
    """A word near the end of the input, reading no byte beyond it; False: it is not all there."""
    cdef const uint8_t* at = state.source + 1
    cdef uint64_t packed = 0
    if state.source_end - at < bits_in[tag]:
        return False
    memcpy(&packed, at, bits_in[tag])
    store64(state.place, spread_out(packed, &spreads[tag]))
    state.source = at + bits_in[tag]
    state.place += 8
    return True


cdef int unpack_run(Unpacking* state, uint64_t tag) noexcept nogil:
    """A 00 or ff word and its run; -1 when it was unpacked, else why not."""
    cdef const uint8_t* at = state.source + 1
    cdef size_t found = state.source_end - at
    cdef size_t size
    if tag == 0:
        if found < 1:
            return SOURCE_USED_UP
        size = <size_t>at[0] * 8 + 8
        if size > <size_t>(state.place_end - state.place):
            return OUTPUT_FULL
        memset(state.place, 0, size)
        state.source = at + 1
    else:
        if found < 9:
            return SOURCE_USED_UP
        size = <size_t>at[8] * 8 + 8
        if size > <size_t>(state.place_end - state.place):
            return OUTPUT_FULL
        if size + 1 > found:
            return SOURCE_USED_UP
        memcpy(state.place, at, 8)
        memcpy(state.place + 8, at + 9, size - 8)
        state.source = at + 1 + size
    state.place += size
    return -1


cdef int unpack_steps(Unpacking* state, bint one) noexcept nogil:
    """Unpack whole steps, or just one, until the input or the room for the output ends."""
    cdef uint64_t tag
    cdef int ended
    while state.source < state.source_end:
        tag = state.source[0]
        if tag == 0 or tag == 0xFF:
            ended = unpack_run(state, tag)
            if ended >= 0:
                return ended
        elif state.place == state.place_end:
            return OUTPUT_FULL
        elif state.source_end - state.source > 8:
            store64(state.place, spread_out(load64(state.source + 1), &spreads[tag]))
            state.source += 1 + bits_in[tag]
            state.place += 8
        elif not unpack_last(state, tag):
            return SOURCE_USED_UP
        if one:
            break
    return SOURCE_USED_UP


cdef size_t unpack_into(
    Growing* output, const uint8_t* source, size_t size, uint64_t limit, bint one
) except? 0:
    """Unpack whole steps while the output stays within `limit` bytes; the packed bytes used.

    The output's memory grows with what was unpacked, whatever the input claims.
    """
    cdef Unpacking state
    cdef int ended
    cdef size_t room
    cdef const uint8_t* first = source
    state.source = source
    state.source_end = source + size
    while True:
        room = min(limit - output.used, <uint64_t>(output.capacity - output.used)) & ~<size_t>7
        state.place = output.start + output.used
        state.place_end = state.place + room
        with nogil:
            ended = unpack_steps(&state, one)
        output.used = state.place - output.start
        if ended == SOURCE_USED_UP or limit - output.used <= output.capacity - output.used:
            return state.source - first
        make_room(output, <size_t>min(
            limit - output.used,
            <uint64_t>MAX_STEP + 4 * (state.source_end - state.source) + 3 * output.used,
        ))


def unpack(buffer, limit_bytes=None, /):
    """The words that packed bytes unpack to.

    `limit_bytes` is the most bytes to give (None: no limit): two packed bytes can make 2048.

    Raises:
        PackingError: the input ends inside a word or a run.
        LimitError: there is more than `limit_bytes`.
    """
    cdef Growing output = Growing(NULL, NULL, 0, 0)
    cdef Pin pin = pin_of(buffer)
    cdef size_t size = pin.view.len
    cdef uint64_t limit = <uint64_t>1 << 62
    cdef size_t used
    if limit_bytes is not None:
        limit = limit_bytes
    try:
        used = unpack_into(&output, <const uint8_t*>pin.view.buf, size, limit, False)
        if used < size:
            check_step(<const uint8_t*>pin.view.buf + used, size - used)
            raise LimitError(
                "limit_bytes", limit=limit,
                wanted=output.used + step_bytes(<const uint8_t*>pin.view.buf + used),
            )
        return finish_output(&output)
    finally:
        release(&output)


cdef int check_step(const uint8_t* source, size_t size) except -1:
    """Raise if the packed bytes end before the step at `source` is whole."""
    cdef uint8_t tag = source[0]
    cdef size_t wanted
    if tag == 0:
        wanted = 2
    elif tag == 0xFF:
        wanted = 10 if size < 10 else 10 + <size_t>source[9] * 8
    else:
        wanted = 1 + bits_in[tag]
    if size < wanted:
        raise PackingError(
            f"the packed bytes end after {size} of {wanted} bytes of a "
            + ("run" if tag == 0xFF and wanted > 10 else "word")
        )
    return 0


cdef size_t step_bytes(const uint8_t* source) noexcept:
    """Bytes that the whole step at `source` unpacks to."""
    if source[0] == 0:
        return <size_t>source[1] * 8 + 8
    if source[0] == 0xFF:
        return <size_t>source[9] * 8 + 8
    return 8


# ---------------------------------------------------------------- packed messages

cdef uint64_t wanted_bytes(
    Growing* message, uint64_t segment_limit, uint64_t limit_words
) except 0:
    """Bytes of the message being unpacked, as far as its table tells.

    Raises:
        LimitError: too many segments, or too many words.
        FramingError: the count of segments is impossible.
    """
    cdef uint64_t wanted = framed_bytes(message.start, message.used)
    cdef uint64_t count, table
    if message.used < 8:
        return wanted
    count = <uint64_t>load32(message.start) + 1
    if count > segment_limit:
        raise LimitError("segment_limit", limit=segment_limit, wanted=count)
    table = table_bytes(count)
    if message.used >= table and (wanted - table) >> 3 > limit_words:
        raise LimitError(
            "message_limit_words", limit=limit_words, wanted=(wanted - table) >> 3
        )
    return wanted


cdef size_t unpack_more(
    Growing* message, uint64_t* wanted, const uint8_t* source, size_t size,
    uint64_t segment_limit, uint64_t limit_words,
) except? 0:
    """Unpack into a message until it is whole or the input ends; the packed bytes used.

    While its end is not known, one step is taken at a time: a run may cross the borders inside a
    message, which tolerant readers accept, but no message's end.

    Raises:
        PackingError: a run crosses the end of the message.
    """
    cdef size_t used = 0
    cdef size_t step
    cdef uint64_t table
    while True:
        table = 8 if message.used < 8 else table_bytes(<uint64_t>load32(message.start) + 1)
        if message.used < table or wanted[0] <= table:
            wanted[0] = wanted_bytes(message, segment_limit, limit_words)
        if message.used >= wanted[0]:
            break
        if message.used >= 8 and message.used >= table:
            used += unpack_into(message, source + used, size - used, wanted[0], False)
            break
        step = unpack_into(
            message, source + used, size - used, message.used + MAX_STEP, True
        )
        if step == 0:
            return used
        used += step
    if message.used > wanted[0] or crosses(
        source + used, size - used, wanted[0] - message.used
    ):
        raise PackingError("a run of packed words crosses the end of a message")
    return used


cdef bint crosses(const uint8_t* source, size_t size, uint64_t room) noexcept:
    """Whether the next step is known to unpack to more than `room` bytes of a message."""
    if room == 0 or size < 2 or (source[0] == 0xFF and size < 10):
        return False
    return step_bytes(source) > room


cdef uint64_t least_packed(uint64_t words, const uint8_t* source, size_t size) noexcept:
    """The fewest packed bytes behind `source`, the start of a step, that can still make `words`.

    Two bytes can make 256 words, no fewer can make any; but the step that has begun says more.
    """
    cdef uint64_t step = 0       # bytes that the step lacks
    cdef uint64_t made = 0       # words that it makes
    if size:
        made = 1
        if source[0] == 0:
            step = 1
            made = MAX_RUN + 1
        elif source[0] != 0xFF:
            step = 1 + bits_in[source[0]] - size
        elif size < 10:
            step = 10 - size
        else:
            step = 10 + <uint64_t>source[9] * 8 - size
            made = 1 + <uint64_t>source[9]
    if words > made:
        step += (words - made + MAX_RUN) // (MAX_RUN + 1) * 2
    return step


def unpack_message(buffer, start=0, /, *, limit_words=8 * 1024 * 1024, segment_limit=512):
    """One framed message out of packed bytes, and the index behind it: `(message, end)`.

    Raises:
        PackingError: the input ends inside the message, or a run crosses its end.
        LimitError: it has more segments or words than allowed.
        FramingError: its count of segments is impossible.
        IndexError: `start` is outside the buffer.
    """
    cdef Growing output = Growing(NULL, NULL, 0, 0)
    cdef Pin pin = pin_of(buffer)
    cdef size_t size = pin.view.len
    cdef size_t at, used
    cdef uint64_t wanted = 8
    cdef const uint8_t* source = <const uint8_t*>pin.view.buf
    if start < 0 or start > size:
        raise IndexError(f"start is {start}, but the buffer has {size} bytes")
    at = start
    try:
        used = unpack_more(&output, &wanted, source + at, size - at, segment_limit, limit_words)
        at += used
        if output.used < wanted:
            raise PackingError(
                f"the packed bytes end after {output.used} of at least {wanted} bytes of a message"
            )
        return finish_output(&output), at
    finally:
        release(&output)


@cython.final
cdef class PackedDecoder:
    """Messages out of packed bytes that arrive in pieces; see packed.pyi."""

    def __cinit__(self, *, segment_limit=512, message_limit_words=8 * 1024 * 1024):
        self.queue = ByteQueue.__new__(ByteQueue)
        self.wanted = 8
        self.segment_limit = segment_limit
        self.message_limit_words = message_limit_words

    def __dealloc__(self):
        release(&self.message)

    def feed(self, data, /):
        """Take packed bytes; nothing is unpacked yet.

        Raises:
            ValueError: `finish()` was called before.
        """
        self.check()
        if self.finished:
            raise ValueError("no bytes can follow finish()")
        self.queue.append(data)

    def next_message(self):
        """The next whole message, unpacked and framed, or None while bytes of it are missing.

        Raises:
            LimitError: it has more segments or more words than allowed.
            FramingError: its count of segments is impossible.
            PackingError: a run crosses its end.
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
        """Packed bytes without which there is no next message; 0 when one is ready.

        A lower bound of what the message still takes: whoever reads no more than this at a time
        reads nothing beyond the message.  Exact inside a run of bytes that were left as they are.
        """
        cdef ByteQueue queue = self.queue
        self.check()
        if self.advance():
            return 0
        return least_packed(
            (self.wanted - self.message.used) >> 3, queue.data + queue.start,
            queue.end - queue.start,
        )

    @property
    def unread(self):
        """How many of the bytes that were fed are behind what was unpacked."""
        return self.queue.end - self.queue.start

    def finish(self):
        """Say that no bytes follow; messages that are whole can still be taken.

        Raises:
            TruncatedError: the next message has begun and is not whole.
        """
        self.check()
        self.finished = True
        self.advance()

    def close(self):
        """The same as `finish()`."""
        self.finish()

    cdef int check(self) except -1:
        if self.busy:
            raise RuntimeError("this decoder is in use in another thread")
        if self.failure is not None:
            raise self.failure.with_traceback(None)
        return 0

    cdef int missing(self) except -1:
        self.failure = TruncatedError(
            f"a message of at least {self.wanted} bytes ends after {self.message.used}, unpacked",
            wanted=self.wanted, found=self.message.used,
        )
        raise self.failure

    cdef bint advance(self) except -1:
        """Unpack more of the next message; whether it is whole now."""
        cdef ByteQueue queue = self.queue
        cdef size_t used
        self.busy = True
        try:
            used = unpack_more(
                &self.message, &self.wanted, queue.data + queue.start, queue.end - queue.start,
                self.segment_limit, self.message_limit_words,
            )
        except (PackingError, FramingError, LimitError) as error:
            self.failure = error
            raise
        finally:
            self.busy = False
        queue.skip(used)
        if self.message.used >= self.wanted:
            return True
        if self.finished and (self.message.used or queue.start < queue.end):
            self.missing()
        return False

    cdef bytes next_or_none(self):
        """The next message, or None while it is not whole."""
        if not self.advance():
            return None
        self.wanted = 8
        return finish_output(&self.message)
