"""verl: the overrides of its hydra config, by their names (verl/trainer/config/ppo_trainer.yaml)."""

from __future__ import annotations

from planner.launch.axes import No, Settings, TableOf, only, settings_of, whole_layers
from planner.launch.emitter import ReinforcedEmitter, plain
from planner.launch.first_data import FOLDER, SCRIPT, WRITTEN, gsm8k
from planner.launch.program import Part, Program, Variable, of_training
from planner.launch.ray_cluster import on_ray
from planner.launch.reinforced import Reinforced, all_or_none, shaped

ACTOR, REF, ROLLOUT, MODEL = (f"actor_rollout_ref.{part}" for part in ("actor", "ref", "rollout", "model"))
_ESTIMATORS = {"grpo": "grpo", "ppo": "gae", "rloo": "rloo", "reinforce": "reinforce_plus_plus"}
_MEGATRON = {"tp": "tensor_model_parallel_size", "pp": "pipeline_model_parallel_size", "cp": "context_parallel_size",
             "ep": "expert_model_parallel_size"}


def _roles(work: Reinforced) -> list[str]:
    """Return the models that the trainer splits."""
    return [ACTOR, REF, *(["critic"] if work.has("critic_update") else [])]


def _split(work: Reinforced) -> Settings | No:
    layout = work.placed.layout
    if work.trainer == "deepspeed":
        return No("deepspeed (it trains with FSDP or Megatron)", {"stack": "verl"})
    if work.trainer == "megatron" and layout.zero > 1:
        return No(f"ZeRO {layout.zero} (its Megatron shards optimizer states)", {"stack": "verl"})
    if work.trainer == "megatron":
        degrees = {f"{role}.megatron.{key}": getattr(layout, name) for role in _roles(work)
                   for name, key in _MEGATRON.items()}
        own = {} if layout.expert_tp is None else {
            f"{role}.megatron.expert_tensor_parallel_size": layout.expert_tp for role in _roles(work)}
        return {"model_engine": "megatron", **degrees, **own,
                **{f"{role}.megatron.{key}": value for role in _roles(work) for key, value in (
                    ("use_distributed_optimizer", layout.zero > 0),
                    ("sequence_parallel", bool(layout.sequence_parallel)))}}
    # one GPU alone has nothing to shard, which its FSDP finds by itself
    sharded = layout.zero in (2, 3) or layout.dp * layout.cp == 1
    if layout.tp * layout.pp * layout.ep > 1 or layout.sequence_parallel or not sharded:
        return No(f"TP {layout.tp}, PP {layout.pp}, EP {layout.ep}, ZeRO {layout.zero} (its FSDP shards weights, and "
                  "splits sequences)", {"tp": 1, "pp": 1, "ep": 1} if sharded else {"stack": "verl"})
    block = {ACTOR: f"{ACTOR}.fsdp_config", REF: f"{REF}.fsdp_config", "critic": "critic.model.fsdp_config"}
    return {"model_engine": "dp", **{
        f"{role}.{key}": value for role in _roles(work) for key, value in (
            ("strategy", "fsdp2"), ("ulysses_sequence_parallel_size", layout.cp)) if (role, key) != (REF, "strategy")},
        **{f"{block[role]}.fsdp_size": -1 for role in _roles(work)},
        **{f"{block[role]}.reshard_after_forward": layout.zero == 3 for role in _roles(work)}}


@all_or_none
def _away(work: Reinforced, away: bool) -> Settings:
    swapped = work.placed.swapped
    block = "megatron" if work.trainer == "megatron" else "fsdp_config"
    waits = {f"{ACTOR}.{block}.param_offload": swapped, f"{ACTOR}.{block}.optimizer_offload": swapped,
             f"{REF}.{block}.param_offload": swapped}
    # what waits comes back to be updated; what is updated on the host has keys of its own
    if work.trainer != "megatron":
        return waits | {f"{role}.offload_policy": away for role in (f"{ACTOR}.fsdp_config", *(
            ["critic.model.fsdp_config"] if work.has("critic_update") else []))}
    own = {"optimizer_cpu_offload": True, "optimizer_offload_fraction": 1.0, "use_precision_aware_optimizer": True}
    return waits | ({f"+{role}.optim.override_optimizer_config.{key}": value for role in (ACTOR, *(
        ["critic"] if work.has("critic_update") else [])) for key, value in own.items()} if away else {})


