"""Why there is no plan: what made it so, the nearest miss, and the single limits that would do if lifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from planner.answer.schema import Infeasible, Relaxation
from planner.layouts.axes import RECOMPUTE
from planner.layouts.enumerate import Grid
from planner.layouts.rules import RULES
from planner.layouts.table import from_rows
from planner.physics.evaluate import Evaluation, evaluate_fixed
from planner.physics.question import Question
from planner.scenario.limits import Limits
from planner.solver.choose import Choice
from planner.solver.found import Frontier
from planner.units import DAY, HOUR, SECONDS, WATTS, exact, show_bytes, show_usd

Solve = Callable[[str, str, object], Choice]
"""Solve again with one limit lifted (or set to a value) and another objective."""
_MEASURE = {"deadline": "time", "budget": "cost", "gpus": "gpus", "max_gpus": "gpus", "max_nodes": "gpus",
            "max_power": "gpus"}
MOST_CHANGE = 100
"""A limit changed by more than this many times is no advice where a smaller change is enough."""
FAR = 4
"""Peak over usable memory above which more memory per GPU is no answer, and more GPUs are named."""


@dataclass(frozen=True, slots=True)
class Miss:
    """What the failed search saw."""

    question: Question
    grid: Grid
    frontier: Frontier


def infeasible_of(limits: Limits, miss: Miss, solve: Callable[..., Choice]) -> Infeasible:
    """Return the explanation; every relaxation is a plan that was found by solving again with the limit so set."""
    relaxations = by_change([r for name in _MEASURE if getattr(limits, name) is not None
                             and (r := _relaxation(name, limits, miss, solve)) is not None])
    because, nearest = _because(limits, miss, relaxations)
    return Infeasible(because=tuple(because), nearest=nearest, relaxations=tuple(relaxations))


def by_change(found: Sequence[tuple[float, Relaxation]]) -> list[Relaxation]:
    """Return relaxations, the smallest relative change first; out of all proportion only where no other is enough."""
    ranked = sorted(found, key=lambda pair: pair[0])
    return [relaxation for at, (factor, relaxation) in enumerate(ranked) if at == 0 or factor <= MOST_CHANGE]


def _because(limits: Limits, miss: Miss, relaxations: list[Relaxation]) -> tuple[list[str], str | None]:
    if not miss.grid.grown and not miss.frontier.removed:
        # rules are counted in the order they apply, so the last ones emptied what the others had left
        return [f"{RULES[name].reason} ({name}: {count:,} layouts)"
                for name, count in list(miss.grid.removed.items())[:-4:-1]], None
    if miss.frontier.fit == 0 and miss.frontier.nearest_memory is not None:
        return _memory(miss)
    because = []
    if limits.deadline is not None:
        because.append(f"no layout finishes in {limits.deadline}")
    if limits.budget is not None:
        because.append(f"no layout costs at most {_show('budget', limits.budget)}")
    for name in ("gpus", "max_gpus", "max_nodes", "max_power"):
        if (value := getattr(limits, name)) is not None:
            because.append(f"{name.replace('_', ' ')} is {_show(name, value)}")
    nearest = [f"{r.to} instead of {r.from_}" for r in relaxations]
    if not nearest and len(because) > 1:
        nearest = ["no single limit is the cause: two or more have to change"]
    return because or ["no layout fits in memory with the limits given"], nearest[0] if nearest else None


def _memory(miss: Miss) -> tuple[list[str], str]:
    """Explain that nothing fits, by the layout that misses by least with everything recomputed."""
    assert miss.frontier.nearest_memory is not None
    _, row = miss.frontier.nearest_memory
    found = _leanest(miss.question, row)
    candidate = miss.question.candidates[int(row["candidate"])]
    short = found.memory.peak - found.memory.usable
    parts = sorted(found.memory.components.items(), key=lambda kv: -kv[1])[:3]
    largest = ", ".join(f"{name.replace('_', ' ')} {show_bytes(size)}" for name, size in parts)
    gpus = int(row["tp"] * row["cp"] * row["pp"] * row["dp"])
    because = [f"no layout fits in memory: the leanest, on {gpus} x {candidate.gpu.name}, needs "
               f"{show_bytes(found.memory.peak)} of {show_bytes(found.memory.usable)} usable per GPU ({largest})"]
    if found.memory.host_per_node > miss.question.kernels.host_memory_share * candidate.node.cpu.memory:
        because.append(f"its offloaded states need {show_bytes(found.memory.host_per_node)} of host memory per node")
    nearest = f"{show_bytes(max(short, 0.0))} more memory per GPU"
    if found.memory.peak > FAR * found.memory.usable:
        nearest += f"; about {ceil(found.memory.peak * gpus / found.memory.usable):,} such GPUs would hold the states"
    return because, nearest


def _leanest(question: Question, row: dict[str, float]) -> Evaluation:
    rows = from_rows([{**row, "recompute": RECOMPUTE.index("full")}], question.global_batch)
    return evaluate_fixed(question, rows, 0)


def _relaxation(name: str, limits: Limits, miss: Miss, solve: Callable[..., Choice]) -> tuple[float, Relaxation] | None:
    """Lift one limit, find the least value that would do, a deadline rounded up, and solve again to confirm it.

    Returns by how many times the limit changes, and the relaxation.
    """
    lifted = solve(name, _MEASURE[name])
    if lifted.best is None or lifted.value is None:
        return None
    column = lifted.best.column
    least: float = {"deadline": _round_up(column.upper_us * 1e-6), "budget": lifted.value / 100,
                    "max_nodes": column.nodes, "max_power": column.power_w}.get(name, column.gpus)
    confirmed = solve(name, _MEASURE[name], int(least) if name in ("gpus", "max_gpus", "max_nodes") else least)
    if confirmed.best is None:
        return None
    value = getattr(limits, name)
    asked = float(value.seconds if name == "deadline" else value)
    return max(least / asked, asked / least), Relaxation(limit=name, from_=_asked(limits, name), to=_show(name, least))


def _round_up(seconds: float) -> float:
    """Return a duration a person would write: tenths of a day, or whole hours below two days."""
    return ceil(seconds / (DAY / 10)) * DAY / 10 if seconds > 2 * DAY else ceil(seconds / HOUR) * HOUR


def _asked(limits: Limits, name: str) -> str:
    """Write a limit as it was asked."""
    value = getattr(limits, name)
    return str(value) if name == "deadline" else _show(name, value)


def _show(name: str, value: float) -> str:
    if name == "deadline":
        tenths = value / DAY * 10
        return f"{tenths / 10:g} d" if tenths >= 20 else exact(value, SECONDS, "d", "h", "min", "s")
    if name == "max_power":
        return exact(value, WATTS, "MW", "kW", "W")
    return show_usd(value) if name == "budget" else f"{int(value):,}"
