"""What is worked out of rows is worked out once, and is the same from memory."""

from __future__ import annotations

import numpy as np

from planner.layouts.memo import Memo
from planner.layouts.table import Floats, Ints


def test_only_what_is_unknown_is_worked_out() -> None:
    memo, asked = Memo(2), list[int]()
    few, more = (np.array([3, 1]), np.array([0, 5])), (np.array([1, 2, 3]), np.array([5, 5, 0]))

    def work(columns: tuple[Ints, Ints], places: Ints) -> Floats:
        asked.append(len(places))
        return np.stack([column[places] * 10.0 for column in columns], axis=1)

    for columns in (few, more, few):
        found = memo.recall(columns, lambda places, columns=columns: work(columns, places))  # type: ignore[misc]
        np.testing.assert_array_equal(found, np.stack(columns, axis=1) * 10.0)
    assert asked == [2, 1]
