"""Predict what a training row would measure, from what it says was run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.likeness import memory_traits, sizes, step_traits
from planner.catalog.load import Catalog
from planner.catalog.quirk import Sources
from planner.catalog.stack import Stack
from planner.evidence.degrees import degrees_of
from planner.evidence.hardware import UNKNOWN_GPU, candidate_of
from planner.evidence.method import method_of, sample_of_row, tuning
from planner.evidence.multimodal import seen_in
from planner.evidence.rows import TrainRun
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError, refuse
from planner.evidence.software import stack_of
from planner.layouts.axes import RECOMPUTE
from planner.layouts.candidate import Candidate
from planner.layouts.table import Layouts
from planner.physics.training.evaluate import Evaluation, Fits, evaluate_fixed
from planner.physics.training.question import computes, question_of, splits_model
from planner.units import GIB

OPEN_RECOMPUTE = "recompute="
UNSTATED_RECOMPUTE = f"{OPEN_RECOMPUTE}none"
STATED, OPEN = 0.95, 0.99
"""Confidence of the memory verdict where the row states everything, and where something had to be assumed."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the physics says of one row, by what it is like others, and the defaults it took."""

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
    step_traits: Mapping[str, str]
    memory_traits: Mapping[str, str]
    sizes: Mapping[str, float]
    assumed: tuple[str, ...]
    model_is: Literal["whole", "split"]
    network: str = ""
    """The network between nodes that the run crosses; empty on one node."""
    network_stated: bool = True
    usual_kind: str = "reserved"
    """What the peak counts where the row does not say."""
    counted: float = 1.0
    """Share of the tokens at work that the row's speed counts."""
    load_bytes: float = 0.0
    """Device bytes while the model loads, where every rank builds the whole of it before sharding."""
    has_a_way: bool = False
    """Whether recompute, which the row leaves open, can make fit what does not with the assumed one."""

    @property
    def guessed(self) -> tuple[str, ...]:
        """What decides memory most, and was assumed."""
        return ("recompute",) if any(one.startswith(OPEN_RECOMPUTE) for one in self.assumed) else ()

    @property
    def memory_parts(self) -> Mapping[str, float]:
        """Shares of the peak by which the law of memory goes."""
        return self.evaluation.memory.shares

    @property
    def fits(self) -> Fits:
        """The verdict on training, and on loading where that holds more."""
        memory = self.evaluation.memory
        if self.load_bytes > memory.usable:
            return "does not fit"
        if self.has_a_way:
            return "tight"
        device = self.load_bytes * memory.reserved / memory.allocated + memory.device - memory.reserved
        loads = not self.load_bytes or device * memory.peak / memory.device <= memory.usable
        return "tight" if memory.fits == "fits" and not loads else memory.fits

    @property
    def tokens_per_second_per_gpu(self) -> float:
        """The speed as the row counts it."""
        return self.evaluation.tokens_per_second_per_gpu * self.counted

    def memory_gib(self, kind: str) -> float:
        """Return the median peak in GiB as the tool behind `kind` prints it."""
        memory = self.evaluation.memory
        held = {"allocated": memory.allocated, "nvidia-smi": memory.device}.get(kind, memory.reserved)
        return max(held, self.load_bytes) / GIB


