"""NeMo RL: the overrides of its GRPO config, by their names (examples/configs/grpo_math_1B.yaml)."""

from __future__ import annotations

from planner.launch.axes import No, Settings, TableOf, only, settings_of, whole_layers
from planner.launch.emitter import ReinforcedEmitter
from planner.launch.emitters.verl import variables
from planner.launch.program import Part, Program, Variable
from planner.launch.ray_cluster import on_ray
from planner.launch.reinforced import Reinforced, all_or_none, shaped

DTENSOR, MEGATRON, OPTIMIZER = "policy.dtensor_cfg", "policy.megatron_cfg", "policy.megatron_cfg.optimizer"
GENERATION, VLLM, ESTIMATOR = "policy.generation", "policy.generation.vllm_cfg", "grpo.adv_estimator"
_ESTIMATORS: dict[str, Settings] = {
    "grpo": {f"{ESTIMATOR}.name": "grpo", "grpo.normalize_rewards": True},
    "rloo": {f"{ESTIMATOR}.name": "grpo", "grpo.normalize_rewards": False, "grpo.use_leave_one_out_baseline": True},
    "reinforce": {f"{ESTIMATOR}.name": "reinforce_plus_plus"}}
_DEGREES = {"tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp", "context_parallel_size": "cp",
            "expert_model_parallel_size": "ep"}


def _split(work: Reinforced) -> Settings | No:
    layout = work.placed.layout
    tp, cp, sp = layout.tp, layout.cp, bool(layout.sequence_parallel)
    whole = {"policy.make_sequence_length_divisible_by": tp * (2 * cp if cp > 1 else 1),
             f"{MEGATRON}.enabled": work.trainer == "megatron", f"{DTENSOR}.enabled": work.trainer == "fsdp"}
    if work.trainer == "megatron":
        if layout.zero > 1:
            return No(f"ZeRO {layout.zero} (its Megatron shards optimizer states)", {"stack": "nemo-rl"})
        return {**whole, **{f"{MEGATRON}.{key}": getattr(layout, name) for key, name in _DEGREES.items()},
                f"{MEGATRON}.expert_tensor_parallel_size": layout.expert_tp or tp, f"{MEGATRON}.sequence_parallel": sp,
                f"{OPTIMIZER}.use_distributed_optimizer": layout.zero > 0}
    if work.trainer != "fsdp":
        return No(f"{work.trainer} (it trains with FSDP or Megatron)", {"stack": "nemo-rl"})
    if layout.pp * layout.ep > 1 or (tp > 1 and cp > 1):
        return No(f"TP {tp}, CP {cp}, PP {layout.pp}, EP {layout.ep} (its FSDP splits matrices, or sequences)",
                  {"pp": 1, "ep": 1, **({"cp": 1} if tp > 1 else {})})
    if layout.zero != 3 and layout.dp * cp * tp > 1:
        return No(f"ZeRO {layout.zero} (its FSDP shards weights)", {"stack": "nemo-rl"})
    return {**whole, f"{DTENSOR}._v2": True, f"{DTENSOR}.tensor_parallel_size": tp,
            f"{DTENSOR}.context_parallel_size": cp, f"{DTENSOR}.sequence_parallel": sp}


@all_or_none
def _away(work: Reinforced, away: bool) -> Settings | No:
    if work.placed.swapped != work.colocated:
        return No(f"{work.placed.swapped} (weights and states wait on the host where rollouts share their GPUs, and "
                  "nowhere else)", {"swap": int(work.colocated)})
    if work.trainer == "megatron":
        return {f"{OPTIMIZER}.optimizer_cpu_offload": away,
                f"{OPTIMIZER}.optimizer_offload_fraction": work.value("offload")}
    if away and work.placed.trainer_gpus == 1:
        return No("optimizer states of one GPU (its FSDP offloads those of several)", {"offload_optimizer": 0})
    return {f"{DTENSOR}.cpu_offload": away}


@whole_layers
def _recompute(work: Reinforced, full: bool) -> Settings:
    if work.trainer != "megatron":
        return {f"{DTENSOR}.activation_checkpointing": full}
    return {f"{MEGATRON}.activation_checkpointing": full, f"{MEGATRON}.recompute_granularity": "full"}


