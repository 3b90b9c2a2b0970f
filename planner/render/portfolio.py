"""A plan of many jobs as text: a sentence, a timeline by pool, the jobs, what is supplied, and money by month."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from planner.answer.assignment import Assignment
from planner.answer.portfolio import Added, OtherWay, Why
from planner.answer.schema import Plan
from planner.render.figures import gap_shown
from planner.render.page import Head, Page
from planner.units import DAY, plural, show_seconds, show_usd

CELLS = 48
"""Of a timeline, so that it fits 80 columns with its labels."""
OUTLAYS = ("Months count what is used up of what is bought; its outlay, on the day it is there, is beside them and in "
           "no sum of them.")
SHADES, ASCII_SHADES = " ░▒▓█", " .:+#"


def is_portfolio(plan: Plan) -> bool:
    """Say whether a plan is of many jobs."""
    return "jobs" in plan.provenance.scenario or any(assignment.job for assignment in plan.assignments)


def portfolio_sentence(plan: Plan) -> str:
    """Return what is planned, what it costs, and how far that is proven."""
    planned = {(a.job, a.workload) for a in plan.assignments if a.status == "planned"}
    pools = {a.pool or (a.node, a.offer) for a in plan.assignments if a.status == "planned"}
    rejected = [a for a in plan.assignments if a.status == "rejected"]
    late = [a for a in plan.assignments if a.late_days]
    parts = [f"{plural(len(planned), 'job')} on {plural(len(pools), 'pool')}"]
    parts += [f"{len(late):,} of them late"] if late else []
    parts += [f"{plural(len(rejected), 'job')} rejected"] if rejected else []
    gap = plan.objective.gap
    proof = ("proven optimal" if plan.status == "optimal" else "not proven" if gap is None
             else f"not proven, within {gap_shown(gap)} of the best possible")
    body = f"{', '.join(parts)}, for {plan.objective.shown()}"
    return f"{'Cheapest' if plan.status == 'optimal' else 'Best found'}: {body} ({proof})"


def show_portfolio(page: Page, plan: Plan, *, full: bool = False) -> None:
    """Print the timeline, the jobs, the supply, the months and the proof; in full with the reasons of every job."""
    start, end = span(plan)
    page.heading(f"Timeline, {start:%Y-%m-%d} to {end:%Y-%m-%d}")
    page.table((Head("pool and jobs"), Head("use", whole=True)), list(_timeline(page, plan, start, end)))
    if plan.added is not None:
        _show_added(page, plan.added)
    page.heading("Jobs")
    page.table((Head("job"), Head("on"), Head("start", True), Head("end", True), Head("takes", True)),
               [job_row(a) for a in plan.assignments])
    _show_why(page, plan, full=full)
    page.heading("Supply")
    page.table((Head("pool"), Head("nodes", True), Head("in use", True), Head("from", True), Head("until", True),
                Head("USD", True)),
               [(line, f"{nodes:,}", f"{in_use(plan, line):.0%}", first[:10], last[:10], f"{usd:,.2f}")
                for line, nodes, first, last, usd in _supply(plan)])
    page.heading("Money by month")
    paid = outlays(plan)
    rows = [(cash.month, f"{cash.usd:,.2f}", f"{paid.get(cash.month, 0.0):,.2f}") for cash in plan.cash]
    rows.append(("all", f"{sum(cash.usd for cash in plan.cash):,.2f}", f"{sum(paid.values()):,.2f}"))
    heads = (Head("month"), Head("USD", True), Head("outlay of purchases", True))
    page.table(heads[:3 if paid else 2], [row[:3 if paid else 2] for row in rows], totals=1)
    if paid:
        page.paragraph(OUTLAYS)
    page.heading("Proof")
    value, bound = plan.objective.value, plan.objective.bound
    assert value is not None
    proven = (f"proven optimal: exact value {value:,.2f} USD = exact bound" if plan.status == "optimal"
              else f"not proven: value {value:,.2f} USD, no bound" if bound is None or plan.objective.gap is None
              else f"not proven: value {value:,.2f} USD, bound {bound:,.2f} USD, gap {gap_shown(plan.objective.gap)}")
    left = plan.search.removed.get("not_offered", 0)
    page.facts([("status", proven),
                ("columns", f"{plan.search.staged:,} layouts staged exactly" + (
                    f"; {left:,} columns were left out, evenly between those offered; the bound holds for them too"
                    if left else "")),
                ("search time", show_seconds(plan.search.wall_seconds))])


def _show_why(page: Page, plan: Plan, *, full: bool) -> None:
    """Print what would admit jobs that are rejected or late; in full why every job is as it is."""
    reasons = reasons_of(plan, full=full)
    if reasons:
        page.heading("Why so, with all other jobs where they are" if full else "Why rejected or late")
    for name, why in reasons:
        page.paragraph(f"{name}: {why.start}.")
        page.facts([("enough", f"{change.limit} {change.to} instead of {change.from_}") for change in why.admits])
        if full:
            page.facts([(f"{way.pool if way.nodes is None else f'{way.nodes:,} x {way.pool}'}", _against(way))
                        for way in why.others])


def reasons_of(plan: Plan, *, full: bool = False) -> list[tuple[str, Why]]:
    """Return why jobs are rejected or late, or in full why every job is as it is; those alike together."""
    alike: dict[tuple[str, Why], list[str]] = {}
    for a in plan.assignments:
        if a.reasons is not None and (full or a.status == "rejected" or a.late_days):
            names = alike.setdefault((a.job or "", a.reasons), [])
            names += [a.workload] if a.workload not in names else []
    return [(f"{names[0]}{f' to {names[-1]}' if len(names) > 1 else ''}", why) for (_, why), names in alike.items()]


def _against(way: OtherWay) -> str:
    return f"from {way.start[:10]}: {way.because}" if way.start else way.because


def _show_added(page: Page, added: Added) -> None:
    page.heading(f"Added: {', '.join(added.jobs)}")
    page.facts([("in the plan", "yes" if added.admitted else "no: it is rejected"),
                ("costs", "the jobs before have no plan to compare with" if added.usd is None
                 else f"{'-' if added.usd < 0 else ''}{show_usd(abs(added.usd))} more over all jobs"),
                *((moved.workload, f"{moved.was} -> {moved.now}") for moved in added.moved)])
    if not added.moved and added.usd is not None:
        page.paragraph("No other job moves.")


def outlays(plan: Plan) -> dict[str, float]:
    """Return what purchases take out of the purse, in USD, by the month in which the nodes are there."""
    paid: dict[str, float] = {}
    for supply in plan.supply:
        if supply.capital_usd is not None:
            paid[supply.start[:7]] = paid.get(supply.start[:7], 0.0) + supply.capital_usd
    return paid


def span(plan: Plan) -> tuple[datetime, datetime]:
    """Return the first and last moment that a timeline shows."""
    moments = [moment(text) for period in plan.periods for text in (period.start, period.end)]
    return min(moments), max(moments)


def moment(text: str) -> datetime:
    """Return a moment of a plan."""
    return datetime.fromisoformat(text.removesuffix("Z"))


def _timeline(page: Page, plan: Plan, start: datetime, end: datetime) -> list[tuple[str, str]]:
    """Return for every pool how full it is, and below it a bar of every job on it."""
    rows: list[tuple[str, str]] = []
    shades = SHADES if page.unicode else ASCII_SHADES
    seconds = (end - start).total_seconds()
    for pool in dict.fromkeys(period.pool for period in plan.periods):
        mine = [(moment(p.start), moment(p.end), p.serving + p.training, p.available)
                for p in plan.periods if p.pool == pool]
        most = max(there for *_, there in mine)
        cells = [_share(mine, start, seconds, cell, most) for cell in range(CELLS)]
        rows.append((f"{pool}, {most:,} at most", "".join(shades[-(-round(4 * c * 1000) // 1000)] for c in cells)))
        rows += [(f"  {assignment.workload} ({assignment.nodes + assignment.spare_nodes:,})",
                  _bar(assignment, start, seconds, shades[-1]))
                 for assignment in on_pool(plan, pool)]
    return rows


def on_pool(plan: Plan, pool: str) -> list[Assignment]:
    """Return what runs on a pool, in the order of the plan."""
    # plans of earlier releases do not say the pool; an offer alone is not one: all purchases are of one
    offers = {(supply.node, supply.offer) for supply in plan.supply if supply.pool == pool}
    return [a for a in plan.assignments if a.status == "planned"
            and (a.pool == pool if a.pool else (a.node, a.offer) in offers)]


def in_use(plan: Plan, pool: str) -> float:
    """Return the share of a pool's node-hours, while there are nodes, in which jobs or services are on them."""
    busy = there = 0.0
    for period in plan.periods:
        if period.pool == pool:
            seconds = (moment(period.end) - moment(period.start)).total_seconds()
            busy += seconds * (period.serving + period.training)
            there += seconds * period.available
    return busy / there if there else 0.0


