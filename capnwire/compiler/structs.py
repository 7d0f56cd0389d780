"""One struct with its groups and unions: walks the declarations, lays the fields out, fills nodes.

Also the structs made for methods' parameter lists.  Spec: struct-layout.md, 3.2.
"""

from __future__ import annotations

from capnwire.compiler.checks import OrdinalCheck
from capnwire.compiler.ids import group_id
from capnwire.compiler.layout import ISSUE_344, GroupLayout, Issue344, StructLayout, UnionLayout
from capnwire.compiler.names import Implicit, Unit
from capnwire.compiler.syntax import Applied, Declaration, Expression, Ordinal, Params
from capnwire.compiler.types import compile_type
from capnwire.compiler.values import empty_value
from capnwire.schema.model import (
    Annotation,
    Field,
    Node,
    SourceInfo,
    SourceMember,
    StructBody,
    Type,
    Value,
)

LG = {
    "bool": 0, "int8": 3, "uint8": 3, "int16": 4, "uint16": 4, "enum": 4, "int32": 5, "uint32": 5,
    "float32": 5, "int64": 6, "uint64": 6, "float64": 6,
}

GROUP_EMPTY = "Group must have at least one member."
UNION_TOO_SMALL = "Union must have at least two members."
UNNAMED_IN_UNION = "Unions cannot contain unnamed unions."
LATE_UNION = (
    "Union ordinal, if specified, must be greater than no more than one of its member ordinals "
    "(i.e. there can only be one field retroactively unionized)."
)
NULL_DEFAULT = "Only pointer parameters can declare their default as 'null'."


class StructHost:
    """What a struct needs of the node builder around it; `NodeBuilder` in nodes.py."""

    __slots__ = ("strict_layout", "unit")

    unit: Unit
    strict_layout: bool

    def set_value(self, value: Value, expr: Expression, type: Type) -> None:
        """Evaluate into `value`, now or once all types exist."""
        raise NotImplementedError

    def annotations(self, applied: list[Applied], target: str) -> list[Annotation] | None:
        """The annotations applied to something of kind `target`."""
        raise NotImplementedError

    def note_unusable(self, type_id: int) -> None:
        """Say that values of a struct cannot be looked at, for an error that was reported."""
        raise NotImplementedError


class _Scope:
    """A node's worth of fields: the struct itself, a group or a named union."""

    __slots__ = ("body", "code_order", "fields", "members", "node", "union", "union_members")

    def __init__(self, node: Node, body: StructBody) -> None:
        self.node, self.body = node, body
        self.fields: list[Field] = []
        self.members: list[_Member] = []
        self.union: UnionLayout | None = None
        self.union_members = 0
        self.code_order = 0


class _Member:
    """A field, group or named union, in the scope that lists it."""

    __slots__ = (
        "annotations", "default", "doc", "field", "in_union", "inner", "kind", "layout", "name",
        "order", "outer", "owner", "type", "union",
    )

    def __init__(
        self, kind: str, name: str, owner: _Scope, outer: _Member | None, *, in_union: bool,
        annotations: list[Applied], doc: str | None = None,
    ) -> None:
        self.kind, self.name, self.owner, self.outer = kind, name, owner, outer
        self.in_union, self.annotations, self.doc = in_union, annotations, doc
        self.order = owner.code_order
        owner.code_order += 1
        self.field: Field | None = None
        self.inner: _Scope | None = None
        self.type: Expression | None = None
        self.default: Expression | None = None
        self.layout: StructLayout | GroupLayout | None = None
        self.union: UnionLayout | None = None


