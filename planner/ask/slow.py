"""Answers that come slower than people read, where nobody asked how fast they should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.answer.assignment import Assignment
from planner.catalog.recipes import Recipes
from planner.units import show_seconds


def slow(made: Sequence[Assignment], recipes: Recipes) -> Iterator[str]:
    """Yield the services whose users wait: no target is given for a token, and many take longer than reading one; or
    none for an image or a clip, and many come late.
    """
    levels: dict[str, float] = {}
    yield from _late(made, recipes.made.patience)
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


def _late(made: Sequence[Assignment], patience: float) -> Iterator[str]:
    waits: dict[str, float] = {}
    for each in made:
        level = each.serving
        if level and level.made and level.documents is None and level.ttft_seconds.asked is None:
            waits[each.workload] = max(waits.get(each.workload, 0.0), level.ttft_seconds.p95)
    for name, seconds in waits.items():
        if seconds > patience:
            yield (f"{name} comes after {show_seconds(seconds)} at p95, as no latency target is given: --e2e "
                   f"{show_seconds(patience).replace(' ', '')} asks for sooner")
