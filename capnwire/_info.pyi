"""Field tables and the types made from them."""

from collections.abc import Callable
from typing import Any, TypeAlias, final

from typing_extensions import Self, disjoint_base

from capnwire._fast import StructBuilder, StructReader

_ReaderType: TypeAlias = type[StructReader]
_BuilderType: TypeAlias = type[StructBuilder]

"""Set by the schema layer: finds an enum by its id, for unpickling."""

# `Any` below: nodes, registries and public classes belong to higher layers.

@final
class EnumValue:
    """A value of an enum: equal to its number and to its name.

    `name` is None for a number that the schema does not know; such a value survives reading and
    writing.  It hashes as its name, so it finds itself by name in a dict, but not by number.
    """

    @property
    def info(self) -> EnumInfo: ...
    @property
    def raw(self) -> int: ...
    @property
    def name(self) -> str | None: ...
    def __int__(self) -> int: ...
    def __index__(self) -> int: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __copy__(self, /) -> Self: ...
    def __deepcopy__(self, memo: Any) -> Self: ...

@disjoint_base
class Face:
    """The base classes and slots of one API's types; made by the package that has them."""

    @property
    def struct_reader(self) -> type: ...
    @property
    def struct_builder(self) -> type: ...
    @property
    def list_reader(self) -> type: ...
    @property
    def list_builder(self) -> type: ...
    @property
    def enum_value(self) -> type: ...
    @property
    def reader_taken(self) -> frozenset[str]: ...
    @property
    def builder_taken(self) -> frozenset[str]: ...

@disjoint_base
class EnumInfo:
    """An enum: its node and its values, interned."""

    scope: Any
    def __init__(
        self, name: str, node: Any, names: Any, type: Any = None, face: Face | None = None
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def node(self) -> Any: ...
    @property
    def values(self) -> tuple[EnumValue, ...]: ...
    @property
    def by_name(self) -> dict[str, EnumValue]: ...
    @property
    def type(self) -> Any: ...
    def value(self, raw: int) -> EnumValue:
        """The value with this number, known or not."""

    def set_type(self, type: Any) -> None:
        """Name the namespace through which users see the values."""

@disjoint_base
class InterfaceInfo:
    """An interface: its node, and the classes that the service layer gives it."""

    type: Any
    client: Any
    server: Any
    def __init__(self, name: str, node: Any, scope: Any = None) -> None: ...
    @property
    def scope(self) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def node(self) -> Any: ...

@disjoint_base
class ListInfo:
    """The type of a list: what its elements are (`element_kind`, with `element_info`)."""

    def __init__(
        self, kind: str, info: Any = None, face: Face | None = None, keeps_bytes: bool = False
    ) -> None: ...
    @property
    def element_kind(self) -> str: ...
    @property
    def element_info(self) -> Any: ...
    @property
    def node(self) -> Any: ...

@disjoint_base
class StructInfo:
    """The type of a struct or group; `completer(info)` fills the field table on first use."""

    def __init__(
        self, name: str, node: Any, scope: Any, completer: Callable[[StructInfo], None],
        is_group: bool = False, face: Face | None = None,
    ) -> None: ...
    face_data: Any
    @property
    def face(self) -> Face | None: ...
    @property
    def data_words(self) -> int: ...
    @property
    def pointer_count(self) -> int: ...
    @property
    def is_group(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def node(self) -> Any: ...
    @property
    def scope(self) -> Any: ...
    @property
    def by_name(self) -> dict[str, int]: ...
    @property
    def member_names(self) -> tuple[str, ...]: ...
    @property
    def type(self) -> Any: ...
    @property
    def Reader(self) -> _ReaderType | None: ...
    @property
    def Builder(self) -> _BuilderType | None: ...
    @property
    def discriminant_count(self) -> int: ...
    def set_type(self, type: Any) -> None:
        """Say which public class stands for the struct (made when the schema is loaded)."""

    def ensure(self) -> None:
        """Fill the table now."""

    def define(
        self, qualname: str, module: str,
        fields: list[tuple[str, str, int, int, Any, bytes | None, int | None]],
        discriminant_offset: int, keeps_bytes: bool = False,
    ) -> None:
        """Fill the table and make the types: called by the completer.

        Raises:
            SchemaError: a field lies outside its section.
        """

    def field(self, name: str) -> tuple[int, Any, int | None, int]:
        """(kind, sub, discriminant or None, offset) of a field."""

def make_struct_type(info: StructInfo, qualname: str, module: str) -> type:
    """The public class of a struct: `Person`, with `new_message`, `from_bytes` and the rest."""

def _restore_enum(id: int, raw: int) -> EnumValue: ...

__pyx_capi__: dict[str, object]
__test__: dict[str, str]
