"""Compiled schemas on disk, so that loading one again costs no compilation.

An entry belongs to a path and the options; it names each file that was read with a digest of what
was in it, and each place where an import was looked for in vain.  It counts only while all of that
still holds.  Entries are written aside and moved into place, so other processes see whole ones; one
whose checksum is wrong is as good as none.

The directory is that of the platform for caches of the user, or `CAPNWIRE_CACHE`; "off" (or an
empty value) turns the cache off.
"""

from __future__ import annotations

import os
import sys
from marshal import dumps, loads

try:
    from _blake2 import blake2b  # hashlib imports OpenSSL, which takes longer than loading does
except ImportError:
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from capnwire.schema.model import Request

__all__ = ["cache_directory", "compile_cached"]

MAGIC = b"capnwire nodes 1\n"
DIGEST_BYTES = 20
VARIABLE = "CAPNWIRE_CACHE"
OFF = ("", "0", "off", "no")
MOST_ENTRIES = 512
"""More than this and the older half goes: entries of other versions and of schemas long gone."""


def cache_directory() -> str | None:
    """Where entries are kept; None when the cache is turned off."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return None if chosen.lower() in OFF else chosen
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
        return os.path.join(base, "capnwire", "Cache")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/capnwire")
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return os.path.join(base, "capnwire")


def compile_cached(
    path: str, imports: Iterable[str | os.PathLike[str]] = (), missing_imports: str = "error", *,
    src_prefixes: tuple[str, ...] = (),
) -> tuple[Request, bool]:
    """The request for a schema file, without source information, and whether it was known before.

    Raises:
        CompileError: the schema has errors.
        OSError: the file cannot be read.
    """
    directory = cache_directory()
    import_paths = [os.fspath(item) for item in imports]
    if directory is None:
        from capnwire.compiler.driver import compile_files

        request = compile_files(
            [path], import_paths=import_paths, src_prefixes=src_prefixes,
            missing_imports=missing_imports,
        )
        return request, False
    entry = os.path.join(directory, _key(path, import_paths, missing_imports, src_prefixes))
    found = _read(entry)
    if found is not None:
        return found, True
    return _compile(entry, path, import_paths, missing_imports, src_prefixes), False


def digest(data: bytes) -> bytes:
    """A digest of the contents of a file."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def _key(
    path: str, import_paths: list[str], missing_imports: str, src_prefixes: tuple[str, ...]
) -> str:
    """The name of the entry for a path and the options, for this compiler and this Python."""
    here = os.getcwd()
    parts = [
        os.path.join(here, path), "" if os.path.isabs(path) else here, missing_imports,
        os.environ.get("CAPNP_IGNORE_ISSUE_344", ""), sys.version, _compiler_stamp(),
        *[os.path.join(here, item) for item in import_paths], "\1",
        *[os.path.join(here, item) for item in src_prefixes],
    ]
    name = "\0".join(parts).encode("utf-8", "surrogateescape")
    return blake2b(name, digest_size=DIGEST_BYTES).hexdigest()


def _compiler_stamp() -> str:
    """What tells one build of the compiler from another: its newest file, and their sizes."""
    newest = sizes = 0
    here = os.path.dirname(__file__)
    for folder in (here, os.path.join(os.path.dirname(here), "schema")):
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".so", ".pyd")):
                    status = entry.stat()
                    newest = max(newest, status.st_mtime_ns)
                    sizes += status.st_size
    return f"{newest} {sizes}"


# --- entries ------------------------------------------------------------------------------------


def _read(entry: str) -> Request | None:
    """What an entry holds, unless it is missing, broken or no longer true."""
    try:
        with open(entry, "rb") as file:
            data = file.read()
    except OSError:
        return None
    start = len(MAGIC) + DIGEST_BYTES
    if data[: len(MAGIC)] != MAGIC or digest(data[start:]) != data[len(MAGIC) : start]:
        return None
    try:
        files, missing, (file_id, name), nodes = loads(memoryview(data)[start:])
        for path, wanted in files:
            with open(path, "rb") as source:
                if digest(source.read()) != wanted:
                    return None
        if any(map(os.path.isfile, missing)):
            return None
        from capnwire.schema.model import Request, RequestedFile
        from capnwire.schema.stored import unpack_nodes

        return Request(unpack_nodes(nodes), [RequestedFile(file_id, name, [])], [])
    except (OSError, ValueError, EOFError, TypeError):
        return None


def _compile(
    entry: str, path: str, import_paths: list[str], missing_imports: str,
    src_prefixes: tuple[str, ...],
) -> Request:
    from capnwire.compiler import driver
    from capnwire.compiler.files import FileFinder, FoundFile
    from capnwire.schema.stored import pack_nodes

    class Recorder(FileFinder):
        """Notes what is read and what is not there."""

        __slots__ = ("missing", "read_files")

        def __init__(self) -> None:
            super().__init__(tuple(import_paths), src_prefixes, standard_imports=True)
            self.read_files: dict[str, bytes] = {}
            self.missing: set[str] = set()

        def read(self, path: str) -> bytes:
            data = super().read(path)
            self.read_files[os.path.abspath(path)] = digest(data)
            return data

        def exists(self, found: FoundFile) -> bool:
            is_there = super().exists(found)
            if not is_there:
                self.missing.add(os.path.abspath(found.path))
            return is_there

    options = driver._options(import_paths, missing_imports=missing_imports)
    options.finder = finder = Recorder()
    request = driver._run(options, [(finder.requested(path), None)])
    file = request.files[0]
    payload = dumps((
        list(finder.read_files.items()), sorted(finder.missing), (file.id, file.filename),
        pack_nodes(request.nodes),
    ))
    _write(entry, MAGIC + digest(payload) + payload)
    return request


def _write(entry: str, data: bytes) -> None:
    """Put an entry into place at once; a directory that cannot be written to is no error."""
    aside = f"{entry}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        os.makedirs(os.path.dirname(entry), mode=0o700, exist_ok=True)
        with open(aside, "xb") as file:
            file.write(data)
        os.replace(aside, entry)
        _prune(os.path.dirname(entry))
    except OSError:
        try:
            os.unlink(aside)
        except OSError:
            pass


def _prune(directory: str) -> None:
    """Keep the directory from growing without end."""
    names = os.listdir(directory)
    if len(names) <= MOST_ENTRIES:
        return
    paths = sorted((os.path.join(directory, name) for name in names), key=os.path.getmtime)
    for path in paths[: len(paths) // 2]:
        os.unlink(path)
