"""pycapnp's coercions: what its programs may store into which field."""

from collections.abc import Callable
from typing import Any

from capnwire.errors import EncodeError, KjException

class UnknownEnumerant(EncodeError, AttributeError):
    """An enum has no value of this name: pycapnp raises the one or the other."""

class UnknownMember(KjException, AttributeError):
    """A key names no field: pycapnp raises the one or the other."""

class OutOfRange(EncodeError, OverflowError):
    """An integer has more than 64 bits: pycapnp raises OverflowError then."""

def set_capability_source(source: Callable[[Any, Any], Any]) -> None:
    """Say how a value becomes a capability: `source(value, interface info)`, or TypeError."""

__pyx_capi__: dict[str, object]
__test__: dict[str, str]
