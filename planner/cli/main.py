"""The `planner` command. A subcommand's module is imported only when invoked, so that help is instant."""

from __future__ import annotations

import gc
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from planner.cli import printing
from planner.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_OK, PlannerError
from planner.process import interrupts
from planner.process.version import __version__

if TYPE_CHECKING:
    from planner.catalog.load import Catalog
    from planner.scenario.configs.read import Config

F = TypeVar("F", bound=Callable[..., Any])
_SAID = re.compile('"""`planner (?P<name>[a-z]+)(?: [^`]*)?`: (?P<help>[^"\n]+)')
FIRST = ("plan", "compare", "explain", "estimate")
"""The commands that help begins with; the others follow by name."""


def _commands() -> dict[str, str]:
    """Return every command with its line of help: the modules here whose first line says "`planner NAME`: ..."."""
    modules = {path.stem: _SAID.match(path.read_text(encoding="utf-8")) for path in Path(__file__).parent.glob("*.py")}
    said = {name: f"{module['help'][0].upper()}{module['help'][1:]}" for name, module in modules.items()
            if module and module["name"] == name}
    first = [name for name in FIRST if name in said]
    return {name: said[name] for name in (*first, *sorted(said.keys() - set(first)))}


COMMANDS = _commands()
"""Command -> one line of help. The command lives in `planner.cli.<name>` as `command`."""
EXAMPLES = """Four questions to begin with:

  planner plan --model llama-3.1-70b --tokens 1T --deadline "60 days" --on h100,h200,b200
      how many GPUs, which, from whom, and how long

  planner plan --model llama-3.1-70b --method qlora --on rtx-4090
      the fewest of these GPUs that hold the model

  planner plan --model llama-3.1-8b --rate 5 --input 1000 --output 200 --ttft 1s --tpot 50ms --on l4,l40s,h100
      what serves 5 requests/s within 1 s and 50 ms per token

  planner compare --model llama-3.1-8b --method lora --epochs 3 --samples 50k --mean-length 600 --on a100,h100
      what each of these would take and cost

planner --help lists the commands, planner plan --help what a question may say."""
_BULLET = re.compile(r"^\s*[-*\N{BULLET}\N{EN DASH}\N{EM DASH}]+\s+(?=\S)")
FEW_COLLECTIONS = 1_000_000
"""New objects after which unreachable cycles are looked for."""


@dataclass(slots=True)
class GlobalOptions:
    """What the options before and behind the command ask for; `main` reads it after the command has ended."""

    verbose: bool = False
    quiet: bool = False
    as_json: bool = False
    catalogs: tuple[Path, ...] = ()
    opened: dict[tuple[Path, ...], Catalog] = field(default_factory=dict)
    """Catalogs that were read, by their folders."""
    told: set[str] = field(default_factory=set)
    """Notes that were written, each once."""
    configs: dict[str, Config] = field(default_factory=dict)
    """Configs of other tools that were read, by their files."""


class _InterruptedError(Exception):
    """Ctrl-C, as click does not know it: it answers a KeyboardInterrupt with an empty line."""


