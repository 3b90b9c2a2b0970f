"""What is asked of reinforcement learning, with one framework and one of its trainers on one kind of hardware."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from planner.catalog.load import Catalog
from planner.catalog.posttraining import PostTrainingLaw, RlFramework, TrainerKind
from planner.errors import MissingFact, Unsupported
from planner.jobs.posttraining.launchable import Tellable, tellable
from planner.jobs.posttraining.layouts import layouts_of
from planner.jobs.serving.rates import layouts as replica_layouts
from planner.layouts.candidate import Candidate
from planner.layouts.table import Ints
from planner.physics.posttraining.drain import AnswerLengths
from planner.physics.posttraining.generation import (
    Drawing,
    Drawn,
    Engines,
    ReplicaRoom,
    RolloutBatch,
    drawing_seconds,
    slots_of,
)
from planner.physics.posttraining.passes import TrainedRows, Trainer, packed, trainer_of
from planner.physics.posttraining.step import RlModels
from planner.physics.serving.adapters import AdapterSlots
from planner.physics.serving.deployment import Deployment, Replicas, deployment_of
from planner.physics.serving.formats import format_of
from planner.scenario.posttraining import UNCOMPARED, PostTraining

Found = TypeVar("Found")

FOUR_BITS = "nf4"
"""The format of weights under adapters of qlora."""


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
    beyond: Mapping[str, int] = field(default_factory=dict)
    """What is held of the trainer's layout, tried whether or not it is searched."""

    @property
    def law(self) -> PostTrainingLaw:
        """The constants."""
        return self.catalog.posttraining_law

    @cached_property
    def framework(self) -> RlFramework:
        """The framework."""
        found = self.own or self.law.frameworks[self.name]
        return found.model_copy(update={"recomputes": False}) if self.asked.method in UNCOMPARED else found

    @cached_property
    def told(self) -> Tellable:
        """What a way is held to, so that its files can say it."""
        return tellable(self.asked, self.name, self.catalog)

    @cached_property
    def lean(self) -> RlQuestion:
        """The same with micro-batches of the longest sequence alone, and all of a GPU that the engine may take."""
        longest = math.ceil(self.batch.input + self.batch.answers.longest)
        known, most = self.framework, self.catalog.engine(self.engine).memory_fraction
        return replace(self, own=known.model_copy(update={
            "packed": min(known.packed, longest), "memory_fraction": max(known.memory_fraction, most)}))

    def having(self, own: Mapping[str, object], beyond: Mapping[str, int]) -> RlQuestion:
        """Return the same of a framework with some of its defaults set, and of more degrees of the trainer."""
        known = self.own or self.law.frameworks[self.name]
        return replace(self, own=known.model_copy(update=own), beyond=beyond)

    @property
    def stack(self) -> str:
        """The trainer's stack."""
        return self.policy.stack.name

    @cached_property
    def batch(self) -> RolloutBatch:
        """What a step draws."""
        work = self.asked
        assert work.max_model_len is not None
        return RolloutBatch(work.prompts, work.samples_per_prompt, work.input.mean, AnswerLengths(
            work.output.mean, work.output.cv, max(1.0, work.max_model_len - work.input.mean), self.law.endless))

    @cached_property
    def engine(self) -> str:
        """The engine of the rollouts."""
        return self.asked.engine or self.framework.engines[0]

    def trainer(self, model: str, method: str, answers: int) -> Trainer:
        """Return the trainer of a model on the hardware, which reads so many answers. Raises PlannerError."""
        read = replace(self.batch, samples=answers // self.batch.prompts)
        return trainer_of(self.catalog, self.catalog.model(model), self.candidates[self.at],
                          self.catalog.stack(self.framework.trainers[self.kind]),
                          packed(read, self.framework.packed), method=method, rank=self.asked.rank or 1,
                          confidence=self.confidence, loss=self.framework.loss, frozen=self.framework.frozen)

    @cached_property
    def policy(self) -> Trainer:
        """The trainer of the policy."""
        return self.trainer(self.asked.model, self.asked.tuning, self.asked.learned)

    def trained(self, gpus: int) -> tuple[TrainedRows, RlModels[TrainedRows]] | None:
        """Return the policy in every legal layout on so many GPUs, with the models beside it; none where none is."""
        self.train([gpus])
        return self._trained[gpus]

    def train(self, counts: Iterable[int]) -> None:
        """Work out the same for many numbers of GPUs at once."""
        unknown = sorted(set(counts) - self._trained.keys())
        if not unknown:
            return
        legal = layouts_of(self.policy, unknown, self.beyond)
        self._trained.update(dict.fromkeys(unknown))
        if not legal:
            return
        policy = self.policy.passes([row for rows in legal.values() for row in rows])
        models, at = self._roles(policy), 0
        for gpus, rows in legal.items():
            mine, at = np.arange(at, at + len(rows)), at + len(rows)
            some = policy.take(mine)
            self._trained[gpus] = some, models.each(_part(policy, some, mine))

    def replicas(self, at: int) -> Replicas:
        """Return the layouts of the engine that are searched on a candidate."""
        return self.once(("replicas", at), lambda: replica_layouts(
            self.deployed(at).model, self.candidates[at], Counter()))

    def drawn(self, at: int, rows: Replicas, counts: Sequence[int], room: float, *, ahead: int
              ) -> list[Drawn | None]:
        """Return what so many replicas of each layout take of a step, with `room` bytes of each GPU.

        None where a replica does not hold the longest answer.
        """
        known, work = self.framework, self.asked
        most = max(1, known.packed // math.ceil(work.input.mean + work.output.mean)) if known.together else None
        engines = Engines(self.deployed(at), rows, self.catalog.engine(self.engine), None, room, most)
        shapes = list(zip(rows.tp.tolist(), rows.pp.tolist(), rows.ep.tolist(), rows.dp.tolist(), strict=True))
        key = (at, room, *shapes)
        if key not in self._slots:
            self._slots[key] = slots_of(self.batch, engines)
        cases = {(at, ahead, count, slots.count, *shapes[row]): Drawing(row, count, slots.count)
                 for row, (count, slots) in enumerate(zip(counts, self._slots[key], strict=True)) if slots}
        unknown = [case for case in cases if case not in self._seconds]
        self._seconds.update(zip(unknown, drawing_seconds(
            self.batch, engines, [cases[case] for case in unknown], self.host_layer, ahead=ahead,
            across=self.framework.across), strict=True))
        made: list[Drawn | None] = [None] * len(rows)
        for case, drawing in cases.items():
            slots = self._slots[key][drawing.row]
            assert slots is not None
            made[drawing.row] = Drawn(*self._seconds[case], slots.count, slots.weights, slots.cache, slots.work)
        return made

    @cached_property
    def _trained(self) -> dict[int, tuple[TrainedRows, RlModels[TrainedRows]] | None]:
        return {}

    def once(self, key: object, work: Callable[[], Found]) -> Found:
        """Return what `work` finds, found before where it was asked for under the same key."""
        if key not in self._found:
            self._found[key] = work()
        found: Found = self._found[key]
        return found

    @cached_property
    def _found(self) -> dict[object, Any]:
        return {}

    @cached_property
    def _slots(self) -> dict[object, list[ReplicaRoom | None]]:
        return {}

    @cached_property
    def _seconds(self) -> dict[object, tuple[float, float]]:
        return {}

    @cached_property
    def _deployed(self) -> dict[int, Deployment]:
        return {}

    def _roles(self, policy: TrainedRows) -> RlModels[TrainedRows]:
        asked = self.asked
        named: dict[str, tuple[str, str, int]] = {}
        if asked.reference != "none" and not asked.rank:
            named["reference"] = (asked.model, "full", asked.learned)
        if asked.method == "ppo":
            named["critic"] = (asked.critic or asked.model, "full", asked.learned)
        if asked.reward.by == "model":
            named["reward"] = (asked.reward_model or asked.model, "full", asked.answers)
        made: dict[tuple[str, str, int], TrainedRows] = {(asked.model, asked.tuning, asked.learned): policy}
        for model in named.values():
            if model not in made:
                made[model] = self.trainer(*model).passes(policy.layouts)
        roles = RlModels(**{role: made[model] for role, model in named.items()})
        # of adapters, the policy without them
        adapted = asked.reference != "none" and bool(asked.rank)
        return replace(roles, reference=policy) if adapted else roles

    def deployed(self, at: int) -> Deployment:
        """Return the policy as the engine runs it on a candidate. Raises PlannerError."""
        if at not in self._deployed:
            self._deployed[at] = self._deploy(at)
        return self._deployed[at]

    def _deploy(self, at: int) -> Deployment:
        candidate, model, catalog = self.candidates[at], self.catalog.model(self.asked.model), self.catalog
        gpu = candidate.gpu
        # four bits alone where the engine draws with the weights under the adapters
        shared = self.asked.tuning == "qlora" and self.framework.quantized == "shared"
        name = FOUR_BITS if shared else self.framework.rollout_format
        engine = catalog.engine(self.engine)
        version = self.framework.release or engine.last_on(gpu.architecture)
        if (reason := engine.lacks(gpu.architecture, name, "bf16", version)) is not None:
            raise Unsupported(f"{gpu.name}: {reason}")
        weights = format_of(catalog.formats, name, model)
        if weights is None:
            raise MissingFact(f"model {model.name}", f"weights in {name}")
        speed = catalog.speeds(self.engine).release(version, gpu.architecture)
        limits = engine.release(engine.last_on(gpu.architecture)).limits(gpu.usable_memory, gpu.architecture)
        made = deployment_of(catalog, model, name, weights, catalog.formats.cache("bf16"), (candidate,),
                             speed.model_copy(update={"chunk": limits.tokens, "sequences": limits.sequences}))
        # adapters that are not merged into the weights
        if self.asked.rank and (self.framework.adapter_sync is not None or self.framework.shares):
            return replace(made, adapters=AdapterSlots(1, self.asked.rank))
        return made

    @property
    def elsewhere(self) -> list[int]:
        """Numbers of the candidates that are asked for rollouts; empty where they are the trainer's hardware."""
        return [at for at, candidate in enumerate(self.candidates) if candidate.node.name in self.asked.rollouts_on]

    @property
    def host_layer(self) -> float:
        """Seconds of the host for a layer and decode step beside those of a service."""
        return self.law.eager(self.framework, adapted=bool(self.asked.rank))[0]


def _part(policy: TrainedRows, some: TrainedRows, rows: Ints) -> Callable[[TrainedRows], TrainedRows]:
    """Return what takes rows of a model; those of the policy, which others may be, are taken once."""
    return lambda model: some if model is policy else model.take(rows)


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

