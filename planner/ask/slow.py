"""Answers that come slower than people read, where nobody asked how fast they should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.answer.assignment import Assignment
from planner.answer.level import ServingFigures
from planner.catalog.recipes import Recipes
from planner.units import show_seconds


def slow(made: Sequence[Assignment], recipes: Recipes) -> Iterator[str]:
    """Yield the services whose users wait: no target is given for a token, and many take longer than reading one; or
    none for an image or a clip, and many come late.
    """
    slowest: dict[str, tuple[float, str]] = {}
    for each in made:
        found = _waiting(each.serving, recipes) if each.serving is not None else None
        if found is not None:
            slowest[each.workload] = max(slowest.get(each.workload, found), found)
    yield from (f"{name} {how}" for name, (_, how) in slowest.items())


def _waiting(level: ServingFigures, recipes: Recipes) -> tuple[float, str] | None:
    """Return the seconds that users wait for what nobody bounded, and how that is said; none where they do not."""
    if level.documents is not None:
        return None
    if level.made:
        if level.ttft_seconds.asked is not None:
            return None
        wait, patience = level.ttft_seconds.p95, recipes.made.patience
        return None if wait <= patience else (wait, (
            f"comes after {show_seconds(wait)} at p95, as no latency target is given: --e2e {_flag(patience)} asks for "
            "sooner"))
    wait, pace = level.tpot_seconds.p95, recipes.requests.pace
    bounded = any(each is not None and each.asked for each in (level.tpot_seconds, level.e2e_seconds))
    if not level.writes or bounded or level.role == "prefill" or wait <= pace:
        return None
    return wait, (f"answers at {1 / wait:.2g} tokens/s at p95, slower than people read, as no target is given for a "
                  f"token: --tpot {_flag(pace)} asks for reading pace, --tpot 50ms for chat")


def _flag(seconds: float) -> str:
    return show_seconds(seconds).replace(" ", "")
