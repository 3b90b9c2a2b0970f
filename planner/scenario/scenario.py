"""A whole question, as read from a file, from flags or from both."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import Field, ValidationInfo, field_validator, model_validator

from planner.errors import Unsupported
from planner.scenario.demand import Confidence
from planner.scenario.diffusion import DiffusionScenario
from planner.scenario.generation import Generation
from planner.scenario.job import UNNAMED, JobScenario
from planner.scenario.limits import Hardware, Limits, ServingLimits, ServingObjective, Sourcing
from planner.scenario.posttraining import PostTrainingScenario
from planner.scenario.serving import LOADS, Serving
from planner.scenario.workload import Training
from planner.yaml_io import Frozen


class Scenario(JobScenario):
    """The question of training or tuning a language model."""

    workload: Training
    """What is trained."""
    robust: bool = False
    """Whether the cost that is minimized is the mean over the interval of the step, not that at its median."""


class ServingScenario(Frozen):
    """The same question for one service (`workload`), or for several that share a pool (`workloads`)."""

    name: str = UNNAMED
    """A name for the question."""
    workload: Serving | None = None
    """One service."""
    workloads: tuple[Serving, ...] = Field(default=(), max_length=100)
    """Several services that share a pool."""
    hardware: Hardware
    """Which nodes may be used; any by default."""
    sourcing: Sourcing = Sourcing()
    """Where hardware comes from."""
    limits: ServingLimits | Limits = ServingLimits()
    """What the plan must respect; a batch of documents ends, and so has the limits of a job."""
    objective: ServingObjective = "cost"
    """What is minimized; time is of a batch of documents. Or rate or users, which are maximized within limits."""
    confidence: Confidence = Field(default=0.95, ge=0.5, lt=1)
    """Confidence of the memory verdict."""

    @field_validator("limits", mode="wrap")
    @classmethod
    def _of_a_service_or_a_batch(cls, value: object, handler: object, info: ValidationInfo) -> Limits:
        return value if isinstance(value, Limits) else (Limits if _ends(info) else ServingLimits).model_validate(value)

    @field_validator("objective")
    @classmethod
    def _services_take_no_time(cls, value: ServingObjective, info: ValidationInfo) -> ServingObjective:
        if value == "time" and not _ends(info):
            raise ValueError("expected 'cost', 'gpus', 'energy', 'rate' or 'users', got 'time'")
        return value

    @property
    def services(self) -> tuple[Serving, ...]:
        """Every service asked for, at least one."""
        return self.workloads if self.workload is None else (self.workload,)

    @property
    def asks_what_holds(self) -> bool:
        """Whether a service has neither a load nor a latency target, so that the question is what holds the model."""
        work = self.workload
        return type(work) is Serving and self.objective not in ("rate", "users") and not work.levels and all(
            getattr(work, load) is None for load in LOADS)

    @model_validator(mode="after")
    def _one_service_or_a_list(self) -> ServingScenario:
        if self.workload is not None and self.workloads:
            raise ValueError("workload and workloads are both given: one service is a workload, several are workloads")
        if not self.services:
            raise ValueError("workloads: at least one service is needed")
        return self

    @model_validator(mode="after")
    def _somebody_thinks(self) -> ServingScenario:
        for service in self.services:
            if service.think is not None and service.users is None and self.objective not in ("rate", "users"):
                raise ValueError("think applies to users, but none are given: give users, or objective: users for as "
                                 "many as there may be")
        return self

    @model_validator(mode="after")
    def _several_are_told_apart(self) -> ServingScenario:
        names = [service.name for service in self.workloads]
        for at, service in enumerate(self.workloads):
            if service.name is None:
                raise ValueError(f"workloads.{at}.name: required, but missing: services that share a pool have names")
            if service.name in names[:at]:
                raise ValueError(f"workloads.{at}.name: {service.name!r} is given twice")
            if service.rate is None and service.trace is None and service.clients is None:
                raise ValueError(f"workloads.{at}: services that share a pool need a rate, users or a trace each")
        return self


def _ends(info: ValidationInfo) -> bool:
    """Say whether the workload read before is a batch of documents."""
    work = info.data.get("workload")
    return isinstance(work, Serving) and work.ends is not None


class GenerationScenario(ServingScenario):
    """The same question for images or clips of a diffusion model, or of several that share a pool."""

    workload: Generation | None = None
    """One service, or a batch."""
    workloads: tuple[Generation, ...] = Field(default=(), max_length=100)
    """Several services that share a pool."""


AnyScenario: TypeAlias = Scenario | ServingScenario | DiffusionScenario | PostTrainingScenario
SCENARIOS: dict[str, type[AnyScenario]] = {
    "posttraining": PostTrainingScenario, "diffusion": DiffusionScenario,
    "generation": GenerationScenario, "training": Scenario, "serving": ServingScenario}
"""The question of each kind of work."""


def only_training(scenario: AnyScenario, what: str) -> Scenario:
    """Return a training scenario as it is. Raises Unsupported, naming `what` was asked, for another kind."""
    if not isinstance(scenario, Scenario):
        kind = "serving" if isinstance(scenario, ServingScenario) else scenario.workload.kind
        raise Unsupported(f"{what} of a workload of kind: {kind}")
    return scenario
