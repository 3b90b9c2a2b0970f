"""Why there is no plan: a minimal set of reasons, the nearest miss, and the least change of each limit that would do.

Reasons are found by deletion: a limit is a reason where the question, with every other reason held and all else lifted,
has a plan once it is lifted too. What is left is verified: held alone, it still has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from planner.answer.schema import Infeasible, Relaxation
from planner.ask.explain.wording import MOST_STEPS, advised, asked_limit
from planner.jobs.job import ENDLESS, Change
from planner.jobs.solved import Solved, solve
from planner.scenario.limits import Objective
from planner.solver.minimal import minimal
from planner.solver.settings import OutOfTime
from planner.units import show_bytes

MEASURES: dict[str, Objective] = {"budget": "cost", "max_power": "gpus", "deadline": "time", "max_nodes": "gpus",
                                  "max_gpus": "gpus", "gpus": "gpus"}
"""Limits in the order in which they are given up as reasons, and the objective that finds the least value of each."""
MOST_CHANGE = 100
"""A limit changed by more than this many times is no advice where a smaller change is enough."""
CUT_SHORT = "the time limit left no time for the reasons; that no plan keeps every limit is proven"
MEMORY_STEP = 0.1e9
"""Bytes to which a relaxation of memory is rounded up."""
DOUBLINGS = 6
SEVERAL = "no single limit is the cause: two or more have to change"


def infeasible_of(failed: Solved) -> Infeasible | None:
    """Return why there is no plan, each reason and relaxation verified by solving again; none where there is one.

    What the time limit leaves no time for is left out, and said.
    """
    if failed.status != "infeasible":
        return None
    jobs = list(zip(failed.question.jobs, failed.columns, strict=True))
    try:
        for job, columns in jobs:
            if (miss := job.miss(columns, lambda change: possible(failed, change))) is not None:
                return miss
        reasons = reasons_of(failed)
        rules = [line for job, columns in jobs for line in job.broken(columns, failed.effort)]
    except OutOfTime:
        return Infeasible(because=(CUT_SHORT,))
    relaxations = by_change([found for name in reasons if (found := _in_time(name, failed)) is not None])
    because = [*rules, *(line for name in reasons for line in _because(name, failed))]
    return Infeasible(because=tuple(because) or ("no fleet of the candidates is large enough",),
                      nearest=_nearest(failed, reasons, relaxations), relaxations=tuple(relaxations))


def possible(failed: Solved, change: Change) -> bool:
    """Say whether the question with a change has a plan. Raises OutOfTime where the time is up before that is known."""
    found = solve(failed.question.changed(change), failed.effort, "any", failed.held)
    if found.status == "undecided":
        raise OutOfTime
    return found.solution.value is not None


def feasible(failed: Solved, held: Sequence[str]) -> bool:
    """Say whether there is a plan with only the limits in `held` in force (memory and own among them).

    Raises OutOfTime.
    """
    lifted = {name: None for name in limits_of(failed) if name not in held}
    goal: Objective = next((MEASURES[name] for name in ("deadline", "budget") if name in held), "gpus")
    return possible(failed, Change(limits=lifted, memory=0.0 if "memory" in held else ENDLESS,
                                   own=0 if "own" in held else None, objective=goal))


def limits_of(failed: Solved) -> list[str]:
    """Return the limits that are set."""
    return [name for name in MEASURES if getattr(failed.question.terms.limits, name) is not None]


def reasons_of(failed: Solved) -> list[str]:
    """Return a minimal set of limits without a plan; GPU memory is among them only where more of it would do."""
    limits = minimal(_names(failed), lambda held: feasible(failed, [*held, "memory"]))
    # replicas that fit are there: how many, is a question of limits alone
    return limits if failed.fleet.demands else [*limits, "memory"] if feasible(failed, limits) else limits


def _names(failed: Solved) -> list[str]:
    """Return the limits that are set, and `own` where nodes are owned."""
    owned = any(offer.how == "owned" for offer in failed.question.terms.market.offers)
    return [*limits_of(failed), *(["own"] if owned else [])]


def by_change(found: Sequence[tuple[float, Relaxation]]) -> list[Relaxation]:
    """Return relaxations, the smallest relative change first; out of all proportion only where no other is enough."""
    ranked = sorted(found, key=lambda pair: pair[0])
    return [relaxation for at, (factor, relaxation) in enumerate(ranked) if at == 0 or factor <= MOST_CHANGE]


def _because(name: str, failed: Solved) -> list[str]:
    terms = failed.question.terms
    if name == "memory":
        return [line for job, columns in zip(failed.question.jobs, failed.columns, strict=True)
                for line in job.short(columns)[0]]
    if name == "own":
        return [f"only {offer.label} {'are' if offer.nodes != 1 else 'is'} at hand" for offer in terms.market.offers
                if offer.how == "owned"]
    asked = asked_limit(terms.limits, name)
    if name == "deadline":
        return [f"no layout finishes in {asked}"]
    if name == "budget" and not failed.fleet.demands:
        return [f"no layout costs at most {asked}"]
    return [f"{name.replace('_', ' ')} is {asked}"]


def _nearest(failed: Solved, reasons: Sequence[str], relaxations: Sequence[Relaxation]) -> str | None:
    several = len(_names(failed)) > 1 and not relaxations
    if failed.fleet.demands:
        total = sum(demand.needed for demand in failed.fleet.demands.values() if not demand.is_part)
        share = f"within them {failed.fleet.share():.0%} of the {total:.4g} requests/s that must be met are answered"
        return f"{share}; {SEVERAL}" if several else share
    for job, columns in zip(failed.question.jobs, failed.columns, strict=True):
        if "memory" in reasons and (miss := job.short(columns)[1]) is not None:
            return miss
    if relaxations:
        return f"{relaxations[0].to} instead of {relaxations[0].from_}"
    return SEVERAL if several else None


def _in_time(name: str, failed: Solved) -> tuple[float, Relaxation] | None:
    """Return the relaxation of one limit; none where the time is up before it is found."""
    try:
        return _relaxation(name, failed)
    except OutOfTime:
        return None


def _relaxation(name: str, failed: Solved) -> tuple[float, Relaxation] | None:
    """Return the least change of one limit, all others held, that has a plan, and by how many times it changes."""
    if name == "own":
        return None
    if name == "memory":
        return _more_memory(failed)
    goal = MEASURES[name]
    lifted = solve(failed.question.changed(Change(limits={name: None}, objective=goal)), failed.effort, "best",
                   failed.held)
    if lifted.solution.value is None:
        return None
    least, limits = lifted.fleet.used(lifted.solution)[name], failed.question.terms.limits
    value = getattr(limits, name)
    asked = float(value.seconds if name == "deadline" else value)
    for more in range(MOST_STEPS):
        advice = advised(limits, name, least, more)
        if advice is None:
            return None
        # what is confirmed is what the words read back to
        text, changed = advice
        if possible(failed, Change(limits={name: changed}, objective=goal)):
            return max(changed / asked, asked / changed), Relaxation(
                limit=name, from_=asked_limit(limits, name), to=text)
    return None


def _more_memory(failed: Solved) -> tuple[float, Relaxation] | None:
    """Return the least memory more per GPU that has a plan, to the step and a 16th of itself."""
    usable = min(one.gpu.usable_memory for one in failed.question.terms.market.candidates)

    def enough(more: float) -> bool:
        return possible(failed, Change(memory=more))

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
