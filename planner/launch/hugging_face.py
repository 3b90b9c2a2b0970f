"""What the targets on Hugging Face's Trainer say alike: batch, precision, optimizer, adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from planner.launch.axes import WHOLE, No, Say, Settings, Table, in_part, only, whole_layers
from planner.launch.emitter import plain
from planner.launch.formats import by_file
from planner.launch.peft_experts import LEFT_WIDE, dropout, left_wide
from planner.launch.program import Variable, of_training
from planner.launch.scratch import SCRATCH
from planner.launch.work import Work

OPTIMIZERS = {"adamw": "adamw_torch_fused", "adamw-8bit": "adamw_bnb_8bit", "adamw-4bit": "adamw_torch_4bit",
              "sgd-momentum": "sgd", "lion": "lion_32bit", "adafactor": "adafactor", "paged-adamw": "paged_adamw_32bit",
              "paged-adamw-8bit": "paged_adamw_8bit"}
"""Of the planner -> of `TrainingArguments.optim`."""
ADAPTERS = ("lora", "qlora")
FROM_SCRATCH = "pretrain"

VARIABLES = (
    Variable("MODEL", "{model}", "Hugging Face name or folder of the model."),
    Variable("DATA", "{data}", "Hugging Face name or folder of the data set; chats need a model with a chat "
             "template."),
    *of_training("{rate}"),
)


def variables(work: Work, others: Mapping[str, str] | None = None) -> tuple[Variable, ...]:
    """Return the variables of a Trainer's script, with other defaults where they are given."""
    data = {None: "trl-lib/tldr", "kto": "trl-lib/kto-mix-14k"}.get(work.preference, "trl-lib/ultrafeedback_binarized")
    values = {"model": work.model.hf_id or work.model.name, "rate": rate_of(work), "steps": work.steps, "data": data}
    return tuple(Variable(one.name, (others or {}).get(one.name, one.default).format(**values), one.meaning)
                 for one in VARIABLES)


def rate_of(work: Work) -> str:
    """Return the peak of the learning rate that people take."""
    if work.preference and work.preference != "reward-model":
        return "5e-6" if work.method in ADAPTERS else "5e-7"
    return "2e-4" if work.method in ADAPTERS else "1e-5" if work.method == "full" else "3e-4"


def batch_of(file: str, work: Work) -> dict[str, object]:
    """Return what a Trainer is told of the batch."""
    return {f"{file}:per_device_train_batch_size": work.layout.micro_batch,
            f"{file}:gradient_accumulation_steps": work.layout.micro_batches}


def precision(file: str) -> Say:
    """Return what a Trainer is told of the number format; frozen and pure weights are loaded in it."""
    def say(work: Work) -> Settings | No:
        name = work.layout.precision
        if name not in ("bf16", "fp16", "fp32", "tf32"):
            return No(f"{name} (it has bf16, fp16, tf32, fp32)", {"precision": "bf16"})
        return {f"{file}:bf16": name == "bf16", f"{file}:fp16": name == "fp16", f"{file}:tf32": name == "tf32"}
    return say


def recompute(file: str, key: str = "gradient_checkpointing") -> Say:
    """Return what a Trainer is told of recompute: all of every layer, or none."""
    return whole_layers(lambda work, full: {f"{file}:{key}": full})


def no_sync(file: str) -> Say:
    """Return whether gradients of micro-batches add up before they are reduced, which is the Trainer's own way."""
    def say(work: Work) -> Settings:
        each = not work.layout.no_sync and work.layout.micro_batches > 1 and work.layout.zero >= 2
        return {f"{file}:accelerator_config.gradient_accumulation_kwargs.sync_each_batch": each}
    return say


def adapters(file: str) -> Say:
    """Return what TRL is told of the method."""
    def say(work: Work) -> Settings | No:
        if work.method not in ADAPTERS:
            return {} if work.method == FROM_SCRATCH else {f"{file}:use_peft": False}
        if left_wide(work):
            return LEFT_WIDE
        rank = work.asked.rank
        quantized = {f"{file}:load_in_4bit": True, f"{file}:bnb_4bit_quant_type": "nf4",
                     f"{file}:use_bnb_nested_quant": True} if work.method == "qlora" else {}
        return {f"{file}:use_peft": True, f"{file}:lora_r": rank, f"{file}:lora_alpha": 2 * rank,
                f"{file}:lora_dropout": dropout(work.model, work.stack.adapter_dropout), **quantized}
    return say


