"""One kind of replica as emitters read it: every axis by its name, with the engine's defaults spelt out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.answer.assignment import Assignment, ServingAssignment
from planner.answer.level import ServingFigures
from planner.catalog.architecture import Model
from planner.catalog.engine import Engine
from planner.catalog.hardware import Gpu, Node
from planner.catalog.load import Catalog
from planner.catalog.releases import Target
from planner.errors import InputError, Unsupported
from planner.launch.axes import CannotExpress, No
from planner.launch.hosts import host, on_hosts
from planner.scenario.portfolio_job import AnyWork
from planner.scenario.serving import Serving as Asked

DIGITS = 4
"""Of a share of memory."""


@dataclass(frozen=True, slots=True)
class EngineGroup:
    """Replicas of one layout on one node type: what an emitter turns into a command."""

    placed: ServingAssignment
    serving: ServingFigures
    asked: Asked | None
    """The workload of the question; none where an estimate does not say."""
    model: Model
    engine: Engine
    node: Node
    gpu: Gpu
    target: str
    release: Target

    @property
    def tp(self) -> int:
        """GPUs that split attention."""
        return self.placed.layout.tp

    @property
    def pp(self) -> int:
        """Pipeline stages."""
        return self.placed.layout.pp

    @property
    def dp(self) -> int:
        """Copies of attention in a replica, whose experts they share."""
        return self.placed.layout.dp // self.serving.replicas

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tp * self.pp * self.dp

    @property
    def nodes(self) -> int:
        """Nodes that one replica is on."""
        return -(-self.gpus // self.node.gpus)

    @property
    def other_release(self) -> str | None:
        """The release that the plan counted with, where files are for another."""
        counted, own = self.asked.engine_version if self.asked else None, re.match(r"[\d.]*", self.release.release)
        same = counted is None or (own is not None and f"{own[0]}.".startswith(f"{counted}."))
        return None if same else counted

    @property
    def defaults(self) -> tuple[int, int]:
        """Tokens and sequences of a step where none are asked, as the plan took them."""
        version = self.asked.engine_version if self.asked else None
        limits = self.engine.release(version).limits(self.gpu.usable_memory, self.gpu.architecture)
        return limits.tokens, limits.sequences

    @property
    def tokens(self) -> int:
        """Tokens of a step on each copy of attention: the prefill chunk."""
        return self.serving.max_batched_tokens or self.defaults[0]

    @property
    def sequences(self) -> int:
        """Sequences of a step on each copy of attention."""
        return self.serving.max_sequences or self.defaults[1]

    @property
    def fraction(self) -> float:
        """Share of memory, as the engine means it."""
        if self.serving.memory_fraction is not None:
            return round(self.serving.memory_fraction, DIGITS)
        release = self.engine.release(self.asked.engine_version if self.asked else None)
        return round(self.engine.default_fraction(release, self.gpu.usable_memory, self.tp * self.dp, self.pp, self.dp,
                                                  self.serving.max_batched_tokens), DIGITS)

    @property
    def longest(self) -> int:
        """Tokens of the longest request."""
        if self.serving.max_model_len is None:
            raise InputError("the plan does not say max_model_len: plan again, with this release of planner")
        return self.serving.max_model_len

    @property
    def published(self) -> bool:
        """Whether the weights run as they are published."""
        return self.placed.layout.stored == self.model.stored

    @property
    def checkpoint(self) -> str:
        """What is loaded, where any checkpoint of the model does."""
        return self.model.hf_id or self.model.name

    def value(self, axis: str) -> object:
        """Return the value of an axis, or of what the engine has to be told."""
        return VALUES[axis](self)


VALUES: Mapping[str, Callable[[EngineGroup], object]] = {
    "candidate": lambda s: s.placed.node,
    "precision": lambda s: s.placed.layout.stored,
    "tp": lambda s: s.tp,
    "pp": lambda s: s.pp,
    "dp": lambda s: s.dp,
    "ep": lambda s: s.placed.layout.ep if s.model.mixes_experts else 1,
    "expert_tp": lambda s: s.placed.layout.expert_tp if s.model.mixes_experts else 1,
    "replicas": lambda s: s.serving.replicas,
    "role": lambda s: s.serving.role,
    "answers": lambda s: "tokens" if s.serving.writes else "vectors",
    "prompts": lambda s: s.serving.prompts,
    "by_hour": lambda s: s.serving.nodes_by_hour or s.serving.replicas_by_hour,
    "memory_fraction": lambda s: s.fraction,
    "max_sequences": lambda s: s.sequences,
    "max_batched_tokens": lambda s: s.tokens,
    "prefill_delay": lambda s: s.serving.prefill_delay,
    "max_model_len": lambda s: s.longest,
    "kv_cache": lambda s: s.serving.kv_cache or "auto",
    "drafts": lambda s: s.serving.drafts,
    "prefix_cache": lambda s: True,
    "adapters": lambda s: s.serving.adapters.count if s.serving.adapters else None,
    "lora_rank": lambda s: s.serving.adapters.rank if s.serving.adapters else None,
}
"""Every axis of a service's layout, and all else that an engine is told; each emitter names them all."""


def served_of(placed: Assignment, asked: AnyWork | None, catalog: Catalog, target: str) -> EngineGroup:
    """Return what an emitter reads of replicas. Raises InputError for what serves nothing, CannotExpress for another
    release of the engine, Unsupported where the release that files are for does not run it there.
    """
    if not isinstance(placed, ServingAssignment) or placed.serving is None:
        raise InputError(f"{target} serves requests, and the plan is of {placed.method or placed.kind}")
    if placed.model is None:
        raise InputError("the plan does not name its model")
    served = EngineGroup(placed=on_hosts(placed, catalog), serving=placed.serving,
                         asked=asked if isinstance(asked, Asked) else None, model=catalog.model(placed.model),
                         engine=catalog.engine(placed.stack), node=host(catalog, placed.node),
                         gpu=catalog.gpu(placed.gpu), target=target, release=catalog.releases.target(target))
    starts, release = catalog.engine(served.release.stacks[0]), served.release.release
    cache = placed.serving.kv_cache or "auto"
    lacking = starts.lacks_model(served.model, release) or starts.lacks(
        served.gpu.architecture, placed.layout.stored, "bf16" if cache == "auto" else cache, release)
    if lacking is not None:
        raise Unsupported(f"{served.model.name} on {served.gpu.name} in {target}: {lacking}")
    if served.other_release is not None:
        raise CannotExpress(target, {"engine_version": No(
            f"{served.other_release} (its files are written for {served.release.release}, and read by the parser of "
            "that release alone)", {"engine_version": None})})
    return served
