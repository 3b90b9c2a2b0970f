"""Where a plan starts: what is rented is what the plan has, and what a place cannot start is refused by name."""

import os
import subprocess
from pathlib import Path

import pytest

import planner as package
from planner.answer.placement import Failures
from planner.launch.check import misplaced
from planner.launch.folder import launched
from planner.launch.given import estimated
from planner.physics.shapes import parameters
from planner.yaml_io import parse
from tests.launch.services import serving
from tests.launch.test_services import apart
from tests.launch.works import CATALOG, placed, rented


def made(scheduler, target, *assignments):
    given = estimated(*assignments)
    return launched(given, CATALOG, target, scheduler).files


@pytest.mark.parametrize("spot", [False, True])
@pytest.mark.parametrize(("target", "one", "nodes"), [("megatron-lm", placed("tp=2,dp=8"), 2),
                                                      ("vllm", serving("tp=2", gpus="16"), 2)])
def test_skypilot_rents_the_offer(target, one, nodes, spot):
    task = parse(made("skypilot", target, rented(one, spot))["sky.yaml"], "sky.yaml").data
    assert task["num_nodes"] == nodes
    assert task["resources"]["instance_type"] == "p5.48xlarge"
    assert task["resources"]["use_spot"] is spot
    assert task["resources"]["infra"].startswith("aws")


def started(one):
    return launched(estimated(one), CATALOG, "vllm" if one.serving else "megatron-lm").scheduler


def test_without_a_scheduler_the_offer_decides():
    """A service or one node of a cloud that SkyPilot knows is rented by it; a cluster, or what one owns, is not."""
    service, node, cluster = serving("tp=2", gpus="16"), placed("tp=2,dp=4", gpus=8), placed("tp=2,dp=8")
    assert [started(rented(one)) for one in (service, node, cluster)] == ["skypilot", "skypilot", "slurm"]
    assert [started(one) for one in (service, node, cluster)] == ["slurm", "torchrun", "slurm"]


def test_skypilot_asks_for_a_gpu_as_its_provider_calls_it():
    """`H100` is the PCIe card at RunPod."""
    plan = package.plan(model="gpt2", tokens="10M", on="h100-sxm-1x", provider="runpod", stack="megatron-core")
    (one,) = plan.assignments
    task = parse(made("skypilot", "megatron-lm", one)["sky.yaml"], "sky.yaml").data
    assert task["resources"]["accelerators"] == "H100-SXM:1"


@pytest.mark.parametrize(("node", "gpu", "kind"), [
    ("dgx-h100", {"name": "H100", "count": 8}, "H100"), ("rtx-4090-2x", {"name": "RTX4090", "count": 2}, None),
    ("a100-sxm-40gb-4x", {"name": "A100", "memory": "40GB", "count": 4}, "A100"),
    ("mi300x-platform", {"name": "MI300X", "count": 8}, "AMD-Instinct-MI300X-OAM")])
def test_owned_gpus_are_named_as_the_place_calls_them(node, gpu, kind):
    """Without an offer too, dstack is told which GPU; Ray, only of those that its LLMConfig takes."""
    service = serving("tp=2", model="llama-3.1-8b", node=node, gpus="2")
    asked = parse(made("dstack", "vllm", service)[".dstack.yml"], "task").data["resources"]
    assert asked == {"gpu": gpu, "shm_size": "16GB", "disk": "150GB.."}
    (app,) = parse(made("ray-serve", "vllm", service)["ray-serve.yaml"], "serve").data["applications"]
    assert app["args"]["llm_configs"][0].get("accelerator_type") == kind


@pytest.mark.parametrize(("scheduler", "assignments", "said"), [
    ("skypilot", (serving("tp=2", gpus="16"),), "without an offer"),
    ("trainjob", (serving("tp=2", gpus="16"),), "which trains"),
    ("skyserve", apart("tp=4", "8"), "replicas are alike"),
    ("ray-serve", apart("tp=4", "8"), "prefill and decode apart"),
    ("ray-serve", (serving("tp=2", gpus="2", quantization="int4"),), "no published name"),
    ("dynamo", (serving("tp=2", gpus="2", quantization="int4"),), "no published name"),
    ("skypilot", (rented(serving("tp=2", gpus="8")), rented(serving("tp=2", node="dgx-a100", gpus="8"))),
     "several types"),
    ("dstack", (serving("tp=2", gpus="8"), serving("tp=2", node="dgx-a100", gpus="8")), "several types"),
])
def test_what_a_place_cannot_start_is_refused(scheduler, assignments, said):
    with pytest.raises(package.PlannerError, match=said):
        made(scheduler, "vllm", *assignments)


