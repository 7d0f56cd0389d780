"""`capnwire inspect`: messages as trees with segments, pointers, sizes; pictures of their words."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from html import escape
from typing import Any

import click

from capnwire.cli.convert import struct_type
from capnwire.cli.decode import binary_format
from capnwire.cli.formats import chunks_of, first_chunk, flat_segment, framed_segments
from capnwire.cli.layout import USES, Walk
from capnwire.cli.program import Command, Problem, import_options
from capnwire.cli.progress import Meter
from capnwire.cli.sniff import check_format
from capnwire.errors import DecodeError

__all__ = ["command"]

COLORS = {
    "pointer": "#4477aa", "data": "#66ccee", "text": "#228833", "list": "#ccbb44",
    "pad": "#ee6677", "unused": "#dddddd",
}
MEANINGS = {
    "pointer": "pointers", "data": "data of structs", "text": "text and data", "list": "lists",
    "pad": "tags and landing pads", "unused": "not reached",
}
ROW = 64
CELL = 12
MOST_WORDS = 1 << 17


@click.command(
    cls=Command, name="inspect", help="""Show messages as trees of what lies where.

    Each line names an object, its place as segment:word, and its size; with <schema-file> and
    <type>, fields have names and values.  Reads <message> or standard input ('-').""",
)
@import_options
@click.option("-p", "--packed", is_flag=True, help="The message is packed.")
@click.option("--flat", is_flag=True, help="The message is one segment without its table.")
@click.option("--svg", metavar="<file>", help="Draw how the words of the first message are used.")
@click.option(
    "--most", metavar="<n>", type=click.IntRange(1), default=10_000,
    help="Look at <n> objects of a message at most.",
)
@click.option(
    "--elements", metavar="<n>", type=click.IntRange(0), default=20,
    help="Show <n> elements of a list at most.",
)
@click.argument("message", metavar="<message>")
@click.argument("schema", metavar="[<schema-file>", required=False)
@click.argument("type_name", metavar="<type>]", required=False)
@click.pass_context
def command(
    context: click.Context, packed: bool, flat: bool, svg: str | None, most: int, elements: int,
    message: str, schema: str | None, type_name: str | None,
) -> None:
    """Print the trees."""
    key, registry = None, None
    if schema is not None:
        if type_name is None:
            raise Problem("missing argument <type>")
        kind = struct_type(context, schema, type_name)
        registry, key = kind._info.scope
    number = 0
    for segments in _messages(message, packed=packed, flat=flat):
        walk = Walk(segments, registry, most=most, most_elements=elements)
        root = walk.root(key)
        words = [len(uses) for uses in walk.uses]
        unused = sum(uses.count(USES.index("unused")) for uses in walk.uses)
        click.echo(
            f"message {number}: {len(words)} segment{'' if len(words) == 1 else 's'}, "
            f"{sum(words)} words ({', '.join(map(str, words))}), {unused} not reached"
        )
        for line in root.lines():
            click.echo(line)
        if svg is not None and number == 0:
            with open(svg, "w", encoding="utf-8") as file:
                file.write(picture(walk.uses))
        number += 1
    if not number:
        raise Problem("the input is empty", hint=False)


def _messages(path: str, *, packed: bool, flat: bool) -> Iterator[list[memoryview]]:
    """The segments of each message in a file, read as they are asked for."""
    with ExitStack() as stack:
        file: Any = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
        first = first_chunk(file)
        meter = stack.enter_context(Meter(file))
        chunks = chunks_of(first, file, meter.advance, sys.stdout.flush)
        try:
            if flat:
                yield [memoryview(flat_segment(b"".join(chunks), packed=packed))]
                return
            for segments in framed_segments(chunks, packed=packed):
                meter.count()
                yield segments
        except DecodeError:
            if not meter.messages:
                check_format(binary_format(flat, packed), first, None)
            raise


def picture(uses: list[bytearray]) -> str:
    """An SVG with one square for each word, coloured by its use."""
    shapes = []
    y = 40
    left = MOST_WORDS
    for number, words in enumerate(uses):
        shown = words[: max(left, 0)]
        left -= len(shown)
        shapes.append(f'<text x="4" y="{y + 10}">segment {number}: {len(words)} words</text>')
        y += 16
        start = 0
        while start < len(shown):
            # One shape for each run of equal words in a row.
            use, end = shown[start], start + 1
            row_end = (start // ROW + 1) * ROW
            while end < min(row_end, len(shown)) and shown[end] == use:
                end += 1
            name = USES[use]
            x, row = start % ROW * CELL, y + start // ROW * CELL
            title = escape(f"{number}:{start}-{end - 1} {MEANINGS[name]}")
            shapes.append(
                f'<rect x="{x + 4}" y="{row}" width="{(end - start) * CELL - 1}" '
                f'height="{CELL - 1}" fill="{COLORS[name]}"><title>{title}</title></rect>'
            )
            start = end
        y += (len(shown) + ROW - 1) // ROW * CELL + 8
        if len(shown) < len(words):
            shapes.append(f'<text x="4" y="{y + 10}">… and more words</text>')
            y += 20
            break
    legend = []
    for index, name in enumerate(USES):
        x = 4 + index * 128
        legend.append(f'<rect x="{x}" y="8" width="12" height="12" fill="{COLORS[name]}"/>')
        legend.append(f'<text x="{x + 16}" y="18">{MEANINGS[name]}</text>')
    width = ROW * CELL + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y + 4}" '
        f'viewBox="0 0 {width} {y + 4}" font-family="sans-serif" font-size="11">\n'
        + "\n".join(legend + shapes) + "\n</svg>\n"
    )
