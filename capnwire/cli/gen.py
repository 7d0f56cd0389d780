"""`capnwire gen`: type stubs of schemas, and modules that carry a compiled schema."""

from __future__ import annotations

import os

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
    cls=Command, name="gen", help="""Write type stubs (.pyi) for schema files.

    The stub of person.capnp is person_capnp.pyi, beside the schema file unless --output says
    otherwise: what mypy and pyright need for `import person_capnp` by the import hook.  If types of
    /capnp/schema.capnp and the like are used, their stubs go into a directory capnwire_std.""",
)
@import_options
@click.option("-o", "--output", metavar="<dir>", help="Write below <dir>.")
@src_prefix_option
@click.option(
    "--package", default="", metavar="<name>", help="The package that the modules are in.",
)
@click.option(
    "--module", is_flag=True,
    help="Also write a module (.py) with the compiled schema in it, which needs no schema file.",
)
@click.option("--check", is_flag=True, help="Write nothing; fail if a file is missing or differs.")
@click.argument("sources", metavar="<source>...", nargs=-1, required=True)
@click.pass_context
def command(
    context: click.Context, output: str | None, src_prefixes: tuple[str, ...], package: str,
    module: bool, check: bool, sources: tuple[str, ...],
) -> None:
    """Write the files, and say which."""
    from capnwire.compiler.driver import compile_files
    from capnwire.compiler.emit_python import emit_python
    from capnwire.compiler.emit_stubs import emit_stubs

    for source in sources:
        check_source(source)
    if output is not None and not os.path.isdir(output):
        raise Problem(f"-o {output}: output location is inaccessible or is not a directory")
    request = compile_files(sources, src_prefixes=src_prefixes, **compile_options(context))
    emitted = [(".pyi", emit_stubs(request, package=package))]
    if module:
        emitted.append((".py", emit_python(request)))
    stale = []
    given = {file.filename: source for source, file in zip(sources, request.files, strict=True)}
    for suffix, texts in emitted:
        for filename, text in texts.items():
            path = target_path(filename, given, output, suffix)
            if check:
                if _contents(path) != text:
                    stale.append(path)
                continue
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="\n") as out:
                out.write(text)
            click.echo(path)
    if stale:
        raise Problem(f"not up to date: {', '.join(stale)}", hint=False)


def target_path(
    filename: str, given: dict[str, str], output: str | None, suffix: str
) -> str:
    """Where the stub or module of a schema file goes; `given` has the paths of files by name."""
    from capnwire.compiler.emit_stubs import module_path

    inside = os.path.join(*module_path(filename).split(".")) + suffix
    if output is not None:
        return os.path.join(output, inside)
    if filename in given:
        return os.path.join(os.path.dirname(given[filename]), os.path.basename(inside))
    # A bundled file: where the names of the others begin.
    name, source = next(iter(given.items()))
    return os.path.join(source.removesuffix(name), inside)


def _contents(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None