_NVIDIA = CATALOG.releases.target("megatron-lm").image.replace("nvcr.io/", "nvcr.io#")
_SRUN = """#!/usr/bin/env bash
if [[ "$1" == --help ]]; then echo "--container-image=IMAGE"; seq 100000; exit; fi
printf '%s\\n' "$@" "HF_HOME=$HF_HOME" > "$SAID"
"""


@pytest.mark.parametrize(("set_to", "image"), [
    ({}, _NVIDIA), ({"IMAGE": "vllm/vllm-openai:v0.33.0"}, "vllm/vllm-openai:v0.33.0"),
    ({"IMAGE": "/images/mine.sqsh"}, "/images/mine.sqsh"), ({"MOUNTS": "/data:/data"}, _NVIDIA),
    ({"HF_HOME": "{here}/models"}, _NVIDIA)])
def test_a_container_of_slurm_has_its_image_and_sees_what_it_reads(tmp_path, set_to, image):
    """Without a # between a registry and its image pyxis asks Docker Hub for it; models are kept, and for all nodes."""
    for name, text in made("slurm", "megatron-lm", placed("tp=2,dp=8")).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bin").mkdir()
    for name, text in (("srun", _SRUN), ("scontrol", "#!/usr/bin/env bash\necho node0\n")):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    clean = {name: value for name, value in os.environ.items() if name not in ("HF_HOME", "IMAGE", "MOUNTS")}
    values = {name: value.format(here=tmp_path) for name, value in set_to.items()}
    ran = subprocess.run(["bash", "job.sbatch"], cwd=tmp_path, text=True, capture_output=True, check=False, env={
        **clean, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SAID": str(tmp_path / "said"),
        "SLURM_JOB_NODELIST": "node0", "SLURM_JOB_NUM_NODES": "2", "SLURM_CPUS_ON_NODE": "8", **values})
    assert ran.returncode == 0, ran.stderr
    said = (tmp_path / "said").read_text().splitlines()
    home = values.get("HF_HOME", f"{tmp_path}/huggingface")
    mounts = f"{tmp_path}:{tmp_path},{home}:{home}" + (f",{values['MOUNTS']}" if "MOUNTS" in values else "")
    assert {f"--container-image={image}", f"--container-mounts={mounts}", f"HF_HOME={home}"} <= set(said)
    assert (Path(home)).is_dir()


@pytest.mark.parametrize(("one", "disk"), [
    (serving("tp=8", gpus="8", model="llama-3.1-405b"), 950),  # 405.9e9 x 2 bytes and 100 GB, in steps of 50
    (serving("tp=2", gpus="2"), None), (placed("tp=2,dp=4", gpus="8"), None),  # 8.03e9 x (2 + 14) bytes: 250
    (placed("tp=8", model="qwen2.5-32b", gpus="8"), 650)])  # 32.8e9 x (2 + 14) bytes
def test_a_rented_disk_holds_the_weights_and_what_one_node_saves(one, disk):
    if not one.serving:
        saved = 14 * parameters(CATALOG.model(one.model))
        one = one.model_copy(update={"failures": Failures(
            seconds_between=1e6, checkpoint_bytes=saved, checkpoint_interval_seconds=1e3, checkpoint_write_seconds=10,
            restart_seconds=600)})
    task = parse(made("skypilot", "vllm" if one.serving else "megatron-lm", rented(one))["sky.yaml"], "sky.yaml").data
    assert task["resources"].get("disk_size") == disk


@pytest.mark.parametrize(("scheduler", "file", "at"), [
    ("kubernetes", "kubernetes.yaml", lambda made: made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
     ["spec"]["containers"][0]["env"]), ("trainjob", "kubernetes.yaml", lambda made: made["spec"]["trainer"]["env"])])
def test_pods_have_the_token_and_keep_models_with_what_they_write(scheduler, file, at):
    told = {one["name"]: one for one in at(parse(made(scheduler, "megatron-lm", placed("tp=2,dp=8"))[file], file).data)}
    assert told["HF_TOKEN"]["valueFrom"]["secretKeyRef"]["optional"]
    assert told.get("HF_HOME", {"value": "/work/huggingface"})["value"].startswith("/work/")


