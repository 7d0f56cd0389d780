"""Whole messages: the functions that other modules call."""

from libc.stdint cimport uint64_t

from capnwire._fast cimport Struct
from capnwire._info cimport StructInfo
from capnwire.wire.arena cimport Arena, BuilderArena

cdef uint64_t first_words(object words) except? 0
cdef object root_reader(StructInfo info, Arena arena)
cdef object root_builder(StructInfo info, BuilderArena arena)
cdef object new_root(StructInfo info, uint64_t words, object allocator)
cdef object copy_of_group(Struct group, StructInfo info)
cdef BuilderArena arena_of_root(Struct struct)
cdef bytes arena_bytes(BuilderArena arena)
cdef list arena_segments(BuilderArena arena)
cdef list class_functions(StructInfo info)
cdef void* type_call() noexcept