@whole_layers
def _recompute(work: Reinforced, full: bool) -> Settings:
    if work.trainer != "megatron":
        return {f"{MODEL}.enable_gradient_checkpointing": full}
    key = f"{ACTOR}.megatron.override_transformer_config.recompute"
    return {f"{key}_granularity": "full", f"{key}_method": "uniform", f"{key}_num_layers": 1} if full else {}


def _placement(work: Reinforced) -> Settings | No:
    placed = work.placed
    train, draw = (shaped(gpus, work.node_gpus) for gpus in (placed.trainer_gpus, placed.rollouts.gpus))
    if train is None or draw is None:
        return No(f"{placed.trainer_gpus} and {placed.rollouts.gpus} GPUs on nodes of {work.node_gpus} (whole nodes, "
                  "or a part of one)", {"placement": "colocated"})
    shape: dict[str, object] = {"trainer.nnodes": train[0], "trainer.n_gpus_per_node": train[1]}
    if work.colocated:
        return shape | {f"{ROLLOUT}.free_cache_engine": True}
    lag, mode = placed.policy_lag, "trainer.v1.separate_async"
    return shape | {
        "trainer.v1.trainer_mode": "separate_async", "actor_rollout_ref.hybrid_engine": False,
        f"{ROLLOUT}.nnodes": draw[0], f"{ROLLOUT}.n_gpus_per_node": draw[1], f"{mode}.parameter_sync_step": 1,
        f"{mode}.num_warmup_batches": lag, "trainer.v1.sampler.max_off_policy_threshold": max(1, lag),
        f"{ROLLOUT}.checkpoint_engine.backend": "nccl"}


def _batch(work: Reinforced) -> Settings:
    placed = work.placed
    critic = {"critic.ppo_max_token_len_per_gpu": work.packed} if work.has("critic_update") else {}
    return {"data.train_batch_size": placed.prompts, f"{ACTOR}.ppo_mini_batch_size": placed.prompts,
            f"{ROLLOUT}.n": placed.samples_per_prompt, "data.max_prompt_length": work.prompt,
            "data.max_response_length": work.longest - work.prompt, f"{ROLLOUT}.max_model_len": work.longest,
            f"{ACTOR}.use_dynamic_bsz": True, f"{ACTOR}.ppo_max_token_len_per_gpu": work.packed,
            f"{MODEL}.use_remove_padding": True, **critic}


def _rollouts(work: Reinforced) -> Settings | No:
    there = work.placed.rollouts
    whole = there.tp * there.dp
    if there.ep not in (1, whole):
        return No(f"EP {there.ep} of {whole} GPUs (1, or all of a replica)", {"rollout_ep": 1})
    return {f"{ROLLOUT}.name": there.engine, f"{ROLLOUT}.tensor_model_parallel_size": there.tp,
            f"{ROLLOUT}.pipeline_model_parallel_size": there.pp, f"{ROLLOUT}.data_parallel_size": there.dp,
            f"{ROLLOUT}.expert_parallel_size": there.ep, f"{ROLLOUT}.max_num_seqs": there.concurrency,
            f"{ROLLOUT}.gpu_memory_utilization": work.value("memory_fraction")}


def _adapters(work: Reinforced) -> Settings:
    rank = work.asked.rank
    return {f"{MODEL}.lora_rank": rank, f"{MODEL}.lora_alpha": 2 * rank, f"{MODEL}.target_modules": "all-linear",
            f"{ROLLOUT}.load_format": "safetensors"} if rank else {}


def _reward(work: Reinforced) -> Settings:
    if work.asked.reward.by != "model":
        return {}
    there, key = work.placed.rollouts, "reward.reward_model"
    return {f"{key}.enable": True, f"{key}.rollout.name": there.engine,
            f"{key}.rollout.tensor_model_parallel_size": there.tp}


_SAMPLES = gsm8k("verl", "its rule", (
    '{"data_source": "openai/gsm8k", "ability": "math", "extra_info": {"index": index},',
    '"prompt": [{"role": "user", "content": question}],',
    '"reward_model": {"style": "rule", "ground_truth": answer}}'))

