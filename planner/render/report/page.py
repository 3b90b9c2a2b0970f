"""The page: what a plan says, drawn, with the sources of what decided it. One string; no script, no network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from planner.answer.assignment import Alternative, Assignment
from planner.answer.schema import Plan
from planner.catalog.figures import figures
from planner.catalog.load import Catalog
from planner.catalog.sourced import Sourced
from planner.errors import UnknownName
from planner.layouts.candidate import Candidate
from planner.money.rent import offered, usual_candidate
from planner.render.figures import days, percent
from planner.render.layout_text import brief
from planner.render.report.money import by_days_and_cost, rent_against_buy
from planner.render.tables import render_answer_line
from planner.render.topology_svg import topology_svg
from planner.units import GIB, plural, round_up, show_kwh, show_seconds, show_usd


@dataclass(frozen=True, slots=True)
class Bar:
    """A named share of a whole, 0 to 1, with its value as text."""

    name: str
    value: str
    share: float


def report(plan: Plan, catalog: Catalog) -> str:
    """Return the page of a plan. Facts come from `catalog`, which should be the one the plan was made with."""
    pages = Environment(loader=PackageLoader("planner.render.report", "."), autoescape=True,
                        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    first = plan.assignments[0] if plan.assignments else None
    candidate = _candidate(first, catalog) if first else None
    return pages.get_template("page.html.j2").render(
        plan=plan, first=first, sentence=render_answer_line(plan), rest=[_held(one) for one in plan.assignments[1:]],
        name=plan.provenance.scenario.get("name", "Plan"),
        numbers=[*_numbers(first), *_service(first)] if first else [], layout=brief(first.layout) if first else "",
        memory=_memory(first) if first else [], time=_time(first) if first else [],
        others=[_other(one) for one in plan.alternatives],
        rent_or_buy=_drawn(rent_against_buy(plan)), trades=_drawn(by_days_and_cost(plan)),
        picture=_drawn(topology_svg(candidate)) if candidate else None,
        sources=list(_sources(plan, first, catalog)) if first else [],
        other_catalog=plan.provenance.catalog_digest not in ("", catalog.digest),
        show_usd=show_usd, gib=lambda value: f"{value / GIB:,.1f} GiB", seconds=show_seconds, percent=percent)


def _drawn(svg: str | None) -> Markup | None:
    return None if svg is None else Markup(svg)


def _service(a: Assignment) -> Iterator[tuple[str, str]]:
    """Yield what a service gets: rate, latencies as computed and as replayed."""
    served = a.serving
    if served is None:
        return
    yield "serves", f"{served.requests_per_second:,.4g} requests/s over {plural(served.replicas, 'replica')}"
    for label, name in (("TTFT", "ttft_seconds"), ("TPOT", "tpot_seconds")):
        computed = getattr(served, name)
        text = f"{show_seconds(computed.p50)} (half), {show_seconds(computed.p95)} (95% of requests)"
        if served.replayed is not None:
            found = getattr(served.replayed, name)
            text += f"; replayed {show_seconds(found.p50)}, {show_seconds(found.p95)}"
        yield label, text
    if served.replayed is not None:
        within = percent(served.replayed.share_within_level)
        yield "replay", f"{served.replayed.requests:,} requests, {within} within every level"
    yield "cache", f"{served.kv_tokens:,} tokens a replica, {plural(served.max_batch, 'sequence')} at most"


def _numbers(a: Assignment) -> Iterator[tuple[str, str]]:
    yield "GPUs", f"{a.gpus:,} x {a.gpu}"
    yield "nodes", f"{a.nodes:,} x {a.node}" + (f" and {a.spare_nodes:,} spare" if a.spare_nodes else "")
    if a.duration_days is not None:
        low, high = (days(a.duration_days * end / a.time.step_seconds) for end in a.time.interval90_seconds)
        yield "duration", f"{days(a.duration_days)}, 90% interval {low} to {high}"
    if a.cost_usd is not None:
        yield "cost", show_usd(a.cost_usd)
    if a.usd_per_node_hour is not None:
        yield "price", f"{a.usd_per_node_hour:,.2f} USD/h per node, {a.offer}"
    low, high = (show_seconds(end) for end in a.time.interval90_seconds)
    yield "step", f"{show_seconds(a.time.step_seconds)}, 90% interval {low} to {high}"
    yield "MFU", f"{a.time.mfu:.3f} ({a.time.model_tflops_per_gpu:,.0f} TFLOP/s/GPU)"
    yield "speed", f"{a.time.tokens_per_second_per_gpu:,.0f} tokens/s/GPU"
    if a.goodput is not None:
        yield "goodput", f"{percent(a.goodput)} of the time moves the work forward"
    if a.energy_kwh is not None:
        yield "energy", show_kwh(a.energy_kwh)


def _memory(a: Assignment) -> list[Bar]:
    held = {name: float(value) for name, value in a.memory.components.model_dump().items() if value}
    held["free"] = max(0.0, float(a.memory.usable_bytes - a.memory.peak_bytes))
    whole = max(a.memory.usable_bytes, a.memory.peak_bytes, 1)
    return [Bar(_plain(name), f"{value / GIB:,.2f} GiB", value / whole) for name, value in held.items()]


def _time(a: Assignment) -> list[Bar]:
    spent = {name: value for name, value in a.time.components.model_dump().items() if value}
    return [Bar(_plain(name), f"{value * 1e3:,.1f} ms, {value / a.time.step_seconds:.1%}", value / a.time.step_seconds)
            for name, value in spent.items()]


def _held(a: Assignment) -> tuple[str, str, str]:
    """Return a further assignment as name, hardware and layout."""
    return a.workload, f"{a.gpus:,} x {a.gpu}", brief(a.layout)


def _plain(name: str) -> str:
    return name.replace("_", " ").replace("kv ", "KV ").replace("p2p", "p2p sends")


def _other(a: Alternative) -> dict[str, Any]:
    return {"hardware": f"{a.nodes:,} x {a.node}", "offer": a.offer or "", "layout": brief(a.layout),
            "days": "" if a.duration_days is None else f"{round_up(a.duration_days, 1):,}",
            "cost": "" if a.cost_usd is None else show_usd(a.cost_usd), "why": ("tied: " if a.tied else "") + a.why}


def _candidate(a: Assignment, catalog: Catalog) -> Candidate | None:
    """Return the hardware that a plan was made for; none where this catalog does not have it."""
    named = offered(a.offer, catalog) if a.offer else None
    if named is not None:
        return named[0]
    try:
        return usual_candidate(catalog.node(a.node), catalog)
    except UnknownName:
        return None


def _sources(plan: Plan, a: Assignment, catalog: Catalog) -> Iterator[tuple[str, str, str, str]]:
    """Yield entry and figure, value, source with its date, and how sure it is, of what the plan rests on."""
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
        with suppress(UnknownName):
            yield catalog.site((asked.get("sourcing") or {}).get("site", ""))
    with suppress(UnknownName):
        yield catalog.model(str((asked.get("workload") or {}).get("model", "")))
    yield catalog.reliability
