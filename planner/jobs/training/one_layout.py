"""One layout as the user gave it, evaluated in full: `planner estimate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from planner.answer.assignment import Assignment, ServingAssignment, TrainingAssignment
from planner.catalog.architecture import Model
from planner.catalog.likeness import sizes, step_traits
from planner.catalog.load import Catalog
from planner.catalog.stack import Stack
from planner.errors import InputError, MissingFact, UnknownName
from planner.jobs.idle import Idle, idle, several
from planner.jobs.training.assignment import layout_of, memory_like, memory_of, time_of
from planner.jobs.training.facts import asked_physics, batch_of, length_of, preferred, processed
from planner.jobs.training.in_use import first_stack
from planner.jobs.training.recomputed import names_modules, with_modules
from planner.layouts.axes import RECOMPUTE, SCHEDULES, STAGED, Space
from planner.layouts.enumerate import violations
from planner.layouts.rules import Facts, rules_of
from planner.layouts.stated import stages_of_text
from planner.layouts.table import Ints, from_rows
from planner.money.rent import usual_candidate
from planner.physics.training.evaluate import evaluate_fixed
from planner.physics.training.question import computes
from planner.scenario.batch import Batch
from planner.scenario.limits import MOST
from planner.scenario.workload import Training
from planner.solver.search.bounds import mixes

KEYS = {"tp": "tp", "pp": "pp", "vpp": "vpp", "cp": "cp", "ep": "ep", "expert_tp": "expert_tp", "dp": "dp",
        "mbs": "micro_batch",
        "micro_batch": "micro_batch", "zero": "zero", "schedule": "schedule", "recompute": "recompute", "sp": "sp",
        "shard": "hsdp", "no_sync": "no_sync",
        "offload_optimizer": "offload", "offload_parameters": "offload_parameters",
        "offload_activations": "offload_activations", "offload_to": "nvme"}
"""What `--layout` may name, and the axis it sets."""
AXES = {key: axis for key, axis in KEYS.items() if key != "shard"}
"""Choices that hold an axis of the layout."""
STAGES = "stages"
"""Names the layers of every stage by what they recompute, which is of no axis."""

DEGREES = ("tp", "pp", "cp", "dp")
"""What the GPUs of a layout are the product of."""
_NAMES = {"schedule": SCHEDULES, "recompute": RECOMPUTE, "offload_to": ("host", "nvme")}
_SMALL: dict[str, tuple[str, int]] = {"zero": ("0, 1, 2 or 3", 3), "sp": ("1 or 0", 1),
                                      "no_sync": ("1 or 0", 1),
                                      "offload_parameters": ("1 or 0", 1), "offload_activations": ("1 or 0", 1)}


def parse_layout(layout: Mapping[str, str], stack: Stack, gpus: int | None) -> tuple[dict[str, float], int | None]:
    """Return axis values, and the layers per stage under full recompute where `recompute` is a number.

    What is left out is 1; dp follows from `gpus`; ZeRO is the highest the stack offers up to 1. Raises InputError.
    """
    row: dict[str, float] = {}
    recompute_layers: int | None = None
    check_axes(layout)
    for key, text in layout.items():
        if key == STAGES:
            continue
        if key == "recompute" and text not in RECOMPUTE:
            recompute_layers = int(_number(f"--layout {key}={text}", text, "none, selective, full, a number of layers "
                                           "per stage or modules: core_attn+mlp"))
            row["recompute"] = RECOMPUTE.index("full")
        else:
            row[KEYS[key]] = axis_value(key, text)
    shard = int(row.pop("hsdp", 0))
    _fill_data_parallel(row, gpus)
    shards = int(row["dp"] * row.get("cp", 1))
    if shard and shards % shard:
        raise InputError(f"--layout shard={shard}: expected a divisor of dp x cp = {shards}")
    row["hsdp"] = shards // shard if shard else 1
    row.setdefault("zero", _usual_zero(stack, row))
    row.setdefault("recompute", RECOMPUTE.index(stack.usual_recompute))
    if stack.expert_tp and row.get("tp", 1) > 1 and shards % row.get("ep", 1):
        # as many experts on a GPU need whole ones
        row.setdefault("expert_tp", 1)
    return row, recompute_layers


def is_whole(layout: Mapping[str, str], node_gpus: int, gpus: int | None) -> bool:
    """Say whether a layout says how many GPUs it takes, or fills the node, so that nothing is left to choose."""
    named = [axis for axis in DEGREES if axis in layout]
    if not named:
        return False
    product = math.prod(int(axis_value(axis, layout[axis])) for axis in named)
    return "dp" in layout or gpus is not None or product >= node_gpus


def check_axes(layout: Mapping[str, str]) -> None:
    """Raise UnknownName for what is no axis."""
    for key in layout:
        if key not in KEYS and key != STAGES:
            raise UnknownName("layout axis", key, [*KEYS, STAGES])


def open_layout(layout: Mapping[str, str]) -> Mapping[str, str]:
    """Return the axes of a layout that leaves others open, checked. Raises InputError for what needs a whole one."""
    check_axes(layout)
    for key, text in layout.items():
        if key in ("shard", STAGES) or (key == "recompute" and (text.isdecimal() or names_modules(text))):
            raise InputError(f"--layout {key}={text}: needs a layout with a stated number of GPUs: give dp, or tp, pp "
                             "and cp with --gpus")
        axis_value(key, text)
    return layout


def layout_of_row(row: Mapping[str, float]) -> dict[str, str]:
    """Return a row of the search as `--layout` states it, with every layer recomputed in full."""
    plain = ("tp", "pp", "vpp", "cp", "ep", "dp", "micro_batch", "zero", "sp", "no_sync")
    shares = {"offload_optimizer": "offload", "offload_parameters": "offload_parameters",
              "offload_activations": "offload_activations"}
    # left out, experts are split as the rest is
    named = dict(zip(plain, plain, strict=True)) | shares | ({"expert_tp": "expert_tp"} if row["expert_tp"] else {})
    return {**{key: f"{row[axis]:g}" for key, axis in named.items()},
            "schedule": SCHEDULES[int(row["schedule"])], "recompute": RECOMPUTE[max(int(row["recompute"]), 0) or 2],
            "offload_to": "nvme" if row["nvme"] else "host", "shard": f"{row['dp'] * row['cp'] / row['hsdp']:g}"}


def _fill_data_parallel(row: dict[str, float], gpus: int | None) -> None:
    """Put dp into `row` where it follows from the GPU count. Raises InputError where they contradict."""
    width = int(row.get("tp", 1) * row.get("pp", 1) * row.get("cp", 1))
    if gpus is not None and "dp" not in row:
        if gpus % width:
            raise InputError(f"--gpus {gpus} is not a multiple of tp x pp x cp = {width}")
        row["dp"] = gpus // width
    row.setdefault("dp", 1)
    total = width * int(row["dp"])
    if max(total, gpus or 0) > MOST:
        raise InputError(f"a layout of {max(total, gpus or 0):,} GPUs: expected at most {MOST:,}")
    if gpus is not None and gpus != total:
        raise InputError(f"--gpus {gpus} contradicts tp x pp x cp x dp = {total}")


def _usual_zero(stack: Stack, row: Mapping[str, float]) -> int:
    """Return the ZeRO stage people run a stack with: none alone, stage 1 where there is one, else all of it."""
    if row["dp"] * row.get("cp", 1) == 1:
        return 0
    return 1 if 1 in stack.zero_stages else max(stack.zero_stages)


def axis_value(key: str, text: str, flag: str = "--layout") -> float:
    """Return the value of one axis. Raises InputError, which names `flag`."""
    said = f"{flag} {key}={text}"
    if key in _NAMES:
        return _one_of(said, text, _NAMES[key])
    if key in _SMALL:
        return _number(said, text, *_SMALL[key])
    if key == "offload_optimizer":
        return _number(said, text, "a share from 0 to 1", 1.0, whole=False)
    return _number(said, text, "a whole number above zero", least=1)


def _one_of(said: str, text: str, names: tuple[str, ...]) -> int:
    if text not in names:
        raise InputError(f"{said}: expected {' or '.join(names)}")
    return names.index(text)


def _number(said: str, text: str, expected: str, most: float = 1e6, least: float = 0, *, whole: bool = True) -> float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        raise InputError(f"{said}: expected {expected}") from None
    if not least <= value <= most:
        raise InputError(f"{said}: expected {expected}")
    return value


def idle_keys(asked: Training) -> Iterator[Idle]:
    """Yield the keys of a training job that the estimate of one layout does not heed."""
    method = asked.method or "pretrain"
    yield from several("precision", asked.precision)
    if method == "inference":
        yield from (idle(key, "applies to training, but method inference only holds the model") for key in (
            "global_batch", "mean_length", "optimizer", "optimizer_in_backward", "loss"))


class Illegal(InputError):
    """A layout that a stack cannot run. Which others can is looked up where the message is read: levers try many."""

    def __init__(self, problem: str, able: Callable[[], list[str]]) -> None:
        """Take what is wrong, and what returns the stacks that run it."""
        super().__init__(problem)
        self.able = able

    def __str__(self) -> str:
        """Return the message."""
        able = self.able()
        return self.problem + (f"; stacks that run it: {', '.join(able)}" if able else "")


def estimate_training(asked: Training, catalog: Catalog, node: str, gpus: int | None, layout: Mapping[str, str],
                      confidence: float) -> Assignment:
    """Return the layout's memory, time and speed. Raises InputError naming each rule the layout breaks.

    Where tokens are given, also the steps that they take.
    """
    model, machine, method, (precision,) = (
        catalog.model(asked.model), catalog.node(node), asked.method or "pretrain", asked.precision)
    stack, layout = with_modules(catalog.stack(first_stack(asked, catalog)), layout)
    row, recompute_layers = parse_layout(layout, stack, gpus)
    by_stage = None if STAGES not in layout else _by_stage(layout[STAGES], row, model, stack)
    serving = method == "inference"
    batch = 1 if serving else _batch(batch_of(asked, catalog), row)
    candidate = usual_candidate(machine, catalog)
    question = asked_physics(asked, catalog, (candidate,), stack, confidence, batch)
    stack, sequence_length = question.stack, question.longest
    if not computes(candidate, question.rates[0], precision):
        raise MissingFact(f"GPU {candidate.gpu.name}", f"{precision} rate")
    rows = from_rows([row], batch)
    if "no_sync" not in row and stack.no_sync[0] and rows.micro_batches[0] > 1 and row.get("zero", 0) >= 2:
        rows = from_rows([row | {"no_sync": 1}], batch)
    space = Space(model, (candidate,), asked.precision, sequence_length, batch, 10**9)
    facts = Facts(space=space, stack=stack, node_gpus=np.array([machine.gpus]), clustered=np.array([True]),
                  precisions=np.array([[True]]), fixed_gpus=None, max_nodes=None,
                  frozen_layers=asked.trained_layers is not None, steps_in_backward=asked.optimizer_in_backward)
    if rows.expert_tp[0] == rows.tp[0]:
        rows = rows.replace(expert_tp=np.zeros_like(rows.tp))
    broken = [name for name in violations(rows.columns, facts) if name not in ("whole_nodes", "sp_wins")]
    if broken:
        rules = rules_of(stack)
        each = f": {rows.dp[0]} x {rows.micro_batch[0]} of {batch}"
        broke = [f"{rules[name].reason}{each if name == 'batch_divides' else ''} ({name})" for name in broken]
        raise Illegal("the layout is not legal: " + "; ".join(broke),
                      lambda: [other.name for other in catalog.all("stacks", Stack) if not set(violations(
                          rows.columns, replace(facts, stack=other))) - {"whole_nodes", "sp_wins"}])
    if row.get("recompute") == 1 and not stack.selective_recompute:
        raise InputError(f"stack {stack.name} has no selective recompute")
    evaluation = evaluate_fixed(question, rows, 0, recompute_layers if by_stage is None else by_stage)
    total = int(rows.gpus[0])
    residual = catalog.step_residuals.at(step_traits(stack, method, model, candidate.gpu.architecture, precision),
                                         sizes(total, sequence_length), media=bool(question.seen))
    shown = layout_of(question, rows, 0, evaluation)
    noun = "pairs" if question.sample.sequences > 1 else "sequences"
    placed: dict[str, Any] = {
        "workload": f"{model.name} {method}, {sequence_length} tokens, {batch} {noun}", "model": model.name,
        "method": method, "node": machine.name, "gpu": candidate.gpu.name, "nodes": -(-total // machine.gpus),
        "gpus": total,
        "stack": stack.name,
        "layout": shown, "memory": memory_of(evaluation, memory_like(question, shown)),
        "time": time_of(evaluation, evaluation.step.seconds, _steps(asked, question.sample_length, batch), residual)}
    if serving:
        return ServingAssignment(**placed)
    said = preferred(asked, question)
    return TrainingAssignment(**placed, sequence_length=sequence_length, global_batch=batch, **said)


def _by_stage(text: str, row: dict[str, float], model: Model, stack: Stack) -> Ints:
    """Return layers by stage and mode, those before a mixture left out, whose mode goes to `row`. Raises InputError."""
    said = f"--layout stages={text}"
    try:
        counts, row["recompute"] = stages_of_text(text, int(row.get("pp", 1)), model)
    except ValueError as problem:
        raise InputError(f"{said}: {problem}") from None
    used = {*np.flatnonzero(counts.sum(axis=0)).tolist()}
    if not any(used <= {*mix} for mix in mixes(stack, STAGED)):
        raise InputError(f"{said}: stack {stack.name} does not recompute layers in "
                         f"{' and '.join(RECOMPUTE[mode] for mode in sorted(used))} together")
    if not model.leading_layers:
        row["recompute"] = max(used)
    return counts


def _batch(asked: Batch, row: Mapping[str, float]) -> int:
    """Return the batch that is asked for, or within its tolerance the nearest that the layout divides."""
    each = int(row["dp"] * row.get("micro_batch", 1))
    nearest = max(1, round(asked.sequences / each)) * each
    return nearest if abs(nearest - asked.sequences) <= asked.tolerance * asked.sequences else asked.sequences


def with_steps(assignment: Assignment, asked: Training, catalog: Catalog) -> Assignment:
    """Return an estimate with the steps that the tokens of the job take, where they are given."""
    if not isinstance(assignment,
                      TrainingAssignment) or assignment.sequence_length is None or assignment.global_batch is None:
        return assignment
    each = catalog.recipes.sequences(asked.preference) * length_of(asked, assignment.sequence_length)
    steps = _steps(asked, each, assignment.global_batch)
    return assignment.model_copy(update={"time": assignment.time.model_copy(update={"steps": steps})})


def _steps(asked: Training, sample_length: int, batch: int) -> int | None:
    if asked.tokens is None:
        return None
    samples = -(-processed(asked, sample_length) // sample_length)
    return -(-samples // batch)
