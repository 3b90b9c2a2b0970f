"""Megatron-LM: the arguments of pretrain_gpt.py, by their names (megatron/training/arguments.py)."""

from __future__ import annotations

from planner.catalog.architecture import MoeMlp
from planner.catalog.stack import StateBytes
from planner.launch.axes import WHOLE, No, Settings, Table, only, settings_of
from planner.launch.chunks import layers_of_chunks
from planner.launch.emitter import Emitter, plain
from planner.launch.megatron import chunked_recompute, layer_string, model_flags, open_details, sharding_name
from planner.launch.program import Part, Program, Variable, array, of_training, script, torchrun
from planner.launch.work import Work

_FORMATS: dict[str, Settings] = {
    "bf16": {"bf16": True}, "fp16": {"fp16": True}, "fp32": {}, "tf32": {},
    "fp8": {"bf16": True, "fp8-format": "hybrid", "fp8-recipe": "tensorwise"},
    "mxfp8": {"bf16": True, "fp8-format": "e4m3", "fp8-recipe": "mxfp8"},
    "fp4": {"bf16": True, "fp4-format": "e2m1", "fp4-recipe": "nvfp4"},
}
_USER_BUFFERS = ("bf16", "fp8", "mxfp8")
"""Formats that Transformer Engine's user buffers hold: initialize_ub has bfloat16 by default, and FP8."""
_OPTIMIZERS = {"adamw": "adam", "sgd-momentum": "sgd", "muon": "muon", "lion": "lion"}
_MODULES = {"core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act"}
"""What it can recompute by itself (--recompute-modules), of what stacks do."""
_EXCHANGES = {"ring": "p2p", "all-to-all": "a2a", "all-gather": "allgather"}


def _tensor(work: Work) -> Settings:
    """Say what the plan counts on: exchanges that run under their products, where user buffers have the format."""
    tp, settings = work.layout.tp, dict[str, object]()
    if work.value("sp") and tp > 1:
        settings["sequence-parallel"] = True
        if work.stack.overlap.tensor_parallel and work.layout.precision in _USER_BUFFERS:
            settings["tp-comm-overlap"] = True
    return {"tensor-model-parallel-size": tp} | settings


def _context(work: Work) -> Settings:
    cp = work.layout.cp
    how = {"cp-comm-type": _EXCHANGES[str(work.value("cp_method"))]} if cp > 1 else {}
    return {"context-parallel-size": cp} | how


def _experts(work: Work) -> Settings | No:
    if not work.model.mixes_experts:
        return {}
    counts = {block.mlp.experts for block in work.model.blocks if isinstance(block.mlp, MoeMlp)}
    if any(count % work.layout.ep for count in counts):
        return No(f"{work.layout.ep} for {max(counts)} experts (as many on each rank)", {"ep": 1})
    return {"expert-model-parallel-size": work.layout.ep,
            "expert-tensor-parallel-size": work.layout.expert_tp or work.layout.tp}


def _pipeline(work: Work) -> Settings:
    layout = work.layout
    settings: dict[str, object] = {"pipeline-model-parallel-size": layout.pp}
    if layout.pp == 1 or (layout.vpp == 1 and work.even):
        return settings
    chunks = layers_of_chunks(work)
    most = max(chunks)
    outer = [most - 1, *[most] * (len(chunks) - 2), most - 1]
    if layout.vpp > 1 and chunks in ([most] * len(chunks), outer):
        counted = {"account-for-embedding-in-pipeline-split": True, "account-for-loss-in-pipeline-split": True}
        return settings | {"num-virtual-stages-per-pipeline-rank": layout.vpp, **(counted if chunks == outer else {})}
    return settings | {"pipeline-model-parallel-layout": layer_string(chunks, work.model.prediction_layers)}


