"""The page: what a plan says, drawn, with the sources of what decided it. One string; no script, no network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from typing import Any

from markupsafe import Markup

from planner.answer.assignment import Alternative, Assignment
from planner.answer.breakdown import Memory
from planner.answer.relaxation import Relaxation
from planner.answer.schema import Plan
from planner.catalog.addresses import address_in
from planner.catalog.figures import figures
from planner.catalog.load import Catalog
from planner.catalog.sourced import Sourced
from planner.errors import UnknownName
from planner.layouts.candidate import Candidate
from planner.money.rent import offered, usual_candidate
from planner.render.facts import FigurePart, LabeledFigure, facts, latencies, memory_parts, time_parts
from planner.render.figures import bill, percent
from planner.render.layout_text import brief
from planner.render.portfolio import OUTLAYS, is_portfolio, job_row, outlays, reasons_of
from planner.render.proof import defaults_sentence
from planner.render.report.charts import by_days_and_cost, rent_against_buy
from planner.render.report.runs import published_runs
from planner.render.report.schedule import cash, gantt
from planner.render.report.templates import templates
from planner.render.sentence import close_call_sentence, no_deadline_sentence
from planner.render.summary import fleet_rows
from planner.render.tables import MOST_LISTED, render_answer_line
from planner.render.topology_svg import topology_svg
from planner.render.verdict import verdict, whose_peak
from planner.scenario.limits import Sourcing
from planner.scenario.sites import site_of
from planner.units import GIB, show_days, show_seconds, show_usd


def report(plan: Plan, catalog: Catalog, *, part: bool = False,
           link: Callable[[Alternative], str | None] = lambda _: None,
           eased: Callable[[Relaxation], str | None] = lambda _: None,
           told: Callable[[str], str] = str) -> str:
    """Return the page of a plan. Facts come from `catalog`, which should be the one the plan was made with.

    part: only what stands in the body, for a page that has its own head; link: where more of an alternative is told;
    eased: where the same is asked with one limit changed; told: a note, with links to what it proposes.
    """
    first = plan.assignments[0] if plan.assignments else None
    common = {"part": part, "plan": plan, "eased": eased, "told": told, "sentence": render_answer_line(plan),
              "name": plan.provenance.scenario.get("name", "Plan"),
              "asides": [*filter(None, (no_deadline_sentence(plan), close_call_sentence(plan, settled=True)))],
              "defaults": defaults_sentence(plan.provenance, MOST_LISTED), "percent": percent,
              "sources": list(_sources(plan, catalog)), "address": address_in,
              "other_catalog": plan.provenance.catalog_digest not in ("", catalog.digest)}
    if is_portfolio(plan):
        return templates().get_template("portfolio.html.j2").render(
            **common, jobs=[_dated(assignment) for assignment in plan.assignments],
            timeline=_drawn(gantt(plan)) if first else None, cash=_drawn(cash(plan)) if first else None,
            paid=outlays(plan), outlays=OUTLAYS, reasons=reasons_of(plan))
    candidate = _candidate(first, catalog) if first else None
    return templates().get_template("page.html.j2").render(
        **common, first=first, fleet=(fleet := _fleet(plan.assignments)),
        rest=[] if fleet else [_held(assignment) for assignment in plan.assignments[1:]],
        facts=_grouped(first) if first else {}, levels=latencies(first.serving) if first and first.serving else None,
        memory=memory_shares(first.memory) if first else [], time=time_parts(first.time) if first else [],
        bill=bill(first.purchase) if first and first.purchase else [],
        others=[_other(alternative) | {"link": link(alternative)} for alternative in plan.alternatives],
        verdict=verdict, whose_peak=whose_peak, rent_or_buy=rent_against_buy(plan),
        trades=_drawn(by_days_and_cost(plan)),
        is_frontier=set(plan.provenance.pareto or ()) == {"cost_usd", "duration_days"},
        picture=_drawn(topology_svg(candidate)) if candidate else None,
        runs=published_runs(first, catalog) if first else None,
        gib=lambda value: f"{value / GIB:,.1f} GiB", seconds=show_seconds)


def _drawn(svg: str | None) -> Markup | None:
    return None if svg is None else Markup(svg)


def _grouped(a: Assignment) -> dict[str, list[LabeledFigure]]:
    return {group: list(each) for group, each in groupby(facts(a), lambda fact: fact.group)}


def memory_shares(memory: Memory) -> list[FigurePart]:
    """Return what takes a GPU's memory, and what is free."""
    free = memory.usable_bytes - memory.peak_bytes
    left = [FigurePart("free", f"{free / GIB:,.2f}", "GiB", free / memory.usable_bytes)] if free > 0 else []
    # what does not fit is more than all there is
    scale = max(1.0, memory.peak_bytes / memory.usable_bytes)
    return [*(replace(part, share=part.share / scale) for part in memory_parts(memory)), *left]


