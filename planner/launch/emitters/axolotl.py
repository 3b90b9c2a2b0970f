"""axolotl: its YAML, started by torchrun."""

from __future__ import annotations

from collections.abc import Mapping

from planner.launch import hugging_face as hf
from planner.launch.adapted import modules_by
from planner.launch.axes import No, Settings, Table, in_part, only, settings_of
from planner.launch.emitter import Emitter, plain
from planner.launch.formats import as_text, by_file
from planner.launch.program import Part, Program, filled, script, torchrun
from planner.launch.work import Work

FILE = "axolotl.yaml"
DATA = "tatsu-lab/alpaca"
_CHATS = ("argilla/ultrafeedback-binarized-preferences-cleaned", {"type": "chat_template.default", "split": "train"})
PAIRS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    **dict.fromkeys(("dpo", "simpo"), _CHATS), "orpo": (_CHATS[0], {"type": "chat_template.argilla", "split": "train"}),
    "kto": ("argilla/ultrafeedback-binarized-preferences-cleaned-kto", {"type": "llama3.ultra", "split": "train"}),
    "reward-model": ("argilla/distilabel-intel-orca-dpo-pairs", {"type": "bradley_terry.chat_template"})}
"""Data of methods that take preferences, with the type that axolotl's examples give it."""

CUT = ('pip install "cut-cross-entropy[transformers] @ '
       'git+https://github.com/axolotl-ai-cloud/ml-cross-entropy.git@v0.1.1"')
"""What its plugin of the fused loss asks for, which it does not bring."""
QUANTIZED_ALONE = ("dpo", "kto", "orpo")
"""Methods whose quantized weights its FSDP does not shard."""


def _sharding(work: Work) -> Settings | No:
    layout, copies, out = work.layout, work.copies, work.layout.offload
    if layout.zero == 1 or layout.dp % copies:
        return No("1 (FSDP shards gradients too)", {"zero": 2}) if layout.zero == 1 else No(
            f"{copies} copies of {layout.shard} ranks", {"shard": layout.dp * layout.cp})
    if not layout.zero and (layout.tp > 1 or layout.cp > 1):
        return No("0 with tensor or context parallelism", {"zero": 3})
    if not hf.offloads_whole(work):
        return in_part(work)
    if not layout.zero:
        return {}
    fsdp = f"{FILE}:fsdp_config"
    degrees: dict[str, object] = {}
    if copies > 1 or layout.tp > 1 or layout.cp > 1:
        degrees = {f"{FILE}:dp_shard_size": layout.dp // copies, f"{FILE}:dp_replicate_size": copies,
                   f"{FILE}:tensor_parallel_size": layout.tp, f"{FILE}:context_parallel_size": layout.cp}
    if (work.method == "qlora" and work.preference in QUANTIZED_ALONE) or work.model.name.startswith("falcon"):
        return No(f"{layout.zero} with {work.preference or 'falcon'} on such weights (not under FSDP)", {"zero": 0})
    return {f"{FILE}:fsdp_version": 2, f"{fsdp}.auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            f"{fsdp}.reshard_after_forward": layout.zero == 3, f"{fsdp}.offload_params": bool(out.parameters),
            f"{fsdp}.state_dict_type": "SHARDED_STATE_DICT", **degrees}


def _adapted(work: Work, rank: int) -> Settings:
    return {f"{FILE}:adapter": work.method, f"{FILE}:load_in_4bit": work.method == "qlora", f"{FILE}:lora_r": rank,
            f"{FILE}:lora_alpha": 2 * rank}


def _activations(work: Work) -> Settings | No:
    share = work.layout.offload.activations
    return {f"{FILE}:activation_offloading": True} if share else {}


TABLE: Table = {
    **{axes: say for axes, say in hf.rest(FILE).items() if axes not in {("loss",), ("sp",)}},
    ("candidate", "dp", "micro_batch"): lambda w: {
        f"{FILE}:micro_batch_size": w.layout.micro_batch,
        f"{FILE}:gradient_accumulation_steps": w.layout.micro_batches},
    ("optimizer",): hf.optimizer(f"{FILE}:optimizer"),
    **hf.unsplit("sp"),
    ("zero", "hsdp", "offload", "offload_parameters", "tp", "cp"): _sharding,
    ("cp_method",): lambda w: {} if w.layout.cp == 1 else only(
        "cp_method", "ring", reason="it has a ring", instead={"cp": 1})(w),
    ("no_sync",): only("no_sync", 0, reason="it reduces gradients each time", instead={"no_sync": 0}),
    ("recompute",): hf.recompute(FILE),
    ("offload_activations",): _activations,
    ("nvme",): hf.ON_HOST,
    ("method", "lora_rank"): hf.tuned_by({}, _adapted),
    ("lora_targets",): modules_by({f"{FILE}:lora_target_linear": True},
                                  lambda names: {f"{FILE}:lora_target_modules": list(names)}),
    ("loss",): plain("loss", f"{FILE}:plugins", {
        "the stack's": None, "plain": None,
        "fused": ["axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin"]}),
    ("packing",): hf.packing(FILE, "sample_packing"),
    **hf.preferences({**{name: {f"{FILE}:rl": name} for name in ("dpo", "orpo", "simpo")},
                      "kto": {f"{FILE}:rl": "kto", f"{FILE}:remove_unused_columns": False},
                      "reward-model": {f"{FILE}:reward_model": True, f"{FILE}:num_labels": 1}},
                     precomputed=f"{FILE}:precompute_ref_log_probs"),
}


def emit(work: Work) -> Program:
    """Return axolotl's YAML, and the script that starts it."""
    data = by_file(settings_of(work, TABLE))[FILE]
    name = work.model.hf_id or work.model.name
    data_name, kind = PAIRS.get(work.preference or "", (DATA, {"type": "alpaca"}))
    data = {"base_model": name, "datasets": [{"path": data_name, **kind}], "output_dir": "checkpoints",
            "sequence_len": work.sequence_length, "attn_implementation": work.attention, "max_steps": work.steps,
            "learning_rate": float(hf.rate_of(work)), "lr_scheduler": "cosine",
            "logging_steps": 1, **data}
    variables = hf.variables(work, {"DATA": data_name})
    values = {"base_model": "MODEL", "output_dir": "CHECKPOINTS", "learning_rate": "LEARNING_RATE",
              "max_steps": "STEPS"}
    head = f"axolotl {work.release.release}"
    body = [*filled(FILE, values, {data_name: "DATA"}),
            "exec " + " ".join(torchrun(work.gpus_per_node, work.placed.nodes)) + ' -m axolotl.cli.train "$config"']
    return Program(target=work.target, variables=variables, feedback="train.log",
                   install=(CUT,) if work.value("loss") == "fused" else (),
                   parts=(Part("train", "train.sh", work.placed.nodes, work.gpus_per_node),),
                   files={FILE: as_text(FILE, head, data), "train.sh": script(f"{head}: runs on every node",
                                                                             {"AXOLOTL_DO_NOT_TRACK": "1"}, body)})


EMITTER = Emitter("axolotl", TABLE, emit)
