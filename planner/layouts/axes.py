"""The one table of axes: every dimension of a layout, declared once with label, meaning and default domain."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from planner.catalog.architecture import Model, MoeMlp
from planner.errors import InputError
from planner.layouts.candidate import Candidate

RECOMPUTE = ("none", "selective", "full")
SCHEDULES = ("1f1b", "gpipe", "zero-bubble", "dualpipe")
"""Pipeline schedules; 1f1b is interleaved where VPP is above one."""
CHUNKS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20)
"""Chunks of layers that a pipeline stage may interleave."""
STAGED = -1
"""Value of the recompute column where staging chooses for each layer; leading layers keep everything."""
STAGED_LEAD = -2
"""The same with the leading layers recomputed in full, which the stages of a mixture of experts are not."""


_WORDS = {"recompute": RECOMPUTE, "schedule": SCHEDULES}


def place(axis: str, value: str | float) -> float:
    """Return the number that stands for a value of an axis, which may be its word."""
    return _WORDS[axis].index(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Space:
    """What the domains of the axes depend on."""

    model: Model
    candidates: tuple[Candidate, ...]
    precisions: tuple[str, ...]
    sequence_length: int
    global_batch: int
    max_gpus: int
    tolerance: float = 0.0
    """Share by which a layout's batch may miss the global batch."""
    hybrid_shard: bool = False
    """Whether the stack can shard within groups and replicate over them."""
    sequence_parallel: tuple[int, ...] = (1,)
    """Whether norms are split with tensor parallelism (1), where the stack can; 0 is searched where it could win."""

    schedules: tuple[int, ...] = (0,)
    """Pipeline schedules of the stack, as places in SCHEDULES."""
    expert_tp: tuple[int, ...] = (0,)
    """Over how many tensor-parallel GPUs each expert may be split: 0 all of them, as other matrices are."""
    no_sync: tuple[int, ...] = (0,)
    """Whether micro-batches may accumulate gradients without reducing them (1)."""
    only: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Axes held to these values instead of their domains, where a question is about one choice."""

    @property
    def flash(self) -> NDArray[np.bool_]:
        """Whether the nodes of each candidate have NVMe."""
        return np.array([candidate.node.nvme is not None for candidate in self.candidates])

    @property
    def layers(self) -> int:
        """Layers that pipeline stages share out: all but those that lead a mixture of experts."""
        return self.model.layers - self.model.leading_layers


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension: column name, label, meaning, and the values searched."""

    name: str
    label: str
    doc: str
    domain: Callable[[Space], Sequence[float]]


