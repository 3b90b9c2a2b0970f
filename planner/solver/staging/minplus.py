"""Least sum of one entry per row whose indices add up to a given number: a tree of min-plus products.

Rows are merged two by two, all pairs of a level in one numpy expression, and widths stay within the total.
"""

from __future__ import annotations

import numpy as np

from planner.solver.staging.modes import NEVER, Ints


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
