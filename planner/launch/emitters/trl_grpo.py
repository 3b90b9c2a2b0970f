"""TRL's GRPO: the arguments of `trl.scripts.grpo`, with vLLM in the same processes."""

from __future__ import annotations

from planner.launch.axes import No, Settings, TableOf, only, settings_of, whole_layers
from planner.launch.emitter import ReinforcedEmitter, plain
from planner.launch.emitters.verl import variables
from planner.launch.formats import as_text, by_file
from planner.launch.peft_experts import dropout
from planner.launch.program import Part, Program, Variable, script, torchrun
from planner.launch.reinforced import Reinforced

ARGS, DS = "train.yaml", "ds.json"
DATA = Variable("DATA", "trl-lib/DeepMath-103K", "Hugging Face name or folder of the prompts.")
REWARD = Variable("REWARD", "accuracy_reward", "Function that judges: one of TRL's, or module.function in this folder.")


def held(work: Reinforced) -> int:
    """Return the answers of a micro-batch: as many as the plan packs into one, of those that divide a GPU's share."""
    share = work.asked.answers // work.placed.layout.dp
    return max(each for each in range(1, work.placed.layout.micro_batch + 1) if share % each == 0)


def _batch(work: Reinforced) -> Settings | No:
    ranks, each = work.placed.layout.dp, held(work)
    if work.asked.answers % ranks:
        return No(f"{work.asked.answers} answers on {ranks} GPUs (as many on each)", {"dp": 1})
    return {f"{ARGS}:per_device_train_batch_size": each,
            f"{ARGS}:gradient_accumulation_steps": work.asked.answers // (ranks * each),
            f"{ARGS}:generation_batch_size": work.asked.answers,
            f"{ARGS}:num_generations": work.asked.samples_per_prompt,
            f"{ARGS}:max_completion_length": work.longest - work.prompt,
            f"{ARGS}:vllm_max_model_length": work.longest}


def _sharding(work: Reinforced) -> Settings | No:
    layout, away = work.placed.layout, work.placed.layout.offload.optimizer
    if away and (work.trainer == "fsdp" or away != 1):
        return No(f"{away:.0%} of the optimizer states on the host (all of them, with DeepSpeed alone)",
                  {"offload_optimizer": 0})
    if work.trainer == "megatron":
        return No("megatron (it trains with FSDP or DeepSpeed)", {"stack": "trl"})
    if work.trainer == "deepspeed":
        zero = f"{DS}:zero_optimization"
        return {f"{ARGS}:deepspeed": DS, f"{zero}.stage": layout.zero, f"{DS}:bf16": {"enabled": True},
                f"{DS}:train_micro_batch_size_per_gpu": held(work), f"{DS}:gradient_accumulation_steps":
                work.asked.answers // (layout.dp * held(work)),
                **({f"{zero}.offload_optimizer": {"device": "cpu", "pin_memory": True}} if away else {})}
    if layout.zero == 0:
        return {}
    if layout.zero == 1:
        return No("1 (FSDP shards gradients too)", {"stack": "trl"})
    return {f"{ARGS}:fsdp": ("full_shard" if layout.zero == 3 else "shard_grad_op") + " auto_wrap",
            f"{ARGS}:fsdp_config": {"version": 2, "reshard_after_forward": layout.zero == 3,
                                    "auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}}


def _adapters(work: Reinforced) -> Settings:
    rank = work.asked.rank
    adapted = {f"{ARGS}:lora_r": rank, f"{ARGS}:lora_alpha": 2 * rank, f"{ARGS}:lora_target_modules": "all-linear",
               f"{ARGS}:lora_dropout": dropout(work.model)}
    return {f"{ARGS}:use_peft": bool(rank), **(adapted if rank else {})}


TABLE: TableOf[Reinforced] = {
    ("trainer", "zero", "offload"): _sharding,
    **{(axis,): only(axis, 1, reason="it splits by data alone", instead={axis: 1}) for axis in (
        "tp", "pp", "cp", "ep", "rollout_pp", "rollout_ep", "rollout_dp")},
    ("placement", "policy_lag", "trainer_gpus", "rollout_gpus"): only(
        "placement", "colocated", reason="rollouts elsewhere are a server of their own",
        instead={"placement": "colocated"}),
    ("sp",): only("sp", False, reason="it splits by data alone", instead={"tp": 1}),
    ("expert_tp",): only("expert_tp", None, 1, reason="it splits by data alone", instead={"tp": 1}),
    ("swapped",): only("swapped", False, reason="the trainer stays on the GPU", instead={"swap": 0}),
    ("recompute",): whole_layers(lambda w, full: {f"{ARGS}:gradient_checkpointing": full}),
    ("method",): plain("method", f"{ARGS}:loss_type", {"grpo": "grpo"}),
    ("lora_rank",): _adapters,
    ("quantized",): lambda w: {f"{ARGS}:load_in_4bit": True, f"{ARGS}:bnb_4bit_quant_type": "nf4",
                               f"{ARGS}:use_bnb_nested_quant": True} if w.value("quantized") else {},
    ("prompts", "samples_per_prompt", "max_model_len", "packed"): _batch,
    ("reference",): lambda w: {f"{ARGS}:beta": 1e-3 if w.has("reference") else 0.0},
    ("reward",): lambda w: {},
    ("rollouts_node",): only("rollouts_node", True, reason="they share GPUs", instead={"rollouts_on": None}),
    ("engine",): only("engine", "vllm", reason="it draws with vLLM"),
    ("rollout_tp", "memory_fraction", "concurrency"): lambda w: {
        f"{ARGS}:use_vllm": True, f"{ARGS}:vllm_mode": "colocate",
        f"{ARGS}:vllm_tensor_parallel_size": w.placed.rollouts.tp,
        f"{ARGS}:vllm_gpu_memory_utilization": w.value("memory_fraction")},
}


def emit(work: Reinforced) -> Program:
    """Return TRL's YAML, DeepSpeed's JSON where that trains, and the script that starts them."""
    files = by_file(settings_of(work, TABLE))
    judged = work.asked.reward.by == "model"
    files[ARGS] |= {"bf16": True, "optim": "adamw_torch_fused", "logging_steps": 1, "report_to": "none",
                    "dtype": "bfloat16" if work.asked.rank or work.trainer == "deepspeed" else "float32",
                    "save_steps": 50, "attn_implementation": "flash_attention_2"}
    by = '--reward_model_name_or_path "$REWARD_MODEL"' if judged else '--reward_funcs "$REWARD"'
    head = f"TRL {work.release.release}"
    nodes, gpus = work.placed.nodes, min(work.placed.gpus, work.node_gpus)
    body = ['cd "$here"', "exec " + " ".join(torchrun(gpus, nodes)) + " \\",
            f'  -m trl.scripts.grpo --config "$here/{ARGS}" --model_name_or_path "$MODEL" --dataset_name "$DATA" \\',
            f'  --output_dir "$CHECKPOINTS" --learning_rate "$LEARNING_RATE" --max_steps "$STEPS" {by}']
    return Program(target=work.target, variables=(*variables(work, DATA), *(() if judged else (REWARD,))),
                   parts=(Part("train", "train.sh", nodes, gpus),),
                   files={**{name: as_text(name, head, data) for name, data in files.items()},
                          "train.sh": script(f"{head}: runs on every node", {}, body)},
                   notes=(f"It packs nothing: a micro-batch has {held(work)} answers, each as long as the longest.",))


EMITTER = ReinforcedEmitter("trl-grpo", TABLE, emit)
