"""Answers as parts of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from planner.answer.assignment import Assignment
from planner.answer.comparison import Row
from planner.answer.explanation import Explanation
from planner.answer.schema import Plan
from planner.answer.sizing import Sizing
from planner.ask.compare import Compared, notes_on
from planner.ask.estimate import Estimating
from planner.ask.fastest import Estimated
from planner.ask.rent_or_buy import Havings
from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.physics.shapes import parameters
from planner.render.comparison import BOUGHT, margin, of_services, purchases, render_comparison_line, swings
from planner.render.comparison_lines import MOST_ROWS, of_portfolio, show_behind
from planner.render.explanation import write_explanation
from planner.render.facts import LabeledFigure, facts, latencies, time_parts
from planner.render.figures import percent
from planner.render.rent_or_buy import rent_or_buy_line, write_ways
from planner.render.report.charts import rows_by_days_and_cost, ways_over_time
from planner.render.report.page import memory_shares, report
from planner.render.report.sheet import HtmlSheet
from planner.render.report.templates import templates as compiled
from planner.render.sentence import estimate_sentence
from planner.render.serving import capacity_sentence
from planner.render.sizing import write_sizing
from planner.render.summary import evidence_line
from planner.render.verdict import verdict, verdict_color, whose_peak
from planner.scenario.default import Defaults
from planner.scenario.flags import TABLE
from planner.units import GIB, show_count, show_seconds, show_usd
from planner.web.compared import heads_and_cells
from planner.web.forms import SLIDERS
from planner.web.links import asked, eased, linked, opened, planned, without_offload
from planner.web.question import PASTED, Verb
from planner.web.wording import address

NOTHING = "<span data-nothing hidden></span>"
"""Says to a page that there is no plan, and so nothing to start."""
FRONTIER = "cost,days"
"""The objectives of the frontier that a click asks for."""


def templates() -> Environment:
    """Return the templates of the pages."""
    return compiled("planner.web", "templates")


def shown(made: Plan | Explanation, question: Verb, catalog: Catalog) -> str:
    """Return an answer as a part of a page."""
    if isinstance(made, Plan):
        page = report(made, catalog, part=True, link=lambda other: opened(other, question, catalog),
                      eased=lambda change: eased(change, question), told=lambda note: linked(note, question))
        return f"{page}{_frontier(made, question)}{'' if made.assignments else NOTHING}"
    sheet = HtmlSheet()
    write_explanation(made, sheet)
    return sheet.html()


def _frontier(made: Plan, question: Verb) -> str:
    """Return a link that asks for the exact frontier, of work that ends and is alone."""
    alone = len(made.assignments) == 1 and made.assignments[0].duration_days is not None and (
        made.assignments[0].kind == "training") and "jobs" not in made.provenance.scenario
    if not alone or "pareto" in question.values:
        return ""
    return Markup('<p><a href="/plan?{}">The exact frontier of cost and days</a></p>').format(
        address(replace(question, values={**question.values, "pareto": FRONTIER})))


def shown_sizing(sizing: Sizing) -> str:
    """Return how many nodes a log of jobs needs as a part of a page."""
    sheet = HtmlSheet()
    write_sizing(sizing, sheet)
    return sheet.html()


def shown_ways(found: Havings) -> str:
    """Return what hardware costs to rent and to buy as a part of a page."""
    sheet = HtmlSheet()
    sheet.paragraph(rent_or_buy_line(found), "bold")
    drawn = ways_over_time(found)
    if drawn:
        sheet.parts.append(Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(*drawn))
    write_ways(found, sheet, full=True)
    return sheet.html()


def shown_line(text: str) -> str:
    """Return an answer of one line as a part of a page."""
    sheet = HtmlSheet()
    sheet.paragraph(text, "bold")
    return sheet.html()


def of_config(model: Model) -> str:
    """Return of which model an answer is, where no name asked for it."""
    named = "" if model.name == PASTED else f", {model.name}"
    return f"For the model of the pasted config{named}: {show_count(parameters(model))} parameters"


def shown_asides(lines: Sequence[str]) -> str:
    """Return what stands before an answer as a part of a page; nothing of no lines."""
    return str(Markup("").join(Markup('<p class="muted">{}</p>').format(line) for line in lines))


def shown_config(notes: Sequence[str]) -> str:
    """Return what was read of a config, and what was not, as a part of a page."""
    sheet = HtmlSheet()
    sheet.heading("Read from the config")
    sheet.items(notes)
    return sheet.html()


def shown_comparison(found: list[Compared], defaults: Defaults, question: Verb, catalog: Catalog) -> str:
    """Return a comparison as a part of a page, with how far its best rows would move."""
    plans = [compared for compared in found if compared.assignments]
    rows = [compared.row for compared in plans]
    behind = HtmlSheet()
    show_behind(behind, plans)

    def link(row: Row) -> str:
        return planned(_of_model(question, row.model), row.node, row.kind, row.offer, catalog)
    moves = [] if of_services(plans) or of_portfolio(plans) else swings(plans)
    widest = max((swing.high - swing.low for _, moved in moves for swing in moved), default=0.0) or 1.0
    bought, against = purchases(plans)
    heads, cells = heads_and_cells(plans)
    return templates().get_template("comparison.html.j2").render(
        rows=[(row, link(row)) for row in rows], headline=render_comparison_line(found), heads=heads, cells=cells,
        without=[(row, link(row)) for row in (compared.row for compared in found if not compared.assignments)],
        notes=notes_on(plans, defaults, catalog, MOST_ROWS), behind=behind.html(),
        is_told={row.status for row in rows} != {"optimal"},
        frontier=asked(question, "/plan", {"pareto": FRONTIER}), drawn=Markup(rows_by_days_and_cost(rows) or ""),
        moves=moves, widest=widest, margin=margin(plans) if moves else "", usd=show_usd, bought=bought,
        bought_heads=BOUGHT, against=against)


def _of_model(question: Verb, model: str | None) -> Verb:
    """Return a question about one of the models that it compares."""
    return question if model is None else replace(question, values={**question.values, "model": model})


def shown_estimate(question: Verb, asking: Estimating, estimated: Estimated, found: str = "") -> str:
    """Return an estimate as a part of a page; what takes longer than the verdict is asked by the page after it.

    found: what is the largest that fits, where it was looked for.
    """
    a = estimated.assignment
    moved = a.layout.offload
    sentence = (capacity_sentence(a, asking.rate, offline=asking.is_offline) if a.serving else
                estimate_sentence(a, asking.scenario.confidence))
    groups: dict[str, list[Any]] = {}
    told = facts(a, asking.scenario.confidence)
    for fact in told:
        groups.setdefault(fact.group, []).append(fact)
    return templates().get_template("estimate.html.j2").render(
        a=a, sentence=found or sentence, why=[linked(line, question) for line in (
            *([sentence] if found else []), *estimated.why)], largest=bool(found),
        notes=asking.notes, idle=asking.left_to_plan, memory=memory_shares(a.memory), time=time_parts(a.time),
        groups=groups, runs=a.time.evidence and a.time.evidence.alike,
        used=_used(a), has_levers=a.serving is None or a.serving.made is None,
        levels=latencies(a.serving) if a.serving else None, percent=percent, seconds=show_seconds,
        verdict=verdict, whose_peak=whose_peak, shape=_shape(a, asking, told), look=verdict_color(a.memory),
        evidence=evidence_line({(fact.group, fact.label): fact.value for fact in told}),
        gib=lambda value: f"{value / GIB:,.1f} GiB", plan=asked(question, "/plan", {"on": a.node}),
        asked=address(question), without_offload=without_offload(question, asking) if a.kind == "training" and (
            moved.optimizer or moved.parameters or moved.activations) else None)


def _shape(a: Assignment, asking: Estimating, told: Sequence[LabeledFigure]) -> str:
    """Return which model an estimate is of, by which stack on what, and how, in words."""
    asked, catalog = str(getattr(asking.scenario.workload, "model", "")), asking.catalog
    model = catalog.known_diffusion(asked) or catalog.known_model(asked)
    said = {fact.label: fact.value for fact in told if fact.group == "layout"}
    by = f"{said['framework']} with {a.stack}" if "framework" in said else a.stack
    return f"{model.name if model else asked} by {by} on {a.gpus:,} x {a.gpu}: {said['in words']}"


def _used(a: Assignment) -> dict[str, float]:
    """Return of the fields that sliders move what an estimate is of, where nobody said it."""
    asked = {**(a.asked or {}), "sequence_length": a.sequence_length, "global_batch": a.global_batch} if (
        a.kind == "training") else a.asked or {}
    values = {name: asked.get(TABLE[name].path.rpartition(".")[2]) for name in SLIDERS} | {"gpus": a.gpus}
    means = {name: value.get("mean") if isinstance(value, dict) else value for name, value in values.items()}
    return {name: value for name, value in means.items() if isinstance(value, int | float)}
