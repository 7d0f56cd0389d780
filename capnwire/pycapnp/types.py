"""Types without a declaration, to name list elements with: `capnp.types.UInt16`."""

from capnwire.pycapnp.modules import _SchemaType

Void = _SchemaType("Void", "void")
Bool = _SchemaType("Bool", "bool")
Int8 = _SchemaType("Int8", "int8")
Int16 = _SchemaType("Int16", "int16")
Int32 = _SchemaType("Int32", "int32")
Int64 = _SchemaType("Int64", "int64")
UInt8 = _SchemaType("UInt8", "uint8")
UInt16 = _SchemaType("UInt16", "uint16")
UInt32 = _SchemaType("UInt32", "uint32")
UInt64 = _SchemaType("UInt64", "uint64")
Float32 = _SchemaType("Float32", "float32")
Float64 = _SchemaType("Float64", "float64")
Text = _SchemaType("Text", "text")
Data = _SchemaType("Data", "data")
AnyPointer = _SchemaType("AnyPointer", "anyPointer")
