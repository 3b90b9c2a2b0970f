"""What trainers and pipelines of images, clips and sound are told, and what they refuse by its name."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from planner.errors import InputError
from planner.launch.axes import CannotExpress, settings_of
from planner.launch.check import differences, syntax_errors
from planner.launch.diffused import VALUES as TRAINED
from planner.launch.diffused import diffused_of
from planner.launch.emitter import DiffusionEmitter, GenerationEmitter
from planner.launch.folder import launched
from planner.launch.generated import VALUES as MADE
from planner.launch.generated import generated_of
from tests.launch.emitters import axes_of, emitters_of
from tests.launch.media import changed, media_given
from tests.launch.works import CATALOG

TRAINERS, MAKERS = emitters_of(DiffusionEmitter), emitters_of(GenerationEmitter)
OFFLOAD = media_given(model="sdxl", method="lora").placed.layout.offload
OTHER_TRAINED = {
    "model": {"model": "flux.1-dev"}, "candidate": {"gpus": 2, "nodes": 2},
    "precision": {"layout": {"precision": "fp16"}},
    "dp": {"gpus": 4, "layout": {"dp": 4}}, "cp": {"layout": {"cp": 2}}, "zero": {"layout": {"zero": 3}},
    "mbs": {"layout": {"micro_batch": 4}}, "micro_batches": {"layout": {"micro_batches": 3}},
    "recompute": {"recomputed": 0.25, "layout": {"recompute": "mixed"}}, "offload_parameters": {"swapped": 0.5},
    "offload_activations": {"layout": {"offload": OFFLOAD.model_copy(update={"activations": 1.0}),
                                       "recompute": "full"}},
    "offload_checkpoints": {"checkpoints": 1.0},
    "offload_optimizer": {"layout": {"offload": OFFLOAD.model_copy(update={"optimizer": 1.0})}},
    "base": {"base": "nf4"}, "method": {"method": "full"}, "lora_rank": {"asked": {"lora_rank": 64}},
    "lokr_factor": {"method": "lokr", "asked": {"lokr_factor": 4}},
    "lora_targets": {"asked": {"lora_targets": ("q", "k", "v", "o", "gate", "up", "down")}},
    "optimizer": {"asked": {"optimizer": "lion"}}, "latents": {"asked": {"latents": "online"}},
    "ema": {"asked": {"ema": True}}, "resolution": {"resolution": "768x768"}, "frames": None, "audio": None,
    "steps": None}
"""Of each axis a value that the plan does not have; none where another model is needed to see it."""
OTHER_MADE = {
    "model": {"model": "flux.1-dev"}, "candidate": {}, "replicas": {"serving": {"replicas": 2}, "gpus": 2},
    "rate": {"asked": {"rate": 1.0}}, "precision": {"layout": {"precision": "fp8"}},
    "resolution": {"made": {"resolution": "768x512"}}, "frames": None, "steps": {"made": {"steps": 7}},
    "guidance": {"asked": {"guidance": 2.5}}, "passes": {}, "batch": {"made": {"batch": 4}},
    "offload": {"made": {"offload": "model"}}, "vae": {"made": {"vae": "tiled"}},
    "compile": {"asked": {"compile": True}},
    "step_cache": {"asked": {"step_cache": "teacache"}}, "cfg": {"made": {"cfg": 2}},
    "ulysses": {"made": {"ulysses": 2}},
    "ring": {"made": {"ring": 2}}, "pipefusion": {"made": {"pipefusion": 2}}}
WHERE = {"candidate", "passes"}
"""Axes that follow from others, and have no words of their own."""


def trained(target="simpletuner", **asked):
    one = media_given(**{"model": "sdxl", "method": "lora", **asked})
    return diffused_of(one.placed, one.asked, CATALOG, target)


def made(target, **asked):
    one = media_given(**{"model": "flux.1-dev", "method": "inference", **asked})
    return generated_of(one.placed, one.asked, CATALOG, target)


def emitted(emitter, work, *, several=False):
    try:
        return dict(emitter.emit([work] if several else work).files)
    except CannotExpress as error:
        return tuple(error.refused)


def test_every_axis_is_named_by_every_target():
    for emitters, values in ((TRAINERS, TRAINED), (MAKERS, MADE)):
        for emitter in emitters.values():
            assert sorted(axes_of(emitter.table)) == sorted(values), "each once"
    assert (set(OTHER_TRAINED), set(OTHER_MADE)) == (set(TRAINED), set(MADE)), "the tests below have a value for each"


@pytest.mark.parametrize("axis", OTHER_TRAINED)
@pytest.mark.parametrize("target", TRAINERS)
def test_another_value_changes_what_a_trainer_is_told_or_is_refused(target, axis):
    model = {"frames": "wan2.1-1.3b", "audio": "ace-step-1.5"}.get(axis, "sdxl")
    base = trained(target, model=model)
    other = OTHER_TRAINED[axis] if OTHER_TRAINED[axis] is not None else {
        "frames": {"frames": 17}, "audio": {"audio_seconds": 20.0},
        "steps": {"time": base.placed.time.model_copy(update={"steps": 77})}}[axis]
    if axis == "lokr_factor":
        base = changed(base, method="lokr")
    work = changed(base, **{name: value for name, value in other.items() if name != "model"})
    if "model" in other:
        work = replace(work, model=CATALOG.diffusion(other["model"]))
    assert emitted(TRAINERS[target], base) != emitted(TRAINERS[target], work)


@pytest.mark.parametrize("axis", sorted(set(OTHER_MADE) - WHERE))
@pytest.mark.parametrize("target", MAKERS)
def test_another_value_changes_what_is_made_or_is_refused(target, axis):
    base = made(target, model="wan2.1-14b" if axis == "frames" else "flux.1-dev")
    other = OTHER_MADE[axis] or {"made": {"frames": 17}}
    work = changed(base, **{name: value for name, value in other.items() if name != "model"})
    if "model" in other:
        work = replace(work, model=CATALOG.diffusion("z-image"))
    assert emitted(MAKERS[target], base, several=True) != emitted(MAKERS[target], work, several=True)


@pytest.mark.parametrize(("asked", "told"), [
    ({"quantization": "nf4"}, {"base_model_precision": "nf4-bnb"}),
    ({"quantization": "fp8"}, {"base_model_precision": "fp8-torchao"}),
    ({"optimizer": "adamw-8bit"}, {"optimizer": "bnb-adamw8bit"}),
    ({"layout": "recompute=full,offload_parameters=0.5"}, {"ramtorch": True, "ramtorch_transformer_percent": 50,
                                                          "gradient_checkpointing": True}),
    ({"layout": "recompute=0.25"}, {"gradient_checkpointing_interval": 4}),
    ({"model": "flux.1-dev", "layout": "recompute=mixed"}, {"gradient_checkpointing_interval": 2,
                                                            "gradient_checkpointing_segment_stride": 4}),
    ({"layout": "dp=8,zero=3", "batch": "8", "gpus": "8"}, {"num_processes": 8, "fsdp_enable": True}),
    ({"model": "flux.1-dev", "lora_targets": "attention,mlp"}, {"flux_lora_target": "all+ffs"}),
    ({"model": "wan2.1-14b", "layout": "cp=2,dp=2", "batch": "4", "gpus": "4"}, {
        "context_parallel_size": 2, "context_parallel_comm_strategy": "alltoall", "num_processes": 4}),
    ({"method": "full"}, {"model_type": "full"}), ({"latents": "online"}, {"vae_cache_disable": True})])
def test_simpletuner_is_told_in_its_own_keys(asked, told):
    settings = settings_of(trained(**asked), TRAINERS["simpletuner"].table)
    assert told == {key: settings.get(f"config.json:{key}") for key in told}


@pytest.mark.parametrize(("asked", "why"), [
    ({"model": "hunyuan-video"}, "it has .*hunyuan-video-1.5"),
    ({"model": "qwen-image", "lora_targets": "attention,mlp"}, "it adapts attention"),
    ({"method": "full", "layout": "offload_optimizer=1"}, "states on the GPU")])
def test_what_simpletuner_cannot_be_told_is_refused_by_name(asked, why):
    with pytest.raises(CannotExpress, match=why):
        settings_of(trained(**asked), TRAINERS["simpletuner"].table)


@pytest.mark.parametrize(("model", "recompute", "why"), [
    ("cosmos3-nano", "full", "takes the same memory by every setting"),
    ("hidream-i1-full", "mixed", "recomputes all or none")])
def test_recompute_that_changes_nothing_is_refused_by_name(model, recompute, why):
    work = changed(trained(model=model), layout={"recompute": recompute})
    with pytest.raises(CannotExpress, match=why):
        settings_of(work, TRAINERS["simpletuner"].table)


@pytest.mark.parametrize(("target", "asked", "why"), [
    ("diffusers", {"layout": "ulysses=2", "gpus": "2"}, "xdit has several"),
    ("diffusers", {"quantization": "q4_k_m"}, "a file or an engine of its own"),
    ("diffusers", {"step_cache": "teacache"}, "of flux.1-dev it has first-block-cache"),
    ("xdit", {"quantization": "nf4"}, "it has bf16, fp8"),
    ("xdit", {"model": "sdxl"}, "it has flux.1-dev"),
    ("xdit", {"model": "krea-2", "layout": "ring=2", "gpus": "2"}, "of krea-2 it has none")])
def test_what_cannot_make_images_so_is_refused_by_name(target, asked, why):
    with pytest.raises(CannotExpress, match=why):
        settings_of(made(target, **asked), MAKERS[target].table)


def test_several_gpus_of_an_image_go_to_xdit_and_text_has_no_pipeline():
    one = media_given("ulysses=2,pipefusion=2", model="flux.1-dev", method="inference", gpus="4")
    files = launched(one, CATALOG, "xdit", "torchrun").files
    assert "--pipefusion_parallel_degree 2" in files["replica.sh"]
    assert "torchrun --nnodes=1 --nproc-per-node=4" in files["replica.sh"]
    with pytest.raises(InputError, match="vllm is for serving, and the plan is of making images"):
        launched(one, CATALOG, "vllm")


def test_a_lycoris_file_has_the_factor_and_the_places():
    asked = {"model": "sdxl", "method": "lokr", "lokr_factor": "8", "lora_targets": "attention,mlp"}
    files = launched(media_given(**asked), CATALOG, "simpletuner", "torchrun").files
    said = json.loads(files["lycoris.json"])
    assert (said["algo"], said["factor"]) == ("lokr", 8)
    assert said["apply_preset"] == {"target_module": ["Attention", "FeedForward"]}


@pytest.fixture
def folder(tmp_path):
    """Return what writes a folder, and runs a script of it with a stand-in for what it starts."""
    def write(given, target, scheduler="torchrun"):
        place = tmp_path / "run"
        place.mkdir()
        for name, text in launched(given, CATALOG, target, scheduler).files.items():
            (place / name).write_text(text)
        assert not list(syntax_errors(place))
        return place

    def run(place, script, launcher, **environment):
        (tmp_path / "bin").mkdir(exist_ok=True)
        stand_in = tmp_path / "bin" / launcher
        stand_in.write_text('#!/bin/bash\necho "$CUDA_VISIBLE_DEVICES|$COPY|$COPIES|$*" >> "$SAID"\n')
        stand_in.chmod(0o755)
        said = tmp_path / "said.txt"
        ran = subprocess.run(["bash", script], cwd=place, text=True, capture_output=True, check=False, timeout=60, env={
            **os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SAID": str(said), **environment})
        assert ran.returncode == 0, ran.stderr
        return sorted(said.read_text().splitlines())

    return SimpleNamespace(write=write, run=run)


def test_a_folder_of_samples_is_read_from_where_it_is(folder, tmp_path):
    place = folder.write(media_given(model="sdxl", method="lora"), "simpletuner")
    (tmp_path / "photos").mkdir()
    (call,) = folder.run(place, "train.sh", "accelerate", DATA=str(tmp_path / "photos"))
    assert "launch --num_processes 1 --num_machines 1 --mixed_precision bf16" in call
    configs = place / "checkpoints" / "simpletuner-0" / "config"
    data = json.loads((configs / "multidatabackend.json").read_text())
    assert (data[0]["type"], data[0]["instance_data_dir"]) == ("local", str(tmp_path / "photos"))
    config = json.loads((configs / "config.json").read_text())
    assert config["learning_rate"] == "1e-4"
    assert config["data_backend_config"] == str(configs / "multidatabackend.json")
    assert "PLAN_" not in json.dumps(config)
    folder.run(place, "train.sh", "accelerate")
    assert json.loads((configs / "multidatabackend.json").read_text())[0]["type"] == "huggingface"


def test_replicas_of_a_batch_share_the_gpus_and_the_samples(folder):
    one = media_given(model="flux.1-dev", method="inference")
    figures = one.placed.serving.model_copy(update={"replicas": 4})
    four = replace(one, placed=one.placed.model_copy(update={"serving": figures, "gpus": 4, "nodes": 1}))
    place = folder.write(four, "diffusers")
    calls = folder.run(place, "generate.sh", "python3")
    assert [call.split("|")[:3] for call in calls] == [[f"{at}", f"{at}", "4"] for at in range(4)]
    assert all(call.endswith("generate.py output") for call in calls)


class _Pipe:
    """A pipeline that writes down what it is told, and makes nothing."""

    def __init__(self, told):
        self.told, self.calls, self.did = told, [], []

    @classmethod
    def from_pretrained(cls, model, **told):
        return cls({"model": model, **told})

    def __getattr__(self, name):
        return lambda *given, **named: self.did.append(name)

    def __call__(self, **asked):
        self.calls.append(asked)
        made = [SimpleNamespace(save=lambda path: path.write_text("png")) for _ in asked["prompt"]]
        return SimpleNamespace(images=made)


@pytest.fixture
def script(folder, monkeypatch):
    """Return the emitted script of a plan as a module, with stand-ins for diffusers and PyTorch."""
    def load(**asked):
        place = folder.write(media_given(model="flux.1-dev", method="inference", **asked), "diffusers")
        stub = SimpleNamespace(FluxPipeline=_Pipe, BitsAndBytesConfig=dict, PipelineQuantizationConfig=dict)
        torch = SimpleNamespace(bfloat16="bf16", float16="fp16", cuda=SimpleNamespace(is_available=lambda: False))
        export = SimpleNamespace(export_to_video=None)
        for name, module in (("diffusers", stub), ("torch", torch), ("diffusers.utils", export)):
            monkeypatch.setitem(sys.modules, name, module)
        spec = importlib.util.spec_from_file_location("emitted_generate", place / "generate.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module, place

    return load


def test_the_script_makes_its_share_as_the_plan_has_it(script, tmp_path, monkeypatch):
    module, place = script(layout="offload=model,mbs=2", batch="2", quantization="nf4", steps="7")
    kept = []
    monkeypatch.setattr(module, "loaded", lambda *given, loaded=module.loaded: kept.append(loaded(*given)) or kept[0])
    for name, value in {"MODEL": "m", "PROMPTS": str(place / "prompts.txt"), "SAMPLES": "9", "COPY": "1",
                        "COPIES": "2"}.items():
        monkeypatch.setenv(name, value)
    module.main([str(tmp_path / "made")])
    (pipe,) = kept
    assert pipe.told["quantization_config"]["quant_mapping"]["transformer"]["load_in_4bit"] is True
    assert pipe.did == ["enable_model_cpu_offload"]
    assert [len(call["prompt"]) for call in pipe.calls] == [2, 2], "samples 1, 3, 5 and 7 of nine"
    assert {(call["num_inference_steps"], call["height"]) for call in pipe.calls} == {(7, 1024)}
    assert sorted(path.name for path in (tmp_path / "made").glob("*.png")) == [f"00000{n}.png" for n in (1, 3, 5, 7)]
    (row,) = csv.DictReader((tmp_path / "made" / "run-1.csv").read_text().splitlines())
    assert (row["model"], row["steps"], row["batch"], row["quantization"]) == ("flux.1-dev", "7", "2", "nf4")


def test_a_value_that_is_not_the_plans_is_named():
    work = trained()
    assert list(differences(work, {"mbs": work.value("mbs"), "recompute": 0.9})) == [
        f"recompute is 0.9, the plan has {work.value('recompute')}"]
