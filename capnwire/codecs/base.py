"""The interface that all codecs keep, and what they accept as a value."""

from typing import Any

__all__ = ["Codec", "struct_type", "to_plain", "to_struct"]

# `Any` in these signatures: struct types are made at run time from a schema, so neither
# they nor their readers and builders have a static type to name.


class Codec:
    """One encoding: `name`, `encode(value) -> bytes` and `decode(Type, data)`."""

    name = ""

    def encode(self, value: Any) -> bytes:
        """The bytes of a reader, a builder or a pair (struct type, dict).

        Raises:
            EncodeError: the value does not fit the type, or the encoding cannot hold it.
        """
        raise NotImplementedError

    def decode(self, kind: Any, data: "bytes | bytearray | memoryview") -> Any:
        """A reader of the struct type `kind` over what `data` says.

        Raises:
            DecodeError: the bytes are not this encoding of that type.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<codec {self.name}>"


def is_pair(value: Any) -> bool:
    """Whether a value is (struct type, dict)."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict)


def to_struct(value: Any) -> Any:
    """A reader or builder with the contents of any accepted value."""
    if is_pair(value):
        kind, contents = value
        return kind.new_message(**contents)
    if hasattr(value, "to_bytes_packed"):
        return value
    raise TypeError(
        f"a reader, a builder or (struct type, dict) is needed, not {type(value).__name__}"
    )


def to_plain(value: Any) -> "dict[str, Any]":
    """Any accepted value as dicts, lists and scalars."""
    if is_pair(value):
        contents: dict[str, Any] = value[1]
        return contents
    if hasattr(value, "to_dict"):
        found: dict[str, Any] = value.to_dict()
        return found
    raise TypeError(
        f"a reader, a builder or (struct type, dict) is needed, not {type(value).__name__}"
    )


def struct_type(value: Any) -> Any:
    """The struct type of any accepted value, or the value's own type, which knows its schema."""
    return value[0] if is_pair(value) else type(value)
