"""A rack on one NVLink is several servers: each scheduler is asked for those, with the GPUs that one of them has."""

import json

import pytest

from planner.ask.estimate import estimating
from planner.launch.folder import launched
from planner.launch.given import estimated
from tests.launch.services import serving
from tests.launch.works import CATALOG

RACK = CATALOG.node("gb200-nvl72")


def trained(gpus):
    values = {"workload.model": "llama-3.1-70b", "workload.method": "pretrain", "workload.stack": "megatron-core",
              "workload.sequence_length": "8192", "workload.global_batch": "576", "limits.gpus": str(gpus)}
    return estimating(None, values, CATALOG, node=RACK.name, layout={}, labels={}).answer().assignment


def files_of(made, target, scheduler):
    return launched(estimated(made), CATALOG, target, scheduler).files


def test_a_rack_is_its_trays():
    assert (RACK.gpus, RACK.hosts) == (72, 18)
    assert all(CATALOG.node(name).gpus % CATALOG.node(name).hosts == 0 for name in CATALOG.names("nodes"))


@pytest.mark.parametrize("scheduler", ["slurm", "torchrun", "kubernetes"])
def test_training_on_racks_starts_on_their_servers(scheduler):
    files = files_of(trained(144), "megatron-lm", scheduler)
    assert json.loads(files["launch.json"])["nodes"] == 36
    assert "--nproc-per-node=4" in files["train.sh"]
    assert "18 servers of 4 GPUs" in files["README.md"]
    if scheduler == "slurm":
        assert "#SBATCH --nodes=36" in files["job.sbatch"]
        assert "#SBATCH --gpus-per-node=4" in files["job.sbatch"]


@pytest.mark.parametrize(("layout", "nodes"), [("tp=4", 1), ("tp=8", 2)])
def test_replicas_on_a_rack_lie_on_as_many_servers_as_they_fill(layout, nodes):
    made = json.loads(files_of(serving(layout, node=RACK.name, gpus="72"), "vllm", "slurm")["launch.json"])
    (part,) = [part for part in made["parts"] if part["name"] == "serve"]
    assert (part["nodes"], part["gpus"], part["copies"]) == (nodes, 4, 72 // (4 * nodes))
    assert made["nodes"] == 18
