"""What may be fitted: constants with a meaning, how far each may lie from its prior, and the rows on which it acts.

A knob's coordinate is the logarithm of its figure, or the logit of a share; its prior is the catalog's figure. The
spreads are how much such constants differ between sites and releases, so that a handful of rows moves what they decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from planner.catalog.architecture import Block, MoeMlp
from planner.catalog.calibration import ArchitectureRates, KernelShape
from planner.catalog.fitted import value_of
from planner.catalog.hardware import LOW_PRECISION, MOST_OF_WIRE, Fabric
from planner.catalog.load import Catalog
from planner.catalog.sourced import Sourced
from planner.catalog.speed import EngineSpeed
from planner.catalog.stack import Stack
from planner.evidence.compare import PredictedRow

RATES = {"sustained.*": 0.10, "attention_forward": 0.10, "memory": 0.10}
"""Fields of a GPU architecture and their spreads."""
STACK = {"elementwise": 0.30, "overlap.tensor_parallel": 0.70, "overlap.data_parallel": 0.70,
         "overlap.shard_gather": 0.70, "overlap.expert_parallel": 0.70,
         "overlap.pipeline": 0.70, "overlap.context_parallel": 0.70, "step_overhead": 0.50,
         "shard_broadcast": 0.50, "experts.host_layer": 0.40, "experts.host_expert": 0.40,
         "experts.permute_passes": 0.40, "experts.biased_passes": 0.40, "experts.plain_passes": 0.40, "slowdown": 0.10,
         "adapter_passes": 0.50, "adapter_casts": 0.50, "launch_adapter": 0.50, "gather_unit": 0.50,
         "upcast": 0.30, "dequantize.*": 0.50}
"""Fields of a stack and their spreads; slowdown is all that no other field explains."""
ADAPTED = {"adapter_passes": ("lora", "qlora"), "launch_adapter": ("lora", "qlora"), "adapter_casts": ("lora",),
           "upcast": ("qlora",), "dequantize": ("qlora",)}
"""Fields of a stack that some methods have, with those methods."""
KERNELS = {"half_k": 0.30, "half_mn": 0.30, "cast_forward_bytes": 0.30, "cast_backward_bytes": 0.30,
           "loss_bytes_per_logit": 0.30, "unfused_attention": 0.15, "scan_passes": 0.30, "jitter_per_doubling": 0.40}
"""Fields of the shape of kernels, the same on every GPU and stack, and their spreads."""
NETWORKS = "fabrics"
NETWORK = {"efficiency": 0.20, "latency": 0.70}
"""Fields of the network between a cluster's nodes, and their spreads."""
NETWORK_OPEN = {"efficiency": 1.00}
"""The same where no row says what the network is, so that the node's usual one stands in for it."""
OWN_STACK, OWN_KERNELS = {"launch_layer": 0.50}, {"jitter_per_doubling": 1.00}
"""Fields that hosts and neighbors make a cluster's own, and their spreads there."""
SPEEDS = {"products": 0.15, "saturation": 0.70, "cache": 0.40, "grouped": 0.40, "attention": 0.30, "experts": 0.30,
          "layer": 0.50, "mixture": 0.50, "step": 0.70, "sequence": 0.70, "prompt_step": 0.70, "request": 0.70,
          "exchange": 0.40, "burst": 0.70}
"""Fields of a release of an inference engine, and their spreads."""
LEAST_PRODUCTS = 0.9
"""Least time of an engine's products over the kernels' law: what fits find far below is saturation."""
SHARES = frozenset({"grouped"})
"""Fields that are shares beside those of overlap."""
BEST_PRODUCT = 0.90
"""Largest share of the datasheet's peak that a matrix product is fitted to."""
SUSTAINED = "sustained."
EDGE = 0.02
"""A share is kept this far from 0 and 1, where its logit ends."""


@dataclass(frozen=True, slots=True)
class FitConstant:
    """One constant: its place in the catalog, prior figure, spread of its coordinate, and whether it is a share."""

    kind: str
    entry: str
    field: str
    prior: float
    spread: float
    share: bool
    most: float = math.inf
    least: float = 0.0

    @property
    def place(self) -> str:
        """Kind and entry as a file of fitted constants names them."""
        return f"{self.kind}/{self.entry}"

    @property
    def start(self) -> float:
        """The coordinate of the prior."""
        return self.coordinate(self.prior)

    def coordinate(self, value: float) -> float:
        """Return the coordinate of a figure."""
        if self.share:
            inside = min(max(value, EDGE), 1 - EDGE)
            return math.log(inside / (1 - inside))
        return math.log(value)

    def value(self, coordinate: float) -> float:
        """Return the figure at a coordinate."""
        if self.share:
            return 1 / (1 + math.exp(-coordinate))
        return min(self.most, max(self.least, math.exp(coordinate)))

    def acts_on(self, outcome: PredictedRow) -> bool:
        """Say whether the constant can change the prediction of a row."""
        prediction = outcome.prediction
        blocks = prediction.model.blocks
        if self.kind == NETWORKS:
            return self.entry == prediction.network
        if not self._acts_in(blocks):
            return False
        if prediction.method not in ADAPTED.get(self.field.split(".")[0], (prediction.method,)):
            return False
        if self.kind == "stacks":
            return self.entry in (prediction.stack, prediction.family)
        if self.field.startswith(SUSTAINED):
            precision = self.field.removeprefix(SUSTAINED)
            # head and attention stay in 16 bits
            half = precision in ("bf16", "fp16") and prediction.precision in LOW_PRECISION
            return self.entry == f"gpu-{prediction.architecture}" and (prediction.precision == precision or half)
        return self.entry in ("kernels", f"gpu-{prediction.architecture}")

    def _acts_in(self, blocks: Sequence[Block]) -> bool:
        """Say whether a model has what the constant is of: experts of a kind, or a recurrence."""
        mixtures = [block.mlp for block in blocks if isinstance(block.mlp, MoeMlp)]
        if self.field.startswith("experts.") and not any(
                m.bias if "biased" in self.field else not m.gated if "plain" in self.field else True for m in mixtures):
            return False
        return self.field != "scan_passes" or any(block.recurrence for block in blocks)


