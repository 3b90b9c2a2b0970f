"""`planner simulate`: a serving plan replayed on a trace, event by event."""

from __future__ import annotations

from pathlib import Path

import click

from planner.cli.options import common, console, is_quiet, open_catalog
from planner.cli.plan_file import read_plan
from planner.cli.printing import say, say_json
from planner.cli.progress import bar
from planner.errors import EXIT_OK
from planner.simulate.router import POLICIES


@click.command("simulate")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE",
              help="Requests: a CSV in the format of Azure's LLM inference traces, or Mooncake's JSON lines. "
              "Default: what the plan's service is asked for.")
@click.option("--workload", metavar="NAME", help="The service to replay, in a plan with several.")
@click.option("--policy", type=click.Choice(sorted(POLICIES)), default="least-outstanding", show_default=True,
              help="How requests are routed to replicas.")
@common
def command(plan: Path, trace: Path | None, workload: str | None, policy: str, as_json: bool,
            catalogs: tuple[Path, ...]) -> int:
    """Replay a trace on the fleet of a serving plan: batching, chunked prefill, routing, preemption.

    PLAN is what planner plan --json printed for a service. Percentiles are printed beside those that the plan computed.
    """
    from planner.answer.schema import to_json
    from planner.jobs.serving.simulate import simulate_plan
    from planner.render.simulation import render_simulation, simulation_sentence
    from planner.simulate.reading import read_trace

    made, requests = read_plan(plan), None if trace is None else read_trace(trace)
    with bar(shown=not (as_json or is_quiet())) as progress:
        found = simulate_plan(made, open_catalog(catalogs), requests, workload=workload, policy=policy,
                              progress=progress)
    if as_json:
        say_json(to_json(found))
    elif is_quiet():
        say(simulation_sentence(found))
    else:
        render_simulation(found, console())
    return EXIT_OK
