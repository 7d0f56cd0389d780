"""Several encodings of the same types behind one interface: capnp, packed, json.

    codec = codecs.get("json")
    data = codec.encode(person)              # a reader, a builder, or (Person, {"name": "Ada"})
    person = codec.decode(Person, data)      # a reader

No codec is imported before it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capnwire.codecs.base import Codec

__all__ = ["get", "names"]

_CODECS = {
    "capnp": ("capnwire.codecs.binary", "CAPNP"),
    "json": ("capnwire.codecs.json", "JSON"),
    "packed": ("capnwire.codecs.binary", "PACKED"),
}


def names() -> "tuple[str, ...]":
    """The names that `get` knows."""
    return tuple(_CODECS)


def get(name: str) -> "Codec":
    """The codec of this name.

    Raises:
        LookupError: there is none; the text lists those there are.
    """
    try:
        module, attribute = _CODECS[name]
    except KeyError:
        known = ", ".join(_CODECS)
        raise LookupError(f"no codec is called {name!r}; there are {known}") from None
    codec: Codec = getattr(import_module(module), attribute)
    return codec
