"""`capnwire compat`: whether a change of a schema breaks messages and calls."""

from __future__ import annotations

import click

from capnwire.cli.program import Command, check_source, compile_options, import_options

__all__ = ["command"]


@click.command(
    cls=Command, name="compat", help="""Compare two versions of a schema, by layout.

    Prints each change as "breaks" or "safe".  The exit code is 2 when a change breaks the wire, 0
    when none does, 1 on errors.""",
)
@import_options
@click.option("--quiet", is_flag=True, help="Print only the changes that break.")
@click.argument("old", metavar="<old>")
@click.argument("new", metavar="<new>")
@click.pass_context
def command(context: click.Context, quiet: bool, old: str, new: str) -> None:
    """Print the changes."""
    from capnwire.compiler.driver import compile_files
    from capnwire.schema.compat import compare_schemas

    for source in (old, new):
        check_source(source)
    before, after = (
        compile_files([source], **compile_options(context)).nodes for source in (old, new)
    )
    changes = compare_schemas(before, after)
    for change in changes:
        if change.breaks or not quiet:
            click.echo(f"{'breaks' if change.breaks else 'safe  '}  {change.where}: {change.text}")
    broken = sum(change.breaks for change in changes)
    if not changes and not quiet:
        click.echo("no changes")
    if broken:
        context.exit(2)
