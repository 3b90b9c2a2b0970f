"""What the search of a training job looks up: the space of its layouts, and what legality rules read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.stack import Stack
from planner.jobs.market import Market
from planner.layouts.axes import SCHEDULES, Space, domain
from planner.layouts.candidate import Candidate
from planner.layouts.rules import SPLIT_BY, Facts, split_code
from planner.layouts.table import Ints, from_columns
from planner.money.rent import RentalOffer, with_storage
from planner.physics.encoders import TowerWork, parts_of
from planner.physics.training.estimate import faster_whole
from planner.physics.training.preference import sample_of
from planner.physics.training.question import Question, computes, question_of
from planner.physics.training.recipes import Recipe, with_recipe
from planner.physics.training.tuning import LANGUAGE, tuning_of
from planner.scenario.batch import Batch
from planner.scenario.limits import Limits, Objective
from planner.scenario.media import media_of
from planner.scenario.usual import refuse_stack, usual
from planner.scenario.workload import Training

MOST_GPUS = 131_072
"""Largest cluster searched where no limit is given; printed with the domains."""
MOST_HOLDING = 1024
"""The same where the question is only what holds the model."""

STEPS = 1000
"""Of the global batch, over which speeds compare where no amount of work is given."""


def is_timed(asked: Training, objective: Objective) -> bool:
    """Say whether time counts: where there is nothing to train, nothing but the number of GPUs does."""
    return asked.tokens is not None or objective == "time"


def facts_of(question: Question, model: Model, asked: Training, batch: Batch, limits: Limits, *,
             timed: bool = True) -> Facts:
    """Return the space of a job's layouts, and what rules look up; timed: whether time counts."""
    stack, candidates = question.stack, question.candidates
    space = Space(model, candidates, asked.precision, question.longest, batch.sequences,
                  most_gpus(asked, limits), batch.tolerance, hybrid_shard=stack.hybrid_shard,
                  expert_tp=(0, 1) if stack.expert_tp else (0,),
                  no_sync=stack.accumulation, schedules=tuple(SCHEDULES.index(name) for name in stack.schedules))
    # without sequence parallelism no layout holds less
    whole = _whole_sequences(question, space) if timed else np.zeros(0, np.int64)
    space = replace(space, sequence_parallel=(1, 0) if len(whole) else (1,))
    return Facts(space=space, stack=stack, node_gpus=np.array([c.node.gpus for c in candidates]),
                  clustered=np.array([c.clustered for c in candidates]),
                  precisions=np.array([[computes(c, r, p) and not (
                      # as fast and as large as bf16 where a GPU has both
                      p == "fp16" and "bf16" in asked.precision and computes(c, r, "bf16")) for p in asked.precision]
                                       for c, r in zip(candidates, question.rates, strict=True)]),
                  fixed_gpus=limits.gpus, max_nodes=limits.max_nodes, partial_nodes=asked.tokens is None,
                  whole_sequences=whole, frozen_layers=asked.trained_layers is not None,
                  steps_in_backward=asked.optimizer_in_backward)


def seen_of(asked: Training, model: Model) -> tuple[TowerWork, ...]:
    """Return what encoders do for a sequence: images and sound of the samples in it; nothing for text."""
    if (media := media_of(asked)) is None:
        return ()
    many = asked.samples_per_sequence or 1.0
    parts = parts_of(model, media.images, media.size, media.frames, media.sound)
    return tuple(replace(part, pictures=many * part.pictures, tokens=many * part.tokens, memory=many * part.memory)
                 for part in parts)


def most_gpus(asked: Training, limits: Limits) -> int:
    """Return the most GPUs that are searched."""
    given = [count for count in (limits.max_gpus, limits.gpus) if count is not None]
    return min(given, default=MOST_HOLDING if asked.tokens is None else MOST_GPUS)


def stored(market: Market, tokens: int, saved: float) -> Market:
    """Return the market with storage for the job's data and checkpoints, where nodes are bought."""
    def held(offers: Sequence[RentalOffer]) -> tuple[RentalOffer, ...]:
        return tuple(with_storage(offer, tokens, saved) for offer in offers)

    return replace(market, offers=held(market.offers), every_offer=held(market.every_offer))


