"""The JSON API described as OpenAPI: made of the table of flags and of the answers' schemas."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any, Literal, get_args

from planner.answer.assignment import KINDS
from planner.api.described import schema_of
from planner.process.version import __version__
from planner.scenario.flags import NAMES, TABLE
from planner.web.question import CONFIG, OPTIONS, SCENARIO, TEXT

ANSWERS = {"plan": ("plan", "comparison", "sizing"), "compare": ("comparison",), "explain": ("explanation",)}
"""Verb -> the documents that it may answer with: a plan of hardware without work is a comparison, one of a log of jobs
says how many nodes that needs.
"""
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


State = Literal["waiting", "running", "done", "failed", "canceled"]
"""How a job stands."""
ERRORS = {400: "Something is wrong with what is asked.", 401: "The token is missing.",
          403: "Another site asks, or by another host's name.", 404: "There is no such job.",
          408: "The request did not come to its end.", 409: "Ended before there was an answer.",
          413: "More bytes than a request or a file has.", 422: "A limit of the server ended it without an answer.",
          500: "A bug of the planner.", 503: "Too many questions wait.", 507: "The file cannot be kept."}
"""Status of a response that is no answer -> what it means."""
_EXIT = {"planner-exit-code": {"description": "Exit code of the command.", "schema": {"type": "integer"}}}
_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_NUMBER: dict[str, Any] = {"type": ["integer", "null"]}
_WRONG = dict.fromkeys(("message", "field", "key", "file"), _TEXT) | dict.fromkeys(("line", "exit_code"), _NUMBER)
_JOB_REF = {"$ref": "#/components/schemas/job"}
_JOB = {"type": "object", "properties": {
    "id": {"type": "string"}, "state": {"enum": [*get_args(State)]}, "waiting_before": _NUMBER,
    "answer": {"type": "string"}, "events": {"type": "string"},
    "final": {"type": "boolean", "description": "Whether the search was let come to its end."},
    "progress": {"type": "object", "properties": {
        "objective": {"type": "string"}, "done": {"type": "number"}, "value": {"type": ["number", "null"]},
        "bound": {"type": ["number", "null"]}, "part": {"type": "string"}}},
    "error": {"type": "object", "properties": _WRONG}}}


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    answers = {name: schema_of(name) for name in {*chain(*ANSWERS.values())}}
    schemas: dict[str, Any] = {"job": _JOB, "wrong": {"type": "object", "properties": {
        "error": {"type": "object", "properties": _WRONG | {"also": {"type": "array", "items": {
            "type": "object", "properties": _WRONG}}}}}}}
    for schema in answers.values():
        schemas |= schema.pop("$defs", {})
    schemas |= {f"{name} answer": schema for name, schema in answers.items()}
    files = {"/api/files": {"post": {
        "summary": "Keep a file of text; its name is what values that name a file take.",
        "parameters": [{"name": "name", "in": "query", "required": True, "schema": {"type": "string"}}],
        "requestBody": {"required": True, "content": {"application/octet-stream": {}}},
        "responses": {"201": _told("The file is kept.", {"type": "object", "properties": {"file": {
            "type": "string", "description": "What a question calls it."}}}), **_wrong(400, 401, 403, 408, 413, 507)}}}}
    verbs = {verb: {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in (
        *(f"{name} answer" for name in ANSWERS.get(verb, ())),
        *(kind.__name__ for kind in KINDS.values() if verb == "estimate"))]} for verb in SAYS}
    jobs = {"/api/jobs": {"post": _operation("Begin to answer; returns the job.", {
        "type": "object", "required": ["verb", "question"],
        "properties": {"verb": {"enum": list(OPTIONS)}, "question": {"type": "object"}}},
        _told("The job.", _JOB_REF), 202)}}
    one = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    for path, method, says, status, told in (
            ("", "get", "How a job stands.", 200, _told("The job.", _JOB_REF)),
            ("", "delete", "End it with the best that it has.", 202, _told("The job.", _JOB_REF)),
            ("/answer", "get", "Its answer, once it is there.", 200,
             _told("What --json prints.", {"anyOf": [*verbs.values()]}) | {"headers": _EXIT}),
            ("/events", "get", "Its progress, as server-sent events: progress, and at last ended.", 200,
             {"description": "The job, each time that it stands otherwise.", "content": {"text/event-stream": {}}})):
        jobs.setdefault(f"/api/jobs/{{id}}{path}", {})[method] = {"summary": says, "parameters": one, "responses": {
            str(status): told, **_wrong(401, 403, 404, *((400, 409, 422, 500) if path == "/answer" else ()))}}
    paths = {f"/api/{verb}": {"post": _operation(says, _question(verb), _told(
        "What --json prints, to the byte.", verbs[verb]) | {"headers": _EXIT}, 200)} for verb, says in SAYS.items()}
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


def _operation(says: str, body: dict[str, Any], told: dict[str, Any], status: int) -> dict[str, Any]:
    return {"summary": says, "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": {str(status): told, **_wrong(400, 401, 403, 408, 413, 503, *(
                (409, 422, 500) if status == 200 else ()))}}


def _told(says: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": says, "content": {"application/json": {"schema": schema}}}


def _wrong(*statuses: int) -> dict[str, Any]:
    return {str(status): _told(ERRORS[status], {"$ref": "#/components/schemas/wrong"}) for status in sorted(statuses)}


def _moved(data: Any) -> Any:  # noqa: ANN401 - a part of the document
    """Return the document with references to definitions where they are now."""
    if isinstance(data, dict):
        return {key: _moved(value) for key, value in data.items()}
    if isinstance(data, str) and data.startswith("#/$defs/"):
        return data.replace("#/$defs/", "#/components/schemas/")
    return [_moved(value) for value in data] if isinstance(data, list) else data
