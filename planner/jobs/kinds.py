"""Which kind of work a scenario asks about: the one place that knows all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypeGuard

from planner.answer.assignment import Assignment
from planner.answer.simulation import Simulation
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.diffusion.estimate import estimate_diffusion
from planner.jobs.diffusion.job import DiffusionJob
from planner.jobs.generation.batch import generation_batch
from planner.jobs.generation.estimate import estimate_generation
from planner.jobs.generation.estimate import idle_keys as idle_generation
from planner.jobs.generation.job import generation_job
from planner.jobs.generation.simulate import simulate_images
from planner.jobs.idle import Idle, several
from planner.jobs.job import Job, Progress, Terms
from planner.jobs.market import Market, market_of
from planner.jobs.posttraining.estimate import estimate_posttraining
from planner.jobs.posttraining.job import PostTrainingJob
from planner.jobs.posttraining.pairs import Pair, paired
from planner.jobs.serving.batch import batch_job
from planner.jobs.serving.estimate import best_replica, estimate_serving
from planner.jobs.serving.estimate import idle_keys as idle_serving
from planner.jobs.serving.job import serving_job, with_load
from planner.jobs.serving.narrower import narrower
from planner.jobs.serving.simulate import simulate_fleet
from planner.jobs.solved import ResolvedScenario
from planner.jobs.training.one_layout import check_axes, estimate_training, is_whole, open_layout, with_steps
from planner.jobs.training.one_layout import idle_keys as idle_training
from planner.jobs.training.resolved import training_of
from planner.money.rent import usual_candidate
from planner.scenario.diffusion import DiffusionScenario, DiffusionTraining
from planner.scenario.generation import Generation
from planner.scenario.limits import Deadline, Limits, ServingLimits
from planner.scenario.portfolio import Portfolio
from planner.scenario.portfolio_job import AnyWork
from planner.scenario.posttraining import PostTraining, PostTrainingScenario
from planner.scenario.scenario import AnyScenario, Scenario, ServingScenario, only_training
from planner.scenario.serving import LOADS, Serving
from planner.scenario.usual import usual_precision, usual_release
from planner.simulate.trace import Trace
from planner.yaml_io import Frozen

__all__ = ["asks_for_load", "at_load", "at_one", "check_axes", "computed_on",
           "estimate_of", "idle_in", "jobs_of", "loads_of", "on_node",
           "open_layout", "question_of", "service_of", "with_steps"]


def question_of(scenario: AnyScenario, catalog: Catalog) -> ResolvedScenario:
    """Look up everything a scenario names. Raises PlannerError where it cannot be asked."""
    limits = scenario.limits
    # one machine, unless the question says how large it may be
    machines = 1 if limits.gpus is limits.max_gpus is limits.max_nodes is None else None
    if isinstance(scenario, ServingScenario):
        if scenario.objective == "rate" or scenario.objective == "users":  # noqa: PLR1714 - narrows the type
            raise InputError(f"objective: {scenario.objective} is for planner plan; ask about the load that it answers "
                             "with")
        daily = any(asked.day for asked in scenario.services)
        market = market_of(scenario.hardware.candidates, scenario.sourcing, catalog, daily=daily,
                           by_provider=isinstance(limits, ServingLimits) and bool(limits.one_provider),
                           machines=machines if len(scenario.hardware.candidates) == 1 or all(
                               asked.ends is not None for asked in scenario.services) else None)
        terms = Terms(market, scenario.limits, scenario.objective)
        return ResolvedScenario(scenario, catalog, tuple(
            _job_of(asked.label, asked, catalog, terms, scenario.confidence) for asked in scenario.services), terms)
    market = market_of(scenario.hardware.candidates, scenario.sourcing, catalog, machines=machines)
    if isinstance(scenario, DiffusionScenario):
        terms = Terms(market, limits, scenario.objective)
        job = _job_of(scenario.name, scenario.workload, catalog, terms, scenario.confidence)
        return ResolvedScenario(scenario, catalog, (job,), terms)
    if isinstance(scenario, PostTrainingScenario):
        work, pairs = scenario.workload, dict[int, Pair]()
        if work.rollouts_on:
            nodes = (*scenario.hardware.candidates, *work.rollouts_on)
            market, pairs = paired(market_of(nodes, scenario.sourcing, catalog, machines=machines),
                                   scenario.hardware.candidates, work.rollouts_on)
        terms = Terms(market, limits, scenario.objective)
        learning = PostTrainingJob(scenario.name, work, catalog, terms, scenario.confidence, pairs)
        return ResolvedScenario(scenario, catalog, (learning,), terms)
    return training_question(scenario, catalog, market)


def _making(name: str, asked: Generation, catalog: Catalog, terms: Terms, confidence: float) -> Job:
    """Return images or clips at a rate, or a batch of them, as a job."""
    return (generation_job if asked.ends is None else generation_batch)(name, asked, catalog, terms, confidence)


def training_question(scenario: Scenario, catalog: Catalog, market: Market) -> ResolvedScenario:
    """Return a question of a training job on a market. Raises PlannerError where it cannot be asked."""
    job = training_of(scenario.name, scenario.workload, catalog, Terms(
        market, scenario.limits, scenario.objective, robust=scenario.robust), scenario.confidence)
    return ResolvedScenario(scenario, catalog, (job,), job.terms)


def jobs_of(portfolio: Portfolio, catalog: Catalog, market: Market) -> list[Job]:
    """Return every job of a portfolio on the market of the distinct hardware; a run may take as long as it has."""
    horizon = portfolio.horizon
    most = {name: getattr(portfolio.limits, name) for name in ("max_gpus", "max_nodes", "max_power")}
    jobs: list[Job] = []
    for asked in portfolio.jobs:
        if not asked.ends:
            terms = Terms(market, ServingLimits(), "cost")
            jobs.append(_job_of(asked.name, asked.workload, catalog, terms, portfolio.confidence))
            continue
        window = asked.time_given(horizon)
        limits = Limits().model_copy(update={"deadline": Deadline(window), **most})
        terms = Terms(market, limits, "cost", min(horizon.period, window))
        jobs.append(_job_of(asked.name, asked.workload, catalog, terms, portfolio.confidence))
    return jobs


def _job_of(name: str, work: AnyWork, catalog: Catalog, terms: Terms, confidence: float) -> Job:
    """Return a workload of any kind as a job on its terms."""
    if isinstance(work, Generation):
        return _making(name, work, catalog, terms, confidence)
    if isinstance(work, Serving):
        return (serving_job if work.ends is None else batch_job)(name, work, catalog, terms)
    if isinstance(work, DiffusionTraining):
        return DiffusionJob(name, work, catalog, terms, confidence)
    if isinstance(work, PostTraining):
        return PostTrainingJob(name, work, catalog, terms, confidence)
    return training_of(name, work, catalog, terms, confidence)


def work_asked(scenario: AnyScenario) -> dict[str, object]:
    """Return the work that an estimate is of, with its units, as it could be written to a file."""
    work = scenario.services[0] if isinstance(scenario, ServingScenario) else scenario.workload
    return work.model_dump(mode="json", exclude_none=True, by_alias=True)


def names_stacks(scenario: AnyScenario) -> bool:
    """Say whether a question may name the stack of an answer: of reinforcement learning it names a framework."""
    return isinstance(scenario, Scenario)


def estimate_of(scenario: AnyScenario, catalog: Catalog, node: str, layout: Mapping[str, str]
                ) -> tuple[Assignment, tuple[str, ...]] | None:
    """Return one layout of the work on a node type, in full, and how it was chosen where the question leaves it open;
    none where a search must choose it.

    `limits.gpus` are its GPUs. Raises PlannerError.
    """
    gpus = scenario.limits.gpus
    if isinstance(scenario, ServingScenario):
        return _of_a_service(scenario, catalog, node, layout)
    if isinstance(scenario, DiffusionScenario):
        made, why = estimate_diffusion(scenario.workload, catalog, node, gpus, layout, scenario.confidence)
        time = made.time.model_copy(update={"steps": scenario.workload.total_steps})
        return made.model_copy(update={"time": time}), why
    if isinstance(scenario, PostTrainingScenario):
        return estimate_posttraining(scenario.workload, catalog, node, gpus, layout, scenario.confidence)
    if not is_whole(layout, catalog.node(node).gpus, gpus):
        return None
    return estimate_training(scenario.workload, catalog, node, gpus, layout, scenario.confidence), ()


def _of_a_service(scenario: ServingScenario, catalog: Catalog, node: str, layout: Mapping[str, str]
                  ) -> tuple[Assignment, tuple[str, ...]]:
    """Return the estimate of a service, of tokens or of images."""
    work, gpus = scenario.services[0], scenario.limits.gpus
    if isinstance(work, Generation):
        return estimate_generation(work, catalog, node, gpus, layout, scenario.confidence)
    if layout:
        return estimate_serving(work, catalog, node, gpus, layout), ()
    replicas, why = best_replica(work, catalog, node, gpus)
    return replicas, (why,)


def loads_of(scenario: AnyScenario) -> tuple[float | None, bool]:
    """Return the requests/s that a service is asked for, none for another load or kind; and whether it is asked
    without any load, so that what it can do at most is estimated.
    """
    services = scenario.services if isinstance(scenario, ServingScenario) else ()
    rate = services[0].rate if services else None
    return rate, bool(services) and all(load is None for service in services
                                        for load in (service.rate, service.clients, service.trace))


def service_of(scenario: AnyScenario) -> Serving:
    """Return the service that a scenario asks about. Raises InputError for training."""
    if not isinstance(scenario, ServingScenario):
        raise InputError("simulate replays requests on a service, and this is a training question")
    return scenario.services[0]


def replay_service(asked: Serving, mine: Sequence[Assignment], catalog: Catalog, trace: Trace | None = None, *,
                   policy: str = "least-outstanding", progress: Progress | None = None, seed: int = 0) -> Simulation:
    """Replay a trace on replicas of a service of any kind, or what it is asked for. Raises InputError."""
    went = partial(simulate_images, asked) if isinstance(asked, Generation) else partial(simulate_fleet, asked)
    return went(mine, catalog, trace, policy=policy, progress=progress, seed=seed)


def computed_on(scenario: AnyScenario, node: str, catalog: Catalog) -> AnyScenario:
    """Return a question with the format that training on a node type computes in, and the release of the engine that
    runs there, where it leaves them open.
    """
    if isinstance(scenario, ServingScenario) and scenario.workload is not None:
        old = usual_release(scenario.workload, [node], catalog)
        served = scenario.workload.model_copy(update={"engine_version": old.value} if old else {})
        return scenario.model_copy(update={"workload": served})
    if not isinstance(scenario, Scenario) or "precision" in scenario.workload.model_fields_set:
        return scenario
    precision, _ = usual_precision([node], catalog)
    work = scenario.workload.model_copy(update={"precision": precision})
    return scenario.model_copy(update={"workload": work})


def on_node(scenario: AnyScenario, catalog: Catalog, node: str) -> ResolvedScenario:
    """Return the question how fast one step of a training job is on a node type, whatever it costs."""
    asked = only_training(scenario, "the best layout")
    work = asked.workload.model_copy(update={"tokens": None})
    market = Market((usual_candidate(catalog.node(node), catalog),))
    return training_question(asked.model_copy(update={"workload": work, "objective": "time"}), catalog, market)


def idle_in(scenario: AnyScenario) -> list[Idle]:
    """Return what a scenario states, other than the default, that an estimate of its work does not heed."""
    work = scenario.services[0] if isinstance(scenario, ServingScenario) else scenario.workload
    idle_keys: Iterable[Idle]
    if isinstance(work, Generation):
        idle_keys = idle_generation(work)
    elif isinstance(work, Serving):
        idle_keys = idle_serving(work)
    elif isinstance(work, DiffusionTraining):
        idle_keys = several("quantization", work.quantization)
    elif isinstance(work, PostTraining):
        idle_keys = ()
    else:
        idle_keys = idle_training(work)
    return [idle for idle in idle_keys if _stated(work if idle.of_work else scenario, idle.key)]


def _stated(block: Frozen, key: str) -> bool:
    return key in block.model_fields_set and getattr(block, key) != type(block).model_fields[key].default


def narrower_of(scenario: AnyScenario) -> Mapping[str, Mapping[str, object]]:
    """Return what lets a service of text hold more, by the option that asks for it, as keys of its workload; of other
    work nothing.
    """
    work = scenario.workload
    return narrower(work) if isinstance(work, Serving) and not isinstance(work, Generation) else {}


def asks_for_load(scenario: AnyScenario) -> TypeGuard[ServingScenario]:
    """Say whether the question is what rate, or how many users, the limits admit."""
    return isinstance(scenario, ServingScenario) and scenario.objective in ("rate", "users")


def at_one(scenario: ServingScenario) -> ServingScenario:
    """Return the question at one request/s, or with one user, whose replicas are those of any load. Raises InputError.
    """
    work, name = scenario.workload, scenario.objective
    if work is None:
        raise InputError(f"objective: {name} is for one service, but the scenario has several")
    given = [load for load in LOADS if getattr(work, load) is not None]
    if given:
        raise InputError(f"objective: {name} looks for the largest load: leave workload.{given[0]} out")
    least = {"users": 1} if name == "users" or work.think is not None else {"rate": 1.0}
    # as a file would have it, so that keys that do nothing to users are refused
    asked = type(work).model_validate(work.model_dump(exclude_defaults=True) | {"kind": work.kind} | least)
    return scenario.model_copy(update={"workload": asked, "objective": "cost"})


def at_load(scenario: ServingScenario, load: float) -> ServingScenario:
    """Return a question of one service at another rate, or with as many users."""
    (asked,) = scenario.services
    return scenario.model_copy(update={"workload": with_load(asked, load)})
