"""Rows of diffusion models: what was run and what was measured."""

from __future__ import annotations

from planner.evidence.rows import Amount, Cells, Count, Degree, EvidenceRow, Measured, Positive, Text, Truth


class DiffusionRun(Cells):
    """What a row says was run.

    Words: source, kind (training, inference, ...), stack, model, component, gpu (a catalog name), method, resolution,
    precision (of the base), quantization, optimizer, offload, checkpointing, notes. Counts: gpus, frames, lora_rank,
    and batch in samples of one GPU.
    """

    source: Text = None
    kind: Text = None
    stack: Text = None
    model: Text = None
    component: Text = None
    gpu: Text = None
    gpus: Degree = None
    method: Text = None
    resolution: Text = None
    frames: Amount = None
    batch: Amount = None
    precision: Text = None
    quantization: Text = None
    optimizer: Text = None
    offload: Text = None
    checkpointing: Text = None
    lora_rank: Amount = None
    steps: Count = None
    compile: Truth = None
    parallel: Text = None
    notes: Text = None


class DiffusionMeasured(Measured):
    """What a row measured: step_time_s, latency_s of a call, throughput in samples/s, peak_mem_gib, whether it fits."""

    step_time_s: Positive = None
    latency_s: Positive = None
    throughput: Positive = None
    peak_mem_gib: Positive = None
    fits: Truth = None


class DiffusionRow(EvidenceRow):
    """One run of a diffusion model."""

    run: DiffusionRun
    measured: DiffusionMeasured
