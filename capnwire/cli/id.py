"""`capnwire id`: a new unique id."""

import click

from capnwire.cli.program import Command, common_options
from capnwire.compiler.ids import random_id


@click.command(cls=Command, name="id", help="Generate a new 64-bit unique id for a schema.")
@common_options
def command() -> None:
    """Print an id."""
    click.echo(f"@0x{random_id():016x}")
