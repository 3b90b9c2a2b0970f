"""The jobs of Slurm on a real Slurm whose nodes are made up: it takes them, and starts what the plan has on each."""

import os
import re

import pytest

from planner.launch.folder import launched
from planner.launch.given import estimated
from tests.launch.cluster import THERE, finished, slurm
from tests.launch.services import serving
from tests.launch.test_services import apart
from tests.launch.works import CATALOG, placed

pytestmark = pytest.mark.skipif(not THERE, reason="no Slurm here, or not root")
# a job ends with the first of its engines that ends, so each stand-in lives until all have started
STAND_IN = """#!/usr/bin/env bash
cd "$(dirname "$0")/.."
name=$(basename "$0")
echo "$name on $SLURMD_NODENAME gpus ${CUDA_VISIBLE_DEVICES:-all} $*" > "said-$name-$SLURMD_NODENAME-$$.txt"
for _ in $(seq 300); do
  [[ $(cat said-torchrun-* said-vllm-node* 2>/dev/null | wc -l) -ge CALLS ]] && exit 0
  sleep 0.1
done
exit 1
"""
CASES = {
    "training": ("megatron-lm", lambda: (placed("tp=2,dp=8"),), 2),
    "replicas": ("vllm", lambda: (serving("tp=4", gpus="16"),), 4),
    "over nodes": ("vllm", lambda: (serving("tp=8,pp=2", gpus="16"),), 2),
    "apart": ("vllm", lambda: apart("tp=8", "8"), 2),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with slurm(tmp_path_factory.mktemp("slurm"), 2, 8) as run:
        yield run


@pytest.mark.parametrize("case", CASES)
def test_a_job_is_taken_and_starts_what_the_plan_has(cluster, tmp_path, case):
    run_on(cluster, tmp_path, *CASES[case])


def test_components_take_the_cpus_of_their_own_nodes(tmp_path):
    (tmp_path / "slurm").mkdir()
    (tmp_path / "job").mkdir()
    with slurm(tmp_path / "slurm", 2, 8, cpus=(64, 32)) as differing:
        # more CPUs than a node has are refused as the job is handed in; two clusters at once may wait for each other
        handed_in(differing, tmp_path / "job", *CASES["apart"][:2])


def handed_in(cluster, tmp_path, target, made):
    """Write the files of a job, and see that a cluster would take it."""
    given = estimated(*made())
    for name, text in launched(given, CATALOG, target, "slurm").files.items():
        (tmp_path / name).write_text(text)
    tested = cluster("sbatch", "--test-only", "job.sbatch", cwd=tmp_path)
    assert tested.returncode == 0, tested.stderr


def run_on(cluster, tmp_path, target, made, calls):
    """Hand the job to a cluster, and see that it starts what the plan has on both nodes."""
    handed_in(cluster, tmp_path, target, made)
    (tmp_path / "bin").mkdir()
    for name in ("torchrun", "vllm", "vllm-router"):
        (tmp_path / "bin" / name).write_text(STAND_IN.replace("CALLS", str(calls)))
        (tmp_path / "bin" / name).chmod(0o755)
    path = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    sent = cluster("sbatch", "--parsable", "job.sbatch", cwd=tmp_path, env=path)
    assert sent.returncode == 0, sent.stderr
    logs = lambda: "\n".join(path.read_text() for path in sorted(tmp_path.glob("*.log")))  # noqa: E731
    assert finished(cluster, sent.stdout.strip()) == "COMPLETED", logs()
    said = "\n".join(path.read_text() for path in sorted(tmp_path.glob("said-*")))
    started = re.findall(r"^(torchrun|vllm) on (node\d) gpus (\S+) (.*)$", said, re.MULTILINE)
    assert len(started) == calls
    assert {node for _, node, _, _ in started} == {"node0", "node1"}
    used = [(node, gpu) for _, node, gpus, _ in started for gpu in gpus.split(",") if gpus != "all"]
    assert len(used) == len(set(used))
    ranks = sorted(rank for *_, words in started for rank in re.findall(r"--node-rank[= ](\d)", words))
    assert ranks in ([], ["0", "1"])


@pytest.mark.parametrize("broken", [("--nodes=2", "--nodes=3"), ("--gpus-per-node=8", "--gpus-per-node=9"),
                                    ("--exclusive", "--exclusively")])
def test_a_broken_job_is_refused(cluster, tmp_path, broken):
    one = serving("tp=4", gpus="16")
    for name, text in launched(estimated(one), CATALOG, "vllm", "slurm").files.items():
        (tmp_path / name).write_text(text.replace(*broken) if name == "job.sbatch" else text)
    assert cluster("sbatch", "--test-only", "job.sbatch", cwd=tmp_path).returncode
