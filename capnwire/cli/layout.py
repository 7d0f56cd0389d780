"""How the words of a message are used: objects, pointers and what lies between them.

This walks the wire format itself, since the readers of the library hide what is of interest here.
Nothing in a message is trusted: what is wrong becomes a remark at the pointer that is wrong.
Spec: encoding.md, 1.1 to 1.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import unpack
from typing import Any

from capnwire.message.text import format_float
from capnwire.schema.model import NO_DISCRIMINANT, PRIMITIVE_BITS, Field, StructBody
from capnwire.schema.registry import Registry

__all__ = ["USES", "Item", "Walk"]

USES = ("pointer", "data", "text", "list", "pad", "unused")
"""What a word can be used for."""

ELEMENT_BITS = (0, 1, 8, 16, 32, 64, 64)
ELEMENT_NAMES = ("void", "bits", "bytes", "2 bytes", "4 bytes", "8 bytes", "pointers", "structs")
MOST_DEPTH = 64


class Item:
    """One object or field: its `label`, and the items inside."""

    __slots__ = ("inner", "label")

    def __init__(self, label: str) -> None:
        self.label = label
        self.inner: list[Item] = []

    def lines(self) -> Iterator[str]:
        """The tree as lines of text."""
        yield self.label
        stack = [(item, "", index == len(self.inner) - 1) for index, item in enumerate(self.inner)]
        stack.reverse()
        while stack:
            item, prefix, is_last = stack.pop()
            yield f"{prefix}{'└─ ' if is_last else '├─ '}{item.label}"
            prefix += "   " if is_last else "│  "
            last = len(item.inner) - 1
            stack.extend(
                (item.inner[index], prefix, index == last) for index in range(last, -1, -1)
            )


class Wrong(Exception):
    """A pointer that does not lead anywhere; the text says why."""


class Walk:
    """Goes through a message once; `uses` holds what each word of each segment is used for.

    `most` is how many objects are looked at, and `most_elements` how many elements of a list.
    """

    def __init__(
        self, segments: Sequence[memoryview], registry: Registry | None, *, most: int,
        most_elements: int,
    ) -> None:
        self.segments = [bytes(segment) for segment in segments]
        self.uses = [bytearray([5]) * (len(segment) // 8) for segment in segments]
        self.registry = registry
        self.left, self.most_elements = most, most_elements

    # --- words ----------------------------------------------------------------------------------

    def word(self, segment: int, at: int) -> int:
        """The word at a place.

        Raises:
            Wrong: there is no such place.
        """
        if not 0 <= segment < len(self.segments):
            raise Wrong(f"segment {segment} does not exist")
        if not 0 <= at < len(self.uses[segment]):
            raise Wrong(f"word {at} is outside segment {segment}")
        return int.from_bytes(self.segments[segment][at * 8 : at * 8 + 8], "little")

    def claim(self, segment: int, at: int, words: int, use: int) -> None:
        """Note the use of words.

        Raises:
            Wrong: they are not all in the segment.
        """
        if at < 0 or at + words > len(self.uses[segment]):
            raise Wrong(f"its {words} words from {at} on are not all in segment {segment}")
        self.uses[segment][at : at + words] = bytes([use]) * words

    # --- pointers -------------------------------------------------------------------------------

    def root(self, key: tuple[Any, ...] | None) -> Item:
        """The tree of the whole message."""
        item = Item("root")
        if not self.segments or not self.uses[0]:
            item.label = "root: there is no first word"
            return item
        self.pointer(item, 0, 0, key, 0)
        return item

    def pointer(
        self, item: Item, segment: int, at: int, key: tuple[Any, ...] | None, depth: int
    ) -> None:
        """Describe the object behind a pointer at the item."""
        try:
            self.uses[segment][at] = 0
            pointer = self.word(segment, at)
            if pointer == 0:
                item.label += ": null"
                return
            self.left -= 1
            if depth > MOST_DEPTH or self.left < 0:
                item.label += ": … (not looked at)"
                return
            self._object(item, segment, at, pointer, key, depth)
        except Wrong as problem:
            item.label += f": WRONG: {problem}"

    def _object(
        self, item: Item, segment: int, at: int, pointer: int, key: tuple[Any, ...] | None,
        depth: int,
    ) -> None:
        far = ""
        target = at + 1 + _signed(pointer)
        if pointer & 3 == 2:
            pad_segment, pad = pointer >> 32, (pointer >> 3) & 0x1FFFFFFF
            far = f", far by {pad_segment}:{pad}"
            landing = self.word(pad_segment, pad)
            self.uses[pad_segment][pad] = 4
            if pointer & 4:
                if landing & 7 != 2:
                    raise Wrong("a double far pointer without a far pointer in its landing pad")
                tag = self.word(pad_segment, pad + 1)
                self.uses[pad_segment][pad + 1] = 4
                segment, target, pointer = landing >> 32, (landing >> 3) & 0x1FFFFFFF, tag
                far = f", double{far}"
                self.word(segment, 0)
            else:
                segment, target, pointer = pad_segment, pad + 1 + _signed(landing), landing
            if pointer & 3 == 2:
                raise Wrong("a landing pad that is a far pointer itself")
        kind = pointer & 3
        if kind == 0:
            data, pointers = (pointer >> 32) & 0xFFFF, pointer >> 48
            place = f"{segment}:{target}, {_sizes(data, pointers)}{far}"
            item.label += f": {self._struct_name(key)} {place}"
            self._struct(item, segment, target, data, pointers, key, depth)
        elif kind == 1:
            self._list(item, segment, target, pointer, key, depth, far)
        elif pointer & 0xFFFFFFFF == 3:
            item.label += f": capability {pointer >> 32}{far}"
        else:
            raise Wrong(f"{pointer:#018x} is no pointer")

    def _struct_name(self, key: tuple[Any, ...] | None) -> str:
        if key is None or self.registry is None or key[0] != "struct":
            return "struct"
        return self.registry.node(key[1]).display_name.rpartition(":")[2]

    # --- structs --------------------------------------------------------------------------------

    def _struct(
        self, item: Item, segment: int, at: int, data: int, pointers: int,
        key: tuple[Any, ...] | None, depth: int,
    ) -> None:
        if data + pointers == 0:
            return
        self.claim(segment, at, data, 1)
        self.claim(segment, at + data, pointers, 0)
        known: set[int] = set()
        if key is not None and key[0] == "struct" and self.registry is not None:
            raw = self.segments[segment][at * 8 : (at + data) * 8]
            self._fields(item, raw, segment, at + data, pointers, key, depth, known)
        elif data:
            words = self.segments[segment][at * 8 : (at + min(data, 4)) * 8].hex(" ", 8)
            item.inner.append(Item(f"data: {words}{' …' if data > 4 else ''}"))
        for index in range(pointers):
            if index not in known:
                inner = Item(f"pointer {index}")
                self.pointer(inner, segment, at + data + index, None, depth + 1)
                if key is None or not inner.label.endswith(": null"):
                    item.inner.append(inner)

    def _fields(
        self, item: Item, raw: bytes, segment: int, at: int, pointers: int, key: tuple[Any, ...],
        depth: int, known: set[int],
    ) -> None:
        assert self.registry is not None
        body = self.registry.node(key[1]).body
        assert isinstance(body, StructBody)
        tag = _bits(raw, body.discriminant_offset * 16, 16)
        for field in body.fields or ():
            if field.discriminant_value not in (NO_DISCRIMINANT, tag):
                continue
            if field.type is None:
                group = Item(field.name)
                inner_key = ("struct", field.group_id, key[2])
                self._fields(group, raw, segment, at, pointers, inner_key, depth, known)
                item.inner.append(group)
                continue
            closed = self.registry.close(field.type, key[2])
            if closed[0] in PRIMITIVE_BITS:
                item.inner.append(Item(f"{field.name} = {self._scalar(raw, field, closed)}"))
            elif field.offset < pointers:
                known.add(field.offset)
                inner = Item(field.name)
                self.pointer(inner, segment, at + field.offset, closed, depth + 1)
                item.inner.append(inner)

    def _scalar(self, raw: bytes, field: Field, key: tuple[Any, ...]) -> str:
        from capnwire.schema.registry import mask_of

        kind = key[0]
        size = PRIMITIVE_BITS[kind]
        bits = _bits(raw, field.offset * size, size) ^ mask_of(field.default_value)
        return self.scalar_text(kind, bits, size, key)

    def scalar_text(self, kind: str, bits: int, size: int, key: tuple[Any, ...]) -> str:
        """A number of the data section as its type shows it."""
        if kind == "void":
            return "void"
        if kind == "bool":
            return "true" if bits else "false"
        if kind in ("float32", "float64"):
            value = unpack("<f" if size == 32 else "<d", bits.to_bytes(size // 8, "little"))[0]
            return format_float(value, single=size == 32)
        if kind == "enum" and self.registry is not None:
            body: Any = self.registry.node(key[1]).body
            names = [entry.name for entry in body.enumerants]
            return names[bits] if bits < len(names) else f"({bits})"
        if kind.startswith("int") and bits >> (size - 1):
            bits -= 1 << size
        return str(bits)

    # --- lists ----------------------------------------------------------------------------------

    def _list(
        self, item: Item, segment: int, at: int, pointer: int, key: tuple[Any, ...] | None,
        depth: int, far: str,
    ) -> None:
        size, count = (pointer >> 32) & 7, pointer >> 35
        element = key[1] if key is not None and key[0] == "list" else None
        if size == 7:
            self._struct_list(item, segment, at, count, element, depth, far)
            return
        words = (count * ELEMENT_BITS[size] + 63) // 64
        blob = key[0] if key is not None and key[0] in ("text", "data") else ""
        self.claim(segment, at, words, 0 if size == 6 else 2 if blob else 3)
        place = f"{segment}:{at}, {_words(words)}{far}"
        raw = self.segments[segment][at * 8 : (at + words) * 8]
        if blob and size == 2:
            shown = raw[:count]
            text = shown[:-1].decode("utf-8", "replace") if blob == "text" else shown.hex(" ")
            short = text if len(text) <= 60 else text[:60] + "…"
            item.label += f": {blob} {place}, {count} bytes: {short!r}"
            return
        item.label += f": list of {count} × {ELEMENT_NAMES[size]} {place}"
        shown_count = min(count, self.most_elements)
        if size == 6:
            for index in range(shown_count):
                inner = Item(f"[{index}]")
                self.pointer(inner, segment, at + index, element, depth + 1)
                item.inner.append(inner)
        elif element is not None and element[0] in PRIMITIVE_BITS and size:
            bits = ELEMENT_BITS[size]
            values = [
                self.scalar_text(element[0], _bits(raw, index * bits, bits), bits, element)
                for index in range(shown_count)
                if PRIMITIVE_BITS[element[0]] == bits
            ]
            if values:
                item.inner.append(Item(", ".join(values) + (" …" if count > shown_count else "")))
            return
        if count > shown_count and size == 6:
            item.inner.append(Item(f"… {count - shown_count} more"))

    def _struct_list(
        self, item: Item, segment: int, at: int, words: int, element: tuple[Any, ...] | None,
        depth: int, far: str,
    ) -> None:
        self.claim(segment, at, words + 1, 3)
        tag = self.word(segment, at)
        self.uses[segment][at] = 4
        count, data, pointers = (tag >> 2) & 0x3FFFFFFF, (tag >> 32) & 0xFFFF, tag >> 48
        item.label += (
            f": list of {count} × {self._struct_name(element)} {segment}:{at}, "
            f"{_sizes(data, pointers)} each{far}"
        )
        if tag & 3 or count * (data + pointers) > words:
            raise Wrong("the tag of its elements does not fit the list")
        for index in range(min(count, self.most_elements)):
            inner = Item(f"[{index}]")
            self._struct(
                inner, segment, at + 1 + index * (data + pointers), data, pointers, element,
                depth + 1,
            )
            item.inner.append(inner)
        if count > self.most_elements:
            item.inner.append(Item(f"… {count - self.most_elements} more"))


def _signed(pointer: int) -> int:
    """The offset in a struct or list pointer."""
    offset = (pointer >> 2) & 0x3FFFFFFF
    return offset - (1 << 30) if offset >> 29 else offset


def _bits(raw: bytes, at: int, size: int) -> int:
    """Bits of a data section; zero beyond its end."""
    if size == 1:
        return raw[at >> 3] >> (at & 7) & 1 if at >> 3 < len(raw) else 0
    return int.from_bytes(raw[at >> 3 : (at + size) >> 3], "little")


def _words(count: int) -> str:
    return "1 word" if count == 1 else f"{count} words"


def _sizes(data: int, pointers: int) -> str:
    return f"{_words(data)} of data, {pointers} pointer{'' if pointers == 1 else 's'}"


