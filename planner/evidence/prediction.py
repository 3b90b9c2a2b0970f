"""Predict what a training row would measure, from what it says was run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from planner.catalog.architecture import Model
from planner.catalog.calibration import Residual
from planner.catalog.load import Catalog
from planner.catalog.stack import Stack
from planner.errors import PlannerError
from planner.evidence.degrees import Degrees, degrees_of
from planner.evidence.hardware import UNKNOWN_GPU, candidate_of
from planner.evidence.method import method_of, tuning
from planner.evidence.rows import TrainRun
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError, refuse
from planner.evidence.software import stack_of
from planner.layouts.candidate import Candidate
from planner.physics.training.evaluate import Evaluation, Fits, evaluate_fixed
from planner.physics.training.question import computes, question_of, splits_model
from planner.units import GIB

_ALLOCATED = re.compile(r"SimuMax|torchtune README.md Memory and training speed table")
"""Sources that print what is allocated: SimuMax, and torchtune's table of 2024, whose 16.2 GiB for LoRA of 8B are less
than its weights and checkpoints take once reserved."""
STATED, OPEN = 0.95, 0.99
"""Confidence of the memory verdict where the row states everything, and where something had to be assumed."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the physics says of one row, with the classes its intervals come from and the defaults it took."""

    model: Model
    evaluation: Evaluation
    stack: str
    family: str
    """The stack whose class of evidence the row is of."""
    architecture: str
    gpu: str
    gpus: int
    precision: str
    method: str
    step_residual: Residual
    memory_residual: Residual
    assumed: tuple[str, ...]
    model_is: Literal["whole", "split"]
    usual_kind: str = "reserved"
    """What the peak counts where the row does not say."""
    load_bytes: float = 0.0
    """Device bytes while the model loads, where every rank builds the whole of it before sharding."""

    @property
    def fits(self) -> Fits:
        """The verdict on training, and on loading where that holds more."""
        memory = self.evaluation.memory
        if self.load_bytes > memory.usable:
            return "does not fit"
        device = self.load_bytes * memory.reserved / memory.allocated + memory.device - memory.reserved
        loads = not self.load_bytes or device * memory.peak / memory.device <= memory.usable
        return "tight" if memory.fits == "fits" and not loads else memory.fits

    def memory_gib(self, kind: str) -> float:
        """Return the median peak in GiB as the tool behind `kind` prints it."""
        memory = self.evaluation.memory
        held = {"allocated": memory.allocated, "nvidia-smi": memory.device}.get(kind, memory.reserved)
        return max(held, self.load_bytes) / GIB


def predict(run: TrainRun, catalog: Catalog, *, memory_only: bool = False, model: Model | None = None) -> Prediction:
    """Return the prediction for one row. Raises SkippedError with the reason where there is none.

    model: the row's, where it is known from an earlier prediction.
    """
    refuse(run)
    assumed: list[str] = []
    method = method_of(run)
    try:
        model = model or model_of(run, catalog, assumed)
        stack = stack_of(run, model, catalog, assumed, memory_only=memory_only)
        degrees = degrees_of(run, model, stack, assumed)
        candidate = candidate_of(run, stack, catalog, assumed, gpus=degrees.gpus, memory_only=memory_only)
        precision = _scaled(run, candidate) or _default_precision(run, memory_only, assumed)
        if memory_only:
            precision = _held_precision(run, stack, candidate)
        question = question_of(
            catalog, model, (candidate,), stack, sequence_length=degrees.sequence_length,
            global_batch=degrees.global_batch, precisions=(precision,), method=method,
            confidence=OPEN if assumed else STATED, tuning=tuning(run, stack, catalog.recipes, assumed))
        if not memory_only and not computes(candidate, question.rates[0], precision):
            raise SkippedError(f"GPU {candidate.gpu.name} has no {precision} rate in the catalog")
        evaluation = evaluate_fixed(question, degrees.table, 0)
    except PlannerError as error:
        raise SkippedError(str(error)) from None
    model_is: Literal["whole", "split"] = "split" if splits_model(degrees.table)[0] else "whole"
    traits: Mapping[str, str] = {"stack": stack.family, "architecture": candidate.gpu.architecture, "model": model_is,
                                 "method": method}
    return Prediction(
        model, evaluation, stack.name, stack.family, candidate.gpu.architecture,
        "any" if UNKNOWN_GPU in assumed else candidate.gpu.name, degrees.gpus, precision,
        traits["method"], catalog.step_residuals.match(**traits), catalog.memory_residuals.match(**traits),
        tuple(assumed), model_is,
        "allocated" if _ALLOCATED.search(f"{run.source} {run.source_detail}") else "reserved",
        _load_bytes(run, question.shape.total, degrees))


def _load_bytes(run: TrainRun, total: int, degrees: Degrees) -> float:
    """Return 16-bit weights and their shard under LitGPT's FSDP, which builds the model on the GPU of every rank."""
    if run.sharding != "fsdp" or "litgpt" not in (run.source or ""):
        return 0.0
    return 2.0 * total * (1 + 1 / degrees.gpus)


def _scaled(run: TrainRun, candidate: Candidate) -> str | None:
    """Return the format of a row; fp8 with scales by block where its recipe says so and the GPU has it."""
    by_block = run.precision == "fp8" and "mxfp8" in (run.notes or "").lower()
    return "mxfp8" if by_block and "mxfp8" in candidate.gpu.peak else run.precision


def _held_precision(run: TrainRun, stack: Stack, candidate: Candidate) -> str:
    """Return the format whose widths a row holds, of those that the GPU computes in."""
    wanted = "fp32" if "fp32" in (run.precision, run.precision_recipe) else "bf16"
    known = [p for p in (wanted, "fp16", "fp32") if p in stack.states and p in candidate.gpu.peak]
    return known[0] if known else wanted


def _default_precision(run: TrainRun, memory_only: bool, assumed: list[str]) -> str:
    """Return bf16, or fp8, which NVIDIA's submissions to MLPerf Training set for language models on Hopper."""
    if memory_only:  # a memory file states the bytes of its states instead
        return "bf16"
    precision = "fp8" if "MLPerf" in (run.notes or "") else "bf16"
    assumed.append(f"precision={precision}")
    return precision
