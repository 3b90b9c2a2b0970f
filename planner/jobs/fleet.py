"""The fleet of a question: columns of all jobs and offers of the market as integers, solved, read back as picks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Literal, TypeAlias

from planner.answer.objective import amount
from planner.jobs.columns import MICRO, Columns, Demand, Pick, ReplicaColumn, Run
from planner.jobs.hours import HOURS, changing_hours, factors_of, periods_of
from planner.jobs.job import Picked, Terms
from planner.jobs.market import is_always
from planner.jobs.quanta import least, prices, quanta, shared_out, used_by
from planner.money.rent import RentalOffer
from planner.scenario.limits import Limits, ServingLimits
from planner.solver.check import check_cover
from planner.solver.fleet.covering import LIMITED, Cover, Covered, NodeSupply, Supplied
from planner.solver.fleet.problem import RunProblem
from planner.solver.fleet.single import single
from planner.solver.quantize import DURATION_QUANTUM, price
from planner.solver.settings import Settings, Status
from planner.units import DAY, MONTH_DAYS

MOST_BOUGHT = 256
"""Nodes up to which prices that depend on the number are looked at."""
WATTS_PER_KILOWATT = 1000
Owner: TypeAlias = tuple[int, int]
"""A demand: the number of its job, and its own within it."""
Admitted: TypeAlias = Callable[[ReplicaColumn], bool]
_SIZE = attrgetter("owner", "column.role", "column.gpus")


def everything(column: ReplicaColumn) -> bool:
    """Admit every column."""
    return True


@dataclass(frozen=True, slots=True)
class Offered:
    """A column of a demand, on an offer of its hardware."""

    owner: Owner
    column: ReplicaColumn
    at: int
    """Number of the offer."""


@dataclass(frozen=True, slots=True)
class FleetSolution:
    """How the fleet was chosen. `value` and `bound` are in the objective's quantum; none without a fleet."""

    status: Status
    value: int | None = None
    bound: int | None = None
    run: Run | None = None
    covered: Covered = field(default_factory=lambda: Covered("infeasible"))


