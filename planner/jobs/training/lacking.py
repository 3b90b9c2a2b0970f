"""What leaves a training job without a layout, other than limits: rules, or memory; and what more of it is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from planner.answer.assignment import Assignment
from planner.jobs.job import ENDLESS, Change, Knob, Leaner, Short
from planner.layouts.axes import RECOMPUTE
from planner.layouts.enumerate import Grid
from planner.layouts.rules import Facts
from planner.layouts.table import from_rows
from planner.physics.training.evaluate import Evaluation, evaluate_fixed
from planner.physics.training.question import Question
from planner.solver.minimal import minimal
from planner.solver.search.found import Frontier
from planner.solver.search.nearest import nearest
from planner.solver.settings import Effort
from planner.units import show_bytes

GB, GBIT = 1e9, 1e9 / 8
LIMIT_RULES = frozenset({"fixed_gpus", "max_gpus", "max_nodes"})
FAR = 4
"""Peak over usable memory above which more memory per GPU is no answer, and more GPUs are named."""
SHORTEST = 256
"""Tokens of the shortest sequence that is proposed."""


def knobs_of(question: Question, assignments: Sequence[Assignment]) -> list[Knob]:
    """Return what one unit more of memory and network would change, and all there could be."""
    (a,) = assignments
    memory = sorted({candidate.gpu.usable_memory for candidate in question.candidates})
    span = " to ".join(show_bytes(size) for size in dict.fromkeys((memory[0], memory[-1])))
    rates = sorted({candidate.nics.bandwidth for candidate in question.candidates})
    speeds = " to ".join(f"{rate / GBIT:g}" for rate in dict.fromkeys((rates[0], rates[-1])))
    spent = a.time.components
    waits = spent.data_parallel + spent.pipeline_p2p + spent.context_parallel + spent.expert_parallel
    return [
        Knob("gpu_memory", f"{span} usable",
             f"{show_bytes(a.memory.peak_bytes)} of {show_bytes(a.memory.usable_bytes)}", "1 GB per GPU",
             Change(memory=GB), Change(memory=ENDLESS)),
        Knob("nic_bandwidth", f"{speeds} Gbit/s per adapter", f"{waits / a.time.step_seconds:.1%} of the step waits",
             "10 Gbit/s per adapter", Change(nics=10 * GBIT), Change(nics=ENDLESS))]


def broken_rules(grid: Grid, effort: Effort) -> dict[str, str]:
    """Return the rules that together leave no legal layout, in words; none where there are some. Raises OutOfTime."""
    whole = Grid(grid.facts)
    if not whole.is_empty(effort.check):
        return {}
    held = [name for name in whole.removed if name not in LIMIT_RULES]
    all_held = frozenset(whole.rules) - LIMIT_RULES
    names = minimal(held, lambda rules: not _empty(grid.facts, all_held - set(rules), effort))
    if not names and grid.facts.fixed_gpus:
        space = grid.facts.space
        return {"fixed_gpus": f"no tp x cp x pp x dp makes {grid.facts.fixed_gpus:,} GPUs: tp divides the "
                f"{space.model.attention_heads} heads, dp the {space.global_batch:,} sequences of a step, and pp is at "
                f"most {space.layers} layers"}
    return {name: f"{whole.rules[name].reason} ({name}: {whole.removed[name]:,} layouts)" for name in names}


def _empty(facts: Facts, skipped: frozenset[str], effort: Effort) -> bool:
    """Say whether no layout is legal without the rules in `skipped`."""
    return Grid(replace(facts, skipped=skipped)).is_empty(effort.check)


def nearest_of(question: Question, grid: Grid) -> tuple[dict[str, float] | None, bool]:
    """Return the layout that misses memory by least, and whether it is the host's.

    One that GPUs hold comes first where the host could hold it with up to FAR times as much: hosts can be given more.
    """
    closest = nearest(question, Grid(grid.facts))
    if closest.host is not None and (closest.gpu is None or closest.host[0] < FAR - 1):
        return closest.host[1], True
    return (None, False) if closest.gpu is None else (closest.gpu[1], False)


def short_of_memory(question: Question, grid: Grid, frontier: Frontier) -> Short:
    """Explain that nothing fits, by the layout that misses by least with everything recomputed, and by how much.

    What binds leads: memory of the GPU, of the host, or local NVMe.
    """
    row, outside = (None, False) if frontier.fit else nearest_of(question, grid)
    if row is None:
        return Short("what fits in memory is too slow, too dear or too large")
    memory, candidate = _leanest(question, row).memory, question.candidates[int(row["candidate"])]
    gpus, node = int(row["tp"] * row["cp"] * row["pp"] * row["dp"]), candidate.node
    parts = sorted(memory.components.items(), key=lambda kv: -kv[1])[:3]
    largest = ", ".join(f"{name.replace('_', ' ')} {show_bytes(size)}" for name, size in parts)
    whole = f"{show_bytes(int(memory.peak))} of {show_bytes(int(memory.usable))} usable per GPU"  # as the answer has it
    on = f"the leanest on {gpus} x {candidate.gpu.name} "
    places = (("host memory", memory.host_per_node, memory.host_usable),
              ("local NVMe", memory.nvme_per_node, memory.nvme_usable))
    where, held, has = max(places, key=lambda place: place[1] / max(place[2], 1.0))
    # of a host, a part is for what is offloaded
    over = max(memory.host_per_node / memory.host_usable - 1, 0.0)
    lacks = max(memory.peak - memory.usable, 0.0), over * node.cpu.memory
    if held > has and outside:
        total = f" of {show_bytes(node.cpu.memory)}" if where == "host memory" else ""
        return Short(f"no layout fits in memory: {where} binds; {on}keeps {show_bytes(held)} there, where "
                     f"{node.name} has {show_bytes(has)}{total} for it; the GPU needs {whole}",
                     f"{show_bytes(held - has)} more {where} per node", *lacks)
    miss = f"{show_bytes(lacks[0])} more memory per GPU"
    if held > has:
        miss += f" and {show_bytes(held - has)} more {where} per node"
    if memory.peak > FAR * memory.usable:
        miss += f"; about {ceil(memory.peak * gpus / memory.usable):,} such GPUs would hold the states"
    kept = "" if not held else (f"; it keeps {show_bytes(held)} in {where}" + (
        f", which has {show_bytes(has)} for it" if held > has else ""))
    return Short(f"no layout fits in memory: GPU memory binds; {on}needs {whole} ({largest}){kept}", miss, *lacks)


def counts_of(facts: Facts, most: int) -> list[int]:
    """Return the numbers of GPUs up to `most` that some legal layout takes, rising."""
    free = replace(facts, fixed_gpus=None, space=replace(facts.space, max_gpus=most))
    counts: set[int] = set()
    for _, stems, _ in Grid(free).stems():
        counts.update(np.unique(stems.gpus).tolist())
    return sorted(counts)


def _leanest(question: Question, row: dict[str, float]) -> Evaluation:
    held = max(int(row["recompute"]), 0)
    rows = from_rows([{**row, "recompute": held or RECOMPUTE.index("full")}], question.global_batch)
    return evaluate_fixed(question, rows, 0)


def writes_logits(question: Question) -> bool:
    """Say whether the loss holds all logits of a micro-batch, which a fused one does not."""
    fused = question.recipes.losses["fused"] * question.shape.hidden / question.shape.vocab
    return not question.tuning.forward_only and question.loss_bytes_per_logit > fused


def less_to_hold(questions: Sequence[Question], loss: str | None) -> Iterator[Leaner]:
    """Yield a fused loss, where every stack holds logits; sequences half as long, again and again."""
    if all(writes_logits(question) for question in questions):
        yield Leaner("loss", loss or "as the stack has it", "fused", 1.0, {"loss": "fused"})
    asked = questions[0].longest
    length = asked // 2
    while length >= SHORTEST:
        yield Leaner("sequence_length", f"{asked:,}", f"{length:,}", asked / length, {"sequence_length": length})
        length //= 2
