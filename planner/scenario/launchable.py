"""A question whose plan is to be started: its jobs that train are held to what the files of their stacks can say."""

from __future__ import annotations

from planner.scenario.default import Default, Defaults
from planner.scenario.portfolio import AnyQuestion, Portfolio
from planner.scenario.posttraining import PostTraining, PostTrainingScenario
from planner.scenario.scenario import Scenario
from planner.scenario.workload import AUTO, Training

_WHY = "files are written, and the best of all layouts cannot be told to its stack"


def to_be_launched(asked: AnyQuestion, defaults: Defaults) -> tuple[AnyQuestion, Defaults]:
    """Return the question held to what `planner launch` can write, and with that its defaults."""
    held = asked
    if isinstance(asked, Portfolio):
        jobs = tuple(job.model_copy(update={"workload": _held(job.workload)})
                     if isinstance(job.workload, Training | PostTraining) else job for job in asked.jobs)
        held = asked.model_copy(update={"jobs": jobs})
    elif isinstance(asked, Scenario | PostTrainingScenario):
        held = asked.model_copy(update={"workload": _held(asked.workload)})
    return held, defaults if held == asked else [*defaults, Default(name="launchable", value=AUTO, why=_WHY)]


def held_target(work: object) -> str | None:
    """Return the target that a workload names to be launchable with; none where it may be any."""
    named = work.launchable if isinstance(work, Training | PostTraining) else None
    return None if named == AUTO else named


def names_target(asked: AnyQuestion) -> bool:
    """Say whether a question, or a job of it, is held to a target by name."""
    works = [job.workload for job in asked.jobs] if isinstance(asked, Portfolio) else [asked.workload]
    return any(held_target(work) is not None for work in works)


def _held(work: Training | PostTraining) -> Training | PostTraining:
    return work if work.launchable is not None else work.model_copy(update={"launchable": AUTO})
