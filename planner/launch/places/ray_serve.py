"""Ray Serve LLM: an application whose replicas are vLLM engines, with the plan's arguments."""

from __future__ import annotations

import json

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.places.kubernetes import label
from planner.launch.program import Part, Program, Start
from planner.launch.title import title
from planner.yaml_io import dump

CONFIG = "ray-serve.yaml"
_JSON = ("speculative-config",)
"""Options whose value is JSON, which are a mapping here."""


def job(program: Program, assignment: Assignment) -> Start:
    """Return the config of Serve. Raises Unsupported for other engines, and for what its builder does not place."""
    if program.target != "vllm":
        raise Unsupported(f"{program.target} under Ray Serve LLM, whose engine is vLLM")
    served = [part for part in program.parts if part.port]
    if any(part.role != "whole" for part in served):
        raise Unsupported("prefill and decode apart under Ray Serve LLM")
    names = {one.name: one.default for one in program.variables}
    models = [_model(part, names, f"{names['NAME']}-{part.name}" if len(served) > 1 else names["NAME"], program)
              for part in served]
    made = {"http_options": {"host": "0.0.0.0", "port": int(names["PORT"])}, "applications": [
        {"name": label(title(assignment)), "route_prefix": "/", "import_path": "ray.serve.llm:build_openai_app",
         "args": {"llm_configs": models}}]}
    return Start({CONFIG: dump(made)}, f"serve run {CONFIG}", notes=(
        "Ray Serve: what variables.sh names stands in its YAML, which does not read it; every node has "
        "`pip install \"ray[serve]==2.60.0\"` beside vLLM.",))


def _model(part: Part, names: dict[str, str], called: str, program: Program) -> dict[str, object]:
    options = {key.replace("-", "_"): json.loads(str(value)) if key in _JSON else value
               for key, value in part.options.items()}
    if options.get("data_parallel_size", 1) != 1:
        raise Unsupported(f"{options['data_parallel_size']} copies of attention under Ray Serve LLM")
    if not names[part.model]:
        raise Unsupported("a checkpoint that has no published name under Ray Serve LLM, whose YAML has to name it")
    kind = program.called.get("ray")
    return {"model_loading_config": {"model_id": called, "model_source": names[part.model]},
            **({"accelerator_type": kind} if kind else {}),
            "deployment_config": {"num_replicas": part.copies}, "engine_kwargs": options}


PLACE = Place("ray-serve", job, "ray_serve", "ray")
