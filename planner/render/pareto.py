"""The frontier of trade-offs: a plot in characters, and a table of its points."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from planner.answer.assignment import Assignment
from planner.answer.schema import Measure, Plan
from planner.render.layout_text import brief, degrees
from planner.render.page import Head, Page
from planner.units import plural, show_days, show_kwh, show_usd

WIDTH, HEIGHT, SCREEN_HEIGHT = 60, 15, 9
MOST_POINTS = 8
"""Of a table on a screen."""
FAR = 4
"""Most over least value from which an axis is logarithmic."""
_CALLED: dict[Measure, str] = {"cost_usd": "cost", "duration_days": "days", "gpus": "gpus", "energy_kwh": "energy"}
_FIELDS = {name: measure for measure, name in _CALLED.items()}
_SHOWN = {"cost": show_usd, "days": show_days, "gpus": "{:,.0f}".format, "energy": show_kwh}
_MARKS = "123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def trades(plan: Plan) -> bool:
    """Say whether the plan's alternatives are a frontier of trade-offs."""
    return plan.provenance.pareto is not None and bool(plan.assignments)


def show_trade_offs(page: Page, plan: Plan, *, full: bool) -> None:
    """Print the points of the frontier, best by the first measure first; where not in full, the first in a line each.
    """
    names = [_CALLED[measure] for measure in plan.provenance.pareto or ()]
    points: list[Assignment] = [*plan.assignments, *plan.alternatives]
    known = f"{plural(len(points), 'point')}, exact" if plan.status == "optimal" else "not all: stopped by a limit"
    page.heading(f"Trade-offs between {', '.join(names)}: nothing is better in one of them and as good in the others "
                 f"({known})")
    if len(points) > 1:
        for line in _plot(points, names[0], names[1], HEIGHT if full else SCREEN_HEIGHT):
            page.console.print(page.text(line))
        page.console.print()
    measures = [*names, *(name for name in (_FIELDS if full else ("gpus",)) if name not in names)]
    columns = (Head("point"), *(Head(name, True) for name in measures), Head("hardware and layout"))
    rows = [(_mark(at), *(_SHOWN[name](_value(point, name)) for name in measures),
             f"{point.nodes:,} x {point.node}, {brief(point) if full else degrees(point)}") for at,
            point in enumerate(points)]
    if full:
        page.table(columns, rows)
        return
    page.lines(columns, rows[:MOST_POINTS])
    if len(rows) > MOST_POINTS:
        page.paragraph(f"  {len(rows) - MOST_POINTS} more with -v")


def _value(assignment: Assignment, name: str) -> float:
    value = getattr(assignment, _FIELDS[name])
    return 0.0 if value is None else float(value)


def _mark(at: int) -> str:
    return _MARKS[at] if at < len(_MARKS) else "*"


def _plot(points: Sequence[Assignment], down: str, across: str, height: int) -> list[str]:
    """Return the plot: the first measure falls downwards, the second runs to the right, both from least to most."""
    heights, widths = ([_value(point, name) for point in points] for name in (down, across))
    rows = [[" "] * WIDTH for _ in range(height)]
    for at in range(len(points) - 1, -1, -1):
        rows[_place(heights, at, height, reverse=True)][_place(widths, at, WIDTH)] = _mark(at)
    most, least = _SHOWN[down](max(heights)), _SHOWN[down](min(heights))
    margin = max(len(most), len(least), len(down), 5)
    labels = {0: most, height // 2: down, height - 1: least}
    if _by_logarithm(heights):
        labels[height // 2 + 1] = "(log)"
    lines = [f"  {labels.get(row, ''):>{margin}} |{''.join(cells).rstrip()}" for row, cells in enumerate(rows)]
    left, scale = _SHOWN[across](min(widths)), " (log)" if _by_logarithm(widths) else ""
    right = _SHOWN[across](max(widths)) + ("" if across == "days" else f" {across}") + scale
    return [*lines, f"  {'':>{margin}} +{'-' * WIDTH}", f"  {'':>{margin}}  {left}{right:>{WIDTH - len(left)}}"]


def _by_logarithm(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) > FAR * min(values)


def _place(values: Sequence[float], at: int, cells: int, *, reverse: bool = False) -> int:
    """Return the cell of one value on an axis from least to most."""
    scaled = [log(value) for value in values] if _by_logarithm(values) else values
    least, most = min(scaled), max(scaled)
    share = (scaled[at] - least) / (most - least) if most > least else 0.0
    return round(((1 - share) if reverse else share) * (cells - 1))
