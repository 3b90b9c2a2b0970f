"""How much there is to set up for a layout."""

from __future__ import annotations

import numpy as np

from planner.layouts.offload import OFFLOAD_AXES
from planner.layouts.table import Ints, Layouts


def complexities(rows: Layouts) -> Ints:
    """Return how much there is to set up for each row: kinds of parallelism, ZeRO stage, interleaving, offload."""
    degrees = sum((getattr(rows, axis) > 1).astype(np.int64) for axis in ("tp", "cp", "pp", "vpp", "ep"))
    rare = 3 * (rows.hsdp > 1) + (rows.expert_tp > 0) + 3 * (rows.schedule > 0) + rows.no_sync
    outside = sum((getattr(rows, axis) > 0).astype(np.int64) for axis in OFFLOAD_AXES)
    found: Ints = 10 * degrees + 3 * rows.zero + 5 * outside + rare
    return found
