"""What is wrong with a schema text, and where: one `Diagnostic` for each error or warning."""

from __future__ import annotations

from bisect import bisect_right


class Diagnostic:
    """One error: the file, the place in it (1-based line and column, byte offsets), the text.

    `str()` is one line in the form that editors know, `path:line:column-end: error: text`.
    Columns count bytes, as the offsets do.
    """

    __slots__ = (
        "_source", "column", "end_byte", "end_column", "end_line", "filename", "line", "severity",
        "start_byte", "text",
    )

    def __init__(
        self, filename: str, text: str, *, line: int = 1, column: int = 1, end_line: int = 1,
        end_column: int = 1, start_byte: int = 0, end_byte: int = 0, source: str = "",
        severity: str = "error",
    ) -> None:
        self.filename, self.text, self.severity = filename, text, severity
        self.line, self.column = line, column
        self.end_line, self.end_column = end_line, end_column
        self.start_byte, self.end_byte, self._source = start_byte, end_byte, source

    def __str__(self) -> str:
        place = f"{self.filename}:{self.line}"
        if self.end_line == self.line:
            place += f":{self.column}"
            if self.end_column > self.column:
                place += f"-{self.end_column}"
        return f"{place}: {self.severity}: {self.text}"

    def __repr__(self) -> str:
        return f"<Diagnostic {self}>"

    @property
    def source_line(self) -> str:
        """The line that the place begins in."""
        start = self.start_byte - self.column + 1
        end = self._source.find("\n", start)
        line = self._source[start : end if end >= 0 else len(self._source)]
        return line.encode("latin-1").decode("utf-8", "replace")

    def render(self) -> str:
        """The place and the text, then the source line with carets under the place."""
        start = self.start_byte - self.column + 1
        stop = self._source.find("\n", start)
        raw = self._source[start : stop if stop >= 0 else len(self._source)].encode("latin-1")
        end = self.end_column if self.end_line == self.line else len(raw) + 1
        line = raw.decode("utf-8", "replace").replace("\t", " ")
        before = len(raw[: self.column - 1].decode("utf-8", "replace"))
        width = len(raw[self.column - 1 : end - 1].decode("utf-8", "replace"))
        head = f"{self.filename}:{self.line}:{self.column}: {self.severity}: {self.text}"
        return f"{head}\n    {line}\n    {' ' * before}{'^' * max(1, width)}"


class Reporter:
    """Collects the diagnostics of one file, in the order in which they are found."""

    __slots__ = ("_line_starts", "diagnostics", "filename")

    def __init__(self, filename: str, diagnostics: list[Diagnostic]) -> None:
        self.filename, self.diagnostics = filename, diagnostics
        self._line_starts: list[int] = []

    def add(self, source: str, start: int, end: int, text: str, severity: str = "error") -> None:
        """Add a diagnostic about `source[start:end]` (one character a byte)."""
        starts = self._line_starts
        if not starts:
            starts.append(0)
            starts.extend(i + 1 for i, char in enumerate(source) if char == "\n")
        start, end = min(start, len(source)), min(max(start, end), len(source))
        line, end_line = bisect_right(starts, start), bisect_right(starts, end)
        self.diagnostics.append(
            Diagnostic(
                self.filename, text, severity=severity, line=line,
                column=start - starts[line - 1] + 1, end_line=end_line,
                end_column=end - starts[end_line - 1] + 1, start_byte=start, end_byte=end,
                source=source,
            )
        )
