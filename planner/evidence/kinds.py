"""The kinds of evidence file: the rows of each, and the columns that tell it from the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from planner.evidence.diffusion_row import DiffusionRow
from planner.evidence.multimodal import as_tuning
from planner.evidence.posttraining import RlRow
from planner.evidence.rates import RateRow
from planner.evidence.rows import ServeRow, TrainRow
from planner.evidence.whole_rows import WholeRow

AnyRow: TypeAlias = TrainRow | ServeRow | WholeRow | RateRow | DiffusionRow | RlRow
KINDS: Mapping[str, tuple[type[AnyRow], frozenset[str]]] = {
    "train_throughput": (TrainRow, frozenset({"id", "global_batch_seqs", "tokens_per_s_per_gpu"})),
    "train_memory": (TrainRow, frozenset({"id", "method", "mem_kind", "fits"})),
    "moe_training": (TrainRow, frozenset({"id", "config", "ep", "fsdp"})),
    "multimodal": (TrainRow, frozenset({"id", "modality", "task", "max_pixels"})),
    "train_runs": (WholeRow, frozenset({"id", "tokens_b", "gpu_hours"})),
    "serve_throughput": (ServeRow, frozenset({"id", "isl", "osl", "output_tok_s_per_gpu"})),
    "diffusion": (DiffusionRow, frozenset({"id", "resolution", "frames", "checkpointing", "latency_s"})),
    "rl": (RlRow, frozenset({"id", "algorithm", "rollout_engine", "gen_s", "actor_update_s"})),
    "rates": (RateRow, frozenset({"id", "operation", "bytes", "seconds"})),
    "serve_memory": (ServeRow, frozenset({"id", "max_model_len", "weights_gib", "kv_cache_gib"})),
}
"""The rows of each kind of file, and the columns that tell it from the others."""
_OTHER_NAMES = {"moe_training": {"global_batch": "global_batch_seqs", "stack": "framework", "config": "source_detail"}}


def named(kind: str, stated: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a row by the names of its model; a file of mixtures has its own, and dates for years."""
    if kind == "multimodal":
        return as_tuning(stated)
    others = _OTHER_NAMES.get(kind, {})
    cells = {others.get(name, name): text for name, text in stated.items()}
    if others and "as_of" in cells:
        cells["year"] = cells["as_of"][:4]
    return cells


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """One file, read: its rows, and (id, reason) of those that cannot be read."""

    kind: str
    rows: tuple[AnyRow, ...]
    unread: tuple[tuple[str, str], ...] = ()
