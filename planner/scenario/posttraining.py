"""What is asked of reinforcement learning: the policy, the answers of a step, who judges them, and who works where."""

from __future__ import annotations

import re
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator, model_validator

from planner.errors import About
from planner.scenario.job import JobScenario
from planner.scenario.lengths import Length, Lengths
from planner.scenario.passes import check_amount, steps_of
from planner.scenario.tuned import RANK
from planner.scenario.workload import AUTO, Count, Passes, Stacks, Whole
from planner.units import SECONDS, Tokens, exact, parse
from planner.units.reading import LATENCY
from planner.yaml_io import Frozen

RlMethod = Literal["grpo", "ppo", "rloo", "reinforce", "on-policy-distillation", "rejection-sampling"]
UNCOMPARED = ("on-policy-distillation", "rejection-sampling")
"""Methods whose update needs neither the log-probabilities before it nor a reference."""
PROMPT = 512.0
"""Tokens of a prompt, unless told."""
UNGROUPED = ("ppo", "reinforce")
"""Methods that compare an answer with no other to its prompt, and usually draw one."""
GROUP = 8
"""Answers to a prompt of the others, unless told."""
Placement = Literal["any", "colocated", "disaggregated"]
Reference = Literal["initial", "none"]
MOST = 10**7
"""Answers of a step."""
_PLAIN = re.compile(r"[a-z]+", re.ASCII)


class Reward(NamedTuple):
    """Who judges answers: a rule, which takes no time, a reward model beside the policy, or seconds elsewhere."""

    by: Literal["rule", "model", "remote"]
    seconds: float = 0.0

    def __str__(self) -> str:
        """Write it as it is read."""
        return exact(self.seconds, SECONDS, "s", "ms") if self.by == "remote" else self.by


def _reward(value: object) -> Reward:
    if isinstance(value, Reward):
        return value
    if value == "rule" or value == "model":  # noqa: PLR1714 - narrows the type
        return Reward(value)
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        raise ValueError(f"{value!r}: expected rule, model, or the seconds that rewards of a step take elsewhere, such "
                         "as '30 s'")
    return Reward("remote", parse(value, LATENCY, "reward", "30 s"))


Judged = Annotated[Reward, PlainValidator(_reward, json_schema_input_type=str | float),
                   PlainSerializer(str, return_type=str)]


