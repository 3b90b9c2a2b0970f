"""What to ask of a provider before a plan is counted on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.answer.assignment import Assignment
from planner.catalog.load import Catalog
from planner.money.caution import at_once, outlying
from planner.units import DAY


def cautions(made: Sequence[Assignment], catalog: Catalog) -> Iterator[str]:
    """Yield cautions about the prices of a plan, and about many nodes that a job has for a short time."""
    yield from outlying([each.offer or "" for each in made], catalog)
    ending = [each for each in made if each.serving is None or each.serving.documents is not None]
    yield from at_once([(each.offer or "", each.nodes + each.spare_nodes, each.duration_days * DAY) for each in ending
                        if each.duration_days], catalog)