def test_prefill_and_decode_have_a_router_that_knows_them_in_kubernetes():
    text = made("kubernetes", "vllm", *apart("tp=4", "8"))["kubernetes.yaml"]
    objects = [parse(part, "kubernetes.yaml").data for part in text.split("---\n")]
    sets = {one["metadata"]["name"]: one["spec"]["replicas"] for one in objects if one["kind"] == "StatefulSet"}
    assert sets == {"llama-3-1-8b-prefill": 2, "llama-3-1-8b-decode": 2}
    router = next(one for one in objects if one["metadata"]["name"] == "llama-3-1-8b-router")
    told = {one["name"]: one.get("value") for one in router["spec"]["template"]["spec"]["containers"][0]["env"]}
    for name, copies in sets.items():
        role = name.rsplit("-", 1)[1].upper()
        assert told[role].split() == [f"http://{name}-{copy}.{name}:8000" for copy in range(copies)]


def test_parts_that_a_place_takes_for_others_are_named():
    manifest = {"nodes": 2, "parts": [{"name": "serve", "copies": 2, "nodes": 1, "gpus": 8}]}
    assert not list(misplaced(manifest, {"serve": [2, 1, 8]}))
    assert list(misplaced(manifest, {"serve": [2, 1, 4]}))
    assert list(misplaced(manifest, {"cluster": [1, None]}))


def test_skyserve_counts_nodes_and_every_replica_on_them():
    files = made("skyserve", "vllm", rented(serving("tp=2", gpus="16")))
    service = parse(files["service.yaml"], "service.yaml").data
    assert (service["service"]["replicas"], service["num_nodes"]) == (2, 1)
    assert files["node.sh"].count("serve.sh") == 4
    assert "router.sh" in files["node.sh"]


def test_a_dynamo_graph_has_the_options_of_the_engine():
    graph = parse(made("dynamo", "vllm", *apart("tp=16", "16"))["dynamo.yaml"], "dynamo.yaml").data
    parts = {one["name"]: one for one in graph["spec"]["components"]}
    assert set(parts) == {"frontend", "prefill", "decode"}
    for role in ("prefill", "decode"):
        words = parts[role]["podTemplate"]["spec"]["containers"][0]["args"]
        assert (parts[role]["type"], parts[role]["multinode"]) == (role, {"nodeCount": 2})
        assert words[words.index("--tensor-parallel-size") + 1] == "16"
        assert words[-2:] == ["--disaggregation-mode", role]
        assert "--kv-transfer-config" not in words


def test_ray_serve_has_the_arguments_of_the_engine():
    config = parse(made("ray-serve", "vllm", serving("tp=2", gpus="8"))["ray-serve.yaml"], "ray-serve.yaml").data
    (model,) = config["applications"][0]["args"]["llm_configs"]
    assert model["deployment_config"] == {"num_replicas": 4}
    assert model["engine_kwargs"]["tensor_parallel_size"] == 2


def test_a_ray_job_starts_every_node(tmp_path):
    files = made("ray", "megatron-lm", placed("tp=2,dp=8"))
    compile(files["ray_job.py"], "ray_job.py", "exec")
    assert "GPUS = [8, 8]" in files["ray_job.py"]
    assert "exec bash train.sh" in files["ray_job.py"]


@pytest.mark.parametrize(("scheduler", "line"), [
    ("kubernetes", "kubectl logs -l jobset.sigs.k8s.io/jobset-name={name} --tail=-1 > train.log"),
    ("trainjob", "kubectl logs -l jobset.sigs.k8s.io/jobset-name={name} --tail=-1 > train.log"),
    ("skypilot", "sky logs {name} --no-follow --tail 0 > train.log"),
    ("dstack", "for node in $(seq 0 1); do dstack logs --job $node {name}; done > train.log"),
    ("torchrun", "cat train-*.log > train.log"), ("ray", "| tee train.log"), ("slurm", 'validate "$(ls -t llama-3')])
def test_the_page_says_where_the_log_of_a_run_comes_from(scheduler, line):
    page = made(scheduler, "megatron-lm", rented(placed("tp=2,dp=8")))["README.md"]
    line = line.replace("{name}", "llama-3-1-8b-pretrain-8192-tok")
    assert line in page.partition("## Start")[2]
