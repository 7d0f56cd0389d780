"""Whether bytes are in canonical form (the rest of the module is for compiled code)."""

from typing_extensions import Buffer

def is_canonical(buffer: Buffer, /) -> bool:
    """Whether bytes are the canonical form of a message: one segment, without a segment table.

    Bytes that are no message at all are not canonical; only what is no buffer raises.
    """

# What Cython adds to each module.
__pyx_capi__: dict[str, object]
__test__: dict[str, str]
