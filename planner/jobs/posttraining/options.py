"""Every way to run a step of reinforcement learning on some GPUs: who has which, the trainer's layout, the rollouts'.

A trainer's layouts that another matches in time and in bytes are left out before rollouts are put beside them: less
memory leaves more to the engine, so that what is left out can never win.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.jobs.posttraining.held import KINDS, Held
from planner.jobs.posttraining.launchable import replica_facts, row_facts, split_facts
from planner.jobs.posttraining.question import RlQuestion
from planner.jobs.posttraining.way import RlWay, Rollouts, host_of, on_node, step_of
from planner.layouts.table import Floats
from planner.physics.posttraining.generation import Drawn
from planner.physics.posttraining.step import RoleGpus, total
from planner.physics.serving.deployment import Replicas

EIGHTHS = 8
"""Parts of many nodes that may train; so many nodes or GPUs of one are split in every way."""
NOTHING = Drawn(0.0, 0.0, 1, 0.0, 0.0, 0.0)
"""No answers."""
ELSEWHERE = (1, 2, 4, 8)
"""Nodes of other hardware that are tried for rollouts."""


@dataclass(frozen=True, slots=True)
class _Half:
    """A layout of the trainer, and whether its states wait on the host meanwhile."""

    row: int
    swaps: bool
    needs: tuple[float, ...]
    """What must be little: bytes of what stays beside the engine, of the host, of weights; seconds that the
    rollouts wait for; and bytes that a GPU lacks."""


def ways_on(question: RlQuestion, gpus: int, held: Mapping[str, str], *, lean: bool = True) -> Iterator[RlWay]:
    """Yield the ways on so many GPUs that keep the axes held; those that another matches may be left out.

    Where none fits, and `lean`, also those of smaller micro-batches and a larger share for the engine, unless held.
    Raises InputError for an unknown axis, and PlannerError for what cannot be run.
    """
    fits, asks = False, Held(held)
    own = asks.own
    if not asks.keeps("trainer", KINDS.index(question.kind)):
        return
    if own or asks.beyond:
        question = question.having(own, asks.beyond)
    for way in _every(question, gpus, asks):
        fits = fits or way.lacking <= 0
        yield way
    if lean and not fits and not own.keys() & {"packed", "memory_fraction"}:
        yield from _every(question.lean, gpus, asks)


def _every(question: RlQuestion, gpus: int, asks: Held) -> Iterator[RlWay]:
    """Yield the same of micro-batches as the framework has them."""
    placement = question.asked.placement
    if gpus > (question.framework.most_gpus or gpus):
        return
    size, told = question.candidates[question.at].node.gpus, question.told
    if placement != "disaggregated" and "colocated" in question.framework.placements and not question.asked.policy_lag \
            and not question.asked.rollouts_on and not asks.has("rollout_gpus") \
            and told.admits(split_facts(gpus, 0, size, same=True)):
        yield from _colocated(question, gpus, asks)
    if placement != "colocated" and "disaggregated" in question.framework.placements and not question.asked.rollouts_on:
        held = [gpus - int(asks.values["rollout_gpus"])] if asks.has("rollout_gpus") else splits_of(gpus, size)
        splits = [split for split in held if 0 < split < gpus and told.admits(
            {**split_facts(split, gpus - split, size, same=True), "policy_lag": question.asked.policy_lag})]
        question.train(splits)  # together, as most of the time goes into calls and not into rows
        for split in splits:
            yield from apart(question, split, gpus - split, question.at, asks)
    for on in question.elsewhere if told.admits(split_facts(size, size, size, same=False)) else ():
        size = question.candidates[on].node.gpus
        for count in {size * nodes for nodes in ELSEWHERE} | ({int(asks.values["rollout_gpus"])} if asks.has(
                "rollout_gpus") else set()):
            if asks.keeps("rollout_gpus", count):
                yield from apart(question, gpus, count, on, asks)


def parts_of(question: RlQuestion, counts: Iterable[int]) -> Iterator[int]:
    """Yield how many of some numbers of GPUs may train."""
    size, takes_turns = question.candidates[question.at].node.gpus, "colocated" in question.framework.placements
    for gpus in counts:
        yield from (gpus,) if takes_turns else ()
        yield from splits_of(gpus, size) if "disaggregated" in question.framework.placements else ()


def splits_of(gpus: int, size: int) -> list[int]:
    """Return how many of some GPUs may train: any, of more than EIGHTHS nodes eighths."""
    each = size if gpus > size else 1
    count = gpus // each
    return sorted({round(count * part / EIGHTHS) * each for part in range(1, EIGHTHS)} if count > EIGHTHS
                  else range(each, gpus, each))


def _halves(question: RlQuestion, placed: RoleGpus, asks: Held) -> list[_Half]:
    """Return the trainer's layouts that fit and that no other matches; where none fits the leanest."""
    framework, law, found = question.framework, question.law, question.trained(placed.trainer)
    if found is None:
        return []
    (policy, models), usable = found, question.candidates[question.at].gpu.usable_memory
    told, shared = question.told, {"placement": "colocated" if placed.colocated else "disaggregated"}
    kept = np.array([asks.keeps_row(row) and told.admits({**shared, **row_facts(
        row, question.kind, question.asked.answers)}) for row in policy.layouts]
        if asks.values or told.targets else np.ones(len(policy), bool))
    here, host = on_node(question, placed), _host_usable(question)
    columns = list[Floats]()
    for swaps in ((False, True) if framework.stays else (True,)) if placed.colocated else (False,):
        if not asks.keeps("swap", int(swaps)) or not told.admits({**shared, "swapped": int(swaps)}):
            continue
        mine = replace(placed, swaps=swaps)
        made = step_of(question, mine, policy, models, NOTHING, 1)
        seconds = {phase.name: phase.seconds for phase in made.phases}
        drawing = next(phase.bytes for phase in made.phases if phase.name == "generation")
        on_host = host_of(question, mine, made, policy, models)
        # judging by a model is the trainer's work, and yet the rollouts' wait where the two overlap
        judged = seconds.get("reward", 0.0) if placed.lag else 0.0
        worked = total(spent for name, spent in seconds.items() if name != "generation") - judged
        # less than the engine leaves anyway, or than the host has beside an engine's copy, is nothing gained
        beside = np.maximum(drawing + law.asleep, usable * (1 - framework.memory_fraction)) if placed.colocated else 0.0
        tight = np.where(on_host + here * usable > host, on_host, 0.0)
        weights = policy.held("weights") if swaps else 0.0
        over = np.maximum(made.peak - usable, on_host - host)
        columns.append(np.stack(np.broadcast_arrays(np.arange(len(policy)), swaps, worked, beside, tight, weights,
                                                    judged, over))[:, kept])
    table = np.concatenate(columns, axis=1) if columns else np.zeros((8, 0))
    fitting = table[:, table[-1] <= 0]
    if not fitting.size:
        return [_Half(int(row), bool(swaps), tuple(needs)) for row, swaps, _, *needs in table.T[
            np.argsort(table[-1], kind="stable")][:1].tolist()]
    if not placed.colocated or framework.sleeps:
        # an engine that stays decides what fits beside it
        fitting = _unmatched(fitting[:, np.lexsort(fitting[:1:-1])])
    return [_Half(int(row), bool(swaps), tuple(needs)) for row, swaps, _, *needs in fitting.T.tolist()]


