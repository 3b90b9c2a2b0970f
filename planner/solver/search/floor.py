"""A bound on whatever was not enumerated when time ran out: the arithmetic of the layers, on all GPUs at once.

What a layer computes depends on neither the number of copies nor of stages, so that a few thousand rows stand for any
grid; bubbles, traffic, failures and spares only add to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from planner.layouts.axes import Space, domain
from planner.layouts.table import from_rows
from planner.physics.training.estimate import layer_terms
from planner.physics.training.question import Question, computes
from planner.solver.search.job import Key, Pricing

AXES = ("candidate", "precision", "tp", "cp", "micro_batch", "sp", "ep", "expert_tp")
"""What decides how long a layer computes."""
HAIR = 1 - 1e-9
"""Slack for what floats lose."""


def floor(question: Question, space: Space, pricing: Pricing) -> Key:
    """Return objective and cents that no layout of the space is below."""
    job, node_gpus = pricing.job, pricing.node_gpus
    grid = [dict(zip(AXES, values, strict=True)) for values in product(*(domain(name, space) for name in AXES))]
    possible = [row | {"dp": row["ep"]} for row in grid if _runs(question, row)]
    if not possible or not job.timed:
        return (0, 0)
    rows = from_rows(possible, space.global_batch)
    compute = question.shape.layers * layer_terms(question, rows).compute * rows.tp * rows.cp / rows.micro_batch
    compute = compute * min(1.0, question.stack.slowdown)
    sequences = -(-job.tokens // job.sequence_length)
    keys = []
    for at, offer in enumerate(job.offers):
        mine = compute[rows.candidate == at]
        if not len(mine):
            continue
        gpu_seconds = float(mine.min()) * sequences * HAIR
        node_seconds = gpu_seconds / int(node_gpus[at])
        price = 0 if offer.by_count is not None else offer.micro_usd_per_node_hour
        cents = int(node_seconds * price / 3.6e7)
        first = {"cost": cents, "time": int(gpu_seconds / space.max_gpus * 1e6), "gpus": 1,
                 "energy": int(node_seconds * pricing.candidates[at].node.power.load / 3600)}[job.objective]
        keys.append((first, cents))
    return min(keys, default=(0, 0))


def _runs(question: Question, row: Mapping[str, float]) -> bool:
    """Say whether the hardware computes in the format, and holds a tensor-parallel group in a node."""
    at, precision = int(row["candidate"]), question.precisions[int(row["precision"])]
    return (computes(question.candidates[at], question.rates[at], precision)
            and question.candidates[at].node.gpus % int(row["tp"]) == 0
            and (row["expert_tp"] == 0 or (row["expert_tp"] < row["tp"] and row["sp"] == 1)))
