"""The compiled extensions of capnwire: their sources, flags and compiler directives."""

import os
import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

if sys.byteorder != "little":
    raise SystemExit("capnwire reads messages in place and needs a little-endian machine")

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "auto_pickle": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",   # inspect.signature() works
    "annotation_typing": False,
    # Method descriptors and METH_NOARGS, which CPython calls fastest (bench: `with`, which()).
    "binding": False,
    "always_allow_keywords": True,
}

# CAPNWIRE_SANITIZE=address,undefined builds instrumented extensions for `make sanitize`.
SANITIZE = os.environ.get("CAPNWIRE_SANITIZE", "")
if sys.platform == "win32":
    FLAGS, LINK = ["/O2", "/W3"], []
else:
    FLAGS = [
        "-O3", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-missing-field-initializers",
        "-Wno-cast-function-type", "-Wno-unused-function",
    ]
    LINK = []
    if SANITIZE:
        FLAGS += [
            f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer", "-g", "-O1",
            "-fno-sanitize-recover=undefined",
        ]
        LINK += [f"-fsanitize={SANITIZE}"]
    else:
        FLAGS += ["-g0"]  # debug information is four fifths of an extension's size

MODULES = sorted(
    os.path.join(folder, name)
    for folder, _, names in os.walk("capnwire")
    for name in names
    if name.endswith(".pyx")
)
# An in-place installation whose extensions `make build` compiles, only those that changed.
if os.environ.get("CAPNWIRE_WITHOUT_EXTENSIONS"):
    MODULES = []

setup(
    ext_modules=cythonize(
        [
            Extension(
                path[: -len(".pyx")].replace(os.sep, "."),
                [path],
                extra_compile_args=FLAGS,
                extra_link_args=LINK,
            )
            for path in MODULES
        ],
        compiler_directives=DIRECTIVES,
    )
)
