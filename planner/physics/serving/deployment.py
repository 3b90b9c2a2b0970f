"""What a serving question holds besides its layouts: the model, how it is stored, the hardware and the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.attention import AnyAttention, Attention, LatentAttention
from planner.catalog.calibration import ArchitectureRates, Collectives, KernelShape
from planner.catalog.formats import StoredCache, WeightFormat
from planner.catalog.hardware import Gpu
from planner.catalog.load import Catalog
from planner.catalog.speed import EngineSpeed, ServingLaw
from planner.errors import MissingFact
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats, Ints
from planner.physics.encoders import TowerWork
from planner.physics.kinds import counted_layers, kinds_of
from planner.physics.layers import LayerKind
from planner.physics.serving.adapters import AdapterSlots

HALF = "bf16"
"""The format of encoders."""
WIDE = 2
"""Bytes of an element of 16 bits."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One kind of layer, and how many of it the model has."""

    kind: LayerKind
    count: int
    attention: AnyAttention | None
    memory: float = 0.0
    """Positions of a request that cross attention reads."""

    def cached_width(self, tp: Ints) -> Floats:
        """Return elements that a token leaves in the cache of one GPU: whole heads, or the latent of MLA."""
        attention = self.attention
        if isinstance(attention, LatentAttention):
            return np.full(len(tp), float(attention.kv_lora_rank + attention.qk_rope))
        if isinstance(attention, Attention):
            return np.ceil(attention.kv_heads / tp) * (attention.head_dim + attention.value_dim)
        return np.zeros(len(tp))

    def reads(self, context: Floats) -> Floats:
        """Return the positions that a new token attends to after `context` others: all, a window or a choice."""
        kind = self.kind
        if kind.crosses:
            return np.full_like(context, self.memory)
        most = kind.window or (kind.indexer.top if kind.indexer else None)
        return context if most is None else np.minimum(context, most)


@dataclass(frozen=True, slots=True)
class Replicas:
    """Layouts of a replica, one a row. Attention is split by tp and copied dp times; experts over ep ranks, the rest
    of the tp x dp GPUs of a stage splitting each expert."""

    candidate: Ints
    tp: Ints
    pp: Ints
    ep: Ints
    dp: Ints

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.tp)

    @property
    def gpus(self) -> Ints:
        """GPUs of one replica."""
        return self.tp * self.pp * self.dp

    def take(self, rows: Ints) -> Replicas:
        """Return some rows."""
        return Replicas(self.candidate[rows], self.tp[rows], self.pp[rows], self.ep[rows], self.dp[rows])


@dataclass(frozen=True, slots=True)
class Eye:
    """An encoder as an engine runs it: layers in 16 bits over pictures of so many positions, beside prompt tokens."""

    model: Model
    layers: tuple[Layer, ...]
    weights: WeightFormat
    positions: int
    pictures: float
    """For each prompt token."""
    whole: bool
    """Whether every rank of tensor parallelism runs all of it."""


def eyes_of(catalog: Catalog, seen: Sequence[TowerWork], prompt: float) -> tuple[Eye, ...]:
    """Return the encoders of requests with `prompt` tokens; quantized checkpoints leave them in 16 bits."""
    return tuple(Eye(part.encoder, layers_of(part.encoder), catalog.formats.weights[HALF], part.positions,
                     part.pictures / prompt, part.tower.whole) for part in seen)


