"""Random values of struct types, in text form.

Not a test.  Floats are such that JSON keeps them; pointers without a type stay null.
"""

from __future__ import annotations

import random
from typing import Any

from capnwire.schema.model import NO_DISCRIMINANT, EnumBody, StructBody
from capnwire.schema.registry import Registry

RANGES = {
    "int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint8": 8, "uint16": 16, "uint32": 32,
    "uint64": 64,
}
# No brackets: the reference looks for the end of a message without heeding quotes.
TEXTS = (
    "", "a", "Ada Lovelace", "ümläut €", "quote \" back \\ slash '", "tab\tnew\nline\r",
    "\x01\x1f\x7f", "# no comment", "x" * 30, "y" * 70, "😀",
)
PLAIN_TEXTS = tuple(text for text in TEXTS if not set(text) & set("\"\\#'"))
"""Without what makes the reference lose its way in streams of several messages."""

FLOATS = (
    "0", "1", "-1", "0.5", "-0.25", "1e100", "-1e-100", "123456789.125", "3.14159", "inf", "-inf",
    "nan", "1e21", "1e22", "1e-06", "1e-07", "5e-324",
)
FLOATS32 = ("0", "1", "-1.5", "0.1", "3.4028235e38", "1.4012985e-45", "16777216", "inf", "nan")


def quoted(data: bytes) -> str:
    return '"' + "".join(f"\\{byte:03o}" for byte in data) + '"'


class MessageMaker:
    """Values by the nodes of a registry."""

    def __init__(
        self, registry: Registry, rng: random.Random, texts: tuple[str, ...] = TEXTS
    ) -> None:
        self.registry, self.rng, self.texts = registry, rng, texts

    def struct(self, key: tuple[Any, ...], depth: int = 0) -> str:
        body = self.registry.node(key[1]).body
        assert isinstance(body, StructBody)
        chance = 0.8 if depth < 2 else 0.3 if depth < 4 else 0.05
        parts, members = [], []
        for field in body.fields or ():
            if field.discriminant_value != NO_DISCRIMINANT:
                members.append(field)
            elif self.rng.random() < chance:
                parts.append(field)
        if members and self.rng.random() < 0.9:
            parts.append(self.rng.choice(members))
        self.rng.shuffle(parts)
        texts = []
        for field in parts:
            if field.type is None:
                group = self.struct(("struct", field.group_id, key[2]), depth)
                texts.append(f"{field.name} = {group}")
                continue
            value = self.value(self.registry.close(field.type, key[2]), depth + 1)
            if value is not None:
                texts.append(f"{field.name} = {value}")
        return f"({', '.join(texts)})"

    def value(self, key: tuple[Any, ...], depth: int) -> str | None:
        rng, kind = self.rng, key[0]
        if kind in RANGES:
            bits = RANGES[kind]
            low = -(1 << bits) if kind[0] == "i" else 0
            return str(rng.choice((0, 1, low, (1 << bits) - 1, rng.randrange(low, 1 << bits))))
        if kind in ("float32", "float64"):
            return rng.choice(FLOATS32 if kind == "float32" else FLOATS)
        if kind == "bool":
            return rng.choice(("true", "false"))
        if kind == "void":
            return "void"
        if kind == "text":
            return quoted(rng.choice(self.texts).encode())
        if kind == "data":
            return quoted(bytes(rng.choices((0, 1, 0x7F, 0x80, 0xFF, 0x41), k=rng.choice((0, 1, 8,
                30)))))
        if kind == "enum":
            body = self.registry.node(key[1]).body
            assert isinstance(body, EnumBody)
            return rng.choice(body.enumerants).name if body.enumerants else None
        if kind == "struct":
            return self.struct(key, depth)
        if kind == "list":
            if key[1][0] in ("interface", "capability", "anyPointer", "anyStruct", "anyList"):
                return None
            size = rng.choice((0, 1, 2, 3, 9)) if depth < 4 else rng.choice((0, 1))
            items = [self.value(key[1], depth + 1) for _ in range(size)]
            return f"[{', '.join(item for item in items if item is not None)}]"
        return None


