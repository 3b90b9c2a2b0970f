"""`planner calibrate`: planted constants are found, what rows do not decide stays, and the folder takes effect."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.errors import InputError
from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence
from planner.fit.write import save

COLUMNS = ("id", "source", "framework", "model", "gpu", "gpus", "gpus_per_node", "scaleout", "seq_len",
           "global_batch_seqs", "micro_batch", "tp", "pp", "vpp", "cp", "ep", "dp", "sharding", "recompute",
           "precision", "tokens_per_s_per_gpu", "stated")
RUNS = [("llama-3.1-8b", 8, 1, 1, 2), ("llama-3.1-8b", 32, 2, 1, 1), ("llama-3.1-70b", 64, 4, 4, 1),
        ("llama-3.1-70b", 128, 8, 2, 1), ("llama-2-13b", 16, 2, 1, 2), ("llama-2-7b", 8, 1, 1, 4),
        ("llama-3.1-8b", 64, 1, 2, 1), ("qwen2.5-32b", 64, 4, 2, 1), ("llama-2-70b", 64, 8, 2, 1),
        ("qwen2.5-14b", 32, 2, 2, 1), ("llama-3.1-8b", 16, 4, 1, 1), ("llama-2-13b", 32, 4, 1, 1)]
"""Model, GPUs, TP, PP and micro-batch of runs that one cluster may have made."""


def cluster(folder: Path, truth: Catalog | None) -> Path:
    """Write twelve runs as a cluster with the constants of `truth` would measure them; at 1 token/s without one."""
    path = folder / "runs.csv"
    rows = []
    for number, (model, gpus, tp, pp, micro) in enumerate(RUNS):
        dp = gpus // (tp * pp)
        values = (f"my-{number}", "my cluster", "Megatron-LM (mcore 0.14)", model, "h100-sxm", gpus, 8,
                  "IB NDR 8x400Gb", 4096, 16 * dp * micro, micro, tp, pp, 1, 1, "", dp, "distopt", "none", "bf16",
                  1.0, "")
        rows.append(dict(zip(COLUMNS, map(str, values), strict=True)))
    _write(path, rows)
    if truth is not None:
        speeds = {o.row.id: o.prediction.evaluation.tokens_per_second_per_gpu
                  for o in compare(read_evidence(path), truth).outcomes}
        assert len(speeds) == len(RUNS)
        _write(path, [row | {"tokens_per_s_per_gpu": f"{speeds[row['id']]:.1f}"} for row in rows])
    return path


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def errors(path: Path, *folders: Path) -> np.ndarray:
    outcomes = compare(read_evidence(path), Catalog(folders)).outcomes
    return np.array([abs(o.entries[0].error) for o in outcomes])


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the runs of a cluster 15% slower in products and twice so in elementwise work, and the folder of what was
    learnt from them.
    """
    folder = tmp_path_factory.mktemp("slower")
    truth = Catalog().changed({("calibration", "gpu-hopper"): {"sustained.bf16": 0.80},
                               ("stacks", "megatron-core"): {"elementwise": 2.4, "step_overhead": 0.08}})
    runs, mine = cluster(folder, truth), folder / "mine"
    assert main(["calibrate", str(runs), "-o", str(mine), "--as-of", "2026-11", "-q"]) == 0
    return runs, mine


def test_a_dozen_runs_of_another_cluster_are_learnt(learnt: tuple[Path, Path]) -> None:
    """The target is 6% and 20%."""
    runs, mine = learnt
    assert np.median(errors(runs)) > 0.10
    after = errors(runs, mine)
    assert np.median(after) < 0.03
    assert np.percentile(after, 90) < 0.06