@dataclass(frozen=True, slots=True)
class Delay:
    """Prompts that wait until all copies of attention have one, so that these are worked on at once."""

    steps: int
    """That a prompt waits at most."""
    all_decode: bool
    """Whether it waits only while every copy decodes, and not while any does."""
    in_turn: bool
    """Whether requests are dealt to the copies in turn, and not to the one with fewest."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model as an engine runs it. `rates` pairs with `candidates`."""

    model: Model
    layers: tuple[Layer, ...]
    weights: WeightFormat
    format: str
    cache: StoredCache
    candidates: tuple[Candidate, ...]
    rates: tuple[ArchitectureRates, ...]
    kernels: KernelShape
    collectives: Collectives
    law: ServingLaw
    engine: EngineSpeed
    adapters: AdapterSlots | None = None
    eyes: tuple[Eye, ...] = ()
    memory: float = 0.0
    """Positions that cross attention reads, for each prompt token."""
    delay: Delay | None = None
    """How prompts wait for each other, where they do."""
    ahead: bool = False
    """Whether the engine chooses a step's batch when the step before begins: who comes later waits for one more."""

    def computes(self, gpu: Gpu) -> str:
        """Return the format of quantized products on a GPU."""
        wanted = self.weights.computes
        return wanted if (self.weights.needs or wanted) in gpu.peak else wide_of(gpu)

    def expands(self, gpu: Gpu) -> bool:
        """Say whether quantized products expand their weights to 16 bits on the way."""
        return self.weights.matrix < WIDE and self.computes(gpu) == wide_of(gpu)

    def held_as(self, gpu: Gpu) -> str:
        """Return in a word how weights are held: packed, where products expand them to 16 bits, or as they run."""
        return "packed" if self.expands(gpu) else "as run"

    @property
    def traits(self) -> dict[str, str]:
        """Return by what runs are like those on its first candidate."""
        gpu = self.candidates[0].gpu
        return {"release": self.engine.version, "architecture": gpu.architecture, "weights": self.held_as(gpu),
                "gpu": gpu.name}

    def steps_ahead(self, rows: Replicas) -> Floats:
        """Return the whole steps that a prompt waits for after the one that it meets; none in pipelines."""
        return np.where(rows.pp == 1, float(self.ahead), 0.0)

    def unpacked(self, gpu: Gpu) -> float:
        """Return the share of the rate that these keep."""
        return self.law.expanded if self.expands(gpu) else 1.0

    def rate(self, at: int, precision: str) -> float:
        """Return FLOP/s of large products on a candidate."""
        gpu, rates = self.candidates[at].gpu, self.rates[at]
        # 8-bit integers run at the rate of fp8 or twice that of 16 bits
        share = gpu.gemm_efficiency.get(precision) or rates.gemm.get(precision)  # type: ignore[call-overload]
        if share is None and precision == "int8":
            share = rates.gemm.get("fp8") or rates.gemm.get("bf16")
        if share is None:
            raise MissingFact(f"calibration {rates.name}", f"gemm efficiency for {precision}")
        return float(gpu.peak[precision] * min(1.0, share))  # type: ignore[index]


def wide_of(gpu: Gpu) -> Literal["bf16", "fp16"]:
    """Return the 16-bit format that a GPU computes in."""
    return "bf16" if "bf16" in gpu.peak else "fp16"


def run_as(stored: str, gpu: Gpu) -> str:
    """Return the format in which a GPU runs weights that are stored in one: fp16 for bf16 where it has none."""
    return wide_of(gpu) if stored == "bf16" else stored


def layers_of(model: Model, memory: float = 0.0) -> tuple[Layer, ...]:
    """Return the kinds of layers of a model that run with so many positions for cross attention, with their counts."""
    return tuple(Layer(kind, count, block.cross if kind.crosses else block.attention, memory)
                 for block, count in counted_layers(model) for kind in kinds_of(block, model) if kind.runs(memory))


def seeing(catalog: Catalog, d: Deployment, seen: Sequence[TowerWork], prompt: float) -> Deployment:
    """Return a deployment whose requests of `prompt` tokens have what encoders read."""
    memory = sum(part.memory for part in seen)
    return replace(d, layers=layers_of(d.model, memory), eyes=eyes_of(catalog, seen, prompt), memory=memory / prompt)


def deployment_of(catalog: Catalog, model: Model, name: str, weights: WeightFormat, cache: StoredCache,
                  candidates: tuple[Candidate, ...], engine: EngineSpeed) -> Deployment:
    """Put together what all layouts share. `name` is that of the weight format. Raises PlannerError."""
    rates = tuple(catalog.rates(candidate.gpu.architecture) for candidate in candidates)
    return Deployment(model, layers_of(model), weights, name, cache, candidates, rates, catalog.kernels,
                      catalog.collectives, catalog.serving_law, engine)


def joined(deployments: Sequence[Deployment], rows: Sequence[Replicas]) -> tuple[Deployment, Replicas]:
    """Return deployments that differ by their one candidate alone as one, and their layouts as one table."""
    each = [np.full(len(mine), at, np.int64) for at, mine in enumerate(rows)]
    table = Replicas(np.concatenate(each), *(np.concatenate([getattr(mine, axis) for mine in rows])
                                             for axis in ("tp", "pp", "ep", "dp")))
    return replace(deployments[0], candidates=tuple(d.candidates[0] for d in deployments),
                   rates=tuple(d.rates[0] for d in deployments)), table
