"""The files of a launch folder: as recorded, readable by bash, and for the plan's nodes."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import InputError
from planner.launch.check import syntax_errors
from planner.launch.emitter import all_targets
from planner.launch.folder import launched
from planner.launch.given import estimated
from planner.launch.megatron import layer_string
from planner.launch.place import all_places
from tests.launch.media import media_given
from tests.launch.services import serving
from tests.launch.works import CATALOG, MIXTURE, given, rented

GOLDEN = Path(__file__).parents[1] / "golden" / "launch"
UPDATE = os.environ.get("PLANNER_UPDATE_GOLDEN") == "1"
CASES = {
    "megatron-lm-dense": ("megatron-lm", {"layout": "tp=4,pp=2,vpp=2,dp=2,zero=1,recompute=selective"}),
    "vllm-replicas": ("vllm", {"layout": "tp=2", "gpus": "16", "quantization": "fp8"}),
    "vllm-over-nodes": ("vllm", {"layout": "tp=1,dp=16,ep=16", "gpus": "16", "model": "deepseek-v3",
                                 "quantization": "fp8"}),
    "megatron-lm-mixture": ("megatron-lm", {"layout": "tp=2,ep=4,expert_tp=1,dp=8,recompute=full", **MIXTURE}),
    "torchtitan-dense": ("torchtitan", {"layout": "tp=2,pp=2,vpp=2,dp=4,zero=3,recompute=full", "stack": "fsdp2"}),
    "deepspeed-scratch": ("deepspeed", {"layout": "dp=16,zero=3,offload_optimizer=1", "stack": "deepspeed"}),
    "simpletuner-lora": ("simpletuner", {"layout": "recompute=mixed,offload_parameters=1", "model": "flux.1-dev",
                                         "method": "lora", "quantization": "nf4", "node": "rtx-3060-1x"}),
    "diffusers-fp8": ("diffusers", {"layout": "vae=tiled", "model": "wan2.1-14b", "method": "inference",
                                    "quantization": "fp8"}),
    "xdit-pipefusion": ("xdit", {"layout": "cfg=2,pipefusion=2", "model": "sd3.5-large", "method": "inference",
                                 "gpus": "4"}),
    "accelerate-qlora": ("accelerate", {"layout": "dp=8,zero=3,recompute=full", "stack": "hf-peft", "method": "qlora"}),
}


def folder_of(target, scheduler=None, **asked):
    if CATALOG.releases.target(target).work in ("diffusion", "generation"):
        return launched(media_given(**asked), CATALOG, target, scheduler)
    if CATALOG.releases.target(target).work == "training":
        asked_for = given(**asked)
        asked_for = replace(asked_for, placed=rented(asked_for.placed)) if scheduler == "skypilot" else asked_for
        return launched(asked_for, CATALOG, target, scheduler)
    one = serving(**asked)
    return launched(estimated(one), CATALOG, target, scheduler)


@pytest.mark.parametrize("case", CASES)
def test_files_are_as_recorded(case):
    target, asked = CASES[case]
    made = folder_of(target, **asked)
    kept = {name: text for name, text in made.files.items() if name not in ("plan.json", "README.md", "launch.json")}
    text = "".join(f"=== {name}\n{body}" for name, body in sorted(kept.items()))
    path = GOLDEN / f"{case}.txt"
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize("scheduler", sorted(set(all_places()) - {"dynamo", "ray", "ray-serve", "skyserve"}))
@pytest.mark.parametrize("layout", ["tp=2,dp=4", "tp=2,dp=8"])
def test_scripts_are_bash_and_of_the_nodes(scheduler, layout, tmp_path):
    made = folder_of("megatron-lm", scheduler, layout=layout)
    for name, text in made.files.items():
        (tmp_path / name).write_text(text)
    assert not list(syntax_errors(tmp_path))
    said = r"(?:--nodes=|NNODES=|--nnodes=|completions: |numNodes: |num_nodes: |nodes: )(\d+)"
    nodes = re.findall(said, "".join(made.files.values()))
    assert nodes
    (tmp_path / "broken.sh").write_text("if true; then")
    assert list(syntax_errors(tmp_path)), "the check can fail"


def test_ssh_starts_every_node_with_its_number(tmp_path):
    made = folder_of("megatron-lm", "torchrun", layout="tp=2,dp=8")
    for name, text in made.files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bin").mkdir()
    for name in ("ssh", "torchrun"):
        (tmp_path / "bin" / name).write_text('#!/usr/bin/env bash\n' + (
            'shift; exec bash -c "$*"\n' if name == "ssh" else 'echo "$@"\n'))
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "hosts").write_text("node-a\nnode-b\n")
    ran = subprocess.run(["bash", "start.sh"], cwd=tmp_path, text=True, capture_output=True, check=False,
                         env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    assert ran.returncode == 0, ran.stderr
    for rank in (0, 1):
        started = (tmp_path / f"train-{rank}.log").read_text()
        assert f"--nnodes=2 --nproc-per-node=8 --node-rank={rank} --master-addr=node-a" in started
        assert "--tensor-model-parallel-size 2" in started
    (tmp_path / "hosts").write_text("node-a\n")
    short = subprocess.run(["bash", "start.sh"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert short.returncode == 1
    assert "the plan has 2" in short.stderr


def test_a_value_of_the_environment_goes_before_the_default(tmp_path):
    made = folder_of("megatron-lm", layout="tp=2,dp=4")
    (tmp_path / "variables.sh").write_text(made.files["variables.sh"])
    ran = subprocess.run(["bash", "-c", "source ./variables.sh; echo $DATA $CHECKPOINTS"], cwd=tmp_path, text=True,
                         capture_output=True, check=True, env={**os.environ, "DATA": "/data/x"})
    assert ran.stdout.split() == ["/data/x", "checkpoints"]


def test_processes_that_step_the_optimizer_on_the_host_share_its_cores(tmp_path):
    """torchrun gives each of several processes one thread: Adam of 7B on eight took 17 s where cores allow 2."""
    layout = "dp=8,zero=3,offload_optimizer="
    plain, stepping = (folder_of("deepspeed", "torchrun", layout=layout + share, stack="deepspeed", method="full")
                       .files["variables.sh"] for share in "01")
    assert "OMP_NUM_THREADS" not in plain
    (tmp_path / "variables.sh").write_text(stepping)
    ran = subprocess.run(["bash", "-c", "source ./variables.sh; printenv OMP_NUM_THREADS"], cwd=tmp_path, text=True,
                         capture_output=True, check=True, env={"PATH": os.environ["PATH"]})
    cores = len(os.sched_getaffinity(0))
    assert int(ran.stdout) == -(-cores // 8)


@pytest.mark.parametrize("target", all_targets())
def test_every_target_is_in_the_table_of_releases(target):
    release = CATALOG.releases.target(target)
    known = {"serving": CATALOG.names("engines"), "posttraining": CATALOG.posttraining_law.frameworks,
             "diffusion": [CATALOG.diffusion_law.stack], "generation": [CATALOG.generation_law.stack]}
    assert set(release.stacks) <= set(known.get(release.work, CATALOG.names("stacks")))
    assert re.search(r"\d", release.release)
    assert release.image is None or not release.image.endswith(":latest"), "images are pinned"


def test_every_stack_has_a_target_or_says_why_not():
    known = {*CATALOG.names("stacks"), *CATALOG.names("engines"), *CATALOG.posttraining_law.frameworks,
             "simpletuner", "diffusers"}
    releases = CATALOG.releases
    assert set(releases.nothing) <= known
    assert [name for name in known if name not in releases.nothing and not releases.of_stack(name)] == []


@pytest.mark.parametrize("target", all_targets())
def test_every_file_says_which_release_it_is_for(target):
    known = CATALOG.releases.target(target)
    if known.work == "posttraining":
        return
    if known.work in ("diffusion", "generation"):
        given = media_given(model="flux.1-dev", method="lora" if known.work == "diffusion" else "inference")
        made = launched(given, CATALOG, target, "kubernetes")
        assert known.release in made.files["train.sh" if known.work == "diffusion" else "generate.sh"][:300]
        return
    release = known.release
    asked = {"layout": "tp=2", "gpus": "16"} if known.work == "serving" else {
        "layout": "dp=8,zero=3,recompute=full", "stack": known.stacks[0], "method": "full"}
    for scheduler in ("slurm", "kubernetes", "torchrun"):
        try:
            made = folder_of(target, scheduler, **asked)
        except InputError:
            continue
        for name, text in made.files.items():
            if name.endswith((".sh", ".sbatch", ".yaml", ".yml", ".py")):
                assert release in text[:300], f"{name} does not say {release}"


def test_the_page_says_that_the_image_is_none_of_rocm():
    page = folder_of("vllm", layout="tp=2", gpus="2", node="mi300x-platform").files["README.md"]
    assert "for ROCm" in page
    assert "ROCm" not in folder_of("vllm", layout="tp=2", gpus="2").files["README.md"]


def test_megatron_is_told_where_prediction_layers_are():
    """Its own count of them in the layout has to be that of the model (transformer/pipeline_parallel_layer_layout)."""
    assert layer_string((5, 4, 2), 1) == "Et*5|t*4|t*2mL"
    assert layer_string((15, 17)) == "Et*15|t*17L"


@pytest.mark.parametrize(("layout", "precision", "hidden"), [
    ("tp=4,dp=4", "bf16", True), ("tp=4,dp=4", "mxfp8", True), ("tp=4,dp=4", "fp16", False),
    ("tp=1,dp=16", "bf16", False)])
def test_megatron_hides_tensor_parallel_exchanges_where_its_user_buffers_can(layout, precision, hidden):
    node = "dgx-b200" if precision == "mxfp8" else "dgx-h100"
    for target, words in (("megatron-lm", "--tp-comm-overlap"),
                          ("megatron-bridge", "cfg.model.tp_comm_overlap = True")):
        stack = "megatron-core" if target == "megatron-lm" else target
        files = folder_of(target, layout=layout, node=node, stack=stack, precision=precision).files
        assert any(words in text for text in files.values()) == hidden


def test_megatron_bridge_says_what_the_plan_counts_on():
    layout = "tp=1,pp=2,vpp=2,ep=8,dp=8,recompute=full"
    text = folder_of("megatron-bridge", stack="megatron-bridge", layout=layout, **MIXTURE).files["pretrain.py"]
    for words in ('"flex", "hybridep"', "cross_entropy_fusion_impl = 'te'", "moe_permute_fusion=True",
                  "overlap_p2p_comm, cfg.model.batch_p2p_comm = True, False"):
        assert words in text
    text = folder_of("megatron-bridge", stack="megatron-bridge", layout="tp=2,dp=8").files["pretrain.py"]
    assert '"hybridep"' not in text
    assert "overlap_p2p_comm" not in text


@pytest.mark.parametrize("target", ["megatron-lm", "megatron-bridge"])
def test_megatron_has_no_loss_that_is_fused_with_its_projection(target):
    stack = "megatron-core" if target == "megatron-lm" else target
    with pytest.raises(InputError, match="loss: fused"):
        folder_of(target, stack=stack, layout="tp=2,dp=8", loss="fused")


def test_a_loss_in_chunks_is_trls_own():
    folder_of("deepspeed", stack="deepspeed", layout="dp=8,zero=3", method="full", loss="chunked")
    with pytest.raises(InputError, match="loss: chunked"):
        folder_of("deepspeed", stack="deepspeed", layout="dp=8,zero=3", loss="chunked")
