"""One question solved: what was searched, what was chosen, and how the answer is read from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.answer.assignment import Assignment
from planner.answer.objective import objective_of
from planner.answer.schema import Objective
from planner.jobs.training.assignment import MOST_ALTERNATIVES, Context, assignment_of
from planner.jobs.training.prepared import Prepared, job_of, residuals_of
from planner.layouts.enumerate import Grid
from planner.solver.search.choose import Choice, choose
from planner.solver.search.found import StagedLayout
from planner.solver.search.frontier import Search
from planner.solver.search.source import grid_source
from planner.solver.settings import UNLIMITED, Effort

LEAST_COUNT = 3
"""Best layouts of the hardware that won that are looked for, however much other hardware there is."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A prepared question with its grid and its choice, and what it was allowed to take."""

    prepared: Prepared
    grid: Grid
    choice: Choice
    effort: Effort = UNLIMITED

    @property
    def context(self) -> Context:
        """What every assignment of the question shares."""
        return context_of(self.prepared, self.prepared.scenario.name)

    @property
    def objective(self) -> Objective:
        """The objective with its bound."""
        return objective_of(self.prepared.scenario.objective, self.choice)

    def assignment(self) -> Assignment | None:
        """Return the plan's assignment; none without a plan."""
        return assignment_of(self.context, self.choice.best) if self.choice.best else None

    def next_best(self) -> list[StagedLayout]:
        """Return the next best layouts and sizes on the hardware of a proven optimum, as many as other hardware leaves
        room for."""
        best, prepared = self.choice.best, self.prepared
        if best is None or self.choice.status != "optimal":
            return []
        held = {"candidate": (best.column.candidate,)}
        facts = replace(prepared.facts, space=replace(prepared.space, only={**prepared.space.only, **held}))
        others = len({one.column.candidate for one in self.choice.frontier.found}) - 1
        search = Search(prepared.question, facts.space, job_of(prepared), self.effort.stop,
                        count=max(LEAST_COUNT, MOST_ALTERNATIVES + 1 - others))
        return [one for one in search.run(grid_source(Grid(facts))).found if one.column.key != best.column.key]


def context_of(prepared: Prepared, name: str) -> Context:
    """Return what assignments share that are called `name`."""
    return Context(name, prepared.model.name, prepared.scenario.workload.method or "pretrain", prepared.question,
                   job_of(prepared), prepared.offers, residuals_of(prepared))


def planned(prepared: Prepared, effort: Effort = UNLIMITED) -> Planned:
    """Solve a question."""
    grid = Grid(prepared.facts)
    return Planned(prepared, grid, choose(prepared.question, grid, job_of(prepared), effort), effort)
