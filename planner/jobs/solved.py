"""A question resolved to jobs on their terms, asked again with something changed, and solved: columns, fleet, check."""

from __future__ import annotations

import time
from collections.abc import Container
from dataclasses import dataclass, field, replace
from functools import cached_property

from planner.answer.assignment import Assignment
from planner.answer.objective import NAMES
from planner.answer.schema import Objective
from planner.catalog.load import Catalog
from planner.jobs.columns import Columns, Pick
from planner.jobs.fleet import Admitted, Fleet, FleetSolution
from planner.jobs.job import NOTHING_HELD, Alone, Change, Depth, Held, Job, Picked, Replaying, Terms
from planner.jobs.market import Market
from planner.layouts.candidate import Candidate
from planner.scenario.limits import CENTURY, Deadline, Limits
from planner.scenario.scenario import AnyScenario
from planner.solver.fleet.covering import LIMITED
from planner.solver.settings import UNLIMITED, Effort, Settings, Status

LEAST_SECONDS = 0.1
"""Left to the fleet where the search for columns took all the time there was."""


@dataclass(frozen=True, slots=True)
class ResolvedScenario:
    """A scenario resolved against the catalog."""

    scenario: AnyScenario
    catalog: Catalog
    jobs: tuple[Job, ...]
    terms: Terms

    def under(self, terms: Terms) -> ResolvedScenario:
        """Return the question on other terms; candidates keep their numbers."""
        return replace(self, terms=terms, jobs=tuple(job.under(terms) for job in self.jobs))

    def limited(self, scenario: AnyScenario) -> ResolvedScenario:
        """Return the question of a scenario that differs in limits alone; nothing is looked up or worked out again."""
        return replace(self.under(replace(self.terms, limits=scenario.limits)), scenario=scenario)

    def on(self, gpus: Container[str]) -> ResolvedScenario:
        """Return a question without money asked of some GPUs alone, by name."""
        market = self.terms.market
        of_use = tuple(at for at, candidate in enumerate(market.candidates) if candidate.gpu.name in gpus)
        return self.under(replace(self.terms, market=replace(market, of_use=of_use)))

    def changed(self, change: Change) -> ResolvedScenario:
        """Return the question with a change made; nothing is looked up again."""
        limits = self.terms.limits.model_copy(
            update={name: _limit(self.terms.limits, name, value) for name, value in change.limits.items()})
        terms = replace(self.terms, market=_market(self.terms.market, change), limits=limits,
                        objective=change.objective or self.terms.objective)
        asking = tuple(job.asking(change.work[job.name]) if job.name in change.work else job for job in self.jobs)
        return replace(self, jobs=asking).under(terms)


@dataclass(frozen=True)
class Solved:
    """A question with its columns and the fleet chosen from them."""

    question: ResolvedScenario
    columns: tuple[Columns, ...]
    fleet: Fleet
    solution: FleetSolution
    effort: Effort = UNLIMITED
    held: Held = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """How the search ended."""
        return self.solution.status

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended a search before its proof."""
        return any(columns.interrupted for columns in self.columns)

    @property
    def objective(self) -> Objective:
        """What was minimized, with its bound and gap."""
        value, bound = (None if v is None else self.fleet.amount(v) for v in (self.solution.value, self.solution.bound))
        gap = None if value is None or bound is None else (value - bound) / value if value else 0.0
        return Objective(name=NAMES[self.question.terms.objective], value=value, bound=bound, gap=gap)

    @cached_property
    def picks(self) -> list[Picked]:
        """What was decided, job by job; empty without a fleet."""
        return [] if self.solution.value is None else self.fleet.picks(self.solution)

    @property
    def replicas(self) -> list[Pick]:
        """What was decided for services."""
        return [pick for pick in self.picks if isinstance(pick, Pick)]

    def assignments(self, replaying: Replaying | None = None) -> list[Assignment]:
        """Return the fleet in full; with `replaying`, also as a replay of each service's requests found it."""
        return [assignment for at, (job, columns) in enumerate(zip(self.question.jobs, self.columns, strict=True))
                for assignment in job.assignments(columns, self.picks_of(at), replaying)]

    def picks_of(self, job: int) -> list[Picked]:
        """Return what was decided for one job, by its number."""
        return [pick for pick in self.picks if pick.job == job]

    @property
    def alone(self) -> Alone | None:
        """The job that ends and has the fleet to itself; none where services, or several jobs, share it."""
        return alone_in(self.question)

    def again(self, admitted: Admitted) -> Solved:
        """Return the fleet chosen again from those of the same columns that are admitted."""
        return replace(self, solution=self.fleet.solve(admitted=admitted))


