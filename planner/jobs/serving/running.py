"""A trace run on groups of replicas, open or closed, each run remembered; to its end, or while there is hope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.jobs.serving.service import Service
from planner.layouts.table import Floats
from planner.simulate.fleet import ReplicaGroup, Shift, Transfer
from planner.simulate.hopes import Bar, Hopes
from planner.simulate.outcome import Outcome
from planner.simulate.remembered import hoped_once, replayed_once
from planner.simulate.trace import Trace, Users, thinking

Progress = Callable[[float], None]


def run(service: Service, groups: Sequence[ReplicaGroup], trace: Trace, policy: str = "least-outstanding",
        transfer: Transfer | None = None, progress: Progress | None = None, share: float = 1.0,
        phases: Sequence[Shift] = (), seed: int = 0, host: float = 0.0) -> Outcome:
    """Replay a trace on groups of replicas; where users ask, each asks when answered, whenever the trace has it.

    share: of the users that these replicas have. seed: of how long these think. host: seconds from a question until a
    replica has it.
    """
    users = _users(service, trace, share, seed, host)
    if users is None:
        return replayed_once(trace, groups, policy, transfer, progress, phases=phases)
    outcome = replayed_once(trace, groups, policy, transfer, progress, users)
    return outcome.within_ends(_ends(trace, users))


def run_hoping(service: Service, groups: Sequence[ReplicaGroup], trace: Trace, bars: Sequence[Sequence[Bar]],
               delay: Floats, transfer: Transfer | None = None, share: float = 1.0, seed: int = 0) -> Outcome | None:
    """Run a trace while one of the groups of bars may be kept whole; none where it ended before. Otherwise as `run`.

    delay: seconds before the first token of each request that no step has.
    """
    users, groups_of_bars = _users(service, trace, share, seed, delay), tuple(map(tuple, bars))
    if users is None:
        return hoped_once(Hopes(groups_of_bars, delay), trace, groups, transfer, None)
    ends = _ends(trace, users)
    outcome = hoped_once(Hopes(groups_of_bars, delay, ends), trace, groups, transfer, users)
    return None if outcome is None else outcome.within_ends(ends)


def _users(service: Service, trace: Trace, share: float, seed: int, host: Floats | float) -> Users | None:
    """Return the users who ask the requests of a trace; none where they come when the trace has them.

    Replicas have a question when the host has read it, which takes the user as long as thinking.
    """
    asked = service.asked
    if asked.clients is None:
        return None
    users = thinking(max(1, round(asked.clients * share)), asked.think or 0.0, len(trace), seed + 1)
    return replace(users, think=users.think + host)


def _ends(trace: Trace, users: Users) -> int:
    """Return how many requests at either end do not count.

    A closed loop begins with all users at once, and ends with fewer and fewer.
    """
    return max(1, min(users.count, len(trace) // 4))
