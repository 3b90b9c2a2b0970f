"""What is a service's own that may cost something: latency targets, headroom, spares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.answer.assignment import Assignment
from planner.jobs.job import Change, Knob
from planner.scenario.demand import Level
from planner.scenario.serving import Serving
from planner.units import show_seconds

EASED = 1.1
"""A latency target is eased by a tenth."""


def knobs_of(name: str, asked: Serving, assignments: Sequence[Assignment]) -> Iterator[Knob]:
    """Yield latency targets, headroom and spares, eased by a unit and left out."""
    mine = [a.serving for a in assignments if a.serving]

    def asking(**update: object) -> Change:
        return Change(work={name: update})

    for level_name, level in asked.levels:
        least = max(getattr(serving, f"{level_name}_seconds").p95 for serving in mine)
        yield Knob(level_name, str(level), f"{show_seconds(least)} at p95", "a tenth more",
                   asking(**{level_name: Level(level.seconds * EASED, level.at)}), asking(**{level_name: None}))
    for field, given, unit, less in (
            ("headroom", f"{asked.headroom:.0%}", "a tenth of the rate less", max(asked.headroom - 0.1, 0.0)),
            ("spare_replicas", str(asked.spare_replicas), "1 fewer", max(asked.spare_replicas - 1, 0)),
            ("spare_nodes", str(asked.spare_nodes), "1 fewer", max(asked.spare_nodes - 1, 0))):
        if getattr(asked, field):
            yield Knob(field, given, "all of it", unit, asking(**{field: less}), asking(**{field: 0}))
