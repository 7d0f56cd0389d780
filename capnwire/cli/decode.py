"""`capnwire decode`: the old name of `convert binary:text`."""

from __future__ import annotations

import click

from capnwire.cli.convert import convert_stream, struct_type
from capnwire.cli.program import Command, import_options


@click.command(
    cls=Command, name="decode", help="""Decode binary messages of struct type <type> as text.

    The same as `convert binary:text`.""",
)
@import_options
@click.option("--flat", is_flag=True, help="The input is one segment without its table.")
@click.option("-p", "--packed", is_flag=True, help="The input is packed.")
@click.option("--quiet", is_flag=True, help="Do not warn about input in another format.")
@click.option("--short", is_flag=True, help="Print each message on one line.")
@click.argument("schema", metavar="<schema-file>")
@click.argument("type_name", metavar="<type>")
@click.pass_context
def command(
    context: click.Context, flat: bool, packed: bool, quiet: bool, short: bool, schema: str,
    type_name: str,
) -> None:
    """Convert to text."""
    kind = struct_type(context, schema, type_name)
    convert_stream(binary_format(flat, packed), "text", kind, short=short, quiet=quiet)


def binary_format(flat: bool, packed: bool) -> str:
    """The name of the format that `--flat` and `--packed` choose."""
    if flat:
        return "flat-packed" if packed else "flat"
    return "packed" if packed else "binary"
