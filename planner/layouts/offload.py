"""What may leave the GPU, and in which combinations: optimizer states, weights, checkpoints; to host or NVMe.

A level that precedes another never takes more time, so the other can only pay where every such one is short of memory.
The search walks levels in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from planner.catalog.stack import Stack
from planner.layouts.axes import RECOMPUTE, Space, domain
from planner.layouts.table import Ints, Layouts, Mask

OFFLOAD_AXES = ("offload", "offload_parameters", "offload_activations", "nvme")


@dataclass(frozen=True, slots=True)
class Offloaded:
    """One combination: shares outside the GPU (0 to 1), and whether states and weights lie on NVMe (1) or host (0)."""

    offload: float = 0.0
    offload_parameters: float = 0.0
    offload_activations: float = 0.0
    nvme: float = 0.0

    @property
    def values(self) -> tuple[float, float, float, float]:
        """The values in the order of OFFLOAD_AXES."""
        return (self.offload, self.offload_parameters, self.offload_activations, self.nvme)

    def precedes(self, other: Offloaded) -> bool:
        """Say whether this moves less than `other`, nothing that `other` does not move, and hence takes no longer.

        Weights that are fetched behind compute spare the step the sending of updated ones, so that states moved alone
        say nothing of states moved with weights.
        """
        less = self != other and all(a <= b for a, b in zip(self.values, other.values, strict=True))
        return less and (self.offload_parameters == other.offload_parameters or self.offload == 0)

    def on(self, rows: Layouts) -> Layouts:
        """Return the rows at this level."""
        return rows.replace(**{name: np.full(len(rows), value, getattr(rows, name).dtype)
                               for name, value in zip(OFFLOAD_AXES, self.values, strict=True)})


NOTHING = Offloaded()


def level_of(rows: Layouts, row: int) -> Offloaded:
    """Return the level of one row."""
    return Offloaded(*(float(getattr(rows, name)[row]) for name in OFFLOAD_AXES))


def levels(space: Space, stack: Stack) -> tuple[Offloaded, ...]:
    """Return all levels the stack and some node offer, lesser ones first; the first moves nothing."""
    domains = [[float(value) for value in domain(name, space)] for name in OFFLOAD_AXES]
    flash = space.flash
    offloads = [Offloaded(*values) for values in product(*domains)]
    # every level on every candidate, at the ZeRO stage and recompute that allow most
    count = len(offloads) * len(flash)
    columns = {"zero": np.full(count, max(stack.zero_stages)), "recompute": np.full(count, RECOMPUTE.index("full")),
               "candidate": np.tile(np.arange(len(flash)), len(offloads))}
    columns |= {name: np.repeat([level.values[at] for level in offloads], len(flash))
                for at, name in enumerate(OFFLOAD_AXES)}
    possible = np.flatnonzero(allowed(columns, stack, flash).reshape(len(offloads), len(flash)).any(axis=1))
    return tuple(sorted((offloads[at] for at in possible), key=lambda level: (sum(level.values), level.values)))


def allowed(c: Mapping[str, Ints], stack: Stack, flash: Mask) -> Mask:
    """Say which rows may offload as they do. `flash` says of each candidate whether its nodes have NVMe.

    Optimizer states need ZeRO-1; weights need ZeRO-3 and their states offloaded too; NVMe needs ZeRO-3 and something
    whole to hold; activations are the checkpoints of full recompute.
    """
    can = stack.offload
    states, weights, kept, nvme = (c[name] for name in OFFLOAD_AXES)
    host_states = (states == 0) | ((c["zero"] >= 1) & ("host" in can.optimizer))
    flash_states = (states == 1) & ("nvme" in can.optimizer) & (c["zero"] == 3) & flash[c["candidate"]]
    host_weights = (weights == 0) | ((c["zero"] == 3) & (states == 1) & ("host" in can.parameters))
    flash_weights = (weights == 0) | ("nvme" in can.parameters)  # the states beside them need ZeRO-3
    joined = (weights == states) if can.together else np.ones(len(states), bool)
    keep: Mask = (joined & np.where(nvme == 1, flash_states & flash_weights, host_states & host_weights)
                  & ((kept == 0) | (can.activations & (c["recompute"] != 0) & (c["recompute"] != 1))))
    return keep
