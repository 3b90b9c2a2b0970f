"""Services: every axis in the files or refused by name, replicas on the nodes of the plan, and what starts them."""

import os
import re
import subprocess

import pytest

from planner.answer.level import Adapters
from planner.errors import InputError
from planner.launch.axes import CannotExpress
from planner.launch.emitter import ServiceEmitter
from planner.launch.folder import launched
from planner.launch.given import estimated
from planner.launch.place import all_places
from planner.launch.replicas import placed_on_nodes
from planner.launch.served import VALUES
from planner.launch.written import write_all
from tests.launch.emitters import axes_of, emitters_of
from tests.launch.services import MIXTURE, otherwise, served, serving
from tests.launch.works import CATALOG

EMITTERS = emitters_of(ServiceEmitter)
OTHER = {
    "candidate": {}, "precision": {"precision": "fp8"}, "tp": {"tp": 4}, "pp": {"pp": 2},
    "dp": {"dp": 4, "expert_tp": 4}, "ep": {"ep": 8, "expert_tp": 1}, "expert_tp": {"expert_tp": 2},
    "replicas": {"dp": 2, "serving": {"replicas": 2}}, "role": {"serving": {"role": "prefill"}},
    "answers": {"serving": {"output_tokens_per_second_per_gpu": 0.0}},
    "prompts": {"serving": {"prompts": (1, 900)}}, "by_hour": {"serving": {"nodes_by_hour": (1,) * 12 + (2,) * 12}},
    "memory_fraction": {"serving": {"memory_fraction": 0.83}}, "max_sequences": {"serving": {"max_sequences": 48}},
    "max_batched_tokens": {"serving": {"max_batched_tokens": 1536}},
    "prefill_delay": {"serving": {"prefill_delay": 40}},
    "max_model_len": {"serving": {"max_model_len": 3000}}, "kv_cache": {"serving": {"kv_cache": "fp8"}},
    "drafts": {"serving": {"drafts": 3}}, "adapters": {"serving": {"adapters": Adapters(
        count=4, rank=16, bytes_per_gpu=1)}},
    "lora_rank": {"serving": {"adapters": Adapters(count=4, rank=32, bytes_per_gpu=1)}}, "prefix_cache": {},
}
"""Of each axis a value that the layout below does not have."""
SAID_ELSEWHERE = {"candidate": "the place is told", "prefix_cache": "always on"}


def told(target, one):
    """Return the files and notes of replicas, or the axes that are refused."""
    try:
        program = EMITTERS[target].emit([one])
    except CannotExpress as error:
        return tuple(error.refused)
    return dict(program.files), program.notes, [(part.copies, part.gpus, part.nodes) for part in program.parts]


@pytest.mark.parametrize("target", EMITTERS)
def test_every_axis_is_named_by_every_target(target):
    assert sorted(axes_of(EMITTERS[target].table)) == sorted(VALUES) == sorted(OTHER)


@pytest.mark.parametrize("axis", [axis for axis in OTHER if axis not in SAID_ELSEWHERE])
@pytest.mark.parametrize("target", EMITTERS)
def test_no_axis_is_dropped(target, axis):
    mixed = axis in ("dp", "ep", "expert_tp", "prefill_delay")
    if mixed and CATALOG.engine(CATALOG.releases.target(target).stacks[0]).copies == "none":
        with pytest.raises(InputError, match="no copies of attention: dp=1"):
            served(target, "tp=1,ep=1,dp=8", gpus="8", **MIXTURE)
        return
    base = served(target, "tp=1,ep=1,dp=8" if mixed else "tp=2", gpus="8" if mixed else "2",
                  **(MIXTURE if mixed else {}))
    if axis == "lora_rank":
        base = otherwise(base, **OTHER["adapters"])
    before, after = told(target, base), told(target, otherwise(base, **OTHER[axis]))
    if isinstance(before[0], str):
        assert {"dp", "adapters"} & {*before}, f"{target} refuses {before} of what others have"
        return
    if isinstance(after[0], str):
        together = next(names for names in EMITTERS[target].table if axis in names)
        assert {*together} & {*after}, f"{target} refuses {after}, not {axis}"
        return
    assert before != after, f"{target} says nothing of {axis}"


