"""What a report draws of many jobs: a Gantt chart under the use of every pool, and money by month."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from html import escape

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.render.portfolio import in_use, moment, on_pool, outlays, span
from planner.render.report.charts import LETTER, framed, short_usd, ticks
from planner.units import DAY, plural, show_seconds, show_usd

WIDE, LEFT, RIGHT = 960, 190, 12
"""Width of a drawing, and the room beside what is plotted, in px."""
USE, ROW, BAR, GAP = 56, 18, 12, 14
"""Height of a pool's use, of a job's row, of its bar, and the room between pools, in px."""
CASH, FOOT = 220, 40
"""Height of the bars of money, and room for months below, in px."""
WHOLE = 'class="whole" '
"""However high it is, it is shown in full."""
FEW_DAYS = 75
"""Of a timeline, up to which days are named instead of months."""
MOST_DATES = 9
"""Of a timeline beside one another: what is nearer to its start than such a part would stand on the name of that."""
LABEL = 26
"""Letters of a name beside what is drawn; the whole name is shown on pointing at it."""

_DATED = re.compile(r"\d{4}-", re.ASCII)
"""Begins a deadline that is a date, and has a mark: a span of time is each instance's."""


class Scale:
    """Moments as px from the left."""

    def __init__(self, start: datetime, end: datetime) -> None:
        self.start, self.seconds = start, (end - start).total_seconds()

    def x(self, text: str) -> float:
        """Return where a moment stands."""
        return LEFT + (moment(text) - self.start).total_seconds() / self.seconds * (WIDE - LEFT - RIGHT)

    def box(self, first: str, then: str, y: float, high: float, look: str, told: str) -> str:
        """Return a rectangle from one moment to another; a short one is still seen."""
        left = self.x(first)
        return (f'<rect x="{left:.1f}" y="{y:.1f}" width="{max(1.0, self.x(then) - left):.1f}" height="{high:.1f}" '
                f'{look}><title>{escape(told)}</title></rect>')


def gantt(plan: Plan) -> str:
    """Return every pool with what is there and in use, and a bar of each of its jobs, as SVG."""
    start, end = span(plan)
    scale, parts, y = Scale(start, end), list[str](), 30.0
    due: dict[str | None, str] = {job["name"]: job["deadline"] for job in plan.provenance.scenario["jobs"]
                                  if _DATED.match(job.get("deadline") or "")}
    for pool in dict.fromkeys(period.pool for period in plan.periods):
        parts += _use(plan, pool, scale, y)
        y += USE + 6
        for job in on_pool(plan, pool):
            parts += _bars(job, scale, y)
            if job.job in due:  # once for all that repeat
                parts.append(_due(job.job, due.pop(job.job), scale, y))
            y += ROW
        y += GAP
    lines = [f'<line class="grid" x1="{scale.x(day):.1f}" x2="{scale.x(day):.1f}" y1="22" y2="{y:.0f}"/>'
             f'<text class="tick" x="{scale.x(day) + 3:.1f}" y="14">{label}</text>'
             for day, label in _dates(start, end)]
    moves = f'data-start="{start.isoformat()}" data-end="{end.isoformat()}" data-left="{LEFT}" data-right="{RIGHT}" '
    return framed("Timeline", f"{WIDE} {y:.0f}", [*lines, *parts], WHOLE + moves, role="group")


def _use(plan: Plan, pool: str, scale: Scale, y: float) -> Iterator[str]:
    rows = [period for period in plan.periods if period.pool == pool]
    most = max((period.available for period in rows), default=1) or 1
    yield _label(pool, y + USE / 2 - 2, "strong")
    yield _label(f"{plural(most, 'node')}, {in_use(plan, pool):.0%} in use", y + USE / 2 + 14)
    for row in rows:
        told = (f"{row.start[:10]} to {row.end[:10]}: {row.available:,} nodes, {row.serving:,} serve, "
                f"{row.training:,} train")
        there, both, served = (USE * count / most
                               for count in (row.available, row.serving + row.training, row.serving))
        yield scale.box(row.start, row.end, y + USE - there, there, 'fill="var(--line)" opacity="0.6"', told)
        if both:
            yield scale.box(row.start, row.end, y + USE - both, both, 'fill="var(--a)" opacity="0.45"', told)
        if served:
            yield scale.box(row.start, row.end, y + USE - served, served, 'fill="var(--a)"', told)


