"""The next best in a line each: what it is, how long, for how much, and why it lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from planner.answer.assignment import Alternative, Assignment
from planner.answer.schema import Plan
from planner.render.layout_text import differences
from planner.render.page import Page
from planner.units import show_days, show_usd

MOST = 3
"""Alternatives shown; the others are behind -v."""
DIFFERENCES = 2
"""Axes named of a layout on the same hardware."""
WIDEST = 44
"""Characters of a name."""
GAP = 2
_BREAKS = (" against ", " at ", "; ", ": ", ", ", " (")
"""Where a reason may end, and still be one."""


def show_runners_up(page: Page, plan: Plan) -> None:
    """Print the first alternatives, none with the same text as another."""
    fleets = list(fleets_of(plan))
    lines = list(_lines(fleets, plan))[:MOST]
    if not lines:
        return
    more = len(fleets) - len(lines)
    page.heading("Alternatives" + (f" ({more} more with -v)" if more > 0 else ""))
    widths = [max(len(line[at]) for line in lines) for at in range(3)]
    room = page.console.width - sum(widths) - (len(widths) + 1) * GAP
    for name, time, cost, why in lines:
        page.paragraph(" " * GAP + (" " * GAP).join(
            (f"{name:<{widths[0]}}", f"{time:>{widths[1]}}", f"{cost:>{widths[2]}}", shortened(why, room))))


def _cut(name: str) -> str:
    """Return a name that leaves room for the figures: its first parts, of what there is room for."""
    kept, *parts = name.replace(" and ", ", ").split(", ")
    for part in parts:
        if len(kept) + len(part) + 2 > WIDEST:
            return f"{kept}, ..."
        kept += f", {part}"
    return name if len(name) <= WIDEST else kept


def fleets_of(plan: Plan) -> Iterator[list[Alternative]]:
    """Yield the alternatives, those together that are one fleet."""
    for _, together in groupby(enumerate(plan.alternatives), lambda item: item[1].fleet or -item[0]):
        yield [alternative for _, alternative in together]


def _lines(fleets: Sequence[Sequence[Alternative]], plan: Plan) -> Iterator[tuple[str, str, str, str]]:
    """Yield the lines, with the provider where two have the same name, and each text once."""
    seen: set[str] = set()
    best = {a.offer for a in plan.assignments}
    # what is as good on the same nodes tells least
    for fleet in sorted(fleets, key=lambda other: other[0].why.startswith("same") and other[0].offer in best):
        whole, time, cost, why = _line(fleet, plan)
        name = _cut(whole)
        if name in seen:
            name += f", {_from(fleet[0])}"
        if name not in seen:
            seen.add(name)
            yield name, time, cost, why


def _from(assignment: Assignment) -> str:
    return {"buy": "bought", "owned": "owned"}.get(assignment.sourcing or "", (assignment.offer or "").split(" ")[0])


def _line(fleet: Sequence[Alternative], plan: Plan) -> tuple[str, str, str, str]:
    first, gpus = fleet[0], Counter[str]()
    for alternative in fleet:
        gpus[alternative.gpu] += alternative.gpus
    name = " + ".join(f"{count:,} x {gpu}" for gpu, count in gpus.items()) + f", {first.layout.precision}"
    if len(fleet) == 1:
        name = _name(first, next((a for a in plan.assignments if a.workload == first.workload), plan.assignments[0]))
    return (name, "" if first.serving or first.duration_days is None else show_days(first.duration_days),
            _cost(fleet), first.reason)


def _cost(fleet: Sequence[Alternative]) -> str:
    """Return the cost, of a service that of an hour."""
    if fleet[0].serving is None:
        return "" if fleet[0].cost_usd is None else show_usd(fleet[0].cost_usd)
    return show_usd(sum((alternative.usd_per_node_hour or 0.0) * alternative.nodes for alternative in fleet)) + "/h"


def _name(alternative: Alternative, best: Assignment) -> str:
    """Return what tells an alternative from the plan: hardware, whose it is, or what of the layout is not the same."""
    parts = []
    if (alternative.node, alternative.nodes, alternative.gpus) != (best.node, best.nodes, best.gpus):
        parts.append(alternative.counted_gpus)
    if alternative.offer != best.offer and (parts == [] or alternative.sourcing != best.sourcing):
        parts.append(_from(alternative))
    if not parts:
        parts = list(differences(alternative, best))[:DIFFERENCES]
    if alternative.layout.precision != best.layout.precision:
        parts.append(alternative.layout.precision)
    return ", ".join(parts) or "same axes, other stages"


def shortened(text: str, room: int) -> str:
    """Return as much of a reason as there is room for, ending where a clause does; its first clause in any case."""
    ends = sorted({at for mark in _BREAKS for at in _found(text, mark)} | {len(text)})
    fitting = [end for end in ends if end <= room]
    return text[:fitting[-1] if fitting else ends[0]]


def _found(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        if text.count("(", 0, at) == text.count(")", 0, at):
            yield at
        at = text.find(mark, at + 1)