def _placement(work: Reinforced) -> Settings | No:
    placed, drawing = work.placed, work.placed.rollouts.gpus
    on_one = placed.trainer_gpus + drawing <= work.node_gpus
    held = [placed.trainer_gpus] if work.colocated else [placed.trainer_gpus + drawing] if on_one else [
        placed.trainer_gpus, drawing]
    shapes = [shaped(gpus, work.node_gpus) for gpus in held]
    if None in shapes or len({each for _, each in filter(None, shapes)}) > 1:
        return No(f"{placed.trainer_gpus} and {drawing} GPUs on nodes of {work.node_gpus} (whole nodes, or all on one)",
                  {"placement": "colocated"})
    lag, nodes = placed.policy_lag, [nodes for nodes, _ in filter(None, shapes)]
    shape: dict[str, object] = {
        "cluster.num_nodes": sum(nodes), "cluster.gpus_per_node": next(each for _, each in filter(None, shapes)),
        f"{GENERATION}.colocated.enabled": work.colocated, "grpo.async_grpo.enabled": lag > 0,
        "grpo.async_grpo.max_trajectory_age_steps": max(1, lag), "loss_fn.use_importance_sampling_correction": lag > 0,
        "grpo.async_grpo.in_flight_weight_updates": lag > 1}
    if work.colocated:
        return shape
    there = f"{GENERATION}.colocated.resources"
    return shape | {f"{there}.num_nodes": None if on_one else nodes[1],
                    f"{there}.gpus_per_node": drawing if on_one else work.node_gpus}


def _batch(work: Reinforced) -> Settings | No:
    placed, ranks = work.placed, work.placed.layout.dp
    if work.asked.answers % ranks:
        return No(f"{work.asked.answers} answers on {ranks} copies of the model (as many on each)", {"dp": 1})
    # its FSDP packs no sequences that it splits
    packs = work.trainer == "megatron" or placed.layout.cp == 1
    tokens = work.packed * placed.layout.cp
    return {"grpo.num_prompts_per_step": placed.prompts, "grpo.num_generations_per_prompt": placed.samples_per_prompt,
            "policy.train_global_batch_size": work.asked.answers, "policy.train_micro_batch_size": 1,
            "policy.max_total_sequence_length": work.longest, f"{VLLM}.max_model_len": work.longest,
            "data.max_input_seq_length": work.prompt, f"{GENERATION}.max_new_tokens": work.longest - work.prompt,
            "policy.sequence_packing.enabled": packs, "policy.dynamic_batching.enabled": not packs,
            **{f"policy.{how}.{part}_mb_tokens": tokens for how in ("sequence_packing", "dynamic_batching")
               for part in ("train", "logprob")}}


def _rollouts(work: Reinforced) -> Settings | No:
    there = work.placed.rollouts
    if there.ep not in (1, there.tp * there.dp) or (there.dp > 1 and there.ep == 1):
        return No(f"EP {there.ep} of {there.tp * there.dp} GPUs (all of a replica, or 1 where attention has one copy)",
                  {"rollout_ep": there.tp * there.dp})
    waits = work.placed.policy_lag == 0 and there.pp == 1
    if there.dp > 1 and not waits:
        return No(f"{there.dp} copies of attention (engines that run ahead, or have a pipeline, have one)",
                  {"rollout_dp": 1})
    return {f"{GENERATION}.backend": there.engine, f"{VLLM}.tensor_parallel_size": there.tp,
            f"{VLLM}.pipeline_parallel_size": there.pp, f"{VLLM}.expert_parallel_size": there.ep,
            f"{VLLM}.async_engine": not waits, f"+{GENERATION}.vllm_kwargs.max_num_seqs": there.concurrency,
            f"{VLLM}.gpu_memory_utilization": work.value("memory_fraction")}


def _method(work: Reinforced) -> Settings | No:
    known = _ESTIMATORS.get(str(work.placed.method))
    if known is None:
        return No(f"{work.placed.method} (it has {', '.join(_ESTIMATORS)})", {"method": "grpo"})
    return known


def _adapters(work: Reinforced) -> Settings:
    rank, block = work.asked.rank, f"{MEGATRON}.peft" if work.trainer == "megatron" else f"{DTENSOR}.lora_cfg"
    if not rank:
        return {f"{block}.enabled": False}
    kernel = {} if work.trainer == "megatron" else {f"{block}.use_triton": work.placed.layout.tp == 1}
    return {f"{block}.enabled": True, f"{block}.dim": rank, f"{block}.alpha": 2 * rank, **kernel}