def _unmatched(table: Floats) -> Floats:
    """Return the columns, fastest first, that none before them matches in every need but the last."""
    needs = table[3:-1]
    matches = (needs[:, :, None] <= needs[:, None, :]).all(axis=0)
    # what matches one that is matched itself matches the same, so that all before count and not the best alone
    return table[:, ~np.triu(matches, 1).any(axis=0)]


def _colocated(question: RlQuestion, gpus: int, asks: Held) -> Iterator[RlWay]:
    placed = RoleGpus(gpus, 0, 0, swaps=False)
    usable = question.candidates[question.at].gpu.usable_memory
    halves = _halves(question, placed, asks)
    known: dict[float, list[Rollouts]] = {}
    for half in halves:
        room = usable - half.needs[0]
        if room not in known:
            known[room] = _rollouts(question, question.at, gpus, room, asks, ahead=0)
    for swaps in (False, True):
        pairs = [(half.row, rollouts) for half in halves if half.swaps == swaps
                 for rollouts in known[usable - half.needs[0]]]
        yield from _ways(question, replace(placed, swaps=swaps), pairs, question.at)


def apart(question: RlQuestion, trainer: int, rollouts: int, on: int, asks: Held) -> Iterator[RlWay]:
    """Yield the ways with so many GPUs of the trainer, and so many of another candidate for rollouts."""
    lag = question.asked.policy_lag
    placed = RoleGpus(trainer, rollouts, lag, swaps=False)
    gpu = question.candidates[on].gpu
    room = gpu.usable_memory * asks.values.get(
        "memory_fraction", question.catalog.engine(question.engine).memory_fraction)
    # many splits share the trainer of one, and the rollouts of another
    halves = question.once(("trainer", trainer, *asks), lambda: _halves(question, placed, asks))
    if halves:
        ahead = lag if lag > 1 else 0
        drawing = question.once(("rollouts", on, rollouts, *asks),
                                lambda: _rollouts(question, on, rollouts, room, asks, ahead=ahead))
        yield from _ways(question, placed, [(half.row, each) for each in drawing for half in halves], on)


