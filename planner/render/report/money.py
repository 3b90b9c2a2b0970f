"""What a report draws about money: cash over time of renting against buying, and plans by days and cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from planner.answer.assignment import Alternative, Assignment
from planner.answer.bought import Bought
from planner.answer.schema import Plan
from planner.render.pareto import trades
from planner.render.report.charts import Line, Mark, chart
from planner.units import round_up, show_usd

MONTH_HOURS = 730.0
Found = Sequence[Assignment | Alternative]


def short_usd(value: float) -> str:
    """Write money for an axis: 0, 250 k, 1.5 M."""
    for unit, suffix in ((1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:g}{suffix}"
    return f"{value:g}"


def rent_against_buy(plan: Plan) -> str | None:
    """Return the chart of cash spent by renting and by buying for the same work; none unless the plan has both."""
    found: Found = [*plan.assignments[:1], *plan.alternatives]
    bought = next(((a, a.purchase) for a in found if a.purchase and a.duration_days), None)
    rents = [a.cost_usd for a in found if a.sourcing == "rent" and a.cost_usd is not None]
    if bought is None or not rents or bought[0].duration_days is None:
        return None
    own, what = bought
    hours, months = (own.duration_days or 0.0) * 24, what.life_years * 12
    rent = min(rents) / hours * MONTH_HOURS * what.utilization
    running = _running(what)
    spent = what.capex_usd + running * months
    lines = [Line(f"buy {own.gpus:,} x {own.gpu}", "--a", ((0, what.capex_usd), (months, spent))),
             Line("rent for the same work", "--b", ((0, 0), (months, rent * months)))]
    marks = []
    if rent > running and what.capex_usd / (rent - running) <= months:
        at = what.capex_usd / (rent - running)
        marks = [Mark((at, rent * at), f"{at:.1f} months", "--ink",
                      f"after {at:.1f} months {show_usd(rent * at)} each way")]
    title = f"Cash spent, nodes in use {what.utilization:.0%} of the time"
    return chart(title, "months", "USD", lines, marks, short_usd)


def _running(what: Bought) -> float:
    """Return what owning takes a month beside the capital."""
    return sum(usd for name, usd in what.usd_per_month.items() if name != "depreciation")


def by_days_and_cost(plan: Plan) -> str | None:
    """Return the chart of the plan and its alternatives by days and cost; none without prices."""
    found: Found = [*plan.assignments[:1], *plan.alternatives]
    priced = [(a.duration_days, a.cost_usd, a) for a in found if a.duration_days is not None and a.cost_usd is not None]
    if len(priced) < 2:
        return None
    first = {a.gpu: at for at, (_, _, a) in reversed([*enumerate(priced)])}
    marks = [Mark((days, cost), f"{a.gpus:,} x {a.gpu}" if first[a.gpu] == at else "", "--b" if at else "--a",
                  f"{a.gpus:,} x {a.gpu}, {a.offer}: {round_up(days, 1):,} d, {show_usd(cost)}")
             for at, (days, cost, a) in enumerate(priced)][::-1]  # the plan is drawn over the rest
    lines = []
    if trades(plan):
        corners = sorted((days, cost) for days, cost, _ in priced)
        steps = [point for (a, b), (c, _) in pairwise(corners) for point in ((a, b), (c, b))]
        lines = [Line("", "--b", (*steps, corners[-1]))]
    return chart("Plans by days and cost", "days", "USD", lines, marks, short_usd)
