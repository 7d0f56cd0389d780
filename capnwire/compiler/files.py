"""Finding and reading schema files: source roots, import directories, display names.

Spec: schema-language.md, 2.4 (Import paths); code-generator-request.md, 4.2 (Display names).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

STANDARD_DIRECTORIES = ("/usr/local/include", "/usr/include")
BUNDLED_DIRECTORY = os.path.join(os.path.dirname(os.path.dirname(__file__)), "std")

MODULE_SUFFIX = "_capnp"


class FoundFile:
    """A file below a root directory, by the path below it that names it.

    `shown` is its path as diagnostics give it: the root as the caller spelled it, and the rest.
    """

    __slots__ = ("path", "relative", "root", "shown")

    def __init__(self, root: str, relative: str, shown_root: str) -> None:
        self.root, self.relative = root, relative
        self.path = os.path.join(root, relative)
        self.shown = shown_root + relative


class FileFinder:
    """Where imports are looked for."""

    __slots__ = ("_import_directories", "_prefixes", "_shown")

    def __init__(
        self, import_paths: tuple[str, ...], src_prefixes: tuple[str, ...], *,
        standard_imports: bool,
    ) -> None:
        directories = list(import_paths)
        if standard_imports:
            directories += [BUNDLED_DIRECTORY, *STANDARD_DIRECTORIES]
        top = os.path.abspath(os.sep)
        self._import_directories = list(map(os.path.abspath, directories))
        prefixes = [path for path in map(os.path.abspath, src_prefixes) if path != top]
        self._prefixes = sorted(prefixes, key=len, reverse=True)
        self._shown = {os.getcwd(): "", top: top}
        for given in (*directories, *src_prefixes):
            self._shown.setdefault(os.path.abspath(given), os.path.join(given, ""))

    def _found(self, root: str, relative: str) -> FoundFile:
        return FoundFile(root, relative, self._shown.get(root) or "")

    def requested(self, path: str) -> FoundFile:
        """The file that the caller named; its root is a prefix, the current directory or `/`."""
        full = os.path.abspath(path)
        for root in (*self._prefixes, os.getcwd(), os.path.abspath(os.sep)):
            if full.startswith(os.path.join(root, "")):
                break
        return self._found(root, os.path.relpath(full, root))

    def find(self, root: str, directory: str, path: str) -> FoundFile | None:
        """The file that `path` names in a file of `directory` below `root`, or None."""
        if "\0" in path:
            return None
        if path.startswith("/"):
            relative = os.path.normpath(path.lstrip("/"))
            if relative.startswith(".."):
                return None
            for candidate in self._import_directories:
                found = self._found(candidate, relative)
                if self.exists(found):
                    return found
            return None
        relative = os.path.normpath(os.path.join(directory, path))
        if relative.startswith(".."):
            return None
        found = self._found(root, relative)
        return found if self.exists(found) else None

    def exists(self, found: FoundFile) -> bool:
        """Whether the file is there."""
        return os.path.isfile(found.path)

    def read(self, path: str) -> bytes:
        """The contents of a file."""
        with open(path, "rb") as file:
            return file.read()


def module_schema(fullname: str, directories: Sequence[str]) -> str | None:
    """The schema file of a module `foo_bar_capnp`: `foo_bar.capnp` or its like, or None."""
    stem = fullname.rpartition(".")[2]
    if not stem.endswith(MODULE_SUFFIX) or stem == MODULE_SUFFIX:
        return None
    stem = stem[: -len(MODULE_SUFFIX)]
    names = dict.fromkeys((stem, stem.replace("_", "-"), stem.replace("_", " ")))
    for directory in directories:
        for name in names:
            file = os.path.join(os.path.abspath(directory or "."), f"{name}.capnp")
            if os.path.isfile(file):
                return file
    return None