TABLE: TableOf[Reinforced] = {
    ("trainer", "tp", "sp", "pp", "cp", "ep", "expert_tp", "zero"): _split,
    ("trainer_gpus", "rollout_gpus", "placement", "policy_lag"): _placement,
    ("swapped", "offload"): _away,
    ("recompute",): _recompute,
    ("method",): _method,
    ("lora_rank",): _adapters,
    ("quantized",): only("quantized", False, reason="its weights are of 16 bits", instead={"tuning": "lora"}),
    ("prompts", "samples_per_prompt", "max_model_len", "packed"): _batch,
    ("reference",): lambda w: {"loss_fn.reference_policy_kl_penalty": 0.01 if w.has("reference") else 0},
    ("reward",): only("reward", "rule", "remote", reason="its reward models have GPUs of their own"),
    ("rollouts_node",): only("rollouts_node", True, reason="all its nodes are of one type",
                             instead={"rollouts_on": None}),
    ("engine", "rollout_tp", "rollout_pp", "rollout_ep", "rollout_dp", "memory_fraction", "concurrency"): _rollouts,
}
CHECKOUT = Variable("NEMO_RL", "NeMo-RL", "Checkout of NeMo RL, which has examples/run_grpo.py.")
DATA = Variable("DATA", "OpenMathInstruct-2", "Data set that NeMo RL knows by its name.")


def emit(work: Reinforced) -> Program:
    """Return NeMo RL's overrides as a script, which starts Ray on every node."""
    settings = settings_of(work, TABLE)
    megatron = work.trainer == "megatron"
    rates = [f"{OPTIMIZER}.lr", f"{OPTIMIZER}.min_lr"] if megatron else ["policy.optimizer.kwargs.lr"]
    named = {"policy.model_name": "MODEL", "data.train.dataset_name": "DATA", "grpo.max_num_steps": "STEPS",
             "checkpointing.checkpoint_dir": "CHECKPOINTS", "logger.log_dir": "CHECKPOINTS",
             **dict.fromkeys(rates, "LEARNING_RATE")}
    fixed = {"policy.precision": "bfloat16", "grpo.max_num_epochs": 10**6, "grpo.val_period": 0,
             "data.train.split_validation_size": 0, "checkpointing.metric_name": None, "checkpointing.save_period": 50}
    values = {key: "null" if value is None else str(value).lower() if isinstance(value, bool) else value
              for key, value in {**settings, **fixed}.items()}
    lines = ['if [[ -z "${IN_NEMO_RL:-}" ]]; then  # once more, with the packages of its checkout',
             "  export IN_NEMO_RL=1", '  exec uv run --project "$NEMO_RL" bash "${BASH_SOURCE[0]}"', "fi",
             '[[ ! -d "$MODEL" ]] || MODEL="$(realpath "$MODEL")"', 'CHECKPOINTS="$(realpath -m "$CHECKPOINTS")"',
             *([': "${TORCH_CUDA_ARCH_LIST:=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sort -u)}"',
                "export TORCH_CUDA_ARCH_LIST"] if megatron else []),
             'cd "$NEMO_RL"', "PLAN=(", *(f"  {key}={value}" for key, value in values.items()), ")",
             *(f'PLAN+=("{key}=${name}")' for key, name in named.items()), ""]
    config = "grpo_math_1B_megatron.yaml" if megatron else "grpo_math_1B.yaml"
    head, nodes, gpus = f"NeMo RL {work.release.release}", work.placed.nodes, min(work.placed.gpus, work.node_gpus)
    files = on_ray(f"{head}: runs on every node", nodes, gpus, {}, lines, [
        "python3 examples/run_grpo.py", f"--config examples/configs/{config}", '"${PLAN[@]}"'])
    own = ("Its FSDP does not pack sequences that it splits: micro-batches of as many tokens, padded.",)
    return Program(target=work.target, on_ray=True, variables=(CHECKOUT, *variables(work, DATA)),
                   parts=(Part("train", "train.sh", nodes, gpus),), files=files,
                   notes=("The rule that judges is env.math of the config; another, or a server, is an environment of "
                          "its own (docs/guides/environments.md of the checkout).",
                          *(own if settings["policy.dynamic_batching.enabled"] else ())))


EMITTER = ReinforcedEmitter("nemo-rl", TABLE, emit)
