"""A training job that one stack or several may do: each searched under what the ones before it found, one winner.

What a stack found on a candidate has to be beaten there by the next, so that the bounds of all are shared. The proof is
over all stacks that were searched: their columns are chosen from together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from planner.answer.assignment import Alternative, Assignment
from planner.answer.schema import Infeasible
from planner.catalog.load import Catalog
from planner.errors import PlannerError, Unsupported
from planner.jobs.columns import Columns, Processed, Run, joined
from planner.jobs.job import NOTHING_HELD, Change, Depth, Held, Knob, Picked, Replaying, Short, Terms
from planner.jobs.training.assignment import assignment_of
from planner.jobs.training.in_use import is_usual, stacks_of
from planner.jobs.training.job import TrainingJob, training_job
from planner.jobs.training.lacking import broken_rules
from planner.jobs.training.one_layout import AXES
from planner.jobs.training.runners_up import alternative_of, next_best, runners_up
from planner.jobs.training.searched import MOST_COLUMNS, Searched
from planner.scenario.default import Default, Defaults
from planner.scenario.limits import Objective
from planner.scenario.workload import AUTO, Batch, Training
from planner.solver.search.found import StagedLayout
from planner.solver.settings import UNLIMITED, Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundByStack(Columns):
    """Columns of every stack that was searched, with the job that each is of."""

    parts: tuple[tuple[TrainingJob, Searched], ...]

    def of(self, candidate: int) -> Self:
        """Return those of one candidate alone."""
        return replace(self, runs=tuple(one for one in self.runs if one.candidate == candidate),
                       parts=tuple((job, found.of(candidate)) for job, found in self.parts))

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended a search."""
        return any(found.interrupted for _, found in self.parts)

    @property
    def layouts(self) -> list[StagedLayout]:
        """What all stacks found."""
        return [one for _, found in self.parts for one in found.frontier.found]

    def owner(self, key: int) -> tuple[TrainingJob, Searched]:
        """Return the job and the columns that a column is of, by its key."""
        return next(part for part in self.parts if any(one.column.key == key for one in part[1].frontier.found))


