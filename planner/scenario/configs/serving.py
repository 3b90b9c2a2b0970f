"""What lines that start inference engines share."""

from __future__ import annotations

from collections.abc import Mapping

from planner.scenario.configs.reading import NONE, Reading

FORMATS = {"fp8": "fp8", "awq": "int4", "awq_marlin": "int4", "gptq": "int4", "gptq_marlin": "int4", "marlin": "int4",
           "bitsandbytes": "nf4", "w8a8_int8": "int8", "w8a8_fp8": "fp8", "modelopt": "fp8", "modelopt_fp8": "fp8",
           "modelopt_fp4": "nvfp4", "mxfp4": "mxfp4", "fbgemm_fp8": "fp8"}
"""--quantization of vLLM and SGLang -> weight format. Others follow the model's name, as published."""
CACHES = {"auto": "auto", "bf16": "bf16", "bfloat16": "bf16", "fp8": "fp8", "fp8_e4m3": "fp8", "fp8_ds_mla": "fp8",
          "int8_per_token_head": "int8", "fp8_per_token_head": "fp8", "fp8_e5m2": "fp8",
          "int8": "int8", "nvfp4": "nvfp4"}
PROMPT, ANSWER = 1024, 128
"""Lengths where none are given: those of vLLM's own benchmark (`vllm bench serve --dataset-name random`)."""


def model(reading: Reading, named: str | None, key: str) -> None:
    """Put down the model and its weight format."""
    named = (named or "").removeprefix("hf://")
    if named.startswith("$"):
        reading.unknown[key] = named
    reading.put("workload.model", None if named.startswith("$") else named or None, key)
    if (carried := reading.source.carried) is not None:
        # a tag may have the release of CUDA alone; these engines are at 0.x, TensorRT-LLM at 1
        version = carried.version if carried.version.startswith(("0.", "1.")) else None
        reading.put("workload.engine_version", version, "the image's tag")
    wanted = reading.word("quantization", "q")
    if wanted is not None:
        reading.put("workload.quantization", FORMATS.get(wanted), "quantization")
    cache = reading.word("kv-cache-dtype")
    if cache is not None and cache not in CACHES:
        raise reading.wrong(("kv-cache-dtype",), cache, ", ".join(CACHES))
    if cache not in (None, "auto"):
        reading.put("workload.kv_cache", CACHES[str(cache)], "kv-cache-dtype")


def lengths(reading: Reading, longest: int | None, key: str) -> None:
    """Put down the longest request, and lengths to start from."""
    reading.put("workload.max_model_len", longest, key)
    answer = min(ANSWER, (longest or ANSWER * 2) // 2)
    prompt = min(PROMPT, (longest or PROMPT + answer) - answer)
    reading.put("workload.input", prompt, "input")
    reading.put("workload.output", answer, "output")
    for path, many in (("input", prompt), ("output", answer)):
        reading.default_of[f"workload.{path}"] = f"--{path} {many}, as vllm bench serve has it"


def limits(reading: Reading, fraction: str, sequences: str, tokens: str, suffixes: Mapping[str, int] = NONE,
           copies: int = 1) -> None:
    """Put down what the engine may take of memory, and into a step; suffixes: what may stand behind the tokens; copies:
    of attention that share out what is stated of a step.
    """
    share = reading.share(fraction)
    reading.put("workload.memory_fraction", share, fraction)
    count = reading.get(tokens)  # -1 is SGLang's word for prompts whole
    step = {"max_sequences": (sequences, reading.number(sequences)), "max_batched_tokens": (
        tokens, None if str(count) == "-1" else reading.number(tokens, suffixes=suffixes))}
    for key, (said, value) in step.items():
        reading.put(f"workload.{key}", None if value is None else max(1, value // copies), said)


def unsaid(reading: Reading, drafts: str, prefixes: str) -> None:
    """Say what a command turns on without saying how much of it there is."""
    if drafts:
        reading.counted.append(f"{drafts}: without drafts, unless --speculative 3:0.7 says how many are made and "
                               "accepted")
    if prefixes:
        reading.counted.append(f"{prefixes}: prompts are read whole, unless --prefix-hits 50% says what the cache has")


def degree(reading: Reading, axis: str, *keys: str) -> int:
    """Put down a degree, 1 too: an engine splits nothing of itself."""
    value = reading.degree(axis, *keys)
    if axis not in reading.open:
        reading.axis(axis, value, keys[0])
    return value
