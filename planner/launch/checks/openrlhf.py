"""OpenRLHF's own parser of its Ray trainer, up to the training that it would start."""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._inductor.compile_fx  # noqa: F401 - before what stands in for triton is there
import transformers  # noqa: F401 - before the stand-ins are asked for by it

from planner.launch.checks.stand_ins import install
from planner.launch.checks.started import started

install("triton", "flash_attn", "ring_flash_attn", "vllm", "bitsandbytes", "optimum", "liger_kernel", "pynvml")
_ESTIMATORS = {"gae": "ppo", "group_norm": "grpo", "reinforce_baseline": "reinforce"}
"""Those of other names than the method; without a baseline, `reinforce` has its own."""


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the arguments come to."""
    call = started(folder, "train.sh", "python3", beside=("ray",))
    assert call.words[:2] == ["-m", "openrlhf.cli.train_ppo_ray"], call.words
    args = _parsed(call.words[2:])
    engines, tp = args.vllm.num_engines, args.vllm.tensor_parallel_size
    gpus = args.actor.num_nodes * args.actor.num_gpus_per_node
    apart = args.train.async_enable
    # its placement asserts the same
    assert apart or engines * tp == gpus, f"{engines} engines of {tp} GPUs on {gpus}"
    assert args.train.batch_size == args.rollout.batch_size * args.rollout.n_samples_per_prompt, "one update a step"
    name = args.algo.advantage.estimator
    return {"trainer": "deepspeed", "trainer_gpus": gpus, "tp": args.ds.tensor_parallel_size, "pp": 1, "ep": 1,
            "cp": args.ds.ring_attn_size, "zero": args.ds.zero_stage, "swapped": args.ds.enable_sleep,
            "offload": float(args.ds.adam_offload), "placement": "disaggregated" if apart else "colocated",
            "policy_lag": args.train.async_queue_size if apart else 0, "method": _ESTIMATORS.get(name, name),
            "lora_rank": args.ds.lora.rank, "quantized": False, "prompts": args.rollout.batch_size,
            "samples_per_prompt": args.rollout.n_samples_per_prompt, "max_model_len": args.data.max_len,
            "packed": args.train.max_tokens_per_gpu, "reference": args.algo.kl.init_coef > 0,
            "recompute": "full" if args.actor.gradient_checkpointing_enable else "none", "engine": "vllm",
            "rollout_gpus": engines * tp, "rollout_tp": tp, "memory_fraction": args.vllm.gpu_memory_utilization}


def _parsed(words: list[str]) -> Any:  # noqa: ANN401 - the stack's own class
    """Return the arguments that it would train with: its script is run, and stops where it would start Ray."""
    import ray

    class Reached(Exception):
        pass

    def reached(*_: object, **__: object) -> None:
        raise Reached

    spec = find_spec("openrlhf.cli.train_ppo_ray")
    assert spec is not None
    before, sys.argv, ray.is_initialized = sys.argv, ["train_ppo_ray", *words], reached
    try:
        runpy.run_path(str(spec.origin), run_name="__main__")
    except Reached as stopped:
        trace = stopped.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_name == "train":
                return trace.tb_frame.f_locals["args"]
            trace = trace.tb_next
    finally:
        sys.argv = before
    raise RuntimeError("it did not come to training")
