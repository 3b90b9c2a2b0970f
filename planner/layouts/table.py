"""Layouts as numpy columns, one row a layout, one column an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.layouts.axes import AXES, column_type

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Amount: TypeAlias = float | Floats
"""Of one row, or of many."""


ZERO_BASED = frozenset({"candidate", "precision", "schedule", "zero", "expert_tp", "no_sync", "recompute", "offload",
                        "offload_parameters", "offload_activations", "nvme"})
"""Axes whose least value is 0."""


@dataclass(frozen=True, slots=True)
class Layouts:
    """Columns of equal length. `candidate` and `precision` index the lists of the question they belong to."""

    candidate: Ints
    precision: Ints
    tp: Ints
    cp: Ints
    dp: Ints
    micro_batch: Ints
    pp: Ints
    vpp: Ints
    schedule: Ints
    ep: Ints
    expert_tp: Ints
    zero: Ints
    hsdp: Ints
    no_sync: Ints
    recompute: Ints
    sp: Ints
    offload: Floats
    offload_parameters: Floats
    offload_activations: Floats
    nvme: Ints
    micro_batches: Ints

    def __len__(self) -> int:
        return len(self.tp)

    @property
    def gpus(self) -> Ints:
        """GPUs of each layout: tp x cp x pp x dp."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def shard(self) -> Ints:
        """Ranks over which ZeRO shards states: dp x cp, over the copies of a hybrid shard group."""
        return self.dp * self.cp // self.hsdp

    @property
    def expert_split(self) -> Ints:
        """GPUs over which each expert is split: those of tensor parallelism unless the layout says otherwise."""
        return np.where(self.expert_tp == 0, self.tp, self.expert_tp)

    @property
    def expert_shard(self) -> Floats:
        """Ranks over which ZeRO shards the states of an expert: those of a shard group that hold it."""
        shared: Floats = self.shard * self.tp / (self.expert_split * self.ep)
        return shared

    @property
    def batch(self) -> Ints:
        """Sequences of one step: dp x micro-batch x micro-batches."""
        return self.dp * self.micro_batch * self.micro_batches

    @property
    def columns(self) -> dict[str, Any]:
        """The columns by axis, as rules read them."""
        return dict(zip(NAMES, _VALUES(self), strict=True))

    def take(self, rows: Ints | Mask | slice) -> Layouts:
        """Return the chosen rows as a table of their own."""
        if not isinstance(rows, slice) and rows.dtype == bool:
            rows = np.flatnonzero(rows)  # many times as fast as a mask, column by column
        count = len(self.tp[rows])
        # of a column that holds one value once, a slice is as good and holds nothing
        return Layouts(**{name: column[:count] if column.strides == (0,) and count <= len(column) else column[rows]
                          for name, column in self.columns.items()})

    def replace(self, **columns: Ints | Floats) -> Layouts:
        """Return the table with some columns exchanged."""
        whole: dict[str, Any] = {**self.columns, **columns}
        return Layouts(**whole)

    def row(self, index: int) -> dict[str, float]:
        """Return one row as plain numbers, by axis."""
        return {name: column[index].item() for name, column in self.columns.items()}


NAMES = tuple(f.name for f in fields(Layouts))
_VALUES = attrgetter(*NAMES)


def joined(tables: Sequence[Layouts]) -> Layouts:
    """Return the rows of all tables, of which there is at least one, as one table."""
    if len(tables) == 1:
        return tables[0]
    return Layouts(**{name: np.concatenate([getattr(table, name) for table in tables]) for name in NAMES})


def constant(value: float, dtype: type[np.generic], rows: int) -> Ints:
    """Return a column of one value, held once."""
    return np.broadcast_to(np.array(value, dtype), (rows,))


def from_rows(rows: Sequence[Mapping[str, float]], global_batch: Sequence[int] | int) -> Layouts:
    """Build a table from rows of axis values; what a row leaves out is as in `from_columns`."""
    return from_columns({a.name: np.array([r.get(a.name, _at_rest(a.name)) for r in rows], column_type(a.name))
                         for a in AXES}, global_batch)


def from_columns(columns: Mapping[str, Ints], global_batch: Sequence[int] | int) -> Layouts:
    """Build a table from columns by axis; axes left out are 1, or 0 for those that start there."""
    dp, micro_batch = columns["dp"], columns["micro_batch"]
    batches = np.broadcast_to(np.asarray(global_batch, np.int64), len(dp))
    whole: dict[str, Any] = {a.name: constant(_at_rest(a.name), column_type(a.name), len(dp)) for a in AXES}
    return Layouts(**{**whole, **columns}, micro_batches=np.maximum(1, batches // (dp * micro_batch)))


def _at_rest(name: str) -> int:
    return 0 if name in ZERO_BASED else 1


def distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """Return the first row of every distinct combination, and for each row the number of its combination."""
    code = np.zeros(len(columns[0]), np.int64)
    if len(code) == 1:
        return code, code
    for column in columns:
        code = code * (int(column.max(initial=0)) + 1) + column
    codes, rows = int(code.max(initial=0)) + 1, len(code)
    if codes > 16 * rows:
        # as np.unique does, of which half the time is arguments
        order = code.argsort(kind="stable")
        ranked = code[order]
        new = np.ones(rows, bool)
        np.not_equal(ranked[1:], ranked[:-1], out=new[1:])
        inverse = np.empty(rows, np.int64)
        inverse[order] = np.cumsum(new) - 1
        return order[new], inverse
    # where most codes are used, counting is several times as fast as sorting
    first = np.full(codes, -1)
    first[code[::-1]] = np.arange(rows - 1, -1, -1)
    used = first >= 0
    return first[used], (np.cumsum(used) - 1)[code]
