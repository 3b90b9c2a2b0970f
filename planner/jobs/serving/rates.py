"""Layouts of a serving replica, and the largest rate at which each meets the latency targets.

Every layout of the stated domains is evaluated at rising loads; the largest load within the targets is found by
narrowing the grid around it. Columns that another of the same hardware matches with no more GPUs are dominated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from planner.catalog.architecture import Model, MoeMlp
from planner.catalog.engine import Copies
from planner.jobs.columns import Role
from planner.layouts.candidate import Candidate
from planner.layouts.memo import ByValue
from planner.layouts.table import Floats, Mask
from planner.physics.serving.apart import decoding, prefilling
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.level import Served, Stream, served
from planner.physics.serving.steady import RequestMix, offline

DEGREES = (1, 2, 4, 8, 16)
STAGES = (1, 2, 4, 8)
MOST_NODES = 4
"""Nodes of a replica at most."""
GRID, PASSES = 16, 3
LEAST_LOAD = 0.02
"""Sequences decoding on average, of the lightest load looked at."""
BUSIEST = 0.98
"""Share of the time that prompts may be at work."""
EASED = 1.5
"""By how much latencies may be above those of a replay: what is further over a target by formula is not replayed."""
_LARGEST = ByValue[tuple[Floats, Floats, Floats]](most=256)
"""What questions that differ in load, limits or terms ask for again."""


@dataclass(frozen=True, slots=True)
class Targets:
    """Seconds that TTFT, TPOT and a whole answer may take, each at a share of requests (none: on average); none is no
    limit.
    """

    ttft: tuple[float, float | None] | None
    tpot: tuple[float, float | None] | None
    e2e: tuple[float, float | None] | None = None

    @property
    def eased(self) -> Targets:
        """What latencies by formula keep where those of a replay may keep these targets."""
        return Targets(*(target and (EASED * target[0], target[1]) for target in (self.ttft, self.tpot, self.e2e)))


@dataclass(frozen=True, slots=True)
class LeastLatency:
    """Of a layout that misses the latency targets even when nearly idle: the seconds it takes then."""

    ttft: float
    tpot: float
    e2e: float


def layouts(model: Model, candidate: Candidate, removed: Counter[str], can_have: Copies = "wide") -> Replicas:
    """Return the legal layouts of a replica on a node type; `removed` counts the others by rule.

    can_have: what copies of attention the engine can have.
    """
    mixture = model.mixes_experts
    copies, rows = DEGREES if mixture else (1,), []
    for tp, pp, dp, spread in product(DEGREES, STAGES, copies, (False, True) if mixture else (False,)):
        rules = violations(ReplicaLayout(model, candidate, tp, pp, dp, spread, can_have))
        if rules:
            removed[rules[0]] += 1
        else:
            rows.append((tp, pp, tp * dp if spread else 1, dp))
    table = np.array(rows, np.int64).reshape(-1, 4)
    return Replicas(np.zeros(len(table), np.int64), table[:, 0], table[:, 1], table[:, 2], table[:, 3])


def domain(model: Model) -> int:
    """Return how many combinations the degrees of a replica make."""
    return len(DEGREES) * len(STAGES) * (2 * len(DEGREES) if model.mixes_experts else 1)


@dataclass(frozen=True, slots=True)
class ReplicaLayout:
    """A layout that may or may not be legal, on a node type; `spread` experts lie whole on copies of attention."""

    model: Model
    candidate: Candidate
    tp: int
    pp: int
    dp: int
    spread: bool
    can_have: Copies = "wide"
    """What copies of attention the engine can have."""

    @property
    def gpus(self) -> int:
        """GPUs of the replica."""
        return self.tp * self.pp * self.dp

    @property
    def node(self) -> int:
        """GPUs of a node."""
        return self.candidate.node.gpus


def _tp_divides_heads(r: ReplicaLayout) -> bool:
    heads = r.model.kv_heads
    return not r.model.attention_heads % r.tp and (not heads % r.tp or not r.tp % heads)


def _whole_nodes(r: ReplicaLayout) -> bool:
    several = not r.gpus % r.node and r.gpus <= MOST_NODES * r.node and r.candidate.clustered
    return r.gpus <= r.node or several


def _ep_divides_experts(r: ReplicaLayout) -> bool:
    experts = [block.mlp.experts for block in r.model.blocks if isinstance(block.mlp, MoeMlp)]
    return not r.spread or not any(count % r.dp for count in experts)


RULES: dict[str, Callable[[ReplicaLayout], bool]] = {
    # inside a node, or over all GPUs of several, whose all-reduces cross the network
    "tp_fills_nodes": lambda r: r.tp <= r.node or not r.tp % r.node,
    "tp_divides_heads": _tp_divides_heads,
    "pp_has_layers": lambda r: r.pp <= r.model.layers,
    "whole_nodes": _whole_nodes,
    "fills_nodes": lambda r: r.gpus >= r.node or not r.node % r.gpus,
    # experts are spread over copies of attention, or split as the rest is: the two mixed are not searched
    "ep_over_copies": lambda r: not r.spread or (r.dp > 1 and r.tp == 1),
    "ep_divides_experts": _ep_divides_experts,
    "has_copies": lambda r: r.can_have != "none" or r.dp == 1,
    "copies_on_one_gpu": lambda r: r.can_have != "narrow" or r.tp == 1 or r.dp == 1,
}
"""The rules of a replica's layout: what passes. A layout counts under the first that it breaks."""