def _whole_sequences(question: Question, space: Space) -> Ints:
    """Return the codes of what decides about sequence parallelism, where a layer is faster without."""
    if not question.stack.sequence_parallel:
        return np.zeros(0, np.int64)
    names = (*SPLIT_BY, "ep")
    values = {name: np.array(domain(name, space), np.int64) for name in names}
    every, alike = values["candidate"], question.alike
    values["candidate"] = np.unique(alike[every])
    columns = dict(zip(names, (value.ravel() for value in np.meshgrid(*values.values(), indexing="ij")), strict=True))
    keep = (columns["tp"] > 1) & (np.array([c.node.gpus for c in space.candidates])[columns["candidate"]]
                                  % columns["tp"] == 0)
    if not keep.any():
        return np.zeros(0, np.int64)
    columns = {name: column[keep] for name, column in columns.items()}
    table = from_columns(columns | {"dp": columns["ep"]}, space.global_batch)
    rows = np.flatnonzero(faster_whole(question, table))
    faster = {name: columns[name][rows] for name in SPLIT_BY}
    # what hardware decides holds for every offer of it
    mine, row = np.nonzero(alike[every][:, None] == faster["candidate"])
    return split_code({name: column[row] for name, column in faster.items()} | {"candidate": every[mine]})


def processed(work: Training, sample_length: int, global_batch: int = 1) -> int:
    """Return the tokens that a job trains on, without padding.

    Where none are given, those of some steps, so that speeds compare at batches within a tolerance.
    """
    return work.tokens or STEPS * sample_length * global_batch


def preferred(asked: Training, question: Question) -> dict[str, object]:
    """Return what an assignment says of a job that trains on preferences; nothing of another."""
    return {} if asked.preference is None else {
        "sequences_per_sample": question.sample.sequences, "tuning": asked.trains, "reference": asked.held_reference}


def length_of(asked: Training, longest: int) -> int:
    """Return the tokens of a sequence that speed goes by: samples are padded to those of their micro-batch alone."""
    return min(asked.mean_length or longest, longest)


def batch_of(asked: Training, catalog: Catalog) -> Batch:
    """Return the samples of a step that are asked for, or usual; one of what is only held."""
    method = asked.method or "pretrain"
    typical = usual(catalog.model(asked.model), method, catalog.recipes)
    each = catalog.recipes.sequences(asked.preference)
    return Batch(1) if method == "inference" else (asked.global_batch or typical.global_batch).of(
        each * (asked.sequence_length or typical.sequence_length))


def asked_physics(asked: Training, catalog: Catalog, candidates: tuple[Candidate, ...], stack: Stack,
                  confidence: float, batch: int) -> Question:
    """Return the physical question that a training job asks by one stack, of so many samples a step.

    Raises Unsupported where the stack does not train so.
    """
    if asked.preference:
        refuse_stack(asked, stack, catalog)
    model, method = catalog.model(asked.model), asked.method or "pretrain"
    typical = usual(model, method, catalog.recipes)
    longest = asked.sequence_length or typical.sequence_length
    padded = not (stack.preference and stack.preference.padding_free)
    sample = sample_of(catalog.recipes.preference, method, asked.held_reference, asked.epochs or 1.0, padded=padded)
    if model.is_silent and not asked.preference:
        sample = replace(sample, scores=method != "pretrain")
    if asked.mean_length is not None and not asked.preference:
        sample = replace(sample, spread=catalog.recipes.tuning.spread)
    stack = with_recipe(catalog.recipes, stack, model, Recipe(asked.optimizer, asked.optimizer_in_backward, asked.loss))
    return question_of(
        catalog, model, candidates, stack, sequence_length=length_of(asked, longest), longest=longest, sample=sample,
        global_batch=batch, precisions=asked.precision, method=method, confidence=confidence,
        tuning=tuning_of(catalog.recipes, stack, asked.trains, asked.rank, asked.trained_layers, asked.lora_targets,
                         asked.optimizer),
        seen=seen_of(asked, model), trains=asked.trained_parts or LANGUAGE)
