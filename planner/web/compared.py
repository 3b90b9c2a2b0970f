"""The table of a comparison on a page: the columns of the command's lines, and more figures of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.answer.comparison import Row
from planner.ask.compare import Compared
from planner.render.comparison_lines import columns, of_portfolio
from planner.units import show_days, show_usd

FEW = 100
"""kWh below which parts of one are told."""
_TRAINED: dict[str, Callable[[Row], str]] = {
    "GPUs": lambda row: _figure(row.gpus, ","),
    "time": lambda row: "" if row.duration_days is None else show_days(row.duration_days),
    "cost": lambda row: "" if row.cost_usd is None else show_usd(row.cost_usd),
    "USD/GPU-h": lambda row: _figure(row.usd_per_gpu_hour, ",.2f"),
    "USD per M tokens": lambda row: _figure(row.usd_per_million_tokens, ",.4g"),
    "MFU": lambda row: _figure(row.mfu, ".3f"),
    "kWh": lambda row: _figure(row.energy_kwh, ",.0f" if (row.energy_kwh or 0.0) >= FEW else ".3g"),
    "pays back, months": lambda row: _figure(row.break_even_months, ",.1f")}


def heads_and_cells(plans: Sequence[Compared]) -> tuple[list[str], list[list[str]]]:
    """Return the heads of the figures of a comparison, and a row of them for each candidate; empty without a plan."""
    answered = [plan for plan in plans if plan.assignments]
    if not of_portfolio(answered) and not any(a.serving for plan in answered for a in plan.assignments):
        shown = {head: [show(plan.row) for plan in plans] for head, show in _TRAINED.items()}
        told = [head for head, cells in shown.items() if any(cells)]
        return told, [[shown[head][at] for head in told] for at in range(len(plans))]
    heads, cells = columns(answered)
    return [*heads], [[_figure(plan.row.gpus, ","), *cells(plan)] if plan.assignments else [""] * len(heads)
                      for plan in plans]


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
