"""The two encodings of encoding.md: the message as it lies in memory, and packed."""

from typing import Any

from capnwire.codecs.base import Codec, to_struct

__all__ = ["CAPNP", "PACKED"]


class _Capnp(Codec):
    name = "capnp"

    def encode(self, value: Any) -> bytes:
        data: bytes = to_struct(value).to_bytes()
        return data

    def decode(self, kind: Any, data: "bytes | bytearray | memoryview") -> Any:
        return kind.from_bytes(data)


class _Packed(Codec):
    name = "packed"

    def encode(self, value: Any) -> bytes:
        data: bytes = to_struct(value).to_bytes_packed()
        return data

    def decode(self, kind: Any, data: "bytes | bytearray | memoryview") -> Any:
        return kind.from_bytes_packed(data)


CAPNP = _Capnp()
PACKED = _Packed()
