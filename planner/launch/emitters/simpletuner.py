"""SimpleTuner: its config, that of the data, and of LyCORIS where that makes the adapters, as JSON."""

from __future__ import annotations

import math

from planner.launch.axes import No, Settings, TableOf, only, settings_of
from planner.launch.diffused import Diffused
from planner.launch.emitter import DiffusionEmitter, plain
from planner.launch.formats import as_text, by_file
from planner.launch.program import PORT, Part, Program, Variable, script

CONFIG, DATA, FOLDER, LYCORIS = "config.json", "multidatabackend.json", "multidatabackend-folder.json", "lycoris.json"
WORDS = {"PLAN_DATA": "DATA", "PLAN_OUTPUT": "output", "PLAN_RATE": "LEARNING_RATE", "PLAN_WHERE": "where"}
"""Of the configs -> the variable of the script that fills them in."""
BASES = {"bf16": "no_change", "int8": "int8-sdnq", "fp8": "fp8-torchao", "fp8-weights": "fp8wo-torchao",
         "int4": "int4-torchao", "nf4": "nf4-bnb"}
OPTIMIZERS = {"adamw": "adamw_bf16", "adamw-8bit": "bnb-adamw8bit", "lion": "optimi-lion", "prodigy": "prodigy",
              "sgd-momentum": "optimi-sgd", "adafactor": "torch-adafactor"}
HUB = {"image": "RareConcepts/Domokun", "video": "sayakpaul/video-dataset-disney-organized",
       "audio": "Yi3852/ACEStep-Songs"}
"""Data of the trainer's own examples, by what a sample is."""
ON_HUB: dict[str, object] = {"type": "huggingface", "dataset_name": "PLAN_DATA", "metadata_backend": "huggingface"}
IN_FOLDER: dict[str, object] = {"type": "local", "instance_data_dir": "PLAN_DATA", "metadata_backend": "discovery",
                                "caption_strategy": "textfile"}
CAPTIONS: dict[str, dict[str, object]] = {
    "image": {"caption_strategy": "instanceprompt", "instance_prompt": "a photo"},
    "video": {"caption_strategy": "huggingface", "huggingface": {"video_column": "video", "caption_column": "prompt"}},
    "audio": {"caption_strategy": "huggingface"}}
"""Where the captions of these are."""
ROW = 2
"""Blocks that are recomputed together, of models that recompute rows of them."""


def _recompute(work: Diffused) -> Settings | No:
    share, model = float(str(work.value("recompute"))), work.model.name
    acts = work.runs.ineffective.get(model)
    if share and acts == "none":
        return No(f"{share:g} of the blocks ({model} takes the same memory by every setting)", {"recompute": "none"})
    if 0 < share < 1 and acts == "layer":
        return No(f"{share:g} of the blocks ({model} recomputes all or none)", {"recompute": "full"})
    said: dict[str, object] = {f"{CONFIG}:gradient_checkpointing": share > 0}
    if 0 < share < 1:
        row = ROW if model in work.runs.in_rows else 1
        stride = row / share
        if not math.isclose(stride, round(stride)):
            return No(f"{share:g} of the blocks (every second, third, ...)", {"recompute": "mixed"})
        said |= {f"{CONFIG}:gradient_checkpointing_interval": row if row > 1 else round(stride)}
        said |= {f"{CONFIG}:gradient_checkpointing_segment_stride": round(stride)} if row > 1 else {}
    return said


def _checkpoints(work: Diffused) -> Settings:
    return {f"{CONFIG}:gradient_checkpointing_backend": "unsloth"} if work.value("offload_checkpoints") else {}


def _spilled(work: Diffused) -> Settings | No:
    spilled = bool(work.value("offload_activations"))
    if spilled and work.model.name in work.runs.unspilled:
        return No(f"1 ({work.model.name} sends nothing to the host)", {"offload_activations": 0})
    if spilled and not work.value("recompute"):
        return No("1 without recompute (what is kept of recomputed blocks goes to the host)", {"recompute": "full"})
    return {f"{CONFIG}:gradient_checkpointing_offload_attention": spilled}


def _swapped(work: Diffused) -> Settings:
    if not work.placed.swapped:
        return {f"{CONFIG}:ramtorch": False}
    return {f"{CONFIG}:ramtorch": True, f"{CONFIG}:ramtorch_transformer_percent": round(100 * work.placed.swapped)}


def _shards(work: Diffused) -> Settings:
    if not work.placed.layout.zero:
        return {f"{CONFIG}:fsdp_enable": False}
    return {f"{CONFIG}:fsdp_enable": True, f"{CONFIG}:fsdp_version": 2, f"{CONFIG}:fsdp_reshard_after_forward": True}


