"""The import hook: `import addressbook_capnp` loads `addressbook.capnp`, once it is asked for.

`foo_bar_capnp` is looked for as `foo_bar.capnp`, `foo-bar.capnp` and `foo bar.capnp`, in the
package's path or in `sys.path`.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

from capnwire.compiler.files import module_schema
from capnwire.loader import load

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["add_import_hook", "remove_import_hook"]


class SchemaFinder(MetaPathFinder):
    """Finds schema files for module names that end in `_capnp`.

    `imports` are directories for the absolute imports of those files; `sys.path` follows them.
    """

    def __init__(self, imports: Sequence[str] = ()) -> None:
        self.imports = list(imports)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module whose schema file is there, else None."""
        file = module_schema(fullname, sys.path if path is None else path)
        if file is None:
            return None
        spec = ModuleSpec(fullname, SchemaFileLoader(fullname, file, self.imports), origin=file)
        spec.has_location = True
        return spec


class SchemaFileLoader(Loader):
    """Loads one schema file as a module."""

    def __init__(self, name: str, file: str, imports: Sequence[str]) -> None:
        self.name, self.file, self.imports = name, file, imports

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module with the file's declarations.

        Raises:
            CompileError: the schema has errors.
        """
        directories = [os.path.abspath(directory or ".") for directory in sys.path]
        return load(self.file, self.name, [*self.imports, *directories])

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the module is complete."""


_finder: SchemaFinder | None = None


def add_import_hook(imports: Sequence[str | os.PathLike[str]] = ()) -> None:
    """Let `import foo_capnp` load `foo.capnp` from `sys.path`; a second call only sets `imports`.

    `imports` are directories for absolute imports in those files; `sys.path` comes after them.
    """
    global _finder
    directories = [os.fspath(directory) for directory in imports]
    if _finder is None:
        _finder = SchemaFinder(directories)
        sys.meta_path.append(_finder)
    else:
        _finder.imports = directories


def remove_import_hook() -> None:
    """Take the import hook out again; modules that it loaded stay."""
    global _finder
    if _finder is not None:
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)
        _finder = None
