"""A training job that one stack or several may do: each searched under what the ones before it found, one winner.

What a stack found on a candidate has to be beaten there by the next, so that the bounds of all are shared. The proof is
over all stacks that were searched: their columns are chosen from together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from planner.answer.assignment import Alternative, Assignment
from planner.answer.schema import Infeasible
from planner.jobs.columns import Columns, Processed, Run, joined
from planner.jobs.job import NOTHING_HELD, Change, Depth, Held, Knob, Leaner, Picked, Replaying, Short, Terms
from planner.jobs.training.assignment import assignment_of
from planner.jobs.training.in_use import is_usual
from planner.jobs.training.job import TrainingJob
from planner.jobs.training.lacking import broken_rules, less_to_hold
from planner.jobs.training.one_layout import AXES
from planner.jobs.training.runners_up import alternative_of, next_best, runners_up
from planner.jobs.training.searched import Searched, leading
from planner.scenario.batch import Batch
from planner.scenario.default import Default, Defaults
from planner.scenario.limits import Objective
from planner.scenario.workload import AUTO
from planner.solver.progress import part
from planner.solver.search.found import StagedLayout
from planner.solver.settings import UNLIMITED, Effort


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundByStack(Columns):
    """Columns of every stack that was searched, with the job that each is of."""

    parts: tuple[tuple[TrainingJob, Searched], ...]

    def of(self, candidate: int) -> Self:
        """Return those of one candidate alone."""
        return replace(self, runs=tuple(run for run in self.runs if run.candidate == candidate),
                       parts=tuple((job, searched.of(candidate)) for job, searched in self.parts))

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended a search."""
        return any(searched.interrupted for _, searched in self.parts)

    @property
    def layouts(self) -> list[StagedLayout]:
        """What all stacks found."""
        return [staged for _, searched in self.parts for staged in searched.frontier.found]

    def owner(self, key: int) -> tuple[TrainingJob, Searched]:
        """Return the job and the columns that a column is of, by its key."""
        return next(part for part in self.parts if any(staged.column.key == key for staged in part[1].frontier.found))


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
    def confidence(self) -> float:
        """With which what is planned fits in memory."""
        return self.first.confidence

    @property
    def has_requests(self) -> bool:
        """Whether it is a service: it is none."""
        return False

    def _each(self, change: Callable[[TrainingJob], TrainingJob]) -> ByStack:
        return ByStack(tuple(tuple(map(change, group)) for group in self.groups))

    def _owned(self, columns: Columns, picks: Sequence[Picked]) -> Iterator[tuple[Run, tuple[TrainingJob, Searched]]]:
        """Yield the runs among what was picked, each with the job by its stack, on the terms here, and its columns."""
        assert isinstance(columns, FoundByStack)
        for run in (pick for pick in picks if isinstance(pick, Run)):
            owner, searched = columns.owner(run.column.key)
            yield run, (next(job for job in self.jobs if job.place == owner.place), searched)

    def under(self, terms: Terms) -> ByStack:
        """Return the job on other terms; candidates keep their numbers."""
        return self._each(lambda job: job.under(terms))

    def asking(self, update: Mapping[str, Any]) -> ByStack:
        """Return the job with keys of its workload changed."""
        return self._each(lambda job: job.asking(update))

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD) -> FoundByStack:
        """Return the best layouts of all stacks as columns; of a later group only where those before have none."""
        parts: list[tuple[TrainingJob, Searched]] = []
        for group in self.groups:
            # where only GPUs count, what the stacks with the fewest axes need leaves little of the others to search
            for at, job in enumerate(group if self.first.timed else sorted(group, key=lambda job: job.parallelism)):
                known = [staged for _, searched in parts for staged in searched.frontier.found]
                left = effort.ended if any(searched.interrupted for _, searched in parts) else effort
                with part(f"by {job.stack.name}" if len(group) > 1 else "", at, len(group)):
                    parts.append((job, job.columns(left, depth, held, known)))
                if depth == "any" and parts[-1][1].runs:
                    break
            if any(searched.runs or searched.open_bound is not None for _, searched in parts):
                break
        return self._together(parts)

    @property
    def alike(self) -> Hashable | None:
        """What jobs have in common that differ in tokens and deadline alone; none where their steps differ too."""
        asked = self.first.asked.model_copy(update=dict.fromkeys(("tokens", "samples", "epochs", "dataset")))
        limits = self.terms.limits.model_copy(update={"deadline": None})
        key = asked, *(job.question.sample_length for job in self.jobs), limits, self.terms.period
        return None if self.first.facts.space.tolerance else (*key, self.terms.market.offers)

    @property
    def amount(self) -> int:
        """Tokens that are worked through."""
        return self.first.tokens

    def columns_like(self, columns: Columns) -> FoundByStack | None:
        """Return the columns of depth "shared" by those of one alike; none where it may need a group that has none."""
        assert isinstance(columns, FoundByStack)
        parts = [(job, job.columns_like(known)) for owner, known in columns.parts
                 for job in self.jobs if job.place == owner.place]
        told = any(mine.runs for _, mine in parts) or len(parts) == len(self.jobs)
        return replace(self._together(parts), account=columns.account) if told else None

    def assignments(self, columns: Columns, picks: Sequence[Picked], replaying: Replaying | None = None
                    ) -> list[Assignment]:
        """Return what was picked in full; nothing is replayed."""
        return [job.assignment(searched, run) for run, (job, searched) in self._owned(columns, picks)]

    def faults(self, columns: Columns, picks: Sequence[Picked]) -> list[str]:
        """Return what is wrong with the stages of what was picked, checked without a solver."""
        return [fault for run, (job, searched) in self._owned(columns, picks) for fault in job.faults(searched, run)]

    def alternatives(self, columns: Columns, picks: Sequence[Picked], effort: Effort, *, proven: bool
                     ) -> list[Alternative]:
        """Return the best on other hardware, then other sizes and layouts of the same, and on that the best of every
        other stack that is not a last resort, with why each lost.
        """
        ((run, (job, mine)),) = self._owned(columns, picks)
        assert isinstance(columns, FoundByStack)
        best = mine.layout(run)
        others = [(other, staged) for other in self.jobs
                  if proven and other.place != job.place and is_usual(other.asked, other.stack)
                  and (staged := other.best_on(best.column.candidate, effort)) is not None]
        more = next_best(job.context, mine.grid.facts, mine.frontier, best, effort) if proven else []
        by_key = {layout.column.key: other for other, searched in columns.parts for layout in searched.frontier.found}
        by_key |= {layout.column.key: job for layout in more} | {layout.column.key: other for other, layout in others}
        chosen = runners_up([*columns.layouts, *more], best, [layout for _, layout in others])
        shown = assignment_of(job.context, best)
        return [alternative_of(by_key[layout.column.key].context, layout, shown) for layout in chosen]

    def simplest(self, columns: Columns, picks: Sequence[Picked], effort: Effort) -> tuple[Columns, Run, int]:
        """Return the simplest layout by the stack of what was picked of those that cannot be told from it, its columns,
        and its value.

        Raises OutOfTime.
        """
        assert isinstance(columns, FoundByStack)
        ((run, (job, mine)),) = self._owned(columns, picks)
        searched, simple, value = job.simplest(mine, run, effort, columns.layouts)
        parts = [(other, searched if other.place == job.place else theirs) for other, theirs in columns.parts]
        return self._together(parts), simple, value

    def trade_offs(self, measures: Sequence[Objective], effort: Effort) -> tuple[Columns, list[Run]]:
        """Return the exact frontier of the measures, the best by the first one first, unless a bound is left open."""
        for group in self.groups:
            parts: list[tuple[TrainingJob, Searched]] = []
            points: list[StagedLayout] = []
            runs: list[Run] = []
            for job in group:
                searched, runs = job.trade_offs(measures, effort, points)
                parts.append((job, searched))
                points = searched.frontier.found
            if runs:
                break
        mine = {job.place: {staged.column.key for staged in searched.frontier.found} for job, searched in parts}
        for at, (job, searched) in reversed([*enumerate(parts)]):
            earlier = set().union(*(mine[other.place] for other, _ in parts[:at]))
            searched.frontier.found = [point for point in points if point.column.key in mine[job.place] - earlier]
        return self._together(parts), runs

    def closest(self, columns: Columns) -> Assignment | None:
        """Return the layout that misses memory by least, in full; none where no layout is legal by any stack."""
        assert isinstance(columns, FoundByStack)
        estimates = [assignment for job, mine in columns.parts if (assignment := job.closest(mine)) is not None]
        return min(estimates, key=lambda part: part.memory.peak_bytes / part.memory.usable_bytes, default=None)

    def counts(self, most: int) -> Sequence[int]:
        """Return the numbers of GPUs up to `most` that the rules of some stack admit, rising."""
        return sorted({count for job in self.jobs for count in job.counts(most)})

    @property
    def leaner(self) -> Iterator[Leaner]:
        """A loss that holds no logits, where all are held; sequences half as long, again and again."""
        return less_to_hold([job.question for job in self.jobs], self.first.asked.loss)

    @property
    def batch(self) -> Batch | None:
        """The sequences of a step that are asked for; none where nothing is trained."""
        job, space = self.first, self.first.facts.space
        return None if job.question.tuning.forward_only else Batch(space.global_batch, space.tolerance)

    def beside(self, columns: Columns, run: Run, best: Assignment) -> Alternative:
        """Return a run beside the best one, with why it lost."""
        ((_, (job, searched)),) = self._owned(columns, [run])
        return job.beside(searched, run, best)

    def miss(self, columns: Columns, possible: Callable[[Change], bool]) -> Infeasible | None:
        """Return nothing: what no layout can do is among the reasons that limits, rules and memory make together."""
        return None

    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return the rules that together leave no legal layout by any stack; empty where there are some.

        Raises OutOfTime.
        """
        assert isinstance(columns, FoundByStack)
        broken: dict[str, dict[str, str]] = {}
        for job, searched in columns.parts:
            broken[job.stack.name] = rules = broken_rules(searched.grid, effort)
            if not rules:
                return []
        first, *others = broken
        alike = [line for name, line in broken[first].items() if all(name in rules for rules in broken.values())]
        return alike or [*(f"{line}, with {first}" for line in broken[first].values()),
                         f"nor do the rules of {', '.join(others)} leave one"]

    def short(self, columns: Columns) -> Short:
        """Return what lacks memory, and the nearest miss, by the stack that misses by least."""
        assert isinstance(columns, FoundByStack)
        if fitting := [job.short(searched) for job, searched in columns.parts if searched.frontier.fit]:
            return fitting[0]
        shorts = [(job.stack.name, job.short(mine)) for job, mine in columns.parts]
        if len(self.jobs) == 1:
            return shorts[0][1]
        name, least = min(shorts, key=lambda named: (named[1].nearest is None, named[1].memory, named[1].host))
        return replace(least, because=f"{least.because}; stacks searched: {', '.join(name for name, _ in shorts)}; "
                       f"the leanest is {name}")

    def _together(self, parts: Sequence[tuple[TrainingJob, Searched]]) -> FoundByStack:
        """Return what all stacks found as one: the best first."""
        leaders = leading([point for _, searched in parts for point in searched.frontier.found])
        account = joined([searched.account for _, searched in parts], 0.0)
        stacks = {"stack": tuple(job.stack.name for job, _ in parts)} if len(self.jobs) > 1 else {}
        return FoundByStack(runs=tuple(leader.column for leader in leaders), parts=tuple(parts),
                            open_bound=min((s.open_bound for _, s in parts if s.open_bound is not None), default=None),
                            account=account.model_copy(update={"domains": {**stacks, **account.domains}}))

    @property
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""
        return AXES

    @property
    def choices(self) -> Mapping[str, str]:
        """Other choices that are its own."""
        return {"stack": "workload.stack", "precision": "workload.precision", "method": "workload.method"}

    def knobs(self, assignments: Sequence[Assignment]) -> list[Knob]:
        """Return what memory and network are worth to the job."""
        return next(job for job in self.jobs if job.stack.name == assignments[0].stack).knobs(assignments)

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the tokens that are trained on."""
        return Processed(float(self.first.asked.tokens or 0))

    def decided(self, columns: Columns) -> Defaults:
        """Return what decided beside the defaults of the question: how far the search went, how many can be bought."""
        assert isinstance(columns, FoundByStack)
        defaults = {default.name: default for job, mine in columns.parts for default in job.decided(mine)}
        if self.first.asked.stack == (AUTO,) and len(self.jobs) > 1:
            names = ", ".join(job.stack.name for job, _ in columns.parts)
            best = columns.owner(columns.runs[0].key)[0].stack.name if columns.runs else names
            defaults["stack"] = Default(name="stack", value=best, why=f"the best of those in use: {names}")
        return list(defaults.values())
