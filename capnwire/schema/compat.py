"""What a change of a schema does to messages and calls: which changes break, which do not.

Judged by layout: declarations are matched by id (or by name, when the id changed), fields by
ordinal, wherever in groups and unions they are.  Spec: schema-language.md; struct-layout.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from capnwire.schema.model import (
    NO_DISCRIMINANT,
    PRIMITIVE_BITS,
    Brand,
    EnumBody,
    Field,
    InterfaceBody,
    Node,
    StructBody,
    Type,
)
from capnwire.schema.registry import mask_of, qualified_name, segment_of

__all__ = ["Change", "compare_schemas"]


class Change:
    """One difference: `where` it is, what it is (`text`), and whether it `breaks` the wire."""

    __slots__ = ("breaks", "text", "where")

    def __init__(self, where: str, text: str, *, breaks: bool) -> None:
        self.where, self.text, self.breaks = where, text, breaks

    def __repr__(self) -> str:
        return f"<{'breaks' if self.breaks else 'safe'}: {self.where}: {self.text}>"


class _Leaf:
    """A field that holds a value, with what must be set in unions around it for it to be there."""

    __slots__ = ("field", "path", "tags")

    def __init__(self, path: str, field: Field, tags: dict[int, int]) -> None:
        self.path, self.field, self.tags = path, field, tags


class _Side:
    """The nodes of one version."""

    def __init__(self, nodes: list[Node]) -> None:
        self.by_id = {node.id: node for node in nodes}
        self.by_name = {_full_name(node): node for node in nodes}

    def leaves(self, node: Node, prefix: str, tags: dict[int, int]) -> Iterator[_Leaf]:
        body = node.body
        assert isinstance(body, StructBody)
        for field in body.fields or ():
            inner = tags
            if field.discriminant_value != NO_DISCRIMINANT:
                inner = {**tags, body.discriminant_offset: field.discriminant_value}
            path = f"{prefix}{field.name}"
            if field.type is not None:
                yield _Leaf(path, field, inner)
            elif field.group_id in self.by_id:
                yield from self.leaves(self.by_id[field.group_id], f"{path}.", inner)


def _full_name(node: Node) -> str:
    return node.display_name.partition(":")[2] or "file"


def compare_schemas(old: list[Node], new: list[Node]) -> list[Change]:
    """The differences between two versions of a schema, in the order of the old one."""
    return _Comparison(_Side(old), _Side(new)).run()


class _Comparison:
    def __init__(self, old: _Side, new: _Side) -> None:
        self.old, self.new = old, new
        self.changes: list[Change] = []
        self.matched: dict[int, int] = {}

    def add(self, where: str, text: str, *, breaks: bool) -> None:
        self.changes.append(Change(where, text, breaks=breaks))

    def run(self) -> list[Change]:
        pairs = []
        for node in self.old.by_id.values():
            found = self.new.by_id.get(node.id) or self.new.by_name.get(_full_name(node))
            if found is None or type(found.body) is not type(node.body):
                if _is_declared(node):
                    self.add(_full_name(node), _gone(node, found), breaks=_travels(node))
                continue
            self.matched[node.id] = found.id
            pairs.append((node, found))
        for before, after in pairs:
            if _is_declared(before):
                self._identity(before, after)
            self._bodies(before, after)
        known = set(self.matched.values())
        for node in self.new.by_id.values():
            if node.id not in known and _is_declared(node):
                self.add(_full_name(node), "added", breaks=False)
        return self.changes

    def _identity(self, before: Node, after: Node) -> None:
        where = _full_name(before)
        if before.id != after.id:
            # Calls name interfaces by id; other ids are not in messages.
            is_interface = isinstance(before.body, InterfaceBody)
            text = f"id @0x{before.id:016x} became @0x{after.id:016x}"
            self.add(where, text, breaks=is_interface)
        if _full_name(after) != where:
            self.add(where, f"renamed to {_full_name(after)}", breaks=False)

    def _bodies(self, before: Node, after: Node) -> None:
        if isinstance(before.body, StructBody) and isinstance(after.body, StructBody):
            if not before.body.is_group:
                self._structs(before, after)
        elif isinstance(before.body, EnumBody) and isinstance(after.body, EnumBody):
            self._enums(_full_name(before), before.body, after.body)
        elif isinstance(before.body, InterfaceBody) and isinstance(after.body, InterfaceBody):
            self._interfaces(_full_name(before), before.body, after.body)
        elif hasattr(before.body, "value") and before.body != after.body:
            self.add(_full_name(before), "the constant has another value or type", breaks=False)

    # --- structs --------------------------------------------------------------------------------

    def _structs(self, before: Node, after: Node) -> None:
        where = _full_name(before)
        old = {_ordinal(leaf): leaf for leaf in self.old.leaves(before, "", {})}
        new = {_ordinal(leaf): leaf for leaf in self.new.leaves(after, "", {})}
        for ordinal, leaf in old.items():
            other = new.get(ordinal)
            if other is None:
                self.add(f"{where}.{leaf.path}", f"@{ordinal} was removed", breaks=True)
            else:
                self._leaf(f"{where}.{leaf.path}", leaf, other)
        for ordinal, leaf in new.items():
            if ordinal not in old:
                self._added(where, ordinal, leaf, old)
        for text, mine, its in (
            ("words of data", before.body.data_word_count, after.body.data_word_count),  # type: ignore[union-attr]
            ("pointers", before.body.pointer_count, after.body.pointer_count),  # type: ignore[union-attr]
        ):
            if its > mine:
                self.add(where, f"grew from {mine} to {its} {text}", breaks=False)

    def _added(self, where: str, ordinal: int, leaf: _Leaf, old: dict[int, _Leaf]) -> None:
        text = f"@{ordinal} was added"
        mine = _extent(leaf.field)
        for other in old.values():
            exclusive = any(
                tag in other.tags and other.tags[tag] != value for tag, value in leaf.tags.items()
            )
            if mine is not None and not exclusive and _overlap(mine, _extent(other.field)):
                text += f", where {other.path} was"
                if not any(value for value in leaf.tags.values()):
                    self.add(f"{where}.{leaf.path}", text, breaks=True)
                    return
        self.add(f"{where}.{leaf.path}", text, breaks=False)

    def _leaf(self, where: str, old: _Leaf, new: _Leaf) -> None:
        mine, its = old.field, new.field
        assert mine.type is not None and its.type is not None
        if old.path != new.path:
            moved = old.path.rpartition(".")[0] != new.path.rpartition(".")[0]
            self.add(where, f"{'moved' if moved else 'renamed'} to {new.path}", breaks=False)
        if mine.type != its.type:
            problem = self._types(mine.type, its.type)
            if problem is not None:
                before, after = self._said(mine.type, self.old), self._said(its.type, self.new)
                text = f"{before} became {after}" + (f": {problem}" if problem else "")
                self.add(where, text, breaks=bool(problem))
        if _extent(mine) != _extent(its) and _shape(mine) == _shape(its):
            self.add(where, f"moved from offset {mine.offset} to {its.offset}", breaks=True)
        if _default(mine) != _default(its):
            self.add(where, "has another default", breaks=True)
        for tag, value in old.tags.items():
            if tag not in new.tags:
                self.add(where, "is no longer in its union", breaks=True)
            elif new.tags[tag] != value:
                text = f"has tag {new.tags[tag]} in its union, {value} before"
                self.add(where, text, breaks=True)
        for tag, value in new.tags.items():
            if tag not in old.tags:
                text = f"is now in a union, with tag {value}"
                self.add(where, text, breaks=value != 0)

    # --- types ----------------------------------------------------------------------------------

    def _types(self, mine: Type, its: Type) -> str | None:
        """Why a change of type breaks; "" when it does not, None when there is no change."""
        if mine.kind == its.kind:
            if mine.kind in ("enum", "struct", "interface"):
                if self.matched.get(mine.type_id) != its.type_id:
                    return "another type"
                return self._brands(mine.brand, its.brand)
            if mine.kind == "list":
                assert mine.element is not None and its.element is not None
                return self._elements(mine.element, its.element)
            if mine.kind == "anyPointer":
                return "" if mine != its else None
            return None
        kinds = {mine.kind, its.kind}
        if kinds == {"text", "data"}:
            return "" if its.kind == "data" else "what is no text was allowed before"
        if "anyPointer" in kinds and not kinds & set(PRIMITIVE_BITS):
            return ""
        if kinds == {"list", "data"}:
            other = mine if mine.kind == "list" else its
            assert other.element is not None
            if other.element.kind in ("uint8", "int8"):
                return ""
        return "the wire does not say which of them it is"

    def _elements(self, mine: Type, its: Type) -> str | None:
        if its.kind == "struct" and mine.kind != "struct":
            node = self.new.by_id.get(its.type_id)
            body = node.body if node is not None else None
            if isinstance(body, StructBody) and body.fields and mine.kind != "bool":
                first = min(self.new.leaves(node, "", {}), key=_ordinal)  # type: ignore[arg-type]
                if first.field.type == mine and first.field.offset == 0:
                    return ""
            return "the struct's first field is of another type"
        return self._types(mine, its)

    def _brands(self, mine: Brand | None, its: Brand | None) -> str | None:
        if mine == its:
            return None
        before = [] if mine is None else [scope.bindings or [] for scope in mine.scopes]
        after = [] if its is None else [scope.bindings or [] for scope in its.scopes]
        for old, new in zip(before, after, strict=False):
            for left, right in zip(old, new, strict=False):
                if left.type is not None and right.type is not None:
                    problem = self._types(left.type, right.type)
                    if problem:
                        return f"a type parameter changed: {problem}"
        return ""

    def _said(self, type: Type, side: _Side) -> str:
        if type.kind == "list":
            assert type.element is not None
            return f"List({self._said(type.element, side)})"
        node = side.by_id.get(type.type_id)
        if type.kind in ("enum", "struct", "interface") and node is not None:
            return qualified_name(node)
        if type.kind.startswith("uint"):
            return f"UInt{type.kind[4:]}"
        return type.kind[:1].upper() + type.kind[1:]

    # --- enums and interfaces -------------------------------------------------------------------

    def _enums(self, where: str, old: EnumBody, new: EnumBody) -> None:
        mine, its = ([item.name for item in body.enumerants] for body in (old, new))
        for number, name in enumerate(mine):
            if number >= len(its):
                self.add(f"{where}.{name}", f"@{number} was removed", breaks=True)
            elif its[number] != name:
                text = f"@{number} is now {its[number]}"
                # The same name under another number: readers take one for the other.
                is_moved = name in its or its[number] in mine
                self.add(f"{where}.{name}", text, breaks=is_moved)
        for number in range(len(mine), len(its)):
            self.add(f"{where}.{its[number]}", f"@{number} was added", breaks=False)

    def _interfaces(self, where: str, old: InterfaceBody, new: InterfaceBody) -> None:
        for number, method in enumerate(old.methods):
            place = f"{where}.{method.name}"
            if number >= len(new.methods):
                self.add(place, f"@{number} was removed", breaks=True)
                continue
            other = new.methods[number]
            if other.name != method.name:
                names = [item.name for item in new.methods]
                is_moved = method.name in names or any(
                    item.name == other.name for item in old.methods
                )
                self.add(place, f"@{number} is now {other.name}", breaks=is_moved)
            for what, mine, its in (
                ("parameters", method.param_struct_type, other.param_struct_type),
                ("results", method.result_struct_type, other.result_struct_type),
            ):
                before, after = self.old.by_id.get(mine), self.new.by_id.get(its)
                if before is None or after is None or self.matched.get(mine) == its:
                    continue
                if isinstance(before.body, StructBody) and isinstance(after.body, StructBody):
                    self.add(place, f"its {what} are now {_full_name(after)}", breaks=False)
                    self._structs(before, after)
        for number in range(len(old.methods), len(new.methods)):
            self.add(f"{where}.{new.methods[number].name}", f"@{number} was added", breaks=False)
        kept = {base.id for base in new.superclasses}
        for base in old.superclasses:
            if self.matched.get(base.id, base.id) not in kept:
                node = self.old.by_id.get(base.id)
                name = qualified_name(node) if node is not None else f"@0x{base.id:016x}"
                self.add(where, f"no longer extends {name}", breaks=True)


def _is_declared(node: Node) -> bool:
    """Whether the schema's author wrote it as a declaration of its own."""
    if "$" in node.name or ":" not in node.display_name:
        return False
    return not (isinstance(node.body, StructBody) and node.body.is_group)