def test_replicas_fill_nodes_and_no_gpu_is_used_twice():
    for layout, gpus, nodes in (("tp=1", "16", 2), ("tp=4", "32", 4), ("tp=8,pp=2", "32", 4), ("tp=2", "2", 1)):
        program = EMITTERS["vllm"].emit([served("vllm", layout, gpus=gpus)])
        groups, slots = placed_on_nodes(program)
        used = [(slot.node, gpu) for slot in slots for gpu in slot.gpus]
        assert len(set(used)) == len(used) == int(gpus)
        assert sum(group.nodes for group in groups) == nodes
        assert len({(slot.node, slot.replica) for slot in slots}) == len(slots), "each has a port of its own"


def folder_of(made, tmp_path, scheduler=None, target="vllm"):
    placed = made if isinstance(made, tuple) else (made,)
    files = launched(estimated(*placed), CATALOG, target, scheduler).files
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return files


def apart(layout="tp=4", gpus="8", **asked):
    """Return replicas that prefill, and others that decode."""
    one = serving(layout, gpus=gpus, **asked)
    return tuple(one.model_copy(update={"serving": one.serving.model_copy(update={"role": role})})
                 for role in ("prefill", "decode"))


@pytest.mark.parametrize("made", [lambda: serving("tp=2", gpus="16"), lambda: serving("tp=8,pp=2", gpus="16"), apart],
                         ids=["replicas", "over nodes", "apart"])
def test_every_node_starts_its_replicas(made, tmp_path):
    """The script of a node really runs, with a stand-in for the engine that says how it was started."""
    folder_of(made(), tmp_path, "torchrun")
    (tmp_path / "bin").mkdir()
    for name in ("vllm", "vllm-router"):
        path = tmp_path / "bin" / name
        path.write_text('#!/usr/bin/env bash\necho "$CUDA_VISIBLE_DEVICES|$(basename "$0") $*"\n')
        path.chmod(0o755)
    said = {}
    for node in range(2):
        ran = subprocess.run(["bash", "node.sh"], cwd=tmp_path, text=True, capture_output=True, check=False,
                             env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
                                  "NODE": str(node), "NODES": "node-a node-b"})
        assert ran.returncode == 0, ran.stderr
        for path in tmp_path.glob("*.log"):
            said[node, path.name] = path.read_text()
            path.unlink()
    calls = [text for (_, name), text in said.items() if name != "router.log"]
    gpus = [(node, gpu) for (node, name), text in said.items() if name != "router.log"
            for gpu in text.split("|")[0].split(",")]
    assert len(gpus) == len(set(gpus)) == 16
    routed = next((text for (_, name), text in said.items() if name == "router.log"), "")
    urls = re.findall(r"http://(node-[ab]:\d+)", routed)
    heads = [text for text in calls if "--headless" not in text]
    assert len(urls) == (len(heads) if routed else 0) == len(set(urls))
    for text in calls:
        if "--nnodes" in text:
            assert "--master-addr node-a" in text


def test_replicas_take_the_gpus_that_a_place_gives(tmp_path):
    """A cluster of Ray that is shared gives a part of a node, and names which."""
    folder_of(serving("tp=2", gpus="4"), tmp_path, "ray")
    (tmp_path / "bin").mkdir()
    for name in ("vllm", "vllm-router"):
        (tmp_path / "bin" / name).write_text('#!/usr/bin/env bash\necho "$CUDA_VISIBLE_DEVICES"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    ran = subprocess.run(["bash", "node.sh"], cwd=tmp_path, text=True, capture_output=True, check=False, env={
        **os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "4,5,6,7"})
    assert ran.returncode == 0, ran.stderr
    assert sorted(path.read_text().strip() for path in tmp_path.glob("serve-*.log")) == ["4,5", "6,7"]


