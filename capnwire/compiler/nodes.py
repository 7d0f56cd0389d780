"""One declaration to its node, in two steps: `start` makes the node, `finish` the pointer values.

Values of pointer types may use other types and constants, so they come after the node exists.
Spec: schema-language.md, 2.5 and 2.7; code-generator-request.md, 4.2.
"""

from __future__ import annotations

from capnwire.compiler.checks import OrdinalCheck, check_members
from capnwire.compiler.ids import method_params_id
from capnwire.compiler.names import Implicit, Resolved, Unit, expression_text
from capnwire.compiler.structs import StructCompiler, StructHost
from capnwire.compiler.syntax import Applied, Declaration, Expression, Params
from capnwire.compiler.types import bind_type, compile_brand, compile_type
from capnwire.compiler.values import Evaluator, Tree, ValueSource, empty_value, is_immediate
from capnwire.schema.model import (
    Annotation,
    AnnotationBody,
    Brand,
    BrandScope,
    ConstBody,
    EnumBody,
    Enumerant,
    FileBody,
    InterfaceBody,
    Method,
    Node,
    SourceInfo,
    SourceMember,
    StructBody,
    Superclass,
    Type,
    Value,
)

STREAM_PATH = "/capnp/stream.capnp"
LATE_STREAM = "'stream' can only appear after '->', not before."
NO_STREAM = (
    "A method declaration uses streaming, but '/capnp/stream.capnp' is not found in the import "
    "path. This is a standard file that should always be installed with the Cap'n Proto compiler."
)
WHOLE_PARAMETER = (
    "Cannot use generic parameter as whole input or output of a method. Instead, use a "
    "parameter/result list containing a field with this type."
)
EXTENDS_PARAMETER = (
    "'{}' is an unbound generic parameter. Currently we don't support extending these."
)

_SPANNED = frozenset(("struct", "enum", "interface", "const"))


def prefix_length(display_name: str) -> int:
    """How much of a display name comes before the last part."""
    dot, colon = display_name.rfind("."), display_name.rfind(":")
    return max(dot, colon) + 1


def _by_ordinal(decls: list[Declaration]) -> list[tuple[int, Declaration]]:
    """Enumerants or methods in the order of their numbers, each with its place in the text."""
    return sorted(
        enumerate(decls), key=lambda item: item[1].ordinal.value if item[1].ordinal else 0,
    )


