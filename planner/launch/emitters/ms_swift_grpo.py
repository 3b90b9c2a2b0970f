"""ms-swift's GRPO: the YAML of `swift rlhf`. Its trainer is TRL's, with vLLM in the same processes."""

from __future__ import annotations

from planner.launch.axes import Settings, TableOf, settings_of
from planner.launch.emitter import ReinforcedEmitter
from planner.launch.emitters.trl_grpo import ARGS, TABLE, held
from planner.launch.emitters.verl import variables
from planner.launch.formats import as_text, by_file
from planner.launch.peft_experts import dropout
from planner.launch.program import Part, Program, Variable, filled, script
from planner.launch.reinforced import Reinforced

DATA = Variable("DATA", "AI-MO/NuminaMath-TIR", "Hugging Face name or folder of the prompts.")
REWARD = Variable("REWARD", "accuracy", "Function that judges: one of ms-swift's, or of a plugin in this folder.")
_CALLED = {"vllm_max_model_length": "vllm_max_model_len"}
"""What TRL calls otherwise."""


def _adapters(work: Reinforced) -> Settings:
    rank = work.asked.rank
    adapted = {f"{ARGS}:lora_rank": rank, f"{ARGS}:lora_alpha": 2 * rank, f"{ARGS}:target_modules": ["all-linear"],
               f"{ARGS}:lora_dropout": dropout(work.model)}
    return {f"{ARGS}:tuner_type": "lora" if rank else "full", **(adapted if rank else {})}


_TABLE: TableOf[Reinforced] = {
    **TABLE, ("lora_rank",): _adapters,
    ("quantized",): lambda w: {f"{ARGS}:quant_method": "bnb", f"{ARGS}:quant_bits": 4,
                               f"{ARGS}:bnb_4bit_quant_type": "nf4",
                               f"{ARGS}:bnb_4bit_use_double_quant": True} if w.value("quantized") else {}}


def emit(work: Reinforced) -> Program:
    """Return ms-swift's YAML, DeepSpeed's JSON where that trains, and the script that starts them."""
    files = by_file(settings_of(work, _TABLE))
    said = {_CALLED.get(name, name): value for name, value in files[ARGS].items()}
    sharded = {key: said.pop(key) for key in ("fsdp", "fsdp_config") if key in said}
    judged = work.asked.reward.by == "model"
    files[ARGS] = {
        "rlhf_type": "grpo", "use_hf": True, "model": work.model.hf_id or work.model.name, "dataset": DATA.default,
        "torch_dtype": "bfloat16", "max_length": work.prompt, "attn_impl": "flash_attention_2", "bf16": True,
        "optim": "adamw_torch_fused", "output_dir": "checkpoints", "max_steps": 1, "learning_rate": 1e-6,
        "logging_steps": 1, "save_steps": 50, "report_to": "none",
        **({"reward_model": "reward-model"} if judged else {"reward_funcs": REWARD.default}),
        **said, **({"fsdp": sharded} if sharded else {})}
    values = {"model": "MODEL", "dataset": "DATA", "output_dir": "CHECKPOINTS", "max_steps": "STEPS",
              "learning_rate": "LEARNING_RATE",
              **({"reward_model": "REWARD_MODEL"} if judged else {"reward_funcs": "REWARD"})}
    head, nodes, gpus = f"ms-swift {work.release.release}", work.placed.nodes, min(work.placed.gpus, work.node_gpus)
    # swift starts torchrun itself, from these
    meet = {"NPROC_PER_NODE": str(gpus), "NNODES": str(nodes)}
    needs = [': "${NODE_RANK:?}" "${MASTER_ADDR:?}"'] if nodes > 1 else []
    # DeepSpeed's JSON is named in the YAML by its place beside it
    body = ['cd "$here"', *needs, *filled(ARGS, values), 'exec swift rlhf "$config"']
    return Program(target=work.target, variables=(*variables(work, DATA), *(() if judged else (REWARD,))),
                   parts=(Part("train", "train.sh", nodes, gpus),),
                   files={**{name: as_text(name, head, data) for name, data in files.items()},
                          "train.sh": script(f"{head}: runs on every node", meet, body)},
                   notes=(f"It packs nothing: a micro-batch has {held(work)} answers, each as long as the longest.",
                          "The plan's times are of TRL's trainer, which ms-swift's is made of."))


EMITTER = ReinforcedEmitter("ms-swift-grpo", _TABLE, emit)
