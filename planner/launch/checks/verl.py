"""verl's own hydra config, composed with the overrides of a script and validated, on the config of a small model."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch._dynamo
import torch._inductor.compile_fx  # noqa: F401 - before what stands in for triton is there

from planner.launch.checks.small import CONFIG
from planner.launch.checks.stand_ins import install
from planner.launch.checks.started import started

install("triton", "flash_attn")
import verl  # noqa: E402 - what stands in has to be there first
from hydra import compose, initialize_config_dir  # noqa: E402
from verl.trainer.ppo.utils import need_critic, need_reference_policy  # noqa: E402
from verl.utils.config import omega_conf_to_dataclass, validate_config  # noqa: E402

_ESTIMATORS = {"gae": "ppo", "reinforce_plus_plus": "reinforce"}


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the config comes to."""
    with TemporaryDirectory() as place:
        (Path(place) / "config.json").open("w").write(json.dumps(CONFIG))
        call = started(folder, "train.sh", "python3", beside=("ray",), environment={
            "MODEL": place, "CRITIC": place, "REWARD_MODEL": place})
        assert call.words[:2] == ["-m", "verl.trainer.main_ppo"], call.words
        own = [*call.words[2:], "++actor_rollout_ref.model.load_tokenizer=False", "++critic.model.load_tokenizer=False"]
        with initialize_config_dir(str(Path(verl.__file__).parent / "trainer" / "config"), version_base=None):
            config = compose("ppo_trainer", overrides=own)
        validate_config(config, need_reference_policy(config), need_critic(config))
        rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    return {**_trainer(config), **_rollouts(config, rollout), **_step(config)}


def _trainer(config: Any) -> dict[str, object]:  # noqa: ANN401 - the stack's own classes
    actor, gpus = config.actor_rollout_ref.actor, config.trainer.nnodes * config.trainer.n_gpus_per_node
    if actor.strategy == "megatron":
        split = actor.megatron
        kept = split.override_transformer_config.recompute_granularity or "none"
        assert config.actor_rollout_ref.ref.megatron.tensor_model_parallel_size == split.tensor_model_parallel_size
        found: dict[str, object] = {
            "trainer": "megatron", "sp": split.sequence_parallel and split.tensor_model_parallel_size > 1,
            "tp": split.tensor_model_parallel_size, "pp": split.pipeline_model_parallel_size,
            "cp": split.context_parallel_size, "ep": split.expert_model_parallel_size,
            **({} if split.expert_tensor_parallel_size is None else {"expert_tp": split.expert_tensor_parallel_size}),
            "zero": int(split.use_distributed_optimizer), "recompute": kept}
    else:
        split, model = actor.fsdp_config, config.actor_rollout_ref.model
        found = {"trainer": "fsdp", "tp": 1, "sp": False, "pp": 1, "ep": 1, "cp": actor.ulysses_sequence_parallel_size,
                 "zero": 0 if gpus == 1 else 3 if split.reshard_after_forward else 2,
                 "recompute": "full" if model.enable_gradient_checkpointing else "none"}
    own = {} if actor.strategy != "megatron" else actor.optim.override_optimizer_config
    on_host = bool(own.get("optimizer_cpu_offload")) if actor.strategy == "megatron" else bool(split.offload_policy)
    assert split.param_offload == split.optimizer_offload, "weights and states wait together"
    return {**found, "trainer_gpus": gpus, "swapped": bool(split.param_offload), "offload": float(on_host)}


def _rollouts(config: Any, rollout: Any) -> dict[str, object]:  # noqa: ANN401
    apart = config.trainer.v1.trainer_mode == "separate_async"
    lag = {"policy_lag": config.trainer.v1.separate_async.num_warmup_batches if apart else 0}
    gpus = (config.actor_rollout_ref.rollout.nnodes * rollout.n_gpus_per_node if apart
            else config.trainer.nnodes * config.trainer.n_gpus_per_node)
    return {**lag, "placement": "disaggregated" if apart else "colocated", "engine": rollout.name, "rollout_gpus": gpus,
            "rollout_tp": rollout.tensor_model_parallel_size, "rollout_pp": rollout.pipeline_model_parallel_size,
            "rollout_dp": rollout.data_parallel_size, "rollout_ep": rollout.expert_parallel_size,
            "memory_fraction": rollout.gpu_memory_utilization, "concurrency": rollout.max_num_seqs,
            "max_model_len": rollout.max_model_len}


def _step(config: Any) -> dict[str, object]:  # noqa: ANN401
    both = config.actor_rollout_ref
    assert config.data.train_batch_size == both.actor.ppo_mini_batch_size, "one update a step"
    assert config.data.max_prompt_length + config.data.max_response_length == both.rollout.max_model_len
    name = config.algorithm.adv_estimator
    return {"method": _ESTIMATORS.get(name, name), "lora_rank": both.model.lora_rank, "quantized": False,
            "prompts": config.data.train_batch_size, "samples_per_prompt": both.rollout.n,
            "packed": both.actor.ppo_max_token_len_per_gpu, "reference": bool(need_reference_policy(config)),
            **({"reward": "model"} if config.reward.reward_model.enable else {})}
