"""A training workload resolved to a job by each stack that may do it."""

from __future__ import annotations

from planner.catalog.load import Catalog
from planner.errors import PlannerError, Unsupported
from planner.jobs.job import Terms
from planner.jobs.training.facts import is_timed
from planner.jobs.training.in_use import stacks_of
from planner.jobs.training.job import TrainingJob, training_job
from planner.jobs.training.stacks import ByStack
from planner.scenario.workload import Training


def training_of(name: str, asked: Training, catalog: Catalog, terms: Terms, confidence: float) -> ByStack:
    """Return a resolved training workload on its terms, by the stacks that it names or that are in use.

    A stack that cannot train the model at all is left out, unless none can. Raises PlannerError.
    """
    made: list[tuple[TrainingJob, ...]] = []
    refused: PlannerError | None = None
    place = 0
    for group in stacks_of(asked, catalog, timed=is_timed(asked, terms.objective)):
        jobs = []
        for stack in group:
            try:
                jobs.append(training_job(name, asked, catalog, terms, confidence, stack, place))
                place += 1
            except Unsupported as error:
                refused = refused or error
        made += [tuple(jobs)] if jobs else []
    if not made:
        raise refused or Unsupported(f"files that start {asked.method or 'pretrain'} of {asked.model}: no target does")
    return ByStack(tuple(made))