def divisors(n: int) -> list[int]:
    """Return the divisors of `n` in rising order."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


def micro_batches(global_batch: int, dp: NDArray[np.int64], micro_batch: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Return the whole number of micro-batches, at least one, that comes nearest the global batch."""
    each = dp * micro_batch
    nearest: NDArray[np.int64] = np.maximum(1, (2 * global_batch + each) // (2 * each))
    return nearest


def _powers(limit: int) -> list[int]:
    return [2**i for i in range(limit.bit_length()) if 2**i <= limit]


def _tensor(space: Space) -> Sequence[float]:
    widest = max(c.scaleup_gpus for c in space.candidates)
    return [d for d in divisors(space.model.attention_heads) if d <= widest]


def _data(space: Space) -> Sequence[float]:
    """Divisors of the global batch; with a tolerance every number of ranks that some batch within it admits."""
    if not space.tolerance:
        return [d for d in divisors(space.global_batch) if d <= space.max_gpus]
    largest = min(space.max_gpus, int(space.global_batch * (1 + space.tolerance)))
    ranks = np.arange(1, largest + 1)
    missed = np.abs(ranks * micro_batches(space.global_batch, ranks, 1) - space.global_batch)
    admitted: list[float] = ranks[missed <= space.tolerance * space.global_batch].tolist()
    return admitted


def _expert(space: Space) -> Sequence[float]:
    experts = [block.mlp.experts for block in space.model.blocks if isinstance(block.mlp, MoeMlp)]
    return [d for d in _powers(64) if all(count % d == 0 for count in experts)] if experts else [1]


AXES: tuple[Axis, ...] = (
    Axis("candidate", "hardware", "node type with its fabric", lambda s: range(len(s.candidates))),
    Axis("precision", "precision", "number format of matrix products", lambda s: range(len(s.precisions))),
    Axis("tp", "TP", "tensor parallel: every matrix split over these GPUs", _tensor),
    Axis("cp", "CP", "context parallel: the sequence split over these GPUs",
         lambda s: _powers(min(16, max(1, s.sequence_length // 1024)))),
    Axis("dp", "DP", "data parallel: copies of the model working on different sequences",
         _data),
    Axis("micro_batch", "micro-batch", "sequences a pipeline works on at once",
         lambda s: [d for d in _powers(8) if s.tolerance or s.global_batch % d == 0]),
    Axis("sp", "SP", "sequence parallel: norms and residuals split over the tensor-parallel GPUs",
         lambda s: s.sequence_parallel),
    Axis("ep", "EP", "expert parallel: experts split over these GPUs", _expert),
    Axis("expert_tp", "expert TP", "GPUs over which each expert is split: 0 all of TP, 1 none of it",
         lambda s: s.expert_tp if s.model.mixes_experts else (0,)),
    Axis("pp", "PP", "pipeline parallel: layers split into this many stages",
         lambda s: range(1, min(s.layers, 64) + 1)),
    Axis("vpp", "VPP", "virtual pipeline: chunks of layers each stage interleaves",
         lambda s: [v for v in CHUNKS if v <= max(1, (s.layers + 2) // 2)]),
    Axis("schedule", "schedule", "order of a pipeline's work: 1F1B, GPipe, zero-bubble or DualPipe",
         lambda s: s.schedules),
    Axis("zero", "ZeRO", "ZeRO stage: 1 shards optimizer states, 2 and gradients, 3 and weights",
         lambda s: [0, 1, 2, 3]),
    Axis("hsdp", "HSDP", "hybrid sharding: copies of the group over which the highest ZeRO stage shards",
         lambda s: _powers(256) if s.hybrid_shard else [1]),
    Axis("no_sync", "no_sync", "gradients of all micro-batches but the last: 0 reduced each time, 1 kept whole",
         lambda s: s.no_sync),
    Axis("recompute", "recompute", "what a layer keeps for backward: staging chooses none, selective or full per layer",
         lambda s: [STAGED, STAGED_LEAD] if s.model.leading_layers else [STAGED]),
    Axis("offload", "offload", "share of the optimizer states kept and stepped on the host", lambda s: [0.0, 0.5, 1.0]),
    Axis("offload_parameters", "offload of weights", "share of the weights kept outside the GPU, fetched by layer",
         lambda s: [0, 1]),
    Axis("offload_activations", "offload of activations", "share of full recompute's checkpoints kept on the host",
         lambda s: [0, 1]),
    Axis("nvme", "NVMe", "where offloaded states and weights lie: 0 host memory, 1 local NVMe", lambda s: [0, 1]),
)

BY_NAME = {axis.name: axis for axis in AXES}
LATE_AXES = frozenset({"vpp", "schedule", "zero", "hsdp", "no_sync", "recompute"})
"""Axes that decide neither GPUs nor the time of a layer: multiplied in where the others could still win."""


def domain(name: str, space: Space) -> list[float]:
    """Return the values of an axis that are searched."""
    return [*space.only.get(name, BY_NAME[name].domain(space))]


def lead_modes(recompute: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place in RECOMPUTE of what leading layers do, for values of the recompute column."""
    return np.where(recompute == STAGED_LEAD, RECOMPUTE.index("full"), np.maximum(recompute, 0))


FLOAT_AXES = frozenset({"offload", "offload_parameters", "offload_activations"})


def column_type(name: str) -> type[np.generic]:
    """Return the numpy type of a column."""
    return np.float64 if name in FLOAT_AXES else np.int64


_DEGREE = re.compile(r"(?:^|(?<=[\d ,;/+x-]))(tp|pp|vpp|cp|ep|dp|mbs|zero)[ :=-]?(\d{1,6})(?=$|[a-z ,;/+-])", re.ASCII)
"""A degree as people write it: TP8, pp 2, zero-3."""


def _spelled_out(text: str) -> str:
    """Return "tp8pp2", "TP 8, PP 2" and "tp=8 pp=2" as "tp=8,pp=2"; any other text as it is."""
    plain = text.lower().replace("×", "x")
    found = list(_DEGREE.finditer(plain))
    rest = _DEGREE.sub("", plain)
    if not found or rest.strip(" ,;/+x-"):
        return text
    return ",".join(f"{match[1]}={match[2]}" for match in found)


def layout_text(text: str) -> dict[str, str]:
    """Return "tp=8,pp=4" as axis -> value, both text. Raises InputError for a part of another form."""
    axes: dict[str, str] = {}
    text = _spelled_out(text)
    for part in filter(None, (p.strip() for p in text.split(","))):
        axis, equals, value = (piece.strip() for piece in part.partition("="))
        if not (axis and equals and value):
            raise InputError(f"--layout: {part!r} is not AXIS=VALUE: write for example 'tp=8,pp=4'")
        if axis in axes:
            raise InputError(f"--layout: {axis!r} is given twice")
        axes[axis] = value
    return axes