def knobs_of(catalog: Catalog, outcomes: Iterable[PredictedRow], *, own: bool = False) -> list[FitConstant]:
    """Return every knob that acts on some of the rows, in a fixed order.

    own: whether the rows are of one cluster, so that its network and its hosts are fitted too.
    """
    held = list(outcomes)
    of_stack, of_kernels = (STACK | OWN_STACK, KERNELS | OWN_KERNELS) if own else (STACK, KERNELS)
    architectures = sorted({o.prediction.architecture for o in held})
    stacks = sorted({o.prediction.stack for o in held} | {o.prediction.family for o in held})
    knobs = [knob for name in architectures
             for knob in _knobs("calibration", catalog.rates(name), RATES)]
    for name in stacks:
        entry = catalog.stack(name)
        # what a stack takes from the one it is like is fitted there
        mine = of_stack if entry.like is None else {f: s for f, s in of_stack.items() if _stated(catalog, entry, f)}
        knobs += _knobs("stacks", entry, mine)
    knobs += _knobs("calibration", catalog.kernels, of_kernels)
    for name in sorted({o.prediction.network for o in held} - {""}) if own else ():
        stated = any(o.prediction.network_stated for o in held if o.prediction.network == name)
        knobs += _knobs(NETWORKS, catalog.fabric(name), NETWORK if stated else NETWORK | NETWORK_OPEN)
    return [knob for knob in knobs if any(knob.acts_on(outcome) for outcome in held)]


def release_field(release: EngineSpeed) -> str:
    """Return the dotted field of one release among an engine's speeds."""
    return f"releases.{release.key}"


def engine_knobs(releases: Iterable[tuple[str, EngineSpeed]]) -> list[FitConstant]:
    """Return every knob of some releases, each with the name of its engine, in a fixed order."""
    held = {(engine, release.key): release for engine, release in releases}
    return [knob for (engine, _), release in sorted(held.items()) for knob in _release_knobs(engine, release)]


def _release_knobs(engine: str, release: EngineSpeed) -> Iterator[FitConstant]:
    for figure, spread in SPEEDS.items():
        value, share = getattr(release, figure), figure in SHARES
        # none, or a share of all, is a statement about the engine, and no figure to fit
        if value > 0 and not (share and value >= 1):
            least = min(value, LEAST_PRODUCTS) if figure == "products" else 0.0
            yield FitConstant("speeds", engine, f"{release_field(release)}.{figure}", value, spread, share, least=least)


def _stated(catalog: Catalog, entry: Stack, field: str) -> bool:
    assert entry.like is not None
    return value_of(entry, field) != value_of(catalog.stack(entry.like), field)


def _knobs(kind: str, entry: ArchitectureRates | Stack | KernelShape | Fabric, spreads: Mapping[str, float]
           ) -> Iterator[FitConstant]:
    for pattern, spread in spreads.items():
        for field in _fields(entry, pattern):
            value = value_of(entry, field)
            # a share of none or all is a statement about the framework, and no figure to fit
            if value is not None and value > 0 and not (field.startswith("overlap.") and value >= 1):
                share = field.startswith("overlap.")
                yield FitConstant(kind, entry.name, field, value, spread, share, _most(entry, field, value))


def _most(entry: Sourced, field: str, prior: float) -> float:
    """Return the largest figure of a field: for a rate in training, that at which products reach BEST_PRODUCT."""
    if isinstance(entry, Fabric) and field == "efficiency":
        return MOST_OF_WIRE
    if not field.startswith(SUSTAINED):
        return math.inf
    benchmark = value_of(entry, "gemm." + field.removeprefix(SUSTAINED))
    assert benchmark is not None, "every sustained precision has a benchmark"
    return max(BEST_PRODUCT / benchmark, prior)


def _fields(entry: Sourced, pattern: str) -> list[str]:
    top, _, inner = pattern.partition(".")
    if "*" not in inner:
        return [pattern]
    return [f"{top}.{key}" for key in getattr(entry, top) if fnmatch(key, inner)]
