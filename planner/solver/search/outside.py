"""What a node holds outside its GPUs: whether host memory and flash have room for what is offloaded."""

from __future__ import annotations

import numpy as np

from planner.layouts.table import Floats, Layouts
from planner.physics.training.memory import MemoryTerms
from planner.physics.training.question import Question


def host_short(question: Question, rows: Layouts, memory: MemoryTerms) -> Floats:
    """Return by what share of itself host or flash is too small for what the average node offloads; the last node may
    hold fewer stages.
    """
    node = np.minimum(rows.gpus, question.hardware.gpus[rows.candidate])
    ranks = rows.gpus // rows.pp
    stages = np.maximum(node // ranks, 1)
    shared = question.shape.layers / np.ceil(rows.pp / stages) * ranks / node
    layers = np.where(stages > 1, shared, question.shape.layers / rows.pp)
    # a node without flash is asked for none
    host, flash = (held * layers / np.maximum(capacity, 1.0) for held, capacity in (
        (memory.host_per_layer, memory.host_capacity), (memory.nvme_per_layer, memory.nvme_capacity)))
    short: Floats = np.maximum(host, flash) - 1
    return short


def host_layers(question: Question, memory: MemoryTerms, row: int) -> int:
    """Return how many layers a stage may hold before what its node offloads outgrows the host or its flash."""
    most = question.shape.layers
    for per_layer, capacity in ((memory.host_per_layer[row], memory.host_capacity[row]),
                                (memory.nvme_per_layer[row], memory.nvme_capacity[row])):
        most = most if per_layer == 0 else min(most, int(capacity // per_layer))
    return most
