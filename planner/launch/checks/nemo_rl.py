"""NeMo RL's own config, with the overrides of a script, up to the clusters, the policy and the engine it would start.

Its checkout is read where $PLANNER_NEMO_RL names it: no package index has it.
"""

from __future__ import annotations

import os
import sys
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch._dynamo
import torch._inductor.compile_fx  # noqa: F401 - before what stands in for triton is there
import typing_extensions
from transformers import AutoProcessor, AutoTokenizer  # noqa: F401 - before its release is named otherwise

from planner.launch.checks.releases import NEMO_RL
from planner.launch.checks.stand_ins import install
from planner.launch.checks.started import started

install("triton", "flash_attn", "nemo_automodel", "megatron", "vllm", "torchdata", "sglang", "decord", "matplotlib",
        "nvtx", "mlflow", "wandb", "swanlab", "pynvml", "math_verify", "torchvision", "soundfile", "zmq")
# it asks for an older release than the others do, and for a Python whose TypedDict pydantic reads
sys.modules["transformers"].__version__ = "5.8.1"  # type: ignore[attr-defined]
typing.TypedDict = typing_extensions.TypedDict
sys.path.insert(0, os.environ[NEMO_RL])
import nemo_rl.models.generation.vllm.vllm_generation as engine  # noqa: E402
import nemo_rl.models.policy.lm_policy as policy  # noqa: E402
from nemo_rl.algorithms import grpo  # noqa: E402
from nemo_rl.utils.config import load_config, parse_hydra_overrides, register_omegaconf_resolvers  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

register_omegaconf_resolvers()
_METHODS = {"reinforce_plus_plus": "reinforce"}


