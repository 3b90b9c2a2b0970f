"""Training a diffusion model as a job: few ways, all of them looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.answer.assignment import Assignment
from planner.errors import MissingFact
from planner.jobs.columns import Columns, Processed, Run
from planner.jobs.diffusion.assignment import assignment_of, verdict
from planner.jobs.diffusion.lacking import leaner, short_of
from planner.jobs.diffusion.options import (
    AXES,
    RECOMPUTED,
    StepWay,
    acting,
    divides,
    option,
    quantile,
    sequences,
    smallest,
    splits,
    sure_bytes,
    tunings,
)
from planner.jobs.job import Held, Leaner, Picked, Short
from planner.jobs.way import Ways
from planner.jobs.ways import WaysJob
from planner.scenario.batch import Batch
from planner.scenario.diffusion import DiffusionTraining
from planner.solver.settings import Effort


@dataclass(frozen=True, slots=True)
class DiffusionJob(WaysJob[DiffusionTraining, StepWay]):
    """A workload of kind diffusion, looked up."""

    def asking(self, update: Mapping[str, Any]) -> DiffusionJob:
        """Return the job with keys of its workload changed."""
        work = {**update}
        sure: float = work.pop("confidence", self.confidence)
        return replace(self, asked=self.asked.model_copy(update=work), confidence=sure)

    def sizes(self, at: int) -> list[int]:
        """Return the numbers of GPUs that the batch divides over and the limits admit: in a node, or whole nodes."""
        shared = self.shared(at)
        return [gpus for gpus in self.counted(at) if divides(self.asked.batch, gpus, shared)]

    def shared(self, at: int) -> tuple[int, ...]:
        """Return the numbers of GPUs of a node of a candidate that may share a sample."""
        return sequences(self.catalog.diffusion(self.asked.model), self.candidate(at).node.gpus,
                         self.catalog.diffusion_law)

    def ways(self, at: int, gpus: int, held: Held) -> Iterator[StepWay]:
        """Yield every way on so many GPUs of a candidate."""
        for tuning in tunings(self.asked, self.catalog):
            every = splits(self.asked.batch, gpus, held, full=not tuning.frozen, shared=self.shared(at))
            for split in acting(every, tuning.model, held, self.catalog):
                try:
                    yield option(self.catalog, self.terms.market.candidates, at, tuning, split)
                except MissingFact:
                    break

    def fits(self, way: StepWay) -> bool:
        """Say whether it fits at the confidence."""
        return verdict(way, self.candidate(way.candidate), self.catalog.diffusion_law, self.confidence) == "fits"

    def lacking(self, way: StepWay) -> float:
        """Return the bytes by which it misses memory."""
        return self._sure(way) - self.candidate(way.candidate).gpu.usable_memory

    def least(self, ways: Sequence[StepWay]) -> StepWay:
        """Return the one that takes least memory."""
        return smallest(list(ways))

    def _sure(self, way: StepWay) -> float:
        """Return the bytes that it takes at the confidence."""
        return sure_bytes(way, self.catalog.diffusion_law, self.confidence)

    @property
    def steps(self) -> int:
        """Steps of the job."""
        return self.asked.total_steps or 1

    def late(self, way: StepWay) -> float:
        """Return seconds at the confidence of the deadline over those at the median."""
        sure, law = self.terms.limits.confidence, self.catalog.diffusion_law
        return 1.0 if sure is None else quantile(law, law.step, sure, likely=way.likely)

    def saved(self, way: StepWay) -> float:
        """Return the bytes of a checkpoint."""
        return way.parts["weights"] * way.split.shard

    def complexity(self, way: StepWay) -> int:
        """Return how many choices of it are not the plain ones."""
        split = way.split
        return int(split.shard > 1) + int(split.swapped > 0) + int(split.states_out > 0) + split.spilled + int(
            split.entering < 1) + int(split.sequence > 1)

    def domains(self) -> Mapping[str, tuple[int | float | str, ...]]:
        """Return what is searched, by name."""
        return {"base": self.asked.quantization, "recompute": tuple(RECOMPUTED)}

    def assignment(self, way: StepWay, run: Run | None) -> Assignment:
        """Return a way in full; with a run also what it takes and costs."""
        return assignment_of(self.name, self.asked, way, self.candidate(way.candidate), self.catalog.diffusion_law,
                             self.confidence, run, self.goodput(way))

    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return that no number of GPUs divides the batch, or no GPU has the format of the base, where that is so."""
        if columns.account.legal:
            return []
        if any(self.sizes(at) for at in self.terms.market.at_hand):
            return [f"no candidate multiplies in {', '.join(self.asked.quantization)}"]
        return [f"a batch of {self.asked.batch} is divided by no number of GPUs that is admitted"]

    def short(self, columns: Columns) -> Short:
        """Return what lacks memory, and the nearest miss."""
        assert isinstance(columns, Ways)
        if columns.made or columns.nearest is None:
            return Short("those that fit keep no other limit")
        way = columns.nearest
        return short_of(self.asked, way, self.candidate(way.candidate), self._sure(way))

    @property
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""
        return AXES

    @property
    def choices(self) -> Mapping[str, str]:
        """Other choices that are its own."""
        return {"quantization": "workload.quantization", "optimizer": "workload.optimizer"}

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the images or clips that are trained on, and their tokens."""
        (way,) = [self.way_of(columns, run) for run in picks if isinstance(run, Run)]
        images = float((self.asked.total_steps or 0) * self.asked.batch)
        return Processed(images * way.tuning.sample.image(), images=images)

    def counts(self, most: int) -> Sequence[int]:
        """Return the numbers of GPUs up to `most` that divide the batch, rising."""
        shared = sequences(self.catalog.diffusion(self.asked.model), most, self.catalog.diffusion_law)
        return [gpus for gpus in range(1, most + 1) if divides(self.asked.batch, gpus, shared)]

    @property
    def leaner(self) -> Iterator[Leaner]:
        """Smaller formats, sizes, clips and batches."""
        return leaner(self.asked)

    @property
    def batch(self) -> Batch | None:
        """The samples of a step."""
        return Batch(self.asked.batch)
