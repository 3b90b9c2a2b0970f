"""Megatron-Bridge: `pretrain.py` with a `config()`. What Megatron-LM is told, by the names of a ConfigContainer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.launch.adapted import modules_by
from planner.launch.axes import No, Settings, Table, settings_of
from planner.launch.emitter import Emitter, plain
from planner.launch.emitters import megatron_lm
from planner.launch.megatron import model_flags, open_details
from planner.launch.program import Part, Program, Variable, script, torchrun
from planner.launch.work import Work

_BLOCKS = {
    "train": ("micro-batch-size", "global-batch-size"),
    "ddp": ("overlap-grad-reduce", "overlap-param-gather", "use-distributed-optimizer", "use-megatron-fsdp",
            "data-parallel-sharding-strategy", "num-distributed-optimizer-instances"),
    "checkpoint": ("ckpt-format",),
    "optimizer": ("optimizer-cpu-offload", "optimizer-offload-fraction", "use-precision-aware-optimizer", "optimizer"),
}
"""Block of the config -> flags of Megatron-LM that are in it; all others are the model's."""
_OWN = {"num-virtual-stages-per-pipeline-rank": "virtual_pipeline_model_parallel_size",
        "num-experts": "num_moe_experts", "norm-epsilon": "layernorm_epsilon",
        "apply-layernorm-1p": "layernorm_zero_centered_gamma", "use-rope-scaling": "rope_scaling",
        "rotary-percent": "rotary_percent"}
_NOT = {"no-rope-fusion": "apply_rope_fusion", "no-bias-gelu-fusion": "bias_activation_fusion",
        "no-gradient-accumulation-fusion": "gradient_accumulation_fusion", "disable-bias-linear": "add_bias_linear",
        "untie-embeddings-and-output-weights": "share_embeddings_and_output_weights"}
"""Flags that turn something off -> what is off."""
_RECIPES = {"bf16": "bf16_mixed", "fp16": "fp16_mixed", "fp8": "bf16_with_fp8_current_scaling_mixed",
            "mxfp8": "bf16_with_mxfp8_mixed", "fp4": "bf16_with_nvfp4_mixed"}


_ADAPTED = {"q_proj": "linear_q", "k_proj": "linear_k", "v_proj": "linear_v", "o_proj": "linear_proj",
            "gate_proj": "linear_fc1_gate", "up_proj": "linear_fc1_up", "down_proj": "linear_fc2"}
"""Module of a layer -> what CanonicalLoRA, which leaves q, k, v and gate, up apart, calls it."""


def _key(flag: str) -> str:
    block = next((name for name, flags in _BLOCKS.items() if flag in flags), "model")
    return f"{block}.{_NOT.get(flag) or _OWN.get(flag) or flag.replace('-', '_')}"


def _named(flags: Mapping[str, object]) -> dict[str, object]:
    return {_key(flag): value if flag not in _NOT else False for flag, value in flags.items()}


def _method(work: Work) -> Settings | No:
    if work.method == "qlora":
        return No("qlora (its base is not quantized)", {"method": "lora"})
    return {"peft": work.asked.rank} if work.method == "lora" else (
        {"checkpoint.finetune": True} if work.method == "full" else {})


TABLE: Table = {
    **megatron_lm.TABLE,
    ("precision",): plain("precision", "mixed_precision", _RECIPES),
    # in place, as its recipes have it; Megatron-Core's own is native
    ("loss",): plain("loss", "cross-entropy-fusion-impl", {"the stack's": "te", "plain": None}),
    ("method", "lora_rank"): _method,
    ("lora_targets",): modules_by({}, lambda names: {"peft.target_modules": [_ADAPTED[name] for name in names]}),
}
VARIABLES = (*(one for one in megatron_lm.VARIABLES if one.name != "MEGATRON"),
             Variable("WEIGHTS", "weights", "To tune: folder of the weights, imported by AutoBridge.import_ckpt."))


def emit(work: Work) -> Program:
    """Return the config of a plan as a script of Python, and the script that starts it."""
    model, settings = list(_model_lines(work)), settings_of(work, TABLE)
    text = "\n".join(_lines(work, model, settings)) + "\n"
    head = f"Megatron-Bridge {work.release.release}"
    body = ["exec " + " ".join(torchrun(work.gpus_per_node, work.placed.nodes)) + ' "$here/pretrain.py"']
    variables = (*(Variable(v.name, v.default.format(steps=work.steps), v.meaning) for v in VARIABLES),
                 *open_details(work.model).values())
    return Program(target=work.target, variables=variables, feedback="train.log",
                   files={"pretrain.py": text, "train.sh": script(f"{head}: runs on every node",
                                                                  megatron_lm.environment(work), body)},
                   parts=(Part("train", "train.sh", work.placed.nodes, work.gpus_per_node),),
                   notes=(*megatron_lm.notes(work), *([_HYBRID] if _hybrid(work) else ())))