def test_what_the_runs_do_not_decide_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = cluster(tmp_path, Catalog())
    assert main(["calibrate", str(runs), "-o", str(tmp_path / "mine"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "planner.calibration/1"
    assert found["errors"]["after"]["median_abs_error"] < 0.01
    for constant in found["constants"]:
        moved = abs(np.log(constant["value"] / constant["prior"]))
        assert constant["fitted"] or not moved
        assert moved < 0.25 * constant["prior_spread"] + 0.02, constant  # the truth is the prior
    assert not any("fp4" in c["field"] or "blackwell" in c["entry"] for c in found["constants"])


def test_the_folder_takes_effect_and_says_where_from(learnt: tuple[Path, Path],
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    _, mine = learnt
    catalog = Catalog([mine])
    stack, bridge = catalog.stack("megatron-core"), catalog.stack("megatron-bridge")
    assert stack.elementwise > 1.1 * Catalog().stack("megatron-core").elementwise
    assert bridge.elementwise == stack.elementwise  # it is like megatron-core, and states no figure of its own
    fact = stack.provenance("elementwise")
    assert (fact.kind, "12 runs of runs.csv" in fact.source) == ("fitted", True)
    assert catalog.digest != Catalog().digest
    ask = ["estimate", "--model", "llama-3.1-8b", "--node", "dgx-h100", "--layout", "tp=2,dp=4", "--json"]
    steps = []
    for folders in ([], ["--catalogs", str(mine)]):
        capsys.readouterr()
        assert main([*ask, *folders]) == 0
        steps.append(json.loads(capsys.readouterr().out)["time"]["step_seconds"])
    assert steps[1] > 1.1 * steps[0]


def test_the_same_runs_give_the_same_bytes(learnt: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The second time over what the first has written."""
    runs, mine = learnt
    before = {path.name: path.read_bytes() for path in (mine / "calibration").iterdir()}
    assert main(["calibrate", str(runs), "-o", str(mine), "--as-of", "2026-11"]) == 0
    assert "Fitted" in capsys.readouterr().out
    assert {path.name: path.read_bytes() for path in (mine / "calibration").iterdir()} == before
    assert sorted(before) == ["fitted.yaml", "step-residuals.yaml"]


FITTED = "name: fitted\nsource: runs {0}\nas_of: 2026-11\nkind: fitted\nvalues: {{}}\n"
RESIDUALS = ("name: step-residuals\nsource: runs {0}\nas_of: 2026-11\nkind: fitted\n"
             "law: {{traits: [family], head: 1, between: 0.05, unseen: {{family: 0.1}}, beyond: {{}}, open: 0.2}}\n"
             "quantiles: {{q05: -1.6, q10: -1.2, q50: 0.0, q90: 1.2, q95: 1.6}}\ncells:\n"
             "  - {{traits: {{}}, rows: {0}, sources: [a], spread: 0.1, error: 0.05}}\n")


def test_new_constants_with_old_residuals_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """As a fit killed between its two files leaves them; the next fit mends it."""
    mine, replace = tmp_path / "mine", os.replace

    def fitted(rows: int) -> None:
        save(mine, FITTED.format(rows), {"step-residuals": RESIDUALS.format(rows)})

    def killed(old: Path, new: Path) -> None:
        if new.name != "fitted.yaml":
            raise KeyboardInterrupt
        replace(old, new)

    fitted(30)
    with monkeypatch.context() as patched:
        patched.setattr("planner.text_io.os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            fitted(40)
    assert sorted(path.name for path in (mine / "calibration").iterdir()) == ["fitted.yaml", "step-residuals.yaml"]
    for reading in (["catalog", "check"], ["estimate", "--model", "gpt2", "--node", "dgx-h100", "--layout", "dp=8"]):
        assert main([*reading, "--catalogs", str(mine)]) == 2
        assert capsys.readouterr().err == (f"Error: {mine}/calibration/step-residuals.yaml: not of the same fit as "
                                           "fitted.yaml beside it: run planner calibrate again\n")
    Catalog([mine], unfitted=mine).stack("fsdp2")  # as calibrate reads it
    fitted(40)
    assert Catalog([mine]).fitted[-1].source == "runs 40"
    save(mine, FITTED.format(50), {"memory-residuals": RESIDUALS.format(50).replace("step", "memory")})
    assert set(Catalog([mine]).fitted[-1].residuals) == {"step-residuals", "memory-residuals"}, "of another fit"
    with pytest.raises(InputError, match=r"step-residuals:\d+: cells"):
        save(mine, FITTED.format(50), {"step-residuals": RESIDUALS.format("x")})


def test_runs_without_a_measured_step_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = cluster(tmp_path, None)
    text = runs.read_text(encoding="utf-8").replace("llama", "unheard-of").replace("qwen", "unheard-of")
    runs.write_text(text, encoding="utf-8")
    assert main(["calibrate", str(runs), "-o", str(tmp_path / "mine")]) == 2
    assert "no row has a measured step time" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()