def _bars(job: Assignment, scale: Scale, y: float) -> Iterator[str]:
    yield _label(job.workload, y + BAR - 1)
    late = f", {show_seconds(job.late_days * DAY)} late" if job.late_days else ""
    color = "var(--b)" if job.late_days else "var(--a)"
    for segment in job.segments or ():
        told = f"{job.workload}: {segment.start[:10]} to {segment.end[:10]}, {segment.nodes:,} x {job.node}{late}"
        yield scale.box(segment.start, segment.end, y, BAR, f'rx="2" fill="{color}"', told)


def _due(job: str | None, deadline: str, scale: Scale, y: float) -> str:
    """Return the mark of a deadline, at the edge where it lies beyond what is drawn."""
    x, name, day = min(scale.x(deadline), WIDE - RIGHT), escape(job or ""), deadline[:10]
    return (f'<path class="due" data-job="{name}" data-day="{day}" d="M{x:.1f} {y - 3:.1f}l5 {BAR / 2 + 3}l-5 '
            f'{BAR / 2 + 3}l-5 {-BAR / 2 - 3}z" fill="var(--ink)" stroke="var(--paper)"><title>Deadline of {name}: '
            f"{day}</title></path>")


def cash(plan: Plan) -> str:
    """Return money by calendar month as bars, and the outlay of purchases as hollow ones, as SVG."""
    paid = outlays(plan)
    most = max((*(each.usd for each in plan.cash), *paid.values()), default=0.0) or 1.0
    top, wide = 24, (WIDE - LEFT - RIGHT) / max(1, len(plan.cash))
    parts = []
    for value in ticks(most):
        y = top + CASH * (1 - value / most)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                     f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{short_usd(value)}</text>')
    for at, month in enumerate(plan.cash):
        high = CASH * month.usd / most
        parts.append(f'<rect x="{LEFT + at * wide + 2:.1f}" y="{top + CASH - high:.1f}" '
                     f'width="{max(1.0, wide - 4):.1f}" height="{high:.1f}" fill="var(--a)"><title>{month.month}: '
                     f'{escape(show_usd(month.usd))}</title></rect>'
                     f'<text class="tick" x="{LEFT + (at + 0.5) * wide:.1f}" y="{top + CASH + 18}" '
                     f'text-anchor="middle">{_month(month.month, wide)}</text>')
        if wide > LETTER * len(whole := f"{month.usd:,.0f}"):
            parts.append(f'<text x="{LEFT + (at + 0.5) * wide:.1f}" y="{top + CASH - high - 5:.1f}" '
                         f'text-anchor="middle">{whole}</text>')
        if month.month in paid:
            high = CASH * paid[month.month] / most
            parts.append(f'<rect class="outlay" x="{LEFT + at * wide + 2:.1f}" y="{top + CASH - high:.1f}" '
                         f'width="{max(1.0, wide - 4):.1f}" height="{high:.1f}" fill="none" stroke="var(--b)" '
                         f'stroke-width="2"><title>{month.month}: outlay of purchases '
                         f'{escape(show_usd(paid[month.month]))}</title></rect>')
    parts.append(f'<text class="tick" x="{LEFT - 8}" y="14" text-anchor="end">USD</text>')
    return framed("Money by month, USD", f"{WIDE} {top + CASH + FOOT}", parts, WHOLE)


def _dates(start: datetime, end: datetime) -> Iterator[tuple[str, str]]:
    """Yield the moments that a timeline names, the first of them with its year: its start and the first days of months,
    of every second or third where there are many; of a short one every few days.
    """
    length = (end - start).days
    yield start.isoformat(), f"{start.day} {start:%b %Y}"
    if length <= FEW_DAYS:
        step = max(1, round(length / 8))
        for at in range(2 * step, length, step):
            day = start + timedelta(at)
            yield day.isoformat(), f"{day.day} {day:%b}"
        return
    day, step = start.replace(day=1, hour=0, minute=0), 1 + length // 400
    while day < end:
        if (day - start).days * MOST_DATES > length and (day.month - 1) % step == 0:
            yield day.isoformat(), day.strftime("%b %Y" if day.month == 1 else "%b")
        day = day.replace(year=day.year + day.month // 12, month=day.month % 12 + 1)


def _month(text: str, wide: float) -> str:
    """Return a calendar month in the room that its bar has: `Jan 2027`, or `Jan`, of a new year `2027`."""
    month = datetime.fromisoformat(f"{text}-01")
    return f"{month:%b %Y}" if wide > LETTER * 8 else f"{month:%Y}" if month.month == 1 else f"{month:%b}"


def _label(text: str, y: float, kind: str = "") -> str:
    short = text if len(text) <= LABEL else text[:LABEL - 3] + "..."
    return (f'<text x="{LEFT - 8}" y="{y:.1f}" text-anchor="end" class="{kind}">{escape(short)}'
            f"<title>{escape(text)}</title></text>")
