"""What is wrong with a schema text, and where: one `Diagnostic` for each error or warning."""

from __future__ import annotations


class Diagnostic:
    """One error: the file, the place in it (1-based line and column, byte offsets), the text.

    `str()` is one line in the form that editors know, `path:line:column-end: error: text`.
    Columns count bytes, as the offsets do.
    """

    __slots__ = (
        "column", "end_byte", "end_column", "end_line", "filename", "line", "severity",
        "source_line", "start_byte", "text",
    )

    def __init__(
        self, filename: str, text: str, *, line: int = 1, column: int = 1, end_line: int = 1,
        end_column: int = 1, start_byte: int = 0, end_byte: int = 0, source_line: str = "",
        severity: str = "error",
    ) -> None:
        self.filename, self.text, self.severity = filename, text, severity
        self.line, self.column = line, column
        self.end_line, self.end_column = end_line, end_column
        self.start_byte, self.end_byte, self.source_line = start_byte, end_byte, source_line

    def __str__(self) -> str:
        place = f"{self.filename}:{self.line}"
        if self.end_line == self.line:
            place += f":{self.column}"
            if self.end_column > self.column:
                place += f"-{self.end_column}"
        return f"{place}: {self.severity}: {self.text}"

    def __repr__(self) -> str:
        return f"<Diagnostic {self}>"

    def render(self) -> str:
        """The one-line form, then the source line with carets under the place."""
        if not self.source_line:
            return str(self)
        end = self.end_column if self.end_line == self.line else len(self.source_line) + 1
        raw = self.source_line.encode("latin-1")
        line = raw.decode("utf-8", "replace").replace("\t", " ")
        before = len(raw[: self.column - 1].decode("utf-8", "replace"))
        width = len(raw[self.column - 1 : end - 1].decode("utf-8", "replace"))
        head = f"{self.filename}:{self.line}:{self.column}: {self.severity}: {self.text}"
        return f"{head}\n    {line}\n    {' ' * before}{'^' * max(1, width)}"


class Reporter:
    """Collects the diagnostics of one file, in the order in which they are found."""

    __slots__ = ("diagnostics", "filename", "mute")

    def __init__(self, filename: str, diagnostics: list[Diagnostic]) -> None:
        self.filename, self.diagnostics, self.mute = filename, diagnostics, False

    def add(self, source: str, start: int, end: int, text: str, severity: str = "error") -> None:
        """Add a diagnostic about `source[start:end]` (one character a byte)."""
        start, end = min(start, len(source)), min(max(start, end), len(source))
        line_start = source.rfind("\n", 0, start) + 1
        line_end = source.find("\n", start)
        end_line_start = source.rfind("\n", 0, end) + 1
        self.diagnostics.append(
            Diagnostic(
                self.filename, text, severity=severity,
                line=source.count("\n", 0, start) + 1, column=start - line_start + 1,
                end_line=source.count("\n", 0, end) + 1, end_column=end - end_line_start + 1,
                start_byte=start, end_byte=end,
                source_line=source[line_start : line_end if line_end >= 0 else len(source)],
            )
        )