@dataclass(frozen=True)
class Fleet:
    """All columns of all jobs on the terms of a question."""

    columns: Sequence[Columns]
    """By job."""
    terms: Terms
    settings: Settings = LIMITED

    @cached_property
    def demands(self) -> dict[Owner, Demand]:
        """Every demand, in the order of jobs."""
        return {(job, at): demand for job, mine in enumerate(self.columns) for at, demand in enumerate(mine.demands)}

    @property
    def factors(self) -> tuple[tuple[float, ...], ...]:
        """Factors of the rates in each hour, a row an hour; one row where every hour is alike."""
        return factors_of([demand.day for demand in self.demands.values()])

    def periods(self) -> tuple[list[tuple[float, ...]], list[int]]:
        """Return the different hours, and which of them each hour of the day is; where changes cost, in their order."""
        return periods_of(self.factors, in_order=self._changing > 0)

    @property
    def _changing(self) -> int:
        """Seconds for which a node that an hour adds is paid besides."""
        if self.terms.objective != "cost" or len(self.factors) == 1:
            return 0
        return max((demand.changing for demand in self.demands.values()), default=0)

    def problem(self, admitted: Admitted = everything, limits: Limits | None = None) -> Cover:
        """Return the question of replicas over the columns admitted."""
        limits = limits or self.terms.limits
        periods, hours = self.periods()
        demands, number = list(self.demands.values()), {owner: at for at, owner in enumerate(self.demands)}
        needs = tuple(tuple(math.ceil(demand.needed * row[at] * MICRO) for row in periods)
                      for at, demand in enumerate(demands))
        made = [Supplied(key, number[pair.owner], pair.at, pair.column.role,
                       max(1, math.floor(pair.column.rate * MICRO)), pair.column.gpus)
                for key, pair in enumerate(self.pairs) if admitted(pair.column)]
        used = {column.supply for column in made}
        ranges = tuple((job, *demand.classes) for (job, _), demand in self.demands.items())
        return Cover(
            needs=needs, spares=tuple(demand.spares for demand in demands), columns=tuple(made),
            supplies=tuple(self._supply(at) for at in sorted(used)),
            hours=tuple(hours.count(at) * (HOURS // len(hours)) for at in range(len(periods))),
            changing=self._changing, whole_nodes=tuple(demand.whole_nodes for demand in demands),
            ranges=ranges if any(demand.is_part for demand in demands) else (),
            objective=self.terms.objective,  # type: ignore[arg-type]
            micro_budget=None if limits.budget is None else math.floor(limits.budget * MICRO),
            max_gpus=least(limits.gpus, limits.max_gpus), max_nodes=limits.max_nodes,
            max_watts=None if limits.max_power is None else int(limits.max_power),
            one_provider=self._alike(limits, "one_provider"), homogeneous=self._alike(limits, "homogeneous"))

    @staticmethod
    def _alike(limits: Limits, what: Literal["one_provider", "homogeneous"]) -> bool:
        return isinstance(limits, ServingLimits) and bool(getattr(limits, what))

    @cached_property
    def pairs(self) -> list[Offered]:
        """Every column on every offer of its hardware, by offer; simple layouts first."""
        owned = [((job, demand), column) for job, mine in enumerate(self.columns) for demand, column in mine.replicas]
        owned.sort(key=lambda pair: (pair[1].candidate, pair[1].role, pair[1].plainness))
        made = [Offered(owner, column, at) for at, offer in enumerate(self.terms.market.offers)
                for owner, column in owned if column.candidate == offer.candidate]
        alike: dict[object, list[Offered]] = {}
        for each in made:
            alike.setdefault(_SIZE(each), []).append(each)
        return [each for each in made if not any(self._cheaper(other, each) for other in alike[_SIZE(each)])]

    def _cheaper(self, other: Offered, offered: Offered) -> bool:
        """Say whether as many of `other`, which are of the same size, can stand for `offered` for less money."""
        mine, theirs, limits = offered.column, other.column, self.terms.limits
        here, there = (self.terms.market.offers[at] for at in (offered.at, other.at))
        if offered.at == other.at or theirs.rate < mine.rate or there.nodes is not None or there.estate is not None:
            return False
        node, others = (self.terms.market.candidates[offer.candidate].node for offer in (here, there))
        return (node.gpus == others.gpus and node.power.load >= others.power.load
                and (there.usd_per_node_hour, other.at) < (here.usd_per_node_hour, offered.at)
                and is_always(there) == is_always(here)
                and not (self._alike(limits, "one_provider") and there.provider != here.provider)
                and not (self._alike(limits, "homogeneous") and others.name != node.name))

    def _supply(self, at: int) -> NodeSupply:
        offer = self.terms.market.offers[at]
        node, estate = self.terms.market.candidates[offer.candidate].node, offer.estate
        each, always = price(offer.usd_per_node_hour), is_always(offer)
        if estate is None:
            return NodeSupply(at, lambda nodes: nodes * each, offer.nodes or MOST_BOUGHT**2, node.gpus,
                              round(node.power.load), always, provider=offer.provider, node=node.name)
        return NodeSupply(at, lambda nodes: nodes * estate(nodes), min(offer.nodes or MOST_BOUGHT, MOST_BOUGHT),
                          node.gpus, round(node.power.load), always, linear=False, provider=offer.provider,
                          node=node.name)

    def picks(self, solution: FleetSolution) -> list[Picked]:
        """Return what was decided, job by job; of replicas those that answer most first."""
        if solution.run is not None:
            return [solution.run]
        by_offer: dict[int, list[int]] = {}
        for key, pair in enumerate(self.pairs):
            if max(solution.covered.replicas.get(key, (0,))):
                by_offer.setdefault(pair.at, []).append(key)
        made = [pick for at, keys in by_offer.items() for pick in self._on_offer(solution.covered, at, keys)]
        order = {owner: at for at, owner in enumerate(self.demands)}
        made.sort(key=lambda pick: (order[pick.job, pick.demand], -pick.replicas * pick.column.rate))
        return list(made)

    def picks_at(self, solution: FleetSolution, hour: int) -> list[Pick]:
        """Return the replicas of services that run in one hour, without what they pay."""
        period = self.periods()[1][hour]
        counts = {key: replicas[period] for key, replicas in solution.covered.replicas.items() if replicas[period]}
        return [Pick(*pair.owner, pair.column, self.terms.market.offers[pair.at], counts[key], 0, ())
                for key, pair in enumerate(self.pairs) if key in counts]

    def _on_offer(self, covered: Covered, at: int, keys: Sequence[int]) -> Iterator[Pick]:
        """Yield the picks of one offer, with the nodes that each is on, and pays for."""
        _, hours = self.periods()
        offer, nodes = self.terms.market.offers[at], self._nodes_by_hour(covered)[at]
        size = self.terms.market.candidates[offer.candidate].node.gpus
        mine_of, besides = [self.pairs[key] for key in keys], self._changing_hours(covered, at)
        periods = [shared_out([pair.column.gpus * covered.replicas[key][period]
                               for key, pair in zip(keys, mine_of, strict=True)], size)
                   for period in range(len(covered.nodes[at]))]
        for number, (key, offered) in enumerate(zip(keys, mine_of, strict=True)):
            mine = [periods[period][number] for period in hours]
            # what is always paid for is paid for as it stands at its busiest hour
            most = mine[nodes.index(max(nodes))] if is_always(offer) else max(mine)
            count, paid = most if most[0] else (max(mine)[0], 0.0)
            working = sum(self.pairs[other].column.gpus * max(covered.replicas[other]) for other in keys)
            buys = working if offer.estate is not None and not number else 0
            busiest = covered.nodes[at].index(max(covered.nodes[at]))
            idle = 0 if number else max(nodes) * size - sum(
                self.pairs[other].column.gpus * covered.replicas[other][busiest] for other in keys)
            hourly = tuple(covered.replicas[key][period] for period in hours) if len(hours) > 1 else ()
            daily, pays = zip(*mine, strict=True)
            hours_paid = sum(pays) * HOURS / len(mine) + besides.get(key, 0.0)
            yield Pick(*offered.owner, offered.column, offer, max(covered.replicas[key]), count, daily, hourly,
                       paid / count, hours_paid / HOURS / max(paid, 1e-9), max(nodes), buys, idle)

    def _changing_hours(self, covered: Covered, at: int) -> dict[int, float]:
        """Return node-hours a day that an offer is paid for besides, as its fleet changes, by column."""
        if is_always(self.terms.market.offers[at]):
            return {}
        replicas = {key: (pair.column.gpus, covered.replicas[key]) for key, pair in enumerate(self.pairs)
                    if pair.at == at and key in covered.replicas}
        return changing_hours(self._supply(at), covered.nodes[at], replicas, self._changing)

    def _nodes_by_hour(self, covered: Covered) -> dict[int, tuple[int, ...]]:
        """Return the nodes of each offer in every hour; one figure where every hour is alike."""
        return {at: tuple(nodes[hour] for hour in self.periods()[1]) for at, nodes in covered.nodes.items()}

    def _usd_per_day(self, covered: Covered) -> float:
        """Return what the nodes of services cost on average in 24 hours; what is always paid for at its busiest."""
        usd = 0.0
        for at, nodes in self._nodes_by_hour(covered).items():
            paid = [max(nodes)] * len(nodes) if is_always(self.terms.market.offers[at]) else nodes
            usd += sum(self._supply(at).micro_usd(count) for count in paid if count) * HOURS / len(paid) / MICRO
            usd += sum(self._changing_hours(covered, at).values()) * self._supply(at).micro_usd(1) / MICRO
        return usd

    def used(self, solution: FleetSolution) -> dict[str, float]:
        """Return what a fleet takes of each limit in the hour that takes most."""
        if solution.run is not None:
            return used_by(solution.run)
        covered = solution.covered
        held = {at: [max(nodes)] * len(nodes) if is_always(self.terms.market.offers[at]) else list(nodes)
                for at, nodes in covered.nodes.items()}
        periods = range(len(self.periods()[0]))
        gpus = max(sum(self.pairs[key].column.gpus * replicas[p] for key, replicas in covered.replicas.items())
                   for p in periods)
        return {"gpus": gpus, "max_gpus": gpus,
                "max_nodes": max(sum(nodes[p] for nodes in covered.nodes.values()) for p in periods),
                "budget": max(sum(self._supply(at).micro_usd(nodes[p]) for at, nodes in held.items() if nodes[p])
                              for p in periods) / MICRO,
                "max_power": max(sum(self._supply(at).watts * nodes[p] for at, nodes in covered.nodes.items())
                                 for p in periods)}

    def days(self, solution: FleetSolution) -> float:
        """Return the days that cost and energy are of: of a run, or of a month of services."""
        return MONTH_DAYS if solution.run is None else solution.run.column.duration_us * DURATION_QUANTUM / DAY

    def usd(self, solution: FleetSolution) -> float:
        """Return what a fleet costs in these days."""
        if solution.run is not None:
            return used_by(solution.run)["budget"]
        return self._usd_per_day(solution.covered) * MONTH_DAYS

    def nodes_on(self, solution: FleetSolution, offers: Sequence[RentalOffer]) -> int:
        """Return the nodes of some offers in use at their busiest."""
        if solution.run is not None:
            return solution.run.column.rented_nodes if solution.run.offer in offers else 0
        return sum(max(nodes) for at, nodes in solution.covered.nodes.items() if self.terms.market.offers[at] in offers)

    def gpus_of_a_node(self, solution: FleetSolution) -> int:
        """Return the least GPUs that a fleet grows by: those of a node of a run, or of services one."""
        return 1 if solution.run is None else solution.run.column.gpus // solution.run.column.nodes

    def amount(self, value: int) -> float:
        """Return a value of the objective in its unit: USD, days, GPUs or kWh; of services that of a month."""
        if not self.demands:
            return amount(self.terms.objective, value)
        # divided once, so that it is the number that its digits say
        times, of = {"cost": (MONTH_DAYS, MICRO), "gpus": (1, 1), "energy": (MONTH_DAYS, WATTS_PER_KILOWATT)}[
            self.terms.objective]
        return value * times / of

    def solve(self, limits: Limits | None = None, admitted: Admitted = everything) -> FleetSolution:
        """Return the fleet with its proof. Raises RuntimeError where a check contradicts it, which is a defect."""
        if self.demands:
            problem = self.problem(admitted, limits)
            covered = covered_by(problem, self.settings)
            if wrong := check_cover(problem, covered):
                raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
            if any(mine.open_bound is not None for mine in self.columns):
                # of columns that were not looked at nothing is known
                status: Status = "undecided" if covered.value is None else "feasible"
                return FleetSolution(status, covered.value, None if covered.value is None else 0, covered=covered)
            return FleetSolution(covered.status, covered.value, covered.bound, covered=covered)
        return self._one_run()

    def _one_run(self) -> FleetSolution:
        """Return the best run of the only job."""
        (mine,) = self.columns
        problem = RunProblem(tuple(mine.runs), prices(self.terms), self.terms.objective, quanta(self.terms.limits))
        solution = single(problem, mine.open_bound)
        column = None if solution.choice is None else solution.choice.column
        offer = None if column is None else next(
            (quote for quote in self.terms.market.offers if quote.candidate == column.candidate), None)
        return FleetSolution(solution.status, solution.value, solution.bound,
                        None if column is None else Run(0, column, offer))


def covered_by(problem: Cover, settings: Settings = LIMITED) -> Covered:
    """Return the best replicas and nodes, with their proof."""
    # CP-SAT takes half a second to load, and neither one run nor an estimate needs it
    from planner.solver.fleet.cover import cover

    return cover(problem, settings)
