"""A line of Megatron Bridge's performance scripts: a recipe by its name, and what it is told over that."""

from __future__ import annotations

from planner.scenario.configs.readers.megatron import parallelism
from planner.scenario.configs.readers.nemo_recipe import called
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

PRECISIONS = {"bf16": "bf16", "fp8_cs": "fp8", "fp8_ds": "fp8", "fp8_sc": "fp8", "fp8_mx": "mxfp8", "nvfp4": "fp4"}
"""compute_dtype -> in what products are computed."""
TASKS = {"pretrain": "pretrain", "sft": "full", "lora": "lora"}


def tells(source: Source) -> bool:
    """Say whether it is one, by the recipe's name and the format."""
    return source.form == "command" and source.has("compute-dtype") and (
        source.has("model-recipe-name") or source.has("model-name", "model-size"))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, degrees, precision and GPUs; the rest is the recipe's own."""
    reading.put("workload.stack", "megatron-bridge", "the program")
    recipe = reading.text("model-recipe-name") or f"{reading.text('model-name')}_{reading.text('model-size')}"
    reading.get("model-family-name", "config-variant", "cuda-graph-impl", "cuda-graph-scope")
    reading.names = called(recipe)
    task = reading.word("task") or "pretrain"
    if task not in TASKS:
        raise reading.wrong(("task",), task, ", ".join(TASKS))
    reading.put("workload.method", TASKS[task], "task")
    dtype = reading.word("compute-dtype") or "bf16"
    if dtype == "fp8":
        dtype = f"fp8_{reading.word('fp8-recipe') or 'cs'}"
    if dtype not in PRECISIONS:
        raise reading.wrong(("compute-dtype",), dtype, ", ".join(PRECISIONS))
    reading.put("workload.precision", PRECISIONS[dtype], "compute-dtype")
    reading.put("workload.sequence_length", reading.number("seq-length"), "seq-length")
    reading.axis("mbs", reading.number("micro-batch-size", "mb"), "micro-batch-size")
    reading.put("workload.global_batch", reading.number("global-batch-size", "gb"), "global-batch-size")
    parallelism(reading)
    for axis, key in (("tp", "tp"), ("pp", "pp"), ("cp", "cp"), ("vpp", "vp"), ("ep", "ep"), ("expert_tp", "et")):
        reading.axis(axis, reading.number(key), key)
    reading.axis("zero", 1, "the recipe, whose optimizer is sharded")
    if reading.layout.get("tp", "1") != "1":
        reading.axis("sp", 1, "the recipe, with sequence parallelism")
    if not reading.source.has("recompute-granularity"):
        reading.layout.pop("recompute", None)
    reading.gpus = reading.number("num-gpus", "ng")
    reading.steps = reading.number("max-steps")
    left = [key for key in ("seq-length", "micro-batch-size", "global-batch-size", "tensor-model-parallel-size")
            if not reading.source.has(key)]
    reading.defaults.append(f"recompute{''.join(f', {key}' for key in left)}: the recipe's own, which the line does "
                            "not say")


READER = Reader("a line of Megatron Bridge's performance scripts", tells, read)
