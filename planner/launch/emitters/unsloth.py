"""unsloth: its kernels under TRL's trainer, by a script of our own that torchrun starts on every GPU (DDP)."""

from __future__ import annotations

from planner.launch import hugging_face as hf
from planner.launch.adapted import modules_by
from planner.launch.axes import No, Settings, Table, only, settings_of, whole_layers
from planner.launch.emitter import Emitter
from planner.launch.formats import as_text, by_file
from planner.launch.program import Part, Program, script, torchrun
from planner.launch.work import Work

FILE, TUNE = "train.yaml", "tune.py"
DATA = "tatsu-lab/alpaca"
"""Has a column `text`, which is what unsloth's trainer reads without more."""
SCRIPT = '''"""Tunes a model with unsloth's kernels and TRL's trainer, by a YAML file and the command line."""

from unsloth import FastLanguageModel  # first: it replaces parts of what follows

from datasets import load_dataset
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser

EVERY = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def main():
    """Tune."""
    script, arguments, chosen = TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config()
    # unsloth moves checkpoints to the host by itself
    kept = "unsloth" if arguments.activation_offloading else arguments.gradient_checkpointing
    arguments.activation_offloading = False
    model, tokenizer = FastLanguageModel.from_pretrained(
        model_name=chosen.model_name_or_path, max_seq_length=arguments.max_length,
        load_in_4bit=chosen.load_in_4bit, full_finetuning=not chosen.use_peft, use_gradient_checkpointing=kept)
    if chosen.use_peft:
        named = chosen.lora_target_modules or EVERY
        model = FastLanguageModel.get_peft_model(model, r=chosen.lora_r, lora_alpha=chosen.lora_alpha,
                                                 target_modules=[named] if isinstance(named, str) else named,
                                                 lora_dropout=0, bias="none", use_gradient_checkpointing=kept)
    data = load_dataset(script.dataset_name, split=script.dataset_train_split)
    if "messages" in data.column_names:
        data = data.map(lambda row: {"text": tokenizer.apply_chat_template(row["messages"], tokenize=False)},
                        remove_columns=data.column_names)
    trainer = SFTTrainer(model=model, processing_class=tokenizer, args=arguments, train_dataset=data)
    trainer.train()
    trainer.save_state()
    trainer.save_model(arguments.output_dir)


if __name__ == "__main__":
    main()
'''


@whole_layers
def _recompute(work: Work, full: bool) -> Settings | No:
    away = work.layout.offload.activations
    if away and not full:
        return No("checkpoints on the host without recompute", {"recompute": "full"})
    return {f"{FILE}:gradient_checkpointing": full, f"{FILE}:activation_offloading": bool(away)}


def _adapted(work: Work, rank: int) -> Settings:
    return {f"{FILE}:use_peft": True, f"{FILE}:lora_r": rank, f"{FILE}:lora_alpha": 2 * rank,
            f"{FILE}:load_in_4bit": work.method == "qlora"}


TABLE: Table = {
    **hf.rest(FILE),
    ("precision",): only("precision", "bf16", reason="it takes the 16-bit format of the GPU"),
    **hf.unsplit("tp", "cp", "zero", "hsdp", "no_sync", "offload", "offload_parameters", "nvme",
                 reason="every GPU holds the whole model"),
    ("cp_method",): lambda w: {},
    ("recompute", "offload_activations"): _recompute,
    ("method", "lora_rank"): hf.tuned_by({f"{FILE}:use_peft": False}, _adapted, own_kernels=True),
    ("lora_targets",): modules_by({}, lambda names: {f"{FILE}:lora_target_modules": list(names)}),
    ("loss",): only("loss", "the stack's", reason="its loss is its own"),
    ("packing",): hf.packing(FILE),
}


def emit(work: Work) -> Program:
    """Return the script, what it is told, and what starts it on every node."""
    settings = by_file(settings_of(work, TABLE))[FILE]
    data = {"bf16": True, "max_length": work.sequence_length, "logging_steps": 1, "save_steps": 1000,
            "report_to": "none", "include_num_input_tokens_seen": True, **settings}
    head = f"unsloth {work.release.release}"
    body = ["exec " + " ".join(torchrun(work.gpus_per_node, work.placed.nodes)) + " \\",
            f'  "$here/{TUNE}" --config "$here/{FILE}" --model_name_or_path "$MODEL" --dataset_name "$DATA" \\',
            '  --output_dir "$CHECKPOINTS" --learning_rate "$LEARNING_RATE" --max_steps "$STEPS"']
    return Program(target=work.target, variables=hf.variables(work, {"DATA": DATA}), feedback="train.log",
                   parts=(Part("train", "train.sh", work.placed.nodes, work.gpus_per_node),),
                   files={FILE: as_text(FILE, head, data), TUNE: SCRIPT,
                          "train.sh": script(f"{head}: runs on every node", {}, body)})


EMITTER = Emitter("unsloth", TABLE, emit)
