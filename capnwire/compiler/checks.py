"""Rules about the declarations of one scope that need no lookup: duplicates, style, ordinals.

Spec: schema-language.md, 2.4.
"""

from __future__ import annotations

from capnwire.compiler.syntax import Declaration, Name, Ordinal, Source

UNDERSCORE = (
    "Cap'n Proto declaration names should use camelCase and must not contain underscores. (Code "
    "generators may convert names to the appropriate style for the target language.)"
)
TYPE_STYLE = "Type names must begin with a capital letter."
OTHER_STYLE = "Non-type names must begin with a lower-case letter."
MISPLACED = "This kind of declaration doesn't belong here."

_TYPE_KINDS = frozenset(("struct", "enum", "interface"))
_NESTABLE = frozenset(("using", "const", "enum", "struct", "interface", "annotation"))


def check_members(source: Source, decl: Declaration) -> None:
    """Check the names that a declaration's scope has."""
    _Scope(source, {}).check(decl)


class _Scope:
    """The names of one scope; unnamed unions share that of what holds them."""

    __slots__ = ("names", "source")

    def __init__(self, source: Source, names: dict[str, Name]) -> None:
        self.source, self.names = source, names

    def check(self, decl: Declaration) -> None:
        in_scope = decl.kind in ("file", "struct", "interface")
        for member in decl.nested:
            name = member.name
            kind = member.kind
            unnamed = kind == "union" and not name.text
            before = self.names.get(name.text)
            if before is not None:
                self._duplicate(name, before)
            elif name.text or unnamed:
                self.names[name.text] = name
            if kind == "using":
                self._style(name, is_type=_names_type(member))
            elif not unnamed:
                self._style(name, is_type=kind in _TYPE_KINDS)
            if unnamed:
                self.check(member)
            elif kind in ("union", "group"):
                _Scope(self.source, {}).check(member)
            if kind in _NESTABLE and not in_scope:
                self.source.error(member.start, member.end, MISPLACED)

    def _duplicate(self, name: Name, before: Name) -> None:
        error = self.source.error
        if name.text:
            error(name.start, name.end, f"'{name.text}' is already defined in this scope.")
            error(before.start, before.end, f"'{name.text}' previously defined here.")
        else:
            error(name.start, name.end, "An unnamed union is already defined in this scope.")
            error(before.start, before.end, "Previously defined here.")

    def _style(self, name: Name, *, is_type: bool | None) -> None:
        text = name.text
        if not text:
            return
        if is_type is not None:
            if is_type and not "A" <= text[0] <= "Z":
                self.source.error(name.start, name.end, TYPE_STYLE)
            elif not is_type and "A" <= text[0] <= "Z":
                self.source.error(name.start, name.end, OTHER_STYLE)
        if "_" in text:
            self.source.error(name.start, name.end, UNDERSCORE)


def _names_type(decl: Declaration) -> bool | None:
    """Whether a `using` names a type, judged by the name it is for; None if there is none."""
    target = decl.type
    while target is not None and target.kind == "apply":
        target = target.base
    if target is None:
        return None
    if target.kind in ("relative", "absolute", "member"):
        name: Name = target.value  # type: ignore[assignment]
        return "A" <= name.text[0] <= "Z"
    return True


class OrdinalCheck:
    """Sees to it that ordinals come one after the other, each once."""

    __slots__ = ("_expected", "_last", "_source")

    def __init__(self, source: Source) -> None:
        self._source = source
        self._expected = 0
        self._last: Ordinal | None = None

    def check(self, ordinal: Ordinal) -> None:
        """Take the next ordinal in rising order."""
        error = self._source.error
        if ordinal.value < self._expected:
            error(ordinal.start, ordinal.end, "Duplicate ordinal number.")
            last = self._last
            if last is not None:
                error(last.start, last.end, f"Ordinal @{last.value} originally used here.")
                self._last = None
        elif ordinal.value > self._expected:
            error(
                ordinal.start, ordinal.end,
                f"Skipped ordinal @{self._expected}.  Ordinals must be sequential with no holes.",
            )
            self._expected = ordinal.value + 1
        else:
            self._expected += 1
            self._last = ordinal
