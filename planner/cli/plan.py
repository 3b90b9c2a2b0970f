"""`planner plan`: the cheapest (or fastest, or smallest) plan, proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click

from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.cli.launch import note_launched
from planner.cli.options import bar, common, is_quiet, is_verbose, open_catalog, say_answer, warn
from planner.cli.printing import note, say, say_yaml
from planner.cli.progress import progress
from planner.cli.question import any_question, asking, from_option, overrides, read_from, say_read
from planner.cli.rent_or_buy import say_rent_or_buy
from planner.cli.sizing import plan_log
from planner.errors import EXIT_INTERRUPTED, EXIT_OK, InputError
from planner.launch.targeted import told_as_asked
from planner.scenario.adding import with_jobs
from planner.scenario.default import Defaults
from planner.scenario.hardware_alone import hardware_alone
from planner.scenario.launchable import to_be_launched
from planner.scenario.portfolio import AnyQuestion, Portfolio
from planner.scenario.writing import to_yaml


@click.command("plan")
@asking
@click.option("--prefer", type=click.Choice(["simple"]), help="Choose the simplest layout within model error of "
              "the best; report the extra cost.")
@click.option("--pareto", metavar="A,B", help="The exact Pareto frontier of these: cost, days, gpus, energy; the plan "
              "minimizes the first.")
@click.option("--replay", type=click.Path(path_type=Path), metavar="TRACE", help="For services: replay this trace "
              "(Azure CSV or Mooncake JSON lines) instead of synthetic requests.")
@click.option("--layout", default="", metavar="AXIS=VALUE,..", help="Axes of the layout that are held, such as "
              "tp=8,zero=3; the plan chooses the rest. Also alone: --tp 8.")
@click.option("--jobs", type=click.Path(path_type=Path), metavar="LOG", help="How many nodes (--on) a log of jobs "
              "needs: Slurm's sacct, or CSV with submit, start, end (or duration), gpus.")
@click.option("--wait", metavar="TIME", help="For --jobs: how long jobs may wait: '4 h at 95%'.")
@click.option("--add", type=click.Path(path_type=Path), multiple=True, metavar="JOB.YAML", help="For a portfolio: a "
              "job to add to its plan; says what it costs and what moves. Repeatable.")
@click.option("--scheduler", metavar="ADDRESS", help="For a portfolio of many jobs: the Dask cluster that solves its "
              "windows, tcp://host:8786; the answer stays the same.")
@click.option("--launch", type=click.Path(path_type=Path), metavar="DIR", help="Write the files that start the plan, "
              "as `planner launch` does.")
@click.option("--show-scenario", is_flag=True, help="Print the question as a scenario file, and stop.")
@from_option
@common
def command(scenario: str | None, prefer: str | None, pareto: str | None, layout: str, time_limit: float | None,
            workers: int, replay: Path | None, jobs: Path | None, wait: str | None, add: tuple[Path, ...],
            scheduler: str | None, launch: Path | None, show_scenario: bool, from_: str | None, as_json: bool,
            catalogs: tuple[Path, ...], **flags: object) -> int:
    """Find the cheapest (or fastest, or smallest) plan, and prove it.

    SCENARIO is a file or the name of a shipped scenario; flags override it, or stand alone: --model with --tokens, or
    with --rate, --input and --output for a service.
    """
    catalog, config = open_catalog(catalogs), read_from(from_)
    if jobs is not None or wait is not None:
        others = {"SCENARIO": scenario, "--prefer": prefer, "--pareto": pareto, "--replay": replay, "--add": add,
                  "--from": from_, "--scheduler": scheduler, "--launch": launch, "--show-scenario": show_scenario,
                  "--time-limit": time_limit, "--layout": layout}
        return _of_log(jobs, wait, [name for name, value in others.items() if value], flags, catalog, as_json=as_json)
    alone = None if config or add else hardware_alone(scenario, overrides(flags), catalog, always=False)
    if alone is not None:
        return say_rent_or_buy(alone, catalog, as_json=as_json)
    from planner.ask.affordable import afforded
    from planner.jobs.holding import asks_what_holds

    bought = afforded({} if scenario or config or add else overrides(flags), catalog)
    asked, defaults = any_question(scenario, flags, catalog, bought.values, config=config)
    defaults = [*bought.defaults, *defaults]
    if layout and asks_what_holds(asked):
        from planner.cli.estimate import command as estimate

        note("note: no amount of work or load is given: what the layout does, as planner estimate has it")
        return int(click.get_current_context().invoke(estimate, scenario=scenario, layout=layout, from_=from_,
                                                      as_json=as_json, catalogs=catalogs, **flags))
    before = None
    if add:
        before, (asked, defaults) = asked, any_question(with_jobs(scenario, add, catalog), flags, catalog)
    if show_scenario:
        say_yaml(to_yaml(asked))
        return EXIT_OK

    say_read(config, as_json=as_json)
    _say_bought(bought.text, as_json=as_json)
    from planner.answer.exit_code import exit_code
    from planner.ask.account import Interrupted
    from planner.ask.plan import make_plan
    from planner.layouts.axes import layout_text
    from planner.render.tables import render_answer_line, render_plan

    def made(asked: AnyQuestion, defaults: Defaults) -> Plan:
        replays = replay is not None and not (as_json or is_quiet())
        with _cluster(scheduler, asked), progress(shown=not replays), bar(shown=replays) as advance:
            plan = make_plan(asked, catalog, defaults=defaults, time_limit=time_limit, simple=prefer is not None,
                             pareto=pareto.split(",") if pareto else (), workers=workers, replay=replay,
                             progress=advance, before=before if isinstance(before, Portfolio) else None,
                             layout=layout_text(layout))
        return told_as_asked(plan, asked, catalog)

    interrupted, files = False, None
    try:
        plan = made(asked, defaults)
        if launch is not None and plan.assignments:
            from planner.launch.written import startable

            held = to_be_launched(asked, defaults)
            plan, files = startable(plan, catalog, None if held[0] == asked else lambda: made(*held))
    except Interrupted as stopped:
        plan, interrupted = stopped.plan, True
    warn(plan.notes)
    try:
        say_answer(plan, lambda: render_answer_line(plan),
                   lambda page: render_plan(plan, page, full=is_verbose()), as_json=as_json)
    finally:  # who reads the first lines alone (| head) has asked for the files all the same
        if launch is not None and plan.assignments:
            from planner.launch.written import write_all

            note_launched(write_all(plan, catalog, launch, made=files))
    return EXIT_INTERRUPTED if interrupted else exit_code(plan)


def _cluster(scheduler: str | None, asked: AnyQuestion) -> AbstractContextManager[None]:
    """Return what has a cluster solve windows of a portfolio. Raises InputError where there is none, or no portfolio.
    """
    if scheduler is None:
        return nullcontext()
    if not isinstance(asked, Portfolio):
        raise InputError("--scheduler: a cluster solves windows of a portfolio (jobs:), and this is one workload")
    from planner.sweeping.cluster import on_cluster

    return on_cluster(scheduler)


def _say_bought(text: str, *, as_json: bool) -> None:
    """Say what a budget pays for; beside JSON on stderr."""
    if text:
        (note if as_json or is_quiet() else say)(text)


def _of_log(jobs: Path | None, wait: str | None, others: Sequence[str], flags: Mapping[str, object], catalog: Catalog,
            *, as_json: bool) -> int:
    """Answer how many nodes a log of jobs needs. Raises InputError for what has no effect on it."""
    if jobs is None:
        raise InputError("--wait is for --jobs, a log of jobs")
    if others:
        raise InputError(f"{others[0]} has no effect on how many nodes a log of jobs needs")
    return plan_log(jobs, wait, flags, catalog, as_json=as_json)