def preferences(methods: Mapping[str, Settings], *, precomputed: str | None = None, copied: str | None = None) -> Table:
    """Return the part of a table for methods that take preferences, by name, and their reference.

    precomputed, copied: keys for a reference that runs before training, and for a frozen copy beside adapters.
    """
    def say(work: Work) -> Settings | No:
        method, reference = work.preference, work.placed.reference
        if method is None:
            return {}
        if method not in methods:
            return No(f"{method} (it has {', '.join(methods)})", {"method": next(iter(methods))})
        if work.layout.offload.activations:
            return No("checkpoints on the host (of its supervised trainer alone)", {"offload_activations": 0})
        key = {"precomputed": precomputed, "copy": copied}.get(reference or "")
        if reference == "precomputed" and key is None:
            return No("a precomputed reference (it runs in each step)", {"reference": usual(work)})
        if reference == "copy" and work.method in ADAPTERS and key is None:
            return No("a frozen copy beside adapters (they are turned off for it)", {"reference": "adapters-off"})
        value = True if reference == "precomputed" else work.model.hf_id or work.model.name
        needed = reference == "precomputed" or (reference == "copy" and work.method in ADAPTERS)
        return {**methods[method], **({key: value} if key and needed else {})}

    def usual(work: Work) -> str:
        return "adapters-off" if work.method in ADAPTERS else "copy"
    return {("preference", "reference"): say}


def by_trl(file: str, *, narrows: bool) -> Table:
    """Return that part for the scripts of TRL, which load the reference in the format of the policy.

    narrows: whether what runs it makes 16 bits of both.
    """
    (axes, say), = preferences({"dpo": {}, "kto": {}, "reward-model": {f"{file}:lora_task_type": "SEQ_CLS"}},
                               precomputed=f"{file}:precompute_ref_log_probs").items()

    def loaded(work: Work) -> Settings | No:
        if work.placed.reference == "copy" and work.method == "full" and not narrows:
            return No("a 16-bit copy beside 32-bit weights (TRL loads both alike)", {"reference": "precomputed"})
        return say(work)
    return {axes: loaded}


def unsplit(*axes: str, reason: str = "it has none") -> Table:
    """Return the part of a table for axes that a target does not split by."""
    neutral: dict[str, tuple[object, ...]] = {
        "sp": (0,), "schedule": ("1f1b",), "stages": ("even",), "expert_tp": (None, 1), "no_sync": (0,), "hsdp": (1,),
        "offload": (0.0,), "offload_parameters": (0.0,), "offload_activations": (0.0,), "nvme": (0,), "zero": (0,)}
    asked: dict[str, dict[str, object]] = {
        "stages": {"pp": 1}, "expert_tp": {"expert_tp": 1}, "nvme": {"offload_to": "host"},
        "offload": {"offload_optimizer": 0}, "hsdp": {"zero": 0}}
    return {(axis,): only(axis, *neutral.get(axis, (1,)), reason=reason, instead=asked.get(axis)) for axis in axes}


def _loss(key: str) -> Say:
    """Return what is said of the loss: on plain samples TRL fuses it with its projection, with no word of ours."""
    def say(work: Work) -> Settings | No:
        own = work.method != FROM_SCRATCH and not work.preference
        words = {"the stack's": False, "fused": not own} | ({"chunked": False} if own else {})
        return plain("loss", key, words)(work)
    return say


def rest(file: str) -> Table:
    """Return the part of a table that is alike for all targets on the Trainer."""
    return {
        ("candidate", "dp", "micro_batch"): lambda w: batch_of(file, w),
        ("precision",): precision(file),
        ("optimizer",): optimizer(f"{file}:optim"),
        ("optimizer_in_backward",): only("optimizer_in_backward", False, reason="it steps after backward"),
        ("loss",): _loss(f"{file}:use_liger_kernel"),
        **WHOLE,
        **unsplit("sp", "pp", "vpp", "stages", "schedule", "ep", "expert_tp"),
    }


def tuned(work: Work, file: str) -> dict[str, object]:
    """Return what TRL is told beside the axes."""
    mixed = work.method == "full" and work.layout.precision in ("bf16", "fp32", "tf32")
    return {f"{file}:dtype": "float32" if mixed else {"fp16": "float16"}.get(work.layout.precision, "bfloat16"),
            f"{file}:max_length": work.sequence_length, f"{file}:attn_implementation": work.attention,
            f"{file}:logging_steps": 1, f"{file}:save_steps": 1000, f"{file}:report_to": "none",
            f"{file}:include_num_input_tokens_seen": True}


def optimizer(key: str) -> Say:
    """Return what a Trainer is told of the optimizer; FSDP 2 shards 8-bit states of torchao alone."""
    def say(work: Work) -> Settings | No:
        said = plain("optimizer", key, OPTIMIZERS)(work)
        return {key: "adamw_torch_8bit"} if work.layout.zero >= 2 and work.asked.optimizer == "adamw-8bit" else said
    return say


