"""The schema model: what schema.capnp's `Node` says, as plain slotted objects.

The compiler makes these, a CodeGeneratorRequest is read into them, the registry makes types from
them, and requests and stubs are written from them.  One attribute for each field of
schema.capnp, in snake_case; absent (null) lists are `None`, empty ones `[]`.  No behaviour here
beyond equality.  Spec: schema.capnp; code-generator-request.md, Null versus empty.
"""

PRIMITIVE_BITS = {
    "void": 0, "bool": 1, "int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8,
    "uint16": 16, "uint32": 32, "uint64": 64, "float32": 32, "float64": 64, "enum": 16,
}
"""Bits of a data field for each `Type.kind` that lives in the data section."""

POINTER_KINDS = ("text", "data", "list", "struct", "interface", "anyPointer")
"""The values of `Type.kind` that live in the pointer section."""

NO_DISCRIMINANT = 0xFFFF


class _Record:
    """Equality and a readable repr over `__slots__`, without the cost of importing dataclasses."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({parts})"


class Binding(_Record):
    """One bound generic parameter: a `Type`, or None for unbound."""

    __slots__ = ("type",)

    def __init__(self, type: "Type | None" = None) -> None:
        self.type = type


class BrandScope(_Record):
    """Bindings for the parameters of one generic scope; `bindings` None means `inherit`."""

    __slots__ = ("bindings", "scope_id")

    def __init__(self, scope_id: int, bindings: "list[Binding] | None") -> None:
        self.scope_id, self.bindings = scope_id, bindings


class Brand(_Record):
    """schema.capnp `Brand`: the scopes, leaf first."""

    __slots__ = ("scopes",)

    def __init__(self, scopes: "list[BrandScope]") -> None:
        self.scopes = scopes


class Type(_Record):
    """schema.capnp `Type`.

    `kind` is the union's member name: void bool int8 … float64 text data list enum struct interface
    anyPointer.  `element` is a list's element type.  `type_id` and `brand` go with enum, struct and
    interface (`brand` None = null pointer).  For anyPointer, `any_kind` is one of
    "anyKind" "struct" "list" "capability" (unconstrained), "parameter" (then `scope_id` and
    `parameter_index`) or "implicitMethodParameter" (then `parameter_index`).
    """

    __slots__ = ("any_kind", "brand", "element", "kind", "parameter_index", "scope_id", "type_id")

    def __init__(
        self, kind: str, *, element: "Type | None" = None, type_id: int = 0,
        brand: "Brand | None" = None, any_kind: str = "anyKind", scope_id: int = 0,
        parameter_index: int = 0,
    ) -> None:
        self.kind, self.element, self.type_id, self.brand = kind, element, type_id, brand
        self.any_kind, self.scope_id, self.parameter_index = any_kind, scope_id, parameter_index


class Value(_Record):
    """schema.capnp `Value`.

    `kind` is the union's member name.  `value` is None for void and interface, a bool, int or
    float, the raw UInt16 for enum; for float kinds a Python float, `bits` then
    keeping the exact IEEE pattern.
    For text a `bytes` without the NUL, for data a `bytes`, either None when the pointer is null.
    For list, struct and anyPointer: None when null, else one segment as `bytes`, its first
    word the pointer to the object (a single-segment message without its table).
    """

    __slots__ = ("bits", "kind", "value")

    def __init__(self, kind: str, value: object = None, bits: int = 0) -> None:
        self.kind, self.value, self.bits = kind, value, bits

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        if self.kind != other.kind or self.bits != other.bits:
            return False
        # Floats by their bits: NaN is the same default as NaN.
        return self.kind in ("float32", "float64") or self.value == other.value


class Annotation(_Record):
    """An annotation applied to something; `brand` None = an empty (non-null) brand struct."""

    __slots__ = ("brand", "id", "value")

    def __init__(self, id: int, value: Value, brand: "Brand | None" = None) -> None:
        self.id, self.value, self.brand = id, value, brand


class Field(_Record):
    """schema.capnp `Field`: a slot (`type` set) or a group (`group_id` set).

    `offset` is in units of the field's own size for data fields and the index for pointers.
    `ordinal` None = implicit.
    """

    __slots__ = (
        "annotations", "code_order", "default_value", "discriminant_value", "group_id",
        "had_explicit_default", "name", "offset", "ordinal", "type",
    )

    def __init__(
        self, name: str, code_order: int, *, annotations: "list[Annotation] | None" = None,
        discriminant_value: int = NO_DISCRIMINANT, offset: int = 0, type: "Type | None" = None,
        default_value: "Value | None" = None, had_explicit_default: bool = False,
        group_id: int = 0, ordinal: "int | None" = None,
    ) -> None:
        self.name, self.code_order, self.annotations = name, code_order, annotations
        self.discriminant_value, self.offset, self.type = discriminant_value, offset, type
        self.default_value, self.had_explicit_default = default_value, had_explicit_default
        self.group_id, self.ordinal = group_id, ordinal


class StructBody(_Record):
    """The `struct` member of a Node; sizes in words and pointers; `fields` None = null."""

    __slots__ = (
        "data_word_count", "discriminant_count", "discriminant_offset", "fields", "is_group",
        "pointer_count", "preferred_list_encoding",
    )

    def __init__(
        self, *, data_word_count: int = 0, pointer_count: int = 0,
        preferred_list_encoding: int = 7, is_group: bool = False, discriminant_count: int = 0,
        discriminant_offset: int = 0, fields: "list[Field] | None" = None,
    ) -> None:
        self.data_word_count, self.pointer_count = data_word_count, pointer_count
        self.preferred_list_encoding, self.is_group = preferred_list_encoding, is_group
        self.discriminant_count, self.discriminant_offset = discriminant_count, discriminant_offset
        self.fields = fields

    @property
    def groups(self) -> "list[tuple[str, int]]":
        """The names and ids of the groups and named unions."""
        return [(field.name, field.group_id) for field in self.fields or () if field.type is None]


class Enumerant(_Record):
    """One name of an enum; its value is its position in `EnumBody.enumerants`."""

    __slots__ = ("annotations", "code_order", "name")

    def __init__(
        self, name: str, code_order: int, annotations: "list[Annotation] | None" = None,
    ) -> None:
        self.name, self.code_order, self.annotations = name, code_order, annotations


class EnumBody(_Record):
    """The `enum` member of a Node, in ordinal order."""

    __slots__ = ("enumerants",)

    def __init__(self, enumerants: "list[Enumerant]") -> None:
        self.enumerants = enumerants


class Method(_Record):
    """schema.capnp `Method`; its number is its position in `InterfaceBody.methods`."""

    __slots__ = (
        "annotations", "code_order", "implicit_parameters", "name", "param_brand",
        "param_struct_type", "result_brand", "result_struct_type",
    )

    def __init__(
        self, name: str, code_order: int, *, implicit_parameters: "list[str] | None" = None,
        param_struct_type: int = 0, param_brand: "Brand | None" = None,
        result_struct_type: int = 0, result_brand: "Brand | None" = None,
        annotations: "list[Annotation] | None" = None,
    ) -> None:
        self.name, self.code_order, self.annotations = name, code_order, annotations
        self.implicit_parameters = [] if implicit_parameters is None else implicit_parameters
        self.param_struct_type, self.param_brand = param_struct_type, param_brand
        self.result_struct_type, self.result_brand = result_struct_type, result_brand


class Superclass(_Record):
    """An interface that another extends."""

    __slots__ = ("brand", "id")

    def __init__(self, id: int, brand: "Brand | None" = None) -> None:
        self.id, self.brand = id, brand


class InterfaceBody(_Record):
    """The `interface` member of a Node, methods in ordinal order."""

    __slots__ = ("methods", "superclasses")

    def __init__(self, methods: "list[Method]", superclasses: "list[Superclass]") -> None:
        self.methods, self.superclasses = methods, superclasses


class ConstBody(_Record):
    """The `const` member of a Node."""

    __slots__ = ("type", "value")

    def __init__(self, type: Type, value: Value) -> None:
        self.type, self.value = type, value


class AnnotationBody(_Record):
    """The `annotation` member of a Node; `targets` holds names such as "struct", "field"."""

    __slots__ = ("targets", "type")

    def __init__(self, type: Type, targets: "frozenset[str]") -> None:
        self.type, self.targets = type, targets


class FileBody(_Record):
    """The `file` member of a Node; it has nothing to say."""

    __slots__ = ()


class Node(_Record):
    """schema.capnp `Node`; `body` is one of the *Body classes, `nested` lists (name, id).

    `nested` and `parameters` are None where the reference leaves the pointer null.
    """

    __slots__ = (
        "annotations", "body", "display_name", "display_name_prefix_length", "end_byte", "id",
        "is_generic", "nested", "parameters", "scope_id", "start_byte",
    )

    def __init__(
        self, id: int, display_name: str, display_name_prefix_length: int, scope_id: int,
        body: "FileBody | StructBody | EnumBody | InterfaceBody | ConstBody | AnnotationBody", *,
        parameters: "list[str] | None" = None, is_generic: bool = False,
        nested: "list[tuple[str, int]] | None" = None,
        annotations: "list[Annotation] | None" = None, start_byte: int = 0, end_byte: int = 0,
    ) -> None:
        self.id, self.display_name, self.scope_id = id, display_name, scope_id
        self.display_name_prefix_length, self.body = display_name_prefix_length, body
        self.parameters, self.is_generic, self.nested = parameters, is_generic, nested
        self.annotations, self.start_byte, self.end_byte = annotations, start_byte, end_byte

    @property
    def name(self) -> str:
        """The last part of the display name."""
        return self.display_name[self.display_name_prefix_length :]


class SourceMember(_Record):
    """Doc comment (and position) of a field, enumerant or method."""

    __slots__ = ("doc_comment", "end_byte", "start_byte")

    def __init__(
        self, doc_comment: "str | None" = None, start_byte: int = 0, end_byte: int = 0,
    ) -> None:
        self.doc_comment, self.start_byte, self.end_byte = doc_comment, start_byte, end_byte


class SourceInfo(_Record):
    """schema.capnp `Node.SourceInfo`; `members` None = null."""

    __slots__ = ("doc_comment", "end_byte", "id", "members", "start_byte")

    def __init__(
        self, id: int, *, doc_comment: "str | None" = None,
        members: "list[SourceMember] | None" = None, start_byte: int = 0, end_byte: int = 0,
    ) -> None:
        self.id, self.doc_comment, self.members = id, doc_comment, members
        self.start_byte, self.end_byte = start_byte, end_byte


class Identifier(_Record):
    """A resolved name in a file's text: `type_id`, or a `member` as (parent type id, ordinal)."""

    __slots__ = ("end_byte", "member", "start_byte", "type_id")

    def __init__(
        self, start_byte: int, end_byte: int, type_id: int = 0,
        member: "tuple[int, int] | None" = None,
    ) -> None:
        self.start_byte, self.end_byte = start_byte, end_byte
        self.type_id, self.member = type_id, member


class RequestedFile(_Record):
    """schema.capnp `CodeGeneratorRequest.RequestedFile`; imports are (name, file id), sorted."""

    __slots__ = ("filename", "id", "identifiers", "imports")

    def __init__(
        self, id: int, filename: str, imports: "list[tuple[str, int]]",
        identifiers: "list[Identifier] | None" = None,
    ) -> None:
        self.id, self.filename, self.imports = id, filename, imports
        self.identifiers = identifiers


class Request(_Record):
    """A whole CodeGeneratorRequest, in the order in which it is written."""

    __slots__ = ("files", "nodes", "source_info", "version")

    def __init__(
        self, nodes: "list[Node]", files: "list[RequestedFile]",
        source_info: "list[SourceInfo]", version: "tuple[int, int, int]" = (1, 4, 0),
    ) -> None:
        self.nodes, self.files, self.source_info, self.version = nodes, files, source_info, version
