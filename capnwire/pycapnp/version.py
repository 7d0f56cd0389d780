"""The versions that programs of pycapnp ask for: what the drop-in stands for."""

version = "2.2.4"
short_version = "2.2.4"
LIBCAPNP_VERSION_MAJOR = 1
LIBCAPNP_VERSION_MINOR = 4
LIBCAPNP_VERSION_MICRO = 0
LIBCAPNP_VERSION = 1004000
