"""What a model sees or hears in training: states, activations and time of its encoders, on the first stage.

An encoder is whole on every rank of tensor and context parallelism, which all run it on the same images. Frozen, it
runs forward alone and keeps nothing; trained, its layers keep what those of the language model do under the recompute
of the first stage.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.layouts.axes import RECOMPUTE, lead_modes
from planner.layouts.table import Floats, Layouts
from planner.physics.encoders import TowerWork
from planner.physics.training.activations import saved_per_token
from planner.physics.training.compute import kind_times
from planner.physics.training.machine import machine
from planner.physics.training.question import SUPERVISED, Question
from planner.physics.training.states import States, adapted, added, frozen, trained
from planner.physics.training.tuning import INFERENCE, PRETRAIN

HALF = 2.0
"""Bytes of a frozen weight of an encoder, which quantized bases leave alone."""


def encoder_states(question: Question, rows: Layouts) -> States:
    """Return the states of all encoders and projectors."""
    none = np.zeros(len(rows))
    total = States(none, none, none, none, none)
    for part in question.seen:
        learns = float(question.learned(part))
        still = part.tower.parameters - learns
        total = added(total, frozen(question, rows, (none + still, none), HALF))
        if not learns:
            continue
        parts = (none + learns, none)
        total = added(total, trained(question, rows, parts) if question.tuning.trains_base else adapted(
            question, rows, parts, question.recipes.adapter))
    return total


def encoder_kept(question: Question, rows: Layouts) -> Floats:
    """Return bytes of activations that the encoders keep of one micro-batch."""
    # all layers that attend to it read the same tensor
    wide = question.element_bytes(rows.precision) * question.shape.hidden
    kept = np.zeros(len(rows)) if question.tuning.forward_only else wide * question.memory_positions(rows)
    if "encoder" not in question.trains:
        return kept
    mode = lead_modes(rows.recompute)[:, None]
    for part in question.seen:
        asked, alone = _alone(question, rows, part, trains=True)
        tokens = alone.micro_batch * part.positions
        for kind, share in part.shape.kinds:
            saved = np.take_along_axis(saved_per_token(asked, alone, kind), mode, axis=1)[:, 0]
            kept = kept + part.shape.layers * share * saved * tokens
    return kept


def encoder_seconds(question: Question, rows: Layouts) -> Floats:
    """Return seconds that the encoders take for one micro-batch, forward, and backward where they train."""
    took, trains = np.zeros(len(rows)), "encoder" in question.trains
    again = lead_modes(rows.recompute) == RECOMPUTE.index("full")
    launch = question.stack.launch_layer / question.kernels.launches_per_forward
    for part in question.seen:
        asked, alone = _alone(question, rows, part, trains=trains)
        on = machine(asked, alone.candidate, alone.precision)
        for kind, share in part.shape.kinds:
            times = kind_times(asked, alone, on, kind)
            # kernels wait for the host where it launches them more slowly than they run
            forward = np.maximum(times.forward, launch)
            took = took + part.shape.layers * share * (forward * (1 + trains * again) + times.backward)
    return took


def encoder_flops(question: Question) -> float:
    """Return FLOPs of a sequence that the encoders count in the model's: forward, and thrice where they train."""
    return sum(part.flops for part in question.seen) * (3 if "encoder" in question.trains else 1)


def _alone(question: Question, rows: Layouts, part: TowerWork, *, trains: bool) -> tuple[Question, Layouts]:
    """Return the question of an encoder alone, its pictures as sequences, and the rows without what splits it."""
    one, none = np.ones(len(rows), np.int64), np.zeros(len(rows), np.int64)
    asked = replace(question, shape=part.shape, sequence_length=part.positions, longest=part.positions, seen=(),
                    sample=SUPERVISED, tuning=PRETRAIN if trains else INFERENCE)
    return asked, rows.replace(tp=one, cp=one, ep=one, expert_tp=none, sp=none,
                               micro_batch=rows.micro_batch * np.float64(part.pictures * question.sample.sequences))
