"""What test_copy.py calls: the functions of copy.pyx and canonical.pyx over lists of segments."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc

from capnwire.wire.arena cimport (
    Arena, BuilderArena, Segment, SegmentTable, arena_over, new_builder_arena, segment_at,
    segment_count,
)
from capnwire.wire.builder cimport init_struct
from capnwire.wire.canonical cimport lists_equal, structs_equal
from capnwire.wire.copy cimport (
    canonical_list, canonical_struct, copy_list, copy_pointer, copy_struct, count_traversal,
    total_size,
)
from capnwire.wire.memory cimport load64, store64
from capnwire.wire.reader cimport ListRef, StructRef, read_list, read_struct


cdef Arena arena_of(list segments, object limit, uint32_t nesting, object capabilities):
    cdef bytes first = segments[0]
    cdef Arena arena = arena_over(
        first, <const uint8_t*><const char*>first, <uint32_t>(len(first) // 8), limit, None
    )
    cdef SegmentTable table = SegmentTable.__new__(SegmentTable)
    cdef bytes segment
    cdef uint32_t i
    table.segments = <Segment*>calloc(len(segments), sizeof(Segment))
    for i, segment in enumerate(segments):
        table.segments[i] = Segment(
            <uint8_t*><const char*>segment, <uint32_t>(len(segment) // 8), i
        )
    table.count = <uint32_t>len(segments)
    table.nesting_limit = nesting
    table.pin = tuple(segments)
    table.capabilities = capabilities
    arena.pin = table
    arena.first.id = (arena.first.id & ~<uint32_t>1) | <uint32_t>len(segments)
    return arena


cdef list segments_of(Arena arena):
    cdef Segment* segment
    cdef list segments = []
    cdef uint32_t i
    for i in range(segment_count(arena)):
        segment = segment_at(arena, i)
        segments.append((<const char*>segment.base)[:<Py_ssize_t>segment.words * 8])
    return segments


cdef int root_struct(Arena arena, uint32_t depth, StructRef* out) except -1:
    cdef Segment* first = segment_at(arena, 0)
    return read_struct(arena, first, first.base, load64(first.base), depth, out)


cdef int root_list(Arena arena, uint32_t depth, uint32_t wanted, ListRef* out) except -1:
    cdef Segment* first = segment_at(arena, 0)
    return read_list(arena, first, first.base, load64(first.base), depth, wanted, out)


def copied(list segments, *, limit=None, nesting=64, first_words=1024, capabilities=None,
           partial=None):
    """The segments of a copy of the root pointer; `partial` gets them also after an error."""
    source = arena_of(segments, limit, nesting, capabilities)
    target = new_builder_arena(first_words)
    cdef Segment* root = &(<BuilderArena>target).root_segment.head
    cdef Segment* first = segment_at(source, 0)
    try:
        copy_pointer(target, root, root.base, source, first, first.base, nesting)
    finally:
        if partial is not None:
            partial[:] = segments_of(target)
    return segments_of(target), (<BuilderArena>target).capabilities


def copied_struct(list segments, *, nesting=64, first_words=1024):
    source = arena_of(segments, None, nesting, None)
    target = new_builder_arena(first_words)
    cdef Segment* root = &(<BuilderArena>target).root_segment.head
    cdef StructRef struct
    root_struct(source, nesting, &struct)
    copy_struct(target, root, root.base, source, &struct)
    return segments_of(target)


def copied_list(list segments, uint32_t wanted, *, first_words=1024):
    """A copy of the root list, seen as elements of size `wanted`."""
    source = arena_of(segments, None, 64, None)
    target = new_builder_arena(first_words)
    cdef Segment* root = &(<BuilderArena>target).root_segment.head
    cdef ListRef list_ref
    root_list(source, 64, wanted, &list_ref)
    copy_list(target, root, root.base, source, &list_ref)
    return segments_of(target)


def copied_element(list segments, uint32_t index):
    """A copy of one element of the root list, seen as a list of structs."""
    source = arena_of(segments, None, 64, None)
    target = new_builder_arena(1024)
    cdef Segment* root = &(<BuilderArena>target).root_segment.head
    cdef ListRef found
    cdef StructRef struct
    root_list(source, 64, 7, &found)
    struct.segment = found.segment
    struct.data = found.base + index * (found.step >> 3)
    struct.bits = found.bits
    struct.pointers = found.pointers
    struct.depth = found.depth - 1
    copy_struct(target, root, root.base, source, &struct)
    return segments_of(target)


def copied_into_itself():
    """A root with two pointers, copied to its own second pointer."""
    arena = new_builder_arena(64)
    cdef Segment* root = &(<BuilderArena>arena).root_segment.head
    cdef StructRef parent, child
    init_struct(arena, root, root.base, 1, 2, &parent)
    store64(parent.data, 7)
    init_struct(arena, parent.segment, parent.data + 8, 1, 0, &child)
    store64(child.data, 9)
    copy_struct(arena, parent.segment, parent.data + 16, arena, &parent)
    return segments_of(arena)


def chain_copied(uint32_t links, int other=0):
    """Whether a builder's chain of so many structs is copied, measured and equal to its copy.

    The next link is pointer 0 of 2; `other` > 0 hangs an empty struct on pointer 1 of each.
    """
    arena = new_builder_arena(1024)
    target = new_builder_arena(1024)
    cdef Segment* root = &(<BuilderArena>arena).root_segment.head
    cdef Segment* copy_root = &(<BuilderArena>target).root_segment.head
    cdef Segment* segment = root
    cdef uint8_t* place = root.base
    cdef StructRef link, first, copied
    cdef uint32_t i
    cdef uint64_t words, capabilities
    for i in range(links):
        init_struct(arena, segment, place, 1, 2, &link)
        store64(link.data, i)
        if other:
            store64(link.data + 16, 0xFFFFFFFC)
        segment, place = link.segment, link.data + 8
    root_struct(arena, 1, &first)
    copy_struct(target, copy_root, copy_root.base, arena, &first)
    root_struct(target, 1, &copied)
    total_size(arena, &first, &words, &capabilities)
    return (
        structs_equal(arena, &first, target, &copied), words, capabilities,
        len(canonical_struct(arena, &first)),
    )


def size(list segments, *, limit=None, nesting=64):
    """(words, capabilities, budget spent) of the root struct."""
    arena = arena_of(segments, limit, nesting, None)
    cdef StructRef struct
    cdef uint64_t words = 0, capabilities = 0
    root_struct(arena, nesting, &struct)
    cdef int64_t before = arena.budget
    total_size(arena, &struct, &words, &capabilities)
    return words, capabilities, before - arena.budget


def equal(list left, list right, *, as_lists=False, tables=(None, None), limit=None, nesting=64):
    left_arena = arena_of(left, limit, nesting, tables[0])
    right_arena = arena_of(right, limit, nesting, tables[1])
    cdef StructRef left_struct, right_struct
    cdef ListRef left_list, right_list
    if as_lists:
        root_list(left_arena, nesting, 8, &left_list)
        root_list(right_arena, nesting, 8, &right_list)
        return lists_equal(left_arena, &left_list, right_arena, &right_list)
    root_struct(left_arena, nesting, &left_struct)
    root_struct(right_arena, nesting, &right_struct)
    return structs_equal(left_arena, &left_struct, right_arena, &right_struct)


def canonical(list segments, *, as_list=False, limit=None, nesting=64):
    arena = arena_of(segments, limit, nesting, None)
    cdef StructRef struct
    cdef ListRef found
    if as_list:
        root_list(arena, nesting, 8, &found)
        return canonical_list(arena, &found)
    root_struct(arena, nesting, &struct)
    return canonical_struct(arena, &struct)


def count(list segments, cap, *, nesting=64):
    return count_traversal(arena_of(segments, None, nesting, None), cap)
