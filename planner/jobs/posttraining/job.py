"""Reinforcement learning as a job: every number of GPUs with its fastest way that fits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from planner.answer.assignment import Assignment
from planner.catalog.load import Catalog
from planner.errors import MissingFact, Unsupported
from planner.jobs.columns import Columns, Processed, Run
from planner.jobs.job import Held, Leaner, Picked, Short
from planner.jobs.posttraining.assignment import assignment_of, spread_of
from planner.jobs.posttraining.held import AXES
from planner.jobs.posttraining.lacking import leaner, short_of, unheld
from planner.jobs.posttraining.options import ELSEWHERE, parts_of, ways_on
from planner.jobs.posttraining.pairs import TRAINING, Pair
from planner.jobs.posttraining.question import RlQuestion, questions
from planner.jobs.posttraining.way import RlWay
from planner.jobs.way import Ways
from planner.jobs.ways import WaysJob
from planner.layouts.candidate import Candidate
from planner.physics.shapes import parameters
from planner.scenario.batch import Batch
from planner.scenario.default import Default, Defaults
from planner.scenario.posttraining import PostTraining
from planner.solver.settings import Effort

NODES = frozenset({1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64})
"""Numbers of nodes that are looked at: each within a third of the next."""


_KNOWN: WeakKeyDictionary[Catalog, dict[object, tuple[RlQuestion, ...]]] = WeakKeyDictionary()
"""Questions by what is asked and the hardware: offers of the same nodes, and verbs that ask again, share them."""
MOST_KNOWN = 256


def _listed(counts: Collection[int]) -> str:
    return ", ".join(map(str, sorted(counts)))


def _tried(question: RlQuestion, gpus: int, held: Held) -> tuple[RlWay, ...]:
    """Return the ways on so many GPUs; none where a fact is missing, or the stack or the engine cannot."""
    def found() -> tuple[RlWay, ...]:
        try:
            return tuple(ways_on(question, gpus, held))
        except (MissingFact, Unsupported):
            return ()
    return question.once(("ways", gpus, *sorted(held.items())), found)


@dataclass(frozen=True, slots=True)
class PostTrainingJob(WaysJob[PostTraining, RlWay]):
    """A workload of kind posttraining, looked up."""

    pairs: Mapping[int, Pair] = field(default_factory=dict)
    """Of candidates that are trainers with rollouts elsewhere: how many nodes of each."""

    def nodes(self, way: RlWay) -> int:
        """Return the nodes of trainer and rollouts."""
        pair = self.pairs.get(way.candidate)
        return -(-way.gpus // self.candidate(way.candidate).node.gpus) if pair is None else pair.nodes

    def watts(self, way: RlWay) -> float:
        """Return the mean power of a node under load."""
        here, pair = self.candidate(way.candidate).node.power.load, self.pairs.get(way.candidate)
        if pair is None:
            return here
        there = self.candidate(pair.rollouts).node.power.load
        return (pair.training * here + pair.drawing * there) / pair.nodes

    def asking(self, update: Mapping[str, Any]) -> PostTrainingJob:
        """Return the job with keys of its workload changed."""
        return replace(self, asked=self.asked.model_copy(update=dict(update)))

    def sizes(self, at: int) -> list[int]:
        """Return the numbers of GPUs that are looked at: powers of two in a node, then NODES; one that is asked for."""
        size, asked, pair = self.candidate(at).node.gpus, self.terms.limits.gpus, self.pairs.get(at)
        if pair is not None:
            limits = self.terms.limits
            total = pair.training * size + pair.drawing * self.candidate(pair.rollouts).node.gpus
            within = (limits.gpus in (None, total) and total <= (limits.max_gpus or total)
                      and pair.nodes <= (limits.max_nodes or pair.nodes))
            return [total] if within else []
        return [gpus for gpus in self.counted(at) if gpus == asked or (
            gpus // size in NODES if gpus >= size else gpus & (gpus - 1) == 0)]

    def ways(self, at: int, gpus: int, held: Held) -> Iterator[RlWay]:
        """Yield every way on so many GPUs of a candidate."""
        if (pair := self.pairs.get(at)) is not None:
            yield from (replace(way, candidate=at) for way in self._elsewhere(pair, held))
            return
        asked = self._questions(self.asked, (self.candidate(at),))
        for question in asked:
            try:
                question.train(parts_of(question, self.sizes(at)))
            except (MissingFact, Unsupported):
                continue
            for way in _tried(question, gpus, held):
                yield replace(way, candidate=at, rollouts_on=at)

    def _elsewhere(self, pair: Pair, held: Held) -> Iterator[RlWay]:
        """Yield the ways of a pair of counts."""
        both = tuple(self.candidate(at) for at in (pair.trainer, pair.rollouts))
        asked = self.asked.model_copy(update={"rollouts_on": (both[1].node.name,)})
        apart = {**held, "rollout_gpus": str(pair.drawing * both[1].node.gpus)}
        for question in self._questions(asked, both):
            for way in _tried(question, pair.training * both[0].node.gpus, apart):
                if way.rollouts_on == 1:
                    yield replace(way, rollouts_on=pair.rollouts)

    def _questions(self, asked: PostTraining, candidates: tuple[Candidate, ...]) -> tuple[RlQuestion, ...]:
        """Return the questions of the first candidate, which remember what they worked out."""
        known = _KNOWN.setdefault(self.catalog, {})
        key = (asked, self.confidence, *((each.node.name, each.node.cpu, each.node.nvme, each.fabric.name,
                                          each.clustered, each.nics) for each in candidates))
        if key not in known:
            if len(known) >= MOST_KNOWN:
                known.clear()
            known[key] = tuple(questions(asked, self.catalog, candidates, 0, self.confidence))
        return known[key]

    def fits(self, way: RlWay) -> bool:
        """Say whether it fits at the confidence."""
        return way.lacking <= 0

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
        return way.saved

    def complexity(self, way: RlWay) -> int:
        """Return how many choices of it are not the plain ones."""
        row = way.layout
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
        if self.asked.rollouts_on and not self.pairs:
            return [f"no provider rents both what trains and {', '.join(self.asked.rollouts_on)} for the rollouts"]
        drawing = {pair.rollouts for pair in self.pairs.values()} or range(len(self.terms.market.candidates))
        return [unheld(self.asked, 2 * parameters(self.catalog.model(self.asked.model)), map(self.candidate, drawing))]

    def short(self, columns: Columns) -> Short:
        """Return what lacks memory, and the nearest miss."""
        assert isinstance(columns, Ways)
        if columns.made or columns.nearest is None:
            return Short("those that fit keep no other limit")
        return short_of(self.asked, columns.nearest, self.candidate(columns.nearest.candidate))

    def decided(self, columns: Columns) -> Defaults:
        """Return what is searched, where that is not every number of GPUs and nodes."""
        found = Defaults()
        if self.pairs:
            found.append(Default(name="numbers of nodes", value=f"{_listed(TRAINING)} that train, {_listed(ELSEWHERE)} "
                                 "that draw answers", why="these are searched, and the proof is of these"))
        elif self.terms.limits.gpus is None:
            found.append(Default(
                name="numbers of GPUs", value=f"1, 2, 4, ... in a node, then {_listed(NODES - {1})} nodes",
                why="these are searched, and the proof is of these; --gpus asks for another"))
        return found

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
        return Processed(float((work.steps or 0) * work.learned * (work.input.mean + work.output.mean)))

    def counts(self, most: int) -> Sequence[int]:
        """Return the numbers of GPUs up to `most` that are looked at, rising."""
        sizes = {gpus for at in self.terms.market.at_hand for gpus in self.sizes(at)}
        return sorted(gpus for gpus in sizes if gpus <= most)

    @property
    def leaner(self) -> Iterator[Leaner]:
        """Adapters, and shorter answers."""
        return leaner(self.asked)

    @property
    def batch(self) -> Batch | None:
        """The answers of a step."""
        return Batch(self.asked.answers)
