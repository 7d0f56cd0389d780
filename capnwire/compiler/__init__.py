"""The schema compiler: `.capnp` text in, the nodes of `capnwire.schema.model` out.  No C++.

`driver.compile_files` and `driver.compile_text` are the ways in.
"""
