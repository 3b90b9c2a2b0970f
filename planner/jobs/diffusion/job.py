"""Training a diffusion model as a job: all ways to do it on the market, the fastest that fits of each size."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.answer.assignment import Alternative, Assignment, alternative
from planner.answer.schema import Infeasible, Search
from planner.catalog.load import Catalog
from planner.errors import MissingFact
from planner.jobs.columns import Columns, Processed, Run
from planner.jobs.diffusion.assignment import assignment_of, verdict
from planner.jobs.diffusion.lacking import leaner, short_of
from planner.jobs.diffusion.options import (
    AXES,
    RECOMPUTED,
    Option,
    option,
    quantile,
    smallest,
    splits,
    sure_bytes,
    tunings,
)
from planner.jobs.job import NOTHING_HELD, Change, Depth, Held, Knob, Leaner, Picked, Replaying, Short, Terms
from planner.jobs.quanta import offered, quanta, used_by
from planner.money.goodput import goodput, spare_nodes
from planner.scenario.default import Defaults
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.limits import Objective
from planner.scenario.workload import Batch
from planner.solver.column import Column
from planner.solver.quantize import duration_use
from planner.solver.settings import UNLIMITED, Effort
from planner.units import HOUR, show_more

MOST_NODES = 64
"""Nodes that share one batch at most."""
MOST_ALTERNATIVES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways(Columns):
    """Runs, and the way of each by its key; and of what fits nowhere what comes nearest."""

    made: tuple[Option, ...] = ()
    nearest: Option | None = None


@dataclass(frozen=True, slots=True)
class DiffusionJob:
    """A workload of kind diffusion, looked up."""

    name: str
    asked: DiffusionTraining
    catalog: Catalog
    terms: Terms
    confidence: float

    @property
    def has_requests(self) -> bool:
        """Whether it is a service: it is none."""
        return False

    def under(self, terms: Terms) -> DiffusionJob:
        """Return the job on other terms; candidates keep their numbers."""
        return replace(self, terms=terms)

    def asking(self, update: Mapping[str, Any]) -> DiffusionJob:
        """Return the job with keys of its workload changed."""
        work = {**update}
        sure: float = work.pop("confidence", self.confidence)
        return replace(self, asked=self.asked.model_copy(update=work), confidence=sure)

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD) -> Ways:
        """Return of every candidate and number of GPUs the fastest way that fits and keeps the limits.

        Of one number of GPUs a faster way is as good in every limit and objective, so that no other can win.
        """
        made, runs, missed = list[Option](), list[Column](), list[Option]()
        looked = fit = 0
        for at in self.terms.market.at_hand:
            candidate = self.terms.market.candidates[at]
            for gpus in self._sizes(at):
                ways = list(self._ways(at, gpus, held))
                looked += len(ways)
                fitting = [way for way in ways if verdict(
                    way, candidate, self.catalog.diffusion_law, self.confidence) == "fits"]
                fit += len(fitting)
                if not fitting:
                    missed += [smallest(ways)] if ways else []
                    continue
                best = min(fitting, key=lambda way: way.rank)
                column = self._column(len(made), best)
                made.append(best)
                if self._keeps(Run(0, column, self._offer(at))):
                    runs.append(column)
        nearest = min(missed, key=self._lacking, default=None)
        return Ways(runs=tuple(runs), made=tuple(made), nearest=nearest,
                    account=Search(layouts=looked, legal=looked, fit=fit, domains={
                        "base": self.asked.quantization, "recompute": tuple(RECOMPUTED)}))

    def _sizes(self, at: int) -> list[int]:
        """Return the numbers of GPUs that the batch divides over and the limits admit: in a node, or whole nodes."""
        candidate, limits = self.terms.market.candidates[at], self.terms.limits
        offer = self._offer(at)
        nodes = min(most for most in (MOST_NODES if candidate.clustered else 1, limits.max_nodes,
                                      None if offer is None else offer.nodes) if most is not None)
        size = candidate.node.gpus
        whole = [size * count for count in range(2, nodes + 1)]
        return [gpus for gpus in (*range(1, size + 1), *whole) if nodes >= 1 and self.asked.batch % gpus == 0
                and (limits.gpus is None or gpus == limits.gpus)
                and (limits.max_gpus is None or gpus <= limits.max_gpus)]

    def _ways(self, at: int, gpus: int, held: Held) -> Iterator[Option]:
        candidates = self.terms.market.candidates
        for tuning in tunings(self.asked, self.catalog):
            for split in splits(self.asked.batch, gpus, held, full=not tuning.rank):
                try:
                    yield option(self.catalog, candidates, at, tuning, split)
                except MissingFact:
                    break

    def _lacking(self, way: Option) -> float:
        return self._sure(way) - self.terms.market.candidates[way.candidate].gpu.usable_memory

    def _sure(self, way: Option) -> float:
        """Return the bytes that it takes at the confidence."""
        return sure_bytes(way, self.catalog.diffusion_law, self.confidence)

    def _column(self, key: int, way: Option) -> Column:
        candidate = self.terms.market.candidates[way.candidate]
        node, nodes, spares = candidate.node, -(-way.gpus // candidate.node.gpus), self._spares(way)
        seconds = (self.asked.total_steps or 1) * way.step / self._goodput(way)
        sure, law = self.terms.limits.confidence, self.catalog.diffusion_law
        late = 1.0 if sure is None else quantile(law, law.step, sure, likely=way.likely)
        power = math.ceil((nodes + spares) * node.power.load)
        split = way.split
        return Column(key, way.candidate, nodes, spares, way.gpus, duration_use(seconds), duration_use(seconds * late),
                      math.ceil(power * seconds / HOUR), power, 0,
                      int(split.shard > 1) + int(split.swapped > 0) + int(split.states_out > 0))

    def _failing(self, way: Option) -> tuple[Any, Any, Any, Any]:
        candidate = self.terms.market.candidates[way.candidate]
        offer = self._offer(way.candidate)
        nodes = -(-way.gpus // candidate.node.gpus)
        reclaims = math.inf if offer is None else offer.node_hours_per_reclaim
        return self.catalog.reliability, np.array([way.gpus]), np.array([nodes]), np.array([reclaims])

    def _goodput(self, way: Option) -> float:
        facts, gpus, nodes, reclaims = self._failing(way)
        saved = way.parts["weights"] * way.split.shard
        return float(goodput(facts, gpus, nodes, saved, reclaims)[0])

    def _spares(self, way: Option) -> int:
        """Return the spare nodes of a run on several; on one it waits for the repair."""
        facts, gpus, nodes, reclaims = self._failing(way)
        return int(spare_nodes(facts, gpus, nodes, reclaims)[0]) if nodes[0] > 1 else 0

    def _offer(self, candidate: int) -> Any:  # noqa: ANN401 - an offer, or none where money is not asked about
        return next((offer for offer in self.terms.market.offers if offer.candidate == candidate), None)

    def _keeps(self, run: Run) -> bool:
        limits, used = quanta(self.terms.limits), used_by(run)
        return ((limits.deadline_us is None or run.column.upper_us <= limits.deadline_us)
                and (limits.budget_cents is None or used["budget"] * 100 <= limits.budget_cents)
                and (limits.max_power_w is None or run.column.power_w <= limits.max_power_w)
                and (run.offer is None or run.offer.nodes is None or run.column.rented_nodes <= run.offer.nodes))

    def _assignment(self, way: Option, run: Run | None) -> Assignment:
        return assignment_of(self.name, self.asked, way, self.terms.market.candidates[way.candidate],
                             self.catalog.diffusion_law, self.confidence, run, self._goodput(way))

    def assignments(self, columns: Columns, picks: Sequence[Picked], replaying: Replaying | None = None
                    ) -> list[Assignment]:
        """Return what was picked in full."""
        assert isinstance(columns, Ways)
        return [self._assignment(columns.made[run.column.key], run) for run in picks if isinstance(run, Run)]

    def faults(self, columns: Columns, picks: Sequence[Picked]) -> list[str]:
        """Return what does not fit of what was picked, by its bytes added up again."""
        assert isinstance(columns, Ways)
        return [f"{self.name} does not fit" for made in self.assignments(columns, picks)
                if sum(made.memory.components.model_dump().values()) > made.memory.usable_bytes]

    def miss(self, columns: Columns, possible: Callable[[Change], bool]) -> Infeasible | None:
        """Return nothing: limits and memory are among the reasons."""
        return None

    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return that no number of GPUs divides the batch, or no GPU has the format of the base, where that is so."""
        if columns.account.legal:
            return []
        if any(self._sizes(at) for at in self.terms.market.at_hand):
            return [f"no candidate multiplies in {', '.join(self.asked.quantization)}"]
        return [f"a batch of {self.asked.batch} is divided by no number of GPUs that is admitted"]

    def short(self, columns: Columns) -> Short:
        """Return what lacks memory, and the nearest miss."""
        assert isinstance(columns, Ways)
        if columns.made or columns.nearest is None:
            return Short("those that fit keep no other limit")
        way = columns.nearest
        return short_of(self.asked, way, self.terms.market.candidates[way.candidate], self._sure(way))

    @property
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""
        return AXES

    @property
    def choices(self) -> Mapping[str, str]:
        """Other choices that are its own."""
        return {"quantization": "workload.quantization", "optimizer": "workload.optimizer"}

    def knobs(self, assignments: Sequence[Assignment]) -> Iterable[Knob]:
        """Yield nothing: only limits may cost something."""
        return ()

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the tokens that are trained on."""
        assert isinstance(columns, Ways)
        (way,) = [columns.made[run.column.key] for run in picks if isinstance(run, Run)]
        return Processed(float((self.asked.total_steps or 0) * self.asked.batch * way.tuning.sample.image()))

    def decided(self, columns: Columns) -> Defaults:
        """Return nothing beside the defaults of the question."""
        return []

    def alternatives(self, columns: Columns, picks: Sequence[Picked], effort: Effort, *, proven: bool
                     ) -> list[Alternative]:
        """Return the best of every other hardware and number of GPUs, best first, with what it costs more."""
        (best,) = [pick for pick in picks if isinstance(pick, Run)]
        taken, chosen, least = best.column.key, list[Alternative](), max(1, self._value(best))
        runs = sorted((Run(0, column, self._offer(column.candidate)) for column in columns.runs),
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
        runs = [Run(0, column, self._offer(column.candidate)) for column in columns.runs]
        run = min((run for run in runs if self._value(run) <= most), key=lambda run: (
            run.column.complexity, run.column.gpus, self._value(run), run.column.key), default=best)
        return columns, run, self._value(run)

    def trade_offs(self, measures: Sequence[Objective], effort: Effort) -> tuple[Columns, list[Run]]:
        """Return the exact frontier of the measures, the best by the first one first."""
        columns = self.columns(effort)
        points = [(tuple(self.under(replace(self.terms, objective=measure))._value(run) for measure in measures), run)
                  for run in (Run(0, column, self._offer(column.candidate)) for column in columns.runs)]
        best = [(values, run) for values, run in points if not any(
            other != values and all(mine <= theirs for mine, theirs in zip(other, values, strict=True))
            for other, _ in points)]
        kept = dict(sorted(best, key=lambda point: (point[0], -point[1].column.key)))
        return columns, [kept[values] for values in sorted(kept)]

    def closest(self, columns: Columns) -> Assignment | None:
        """Return what misses memory by least, in full; none where nothing was looked at."""
        assert isinstance(columns, Ways)
        return None if columns.nearest is None else self._assignment(columns.nearest, None)

    def counts(self, most: int) -> Sequence[int]:
        """Return the numbers of GPUs up to `most` that divide the batch, rising."""
        return [gpus for gpus in range(1, most + 1) if self.asked.batch % gpus == 0]

    @property
    def leaner(self) -> Iterator[Leaner]:
        """Smaller formats, sizes, clips and batches."""
        return leaner(self.asked)

    @property
    def batch(self) -> Batch | None:
        """The samples of a step."""
        return Batch(self.asked.batch)

    def beside(self, columns: Columns, run: Run, best: Assignment) -> Alternative:
        """Return a run beside the best one."""
        (made,) = self.assignments(columns, [run])
        return alternative(made, f"{made.gpus} {made.gpu} against {best.gpus} {best.gpu}")
