"""The kinds of evidence file: the rows of each, and the columns that tell it from the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from planner.evidence.rows import ServeRow, TrainRow
from planner.evidence.whole_rows import WholeRow

AnyRow: TypeAlias = TrainRow | ServeRow | WholeRow
KINDS: Mapping[str, tuple[type[AnyRow], frozenset[str]]] = {
    "train_throughput": (TrainRow, frozenset({"id", "global_batch_seqs", "tokens_per_s_per_gpu"})),
    "train_memory": (TrainRow, frozenset({"id", "method", "mem_kind", "fits"})),
    "train_runs": (WholeRow, frozenset({"id", "tokens_b", "gpu_hours"})),
    "serve_throughput": (ServeRow, frozenset({"id", "isl", "osl", "output_tok_s_per_gpu"})),
    "serve_memory": (ServeRow, frozenset({"id", "max_model_len", "weights_gib", "kv_cache_gib"})),
}
"""The rows of each kind of file, and the columns that tell it from the others."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One file, read: its rows, and (id, reason) of those that cannot be read."""

    kind: str
    rows: tuple[AnyRow, ...]
    unread: tuple[tuple[str, str], ...] = ()
