"""Measured columns are never inputs: exchanging them among rows leaves every prediction as it was."""

import random

import pytest

from tests.evidence_tests.csv_file import rows_of, validated, write

MEASURED = ("tokens_per_s_per_gpu", "step_time_s", "tflops_per_gpu", "mfu", "peak_mem_gib")


@pytest.mark.parametrize("name", ["train_throughput", "train_memory", "moe_training", "finetune_throughput"])
def test_predictions_do_not_change_when_measurements_do(tmp_path, name):
    rows = rows_of(name)[::7 if name != "moe_training" else 1]
    before = predictions(write(tmp_path / "before.csv", *rows))
    columns = [c for c in (*MEASURED, "fits") if c in rows[0]]
    mixed = [dict(row) for row in rows]
    for column in columns:
        values = [row[column] for row in rows]
        random.Random(7).shuffle(values)
        for row, value in zip(mixed, values, strict=True):
            row[column] = value
    after = predictions(write(tmp_path / "after.csv", *mixed))
    both = before.keys() & after.keys()
    assert len(both) > 15
    assert {key: before[key] for key in both} == {key: after[key] for key in both}


def predictions(path):
    rows = validated(path)["rows"]
    return {(row["id"], row["quantity"]): (row["predicted"], row["assumed"]) for row in rows}
