"""Everything a physical question holds besides its layouts: the model, the batch, the hardware and the stack."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.calibration import ArchitectureRates, Collectives, KernelShape
from planner.catalog.likeness import memory_traits
from planner.catalog.load import Catalog
from planner.catalog.recipes import Recipes
from planner.catalog.residuals import Residual
from planner.catalog.stack import Stack, Trained
from planner.errors import MissingFact, Unsupported
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats, Ints, Layouts, Mask
from planner.physics.encoders import TowerWork
from planner.physics.kinds import shape_of
from planner.physics.layers import Shape
from planner.physics.training.hardware import HardwareColumns, hardware_of
from planner.physics.training.preference import Sample, headed, longest_of
from planner.physics.training.tuning import LANGUAGE, STILL, Tuning, in_32_bits, tuning_of

SUPERVISED = Sample()
FULL_WIDTH = frozenset({"fp32", "tf32"})
"""Formats whose tensors have 32 bits; tf32 rounds them inside the product only."""


@dataclass(frozen=True, eq=False)
class Question:
    """Inputs shared by all rows of a table. `rates` pairs with `candidates`; `confidence` decides what fits."""

    shape: Shape
    sequence_length: int
    global_batch: int
    candidates: tuple[Candidate, ...]
    rates: tuple[ArchitectureRates, ...]
    precisions: tuple[str, ...]
    stack: Stack
    kernels: KernelShape
    collectives: Collectives
    recipes: Recipes
    tuning: Tuning
    sample: Sample
    longest: int
    """Tokens of the longest sequence, which memory has to hold."""
    memory_residuals: tuple[Residual, Residual]
    """Measured over predicted device memory, without and with a split model."""
    memory_margins: tuple[float, float]
    """Measured over predicted device memory at the asked confidence, without and with a split model; what is above 1
    is held in reserve."""
    memory_least: tuple[float, float]
    """Measured over predicted that the same confidence puts below; a prediction too large even so does not fit."""
    seen: tuple[TowerWork, ...] = ()
    """What encoders do for a sequence; empty for text."""
    trains: frozenset[Trained] = LANGUAGE
    """What of a model with encoders trains."""
    predictions: int = 0
    """Modules that predict further tokens and train beside the model, each with its joining matrix, layers and head."""
    prediction_layers: int = 0
    """Layers of all of them, each taken as a mean one."""
    attended: int | None = None
    """Tokens of a packed sample beyond which none attends; none where all of a sequence do."""

    def learned(self, part: TowerWork) -> int:
        """Return the parameters of a tower that train."""
        encoder = part.tower.encoder
        projector = encoder.projector if encoder else 0
        return ("projector" in self.trains) * projector + ("encoder" in self.trains) * (
            part.tower.parameters - projector)

    @cached_property
    def hardware(self) -> HardwareColumns:
        """Facts of the candidates as columns."""
        return hardware_of(self.candidates, self.rates)

    @cached_property
    def alike(self) -> Ints:
        """Of each candidate the first one whose hardware is the same, as of another offer."""
        first: dict[tuple[str, str], list[int]] = {}
        found = np.arange(len(self.candidates))
        for at, one in enumerate(self.candidates):
            same = first.setdefault((one.node.name, one.fabric.name), [])
            twin = next((other for other in same if self.candidates[other] == one
                         and self.rates[other] == self.rates[at]), at)
            found[at] = twin
            same += [twin] if twin == at else []
        return found

    @property
    def bare(self) -> Question:
        """The question with its adapters off."""
        return replace(self, tuning=replace(self.tuning, adapter_rank=0)) if self.tuning.adapter_rank else self

    @property
    def at_longest(self) -> Question:
        """The question at its longest sequences."""
        return self if self.longest == self.sequence_length else replace(self, sequence_length=self.longest)

    @property
    def sample_length(self) -> int:
        """Tokens of a sample, of all its sequences."""
        return self.sample.sequences * self.sequence_length

    def tokens(self, rows: Layouts) -> Floats:
        """Return the tokens of a micro-batch on a GPU of each row: of a sample all that train, and their padding to the
        longest of a micro-batch. That ranks wait for the longest of theirs is not counted.
        """
        plain: Floats = rows.micro_batch * self.sample_length / rows.cp
        most = self.longest / self.sequence_length
        if not self.sample.spread or most <= 1:
            return plain
        sizes, place = np.unique(rows.micro_batch, return_inverse=True)
        padded = [min(1 + self.sample.spread * longest_of(size), most) for size in sizes.tolist()]
        with_padding: Floats = plain * np.array(padded)[place]
        return with_padding

    def memory_margin(self, rows: Layouts) -> Floats:
        """Return the margin of each row, by whether tensor or pipeline parallelism splits its model."""
        return np.array(self.memory_margins)[splits_model(rows).astype(np.int64)]

    @cached_property
    def memory(self) -> float:
        """Positions of a sequence that cross attention reads."""
        return float(sum(part.memory for part in self.seen))

    def memory_positions(self, rows: Layouts) -> Floats:
        """Return the same of a micro-batch on a GPU, whole on every rank of context parallelism."""
        positions: Floats = rows.micro_batch.astype(np.float64) * (self.sample.sequences * self.memory)
        return positions

    @property
    def adapted(self) -> float:
        """Matrices with an adapter in a mean layer."""
        return sum(share * sum(self.tuning.adapted(linear)[0] for linear in kind.linears)
                   for kind, share in self.shape.kinds)

    @property
    def loss_bytes_per_logit(self) -> float:
        """Bytes that the loss holds of each logit, those of a reference included."""
        stack, method = self.stack, self.sample.preference
        each = stack.preference.loss_bytes_per_logit if stack.preference else {}
        own = each.get(method, stack.loss_bytes_per_logit)  # type: ignore[call-overload]
        # a loss that makes no logits of the policy makes none of the reference
        return own + self.sample.reference_logit if own else 0.0

    @property
    def launch(self) -> float:
        """Seconds of host time to launch the kernels of a mean layer, forward and backward, and in passes besides."""
        besides = 1 + self.sample.forwards / self.kernels.launches_per_forward
        kernels = sum(share * kind.portion for kind, share in self.shape.kinds)
        return (self.stack.launch_layer * kernels + self.stack.launch_adapter * self.adapted) * besides

    @property
    def units(self) -> float:
        """Times that ZeRO-3 gathers or reduces a unit of a mean layer: each twice, and once more where it trains."""
        matrices = sum(share * sum(len(linear.modules) for linear in kind.linears)
                       for kind, share in self.shape.kinds)
        base = matrices if self.stack.gathers_matrices else 1.0
        return (3 + self.sample.forwards if self.tuning.trains_base else 2 + self.sample.forwards
                ) * base + 3 * 2 * self.adapted

    def element_bytes(self, precision: Ints) -> Floats | float:
        """Return bytes of an activation for each row of a precision column: 4 in fp32 and tf32, else 2."""
        if not FULL_WIDTH.intersection(self.precisions):
            return 2.0
        width: Floats = np.array([4.0 if p in FULL_WIDTH else 2.0 for p in self.precisions])[precision]
        return width

    def kept_bytes(self, precision: Ints) -> Floats | float:
        """Return the same of what feed-forwards keep for backward."""
        if not self.stack.kept_inputs:
            return self.element_bytes(precision)
        stated: dict[str, float] = {str(name): held for name, held in self.stack.kept_inputs.items()}
        kept: Floats = np.array([stated.get(p, 2.0) for p in self.precisions])[precision]
        return kept

    def input_bytes(self, precision: Ints) -> Floats:
        """Return bytes of an element of a matrix product's input as it is kept for backward."""
        stated: dict[str, float] = {str(name): held for name, held in self.stack.saved_inputs.items()}
        wide = [4.0 if p in FULL_WIDTH else 2.0 for p in self.precisions]
        kept: Floats = np.array([stated.get(p, w) for p, w in zip(self.precisions, wide, strict=True)])[precision]
        return kept

    def matrix_rate(self, candidate: int, precision: str) -> float:
        """Return FLOP/s of large matrix products on a candidate in `precision`."""
        gpu, rates = self.candidates[candidate].gpu, self.rates[candidate]
        peak = self.peak_rate(candidate, precision)
        efficiency = gpu.gemm_efficiency.get(precision) or rates.gemm.get(precision)  # type: ignore[call-overload]
        if efficiency is None:
            raise MissingFact(f"calibration {rates.name}", f"gemm efficiency for {precision}")
        share = rates.kept(precision) * self.stack.matrix_rate.get(precision, 1.0)  # type: ignore[call-overload]
        return float(peak * min(1.0, efficiency * share))

    def peak_rate(self, candidate: int, precision: str) -> float:
        """Return the datasheet's dense FLOP/s, which MFU is measured against."""
        gpu = self.candidates[candidate].gpu
        peak = gpu.peak.get(precision)  # type: ignore[call-overload]
        if peak is None:
            raise MissingFact(f"GPU {gpu.name}", f"{precision} peak rate")
        return float(peak)


