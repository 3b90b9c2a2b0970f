"""Pipeline schedules: what stays in flight and what stays idle, by the tables of their papers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from planner.layouts.axes import SCHEDULES
from planner.layouts.table import from_rows
from planner.physics.training.evaluate import Evaluation, evaluate_fixed
from planner.physics.training.question import question_of
from planner.physics.training.schedule import (
    DUALPIPE,
    bubble_parts,
    even_layers,
    fixed_layers,
    in_flight_chunks,
    uneven_waits,
)
from tests.search_cases import candidate, catalog

ORDER = {name: place for place, name in enumerate(SCHEDULES)}


@pytest.mark.parametrize(("schedule", "first", "last"), [
    ("1f1b", 8, 1), ("gpipe", 32, 32), ("zero-bubble", 8, 8), ("dualpipe", 9, 9)])
def test_micro_batches_in_flight_on_eight_stages(schedule: str, first: int, last: int) -> None:
    """GPipe (arXiv 1811.06965), 1F1B (2104.04473), ZB-H1 (2401.10241); DeepSeek-V3's table 2: PP + 1 for DualPipe."""
    held = [int(in_flight_chunks(8, 1, 32, stage, ORDER[schedule])) for stage in (0, 7)]
    assert held == [first, last]


def test_a_table_of_schedules_is_each_row_alone() -> None:
    orders = np.arange(len(SCHEDULES))
    table = in_flight_chunks(np.full(4, 4), np.ones(4, np.int64), np.full(4, 16), 1, orders)
    assert table.tolist() == [int(in_flight_chunks(4, 1, 16, 1, int(order))) for order in orders]
    assert bubble_parts(np.array([5, 1, 1, 1]), orders).tolist() == [5, 1, 3, 3]


def run(stack: str, schedule: str, **row: int) -> Evaluation:
    model = catalog().model("llama-3.1-8b")
    question = question_of(catalog(), model, (candidate("dgx-h100"),), catalog().stack(stack), sequence_length=8192,
                           global_batch=64, precisions=("bf16",), method="pretrain", confidence=0.95)
    table = from_rows([{"pp": 4, "dp": 2, "zero": 1, "schedule": ORDER[schedule], **row}], 64)
    return evaluate_fixed(question, table, 0)


def test_zero_bubble_is_faster_and_gpipe_holds_every_micro_batch() -> None:
    plain, filled, gpipe = (run("fsdp2", name, zero=2) for name in ("1f1b", "zero-bubble", "gpipe"))
    assert filled.step.components["pipeline_bubble"] == pytest.approx(plain.step.components["pipeline_bubble"] / 3)
    assert gpipe.step.seconds == plain.step.seconds
    kept = [e.memory.components["activations"] for e in (plain, gpipe)]
    assert kept[1] > 4 * kept[0]


def test_dualpipe_holds_two_stages_and_shares_their_optimizer() -> None:
    """DeepSeek-V3, table 2: twice the parameters, PP + 1 micro-batches in flight."""
    plain, dual = (run("hai-llm", name).memory.components for name in ("1f1b", "dualpipe"))
    layers = plain["weights"] - 2 * 128256 * 4096
    assert dual["weights"] == pytest.approx(2 * layers + 2 * 2 * 128256 * 4096, rel=1e-3)
    assert dual["optimizer"] > plain["optimizer"]
    assert dual["optimizer"] < 1.5 * plain["optimizer"]
    assert dual["activations"] > plain["activations"]


@pytest.mark.parametrize(("layers", "stages", "held"), [
    (58, 16, [2] + [3] + [4] * 12 + [3] + [2]), (58, 4, [14, 15, 15, 14]), (32, 8, [4] * 8)])
def test_dualpipe_splits_alike_from_both_ends(layers: int, stages: int, held: list[int]) -> None:
    """DeepSeek-V3's 58 mixture layers over 16 stages: a rank holds a stage and the one as far from the other end."""
    found = even_layers(layers, stages, DUALPIPE).tolist()
    assert found == held
    assert sum(found) == layers
    assert found == found[::-1]


def test_stages_wait_where_chunks_are_unlike() -> None:
    for layers, stages, chunks in product((58, 60, 80, 94), (2, 4, 8), (1, 2, 4, 5)):
        waits = float(uneven_waits(layers, *(np.array([n]) for n in (stages, chunks, 3 * stages)))[0])
        alike = int(fixed_layers(layers, stages).max()) % chunks == 0
        assert waits == (0 if alike else 3 * (stages - 1))
