"""Cap'n Proto RPC without I/O: bytes in, bytes out (rpc.capnp, level 1)."""
