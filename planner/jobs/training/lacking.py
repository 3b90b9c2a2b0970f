"""What leaves a training job without a layout, other than limits: rules, or memory of GPUs and hosts."""

from __future__ import annotations

import math
from dataclasses import replace
from math import ceil
from typing import NamedTuple

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

LIMIT_RULES = frozenset({"fixed_gpus", "max_gpus", "max_nodes"})
FAR = 4
"""Peak over usable memory above which more memory per GPU is no answer, and more GPUs are named."""


def broken_rules(grid: Grid, effort: Effort) -> dict[str, str]:
    """Return the rules that together leave no legal layout, in words; none where there are some. Raises OutOfTime."""
    whole = Grid(grid.facts)
    if not whole.is_empty(effort.check):
        return {}
    held = [name for name in whole.removed if name not in LIMIT_RULES]
    all_held = frozenset(whole.rules) - LIMIT_RULES
    names = minimal(held, lambda rules: not _empty(grid.facts, all_held - set(rules), effort))
    return {name: f"{whole.rules[name].reason} ({name}: {whole.removed[name]:,} layouts)" for name in names}


def _empty(facts: Facts, skipped: frozenset[str], effort: Effort) -> bool:
    """Say whether no layout is legal without the rules in `skipped`."""
    return Grid(replace(facts, skipped=skipped)).is_empty(effort.check)


class Lack(NamedTuple):
    """What lacks memory: bytes short per GPU (below zero where it is the host, or other layouts fit), and in words."""

    short: float
    because: list[str]
    nearest: str | None = None


def short_of_memory(question: Question, grid: Grid, frontier: Frontier) -> Lack:
    """Explain that nothing fits, by the layout that misses by least with everything recomputed, and by how much."""
    row = None if frontier.fit else nearest(question, Grid(grid.facts))
    if row is None:
        return Lack(-math.inf, ["what fits in memory is too slow, too dear or too large"])
    found = _leanest(question, row)
    candidate = question.candidates[int(row["candidate"])]
    short = found.memory.peak - found.memory.usable
    parts = sorted(found.memory.components.items(), key=lambda kv: -kv[1])[:3]
    largest = ", ".join(f"{name.replace('_', ' ')} {show_bytes(size)}" for name, size in parts)
    gpus = int(row["tp"] * row["cp"] * row["pp"] * row["dp"])
    because = [f"no layout fits in memory: the leanest, on {gpus} x {candidate.gpu.name}, needs "
               f"{show_bytes(found.memory.peak)} of {show_bytes(found.memory.usable)} usable per GPU ({largest})"]
    if found.memory.host_per_node > question.kernels.host_memory_share * candidate.node.cpu.memory:
        because.append(f"its offloaded states need {show_bytes(found.memory.host_per_node)} of host memory per node")
    miss = f"{show_bytes(max(short, 0.0))} more memory per GPU"
    if found.memory.peak > FAR * found.memory.usable:
        miss += f"; about {ceil(found.memory.peak * gpus / found.memory.usable):,} such GPUs would hold the states"
    return Lack(short, because, miss)


def _leanest(question: Question, row: dict[str, float]) -> Evaluation:
    rows = from_rows([{**row, "recompute": RECOMPUTE.index("full")}], question.global_batch)
    return evaluate_fixed(question, rows, 0)
