"""`capnwire convert`: streams of messages from one format to another.

Spec: tool.md, convert.
"""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

import click

from capnwire.cli.formats import FORMATS, NEEDS_SCHEMA, Codec, first_chunk
from capnwire.cli.program import Command, Problem, import_options, open_schema
from capnwire.cli.progress import Meter
from capnwire.cli.sniff import check_format

__all__ = ["command", "convert_stream"]


@click.command(
    cls=Command, name="convert", help="""Convert messages between formats.

    Reads a stream of messages from standard input in format <from> and writes them to standard
    output in format <to>.  The formats are:

    \b
    binary       the standard format
    packed       the same with zeroes squeezed out
    flat         one segment without its table
    flat-packed  flat and packed
    canonical    flat, in canonical form
    text         as values are written in schemas
    json         JSON, as the annotations of json.capnp ask for

    For text and json, <type> of <schema-file> is the struct type of the messages; it may have type
    parameters: 'Map(Text, Person)'.""",
)
@import_options
@click.option("--quiet", is_flag=True, help="No warnings, no progress bar.")
@click.option("--short", is_flag=True, help="Write text or JSON on one line.")
@click.option(
    "--segment-size", metavar="<n>",
    help="Start binary messages with a segment of <n> words and do not let segments grow.",
)
@click.argument("formats", metavar="<from>:<to>")
@click.argument("schema", metavar="[<schema-file>", required=False)
@click.argument("type_name", metavar="<type>]", required=False)
@click.pass_context
def command(
    context: click.Context, quiet: bool, short: bool, segment_size: str | None, formats: str,
    schema: str | None, type_name: str | None,
) -> None:
    """Convert standard input to standard output."""
    source, colon, target = formats.partition(":")
    if not colon:
        raise Problem(f"{formats}: invalid conversion, format is: <from>:<to>")
    for name in (source, target):
        if name not in FORMATS:
            raise Problem(f"{formats}: unknown format: {name}")
    kind = None
    if schema is None or type_name is None:
        for name in (source, target):
            if name in NEEDS_SCHEMA:
                raise Problem(f"format requires schema: {name}")
    else:
        kind = struct_type(context, schema, type_name)
    convert_stream(
        source, target, kind, short=short, quiet=quiet, segment_words=segment_words(segment_size),
    )


def segment_words(text: str | None) -> int | None:
    """The value of `--segment-size`."""
    if text is None:
        return None
    if not text.isdecimal() or not text.isascii() or int(text[:12]) > 0x1FFFFFFF:
        raise Problem(f"--segment-size={text}: not an integer")
    return max(1, int(text))


def struct_type(context: click.Context, schema: str, type_name: str) -> Any:
    """The struct type that the arguments of a command name.

    Raises:
        Problem: there is none.
    """
    from capnwire.compiler.opened import NameProblem

    opened = open_schema(context, schema)
    try:
        return opened.struct(type_name)
    except NameProblem as problem:
        raise Problem(str(problem)) from None


def convert_stream(
    source: str, target: str, kind: type | None, *, short: bool = False, quiet: bool = False,
    segment_words: int | None = None,
) -> None:
    """Convert standard input to standard output, message by message."""
    reading: BinaryIO = sys.stdin.buffer
    writing: BinaryIO = sys.stdout.buffer
    first = first_chunk(reading, 1) if source in NEEDS_SCHEMA else first_chunk(reading)
    if not first:
        if quiet:
            return
        raise Problem("the input is empty", hint=False)
    if not quiet:
        check_format(source, first, kind)
    with Meter(reading, is_quiet=quiet) as meter:
        codec = Codec(
            source, target, kind, short=short, segment_words=segment_words, on_read=meter.advance,
            before_read=writing.flush,
        )
        try:
            for data in codec.convert(first, reading):
                writing.write(data)
                meter.count()
            if not meter.messages:
                raise Problem("there is no message in the input", hint=False)
        finally:
            writing.flush()
