"""SGLang's own arguments: parsed, resolved and checked, on GPUs that are made up."""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import torch
import torch._dynamo
import torch._inductor.compile_fx
import transformers.models.llama.modeling_llama
import transformers.utils

from planner.launch.checks.capability import CAPABILITY
from planner.launch.checks.model_config import FORMATS, format_named, write_config
from planner.launch.checks.services import LaunchedKind, resolved_by, router_urls, workers_of
from planner.launch.checks.stand_ins import install

transformers.utils.is_torchvision_available()
transformers.utils.is_torchaudio_available()
install("triton", "torchvision", "sgl_kernel", "flashinfer", "deep_gemm")
_GPU: dict[str, Any] = {"architecture": "hopper", "memory": 80 * 2**30, "name": "GPU", "node": 8}


def _properties(*_: object) -> Any:  # noqa: ANN401 - torch's own class
    major, minor = CAPABILITY[_GPU["architecture"]]
    return SimpleNamespace(major=major, minor=minor, total_memory=_GPU["memory"], name=_GPU["name"],
                           multi_processor_count=132, gcnArchName="")


torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: int(_GPU["node"])
torch.cuda.get_device_properties = _properties
torch.cuda.get_device_capability = lambda *_: CAPABILITY[_GPU["architecture"]]
torch.cuda.get_device_name = lambda *_: str(_GPU["name"])
torch.cuda.mem_get_info = lambda *_: (_GPU["memory"], _GPU["memory"])
torch.cuda.empty_cache = lambda: None
torch.cuda.set_device = lambda *_: None
torch.cuda.current_device = lambda: 0
torch.version.cuda = "13.0"
import sglang.srt.server_args as server  # noqa: E402 - what stands in has to be there first
from sglang.srt.arg_groups.overrides import resolving_view  # noqa: E402
from sglang.srt.utils import common  # noqa: E402

for _module in (server, common):
    for _name in ("get_device_memory_capacity", "get_nvgpu_memory_capacity"):
        if hasattr(_module, _name):
            setattr(_module, _name, lambda *_, **__: _GPU["memory"] // 2**20)
logging.disable(logging.CRITICAL)
_CACHES = {"auto": "auto", "bfloat16": "bf16", "fp8_e4m3": "fp8"}
_ONLINE = {"bitsandbytes": "nf4"}


def resolve(folder: Path) -> dict[str, object]:
    """Return, for each kind of replica, the axes that SGLang's arguments come to."""
    found = resolved_by(folder, _one)
    routed = router_urls(folder, "python3")
    if routed is not None and find_spec("sglang_router"):
        args = import_module("sglang_router.launch_router").parse_router_args(routed[2:])
        found["router"] = workers_of(args)
    return found


def _one(folder: Path, replica: LaunchedKind, rank: int) -> dict[str, object]:
    _GPU.update(replica.gpu)
    with TemporaryDirectory() as place:
        words = replica.started(folder, rank, place, "python3").words
        assert words[:2] == ["-m", "sglang.launch_server"], "it starts something else"
        turned = "--quantization" in words or replica.shape["format"] == "bf16"
        write_config(Path(place), replica.shape, turned)
        args = server.prepare_server_args([*words[2:], "--skip-tokenizer-init"])
        args.resolve_once()
        args.check_server_args()
        args = resolving_view(args)
    assert args.node_rank == rank, "a node takes itself for another"
    name = args.quantization
    if name is None and not turned:
        name = FORMATS.get(replica.shape["format"], {}).get("quant_method")
    dp = args.attn_dp_size
    # what only decodes gets its keys and values from elsewhere, prefixes too
    decodes = {} if args.disaggregation_mode == "decode" else {"prefix_cache": not args.disable_radix_cache}
    experts = bool(replica.shape.get("experts"))
    return {"gpus": args.tp_size * args.pp_size, "nodes": args.nnodes, "tp": args.tp_size // dp, "pp": args.pp_size,
            "dp": dp, "ep": args.ep_size, "expert_tp": args.tp_size // args.ep_size if experts else 1,
            "memory_fraction": args.mem_fraction_static, "max_sequences": args.max_running_requests // dp,
            "max_batched_tokens": args.chunked_prefill_size // _divided(args, words),
            "prefill_delay": args.prefill_delayer_max_delay_passes if args.enable_prefill_delayer else None,
            "max_model_len": args.context_length, "kv_cache": _CACHES.get(args.kv_cache_dtype, args.kv_cache_dtype),
            **decodes, "answers": "vectors" if args.is_embedding else "tokens",
            "adapters": args.max_loras_per_batch if args.enable_lora else
            None, "lora_rank": args.max_lora_rank if args.enable_lora else None,
            "drafts": args.speculative_num_draft_tokens if args.speculative_algorithm else None,
            "precision": _ONLINE.get(name) or format_named(name, FORMATS.get(replica.shape["format"])),
            "role": {"null": "whole"}.get(args.disaggregation_mode, args.disaggregation_mode)}


def _divided(args: Any, words: list[str]) -> int:  # noqa: ANN401
    """Return by what the chunk has still to be divided: resolving it has divided it by the copies, or not."""
    asked = int(words[words.index("--chunked-prefill-size") + 1])
    return args.attn_dp_size if args.chunked_prefill_size == asked else 1