def offloads_whole(work: Work) -> bool:
    """Say whether FSDP can offload as the plan does: optimizer states and weights whole, or neither."""
    out = work.layout.offload
    return out.optimizer == out.parameters and out.optimizer in (0, 1) and bool(work.layout.zero or not out.optimizer)


def sharding(file: str) -> Say:
    """Return what a Trainer is told of FSDP 2: stage, copies and offload."""
    def say(work: Work) -> Settings | No:
        layout, out = work.layout, work.layout.offload
        if layout.zero == 1:
            return No("1 (FSDP shards gradients too)", {"zero": 2})
        if work.copies > 1:
            return No(f"{work.copies} copies of {layout.shard} ranks", {"shard": layout.dp * layout.cp})
        if not offloads_whole(work):
            return in_part(work)
        if not layout.zero:
            return {}
        how = "full_shard" if layout.zero == 3 else "shard_grad_op"
        return {f"{file}:fsdp": f"{how} auto_wrap" + (" offload" if out.parameters else ""),
                f"{file}:fsdp_config.version": 2, f"{file}:fsdp_config.reshard_after_forward": layout.zero == 3,
                f"{file}:fsdp_config.cpu_offload": bool(out.parameters),
                f"{file}:fsdp_config.auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}
    return say


def tuned_by(full: Settings, adapted: Callable[[Work, int], Settings], *, own_kernels: bool = False) -> Say:
    """Return what a target that starts from trained weights is told of the method; `adapted` by the adapters' rank.

    own_kernels: whether it quantizes experts by itself.
    """
    def say(work: Work) -> Settings | No:
        if work.method == FROM_SCRATCH:
            return No("pretrain (it starts from trained weights)", {"method": "full"})
        if left_wide(work) and not own_kernels:
            return LEFT_WIDE
        return full if work.method == "full" else adapted(work, work.asked.rank)
    return say


ON_HOST: Say = only("nvme", 0, reason="it offloads to the host", instead={"offload_to": "host"})
"""Of offload without NVMe."""


def of_trainer(file: str, *, recompute: Say, method: Say, liger: str) -> Table:
    """Return the whole table of a target whose one file holds the Trainer's arguments, FSDP's among them."""
    return {
        **{axes: say for axes, say in rest(file).items() if axes != ("loss",)},
        **unsplit("tp", "cp", "offload_activations"),
        ("cp_method",): lambda w: {},
        ("zero", "hsdp", "offload", "offload_parameters"): sharding(file),
        ("nvme",): ON_HOST,
        ("no_sync",): no_sync(file),
        ("recompute",): recompute,
        ("method", "lora_rank"): method,
        ("loss",): plain("loss", f"{file}:{liger}", {"the stack's": False, "plain": False, "fused": True}),
        ("packing",): packing(file),
    }


def arguments(work: Work, file: str) -> dict[str, object]:
    """Return what a Trainer is told beside the axes, TRL's or that of `train.py`, by the keys of its file."""
    return by_file(scratch_args(file) if work.method == FROM_SCRATCH else tuned(work, file))[file]


def trainer_call(work: Work, file: str) -> list[str]:
    """Return the lines after a launcher that start TRL, or `train.py`."""
    trainer = {"dpo": "dpo", "kto": "kto", "reward-model": "reward"}.get(work.preference or "", "sft")
    what = (f'  "$here/train.py" --config "$here/{file}" --config_name "$MODEL" --data "$DATA" '
            f"--block_size {work.sequence_length} \\" if work.method == FROM_SCRATCH else
            f'  -m trl.scripts.{trainer} --config "$here/{file}" --model_name_or_path "$MODEL" '
            '--dataset_name "$DATA" \\')
    return [what, '  --output_dir "$CHECKPOINTS" --learning_rate "$LEARNING_RATE" --max_steps "$STEPS"']


def trainer_files(work: Work) -> dict[str, str]:
    """Return the script that it starts, where it is not TRL's."""
    return {"train.py": SCRATCH} if work.method == FROM_SCRATCH else {}


def trainer_packing(file: str) -> Say:
    """Return what it is told of packing: `train.py` always packs."""
    own = only("packing", "packed", reason="train.py fills every sequence")
    return lambda w: own(w) if w.method == FROM_SCRATCH else packing(file)(w)


def scratch_args(file: str) -> dict[str, object]:
    """Return what the Trainer of `train.py` is told beside the axes."""
    return {f"{file}:logging_steps": 1, f"{file}:save_steps": 1000, f"{file}:report_to": "none",
            f"{file}:include_num_input_tokens_seen": True, f"{file}:lr_scheduler_type": "cosine",
            f"{file}:remove_unused_columns": False}


def packing(file: str, key: str = "packing") -> Say:
    """Return whether samples fill whole sequences."""
    return lambda w: {} if w.preference else {f"{file}:{key}": w.value("packing") == "packed"}
