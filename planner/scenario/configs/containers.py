"""The line that a manifest starts: of Docker Compose, Kubernetes, KServe, Helm charts, Ray Serve, SkyPilot, dstack."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from planner.scenario.configs.manifests import line_of

ENGINES = {"vllm": "vllm serve", "vllm-openai": "python -m vllm.entrypoints.openai.api_server",
           "text-generation-inference": "text-generation-launcher"}
"""Images that start an engine themselves, by the last part of their name, with the line that the arguments follow."""
ALL = '"$@"'
_DEFAULT = re.compile(r"\$\{\w{1,99}:-([^{}$]{0,200})\}", re.ASCII)
SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash")
PROGRAMS = re.compile(
    r"\b(vllm|sglang|trtllm-serve|text-generation-launcher|torchrun|deepspeed|accelerate launch|axolotl|"
    r"llamafactory-cli|swift|openrlhf|verl|trl|tune run|torch\.distributed\.run|llama-server|"
    r"dynamo\.(?:vllm|sglang|trtllm))\b")
"""What a line starts that a reader knows."""
SCRIPT = re.compile(r"\b(train\w{0,40}\.py|python3? -m)\b")
"""What may be one."""
RUNS = re.compile(r"\b(?:ba)?sh\s+[\"']?\S{0,200}\.sh\b")
"""A script beside the manifest, which may start one."""
SCRIPTS = ("run", "commands", "script", "entrypoint", "cmd")
"""Keys of a job under which its lines stand."""
SETTINGS = ("tensor_parallel_size", "pipeline_parallel_size", "max_model_len", "gpu_memory_utilization",
            "max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching", "kv_cache_dtype", "dtype")
"""vLLM's own options, as a chart or a deployment states them under keys; of one file at least `FEW`."""
FEW = 2
OTHERS = ("kv_cache_config", "cuda_graph_config", "moe_config", "max_batch_size")
"""Options of TensorRT-LLM, whose others have names of vLLM's."""
TRAINERS = ("actor_rollout_ref", "policy", "trainer", "grpo", "algorithm", "actor")
"""Blocks of trainers that draw answers by an engine."""
MODELS = ("model_source", "model_url", "model_id", "model_name_or_path", "model_path", "model", "model_tag")
"""Keys that name the model beside them, in the order in which they hold."""
GPUS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type", "accelerator_type", "accelerators", "accelerator", "gpu_type",
        "instance_type", "resource_profile", "gpu")
"""Keys that name the hardware."""
NODES = {"num_nodes": ("SKYPILOT_NUM_NODES",), "nodes": ("DSTACK_NODES_NUM",)}
"""Keys of a task that count its machines -> the variables that its lines have them in."""
COUNTS = ("SKYPILOT_NUM_GPUS_PER_NODE", "DSTACK_GPUS_PER_NODE", "DSTACK_GPUS_NUM")
"""Variables that hold the GPUs of a machine."""
REPLICAS = ("replicas", "replica_count", "num_replicas", "min_replicas")
_SHOUTED = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_VERSION = re.compile(r"(?:^|[:v_-])v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)")


class Carried(NamedTuple):
    """What a manifest starts, and what it says of where and how often."""

    line: str
    others: int
    """Containers that start another model."""
    workers: int
    """Other kinds of workers of the same model."""
    hardware: str
    version: str
    """Of the engine, by the image's tag."""
    replicas: int


def carried_in(data: object) -> Carried | None:
    """Return what the first container or job starts that a reader may know; none where nothing does."""
    by_keys = None if not isinstance(data, Mapping) or line_of(data) is not None else _by_settings({"": data})
    found = [by_keys] if by_keys else list(_lines(data))
    lines = next((told for telling in (PROGRAMS, SCRIPT, RUNS) if (
        told := [(line, image) for line, image in found if telling.search(line)])), [])
    if not lines:
        return None
    line, image = lines[0]
    workers = max((one.workers for block in _blocks(data) if (one := line_of(block)) is not None), default=0)
    named = image.rpartition("/")[2].partition("@")[0]
    version = _VERSION.search(named.partition(":")[2]) if any(
        engine in image for engine in ("vllm", "sglang", "tensorrt", "text-generation")) else None
    replicas = [value for value in _under(data, REPLICAS) if isinstance(value, int) and value > 1]
    hardware = [text for value in _under(data, GPUS) if (text := _hardware(value))]
    others = {_model_of(each) for each, _ in found} - {_model_of(line), ""}
    return Carried(_with_variables(line, data), len(others), workers, next(iter(hardware), ""),
                   version.group(1) if version else "", next(iter(replicas), 1))


def _with_variables(line: str, data: object) -> str:
    """Return a line behind the variables that its manifest sets, in any of the ways that they are written."""
    known: dict[str, object] = {}
    if isinstance(data, Mapping):
        known |= {name: data[key] for key, names in NODES.items() if isinstance(data.get(key), int) for name in names}
        count = next((each for value in _under(data, GPUS) if (each := _hardware(value).partition("x")[0]).isdecimal()),
                     None)
        known |= {} if count is None else dict.fromkeys(COUNTS, count)
    for block in _under(data, ("env", "envs", "environment")):
        pairs = block.items() if isinstance(block, Mapping) else [
            (one.get("name"), one.get("value")) if isinstance(one, Mapping) else str(one).partition("=")[::2]
            for one in block] if isinstance(block, list) else []
        known |= {str(name): value for name, value in pairs if isinstance(value, str | int | float)}
    named = re.sub(r"\$\((\w+)\)", lambda m: f"${{{m[1]}}}" if m[1] in known else m[0], line)
    said = [f"{name}={shlex.quote(str(value))}" for name, value in known.items() if re.fullmatch(r"\w+", name)]
    return "\n".join([*said, named])


