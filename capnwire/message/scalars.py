"""Types without a declaration, to name list elements and type parameters with: `capnwire.types`."""

from __future__ import annotations

from capnwire.message.types import Scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from capnwire.typed import AnyPointer as AnyStored
    from capnwire.typed import AnyPointerBuilder, AnyPointerReader, Kind
    from capnwire.typed import Data as Bytes

__all__ = [
    "AnyPointer", "Bool", "Data", "Float32", "Float64", "Int8", "Int16", "Int32", "Int64", "Text",
    "UInt8", "UInt16", "UInt32", "UInt64", "Void",
]


def _scalar(name: str, kind: str) -> Any:
    return Scalar(name, kind)


Void: Kind[None, None, None] = _scalar("Void", "void")
Bool: Kind[bool, bool, bool] = _scalar("Bool", "bool")
Int8: Kind[int, int, int] = _scalar("Int8", "int8")
Int16: Kind[int, int, int] = _scalar("Int16", "int16")
Int32: Kind[int, int, int] = _scalar("Int32", "int32")
Int64: Kind[int, int, int] = _scalar("Int64", "int64")
UInt8: Kind[int, int, int] = _scalar("UInt8", "uint8")
UInt16: Kind[int, int, int] = _scalar("UInt16", "uint16")
UInt32: Kind[int, int, int] = _scalar("UInt32", "uint32")
UInt64: Kind[int, int, int] = _scalar("UInt64", "uint64")
Float32: Kind[float, float, float] = _scalar("Float32", "float32")
Float64: Kind[float, float, float] = _scalar("Float64", "float64")
Text: Kind[str, str, str | bytes] = _scalar("Text", "text")
Data: Kind[bytes, bytes, Bytes] = _scalar("Data", "data")
AnyPointer: Kind[AnyPointerReader, AnyPointerBuilder, AnyStored] = _scalar(
    "AnyPointer", "anyPointer"
)
