"""The JSON API described as OpenAPI: made of the table of flags and of the answers' schemas."""

from __future__ import annotations

from functools import cache
from typing import Any

from planner.api.described import schema_of
from planner.process.version import __version__
from planner.scenario.flags import NAMES, TABLE
from planner.web.question import CONFIG, OPTIONS, SCENARIO, TEXT

ANSWERS = {"plan": "plan", "compare": "comparison", "explain": "explanation"}
SAYS = {"plan": "The cheapest (or fastest, or smallest) plan, proven.",
        "estimate": "Whether a job or a service fits on a node type, how fast it is, where bytes and seconds go.",
        "compare": "Every candidate and offer, each at its own best plan.",
        "explain": "Why this plan, why not another, or why there is none."}
TOLD = {"prefer": "simple: the simplest layout within model error of the best.",
        "pareto": "The exact frontier of these: cost, days, gpus, energy; the plan minimizes the first.",
        "time_limit": "Stop after this time and say the remaining gap.",
        "node": "Node type or GPU: dgx-h100, 4090, 8xh100.",
        "nodes": "All GPUs of so many nodes.", "layout": "Axes and their values: tp=8,pp=4; left out, the best.",
        "why_not": "Choices that the plan does not make: tp=4,pp=2 or gpu=a100.",
        "largest": "Find the largest that fits, and estimate it.",
        "from_": "The text of a config whose values hold where nothing else is said: axolotl, LLaMA-Factory, TRL, "
                 "accelerate, DeepSpeed, torchtitan, Megatron-LM's arguments, or the line that starts vLLM or SGLang.",
        "replay": "For services: replay this trace (Azure CSV or Mooncake JSON lines) instead of synthetic requests.",
        "jobs": "How many nodes a log of jobs needs: Slurm's sacct, or CSV with submit, start, end (or duration), "
                "gpus.",
        "wait": "For a log of jobs: how long jobs may wait: 4 h at 95%."}
"""What a verb is told beside the question -> its help."""


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    answers = {name: schema_of(document) for name, document in ANSWERS.items()}
    schemas: dict[str, Any] = {}
    for schema in answers.values():
        schemas |= schema.pop("$defs", {})
    schemas |= {f"{name} answer": schema for name, schema in answers.items()}
    files = {"/api/files": {"post": {
        "summary": "Keep a file of text; its name is what values that name a file take.",
        "parameters": [{"name": "name", "in": "query", "required": True, "schema": {"type": "string"}}],
        "requestBody": {"required": True, "content": {"application/octet-stream": {}}},
        "responses": {"201": {"description": "{file: what a question calls it}"}}}}}
    jobs = {"/api/jobs": {"post": _operation("Begin to answer; returns the job.", {
        "type": "object", "required": ["verb", "question"],
        "properties": {"verb": {"enum": list(OPTIONS)}, "question": {"type": "object"}}}, {"type": "object"}, "202")}}
    one = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    for path, method, says in (("", "get", "How a job stands."), ("", "delete", "End it with the best that it has."),
                               ("/answer", "get", "Its answer, once it is there."),
                               ("/events", "get", "Its progress, as server-sent events.")):
        jobs.setdefault(f"/api/jobs/{{id}}{path}", {})[method] = {
            "summary": says, "parameters": one, "responses": {"200": {"description": says}}}
    paths = {f"/api/{verb}": {"post": _operation(says, _question(verb), {
        "$ref": f"#/components/schemas/{verb} answer"} if verb in answers else {
        "$ref": "#/components/schemas/TrainingAssignment"})} for verb, says in SAYS.items()}
    made: dict[str, Any] = _moved({"openapi": "3.1.0", "info": {"title": "planner", "version": __version__},
                                   "paths": {**paths, **files, **jobs},
                                   "components": {"schemas": schemas}})
    return made


def _question(verb: str) -> dict[str, Any]:
    """Return the schema of what a verb is asked."""
    values: dict[str, Any] = {SCENARIO: {"description": "The name of a shipped scenario, or what a file holds."},
                              TEXT: {"type": "string", "description": "The text of a scenario file."},
                              CONFIG: {"type": "string", "description": "The text of the config.json of a model on "
                                       "Hugging Face that the catalog has not; it is the model."}}
    by_path = {flag.path: flag for flag in TABLE.values()}
    for name, path in NAMES.items():
        flag = by_path[path]
        values[name] = {"description": flag.help, **({"enum": list(flag.choices)} if flag.choices else {}),
                        **({"type": "boolean"} if flag.switch else {})}
    return {"type": "object", "additionalProperties": False, "properties": values | {
        name: {"description": TOLD[name]} for name in OPTIONS[verb]}}


def _operation(says: str, body: dict[str, Any], answer: dict[str, Any], status: str = "200") -> dict[str, Any]:
    error = {"description": "What is wrong: message, field, key, file, line, exit_code."}
    return {"summary": says, "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": {status: {"description": says, "content": {"application/json": {"schema": answer}}},
                          "400": error}}


def _moved(data: Any) -> Any:  # noqa: ANN401 - a part of the document
    """Return the document with references to definitions where they are now."""
    if isinstance(data, dict):
        return {key: _moved(value) for key, value in data.items()}
    if isinstance(data, str) and data.startswith("#/$defs/"):
        return data.replace("#/$defs/", "#/components/schemas/")
    return [_moved(value) for value in data] if isinstance(data, list) else data