def plain(key: object) -> str:
    """Return a key as Python would have it: tensorParallelSize, tensor-parallel-size -> tensor_parallel_size."""
    return _SHOUTED.sub("_", str(key)).replace("-", "_").lower()


def _model_of(line: str) -> str:
    found = re.search(r"(?:--model(?:-path|-id)?[= ]|serve )(\S{1,200})", line)
    return found.group(1) if found else ""


def _lines(data: object) -> Iterator[tuple[str, str]]:
    """Yield what is started with the image that it runs in, wherever it stands: a service, a container of a pod."""
    if isinstance(data, Mapping) and (table := line_of(data)) is not None:
        yield table.text, table.image
        return
    if isinstance(data, Mapping):
        yield from _in_block(data)
    for value in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        yield from _lines(value)


def _in_block(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what a table itself starts."""
    image = _DEFAULT.sub(r"\1", str(data.get("image", "")))
    if image and ("command" in data or "args" in data):
        yield _line(data, image), image
    elif "modelFormat" in data and "args" in data:  # KServe's own runtime for Hugging Face, which is vLLM
        yield f"vllm serve {_words(data['args'])}".replace("--model_id", "--model"), image
    elif not any(name in data for name in TRAINERS) and (line := _by_settings(data)):
        yield line
    else:
        for key in SCRIPTS:
            if (script := _script(data.get(key))) and any(
                    telling.search(script) for telling in (PROGRAMS, SCRIPT, RUNS)):
                yield script, image


def _blocks(data: object) -> Iterator[Mapping[str, object]]:
    """Yield every table of a manifest."""
    if isinstance(data, Mapping):
        yield data
    for value in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        yield from _blocks(value)


def _line(container: Mapping[str, object], image: str) -> str:
    words = [_words(container.get(key)).replace('"$$@"', ALL) for key in ("entrypoint", "command", "args")]
    started = " ".join(filter(None, words))
    if (whole := next((word for word in words if ALL in word), None)) is not None:
        # a script that is handed the rest; of Docker Compose a sign of a variable stands twice
        rest = " ".join(filter(None, words[words.index(whole) + 1:]))
        started = whole.replace(ALL, rest).replace("$$", "$")
    own = ENGINES.get(image.rpartition("/")[2].partition(":")[0].partition("@")[0])
    has = own is None or "vllm" in started.split() or "vllm." in started or own in started
    return started if has else f"{own} {started}"


def _script(value: object) -> str:
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(value) if any(" " in line for line in value) else shlex.join(value)
    return value if isinstance(value, str) else ""


def _by_settings(data: Mapping[str, object]) -> tuple[str, str] | None:
    """Return the line of vLLM that a block of its options amounts to, with its image."""
    for key, block in data.items():
        if not isinstance(block, Mapping):
            continue
        own = {plain(name): value for name, value in block.items()}
        if sum(name in own for name in SETTINGS) < FEW or any(name in own for name in OTHERS):
            continue
        beside = {plain(name): value for name, value in _leaves({k: v for k, v in data.items() if k != key})}
        model = next((held[name] for held in (own, beside) for name in MODELS if isinstance(held.get(name), str)), "")
        if not model:
            continue
        flags = [f"--{name.replace('_', '-')}" + ("" if value is True else f" {shlex.quote(str(value))}")
                 for name, value in own.items() if name not in (*MODELS, "extra_args") and not isinstance(
                     value, Mapping | list) and value not in (None, False)]
        more = own.get("extra_args") or beside.get("extra_args") or []
        words = more if isinstance(more, list) else [more]
        image = f"{beside.get('repository', beside.get('image', 'vllm'))}:{beside.get('tag', '')}"
        return " ".join(["vllm serve", str(model), *flags, *map(str, words)]), image
    return None


def _leaves(data: object) -> Iterator[tuple[str, object]]:
    """Yield keys with their values, of all blocks below."""
    for key, value in data.items() if isinstance(data, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        else:
            yield str(key), value


def _under(data: object, keys: tuple[str, ...]) -> Iterator[object]:
    """Yield what stands under some keys, wherever; of a table of several the names in it."""
    if isinstance(data, Mapping):
        if str(data.get("key")) in keys and isinstance(data.get("values"), list):
            yield from data["values"]
        for key, value in data.items():
            if str(key) in keys or plain(key) in keys:
                yield value
            yield from _under(value, keys)
    elif isinstance(data, list):
        for value in data:
            yield from _under(value, keys)


def _hardware(value: object) -> str:
    """Return hardware as the planner reads it: H100:8 is 8xH100."""
    if isinstance(value, Mapping) and len(value) == 1:
        (name, count), = value.items()
        value = f"{name}:{count}" if isinstance(count, int) else value.get("name", "")
    if not isinstance(value, str) or not any(map(str.isalpha, value)):
        return ""
    parts = [part for part in value.replace("NVIDIA-", "").replace("nvidia-", "").removeprefix("gpu-").split(":")
             if part]
    count = next((part for part in parts if part.isdecimal()), "")
    name = next((part for part in parts if not part.isdecimal() and not re.fullmatch(r"\d+ ?GB\.*", part)), "")
    return f"{count}x{name}" if count else name


def _words(value: object) -> str:
    """Return words as one line; of a shell the script that it runs."""
    if not isinstance(value, list):
        return "" if value is None else str(value)
    words = [str(word) for word in value]
    if words and words[0] in SHELLS and any(word.startswith("-") and word.endswith("c") for word in words[1:2]):
        return " ".join(words[2:])
    return words[0] if len(words) == 1 and " " in words[0] else shlex.join(words)
