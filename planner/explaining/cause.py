"""Why there is no plan: a minimal set of reasons, the nearest miss, and the least change of each limit that would do.

Reasons are found by deletion: a limit is a reason where the question, with every other reason held and all else lifted,
has a plan once it is lifted too. What is left is verified: held alone, it still has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil

from planner.answer.schema import Infeasible, Relaxation
from planner.explaining.relaxed import ENDLESS, Change, searched, solved
from planner.explaining.wording import asked_limit, round_up, show_limit
from planner.layouts.axes import RECOMPUTE
from planner.layouts.enumerate import Grid
from planner.layouts.rules import RULES
from planner.layouts.table import from_rows
from planner.physics.evaluate import Evaluation, evaluate_fixed
from planner.planned import Planned
from planner.prepare import Prepared
from planner.scenario.limits import Objective
from planner.solver.settings import OutOfTime
from planner.units import show_bytes

MEASURES: dict[str, Objective] = {"budget": "cost", "max_power": "gpus", "deadline": "time", "max_nodes": "gpus",
                                  "max_gpus": "gpus", "gpus": "gpus"}
"""Limits in the order in which they are given up as reasons, and the objective that finds the least value of each."""
LIMIT_RULES = frozenset({"fixed_gpus", "max_gpus", "max_nodes"})
MOST_CHANGE = 100
"""A limit changed by more than this many times is no advice where a smaller change is enough."""
FAR = 4
"""Peak over usable memory above which more memory per GPU is no answer, and more GPUs are named."""
CUT_SHORT = "the time limit left no time for the reasons; that no layout keeps every limit is proven"
MEMORY_STEP = 0.1e9
"""Bytes to which a relaxation of memory is rounded up."""
DOUBLINGS = 6


def feasible(failed: Planned, held: Sequence[str]) -> bool:
    """Say whether there is a plan with only the limits in `held` in force (memory and own among them).

    Raises OutOfTime.
    """
    lifted = {name: None for name in limits_of(failed) if name not in held}
    change = Change(limits=lifted, memory=0.0 if "memory" in held else ENDLESS, own=0 if "own" in held else None,
                    objective=next((MEASURES[name] for name in ("deadline", "budget") if name in held), "gpus"))
    return bool(searched(failed.prepared, change, failed.effort).found)


def limits_of(failed: Planned) -> list[str]:
    """Return the limits that are set."""
    return [name for name in MEASURES if getattr(failed.prepared.scenario.limits, name) is not None]


def infeasible_of(failed: Planned) -> Infeasible | None:
    """Return why there is no plan, each reason and relaxation verified by solving again; none where there is one.

    What the time limit leaves no time for is left out, and said.
    """
    if failed.choice.status != "infeasible":
        return None
    try:
        reasons, rules = reasons_of(failed), _rules(failed)
    except OutOfTime:
        return Infeasible(because=(CUT_SHORT,))
    relaxations = by_change([relaxation for name in reasons if (relaxation := _in_time(name, failed)) is not None])
    because = [*rules, *(line for name in reasons for line in _because(name, failed))]
    return Infeasible(because=tuple(because) or ("no layout of the searched space fits in memory",),
                      nearest=_nearest(failed, reasons, relaxations), relaxations=tuple(relaxations))


def reasons_of(failed: Planned) -> list[str]:
    """Return a minimal set of limits without a plan; GPU memory is among them only where more of it would do."""
    owned = ["own"] if any(offer.how == "owned" for offer in failed.prepared.offers) else []
    limits = minimal([*limits_of(failed), *owned], lambda held: feasible(failed, [*held, "memory"]))
    return [*limits, "memory"] if feasible(failed, limits) else limits


def minimal(names: Sequence[str], possible: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return a minimal part of `names` that is infeasible when held alone; empty where nothing held is infeasible too.

    `names` as a whole must be infeasible. One that is enough by itself is preferred.
    """
    if not possible([]):
        return []
    for name in names:
        if not possible([name]):
            return [name]
    reasons = list(names)
    for name in names:
        rest = [other for other in reasons if other != name]
        if not possible(rest):
            reasons = rest
    return reasons


def by_change(found: Sequence[tuple[float, Relaxation]]) -> list[Relaxation]:
    """Return relaxations, the smallest relative change first; out of all proportion only where no other is enough."""
    ranked = sorted(found, key=lambda pair: pair[0])
    return [relaxation for at, (factor, relaxation) in enumerate(ranked) if at == 0 or factor <= MOST_CHANGE]


def _rules(failed: Planned) -> list[str]:
    """Return the rules that together leave no legal layout; none where there are some."""
    if not _empty(failed, frozenset()):
        return []
    held = [name for name in failed.grid.removed if name not in LIMIT_RULES]
    names = minimal(held, lambda rules: not _empty(failed, frozenset(RULES) - LIMIT_RULES - set(rules)))
    return [f"{RULES[name].reason} ({name}: {failed.grid.removed[name]:,} layouts)" for name in names]


def _empty(failed: Planned, skipped: frozenset[str]) -> bool:
    """Say whether no layout is legal without the rules in `skipped`. Raises OutOfTime."""
    return Grid(replace(failed.prepared.facts, skipped=skipped)).is_empty(failed.effort.check)


