"""Rules of thumb for memory held against the planner: write docs/rules-of-thumb.md.

Run `python -m benchmarks.rules` at the top of the checkout. The rules are those of widely read articles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from planner.answer.assignment import Assignment
from planner.ask.estimate import estimating
from planner.catalog.load import Catalog
from planner.physics.shapes import parameters

PAGE = Path(__file__).parents[1] / "docs" / "rules-of-thumb.md"
GB = 1e9


@dataclass(frozen=True, slots=True)
class Rule:
    """One claim: what is claimed, its figure in GB (or percent), what the planner says, and why they differ."""

    claim: str
    figure: str
    planner: Callable[[], str]
    why: str


@cache
def estimate(model: str, method: str = "full", stack: str | None = None, node: str = "mi325x-platform",
             length: int = 2048, batch: int = 1, recompute: str = "none", gpus: int = 1) -> Assignment:
    """Return one layout on one GPU, large enough that fitting is no question."""
    layout = {"tp": str(gpus)} if method == "inference" else {"mbs": str(batch), "recompute": recompute,
                                                              "dp": str(gpus)}
    values = {"workload.model": model, "workload.method": method, "workload.sequence_length": length,
              "limits.gpus": gpus, **({} if method == "inference" else {"workload.global_batch": batch * gpus}),
              **({} if stack is None else {"workload.stack": stack})}
    return estimating(None, values, Catalog(), node=node, layout=layout, labels={})()


def gigabytes(assignment: Assignment) -> dict[str, float]:
    """Return the components of the worst GPU in GB, without the reserve and the cache, which takes what is left."""
    parts = assignment.memory.components.model_dump()
    return {name: size / GB for name, size in parts.items() if size and name not in ("reserve", "kv_cache")}


def breakdown(assignment: Assignment) -> str:
    """Return the median device memory and its parts, in GB."""
    parts = gigabytes(assignment)
    listed = ", ".join(f"{name.replace('_', ' ')} {size:.1f}" for name, size in parts.items())
    return f"{sum(parts.values()):.1f} GB: {listed}"


def recipe_bytes(stack: str) -> float:
    """Return bytes per parameter of weights, gradients, master copy and optimizer states."""
    recipe = Catalog().stack(stack).states["bf16"]
    return recipe.weight + recipe.gradient + recipe.master + recipe.moments


def states(model: str, stack: str) -> float:
    """Return GB of all states on one GPU without sharding."""
    return parameters(Catalog().model(model)) * recipe_bytes(stack) / GB


def saved(model: str, length: int) -> tuple[float, float]:
    """Return the shares of activations and of the peak that full recompute saves."""
    none, full = (estimate(model, stack="fsdp2", length=length, recompute=mode) for mode in ("none", "full"))
    kept = [gigabytes(one)["activations"] for one in (none, full)]
    peak = [sum(gigabytes(one).values()) for one in (none, full)]
    return 1 - kept[1] / kept[0], 1 - peak[1] / peak[0]


def nf4(model: str) -> float:
    """Return GB of the weights of a model whose matrices are NF4 with double quantization."""
    return gigabytes(estimate(model, "qlora"))["weights"]


RULES: Sequence[Rule] = (
    Rule("7B in fp32 with Adam: 28 + 28 + 56", "112 GB",
         lambda: f"{states('llama-2-7b', 'fsdp2'):.1f} GB of states; in all, at 2,048 tokens, "
         + breakdown(estimate("llama-2-7b", stack="fsdp2")),
         "exact for states: 16 bytes a parameter, of 6.74 G and not 7 G; activations, logits and the framework come on "
         "top, and plain PyTorch frees gradients before activations peak"),
    Rule("7B fine-tuned in 16 bits: weights, gradients, Adam, activations", "84 GB",
         lambda: breakdown(estimate("llama-2-7b", stack="deepspeed")),
         "12 bytes a parameter is no recipe that runs: pure bf16 is 8, mixed precision 16 to 18, before activations"),
    Rule("Llama 3 8B, full fine-tuning", "100 GB", lambda: breakdown(estimate("llama-3-8b", stack="deepspeed")),
         "16 bytes a parameter are 128 GB before anything is computed; 100 GB is what offload or 8-bit states leave"),
    Rule("Llama 3 8B, QLoRA on an RTX 4090, batch 4, 2,048 tokens, recompute", "18 GB",
         lambda: breakdown(estimate("llama-3-8b", "qlora", "trl", node="rtx-4090-1x", batch=4,
                                    recompute="full")),
         "since 1.15 TRL fuses the head with the loss; before, 8,192 tokens by 128,256 logits in the Transformers loss "
         "added 14 GB. Measured on one H200: 10.8 GB in tensors"),
    Rule("10B in mixed precision", "160 GB",
         lambda: f"{10 * recipe_bytes('deepspeed'):.0f} GB of states in DeepSpeed, "
         f"{10 * recipe_bytes('megatron-core'):.0f} GB in Megatron-Core",
         "exact for 2 + 2 + 4 + 8 bytes; Megatron accumulates gradients in fp32, 18 bytes"),
    Rule("GPT-2 medium in fp32 with Adam, batch 8, 1,024 tokens: 3 to 4 times the model, 1.4 GB", "5.7 GB",
         lambda: breakdown(estimate("gpt2-medium", stack="fsdp2", length=1024, batch=8)),
         "states are 5.7 GB, but at 8,192 tokens activations and 50,257 logits are several times that"),
    Rule("LLaMA 7B for inference, 16 bits", "14 GB", lambda: breakdown(estimate("llama-1-7b", "inference")),
         "exact for weights; the key-value cache takes half a megabyte a token, and is given all that is left"),
    Rule("70B in 4 bits", "35 GB", lambda: f"{nf4('llama-2-70b'):.1f} GB of weights",
         "half a byte forgets the scales of each block, and the tables, which stay 16-bit; LitGPT measured 37.2 GB"),
    Rule("gradient checkpointing saves memory", "33% or 50%",
         lambda: "{:.0%} of activations and {:.0%} of the peak of Llama 3 8B at 8,192 tokens".format(
             *saved("llama-3-8b", 8192)),
         "33% is what it costs in compute; what it saves depends on how much of the peak activations are"),
)


def page() -> str:
    """Return docs/rules-of-thumb.md."""
    lines = ["# Rules of thumb, and what they miss", "",
             "Generated by `python -m benchmarks.rules`; do not edit. GB is 1e9 bytes, one GPU, nothing sharded or "
             "offloaded; medians, without the reserve that a verdict adds.", "",
             "| rule | its figure | this planner | why they differ |", "|---|---|---|---|"]
    lines += [f"| {rule.claim} | {rule.figure} | {rule.planner()} | {rule.why} |" for rule in RULES]
    lines += ["", "`planner estimate` prints the same for your model, batch and framework, and what would save most."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(page())