def _travels(node: Node) -> bool:
    """Whether values of the type are in messages, or calls to it."""
    return isinstance(node.body, (StructBody, EnumBody, InterfaceBody))


def _gone(node: Node, found: Node | None) -> str:
    return "was removed" if found is None else "became another kind of declaration"


def _ordinal(leaf: _Leaf) -> int:
    """What matches a field with that of another version: its number."""
    return leaf.field.code_order if leaf.field.ordinal is None else leaf.field.ordinal


def _shape(field: Field) -> int:
    """Bits of a data field, 0 for Void, -1 for pointers."""
    assert field.type is not None
    return PRIMITIVE_BITS.get(field.type.kind, -1)


def _extent(field: Field) -> tuple[bool, int, int] | None:
    """(is a pointer, start, end) in bits or pointers; None for Void."""
    size = _shape(field)
    if size == 0:
        return None
    if size < 0:
        return True, field.offset, field.offset + 1
    return False, field.offset * size, (field.offset + 1) * size


def _overlap(left: tuple[bool, int, int], right: tuple[bool, int, int] | None) -> bool:
    return (
        right is not None and left[0] == right[0] and left[1] < right[2] and right[1] < left[2]
    )


def _default(field: Field) -> object:
    if field.default_value is None:
        return None
    if _shape(field) >= 0:
        return mask_of(field.default_value)
    return segment_of(field.default_value)