def _share(rows: Sequence[tuple[datetime, datetime, int, int]], start: datetime, seconds: float, cell: int,
           most: int) -> float:
    """Return the share of a pool's nodes that is in use on average in one cell."""
    low, high = (seconds * edge / CELLS for edge in (cell, cell + 1))
    total = 0.0
    for first, then, busy, _ in rows:
        inside = min(high, (then - start).total_seconds()) - max(low, (first - start).total_seconds())
        total += max(0.0, inside) * busy
    return min(1.0, total / (high - low) / most)


def _bar(assignment: Assignment, start: datetime, seconds: float, full: str) -> str:
    """Return when a job runs: every cell in which it does at all."""
    cells = [" "] * CELLS
    for segment in assignment.segments or ():
        first, then = ((moment(text) - start).total_seconds() / seconds * CELLS
                       for text in (segment.start, segment.end))
        for cell in range(int(first), max(int(first) + 1, -(-round(then * 1000) // 1000))):
            if cell < CELLS:
                cells[cell] = full
    return "".join(cells).rstrip()


def job_row(a: Assignment) -> tuple[str, str, str, str, str]:
    """Return a job as it is listed: name, nodes, start, end, time of work; what is short has hours beside its dates."""
    on = f"{a.nodes + a.spare_nodes:,} x {a.node}"
    if a.status == "rejected":
        return a.workload, f"rejected; least dear on {on}", "", "", ""
    late = f", {show_seconds(a.late_days * DAY)} late" if a.late_days else ""
    pauses = f", {plural(len(a.segments) - 1, 'pause')}" if a.kind == "training" and a.segments and len(
        a.segments) > 1 else ""
    taken = sum((moment(segment.end) - moment(segment.start)).total_seconds() for segment in a.segments or ())
    start, end = ((when or "")[:16 if taken < 2 * DAY else 10].replace("T", " ") for when in (a.start, a.end))
    return a.workload, f"{on} ({a.sourcing}){pauses}{late}", start, end, show_seconds(taken)


def _supply(plan: Plan) -> list[tuple[str, int, str, str, float]]:
    """Return the supply with what is taken by the job together: nodes at most, first and last day, money."""
    pools: dict[str, list[tuple[int, str, str, float]]] = {}
    for supply in plan.supply:
        kept = pools.setdefault(supply.pool, [])
        if supply.sourcing in ("rent", "spot") and kept:
            nodes, first, last, usd = kept[0]
            kept[0] = max(nodes, supply.nodes), min(first, supply.start), max(last, supply.end), usd + supply.usd
        else:
            kept.append((supply.nodes, supply.start, supply.end, supply.usd))
    return [(pool, *row) for pool, rows in pools.items() for row in rows]