def _adapters(work: Diffused) -> Settings | No:
    method, reach = work.placed.method, str(work.value("lora_targets"))
    if method == "full":
        return {f"{CONFIG}:model_type": "full"}
    if method == "lokr":
        factor = work.asked.lokr_factor
        where = ["Attention", *(["FeedForward"] if work.asked.adapts_mlp else [])]
        return {f"{CONFIG}:model_type": "lora", f"{CONFIG}:lora_type": "lycoris",
                f"{CONFIG}:lycoris_config": f"PLAN_WHERE/{LYCORIS}",
                f"{LYCORIS}:algo": "lokr", f"{LYCORIS}:multiplier": 1.0, f"{LYCORIS}:full_matrix": True,
                f"{LYCORIS}:linear_alpha": 1, f"{LYCORIS}:factor": factor,
                f"{LYCORIS}:apply_preset": {"target_module": where}}
    usual = "attention,mlp" if work.model.name in work.runs.fed else "attention"
    told: Settings = {}
    if reach != usual:
        key, _, value = work.names.get(reach, "").partition("=")
        if not key:
            return No(f"{reach} (of {work.model.name} it adapts {usual})", {"lora_targets": usual})
        told = {f"{CONFIG}:{key}": value}
    return {f"{CONFIG}:model_type": "lora", f"{CONFIG}:lora_type": "standard", f"{CONFIG}:lora_rank":
            work.asked.lora_rank, f"{CONFIG}:lora_alpha": work.asked.lora_rank, **told}


def _latents(work: Diffused) -> Settings:
    online = work.asked.latents == "online"
    return {f"{CONFIG}:vae_cache_disable": online, f"{CONFIG}:text_cache_disable": online}


def _model(work: Diffused) -> Settings | No:
    if work.model.name not in work.release.models:
        return No(f"{work.model.name} (it has {', '.join(sorted(work.release.models))})")
    return {f"{CONFIG}:model_family": work.names["family"], f"{CONFIG}:model_flavour": work.names["flavour"]}


TABLE: TableOf[Diffused] = {
    ("model",): _model,
    ("candidate", "dp"): lambda w: {f"{CONFIG}:num_processes": w.placed.gpus, f"{CONFIG}:num_machines":
                                    w.placed.nodes},
    ("precision",): plain("precision", f"{CONFIG}:mixed_precision", {"bf16": "bf16", "fp16": "fp16"}),
    ("cp",): lambda w: {f"{CONFIG}:context_parallel_size": w.placed.layout.cp, f"{CONFIG}:"
                        "context_parallel_comm_strategy": "alltoall"},
    ("zero",): _shards,
    ("mbs", "micro_batches"): lambda w: {f"{CONFIG}:train_batch_size": w.placed.layout.micro_batch, f"{CONFIG}:"
                                         "gradient_accumulation_steps": w.placed.layout.micro_batches},
    ("recompute",): _recompute,
    ("offload_parameters",): _swapped,
    ("offload_activations",): _spilled,
    ("offload_checkpoints",): _checkpoints,
    ("offload_optimizer",): only("offload_optimizer", 0, reason="it keeps the optimizer's states on the GPU",
                                 instead={"offload_optimizer": 0}),
    ("base",): plain("base", f"{CONFIG}:base_model_precision", BASES, "quantization"),
    ("method", "lora_rank", "lokr_factor", "lora_targets"): _adapters,
    ("optimizer",): plain("optimizer", f"{CONFIG}:optimizer", OPTIMIZERS),
    ("latents",): _latents,
    ("ema",): lambda w: {f"{CONFIG}:use_ema": w.asked.ema, **({f"{CONFIG}:ema_device": "accelerator"}
                                                              if w.asked.ema else {})},
    ("resolution", "frames", "audio"): lambda w: {f"{CONFIG}:resolution": _side(w), f"{CONFIG}:resolution_type":
                                                  "pixel_area"},
    ("steps",): lambda w: {f"{CONFIG}:max_train_steps": w.steps, f"{CONFIG}:num_train_epochs": 0},
}


def _side(work: Diffused) -> int:
    """Return the side of a square of as many pixels."""
    width, height = work.size
    return round(math.sqrt(width * height)) or 1024


