"""What is written is read: every file of a folder that starts something comes back as the plan, or is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from planner.answer.assignment import Assignment
from planner.errors import InputError
from planner.launch.emitter import all_targets
from planner.launch.folder import launched
from planner.launch.given import Given, estimated
from planner.launch.place import all_places
from planner.scenario.configs.read import Config, read_config
from tests.launch.media import media_given
from tests.launch.services import serving
from tests.launch.works import CATALOG, given, rented

PARTS = {"accelerate.yaml", "ds.json", "train.yaml", "serve.yaml", "prefill.yaml", "decode.yaml"}
"""Files that name no model, as the script beside them does; what they say is read by it."""
ASIDE = {"install.sh", "variables.sh", "router.sh", "bench.sh", "data.sh", "made_up.py", "train.py", "tune.py",
         "data.py", "reward.py", "generate.py", "launch.json", "plan.json", "multidatabackend.json", "lycoris.json",
         "multidatabackend-folder.json", "ssh.sh", "launch.sh", "start.sh"}
"""Files that start nothing of the plan themselves."""
ALONE = {"pretrain.py", "plan_config.py", "axolotl.yaml", "ms-swift.yaml", "llama-factory.yaml", "litgpt.yaml"}
"""Configs that do not count GPUs: their launcher does."""
QWEN = {"model": "qwen3-8b"}
TRAINED: dict[str, tuple[tuple[str, dict[str, str]], ...]] = {
    "megatron-lm": (("tp=4,pp=2,vpp=2,dp=2,zero=1,recompute=selective", QWEN), ("dp=16,zero=3,recompute=full", QWEN),
                    ("tp=2,ep=4,expert_tp=1,dp=8,zero=1", {"model": "mixtral-8x7b"})),
    "megatron-bridge": (("tp=2,pp=2,cp=2,dp=2,zero=1", {**QWEN, "stack": "megatron-bridge"}),
                        ("dp=8,recompute=full,mbs=2", {**QWEN, "stack": "megatron-bridge", "method": "lora"})),
    "torchtitan": (("tp=2,pp=2,vpp=2,dp=4,zero=3,recompute=full", {**QWEN, "stack": "fsdp2"}),
                   ("dp=8,zero=2,mbs=2", {**QWEN, "stack": "fsdp2", "method": "full"})),
    "deepspeed": (("dp=16,zero=3,offload_optimizer=1", {"stack": "deepspeed"}),
                  ("dp=8,zero=2,mbs=2,recompute=full", {"stack": "deepspeed", "method": "lora"})),
    "accelerate": (("dp=16,zero=3,recompute=full", {"stack": "accelerate-fsdp"}),
                   ("dp=8,zero=3,recompute=full", {"stack": "hf-peft", "method": "qlora"})),
    "axolotl": (("dp=8,zero=3,recompute=full", {"stack": "axolotl", "method": "full"}),),
    "unsloth": (("dp=1,recompute=full,mbs=2", {"stack": "unsloth", "method": "qlora"}),),
    "llama-factory": (("dp=8,zero=3,recompute=full", {"stack": "llama-factory", "method": "full"}),),
    "ms-swift": (("dp=16,zero=3,recompute=full", {"stack": "ms-swift", "method": "full"}),),
    "litgpt": (("dp=8,zero=3,recompute=full", {"stack": "litgpt", "method": "lora"}),)}
SERVED = {"vllm": ("tp=2,pp=2", {"gpus": "8", "quantization": "fp8"}),
          "sglang": ("tp=1,dp=16,ep=16", {"gpus": "16", "model": "deepseek-v3", "quantization": "fp8"}),
          "tensorrt-llm": ("tp=2", {"gpus": "8", "kv_cache": "fp8"})}
MADE = {"simpletuner": ("recompute=mixed,offload_parameters=1", {"model": "ltx-2", "method": "lora"}),
        "diffusers": ("vae=tiled", {"model": "wan2.1-14b", "method": "inference"}),
        "xdit": ("cfg=2,pipefusion=2", {"model": "sd3.5-large", "method": "inference", "gpus": "4"})}
SAME = {"vpp": 1, "cp": 1, "ep": 1, "pp": 1, "tp": 1}
"""Degrees that a config need not state."""


def folders(target: str, cases: list[Given], place: Path) -> list[tuple[Path, Assignment]]:
    """Write each case for every scheduler that takes it, one after the other."""
    made = []
    schedulers = cycle(sorted(all_places()))
    for at, one in enumerate(cases):
        for scheduler in [next(schedulers) for _ in range(4)]:
            rents = replace(one, placed=rented(one.placed)) if scheduler in ("skypilot", "skyserve", "dstack") else one
            try:
                files = launched(rents, CATALOG, target, scheduler).files
            except InputError:
                continue
            folder = place / f"{at}-{scheduler}"
            folder.mkdir()
            for name, text in files.items():
                (folder / name).write_text(text)
            made.append((folder, one.placed))
    assert made
    return made


def back(path: Path) -> Config | None:
    """Return what is read of a file; none of a part that names no model."""
    config = read_config(str(path))
    if path.name in PARTS:
        assert not {"workload.model"} & config.reading.values.keys()
        assert not config.reading.names
        return None
    return config


def started(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.name not in ASIDE and path.suffix in (
        ".sh", ".py", ".yaml", ".yml", ".json", ".sbatch")]


@pytest.mark.parametrize("target", TRAINED)
def test_what_trains_is_read_back(target, tmp_path):
    asked = [given(layout, **more) for layout, more in TRAINED[target]]
    for folder, placed in folders(target, asked, tmp_path):
        for path in started(folder):
            if (config := back(path)) is None:
                continue
            values, axes = config.asked({} if path.name not in ALONE else {"limits.gpus": placed.gpus}, {},
                                        placed.gpus // placed.nodes, CATALOG)
            layout = placed.layout
            wanted = {**{axis: getattr(layout, axis) for axis in SAME}, "zero": layout.zero,
                      "mbs": layout.micro_batch, "recompute": layout.recompute}
            assert {axis: type(value)(axes.get(axis, SAME.get(axis, ""))) for axis, value in wanted.items()} == wanted
            assert float(axes.get("offload_optimizer", 0)) == layout.offload.optimizer
            width = layout.tp * layout.pp * layout.cp
            assert int(str(values.get("limits.gpus", 0))) == placed.gpus or int(axes["dp"]) * width == placed.gpus
            assert CATALOG.model(str(values["workload.model"])).name == placed.model
            assert values["workload.sequence_length"] == placed.sequence_length
            assert values["workload.global_batch"] == layout.dp * layout.micro_batch * layout.micro_batches
            assert values.get("workload.method", "pretrain") == placed.method
            assert values.get("workload.precision", "bf16") == layout.precision
            assert values["workload.stack"] in (placed.stack, *CATALOG.releases.target(target).stacks)


@pytest.mark.parametrize("target", SERVED)
def test_what_serves_is_read_back(target, tmp_path):
    layout, asked = SERVED[target]
    one = estimated(serving(layout, engine=CATALOG.releases.target(target).stacks[0], **asked))
    for folder, placed in folders(target, [one], tmp_path):
        for path in started(folder):
            if (config := back(path)) is None:
                continue
            values, axes = config.asked({}, {}, 8, CATALOG)
            split = placed.layout
            assert (axes.get("tp"), axes.get("pp", "1")) == (str(split.tp), str(split.pp))
            assert axes.get("ep", "1") == str(split.ep)
            assert CATALOG.model(str(values["workload.model"])).name == placed.model
            assert values["workload.engine"] == placed.stack
            assert values.get("workload.kv_cache", "auto") == asked.get("kv_cache", "auto")
            assert values["workload.max_model_len"] == 2300


@pytest.mark.parametrize("target", MADE)
def test_what_makes_images_or_learns_them_is_read_back(target, tmp_path):
    layout, asked = MADE[target]
    one = media_given(layout, **asked)
    for folder, placed in folders(target, [one], tmp_path):
        for path in started(folder):
            values, axes = read_config(str(path)).asked({}, {}, 8, CATALOG)
            assert values["workload.model"] == placed.model
            for part in layout.split(","):
                axis, _, value = part.partition("=")
                assert axes[axis] == value


def test_every_target_is_read_back():
    learned = {name for name in all_targets() if CATALOG.releases.target(name).work == "posttraining"}
    assert {*TRAINED, *SERVED, *MADE, *learned} == {*all_targets()} - {"llama-cpp"}, "whose weights nobody knows"
