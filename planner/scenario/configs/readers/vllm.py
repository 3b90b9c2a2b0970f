"""A line that starts vLLM (docs.vllm.ai/en/latest/cli/serve): `vllm serve MODEL ...`, or its API server."""

from __future__ import annotations

from dataclasses import replace

from planner.scenario.configs import serving
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SERVERS = ("vllm.entrypoints.openai.api_server", "vllm/vllm-openai", "dynamo.vllm")

OPTIONS = ("tensor-parallel-size", "max-model-len", "max-num-batched-tokens", "max-num-seqs", "kv-cache-dtype",
           "gpu-memory-utilization", "enable-prefix-caching", "no-enable-prefix-caching", "max-cudagraph-capture-size")
"""Of its file of options, which has at least `FEW`."""
FEW = 2
SUFFIXES = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
"""Behind numbers of tokens, as vllm/engine/arg_utils.py reads them."""


def tells(source: Source) -> bool:
    """Say whether it is one, by the program or the container that is started."""
    if source.form == "python":
        return any(word.partition(".")[0] == "vllm" for word in source.words) and any(
            word.rpartition(".")[2] in ("LLM", "EngineArgs", "AsyncEngineArgs") for word in source.words)
    if source.form == "yaml":  # what --config names
        return sum(map(source.has, OPTIONS)) >= FEW and not any("." in key for key in source.keys)
    # the value of a dotted key is of another program's
    words = [*source.words, *(str(word) for key, value in source.keys.items() if "." not in key
                              for word in (value if isinstance(value, list) else [value]))]
    return source.form == "command" and any(word == "vllm" or word.startswith(SERVERS) for word in words)


def read(reading: Reading) -> None:
    """Read model, format, cache, longest request and degrees."""
    if reading.source.form == "yaml":
        reading.source = replace(reading.source, form="command")
    reading.put("workload.engine", "vllm", "the program")
    reading.get("m")
    named = reading.text("model", "model-name-or-path" if reading.source.form == "python" else "model")
    words = [word for word in reading.source.words if word not in ("vllm", "serve")]
    if named is None and reading.source.form != "python":
        after = reading.source.words.index("serve") + 1 if "serve" in reading.source.words else 0
        named = next(iter(reading.source.words[after:]), None) if after else next(iter(words), None)
    serving.model(reading, named, "model")
    serving.lengths(reading, reading.number("max-model-len", suffixes=SUFFIXES), "max-model-len")
    if reading.source.form == "python":  # of its SamplingParams
        answer = reading.number("max-tokens")
        reading.put("workload.output", answer, "max-tokens")
        if answer is not None:
            reading.default_of.pop("workload.output")
    tp = serving.degree(reading, "tp", "tensor-parallel-size", "tp", "tensor-parallel")
    pp = serving.degree(reading, "pp", "pipeline-parallel-size", "pp", "pipeline-parallel")
    copies = reading.number("data-parallel-size", "dp") or 1
    serving.limits(reading, "gpu-memory-utilization", "max-num-seqs", "max-num-batched-tokens", SUFFIXES)
    drafts = next((key for key in ("speculative-config", "sc", "speculative-model") if reading.get(key)), "")
    serving.unsaid(reading, drafts, "enable-prefix-caching" if reading.on("enable-prefix-caching") else "")
    if reading.on("enforce-eager"):
        reading.counted.append("enforce-eager: with CUDA graphs, which are faster")
    if (reading.text("cpu-offload-gb") or "0") != "0":
        raise reading.wrong(("cpu-offload-gb",), reading.get("cpu-offload-gb"), "0: weights that are read from "
                            "the host in every step are not modeled for vLLM")
    if reading.on("enable-lora"):
        reading.put("workload.adapters", reading.number("max-loras") or 1, "enable-lora")
        reading.put("workload.lora_rank", reading.number("max-lora-rank"), "max-lora-rank")
    experts = reading.on("enable-expert-parallel", "ep")
    reading.gpus = tp * pp * copies
    if experts and copies > 1 and tp == 1:
        reading.axis("dp", copies, "data-parallel-size")
        reading.axis("ep", copies, "enable-expert-parallel")
    elif experts:
        reading.counted.append("enable-expert-parallel: experts are split as all matrices are, by TP")


READER = Reader("a vLLM command", tells, read)
