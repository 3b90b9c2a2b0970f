"""`planner sweep`: what if: many variants of a question, one JSON line each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from planner.catalog.load import Catalog
from planner.cli import options
from planner.cli.options import common, is_quiet, open_catalog, warn
from planner.cli.printing import say_json
from planner.cli.question import LABELS, overrides, question_options
from planner.errors import EXIT_INPUT, EXIT_OK, EXIT_STOPPED
from planner.scenario.flags import NAMES
from planner.scenario.said import own_name
from planner.text_io import real

if TYPE_CHECKING:
    from planner.sweeping.run import Summary
    from planner.sweeping.task import Answers, SweepTerms

SHOWN = 5
"""Errors that are named at the end; the lines have all."""


@click.command("sweep")
@partial(question_options, taken=("engine", "output"))
@click.option("--vary", multiple=True, required=True, metavar="PATH=V1,V2",
              help="A scenario value and what it takes in turn; repeatable, the last varies fastest. In a list, the "
              "values of one variant are joined by +.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE",
              help="Append each line to FILE when it is done; skip variants that FILE already has.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N",
              help="Processes on this machine. Default: all cores.")
@click.option("--time-limit", type=options.time_limit, metavar="SECONDS",
              help="Stop each variant after this many seconds; its plan then states the gap.")
@click.option("--engine", type=click.Choice(["local", "dask"]), default="local", show_default=True,
              help="Where variants are solved.")
@click.option("--scheduler", metavar="ADDRESS", help="Address of the Dask scheduler: tcp://host:8786.")
@common
def command(scenario: str | None, vary: tuple[str, ...], output: Path | None, workers: int | None,
            time_limit: float | None, engine: str, scheduler: str | None, as_json: bool, catalogs: tuple[Path, ...],
            **flags: object) -> int:
    """Answer a question for every combination of the --vary values, one JSON line each.

    SCENARIO is a file or the name of a shipped scenario; flags override it, or stand alone. All variants are checked
    before the first is solved. Exit code 4 where some variant stopped at its time limit, 2 where some had an error; its
    line then says which.
    """
    _check_engine(engine, scheduler, workers)
    catalog = open_catalog(catalogs)

    from planner.scenario.load import paths_of
    from planner.sweeping.output import held, in_file, in_order, lines_in
    from planner.sweeping.run import run
    from planner.sweeping.task import SweepTerms, tasks
    from planner.sweeping.variants import varied

    values = overrides(flags)
    if output is not None and str(output).isdecimal():
        # as every other command has it: the tokens of an answer
        values, output = values | {"workload.output": str(output)}, None
    axes = varied([_by_path(text) for text in vary], paths_of(scenario, catalog))
    asked = tasks(scenario, axes, catalog, values, LABELS)
    terms = SweepTerms(tuple(str(real(folder)) for folder in catalogs), catalog.digest, time_limit)
    with ExitStack() as stack:
        if output is not None:
            stack.enter_context(held(output))
        lines = lines_in(output, asked, catalog.digest) if output is not None else {}
        done = {index for index, line in lines.items() if line.finished}
        answers = stack.enter_context(_engine(terms, catalog, scheduler, workers, len(asked) - len(done)))
        bar = stack.enter_context(_bar(len(asked)))
        sink = in_order(bar.print) if output is None else in_file(output, lines)
        summary = run(asked, done, answers, stack.enter_context(sink), bar.show)
    return _end(summary, len(asked))


def _by_path(text: str) -> str:
    """Return `rate=5,10` with the path of the value that the flag sets."""
    name, equals, values = text.partition("=")
    said = name.strip().removeprefix("--").replace("_", "-")
    own = own_name(said, {each.replace("_", "-") for each in NAMES}) or said
    return f"{NAMES.get(own.replace('-', '_'), name)}{equals}{values}"


def _check_engine(engine: str, scheduler: str | None, workers: int | None) -> None:
    if engine == "dask" and scheduler is None:
        raise click.UsageError("--engine dask needs --scheduler ADDRESS.")
    if engine == "local" and scheduler is not None:
        raise click.UsageError("--scheduler is for --engine dask.")
    if engine == "dask" and workers is not None:
        raise click.UsageError("--workers is for --engine local: a Dask cluster has its own.")


def _engine(terms: SweepTerms, catalog: Catalog, scheduler: str | None, workers: int | None, variants: int
            ) -> AbstractContextManager[Answers]:
    if scheduler is not None and variants:
        from planner.sweeping.cluster import cluster

        return cluster(terms, scheduler, warn)

    from planner.sweeping.local import cores, processes, this_process

    workers = min(workers or cores(), variants)
    return processes(terms, workers) if workers > 1 else this_process(terms, catalog)


class _Bar:
    """Variants done of all, and the time left, on a terminal's stderr; lines on stdout go above it."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.task = progress.add_task("variants", total=total)

    def show(self, done: int) -> None:
        """Say how many are done."""
        self.progress.update(self.task, completed=done)

    def print(self, line: str) -> None:
        """Print a line on stdout."""
        shared = not self.progress.disable and sys.stdout.isatty()
        if shared:
            self.progress.stop()
        say_json(line)
        if shared:
            self.progress.start()


@contextmanager
def _bar(total: int) -> Iterator[_Bar]:
    shown = not is_quiet() and sys.stderr.isatty()
    # stdout is left alone: rich would send it to stderr
    progress = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                        console=Console(stderr=True), transient=True, redirect_stdout=False,
                        disable=not shown)
    # older versions of rich end even a hidden bar with an empty line
    with progress if shown else nullcontext():
        yield _Bar(progress, total)


def _end(summary: Summary, variants: int) -> int:
    warn(summary.notes)
    if summary.stopped:
        warn([f"{summary.stopped} of {variants} variants stopped at their time limit"])
    if not summary.errors:
        return EXIT_STOPPED if summary.stopped else EXIT_OK
    named = [f"{variant}: {error}" for variant, error in list(summary.errors.items())[:SHOWN]]
    more = len(summary.errors) - len(named)
    warn([f"{len(summary.errors)} of {variants} variants ended with an error: {'; '.join(named)}"
          + (f"; and {more} more" if more else "")])
    return EXIT_INPUT
