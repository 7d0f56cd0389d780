"""A plugin for setuptools: packages that ship schemas get their stubs when they are built.

With capnwire among the `requires` of `[build-system]`, this in `pyproject.toml` is all it takes:

    [tool.capnwire]
    schemas = ["src/mypackage/*.capnp"]

Each schema file goes into the package with its stub beside it; `modules = true` adds a module with
the compiled schema inside, `import-paths` names directories for absolute imports.

Setuptools imports this for whatever it builds where capnwire is installed, capnwire itself
included; so it stands outside the package and imports it only when there is a schema to compile.
"""

from __future__ import annotations

import glob
import os
import shutil
from typing import TYPE_CHECKING, Any

from setuptools import Command
from setuptools.command.build import build
from setuptools.errors import OptionError, SetupError

if TYPE_CHECKING:
    from setuptools import Distribution

__all__ = ["BuildStubs", "add_to_build"]

COMMAND = "build_capnwire"
KEYS = {"schemas": list, "modules": bool, "import-paths": list}


def add_to_build(distribution: Distribution) -> None:
    """Make the command a part of `build` when the project has a `[tool.capnwire]` table."""
    settings = read_settings(os.path.join(distribution.src_root or os.curdir, "pyproject.toml"))
    if settings is None:
        return
    distribution.capnwire = settings
    distribution.cmdclass[COMMAND] = BuildStubs
    if not any(name == COMMAND for name, _ in build.sub_commands):
        build.sub_commands.append((COMMAND, _has_settings))


def _has_settings(command: Any) -> bool:
    return hasattr(command.distribution, "capnwire")


def read_settings(path: str) -> dict[str, Any] | None:
    """The `[tool.capnwire]` table; None when there is none.

    Raises:
        OptionError: a key or its value is not one of ours.
    """
    if not os.path.isfile(path):
        return None
    try:
        import tomllib  # type: ignore[import-not-found, unused-ignore]
    except ImportError:  # Python 3.10: setuptools brings one along
        from setuptools.compat.py310 import tomllib
    with open(path, "rb") as file:
        settings: dict[str, Any] | None = tomllib.load(file).get("tool", {}).get("capnwire")
    for key, value in (settings or {}).items():
        if key not in KEYS:
            raise OptionError(f"[tool.capnwire] has no {key!r}, but {', '.join(map(repr, KEYS))}")
        if not isinstance(value, KEYS[key]):
            raise OptionError(f"{key!r} of [tool.capnwire] is a {KEYS[key].__name__}")
    return settings


class BuildStubs(Command):  # type: ignore[misc]
    """Writes stubs of the project's schemas into the build; editable: beside the schemas."""

    description = "write type stubs for Cap'n Proto schemas"
    user_options: list[Any] = []
    editable_mode = False

    def initialize_options(self) -> None:
        """Nothing is known yet."""
        self.build_lib: str | None = None
        self._written: list[str] = []

    def finalize_options(self) -> None:
        """Take the directory of the build from `build_py`."""
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self) -> None:
        """Compile the schemas and write what comes of them.

        Raises:
            SetupError: a schema has errors.
        """
        settings = self._settings
        schemas = self.get_source_files()
        if not schemas:
            return
        from capnwire.compiler.driver import compile_files
        from capnwire.compiler.emit_python import emit_python
        from capnwire.compiler.emit_stubs import emit_stubs
        from capnwire.errors import CompileError

        root = self._root or os.curdir
        try:
            request = compile_files(
                schemas, src_prefixes=[root], import_paths=settings.get("import-paths", []),
            )
        except CompileError as error:
            raise SetupError(f"a schema has errors:\n{error}") from None
        written = [(".pyi", emit_stubs(request))]
        if settings.get("modules", False):
            written.append((".py", emit_python(request)))
        given = {file.filename: path for path, file in zip(schemas, request.files, strict=True)}
        for suffix, texts in written:
            for name, text in texts.items():
                path = self._target(given.get(name, os.path.join(root, name)), suffix)
                self._written.append(path)
                with open(path, "w", encoding="utf-8") as out:
                    out.write(text)
        for schema in schemas:
            copy = self._target(schema, "")
            if os.path.abspath(copy) != os.path.abspath(schema):
                shutil.copyfile(schema, copy)

    @property
    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = getattr(self.distribution, "capnwire", None) or {}
        return settings

    @property
    def _root(self) -> str:
        """The directory that packages are below: `src` in that layout."""
        root: str = (self.distribution.package_dir or {}).get("", "")
        return root

    def _target(self, schema: str, suffix: str) -> str:
        inside = os.path.relpath(schema, self._root or os.curdir)
        directory = os.path.dirname(inside)
        if self.editable_mode:
            base = os.path.dirname(schema)
        else:
            assert self.build_lib is not None
            base = os.path.join(self.build_lib, directory)
        os.makedirs(base or os.curdir, exist_ok=True)
        name = os.path.basename(schema)
        if suffix:
            from capnwire.schema.registry import module_name_of

            name = module_name_of(name) + suffix
        return os.path.join(base, name)

    def get_source_files(self) -> list[str]:
        """The schema files."""
        patterns = self._settings.get("schemas", [])
        found = {path for pattern in patterns for path in glob.glob(pattern, recursive=True)}
        return sorted(found)

    def get_outputs(self) -> list[str]:
        """What `run` writes."""
        return [*self.get_output_mapping(), *self._written]

    def get_output_mapping(self) -> dict[str, str]:
        """Schema files are copied as they are; stubs have no source to be mapped to."""
        return {self._target(schema, ""): schema for schema in self.get_source_files()}
