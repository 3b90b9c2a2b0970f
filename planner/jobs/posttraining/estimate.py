"""The estimate of reinforcement learning on one node type: the fastest way that fits, or the leanest."""

from __future__ import annotations

from collections.abc import Mapping

from planner.answer.assignment import Assignment
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.posttraining.assignment import assignment_of
from planner.jobs.posttraining.lacking import helps
from planner.jobs.posttraining.options import ways_on
from planner.jobs.posttraining.question import questions
from planner.money.rent import usual_candidate
from planner.scenario.posttraining import PostTraining


def estimate_posttraining(work: PostTraining, catalog: Catalog, node: str, gpus: int | None,
                          layout: Mapping[str, str], confidence: float) -> tuple[Assignment, tuple[str, ...]]:
    """Return the fastest way that fits a node type, or what comes nearest, and how it was chosen. Raises InputError."""
    names = dict.fromkeys((catalog.node(node).name, *(catalog.node(each).name for each in work.rollouts_on)))
    candidates = tuple(usual_candidate(catalog.node(name), catalog) for name in names)
    total, law = gpus or candidates[0].node.gpus, catalog.posttraining_law
    ways = [way for question in questions(work, catalog, candidates, 0, confidence)
            for way in ways_on(question, total, layout)]
    held = f" with {', '.join(f'{key}={value}' for key, value in layout.items())}" if layout else ""
    if not ways:
        raise InputError(f"no way to run {work.method} of {work.model} on {total} GPU{'' if total == 1 else 's'} of "
                         f"{candidates[0].node.name}{held}: no replica of the rollouts holds the longest answer beside "
                         f"the trainer, or no layout is legal; {helps(work)}")
    fitting = [way for way in ways if way.lacking <= 0]
    way = min(fitting, key=lambda each: each.rank) if fitting else min(ways, key=lambda each: each.lacking)
    name = f"{work.model} {work.method}, {work.prompts} x {work.samples_per_prompt} answers a step"
    made = assignment_of(name, work, way, candidates, law)
    if fitting:
        return made, (f"Chosen: the fastest of the {len(fitting)} ways{held} that fit, of {len(ways)} that no other "
                      "matches",)
    return made, (f"Of {len(ways)} ways{held} none fits: this one misses by least; {helps(work)} takes less",)