def _listed(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def usual_answers(method: object) -> int:
    """Return the answers to a prompt that a method draws unless told."""
    return 1 if method in UNGROUPED else GROUP


class PostTraining(Frozen):
    """Reinforcement learning: each step draws answers to prompts, has them judged, and updates the policy."""

    kind: Literal["posttraining"] = "posttraining"
    """Post-training."""
    model: str
    """The policy: a model of the catalog."""
    method: RlMethod = "grpo"
    """What the update is; ppo alone has a critic, on-policy-distillation a teacher (reward_model) in place of rewards,
    and rejection-sampling learns from the best answer to each prompt."""
    tuning: Literal["full", "lora", "qlora"] = "full"
    """What trains: all weights of the policy, adapters, or adapters on frozen weights of four bits."""
    lora_rank: int | None = Field(default=None, gt=0, le=4096)
    """Rank of the adapters; none means 16."""
    steps: Whole | None = Field(default=None, ge=1, le=10**9)
    """Steps of the whole job; none means passes over the samples."""
    samples: Count | None = None
    """Prompts to draw answers to."""
    epochs: Passes | None = None
    """Passes over the samples; none means one."""
    prompts: Whole = Field(default=128, ge=1, le=10**6)
    """Prompts of a step."""
    samples_per_prompt: int = Field(default_factory=lambda data: usual_answers(data.get("method")), ge=1, le=10**5)
    """Answers to each prompt; unless told 8, and 1 where a critic or a running mean is what they are compared with."""
    input: Lengths = Length("mean", PROMPT, 0.0)
    """Tokens of a prompt; unless told as verl's example on GSM8K has at most."""
    output: Lengths = Length("mean", 1024.0, 0.0)
    """Tokens of an answer, likewise; of a plain number the spread is assumed, as answers are never alike."""
    max_model_len: Tokens | None = None
    """Most tokens of a prompt and its answer; none means what nearly all answers need."""
    reward: Judged = Reward("rule")
    """Who judges answers: rule, model, or seconds elsewhere that a step waits for: 30 s."""
    reward_model: str | None = None
    """The model that judges, or the teacher; none means one as large as the policy."""
    critic: str | None = None
    """The model that values answers, which trains too; none means one as large as the policy."""
    reference: Reference | None = None
    """What the policy is held near: initial, the model that it started from, or none; none given means the usual."""
    policy_lag: int = Field(default=0, ge=0, le=1000)
    """Steps that answers may lie behind the policy: 0 waits for every update, 1 draws meanwhile, more also fills the
    wait for the longest answers."""
    placement: Placement = "any"
    """Whether trainer and rollouts share their GPUs."""
    rollouts_on: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    """Node types or GPUs of rollouts that have their own; none means those of the trainer."""
    stack: Stacks = (AUTO,)
    """Frameworks that are searched; auto is the usual one."""
    engine: str | None = None
    """The engine of the rollouts; none means the framework's own."""
    launchable: str | None = Field(default=None, min_length=1, max_length=60)
    """Search only ways that `planner launch` can write for this target, or for each framework's (auto); none means all.
    """

    @model_validator(mode="before")
    @classmethod
    def _what_else_is_meant(cls, data: object) -> object:
        """Return values with what they mean: a rank adapters, a model that judges that a model judges."""
        if not isinstance(data, dict):
            return data
        if data.get("reward") is None and (data.get("reward_model") or data.get("method") == "on-policy-distillation"):
            data = {**data, "reward": "model"}
        return {**data, "tuning": "lora"} if data.get("lora_rank") is not None and data.get("tuning") is None else data

    @model_validator(mode="after")
    def _has_its_parts(self) -> PostTraining:
        if self.method in UNCOMPARED and self.reference == "initial":
            raise About("reference", f"reference initial: {self.method} is held near no reference")
        if self.method == "on-policy-distillation" and (self.reward.by != "model" or self.reward_model is None):
            raise About("reward_model", "on-policy-distillation learns from a teacher: reward model, and reward_model "
                        "names it, such as qwen2.5-72b")
        return self

    @model_validator(mode="after")
    def _agrees(self) -> PostTraining:
        check_amount(self)
        if self.prompts * self.samples_per_prompt > MOST:
            raise ValueError(f"a step draws at most {MOST:,} answers, got {self.prompts * self.samples_per_prompt:,}")
        if self.method in ("grpo", "rloo", "rejection-sampling") and self.samples_per_prompt == 1:
            raise About("samples_per_prompt", f"samples_per_prompt 1: {self.method} compares the answers to a prompt, "
                        "at least two")
        if self.critic is not None and self.method != "ppo":
            raise About("critic", f"critic applies to method ppo, and this is {self.method}")
        if self.reward_model is not None and self.reward.by != "model":
            raise About("reward_model", f"reward_model applies to reward: model, and this is {self.reward}")
        if self.lora_rank is not None and self.tuning == "full":
            raise About("lora_rank", "lora_rank applies to tuning lora or qlora; tuning full trains all weights")
        if self.policy_lag and self.placement == "colocated":
            raise About("policy_lag", "policy_lag applies to rollouts on GPUs of their own: what shares GPUs takes "
                        "turns")
        if self.rollouts_on and self.placement == "colocated":
            raise About("rollouts_on", "rollouts_on applies to rollouts on GPUs of their own, and placement is "
                        "colocated")
        if self.max_model_len is not None and self.input.mean + 1 > self.max_model_len:
            raise About("max_model_len", f"max_model_len {self.max_model_len:,} leaves no token for an answer to a "
                        f"prompt of {self.input.mean:,.0f}")
        return self

    @property
    def total_steps(self) -> int | None:
        """Steps of the whole job; none where no amount of work is given."""
        return steps_of(self, self.prompts)

    @property
    def rank(self) -> int:
        """Rank of the adapters; zero where all weights train."""
        return 0 if self.tuning == "full" else (self.lora_rank or RANK)

    @property
    def answers(self) -> int:
        """Answers of a step."""
        return self.prompts * self.samples_per_prompt

    @property
    def learned(self) -> int:
        """Answers of a step that the policy learns from: all, or the best to each prompt."""
        return self.prompts if self.method == "rejection-sampling" else self.answers


class PostTrainingScenario(JobScenario):
    """The question of one job of reinforcement learning."""

    workload: PostTraining
    """What is trained."""