class StructCompiler:
    """Fills the node of one struct; its groups become `groups`."""

    def __init__(
        self, builder: StructHost, node: Node, body: StructBody, implicit: Implicit | None,
        source_info: SourceInfo,
    ) -> None:
        self.builder, self.source = builder, builder.unit.source
        self.implicit = implicit
        self.top = StructLayout(strict=builder.strict_layout)
        self.root = _Scope(node, body)
        self.members: list[_Member] = []
        self.groups: list[tuple[Node, SourceInfo]] = []
        self.source_info = source_info
        self.queue: list[tuple[int, Ordinal | None, _Member, UnionLayout | None]] = []

    def compile_decl(self, decl: Declaration) -> None:
        """Compile a struct declaration."""
        self._walk(decl.nested, self.root, None, self.top)
        try:
            self._run(OrdinalCheck(self.source))
            self._finish()
        except Issue344:
            name = decl.name
            self.source.error(name.start, name.end, ISSUE_344)
            self.builder.note_unusable(self.root.node.id)

    def compile_params(self, params: Params) -> None:
        """Compile a method's parameter or result list."""
        for index, param in enumerate(params.items):
            member = _Member(
                "field", param.name.text, self.root, None, in_union=False,
                annotations=param.annotations,
            )
            member.type, member.default, member.layout = param.type, param.default, self.top
            self.members.append(member)
            self.queue.append((index, None, member, None))
        self._run(None)
        self._finish()

    # --- walking ---------------------------------------------------------------------------

    def _walk(
        self, decls: list[Declaration], scope: _Scope, outer: _Member | None,
        layout: StructLayout | GroupLayout,
    ) -> None:
        """Take the members of the struct or of a group."""
        for decl in decls:
            if decl.kind == "field":
                self._field(decl, scope, outer, layout, in_union=False)
            elif decl.kind == "group":
                self._group(decl, scope, outer, layout, in_union=False)
            elif decl.kind == "union":
                self._union(decl, scope, outer, layout, in_union=False)

    def _field(
        self, decl: Declaration, scope: _Scope, outer: _Member | None,
        layout: StructLayout | GroupLayout, *, in_union: bool,
    ) -> None:
        member = _Member(
            "field", decl.name.text, scope, outer, in_union=in_union,
            annotations=decl.annotations, doc=decl.doc,
        )
        member.type, member.default, member.layout = decl.type, decl.value, layout
        self.members.append(member)
        assert decl.ordinal is not None
        self.queue.append((decl.ordinal.value, decl.ordinal, member, None))

    def _scoped(
        self, decl: Declaration, scope: _Scope, outer: _Member | None, *, in_union: bool,
    ) -> _Member:
        """A member with a node of its own."""
        name = decl.name.text
        member = _Member(
            decl.kind, name, scope, outer, in_union=in_union, annotations=decl.annotations,
            doc=decl.doc,
        )
        parent = scope.node
        display = f"{parent.display_name}.{name}"
        body = StructBody(is_group=True)
        node = Node(
            0, display, len(display) - len(name), parent.id, body, is_generic=parent.is_generic,
        )
        member.inner = _Scope(node, body)
        self.members.append(member)
        return member

    def _group(
        self, decl: Declaration, scope: _Scope, outer: _Member | None,
        layout: StructLayout | GroupLayout, *, in_union: bool,
    ) -> None:
        if not decl.nested:
            self.source.error(decl.start, decl.end, GROUP_EMPTY)
        member = self._scoped(decl, scope, outer, in_union=in_union)
        assert member.inner is not None
        self._walk(decl.nested, member.inner, member, layout)

    def _union(
        self, decl: Declaration, scope: _Scope, outer: _Member | None,
        layout: StructLayout | GroupLayout, *, in_union: bool,
    ) -> None:
        if len(decl.nested) < 2:
            self.source.error(decl.start, decl.end, UNION_TOO_SMALL)
        union = UnionLayout(layout)
        if decl.name.text:
            member = self._scoped(decl, scope, outer, in_union=in_union)
            member.union = union
            assert member.inner is not None
            scope, outer = member.inner, member
            if decl.ordinal is not None:
                self.queue.append((decl.ordinal.value, decl.ordinal, member, union))
        scope.union = union
        for inner in decl.nested:
            group = GroupLayout(union)
            if inner.kind == "field":
                self._field(inner, scope, outer, group, in_union=True)
            elif inner.kind == "group":
                self._group(inner, scope, outer, group, in_union=True)
            elif inner.kind == "union":
                if inner.name.text:
                    self._union(inner, scope, outer, group, in_union=True)
                else:
                    self.source.error(inner.start, inner.end, UNNAMED_IN_UNION)

    # --- fields in the order of their numbers ----------------------------------------------

    def _run(self, check: OrdinalCheck | None) -> None:
        queue = self.queue
        queue.sort(key=lambda item: item[0])
        for value, ordinal, member, union in queue:
            if check is not None:
                assert ordinal is not None
                check.check(ordinal)
            field = member.field or self._entry(member)
            field.ordinal = value
            if union is not None:
                if not union.add_discriminant():
                    assert ordinal is not None
                    self.source.error(ordinal.start, ordinal.end, LATE_UNION)
            else:
                self._slot(member, field)

    def _entry(self, member: _Member) -> Field:
        """List a member in its node, after what holds it."""
        outer = member.outer
        if outer is not None and outer.field is None:
            self._entry(outer)
        scope = member.owner
        field = Field(member.name, member.order)
        if member.in_union:
            field.discriminant_value = scope.union_members
            scope.union_members += 1
        if member.inner is not None:
            inner = member.inner.node
            inner.scope_id = scope.node.id
            inner.id = field.group_id = group_id(scope.node.id, len(scope.fields))
        scope.fields.append(field)
        scope.members.append(member)
        member.field = field
        return field

    def _slot(self, member: _Member, field: Field) -> None:
        assert member.type is not None and member.layout is not None
        builder = self.builder
        type, is_whole = compile_type(builder.unit, member.type, self.implicit)
        field.type = type
        lg = LG.get(type.kind)
        if lg is not None:
            field.offset = member.layout.add_data(lg)
        elif type.kind == "void":
            member.layout.add_void()
        else:
            field.offset = member.layout.add_pointer()
        if member.default is None:
            field.default_value = empty_value(type)
            return
        field.had_explicit_default = True
        if not is_whole:
            field.default_value = empty_value(type)
        elif self.implicit is not None and _is_null(member.default):
            field.default_value = empty_value(type)
            if lg is not None or type.kind == "void":
                self.source.error(member.default.start, member.default.end, NULL_DEFAULT)
        else:
            field.default_value = value = Value("")
            builder.set_value(value, member.default, type)

    # --- the rest --------------------------------------------------------------------------

    def _finish(self) -> None:
        root = self.root
        for member in self.members:
            if member.inner is not None and member.field is None:
                self._entry(member)  # an empty group, which was reported
        self._close(root)
        for member in self.members:
            field = member.field
            if member.inner is not None:
                self._close(member.inner)
                if field is not None:
                    self.groups.append((member.inner.node, self._info(member.inner, member.doc)))
            target = member.kind
            if self.implicit is not None:
                target = "param"
            applied = self.builder.annotations(member.annotations, target)
            if field is not None:
                field.annotations = applied
        info = self._info(root)
        self.source_info.members = info.members
        bodies = [root.body] + [node.body for node, _ in self.groups]
        for body in bodies:
            body.data_word_count = self.top.data_words  # type: ignore[union-attr]
            body.pointer_count = self.top.pointers  # type: ignore[union-attr]

    def _close(self, scope: _Scope) -> None:
        """Give a scope's union its discriminant, and the node its fields."""
        body = scope.body
        if scope.union is not None:
            scope.union.add_discriminant()
            body.discriminant_count = scope.union_members
            if scope.union_members == 1:
                self.builder.note_unusable(self.root.node.id)
            body.discriminant_offset = scope.union.discriminant or 0
        body.fields = scope.fields or None
        if len({field.name for field in scope.fields}) < len(scope.fields):
            self.builder.note_unusable(self.root.node.id)

    def _info(self, scope: _Scope, doc: str | None = None) -> SourceInfo:
        members = [SourceMember(member.doc) for member in scope.members]
        return SourceInfo(scope.node.id, doc_comment=doc, members=members or None)


def _is_null(expr: Expression) -> bool:
    return expr.kind == "relative" and expr.value.text == "null"  # type: ignore[attr-defined]
