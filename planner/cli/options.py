"""What several commands share: options, parameter types that read quantities, where output goes, and how far it is."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from planner.catalog.load import Catalog
from planner.catalog.sourced import AsOf
from planner.cli.main import GlobalOptions, stacked
from planner.cli.printing import note, say, say_json
from planner.text_io import visible
from planner.units import SECONDS, parse
from planner.yaml_io import Frozen

if TYPE_CHECKING:
    from planner.scenario.configs.read import Config

PIPE_WIDTH = 80
"""Columns where the output is no terminal and COLUMNS is not set."""
_AS_OF: TypeAdapter[str] = TypeAdapter(AsOf)


@contextmanager
def bar(*, shown: bool) -> Iterator[Callable[[float], None]]:
    """Give what to call with the share that is done; a bar on stderr shows it where that is a terminal."""
    hidden = not shown or not sys.stderr.isatty()
    with click.progressbar(length=100, label="Replaying", file=sys.stderr, hidden=hidden) as line:
        def advance(share: float) -> None:
            line.update(round(100 * share) - line.pos)

        yield advance


def _settings(ctx: click.Context) -> GlobalOptions:
    return ctx.ensure_object(GlobalOptions)


def _json(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    return value or _settings(ctx).as_json


def _catalogs(ctx: click.Context, param: click.Parameter, value: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the folders given before the command, then those behind it; the environment's where there are none."""
    early = _settings(ctx).catalogs
    if early and param.name and ctx.get_parameter_source(param.name) is ParameterSource.ENVIRONMENT:
        return early
    return early + value


def _quiet(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    _settings(ctx).quiet |= value


def _verbose(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    _settings(ctx).verbose |= value


common = stacked(
    click.option("--json", "as_json", is_flag=True, callback=_json, help="Print JSON, alone, on stdout."),
    click.option("--catalogs", multiple=True, envvar="PLANNER_CATALOGS", metavar="DIR",
                 type=click.Path(path_type=Path), callback=_catalogs,
                 help="Catalog folder that adds to or overrides the "
                 "shipped one; repeatable, the later wins. Also PLANNER_CATALOGS."),
    click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_quiet,
                 help="Only the answer, no warnings."),
    click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_verbose,
                 help="The answer in full, progress on stderr, and tracebacks of bugs."))
"""Adds the options that every command has: --catalogs, --json, -q, -v."""


def warn(messages: Iterable[str]) -> None:
    """Write warnings to stderr, each once; with -q none."""
    for message in dict.fromkeys(messages) if not is_quiet() else ():
        note(f"warning: {visible(message)}")


def tell_once(text: str) -> None:
    """Write a note to stderr unless it was written before; with -q not at all."""
    told = _settings(click.get_current_context()).told
    if not is_quiet() and text not in told:
        told.add(text)
        note(f"note: {text}")


def is_quiet() -> bool:
    """Say whether -q was given."""
    return _settings(click.get_current_context()).quiet


def is_verbose() -> bool:
    """Say whether -v was given."""
    return _settings(click.get_current_context()).verbose


def console() -> Console:
    """Return the console of stdout: as wide as the terminal, and wide enough for tables in a pipe."""
    fixed = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return _Console(file=sys.stdout, width=fixed, highlight=False)


def say_answer(answer: Frozen, line: Callable[[], str], full: Callable[[Console], None], *, as_json: bool) -> None:
    """Print an answer as JSON, with -q as one line, or in full."""
    if as_json:
        from planner.answer.schema import to_json

        say_json(to_json(answer))
    elif is_quiet():
        say(line())
    else:
        full(console())


class _Console(Console):
    """A console whose reader may go away, which `main` takes for no error."""

    def on_broken_pipe(self) -> None:
        """Leave it to `main`; rich itself would exit with 1."""
        raise BrokenPipeError


def open_catalog(folders: tuple[Path, ...], settings: GlobalOptions | None = None) -> Catalog:
    """Return the shipped catalog with the user's folders on top: of one command line, read once."""
    context = click.get_current_context(silent=True)
    if settings is None:
        settings = _settings(context) if context is not None else GlobalOptions()
    if folders not in settings.opened:
        settings.opened[folders] = Catalog(folders, configs=True)
    return settings.opened[folders]


def configs_read() -> dict[str, Config]:
    """Return the configs that were read as the command line was understood."""
    context = click.get_current_context(silent=True)
    return {} if context is None else _settings(context).configs


def as_of(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return a date as catalog entries state it."""
    try:
        return None if value is None else _AS_OF.validate_python(value)
    except ValidationError:
        raise click.BadParameter(f"expected a month or a day such as 2026-11 or 2026-11-21, got {value!r}") from None


def of_run(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return the columns that `--run gpu=h100-sxm,tp=2` states."""
    stated: dict[str, str] = {}
    for part in (part for value in values for part in value.split(",")):
        name, sign, text = part.partition("=")
        if not sign or not name.strip() or not text.strip():
            raise click.BadParameter(f"expected COLUMN=VALUE such as gpu=h100-sxm, got {part!r}")
        stated[name.strip()] = text.strip()
    return stated


run = click.option("--run", "stated", multiple=True, metavar="COLUMN=VALUE,..", callback=of_run,
                   help="What another tool's output leaves open, as columns of evidence: gpu=h100-sxm,gpus=2,tp=2, "
                   "model, engine, engine_version, weight_precision; of collectives node, gpus_per_node, operation.")


def time_limit(text: str) -> float:
    """Return seconds from a plain number, or from a duration with its unit."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            return parse(text, SECONDS, "duration", "90 s")
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    if not (math.isfinite(seconds) and seconds > 0):
        raise click.BadParameter(f"{text!r} is not a number of seconds above zero")
    return seconds