_HEAD = """import os

import torch
from megatron.core.activations import squared_relu
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.models.mla_provider import MLAModelProvider
from megatron.bridge.peft.canonical_lora import CanonicalLoRA
from megatron.bridge.peft.lora import LoRA
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.mixed_precision import get_mixed_precision_config
from megatron.bridge.training.pretrain import pretrain

try:
    from deep_ep import HybridEPBuffer
except ImportError:
    HybridEPBuffer = None


def config():"""
_HYBRID = ("The expected step time counts on HybridEP (DeepEP's branch hybrid-ep, in NVIDIA's NeMo images): "
           "pretrain.py uses it where deep_ep can be imported. Without it, a token goes out once for each of its "
           "experts, which is slower.")
_TAIL = """    else:
        cfg.dataset.blend = ([os.environ["DATA"]], None)
        cfg.tokenizer.tokenizer_model = os.environ["TOKENIZER"]
    cfg.train.train_iters = int(os.environ["STEPS"])
    cfg.optimizer.lr = float(os.environ["LEARNING_RATE"])
    cfg.optimizer.min_lr = 0.1 * cfg.optimizer.lr
    cfg.scheduler.lr_warmup_iters = min(500, cfg.train.train_iters // 10)
    cfg.checkpoint.save = cfg.checkpoint.load = os.environ["CHECKPOINTS"]
    cfg.logger.log_interval = 1
    return cfg


if __name__ == "__main__":
    pretrain(config(), forward_step)"""


def _hybrid(work: Work) -> bool:
    """Say whether the plan counts on a token going once a GPU, not once for each of its experts."""
    return work.layout.ep > 1 and work.stack.experts is not None and work.stack.experts.deduplicated


def _lines(work: Work, model: Sequence[str], settings: Settings) -> Iterator[str]:
    yield f'"""Megatron-Bridge {work.release.release}: the plan in plan.json."""\n'
    yield _HEAD
    yield from model
    yield from _layout_lines(work, settings)
    yield f"    cfg.dataset.seq_length = {work.sequence_length}"
    if work.method != "pretrain":
        yield '    cfg.checkpoint.pretrained_checkpoint = os.environ["WEIGHTS"]'
    yield '    if os.environ["DATA"] == "mock":'
    yield '        cfg.tokenizer.tokenizer_type, cfg.tokenizer.use_tokenizer_vocab_size = "NullTokenizer", False'
    yield f"        cfg.tokenizer.vocab_size = {work.model.vocab}"
    yield _TAIL


def _model_lines(work: Work) -> Iterator[str]:
    shape = model_flags(work)
    provider = "MLAModelProvider" if "multi-latent-attention" in shape else "GPTModelProvider"
    gated, squared = shape.pop("swiglu", False), shape.pop("squared-relu", False)
    shape.pop("group-query-attention", None)
    if "multi-latent-attention" in shape:
        shape.setdefault("q-lora-rank", None)  # its own default is a rank
    yield '    """Return the ConfigContainer of the plan."""'
    yield "    cfg = _pretrain_common()"
    yield f"    cfg.model = {provider}("
    for key, value in _named(shape).items():
        whole = value if key not in ("model.moe_layer_freq", "model.window_size") else None
        said = repr(whole) if whole is not None else f"({value})" if key == "model.window_size" else str(value)
        yield f"        {key.removeprefix('model.')}={said},"
    if gated:
        yield "        gated_linear_unit=True, activation_func=torch.nn.functional.silu,"
    elif squared:
        yield "        activation_func=squared_relu,"
    elif "no-bias-gelu-fusion" not in shape:
        yield "        bias_activation_fusion=True,"
    yield from (f'        {_key(flag).removeprefix("model.")}=float(os.environ["{one.name}"]),'
                for flag, one in open_details(work.model).items())
    yield f"        vocab_size={work.model.vocab}, seq_length={work.sequence_length})"


def _layout_lines(work: Work, settings: Settings) -> Iterator[str]:
    adapters = settings.get("peft")
    for key, value in settings.items():
        if key == "mixed_precision":
            yield f"    cfg.mixed_precision = get_mixed_precision_config({value!r})"
            whole = work.stack.recipe(work.layout.precision).gradient >= 4
            yield f"    cfg.mixed_precision.grad_reduce_in_fp32 = {whole}"
        elif not key.startswith("peft"):
            named = key if "." in key else _key(key)
            yield f"    cfg.{named} = {False if key in _NOT else value!r}"
    if work.layout.zero == 0:
        yield "    cfg.ddp.use_distributed_optimizer = cfg.optimizer.use_distributed_optimizer = False"
        yield "    cfg.ddp.overlap_param_gather = False"
    if work.layout.pp > 1:
        yield "    cfg.model.pipeline_dtype = torch.bfloat16"
    if work.layout.vpp > 1:  # CommOverlapConfig's choice for chunks; Megatron-LM's own default
        yield "    cfg.model.overlap_p2p_comm, cfg.model.batch_p2p_comm = True, False"
    if _hybrid(work):
        yield "    if HybridEPBuffer is not None:"
        yield '        cfg.model.moe_token_dispatcher_type, cfg.model.moe_flex_dispatcher_backend = "flex", "hybridep"'
    if adapters:
        modules = settings.get("peft.target_modules")
        where = f", target_modules={modules!r}" if modules else ""
        kind = "CanonicalLoRA" if modules else "LoRA"
        yield f"    cfg.peft = {kind}(dim={adapters}, alpha={2 * work.asked.rank}{where})"


EMITTER = Emitter("megatron-bridge", TABLE, emit)
