"""The replay has the last word: a fleet of services is replayed, and searched again where it misses or less may do.

What a replay shows of the replicas that missed cuts their rates, and the fleet is chosen again, until one meets every
target. Then what would be cheaper, were rates above those computed, is replayed too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.answer.objective import amount
from planner.jobs.columns import Pick
from planner.jobs.fleet import Owner
from planner.jobs.job import Tried
from planner.jobs.missed import SHOWN_WHOLE
from planner.jobs.one_kind import nodes_of, only
from planner.jobs.quicker import quicker
from planner.jobs.same import owner_of
from planner.jobs.shown import FEW, MARGIN, Trials
from planner.jobs.solved import Solved
from planner.simulate.trace import Trace
from planner.solver.progress import SoFar, say

ROUNDS = 24
"""Fleets that are replayed until one meets the targets."""
CHANGED = 4
"""Searches for a cheaper day whose changes cost: each is one model of all hours."""
REQUESTS = 400_000
"""Replayed after that in search of cheaper fleets."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A fleet after its replays."""

    solved: Solved
    met: bool
    """Whether its replay meets every target."""
    gap: float | None = 0.0
    """By what share of its value a cheaper fleet that no replay has refuted may be below it; none where nobody knows,
    as hours with a replica less are tried for the best hardware alone.
    """
    missed: tuple[str, ...] = ()
    """Which targets are missed by how much, where some are."""
    interrupted: bool = False
    """Whether Ctrl-C ended the replays."""


def settle(solved: Solved, given: Trace | None = None, known: dict[object, Tried] | None = None, *,
           enough: float = 0.0) -> Settled:
    """Return the best fleet that replays within every target, given: a trace to hold besides; training as it is.

    known: what replays have shown of these jobs, on any offer; it is told what others show. enough: below which
    value of the objective a fleet that meets the targets will do, while none at it or above is of interest. What Ctrl-C
    ends is the best so far; where it ended the search already, nothing is replayed.
    """
    if not any(columns.replicas or columns.doubtful() for columns in solved.columns):
        return Settled(solved, met=True)
    if solved.interrupted:
        return Settled(solved, met=False, interrupted=True)
    search = Trials(quicker(solved), given, known={} if known is None else known, enough=enough)
    try:
        return _by_itself(search, _replayed(search))
    except KeyboardInterrupt:
        return Settled(solved, met=False, interrupted=True)


def wholly_settled(solved: Solved, known: dict[object, Tried] | None = None) -> Solved:
    """Return the best fleet that replays within every target, for who has no use for less. Raises KeyboardInterrupt."""
    found = settle(solved, known=known)
    if found.interrupted:
        raise KeyboardInterrupt
    return found.solved


def _by_itself(search: Trials, settled: Settled) -> Settled:
    """Return what is settled, or a better fleet on one of the node types that missed beside others.

    Of a day, whose hours are worked out anew for each, those that it takes.
    """
    has_day = any(demand.day is not None for demand in search.start.fleet.demands.values())
    for node in sorted(search.blamed & nodes_of(settled.solved) if has_day else search.blamed):
        found_enough = settled.met and search.will_do(settled.solved)
        if found_enough or settled.interrupted or search.start.effort.is_over:
            break
        alone = Trials(only(search.start, node), search.given, known=search.known, enough=search.enough)
        most = alone.solve(alone.further)
        hoped, value = most.solution.value, settled.solved.solution.value
        # fewer replicas than hoped may do, too
        if hoped is None or (settled.met and value is not None and hoped >= value * MARGIN and not has_day):
            continue
        if search.enough and not search.will_do(most):
            continue
        found = _replayed(alone)
        if _is_better(found, settled):
            settled = replace(found, gap=None if has_day else _gap_of(settled, found.solved))
    return settled


def _is_better(found: Settled, settled: Settled) -> bool:
    """Say whether a fleet meets the targets, and another does not or is worse."""
    if not found.met or found.solved.solution.value is None:
        return False
    has_none = not settled.met or settled.solved.solution.value is None
    return has_none or _worth(found.solved) < _worth(settled.solved)


def _gap_of(settled: Settled, better: Solved) -> float | None:
    """Return by what share a fleet that no replay has refuted may be below a better one than was settled on."""
    was, value = settled.solved.solution.value, better.solution.value
    if settled.gap is None or not was or not value or not settled.met:
        return settled.gap
    return max(0.0, 1 - was * (1 - settled.gap) / value)


def _replayed(search: Trials) -> Settled:
    """Return the best fleet that replays within every target."""
    solved = best = search.start
    if best.solution.value is not None and any(demand.changing for demand in solved.fleet.demands.values()):
        # what hours hold by themselves is soon found, and is so where their changes cost too
        search.changing = False
        apart = _settled(search, search.solve())
        if apart.met:
            search.rates |= {search.key(owner_of(pick), pick.column): pick.column.rate
                             for pick in apart.solved.picks if isinstance(pick, Pick)}
        search.changing = True
        best = search.solve()
        if best.solution.value is None:
            return Settled(solved, met=False)
    if best.solution.value is None:
        # limits and targets that no computed rate keeps may be kept by one that a replay shows
        found = _first_held(search)
        if found is None:
            return Settled(solved, met=True)
        best = found
    return _settled(search, best)


def _first_held(search: Trials) -> Solved | None:
    """Return the best fleet that replays within every target of those beyond the formula; none where none is found."""
    for _ in range(ROUNDS):
        best = search.solve(MARGIN)
        if best.solution.value is None or search.requests > REQUESTS or search.start.effort.is_over:
            break
        missed = next(search.misses(best), None)
        if missed is None:
            return _held(search, best)
        search.refute(best, missed[0], *missed[2:])
    return None


