"""What tells columns apart."""

from planner.layouts.axes import AXES
from planner.layouts.table import from_rows
from planner.solver.search.job import identity


def test_every_axis_tells_two_layouts_apart() -> None:
    """The last tie-break: layouts that differ in one axis only have different keys. Recompute is staging's."""
    base = {"pp": 2, "dp": 2}
    rows = [base] + [base | {axis.name: 3} for axis in AXES if axis.name != "recompute"]
    table = from_rows(rows, 64)
    keys = {identity(table, row) for row in range(len(rows))}
    assert len(keys) == len(rows)