class NodeBuilder(StructHost):
    """What one unit becomes: a node, the nodes of its groups or parameter lists, source infos."""

    __slots__ = (
        "aux", "evaluator", "node", "pending", "session", "source_infos",
    )

    def __init__(self, session: ValueSource, unit: Unit, *, strict_layout: bool) -> None:
        self.session, self.unit, self.strict_layout = session, unit, strict_layout
        self.evaluator = Evaluator(session, unit)
        self.pending: list[tuple[Value, Expression, Type]] = []
        self.aux: list[Node] = []
        self.source_infos: list[SourceInfo] = []
        self.node = self._start()

    def finish(self) -> None:
        """Evaluate the values that need other nodes."""
        self.evaluator.is_final = True
        if self.unit.id in self.session.unusable:
            self.pending.clear()
        for value, expr, type in self.pending:
            self._evaluate(value, expr, type)
        self.pending.clear()

    def set_value(self, value: Value, expr: Expression, type: Type) -> None:
        """Evaluate into `value`, now or in `finish`."""
        if is_immediate(type):
            self._evaluate(value, expr, type)
        else:
            value.kind = type.kind
            self.pending.append((value, expr, type))

    def note_unusable(self, type_id: int) -> None:
        """Leave values of that struct alone."""
        self.session.unusable.add(type_id)

    def _evaluate(self, value: Value, expr: Expression, type: Type) -> None:
        made = self.evaluator.value(expr, type)
        value.kind, value.value, value.bits = made.kind, made.value, made.bits
        if not is_immediate(type) and made.value is not None:
            self.session.trees.append(Tree(value, type, self.unit, expr))

    # --- nodes -----------------------------------------------------------------------------

    def _start(self) -> Node:
        unit, decl = self.unit, self.unit.decl
        unit.expand()
        check_members(unit.source, decl)
        display = unit.display_name
        parent = unit.parent
        node = Node(
            unit.id, display, prefix_length(display), parent.id if parent is not None else 0,
            FileBody(), is_generic=unit.generic,
            parameters=[param.text for param in decl.params] or None,
            nested=[(child.decl.name.text, child.id) for child in unit.children],
        )
        if decl.kind in _SPANNED:
            node.start_byte, node.end_byte = decl.start, decl.end
        info = SourceInfo(unit.id, doc_comment=decl.doc)
        if decl.kind != "file":
            info.start_byte, info.end_byte = decl.start, decl.end
        self.source_infos.append(info)
        if decl.kind == "struct":
            body = node.body = StructBody()
            struct = StructCompiler(self, node, body, None, info)
            struct.compile_decl(decl)
            for group, group_info in struct.groups:
                self.aux.append(group)
                self.source_infos.append(group_info)
        elif decl.kind == "enum":
            node.body = self._enum(decl, info)
        elif decl.kind == "interface":
            node.body = self._interface(decl, info, node)
        elif decl.kind == "const":
            node.body = self._const(decl)
        elif decl.kind == "annotation":
            assert decl.type is not None
            node.body = AnnotationBody(
                compile_type(unit, decl.type)[0], decl.targets,
            )
        node.annotations = self.annotations(decl.annotations, decl.kind)
        return node

    def _enum(self, decl: Declaration, info: SourceInfo) -> EnumBody:
        order = _by_ordinal(decl.nested)
        check = OrdinalCheck(self.unit.source)
        enumerants = []
        info.members = []
        for code_order, item in order:
            assert item.ordinal is not None
            check.check(item.ordinal)
            applied = self.annotations(item.annotations, "enumerant")
            enumerants.append(Enumerant(item.name.text, code_order, applied))
            info.members.append(SourceMember(item.doc))
        return EnumBody(enumerants)

    def _const(self, decl: Declaration) -> ConstBody:
        assert decl.type is not None and decl.value is not None
        type, is_whole = compile_type(self.unit, decl.type)
        value = empty_value(type)
        if is_whole:
            self.set_value(value, decl.value, type)
        return ConstBody(type, value)

    # --- interfaces ------------------------------------------------------------------------

    def _interface(self, decl: Declaration, info: SourceInfo, node: Node) -> InterfaceBody:
        superclasses = []
        for expr in decl.superclasses:
            base = self.unit.evaluate(expr)
            if base is None:
                continue
            if base.target == "interface":
                assert base.unit is not None
                superclasses.append(Superclass(base.unit.id, compile_brand(base.brand)))
            elif base.kind in ("parameter", "implicit"):
                base.error(EXTENDS_PARAMETER.format(expression_text(expr)))
            else:
                base.error(f"'{expression_text(expr)}' is not an interface.")
        declared = [item for item in decl.nested if item.kind == "method"]
        order = _by_ordinal(declared)
        check = OrdinalCheck(self.unit.source)
        methods = []
        info.members = []
        for code_order, item in order:
            assert item.ordinal is not None
            check.check(item.ordinal)
            methods.append(self._method(item, code_order, node))
            info.members.append(SourceMember(item.doc))
        return InterfaceBody(methods, superclasses)

    def _method(self, decl: Declaration, code_order: int, node: Node) -> Method:
        assert decl.requests is not None
        method = Method(
            decl.name.text, code_order,
            implicit_parameters=[param.text for param in decl.params],
        )
        method.param_struct_type, method.param_brand = self._params(
            decl, decl.requests, node, is_results=False,
        )
        results = decl.results
        if results is None:
            results = Params("list", 0, 0)
        method.result_struct_type, method.result_brand = self._params(
            decl, results, node, is_results=True,
        )
        method.annotations = self.annotations(decl.annotations, "method")
        return method

    def _params(
        self, decl: Declaration, params: Params, interface: Node, *, is_results: bool,
    ) -> tuple[int, Brand | None]:
        """The struct type of a method's parameters or results, with its brand."""
        if params.kind == "list":
            return self._params_struct(decl, params, interface, is_results=is_results)
        if params.kind == "stream":
            if not is_results:
                self.unit.source.error(params.start, params.end, LATE_STREAM)
            return self._stream(params), None
        assert params.type is not None
        found = self.unit.evaluate(params.type, Implicit(decl.params))
        if found is None:
            return 0, None
        if found.target == "struct":
            assert found.unit is not None
            return found.unit.id, compile_brand(found.brand)
        if found.kind in ("parameter", "implicit"):
            found.error(WHOLE_PARAMETER)
        else:
            text = expression_text(params.type)
            self.unit.source.error(
                params.type.start, params.type.end, f"'{text}' is not a struct type.",
            )
        return 0, None

    def _params_struct(
        self, decl: Declaration, params: Params, interface: Node, *, is_results: bool,
    ) -> tuple[int, Brand | None]:
        assert decl.ordinal is not None
        id = method_params_id(interface.id, decl.ordinal.value, is_results=is_results)
        name = f"{decl.name.text}${'Results' if is_results else 'Params'}"
        display = f"{interface.display_name}.{name}"
        body = StructBody()
        node = Node(
            id, display, len(display) - len(name), 0, body,
            parameters=[param.text for param in decl.params] or None,
            is_generic=self.unit.generic or bool(decl.params),
        )
        # Up to 1.4 every such source info has the id 0, so only the first of them survives.
        info = SourceInfo(0)
        StructCompiler(self, node, body, Implicit(decl.params, id), info).compile_params(params)
        self.aux.append(node)
        self.source_infos.append(info)
        scopes: list[BrandScope] = []
        unit: Unit | None = self.unit
        while unit is not None:
            if unit.decl.params:
                scopes.append(BrandScope(unit.id, None))
            unit = unit.parent
        return id, Brand(scopes) if scopes else None

    def _stream(self, params: Params) -> int:
        module = self.session.import_module(self.unit.module, STREAM_PATH)
        root = module.root if module is not None else None
        result = root.member("StreamResult") if root is not None else None
        if not isinstance(result, Unit):
            self.unit.source.error(params.start, params.end, NO_STREAM)
            return 0
        return result.id

    # --- annotations -----------------------------------------------------------------------

    def annotations(self, applied: list[Applied], target: str) -> list[Annotation] | None:
        """The annotations applied to something of kind `target`; None if there are none."""
        if not applied:
            return None
        made = []
        for item in applied:
            annotation = self._annotation(item, target)
            if annotation is not None:
                made.append(annotation)
        return made or None

    def _annotation(self, applied: Applied, target: str) -> Annotation | None:
        expr = applied.name
        found = self.unit.evaluate(expr)
        if found is None or found.kind == "missing":
            return None
        source = self.unit.source
        if found.target != "annotation" or found.unit is None:
            text = expression_text(expr)
            source.error(expr.start, expr.end, f"'{text}' is not an annotation.")
            return None
        node = self.session.started(found.unit)
        if node is None:
            return None
        body = node.body
        assert isinstance(body, AnnotationBody)
        if target not in body.targets:
            text = expression_text(expr)
            source.error(
                expr.start, expr.end, f"'{text}' cannot be applied to this kind of declaration.",
            )
        type = self._annotation_type(found, body)
        value = empty_value(type)
        if applied.value is not None:
            self.set_value(value, applied.value, type)
        elif type.kind != "void":
            text = expression_text(expr)
            source.error(expr.start, expr.end, f"'{text}' requires a value.")
        return Annotation(found.unit.id, value, compile_brand(found.brand))

    def _annotation_type(self, found: Resolved, body: AnnotationBody) -> Type:
        return bind_type(body.type, compile_brand(found.brand))
