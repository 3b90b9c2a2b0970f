"""Assignments in short: the layout in words, memory and time side by side, and the figures that people ask for first.

What is here is a choice among the facts of `facts.py`; the others are behind `-v`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.answer.assignment import Assignment, TrainingAssignment
from planner.answer.level import ServingFigures
from planner.answer.posttraining import PostTrainingAssignment
from planner.answer.show_as import Group
from planner.render.breakdown import show_latencies
from planner.render.facts import facts, memory_parts, time_parts
from planner.render.figures import percent
from planner.render.layout_text import asked_latency, brief, degrees, met, prompts_of
from planner.render.page import FigureTable, Head, Page
from planner.render.serving import ROLES, at_best
from planner.render.verdict import verdict_color, verdict_heading
from planner.units import GIB, plural, show_bytes, show_days, show_seconds, show_usd

MOST_PARTS = 5
"""Rows of a block of memory or time: the largest, and the others in one."""
WAITS_LONG = 0.05
"""Share of the time waiting for repairs from which it is said."""
MOST_LINES = 8
"""Assignments that have a line each; of more the first."""
_TRAINED = {"tokens": "", "compute": "", "step": "step ", "goodput": ""}
"""Labels of facts on speed that are shown, and what is put before them in one line."""
_SERVED = ("requests", "images", "clips", "each", "run", "seconds", "peaks", "output", "cache")
"""The same for a service, a line each."""


def show_summary(page: Page, a: Assignment, confidence: float | None, proof: str = "") -> None:
    """Print one assignment in about 25 lines, with the proof of a plan."""
    said = {(fact.group, fact.label): fact.value for fact in facts(a, confidence)}
    page.heading(f"Layout ({a.stack}): {brief(a)}")
    if a.serving is None or a.gpus > a.serving.replicas:
        page.paragraph(said["layout", "in words"])
    page.console.print()
    page.blocks(_memory(a, confidence), _time(a))
    if a.serving is not None:
        page.console.print()
        if a.serving.documents is None:
            show_latencies(page, a.serving)
    page.console.print()
    wanted = _TRAINED if a.serving is None else _SERVED
    speed = [(label, value) for (group, label), value in said.items() if group == "performance" and label in wanted]
    cost = [value for (group, label), value in said.items() if group == "cost" and label != "offer"]
    if a.serving is None:
        speed = [("speed", "; ".join(f"{_TRAINED[label]}{value}" for label, value in speed))]
    whole = ("whole run", said.get(("performance", "whole run"), ""))
    often = a.failures if isinstance(a, TrainingAssignment) else None
    if often is not None and often.repair_share > WAITS_LONG:
        speed.append(("repairs", said["performance", "repairs"]))
    # a plan says in its first line how many steps there are, and how long they take
    steps = ("steps", said.get(("performance", "steps"), "") if a.duration_days is None else "")
    rows = [*speed, steps, whole, ("cost", "; ".join(cost)), ("replay", said.get(("level", "replayed"), "")),
            ("autoscaler", said.get(("level", "autoscaler"), "")), ("idle", said.get(("hardware", "idle"), ""))]
    rows.append(("evidence", evidence_line(said)))
    if isinstance(a, PostTrainingAssignment):
        rows[:0] = a.sides
    if a.purchase is not None:
        rows.append(("bought", f"{said['purchase', 'capital']}; {said['purchase', 'per hour']}"))
    page.facts([row for row in (*rows, ("proof", proof)) if row[1]])


def evidence_line(said: Mapping[tuple[Group, str], str]) -> str:
    """Return what speed and memory were held against, of facts by group and label."""
    against = (("speed", said.get(("performance", "evidence"))), ("memory", said.get(("memory", "evidence"))))
    return "; ".join(text if text.startswith(what) else f"{what}: {text}" for what, text in against if text)


def _memory(a: Assignment, confidence: float | None) -> FigureTable:
    memory = a.memory
    rows = [(part.label, f"{part.number} {part.unit}", percent(part.share))
            for part in memory_parts(memory, MOST_PARTS)]
    free = memory.usable_bytes - memory.peak_bytes
    rows.append(("free" if free >= 0 else "missing", f"{abs(free) / GIB:,.2f} GiB",
                 percent(abs(free) / memory.usable_bytes)))
    if memory.host_bytes_per_node:
        rows.append(("host memory, a node", show_bytes(memory.host_bytes_per_node), ""))
    heading = verdict_heading(memory, confidence if a.serving is None else None)
    return FigureTable(heading, rows, verdict_color(memory))


def _time(a: Assignment) -> FigureTable:
    step = a.time
    rows = [(part.label, f"{part.number} {part.unit}", percent(part.share)) for part in time_parts(step, MOST_PARTS)]
    name = "Step" if a.serving is None else "Call" if a.serving.made else "Decode step" if a.serving.decodes else "Step"
    return FigureTable(f"{name}: {show_seconds(step.step_seconds)}", rows)


def show_each(page: Page, assignments: Sequence[Assignment]) -> None:
    """Print several assignments, a line each."""
    shown = assignments[:MOST_LINES]
    page.console.print()
    if any(a.serving is None for a in shown):
        columns = (Head("workload"), Head("hardware and layout"), Head("time", True), Head("cost", True))
        page.table(columns, [(a.workload, f"{a.nodes:,} x {a.node}, {degrees(a)}",
                              "-" if a.duration_days is None else show_days(a.duration_days),
                              "-" if a.cost_usd is None else show_usd(a.cost_usd)) for a in shown])
    else:
        _show_fleet(page, shown)
    if len(assignments) > len(shown):
        page.paragraph(f"{len(assignments) - len(shown)} more with -v")


def fleet_rows(shown: Sequence[Assignment]) -> tuple[list[Head], list[tuple[str, ...]]]:
    """Return replicas of services as a table: what, where, how many requests, and how fast at the asked percentile."""
    served = [a.serving for a in shown if a.serving]
    names = ("TTFT", "TPOT") if any(serving.writes or serving.made is None for serving in served) else ("answer",)
    latencies = [[asked_latency(each) for each in (serving.e2e_seconds or serving.ttft_seconds if serving.made else
                                                   serving.ttft_seconds, serving.tpot_seconds)][:len(names)]
                 for serving in served]
    # the percentile is in the head where every service has the same
    at = [sorted({pair[which][0] for pair in latencies}) for which in range(len(names))]
    heads = [f"{name}\n{texts[0]}" if len(texts) == 1 else name for name, texts in zip(names, at, strict=True)]
    columns = [Head("service"), Head("replicas"), Head(f"{served[0].noun}/s", True),
               *(Head(head, True) for head in heads), Head("USD/h", True)]
    rows = []
    for a, pair in zip(shown, latencies, strict=True):
        seconds = [time if len(texts) == 1 else f"{time} {name}" for (name, time), texts in zip(pair, at, strict=True)]
        rows.append((*_line(a, several=len({assignment.workload for assignment in shown}) > 1), *seconds, _hourly(a)))
    return columns, rows


def _show_fleet(page: Page, shown: Sequence[Assignment]) -> None:
    page.table(*fleet_rows(shown))
    for name in dict.fromkeys(a.workload for a in shown):
        if line := _seen(name, next(a.serving for a in shown if a.workload == name)):
            page.paragraph(line)
    idle = sum(a.idle_gpus for a in shown)
    if idle:
        page.paragraph(f"Paid for and idle: {plural(idle, 'GPU')}")


def _seen(name: str, served: ServingFigures | None) -> str:
    """Return what the replay of all replicas of a service showed, against its targets; empty without one."""
    if served is None or (replayed := served.replayed) is None:
        return ""
    said = [f"{what} {show_seconds(asked.seconds)} of {show_seconds(asked.target_seconds)} at {asked.at}"
            for what,
            each in (("TTFT", replayed.ttft_seconds), ("TPOT", replayed.tpot_seconds), ("E2E", replayed.e2e_seconds))
            if each is not None and (asked := each.asked) is not None]
    words = (f"Replayed, all replicas of {name}: {', '.join([*said, f'{replayed.requests:,} requests'])}, "
             f"{met(replayed)}; the table's latencies are computed")
    return words if replayed.autoscaled is None else f"{words}. An autoscaler: {at_best(replayed.autoscaled)}"


def _line(a: Assignment, *, several: bool) -> tuple[str, str, str]:
    served = a.serving
    assert served is not None
    each = a.gpus // served.replicas
    role = f"{ROLES[served.role]}{prompts_of(a)}"
    return (f"{a.workload}{role}" if several else role.strip() or a.workload,
            f"{served.replicas:,} x {each} {a.gpu}, {a.layout.precision}", f"{served.requests_per_second:,.4g}")


def _hourly(a: Assignment) -> str:
    return "-" if a.usd_per_node_hour is None else f"{a.usd_per_node_hour * (a.nodes + a.spare_nodes):,.2f}"
