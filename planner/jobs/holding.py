"""What holds a model: the questions behind it, by method, and who asks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from planner.answer.assignment import Assignment
from planner.answer.schema import Search
from planner.catalog.architecture import Model
from planner.catalog.engine import Engine
from planner.catalog.load import Catalog
from planner.catalog.stack import Method
from planner.jobs.kinds import training_question
from planner.jobs.market import unpriced
from planner.jobs.serving.holding import fewest_serving, service_for
from planner.jobs.serving.narrower import in_fewer_bits
from planner.jobs.solved import ResolvedScenario
from planner.jobs.training.facts import MOST_HOLDING
from planner.physics.shapes import parameters
from planner.scenario.portfolio import AnyQuestion
from planner.scenario.scenario import AnyScenario, Scenario, ServingScenario
from planner.scenario.serving import Serving
from planner.scenario.workload import EVERY, Training

__all__ = ["MOST_HOLDING", "asks_what_holds", "held_in_fewer_bits", "holding", "holding_served", "trained_by"]
METHODS: tuple[Method, ...] = ("inference", "qlora", "lora", "full")


def asks_what_holds(scenario: AnyQuestion) -> bool:
    """Say whether a scenario states no work, so that the question is what holds the model."""
    if isinstance(scenario, ServingScenario):
        return scenario.asks_what_holds
    return isinstance(scenario, Scenario) and scenario.workload.tokens is None


def trained_by(scenario: AnyQuestion) -> Training | None:
    """Return what is trained, where a question is about that; none of a service."""
    return scenario.workload if isinstance(scenario, Scenario) else None


def holding_served(scenario: AnyScenario, catalog: Catalog, model: str | None = None, *, any_engine: bool = False
                   ) -> tuple[list[Assignment], Search]:
    """Return the fewest GPUs of every kind that hold a model to serve it, fewest first, and what was looked at.

    `model` is one of those that a training question asks about. any_engine: a kind of GPU on which the engine does not
    hold it is looked at with the others. Raises PlannerError.
    """
    asked = _served(scenario, catalog, model)
    found, account = _fewest(asked, scenario, catalog)
    for other in catalog.all("engines", Engine) if any_engine else ():
        held = {made.gpu for made in found}
        left = [node for node in scenario.hardware.candidates if catalog.node(node).gpu not in held]
        if not left or other.name == asked.engine:
            continue
        moved = scenario.model_copy(update={"hardware": scenario.hardware.model_copy(update={"candidates": left})})
        more, _ = _fewest(asked.model_copy(update={"engine": other.name, "engine_version": None}), moved, catalog)
        found = sorted([*found, *(made for made in more if made.gpu not in held)], key=lambda made: made.gpus)
    several = isinstance(scenario, Scenario) and scenario.workload.has_several
    return [made.model_copy(update={"workload": f"{made.method} {model}"}) if several else made
            for made in found], account


def held_in_fewer_bits(scenario: AnyScenario, catalog: Catalog, model: str | None = None
                       ) -> Iterator[tuple[str, list[Assignment]]]:
    """Yield the formats narrower than the one that `holding_served` has, each with the fewest GPUs of every kind that
    hold it so, fewest first; none where none does.
    """
    for name, narrow in in_fewer_bits(_served(scenario, catalog, model)):
        if found := _fewest(narrow, scenario, catalog)[0]:
            yield name, found


def formats_of(scenario: AnyScenario, catalog: Catalog) -> list[str]:
    """Return the format in which `holding_served` has the weights, and those that are narrower."""
    asked = _served(scenario, catalog, None)
    return [",".join(asked.quantization or ()), *(name for name, _ in in_fewer_bits(asked))]


def _served(scenario: AnyScenario, catalog: Catalog, model: str | None) -> Serving:
    if isinstance(scenario, ServingScenario):
        (asked,) = scenario.services
        return asked
    assert isinstance(scenario, Scenario)
    return service_for(scenario.workload, model or scenario.workload.model, catalog)


def _fewest(asked: Serving, scenario: AnyScenario, catalog: Catalog) -> tuple[list[Assignment], Search]:
    limits = scenario.limits
    found, account = fewest_serving(asked, catalog, unpriced(scenario.hardware.candidates, catalog).candidates,
                                    limits.gpus or limits.max_gpus or MOST_HOLDING)
    return [made for made in found if limits.max_nodes is None or made.nodes <= limits.max_nodes], account


def holding(scenario: AnyScenario, catalog: Catalog, methods: Sequence[Method] | None = None
            ) -> Iterator[tuple[Method, list[str], Callable[[str], ResolvedScenario]]]:
    """Yield every method asked about with its models, the largest first, and what asks about one of them.

    methods: in place of those that the scenario asks about. Asking raises PlannerError.
    """
    assert isinstance(scenario, Scenario)
    if methods is None:
        methods = (scenario.workload.method,) if scenario.workload.method else METHODS
    if not methods:
        return
    market = unpriced(scenario.hardware.candidates, catalog)
    models = published(scenario.workload.sequence_length, catalog) if scenario.workload.model == EVERY else sorted(
        scenario.workload.models, key=lambda name: -parameters(catalog.model(name)))

    def asking(method: Method) -> Callable[[str], ResolvedScenario]:
        return lambda model: training_question(_holding(scenario, method, model), catalog, market)

    for method in methods:
        yield method, models, asking(method)


def published(length: int | None, catalog: Catalog) -> list[str]:
    """Return the models that people may tune, the largest first, one of every size: published, for text, and trained on
    sequences of `length` tokens.
    """
    sizes = {parameters(model): model.name for model in catalog.all("models", Model)
             if model.hf_id and not model.encodes and (model.context or model.sequence_length) >= (length or 1)
             and not (model.tower is not None and model.like)}
    return [name for _, name in sorted(sizes.items(), reverse=True)]


def _holding(scenario: Scenario, method: Method, model: str) -> Scenario:
    name = f"{method} {model}" if scenario.workload.has_several else method
    work = scenario.workload.model_copy(update={"method": method, "model": model})
    return scenario.model_copy(update={"name": name, "workload": work})


