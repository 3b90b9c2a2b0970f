"""One workload on one set of GPUs: the layout, where its bytes and seconds go, and what it costs.

An assignment is what `planner estimate --json` prints, and the element of a Plan's lists.
Key order here is key order in the JSON; base units, named in the field.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.answer.media import DiffusionAssignment
from planner.answer.placement import Commitment, Failures, Placement, WholeRun
from planner.answer.posttraining import PostTrainingAssignment
from planner.catalog.preference import Tuned
from planner.catalog.stack import Reference
from planner.yaml_io import Frozen, absent

__all__ = [
    "KINDS",
    "SIMPLEST",
    "Alternative",
    "Assignment",
    "Commitment",
    "DiffusionAlternative",
    "DiffusionAssignment",
    "Failures",
    "PostTrainingAlternative",
    "PostTrainingAssignment",
    "Runner",
    "ServingAlternative",
    "ServingAssignment",
    "TrainingAlternative",
    "TrainingAssignment",
    "WholeRun",
    "alternative",
]


class TrainingAssignment(Placement):
    """A training job on its GPUs."""

    kind: Literal["training"] = "training"
    """Training."""
    serving: None = None
    """Always none."""
    sequence_length: int | None = Field(default=None, gt=0)
    """Tokens of a sequence."""
    global_batch: int | None = Field(default=None, gt=0)
    """Samples of a step, dp x micro_batch x micro_batches: sequences, or of preferences what they are of."""
    sequences_per_sample: int | None = Field(default=None, gt=0, exclude_if=absent)
    """Of preferences, the sequences that a sample trains on: 2 of a pair; left out of other methods."""
    tuning: Tuned | None = Field(default=None, exclude_if=absent)
    """Of preferences, what trains; left out where the method's name says it."""
    reference: Reference | None = Field(default=None, exclude_if=absent)
    """Of preferences, where the frozen reference is; left out where there is none."""
    failures: Failures | None = None
    """None where no duration was asked."""
    commitment: Commitment | None = None
    """None if no more time is paid for than is used."""
    duration_interval90_days: tuple[float, float] | None = Field(default=None, exclude_if=absent)
    """5% and 95% quantile of the whole run's days: the step's error and what runs add; left out without a duration."""
    whole_run: WholeRun | None = Field(default=None, exclude_if=absent)
    """What runs add, which is not in duration_days; left out where it is not known, as of tuning."""


class ServingAssignment(Placement):
    """Replicas for a service, or the GPUs that hold a model for inference."""

    kind: Literal["serving"] = "serving"
    """Serving."""
    commitment: Commitment | None = Field(default=None, exclude_if=absent)
    """Of a batch, what is paid for beyond its end; left out where nothing is."""
    committed_usd: float | None = Field(default=None, ge=0, exclude_if=absent)
    """What is signed for where the offer commits for longer than a month, of which `cost_usd` is; else left out."""


Assignment = TrainingAssignment | ServingAssignment | DiffusionAssignment | PostTrainingAssignment
"""What is placed, told apart by `kind`; a new kind of work is one more member here and below."""


KINDS: dict[str, type[Assignment]] = {
    "training": TrainingAssignment, "serving": ServingAssignment, "diffusion": DiffusionAssignment,
    "posttraining": PostTrainingAssignment}
"""The class of each kind."""
SIMPLEST = "simplest of the tied"
"""How the reason of the simplest layout begins, which says that it is tied."""


class Runner(Frozen):
    """What an alternative says beside its assignment."""

    why: str
    """The reason it lost."""
    tied: bool = False
    """The difference to the plan is below the prediction's resolution."""
    fleet: int | None = Field(default=None, gt=0, exclude_if=absent)
    """Number of the fleet that it is a part of, where several assignments are one alternative; else left out."""


    @property
    def reason(self) -> str:
        """The reason, and whether it is tied."""
        return f"tied, {self.why}" if self.tied and not self.why.startswith(SIMPLEST) else self.why


class TrainingAlternative(Runner, TrainingAssignment):
    """A next-best assignment of a training job, with the reason it lost."""


class ServingAlternative(Runner, ServingAssignment):
    """A next-best assignment for a service, with the reason it lost."""


class DiffusionAlternative(Runner, DiffusionAssignment):
    """A next-best assignment of training a diffusion model, with the reason it lost."""


class PostTrainingAlternative(Runner, PostTrainingAssignment):
    """A next-best assignment of reinforcement learning, with the reason it lost."""


Alternative = TrainingAlternative | ServingAlternative | DiffusionAlternative | PostTrainingAlternative


def alternative(assignment: Assignment, why: str, *, tied: bool = False, fleet: int | None = None) -> Alternative:
    """Return an assignment as one that lost."""
    if isinstance(assignment, TrainingAssignment):
        return TrainingAlternative(**dict(assignment), why=why, tied=tied, fleet=fleet)
    if isinstance(assignment, DiffusionAssignment):
        return DiffusionAlternative(**dict(assignment), why=why, tied=tied, fleet=fleet)
    if isinstance(assignment, PostTrainingAssignment):
        return PostTrainingAlternative(**dict(assignment), why=why, tied=tied, fleet=fleet)
    return ServingAlternative(**dict(assignment), why=why, tied=tied, fleet=fleet)