def splits_model(rows: Layouts) -> Mask:
    """Say of each row whether tensor or pipeline parallelism splits the model."""
    split: Mask = (rows.tp > 1) | (rows.pp > 1)
    return split


def quantile(residual: Residual, confidence: float) -> float:
    """Return measured over predicted at `confidence`, interpolated between the stored quantiles."""
    points = [(0.05, residual.q05), (0.10, residual.q10), (0.50, residual.q50), (0.90, residual.q90),
              (0.95, residual.q95)]
    for (low, at_low), (high, at_high) in pairwise(points):
        if confidence <= high:
            share = (max(confidence, low) - low) / (high - low)
            return at_low + share * (at_high - at_low)
    # beyond the last quantile the tail goes on at the slope of the last step
    (low, at_low), (high, at_high) = points[-2:]
    return at_high + (confidence - high) / (high - low) * (at_high - at_low)


def question_of(catalog: Catalog, model: Model, candidates: tuple[Candidate, ...], stack: Stack, *,
                sequence_length: int, global_batch: int, precisions: tuple[str, ...], method: str,
                confidence: float, lora_rank: int = 16, trained_layers: int | None = None,
                adapted: Collection[str] = (), tuning: Tuning | None = None, sample: Sample = SUPERVISED,
                longest: int | None = None, seen: tuple[TowerWork, ...] = (),
                trains: Collection[Trained] = LANGUAGE) -> Question:
    """Gather the facts of a question from the catalog. Raises Unsupported, UnknownName or MissingFact.

    method: what trains. tuning: what is known of it beyond its name and rank, as evidence rows state it.
    sample: what a step does with one, where it is not supervised; longest: tokens of the longest sequence, where
    sequence_length is the mean. seen: what encoders do for a sequence; trains: what of such a model trains, the
    language model by the method.
    """
    if not {"language"} & set(trains):
        tuning = STILL
    residuals = [catalog.memory_residuals.at(memory_traits(stack, method, model, split=split),
                                             {"tokens": float(longest or sequence_length)}, media=bool(seen))
                 for split in (False, True)]
    shape = headed(shape_of(model, stack.fused), sample)
    if any(kind.indexer for kind, _ in (*shape.kinds, *shape.lead)):
        raise Unsupported(f"model {model.name}: sparse attention with an indexer in training physics")
    if model.encodes and method not in stack.encoders:
        able = [one.name for one in catalog.all("stacks", Stack) if method in one.encoders]
        raise Unsupported(f"method {method} of model {model.name} on stack {stack.name}: it trains no encoders so; "
                          f"these do: {', '.join(able)}")
    if model.attends_to is not None and model.attends_to not in stack.crosses:
        able = [one.name for one in catalog.all("stacks", Stack) if model.attends_to in one.crosses]
        raise Unsupported(f"model {model.name} on stack {stack.name}: it trains no layers that attend to "
                          f"{model.attends_to}; these do: {', '.join(able)}")
    if model.attends_to == "sound" and not seen:
        raise Unsupported(f"model {model.name} writes what it hears, and no sound is given: it cannot be trained so")
    if shape.experts and stack.experts is None:
        raise Unsupported(f"model {model.name} on stack {stack.name}: the stack has no mixture of experts")
    tuning = in_32_bits(tuning or tuning_of(catalog.recipes, stack, method, lora_rank, trained_layers, adapted),
                        precisions)
    if shape.experts and tuning.quantized and not stack.quantizes_experts:
        raise Unsupported(f"QLoRA of model {model.name} on stack {stack.name}: it quantizes linear layers alone, and "
                          "experts stay in 16 bits")
    return Question(
        shape=shape, sequence_length=sequence_length, global_batch=global_batch, candidates=candidates,
        rates=tuple(catalog.rates(c.gpu.architecture) for c in candidates), precisions=precisions, stack=stack,
        kernels=catalog.kernels, collectives=catalog.collectives, recipes=catalog.recipes,
        tuning=tuning, sample=sample, longest=max(longest or 0, sequence_length),
        memory_residuals=(residuals[0], residuals[1]),
        memory_margins=(max(1.0, quantile(residuals[0], confidence)), max(1.0, quantile(residuals[1], confidence))),
        memory_least=(min(1.0, quantile(residuals[0], 1 - confidence)),
                      min(1.0, quantile(residuals[1], 1 - confidence))), seen=seen, trains=frozenset(trains))


def computes(candidate: Candidate, rates: ArchitectureRates, precision: str) -> bool:
    """Say whether the catalog has both the peak and the efficiency of a precision on this hardware."""
    return precision in candidate.gpu.peak and (precision in candidate.gpu.gemm_efficiency or precision in rates.gemm)
