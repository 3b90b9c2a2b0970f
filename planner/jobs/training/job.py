"""A training job by one stack, or a model that only has to be held: layouts searched to columns, runs in full."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.answer.assignment import Alternative, Assignment
from planner.catalog.architecture import Model
from planner.catalog.likeness import step_traits
from planner.catalog.load import Catalog
from planner.catalog.residuals import Residual
from planner.catalog.stack import Stack
from planner.jobs.columns import Run
from planner.jobs.job import NOTHING_HELD, Depth, Held, Knob, Short, Terms
from planner.jobs.quanta import prices, quanta
from planner.jobs.training.assignment import Context, assignment_of, step_residual
from planner.jobs.training.facts import (
    MOST_GPUS,
    asked_physics,
    batch_of,
    facts_of,
    is_timed,
    most_gpus,
    preferred,
    processed,
    stored,
)
from planner.jobs.training.in_use import added_by_runs, has_evidence
from planner.jobs.training.lacking import counts_of, knobs_of, nearest_of, short_of_memory
from planner.jobs.training.launchable import held_to_target, told_by, values_for
from planner.jobs.training.one_layout import AXES, axis_value, estimate_training, layout_of_row
from planner.jobs.training.runners_up import alternative_of
from planner.jobs.training.searched import Searched, searched
from planner.layouts.enumerate import Grid
from planner.layouts.rules import Facts
from planner.money.rent import RentalOffer
from planner.physics.training.parameters import checkpoint_bytes
from planner.physics.training.question import Question
from planner.physics.training.whole import run_quantile
from planner.scenario.default import Default, Defaults
from planner.scenario.limits import Objective
from planner.scenario.workload import Training
from planner.solver.check import check_staging
from planner.solver.quantize import duration_limit
from planner.solver.search.found import StagedLayout
from planner.solver.search.frontier import GridSearch
from planner.solver.search.job import DOUBLINGS, JobTerms
from planner.solver.search.parallel import search_grid
from planner.solver.search.pareto import pareto, repriced, shared
from planner.solver.search.simplest import simplest
from planner.solver.search.source import grid_source
from planner.solver.search.staging_input import staging_problem
from planner.solver.settings import UNLIMITED, Effort


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """A workload of kind training, looked up; without tokens, what holds the model."""

    name: str
    asked: Training
    catalog: Catalog
    terms: Terms
    confidence: float
    model: Model
    stack: Stack
    question: Question
    facts: Facts
    place: int = 0
    """Of its stack among those that are searched."""

    def under(self, terms: Terms) -> TrainingJob:
        """Return the job on other terms; candidates keep their numbers."""
        space = replace(self.facts.space, candidates=terms.market.candidates,
                        max_gpus=most_gpus(self.asked, terms.limits))
        facts = replace(self.facts, space=space, fixed_gpus=terms.limits.gpus, max_nodes=terms.limits.max_nodes)
        same = terms.market.candidates is self.question.candidates
        return replace(self, terms=terms, facts=facts, question=self.question if same else replace(
            self.question, candidates=terms.market.candidates))

    def asking(self, update: Mapping[str, Any]) -> TrainingJob:
        """Return the job with keys of its workload changed."""
        work = {**update}
        sure: float = work.pop("confidence", self.confidence)
        return self if not update else training_job(self.name, self.asked.model_copy(update=work), self.catalog,
                                                    self.terms, sure, self.stack.name, self.place)

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD,
                known: Sequence[StagedLayout] = ()) -> Searched:
        """Return the best layouts as columns: of every candidate, of all, or the first that keeps the limits.

        known: what other stacks do, and this one has to do better.
        """
        grid = Grid(facts := self.held(held))
        if depth == "any":
            frontier = GridSearch(self.question, facts.space, self.search, effort, first=True).run(grid_source(grid))
        elif depth == "shared":
            frontier = shared(self.question, facts.space, self.search, grid_source(grid),
                              duration_limit(self.terms.period), effort, known)
        else:
            frontier = search_grid(self.question, grid, self.search, effort, each=depth in ("each", "every"),
                                   known=known, every=depth == "every")
        return searched(grid, frontier)

    def columns_like(self, known: Searched) -> Searched:
        """Return the columns of depth "shared" by those of a job with no fewer tokens and no less time for each."""
        search = self.search
        found = repriced(known.frontier.found, self.question.candidates, search, duration_limit(self.terms.period))
        made = searched(known.grid, replace(known.frontier, found=found))
        return replace(made, account=known.account)

    def best_on(self, candidate: int, effort: Effort) -> StagedLayout | None:
        """Return the best layout on one candidate; none where there is none, or the time is up before it is known."""
        facts = self.held()
        facts = replace(facts, space=replace(facts.space, only={**facts.space.only, "candidate": (candidate,)}))
        frontier = search_grid(self.question, Grid(facts), self.search, effort, each=False)
        return min(frontier.found,
                   key=lambda staged: staged.key) if frontier.found and frontier.open_bound is None else None

    def held(self, held: Held = NOTHING_HELD) -> Facts:
        """Return what rules look up, with axes held, on the candidates that some offer has."""
        only: dict[str, tuple[float, ...]] = {
            AXES[key]: (axis_value(key, value, "layout"),) for key, value in held.items()}
        at_hand = self.terms.market.at_hand
        if len(at_hand) < len(self.terms.market.candidates):
            only["candidate"] = at_hand
        space = self.facts.space
        return replace(self.facts, space=replace(space, only={**space.only, **only})) if only else self.facts

    @property
    def search(self) -> JobTerms:
        """What turns a step into days and money, in the solver's quanta."""
        terms, held = self.terms, quanta(self.terms.limits)
        reclaims = {offer.candidate: offer.node_hours_per_reclaim for offer in terms.market.offers}
        return JobTerms(
            tokens=self.tokens, sequence_length=self.question.sample_length, checkpoint_bytes=self.checkpoint_bytes,
            reliability=self.catalog.reliability, objective=terms.objective, offers=prices(terms),
            reclaims=tuple(reclaims.get(at, float("inf")) for at in range(len(terms.market.candidates)))
            if reclaims else (),
            **self._errors(), deadline_us=held.deadline_us, budget_cents=held.budget_cents,
            max_power_w=held.max_power_w, place=self.place,
            timed=self.timed)

    @property
    def tokens(self) -> int:
        """Tokens that are worked through."""
        return processed(self.asked, self.question.sample_length, self.question.global_batch)

    @property
    def timed(self) -> bool:
        """Whether time counts."""
        return is_timed(self.asked, self.terms.objective)

    @property
    def checkpoint_bytes(self) -> float:
        """Bytes of a checkpoint."""
        return checkpoint_bytes(self.stack, self.asked.precision[0], self.question)

    def _residuals(self, doublings: int = 0) -> list[list[Residual]]:
        """The residuals of step time of each candidate in each precision, so many doublings of GPUs past evidence."""
        law, method = self.catalog.step_residuals, self.asked.method or "pretrain"
        return [[step_residual(law, self.question, method, self.model, at, p, doublings) for p in self.asked.precision]
                for at in range(len(self.terms.market.candidates))]

    @property
    def context(self) -> Context:
        """What every assignment of the job shares."""
        return Context(self.name, self.model.name, self.asked.method or "pretrain", self.question, self.search,
                       self.terms.market.offers, self.catalog.step_residuals, self.model, validated=self.is_validated,
                       added=added_by_runs(self.catalog, self.asked), said=preferred(self.asked, self.question))

    @property
    def is_validated(self) -> bool:
        """Whether measured speeds of the stack are in the evidence: of training whole models, not of adapters."""
        return has_evidence(self.catalog, self.stack, self.asked.method or "pretrain")

    @property
    def parallelism(self) -> tuple[bool, bool, bool]:
        """Which kinds of parallelism its stack has."""
        return self.stack.pipeline, self.stack.tensor_parallel, self.stack.context_parallel

    def assignment(self, columns: Searched, run: Run) -> Assignment:
        """Return what was picked in full."""
        return assignment_of(self.context, columns.layout(run))

    def faults(self, columns: Searched, run: Run) -> list[str]:
        """Return what is wrong with the stages of what was picked, checked without a solver."""
        staged = columns.layout(run)
        return check_staging(staging_problem(self.question, staged.batch.rows, staged.batch.time,
                                             staged.batch.memory, staged.row),
                             staged.staged)

    def simplest(self, columns: Searched, run: Run, effort: Effort, known: Sequence[StagedLayout]
                 ) -> tuple[Searched, Run, int]:
        """Return the simplest layout of those that cannot be told from what was picked, its columns, and its value.

        The columns are the best of each candidate; known: those of all stacks. Raises OutOfTime.
        """
        staged = simplest(self.question, columns.grid.facts, self.search, columns.layout(run),
                         known, self.question.kernels.resolution, effort)
        frontier = replace(columns.frontier, found=[*columns.frontier.found, staged])
        run = Run(run.job, staged.column, self._offer(staged.column.candidate))
        return replace(columns, frontier=frontier), run, staged.key[0]

    def trade_offs(self, measures: Sequence[Objective], effort: Effort, known: Sequence[StagedLayout] = ()
                   ) -> tuple[Searched, list[Run]]:
        """Return the exact frontier of the measures, the best by the first one first, unless a bound is left open.

        known: what other stacks do, and is on it where this one does nothing as good.
        """
        grid = Grid(self.held())
        points, account = pareto(self.question, grid.facts.space, self.search, grid_source(grid), measures, effort,
                                 known)
        account.found = points
        runs = [Run(0, point.column, self._offer(point.column.candidate)) for point in points]
        return searched(grid, account), runs

    def closest(self, columns: Searched) -> Assignment | None:
        """Return the layout that misses memory by least, in full; none where no layout is legal."""
        row, _ = nearest_of(self.question, columns.grid)
        if row is None:
            return None
        asked = self.asked.model_copy(update={"stack": (self.stack.name,)})
        node = self.terms.market.candidates[int(row["candidate"])].node.name
        return estimate_training(asked, self.catalog, node, None, layout_of_row(row), self.confidence)

    def counts(self, most: int) -> Sequence[int]:
        """Return the numbers of GPUs up to `most` that its rules admit, rising."""
        return counts_of(self.held(), most)

    def beside(self, columns: Searched, run: Run, best: Assignment) -> Alternative:
        """Return a run beside the best one, with why it lost."""
        return alternative_of(self.context, columns.layout(run), best)

    def _offer(self, candidate: int) -> RentalOffer | None:
        return next((offer for offer in self.terms.market.offers if offer.candidate == candidate), None)

    def short(self, columns: Searched) -> Short:
        """Return what lacks memory, and the nearest miss."""
        return short_of_memory(self.question, columns.grid, columns.frontier)

    def knobs(self, assignments: Sequence[Assignment]) -> list[Knob]:
        """Return what memory and network are worth to the job."""
        return knobs_of(self.question, assignments)

    def decided(self, columns: Searched) -> Defaults:
        """Return what decided beside the defaults of the question: how far the search went, how many can be bought."""
        limits, removed = self.terms.limits, columns.frontier.removed
        said = [Default(name="max_gpus", value=str(MOST_GPUS), why="no limit is given")]
        most = [f"{o.nodes:,} {o.estate.node.name}" for o in self.terms.market.offers if o.estate is not None]
        cut = most and any(count for name, count in removed.items() if name.startswith("owned"))
        bought = Default(name="bought", value=f"at most {', '.join(most)}",
                         why="as their networks join or are priced for")
        return [*(said if limits.gpus is None and limits.max_gpus is None else ()), *((bought,) if cut else ())]

    def _errors(self) -> dict[str, Any]:
        """Return measured over computed duration: the largest run that it is known by, its quantile and its mean."""
        sure, added = self.terms.limits.confidence, added_by_runs(self.catalog, self.asked)
        law, candidates = self.catalog.step_residuals, self.terms.market.candidates
        traits = step_traits(self.stack, self.asked.method or "pretrain", self.model, "", "")
        known, most = law.most(traits, "gpus"), self.facts.space.max_gpus
        errors: dict[str, Any] = {"upper": (1.0,) * len(candidates)}
        if math.isfinite(known):
            errors["known"] = max(1, int(known))
        if sure is None and not self.terms.robust:
            return errors
        steps = math.ceil(math.log2(max(1.0, most / known))) if math.isfinite(known) else 0
        by_size = [self._residuals(past) for past in range(steps + 1)]
        by_size += by_size[-1:] * (DOUBLINGS - steps)
        if self.terms.robust:
            errors["means"] = tuple(tuple(tuple(each[at][p].mean for each in by_size)
                                         for p in range(len(self.asked.precision))) for at in range(len(candidates)))
        if sure is not None:
            # in the precision that is least known
            worst = [[max(residuals, key=lambda residual: residual.q95) for residuals in each] for each in by_size]
            errors["uppers"] = tuple(tuple(run_quantile(each[at], added, sure) for each in worst)
                                    for at in range(len(candidates)))
            errors["upper"] = tuple(upper[0] for upper in errors["uppers"])
        return errors


def training_job(name: str, asked: Training, catalog: Catalog, terms: Terms, confidence: float, stack_name: str,
                 place: int = 0) -> TrainingJob:
    """Return a resolved training workload by one stack, with what storage costs where nodes are bought."""
    method = asked.method or "pretrain"
    model, candidates = catalog.model(asked.model), terms.market.candidates
    own = catalog.stack(stack_name)
    asked, target = held_to_target(asked, own, method, catalog)
    batch = batch_of(asked, catalog)
    question = asked_physics(asked, catalog, candidates, told_by(target, own, method), confidence, batch.sequences)
    stack = question.stack
    saved = checkpoint_bytes(stack, asked.precision[0], question)
    terms = replace(terms, market=stored(terms.market, asked.tokens or 0, saved))
    facts = facts_of(question, model, asked, batch, terms.limits, timed=is_timed(asked, terms.objective))
    facts = replace(facts, space=replace(facts.space, only=values_for(target, stack, method)))
    return TrainingJob(name, asked, catalog, terms, confidence, model, stack, question, facts, place)