def solve(question: ResolvedScenario, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD, *,
          so_far: bool = False) -> Solved:
    """Return the proven fleet of a question, checked without the solver.

    held: axes of every job's layout that are held at one value. so_far: what Ctrl-C cuts short is an answer too;
    otherwise KeyboardInterrupt is raised. Raises RuntimeError where the check contradicts the solver, which is a defect
    and no answer.
    """
    columns = tuple(job.columns(effort, depth, held) for job in question.jobs)
    if not so_far and any(column.interrupted for column in columns):
        raise KeyboardInterrupt
    fleet = Fleet(columns, question.terms, settings_of(effort))
    solved = Solved(question, columns, fleet, fleet.solve(), effort, held)
    for at, (job, mine) in enumerate(zip(question.jobs, columns, strict=True)):
        if wrong := job.faults(mine, solved.picks_of(at)):
            raise RuntimeError(f"an independent check contradicts the solver: {wrong[0]}")
    return solved


def solve_lifted(question: ResolvedScenario, effort: Effort = UNLIMITED, depth: Depth = "each",
                 held: Held = NOTHING_HELD, *, so_far: bool = False, lifts: bool = True) -> Solved:
    """Return the proven fleet; of what the user is taken to own the smallest machine that does it, else, if that may be
    lifted, as many of any as it takes.
    """
    market = question.terms.market
    for smaller in market.up_to_each_size():
        solved = solve(question.under(replace(question.terms, market=smaller)), effort, depth, held, so_far=so_far)
        if solved.status != "infeasible":
            return solved
    solved = solve(question, effort, depth, held, so_far=so_far)
    if solved.status != "infeasible" or not lifts or not any(offer.assumed for offer in market.offers):
        return solved
    return solve(question.changed(Change(own=None)), effort, depth, held, so_far=so_far)


def alone_in(question: ResolvedScenario) -> Alone | None:
    """Return the job that ends and has the fleet to itself; none where services, or several jobs, share it."""
    jobs = question.jobs
    return jobs[0] if len(jobs) == 1 and isinstance(jobs[0], Alone) else None


def effort_of(time_limit: float | None, workers: int = 1) -> Effort:
    """Return what an answer may take that is asked for now; `time_limit` is in seconds."""
    return Effort(None if time_limit is None else time.monotonic() + time_limit, workers)


def settings_of(effort: Effort) -> Settings:
    """Return how the fleet may be solved in the time that is left."""
    if effort.stop is None:
        return LIMITED
    return Settings(deterministic_limit=max(effort.stop - time.monotonic(), LEAST_SECONDS))


def _limit(limits: Limits, name: str, value: float | Deadline | None) -> object:
    """Return a limit as a scenario holds it: a deadline keeps its confidence, lifted or not; counts are whole."""
    if value is None or isinstance(value, Deadline):
        return value if name != "deadline" or value or limits.confidence is None else Deadline(
            CENTURY, limits.confidence)
    if name == "deadline":
        return Deadline(value, limits.confidence)
    return value if name in ("budget", "max_power") else int(value)


def _market(market: Market, change: Change) -> Market:
    offers = tuple(replace(offer, nodes=None if change.own is None else (offer.nodes or 0) + change.own)
                   if offer.how == "owned" else offer for offer in market.offers) if change.own != 0 else market.offers
    if not (change.memory or change.host or change.nics):
        return replace(market, offers=offers)
    return replace(market, offers=offers,
                   candidates=tuple(_candidate(candidate, change) for candidate in market.candidates))


def _candidate(candidate: Candidate, change: Change) -> Candidate:
    gpu = candidate.gpu.model_copy(update={"usable_memory": candidate.gpu.usable_memory + change.memory})
    cpu = candidate.node.cpu.model_copy(update={"memory": candidate.node.cpu.memory + change.host})
    return replace(candidate, gpu=gpu, node=candidate.node.model_copy(update={"cpu": cpu}),
                   nics=candidate.nics.model_copy(update={"bandwidth": candidate.nics.bandwidth + change.nics}))
