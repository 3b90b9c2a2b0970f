"""Answers as parts of a page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from planner.answer.assignment import Alternative
from planner.answer.explanation import Explanation
from planner.answer.layout import Layout
from planner.answer.schema import Plan
from planner.answer.sizing import Sizing
from planner.ask.compare import Compared
from planner.ask.estimate import HEARD, Estimating
from planner.ask.fastest import Estimated
from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.physics.shapes import parameters
from planner.render.breakdown import verdict
from planner.render.comparison import BOUGHT, margin, of_services, purchases, swings
from planner.render.comparison_lines import of_portfolio
from planner.render.explanation import write_explanation
from planner.render.facts import facts, latencies, time_parts
from planner.render.figures import percent
from planner.render.report.charts import rows_by_days_and_cost
from planner.render.report.page import memory_shares, report
from planner.render.report.sheet import HtmlSheet
from planner.render.report.templates import templates as compiled
from planner.render.sentence import estimate_sentence
from planner.render.serving import capacity_sentence
from planner.render.sizing import write_sizing
from planner.scenario.flags import NAMES, TABLE
from planner.units import GIB, show_count, show_seconds, show_usd
from planner.web.question import Question
from planner.web.wording import address

_SAID = re.compile(r"--(?P<name>[a-z][a-z-]{0,40}) (?P<values>[a-z0-9]{1,40}(?: or [a-z0-9]{1,40}){0,8})")
"""An option with a value, or with several of which each would do."""


def templates() -> Environment:
    """Return the templates of the pages."""
    return compiled("planner.web", "templates")


def shown(made: Plan | Explanation, question: Question, catalog: Catalog) -> str:
    """Return an answer as a part of a page."""
    if isinstance(made, Plan):
        return report(made, catalog, part=True, link=lambda other: _opened(other, question))
    sheet = HtmlSheet()
    write_explanation(made, sheet)
    return sheet.html()


def shown_sizing(sizing: Sizing) -> str:
    """Return how many nodes a log of jobs needs as a part of a page."""
    sheet = HtmlSheet()
    write_sizing(sizing, sheet)
    return sheet.html()


def shown_line(text: str) -> str:
    """Return an answer of one line as a part of a page."""
    sheet = HtmlSheet()
    sheet.paragraph(text, "bold")
    return sheet.html()


def shown_model(model: Model) -> str:
    """Return of which model an answer is, where no name asked for it, as a part of a page."""
    sheet = HtmlSheet()
    sheet.paragraph(f"For {model.name}, the model of the pasted config, of {show_count(parameters(model))} parameters")
    return str(sheet.html())


def shown_config(notes: Sequence[str]) -> str:
    """Return what was read of a config, and what was not, as a part of a page."""
    sheet = HtmlSheet()
    sheet.heading("Read from the config")
    sheet.items(notes)
    return sheet.html()


def shown_comparison(plans: list[Compared], headline: str, question: Question) -> str:
    """Return a comparison as a part of a page, with how far its best rows would move."""
    rows = [compared.row for compared in plans]
    moves = [] if of_services(plans) or of_portfolio(plans) else swings(plans)
    widest = max((swing.high - swing.low for _, moved in moves for swing in moved), default=0.0) or 1.0
    bought, against = purchases(plans)
    return templates().get_template("comparison.html.j2").render(
        rows=rows, headline=headline, drawn=Markup(rows_by_days_and_cost(rows) or ""),
        links=[_planned(question, row.node, row.offer if row.kind == "rent" else None) for row in rows],
        moves=moves, widest=widest, margin=margin(plans) if moves else "", usd=show_usd, bought=bought,
        heads=BOUGHT, against=against)


def shown_estimate(question: Question, asking: Estimating, estimated: Estimated, found: str = "") -> str:
    """Return an estimate as a part of a page; what takes longer than the verdict is asked by the page after it.

    found: what is the largest that fits, where it was looked for.
    """
    a = estimated.assignment
    moved = a.layout.offload
    sentence = (capacity_sentence(a, asking.rate, offline=asking.is_offline) if a.serving else
                estimate_sentence(a, asking.scenario.confidence))
    groups: dict[str, list[Any]] = {}
    for fact in facts(a, asking.scenario.confidence):
        groups.setdefault(fact.group, []).append(fact)
    return templates().get_template("estimate.html.j2").render(
        a=a, sentence=found or sentence, why=[linked(line, question) for line in (
            *([sentence] if found else []), *estimated.why)], largest=bool(found),
        notes=asking.notes, idle=asking.left_to_plan, memory=memory_shares(a.memory), time=time_parts(a.time),
        groups=groups, runs=a.time.evidence and a.time.evidence.alike,
        levels=latencies(a.serving) if a.serving else None, percent=percent, seconds=show_seconds,
        verdict=verdict,
        gib=lambda value: f"{value / GIB:,.1f} GiB", plan=_asked(question, "/plan", {"on": a.node}),
        asked=address(question), without_offload=_without_offload(question, asking) if a.kind == "training" and (
            moved.optimizer or moved.parameters or moved.activations) else None)


def linked(line: str, question: Question) -> Markup:
    """Return a line in which options with a value ("--loss fused", "--method qlora or lora") ask so by a click."""
    made, at = Markup(""), 0
    for said in _SAID.finditer(line):
        name, (first, *others) = said["name"].replace("-", "_"), said["values"].split(" or ")
        if name not in TABLE or first not in TABLE[name].choices:
            continue
        before = Markup.escape(line[at:said.start()])
        links = [_again(question, name, first, f"--{said['name']} {first}"),
                 *(_again(question, name, value, value) for value in others)]
        made, at = made + before + Markup(" or ").join(links), said.end()
    return made + Markup.escape(line[at:])


def _again(question: Question, name: str, value: str, text: str) -> Markup:
    """Return a link that asks the same with another value."""
    asked = address(replace(question, values={**question.values, name: value}))
    return Markup('<a href="/?{}">{}</a>').format(asked, text)


def _without_offload(question: Question, asking: Estimating) -> str:
    """Return where the same is estimated with all on the GPUs."""
    kept = {axis: value for axis, value in asking.layout.items() if not axis.startswith("offload")}
    kept |= dict.fromkeys(("offload_optimizer", "offload_parameters", "offload_activations"), "0")
    values = {name: value for name, value in question.values.items() if name != "largest"}
    layout = ",".join(f"{axis}={value}" for axis, value in kept.items())
    return f"/?{address(replace(question, values=values | {'layout': layout}))}"


def _opened(other: Alternative, question: Question) -> str | None:
    """Return where more of an alternative is told: of a layout in training its estimate, else the plan on its nodes."""
    if other.job is not None:
        return None
    text = _layout_text(other.layout) if other.kind == "training" else None
    if text is None:
        return _planned(question, other.node, other.offer)
    heard = {name: value for name, value in question.values.items() if NAMES.get(name, "").startswith(HEARD)}
    return _asked(question, "/", {**heard, **({"precision": other.layout.precision} if "precision" in heard else {}),
                                  "node": other.node, "gpus": other.gpus, "layout": text, "stack": other.stack},
                  own=False)


def _layout_text(layout: Layout) -> str | None:
    """Return a layout as an estimate is told it; none where its stages differ in what no axis tells."""
    kept = {(stage.recompute_layers.none, stage.recompute_layers.selective, stage.recompute_layers.full)
            for stage in layout.stages}
    full = {layers for *_, layers in kept}
    mixed = layout.recompute == "mixed" and (len(full) > 1 or any(selective for _, selective, _ in kept))
    if mixed or len({stage.layers for stage in layout.stages}) > 1:
        return None
    moved = layout.offload
    axes: dict[str, object] = {
        "tp": layout.tp, "pp": layout.pp, "vpp": layout.vpp, "cp": layout.cp, "ep": layout.ep, "zero": layout.zero,
        "mbs": layout.micro_batch, "recompute": min(full) if layout.recompute == "mixed" else layout.recompute,
        "shard": layout.shard, "schedule": layout.schedule,
        "sp": _bit(layout.sequence_parallel) if layout.tp > 1 else None,
        "no_sync": _bit(layout.no_sync), "expert_tp": layout.expert_tp, "offload_optimizer": moved.optimizer or None,
        "offload_parameters": _bit(moved.parameters > 0) or None,
        "offload_activations": _bit(moved.activations > 0) or None,
        "offload_to": "nvme" if moved.to == "nvme" else None}
    return ",".join(f"{axis}={value}" for axis, value in axes.items() if value is not None)


def _bit(value: bool | None) -> int | None:
    return None if value is None else int(value)


def _planned(question: Question, node: str, offer: str | None) -> str:
    """Return where the plan on one node type, of an offer's provider, is asked for."""
    return _asked(question, "/plan", {"on": node, **({"provider": offer.split()[0]} if offer else {})})


def _asked(question: Question, page: str, more: Mapping[str, object], *, own: bool = True) -> str:
    """Return the address of a page that asks the question with some values changed."""
    names = {path: name for name, path in reversed(NAMES.items())}
    values = {names[NAMES[name]]: value for name, value in question.values.items() if name in NAMES and own}
    return f"{page}?{address(replace(question, values=values | dict(more)))}"
