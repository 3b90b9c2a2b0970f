"""Which replica a request goes to. A policy is one class with one method, made for the replicas it chooses among."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from operator import attrgetter
from typing import Protocol

from planner.errors import UnknownName
from planner.simulate.replica import InFlight, Replica

SLACK = 32
"""Requests outstanding above the least loaded replica at which a cached prefix no longer draws more; as in SGLang's
cache-aware router (balance_abs_threshold)."""
_outstanding = attrgetter("outstanding")


class Policy(Protocol):
    """Chooses among replicas on which the request fits; `now` is the moment of its arrival, in seconds."""

    def choose(self, job: InFlight, now: float) -> Replica:
        """Return the replica for this request."""


class RoundRobin:
    """Each replica in turn."""

    def __init__(self, replicas: Sequence[Replica], weights: Sequence[float]) -> None:
        self.replicas, self.turn = replicas, -1

    def choose(self, job: InFlight, now: float) -> Replica:
        """Return the next replica."""
        self.turn = (self.turn + 1) % len(self.replicas)
        return self.replicas[self.turn]


class LeastOutstanding:
    """The replica with the fewest requests waiting and running, for its weight; among equals, in turn."""

    def __init__(self, replicas: Sequence[Replica], weights: Sequence[float]) -> None:
        self.replicas, self.turn = replicas, -1
        self.loads, places = replicas[0].loads, [replica.index for replica in replicas]
        self.places = slice(places[0], places[-1] + 1) if places == [*range(places[0], places[-1] + 1)] else places
        ends = [at for at in range(1, len(weights)) if weights[at] != weights[at - 1]]
        self.runs = [(first, end, weights[first]) for first, end in pairwise([0, *ends, len(weights)])]
        """Replicas next to each other of one weight: from, up to, and the weight. Few, also of a fleet of 100,000."""

    def choose(self, job: InFlight, now: float) -> Replica:
        """Return the least loaded replica."""
        if len(self.replicas) == 1:
            return self.replicas[0]
        loads = (self.loads[self.places] if isinstance(self.places, slice)
                 else [self.loads[place] for place in self.places])
        if len(self.runs) == 1:
            least = min(loads)
            try:
                self.turn = loads.index(least, self.turn + 1)
            except ValueError:
                self.turn = loads.index(least)
            return self.replicas[self.turn]
        idlest = [(first, end, min(loads[first:end]), weight) for first, end, weight in self.runs]
        # the request itself counts, so that an idle weak replica is no better than a strong one with room
        shortest = min((load + 1) / weight for _, _, load, weight in idlest)
        best = [(first, end, load) for first, end, load, weight in idlest if (load + 1) / weight == shortest]
        at = _first(loads, best, self.turn + 1)
        self.turn = _first(loads, best, 0) if at < 0 else at
        return self.replicas[self.turn]


def _first(loads: list[int], runs: list[tuple[int, int, int]], after: int) -> int:
    """Return the first place from `after` on that has the load of its run; -1 where none has."""
    for first, end, load in runs:
        if end > after:
            with suppress(ValueError):
                return loads.index(load, max(first, after), end)
    return -1


class LeastKv:
    """The replica with the smallest share of its cache in use or asked for by its queue."""

    def __init__(self, replicas: Sequence[Replica], weights: Sequence[float]) -> None:
        self.replicas = replicas

    def choose(self, job: InFlight, now: float) -> Replica:
        """Return the replica with the most room."""
        best, least = self.replicas[0], math.inf
        for replica in self.replicas:
            # the cache only grows within a run of steps, so that most replicas are passed over
            if replica.held < least * replica.pool.size and (used := replica.used(now)) < least:
                best, least = replica, used
        return best


class PrefixAware:
    """The replica that holds the longest part of the prompt, unless it is overloaded; else the least loaded."""

    def __init__(self, replicas: Sequence[Replica], weights: Sequence[float]) -> None:
        self.replicas, self.otherwise = replicas, LeastOutstanding(replicas, weights)

    def choose(self, job: InFlight, now: float) -> Replica:
        """Return the replica that saves most, among equals the least loaded."""
        most = min(map(_outstanding, self.replicas)) + SLACK
        matched = [(replica.matched(job), -replica.outstanding, -at) for at, replica in enumerate(self.replicas)
                   if replica.outstanding <= most]
        longest, _, at = max(matched)
        return self.replicas[-at] if longest else self.otherwise.choose(job, now)


class Weighted:
    """Each replica in proportion to its group's weight, evenly over time."""

    def __init__(self, replicas: Sequence[Replica], weights: Sequence[float]) -> None:
        self.replicas, self.gaps = replicas, [1 / weight for weight in weights]
        self.due = list(self.gaps)

    def choose(self, job: InFlight, now: float) -> Replica:
        """Return the replica whose next turn is due first."""
        at = self.due.index(min(self.due))
        self.due[at] += self.gaps[at]
        return self.replicas[at]


POLICIES: dict[str, Callable[[Sequence[Replica], Sequence[float]], Policy]] = {
    "round-robin": RoundRobin, "least-outstanding": LeastOutstanding, "least-kv": LeastKv,
    "prefix-aware": PrefixAware, "weighted": Weighted}
"""By name; each is made from replicas and the weight of each."""


class Router:
    """Sends requests to the groups that may serve them, each set of groups with a policy of its own."""

    def __init__(self, replicas: Sequence[Replica], weights: Sequence[float],
                 lengths: Sequence[tuple[int, int] | None], policy: str) -> None:
        """Of each group (`Replica.group`) a weight, and the prompt tokens that it serves, from and up to."""
        if policy not in POLICIES:
            raise UnknownName("routing policy", policy, POLICIES)
        self.replicas, self.weights, self.policy = replicas, weights, policy
        kinds = {replica.group: replica.kind for replica in reversed(replicas)}
        self.groups = [(group, kinds[group].longest, *(lengths[group] or (0, math.inf)))
                       for group in range(len(weights)) if group in kinds]
        self.policies: dict[tuple[int, ...], Policy] = {}
        self.every = tuple([group for group, *_ in self.groups])
        self.shortest = min((most for _, most, *_ in self.groups), default=0)
        """Tokens that every group can hold."""
        self.alike = all(lengths[group] is None for group in self.every)
        """Whether prompts of any length may go to all of them."""

    def may(self, prompt: int, tokens: int) -> tuple[int, ...]:
        """Return the groups that serve such a prompt and can hold that many cached tokens of one sequence."""
        if self.alike and tokens <= self.shortest:
            return self.every
        return tuple([group for group, most, low, high in self.groups if low <= prompt <= high and tokens <= most])

    def choose(self, groups: tuple[int, ...], job: InFlight, now: float) -> Replica:
        """Return the replica of these groups for the request."""
        policy = self.policies.get(groups)
        if policy is None:
            among = [replica for replica in self.replicas if replica.group in groups]
            policy = POLICIES[self.policy](among, [self.weights[replica.group] for replica in among])
            self.policies[groups] = policy
        return policy.choose(job, now)
