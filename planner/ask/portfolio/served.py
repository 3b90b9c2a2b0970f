"""The replay has the last word on services of a portfolio: replicas that miss a target answer less, and all is planned
again, until what is planned meets every target. Then fewer replicas than computed are tried where that costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner.ask.portfolio.replays import Need, Replays, Standby, eased, standbys
from planner.jobs.agenda import Agenda
from planner.jobs.columns import Columns, Pick
from planner.jobs.job import Tried
from planner.jobs.market import Market
from planner.jobs.missed import LEAST_CUT, left_of
from planner.jobs.same import replica_of
from planner.jobs.shown import FEW, MARGIN
from planner.solver.fleet.schedule import Schedule
from planner.solver.progress import aside
from planner.solver.settings import Effort

ROUNDS = 12
"""Plans whose services are replayed, at most."""
FEWER_ROUNDS = 24
"""Plans of services alone in search of cheaper ones, at most."""
REQUESTS = 400_000
"""Replayed in that search."""
Solve = Callable[[Agenda, Effort], Schedule]
Less = Mapping[tuple[int, Need], int]
"""By service and need: the micro-requests/s, as computed, of replicas that do by replay."""


@dataclass(frozen=True, slots=True)
class _Met:
    """A question with what replays changed in it, its schedule, and whether that meets every target."""

    agenda: Agenda
    found: Schedule
    met: bool = True


def replayed(agenda: Agenda, effort: Effort, solve: Solve) -> tuple[Agenda, Schedule]:
    """Return the question as replays leave it, and its schedule; what still misses then is said in the question."""
    replays = Replays()
    first = _meeting(agenda, effort, solve, replays, {})
    found = first.found
    if not first.met or found.value is None or first.agenda.missed is None or found.interrupted:
        return first.agenda, found

    def whole(agenda: Agenda, effort: Effort) -> Schedule:
        """Return a schedule that nothing cut short: one that may be dearer is no use beside the first."""
        made = solve(agenda, effort)
        if made.interrupted:
            raise KeyboardInterrupt
        return made

    try:
        with aside():  # services alone cost less than all jobs
            less = _less(first.agenda, effort, whole, replays)
        again = _meeting(first.agenda, effort, whole, replays, less) if less else first
        if again.found.interrupted:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return first.agenda, _open(replace(found, interrupted=True))
    cheaper = again.met and again.found.value is not None and again.found.value < found.value
    agenda, found = (again.agenda, again.found) if cheaper else (first.agenda, found)
    return agenda, _open(found) if effort.is_over else found


def _open(found: Schedule) -> Schedule:
    """Return a schedule without its proof: whether fewer replicas do by replay was not looked at to the end."""
    return replace(found, status="feasible", bound=None)


def _meeting(agenda: Agenda, effort: Effort, solve: Solve, replays: Replays, less: Less) -> _Met:
    """Return a schedule whose services meet their targets by replay, after some rounds; less: needs to start from."""
    asked, less = agenda, dict(less)
    agenda = eased(asked, less)
    found = solve(agenda, effort)
    try:
        for number in range(ROUNDS):
            shown = [(one, *seen) for one in standbys(asked, found) if (seen := replays.of(asked, one)) is not None]
            if not shown:
                return _Met(agenda, found)
            missing = [one for one in shown if not one[2].meets]
            told = tuple(dict.fromkeys(f"{asked.jobs[asked.services[one.service].job].name} {tried.missed()}"
                                       for one, _, tried in missing))
            agenda, asked = replace(agenda, missed=told), replace(asked, missed=told)
            if not missing:
                return _Met(agenda, found)
            if found.interrupted or effort.is_over or number == ROUNDS - 1:
                break
            again = asked.answering(_fewer(asked, missing, less))
            trying = eased(again, less)
            solved = solve(trying, effort) if not again.empty else Schedule("infeasible")
            if solved.value is None and solved.interrupted:
                raise KeyboardInterrupt
            if solved.value is None:
                break
            asked, agenda, found = again, trying, solved
    except KeyboardInterrupt:
        return _Met(agenda, _open(replace(found, interrupted=True)), met=False)
    return _Met(agenda, replace(found, status="feasible"), met=False)


def _fewer(asked: Agenda, missing: Sequence[tuple[Standby, list[Pick], Tried]], less: dict[tuple[int, Need], int]
           ) -> list[Columns]:
    """Return columns in which what missed a target answers less; needs that were eased for it are no longer."""
    columns = list(asked.columns)
    for one, picks, tried in missing:
        job, wrong = asked.services[one.service].job, [
            (one.service, need) for need in one.needs if (one.service, need) in less]
        for key in wrong:
            del less[key]
        if not wrong:
            columns[job] = _cut(columns[job], picks, tried, asked.market)
    return columns


def _cut(columns: Columns, picks: list[Pick], tried: Tried, market: Market) -> Columns:
    """Return the columns of a service with less rate for the replicas that missed, whatever joins their nodes."""
    left = left_of(picks, tried)
    left = left if min(left) < 1 else [LEAST_CUT] * len(picks)
    kinds = {replica_of(pick.column, market.candidates): part for pick, part in zip(picks, left, strict=True)}
    kept = ((at, replace(column, rate=column.rate * kinds.get(replica_of(column, market.candidates), 1.0)))
            for at, column in columns.replicas)
    return replace(columns, replicas=tuple((at, column) for at, column in kept if column.rate > 0))


def _less(agenda: Agenda, effort: Effort, solve: Solve, replays: Replays) -> Less:
    """Return needs that cheaper replicas answer by replay than by computation, of services with the fleet to
    themselves.
    """
    alone = agenda.only({standing.job for standing in agenda.services})
    less, refuted, before = dict[tuple[int, Need], int](), dict[tuple[int, Need], int](), replays.requests
    best = solve(alone, effort)
    for _ in range(FEWER_ROUNDS):
        if best.value is None or effort.is_over or replays.requests - before > REQUESTS:
            break
        trying = dict(less)
        for one in standbys(alone, best):
            for need in one.needs:
                now = less.get((one.service, need), need[0])
                least = max(_least(alone, one, now), refuted.get((one.service, need), 0))
                if least < now:
                    trying[one.service, need] = least
        better = solve(eased(alone, trying), effort)
        if better.value is None or better.value >= best.value:
            break
        for one in standbys(alone, better):
            rate = one.rate(alone)
            new = [need for need in one.needs if rate < less.get((one.service, need), need[0])]
            held = replays.held(alone, one, new)
            less |= {(one.service, need): rate for need in new if need in held}
            refuted |= {(one.service, need): rate + 1 for need in new if need not in held}
        best = solve(eased(alone, less), effort)
    return less


def _least(agenda: Agenda, one: Standby, now: int) -> int:
    """Return the rate, as computed, of the least replicas worth a replay instead of some that answer a need."""
    each = [block.micro_rate for block, count in zip(agenda.problem.services[one.service].blocks, one.row, strict=True)
            if count]
    least = int(now / MARGIN)
    # of a few, one less is further off than the margin
    return min(least, one.rate(agenda) - min(each)) if 1 < sum(one.row) <= FEW else least
