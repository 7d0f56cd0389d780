"""The schema compiler: `.capnp` text in, the nodes of `capnwire.schema.model` out.  No C++."""
