"""The id tables of a connection: questions, exports and embargoes have the lowest free ids.

Spec: rpc.capnp, The Four Tables.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, realloc

from weakref import ref as weak_reference

cdef extern from *:
    """
    #ifdef _MSC_VER
    #include <intrin.h>
    static inline int capnwire_lowest_bit(unsigned long long w) {
        unsigned long at; _BitScanForward64(&at, w); return (int)at;
    }
    #else
    static inline int capnwire_lowest_bit(unsigned long long w) { return __builtin_ctzll(w); }
    #endif
    """
    int capnwire_lowest_bit(uint64_t word) noexcept nogil


@cython.final
cdef class IdTable:
    """Items by id; a new one gets the lowest id that is free."""

    def __cinit__(self):
        self.items = []

    def __dealloc__(self):
        free(self.used)

    cdef uint32_t add(self, object item) except? 0xFFFFFFFF:
        """Put an item in; gives its id."""
        cdef uint32_t word = self.first, id, size
        cdef uint64_t* used
        while word < self.words and self.used[word] == <uint64_t>0xFFFFFFFFFFFFFFFFU:
            word += 1
        self.first = word
        if word == self.words:
            size = self.words * 2 + 2
            used = <uint64_t*>realloc(self.used, size * sizeof(uint64_t))
            if used == NULL:
                raise MemoryError
            for id in range(self.words, size):
                used[id] = 0
            self.used, self.words = used, size
        id = word * 64 + <uint32_t>capnwire_lowest_bit(~self.used[word])
        if id < <uint32_t>len(self.items):
            self.items[id] = item
        else:
            self.items.append(item)
        self.used[word] |= <uint64_t>1 << (id & 63)
        self.count += 1
        return id

    cdef object get(self, uint32_t id):
        """The item of an id, or None."""
        return self.items[id] if id < <uint32_t>len(self.items) else None

    cdef object remove(self, uint32_t id):
        """Free an id; gives what was there, or None."""
        cdef object item
        if id >= <uint32_t>len(self.items):
            return None
        item = self.items[id]
        if item is None:
            return None
        self.items[id] = None
        self.used[id >> 6] &= ~(<uint64_t>1 << (id & 63))
        if (id >> 6) < self.first:
            self.first = id >> 6
        self.count -= 1
        return item

    cdef list values(self):
        return [item for item in self.items if item is not None]


class Dropped(weak_reference):
    """A weak reference that knows what to do once its object is gone: the entry that held it."""

    __slots__ = ("owner",)


def probe(steps):
    """For the tests: ids given by `("add", item)` and items given back by `("remove", id)`."""
    cdef IdTable table = IdTable()
    found = []
    for what, value in steps:
        found.append(table.add(value) if what == "add" else table.remove(value))
    return found, table.count
