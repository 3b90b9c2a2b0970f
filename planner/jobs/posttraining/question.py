"""What is asked of reinforcement learning, with one framework and one of its trainers on one kind of hardware."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from planner.catalog.load import Catalog
from planner.catalog.posttraining import PostTrainingLaw, RlFramework, TrainerKind
from planner.errors import MissingFact, Unsupported
from planner.jobs.posttraining.layouts import layouts_of
from planner.layouts.candidate import Candidate
from planner.physics.posttraining.drain import AnswerLengths
from planner.physics.posttraining.generation import Engines, RolloutBatch, Slots, slots_of
from planner.physics.posttraining.passes import Packed, Trained, Trainer, packed, trainer_of
from planner.physics.posttraining.step import RlModels
from planner.physics.serving.deployment import Deployment, deployment_of
from planner.physics.serving.formats import format_of
from planner.scenario.posttraining import PostTraining


@dataclass(frozen=True)
class RlQuestion:
    """A resolved workload, one framework and one trainer of it, on one kind of hardware."""

    asked: PostTraining
    catalog: Catalog
    candidates: tuple[Candidate, ...]
    at: int
    name: str
    kind: TrainerKind
    confidence: float
    own: RlFramework | None = None
    """The framework as a run has it, where that is not by its defaults."""

    @property
    def law(self) -> PostTrainingLaw:
        """The constants."""
        return self.catalog.posttraining_law

    @cached_property
    def framework(self) -> RlFramework:
        """The framework."""
        return self.own or self.law.frameworks[self.name]

    @cached_property
    def batch(self) -> RolloutBatch:
        """What a step draws."""
        work = self.asked
        assert work.max_model_len is not None
        return RolloutBatch(work.prompts, work.samples_per_prompt, work.input.mean, AnswerLengths(
            work.output.mean, work.output.cv, max(1.0, work.max_model_len - work.input.mean)))

    @cached_property
    def engine(self) -> str:
        """The engine of the rollouts."""
        return self.asked.engine or self.framework.engines[0]

    @cached_property
    def step(self) -> Packed:
        """The step as micro-batches."""
        return packed(self.batch, self.framework.packed)

    def trainer(self, model: str, method: str) -> Trainer:
        """Return the trainer of a model on the hardware. Raises PlannerError."""
        return trainer_of(self.catalog, self.catalog.model(model), self.candidates[self.at],
                          self.catalog.stack(self.framework.trainers[self.kind]),
                          self.step, method=method, rank=self.asked.rank or 1, confidence=self.confidence,
                          loss=self.framework.loss, frozen=self.framework.frozen)

    @cached_property
    def policy(self) -> Trainer:
        """The trainer of the policy."""
        return self.trainer(self.asked.model, self.asked.tuning)

    def trained(self, gpus: int) -> list[tuple[Trained, RlModels]]:
        """Return the policy in every legal layout on so many GPUs, with the models beside it."""
        if gpus not in self._trained:
            rows = layouts_of(self.policy, gpus)
            policies = list(self.policy.each(rows))
            self._trained[gpus] = list(zip(policies, self._roles(rows, policies), strict=True))
        return self._trained[gpus]

    def slots(self, engines: Engines, at: int) -> Slots | None:
        """Return what a replica on a candidate holds."""
        rows = engines.rows
        key = (at, engines.memory, *(int(column[0]) for column in (rows.tp, rows.pp, rows.ep, rows.dp)))
        if key not in self._slots:
            self._slots[key] = slots_of(self.batch, engines)
        return self._slots[key]

    @cached_property
    def _trained(self) -> dict[int, list[tuple[Trained, RlModels]]]:
        return {}

    @cached_property
    def ways(self) -> dict[object, tuple[Any, ...]]:
        """What was found before, by GPUs and the axes held."""
        return {}

    @cached_property
    def _slots(self) -> dict[tuple[float, ...], Slots | None]:
        return {}

    @cached_property
    def _deployed(self) -> dict[int, Deployment]:
        return {}

    def _roles(self, rows: list[dict[str, float]], policies: list[Trained]) -> list[RlModels]:
        asked = self.asked
        named: dict[str, tuple[str, str]] = {}
        if asked.reference != "none" and asked.tuning == "full":
            named["reference"] = (asked.model, "full")
        if asked.method == "ppo":
            named["critic"] = (asked.critic or asked.model, "full")
        if asked.reward.by == "model":
            named["reward"] = (asked.reward_model or asked.model, "full")
        made: dict[tuple[str, str], list[Trained]] = {}
        for model in named.values():
            if model not in made:
                same = model == (asked.model, asked.tuning)
                made[model] = policies if same else list(self.trainer(*model).each(rows))
        each = [RlModels(**{role: made[model][at] for role, model in named.items()}) for at in range(len(rows))]
        if asked.reference != "none" and asked.tuning == "lora":
            # the policy without its adapters
            each = [RlModels(policy, other.critic, other.reward) for policy, other in zip(
                policies, each, strict=True)]
        return each

    def deployed(self, at: int) -> Deployment:
        """Return the policy as the engine runs it on a candidate. Raises PlannerError."""
        if at not in self._deployed:
            self._deployed[at] = self._deploy(at)
        return self._deployed[at]

    def _deploy(self, at: int) -> Deployment:
        candidate, model, catalog = self.candidates[at], self.catalog.model(self.asked.model), self.catalog
        gpu = candidate.gpu
        if (reason := catalog.engine(self.engine).lacks(gpu.architecture, "bf16", "bf16", None)) is not None:
            raise Unsupported(f"{gpu.name}: {reason}")
        weights = format_of(catalog.formats, "bf16", model)
        if weights is None:
            raise MissingFact(f"model {model.name}", "weights in bf16")
        speed = catalog.speeds(self.engine).release(None, gpu.architecture)
        limits = catalog.engine(self.engine).release(None).limits(gpu.usable_memory, gpu.architecture)
        return deployment_of(catalog, model, "bf16", weights, catalog.formats.cache("bf16"), (candidate,),
                             speed.model_copy(update={"chunk": limits.tokens, "sequences": limits.sequences}))

    @property
    def elsewhere(self) -> list[int]:
        """Numbers of the candidates that are asked for rollouts; empty where they are the trainer's hardware."""
        return [at for at, candidate in enumerate(self.candidates) if candidate.node.name in self.asked.rollouts_on]

    @property
    def host_layer(self) -> float:
        """Seconds of the host for a layer and decode step beside those of a service."""
        return self.law.eager_layer if self.framework.eager else 0.0


def questions(asked: PostTraining, catalog: Catalog, candidates: tuple[Candidate, ...], at: int,
              confidence: float) -> Iterator[RlQuestion]:
    """Yield every framework and trainer that is searched."""
    for name in asked.stack:
        framework = catalog.posttraining_law.frameworks[name]
        if asked.engine is not None and asked.engine not in framework.engines:
            continue
        if asked.policy_lag > framework.most_lag:
            continue
        for kind in framework.trainers:
            yield RlQuestion(asked, catalog, candidates, at, name, kind, confidence)