class _Reached(Exception):
    """It came to what it would start."""


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the config comes to."""
    checkout = Path(os.environ[NEMO_RL])
    call = started(folder, "train.sh", "python3", beside=("ray", "nvidia-smi"), environment={
        "IN_NEMO_RL": "1", "NEMO_RL": str(checkout)})
    assert call.words[:2] == ["examples/run_grpo.py", "--config"], call.words
    said = parse_hydra_overrides(load_config(checkout / call.words[2]), call.words[3:])
    config = grpo.MasterConfig(**OmegaConf.to_container(said, resolve=True))
    gpus = _clusters(config)
    _policy(config, gpus[0], call.environment)
    _engine(config, gpus[-1])
    return {**_trainer(config), **_rollouts(config), **_step(config), "trainer_gpus": gpus[0],
            "rollout_gpus": gpus[-1]}


def _clusters(config: Any) -> list[int]:  # noqa: ANN401 - the stack's own class
    """Return the GPUs of the clusters that its set-up would make, of the trainer first."""
    made: list[int] = []

    def cluster(*, bundle_ct_per_node_list: list[int], **_: object) -> SimpleNamespace:
        made.append(sum(bundle_ct_per_node_list))
        return SimpleNamespace()

    def nothing(*_: object, **__: object) -> Any:  # noqa: ANN401
        return SimpleNamespace(log_hyperparams=nothing, get_latest_checkpoint_path=lambda: None,
                               load_training_info=lambda _: None, get_resume_paths=lambda _: (None, None))

    def reached(*_: object, **__: object) -> None:
        raise _Reached

    stand_ins = {"Logger": nothing, "CheckpointManager": nothing, "set_seed": nothing, "RayVirtualCluster": cluster,
                 "VllmGeneration": reached, "StatefulDataLoader": lambda *_, **__: [], "ClippedPGLossFn": nothing,
                 "configure_vllm_for_router_replay": nothing,
                 "prepare_segment_topology": lambda *_, **__: (None, (), {})}
    with _replaced(grpo, stand_ins):
        try:
            grpo.setup(config, SimpleNamespace(), [], None, policy_factory=lambda **_: reached())
        except _Reached:
            return made
    raise RuntimeError("it did not come to the engine")


def _policy(config: Any, gpus: int, environment: dict[str, str]) -> None:  # noqa: ANN401
    """Have its policy check the degrees. Raises what it raises."""
    def reached(*_: object, **__: object) -> None:
        raise _Reached

    there = SimpleNamespace(world_size=lambda: gpus)
    os.environ["TORCH_CUDA_ARCH_LIST"] = environment.get("TORCH_CUDA_ARCH_LIST", "")
    with _replaced(policy, {"RayQueue": reached}):
        try:
            policy.Policy(cluster=there, config=config.policy, tokenizer=None)
        except _Reached:
            return
    raise RuntimeError("it did not come to the workers")


def _engine(config: Any, gpus: int) -> None:  # noqa: ANN401
    """Have its engine check the degrees. Raises what it raises."""
    def reached(*_: object, **__: object) -> None:
        raise _Reached

    said = {**config.policy["generation"], "model_name": config.policy["model_name"]}
    with _replaced(engine, {"NamedSharding": reached}):
        try:
            engine.VllmGeneration(SimpleNamespace(world_size=lambda: gpus), said)
        except _Reached:
            return
    raise RuntimeError("it did not come to the workers")


@contextmanager
def _replaced(module: Any, others: dict[str, Any]) -> Iterator[None]:  # noqa: ANN401
    before = {name: getattr(module, name) for name in others}
    for name, value in others.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def _trainer(config: Any) -> dict[str, object]:  # noqa: ANN401
    split, shards = config.policy["megatron_cfg"], config.policy["dtensor_cfg"]
    if split["enabled"]:
        optimizer, again = split["optimizer"], split["activation_checkpointing"]
        return {"trainer": "megatron", "tp": split["tensor_model_parallel_size"], "sp": split["sequence_parallel"],
                "pp": split["pipeline_model_parallel_size"], "cp": split["context_parallel_size"],
                "ep": split["expert_model_parallel_size"], "zero": int(optimizer["use_distributed_optimizer"]),
                "offload": optimizer["optimizer_offload_fraction"] if optimizer["optimizer_cpu_offload"] else 0.0,
                "recompute": split["recompute_granularity"] if again else "none",
                "lora_rank": split["peft"]["dim"] if split["peft"]["enabled"] else 0}
    adapters, whole = shards["lora_cfg"], shards["tensor_parallel_size"] * shards["context_parallel_size"]
    if whole > 1 and shards["tensor_parallel_size"] > 1 and shards["context_parallel_size"] > 1:
        assert not shards["sequence_parallel"], "its worker refuses both"
    return {"trainer": "fsdp", "tp": shards["tensor_parallel_size"], "sp": shards["sequence_parallel"], "pp": 1,
            "cp": shards["context_parallel_size"], "ep": 1, "offload": float(shards["cpu_offload"]),
            "recompute": "full" if shards["activation_checkpointing"] else "none",
            "lora_rank": adapters["dim"] if adapters["enabled"] else 0}


def _rollouts(config: Any) -> dict[str, object]:  # noqa: ANN401
    said = config.policy["generation"]
    there, ahead = said["vllm_cfg"], config.grpo["async_grpo"]
    tp, ep = there["tensor_parallel_size"], there["expert_parallel_size"]
    # what its worker makes of them
    return {"placement": "colocated" if said["colocated"]["enabled"] else "disaggregated", "engine": said["backend"],
            "swapped": said["colocated"]["enabled"], "rollout_tp": tp, "rollout_ep": ep, "rollout_dp": max(1, ep // tp),
            "rollout_pp": there["pipeline_parallel_size"], "memory_fraction": there["gpu_memory_utilization"],
            "concurrency": said["vllm_kwargs"]["max_num_seqs"], "max_model_len": there["max_model_len"],
            "policy_lag": ahead["max_trajectory_age_steps"] if ahead["enabled"] else 0}


def _step(config: Any) -> dict[str, object]:  # noqa: ANN401
    said, step, name = config.policy, config.grpo, config.grpo["adv_estimator"]["name"]
    packs = said["sequence_packing" if said["sequence_packing"]["enabled"] else "dynamic_batching"]
    cp = said["megatron_cfg" if said["megatron_cfg"]["enabled"] else "dtensor_cfg"]["context_parallel_size"]
    prompts, samples = step["num_prompts_per_step"], step["num_generations_per_prompt"]
    assert packs["enabled"], "it packs micro-batches"
    assert said["train_global_batch_size"] == prompts * samples, "one update a step"
    assert said["max_total_sequence_length"] == said["generation"]["vllm_cfg"]["max_model_len"]
    assert packs["train_mb_tokens"] == packs["logprob_mb_tokens"]
    method = "rloo" if name == "grpo" and not step["adv_estimator"]["normalize_rewards"] else name
    return {"method": _METHODS.get(method, method), "quantized": False, "prompts": prompts,
            "samples_per_prompt": samples, "packed": packs["train_mb_tokens"] // cp,
            "reference": config.loss_fn.reference_policy_kl_penalty > 0}
