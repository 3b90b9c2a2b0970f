"""What offload costs: states, weights and checkpoints moved over PCIe to host memory or local flash, and Adam there.

Optimizer states are read, stepped and written once a step. Offloaded weights come in for forward and again for
backward, and their gradients go out, with every micro-batch; each rank moves its own shard and the gather does the
rest (ZeRO-Infinity, Rajbhandari et al. 2021, arXiv 2104.07857). Checkpoints of full recompute go out and come back.
GPUs under one PCIe switch share its uplink, all GPUs of a node its memory bandwidth and its drives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats, Ints, Layouts
from planner.physics.training.communication import rank_parameters
from planner.physics.training.parameters import owned_parameters, sequence_split
from planner.physics.training.question import Question


@dataclass(frozen=True, slots=True)
class OffloadTimes:
    """Seconds: of one step, of one layer and micro-batch, and of one layer under full recompute besides; exposed."""

    step: Floats
    layer: Floats
    full: Floats


def offload_times(question: Question, rows: Layouts, compute: Floats) -> OffloadTimes:
    """Return what offload leaves exposed; `compute` is seconds of one layer and micro-batch to hide behind."""
    stack, none = question.stack, np.zeros(len(rows))
    if not (rows.offload.any() or rows.offload_parameters.any() or rows.offload_activations.any()):
        return OffloadTimes(none, none, none)
    states = stack.recipe(question.precisions[0])
    trained, held = rank_parameters(question, rows, trained=True), rank_parameters(question, rows, trained=False)
    rates = _rates(question, rows)
    host, read, write = rates.host, rates.read, rates.write
    kernels, threads = question.kernels, question.hardware.host_threads[rows.candidate]
    adam = np.maximum(kernels.host_adam_bytes_per_parameter / rates.memory,
                      rates.used / (threads * kernels.host_adam_per_thread))
    moved = states.master + states.moments
    adam = np.where(rows.nvme == 1, np.maximum(adam, moved / read + moved / write), adam)
    # what weights fetched anyway bring along need not be sent again
    sent = (stack.reduce_bytes + 2.0) * (1 - rows.offload_parameters) / host
    step = owned_parameters(rows, trained.dense, trained.experts) * rows.offload * (adam + sent)

    passes = 2 + question.sample.forwards
    weights = owned_parameters(rows, held.layer, held.layer_experts) * passes * states.weight / read
    gradients = owned_parameters(rows, trained.layer, trained.layer_experts) * stack.reduce_bytes / write
    swapped = rows.offload_parameters * (weights + gradients)
    tokens = question.tokens(rows)
    sent_and_back = 2 * question.element_bytes(rows.precision) * rows.offload_activations
    checkpoints = sent_and_back * tokens * question.shape.hidden / sequence_split(question, rows)
    hide = stack.overlap.shard_gather
    return OffloadTimes(step=step, layer=_exposed(swapped, compute, hide),
                        full=_exposed(checkpoints / host, compute, hide))


def _exposed(traffic: Floats, compute: Floats, hide: float) -> Floats:
    return traffic - hide * np.minimum(traffic, compute)


@dataclass(frozen=True, slots=True)
class _Rates:
    """Bytes/s of one GPU of each row while all GPUs that the layout uses on a node do the same."""

    used: Ints
    """Those GPUs."""
    host: Floats
    """PCIe to the host, and no more than a GPU's share of the host's memory bandwidth."""
    memory: Floats
    read: Floats
    write: Floats


def _rates(question: Question, rows: Layouts) -> _Rates:
    on, at = question.hardware, rows.candidate
    used = np.minimum(rows.gpus, on.gpus[at])
    memory = on.host_bandwidth[at] / used
    host = np.minimum(on.pcie[at] / np.maximum(np.ceil(used / on.switches[at]), 1), memory)
    if not rows.nvme.any():
        return _Rates(used, host, memory, host, host)
    read, write = (np.where(rows.nvme == 1, np.minimum(host, flash[at] / used), host)
                   for flash in (on.flash_read, on.flash_write))
    return _Rates(used, host, memory, read, write)