@dataclass(frozen=True, slots=True)
class ByStack:
    """Training by the stacks of its groups, of which a later one counts where no earlier has a plan."""

    groups: tuple[tuple[TrainingJob, ...], ...]

    @property
    def first(self) -> TrainingJob:
        """The job by the stack that comes first."""
        return self.groups[0][0]

    @property
    def jobs(self) -> tuple[TrainingJob, ...]:
        """The job by each stack."""
        return tuple(job for group in self.groups for job in group)

    @property
    def name(self) -> str:
        """What answers call it."""
        return self.first.name

    @property
    def terms(self) -> Terms:
        """The market, the limits and the objective that it is looked at with."""
        return self.first.terms

    @property
    def has_requests(self) -> bool:
        """Whether it is a service: it is none."""
        return False

    def _each(self, change: Callable[[TrainingJob], TrainingJob]) -> ByStack:
        return ByStack(tuple(tuple(map(change, group)) for group in self.groups))

    def _owned(self, columns: Columns, picks: Sequence[Picked]) -> Iterator[tuple[Run, tuple[TrainingJob, Searched]]]:
        """Yield the runs among what was picked, each with the job by its stack, on the terms here, and its columns."""
        assert isinstance(columns, FoundByStack)
        for run in (one for one in picks if isinstance(one, Run)):
            searched, found = columns.owner(run.column.key)
            yield run, (next(job for job in self.jobs if job.place == searched.place), found)

    def under(self, terms: Terms) -> ByStack:
        """Return the job on other terms; candidates keep their numbers."""
        return self._each(lambda job: job.under(terms))

    def asking(self, update: Mapping[str, Any]) -> ByStack:
        """Return the job with keys of its workload changed."""
        return self._each(lambda job: job.asking(update))

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD) -> FoundByStack:
        """Return the best layouts of all stacks as columns; of a later group only where no plan is in the ones before.
        """
        parts: list[tuple[TrainingJob, Searched]] = []
        for group in self.groups:
            # where only GPUs count, what the stacks with the fewest axes need leaves little of the others to search
            for job in group if self.first.search.timed else sorted(group, key=_axes):
                known = [one for _, found in parts for one in found.frontier.found]
                parts.append((job, job.columns(effort, depth, held, known)))
                if depth == "any" and parts[-1][1].runs:
                    break
            if any(found.runs or found.open_bound is not None for _, found in parts):
                break
        return self._together(parts)

    def assignments(self, columns: Columns, picks: Sequence[Picked], replaying: Replaying | None = None
                    ) -> list[Assignment]:
        """Return what was picked in full; nothing is replayed."""
        return [job.assignment(found, run) for run, (job, found) in self._owned(columns, picks)]

    def faults(self, columns: Columns, picks: Sequence[Picked]) -> list[str]:
        """Return what is wrong with the stages of what was picked, checked without a solver."""
        return [fault for run, (job, found) in self._owned(columns, picks) for fault in job.faults(found, run)]

    def alternatives(self, columns: Columns, picks: Sequence[Picked], effort: Effort, *, proven: bool
                     ) -> list[Alternative]:
        """Return the best on other hardware, then other sizes and layouts of the same, and on that the best of every
        other stack that is not a last resort, with why each lost.
        """
        ((run, (job, mine)),) = self._owned(columns, picks)
        assert isinstance(columns, FoundByStack)
        best = mine.layout(run)
        others = [(other, found) for other in self.jobs
                  if proven and other.place != job.place and is_usual(other.asked, other.stack)
                  and (found := other.best_on(best.column.candidate, effort)) is not None]
        more = next_best(job.context, mine.grid.facts, mine.frontier, best, effort) if proven else []
        by_key = {one.column.key: other for other, found in columns.parts for one in found.frontier.found}
        by_key |= {one.column.key: job for one in more} | {one.column.key: other for other, one in others}
        chosen = runners_up([*columns.layouts, *more], best, [one for _, one in others])
        shown = assignment_of(job.context, best)
        return [alternative_of(by_key[one.column.key].context, one, shown) for one in chosen]

    def simplest(self, columns: Columns, picks: Sequence[Picked], effort: Effort) -> tuple[Columns, Run, int]:
        """Return the simplest layout by the stack of what was picked of those that cannot be told from it, its columns,
        and its value.

        Raises OutOfTime.
        """
        assert isinstance(columns, FoundByStack)
        ((run, (job, mine)),) = self._owned(columns, picks)
        found, simple, value = job.simplest(mine, run, effort, columns.layouts)
        parts = [(other, found if other.place == job.place else theirs) for other, theirs in columns.parts]
        return self._together(parts), simple, value

    def trade_offs(self, measures: Sequence[Objective], effort: Effort) -> tuple[Columns, list[Run]]:
        """Return the exact frontier of the measures, the best by the first one first, unless a bound is left open."""
        for group in self.groups:
            parts: list[tuple[TrainingJob, Searched]] = []
            points: list[StagedLayout] = []
            runs: list[Run] = []
            for job in group:
                found, runs = job.trade_offs(measures, effort, points)
                parts.append((job, found))
                points = found.frontier.found
            if runs:
                break
        mine = {job.place: {one.column.key for one in found.frontier.found} for job, found in parts}
        for at, (job, found) in reversed([*enumerate(parts)]):
            earlier = set().union(*(mine[other.place] for other, _ in parts[:at]))
            found.frontier.found = [one for one in points if one.column.key in mine[job.place] - earlier]
        return self._together(parts), runs

    def closest(self, columns: Columns) -> Assignment | None:
        """Return the layout that misses memory by least, in full; none where no layout is legal by any stack."""
        assert isinstance(columns, FoundByStack)
        found = [one for job, mine in columns.parts if (one := job.closest(mine)) is not None]
        return min(found, key=lambda one: one.memory.peak_bytes / one.memory.usable_bytes, default=None)

    def counts(self, most: int) -> Sequence[int]:
        """Return the numbers of GPUs up to `most` that the rules of some stack admit, rising."""
        return sorted({count for job in self.jobs for count in job.counts(most)})

    @property
    def batch(self) -> Batch | None:
        """The sequences of a step that are asked for; none where nothing is trained."""
        space = self.first.facts.space
        return None if self.first.question.tuning.forward_only else Batch(space.global_batch, space.tolerance)

    def beside(self, columns: Columns, run: Run, best: Assignment) -> Alternative:
        """Return a run beside the best one, with why it lost."""
        ((_, (job, found)),) = self._owned(columns, [run])
        return job.beside(found, run, best)

    def miss(self, columns: Columns, possible: Callable[[Change], bool]) -> Infeasible | None:
        """Return nothing: what no layout can do is among the reasons that limits, rules and memory make together."""
        return None

    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return the rules that together leave no legal layout by any stack; empty where there are some.

        Raises OutOfTime.
        """
        assert isinstance(columns, FoundByStack)
        broken: dict[str, dict[str, str]] = {}
        for job, found in columns.parts:
            broken[job.stack.name] = rules = broken_rules(found.grid, effort)
            if not rules:
                return []
        first, *others = broken
        alike = [line for name, line in broken[first].items() if all(name in rules for rules in broken.values())]
        return alike or [*(f"{line}, with {first}" for line in broken[first].values()),
                         f"nor do the rules of {', '.join(others)} leave one"]

    def short(self, columns: Columns) -> Short:
        """Return what lacks memory, and the nearest miss, by the stack that misses by least."""
        assert isinstance(columns, FoundByStack)
        fitting = [job.short(found) for job, found in columns.parts if found.frontier.fit]
        if fitting:
            return fitting[0]
        found = [(job.stack.name, job.short(mine)) for job, mine in columns.parts]
        if len(self.jobs) == 1:
            return found[0][1]
        name, least = min(found, key=lambda one: (one[1].nearest is None, one[1].memory, one[1].host))
        names = ", ".join(job.stack.name for job, _ in columns.parts)
        return replace(least, because=f"{least.because}; stacks searched: {names}; the leanest is {name}")

    def _together(self, parts: Sequence[tuple[TrainingJob, Searched]]) -> FoundByStack:
        """Return what all stacks found as one: the best first."""
        leaders = sorted((one for _, found in parts for one in found.frontier.found), key=lambda one: one.key)
        bounds = [found.open_bound for _, found in parts if found.open_bound is not None]
        account = joined([found.account for _, found in parts], 0.0)
        stacks = {"stack": tuple(job.stack.name for job, _ in parts)} if len(self.jobs) > 1 else {}
        return FoundByStack(runs=tuple(one.column for one in leaders[:MOST_COLUMNS]), parts=tuple(parts),
                            open_bound=min(bounds, default=None),
                            account=account.model_copy(update={"domains": {**stacks, **account.domains}}))

    @property
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""
        return AXES

    @property
    def choices(self) -> Mapping[str, str]:
        """Other choices that are its own."""
        return {"stack": "workload.stack", "precision": "workload.precision"}

    def knobs(self, assignments: Sequence[Assignment]) -> list[Knob]:
        """Return what memory and network are worth to the job."""
        (mine,) = assignments
        return next(job for job in self.jobs if job.stack.name == mine.stack).knobs(assignments)

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the tokens that are trained on."""
        return Processed(float(self.first.asked.tokens or 0))

    def decided(self, columns: Columns) -> Defaults:
        """Return what decided beside the defaults of the question: how far the search went, how many can be bought."""
        assert isinstance(columns, FoundByStack)
        parts = columns.parts
        found = {one.name: one for job, mine in parts for one in job.decided(mine)}
        if self.first.asked.stack == (AUTO,) and len(self.jobs) > 1:
            names = ", ".join(job.stack.name for job, _ in parts)
            best = columns.owner(columns.runs[0].key)[0].stack.name if columns.runs else names
            found["stack"] = Default(name="stack", value=best, why=f"the best of those in use: {names}")
        return list(found.values())


def _axes(job: TrainingJob) -> tuple[bool, bool, bool]:
    """Say which kinds of parallelism a job's stack has, those with the most layouts first."""
    return job.stack.pipeline, job.stack.tensor_parallel, job.stack.context_parallel


def training_of(name: str, asked: Training, catalog: Catalog, terms: Terms, confidence: float) -> ByStack:
    """Return a resolved training workload on its terms, by the stacks that it names or that are in use.

    A stack that cannot train the model at all is left out, unless none can. Raises PlannerError.
    """
    made: list[tuple[TrainingJob, ...]] = []
    refused: PlannerError | None = None
    place = 0
    for group in stacks_of(asked, catalog, timed=asked.tokens is not None or terms.objective == "time"):
        jobs = []
        for stack in group:
            try:
                jobs.append(training_job(name, asked, catalog, terms, confidence, stack, place))
                place += 1
            except Unsupported as error:
                refused = refused or error
        made += [tuple(jobs)] if jobs else []
    if not made:
        assert refused is not None
        raise refused
    return ByStack(tuple(made))
