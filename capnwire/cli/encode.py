"""`capnwire encode`: the old name of `convert text:binary`."""

from __future__ import annotations

import click

from capnwire.cli.convert import convert_stream, segment_words, struct_type
from capnwire.cli.decode import binary_format
from capnwire.cli.program import Command, import_options


@click.command(
    cls=Command, name="encode", help="""Encode values in text form as messages of type <type>.

    The same as `convert text:binary`.""",
)
@import_options
@click.option("--flat", is_flag=True, help="Write one segment without its table.")
@click.option("-p", "--packed", is_flag=True, help="Pack the output.")
@click.option(
    "--segment-size", metavar="<n>",
    help="Start messages with a segment of <n> words and do not let segments grow.",
)
@click.argument("schema", metavar="<schema-file>")
@click.argument("type_name", metavar="<type>")
@click.pass_context
def command(
    context: click.Context, flat: bool, packed: bool, segment_size: str | None, schema: str,
    type_name: str,
) -> None:
    """Convert from text."""
    kind = struct_type(context, schema, type_name)
    convert_stream(
        "text", binary_format(flat, packed), kind, segment_words=segment_words(segment_size)
    )
