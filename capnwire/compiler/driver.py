"""Schema files to a `Request`: loads files and their imports, visits nodes in the right order.

A `Session` lives for one compilation; nothing is kept between two of them.
Spec: code-generator-request.md, 4.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from capnwire.compiler import files
from capnwire.compiler.diagnostics import Diagnostic, Reporter
from capnwire.compiler.ids import random_id
from capnwire.compiler.names import RECURSIVE, Module, Unit
from capnwire.compiler.nodes import STREAM_PATH, NodeBuilder
from capnwire.compiler.order import (
    NodeTable,
    mentioned_ids,
    method_ids,
    source_info_order,
    superclass_ids,
    type_ids,
)
from capnwire.compiler.parser import parse_file
from capnwire.compiler.syntax import Declaration, Expression, Name, Ordinal, Source
from capnwire.compiler.values import ValueSource
from capnwire.errors import CompileError, SchemaError
from capnwire.schema.model import (
    Annotation,
    EnumBody,
    InterfaceBody,
    Node,
    Request,
    RequestedFile,
    SourceInfo,
    StructBody,
)

VERSIONS = {"current": (1, 4, 0), "1.0": (1, 0, 1)}

# What to visit of a node: itself, its parents, its children; shifted by 15, of what it depends on.
_NODE, _PARENTS, _CHILDREN, _DEPENDENCY_SHIFT = 1, 2, 4, 15
_EVERYTHING = (
    _NODE | _CHILDREN | (_NODE << _DEPENDENCY_SHIFT) | (_PARENTS << _DEPENDENCY_SHIFT)
)
_LOW_BITS = (1 << _DEPENDENCY_SHIFT) - 1

TOO_DEEP = "Declarations depend on each other too deeply."
NO_FILE_ID = (
    "File does not declare an ID.  I've generated one for you.  "
    "Add this line to your file: @0x{:016x};"
)


class Options:
    """How to compile; the parameters of `compile_files`."""

    __slots__ = ("allow_missing_id", "finder", "may_miss", "profile", "strict_layout")

    def __init__(
        self, finder: files.FileFinder, *, profile: str, strict_layout: bool,
        allow_missing_id: bool, may_miss: bool,
    ) -> None:
        self.finder, self.profile, self.strict_layout = finder, profile, strict_layout
        self.allow_missing_id, self.may_miss = allow_missing_id, may_miss


class Session(ValueSource):
    """Everything known during one compilation."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.may_miss = options.may_miss
        self.diagnostics: list[Diagnostic] = []
        self.modules: dict[str, Module] = {}
        self.units: dict[int, Unit] = {}
        self.auxiliary: dict[int, Node] = {}
        self.table = NodeTable()
        self.source_infos: list[SourceInfo] = []
        self.measures = {}
        self.trees = []
        self.unusable = set()
        self._imports: dict[tuple[str, str, str], Module | None] = {}
        self._noted: set[str] = set()
        self._next_substitute = 1000

    # --- files -----------------------------------------------------------------------------

    def load(self, found: files.FoundFile, data: bytes | None = None) -> Module:
        """The module of a file, parsed on first sight."""
        key = os.path.realpath(found.path)
        module = self.modules.get(key)
        if module is not None:
            return module
        if data is None:
            data = self.options.finder.read(found.path)
        source = Source(data.decode("latin-1"), Reporter(found.shown, self.diagnostics))
        decl, lexed = parse_file(source)
        if decl.id is None:
            decl.id = Ordinal(random_id(), 0, 0)
            if lexed and not self.options.allow_missing_id and not self.has_errors():
                source.error(0, 0, NO_FILE_ID.format(decl.id.value))
        module = Module(
            source, decl, path=found.path, root_directory=found.root,
            directory=os.path.dirname(found.relative),
            display_name=found.relative.replace(os.sep, "/"),
        )
        self.modules[key] = module
        module.root = Unit(self, module, decl, None, module.display_name)
        return module

    def has_errors(self) -> bool:
        """Whether an error was reported, about whatever file."""
        return any(item.severity == "error" for item in self.diagnostics)

    def import_module(self, importer: Module, path: str) -> Module | None:
        """The module that a path names in a file, or None if there is no such file."""
        key = (importer.root_directory, "" if path[:1] == "/" else importer.directory, path)
        if key not in self._imports:
            found = self.options.finder.find(*key[:2], path)
            module = None
            if found is not None:
                try:
                    module = self.load(found)
                except OSError:
                    pass
            self._imports[key] = module
        return self._imports[key]

    def read_file(self, unit: Unit, path: str) -> bytes | None:
        """The contents of a file to embed, or None."""
        module = unit.module
        found = self.options.finder.find(module.root_directory, module.directory, path)
        try:
            return self.options.finder.read(found.path) if found is not None else None
        except OSError:
            return None

    def note_missing(self, source: Source, path: Name) -> None:
        """Say, once for each path, what to do about an import that is not there."""
        if path.text in self._noted:
            return
        self._noted.add(path.text)
        source.reporter.add(
            source.text, path.start, path.end,
            f"add the directory that holds '{path.text}' to the import paths (-I, import_paths), "
            "or, if only annotations come from it, leave them out (--ignore-missing-annotations, "
            'missing_imports="ignore-annotations")',
            severity="note",
        )

    # --- units -----------------------------------------------------------------------------

    def claim_id(self, unit: Unit) -> int:
        """Enter a unit under its id, or under a substitute if that is taken."""
        id = unit.id
        other = self.units.get(id)
        if other is not None:
            unit.error(f"Duplicate ID @0x{id:x}.")
            other.error(f"ID @0x{id:x} originally used here.")
            id = self._next_substitute
            self._next_substitute += 1
        self.units[id] = unit
        return id

    def started(self, unit: Unit) -> Node | None:
        """The unit's node, pointer values aside; None if it is being made."""
        return self._advance(unit, 1)

    def finished(self, unit: Unit) -> Node | None:
        """The unit's node with all its values; None if it is being made."""
        return self._advance(unit, 2)

    def _advance(self, unit: Unit, state: int) -> Node | None:
        builder = unit.result
        if unit.state < state:
            if unit.busy:
                unit.error(RECURSIVE)
                return None
            unit.busy = True
            try:
                if unit.state == 0:
                    strict = self.options.strict_layout
                    unit.result = builder = NodeBuilder(self, unit, strict_layout=strict)
                    self.auxiliary.update((node.id, node) for node in builder.aux)
                    unit.state = 1
                if unit.state < state:
                    assert isinstance(builder, NodeBuilder)
                    builder.finish()
                    unit.state = 2
            finally:
                unit.busy = False
        assert isinstance(builder, NodeBuilder)
        return builder.node

    def schema(self, type_id: int) -> Node | None:
        """The node of a type by its id; None after an error."""
        unit = self.units.get(type_id)
        return self.started(unit) if unit is not None else self.auxiliary.get(type_id)

    # --- visiting --------------------------------------------------------------------------

    def visit(self, root: Unit) -> None:
        """Load a file's nodes and what they depend on, as for a requested file."""
        seen: dict[int, int] = {}
        # A stack of generators instead of recursion: chains of types may be long.
        stack = [self._visit(root, _EVERYTHING, seen)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            else:
                stack.append(self._visit(step[0], step[1], seen))

    def _visit(
        self, unit: Unit, bits: int, seen: dict[int, int],
    ) -> Iterator[tuple[Unit, int]]:
        before = seen.get(unit.id, 0)
        if not bits & ~before:
            return
        seen[unit.id] = before | bits
        node = self.finished(unit)
        if node is not None:
            builder = unit.result
            assert isinstance(builder, NodeBuilder)
            nodes = [*builder.aux, node]
            for loaded in nodes:
                self.table.load(loaded)
            if bits >> _DEPENDENCY_SHIFT:
                inner = (bits & ~_LOW_BITS) | (bits >> _DEPENDENCY_SHIFT)
                for each in (node, *builder.aux):
                    for id in _dependencies(each):
                        dependency = self.units.get(id)
                        if dependency is not None:
                            yield dependency, inner
            self.source_infos.extend(builder.source_infos)
        if bits & _PARENTS and unit.parent is not None:
            yield unit.parent, bits
        if bits & _CHILDREN:
            unit.expand()
            for child in unit.children:
                yield child, bits
            for alias in sorted(unit.aliases, key=lambda alias: alias.decl.name.text):
                unit.resolve_alias(alias)

    def encode_values(self) -> None:
        """Make bytes of the trees of pointer values."""
        if not self.trees:
            return
        from capnwire.compiler.encode_values import BadValue, ValueEncoder

        trees = [tree.value.value for tree in self.trees]
        for tree in self.trees:
            # The types are made of the same nodes, and have no use for these defaults.
            tree.value.value = None
        encoder = ValueEncoder(self._all_nodes())
        encoded: list[bytes | None] = []
        for tree, made in zip(self.trees, trees, strict=True):
            try:
                encoded.append(encoder.encode(tree.type, made))
            except BadValue as problem:
                tree.unit.source.error(tree.expr.start, tree.expr.end, str(problem))
                encoded.append(None)
        for tree, data in zip(self.trees, encoded, strict=True):
            tree.value.value = data

    def _all_nodes(self) -> list[Node]:
        nodes = []
        for unit in self.units.values():
            if isinstance(unit.result, NodeBuilder):
                nodes += [unit.result.node, *unit.result.aux]
        return nodes

    # --- the result ------------------------------------------------------------------------

    def request(self, modules: list[Module]) -> Request:
        """The request for files, all visited."""
        requested = []
        current = self.options.profile == "current"
        for module in modules:
            identifiers = module.identifiers if current else None
            requested.append(
                RequestedFile(
                    module.root.id, module.display_name, self._import_list(module), identifiers,
                )
            )
        nodes = self.table.nodes()
        infos = source_info_order(self.source_infos)
        if not current:
            for node in nodes:
                node.start_byte = node.end_byte = 0
            for info in infos:
                info.start_byte = info.end_byte = 0
        return Request(nodes, requested, infos, VERSIONS[self.options.profile])

    def _import_list(self, module: Module) -> list[tuple[str, int]]:
        paths: set[str] = set()
        _collect_imports(module.file, paths)
        listed = []
        for path in sorted(paths, key=str.encode):
            imported = self.import_module(module, path)
            if imported is not None:
                listed.append((path, imported.root.id))
        return listed


def _dependencies(node: Node) -> Iterator[int]:
    """The ids of what a node needs, its annotations included, in the order of visiting."""
    body = node.body
    if isinstance(body, StructBody):
        for field in body.fields or ():
            if field.type is not None:
                yield from type_ids(field.type)
            yield from _annotation_ids(field.annotations)
    elif isinstance(body, EnumBody):
        for enumerant in body.enumerants:
            yield from _annotation_ids(enumerant.annotations)
    elif isinstance(body, InterfaceBody):
        yield from superclass_ids(body)
        for method in body.methods:
            yield from method_ids(method)
            yield from _annotation_ids(method.annotations)
    else:
        yield from mentioned_ids(node)
    yield from _annotation_ids(node.annotations)


def _annotation_ids(annotations: list[Annotation] | None) -> Iterator[int]:
    for annotation in annotations or ():
        yield annotation.id


def _collect_imports(decl: Declaration, paths: set[str]) -> None:
    """The import strings in the types and annotation names of a declaration and those inside."""
    for applied in decl.annotations:
        _expression_imports(applied.name, paths)
    if decl.kind != "annotation":
        _expression_imports(decl.type, paths)
    for base in decl.superclasses:
        _expression_imports(base, paths)
    for params in (decl.requests, decl.results):
        if params is None:
            continue
        if params.kind == "stream":
            paths.add(STREAM_PATH)
        _expression_imports(params.type, paths)
        for param in params.items:
            _expression_imports(param.type, paths)
            for applied in param.annotations:
                _expression_imports(applied.name, paths)
    for inner in decl.nested:
        _collect_imports(inner, paths)


def _expression_imports(expr: Expression | None, paths: set[str]) -> None:
    while expr is not None:
        if expr.kind == "import":
            name: Name = expr.value  # type: ignore[assignment]
            paths.add(name.text)
        for _, item in expr.items:
            _expression_imports(item, paths)
        expr = expr.base


def _run(options: Options, requested: list[tuple[files.FoundFile, bytes | None]]) -> Request:
    session = Session(options)
    modules: list[Module] = []
    try:
        for found, data in requested:
            # Each is visited before the next is read: a file that an earlier one imports keeps
            # the name it has there, and diagnostics come file by file.
            modules.append(session.load(found, data))
            session.visit(modules[-1].root)
        if not session.has_errors():
            session.encode_values()
    except RecursionError:
        modules[-1].source.error(0, 0, TOO_DEEP)
    except SchemaError as problem:
        # The nodes are refused by the checks that all schemas go through.
        modules[-1].source.error(0, 0, f"{problem}.")
    if session.has_errors():
        raise CompileError(list(session.diagnostics))
    return session.request(modules)


def _options(
    import_paths: Iterable[str | os.PathLike[str]],
    src_prefixes: Iterable[str | os.PathLike[str]] = (), *, standard_imports: bool = True,
    profile: str = "current", ignore_issue_344: bool = False, allow_missing_id: bool = False,
    missing_imports: str = "error",
) -> Options:
    if profile not in VERSIONS:
        raise ValueError(f"profile is one of {sorted(VERSIONS)}, not {profile!r}")
    if missing_imports not in ("error", "ignore-annotations"):
        raise ValueError(
            f'missing_imports is "error" or "ignore-annotations", not {missing_imports!r}'
        )
    finder = files.FileFinder(
        tuple(os.fspath(path) for path in import_paths),
        tuple(os.fspath(path) for path in src_prefixes),
        standard_imports=standard_imports,
    )
    ignore = ignore_issue_344 or bool(os.environ.get("CAPNP_IGNORE_ISSUE_344"))
    return Options(
        finder, profile=profile, strict_layout=not ignore, allow_missing_id=allow_missing_id,
        may_miss=missing_imports == "ignore-annotations",
    )


def compile_files(
    paths: Iterable[str | os.PathLike[str]], *,
    import_paths: Iterable[str | os.PathLike[str]] = (),
    src_prefixes: Iterable[str | os.PathLike[str]] = (), standard_imports: bool = True,
    profile: str = "current", ignore_issue_344: bool = False, allow_missing_id: bool = False,
    missing_imports: str = "error",
) -> Request:
    """Compile schema files with all they import into one request.

    `import_paths` are searched for imports that begin with `/`, before the schemas that come with
    this package and the usual system directories (`standard_imports` False: neither).
    `src_prefixes` are cut off the files' names.  `profile` "1.0" leaves out what releases before
    1.1 did not write.  `missing_imports` "ignore-annotations" drops annotations whose file is not
    there.

    Raises:
        CompileError: with the diagnostics of all files.
        OSError: one of `paths` cannot be read.
    """
    options = _options(
        import_paths, src_prefixes, standard_imports=standard_imports, profile=profile,
        ignore_issue_344=ignore_issue_344, allow_missing_id=allow_missing_id,
        missing_imports=missing_imports,
    )
    requested = [(options.finder.requested(os.fspath(path)), None) for path in paths]
    return _run(options, requested)  # type: ignore[arg-type]


def compile_text(
    text: str | bytes, *, filename: str = "schema.capnp",
    import_paths: Iterable[str | os.PathLike[str]] = (), standard_imports: bool = True,
    profile: str = "current", ignore_issue_344: bool = False, allow_missing_id: bool = False,
    missing_imports: str = "error",
) -> Request:
    """Compile a schema given as text, as if it stood in the file `filename`.

    The file need not exist; relative imports are looked for beside it.

    Raises:
        CompileError: with the diagnostics of all files.
    """
    options = _options(
        import_paths, standard_imports=standard_imports, profile=profile,
        ignore_issue_344=ignore_issue_344, allow_missing_id=allow_missing_id,
        missing_imports=missing_imports,
    )
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return _run(options, [(options.finder.requested(filename), data)])
