"""`capnwire eval`: constants and defaults of a schema.

Spec: tool.md, eval.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from capnwire.cli.decode import binary_format
from capnwire.cli.formats import FORMATS, Codec
from capnwire.cli.program import Command, Problem, import_options, open_schema

__all__ = ["command"]


def _note(context: click.Context, param: click.Parameter, value: bool) -> bool:
    """Refuse --binary beside --flat or --packed."""
    if value:
        before: set[str] = context.meta.setdefault("binary formats", set())
        for other in before - {str(param.name)}:
            if "binary" in (param.name, other):
                raise Problem(f"{min(param.opts, key=len)}: cannot be used with --{other}")
        before.add(str(param.name))
    return value


@click.command(
    cls=Command, name="eval", help="""Print (or encode) the value of <name> in <schema-file>.

    <name> is a constant, a field of a struct type (its default), or a part of such a value:

    \b
    capnwire eval my.capnp MyType.someField
    capnwire eval my.capnp someConstant.someList[4].anotherField[1]

    Formats other than text are for values of struct type only.""",
)
@import_options
@click.option("-b", "--binary", is_flag=True, callback=_note, help="The same as -obinary.")
@click.option("--flat", is_flag=True, callback=_note, help="The same as -oflat.")
@click.option(
    "-p", "--packed", is_flag=True, callback=_note,
    help="The same as -opacked; with --flat, as -oflat-packed.",
)
@click.option("-o", "--output", metavar="<format>", help="Encode the value in this format.")
@click.option("--short", is_flag=True, help="Write text or JSON on one line.")
@click.argument("schema", metavar="<schema-file>")
@click.argument("name", metavar="<name>")
@click.pass_context
def command(
    context: click.Context, binary: bool, flat: bool, packed: bool, output: str | None,
    short: bool, schema: str, name: str,
) -> None:
    """Print a value."""
    from capnwire.compiler.opened import NameProblem

    target = "text" if output is None else output
    if target not in FORMATS:
        raise Problem(f"-o {target}: unknown format: {target}")
    if binary or flat or packed:
        target = binary_format(flat, packed)
    opened = open_schema(context, schema)
    try:
        value, key = opened.value(name)
    except NameProblem as problem:
        raise Problem(str(problem)) from None
    if target == "text":
        data = (text_of_value(value, key, short=short) + "\n").encode("utf-8", "surrogateescape")
    elif key[0] not in ("struct", "group"):
        raise Problem(f"{name}: not a struct; binary output is only available on structs")
    else:
        data = _written(value, target, short)
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _written(value: Any, target: str, short: bool) -> bytes:
    from capnwire._any import new_any_root

    root = new_any_root()
    root.set(value)
    return Codec("binary", target, value._info.type, short=short).write(root.as_reader())


def text_of_value(value: Any, key: tuple[Any, ...], *, short: bool) -> str:
    """Any value in text form."""
    from capnwire.message.text import format_struct, quote, scalar_text

    kind = key[0]
    if kind in ("struct", "group", "list"):
        return format_struct(value, pretty=not short)
    if kind in ("text", "data"):
        return quote(value)
    return scalar_text(value, _NUMBERS.get(kind, -1))


# A Float32 that stands alone has all the digits of its Float64, as in the reference.
_NUMBERS = {"void": 0, "float32": 11, "float64": 11, "enum": 12}
