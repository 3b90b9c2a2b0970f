"""The `planner` command. A subcommand's module is imported only when invoked, so that help is instant."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from planner.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_OK, PlannerError
from planner.text_io import visible
from planner.version import __version__

F = TypeVar("F", bound=Callable[..., Any])
COMMANDS = {
    "plan": "The cheapest (or fastest, or smallest) plan, proven.",
    "compare": "Every candidate and offer side by side, each at its own best plan.",
    "explain": "Why this plan, why not another choice, why none.",
    "estimate": "Does one layout fit, how fast is it, where do bytes and seconds go.",
    "sweep": "What if: one question in many variants, a JSON line each.",
    "simulate": "A serving plan replayed on a trace, event by event.",
    "report": "One HTML page of a plan, with plots and sources.",
    "validate": "Predicted against measured, for a CSV of measurements.",
    "calibrate": "Constants fitted to your runs, as a catalog folder.",
    "catalog": "What exists, and where each fact comes from.",
    "schema": "The JSON Schema of a document, each field described.",
    "launch": "Files that start a plan (not yet available).",
}
"""Command -> one line of help. The command lives in `planner.cli.<name>` as `command`."""


FEW_COLLECTIONS = 200_000
"""New objects after which unreachable cycles are looked for."""


@dataclass(slots=True)
class Settings:
    """What the options before and behind the command ask for; `main` reads it after the command has ended."""

    verbose: bool = False
    quiet: bool = False
    as_json: bool = False
    catalogs: tuple[Path, ...] = ()


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is invoked."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"planner.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]
                        ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest near names for an unknown command."""
        from planner.errors import did_you_mean

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; a reader that has gone away (`| head`) is not an error."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _drop_stdout()
            raise click.exceptions.Exit(EXIT_OK) from None


def _early(ctx: click.Context, param: click.Parameter, value: bool | tuple[Path, ...]) -> None:
    """Note an option given before the command, which `options.common` then reads."""
    settings = ctx.ensure_object(Settings)
    if param.name == "catalogs" and isinstance(value, tuple):
        settings.catalogs += value
    elif value and param.name is not None:
        setattr(settings, param.name, True)


def everywhere(function: F) -> F:
    """Accept the common options before a command too: `planner -q plan` is `planner plan -q`."""
    for option in reversed((
        click.option("--json", "as_json", is_flag=True, expose_value=False, callback=_early,
                     help="Print JSON, alone, on stdout."),
        click.option("--catalogs", multiple=True, metavar="DIR", type=click.Path(path_type=Path), expose_value=False,
                     callback=_early, help="Catalog folder on top of the shipped one."),
        click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_early, help="Only the answer."),
        click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_early,
                     help="Progress, and tracebacks of bugs."),
    )):
        function = option(function)
    return function


@click.group(cls=LazyGroup,
             context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="planner")
@everywhere
def group() -> None:
    """GPU-cluster capacity planner: the cheapest GPUs, and the sharding layout on them, that do the work.

    Exit codes: 0 answered, 2 the input is wrong, 3 proven infeasible, 4 stopped before a proof, 70 a bug.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. Errors go to stderr, never as a traceback."""
    settings = Settings()
    # loading modules and facts makes many objects and no garbage; looking for some took a sixth of a plan's time
    gc.set_threshold(FEW_COLLECTIONS)
    try:
        code = group.main(None if argv is None else list(argv), prog_name="planner", standalone_mode=False,
                          obj=settings)
        sys.stdout.flush()
    except PlannerError as error:
        return _fail(str(error), error.exit_code)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        _drop_stdout()
        return EXIT_OK
    except Exception as error:
        if settings.verbose:
            traceback.print_exc()
        hint = "" if settings.verbose else " (-v shows the traceback)"
        return _fail(f"this is a bug in planner: {type(error).__name__}: {error}{hint}", EXIT_BUG)
    return code if isinstance(code, int) else EXIT_OK


def _fail(message: str, code: int) -> int:
    """Write one line; what input put into it that is no visible character is escaped."""
    click.echo(f"Error: {visible(message)}", err=True)
    return code


def _drop_stdout() -> None:
    """Point stdout at nothing, so that closing it at exit cannot fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
