"""Predict what a training row would measure, from what it says was run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.catalog.calibration import Residual
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.evidence.degrees import degrees_of
from planner.evidence.hardware import candidate_of
from planner.evidence.rows import TrainRun
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError, refuse
from planner.evidence.software import stack_of
from planner.physics.evaluate import Evaluation, evaluate_fixed
from planner.physics.question import computes, question_of
from planner.units import GIB

STATED, OPEN = 0.95, 0.99
"""Confidence of the memory verdict where the row states everything, and where something had to be assumed."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the physics says of one row, with the classes its intervals come from and the defaults it took."""

    evaluation: Evaluation
    stack: str
    architecture: str
    gpu: str
    gpus: int
    precision: str
    method: str
    step_residual: Residual
    memory_residual: Residual
    assumed: tuple[str, ...]

    def memory_gib(self, kind: str) -> float:
        """Return the median peak in GiB as the tool behind `kind` prints it."""
        memory = self.evaluation.memory
        return {"allocated": memory.allocated, "nvidia-smi": memory.device}.get(kind, memory.reserved) / GIB


def predict(run: TrainRun, catalog: Catalog, *, memory_only: bool = False) -> Prediction:
    """Return the prediction for one row. Raises SkippedError with the reason where there is none."""
    refuse(run)
    assumed: list[str] = []
    try:
        model = model_of(run, catalog, assumed)
        stack = stack_of(run, catalog, assumed)
        degrees = degrees_of(run, stack, assumed)
        candidate = candidate_of(run, stack, catalog, assumed, memory_only=memory_only)
        precision = run.precision or _default_precision(memory_only, assumed)
        question = question_of(
            catalog, model, (candidate,), stack, sequence_length=degrees.sequence_length,
            global_batch=degrees.global_batch, precisions=(precision,), method=run.method or "pretrain",
            confidence=OPEN if assumed else STATED)
        if not computes(candidate, question.rates[0], precision):
            raise SkippedError(f"GPU {candidate.gpu.name} has no {precision} rate in the catalog")
        evaluation = evaluate_fixed(question, degrees.table, 0)
    except PlannerError as error:
        raise SkippedError(str(error)) from None
    traits: Mapping[str, str] = {"stack": stack.name, "architecture": candidate.gpu.architecture,
                                 "method": run.method or "pretrain"}
    return Prediction(
        evaluation, stack.name, candidate.gpu.architecture, candidate.gpu.name, degrees.gpus, precision,
        traits["method"], catalog.step_residuals.match(**traits), catalog.memory_residuals.match(**traits),
        tuple(assumed))


def _default_precision(memory_only: bool, assumed: list[str]) -> str:
    if not memory_only:  # a memory file states the bytes of its states instead
        assumed.append("precision=bf16")
    return "bf16"
