"""Finding and reading schema files: source roots, import directories, display names.

Spec: schema-language.md, 2.4 (Import paths); code-generator-request.md, 4.2 (Display names).
"""

from __future__ import annotations

import os

STANDARD_DIRECTORIES = ("/usr/local/include", "/usr/include")
BUNDLED_DIRECTORY = os.path.join(os.path.dirname(os.path.dirname(__file__)), "std")


class FoundFile:
    """A file below a root directory, by the path below it that names it."""

    __slots__ = ("path", "relative", "root")

    def __init__(self, root: str, relative: str) -> None:
        self.root, self.relative = root, relative
        self.path = os.path.join(root, relative)


class FileFinder:
    """Where imports are looked for."""

    __slots__ = ("_import_directories", "_prefixes")

    def __init__(
        self, import_paths: tuple[str, ...], src_prefixes: tuple[str, ...], *,
        standard_imports: bool,
    ) -> None:
        directories = list(import_paths)
        if standard_imports:
            directories += [BUNDLED_DIRECTORY, *STANDARD_DIRECTORIES]
        self._import_directories = directories
        self._prefixes = sorted(map(os.path.abspath, src_prefixes), key=len, reverse=True)

    def requested(self, path: str) -> FoundFile:
        """The file that the caller named; its root is a prefix, the current directory or `/`."""
        full = os.path.abspath(path)
        for prefix in self._prefixes:
            if full.startswith(prefix.rstrip(os.sep) + os.sep):
                return FoundFile(prefix, os.path.relpath(full, prefix))
        here = os.getcwd()
        if not os.path.isabs(path) and full.startswith(here.rstrip(os.sep) + os.sep):
            return FoundFile(here, os.path.relpath(full, here))
        root = os.path.abspath(os.sep)
        return FoundFile(root, os.path.relpath(full, root))

    def find(self, root: str, directory: str, path: str) -> FoundFile | None:
        """The file that `path` names in a file of `directory` below `root`, or None."""
        if "\0" in path:
            return None
        if path.startswith("/"):
            relative = os.path.normpath(path.lstrip("/"))
            if relative.startswith(".."):
                return None
            for candidate in self._import_directories:
                found = FoundFile(os.path.abspath(candidate), relative)
                if self.exists(found):
                    return found
            return None
        relative = os.path.normpath(os.path.join(directory, path))
        if relative.startswith(".."):
            return None
        found = FoundFile(root, relative)
        return found if self.exists(found) else None

    def exists(self, found: FoundFile) -> bool:
        """Whether the file is there."""
        return os.path.isfile(found.path)

    def read(self, path: str) -> bytes:
        """The contents of a file."""
        with open(path, "rb") as file:
            return file.read()
