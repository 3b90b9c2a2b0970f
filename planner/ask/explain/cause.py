"""Why there is no plan: a minimal set of reasons, the nearest miss, and the least change of each limit that would do.

Reasons are found by deletion: a limit is a reason where the question, with every other reason held and all else lifted,
has a plan once it is lifted too. What is left is verified: held alone, it still has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.relaxation import Relaxation
from planner.answer.schema import Infeasible
from planner.ask.explain.relaxing import MEASURES, possible, relaxed
from planner.ask.explain.wording import asked_limit, show_limit
from planner.jobs.job import ENDLESS, Change
from planner.jobs.reach import share
from planner.jobs.solved import Solved
from planner.scenario.limits import Objective
from planner.solver.minimal import minimal
from planner.solver.settings import OutOfTime

CUT_SHORT = "the time limit left no time for the reasons; that no plan keeps every limit is proven"
BEYOND = "those that would if memory had no limit fit on no candidate"
COUNTS = frozenset({"gpus", "max_gpus", "max_nodes", "own", "memory"})
"""Reasons that say how many GPUs there are to fit on."""
SEVERAL = "no single limit is the cause: two or more have to change"


def infeasible_of(failed: Solved, *, relaxing: bool = True) -> Infeasible | None:
    """Return why there is no plan, each reason and relaxation verified by solving again; none where there is one.

    What the time limit leaves no time for is left out, and said. relaxing: the reasons are asked for with the changes
    that would do, else alone.
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
    served = bool(failed.fleet.demands) and COUNTS.issuperset(reasons)
    shorts = [short for job, columns in jobs if served or "memory" in reasons
              if (short := job.short(columns)).because]
    # another batch may be divided, and another format be computed in, where no layout is legal
    also = [*(["global_batch", "precision"] if rules else []), *(["memory"] if served and shorts else [])]
    relaxations = relaxed(failed, [*reasons, *also], shorts) if relaxing else []
    told = [line for name in reasons for line in _because(name, failed)]
    if shorts and not COUNTS.issuperset(reasons):
        # the layout that comes nearest to fitting keeps neither budget nor deadline: what it lacks is not enough
        told, shorts = [*told, BEYOND], []
    lacking = [short.because for short in shorts]
    # what binds leads: that a replica is larger than what there is
    because = [*_undivided(failed, relaxations), *rules, *([*lacking, *told] if served else [*told, *lacking]),
               *_apart(failed)]
    missing = next((short.nearest for short in shorts if short.nearest is not None), None)
    return Infeasible(because=tuple(because) or ("no fleet of the candidates is large enough",),
                      nearest=missing or _nearest(failed, relaxations), relaxations=tuple(relaxations))


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


def _undivided(failed: Solved, relaxations: Sequence[Relaxation]) -> list[str]:
    """Return that no layout divides the batch, where another batch is enough."""
    return [f"no legal layout divides a global batch of {relaxation.from_}" for relaxation in relaxations
            if relaxation.limit == "global_batch"]


def _apart(failed: Solved) -> list[str]:
    """Return that no two of the nodes can form one job, where the question admits several of them."""
    market = failed.question.terms.market
    if any(candidate.clustered for candidate in market.candidates) or not any(
            columns.account.removed.get("one_node") for columns in failed.columns):
        return []
    names = " and ".join(dict.fromkeys(candidate.node.name for candidate in market.candidates))
    sellers = " and ".join(dict.fromkeys(offer.provider for offer in market.every_offer))
    return [f"{names}{f' of {sellers}' if sellers else ''} {'come' if len(market.candidates) > 1 else 'comes'} one by "
            "one: no network joins several into one job"]


def _because(name: str, failed: Solved) -> list[str]:
    terms = failed.question.terms
    if name == "memory":
        return []
    if name == "own":
        return [f"only {offer.label} {'are' if offer.nodes != 1 else 'is'} at hand"
                for offer in terms.market.offers if offer.how == "owned"]
    asked = asked_limit(terms.limits, name)
    if name == "deadline":
        return [f"no layout finishes in {asked}"]
    if name == "budget" and not failed.fleet.demands:
        return [f"no layout costs at most {asked}"]
    if name == "budget" and terms.limits.budget is not None:  # of an hour, as of a month it has no end of digits
        return [f"budget is {show_limit(name, terms.limits.budget, hourly=True)}"]
    return [f"{name.replace('_', ' ')} is {asked}"]


def _nearest(failed: Solved, relaxations: Sequence[Relaxation]) -> str | None:
    several = len(_names(failed)) > 1 and not relaxations
    if failed.fleet.demands:
        total = sum(demand.needed for demand in failed.fleet.demands.values() if not demand.is_part)
        unit = " and ".join(sorted({demand.unit for demand in failed.fleet.demands.values()}))
        within = f"within them {share(failed.fleet):.0%} of the {total:.4g} {unit} that must be met are answered"
        return f"{within}; {SEVERAL}" if several else within
    if relaxations:
        first = relaxations[0]
        either = [relaxation.to for relaxation in relaxations if relaxation.limit == first.limit]
        return f"{' or '.join(either)} instead of {first.from_}"
    return SEVERAL if several else None
