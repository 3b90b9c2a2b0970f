"""`planner compare`: every candidate and offer side by side, each at its own best plan."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from planner.answer.objective import NAMES
from planner.cli.options import common, is_verbose, open_catalog, say_answer, warn
from planner.cli.printing import note
from planner.cli.progress import progress
from planner.cli.question import any_question, asking, from_option, overrides, read_from, say_read
from planner.cli.rent_or_buy import say_rent_or_buy
from planner.errors import InputError
from planner.scenario.hardware_alone import hardware_alone
from planner.scenario.words import named
from planner.solver.fleet.problem import Goal

VARIED = ("model", "quantization", "precision", "engine", "method")
"""Options of which several values are set side by side; those of the first that has several."""
HARDWARE = "on"
"""What is varied where clusters of different size are compared."""


def _order(ctx: click.Context, param: click.Parameter, value: str | None) -> Goal | None:
    """Return what rows are ordered by, in the planner's word."""
    goal = next((goal for goal in NAMES if goal == named("objective", value)), None)
    if value is not None and goal is None:
        raise click.BadParameter(f"expected {', '.join(NAMES)}, got {value!r}")
    return goal


@click.command("compare")
@partial(asking, taken=("trace",))
@click.option("--trace", is_flag=True, help="Show how each cost derives from the catalog.")
@click.option("--layout", default="", metavar="AXIS=VALUE,..", help="Axes of the layout that are held in every plan, "
              "such as tp=8,zero=3. Also alone: --tp 8.")
@click.option("--sort-by", "--sort", "--order-by", "--rank-by", callback=_order, metavar="[cost|time|gpus|energy]",
              help="What rows are ordered by; each stays the best plan by --objective. Default: that.")
@from_option
@common
def command(scenario: str | None, trace: bool, layout: str, sort_by: Goal | None, from_: str | None,
            time_limit: float | None, workers: int, as_json: bool, catalogs: tuple[Path, ...], **flags: object) -> int:
    """Solve the question for every candidate and every offer, and put the plans side by side.

    A candidate without a plan is a row with the reason; exit code 3 only if none has a plan. Hardware without a word of
    work (--on 64xh100 --years 3) is compared by what it costs to rent and to buy.
    """
    from planner.answer.exit_code import exit_code
    from planner.ask.compare import compare, compare_models, comparison_of, notes_on, several_models
    from planner.cli.plan import command as plan
    from planner.jobs.holding import asks_what_holds
    from planner.jobs.solved import effort_of
    from planner.layouts.axes import layout_text
    from planner.render.comparison import render_comparison, render_comparison_line
    from planner.render.comparison_lines import MOST_ROWS
    from planner.scenario.pool import sizes_apart

    catalog = open_catalog(catalogs)
    if (values := hardware_alone(scenario, overrides(flags), catalog, always=True)) is not None:
        if trace or time_limit is not None:
            raise InputError("--trace and --time-limit are for work, and none is named: rent or buy has one table")
        return say_rent_or_buy(values, catalog, as_json=as_json)
    effort = effort_of(time_limit, workers)
    said = {name: ",".join(value) if isinstance(value := flags[name], tuple) else value for name in VARIED}
    varied = next((name for name in VARIED if several_models(said[name])), VARIED[0])
    several = several_models(said[varied])
    if not several and (apart := sizes_apart(flags[HARDWARE], catalog)):
        varied, several = HARDWARE, apart
    each = [{**flags, varied: (name,) if isinstance(flags[varied], tuple) else name} for name in several] or [flags]
    models = [name if varied == VARIED[0] else f"{flags['model'] or scenario}, {name}" for name in several]
    config, held = read_from(from_), layout_text(layout)
    asked, defaults = any_question(scenario, each[0], catalog, config=config)
    say_read(config, as_json=as_json)
    if asks_what_holds(asked):
        if trace or (as_json and models):
            raise InputError("--trace is for costs, and this question, without an amount of work, has none" if trace
                             else "--json of what holds several models: ask for one at a time")
        note("note: no amount of work or load is given: the fewest GPUs of each kind that do it, as planner plan has "
             "them")
        options = {"as_json": as_json, "catalogs": catalogs, "time_limit": time_limit, "workers": workers}
        return max(int(click.get_current_context().invoke(plan, scenario=scenario, **options, **given))
                   for given in each)
    if models and trace:
        raise InputError("--trace is of one model, and several are compared")
    with progress():
        plans = compare_models({model: any_question(scenario, given, catalog, config=config)[0] for model, given in zip(
            models, each, strict=True)}, catalog, effort, defaults, held) if models else compare(
                asked, catalog, effort, traced=trace, defaults=defaults, layout=held)
    if sort_by is not None:
        plans.sort(key=lambda compared: compared.row.rank(sort_by))
    warn((*notes_on(plans, defaults, catalog, MOST_ROWS), *(
        compared.row.note for compared in plans if compared.row.note)))
    comparison = comparison_of(plans)
    say_answer(comparison, lambda: render_comparison_line(plans),
               lambda page: render_comparison(plans, page, traced=trace, full=is_verbose()), as_json=as_json)
    return exit_code(comparison)

