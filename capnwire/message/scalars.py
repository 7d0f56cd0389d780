"""Types without a declaration, to name list elements and type parameters with: `capnwire.types`."""

from capnwire.message.types import Scalar

__all__ = [
    "AnyPointer", "Bool", "Data", "Float32", "Float64", "Int8", "Int16", "Int32", "Int64", "Text",
    "UInt8", "UInt16", "UInt32", "UInt64", "Void",
]

Void = Scalar("Void", "void")
Bool = Scalar("Bool", "bool")
Int8 = Scalar("Int8", "int8")
Int16 = Scalar("Int16", "int16")
Int32 = Scalar("Int32", "int32")
Int64 = Scalar("Int64", "int64")
UInt8 = Scalar("UInt8", "uint8")
UInt16 = Scalar("UInt16", "uint16")
UInt32 = Scalar("UInt32", "uint32")
UInt64 = Scalar("UInt64", "uint64")
Float32 = Scalar("Float32", "float32")
Float64 = Scalar("Float64", "float64")
Text = Scalar("Text", "text")
Data = Scalar("Data", "data")
AnyPointer = Scalar("AnyPointer", "anyPointer")
