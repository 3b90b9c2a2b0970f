"""The fastest recompute modes of a stage that holds l layers: a closed form, over a table of stages.

With two modes, a fast one and a leaner one, the fewest lean layers that fit are
ceil((keep_fast l - room) / (keep_fast - keep_lean)); a third and slower mode is enumerated around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.solver.staging.problem import MODES, VALUE_LIMIT, StagingProblem

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
NEVER = 2 * VALUE_LIMIT  # above every real value; NEVER + NEVER wraps nowhere in 64 bits


@dataclass(frozen=True, slots=True)
class Filled:
    """`ns`: stage time per entry (NEVER where nothing fits); `counts`: layers per mode, one array a mode."""

    ns: Ints
    counts: list[Ints]


def room(problem: StagingProblem, layers: Ints) -> Ints:
    """Return the units that a stage may keep per micro-batch: negative where it cannot fit at all.

    `layers` has one row per stage; both memory phases are in the result.
    """
    fixed = np.array(problem.fixed_units, np.int64)[:, None]
    flying = np.array(problem.in_flight, np.int64)[:, None]
    backward_fixed = np.array(problem.backward_fixed, np.int64)[:, None]
    left = problem.chunks * (problem.capacity_units - fixed - problem.state_units * layers) // flying
    fits = backward_fixed + problem.backward_units * layers <= problem.capacity_units
    return np.where(fits, left, -1)


def fill(problem: StagingProblem, mix: tuple[int, ...], layers: Ints, space: Ints) -> Filled:
    """Return the least time of every entry of `layers` (rows are stages) within `space`, in modes of `mix`.

    Ties are broken for the fewest layers in the slowest mode.
    """
    order = sorted(set(mix), key=lambda mode: (problem.mode_ns[mode], problem.keep_units[mode]))
    if len(order) == MODES:
        counts, fits = _three(problem, order, layers, space)
    else:
        counts, fits = _two(problem, order[0], order[-1], layers, space)
    ns = np.array(problem.extra_ns, np.int64)[:, None] + problem.layer_ns * layers
    for mode in order:
        ns = ns + problem.mode_ns[mode] * counts[mode]
    return Filled(np.where(fits, ns, NEVER), counts)


def _two(problem: StagingProblem, fast: int, lean: int, layers: Ints, space: Ints) -> tuple[list[Ints], Mask]:
    """Return the counts with the fewest lean layers, and where they fit."""
    counts = [np.zeros_like(layers)] * MODES
    keep, less = problem.keep_units[fast], problem.keep_units[lean]
    counts[fast] = layers
    kept = keep * layers
    if less < keep:
        counts[lean] = np.minimum(np.maximum(-((space - kept) // (keep - less)), 0), layers)
        counts[fast] = layers - counts[lean]
        kept = kept - (keep - less) * counts[lean]
    return counts, kept <= space


def _three(problem: StagingProblem, order: list[int], layers: Ints, space: Ints) -> tuple[list[Ints], Mask]:
    """Return the counts of least time over every number of layers in the slowest mode, and where they fit."""
    slow = order[-1]
    tried = np.arange(int(layers.max()) + 1, dtype=np.int64)
    rest = layers[..., None] - tried
    counts, fits = _two(problem, order[0], order[1], np.maximum(rest, 0),
                        space[..., None] - problem.keep_units[slow] * tried)
    fits &= rest >= 0
    counts[slow] = np.broadcast_to(tried, rest.shape)
    ns = sum((problem.mode_ns[mode] * counts[mode] for mode in order), np.zeros_like(rest))
    best = np.where(fits, ns, NEVER).argmin(axis=-1)[..., None]
    chosen = [np.take_along_axis(count, best, -1)[..., 0] for count in counts]
    return chosen, np.take_along_axis(fits, best, -1)[..., 0]
