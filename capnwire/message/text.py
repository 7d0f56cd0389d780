"""The text form of messages: what `str()` gives and the `capnp` tool prints.

Spec: tool.md, Text format.
"""

from __future__ import annotations

import struct as packing
from math import isinf, isnan

from capnwire._any import AnyPointerBuilder, AnyPointerReader
from capnwire._fast import Struct, StructBuilder
from capnwire._info import EnumValue, ListInfo, StructInfo
from capnwire._lists import List, ListBuilder
from capnwire.errors import CapnwireError, LimitError, UnionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

__all__ = ["format_float", "format_struct", "quote", "repr_of", "text_of"]

INLINE_ITEM = 24      # bytes of an item that may share a line
INLINE_RECORD = 64    # bytes of all items of a record that may share a line
MAX_LEVELS = 150      # of nested values: Python's own stack

_ESCAPES = {
    0x07: "\\a", 0x08: "\\b", 0x0C: "\\f", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x0B: "\\v",
    0x27: "\\'", 0x22: '\\"', 0x5C: "\\\\",
}
for _code in (*range(0x20), 0x7F):
    _ESCAPES.setdefault(_code, f"\\{_code:03o}")
_DATA_ESCAPES = {**_ESCAPES, **{code: f"\\{code:03o}" for code in range(0x80, 0x100)}}


def quote(text: str | bytes) -> str:
    """A Text or Data in double quotes, with C escapes; bytes from 0x80 up stay in Text only."""
    if isinstance(text, bytes):
        return f'"{text.decode("latin-1").translate(_DATA_ESCAPES)}"'
    return f'"{text.translate(_ESCAPES)}"'


def format_float(value: float, *, single: bool) -> str:
    """A float in the fewest of the reference's digits that read back."""
    if isnan(value):
        return "nan"
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    if single:
        text = f"{value:.6g}"
        tiny = value != 0 and abs(value) < 2.0**-126
        if tiny or packing.pack("<f", _clamped(float(text))) != packing.pack("<f", value):
            text = f"{value:.8g}"
    else:
        text = f"{value:.15g}"
        if float(text) != value:
            text = f"{value:.17g}"
    return text.replace("e+", "e")


def _clamped(value: float) -> float:
    limit = 3.4028234663852886e38
    return max(-limit, min(limit, value))


class _Printer:
    """Prints values; `pretty` breaks long ones over lines."""

    def __init__(self, pretty: bool) -> None:
        self.pretty = pretty
        self.level = 0

    def struct(self, value: Any, info: StructInfo, indent: int, bare: bool) -> str:
        items = []
        reader = value.as_reader() if isinstance(value, StructBuilder) else value
        for name in _printed_fields(reader, info):
            kind, sub, _, _ = info.field(name)
            text = self.value(reader[name], kind, sub, indent + 1, bare=False)
            items.append(f"{name} = {text}")
        return f"({self.join(items, indent, bare, record=True)})"

    def sequence(self, value: Any, info: ListInfo, indent: int, bare: bool) -> str:
        kind, sub = _KINDS[info.element_kind], info.element_info
        reader = value.as_reader() if isinstance(value, ListBuilder) else value
        items = [self.value(item, kind, sub, indent + 1, bare=True) for item in reader]
        return f"[{self.join(items, indent, bare, record=False)}]"

    def value(self, value: Any, kind: int, sub: Any, indent: int, bare: bool) -> str:
        if kind == _KINDS["struct"] or kind == _KINDS["group"]:
            return self.nested(self.struct, value, sub, indent, bare)
        if kind == _KINDS["list"]:
            return self.nested(self.sequence, value, sub, indent, bare)
        if kind == _KINDS["text"] or kind == _KINDS["data"]:
            return quote(value)
        return scalar_text(value, kind)

    def nested(self, method: Any, value: Any, sub: Any, indent: int, bare: bool) -> str:
        self.level += 1
        if self.level > MAX_LEVELS:
            raise LimitError("the nesting of printed values", limit=MAX_LEVELS, wanted=self.level)
        text: str = method(value, sub, indent, bare)
        self.level -= 1
        return text

    def join(self, items: list[str], indent: int, bare: bool, record: bool) -> str:
        if not self.pretty or _fits(items, record):
            return ", ".join(items)
        line = "\n" + "  " * indent
        return (" " if bare else line) + f",{line}".join(items) + " "


def _fits(items: list[str], record: bool) -> bool:
    total = 0
    for item in items:
        size = len(item.encode("utf-8", "surrogateescape"))
        if size > INLINE_ITEM or "\n" in item:
            return False
        total += size
    return not record or total <= INLINE_RECORD


def scalar_text(value: Any, kind: int) -> str:
    """Any value that is neither a struct, a list, a Text nor a Data."""
    if value is None and kind == _KINDS["void"]:
        return "void"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_float(value, single=kind == _KINDS["float32"])
    if isinstance(value, EnumValue):
        return f"({value.raw})" if value.name is None else value.name
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (AnyPointerReader, AnyPointerBuilder)):
        return "<opaque pointer>"
    return "<external capability>"


def _printed_fields(value: Any, info: StructInfo) -> Iterator[str]:
    """The fields that are printed, in order: set ones, and the active union member."""
    active = None
    if info.discriminant_count:
        try:
            active = value.which() if "which" not in info.by_name else Struct.which(value)
        except UnionError:
            active = None
    for name in info.by_name:
        discriminant = info.field(name)[2]
        if discriminant is None:
            if value.has(name):
                yield name
        elif name == active and (discriminant != 0 or value.has(name)):
            yield name


_KINDS = {
    "void": 0, "bool": 1, "float32": 10, "float64": 11, "enum": 12, "text": 13, "data": 14,
    "struct": 15, "list": 16, "interface": 17, "anyPointer": 18, "anyStruct": 19, "anyList": 20,
    "group": 21, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7,
    "uint32": 8, "uint64": 9, "capability": 17,
}


def format_struct(value: Struct | List, *, pretty: bool = True) -> str:
    """A struct or list as text, on one line or broken as the tool does."""
    printer = _Printer(pretty)
    value._check_printable()
    if isinstance(value, List):
        return printer.sequence(value, value.type, 1, bare=True)
    return printer.struct(value, value._info, 1, bare=True)


def text_of(value: Struct | List) -> str:
    """What `str(message)` gives."""
    return format_struct(value)


def repr_of(value: Struct | List) -> str:
    """What `repr(message)` gives; a message that cannot be read says why instead."""
    building = isinstance(value, (StructBuilder, ListBuilder))
    name = repr(value.type) if isinstance(value, List) else value._info.name
    try:
        text = format_struct(value, pretty=False)
    except CapnwireError as error:
        text = f"unreadable: {error}"
    return f"<{name} {'builder' if building else 'reader'} {text}>"
