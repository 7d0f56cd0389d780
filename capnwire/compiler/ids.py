"""Ids of nodes that the text does not give: the first bytes of an MD5 over the parent's id.

Spec: schema-language.md, 2.3.
"""

from __future__ import annotations

import os
from hashlib import md5
from struct import Struct

_U64 = Struct("<Q").pack
_U16 = Struct("<H").pack
_TOP_BIT = 1 << 63


def _digest(data: bytes) -> int:
    digest = md5(data, usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") | _TOP_BIT


def child_id(parent_id: int, name: str) -> int:
    """The id of a declaration called `name` inside the node `parent_id`."""
    return _digest(_U64(parent_id) + name.encode())


def group_id(parent_id: int, index: int) -> int:
    """The id of the group or named union that is field number `index` of the node `parent_id`."""
    return _digest(_U64(parent_id) + _U16(index & 0xFFFF))


def method_params_id(interface_id: int, ordinal: int, *, is_results: bool) -> int:
    """The id of the struct made for a method's parameter or result list."""
    return _digest(_U64(interface_id) + _U16(ordinal & 0xFFFF) + bytes((is_results,)))


def random_id() -> int:
    """A new id for a file."""
    return int.from_bytes(os.urandom(8), "little") | _TOP_BIT
