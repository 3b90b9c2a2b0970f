"""`planner plan`: a question from a file, flags or both; the answer as text or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from planner.cli import options
from planner.cli.options import common, console, is_quiet, open_catalog
from planner.errors import EXIT_INFEASIBLE, EXIT_INTERRUPTED, EXIT_OK, EXIT_STOPPED
from planner.scenario.limits import Objective
from planner.scenario.load import FLAGS, load_scenario, to_yaml
from planner.scenario.workload import Method

EXIT_CODES = {"optimal": EXIT_OK, "feasible": EXIT_STOPPED, "undecided": EXIT_STOPPED,
              "infeasible": EXIT_INFEASIBLE}
LABELS = {path: "--" + flag.replace("_", "-") for flag, path in FLAGS.items()}


@click.command("plan")
@click.argument("scenario", required=False)
@click.option("--model", metavar="NAME", help="Short name or Hugging Face id.")
@click.option("--method", type=click.Choice(get_args(Method)), help="From scratch, or all weights tuned.")
@click.option("--tokens", metavar="COUNT", help="Tokens to train on: 15T, 300 G.")
@click.option("--seq-len", metavar="TOKENS", help="Sequence length. Default: by model.")
@click.option("--global-batch", metavar="SEQUENCES", help="Sequences in a step. Default: by model.")
@click.option("--deadline", metavar="TIME", help="Longest duration: 60d.")
@click.option("--budget", metavar="MONEY", help="Highest cost: 12MUSD.")
@click.option("--gpus", metavar="N", help="Exactly this many GPUs.")
@click.option("--max-gpus", metavar="N", help="At most this many GPUs.")
@click.option("--max-nodes", metavar="N", help="At most this many nodes.")
@click.option("--max-power", metavar="POWER", help="At most this draw of all nodes under load: 2MW.")
@click.option("--on", multiple=True, metavar="NAME,..", help="Node types, GPUs, or 8xh100; repeatable. "
              "Default: every node type with an admitted offer.")
@click.option("--provider", multiple=True, metavar="NAME,..", help="Only offers of these providers.")
@click.option("--region", multiple=True, metavar="NAME,..", help="Only offers in these regions.")
@click.option("--terms", multiple=True, metavar="TERM,..", help="on-demand (default), spot, reserved-1y, ...")
@click.option("--stack", metavar="NAME", help="Training framework. Default: megatron-core.")
@click.option("--precision", multiple=True, metavar="FORMAT,..", help="bf16 (default), fp8, mxfp8, fp4 (NVFP4), fp16.")
@click.option("--objective", type=click.Choice(get_args(Objective)), help="What to minimize. Default: cost.")
@click.option("--prefer", type=click.Choice(["simple"]), help="Of layouts that cannot be told from the best, the "
              "simplest; what it costs is said.")
@click.option("--time-limit", type=options.time_limit, metavar="SECONDS",
              help="Stop after this many seconds; the gap is then printed.")
@click.option("--show-scenario", is_flag=True, help="Print the question as a scenario file, and stop.")
@common
def command(scenario: str | None, prefer: str | None, time_limit: float | None, show_scenario: bool, as_json: bool,
            catalogs: tuple[Path, ...], **flags: str | tuple[str, ...] | None) -> int:
    """Find the cheapest (or fastest, or smallest) plan, and prove it.

    SCENARIO is a file or the name of a shipped scenario; flags override it, or stand alone with at least
    --model and --tokens.
    """
    catalog = open_catalog(catalogs)
    overrides = {FLAGS[flag]: ",".join(value) if isinstance(value, tuple) else value
                 for flag, value in flags.items() if value not in (None, ())}
    question, defaults = load_scenario(scenario, overrides, catalog, labels=LABELS)
    if show_scenario:
        click.echo(to_yaml(question), nl=False)
        return EXIT_OK

    from planner.answer.schema import to_json
    from planner.pipeline import Interrupted, make_plan
    from planner.render.tables import render_answer_line, render_plan

    interrupted = False
    try:
        plan = make_plan(question, catalog, defaults=defaults, time_limit=time_limit, simple=prefer is not None)
    except Interrupted as stopped:
        plan, interrupted = stopped.plan, True
    if as_json:
        click.echo(to_json(plan))
    elif is_quiet():
        click.echo(render_answer_line(plan))
    else:
        render_plan(plan, console())
    return EXIT_INTERRUPTED if interrupted else EXIT_CODES[plan.status]
