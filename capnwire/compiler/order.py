"""The order in which a request lists nodes and source infos.

Nodes come in the order in which their ids are first mentioned while files are visited.  Source
infos come in the iteration order of the hash table that the reference keeps them in.
Spec: code-generator-request.md, 4.3 and 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from capnwire.schema.model import (
    AnnotationBody,
    Brand,
    ConstBody,
    InterfaceBody,
    Method,
    Node,
    SourceInfo,
    StructBody,
    Type,
)

STREAM_RESULT = 0x995F9A3377C0B16E


def type_ids(type: Type) -> Iterator[int]:
    """The ids that a type mentions, those of its brand included."""
    while type.kind == "list":
        assert type.element is not None
        type = type.element
    if type.kind in ("enum", "struct", "interface"):
        yield type.type_id
        yield from brand_ids(type.brand)


def brand_ids(brand: Brand | None) -> Iterator[int]:
    """The ids that a brand's bindings mention."""
    if brand is None:
        return
    for scope in brand.scopes:
        for binding in scope.bindings or ():
            if binding.type is not None:
                yield from type_ids(binding.type)


def superclass_ids(body: InterfaceBody) -> Iterator[int]:
    """The ids that an interface's list of superclasses mentions."""
    for base in body.superclasses:
        yield base.id
        yield from brand_ids(base.brand)


def method_ids(method: Method) -> Iterator[int]:
    """The ids that a method mentions, its annotations aside."""
    yield method.param_struct_type
    yield from brand_ids(method.param_brand)
    yield method.result_struct_type
    yield from brand_ids(method.result_brand)


def mentioned_ids(node: Node) -> Iterator[int]:
    """The ids that a node mentions, in the order in which it does."""
    body = node.body
    if isinstance(body, StructBody):
        for field in body.fields or ():
            if field.type is not None:
                yield from type_ids(field.type)
            else:
                yield field.group_id
        if body.is_group:
            yield node.scope_id
    elif isinstance(body, InterfaceBody):
        yield from superclass_ids(body)
        for method in body.methods:
            yield from method_ids(method)
    elif isinstance(body, (ConstBody, AnnotationBody)):
        yield from type_ids(body.type)


class NodeTable:
    """The nodes loaded so far, in the order in which their ids were first mentioned."""

    __slots__ = ("_loaded", "_order")

    def __init__(self) -> None:
        self._order: dict[int, None] = {}
        self._loaded: dict[int, Node] = {}

    def load(self, node: Node) -> None:
        """Enter a node, after the ids that it mentions."""
        if node.id in self._loaded:
            return
        if node.id == STREAM_RESULT and node.id in self._order:
            # The reference has this one built in, without its place in the text.
            node.start_byte = node.end_byte = 0
        order = self._order
        for id in mentioned_ids(node):
            order.setdefault(id)
        order.setdefault(node.id)
        self._loaded[node.id] = node

    def nodes(self) -> list[Node]:
        """The nodes in their order."""
        loaded = self._loaded
        return [loaded[id] for id in self._order if id in loaded]


_PRIMES = (
    1, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061,
    712697, 1447153, 2938679,
)


def source_info_order(infos: list[SourceInfo]) -> list[SourceInfo]:
    """The infos, the first of each id, in the order in which the reference writes them.

    A chained hash table with one list through all buckets: a new entry goes to the front of its
    bucket if that has any, else to the front of the list.
    """
    table = _Table(1)
    prime = 0
    seen: set[int] = set()
    for info in infos:
        if info.id in seen:
            continue
        if len(seen) + 1 > table.size and prime + 1 < len(_PRIMES):
            prime += 1
            larger = _Table(_PRIMES[prime])
            for moved in table.entries():
                larger.insert(moved)
            table = larger
        seen.add(info.id)
        table.insert(info)
    return list(table.entries())


class _Table:
    """Buckets over one linked list; each remembers what stands before its first entry."""

    __slots__ = ("_before", "_first", "_next", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._first: SourceInfo | None = None
        self._next: dict[int, SourceInfo | None] = {}
        self._before: dict[int, SourceInfo | None] = {}

    def insert(self, info: SourceInfo) -> None:
        bucket = info.id % self.size
        if bucket in self._before:
            before = self._before[bucket]
            if before is None:
                self._next[info.id], self._first = self._first, info
            else:
                self._next[info.id] = self._next[before.id]
                self._next[before.id] = info
            return
        old = self._first
        self._next[info.id], self._first = old, info
        self._before[bucket] = None
        if old is not None:
            self._before[old.id % self.size] = info

    def entries(self) -> Iterator[SourceInfo]:
        info = self._first
        while info is not None:
            yield info
            info = self._next[info.id]
