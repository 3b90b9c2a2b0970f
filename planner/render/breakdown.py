"""An assignment in full, as text: its facts, group by group, with tables of stages, bytes, seconds and latencies."""

from __future__ import annotations

from itertools import groupby

from planner.answer.assignment import Assignment
from planner.answer.breakdown import Memory, Time
from planner.answer.layout import Stage
from planner.answer.level import ServingFigures
from planner.render.facts import LabeledFigure, facts, latencies, memory_parts, time_parts
from planner.render.figures import bill, milliseconds, part_of_step, percent
from planner.render.layout_text import uneven
from planner.render.page import Head, Page
from planner.render.verdict import verdict_color, verdict_heading
from planner.units import GIB

_BAR = Head("", style="blue")
_MODES = ("none", "selective", "full")


def show_assignment(page: Page, a: Assignment, confidence: float | None) -> None:
    """Print every group of facts that there is; `confidence` is that of the memory verdict, 0 to 1."""
    # what an engine allocates is its own choice, so that no confidence is asked of it
    confidence = confidence if a.serving is None else None
    groups = {name: list(each) for name, each in groupby(facts(a, confidence), lambda fact: fact.group)}
    page.heading(f"Layout ({a.stack})")
    _show(page, groups["layout"])
    if uneven(a.layout.stages):
        _show_stages(page, a.layout.stages)
    _show_memory(page, a.memory, confidence)
    _show(page, groups.get("memory", []))
    _show_time(page, a.time)
    page.heading("Performance")
    _show(page, groups["performance"])
    if a.serving is not None:
        page.heading("Latency")
        show_latencies(page, a.serving)
        _show(page, groups.get("level", []))
    if "cost" in groups:
        page.heading("Cost")
        _show(page, groups["cost"])
    if a.purchase is not None:
        page.heading("Purchase")
        _show(page, groups["purchase"])
        page.table((Head("bill of materials"), Head("count", True), Head("each", True), Head("USD", True)),
                   bill(a.purchase))


def show_latencies(page: Page, serving: ServingFigures) -> None:
    """Print targets and latencies."""
    heads, rows = latencies(serving)
    page.table([Head(""), *(Head(head.replace(" ", "\n", head != "target"), True) for head in heads)], rows)


def _show(page: Page, group: list[LabeledFigure]) -> None:
    if group:
        page.facts([(fact.label, fact.value) for fact in group])


def _show_memory(page: Page, memory: Memory, confidence: float | None) -> None:
    """Print device memory of the worst stage by component, against what is usable."""
    page.heading(verdict_heading(memory, confidence), verdict_color(memory))
    usable = memory.usable_bytes
    rows = [(part.label, part.number, percent(part.share), page.bar(part.share)) for part in memory_parts(memory)]
    free = usable - memory.peak_bytes
    totals = {"peak, worst stage": memory.peak_bytes, "free" if free >= 0 else "missing": abs(free), "usable": usable}
    rows += [(label, f"{size / GIB:.2f}", percent(size / usable), "") for label, size in totals.items()]
    page.table((Head("component"), Head("GiB", True), Head("of usable", True), _BAR), rows, totals=3)


def _show_time(page: Page, time: Time) -> None:
    """Print the exposed seconds of a step by component."""
    page.heading("Step time (exposed: overlapped time is not counted)")
    rows = [(part.label, part.number, percent(part.share), page.bar(part.share)) for part in time_parts(time)]
    whole, unit = part_of_step(time.step_seconds, time.step_seconds)
    rows.append(("step", whole, percent(1.0), ""))
    page.table((Head("component"), Head(unit, True), Head("share", True), _BAR), rows, totals=1)


def _show_stages(page: Page, stages: tuple[Stage, ...]) -> None:
    """Print runs of like stages, each with its largest memory and time."""
    columns = (Head("stage", True), Head("layers", True), Head("recompute"), Head("peak GiB", True),
               Head("ms per micro-batch", True))
    slowest = max(s.seconds for s in stages)
    rows = []
    numbered = list(enumerate(stages, 1))
    for (layers, kept), run in groupby(numbered, lambda item: (item[1].layers, item[1].recompute_layers)):
        members = list(run)
        first, last = members[0][0], members[-1][0]
        modes = ", ".join(f"{n} {mode}" for mode in _MODES if (n := getattr(kept, mode)))
        rows.append((str(first) if first == last else f"{first}-{last}", str(layers), modes,
                     f"{max(s.peak_bytes for _, s in members) / GIB:.1f}",
                     milliseconds(max(s.seconds for _, s in members), slowest)))
    page.console.print()
    page.table(columns, rows)
