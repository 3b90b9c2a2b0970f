"""One way to train a diffusion model as an assignment: where bytes and seconds go, what it costs."""

from __future__ import annotations

from typing import Any, Literal

from planner.answer.assignment import DiffusionAssignment
from planner.answer.bought import bought_of
from planner.answer.breakdown import Evidence, Fits, Memory, MemoryComponents, Time, TimeComponents
from planner.answer.layout import Layout, Offload
from planner.catalog.diffusion_law import DiffusionLaw, Residue
from planner.catalog.published import DIFFUSION, TASK
from planner.jobs.columns import Run
from planner.jobs.diffusion.options import StepWay, interval, sure_bytes
from planner.jobs.quanta import offered, used_by
from planner.layouts.candidate import Candidate
from planner.physics.diffusion.shape import forward_flops
from planner.physics.diffusion.step import StepSplit
from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.extent import said
from planner.scenario.pixels import Resolution
from planner.solver.quantize import DURATION_QUANTUM, PRICE_QUANTUM
from planner.units import DAY


def verdict(option: StepWay, candidate: Candidate, law: DiffusionLaw, confidence: float) -> Fits:
    """Return whether it fits the GPU at a confidence, only at the median, or not; the host must hold its part."""
    usable = candidate.gpu.usable_memory
    if option.peak > usable or option.host > candidate.node.cpu.memory:
        return "does not fit"
    return "fits" if sure_bytes(option, law, confidence) <= usable else "tight"


def assignment_of(name: str, work: DiffusionTraining, option: StepWay, candidate: Candidate, law: DiffusionLaw,
                  confidence: float, run: Run | None = None, goodput: float = 1.0) -> DiffusionAssignment:
    """Return one way in full; with a run also what it takes and costs. work: resolved."""
    split, tuning = option.split, option.tuning
    steps = work.total_steps
    nodes = -(-option.gpus // candidate.node.gpus)
    placed: dict[str, Any] = {
        "workload": name, "model": tuning.model.name, "method": work.method, "node": candidate.node.name,
        "gpu": candidate.gpu.name, "nodes": nodes, "gpus": option.gpus, "stack": law.stack,
        "layout": Layout(tp=1, pp=1, vpp=1, cp=split.sequence, ep=1, dp=split.copies, shard=split.shard,
                         cp_method="all-to-all" if split.sequence > 1 else None,
                         zero=3 if split.shard > 1 else 0, micro_batch=split.micro_batch,
                         micro_batches=split.micro_batches, recompute=_called(split),
                         precision="bf16" if "bf16" in candidate.gpu.peak else "fp16",
                         offload=Offload(optimizer=split.states_out, parameters=split.swapped,
                                         activations=float(split.spilled),
                                         to="host" if split.states_out or split.swapped else "none")),
        "memory": _memory(option, candidate, law, confidence),
        "time": _time(option, candidate, law, steps, work.batch),
        "resolution": said(work.resolution or Resolution(tuning.model.resolution), None, work.audio),
        "frames": work.frames or tuning.model.frames, "audio_seconds": work.audio,
        "sample_tokens": tuning.sample.image(), "global_batch": work.batch, "base": tuning.base,
        "samples_per_second": work.batch / option.step, "swapped": split.swapped,
        "checkpoints": split.recomputed * (1 - split.entering),
        "recomputed": split.recomputed if split.recomputed not in (0.0, 0.5, 1.0) else None}
    if run is None or run.offer is None:
        return DiffusionAssignment(**placed)
    column, offer = run.column, run.offer
    priced = offered(offer, 0)
    days = column.duration_us * DURATION_QUANTUM / DAY
    low, high = interval(law, law.step, likely=option.likely)
    return DiffusionAssignment(
        **placed, idle_gpus=column.nodes * candidate.node.gpus - column.gpus, spare_nodes=column.spare_nodes,
        offer=offer.label, sourcing=offer.how, goodput=goodput, duration_days=days,
        usd_per_node_hour=priced.price(column.rented_nodes) * PRICE_QUANTUM * max(
            1.0, priced.least_us / column.duration_us),
        cost_usd=used_by(run)["budget"], energy_kwh=column.energy_wh / 1000,
        purchase=bought_of(offer.estate, column.rented_nodes, column.gpus, goodput) if offer.estate else None,
        duration_interval90_days=(days * low, days * high))


def _called(split: StepSplit) -> Literal["none", "mixed", "full"]:
    """Return what recompute of some of the blocks is called."""
    return "none" if not split.recomputed else "full" if split.recomputed == 1 else "mixed"


def _evidence(residue: Residue, stack: str, *, likely: bool) -> Evidence:
    return Evidence(rows=residue.rows if likely else 0, sources=1 if likely else 0,
                    median_abs_error=residue.error if likely else None, validated=likely,
                    alike={TASK: DIFFUSION, "stack": stack} if likely else None)


def _memory(option: StepWay, candidate: Candidate, law: DiffusionLaw, confidence: float) -> Memory:
    parts = {name: round(size) for name, size in option.parts.items()}
    parts["reserve"] = round(sure_bytes(option, law, confidence) - option.peak)
    low, high = interval(law, law.memory, likely=option.likely)
    return Memory(fits=verdict(option, candidate, law, confidence), usable_bytes=int(candidate.gpu.usable_memory),
                  peak_bytes=sum(parts.values()), components=MemoryComponents(**parts),
                  host_bytes_per_node=round(option.host), host_usable_bytes=int(candidate.node.cpu.memory),
                  interval90_bytes=(round(option.peak * low), round(option.peak * high)),
                  evidence=_evidence(law.memory, law.stack, likely=option.likely))


def _time(option: StepWay, candidate: Candidate, law: DiffusionLaw, steps: int | None, batch: int) -> Time:
    step, tuning = option.step, option.tuning
    products, scores = forward_flops(tuning.model, tuning.sample)
    # backward of a frozen product is one product, of a trained one two; of attention always two
    flops = batch * (products * (2 if tuning.frozen else 3) + scores * 3) / option.gpus
    peak = candidate.gpu.halves or candidate.gpu.peak["fp16"]
    low, high = interval(law, law.step, likely=option.likely)
    tokens = tuning.sample.image() * batch / step / option.gpus
    return Time(step_seconds=step, components=TimeComponents(**option.seconds), steps=steps,
                tokens_per_second_per_gpu=tokens, model_tflops_per_gpu=flops / step / 1e12, mfu=flops / step / peak,
                interval90_seconds=(step * low, step * high),
                evidence=_evidence(law.step, law.stack, likely=option.likely))
