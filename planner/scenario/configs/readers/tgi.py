"""A line that starts Text Generation Inference: `text-generation-launcher --model-id ...`, or its container."""

from __future__ import annotations

from planner.scenario.configs import serving
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source


def tells(source: Source) -> bool:
    """Say whether it is one, by the program or the container that is started."""
    return source.form == "command" and any(
        "text-generation-launcher" in word or "text-generation-inference" in word for word in source.every_word())


def read(reading: Reading) -> None:
    """Read model, format, longest request and shards."""
    reading.put("workload.engine", "vllm", "the program")
    reading.counted.append("Text Generation Inference: as vLLM, which is modeled")
    serving.model(reading, reading.text("model-id"), "model-id")
    reading.values.pop("workload.engine_version", None)  # of its own image, and not of vLLM
    wanted = reading.word("quantize")
    reading.put("workload.quantization", serving.FORMATS.get(wanted or ""), "quantize")
    prompt = reading.number("max-input-tokens", "max-input-length")
    whole = reading.number("max-total-tokens")
    serving.lengths(reading, whole, "max-total-tokens")
    reading.get("max-batch-prefill-tokens")
    if prompt is not None:
        reading.counted.append(f"max-input-tokens {prompt:,}: prompts are as long as --input says")
    shards = serving.degree(reading, "tp", "num-shard")
    serving.limits(reading, "cuda-memory-fraction", "max-concurrent-requests", "max-batch-prefill-tokens")
    reading.gpus = shards


READER = Reader("a line of Text Generation Inference", tells, read)
