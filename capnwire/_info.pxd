"""What a type is at run time: one record a field, one table a struct.

The same table serves attribute slots, keyword construction, `from_dict` and `to_dict`.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

# What a field is.  Up to ENUM it lives in the data section; GROUP is a view of its parent.
cdef enum:
    VOID = 0
    BOOL = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    UINT8 = 6
    UINT16 = 7
    UINT32 = 8
    UINT64 = 9
    FLOAT32 = 10
    FLOAT64 = 11
    ENUM = 12
    TEXT = 13
    DATA = 14
    STRUCT = 15
    LIST = 16
    INTERFACE = 17
    ANY_POINTER = 18
    ANY_STRUCT = 19
    ANY_LIST = 20
    GROUP = 21

cdef enum:
    IS_UNION_MEMBER = 1
    KEEPS_BYTES = 2                # Text need not be UTF-8: PEP 383's surrogates stand for bytes


cdef struct Field:
    uint8_t kind
    uint8_t flags
    uint16_t discriminant
    uint32_t offset                # bits into the data section, or index of the pointer
    uint32_t discriminant_offset   # bits; only for union members
    uint32_t index                 # position in the struct's table
    uint64_t mask                  # XORed onto the stored bits: the default
    PyObject* name                 # interned str; borrowed from StructInfo.keep, like the others
    PyObject* sub                  # StructInfo, EnumInfo, ListInfo or InterfaceInfo, or NULL
    PyObject* default              # Arena over the default of a pointer field, or NULL
    PyObject* owner                # the StructInfo


cdef class Face:
    """What the types of one API have of their own; a registry without one makes native types."""

    cdef readonly object struct_reader   # base classes of the struct types
    cdef readonly object struct_builder
    cdef readonly object list_reader     # the classes of lists and enum values
    cdef readonly object list_builder
    cdef readonly object enum_value
    cdef readonly frozenset reader_taken  # field names that stay the base classes' attributes
    cdef readonly frozenset builder_taken
    cdef object completed                # callable(info), once its types are made
    cdef void* get_reader                # the slots of fields, as get_reader_field and the others
    cdef void* get_builder
    cdef void* set_builder
    cdef void* get_taken                 # the getter of a field whose name is taken


cdef class EnumInfo:
    cdef readonly str name
    cdef readonly object node
    cdef readonly tuple values           # EnumValue by number
    cdef readonly dict by_name           # name -> EnumValue
    cdef readonly object type            # the namespace that users see
    cdef public object scope             # (registry, key), as a StructInfo's
    cdef object value_class              # EnumValue or a face's subclass of it


cdef class EnumValue:
    cdef readonly EnumInfo info
    cdef readonly uint32_t raw
    cdef readonly object name            # None when the schema has no name for it


cdef class InterfaceInfo:
    cdef readonly str name
    cdef readonly object node
    cdef readonly object scope           # what made this info: the registry's entry
    cdef public object type
    cdef public object client            # the class of clients, once the service layer made it
    cdef public object server            # the base class of servers, likewise


cdef class ListInfo:
    cdef Field element                   # kind and sub of the elements; offset 0, no mask
    cdef uint8_t element_size
    cdef readonly object element_info    # StructInfo, EnumInfo, ListInfo, InterfaceInfo or None
    cdef readonly str element_kind
    cdef PyObject* reader_type           # the face's list classes; NULL: the native ones
    cdef PyObject* builder_type


cdef class StructInfo:
    cdef Field* fields
    cdef Field** plain                   # fields outside the union, in order
    cdef Field** members                 # union members by discriminant
    cdef PyObject* reader_type           # borrowed from `Reader`, `Builder`; NULL until completed
    cdef PyObject* builder_type
    cdef uint32_t count
    cdef uint32_t plain_count
    cdef uint32_t member_count
    cdef uint32_t discriminant_offset    # bits
    cdef readonly uint16_t data_words
    cdef readonly uint16_t pointer_count
    cdef readonly bint is_group
    cdef readonly str name
    cdef readonly object node
    cdef readonly object scope           # what made this info: the registry's entry
    cdef readonly dict by_name           # name -> index into fields
    cdef readonly tuple member_names
    cdef readonly object type            # `Person`
    cdef readonly object Reader
    cdef readonly object Builder
    cdef object completer                # callable(info): fills the table on first use
    cdef readonly Face face              # None: the native types
    cdef public object face_data         # the face's own
    cdef list keep


cdef int complete(StructInfo info) except -1
cdef Field* find_field(StructInfo info, object name) except NULL
cdef StructInfo info_of_type(object type)
cdef object unknown_union(StructInfo info, uint32_t discriminant)
cdef object wrong_member(Field* field, uint32_t discriminant)
cdef int disallow(object type) except -1