def _sharding(work: Work) -> Settings | No:
    stage, copies = work.layout.zero, work.copies
    if stage >= 2 and work.asked.optimizer in ("muon", "lion"):
        return No(f"{stage} with {work.asked.optimizer} (its FSDP has Adam and SGD)", {"zero": 1})
    settings: dict[str, object] = {"overlap-grad-reduce": True}
    if stage:
        settings |= {"use-distributed-optimizer": True, "overlap-param-gather": True}
    if stage >= 2:
        settings |= {"use-megatron-fsdp": True, "data-parallel-sharding-strategy": sharding_name(stage),
                     "ckpt-format": "fsdp_dtensor", "no-gradient-accumulation-fusion": True}
    if copies > 1:
        settings |= {"num-distributed-optimizer-instances": copies}
    return settings


def _recompute(work: Work) -> Settings | No:
    kept = work.layout.recompute
    if kept == "none":
        return {}
    if kept == "selective":
        modules = work.stack.selective_recompute
        if not {*modules} <= _MODULES:
            return No(f"selective of {', '.join(modules)} (it has {', '.join(sorted(_MODULES))})",
                      {"recompute": "full"})
        return {"recompute-granularity": "selective", "recompute-modules": [*modules]}
    full = {"recompute-granularity": "full"}
    if kept == "full":
        return full | {"recompute-method": "uniform", "recompute-num-layers": 1}
    each = chunked_recompute(work)
    return each if isinstance(each, No) else full | {"recompute-method": "block", "recompute-num-layers": each}


def _optimizer_offload(work: Work) -> Settings | No:
    share = work.layout.offload.optimizer
    if share and work.asked.optimizer not in (None, "adamw"):
        return No(f"{share:.0%} of the states of {work.asked.optimizer} (Adam's alone)", {"offload_optimizer": 0})
    return {"optimizer-cpu-offload": True, "optimizer-offload-fraction": share,
            "use-precision-aware-optimizer": True} if share else {}


def _method(work: Work) -> Settings | No:
    if work.method in ("lora", "qlora"):
        return No(f"{work.method} (adapters are Megatron-Bridge's)", {"method": "full"})
    return {"finetune": True} if work.method == "full" else {}


def _gradients(work: Work) -> Settings:
    """Gradients that the stack holds and sends in 32 bits, or in those of the weights."""
    recipe: StateBytes = work.stack.recipe(work.layout.precision)
    return {"accumulate-allreduce-grads-in-fp32": True} if work.layout.precision == "bf16" and (
        recipe.gradient >= 4) else {}


TABLE: Table = {
    ("candidate", "dp", "micro_batch"): lambda w: {"micro-batch-size": w.layout.micro_batch,
                                                   "global-batch-size": w.global_batch},
    ("precision",): lambda w: {**_FORMATS[w.layout.precision], **_gradients(w)},
    ("tp", "sp"): _tensor,
    ("cp", "cp_method"): _context,
    ("ep", "expert_tp"): _experts,
    ("pp", "vpp", "stages"): _pipeline,
    ("schedule",): only("schedule", "1f1b", reason="its pipeline runs 1F1B", instead={"schedule": "1f1b"}),
    ("zero", "hsdp"): _sharding,
    ("no_sync",): only("no_sync", 0, reason="sharded gradients are reduced each time", instead={"no_sync": 0}),
    ("recompute",): _recompute,
    ("offload",): _optimizer_offload,
    ("offload_parameters",): only("offload_parameters", 0.0, reason="weights stay on the GPU",
                                  instead={"offload_parameters": 0}),
    ("offload_activations",): only("offload_activations", 0.0, reason="checkpoints stay on the GPU",
                                   instead={"offload_activations": 0}),
    ("nvme",): only("nvme", 0, reason="it offloads to the host", instead={"offload_to": "host"}),
    ("method", "lora_rank"): _method,
    ("optimizer",): plain("optimizer", "optimizer", _OPTIMIZERS),
    ("optimizer_in_backward",): only("optimizer_in_backward", False, reason="it steps after backward"),
    ("loss",): plain("loss", "cross-entropy-fusion-impl", {"the stack's": None, "plain": None}),
    **WHOLE,
    ("packing",): only("packing", "packed", reason="its data set fills every sequence", instead={"packing": True}),
}

