"""Ray Serve's schema of its config, and its own class of an LLM's, whose engine arguments vLLM reads."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from ray.serve.schema import ServeDeploySchema

from planner.launch.checks import vllm
from planner.launch.checks.model_config import write_config

KEYS = {"http_options", "applications"}


def resolve(folder: Path) -> dict[str, object]:
    """Return copies, nodes and GPUs of each part that the config comes to."""
    with (folder / "ray-serve.yaml").open() as file:
        said = import_module("yaml").safe_load(file)
    assert set(said) <= KEYS, f"keys that Serve would let by: {set(said) - KEYS}"
    (application,) = ServeDeploySchema.model_validate(said).applications
    with (folder / "launch.json").open() as file:
        parts = [part for part in json.load(file)["parts"] if part["nodes"]]
    configs = application.args["llm_configs"]
    assert len(configs) == len(parts), "a config for each kind of replica"
    config_class = import_module("ray.llm._internal.serve.core.configs.llm_config").LLMConfig
    found: dict[str, object] = {}
    known = {one.name for one in fields(vllm.ENGINE_ARGUMENTS)}
    for one, part in zip(configs, parts, strict=True):
        with TemporaryDirectory() as place:
            write_config(Path(place), part["model"], turned=True)
            one["model_loading_config"]["model_source"] = place
            config = config_class(**one)
        args = config.engine_kwargs
        assert set(args) <= known, f"arguments that vLLM does not have: {set(args) - known}"
        world = args["tensor_parallel_size"] * args["pipeline_parallel_size"]
        assert world % part["nodes"] == 0, f"{world} GPUs on {part['nodes']} nodes"
        found[part["name"]] = [config.deployment_config["num_replicas"], part["nodes"], world // part["nodes"]]
    return found
