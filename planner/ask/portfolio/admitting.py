"""What would admit a job that is rejected, or have a late one in time: each a single change that is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from planner.answer.relaxation import Relaxation
from planner.ask.portfolio.elsewhere import BUDGET, DEADLINE, NODES, Elsewhere
from planner.ask.portfolio.enough import put_off
from planner.ask.portfolio.limited import asked_limit
from planner.jobs.agenda import POWER, Agenda
from planner.jobs.columns import MICRO
from planner.solver.fleet.schedule import DAY_SECONDS
from planner.units import plural


def admitting(agenda: Agenda, at: int, known: Elsewhere, worth: int) -> Iterator[Relaxation]:
    """Yield the least change of each kind with which the job is done, all others staying where they are.

    worth: micro-USD that doing it may cost more.
    """
    asked = agenda.portfolio.jobs[agenda.items[at].job]
    possible = known.against == 0
    if possible.any():
        least = int(known.more[possible].min())
        if worth and least > worth:
            yield _change(f"{asked.name}.worth", _usd(worth), _usd(least))
        elif not worth and asked.late is not None:
            yield _change(f"{asked.name}.late", f"{asked.late:,.0f} USD/d", f"in time costs {_usd(least)} more")
    pays = (known.against == 1) & (known.more <= worth)
    for name, lack in known.lacks.items():
        rows = np.flatnonzero(pays & (lack > 0))
        if len(rows) and (change := _least(agenda, at, name, known, rows)) is not None:
            yield change


def _least(agenda: Agenda, at: int, name: str, known: Elsewhere, rows: np.ndarray[tuple[int, ...], np.dtype[np.intp]]
           ) -> Relaxation | None:
    """Return the least that has to change of one limit."""
    lack = known.lacks[name]
    way = int(rows[np.argmin(lack[rows])])
    short, pool = int(lack[way]), known.options[int(known.ways.option[way])].pool
    limits, rent = agenda.portfolio.limits, agenda.portfolio.sourcing.rent
    job = agenda.portfolio.jobs[agenda.items[at].job].name
    if name == NODES:
        supplier = agenda.suppliers[pool]
        had = sum(stock.nodes for stock in agenda.portfolio.sourcing.own if stock.node == supplier.node)
        return _change(f"own.{supplier.node}", plural(had, "node"), plural(had + short, "node")) if (
            supplier.how == "own") else None
    if name == DEADLINE:
        number = agenda.items[at].job
        release, end = agenda.problem.tasks[at].release, int(known.end[way])
        return None if agenda.portfolio.jobs[number].deadline is None or -(
            -end // DAY_SECONDS) * DAY_SECONDS > agenda.problem.horizon else _change(
            f"{job}.deadline", asked_limit(agenda, f"{job}.deadline"), put_off(agenda, number, [(release, end)]))
    more: dict[str, Callable[[], str]] = {
        BUDGET: lambda: _usd((limits.budget or 0) * MICRO + short),
        **{quarter: partial(_usd, purse.micro_usd + short) for quarter, purse in zip(
            agenda.purses, agenda.problem.purses, strict=True)},
        **dict.fromkeys(POWER, lambda: f"{(getattr(limits, name) or 0) + short:,.0f} W"),
        "max_nodes": lambda: f"{(limits.max_nodes or 0) + short:,}",
        "max_gpus": lambda: f"{(limits.max_gpus or 0) + short:,}"}
    if name.startswith("quota.") and rent is not None:
        more[name] = lambda: plural(rent.quota[name.removeprefix("quota.")] + short, "node")
    return _change(name, asked_limit(agenda, name), more[name]()) if name in more else None


def _change(limit: str, asked: str, enough: str) -> Relaxation:
    return Relaxation(limit=limit, from_=asked, to=enough)


def _usd(micro_usd: float) -> str:
    """Write money up to whole dollars, so that it is enough."""
    return f"{-(-round(micro_usd) // int(MICRO)):,} USD"