@contextmanager
def _unseen() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise _InterruptedError from None


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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take a bullet for no option: `planner "- 4x L40S"`."""
        return super().parse_args(ctx, [_BULLET.sub("", args[0]), *args[1:]] if args else args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]
                        ) -> tuple[str | None, click.Command | None, list[str]]:
        """Read a question in a sentence, and suggest near names for an unknown command."""
        if args[:1] == ["version"] or args == ["help"]:
            printing.say(f"planner, version {__version__}" if args == ["version"] else ctx.get_help())
            ctx.exit()
        if args[:1] == ["help"] and args[1] in COMMANDS:
            args = [*args[1:], "--help"]
        if args and not args[0].startswith("-") and (args[0] not in COMMANDS or (
                args[1:] and not args[1].startswith("-"))):
            from planner.cli.asked import as_asked

            args = as_asked(args, ctx.ensure_object(GlobalOptions), COMMANDS)
        if "--jobs" in args:
            from planner.cli.options import open_catalog
            from planner.cli.several import with_jobs

            settings = ctx.ensure_object(GlobalOptions)
            args = with_jobs(args, open_catalog(settings.catalogs, settings)) or args
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and rest:
            from planner.cli.asked import filed, saying, worded
            from planner.cli.foreign import Foreign
            from planner.cli.open_values import MOVES
            from planner.cli.spoken import hardware_known, joined

            settings = ctx.ensure_object(GlobalOptions)
            rest = joined(rest, command, hardware_known(settings), worded(settings, str(name)), saying(settings),
                          filed(settings), Foreign(settings))
            other = next((MOVES[word[2:]] for word in rest if word[:2] == "--" and word[2:] in MOVES), name)
            if other != name and name in ("plan", "estimate", "explain"):
                name, command = other, self.get_command(ctx, str(other))
        return name, command, rest

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:  # noqa: ANN401 - as click has them
        """Read the command line; --help may be read by half, too."""
        with _reader_may_leave(), _unseen():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command."""
        with _reader_may_leave(), _unseen():
            return super().invoke(ctx)


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Take a reader that has gone away (`| head`) for no error, before click does."""
    try:
        yield
    except BrokenPipeError:
        printing.drop(sys.stdout)
        raise click.exceptions.Exit(EXIT_OK) from None


def _early(ctx: click.Context, param: click.Parameter, value: bool | tuple[Path, ...]) -> None:
    """Note an option given before the command, which `options.common` then reads."""
    settings = ctx.ensure_object(GlobalOptions)
    if param.name == "catalogs" and isinstance(value, tuple):
        settings.catalogs += value
    elif value and param.name is not None:
        setattr(settings, param.name, True)


def stacked(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return several options as one decorator, which help shows in this order."""
    return lambda function: reduce(lambda made, option: option(made), reversed(options), function)


everywhere = stacked(
    click.option("--json", "as_json", is_flag=True, expose_value=False, callback=_early,
                 help="Print JSON, alone, on stdout."),
    click.option("--catalogs", multiple=True, metavar="DIR", type=click.Path(path_type=Path), expose_value=False,
                 callback=_early, help="Catalog folder on top of the shipped one."),
    click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_early, help="Only the answer."),
    click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_early,
                 help="Progress, and tracebacks of bugs."))
"""Accepts the common options before a command too: `planner -q plan` is `planner plan -q`."""


@click.group(cls=LazyGroup, invoke_without_command=True,
             context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="planner")
@everywhere
@click.pass_context
def group(ctx: click.Context) -> None:
    """Plan GPU clusters: the cheapest GPUs for a job, and how to shard the model across them.

    Exit codes: 0 answered, 2 the input is wrong, 3 proven infeasible, 4 stopped before a proof, 70 a bug,
    74 the system could not read or write, 130 interrupted.
    """
    if ctx.invoked_subcommand is None:
        printing.say(EXAMPLES)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. Errors go to stderr, never as a traceback."""
    settings = GlobalOptions()
    # loading modules and facts makes many objects and no garbage; looking for some took a sixth of a plan's time
    gc.set_threshold(FEW_COLLECTIONS)
    try:
        printing.begin()
        code = group.main(None if argv is None else list(argv), prog_name="planner", standalone_mode=False,
                          obj=settings)
        sys.stdout.flush()
    except click.ClickException as error:
        code = printing.usage(error)
    except BrokenPipeError:
        printing.drop(sys.stdout)
        code = EXIT_OK
    except (Exception, KeyboardInterrupt, _InterruptedError) as error:
        code = _fail(error, settings)
    return printing.ended(code if isinstance(code, int) else EXIT_OK)


def _fail(error: BaseException, settings: GlobalOptions) -> int:
    """Say on one line what went wrong, and return the exit code that stands for it."""
    if isinstance(error, OSError):
        error = printing.failure(error)
    if isinstance(error, PlannerError):
        printing.note(f"Error: {error}")
        for line in getattr(error, "examples", ()):
            printing.note(line)
        return error.exit_code
    # some libraries make another error of Ctrl-C
    if isinstance(error, (click.Abort, KeyboardInterrupt, _InterruptedError)) or interrupts.came():
        printing.note("Error: interrupted")
        return EXIT_INTERRUPTED
    if settings.verbose:
        printing.message(traceback.format_exc(), nl=False)
    hint = "" if settings.verbose else " (-v shows the traceback)"
    printing.note(f"Error: this is a bug in planner: {type(error).__name__}: {error}{hint}")
    return EXIT_BUG
