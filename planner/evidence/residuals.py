"""Samples of measured over predicted, with the traits and sizes by which questions find the rows that are like them.

Rows that leave something important open tell what that costs, and count in no class; where no row of a file says what
it leaves open, all count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from planner.catalog.first import First
from planner.catalog.quirk import Sources
from planner.evidence.compare import EvidenceComparison, PredictedRow, kind_of
from planner.evidence.degrees import FULL_LENGTH
from planner.evidence.serve_run import UNKNOWN_ENGINE, measured_by
from planner.evidence.spread import LogRatio

DECIDING = ("seq_len=", "micro_batch=", "zero=", "shard=", "recompute=", "lora_rank=", "base_quantization=",
            "optimizer=", "stack=", "grad_accum=")
"""What decides memory and may have been assumed."""
STEP_OF = {"output_tok_s_per_gpu": "tpot_ms", "tpot_ms": "output_tok_s_per_gpu"}
"""Quantity -> the one that is as far off, to the other side."""
LEAST_ROWS, OWN_ROWS = 12, 4
"""Rows below which a file decides no interval: of many sources, and of one cluster under the law of those."""


def step_samples(outcomes: Sequence[PredictedRow]) -> list[tuple[str, LogRatio]]:
    """Return the id and the sample of step time of every row with a measured one."""
    some = any(outcome.row.stated for outcome in outcomes)
    return [(outcome.row.id, LogRatio(
        outcome.row.prefix, _group(outcome, outcome.row.prefix), outcome.prediction.step_traits,
        outcome.prediction.sizes, some and not outcome.row.stated,
        math.log(seconds / outcome.prediction.evaluation.step.seconds)))
        for outcome in outcomes if (seconds := outcome.measured_seconds) is not None]


def memory_samples(outcomes: Iterable[PredictedRow], said: Sources) -> list[tuple[str, LogRatio]]:
    """Return the id and the sample of peak memory of every row that ran; repeated readings count once.

    Files that read the same page are one source. Where only the cap of the sample lengths is known the need is not,
    so such rows leave it open.
    """
    held, samples = list(outcomes), dict[tuple[object, ...], tuple[str, LogRatio]]()
    some = any(outcome.row.stated for outcome in held)
    for outcome in held:
        measured, prediction = outcome.row.measured, outcome.prediction
        if measured.needed_gib is not None:
            is_open = _leaves_open(outcome, some)
            log = math.log(measured.needed_gib / prediction.memory_gib(kind_of(measured, prediction)))
            traits = prediction.memory_traits
            page = said.word("page", outcome.row.run) or outcome.row.prefix
            samples.setdefault((*traits.values(), log), (outcome.row.id, LogRatio(
                page, _group(outcome, page), traits, prediction.sizes, is_open, log, prediction.guessed,
                prediction.memory_parts)))
    return list(samples.values())


def _leaves_open(outcome: PredictedRow, some: bool) -> bool:
    """Say whether something that decides memory had to be assumed; other files' `stated` is of what decides speed."""
    row, assumed = outcome.row, outcome.prediction.assumed
    unstated = some and not row.stated if row.measured.mem_kind is not None else any(a.startswith(DECIDING)
                                                                                    for a in assumed)
    return unstated or any(a.startswith(FULL_LENGTH) for a in assumed)


def speed_samples(comparison: EvidenceComparison, quantity: str, said: Sources) -> list[tuple[str, float, LogRatio]]:
    """Return of every row with a figure of serving speed the key of that figure, its sign, and its sample.

    Both output and TPOT are of the step: where a row lacks one the other stands for it, of the opposite sign, but
    where limits of latency decide the rate. Rows of an experiment tell nothing of what others run, and those whose
    engine nobody states nothing of what that engine does.
    """
    by_id = {row.id: (row, speed) for row, speed in comparison.speeds}
    entries = {(entry.id, entry.quantity): entry for entry in comparison.served}
    some = any(UNKNOWN_ENGINE not in speed.row.assumed for _, speed in comparison.speeds)
    samples = []
    for name, (row, speed) in by_id.items():
        other = None if speed.row.limits else STEP_OF.get(quantity)
        held, sign = entries.get((name, quantity)), 1.0
        if held is None and other is not None:
            held, sign = entries.get((name, other)), -1.0
        if held is not None and not speed.row.experimental:
            source = measured_by(row, said)
            samples.append((f"{name} {held.quantity}", sign, LogRatio(
                source, f"{source} {row.run.model} {row.run.gpu}", speed.traits, {},
                some and UNKNOWN_ENGINE in speed.row.assumed,
                sign * math.log(float(held.measured) / float(held.predicted)))))
    return samples


def as_first(firsts: Mapping[str, First], signed: Sequence[tuple[str, float, LogRatio]]
             ) -> list[tuple[str, float, LogRatio]]:
    """Return samples with what their rows were predicted to be as they came in; others of a source came with them."""
    known = [firsts.get(key.split()[0]) for key, *_ in signed]
    began: dict[str, int] = {}
    for first, (*_, sample) in zip(known, signed, strict=True):
        if first is not None:
            began[sample.source] = min(first.since, began.get(sample.source, first.since))
    return [(key, sign, replace(sample, since=began.get(sample.source, 0)) if first is None else
             replace(sample, first=math.log(first.over), since=first.since,
                     first_parts=first.parts(sample.parts)))
            for first, (key, sign, sample) in zip(known, signed, strict=True)]


def _group(outcome: PredictedRow, source: str) -> str:
    return f"{source} {outcome.row.run.model} {outcome.prediction.gpu}"
