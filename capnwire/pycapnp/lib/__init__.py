"""Where pycapnp has its extension: `capnp.lib.capnp`."""
