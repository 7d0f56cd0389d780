"""Where old pickles look for their function: `capnp.lib.pickle_helper._struct_reducer`."""

from capnwire.pycapnp.lib.capnp import _struct_reducer

__all__ = ["_struct_reducer"]
