"""`planner explain`: why this plan, why not another, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from planner.cli.options import common, open_catalog, say_answer, tell_once, warn
from planner.cli.printing import note
from planner.cli.progress import progress
from planner.cli.question import any_question, asking, from_option, read_from, say_read
from planner.scenario.portfolio import AnyQuestion


@click.command("explain")
@asking
@click.option("--why-not", multiple=True, metavar="CHOICE", help="A choice that the plan does not make: tp=4,pp=2 or "
              "gpu=a100, or a name alone, such as a100 or deepspeed; for a service also quantization=fp8; "
              "for a portfolio JOB, JOB=HARDWARE or JOB=rent; repeatable.")
@click.option("--layout", default="", metavar="AXIS=VALUE,..", help="A layout that is held against the plan, as "
              "--why-not does. Also alone: --tp 8.")
@from_option
@common
def command(scenario: str | None, why_not: tuple[str, ...], layout: str, from_: str | None, time_limit: float | None,
            workers: int, as_json: bool, catalogs: tuple[Path, ...], **flags: object) -> int:
    """Say which limits bind and what one more unit is worth, why not another choice, or why there is no plan.

    Every figure comes from solving the question again, to proof, with that one thing changed.
    """
    from planner.answer.exit_code import exit_code
    from planner.ask.explain.explain import explain
    from planner.cli.plan import command as plan
    from planner.jobs.holding import asks_what_holds
    from planner.jobs.solved import effort_of
    from planner.render.explanation import render_explanation, render_explanation_line

    catalog, config = open_catalog(catalogs), read_from(from_)
    if layout:
        why_not = (*why_not, layout)
        tell_once(f"--layout {layout} is read as --why-not {layout}: what it takes beside the plan")

    def ask(replaced: Mapping[str, str]) -> AnyQuestion:
        return any_question(scenario, flags, catalog, replaced, config)[0]

    asked = any_question(scenario, flags, catalog, config=config)[0]
    say_read(config, as_json=as_json)
    if asks_what_holds(asked) and not why_not:
        note("note: no amount of work or load is given, so memory alone decides: the fewest GPUs of each kind, as "
             "planner plan has them")
        options = {"as_json": as_json, "catalogs": catalogs, "time_limit": time_limit, "workers": workers}
        return int(click.get_current_context().invoke(plan, scenario=scenario, **options, **flags))
    with progress():
        explanation = explain(ask, catalog, why_not, effort_of(time_limit, workers))
    warn(explanation.notes)
    say_answer(explanation, lambda: render_explanation_line(explanation),
               lambda page: render_explanation(explanation, page), as_json=as_json)
    return exit_code(explanation)
