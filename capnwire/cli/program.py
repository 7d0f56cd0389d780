"""The program that holds the commands: common options, how errors are said, exit codes.

An error is one line that begins with the command, then a line that names its help; the exit code is
1, and 0 for success.  Spec: tool.md, 8.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import click

from capnwire import __version__
from capnwire.errors import CapnwireError, CompileError

__all__ = [
    "Command", "Problem", "Program", "check_directory", "check_source", "common_options",
    "compile_options", "import_options", "open_schema", "report", "run", "src_prefix_option",
]

COMMANDS = {
    "compat": "say which changes of a schema break the wire",
    "compile": "generate source code from schema files",
    "convert": "convert messages between binary, text, JSON and other formats",
    "decode": "print binary messages as text (the same as convert)",
    "encode": "make binary messages of text (the same as convert)",
    "eval": "print a constant, or a part of one, from a schema file",
    "gen": "write type stubs, or modules, for schema files",
    "id": "generate a new unique id",
    "inspect": "show a message as a tree with segments, pointers and sizes",
}


CLOSED_PIPE = 141
"""What a shell reports of a program that SIGPIPE ended, as it ends the reference tool."""


class Problem(click.ClickException):
    """Something that ends the program with one line and exit code 1.

    `hint` False leaves out the line about the command's help.
    """

    def __init__(self, text: str, *, hint: bool = True) -> None:
        super().__init__(text)
        self.hint = hint
        self.ctx: click.Context | None = None


class _Common:
    """What the options that every command has were set to, at the program or at the command."""

    def __init__(self) -> None:
        self.import_paths: list[str] = []
        self.standard_imports = True
        self.missing_imports = "error"
        self.verbose = False


def _remember(context: click.Context, param: click.Parameter, value: Any) -> Any:
    common: _Common = context.ensure_object(_Common)
    if param.name == "import_path":
        for path in value:
            check_directory(f"-I {path}", path)
        common.import_paths += value
    elif param.name == "no_standard_import" and value:
        common.standard_imports = False
    elif param.name == "ignore_missing_annotations" and value:
        common.missing_imports = "ignore-annotations"
    elif param.name == "verbose" and value:
        common.verbose = True
    return value


def _print_version(context: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"Cap'n Proto for Python, capnwire version {__version__}")
        context.exit()


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--verbose` and `--version`."""
    function = click.option(
        "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
        help="Print the version and exit.",
    )(function)
    return click.option(
        "--verbose", is_flag=True, expose_value=False, callback=_remember,
        help="Print the whole traceback of an error.",
    )(function)


def import_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where imports are looked for, with the common options."""
    function = common_options(function)
    function = click.option(
        "--ignore-missing-annotations", is_flag=True, expose_value=False, callback=_remember,
        help="Drop annotations whose file is not there (go.capnp, java.capnp).",
    )(function)
    function = click.option(
        "--no-standard-import", is_flag=True, expose_value=False, callback=_remember,
        help="Search only the directories given by -I for imports that begin with '/', not the "
        "bundled schemas nor /usr/local/include and /usr/include.",
    )(function)
    return click.option(
        "-I", "--import-path", multiple=True, metavar="<dir>", expose_value=False,
        callback=_remember,
        help="Add <dir> to the directories searched for imports that begin with '/'.",
    )(function)


def src_prefix_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--src-prefix`, as `src_prefixes`."""

    def check(context: click.Context, param: click.Parameter, value: Any) -> Any:
        for prefix in value:
            check_directory(f"--src-prefix={prefix}", prefix)
        return value

    return click.option(
        "--src-prefix", "src_prefixes", multiple=True, metavar="<prefix>", callback=check,
        help="Cut <prefix> off the names of the files when deciding on the names of output files.",
    )(function)


class Command(click.Command):
    """A command that speaks of too many and too few arguments as the others do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        settings = kwargs.setdefault("context_settings", {})
        settings.setdefault("allow_extra_args", True)
        settings.setdefault("help_option_names", ["--help"])
        super().__init__(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command unless arguments are left over."""
        if ctx.args:
            raise Problem(f"{ctx.args[0]}: too many arguments")
        return super().invoke(ctx)


class Program(click.Group):
    """The commands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """A command by its name, imported now."""
        if name == "help":
            return _help
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"capnwire.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names."""
        command = self.get_command(ctx, args[0])
        if command is None:
            raise Problem(f"{args[0]}: unknown command")
        return args[0], command, args[1:]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.group(
    cls=Program, invoke_without_command=True, context_settings={"help_option_names": ["--help"]},
    help="Command-line tool for Cap'n Proto development and debugging.",
)
@import_options
@click.pass_context
def program(context: click.Context) -> None:
    """Refuse to do nothing."""
    if context.invoked_subcommand is None:
        raise Problem("missing command")


