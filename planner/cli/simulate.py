"""`planner simulate`: a serving plan replayed on a trace, event by event."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from planner.cli.options import bar, common, is_quiet, open_catalog, say_answer
from planner.cli.plan_file import read_plan
from planner.cli.question import LABELS, overrides, question_options
from planner.cli.sizing import replay_log
from planner.errors import EXIT_OK, InputError
from planner.scenario.serving import LOADS
from planner.simulate.router import POLICIES

LOAD = frozenset(f"workload.{load}" for load in LOADS)


@click.command("simulate")
@click.option("--node", metavar="NAME", help="Replay on replicas on this node type, instead of those of a plan.")
@click.option("--layout", default="", metavar="AXIS=VALUE,..",
              help="Layout of these replicas: tp=4,pp=2. Default: the best.")
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE",
              help="Requests: a CSV in the format of Azure's LLM inference traces, or Mooncake's JSON lines. "
              "Default: requests as the plan's service describes them.")
@click.option("--jobs", type=click.Path(path_type=Path), metavar="LOG",
              help="A log of jobs to replay on the nodes of a plan instead, or on --gpus of --node.")
@click.option("--workload", metavar="NAME", help="The service to replay, in a plan with several.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, metavar="N",
              help="Draw other requests than those that the plan shows.")
@click.option("--policy", type=click.Choice(sorted(POLICIES)), default="least-outstanding", show_default=True,
              help="How requests are routed to replicas.")
@partial(question_options, taken=("trace",))
@common
def command(scenario: str | None, node: str | None, layout: str, trace: Path | None, jobs: Path | None,
            workload: str | None, seed: int, policy: str, as_json: bool, catalogs: tuple[Path, ...],
            **flags: object) -> int:
    """Replay a trace on a fleet: batching, chunked prefill, routing, preemption.

    SCENARIO is what planner plan --json printed for a service. With --node it is a scenario, or flags stand alone, as
    for planner estimate: --gpus counts all replicas. Replayed percentiles stand beside the computed ones.
    """
    if jobs is not None:
        given = overrides(flags)
        gpus = given.pop("limits.gpus", None)
        if given or layout or trace or workload or seed:
            raise InputError("--jobs replays a log of jobs: beside it only a plan, or --node and --gpus, has an effect")
        return replay_log(jobs, None if scenario is None else Path(scenario), node, gpus, open_catalog(catalogs),
                          as_json=as_json)
    from planner.ask.estimate import estimating
    from planner.ask.simulate import simulate_layout, simulate_plan
    from planner.layouts.axes import layout_text
    from planner.render.simulation import render_simulation, simulation_sentence
    from planner.simulate.reading import read_trace

    catalog, given, requests = open_catalog(catalogs), overrides(flags), None if trace is None else read_trace(trace)
    with bar(shown=not (as_json or is_quiet())) as progress:
        if node is None and "hardware.candidates" not in given:
            if scenario is None or given or layout:
                raise InputError("simulate takes what planner plan --json printed; or --node, with a scenario or flags "
                                 "such as --model and --rate")
            simulation = simulate_plan(read_plan(Path(scenario)), catalog, requests, workload=workload, policy=policy,
                                  progress=progress, seed=seed)
        else:
            if trace is not None and scenario is None and LOAD.isdisjoint(given):
                given |= {"workload.trace": str(trace)}
            ask = estimating(scenario, given, catalog, node=node, layout=layout_text(layout), labels=LABELS)
            if workload is not None:
                raise InputError("--workload applies to a plan with several services")
            simulation = simulate_layout(ask, requests, policy=policy, progress=progress, seed=seed)
    say_answer(simulation, lambda: simulation_sentence(simulation), lambda page: render_simulation(simulation, page),
               as_json=as_json)
    return EXIT_OK
