"""Methods: arguments into parameters, values into results, built where they will be sent from."""

cimport cython
from cpython.dict cimport PyDict_Next
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t

from capnwire._any cimport AnyPointerReader
from capnwire._fast cimport Struct, check_alive, info_of
from capnwire._convert cimport ref_of
from capnwire._info cimport StructInfo, complete, find_field
from capnwire._store cimport merge, store
from capnwire.service.reference cimport (
    CALL_CONTENT, CALL_HEADER, RETURN_CONTENT, RETURN_HEADER, content_of, new_header,
)
from capnwire.wire.arena cimport BuilderArena
from capnwire.wire.builder cimport init_struct
from capnwire.wire.copy cimport copy_struct
from capnwire.wire.reader cimport StructRef


@cython.final
cdef class Method:
    """A method of an interface.

    `names` are those of the parameters and of the results, in the order of their declaration.
    """

    def __init__(
        self, str name, str interface_name, interface_id, method_id, StructInfo params,
        StructInfo results, *, bint streaming, tuple parameter_names, tuple result_names,
        bint named_params, bint results_hold_capabilities,
    ):
        self.name, self.interface_name = name, interface_name
        self.interface_id, self.method_id = interface_id, method_id
        self.params, self.results, self.streaming = params, results, streaming
        self.parameter_names, self.result_names = parameter_names, result_names
        self.named_params = named_params
        self.results_hold_capabilities = results_hold_capabilities
        self.params_words = <uint64_t>params.data_words + params.pointer_count
        self.results_words = <uint64_t>results.data_words + results.pointer_count

    def __repr__(self):
        return f"<method {self.interface_name}.{self.name}>"

    cdef BuilderArena new_params(self):
        """A message with room for a Call's header; the parameters are not there yet."""
        return new_header(CALL_HEADER, self.params_words)

    cdef int store_arguments(self, BuilderArena arena, tuple args, dict named) except -1:
        """Make the parameters from a call's arguments.

        Raises:
            TypeError: an argument is unknown, given twice, or one too many.
            EncodeError: a value does not fit.
        """
        cdef StructInfo info = self.params
        cdef StructRef struct
        cdef Py_ssize_t i, at = 0, count = len(args)
        cdef PyObject* key
        cdef PyObject* value
        cdef uint32_t guess = 0
        cdef uint8_t* place = arena.root_segment.head.base + <size_t>CALL_CONTENT * 8
        if info.reader_type == NULL:
            complete(info)
        if self.named_params and count == 1 and not named and is_params(self, args[0]):
            return store_whole(arena, place, info, args[0])
        init_struct(
            arena, &arena.root_segment.head, place, info.data_words, info.pointer_count, &struct
        )
        if count > len(self.parameter_names):
            raise TypeError(
                f"{self.interface_name}.{self.name}() takes {len(self.parameter_names)} "
                f"arguments, not {count}"
            )
        for i in range(count):
            name = self.parameter_names[i]
            if named and name in named:
                raise TypeError(f"{self.interface_name}.{self.name}() got {name!r} twice")
            item = args[i]
            store(
                arena, struct.segment, struct.data, struct.bits, find_field(info, name),
                <PyObject*>item,
            )
        if named is not None:
            while PyDict_Next(named, &at, &key, &value):
                if guess >= info.count or info.fields[guess].name != key:
                    guess = index_of(self, info, <object>key)
                _held = <object>value        # as storing may run code that takes it away
                store(
                    arena, struct.segment, struct.data, struct.bits, &info.fields[guess], value
                )
                guess += 1
        return 0

    cdef AnyPointerReader pack_results(self, object value):
        """A message with room for a Return's header whose content is `value`.

        None: nothing set; a dict by name; a tuple by position; a struct of the results' type as a
        whole; anything else is the only result.

        Raises:
            TypeError: the value has another shape than the results.
            EncodeError: something in it does not fit.
        """
        cdef StructInfo info = self.results
        cdef StructRef struct
        cdef BuilderArena arena = new_header(RETURN_HEADER, self.results_words)
        cdef uint8_t* place = arena.root_segment.head.base + <size_t>RETURN_CONTENT * 8
        cdef Py_ssize_t i
        if info.reader_type == NULL:
            complete(info)
        if isinstance(value, Struct) and info_of(value).node.id == info.node.id:
            store_whole(arena, place, info, value)
            return content_of(arena, RETURN_CONTENT)
        init_struct(
            arena, &arena.root_segment.head, place, info.data_words, info.pointer_count, &struct
        )
        if value is None:
            pass
        elif type(value) is dict:
            merge(info, arena, &struct, <PyObject*>value)
        elif type(value) is tuple:
            if len(value) != len(self.result_names):
                raise TypeError(
                    f"{self.interface_name}.{self.name} has {len(self.result_names)} results, but "
                    f"a tuple of {len(value)} was returned"
                )
            for i in range(len(self.result_names)):
                item = value[i]
                store(
                    arena, struct.segment, struct.data, struct.bits,
                    find_field(info, self.result_names[i]), <PyObject*>item,
                )
        elif len(self.result_names) == 1:
            store(
                arena, struct.segment, struct.data, struct.bits,
                find_field(info, self.result_names[0]), <PyObject*>value,
            )
        else:
            raise TypeError(
                f"{self.interface_name}.{self.name} has {len(self.result_names)} results: return "
                f"a dict, a tuple or a struct of them, not {type(value).__name__}"
            )
        return content_of(arena, RETURN_CONTENT)


cdef bint is_params(Method method, object value) except -1:
    if isinstance(value, dict):
        return True
    return isinstance(value, Struct) and info_of(value).node.id == method.params.node.id


cdef int store_whole(
    BuilderArena arena, uint8_t* place, StructInfo info, object value
) except -1:
    """The content as a copy of a struct, or from a mapping."""
    cdef StructRef struct, source
    if isinstance(value, Struct):
        check_alive(<Struct>value)
        ref_of(<Struct>value, &source)
        return copy_struct(
            arena, &arena.root_segment.head, place, (<Struct>value).arena, &source
        )
    init_struct(
        arena, &arena.root_segment.head, place, info.data_words, info.pointer_count, &struct
    )
    return merge(info, arena, &struct, <PyObject*>value)


cdef uint32_t index_of(Method method, StructInfo info, object name) except? 0xFFFFFFFF:
    found = info.by_name.get(name)
    if found is None:
        raise TypeError(
            f"{method.interface_name}.{method.name}() got an unexpected argument {name!r}"
        )
    return found
