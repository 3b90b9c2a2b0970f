"""A line that starts TensorRT-LLM (`trtllm-serve MODEL ...`), or the YAML of its options (llmapi/llm_args.py)."""

from __future__ import annotations

from planner.scenario.configs import serving
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source, known_beside

OWN = ("enable_attention_dp", "cuda_graph_config", "moe_config", "enable_chunked_prefill", "max_num_tokens",
       "kv_cache_config", "speculative_config", "print_iter_log", "enable_autotuner", "stream_interval")
"""Keys of the YAML, of which a file has some."""
FEW = 2
DELAY, BATCHING = 50, 10
"""attention_dp_config.timeout_iters and batching_wait_iters, where they are not given."""
CACHE = ("kv_cache_config.free_gpu_memory_fraction",)
PROGRAMS = ("trtllm-serve", "dynamo.trtllm")
OPTIONS = ("extra_llm_api_options", "extra_engine_args", "config")
"""Flags that name the YAML."""


def tells(source: Source) -> bool:
    """Say whether it is one, by the program that is started, or by keys that only its options have together."""
    if source.form == "command":
        return any(word.endswith(PROGRAMS) for word in (*source.words, str(source.keys.get("m", ""))))
    return source.form == "yaml" and (sum(map(source.has, OWN)) >= FEW or source.has(*CACHE)) and not source.has(
        "model.path")


def read(reading: Reading) -> None:
    """Read model, cache, longest request, degrees and copies of attention."""
    reading.put("workload.engine", "tensorrt-llm", "the program")
    words = list(reading.source.words)
    behind = next((at + 1 for at, word in enumerate(words) if word.endswith(PROGRAMS)), 0)
    words = [word for word in words[behind:] if word != "serve"]
    _options(reading)
    serving.model(reading, reading.text("model", "model_path") or next(iter(words), None), "model")
    cache = reading.word("kv_cache_config.dtype", "kv_cache_dtype")
    if cache is not None and cache not in serving.CACHES:
        raise reading.wrong(("kv_cache_config.dtype",), cache, ", ".join(serving.CACHES))
    reading.put("workload.kv_cache", serving.CACHES.get(cache or ""), "kv_cache_config.dtype")
    serving.lengths(reading, reading.number("max_seq_len"), "max_seq_len")
    serving.limits(reading, "kv_cache_config.free_gpu_memory_fraction" if reading.source.has("kv_cache_config")
                   else "kv_cache_free_gpu_memory_fraction", "max_batch_size", "max_num_tokens")
    if reading.on("attention_dp_config.enable_balance"):
        steps = reading.number("attention_dp_config.timeout_iters")
        more = reading.word("attention_dp_config.batching_wait_iters")
        reading.put("workload.prefill_delay", DELAY if steps is None else steps, "attention_dp_config.enable_balance")
        if more != "0":
            reading.counted.append(f"batching_wait_iters {more or BATCHING}: prompts go as soon as "
                                   "every rank has one, and wait no longer for more of them")
    tp = reading.number("tensor_parallel_size", "tp_size")
    unset = [key for key in map(reading.source.named, ("tensor_parallel_size", "tp_size")) if key in reading.unknown]
    if unset:
        reading.open["tp"] = unset[0]
    elif tp is None and (options := reading.text("extra_llm_api_options", "config")) is not None:
        raise reading.wrong(("extra_llm_api_options",), options, "--tp_size, or that file itself, with --model, as it "
                            "has the degrees")
    tp = tp or 1
    ep = reading.number("moe_expert_parallel_size", "ep_size")
    if reading.on("enable_attention_dp") and not unset:
        # copies of attention share the GPUs of the experts
        reading.axis("tp", 1, "enable_attention_dp")
        reading.axis("dp", tp, "enable_attention_dp")
    elif not unset:
        reading.axis("tp", tp, "tensor_parallel_size")
    reading.axis("ep", ep, "moe_expert_parallel_size")
    pp = serving.degree(reading, "pp", "pipeline_parallel_size", "pp_size")
    serving.unsaid(reading, "speculative_config" if reading.source.has("speculative_config") else "",
                   "enable_block_reuse" if reading.on("kv_cache_config.enable_block_reuse") else "")
    reading.gpus = tp * pp


def _options(reading: Reading) -> None:
    """Read on with the YAML that a line names, where it lies beside it; that may lie in the container alone."""
    named = next((key for key in OPTIONS if reading.source.has(key)), None)
    if named is not None and reading.source.form == "command" and known_beside(
            reading.source, str(reading.source.keys[reading.source.named(named)])) is not None:
        reading.under(named)


READER = Reader("a TensorRT-LLM command, or its options", tells, read)
