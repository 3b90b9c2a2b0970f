"""SimpleTuner's own loader of its config, its parser, and the classes that read the data's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import diffusers
import peft
import torch
import transformers
from accelerate.commands.launch import launch_command_parser

from planner.launch.checks.stand_ins import install
from planner.launch.checks.started import started

# what of these is there has to be known before modules are made up that they look for
USED = (peft, diffusers, transformers.BloomPreTrainedModel, transformers.CLIPTextModel, transformers.AutoProcessor)
install("torchaudio", "py3langid", "pypinyin", "hangul_romanize", "num2words", "spacy", "music_vocoder", "ftfy",
        "trainingsample", "torchvision", "lycoris", "optimum", "optimi", "soundfile", "librosa", "cv2", "boto3",
        "botocore", "pandas", "skrample", "torchsde", "open_clip", "iterutils", "faiss", "peft_singlora",
        "vector_quantize_pytorch", "sdnq", "webshart", "mutagen", "loguru", "bitsandbytes", "kernels", "imageio",
        "imageio_ffmpeg", "torchcodec", "mup", "demucs", "parselmouth", "lyricsgenius", "onnxruntime",
        "prodigy_plus_schedule_free", "prodigyplus", "aiosqlite", "sse_starlette", "atomicwrites", "bs4",
        "cryptography", "clip", "came_pytorch", "q_galore_torch", "sklearn", "toml", "triton")
BASES = {"no_change": "bf16", "int8-sdnq": "int8", "fp8-torchao": "fp8", "fp8wo-torchao": "fp8-weights",
         "int4-torchao": "int4", "nf4-bnb": "nf4"}
OPTIMIZERS = {"adamw_bf16": "adamw", "bnb-adamw8bit": "adamw-8bit", "optimi-lion": "lion", "prodigy": "prodigy",
              "optimi-sgd": "sgd-momentum", "torch-adafactor": "adafactor"}
_CHOICES: dict[str, Any] = {}


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the files come to."""
    call = started(folder, "train.sh", "accelerate")
    assert call.words[0] == "launch", call.words
    launch = launch_command_parser().parse_args(call.words[1:])
    assert launch.module, launch.training_script
    assert launch.training_script == "simpletuner.train", launch.training_script
    args = vars(_loaded(Path(call.environment["PWD"])))
    known = import_module("simpletuner.helpers.models.registry").ModelRegistry.model_families()[args["model_family"]]
    flavours = getattr(known, "HUGGINGFACE_PATHS", {})
    assert args["model_flavour"] in flavours, f"{args['model_flavour']}: {', '.join(flavours)}"
    _known_optimizer(args["optimizer"])
    assert args["mixed_precision"] == launch.mixed_precision
    samples = _samples(Path(args["data_backend_config"]), args)
    shared = args["context_parallel_size"]
    processes = launch.num_processes
    away = args["ramtorch_transformer_percent"] / 100 if args["ramtorch"] else 0.0
    return {"precision": args["mixed_precision"], "dp": processes // shared, "cp": shared,
            "zero": 3 if args["fsdp_enable"] and args["fsdp_reshard_after_forward"] else 0,
            "mbs": args["train_batch_size"], "micro_batches": args["gradient_accumulation_steps"],
            "recompute": _recomputed(args), "offload_parameters": away,
            "offload_activations": float(args["gradient_checkpointing_offload_attention"]),
            "offload_checkpoints": float(args["gradient_checkpointing_backend"] == "unsloth"),
            "base": BASES[args["base_model_precision"]], "optimizer": OPTIMIZERS[args["optimizer"]],
            "latents": "online" if args["vae_cache_disable"] else "cached", "ema": args["use_ema"],
            "steps": args["max_train_steps"], **samples, **_adapters(args)}


def _loaded(place: Path) -> Any:  # noqa: ANN401 - argparse's own
    """Return the arguments that SimpleTuner's loader makes of the config in a folder."""
    loader = import_module("simpletuner.helpers.configuration.loader")
    commands = import_module("simpletuner.helpers.configuration.cmd_args")
    read = commands.get_argument_parser()
    before = Path.cwd()
    config = json.loads((place / "config" / "config.json").read_text())
    known = {option.lstrip("-").replace("-", "_") for action in read._actions for option in action.option_strings}
    unknown = sorted(set(config) - known)
    assert not unknown, f"keys that it does not know: {', '.join(unknown)}"
    os.chdir(place)
    try:
        with patch.dict(os.environ, {"SIMPLETUNER_CONFIG_BACKEND": "json"}), \
                patch.object(torch.cuda, "is_available", lambda: True), \
                patch.object(torch.cuda, "get_device_capability", lambda *_: (9, 0)), \
                patch.object(torch.cuda, "device_count", lambda: 8):
            return loader.load_config(exit_on_error=True)
    finally:
        os.chdir(before)


def _recomputed(args: Mapping[str, Any]) -> float:
    """Return the share of the blocks that are recomputed, as its own rule picks them."""
    rule = import_module("simpletuner.helpers.training.gradient_checkpointing_interval").should_checkpoint_block
    blocks = 840
    taken = sum(rule(block, args["gradient_checkpointing"], args["gradient_checkpointing_interval"],
                     args["gradient_checkpointing_segment_stride"]) for block in range(blocks))
    return float(taken / blocks)


def _known_optimizer(name: str) -> None:
    read = import_module("simpletuner.helpers.training.optimizer_param")
    known = read.optimizer_choices
    # what its packages bring is not installed here
    assert name in known or name.startswith(("optimi-", "bnb-", "prodigy")), f"{name}: {', '.join(sorted(known))}"


def _adapters(args: Mapping[str, Any]) -> dict[str, object]:
    if args["model_type"] == "full":
        return {"method": "full"}
    if args["lora_type"] == "lycoris":
        said = json.loads(Path(args["lycoris_config"]).read_text())
        assert said["algo"] == "lokr", said["algo"]
        wide = "FeedForward" in said["apply_preset"]["target_module"]
        return {"method": "lokr", "lokr_factor": said["factor"], "lora_targets": "attention,mlp" if wide else
                "attention"}
    return {"method": "lora", "lora_rank": args["lora_rank"]}


def _samples(path: Path, args: Mapping[str, Any]) -> dict[str, object]:
    """Return what a sample is, as the classes that read the data's config have it."""
    make = import_module("simpletuner.helpers.data_backend.config").create_backend_config
    found: dict[str, object] = {}
    for one in json.loads(path.read_text()):
        if one["dataset_type"] == "audio":
            # sound has no class of its own: its factory reads the block as it stands
            found["audio"] = one["audio"]["max_duration_seconds"]
            continue
        read = make(one, dict(args))
        read.validate(dict(args))
        if one["dataset_type"] == "video":
            found["frames"] = read.video["num_frames"] if isinstance(read.video, dict) else read.video.num_frames
        if one["dataset_type"] == "image":
            found["frames"] = 1
            if read.crop_aspect == "square":
                found["resolution"] = f"{read.resolution:g}x{read.resolution:g}"
    return found
