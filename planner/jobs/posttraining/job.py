"""Reinforcement learning as a job: every number of GPUs with its fastest way that fits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.answer.assignment import Assignment
from planner.errors import PlannerError
from planner.jobs.columns import Columns, Processed, Run
from planner.jobs.job import Held, Leaner, Picked, Short
from planner.jobs.posttraining.assignment import assignment_of, spread_of, verdict
from planner.jobs.posttraining.held import AXES
from planner.jobs.posttraining.lacking import leaner, short_of
from planner.jobs.posttraining.options import RlWay, ways_on
from planner.jobs.posttraining.question import questions
from planner.jobs.way import Ways
from planner.jobs.ways import WaysJob
from planner.scenario.posttraining import PostTraining
from planner.scenario.workload import Batch
from planner.solver.settings import Effort


@dataclass(frozen=True, slots=True)
class PostTrainingJob(WaysJob[PostTraining, RlWay]):
    """A workload of kind posttraining, looked up."""

    def asking(self, update: Mapping[str, Any]) -> PostTrainingJob:
        """Return the job with keys of its workload changed."""
        return replace(self, asked=self.asked.model_copy(update=dict(update)))

    def sizes(self, at: int) -> list[int]:
        """Return the numbers of GPUs that are looked at: powers of two in a node, and whole nodes."""
        size = self.candidate(at).node.gpus
        return [gpus for gpus in self.counted(at) if gpus >= size or gpus & (gpus - 1) == 0]

    def ways(self, at: int, gpus: int, held: Held) -> Iterator[RlWay]:
        """Yield every way on so many GPUs of a candidate."""
        for question in questions(self.asked, self.catalog, self.terms.market.candidates, at, self.confidence):
            try:
                yield from ways_on(question, gpus, held)
            except PlannerError:
                continue

    def fits(self, way: RlWay) -> bool:
        """Say whether it fits at the confidence."""
        return verdict(way) == "fits"

    def lacking(self, way: RlWay) -> float:
        """Return the bytes by which it misses memory."""
        return way.lacking

    def least(self, ways: Sequence[RlWay]) -> RlWay:
        """Return the one that misses by least."""
        return min(ways, key=lambda way: way.lacking)

    @property
    def steps(self) -> int:
        """Steps of the job."""
        return self.asked.steps or 1

    def late(self, way: RlWay) -> float:
        """Return seconds at the confidence of the deadline over those at the median."""
        sure, law = self.terms.limits.confidence, self.catalog.posttraining_law
        return 1.0 if sure is None else spread_of(law, law.step, way, sure)

    def saved(self, way: RlWay) -> float:
        """Return the bytes of a checkpoint: the states of what trains."""
        critic = way.models.critic
        return (way.policy.states + (critic.states if critic else 0.0)) * way.placed.trainer / int(
            way.policy.row.get("cp", 1))

    def complexity(self, way: RlWay) -> int:
        """Return how many choices of it are not the plain ones."""
        row = way.policy.row
        return (int(not way.placed.colocated) + int(way.placed.swaps) + int(row.get("offload", 0.0) > 0)
                + sum(row.get(axis, 1) > 1 for axis in ("pp", "tp", "cp", "ep")))

    def domains(self) -> Mapping[str, tuple[int | float | str, ...]]:
        """Return what is searched, by name."""
        return {"framework": self.asked.stack, "swap": (0, 1), "recompute": ("none", "full")}

    def assignment(self, way: RlWay, run: Run | None) -> Assignment:
        """Return a way in full; with a run also what it takes and costs."""
        return assignment_of(self.name, self.asked, way, self.terms.market.candidates, self.catalog.posttraining_law,
                             run, self.goodput(way))

    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return that no layout is legal, or no replica holds the longest answer, where that is so."""
        if columns.account.legal:
            return []
        return [f"no layout of {', '.join(self.asked.stack)} is legal, or no replica of the rollouts holds an answer "
                f"of {self.asked.max_model_len:,} tokens with its prompt"]

    def short(self, columns: Columns) -> Short:
        """Return what lacks memory, and the nearest miss."""
        assert isinstance(columns, Ways)
        if columns.made or columns.nearest is None:
            return Short("those that fit keep no other limit")
        return short_of(self.asked, columns.nearest, self.candidate(columns.nearest.candidate))

    @property
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""
        return AXES

    @property
    def choices(self) -> Mapping[str, str]:
        """Other choices that are its own."""
        return {"framework": "workload.stack", "placement": "workload.placement"}

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the tokens of all answers that are learned from."""
        work = self.asked
        return Processed(float((work.steps or 0) * work.answers * (work.input.mean + work.output.mean)))

    def counts(self, most: int) -> Sequence[int]:
        """Return the numbers of GPUs up to `most` that are looked at, rising."""
        return [gpus for gpus in range(1, most + 1) if gpus & (gpus - 1) == 0 or gpus % 8 == 0]

    @property
    def leaner(self) -> Iterator[Leaner]:
        """Adapters, and shorter answers."""
        return leaner(self.asked)

    @property
    def batch(self) -> Batch | None:
        """The answers of a step."""
        return Batch(self.asked.answers)
