"""xDiT's own parser of its runner, and the class of the model, which says what it can be split by."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import diffusers
import peft
import torch
import transformers

from planner.launch.checks.stand_ins import install
from planner.launch.checks.started import started

# what of these is there has to be known before modules are made up that they look for
USED = (peft, diffusers, transformers.BloomPreTrainedModel, transformers.CLIPTextModel, transformers.AutoProcessor)
install("distvae", "yunchang", "flash_attn", "cv2", "av", "triton", "cache_dit", "flask", "torchvision")
torch.version.cuda = "13.0"
for name, value in (("is_available", lambda: True), ("device_count", lambda: 8), ("current_device", lambda: 0),
                    ("get_device_capability", lambda *_: (9, 0)), ("get_device_name", lambda *_: "NVIDIA H100"),
                    ("get_device_properties", lambda *_: SimpleNamespace(
                        major=9, minor=0, name="NVIDIA H100", total_memory=80 * 2**30, gcnArchName=""))):
    setattr(torch.cuda, name, value)

from xfuser import xFuserArgs  # noqa: E402 - it looks at the GPU when it is imported
from xfuser.config import FlexibleArgumentParser  # noqa: E402
from xfuser.model_executor.models.runner_models.base_model import MODEL_REGISTRY  # noqa: E402
from xfuser.runner import xFuserModelRunner  # noqa: E402

USED_TOO = xFuserModelRunner
"""What registers every model."""


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the arguments come to."""
    outer = started(folder, "generate.sh", "bash")
    assert Path(outer.words[0]).name == "replica.sh", outer.words
    call = started(folder, "replica.sh", "torchrun", environment={
        **{name: outer.environment[name] for name in ("COPY", "COPIES", "SAMPLES", "PROMPTS", "MASTER_PORT")}},
        words=("out",))
    assert call.program[:2] == ["-m", "xfuser.runner"], call.program
    asked = xFuserArgs.add_runner_args(FlexibleArgumentParser()).parse_args(call.program[2:])
    config = xFuserArgs.from_runner_args(vars(asked))
    kind = MODEL_REGISTRY[asked.model]
    # its constructor refuses what the model cannot be split by, and then wants weights
    model = kind.__new__(kind)
    model.settings, model.config = kind.settings, config
    config._resolve_gemm_quantization()
    model._validate_config(config)
    model._validate_args({**vars(asked), "output_type": "pil"})
    ranks = (2 if asked.use_cfg_parallel else 1) * asked.ulysses_degree * asked.ring_degree * (
        asked.pipefusion_parallel_degree or 1)
    assert ranks == call.world, f"{ranks} GPUs by degrees, {call.world} processes"
    return {"precision": "fp8" if config.use_fp8_gemms else "bf16", "steps": asked.num_inference_steps,
            "batch": asked.batch_size, "vae": "tiled" if asked.enable_tiling else "whole",
            "offload": "model" if asked.enable_model_cpu_offload else "sequential"
            if asked.enable_sequential_cpu_offload else "none", "compile": asked.use_torch_compile,
            "cfg": 2 if asked.use_cfg_parallel else 1, "ulysses": asked.ulysses_degree, "ring": asked.ring_degree,
            "pipefusion": asked.pipefusion_parallel_degree or 1, "resolution": f"{asked.width}x{asked.height}",
            "frames": asked.num_frames or 1, "guidance": asked.guidance_scale, "rate": False,
            "replicas": int(outer.environment["COPIES"]), "step_cache": "none"}