def predict(run: TrainRun, catalog: Catalog, *, memory_only: bool = False, model: Model | None = None) -> Prediction:
    """Return the prediction for one row. Raises SkippedError with the reason where there is none.

    model: the row's, where it is known from an earlier prediction.
    """
    said, assumed = catalog.sources, list[str]()
    refuse(run, said)
    method = method_of(run, said)
    model = model or model_of(run, catalog, assumed)
    stack = stack_of(run, model, catalog, assumed, memory_only=memory_only)
    seen = seen_in(run, model, said)
    degrees = degrees_of(run, model, stack, said, assumed, memory_only=memory_only,
                         beside=sum(part.tokens for part in seen))
    if stack.family == "hf-peft" and _frees_gradients(degrees.table):
        stack = stack.model_copy(update={"gradients_persist": False})
    candidate = candidate_of(run, stack, catalog, assumed, gpus=degrees.gpus, memory_only=memory_only)
    precision = _precision(run, stack, candidate, memory_only, said, assumed)
    stack = _partly_in_half(run, stack, candidate, precision, said)
    question = question_of(
        catalog, model, (candidate,), stack, sequence_length=degrees.sequence_length,
        global_batch=degrees.global_batch, precisions=(precision,), method=method,
        confidence=OPEN if assumed else STATED, tuning=tuning(run, stack, catalog, assumed),
        sample=sample_of_row(run, method, catalog), seen=seen)
    modules = said.whole("predictions", run) or 0
    question = replace(question, predictions=modules, prediction_layers=modules * _layers_of_a_module(model),
                       attended=said.whole("attended", run))
    if not memory_only and not computes(candidate, question.rates[0], precision):
        raise SkippedError(f"GPU {candidate.gpu.name} has no {precision} rate in the catalog")
    evaluation = evaluate_fixed(question, degrees.table, 0, degrees.recompute_layers)
    if degrees.peak_length != degrees.sequence_length:
        longest = replace(question, sequence_length=degrees.peak_length, longest=degrees.peak_length)
        held = evaluate_fixed(longest, degrees.table, 0, degrees.recompute_layers).memory
        evaluation = replace(evaluation, memory=held)
    has_a_way = False
    if evaluation.memory.fits == "does not fit" and any(one.startswith(OPEN_RECOMPUTE) for one in assumed):
        recomputed = evaluate_fixed(question, _recomputed(degrees.table), 0)
        has_a_way = recomputed.memory.fits != "does not fit"
        if UNSTATED_RECOMPUTE in assumed and not stack.selective_recompute:
            # what ran must have fitted, and its stack recomputes all or nothing
            assumed[assumed.index(UNSTATED_RECOMPUTE)] = "recompute=full"
            evaluation, has_a_way = recomputed, False
    model_is: Literal["whole", "split"] = "split" if splits_model(degrees.table)[0] else "whole"
    return Prediction(
        model, evaluation, stack.name, stack.family, candidate.gpu.architecture,
        "any" if UNKNOWN_GPU in assumed else candidate.gpu.name, degrees.gpus, precision,
        method, step_traits(stack, method, model, candidate.gpu.architecture, precision),
        memory_traits(stack, method, model, split=model_is == "split"),
        sizes(degrees.gpus, degrees.sequence_length),
        tuple(assumed), model_is, candidate.fabric.name if degrees.gpus > candidate.node.gpus else "",
        bool(run.scaleout or run.nic_gbit_per_gpu), said.word("peak_kind", run) or "reserved", degrees.counted,
        # 16-bit weights and their shard, where every rank builds the whole model on its GPU
        2.0 * question.shape.total * (1 + 1 / degrees.gpus) if said.flag("loads_whole", run) else 0.0, has_a_way)


def _layers_of_a_module(model: Model) -> int:
    """Return the layers of a module that predicts a further token: attention and feed-forward, which may be two."""
    last = model.layer_kinds()[-1]
    return 1 if last.attention and last.mlp else 2


def _partly_in_half(run: TrainRun, stack: Stack, candidate: Candidate, precision: str, said: Sources) -> Stack:
    """Return the stack with the rate of a recipe that keeps a share of its products in 16 bits."""
    share, peak = said.number("half_share", run), candidate.gpu.peak
    if share is None or precision not in peak:
        return stack
    slower = 1 / (1 - share + share * peak[precision] / peak["bf16"])
    return stack.model_copy(update={"matrix_rate": {**stack.matrix_rate, precision: slower}})


def _recomputed(rows: Layouts) -> Layouts:
    """Return a layout with every layer recomputed in full."""
    return rows.replace(recompute=np.full(len(rows), RECOMPUTE.index("full")))


def _frees_gradients(rows: Layouts) -> bool:
    """Say whether no shard of gradients lives through forward: the Trainer frees them, no_sync keeps them whole."""
    return bool(rows.micro_batches[0] == 1 or (rows.no_sync[0] == 1 and rows.zero[0] >= 2))


def _precision(run: TrainRun, stack: Stack, candidate: Candidate, memory_only: bool, said: Sources,
               assumed: list[str]) -> str:
    """Return the format of a row; of a memory row, which states the bytes of its states, one of their widths."""
    if memory_only:
        narrow = (run.precision_recipe or "").startswith("fp8")
        wanted = "fp32" if "fp32" in (run.precision, run.precision_recipe) else "fp8" if narrow else "bf16"
        known = (wanted, "bf16", "fp16", "fp32")
        return next((p for p in known if p in stack.states and p in candidate.gpu.peak), wanted)
    scaled = said.word("scaled_precision", run)
    stated = scaled if scaled in candidate.gpu.peak else run.precision
    if stated is None:
        stated = said.word("usual_precision", run) or "bf16"
        assumed.append(f"precision={stated}")
    return stated
