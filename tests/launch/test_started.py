"""The scripts of a folder, run with stand-ins for what they start: on a node, over ssh, and a second time."""

import os
import subprocess

import pytest

from planner.launch.folder import launched
from tests.launch.works import CATALOG, given

STAND_IN = """#!/usr/bin/env bash
echo "$(basename "$0") $* STEPS=${STEPS:-}" >> "$SAID"
"""
SSH = """#!/usr/bin/env bash
[[ "$1" == "$BROKEN" ]] && exit 7
env -i PATH="$PATH" HOME="$HOME" SAID="$SAID" bash -c "$2"
"""


@pytest.fixture
def start(tmp_path):
    """Return what writes a folder, and runs a script of it."""
    said, place = tmp_path / "said.txt", tmp_path / "bin"
    place.mkdir()
    for name, text in {**dict.fromkeys(("torchrun", "swift", "python3"), STAND_IN), "ssh": SSH}.items():
        (place / name).write_text(text)
        (place / name).chmod(0o755)

    def run(script, **environment):
        said.write_text("")
        ran = subprocess.run(["bash", script], cwd=tmp_path / "run", text=True, capture_output=True, check=False,
                             timeout=60, env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}",
                                              "SAID": str(said), "BROKEN": "", **environment})
        return ran.returncode, sorted(line for line in said.read_text().splitlines() if "python3" not in line)

    def write(one, target, scheduler=None):
        (tmp_path / "run").mkdir()
        for name, text in launched(one, CATALOG, target, scheduler).files.items():
            (tmp_path / "run" / name).write_text(text)
        return run

    return write


@pytest.mark.parametrize(("target", "launcher"), [("axolotl", "torchrun"), ("llama-factory", "torchrun"),
                                                  ("ms-swift", "swift"), ("litgpt", "torchrun")])
def test_a_second_start_leaves_what_the_first_left(start, tmp_path, target, launcher):
    stack = CATALOG.releases.target(target).stacks[0]
    run = start(given("dp=8,zero=3,recompute=full", method="lora", stack=stack, precision="bf16"), target)
    environment = {"CHECKPOINTS": "kept", "STEPS": "7", "TMPDIR": str(tmp_path / "none")}
    for _ in range(2):
        code, (line,) = run("train.sh", **environment)
        assert (code, line.split()[0]) == (0, launcher)
        assert [path.name for path in (tmp_path / "run" / "kept").iterdir()] == [f"{target}-0.yaml"]
    assert f"kept/{target}-0.yaml" in line
    assert "max_steps: 7" in (tmp_path / "run" / "kept" / f"{target}-0.yaml").read_text()
    run("train.sh", **environment, NODE_RANK="1")
    assert (tmp_path / "run" / "kept" / f"{target}-1.yaml").exists(), "nodes may share the folder"


def test_over_ssh_the_variables_go_along_and_a_node_that_fails_is_a_failure(start, tmp_path):
    run = start(given("tp=2,dp=8"), "megatron-lm", "torchrun")
    (tmp_path / "run" / "hosts").write_text("one\ntwo\n")
    code, lines = run("start.sh", STEPS="7", DATA="a b/c")
    assert (code, len(lines)) == (0, 2)
    for rank, line in enumerate(lines):
        assert f"--node-rank={rank} --master-addr=one" in line
        assert "--train-iters 7" in line
        assert "--data-path a b/c" in line
    assert run("start.sh", BROKEN="two")[0] == 1


@pytest.mark.parametrize(("target", "needed"), [("axolotl", "cut-cross-entropy"), ("ms-swift", "liger-kernel"),
                                                ("llama-factory", "liger-kernel"), ("accelerate", "liger-kernel")])
def test_what_a_fused_loss_runs_on_is_installed(target, needed):
    stack = CATALOG.releases.target(target).stacks[0]
    one = given("dp=8,zero=3,recompute=full", method="lora", stack=stack, loss="fused")
    assert needed in launched(one, CATALOG, target).files["install.sh"]
