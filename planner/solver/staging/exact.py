"""The fast exact path where stages share nothing: a table of stage times, then bounded slowest stages.

With the slowest stage bounded by M, each stage holds at most hi_s(M) layers, because stage time never falls with
layers; what remains is to hand back sum_s hi_s - L layers where that saves most, a min-plus product of few
entries. The least sum S(M) never rises with M, so that weight M_i + S(M_j) bounds every candidate from M_i to M_j
from below, and a run of candidates is halved only while that beats the best.

Ties: the least sum of squared layers (the most even split) among all optima, then the first mix, then a fixed
order. Every value carries it: nanoseconds times `tie_scale` plus the squares ("ranked").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.solver.staging.modes import NEVER, Ints, fill, room
from planner.solver.staging.problem import Modes, Staged, StagingProblem, staged


def least_sum(rows: Ints, total: int) -> tuple[int, list[Ints]]:
    """Return the least sum over one entry of each row with indices adding up to `total`, and the merge tree.

    `rows` is (p, w); entries that must not be taken are NEVER, and the sum is NEVER where no choice exists.
    """
    tree: list[Ints] = []
    while len(rows) > 1:
        if len(rows) % 2:
            neutral = np.full((1, rows.shape[1]), NEVER, np.int64)
            neutral[0, 0] = 0
            rows = np.concatenate([rows, neutral])
        rows, taken = _merge(rows[0::2], rows[1::2], min(2 * rows.shape[1] - 1, total + 1))
        tree.append(taken)
    return (int(rows[0, total]) if total < rows.shape[1] else NEVER), tree


def chosen(tree: list[Ints], total: int, count: int) -> Ints:
    """Return the index taken from each of the `count` rows in the least sum that `tree` came with."""
    indices = np.array([total], np.int64)
    for taken in reversed(tree):
        indices = indices[: len(taken)]  # without the neutral row of an odd level
        right = taken[np.arange(len(indices)), indices]
        both = np.empty((len(indices), 2), np.int64)
        both[:, 0], both[:, 1] = indices - right, right
        indices = both.ravel()
    return indices[:count]


def _merge(left: Ints, right: Ints, width: int) -> tuple[Ints, Ints]:
    """Return out[g, t] = min over i of left[g, t - i] + right[g, i], and the least such i."""
    pairs, span = left.shape
    padded = np.full((pairs, width + span - 1), NEVER, np.int64)
    padded[:, span - 1 : span - 1 + min(span, width)] = left[:, :width]
    row, step = padded.strides
    # windows[g, t, i] is left[g, t - i]: the window runs backwards from t
    windows = np.ndarray((pairs, width, span), np.int64, padded, (span - 1) * step, (row, step, -step))
    sums = windows + right[:, None, :]
    return np.minimum(sums.min(axis=2), NEVER), sums.argmin(axis=2)


@dataclass(frozen=True, slots=True)
class Table:
    """Stage times of one mix, (p, width): `ns` and the same with the tie-break, `ranked`.

    Column d is `low + d` layers; entries outside the limits of a stage are NEVER.
    """

    low: Ints
    ns: Ints
    ranked: Ints
    surplus: int
    """Layers left to place once every stage holds its least."""


@dataclass(slots=True)
class Best:
    """The incumbent: its ranked value and the layers per stage that reach it."""

    value: int
    mix: tuple[int, ...] = ()
    layers: Ints | None = None


def solve_exact(problem: StagingProblem) -> Staged | None:
    """Return an optimal split, or None when none exists. `problem.shared` is left to the caller."""
    low = np.array(problem.min_layers, np.int64)
    surplus = problem.layers - int(low.sum())
    if surplus < 0 or any(a > b for a, b in zip(problem.min_layers, problem.max_layers, strict=True)):
        return None
    width = min(surplus, max(b - a for a, b in zip(problem.min_layers, problem.max_layers, strict=True))) + 1
    layers = low[:, None] + np.arange(width, dtype=np.int64)
    space = room(problem, layers)
    space[layers > np.array(problem.max_layers, np.int64)[:, None]] = -1
    best = Best(NEVER * problem.tie_scale * (problem.weight + 1))
    for mix in dict.fromkeys(problem.mixes):
        floor = _floor(problem, mix)
        mean = -(-(floor // problem.tie_scale) // problem.stages)
        # the slowest stage is at least the mean one: without this every mix would cost a table
        if problem.weight * problem.tie_scale * mean + floor < best.value:
            ns = fill(problem, mix, layers, space).ns
            ranked = np.where(ns < NEVER, ns * problem.tie_scale + layers * layers, NEVER)
            _search(problem, Table(low, ns, ranked, surplus), mix, floor, best)
    return None if best.layers is None else _spelled_out(problem, best)


def _search(problem: StagingProblem, table: Table, mix: tuple[int, ...], floor: int, best: Best) -> None:
    """Lower `best` to the optimum of this mix, if that is better."""
    first = _least_slowest(table)
    if first >= NEVER:
        return
    weight = problem.weight * problem.tie_scale
    if weight * first + floor >= best.value:
        return
    _try(table, first, weight, mix, best)
    further = table.ns[(table.ns > first) & (table.ns < NEVER)]
    if weight:
        further = further[further <= min((best.value - 1 - floor) // weight, NEVER)]
    if further.size:
        values = [int(value) for value in np.unique(further)]
        _halve(table, values, floor, weight, mix, best)


def _halve(table: Table, run: list[int], floor: int, weight: int, mix: tuple[int, ...], best: Best) -> None:
    """Try the rising bounds `run` where they can beat `best`; `floor` is below all their ranked sums."""
    runs = [(floor, run)]
    while runs:
        least, run = runs.pop()
        if weight * run[0] + least >= best.value:
            continue
        least = _try(table, run[-1], weight, mix, best)
        rest = [value for value in run[:-1] if weight * value + least < best.value]
        middle = len(rest) // 2
        runs += [(least, part) for part in (rest[middle:], rest[:middle]) if part]


def _try(table: Table, slowest: int, weight: int, mix: tuple[int, ...], best: Best) -> int:
    """Return the least ranked sum with no stage above `slowest` ns; keep the split if it beats `best`."""
    most = (table.ns <= slowest).sum(axis=1) - 1
    spare = int(most.sum()) - table.surplus
    index = most[:, None] - np.arange(min(spare, int(most.max())) + 1)
    rows = np.where(index >= 0, np.take_along_axis(table.ranked, np.maximum(index, 0), axis=1), NEVER)
    least, tree = least_sum(rows, spare)
    if weight * slowest + least < best.value:
        best.value, best.mix = weight * slowest + least, mix
        best.layers = table.low + most - chosen(tree, spare, len(rows))
    return least


def _least_slowest(table: Table) -> int:
    """Return the least bound in ns under which the stages can hold all layers, NEVER when there is none.

    Rows rise, so the stages hold as many more layers than their least as there are entries within the bound.
    """
    start = int(table.ns[:, 0].max())
    above = table.ns[:, 1:].ravel()
    if table.surplus == 0:
        return start
    if table.surplus > above.size:
        return NEVER
    return max(start, int(np.partition(above, table.surplus - 1)[table.surplus - 1]))


def _floor(problem: StagingProblem, mix: tuple[int, ...]) -> int:
    """Return a lower bound on the ranked sum: every layer in the fastest mode of the mix, split evenly."""
    layer = problem.layer_ns + min(problem.mode_ns[mode] for mode in mix)
    each, more = divmod(problem.layers, problem.stages)
    squares = more * (each + 1) ** 2 + (problem.stages - more) * each**2
    return (sum(problem.extra_ns) + problem.layers * layer) * problem.tie_scale + squares


def _spelled_out(problem: StagingProblem, best: Best) -> Staged:
    assert best.layers is not None
    layers = best.layers[:, None]
    counts = fill(problem, best.mix, layers, room(problem, layers)).counts
    none, selective, full = (count[:, 0].tolist() for count in counts)
    rows: list[Modes] = list(zip(none, selective, full, strict=True))
    return staged(problem, tuple(rows))
