"""A batch of images or clips: all asked for at the start, made by replicas that are never idle, and then done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner.answer.assignment import Assignment
from planner.answer.schema import Infeasible, Search
from planner.catalog.load import Catalog
from planner.errors import Unsupported
from planner.jobs.columns import Columns, Processed, ReplicaColumn, Run
from planner.jobs.generation.assignment import generation_assignment
from planner.jobs.generation.choices import GenerationChoices
from planner.jobs.generation.job import GenerationJob
from planner.jobs.generation.options import CallWay
from planner.jobs.generation.queue import Queue
from planner.jobs.generation.replicas import column_of, ways_on
from planner.jobs.job import NOTHING_HELD, Change, Depth, Held, Picked, Replaying, Terms
from planner.jobs.quanta import paid
from planner.jobs.serving.assignment import ReplicaPlace
from planner.jobs.serving.batch import MOST_NODES, Batches, BatchJob
from planner.scenario.generation import Generation
from planner.solver.settings import UNLIMITED, Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRuns(Batches):
    """Runs, the replica of each by its key, and the way of each; and of what fits nowhere what comes nearest."""

    ways: tuple[CallWay, ...] = ()
    leanest: CallWay | None = None


@dataclass(frozen=True, slots=True)
class GenerationBatch(GenerationChoices, BatchJob):
    """A workload of kind generation that has samples, looked up."""

    confidence: float = field(default=0.95, kw_only=True)

    def asking(self, update: Mapping[str, Any]) -> GenerationBatch:
        """Return the job with keys of its workload changed."""
        return replace(self, asked=self.asked.model_copy(update=dict(update)))

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD) -> BatchRuns:
        """Return for the fastest way of every candidate and number of GPUs the runs that keep the limits."""
        ways, made, runs, tight = list[CallWay](), list[ReplicaColumn](), list[Run](), list[CallWay]()
        looked = fit = 0
        for at in self.terms.market.at_hand:
            best = dict[tuple[str, int], CallWay]()
            for way, fitting in ways_on(self.work, self.catalog, self.terms, at, held, self.confidence):
                looked += 1
                if not fitting:
                    tight.append(way)
                    continue
                if way.split.batch > max(1, self.asked.ends or 1):
                    continue  # a call makes no more than is asked for
                fit += 1
                same = way.picture.stored, way.gpus
                if same not in best or way.rate > best[same].rate:
                    best[same] = way
            for way in best.values():
                column = column_of(way, way.rate)
                runs += [run for run in self._runs(len(made), column, depth) if self._keeps(run)]
                ways.append(way)
                made.append(column)
        return BatchRuns(runs=tuple(run.column for run in runs), made=tuple(made), ways=tuple(ways),
                         leanest=min(tight, key=lambda way: way.peak, default=None),
                         account=Search(layouts=looked, legal=looked, fit=fit, domains={
                        "quantization": tuple(self.work.quantization or ())}))

    def _needed(self, column: ReplicaColumn, rate: float, seconds: float) -> int:
        """Return how many units end within so many seconds; more than there are where a call alone takes longer."""
        calls, each = self._calls(column)
        rounds = int(seconds / each * (1 + 1e-12))
        return -(-calls // (rounds * round(rate / column.rate))) if rounds else MOST_NODES + 1

    def _lasting(self, column: ReplicaColumn, units: int, rate: float) -> float:
        """Return the seconds that so many units take: whole calls, as a clip is not made by two replicas."""
        calls, each = self._calls(column)
        return each * -(-calls // (units * round(rate / column.rate)))

    def _calls(self, column: ReplicaColumn) -> tuple[int, float]:
        """Return how many calls make all, and the seconds of one."""
        return -(-(self.asked.ends or 1) // round(column.held)), column.held / column.rate

    def assignments(self, columns: Columns, picks: Sequence[Picked], replaying: Replaying | None = None
                    ) -> list[Assignment]:
        """Return what was picked in full."""
        assert isinstance(columns, BatchRuns)
        return [self._made(columns.ways[run.column.key], run) for run in picks if isinstance(run, Run)]

    def _made(self, way: CallWay, run: Run) -> Assignment:
        replicas = run.column.gpus // way.gpus
        made = generation_assignment(
            self.name, self.work, way, self.terms.market.candidates[way.candidate], self.catalog.generation_law,
            self.confidence, ReplicaPlace(replicas, run.column.nodes, run.offer), Queue(way, replicas, way.rate))
        return made.model_copy(update=paid(run))

    def miss(self, columns: Columns, possible: Callable[[Change], bool]) -> Infeasible | None:
        """Return that no way fits; none where one does."""
        assert isinstance(columns, BatchRuns)
        if columns.ways:
            return None
        service = GenerationJob(self.name, self.work, self.catalog, self.terms, self.confidence)
        return service.lacking(columns.leanest, None, possible)

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the images of the batch, and the GPUs at work on them."""
        gpus = float(sum(run.column.gpus for run in picks if isinstance(run, Run)))
        return Processed(0.0, 0.0, gpus, gpus, images=float(self.work.samples or 0))


def generation_batch(name: str, asked: Generation, catalog: Catalog, terms: Terms, confidence: float
                     ) -> GenerationBatch:
    """Return a resolved batch on its terms. Raises Unsupported for a deadline at a confidence."""
    if terms.limits.confidence is not None:
        raise Unsupported("a deadline at a confidence for a batch of images; give the deadline alone")
    service = GenerationJob(name, asked, catalog, terms, confidence).service
    return GenerationBatch(name, asked, catalog, terms, service, confidence=confidence)

