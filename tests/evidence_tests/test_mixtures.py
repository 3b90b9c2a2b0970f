"""Ablations of a mixture by layout, recompute and dispatch: a source that no constant was fitted on."""

import numpy as np
import pytest

from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence
from tests.evidence_tests.csv_file import DATA, catalog, rows_of, write


@pytest.fixture(scope="module")
def outcomes():
    found = compare(read_evidence(DATA / "moe_training.csv"), catalog())
    assert {reason for _, reason in found.skipped} == {
        "a capacity that pads or drops tokens of experts is not modeled",
        "model see page section is not in the catalog and its shape is not stated (layers, hidden, heads)"}
    return {outcome.row.id: outcome for outcome in found.outcomes}


def seconds(outcome):
    return outcome.prediction.evaluation.step.seconds


def test_speeds_of_an_unseen_source_are_near(outcomes):
    errors = [abs(seconds(o) / o.measured_seconds - 1) for o in outcomes.values()]
    assert np.median(errors) < 0.12
    assert max(errors) < 0.25


def test_deepep_saves_what_it_saved(outcomes):
    """The same layout, 32 experts' ranks over nodes: each token eight times over the network, or once a node."""
    plain, once = outcomes["xt-116"], outcomes["xt-117"]
    assert plain.measured_seconds / once.measured_seconds == pytest.approx(1.375, abs=0.01)
    assert 1.2 < seconds(plain) / seconds(once) < 1.5


def test_recompute_of_experts_fits_what_ran(outcomes):
    """125 chunks of a layer in flight on the second of 32 stages, first of three layers; all but experts kept."""
    found = outcomes["xt-225"].prediction
    held = found.evaluation.memory
    per_token = 2 * (4 * 4096 + 2 * 8192 + 2 * 512 + 8192 + 512) + 4 * 64
    chunks = 2 * 30 + 2 * 32 + 1
    # and the one layer at work, of which eight experts keep more than the rest
    assert held.components["activations"] == pytest.approx(chunks * 4096 * per_token, rel=0.06)
    # it ran: at the asked confidence it may be tight, but what is expected fits
    assert found.fits != "does not fit"
    assert held.device <= held.usable


def test_recipes_that_predict_further_tokens_or_keep_layers_in_16_bits_are_slower(tmp_path):
    """Nemotron 3 Super in Megatron-Bridge: two further tokens, and of NVFP4 the ends and some projections in BF16."""
    row = next(r for r in rows_of("train_throughput") if r["id"] == "MB-016")
    took = {}
    for name, change in {"recipe": {}, "without": {"notes": "w/o MTP"}, "fp8": {"precision": "fp8", "notes": "MXFP8"}
                         }.items():
        (found,) = compare(read_evidence(write(tmp_path / f"{name}.csv", row | change)), catalog()).outcomes
        took[name] = seconds(found)
    # two of 40 layers with experts, two of 8 with attention, and three heads in place of one
    assert 1.05 < took["recipe"] / took["without"] < 1.25
    assert took["fp8"] / took["recipe"] == pytest.approx(7168 / 7040, rel=0.06)
