"""The exceptions of capnwire: one tree, leaf classes with their values as attributes.

Slips of the caller stay `TypeError`, `AttributeError` and `IndexError`; everything that is wrong
with bytes, values, schemas or peers is a `CapnwireError`.
"""

__all__ = [
    "CapnwireError",
    "CompileError",
    "DecodeError",
    "EncodeError",
    "EncodeTypeError",
    "FramingError",
    "KjException",
    "LimitError",
    "LocalProtocolError",
    "PackingError",
    "PointerError",
    "RemoteError",
    "RemoteProtocolError",
    "RpcError",
    "SchemaError",
    "SchemaMismatch",
    "TextError",
    "TruncatedError",
    "UnionError",
    "Utf8Error",
]


class KjException(Exception):
    """The ancestor of every error, so that `except capnp.KjException` keeps its meaning.

    Its arguments and attributes are pycapnp's: `type` is one of `KjException.Type`; `nature`,
    `durability` and `wrapper` are what was given, and `file` and `line` are None.
    """

    class Type:
        """What a caller may do about an error."""

        FAILED = "FAILED"
        OVERLOADED = "OVERLOADED"
        DISCONNECTED = "DISCONNECTED"
        UNIMPLEMENTED = "UNIMPLEMENTED"
        OTHER = "OTHER"

    kind = "FAILED"
    nature: object = None
    durability: object = None
    wrapper: object = None
    file = line = None

    def __init__(
        self, message: "str | None" = None, nature: object = None, durability: object = None,
        wrapper: object = None, type: "str | None" = None,
    ) -> None:
        super().__init__(*(() if message is None else (message,)))
        if nature is not None:
            self.nature = nature
        if durability is not None:
            self.durability = durability
        if wrapper is not None:
            self.wrapper = wrapper
        if type is not None:
            self.kind = type

    @property
    def type(self) -> str:
        """FAILED, OVERLOADED, DISCONNECTED, UNIMPLEMENTED or OTHER."""
        return self.kind

    @property
    def message(self) -> str:
        """The text."""
        return str(self)

    @property
    def description(self) -> str:
        """The text."""
        return str(self)


class CapnwireError(KjException):
    """Anything that capnwire finds wrong with bytes, values, schemas or peers."""

    def __reduce__(self) -> "tuple[object, ...]":
        # Not by calling the class again: most of them want more than the text.
        return _remake, (type(self), self.args, self.__dict__)


def _remake(
    kind: "type[CapnwireError]", args: "tuple[object, ...]", values: "dict[str, object]"
) -> CapnwireError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(values)
    return error


class DecodeError(CapnwireError, ValueError):
    """Bytes from outside are not what the format or the schema asks for."""


class FramingError(DecodeError):
    """A segment table is wrong, or the bytes are not a whole message (encoding.md, Framing)."""


class TruncatedError(FramingError, EOFError):
    """The input ends in the middle of a message; `wanted` and `found` are counted in bytes."""

    def __init__(self, text: str, *, wanted: int, found: int) -> None:
        super().__init__(text)
        self.wanted, self.found = wanted, found


class PointerError(DecodeError):
    """A pointer leaves its segment, is of the wrong kind, or names what does not exist."""


class TextError(DecodeError):
    """A Text is not NUL-terminated or not UTF-8."""


class Utf8Error(TextError, UnicodeDecodeError):
    """A Text is not UTF-8: has the attributes of the UnicodeDecodeError that it comes from."""

    def __init__(self, cause: UnicodeDecodeError) -> None:
        UnicodeDecodeError.__init__(
            self, cause.encoding, cause.object, cause.start, cause.end, cause.reason
        )

    def __str__(self) -> str:
        return f"a Text is not UTF-8: {UnicodeDecodeError.__str__(self)}"

    def __reduce__(self) -> "tuple[object, ...]":
        cause = UnicodeDecodeError(self.encoding, self.object, self.start, self.end, self.reason)
        return type(self), (cause,)


class PackingError(DecodeError):
    """Packed bytes end inside a word, or unpack to something that is no message."""


class UnionError(DecodeError):
    """A union member was read that is not the active one, or the discriminant is unknown.

    `discriminant` is the number found on the wire.
    """

    def __init__(self, text: str, *, discriminant: int) -> None:
        super().__init__(text)
        self.discriminant = discriminant


class LimitError(DecodeError):
    """A message needs more than its limits allow; `limit` and `wanted` are in the limit's unit."""

    def __init__(self, name: str, *, limit: int, wanted: int) -> None:
        super().__init__(f"{name} is {limit}, but this read needs {wanted}")
        self.name, self.limit, self.wanted = name, limit, wanted


class EncodeError(CapnwireError, ValueError):
    """A value cannot be stored in a field: `struct`, `field` and `value` say which and where."""

    def __init__(
        self, text: str, *, struct: "str | None" = None, field: "str | None" = None,
        value: object = None,
    ) -> None:
        super().__init__(text)
        self.struct, self.field, self.value = struct, field, value


class EncodeTypeError(EncodeError, TypeError):
    """A value has a type that the field cannot store."""


class SchemaError(CapnwireError):
    """A schema is wrong, or is used for something it does not describe."""


class CompileError(SchemaError):
    """A schema text has errors; `diagnostics` lists all of them in the order they were found."""

    def __init__(self, diagnostics: "list[object]") -> None:
        super().__init__("\n".join(str(item) for item in diagnostics))
        self.diagnostics = diagnostics


class SchemaMismatch(SchemaError):
    """Two types that should be the same, or compatible, are not."""


class RpcError(CapnwireError):
    """Something went wrong between two vats."""


class LocalProtocolError(RpcError):
    """This call is not allowed now: the connection or the call is in another state."""


class RemoteProtocolError(RpcError):
    """The peer broke the protocol; the connection is aborted."""


class RemoteError(RpcError):
    """A call failed on its way or where it ran, or its connection broke.

    `kind` is FAILED, OVERLOADED (later may work), DISCONNECTED (a new connection may work) or
    UNIMPLEMENTED; a server method raises it to say which.  `trace` is what the other side tells of
    where it happened, `details` a tuple of (id, bytes).  Text from another vat starts with
    "remote exception: ".
    """

    def __init__(
        self, text: str, *, kind: str = "FAILED", trace: str = "",
        details: "tuple[tuple[int, bytes], ...]" = (),
    ) -> None:
        super().__init__(text)
        for id, data in details:
            if not isinstance(id, int) or not isinstance(data, bytes) or id >> 64:
                raise TypeError("`details` are pairs of a 64-bit id and bytes")
        self.kind, self.trace, self.details = kind, trace, details

    def again(self) -> "RemoteError":
        """An equal exception without a traceback."""
        return type(self)(
            str(self), kind=self.kind, trace=self.trace, details=self.details
        )

    def __reduce__(self) -> "tuple[object, ...]":
        return _remake_remote_error, (str(self), self.kind, self.trace, self.details)


def _remake_remote_error(
    text: str, kind: str, trace: str, details: "tuple[tuple[int, bytes], ...]"
) -> RemoteError:
    return RemoteError(text, kind=kind, trace=trace, details=details)