def test_the_page_tells_prefill_from_decode(tmp_path):
    page = folder_of(apart("tp=4,pp=1"), tmp_path, "slurm")["README.md"]
    for role in ("prefill", "decode"):
        assert f"Layout of {role}: " in page
        assert re.search(rf"- \d+ {role} replicas of dgx-h100", page)
        assert f"- {role} step: " in page


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_moves_keys_and_values_is_installed_where_prefill_is_apart(engine, tmp_path):
    split, whole = (folder_of(made, tmp_path, "slurm", engine)["install.sh"] for made in (
        apart(engine=engine), serving("tp=4", engine=engine)))
    assert "nixl==" in split
    assert "nixl" not in whole


def test_llama_cpp_is_found_where_its_image_has_it(tmp_path):
    """Its image starts it as /app/llama-server, and has /app neither in PATH nor where libraries are looked for."""
    one = serving("tp=1", gpus="1", engine="llama.cpp")
    text = folder_of(one, tmp_path, "kubernetes", "llama-cpp")["serve.sh"]
    assert 'PATH="/app:$PATH" LD_LIBRARY_PATH="/app' in text
    assert not re.search(r"0\.\d{5,}", folder_of(apart(), tmp_path, "kubernetes")["prefill.sh"]), "shares in few digits"


@pytest.mark.parametrize("scheduler", [name for name in all_places() if name not in (
    "trainjob", "skypilot", "skyserve", "dynamo", "ray-serve")])
def test_a_checkpoint_that_has_no_name_is_asked_for(scheduler, tmp_path):
    files = folder_of(serving("tp=2", gpus="2", quantization="int4"), tmp_path, scheduler)
    ran = subprocess.run(["bash", "serve.sh"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert ran.returncode
    assert "a checkpoint of" in ran.stderr
    assert "in int4" in files["README.md"] or "In int4" in files["README.md"]


def test_an_engine_that_does_not_run_there_is_refused_with_those_that_do(tmp_path):
    placed = serving("tp=1", "mi300x-platform", gpus="1")
    with pytest.raises(InputError, match=r"tensorrt-llm does not run on cdna3 GPUs.*--for sglang or vllm"):
        write_all(placed, CATALOG, tmp_path, "tensorrt-llm")


@pytest.mark.parametrize(("target", "told"), [("vllm", "--runner pooling"), ("sglang", "--is-embedding"),
                                              ("llama-cpp", "--embedding")])
def test_engines_are_told_to_answer_with_vectors(target, told, tmp_path):
    asked = {"model": "qwen3-embedding-8b", "input": "500", "output": "0", "max_sequences": "64"}
    one = serving("tp=1", gpus="1", engine=CATALOG.releases.target(target).stacks[0], **asked)
    files = folder_of(one, tmp_path, "torchrun", target)
    assert told in files["serve.sh"]
    assert told not in folder_of(serving("tp=1", gpus="1", engine="vllm"), tmp_path, "torchrun")["serve.sh"]
    page = files["README.md"]
    assert "answered in " in page
    assert "TPOT" not in page
    assert "bench" not in page, "there is no load test whose result comes back"
    with pytest.raises(InputError, match="vectors"):
        write_all(one, CATALOG, tmp_path, "tensorrt-llm")


@pytest.mark.parametrize(("version", "starts"), [("0.33", True), ("0.33.0", True), ("0.3", False), ("0.10", False)])
def test_another_release_of_the_engine_is_refused_by_name(version, starts):
    """What was counted with one release would be started with another."""
    given = estimated(serving("tp=2", gpus="2", engine_version=version))
    if starts:
        assert CATALOG.releases.target("vllm").release in launched(given, CATALOG, "vllm").files["install.sh"]
        return
    with pytest.raises(CannotExpress, match=rf"engine_version: {re.escape(version)} \(its files are written for"):
        launched(given, CATALOG, "vllm")