TABLE: TableOf[Reinforced] = {
    ("trainer", "tp", "sp", "pp", "cp", "ep", "expert_tp", "zero"): _split,
    ("trainer_gpus", "rollout_gpus", "placement", "policy_lag"): _placement,
    ("swapped", "offload"): _away,
    ("recompute",): _recompute,
    ("method",): plain("method", "algorithm.adv_estimator", _ESTIMATORS),
    ("lora_rank",): _adapters,
    ("quantized",): only("quantized", False, reason="its weights are of 16 bits", instead={"tuning": "lora"}),
    ("prompts", "samples_per_prompt", "max_model_len", "packed"): _batch,
    ("reference",): lambda w: {f"{ACTOR}.use_kl_loss": w.has("reference"), "algorithm.use_kl_in_reward": False},
    ("reward",): _reward,
    ("rollouts_node",): only("rollouts_node", True, reason="all its nodes are of one type",
                             instead={"rollouts_on": None}),
    ("rollout_pp",): only("rollout_pp", 1, reason="its engines have no pipeline", instead={"rollout_pp": 1}),
    ("engine", "rollout_tp", "rollout_ep", "rollout_dp", "memory_fraction", "concurrency"): _rollouts,
}
VARIABLES = (
    Variable("MODEL", "{model}", "Hugging Face name or folder of the policy."),
    Variable("REWARD_MODEL", "{reward}", "Hugging Face name or folder of the model that judges, where one does."),
    Variable("CRITIC", "{critic}", "Hugging Face name or folder of what the critic starts from, where there is one."),
    Variable("DATA", FOLDER, "Folder with train.parquet and test.parquet that all nodes see, whose data_source "
             "says which rule judges; school mathematics is written there where it is empty."),
    *of_training("1e-6", "Of the policy"),
)
"""Those of frameworks of reinforcement learning."""


def variables(work: Reinforced, *other: Variable) -> tuple[Variable, ...]:
    """Return the variables that a job needs, with its defaults; others than verl's go before those of the same name."""
    name = work.model.hf_id or work.model.name
    values = {"model": name, "steps": work.steps, "reward": work.asked.reward_model or name,
              "critic": work.asked.critic or name}
    own = {one.name: one for one in other}
    needless = {*(() if work.asked.reward.by == "model" else ["REWARD_MODEL"]),
                *(() if work.has("critic_update") else ["CRITIC"])}
    return tuple(Variable(v.name, v.default.format(**values), v.meaning) for v in
                 (own.get(v.name, v) for v in VARIABLES) if v.name not in needless)


MEGATRON = ("pip install megatron-core==0.18.2 nvidia-modelopt==0.44.0",
            'pip install --no-build-isolation "transformer-engine[core_cu13,pytorch]"',
            "pip install --no-deps megatron-bridge==0.5.1")
"""What its trainer by Megatron needs beside it: of its own extra `megatron` a part is on no package index."""


def emit(work: Reinforced) -> Program:
    """Return verl's overrides as a script, which starts Ray on every node."""
    settings = settings_of(work, TABLE)
    named = {f"{MODEL}.path": "MODEL", f"{ACTOR}.optim.lr": "LEARNING_RATE", "trainer.total_training_steps": "STEPS",
             "trainer.default_local_dir": "CHECKPOINTS",
             **({"reward.reward_model.model_path": "REWARD_MODEL"} if work.asked.reward.by == "model" else {}),
             **({"critic.model.path": "CRITIC"} if work.has("critic_update") else {})}
    fixed = {"trainer.val_before_train": False, "trainer.save_freq": 50, "trainer.total_epochs": 10**6,
             "trainer.logger": '\'["console"]\''}
    lines = ["PLAN=(", *(f"  {key}={value}" for key, value in {**settings, **fixed}.items()), ")",
             *(f'PLAN+=("{key}=${name}")' for key, name in named.items()),
             'PLAN+=("data.train_files=$DATA/train.parquet" "data.val_files=$DATA/test.parquet")', "",
             WRITTEN, ""]
    head = f"verl {work.release.release}: runs on every node"
    nodes, gpus = work.placed.nodes, min(work.placed.gpus, work.node_gpus)
    return Program(target=work.target, on_ray=True, variables=variables(work),
                   install=MEGATRON if work.value("trainer") == "megatron" else (),
                   files={**on_ray(head, nodes, gpus, {}, lines, ["python3 -m verl.trainer.main_ppo", '"${PLAN[@]}"']),
                          **_SAMPLES}, on_each=SCRIPT,
                   parts=(Part("train", "train.sh", nodes, gpus),),
                   notes=("reward.custom_reward_function.path names your own rule, where data_source does not.",))


EMITTER = ReinforcedEmitter("verl", TABLE, emit)