def _rollouts(question: RlQuestion, at: int, gpus: int, room: float, asks: Held, *, ahead: int) -> list[Rollouts]:
    """Return replicas that fill so many GPUs with `room` bytes of each."""
    if room <= 0:
        return []
    node, table = question.candidates[at].node, question.replicas(at)
    if asks.has("rollout_tp") and asks.values["rollout_tp"] not in table.tp:
        # wider than what is searched
        wide, one = np.array([int(asks.values["rollout_tp"])]), np.ones(1, np.int64)
        table = Replicas(0 * one, wide, one, one, one)
    each = table.gpus
    kept = (gpus % each == 0) & ((each >= gpus) | (each >= node.gpus) | (gpus >= each))
    for axis in ("tp", "pp", "ep", "dp"):
        kept &= getattr(table, axis) == asks.values.get(f"rollout_{axis}", getattr(table, axis))
        if axis != "tp" and axis not in question.framework.engine_axes:
            kept &= getattr(table, axis) == 1
    kept &= np.array([question.told.admits({"engine": question.engine, **replica_facts(*shape)}) for shape in zip(
        *(getattr(table, axis).tolist() for axis in ("tp", "pp", "ep", "dp")), strict=True)], bool)
    table = table.take(np.flatnonzero(kept))
    counts = (gpus // table.gpus).tolist()
    shapes = zip(table.tp.tolist(), table.pp.tolist(), table.ep.tolist(), table.dp.tolist(), counts,
                 question.drawn(at, table, counts, room, ahead=ahead), strict=True)
    return [Rollouts(tp, pp, ep, dp, count, drawn, node.name) for tp, pp, ep, dp, count, drawn in shapes if drawn]


def _ways(question: RlQuestion, placed: RoleGpus, pairs: Sequence[tuple[int, Rollouts]], on: int) -> Iterator[RlWay]:
    """Yield trainers' layouts by their rows with the replicas beside them."""
    found = question.trained(placed.trainer)
    if not pairs or found is None:
        return
    rows = np.array([row for row, _ in pairs])
    policy, models = found[0].take(rows), found[1].each(lambda model: model.take(rows))
    drawn = [rollouts.drawn for _, rollouts in pairs]
    columns = (np.array([getattr(each, part) for each in drawn]) for part in (
        "decode", "prefill", "weights", "cache", "work"))
    decode, prefill, weights, cache, work = columns
    made = step_of(question, placed, policy, models, Drawn(decode, prefill, 0, weights, cache, work),
                 np.array([float(rollouts.replicas) for _, rollouts in pairs]), elsewhere=on != question.at)
    host = host_of(question, placed, made, policy, models)
    usable, on_host = question.candidates[question.at].gpu.usable_memory, _host_usable(question)
    each_of = zip(*(np.broadcast_to(column, len(pairs)).tolist() for column in (made.seconds, made.peak, host)),
                  strict=True)
    for (row, rollouts), layout, (seconds, peak, held) in zip(pairs, policy.layouts, each_of, strict=True):
        yield RlWay(question, question.at, on, placed, row, layout, rollouts, seconds, peak, usable, held, on_host)


def _host_usable(question: RlQuestion) -> float:
    return question.candidates[question.at].node.cpu.memory * question.catalog.kernels.host_memory_share