def _because(name: str, failed: Planned) -> list[str]:
    limits = failed.prepared.scenario.limits
    if name == "deadline":
        return [f"no layout finishes in {limits.deadline}"]
    if name == "budget":
        assert limits.budget is not None
        return [f"no layout costs at most {show_limit(name, limits.budget)}"]
    if name == "memory":
        return _memory(failed)[0]
    if name == "own":
        return [f"only {offer.label} {'are' if offer.nodes != 1 else 'is'} at hand" for offer in failed.prepared.offers
                if offer.how == "owned"]
    return [f"{name.replace('_', ' ')} is {show_limit(name, getattr(limits, name))}"]


def _nearest(failed: Planned, reasons: Sequence[str], relaxations: Sequence[Relaxation]) -> str | None:
    if "memory" in reasons and failed.choice.frontier.fit == 0 and failed.choice.frontier.nearest_memory is not None:
        return _memory(failed)[1]
    if relaxations:
        return f"{relaxations[0].to} instead of {relaxations[0].from_}"
    return "no single limit is the cause: two or more have to change" if len(limits_of(failed)) > 1 else None


def _memory(failed: Planned) -> tuple[list[str], str]:
    """Explain that nothing fits, by the layout that misses by least with everything recomputed."""
    if failed.choice.frontier.nearest_memory is None or failed.choice.frontier.fit:
        return ["what fits in memory is too slow, too dear or too large"], ""
    question = failed.prepared.question
    _, row = failed.choice.frontier.nearest_memory
    found = _leanest(failed.prepared, row)
    candidate = question.candidates[int(row["candidate"])]
    short = found.memory.peak - found.memory.usable
    parts = sorted(found.memory.components.items(), key=lambda kv: -kv[1])[:3]
    largest = ", ".join(f"{name.replace('_', ' ')} {show_bytes(size)}" for name, size in parts)
    gpus = int(row["tp"] * row["cp"] * row["pp"] * row["dp"])
    because = [f"no layout fits in memory: the leanest, on {gpus} x {candidate.gpu.name}, needs "
               f"{show_bytes(found.memory.peak)} of {show_bytes(found.memory.usable)} usable per GPU ({largest})"]
    if found.memory.host_per_node > question.kernels.host_memory_share * candidate.node.cpu.memory:
        because.append(f"its offloaded states need {show_bytes(found.memory.host_per_node)} of host memory per node")
    nearest = f"{show_bytes(max(short, 0.0))} more memory per GPU"
    if found.memory.peak > FAR * found.memory.usable:
        nearest += f"; about {ceil(found.memory.peak * gpus / found.memory.usable):,} such GPUs would hold the states"
    return because, nearest


def _leanest(prepared: Prepared, row: dict[str, float]) -> Evaluation:
    rows = from_rows([{**row, "recompute": RECOMPUTE.index("full")}], prepared.question.global_batch)
    return evaluate_fixed(prepared.question, rows, 0)


def _in_time(name: str, failed: Planned) -> tuple[float, Relaxation] | None:
    """Return the relaxation of one limit; none where the time is up before it is found."""
    try:
        return _relaxation(name, failed)
    except OutOfTime:
        return None


def _relaxation(name: str, failed: Planned) -> tuple[float, Relaxation] | None:
    """Return the least change of one limit, all others held, that has a plan, and by how many times it changes."""
    if name == "own":
        return None
    if name == "memory":
        return _more_memory(failed)
    prepared, limits = failed.prepared, failed.prepared.scenario.limits
    lifted = solved(prepared, Change(limits={name: None}, objective=MEASURES[name]), failed.effort)
    if lifted.best is None or lifted.value is None:
        return None
    column = lifted.best.column
    least: float = {"deadline": round_up(column.upper_us * 1e-6), "budget": lifted.value / 100,
                    "max_nodes": column.nodes, "max_power": column.power_w}.get(name, column.gpus)
    confirmed = searched(prepared, Change(limits={name: least}, objective=MEASURES[name]), failed.effort)
    if not confirmed.found:
        return None
    value = getattr(limits, name)
    asked = float(value.seconds if name == "deadline" else value)
    return max(least / asked, asked / least), Relaxation(limit=name, from_=asked_limit(limits, name),
                                                         to=show_limit(name, least))


def _more_memory(failed: Planned) -> tuple[float, Relaxation] | None:
    """Return the least memory more per GPU that has a plan, to the step and a 16th of itself."""
    usable = min(one.gpu.usable_memory for one in failed.prepared.question.candidates)

    def enough(more: float) -> bool:
        return bool(searched(failed.prepared, Change(memory=more), failed.effort).found)

    low, high = 0.0, 0.0
    for doubling in range(DOUBLINGS):
        low, high = high, usable / 16 * 2**doubling
        if enough(high):
            break
    else:
        return None
    while high - low > max(MEMORY_STEP, high / 16):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    more = ceil(high / MEMORY_STEP) * MEMORY_STEP
    return 1 + more / usable, Relaxation(limit="memory", from_=f"{show_bytes(usable)} per GPU",
                                         to=f"{show_bytes(usable + more)} per GPU")
