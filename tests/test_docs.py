"""Every Python example of the README and of docs/ runs; a page's examples share their names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

capnwire = pytest.importorskip("capnwire", reason="the package is not built")

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts),
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(path.read_text()) if name == language]


def schema_text() -> str:
    (text,) = blocks(ROOT / "docs" / "tutorial.md", "capnp")
    return text


@pytest.mark.parametrize(
    "path", [p for p in PAGES if blocks(p, "python")], ids=lambda path: path.name
)
def test_the_examples_of_a_page_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = re.search(r'load\("(\w+\.capnp)"\)', path.read_text())
    name = loaded[1] if loaded else "person.capnp"
    Path(name).write_text((blocks(path, "capnp") or [schema_text()])[0])
    names: dict[str, object] = {"__name__": "example"}
    for number, text in enumerate(blocks(path, "python"), 1):
        exec(compile(text, f"{path.name}, example {number}", "exec"), names)


def test_links_between_the_pages_lead_somewhere() -> None:
    broken = [
        f"{page.name}: {target}"
        for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []
