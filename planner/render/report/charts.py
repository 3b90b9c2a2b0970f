"""What a report draws about money, as SVG text: cash over time of renting against buying, plans by days and cost.

Colors are CSS variables of the page, so that light, dark and print each have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, inf, log10
from typing import NamedTuple

from markupsafe import Markup

from planner.answer.assignment import Alternative, Assignment
from planner.answer.bought import Bought
from planner.answer.comparison import Row
from planner.answer.schema import Plan
from planner.ask.rent_or_buy import Havings
from planner.render.pareto import trades
from planner.units import show_days, show_usd

MONTH_HOURS = 730.0
Found = Sequence[Assignment | Alternative]
WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 78, 18, 16, 46
"""Size of a chart and the room around what is plotted, in px."""
LETTER, LINE = 7, 13
"""Width of a letter and height of a line of a label, in px."""
CHART = 'class="chart" '
"""What is read on a phone too: its text is larger there."""
FAR = 30
"""Factor between the least and the most of an axis from which on it goes by factors."""
Point = tuple[float, float]


def short_usd(value: float) -> str:
    """Write money for an axis: 0, 250 k, 1.5 M."""
    for unit, suffix in ((1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:g}{suffix}"
    return f"{value:g}"


class Spent(NamedTuple):
    """Cash over time, drawn, and in words when buying has taken less than renting."""

    svg: Markup
    crossing: str


def rent_against_buy(plan: Plan) -> Spent | None:
    """Return the chart of cash spent by renting and by buying for the same work; none unless the plan has both."""
    choices: Found = [*plan.assignments[:1], *plan.alternatives]
    bought = next(((a, a.purchase) for a in choices if a.purchase and a.duration_days), None)
    rents = [a.cost_usd for a in choices if a.sourcing == "rent" and a.cost_usd is not None]
    if bought is None or not rents or bought[0].duration_days is None:
        return None
    own, what = bought
    hours, months = (own.duration_days or 0.0) * 24, what.life_years * 12
    rent = min(rents) / hours * MONTH_HOURS * what.utilization
    title = f"Cash spent, nodes in use {what.utilization:.0%} of the time"
    return _cash(title, months, f"buy {own.gpus:,} x {own.gpu}", what.capex_usd, _running(what), rent)


def ways_over_time(found: Havings) -> Spent | None:
    """Return the same of hardware alone, over its years; none unless it is both rented and bought."""
    gpu = found.ways[0].row.gpu
    bought, rented = found.cheapest("buy", gpu), found.cheapest("rent", gpu)
    estate = bought.offer.estate if bought else None
    if bought is None or rented is None or estate is None:
        return None
    capital, months = estate.capital(bought.nodes), found.years * 12
    running = sum(usd for name, usd in estate.yearly(bought.nodes, capital).items() if name != "depreciation") / 12
    title = f"Cash spent, nodes in use {found.use:.0%} of the time; resale not counted"
    return _cash(title, months, f"buy {bought.row.gpus:,} x {gpu}", capital.total, running,
                 (rented.row.cost_usd or 0.0) / months)


def _cash(title: str, months: float, label: str, capital: float, running: float, rent: float) -> Spent:
    """Return cash over time: what is paid at once and by the month, against rent by the month, and where they cross."""
    lines = [Line(label, "--a", ((0, capital), (months, capital + running * months))),
             Line("rent for the same work", "--b", ((0, 0), (months, rent * months)))]
    marks, at = [], capital / (rent - running) if rent > running else inf
    crossing = f"Resale apart, buying takes more cash than renting in all of the {months:,.3g} months."
    if at <= months:
        crossing = f"Resale apart, buying has taken less cash than renting from {at:.1f} months on."
        marks = [Mark((at, rent * at), f"{at:.1f} months", "--ink",
                      f"after {at:.1f} months {show_usd(rent * at)} each way")]
    return Spent(Markup(chart(title, "months", "USD", lines, marks, short_usd)), crossing)


def _running(what: Bought) -> float:
    """Return what owning takes a month beside the capital."""
    return sum(usd for name, usd in what.usd_per_month.items() if name != "depreciation")


def by_days_and_cost(plan: Plan) -> str | None:
    """Return the chart of the plan and its alternatives by days and cost; none without prices, or where time tells none
    apart, as of services.
    """
    choices: Found = [*plan.assignments[:1], *plan.alternatives]
    priced = [(a.duration_days, a.cost_usd, a) for a in choices if a.duration_days is not None
              and a.cost_usd is not None]
    if len({days for days, _, _ in priced}) < 2:
        return None
    first = {a.gpu: at for at, (_, _, a) in reversed([*enumerate(priced)])}
    marks = [Mark((days, cost), f"{a.gpus:,} x {a.gpu}" if first[a.gpu] == at else "", "--b" if at else "--a",
                  f"{a.gpus:,} x {a.gpu}, {a.offer}: {show_days(days)}, {show_usd(cost)}")
             for at, (days, cost, a) in enumerate(priced)][::-1]  # the plan is drawn over the rest
    lines = []
    if trades(plan):
        corners = sorted((days, cost) for days, cost, _ in priced)
        lines = [Line("", "--b", _stairs(corners))]
    return chart("Plans by days and cost", "days", "USD", lines, marks, short_usd, far=True)


def rows_by_days_and_cost(rows: Sequence[Row]) -> str | None:
    """Return the chart of a comparison, with a line along the rows that none is both faster and cheaper than; none
    where time tells no rows apart, as of services.
    """
    priced = sorted((row.duration_days, row.cost_usd, f"{row.gpus or 0:,} x {row.gpu}, {row.offer or row.kind}")
                    for row in rows if row.duration_days is not None and row.cost_usd is not None)
    if len({days for days, _, _ in priced}) < 2:
        return None
    corners = [(days, cost) for at, (days, cost, _) in enumerate(priced)
               if all(cost < before for _, before, _ in priced[:at])]
    marks = [Mark((days, cost), "", "--b" if (days, cost) in corners else "--a",
                  f"{named}: {show_days(days)}, {show_usd(cost)}") for days, cost, named in priced]
    return chart("Rows by days and cost", "days", "USD", [Line("", "--b", _stairs(corners))], marks, short_usd,
                 far=True)


def _stairs(corners: Sequence[Point]) -> tuple[Point, ...]:
    """Return the line along points of which each is later and cheaper than the one before."""
    return (*(point for (a, b), (c, _) in pairwise(corners) for point in ((a, b), (c, b))), corners[-1])


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its label and the CSS variable of its color."""

    label: str
    color: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A point that is called out. The label stands beside it, the whole text is shown on pointing at it."""

    at: Point
    label: str
    color: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Axis:
    """From zero up, or from some value on by factors."""

    most: float
    least: float | None = None
    """None where the axis begins at zero."""

    def share(self, value: float) -> float:
        """Return where a value stands, from 0 to 1."""
        return value / self.most if self.least is None else log10(value / self.least) / log10(self.most / self.least)

    @property
    def ticks(self) -> list[float]:
        """Return round values on it."""
        if self.least is None:
            return ticks(self.most)
        decades = range(floor(log10(self.least)), ceil(log10(self.most)))
        each = (1, 2, 5) if len(decades) <= 2 else (1,)
        return [value for decade in decades for factor in each
                if self.least <= (value := factor * 10.0**decade) <= self.most]


def _axis(values: Sequence[float], *, far: bool) -> _Axis:
    least, most = min(values, default=0.0), max(values, default=1.0)
    if far and 0 < FAR * least < most:
        return _Axis(most * 1.2, least / 1.2)
    return _Axis(most * 1.05 or 1.0)


def chart(title: str, x: str, y: str, lines: Sequence[Line], marks: Sequence[Mark],
          show: Callable[[float], str], *, far: bool = False) -> str:
    """Return a chart from zero up; `show` writes values of the y axis. far: an axis whose values lie so far apart that
    most would fall on one place goes by factors.
    """
    points = [point for line in lines for point in line.points] + [mark.at for mark in marks]
    across, up = (_axis([point[at] for point in points], far=far) for at in (0, 1))

    def place(point: Point) -> Point:
        return (LEFT + across.share(point[0]) * (WIDE - LEFT - RIGHT),
                HIGH - BOTTOM - up.share(point[1]) * (HIGH - TOP - BOTTOM))
    parts = list[str]()
    for value in up.ticks:
        _, at = place((points[0][0], value))
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
                     f'<text class="tick" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">'
                     f"{escape(show(value))}</text>")
    for value in across.ticks:
        at, _ = place((value, points[0][1]))
        parts.append(f'<text class="tick" x="{at:.1f}" y="{HIGH - BOTTOM + 18}" text-anchor="middle">'
                     f"{value:,.10g}</text>")
    parts.append(f'<text class="tick" x="{(LEFT + WIDE - RIGHT) / 2}" y="{HIGH - 8}" text-anchor="middle">{escape(x)}'
                 f'</text><text class="tick" x="{LEFT}" y="{TOP - 4}">{escape(y)}</text>')
    for line in lines:
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in map(place, line.points))
        parts.append(f'<polyline points="{path}" fill="none" stroke="var({line.color})" stroke-width="2"/>')
    # above what is drawn, where no line crosses it
    named = "".join(f'<tspan dx="18" fill="var({line.color})">{escape(line.label)}</tspan>'
                    for line in lines if line.label)
    if named:
        parts.append(f'<text x="{WIDE - RIGHT}" y="{TOP - 4}" text-anchor="end">{named}</text>')
    placed = [(place(mark.at), mark) for mark in marks]
    for (a, b), mark in placed:
        parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="5" fill="var({mark.color})"><title>'
                     f"{escape(mark.text or mark.label)}</title></circle>")
    parts += _labels([(at, mark.label) for at, mark in placed[::-1] if mark.label])
    return framed(title, f"{WIDE} {HIGH}", parts, CHART)


def _labels(named: Sequence[tuple[Point, str]]) -> Iterator[str]:
    """Yield the labels of points, the first in preference, each where it covers no other; one without room is left
    out, as pointing at the point shows it too.
    """
    taken: list[tuple[float, float, float]] = []
    for (x, y), text in named:
        wide = LETTER * len(text)
        for down, ahead in ((15, x <= WIDE * 0.7), (15, x > WIDE * 0.7), (-7, x <= WIDE * 0.7), (-7, x > WIDE * 0.7)):
            left, at = x + 9 if ahead else x - 9 - wide, y + down
            if left >= LEFT and left + wide <= WIDE and TOP < at < HIGH - BOTTOM and not any(
                    abs(at - line) < LINE and left < right and first < left + wide for first, right, line in taken):
                taken.append((left, left + wide, at))
                yield (f'<text x="{x + 9 if ahead else x - 9:.1f}" y="{at:.1f}" '
                       f'text-anchor="{"start" if ahead else "end"}">{escape(text)}</text>')
                break


def framed(title: str, size: str, parts: Sequence[str], look: str = "", role: str = "img") -> str:
    """Return what is drawn as one SVG. size: width and height, in px; look: attributes that only some have;
    role: group, where parts of it lead elsewhere.
    """
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="{role}" {look}'
                      f'aria-label="{escape(title)}"><title>{escape(title)}</title>', *parts, "</svg>"])


def ticks(most: float) -> list[float]:
    """Return four to ten round values from zero to at most `most`."""
    step = 10.0 ** floor(log10(most))
    for finer in (0.1, 0.2, 0.25, 0.5, 1.0):
        if most / (step * finer) <= 8:
            step *= finer
            break
    return [round(i * step, 12) for i in range(int(most / step) + 1)]