def violations(replica: ReplicaLayout) -> list[str]:
    """Return the names of the rules that a layout breaks."""
    return [name for name, passes in RULES.items() if not passes(replica)]


def _within(at_load: Served, level: Targets, most: Floats, role: Role) -> Mask:
    good: Mask = (at_load.crowd <= most) & (at_load.prompts <= BUSIEST) & np.isfinite(at_load.rate)
    if level.ttft is not None and role != "decode":
        seconds, share = level.ttft
        good &= at_load.ttft_at(None) <= seconds if share is None else (
            at_load.within(np.full(len(good), seconds)) >= share)
    if level.tpot is not None and role != "prefill":
        seconds, share = level.tpot
        good &= at_load.tpot <= seconds if share is None else (
            at_load.pace.within(np.full(len(good), seconds)) >= share)
    if level.e2e is not None:
        seconds, share = level.e2e
        good &= at_load.e2e_at(None) <= seconds if share is None else (
            at_load.whole_within(np.full(len(good), seconds)) >= share)
    return good


def work(d: Deployment, role: Role, stream: Stream) -> Callable[[Replicas, Floats], Served]:
    """Return what replicas of a role do at a load: sequences that decode, or of prefill the share of time at work."""
    does = {"whole": prefilling if stream.only_reads else served, "prefill": prefilling, "decode": decoding}[role]
    return lambda rows, load: does(d, rows, stream, load)


def span(role: Role, stream: Stream, most: Floats) -> tuple[Floats, Floats]:
    """Return the lightest and the heaviest load of each row."""
    if role == "prefill" or stream.only_reads:
        return np.full(len(most), LEAST_LOAD), np.full(len(most), BUSIEST)
    return np.full(len(most), LEAST_LOAD), np.maximum(most, 2 * LEAST_LOAD)


def largest(d: Deployment, role: Role, rows: Replicas, stream: Stream, level: Targets,
            most: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the largest rate (or users) at which each row meets the targets, its load, and the sequences there
    at once in all but a hundredth of the time; zeros where even a light load is too much.

    `most` sequences may be there.
    """
    return _LARGEST.recall((d, role, rows, stream, level, most),
                           lambda: _narrowed(d, role, rows, stream, level, most))


def _narrowed(d: Deployment, role: Role, rows: Replicas, stream: Stream, level: Targets,
              most: Floats) -> tuple[Floats, Floats, Floats]:
    low, high = span(role, stream, most)
    rate, load, crowd = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows))
    does, still = work(d, role, stream), np.arange(len(rows))
    # of what misses at the lightest load, no other is looked at
    still = still[_within(does(rows, low), level, most, role)] if len(rows) else still
    for _ in range(PASSES):
        steps = np.geomspace(low[still], high[still], GRID, axis=1)
        each = np.repeat(still, GRID)
        at_load = does(rows.take(each), steps.ravel())
        good = _within(at_load, level, most[each], role).reshape(-1, GRID)
        # the load is the largest below the first that misses: a target met again beyond is not relied on
        last = np.where(good.all(axis=1), GRID, np.argmin(good, axis=1)) - 1
        at = np.arange(len(still)), np.maximum(last, 0)
        carried = at_load.carried.reshape(-1, GRID)[at]
        better = (last >= 0) & (carried > rate[still])
        found = still[better]
        rate[found], load[found] = carried[better], steps[at][better]
        crowd[found] = at_load.crowd.reshape(-1, GRID)[at][better]
        low[still], high[still] = steps[at], steps[at[0], np.minimum(at[1] + 1, GRID - 1)]
        # where the lightest load misses, or the heaviest does not, there is nothing to narrow
        still = still[(last >= 0) & (last < GRID - 1)]
        if not len(still):
            break
    return rate, load, crowd


def queued(d: Deployment, rows: Replicas, stream: Stream, most: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the same where every request is there at the start: no target, and as many sequences as may be there."""
    same = np.ones(len(rows))
    if stream.only_reads:
        return prefilling(d, rows, stream, BUSIEST * same).rate / BUSIEST, same, most
    service = offline(d, rows,
                      RequestMix(same * stream.input, same * stream.output, most, stream.drafts, stream.accepted,
                                    stream.hits, stream.input_cv, stream.output_cv, in_step=stream.in_step), most)
    return service.requests, service.batch, most


def idle(d: Deployment, rows: Replicas, stream: Stream, level: Targets) -> list[LeastLatency]:
    """Return TTFT, TPOT and time to the last token of each row at the lightest load."""
    at_load = work(d, "whole", stream)(rows, np.full(len(rows), LEAST_LOAD))
    ttft, tpot, e2e = (target[1] if target else None for target in (level.ttft, level.tpot, level.e2e))
    return [LeastLatency(*map(float, seconds)) for seconds in zip(
        at_load.ttft_at(ttft), at_load.tpot_at(tpot), at_load.e2e_at(e2e), strict=True)]
