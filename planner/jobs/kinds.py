"""Which kind of work a scenario asks about: the one place that knows all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from planner.answer.assignment import Assignment
from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.stack import Method
from planner.errors import InputError
from planner.jobs.idle import Idle
from planner.jobs.job import Job, Terms
from planner.jobs.market import Market, market_of, unpriced
from planner.jobs.serving.batch import batch_job
from planner.jobs.serving.estimate import best_replica, estimate_serving
from planner.jobs.serving.estimate import idle_keys as idle_serving
from planner.jobs.serving.job import serving_job
from planner.jobs.solved import Question
from planner.jobs.training.facts import MOST_HOLDING
from planner.jobs.training.in_use import first_stack
from planner.jobs.training.job import training_job
from planner.jobs.training.one_layout import estimate_training, is_whole
from planner.jobs.training.one_layout import idle_keys as idle_training
from planner.jobs.training.stacks import training_of
from planner.money.rent import usual_candidate
from planner.physics.shapes import parameters
from planner.scenario.limits import Deadline, Limits, ServingLimits
from planner.scenario.portfolio import Portfolio
from planner.scenario.scenario import AnyScenario, Scenario, ServingScenario, only_training
from planner.scenario.serving import Serving
from planner.scenario.workload import EVERY
from planner.yaml_io import Frozen

__all__ = ["MOST_HOLDING", "asks_what_holds", "estimate_of", "holding", "idle_in", "jobs_of", "on_node", "question_of",
            "replica_on"]
METHODS: tuple[Method, ...] = ("inference", "qlora", "lora", "full")


def question_of(scenario: AnyScenario, catalog: Catalog) -> Question:
    """Look up everything a scenario names. Raises PlannerError where it cannot be asked."""
    if isinstance(scenario, ServingScenario):
        if scenario.objective == "rate" or scenario.objective == "users":  # noqa: PLR1714 - narrows the type
            raise InputError(f"objective: {scenario.objective} is for planner plan; ask about the load that it answers "
                             "with")
        daily = any(asked.day for asked in scenario.services)
        market = market_of(scenario.hardware.candidates, scenario.sourcing, catalog, daily=daily,
                           by_provider=isinstance(scenario.limits, ServingLimits)
                           and bool(scenario.limits.one_provider))
        terms = Terms(market, scenario.limits, scenario.objective)
        if scenario.workload is not None and scenario.workload.documents is not None:
            return Question(scenario, catalog, (batch_job(scenario.workload.label, scenario.workload, catalog, terms),),
                            terms)
        return Question(scenario, catalog, tuple(
            serving_job(asked.label, asked, catalog, terms) for asked in scenario.services), terms)
    limits = scenario.limits
    # one machine, unless the question says how large it may be
    machines = 1 if limits.gpus is limits.max_gpus is limits.max_nodes is None else None
    market = market_of(scenario.hardware.candidates, scenario.sourcing, catalog, machines=machines)
    return _training(scenario, catalog, market)


def _training(scenario: Scenario, catalog: Catalog, market: Market) -> Question:
    job = training_of(scenario.name, scenario.workload, catalog, Terms(market, scenario.limits, scenario.objective),
                      scenario.confidence)
    return Question(scenario, catalog, (job,), job.terms)


def jobs_of(portfolio: Portfolio, catalog: Catalog, market: Market) -> list[Job]:
    """Return every job of a portfolio on the market of the distinct hardware; a run may take as long as it has."""
    horizon = portfolio.horizon
    most = {name: getattr(portfolio.limits, name) for name in ("max_gpus", "max_nodes", "max_power")}
    jobs: list[Job] = []
    for asked in portfolio.jobs:
        if isinstance(asked.workload, Serving):
            jobs.append(serving_job(asked.name, asked.workload, catalog, Terms(market, ServingLimits(), "cost")))
            continue
        until = horizon.end if asked.deadline is None or asked.late is not None else asked.deadline
        # jobs start with a period
        release = ((asked.release or horizon.start) - horizon.start).total_seconds() / horizon.period
        window = max((until - horizon.start).total_seconds() - math.ceil(release) * horizon.period, 1.0)
        limits = Limits().model_copy(update={"deadline": Deadline(window), **most})
        terms = Terms(market, limits, "cost", min(horizon.period, window))
        stack = first_stack(asked.workload, catalog)
        jobs.append(training_job(asked.name, asked.workload, catalog, terms, portfolio.confidence, stack))
    return jobs


def estimate_of(scenario: AnyScenario, catalog: Catalog, node: str, layout: Mapping[str, str]) -> Assignment | None:
    """Return one layout of the work on a node type, in full; none where the layout leaves the GPUs open.

    `limits.gpus` are its GPUs. Raises PlannerError.
    """
    gpus = scenario.limits.gpus
    if isinstance(scenario, ServingScenario):
        return estimate_serving(scenario.services[0], catalog, node, gpus, layout) if layout else None
    if not is_whole(layout, catalog.node(node).gpus, gpus):
        return None
    return estimate_training(scenario.workload, catalog, node, gpus, layout, scenario.confidence)


def replica_on(scenario: ServingScenario, catalog: Catalog, node: str) -> tuple[Assignment, str]:
    """Return the best replicas of a service on a node type, and how they were chosen. Raises PlannerError."""
    return best_replica(scenario.services[0], catalog, node, scenario.limits.gpus)


def on_node(scenario: AnyScenario, catalog: Catalog, node: str) -> Question:
    """Return the question how fast one step of a training job is on a node type, whatever it costs."""
    asked = only_training(scenario, "the best layout")
    work = asked.workload.model_copy(update={"tokens": None, "mean_length": None})
    market = Market((usual_candidate(catalog.node(node), catalog),))
    return _training(asked.model_copy(update={"workload": work, "objective": "time"}), catalog, market)


def idle_in(scenario: AnyScenario) -> list[Idle]:
    """Return what a scenario states, other than the default, that an estimate of its work does not heed."""
    work = scenario.services[0] if isinstance(scenario, ServingScenario) else scenario.workload
    found = idle_serving(work) if isinstance(work, Serving) else idle_training(work)
    return [one for one in found if _stated(work if one.of_work else scenario, one.key)]


def _stated(block: Frozen, key: str) -> bool:
    return key in block.model_fields_set and getattr(block, key) != type(block).model_fields[key].default


def asks_what_holds(scenario: AnyScenario) -> bool:
    """Say whether a scenario states no work, so that the question is what holds the model."""
    return isinstance(scenario, Scenario) and scenario.workload.tokens is None


def holding(scenario: AnyScenario, catalog: Catalog) -> Iterator[tuple[Method, list[str], Callable[[str], Question]]]:
    """Yield every method asked about with its models, the largest first, and what asks about one of them.

    Asking raises PlannerError.
    """
    assert isinstance(scenario, Scenario)
    market = unpriced(scenario.hardware.candidates, catalog)
    models = published(scenario.workload.sequence_length, catalog) if scenario.workload.model == EVERY else sorted(
        scenario.workload.models, key=lambda name: -parameters(catalog.model(name)))

    def asking(method: Method) -> Callable[[str], Question]:
        return lambda model: _training(_holding(scenario, method, model), catalog, market)

    for method in (scenario.workload.method,) if scenario.workload.method else METHODS:
        yield method, models, asking(method)


def published(length: int | None, catalog: Catalog) -> list[str]:
    """Return the models that people may tune, the largest first, one of every size: published, for text, and trained on
    sequences of `length` tokens.
    """
    sizes = {parameters(model): model.name for model in catalog.all("models", Model)
             if model.hf_id and model.sequence_length >= (length or 1) and not (model.tower is not None and model.like)}
    return [name for _, name in sorted(sizes.items(), reverse=True)]


def _holding(scenario: Scenario, method: Method, model: str) -> Scenario:
    name = f"{method} {model}" if scenario.workload.has_several else method
    work = scenario.workload.model_copy(update={"method": method, "model": model})
    return scenario.model_copy(update={"name": name, "workload": work})


