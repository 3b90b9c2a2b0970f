"""`planner compare`: every candidate and offer side by side."""

from __future__ import annotations

from pathlib import Path

import click

from planner.catalog.load import Catalog
from planner.cli.options import common, console, is_quiet, open_catalog, warn
from planner.cli.question import asking, question
from planner.errors import EXIT_INFEASIBLE, EXIT_OK, EXIT_STOPPED, Unsupported
from planner.scenario.scenario import ServingScenario


@click.command("compare")
@asking
@click.option("--trace", is_flag=True, help="Lead every figure of money back to facts of the catalog.")
@common
def command(scenario: str | None, trace: bool, time_limit: float | None, workers: int, as_json: bool,
            catalogs: tuple[Path, ...], **flags: str | tuple[str, ...] | None) -> int:
    """Solve the question for every candidate and every offer, and put the plans side by side.

    A candidate without a plan is a row with the reason; exit code 3 only where none has one.
    """
    from planner.answer.schema import to_json

    catalog = open_catalog(catalogs)
    asked, _ = question(scenario, flags, catalog)
    if isinstance(asked, ServingScenario):
        if trace:
            raise Unsupported("compare --trace of a workload of kind: serving")
        return _services(asked, catalog, as_json=as_json)

    from planner.ask.compare import compare, comparison_of
    from planner.ask.money_trace import trace as traced
    from planner.ask.plan import effort_of
    from planner.render.comparison import render_comparison, render_comparison_line

    found = compare(asked, catalog, effort_of(time_limit, workers))
    warn(one.row.note for one in found if one.row.note)
    if as_json:
        click.echo(to_json(comparison_of(found)))
    elif is_quiet():
        click.echo(render_comparison_line(found))
    else:
        render_comparison(found, console(), traced if trace else None)
    return _exit({one.row.status for one in found})


def _services(asked: ServingScenario, catalog: Catalog, *, as_json: bool) -> int:
    """Print the comparison of services."""
    from planner.answer.schema import to_json
    from planner.jobs.serving.compare import compare_services, comparison_of
    from planner.render.served_comparison import render_services, services_line

    found = compare_services(asked, catalog)
    warn(one.row.note for one in found if one.row.note)
    if as_json:
        click.echo(to_json(comparison_of(found)))
    elif is_quiet():
        click.echo(services_line(found))
    else:
        render_services(found, console())
    return _exit({one.row.status for one in found})


def _exit(statuses: set[str]) -> int:
    """Return the exit code: infeasible only where no row has a plan."""
    if statuses & {"feasible", "undecided"}:
        return EXIT_STOPPED
    return EXIT_OK if "optimal" in statuses else EXIT_INFEASIBLE