@click.command(cls=Command, name="help", help="Show the help of a command.")
@click.argument("name", metavar="[<command>]", required=False)
@click.pass_context
def _help(context: click.Context, name: str | None) -> None:
    parent = context.parent
    assert parent is not None
    if name is None:
        click.echo(parent.get_help())
        return
    command = program.get_command(context, name)
    if command is None:
        problem = Problem(f"{name}: unknown command")
        problem.ctx = parent
        raise problem
    click.echo(command.get_help(click.Context(command, info_name=name, parent=parent)))


# --- errors -------------------------------------------------------------------------------------


def compile_options(context: click.Context) -> dict[str, Any]:
    """The import options as parameters of the compiler."""
    common: _Common = context.ensure_object(_Common)
    return {
        "import_paths": list(common.import_paths), "standard_imports": common.standard_imports,
        "missing_imports": common.missing_imports,
    }


def open_schema(context: click.Context, path: str) -> Any:
    """The schema file of an argument, compiled; see `OpenedSchema`."""
    from capnwire.compiler.opened import OpenedSchema

    check_source(path)
    return OpenedSchema(path, **compile_options(context))


def check_source(path: str) -> None:
    """Refuse a schema file that is not there.

    Raises:
        Problem: there is no such file.
    """
    if not os.path.exists(path):
        raise Problem(f"{path}: no such file")
    if os.path.isdir(path):
        raise Problem(f"{path}: is a directory")


def check_directory(said: str, path: str) -> None:
    """Refuse a directory that is not there.

    Raises:
        Problem: it is none; `said` is the option that names it.
    """
    if not os.path.isdir(path):
        raise Problem(f"{said}: {'not a' if os.path.exists(path) else 'no such'} directory")


def report(error: CompileError) -> None:
    """Print diagnostics as compilers do; with the line and a caret when a person reads it."""
    items: list[Any] = error.diagnostics
    for item in items:
        text = item.render() if sys.stderr.isatty() else str(item)
        click.echo(text, err=True)


def _path_of(context: click.Context | None) -> str:
    return "capnwire" if context is None else context.command_path


def _say(context: click.Context | None, text: str, *, hint: bool) -> None:
    path = _path_of(context)
    click.echo(f"{path}: {text}", err=True)
    if hint:
        click.echo(f"Try '{path} --help' for more information.", err=True)


def _text_of(error: click.ClickException) -> str:
    """Click's errors in the words of the reference tool."""
    if isinstance(error, click.NoSuchOption):
        return f"{error.option_name}: unrecognized option"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        kind = "argument" if isinstance(error.param, click.Argument) else "option"
        shown = (error.param.metavar or error.param.name or "").rstrip(".")
        return f"missing {kind} {shown}"
    if isinstance(error, click.BadOptionUsage):
        if "does not take a value" in error.message:
            return f"{error.option_name}: option does not accept an argument"
        return f"{error.option_name}: missing argument"
    if isinstance(error, click.BadParameter) and error.param is not None:
        name = max(error.param.opts, key=len)
        return f"{name}: {error.message}"
    return error.format_message()


def run(arguments: Sequence[str]) -> int:
    """Run the program on its arguments and give the exit code."""
    if sys.stdout is None or sys.stdin is None:
        # Files that are opened now would take their place.
        name = "input" if sys.stdin is None else "output"
        print(f"capnwire: standard {name} is closed", file=sys.stderr)
        return 1
    context: click.Context | None = None
    try:
        with program.make_context("capnwire", list(arguments)) as context:
            program.invoke(context)
            sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        where = getattr(error, "ctx", None) or _innermost(context)
        _say(where, _text_of(error), hint=getattr(error, "hint", True))
        return 1
    except CompileError as error:
        report(error)
        return 1
    except CapnwireError as error:
        if _is_verbose(context):
            raise
        _say(_innermost(context), str(error), hint=False)
        return 1
    except BrokenPipeError:
        # What is still buffered has nowhere to go; do not complain about it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except OSError as error:
        said = error.strerror or str(error)
        _say(
            _innermost(context), said if error.filename is None else f"{error.filename}: {said}",
            hint=False,
        )
        return 1
    except (KeyboardInterrupt, click.Abort):
        click.echo("", err=True)
        return 130
    return 0


def _is_verbose(context: click.Context | None) -> bool:
    return context is not None and isinstance(context.obj, _Common) and context.obj.verbose


def _innermost(context: click.Context | None) -> click.Context | None:
    """The context of the command that ran, to name it in an error."""
    if context is None or context.invoked_subcommand is None:
        return context
    command = program.get_command(context, context.invoked_subcommand)
    if command is None:
        return context
    return click.Context(command, info_name=context.invoked_subcommand, parent=context)
