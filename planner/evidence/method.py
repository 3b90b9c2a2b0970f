"""The training method of a row: all weights, adapters, or adapters on a quantized base; and how the row stores them."""

from __future__ import annotations

import re

from planner.catalog.recipes import Recipes, TrainedBytes
from planner.catalog.stack import Stack
from planner.evidence.rows import TrainRun
from planner.evidence.skipping import SkippedError
from planner.physics.training.tuning import TARGETS, Tuning, tuning_of

_ADAPTER = re.compile(r"\blora\b", re.IGNORECASE)
_RANK = re.compile(r"\bLoRA r(\d{1,9})")
_INT8 = re.compile(r"8-bit base", re.IGNORECASE)
_WEIGHT = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}
_MOMENTS = {"fp32": 8.0, "bf16": 4.0, "8bit": 2.06, "4bit": 1.06}
_UPCAST = re.compile(r"QwenLM/Qwen |huggingface/peft")
"""Sources that prepare a quantized model with PEFT's prepare_model_for_kbit_training, which keeps embedding, head and
norms in 32 bits (peft/utils/other.py)."""
DOUBLE = ("axolotl", "torchtune")
"""Stacks whose NF4 is always doubly quantized: axolotl sets bnb_4bit_use_double_quant, torchao's NF4Tensor has 8-bit
scalers in blocks of 256."""
DEFAULT_RANK = 8
"""PEFT's and LitGPT's default; adapters of any usual rank are small beside the base."""
_TARGETS: tuple[tuple[str, str], ...] = (
    (r"all-linear", "attention-in attention-out mlp-in mlp-out experts"),
    (r"\bq\b|query|c_attn|qkv", "attention-in"), (r"\bo\b|projection|c_proj|output", "attention-out"),
    (r"mlp|\bw1\b", "mlp-in experts"), (r"mlp|\bw2\b|c_proj", "mlp-out"),
)
MLPERF_TARGETS = frozenset({"attention-in", "attention-out"})
"""MLPerf Training's Llama 2 70B LoRA adapts the query-key-value and the output projection."""


def method_of(run: TrainRun) -> str:
    """Return pretrain, full, lora or qlora: as stated, else by what the row says of adapters."""
    adapters = run.lora_rank is not None or _ADAPTER.search(run.notes or "") is not None
    if run.method in (None, "pretrain") and adapters:
        return "qlora" if run.base_quantization else "lora"
    return run.method or "pretrain"


def tuning(run: TrainRun, stack: Stack, recipes: Recipes, assumed: list[str]) -> Tuning:
    """Return what the method of a row changes. Raises SkippedError for a base that has no figure."""
    method = method_of(run)
    if method in ("pretrain", "full"):
        return tuning_of(recipes, method, 0)
    rank = _rank(run, assumed)
    usual = recipes.adapter
    adapter = TrainedBytes(weight=_WEIGHT.get(run.weights_dtype or "", usual.weight),
                           gradient=_WEIGHT.get(run.gradients_dtype or "", usual.gradient),
                           moments=_MOMENTS.get(run.moments_dtype or "", usual.moments))
    quantization = _quantization(run, stack, recipes, method, assumed)
    held = recipes.bases[quantization] if quantization else 2.0  # the dtype columns are of the adapters
    bitsandbytes = quantization is not None and stack.family == "hf-peft"
    return Tuning(
        trains_base=False, adapter_rank=rank, quantized=quantization is not None, base_bytes=held,
        table_bytes=4.0 if quantization and _UPCAST.search(run.source or "") else 2.0,
        keeps_frozen_inputs=bitsandbytes, targets=_targets(run, stack, assumed),
        adapter=adapter, trains_tables="trained" in (run.lora_targets or ""))


def _rank(run: TrainRun, assumed: list[str]) -> int:
    said = _RANK.search(run.notes or "")
    if run.lora_rank or said:
        return run.lora_rank or int(said.group(1) if said else 0)
    assumed.append(f"lora_rank={DEFAULT_RANK}")
    return DEFAULT_RANK


def _quantization(run: TrainRun, stack: Stack, recipes: Recipes, method: str, assumed: list[str]) -> str | None:
    if stack.name in DOUBLE and run.base_quantization == "nf4":
        return "nf4-dq"
    if run.base_quantization is not None:
        if run.base_quantization not in recipes.bases:
            raise SkippedError(f"base_quantization {run.base_quantization} is not modeled")
        return run.base_quantization
    if method == "qlora":
        assumed.append("base_quantization=nf4-dq")
        return "nf4-dq"
    return "int8" if _INT8.search(run.notes or "") else None


def _targets(run: TrainRun, stack: Stack, assumed: list[str]) -> frozenset[str]:
    if run.lora_targets is None:
        if "MLPerf" in (run.notes or ""):
            return MLPERF_TARGETS
        assumed.append("lora_targets=all-linear")
        # axolotl's lora_target_linear takes modules, and fused experts are none
        return TARGETS - {"experts"} if stack.name == "axolotl" else TARGETS
    found = [places.split() for pattern, places in _TARGETS if re.search(pattern, run.lora_targets)]
    return frozenset(place for places in found for place in places) or TARGETS
