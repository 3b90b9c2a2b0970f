"""A job whose ways are few enough to look at one by one: of every candidate and number of GPUs the fastest that fits.

A new kind of work says what its ways are, what each takes and what it is called; the rest of `Job` is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from planner.answer.assignment import Alternative, Assignment, alternative
from planner.answer.schema import Infeasible, Search
from planner.jobs.columns import Columns, Run
from planner.jobs.job import NOTHING_HELD, Change, Depth, Held, Knob, Picked, Replaying, Terms
from planner.jobs.quanta import offered, quanta, used_by
from planner.jobs.way import J, W, Ways, WorkWithWays
from planner.layouts.candidate import Candidate
from planner.money.goodput import goodput, spare_nodes
from planner.money.rent import RentalOffer
from planner.scenario.default import Defaults
from planner.scenario.limits import Objective
from planner.solver.column import Column
from planner.solver.progress import SoFar, say
from planner.solver.quantize import duration_use
from planner.solver.settings import UNLIMITED, Effort
from planner.units import HOUR, show_more

MOST_NODES = 64
"""Nodes of one way at most."""
MOST_ALTERNATIVES = 8


@dataclass(frozen=True, slots=True)
class WaysJob(WorkWithWays[J, W]):
    """A workload that ends, looked up."""

    @property
    def has_requests(self) -> bool:
        """Whether it is a service: it is none."""
        return False

    def under(self, terms: Terms) -> Self:
        """Return the job on other terms; candidates keep their numbers."""
        return replace(self, terms=terms)

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD) -> Ways[W]:
        """Return of every candidate and number of GPUs the fastest way that fits and keeps the limits.

        Of one number of GPUs a faster way is as good in every limit and objective, so that no other can win.
        """
        made, runs, missed = list[W](), list[Column](), list[W]()
        looked = fit = 0
        at_hand = list(self.terms.market.at_hand)
        for done, at in enumerate(at_hand):
            say(partial(self._so_far, done / len(at_hand), runs))
            for gpus in self.sizes(at):
                ways = list(self.ways(at, gpus, held))
                looked += len(ways)
                fitting = [way for way in ways if self.fits(way)]
                fit += len(fitting)
                if not fitting:
                    missed += [self.least(ways)] if ways else []
                    continue
                best = min(fitting, key=lambda way: way.rank)
                column = self._column(len(made), best)
                made.append(best)
                if self._keeps(Run(0, column, self.offer(at))):
                    runs.append(column)
        nearest = min(missed, key=self.lacking, default=None)
        return Ways(runs=tuple(runs), made=tuple(made), nearest=nearest, account=Search(
            layouts=looked, legal=looked, fit=fit, domains=dict(self.domains())))

    def _so_far(self, done: float, runs: Sequence[Column]) -> SoFar:
        """Return how far a look at the ways is; what was not looked at has no bound."""
        values = [self._value(Run(0, column, self.offer(column.candidate))) for column in runs]
        return SoFar(self.terms.objective, done, min(values, default=None), None)

    def counted(self, at: int) -> list[int]:
        """Return the numbers of GPUs that the limits admit on a candidate: in a node, or whole nodes."""
        candidate, limits, offer = self.candidate(at), self.terms.limits, self.offer(at)
        nodes = min(most for most in (MOST_NODES if candidate.clustered else 1, limits.max_nodes,
                                      None if offer is None else offer.nodes) if most is not None)
        size = candidate.node.gpus
        whole = [size * count for count in range(2, nodes + 1)]
        return [gpus for gpus in (*range(1, size + 1), *whole) if nodes >= 1
                and (limits.gpus is None or gpus == limits.gpus)
                and (limits.max_gpus is None or gpus <= limits.max_gpus)]

    def candidate(self, at: int) -> Candidate:
        """Return a candidate by its number."""
        return self.terms.market.candidates[at]

    def offer(self, at: int) -> RentalOffer | None:
        """Return the offer of a candidate; none where money is not asked about."""
        return next((offer for offer in self.terms.market.offers if offer.candidate == at), None)

    def nodes(self, way: W) -> int:
        """Return the nodes that a way is on."""
        return -(-way.gpus // self.candidate(way.candidate).node.gpus)

    def watts(self, way: W) -> float:
        """Return the power of one of its nodes under load, on average."""
        return self.candidate(way.candidate).node.power.load

    def _column(self, key: int, way: W) -> Column:
        nodes, spares = self.nodes(way), self._spares(way)
        seconds = self.steps * way.step / self.goodput(way)
        power = math.ceil((nodes + spares) * self.watts(way))
        return Column(key, way.candidate, nodes, spares, way.gpus, duration_use(seconds),
                      duration_use(seconds * self.late(way)), math.ceil(power * seconds / HOUR), power,
                      math.ceil(self.saved(way)),
                      self.complexity(way))

    def _failing(self, way: W) -> tuple[Any, Any, Any, Any]:
        offer = self.offer(way.candidate)
        nodes = self.nodes(way)
        reclaims = math.inf if offer is None else offer.node_hours_per_reclaim
        return self.catalog.reliability, np.array([way.gpus]), np.array([nodes]), np.array([reclaims])

    def goodput(self, way: W) -> float:
        """Return the productive share of wall time."""
        facts, gpus, nodes, reclaims = self._failing(way)
        return float(goodput(facts, gpus, nodes, self.saved(way), reclaims)[0])

    def _spares(self, way: W) -> int:
        """Return the spare nodes of a run on several; on one it waits for the repair."""
        facts, gpus, nodes, reclaims = self._failing(way)
        return int(spare_nodes(facts, gpus, nodes, reclaims)[0]) if nodes[0] > 1 else 0

    def _keeps(self, run: Run) -> bool:
        limits, used = quanta(self.terms.limits), used_by(run)
        return ((limits.deadline_us is None or run.column.upper_us <= limits.deadline_us)
                and (limits.budget_cents is None or used["budget"] * 100 <= limits.budget_cents)
                and (limits.max_power_w is None or run.column.power_w <= limits.max_power_w)
                and (run.offer is None or run.offer.nodes is None or run.column.rented_nodes <= run.offer.nodes))

    def way_of(self, columns: Columns, pick: Run) -> W:
        """Return the way of a run."""
        assert isinstance(columns, Ways)
        way: W = columns.made[pick.column.key]
        return way

    def assignments(self, columns: Columns, picks: Sequence[Picked], replaying: Replaying | None = None
                    ) -> list[Assignment]:
        """Return what was picked in full."""
        return [self.assignment(self.way_of(columns, run), run) for run in picks if isinstance(run, Run)]

    def faults(self, columns: Columns, picks: Sequence[Picked]) -> list[str]:
        """Return what does not fit of what was picked, by its bytes added up again."""
        return [f"{self.name} does not fit" for made in self.assignments(columns, picks)
                if sum(made.memory.components.model_dump().values()) > made.memory.usable_bytes]

    def miss(self, columns: Columns, possible: Callable[[Change], bool]) -> Infeasible | None:
        """Return nothing: limits and memory are among the reasons."""
        return None

    def knobs(self, assignments: Sequence[Assignment]) -> Iterable[Knob]:
        """Yield nothing: only limits may cost something."""
        return ()

    def decided(self, columns: Columns) -> Defaults:
        """Return nothing beside the defaults of the question."""
        return []

    def alternatives(self, columns: Columns, picks: Sequence[Picked], effort: Effort, *, proven: bool
                     ) -> list[Alternative]:
        """Return the best of every other hardware and number of GPUs, best first, with what it costs more."""
        (best,) = [pick for pick in picks if isinstance(pick, Run)]
        taken, chosen, least = best.column.key, list[Alternative](), max(1, self._value(best))
        runs = sorted((Run(0, column, self.offer(column.candidate)) for column in columns.runs),
                      key=lambda run: (self._value(run), run.column.key))
        seen = {best.column.candidate}
        for run in runs:
            if run.column.key == taken or run.column.candidate in seen or len(chosen) == MOST_ALTERNATIVES:
                continue
            seen.add(run.column.candidate)
            more = self._value(run) / least - 1
            (made,) = self.assignments(columns, [run])
            what = {"cost": "cost", "time": "time", "gpus": "GPUs", "energy": "energy"}[self.terms.objective]
            chosen.append(alternative(made, f"{show_more(more)} {what}",
                                      tied=more < self.catalog.kernels.resolution))
        return chosen

    def _value(self, run: Run) -> int:
        column, objective = run.column, self.terms.objective
        if objective == "cost":
            return 0 if run.offer is None else offered(run.offer, 0).cents(column.rented_nodes, column.paid_us)
        return {"time": column.duration_us, "gpus": column.gpus, "energy": column.energy_wh}[objective]

    def simplest(self, columns: Columns, picks: Sequence[Picked], effort: Effort) -> tuple[Columns, Run, int]:
        """Return the simplest of what cannot be told from what was picked, its columns, and the objective's value."""
        (best,) = [pick for pick in picks if isinstance(pick, Run)]
        most = self._value(best) * (1 + self.catalog.kernels.resolution)
        runs = [Run(0, column, self.offer(column.candidate)) for column in columns.runs]
        run = min((run for run in runs if self._value(run) <= most), key=lambda run: (
            run.column.complexity, run.column.gpus, self._value(run), run.column.key), default=best)
        return columns, run, self._value(run)

    def trade_offs(self, measures: Sequence[Objective], effort: Effort) -> tuple[Columns, list[Run]]:
        """Return the exact frontier of the measures, the best by the first one first."""
        columns = self.columns(effort)
        points = [(tuple(self.under(replace(self.terms, objective=measure))._value(run) for measure in measures), run)
                  for run in (Run(0, column, self.offer(column.candidate)) for column in columns.runs)]
        best = [(values, run) for values, run in points if not any(
            other != values and all(mine <= theirs for mine, theirs in zip(other, values, strict=True))
            for other, _ in points)]
        kept = dict(sorted(best, key=lambda point: (point[0], -point[1].column.key)))
        return columns, [kept[values] for values in sorted(kept)]

    def closest(self, columns: Columns) -> Assignment | None:
        """Return what misses memory by least, in full; none where nothing was looked at."""
        assert isinstance(columns, Ways)
        return None if columns.nearest is None else self.assignment(columns.nearest, None)

    def beside(self, columns: Columns, run: Run, best: Assignment) -> Alternative:
        """Return a run beside the best one."""
        (made,) = self.assignments(columns, [run])
        return alternative(made, f"{made.gpus} {made.gpu} against {best.gpus} {best.gpu}")
