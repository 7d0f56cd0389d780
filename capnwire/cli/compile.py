"""`capnwire compile`: schema files to code, by plugins that take a CodeGeneratorRequest.

Spec: tool.md, compile.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import click

from capnwire.cli.program import (
    Command,
    Problem,
    check_source,
    compile_options,
    import_options,
    src_prefix_option,
)

__all__ = ["command"]


@click.command(
    cls=Command, name="compile", help="""Compile schema files and generate source code from them.

    At least one -o is wanted; `-o- > /dev/null` only checks the files.""",
)
@import_options
@click.option(
    "-o", "--output", "outputs", multiple=True, metavar="<lang>[:<dir>]",
    help="Generate code for <lang> in <dir> (the current directory if not given): runs the plugin "
    "'capnpc-<lang>' from PATH, or <lang> itself if it contains a slash.  '-' writes the "
    "request to standard output.",
)
@src_prefix_option
@click.option(
    "--profile", type=click.Choice(["current", "1.0"]), default="current",
    help="Write requests as releases up to 1.0 did.",
)
@click.argument("sources", metavar="<source>...", nargs=-1, required=True)
@click.pass_context
def command(
    context: click.Context, outputs: tuple[str, ...], src_prefixes: tuple[str, ...], profile: str,
    sources: tuple[str, ...],
) -> None:
    """Compile, then hand the request to each plugin."""
    from capnwire.compiler.driver import compile_files
    from capnwire.compiler.emit_request import emit_request

    places = [_output(text) for text in outputs]
    for source in sources:
        check_source(source)
    request = compile_files(
        sources, src_prefixes=src_prefixes, profile=profile, **compile_options(context),
    )
    if not places:
        raise Problem("no outputs specified")
    data = emit_request(request)
    failed = [language for language, place in places if not _generate(language, place, data)]
    if failed:
        context.exit(1)


def _output(text: str) -> tuple[str, str]:
    language, colon, place = text.partition(":")
    if colon and not os.path.isdir(place):
        raise Problem(f"-o {text}: output location is inaccessible or is not a directory")
    return language, place or "."


def _generate(language: str, place: str, request: bytes) -> bool:
    """Run one plugin; says on standard error what went wrong."""
    if language == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(request)
        sys.stdout.buffer.flush()
        return True
    if "/" in language or os.sep in language:
        name = found = os.path.join(os.getcwd(), language)
    else:
        name = f"capnpc-{language}"
        found = shutil.which(name) or ""
    if not (found and os.path.isfile(found) and os.access(found, os.X_OK)):
        click.echo(f"{language}: no such plugin (executable should be '{name}')", err=True)
        click.echo(f"{language}: plugin failed: exit code 1", err=True)
        return False
    directory = os.path.abspath(place)
    sys.stdout.flush()
    try:
        done = subprocess.run(
            [found], input=request, cwd=directory, env={**os.environ, "PWD": directory},
            check=False,
        )
    except OSError as error:
        click.echo(f"{language}: the plugin could not be run: {error.strerror}", err=True)
        return False
    if done.returncode < 0:
        click.echo(f"{language}: plugin failed: signal {-done.returncode}", err=True)
    elif done.returncode:
        click.echo(f"{language}: plugin failed: exit code {done.returncode}", err=True)
    return done.returncode == 0
