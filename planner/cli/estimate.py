"""`planner estimate`: does a layout fit, and how fast is it?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from planner.catalog.load import Catalog
from planner.cli.options import common, console, is_quiet, is_verbose, open_catalog, warn
from planner.cli.printing import note, say, say_json
from planner.cli.question import LABELS, from_option, overrides, question_options, read_from, say_read
from planner.errors import EXIT_OK, InputError
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.limits import MOST

if TYPE_CHECKING:
    from planner.ask.estimate import Measured


MEASURES = {"micro-batch": "micro-batch-size mbs batch-size per-device-batch", "model": "model-size size params",
            "sequence": "seq-len sequence-length seqlen seq context context-length ctx length max-seq-len",
            "resolution": "res image-size", "frames": "clip", "batch": "images", "audio": "sound"}
"""What the largest is looked for of, with what people call it."""


def _measured(ctx: click.Context, param: click.Parameter, value: str | None) -> Measured | None:
    """Return what the largest is looked for of, in the planner's word."""
    said = "" if value is None else value.lower().replace("_", "-").replace(" ", "-")
    found = next((name for name, called in MEASURES.items() if said in (name, *called.split())), None)
    if value is not None and found is None:
        raise click.BadParameter(f"expected {', '.join(MEASURES)}, got {value!r}")
    return cast("Measured | None", found)


@click.command("estimate")
@click.option("--node", metavar="NAME", help="Node type, or 4xdgx-h100. A config is run on dgx-h100 where none is "
              "given.")
@click.option("--nodes", type=click.IntRange(1, MOST), metavar="N", help="All GPUs of N nodes, instead of --gpus.")
@click.option("--layout", default="", metavar="AXIS=VALUE,..", help="tp=8,pp=4,vpp=2,cp=1,mbs=1,zero=1,"
              "schedule=gpipe,recompute=selective,sp=1,shard=8,no_sync=1,offload_optimizer=0.5,"
              "offload_parameters=1,offload_activations=1,offload_to=nvme,stages=28/0/4*2 (none/selective/full layers "
              "of each stage); for a service tp, pp, ep, dp. Default: the "
              "best on all GPUs of the node. If their number is given (dp, --gpus, degrees that fill the node), axes "
              "left out are 1 or off.")
@click.option("--max", "largest", callback=_measured, metavar=f"[{'|'.join(MEASURES)}]",
              help="Find the largest that fits, and estimate it; --max model needs no --model; of images and clips the "
              "largest resolution, frames or batch, of sound the longest.")
@from_option
@question_options
@common
def command(scenario: str | None, node: str | None, nodes: int | None, layout: str, largest: Measured | None,
            from_: str | None, as_json: bool, catalogs: tuple[Path, ...], **flags: object) -> int:
    """Say whether a job or a service fits on a node type, how fast it is, and where bytes and seconds go.

    SCENARIO is a file or the name of a shipped scenario; flags override it, or stand alone. The layout is the fastest
    on all GPUs of the node, or on --gpus in all; --layout keeps some of its axes, or all. What does not fit is an
    answer: exit code 0. With --rate, --concurrency, --input, ... the estimate is for a service.
    """
    from planner.answer.schema import to_json
    from planner.ask.estimate import estimating
    from planner.layouts.axes import layout_text
    from planner.render.sentence import estimate_sentence, largest_sentence, levers_sentence
    from planner.render.serving import capacity_sentence
    from planner.render.tables import render_estimate, render_service
    from planner.scenario.media import context_of

    catalog = open_catalog(catalogs)
    alone = scenario is None and from_ is None and not (node or nodes or layout or largest or flags["own"])
    on = overrides(flags).get("hardware.candidates")
    if alone and (not on or _of_several([on] if isinstance(on, str) else cast("Iterable[str]", on), catalog)):
        from planner.cli.plan import command as plan

        note("note: no one node type is given: the fewest GPUs of each kind that do it, as planner plan has them")
        return int(click.get_current_context().invoke(plan, as_json=as_json, catalogs=catalogs, **flags))
    axes = layout_text(layout)
    config = read_from(from_)
    ask = estimating(scenario, overrides(flags), catalog, node=node, layout=axes,
                     labels={"node": "--node", **LABELS}, largest=largest, nodes=nodes, config=config)
    say_read(config, as_json=as_json)
    if ask.left_to_plan:
        warn([f"{', '.join(ask.left_to_plan)} of the scenario have no effect on an estimate"])
    warn(ask.notes)
    confidence, chosen = ask.scenario.confidence, tuple[str, ...]()
    if largest is None:
        answer = ask.answer()
        assignment, chosen = answer.assignment, answer.why
    else:
        result = ask.largest(largest)
        (note if as_json else say)(largest_sentence(largest, result, context_of(ask.scenario.workload, ask.catalog)))
        # JSON has an estimate in any case: where none fits, that of the next that does not
        shown = result.estimate or (result.misses if as_json else None)
        if shown is None or (is_quiet() and not as_json):
            return EXIT_OK
        assignment = shown
    rate, offline = ask.rate, ask.is_offline and largest is None
    if as_json:
        say_json(to_json(assignment))
    elif is_quiet():
        say(capacity_sentence(assignment, rate, offline=offline) if assignment.serving
            else estimate_sentence(assignment, confidence))
    elif assignment.serving:
        render_service(assignment, console(), rate, chosen, offline=offline, full=is_verbose())
    else:
        levers = () if largest or (chosen and assignment.memory.fits == "fits") else ask.levers(assignment)
        enough = None if largest else ask.enough(assignment, levers)
        said = levers_sentence(levers, enough) if levers or enough else ""
        render_estimate(assignment, console(), confidence, said, chosen, full=is_verbose())
    return EXIT_OK


def _of_several(names: Iterable[str], catalog: Catalog) -> bool:
    """Say whether names of hardware, such as 24GB, are of several kinds of GPU; unknown ones are refused later."""
    try:
        nodes = candidate_nodes([part for name in names for part in name.split(",")], catalog)
    except InputError:
        return False
    return len({catalog.gpu(catalog.node(node).gpu).name for node in nodes}) > 1
