"""Rows of whole published runs: what was trained on how many tokens, and the GPU-hours that it took in the end."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from planner.evidence.rows import EvidenceRow, Measured, Positive, Text, TrainRun


class StatedWholeRun(TrainRun):
    """What a row says of a whole run, beside what a training row says.

    Words: kind (pretrain, ...), run_class (how the hours were counted), interconnect (the network between nodes),
    memory_inputs (what was recalled, not read), arch_source (where the shape is from; `memory` is recalled).
    Tokens: global_batch_tokens of a step; billions of tokens: tokens_b. Billions: active_params_b.
    """

    kind: Text = None
    run_class: Text = None
    interconnect: Text = None
    global_batch_tokens: Positive = None
    tokens_b: Positive = None
    active_params_b: Positive = None
    memory_inputs: Text = None
    arch_source: Text = None


class WholeMeasured(Measured):
    """What a whole run took: gpu_hours, and of these the share that its steps take at the speed that was printed."""

    gpu_hours: Positive = None
    ideal_hours_over_actual: Positive = None


class WholeRow(EvidenceRow):
    """A whole run; `suspect` says why it contradicts itself."""

    suspect: Annotated[bool, BeforeValidator(lambda given: str(given).lower() != "no")] | None = None
    run: StatedWholeRun
    measured: WholeMeasured