VARIABLES = (
    Variable("MEGATRON", "Megatron-LM", "Checkout of Megatron-LM, which has pretrain_gpt.py."),
    Variable("DATA", "mock", "Prefix of the .bin and .idx of tools/preprocess_data.py; mock makes tokens up."),
    Variable("TOKENIZER", "", "Hugging Face name or folder of the tokenizer; made-up data need none."),
    *of_training("3e-4"),
)


def emit(work: Work) -> Program:
    """Return the arguments of a plan as a script."""
    model, layout = model_flags(work), settings_of(work, TABLE)
    unknown = open_details(work.model)
    run = {"seq-length": work.sequence_length, "max-position-embeddings": work.sequence_length,
           "lr-decay-style": "cosine", "lr-warmup-fraction": 0.01, "weight-decay": 0.1, "clip-grad": 1.0,
           "eval-iters": 0, "eval-interval": 10**6,
           "log-interval": 1, "log-throughput": True, "save-interval": _save_interval(work)}
    sizes = f"--vocab-size {work.model.vocab}"
    body = [*array("MODEL", model), *array("LAYOUT", layout), *array("RUN", run),
            *(f'MODEL+=(--{flag} "${one.name}")' for flag, one in unknown.items()),
            'RUN+=(--train-iters "$STEPS" --lr "$LEARNING_RATE" --save "$CHECKPOINTS" --load "$CHECKPOINTS")',
            'if [[ "$DATA" == mock ]]; then', f"  RUN+=(--mock-data --tokenizer-type NullTokenizer {sizes})", "else",
            '  RUN+=(--data-path "$DATA" --tokenizer-type HuggingFaceTokenizer --tokenizer-model "$TOKENIZER")', "fi",
            "", "exec " + " ".join(torchrun(work.gpus_per_node, work.placed.nodes)) + " \\",
            '  "$MEGATRON/pretrain_gpt.py" "${MODEL[@]}" "${LAYOUT[@]}" "${RUN[@]}"']
    head = f"Megatron-LM, megatron-core {work.release.release}: runs on every node"
    variables = (*(Variable(v.name, v.default.format(steps=work.steps), v.meaning) for v in VARIABLES),
                 *unknown.values())
    return Program(target=work.target, files={"train.sh": script(head, environment(work), body)}, variables=variables,
                   parts=(Part("train", "train.sh", work.placed.nodes, work.gpus_per_node),),
                   notes=notes(work), feedback="train.log")


def environment(work: Work) -> dict[str, str]:
    """Return what the processes need in their environment."""
    environment = {"NVTE_FUSED_ATTN": "1"} if work.layout.cp > 1 else {}
    # one hardware queue keeps this traffic in order; GPUs after Hopper do without, and lose nothing by it
    if (work.layout.tp > 1 or work.layout.cp > 1) and work.layout.zero < 2:
        environment["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    if work.layout.precision == "tf32":
        environment["TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"] = "1"
    return environment


def _save_interval(work: Work) -> int:
    failures = work.placed.failures
    every = failures.checkpoint_interval_seconds / work.placed.time.step_seconds if failures else work.steps
    return max(1, round(every))


def notes(work: Work) -> tuple[str, ...]:
    """Return what a reader has to know before the start."""
    said = [f"{one.name} is Megatron's own: the catalog does not say it of {work.model.name}. {one.meaning}"
            for one in open_details(work.model).values()]
    if work.method == "full":
        said.append("CHECKPOINTS has to hold the weights to start from, converted to Megatron's format.")
    return tuple(said)


EMITTER = Emitter("megatron-lm", TABLE, emit)
