"""vLLM's own parser of `vllm serve`, and the config of its engine, on GPUs that are made up."""

from __future__ import annotations

import os
import sys
import types
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from planner.launch.checks.capability import CAPABILITY
from planner.launch.checks.model_config import format_named, write_config
from planner.launch.checks.services import LaunchedKind, resolved_by, router_urls, workers_of
from planner.launch.checks.stand_ins import install

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


class _Kernels(types.ModuleType):
    """Compiled kernels, which only a CUDA build has; no config calls one."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it stands for anything
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


for _name in ("vllm._C_stable_libtorch", "vllm._C", "vllm._moe_C_stable_libtorch", "vllm.vllm_flash_attn",
              "vllm.vllm_flash_attn.flash_attn_interface"):
    sys.modules.setdefault(_name, _Kernels(_name))
import transformers.utils  # noqa: E402 - what stands in has to be there first

transformers.utils.is_torchvision_available()
install("torchvision")
from vllm import platforms  # noqa: E402 - what stands in has to be there first
from vllm.platforms import cuda  # noqa: E402
from vllm.platforms.interface import DeviceCapability  # noqa: E402


class _Gpu(cuda.NonNvmlCudaPlatform):  # type: ignore[misc]
    """The plan's GPUs."""

    made_up: ClassVar[dict[str, Any]] = {"architecture": "hopper", "memory": 80 * 2**30, "name": "GPU", "node": 8}

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> Any:  # noqa: ANN401
        return DeviceCapability(*CAPABILITY[cls.made_up["architecture"]])

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return str(cls.made_up["name"])

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return int(cls.made_up["memory"])

    @classmethod
    def device_count(cls) -> int:
        return int(cls.made_up["node"])

    @classmethod
    def is_fully_connected(cls, ids: list[int]) -> bool:
        return True


platforms._current_platform = _Gpu()
import vllm._custom_ops as operations  # noqa: E402

for _name in dir(operations):
    if "_supports_" in _name:
        setattr(operations, _name, lambda *_, **__: True)
from vllm.triton_utils import triton  # noqa: E402

if not hasattr(triton, "compile"):
    # connectors import kernels, which choose among tunings where triton is not there
    triton.Config = lambda kwargs, **named: types.SimpleNamespace(
        **{"kwargs": kwargs, "num_stages": 1, "num_warps": 1, **named})
from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: E402
from vllm.entrypoints.cli.serve import ServeSubcommand  # noqa: E402
from vllm.model_executor.models import registry  # noqa: E402
from vllm.usage.usage_lib import UsageContext  # noqa: E402
from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: E402

# a model's class is looked at in a process of its own, which has nothing that stands in
registry._run_in_subprocess = lambda function: function()
ENGINE_ARGUMENTS = AsyncEngineArgs
_COMMAND = ServeSubcommand()
_PARSER = FlexibleArgumentParser()
_COMMAND.subparser_init(_PARSER.add_subparsers(required=False, dest="subparser"))
_CACHES = {"auto": "auto", "bfloat16": "bf16", "fp8": "fp8", "fp8_e4m3": "fp8"}
_ROLES = {"kv_producer": "prefill", "kv_consumer": "decode"}


def resolve(folder: Path) -> dict[str, object]:
    """Return, for each kind of replica, the axes that vLLM's arguments come to."""
    found = resolved_by(folder, _one)
    routed = router_urls(folder, "vllm-router")
    if routed is not None and find_spec("vllm_router"):
        parse_router_args = import_module("vllm_router.launch_router").parse_router_args
        args = parse_router_args(routed)
        args._validate_router_args()
        found["router"] = workers_of(args)
    return found


def _one(folder: Path, replica: LaunchedKind, rank: int) -> dict[str, object]:
    _Gpu.made_up = replica.gpu
    with TemporaryDirectory() as place:
        call = replica.started(folder, rank, place, "vllm")
        turned = "--quantization" in call.words or (
            replica.shape["format"] == "bf16" and replica.shape["stored"] == "bf16")
        write_config(Path(place), replica.shape, turned)
        args = _PARSER.parse_args([*call.words, "--skip-tokenizer-init"])
        _COMMAND.validate(args)
        args.model = args.model_tag
        config = AsyncEngineArgs.from_cli_args(args).create_engine_config(
            usage_context=UsageContext.OPENAI_API_SERVER, headless=args.headless)
    assert args.headless == (rank > 0), "a node off the head answers requests"
    return _axes(config, replica)


def _axes(config: Any, replica: LaunchedKind) -> dict[str, object]:  # noqa: ANN401 - the stack's own classes
    parallel, scheduler, model, cache = (config.parallel_config, config.scheduler_config, config.model_config,
                                         config.cache_config)
    dp, tp = parallel.data_parallel_size, parallel.tensor_parallel_size
    ranks = dp * tp if replica.shape.get("experts") else 1
    spread = parallel.enable_expert_parallel and bool(replica.shape.get("experts"))
    lora, drafts, moved = config.lora_config, config.speculative_config, config.kv_transfer_config
    return {"gpus": parallel.world_size * dp, "nodes": parallel.nnodes, "tp": tp, "pp": parallel.pipeline_parallel_size,
            "dp": dp, "ep": ranks if spread else 1, "expert_tp": 1 if spread else ranks,
            "memory_fraction": cache.gpu_memory_utilization, "max_sequences": scheduler.max_num_seqs,
            "max_batched_tokens": scheduler.max_num_batched_tokens, "max_model_len": model.max_model_len,
            "kv_cache": _CACHES.get(cache.cache_dtype, cache.cache_dtype),
            "prefix_cache": bool(cache.enable_prefix_caching), "drafts": drafts and drafts.num_speculative_tokens,
            "adapters": lora and lora.max_loras, "lora_rank": lora and lora.max_lora_rank,
            "precision": format_named(model.quantization, getattr(model.hf_config, "quantization_config", None)),
            "answers": "vectors" if model.runner_type == "pooling" else "tokens",
            "role": "whole" if moved is None else _ROLES[moved.kv_role]}
