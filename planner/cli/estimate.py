"""`planner estimate`: one layout, does it fit and how fast is it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import click
from click.core import ParameterSource

from planner.catalog.hardware import Precision
from planner.catalog.load import Catalog
from planner.cli.options import F, common, console, is_quiet, open_catalog, quantity
from planner.cli.printing import note, say, say_json
from planner.cli.question import serving_options
from planner.errors import EXIT_OK, InputError
from planner.scenario.load import SERVING_FLAGS, load_service
from planner.scenario.workload import Batch, GlobalBatch, Loss, Method, Optimizer, SequenceLength

SERVICE = ("model", *SERVING_FLAGS, "concurrency")
"""Flags of a service, each with the key that it sets."""
FOR_TRAINING = ("seq_len", "global_batch", "method", "stack", "optimizer", "optimizer_in_backward", "loss",
                "trained_layers", "precision", "largest")
"""Parameters that say nothing of a service."""


def _serving(function: F) -> F:
    """Add what a service is asked for."""
    for option in (click.option("--concurrency", metavar="N", help="Requests in flight, instead of a rate."),
                   *reversed(serving_options())):
        function = option(function)
    return function


@click.command("estimate")
@click.option("--model", metavar="NAME", help="Short name or Hugging Face id; not needed for --max model.")
@click.option("--node", required=True, metavar="NAME", help="Node type.")
@click.option("--gpus", type=click.IntRange(min=1), help="GPUs in all. Default: what the layout needs.")
@click.option("--layout", default="", metavar="AXIS=VALUE,..", help="tp=8,pp=4,vpp=2,cp=1,mbs=1,zero=1,"
              "schedule=gpipe,recompute=selective,sp=1,shard=8,no_sync=1,offload_optimizer=0.5,"
              "offload_parameters=1,offload_activations=1,offload_to=nvme; what is left out is 1 or off, sp and "
              "no_sync as the stack does it.")
@click.option("--seq-len", type=quantity(SequenceLength), metavar="TOKENS", help="Default: by model.")
@click.option("--global-batch", type=quantity(GlobalBatch), metavar="SEQUENCES",
              help="Default: by model.")
@click.option("--method", type=click.Choice(get_args(Method)), default="pretrain", show_default=True)
@click.option("--stack", metavar="NAME", help="Training framework. Default: megatron-core.")
@click.option("--optimizer", type=click.Choice(get_args(Optimizer)), default="adamw", show_default=True,
              help="Other than the stack's AdamW.")
@click.option("--optimizer-in-backward", is_flag=True, help="Step as backward makes the gradients, and free them.")
@click.option("--loss", type=click.Choice(get_args(Loss)), help="Kernel of the cross entropy. Default: the stack's.")
@click.option("--trained-layers", type=click.IntRange(min=1), metavar="N",
              help="The last N layers and the head train, the rest is frozen. Default: all train.")
@click.option("--precision", type=click.Choice(get_args(Precision)), default="bf16", show_default=True)
@click.option("--confidence", type=click.FloatRange(0.5, 1, max_open=True), default=0.95, show_default=True,
              help="Of the memory verdict.")
@click.option("--max", "largest", type=click.Choice(["micro-batch", "sequence", "model"]),
              help="The largest that fits, and its estimate.")
@_serving
@common
def command(model: str | None, node: str, gpus: int | None, layout: str, seq_len: int | None,
            global_batch: Batch | None, method: str, stack: str | None, optimizer: str,
            optimizer_in_backward: bool, loss: str | None, trained_layers: int | None,
            precision: str, confidence: float, largest: str | None, as_json: bool, catalogs: tuple[Path, ...],
            **service: str | tuple[str, ...] | None) -> int:
    """Say whether one layout fits, how fast it is, and where bytes and seconds go.

    A layout that does not fit is an answer: exit code 0. With --rate, --concurrency, --input, ... it is of a service.
    """
    catalog, axes = open_catalog(catalogs), parse_layout(layout)

    from planner.answer.schema import to_json
    from planner.ask.estimate import Estimating
    from planner.physics.training.recipes import Recipe
    from planner.render.sentence import estimate_sentence, largest_sentence
    from planner.render.tables import render_estimate

    if model is None and largest != "model":
        raise click.UsageError("Missing option '--model'.")
    if stated := {name: value for name, value in service.items() if value not in (None, ())}:
        return _estimate_service({"model": model, **stated}, catalog, node, gpus, axes, as_json)
    ask = Estimating(catalog, model or "", node, gpus, axes, seq_len,
                     global_batch.sequences if global_batch else None, method, stack, precision, confidence,
                     Recipe(optimizer, optimizer_in_backward, loss), trained_layers)
    if largest is None:
        assignment = ask()
    else:
        found = ask.largest(largest)
        (note if as_json else say)(largest_sentence(largest, found))
        # JSON has an estimate in any case: where none fits, that of the next that does not
        shown = found.estimate or (found.misses if as_json else None)
        if shown is None or (is_quiet() and not as_json):
            return EXIT_OK
        assignment = shown
    if as_json:
        say_json(to_json(assignment))
    elif is_quiet():
        say(estimate_sentence(assignment, confidence))
    else:
        render_estimate(assignment, console(), confidence, () if largest else ask.levers(assignment))
    return EXIT_OK


def _estimate_service(flags: Mapping[str, object], catalog: Catalog, node: str, gpus: int | None,
                      axes: Mapping[str, str], as_json: bool) -> int:
    """Print the estimate of a service in one layout."""
    from planner.answer.schema import to_json
    from planner.jobs.serving.estimate import estimate_serving
    from planner.render.serving import capacity_sentence
    from planner.render.tables import render_service

    context = click.get_current_context()
    for name in FOR_TRAINING:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            flag = next(option.opts[0] for option in context.command.params if option.name == name)
            raise click.UsageError(f"{flag} is for training, and {_flag(next(f for f in flags if f != 'model'))} for "
                                   "serving.")
    service, _ = load_service(
        {name: ",".join(value) if isinstance(value, tuple) else value for name, value in flags.items()}, catalog,
        {name: _flag(name) for name in SERVICE})
    assignment = estimate_serving(service, catalog, node, gpus, axes)
    if as_json:
        say_json(to_json(assignment))
    elif is_quiet():
        say(capacity_sentence(assignment, service.rate))
    else:
        render_service(assignment, console(), service.rate)
    return EXIT_OK


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def parse_layout(text: str) -> dict[str, str]:
    """Return "tp=8,pp=4" as axis -> value, both text. Raises InputError for a part of another form."""
    axes: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        axis, equals, value = (piece.strip() for piece in part.partition("="))
        if not (axis and equals and value):
            raise InputError(f"--layout: {part!r} is not AXIS=VALUE: write for example 'tp=8,pp=4'")
        if axis in axes:
            raise InputError(f"--layout: {axis!r} is given twice")
        axes[axis] = value
    return axes
