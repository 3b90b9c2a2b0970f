"""A log of training beside the config that started it, instead of the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import planner
from planner.cli.main import main

CONFIGS = Path(__file__).parents[1] / "scenario" / "configs"


def test_a_log_is_read_beside_the_config_that_started_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, log = str(CONFIGS / "axo_fsdp.yml"), tmp_path / "trainer_state.json"
    step = planner.estimate(from_=config, node="dgx-h100").time.step_seconds
    log.write_text(json.dumps({"log_history": [{"step": 900, "train_runtime": 900 * step * 1.25,
                                                "train_steps_per_second": 0.8 / step}]}))
    assert main(["validate", str(log), "--from", config, "--node", "dgx-h100", "--json"]) == 0
    rows = {row["quantity"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["step_time_s"]["predicted"] == pytest.approx(step, rel=1e-4)
    assert rows["step_time_s"]["error"] == pytest.approx(-0.2, abs=1e-3)
    # on half as many GPUs each has twice the samples
    assert main(["validate", str(log), "--from", config, "--gpus", "4", "--json"]) == 0
    fewer = {row["quantity"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert fewer["tokens_per_s_per_gpu"]["measured"] == pytest.approx(rows["tokens_per_s_per_gpu"]["measured"])
    assert main(["validate", str(log)]) == 2
    assert "or the config that started it (--from" in capsys.readouterr().err
    assert main(["validate", str(log), "--node", "dgx-h100"]) == 2
    assert "none is given" in capsys.readouterr().err