def _settled(search: Trials, best: Solved) -> Settled:
    """Return the best fleet that replays within every target from one on that may not."""
    short: list[tuple[str, Tried]] = []
    for _ in range(ROUNDS):
        _tell(best, best.solution.value)
        missed, whole = list(search.misses(best)), False
        if not missed and search.will_do(best):
            return Settled(best, met=True)
        if not missed:
            settled = _cheaper(search, best)
            if settled.interrupted:
                return settled
            if not search.counts_changes:
                fewer = _fewer_by_hour(search, settled.solved)
                settled = replace(settled, solved=fewer, gap=settled.gap if fewer is settled.solved else None)
            best, missed = settled.solved, list(search.misses_of_day(settled.solved)) if search.changing else []
            if not missed:
                return settled
            whole = True
        short = [(search.job(owner).name, shown) for owner, _, _, shown in missed]
        if search.is_over(best):
            break
        for owner, hour, picks, shown in missed:
            search.cut(owner, hour, picks, shown, whole=whole or search.job(owner).has_trace)
        again = search.solve()
        if again.solution.value is None:
            break
        best = again
    return Settled(best, met=False, missed=tuple(dict.fromkeys(f"{name} {shown.missed()}" for name, shown in short)))


def _tell(solved: Solved, value: int | None = None, bound: int | None = None) -> None:
    """Tell who waits that all hardware is searched and fleets are replayed: the cheapest by formula or by replay, and
    the bound that replays leave.
    """
    goal = solved.question.terms.objective
    value, bound = (None if of is None else round(solved.fleet.amount(of) / amount(goal, 1)) for of in (value, bound))
    say(lambda: SoFar(goal, 1.0, value, bound, "requests are replayed on the best"))


def _cheaper(search: Trials, best: Solved) -> Settled:
    """Return a fleet that meets the targets, or a cheaper one that does so too; what Ctrl-C ends is the best so far."""
    found = [best]
    try:
        return _cheapest(search, found)
    except KeyboardInterrupt:
        return Settled(found[-1], met=True, gap=1.0, interrupted=True)


def _cheapest(search: Trials, found: list[Solved]) -> Settled:
    """Return a cheaper fleet than the one found that meets the targets too; those found on the way are added."""
    best = found[-1]
    margin, spent, rounds = MARGIN, search.requests, 0
    while best.solution.value:
        better, rounds = search.solve(margin), rounds + 1
        bound = better.solution.bound
        if bound is None or (search.enough and not search.will_do(better)):
            break
        if bound >= best.solution.value and _worth(better) >= _worth(best):
            # one replica less of few is further off than the margin, and of many it is nearer than what missed
            fewer, bound = search.fewer(best), best.solution.value
            if not fewer:
                break
            better = search.solve(raised=fewer)
            if (better.solution.value is None or _worth(better) >= _worth(best)) and not search.start.effort.is_over:
                continue  # another kind may do with less
        _tell(best, best.solution.value, bound)
        over = search.changing and len(best.fleet.periods()[0]) > 1 and rounds > CHANGED
        if over or search.requests - spent > REQUESTS or search.start.effort.is_over or _worth(better) >= _worth(best):
            return Settled(best, met=True, gap=max(0.0, 1 - bound / best.solution.value))
        missed = next(search.misses(better), None)
        if missed is None:
            # what they hold is at least what is asked of them, and may be still more
            best, margin = _held(search, better), margin * MARGIN
            found.append(best)
            if search.will_do(best):
                break
        else:
            search.refute(better, missed[0], *missed[2:])
    return Settled(best, met=True)


def _fewer_by_hour(search: Trials, best: Solved) -> Solved:
    """Return a day with a replica less in the hours that a replay shows to do with it: one of few is more than the
    margin.
    """
    for owner, hours in search.hours().items():
        demand = search.start.fleet.demands[owner]
        if demand.day is None or demand.spares:
            continue
        for factor in dict.fromkeys(demand.day[hour] for hour in hours):
            alike = [hour for hour in hours if demand.day[hour] == factor]
            while not search.start.effort.is_over and (less := _one_less_at(search, best, owner, alike[0])):
                before = dict(search.needs)
                search.needs |= {(owner, hour): less / (demand.needed * factor) for hour in alike}
                better = search.solve()
                if (better.solution.value is None or _worth(better) >= _worth(best)
                        or next(search.misses(better), None) is not None):
                    search.needs = before
                    break
                best = better
    return best


def _one_less_at(search: Trials, best: Solved, owner: Owner, hour: int) -> float:
    """Return the rate that the replicas of an hour have with the weakest of them gone; zero of one, or of many."""
    picks = [pick for pick in best.fleet.picks_at(best.solution, hour) if owner_of(pick) == owner]
    if not 1 < sum(pick.replicas for pick in picks) <= FEW or len({pick.column.role for pick in picks}) > 1:
        return 0.0
    rates = [pick.column.rate for pick in picks]
    return SHOWN_WHOLE * (sum(pick.replicas * rate for pick, rate in zip(picks, rates, strict=True)) - min(rates))


def _held(search: Trials, better: Solved) -> Solved:
    """Return a fleet that holds more than computed, among columns at the rates that are proven by its replay."""
    for pick in better.picks:
        if isinstance(pick, Pick):
            search.hold(search.key(owner_of(pick), pick.column), pick.column.rate)
    again = search.solve()
    return again if _worth(again) == _worth(better) else better


def _worth(solved: Solved) -> tuple[int, int]:
    """Return the objective, and the GPUs of all hours: what decides among fleets on as many nodes."""
    covered = solved.solution.covered
    return solved.solution.value or 0, sum(covered.gpus(solved.fleet.problem()))
