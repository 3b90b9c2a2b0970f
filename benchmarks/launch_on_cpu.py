"""What stands in, in the processes of torchtitan, for the GPU that it is written for: see what follows each line."""

from __future__ import annotations

from pathlib import Path

STAND_INS = Path(__file__).parents[1] / "planner" / "launch" / "checks" / "stand_ins.py"
SITE = f'''
import importlib.util, inspect, os, types

if "LOCAL_RANK" in os.environ:
    spec = importlib.util.spec_from_file_location("stand_ins", "{STAND_INS}")
    stand_ins = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stand_ins)
    import torch, torch._dynamo, torch._inductor.compile_fx
    import torch._utils
    import torch.distributed as processes
    import torch.distributed.fsdp._fully_shard._fsdp_collectives as collectives
    import torch.nn.attention.flex_attention as flex

    torch._utils._get_available_device_type = lambda: "cpu"
    stand_ins.install("triton")
    torch.cpu.get_device_name = lambda *_: "cpu"
    torch.cpu.get_device_properties = lambda *_: types.SimpleNamespace(total_memory=2**33)
    torch.cpu.reset_peak_memory_stats = torch.cpu.empty_cache = lambda *_: None
    torch.cpu.memory_stats = lambda *_: {{}}

    def causal(query, key, value, *_, enable_gqa=False, scale=None, return_lse=False, return_aux=None, **__):
        made = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scale, enable_gqa=enable_gqa)
        none = query.new_zeros(query.shape[:-1])
        if return_aux is not None:
            return made, types.SimpleNamespace(lse=none, max_scores=None)
        return (made, none) if return_lse else made

    flex.flex_attention = causal  # its own has no backward on a CPU
    whole = collectives._get_gradient_divide_factors

    def summed(*given, **named):
        bound = inspect.signature(whole).bind(*given, **named)
        bound.arguments["force_sum_reduction_for_comms"] = True
        return whole(*bound.args, **bound.kwargs)

    collectives._get_gradient_divide_factors = summed  # gloo has no other reduction
    meet = processes.barrier
    processes.barrier = lambda *given, device_ids=None, **named: meet(*given, **named)
    if not hasattr(processes, "set_timeout"):
        processes.set_timeout = lambda *_: None  # PyTorch has it since 2.14, the CPU wheel here is older
'''
"""A sitecustomize.py."""


def stands_in(folder: Path) -> Path:
    """Write it below a folder, and return where, for the front of PYTHONPATH."""
    place = folder / "on-cpu"
    place.mkdir()
    with (place / "sitecustomize.py").open("w") as file:
        file.write(SITE)
    return place