def _held(a: Assignment) -> tuple[str, str, str]:
    """Return a further assignment as name, hardware and layout."""
    return a.workload, f"{a.gpus:,} x {a.gpu}", brief(a)


def _fleet(made: Sequence[Assignment]) -> tuple[list[str], list[tuple[str, ...]]] | None:
    """Return the heads and rows of replicas of several kinds, or of several services; none of one alone."""
    if len(made) < 2 or any(a.serving is None for a in made):
        return None
    heads, rows = fleet_rows(made)
    return [head.label.replace("\n", " ") for head in heads], rows


def _dated(a: Assignment) -> tuple[str, ...]:
    """Return a job of many as name, hardware, layout, start, end and how long it works."""
    job, on, *when = job_row(a)
    return job, on, brief(a), *when


def _other(a: Alternative) -> dict[str, Any]:
    return {"hardware": f"{a.nodes:,} x {a.node}", "offer": a.offer or "", "layout": brief(a),
            "days": "" if a.duration_days is None else show_days(a.duration_days),
            "cost": "" if a.cost_usd is None else show_usd(a.cost_usd), "why": a.reason}


def _candidate(a: Assignment, catalog: Catalog) -> Candidate | None:
    """Return the hardware that a plan was made for; none where this catalog does not have it."""
    named = offered(a.offer, catalog) if a.offer else None
    if named is not None:
        return named[0]
    try:
        return usual_candidate(catalog.node(a.node), catalog)
    except UnknownName:
        return None


def _sources(plan: Plan, catalog: Catalog) -> Iterator[tuple[str, str, str, str]]:
    """Yield entry and figure, value, source with its date, and how sure it is, of what the plan rests on, each once.

    Of a plan of many jobs all of them count, of another the first.
    """
    rows = (row for a in plan.assignments[:None if is_portfolio(plan) else 1] for row in _behind(plan, a, catalog))
    yield from dict.fromkeys(rows)


def _behind(plan: Plan, a: Assignment, catalog: Catalog) -> Iterator[tuple[str, str, str, str]]:
    named = offered(a.offer, catalog) if a.offer else None
    if named is not None:
        _, prices, offer = named
        source, as_of = offer.source or prices.source, offer.as_of or prices.as_of
        yield f"price: {a.offer}", f"{offer.price:,.6g} USD/h", f"{source} ({as_of})", offer.kind or prices.kind
    for item in a.purchase.bill if a.purchase else ():
        yield f"purchase: {item.item}", show_usd(item.unit_usd), f"{item.source} ({item.as_of})", item.kind
    for entry in _entries(plan, a, catalog):
        for figure in figures(entry):
            fact = figure.fact
            yield f"{entry.name}: {figure.path}", figure.value, f"{fact.source} ({fact.as_of})", fact.kind


def _entries(plan: Plan, a: Assignment, catalog: Catalog) -> Iterator[Sourced]:
    candidate, asked = _candidate(a, catalog), plan.provenance.scenario
    if candidate is not None:
        yield candidate.gpu
        yield candidate.node
        yield candidate.fabric
    if a.offer and offered(a.offer, catalog) is None:
        told = asked.get("sourcing") or {}  # of many jobs it has other keys than of one
        with suppress(UnknownName):
            yield site_of(Sourcing.model_validate({key: told[key] for key in ("site", "electricity") if key in told}),
                          catalog)
    mine = next((job for job in asked.get("jobs", ()) if job["name"] == a.job), asked)
    with suppress(UnknownName):
        yield catalog.model(str((mine.get("workload") or {}).get("model", "")))
    yield catalog.reliability
