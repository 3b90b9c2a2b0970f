"""The line of an engine that a table of its options amounts to: srt-slurm, KubeAI, KServe, the production stack."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

ROLES = ("aggregated", "agg", "decode", "prefill")
"""Of srt-slurm's recipes, the first that stands there; of those apart the one that writes the answers."""
STARTS = {"sglang": "python -m sglang.launch_server --model-path", "vllm": "vllm serve", "trtllm": "trtllm-serve"}
"""Backends -> what the model follows."""
PARALLEL = {"tensor": "tensor-parallel-size", "pipeline": "pipeline-parallel-size", "data": "data-parallel-size"}
"""KServe's degrees -> vLLM's options."""
_SHOUTED = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Container(NamedTuple):
    """What is started, in which image, and other workers of the same model that stand beside it."""

    text: str
    image: str
    workers: int = 0


def line_of(data: Mapping[str, object]) -> Container | None:
    """Return the line that a table amounts to; none where it is none of these."""
    for told in (_recipe, _kubeai, _kserve, _chart):
        if (found := told(data)) is not None:
            return found
    return None


def _table(data: object, *path: str) -> Mapping[str, object]:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def flags(options: Mapping[str, object], prefix: str = "") -> Iterator[str]:
    """Yield options as words of a line; of a table inside them by dotted path."""
    for key, value in options.items():
        name = f"{prefix}{_SHOUTED.sub('-', str(key)).lower()}"
        if isinstance(value, Mapping):
            yield from flags(value, f"{name}.")
        elif value is True:
            yield f"--{name}"
        elif value not in (None, False) and not isinstance(value, list):
            yield f"--{name} {shlex.quote(str(value))}"


def _recipe(data: Mapping[str, object]) -> Container | None:
    """Read a recipe of srt-slurm: a backend with the options of each kind of worker."""
    backend = _table(data, "backend")
    kind = str(backend.get("type", ""))
    workers = _table(backend, f"{kind}_config")
    roles = [role for role in ROLES if isinstance(workers.get(role), Mapping)]
    if kind not in STARTS or not roles:
        return None
    options = dict(_table(workers, roles[0]))
    path = str(_table(data, "model").get("path", ""))
    said = [options.pop(key, None) for key in ("served-model-name", "served_model_name")]
    for key in ("model-path", "model_path", "model"):
        options.pop(key, None)
    named = path if "/" in path.strip("/") and not path.startswith("/") else next(
        (str(name) for name in said if name), path)
    return Container(" ".join([STARTS[kind], shlex.quote(named), *flags(options)]),
                     str(_table(data, "model").get("container", "")), len(roles) - 1)


def _kubeai(data: Mapping[str, object]) -> Container | None:
    spec = _table(data, "spec")
    url, args = str(spec.get("url", "")), spec.get("args") or []
    if data.get("kind") != "Model" or str(spec.get("engine")).upper() != "VLLM" or not isinstance(args, list):
        return None
    return Container(" ".join(["vllm serve", url.removeprefix("hf://").partition("?")[0], *map(str, args)]), "vllm")


def _kserve(data: Mapping[str, object]) -> Container | None:
    """Read KServe's LLMInferenceService: a model, degrees, and what is added to vLLM's arguments."""
    spec = _table(data, "spec")
    model = _table(spec, "model")
    if data.get("kind") != "LLMInferenceService" or "uri" not in model:
        return None
    uri = str(model["uri"])
    named = uri.removeprefix("hf://") if uri.startswith("hf://") else str(model.get("name", uri))
    degrees = _table(spec, "parallelism")
    words = [f"--{flag} {degrees[key]}" for key, flag in PARALLEL.items() if key in degrees]
    words += ["--enable-expert-parallel"] if degrees.get("expert") is True else []
    containers = _table(spec, "template").get("containers")
    image = ""
    for one in containers if isinstance(containers, list) else []:
        image = image or str(_table(one).get("image", ""))
        args, env = _table(one).get("args"), _table(one).get("env")
        words += map(str, args) if isinstance(args, list) else []
        words += [str(pair.get("value", "")) for pair in (env if isinstance(env, list) else [])
                  if isinstance(pair, Mapping) and pair.get("name") == "VLLM_ADDITIONAL_ARGS"]
    return Container(" ".join(["vllm serve", named, *words]), image, int("prefill" in spec))


def _chart(data: Mapping[str, object]) -> Container | None:
    """Read a model of the production stack's chart, whose options are vLLM's defaults but for a few."""
    if not isinstance(data.get("modelURL"), str) or not ({"requestGPU", "repository"} & data.keys()):
        return None
    options = dict(_table(data, "vllmConfig"))
    more = options.pop("extraArgs", None)
    words = [*flags(options), *(map(str, more) if isinstance(more, list) else [])]
    return Container(" ".join(["vllm serve", str(data["modelURL"]), *words]),
                     f"{data.get('repository')}:{data.get('tag')}")
