"""LLaMA-Factory: its YAML."""

from __future__ import annotations

from planner.launch import hugging_face as hf
from planner.launch.adapted import modules_by
from planner.launch.axes import No, Settings, settings_of
from planner.launch.emitter import Emitter
from planner.launch.formats import as_text, by_file
from planner.launch.older import FLASH, SDPA
from planner.launch.program import Part, Program, filled, script, torchrun
from planner.launch.work import Work

FILE = "llama-factory.yaml"
DATA = "alpaca_en_demo"


def _recompute(work: Work) -> Settings | No:
    said = hf.recompute(FILE)(work)
    return said if isinstance(said, No) else {
        f"{FILE}:disable_gradient_checkpointing": work.value("recompute") == "none"}


def _adapted(work: Work, rank: int) -> Settings:
    quantized = {f"{FILE}:quantization_bit": 4, f"{FILE}:quantization_type": "nf4",
                 f"{FILE}:double_quantization": True} if work.method == "qlora" else {}
    return {f"{FILE}:finetuning_type": "lora", f"{FILE}:lora_rank": rank, f"{FILE}:lora_alpha": 2 * rank,
            **quantized}


_LOSSES = {"dpo": "sigmoid", "orpo": "orpo", "simpo": "simpo"}
TABLE = {**hf.of_trainer(FILE, recompute=_recompute, liger="enable_liger_kernel",
                         method=hf.tuned_by({f"{FILE}:finetuning_type": "full"}, _adapted)),
         ("lora_targets",): modules_by({f"{FILE}:lora_target": "all"},
                                       lambda names: {f"{FILE}:lora_target": ",".join(names)}),
         **hf.preferences({
             **{name: {f"{FILE}:stage": "dpo", f"{FILE}:pref_loss": loss} for name, loss in _LOSSES.items()},
             "kto": {f"{FILE}:stage": "kto"}, "reward-model": {f"{FILE}:stage": "rm"}}, copied=f"{FILE}:ref_model")}


def emit(work: Work) -> Program:
    """Return LLaMA-Factory's YAML, and the script that starts it."""
    files = by_file(settings_of(work, TABLE))
    data = {None: DATA, "kto": "kto_en_demo"}.get(work.preference, "dpo_en_demo")
    files[FILE] = {
        "model_name_or_path": work.model.hf_id or work.model.name, "stage": "sft", "do_train": True,
        "dataset": data, "template": "default", "cutoff_len": work.sequence_length,
        "flash_attn": "fa2" if work.attention == FLASH else SDPA,
        "output_dir": "checkpoints", "max_steps": work.steps, "logging_steps": 1, "report_to": "none",
        "learning_rate": float(hf.rate_of(work)), "lr_scheduler_type": "cosine",
        "include_num_input_tokens_seen": True, **files[FILE]}
    values = {"model_name_or_path": "MODEL", "dataset": "DATA", "output_dir": "CHECKPOINTS",
              "learning_rate": "LEARNING_RATE", "max_steps": "STEPS"}
    head = f"LLaMA-Factory {work.release.release}"
    body = [*filled(FILE, values),
            'launcher="$(python3 -c "import llamafactory; print(llamafactory.__path__[0])")/launcher.py"',
            "exec " + " ".join(torchrun(work.gpus_per_node, work.placed.nodes)) + ' "$launcher" "$config"']
    variables = hf.variables(work, {"DATA": data})
    return Program(target=work.target, variables=variables, feedback="train.log",
                   parts=(Part("train", "train.sh", work.placed.nodes, work.gpus_per_node),),
                   files={**{name: as_text(name, head, data) for name, data in files.items()},
                          "train.sh": script(f"{head}: runs on every node", {}, body)},
                   notes=("DATA is a name in LLaMA-Factory's data/dataset_info.json.",))


EMITTER = Emitter("llama-factory", TABLE, emit)
