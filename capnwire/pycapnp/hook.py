"""The import hook of the drop-in: `import foo_bar_capnp` loads `foo_bar.capnp` and its like."""

from __future__ import annotations

import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

from capnwire.compiler.files import BUNDLED_DIRECTORY, STANDARD_DIRECTORIES, module_schema
from capnwire.pycapnp import parser

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["_Importer", "_Loader", "_capnp_paths", "add_import_hook", "remove_import_hook"]

_capnp_paths = list(STANDARD_DIRECTORIES)
_PACKAGES = ("capnp.", "capnwire.pycapnp.")


class _Loader(Loader):
    """Loads one schema file as a module."""

    def __init__(self, fullname: str, path: str) -> None:
        self.fullname, self.path = fullname, path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module with the file's declarations."""
        imports = [*_capnp_paths, *(path or "." for path in sys.path)]
        return parser.load(self.path, self.fullname, imports)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the module is complete."""


class _Importer(MetaPathFinder):
    """Finds schema files for module names that end in `_capnp`."""

    def find_spec(
        self, fullname: str, package_path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """The spec of a module whose schema file is there, else None."""
        directories = list(sys.path if package_path is None else package_path)
        if fullname.startswith(_PACKAGES):
            directories += [
                os.path.join(path, "capnp") for path in (BUNDLED_DIRECTORY, *_capnp_paths)
            ]
        file = module_schema(fullname, directories)
        if file is None:
            return None
        spec = ModuleSpec(fullname, _Loader(fullname, file), origin=file)
        spec.has_location = True
        return spec


_importer: _Importer | None = None


def add_import_hook() -> None:
    """Let `import foo_capnp` load `foo.capnp`; calling it again changes nothing."""
    global _importer
    if _importer is None:
        _importer = _Importer()
        sys.meta_path.append(_importer)


def remove_import_hook() -> None:
    """Take the import hook out again."""
    global _importer
    if _importer is not None and _importer in sys.meta_path:
        sys.meta_path.remove(_importer)
    _importer = None