def _samples(work: Diffused, *, hub: bool) -> list[dict[str, object]]:
    """Return the datasets: samples on the Hub or in a folder, all cut to one size, and where embeddings are kept."""
    kind, (width, height) = work.model.media, work.size
    where = ON_HUB | CAPTIONS[kind] if hub else IN_FOLDER
    cut: dict[str, object] = {
        "resolution": _side(work), "resolution_type": "pixel_area", "minimum_image_size": 0,
        "maximum_image_size": _side(work), "target_downsample_size": _side(work), "crop": True,
        "crop_style": "center", "crop_aspect": "square" if width == height else "closest",
        **({} if width == height else {"crop_aspect_buckets": [round(width / height, 2)]})}
    if kind == "video":
        cut["video"] = {"num_frames": work.placed.frames, "min_frames": work.placed.frames}
    if kind == "audio":
        cut = {"audio": {"max_duration_seconds": work.placed.audio_seconds}}
    online = {"vae_cache_disable": True} if work.asked.latents == "online" else {}
    return [{"id": "samples", "dataset_type": kind, **where, **cut, **online,
             "cache_dir_vae": "cache/vae"},
            {"id": "text", "dataset_type": "text_embeds", "default": True, "type": "local", "cache_dir": "cache/text"}]


def _start(work: Diffused) -> list[str]:
    nodes = work.placed.nodes
    several = ['--machine_rank "${NODE_RANK:?}" --main_process_ip "${MASTER_ADDR:?}"',
               f'--main_process_port "${{MASTER_PORT:-{PORT}}}"'] if nodes > 1 else []
    files = [CONFIG, *([LYCORIS] if work.placed.method == "lokr" else [])]
    by_word = " ".join(f'-e "s|{word}|${name}|"' for word, name in WORDS.items())
    return ['cd "$here"', 'mkdir -p "$CHECKPOINTS/simpletuner-${NODE_RANK:-0}/config" "$CHECKPOINTS/adapters"',
            'output="$(cd "$CHECKPOINTS/adapters" && pwd)"',
            'where="$(cd "$CHECKPOINTS/simpletuner-${NODE_RANK:-0}/config" && pwd)"',
            f'data="{DATA}"', 'if [[ -d "$DATA" ]]; then', '  DATA="$(cd "$DATA" && pwd)"', f'  data="{FOLDER}"', "fi",
            f"for file in {' '.join(files)}; do", f'  sed {by_word} "$here/$file" > "$where/$file"', "done",
            f'sed {by_word} "$here/$data" > "$where/{DATA}"', 'cd "$where/.."',
            "exec " + " ".join([f"accelerate launch --num_processes {work.placed.gpus} --num_machines {nodes}",
                                f"--mixed_precision {work.placed.layout.precision} --dynamo_backend no", *several,
                                "--module simpletuner.train"])]


def emit(work: Diffused) -> Program:
    """Return SimpleTuner's files and the script that starts them."""
    files = by_file(settings_of(work, TABLE))
    files[CONFIG] |= {
        "data_backend_config": f"PLAN_WHERE/{DATA}", "output_dir": "PLAN_OUTPUT", "learning_rate": "PLAN_RATE",
        "lr_scheduler": "constant", "seed": 42, "report_to": "none", "checkpoint_step_interval": max(1, min(
            500, work.steps)), "validation_disable": True, "disable_benchmark": True, "push_to_hub": False,
        "aspect_bucket_rounding": 2, "disable_bucket_pruning": True, "quantize_via": "cpu"}
    head = f"SimpleTuner {work.release.release}"
    rows = work.placed.layout.recompute == "mixed" and work.model.name in work.runs.in_rows
    rate = "1e-5" if work.placed.method == "full" else "1e-4"
    return Program(
        target=work.target, parts=(Part("train", "train.sh", work.placed.nodes, work.gpus_per_node),),
        files={**{name: as_text(name, head, data) for name, data in files.items()},
               **{name: as_text(name, head, _samples(work, hub=name == DATA)) for name in (DATA, FOLDER)},
               "train.sh": script(f"{head}: runs on every node", {
                   "SIMPLETUNER_CONFIG_BACKEND": "json", "TOKENIZERS_PARALLELISM": "false"}, _start(work))},
        variables=(Variable("DATA", HUB[work.model.media], "Dataset of the Hugging Face Hub, or a folder of samples, "
                            "each with its caption in a text file of the same name."),
                   Variable("CHECKPOINTS", "checkpoints", "Where caches and what is trained are kept."),
                   Variable("LEARNING_RATE", rate, "Of the optimizer; Prodigy wants 1.")),
        notes=(*((f"Blocks are recomputed in rows of {ROW}, with as many between them that are not.",) if rows else ()),
               "Samples are cut to one size, as the plan has them; the caches of the first start take time that the "
               "plan does not count.",
               "The weights are those that the flavour names; HF_TOKEN in the environment opens gated ones."))


EMITTER = DiffusionEmitter("simpletuner", TABLE, emit)
