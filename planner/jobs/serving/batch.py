"""A batch of documents: requests all there at the start, answered by replicas that are never idle, and then done.

A node of replicas answers r a second, so that u nodes need N / (u r) seconds and cost the same whatever u: as few as
the deadline asks for are taken, or as many as the limits allow where time is minimized.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from planner.answer.assignment import Assignment
from planner.answer.level import Percentiles
from planner.answer.schema import Infeasible, Search
from planner.catalog.load import Catalog
from planner.errors import Unsupported
from planner.jobs.columns import Columns, Processed, ReplicaColumn, Run
from planner.jobs.job import NOTHING_HELD, Change, Depth, Held, Knob, Leaner, Picked, Replaying, Short, Terms
from planner.jobs.quanta import paid, quanta, used_by
from planner.jobs.serving.assignment import Delivered, ReplicaPlace, served_assignment
from planner.jobs.serving.blocks import Account
from planner.jobs.serving.deployed import deployment, held
from planner.jobs.serving.measured import residual
from planner.jobs.serving.misses import lighter, nothing_meets
from planner.jobs.serving.options import options
from planner.jobs.serving.service import Service, service_of
from planner.physics.serving.steady import RequestMix, offline
from planner.scenario.default import Defaults
from planner.scenario.serving import Serving
from planner.solver.column import Column
from planner.solver.quantize import duration_use
from planner.solver.settings import UNLIMITED, Effort
from planner.units import HOUR

PART = 1e-9
"""Of its time by which a batch must end before a period does, for rounding."""
MOST_NODES = 4096
"""Nodes that share out a batch at most."""
CHOICES = {"quantization": "workload.quantization", "engine": "workload.engine"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches(Columns):
    """Runs, and the replica of each by its key."""

    made: tuple[ReplicaColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A workload of kind serving that has documents, looked up."""

    name: str
    asked: Serving
    catalog: Catalog
    terms: Terms
    service: Service

    @property
    def has_requests(self) -> bool:
        """Whether its requests can be replayed: none has a moment of its own."""
        return False

    def under(self, terms: Terms) -> Self:
        """Return the job on other terms; candidates keep their numbers."""
        return replace(self, terms=terms)

    def asking(self, update: Mapping[str, Any]) -> BatchJob:
        """Return the job with keys of its workload changed."""
        return self if not update else batch_job(self.name, self.asked.model_copy(update=dict(update)), self.catalog,
                                                 self.terms)

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD) -> Batches:
        """Return for every replica that no other matches the runs that keep the limits."""
        account = Account()
        made = tuple(options(self.catalog, self.service, self.terms.market.candidates, account, lambda column: all(
            str(getattr(column, axis)) == value for axis, value in held.items()), self.terms.market.at_hand, effort))
        runs = [run for at, column in enumerate(made) for run in self._runs(at, column, depth) if self._keeps(run)]
        search = Search(layouts=account.layouts, legal=account.legal, fit=account.fit,
                       removed={rule: count for rule, count in account.removed.items() if count})
        return Batches(runs=tuple(run.column for run in runs), made=made, account=search,
                       open_bound=0 if account.cut_short else None)

    def _runs(self, key: int, column: ReplicaColumn, depth: Depth) -> Iterator[Run]:
        """Yield the fewest nodes that end in time on each offer, or the most where these are looked for.

        Among jobs that share nodes over time, the fewest that end within every number of periods.
        """
        offer = next((quote for quote in self.terms.market.offers if quote.candidate == column.candidate), None)
        size, limits = self.terms.market.candidates[column.candidate].node.gpus, self.terms.limits
        together = max(1, -(-column.gpus // size))
        rate = column.rate * (max(1, size // column.gpus))
        most = min(limit for limit in (
            MOST_NODES, limits.max_nodes, *(gpus // min(size, column.gpus * (size // column.gpus) or size) for gpus in (
                limits.gpus, limits.max_gpus) if gpus is not None), None if offer is None else offer.nodes)
            if limit is not None) // together
        least = 1 if limits.deadline is None else max(1, self._needed(column, rate, limits.deadline.seconds))
        counts = {most if self.terms.objective == "time" else least}
        if depth == "shared":
            alone = (self.asked.ends or 1) / rate / self.terms.period
            counts = {max(least, int(np.ceil(alone / periods * (1 + PART))))
                      for periods in range(1, int(np.ceil(alone / least)) + 2)}
        for units in sorted(counts):
            if 1 <= units <= most:
                yield Run(0, self._column(key, column, units * together, units, rate), offer)

    def _needed(self, column: ReplicaColumn, rate: float, seconds: float) -> int:
        """Return how many units of a rate end within so many seconds."""
        return int(np.ceil((self.asked.ends or 1) / rate / seconds * (1 - 1e-12)))

    def _lasting(self, column: ReplicaColumn, units: int, rate: float) -> float:
        """Return the seconds that so many units of a rate take."""
        return (self.asked.ends or 1) / (units * rate)

    def _column(self, key: int, column: ReplicaColumn, nodes: int, units: int, rate: float) -> Column:
        node = self.terms.market.candidates[column.candidate].node
        seconds = self._lasting(column, units, rate)
        duration, power = duration_use(seconds), int(np.ceil(nodes * node.power.load))
        return Column(key, column.candidate, nodes, 0, units * max(1, node.gpus // column.gpus) * column.gpus, duration,
                      duration, int(np.ceil(power * seconds / HOUR)), power, 0, sum(column.plainness))

    def _keeps(self, run: Run) -> bool:
        limits, used = quanta(self.terms.limits), used_by(run)
        return ((limits.deadline_us is None or run.column.upper_us <= limits.deadline_us)
                and (limits.budget_cents is None or used["budget"] * 100 <= limits.budget_cents)
                and (limits.max_power_w is None or run.column.power_w <= limits.max_power_w))

    def assignments(self, columns: Columns, picks: Sequence[Picked], replaying: Replaying | None = None
                    ) -> list[Assignment]:
        """Return what was picked in full."""
        assert isinstance(columns, Batches)
        return [self._assignment(columns.made[run.column.key], run) for run in picks if isinstance(run, Run)]

    def _assignment(self, column: ReplicaColumn, run: Run) -> Assignment:
        d = deployment(self.catalog, self.service, self.terms.market.candidates[column.candidate], column.format,
                       column.settings)
        stream, ones = self.service.stream, np.ones(1)
        steady = offline(d, column.rows, RequestMix(ones * stream.input, ones * stream.output, ones, stream.drafts,
                                                stream.accepted, stream.hits, stream.input_cv, stream.output_cv,
                                                in_step=stream.in_step),
                         ones * column.held)
        capacity = held(self.catalog, self.service, d, column.rows, self.service.mean_length, column.settings)
        tpot, first = float(steady.tpot[0]), float(steady.ttft[0])
        delivered = Delivered(column.rate, float(steady.batch[0]), stream.context, Percentiles(p50=first, p95=first),
                              Percentiles(p50=tpot, p95=tpot), stream.input, stream.output)
        usd = None if run.offer is None else run.offer.usd_per_node_hour
        placed = ReplicaPlace(run.column.gpus // column.gpus, run.column.nodes, run.offer, usd,
                              settings=column.settings)
        made = served_assignment(self.service, d, column.rows, capacity, delivered, placed,
                                 residual(self.catalog, self.service, d))
        assert made.serving is not None
        return made.model_copy(update={
            "serving": made.serving.model_copy(update={"documents": self.asked.documents}), **paid(run)})

    def faults(self, columns: Columns, picks: Sequence[Picked]) -> list[str]:
        """Return nothing: the choice among runs is checked as a whole."""
        return []

    def miss(self, columns: Columns, possible: Callable[[Change], bool]) -> Infeasible | None:
        """Return that a request fits nowhere; none where it does."""
        assert isinstance(columns, Batches)
        if columns.made:
            return None
        return nothing_meets(self.name, self.catalog, self.service, self.terms.market.offered, possible)

    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return nothing: some layout of every model is legal."""
        return []

    def short(self, columns: Columns) -> Short:
        """Return what more memory would do where replicas fit: that none does is told by `miss`."""
        return Short("more memory per GPU would do, as a replica would hold more documents at once")

    @property
    def leaner(self) -> Iterator[Leaner]:
        """Formats of the weights that take less."""
        return lighter(self.catalog, self.service, self.terms.market.offered)

    @property
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""
        return ("tp", "pp", "ep", "dp")

    @property
    def choices(self) -> Mapping[str, str]:
        """Other choices that are its own."""
        return CHOICES

    def knobs(self, assignments: Sequence[Assignment]) -> Iterable[Knob]:
        """Yield nothing: only limits may cost something."""
        return ()

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the tokens of the batch; all GPUs work on all of it."""
        count, gpus = self.asked.documents or 0, sum(run.column.gpus for run in picks if isinstance(run, Run))
        return Processed(count * self.service.stream.input, count * self.service.stream.output, gpus / 2, gpus)

    def decided(self, columns: Columns) -> Defaults:
        """Return nothing beside the defaults of the question."""
        return []


def batch_job(name: str, asked: Serving, catalog: Catalog, terms: Terms) -> BatchJob:
    """Return a resolved batch of documents on its terms. Raises Unsupported for a deadline at a confidence."""
    if terms.limits.confidence is not None:
        raise Unsupported("a deadline at a confidence for a batch of documents; give the deadline alone")
    return BatchJob(name, asked, catalog, terms, service_of(asked, catalog))
