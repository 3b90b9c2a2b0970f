"""Answers that come slower than people read, where nobody asked how fast they should."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.answer.assignment import Assignment
from planner.catalog.recipes import Recipes
from planner.units import show_seconds


def slow(made: Iterable[Assignment], recipes: Recipes) -> Iterator[str]:
    """Yield the services whose users wait: no target is given for a token, and many take longer than reading one."""
    levels: dict[str, float] = {}
    for each in made:
        level, pace = each.serving, recipes.requests.pace
        if level is None or not level.writes or level.made is not None or level.documents is not None:
            continue
        asked = level.tpot_seconds.asked or level.ttft_seconds.asked
        if asked is None and level.tpot_seconds.p95 > pace and level.role != "prefill":
            levels[each.workload] = max(levels.get(each.workload, 0.0), level.tpot_seconds.p95)
    asks = show_seconds(recipes.requests.pace).replace(" ", "")
    for name, seconds in levels.items():
        yield (f"{name} answers at {1 / seconds:.2g} tokens/s at p95, slower than people read, as no latency target is "
               f"given: --tpot {asks} asks for reading pace, --tpot 50ms for chat")
