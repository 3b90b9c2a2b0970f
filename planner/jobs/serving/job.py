"""A service: the replicas that answer its requests within their latency targets, and its part of a fleet in full."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from planner.answer.assignment import Assignment
from planner.answer.schema import Infeasible, Search
from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.jobs.columns import Columns, Demand, Pick, Processed, ReplicaColumn
from planner.jobs.job import NOTHING_HELD, Change, Depth, Held, Knob, Leaner, Picked, Replaying, Short, Terms, Tried
from planner.jobs.serving.answers import assignments, month_of
from planner.jobs.serving.blocks import SEQUENCES, TOKENS, Account
from planner.jobs.serving.day import changing
from planner.jobs.serving.doubtful import doubtful
from planner.jobs.serving.knobs import knobs_of
from planner.jobs.serving.misses import answerable, lighter, nothing_meets, too_few
from planner.jobs.serving.options import delays_of, options
from planner.jobs.serving.rates import DEGREES, STAGES
from planner.jobs.serving.service import Service, services_of
from planner.jobs.serving.trial import tried, tried_day
from planner.layouts.candidate import Candidate
from planner.scenario.default import Default, Defaults
from planner.scenario.serving import Serving
from planner.simulate.trace import Trace
from planner.solver.progress import SoFar, say
from planner.solver.settings import UNLIMITED, Effort

AXES = ("tp", "pp", "ep", "dp", "role")
"""Choices that hold a column: degrees of a replica, or what of a request it does."""
ROLES = ("whole", "prefill", "decode")


@dataclass(frozen=True, slots=True)
class ServingJob:
    """A workload of kind serving, looked up."""

    name: str
    asked: Serving
    catalog: Catalog
    terms: Terms
    services: tuple[Service, ...]
    """The service whole, and where it may be split every range of its classes of prompt length."""
    here: tuple[int, ...] | None = None
    """Candidates that are looked at; none is all, which are then known whatever offers the terms have."""
    _known: dict[object, tuple[tuple[Candidate, ...], Columns]] = field(
        default_factory=dict, compare=False, repr=False)
    """Columns by candidates and what is held: neither limits nor prices change them."""

    @property
    def has_requests(self) -> bool:
        """Whether it is a service: it is."""
        return True

    def under(self, terms: Terms) -> ServingJob:
        """Return the job on other terms; candidates keep their numbers."""
        return replace(self, terms=terms)

    def asking(self, update: Mapping[str, Any]) -> ServingJob:
        """Return the job with keys of its workload changed."""
        if not update:
            return self
        other = serving_job(self.name, self.asked.model_copy(update=dict(update)), self.catalog, self.terms)
        return replace(other, here=self.terms.market.at_hand)

    def at_load(self, load: float) -> ServingJob:
        """Return the job at another rate, or with as many users, which changes no way to run a replica."""
        asked = with_load(self.asked, load)
        services = tuple(services_of(asked, self.catalog))
        known = {key: (made, replace(columns, demands=_demands(asked, services)))
                 for key, (made, columns) in self._known.items()}
        return replace(self, asked=asked, services=services, _known=known)

    def times(self, growth: float) -> ServingJob:
        """Return the job, one without a trace, at so many times its load."""
        return self.at_load((self.asked.users or self.asked.rate or 0.0) * growth)

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD) -> Columns:
        """Return every way to run a replica that no other matches, with the rate that it answers within the targets."""
        candidates = self.terms.market.candidates
        key = id(candidates), self.terms.market.of_use, tuple(sorted(held.items()))
        if key not in self._known:
            columns = self._columns({axis: _held(axis, value) for axis, value in held.items()}, effort)
            if columns.open_bound is not None:
                return columns
            self._known[key] = candidates, columns
        return self._known[key][1]

    def _columns(self, held: Mapping[str, int | str], effort: Effort) -> Columns:
        def admitted(column: ReplicaColumn) -> bool:
            return all(getattr(column, axis) == value for axis, value in held.items())

        account, found = Account(), list[tuple[int, ReplicaColumn]]()
        for at, service in enumerate(self.services):
            say(partial(SoFar, self.terms.objective, at / len(self.services), None, None, "layouts of replicas"))
            found += [(at, column) for column in options(
                self.catalog, service, self.terms.market.candidates, account, admitted,
                self.terms.market.of_use or self.here, effort)]
        columns = tuple(found)
        return Columns(replicas=columns, demands=_demands(self.asked, self.services),
                       doubtful=cache(lambda: [(at, column) for at, searched in enumerate(account.searched)
                                               for column in doubtful(self.catalog, searched)]),
                       account=self._account(account, columns), open_bound=0 if account.cut_short else None)

    def assignments(self, columns: Columns, picks: Sequence[Picked], replaying: Replaying | None = None
                    ) -> list[Assignment]:
        """Return the replicas picked in full; with `replaying`, with percentiles of a replay beside those computed."""
        mine = [pick for pick in picks if isinstance(pick, Pick)]
        return assignments(self.catalog, self.services, self.terms.market.candidates, mine, replaying)

    def tried(self, picks: Sequence[Pick], factor: float, given: Trace | None, least: float = 0.0) -> Tried:
        """Return what replays show of the picks of one demand, at its rate times a factor; given: a trace to hold;
        least: the share up to which it is of no interest how much is held.
        """
        service = self.services[picks[0].demand]
        if service.asked.day is not None and service.asked.clients is not None:
            # of users so many fewer are there in an hour of the day
            service, factor = service.with_users(factor), 1.0
        return tried(self.catalog, service, self.terms.market.candidates, picks, factor, given, least)

    def tried_day(self, picks: Sequence[Pick]) -> Tried:
        """Return what a replay of the whole day shows of its busiest hours, of the picks of one demand.

        Users wait for their answers, so that no hour leaves anything to the next.
        """
        if self.services[picks[0].demand].asked.clients is not None:
            return self.tried(picks, max(self.asked.day or (1.0,)), None)
        return tried_day(self.catalog, self.services[picks[0].demand], self.terms.market.candidates, picks)

    @property
    def has_trace(self) -> bool:
        """Whether the requests are those of a trace."""
        return self.asked.trace is not None

    @property
    def can_miss(self) -> bool:
        """Whether a latency is asked for, that a replay may miss."""
        return (self.asked.ttft, self.asked.tpot, self.asked.e2e) != (None,) * 3

    def faults(self, columns: Columns, picks: Sequence[Picked]) -> list[str]:
        """Return nothing: what the fleet is made of is checked as a whole."""
        return []

    def miss(self, columns: Columns, possible: Callable[[Change], bool]) -> Infeasible | None:
        """Return why no layout answers a request within the targets, even nearly idle; none where some do."""
        if answerable(columns, set(self.terms.market.at_hand)):
            return None
        return nothing_meets(self.name, self.catalog, self.services[0], self.terms.market.offered, possible)

    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return nothing: some layout of every model is legal."""
        return []

    def short(self, columns: Columns) -> Short:
        """Return that the GPUs at hand are fewer than those of the smallest replica; nothing where one is enough."""
        return too_few(self.name, self.catalog, self.services[0], columns, self.terms)

    @property
    def leaner(self) -> Iterator[Leaner]:
        """Formats of the weights that take less."""
        return lighter(self.catalog, self.services[0], self.terms.market.offered)

    @property
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""
        return AXES

    @property
    def choices(self) -> Mapping[str, str]:
        """Other choices that are its own."""
        return {"quantization": "workload.quantization", "engine": "workload.engine"}

    def knobs(self, assignments: Sequence[Assignment]) -> Iterable[Knob]:
        """Yield what latency targets, headroom and spares are worth to the service."""
        return knobs_of(self.name, self.asked, assignments)

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the tokens of a month, and the GPUs at work on prompts and on all."""
        mine = [pick for pick in picks if isinstance(pick, Pick)]
        return month_of(self.catalog, self.services, self.terms.market.candidates, mine)

    def decided(self, columns: Columns) -> Defaults:
        """Return what decided beside the defaults of the question: the rate of a trace."""
        whole = self.services[0]
        if whole.trace is None:
            return []
        return [Default(name=f"{self.name}.rate", value=f"{whole.rate:.3g} requests/s",
                        why=f"the trace's busiest five minutes; its mean is {whole.trace.rate:.3g}")]

    def _account(self, account: Account, columns: Iterable[tuple[int, ReplicaColumn]]) -> Search:
        more, asked = self.catalog.engine(self.asked.engine).memory_fraction_most, self.asked
        usual: tuple[str | float, ...] = ("default", *(() if more is None else (more,)))
        return Search(
            layouts=account.layouts, legal=account.legal, fit=account.fit,
            removed={rule: count for rule, count in account.removed.items() if count},
            staged=len({(at, column.layout) for at, column in columns}),
            domains={"candidate": tuple(c.label for c in self.terms.market.candidates),
                     "quantization": tuple(self.asked.quantization or ()), "tp": DEGREES, "pp": STAGES,
                     "attention_dp": DEGREES, "ep": (1, "attention_dp"),
                     "memory_fraction": (asked.memory_fraction,) if asked.memory_fraction else usual,
                     "max_batched_tokens": (asked.max_batched_tokens,) if asked.max_batched_tokens else (
                         "default", *TOKENS),
                     "max_sequences": (asked.max_sequences,) if asked.max_sequences else ("default", *SEQUENCES),
                     **({} if not self.services[0].model.mixes_experts else {
                         "prefill_delay": tuple(steps or 0 for steps in delays_of(self.catalog, self.services[0]))})})


def serving_job(name: str, asked: Serving, catalog: Catalog, terms: Terms) -> ServingJob:
    """Return a resolved service on its terms. Raises InputError where it has no load that a fleet could be for."""
    if asked.rate is None and asked.trace is None and asked.clients is None:
        raise InputError(f"{asked.label}: neither rate, users nor trace is given: a plan needs the load, such as rate: "
                         "20 requests/s or users: 200; planner estimate says what one layout can serve at most")
    return ServingJob(name, asked, catalog, terms, tuple(services_of(asked, catalog)))


def with_load(asked: Serving, load: float) -> Serving:
    """Return a service at another rate, or with as many users."""
    return asked.model_copy(update={"rate": load} if asked.users is None else {"users": round(load)})


def _demands(asked: Serving, services: Sequence[Service]) -> tuple[Demand, ...]:
    return tuple(Demand(service.needed, asked.day, asked.spare_replicas or asked.spare_nodes, service.classes,
                        service.prompts is not None, asked.spare_nodes > 0, changing(asked),
                        "requests/s" if asked.clients is None else "users")
                 for service in services)


def _held(axis: str, value: str) -> int | str:
    if axis == "role":
        if value not in ROLES:
            raise UnknownName("role of a layout", value, list(ROLES))
        return value
    if not (value.isdecimal() and len(value) < 10 and int(value)):
        raise InputError(f"layout {axis}={value}: expected a whole number above zero")
    return int(value)
