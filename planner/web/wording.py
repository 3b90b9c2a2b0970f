"""One question in every form: as an address, as a file, as a command, as Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from planner.catalog.load import Catalog
from planner.errors import InputError, PlannerError
from planner.scenario.configs.read import text_config
from planner.scenario.flags import FLAGS, NAMES, TABLE
from planner.scenario.hardware_alone import hardware_alone, hardware_file
from planner.scenario.kind import kind_by_model
from planner.scenario.load import merge
from planner.scenario.paths import paths
from planner.scenario.pool import ANY
from planner.scenario.resolve import NO_FILE
from planner.web.forms import FORMS, form_of
from planner.web.question import CONFIG, FILE, FROM, FROM_FILE, PASTED, SCENARIO, TEXT, UPLOADED, Verb
from planner.yaml_io import Document, dump, parse

SAID = {"largest": "max", FROM: "from"}
"""Value -> what the command line calls it, where that is another name."""


def address(question: Verb) -> str:
    """Return the question as the query of an address."""
    said: dict[str, Any] = {SCENARIO: question.scenario} if isinstance(question.scenario, str) else {}
    said |= {name: text for name, text in ((TEXT, question.text), (CONFIG, question.config)) if text}
    values = {name: value for name, value in question.values.items() if name != "model" or not question.config}
    return urlencode(said | {name: _text(value) for name, value in values.items()})


def as_yaml(question: Verb, catalog: Catalog) -> str:
    """Return the question as a scenario file, as far as a file can ask it. Raises InputError."""
    reference = question.reference
    stated = reference if isinstance(reference, Document) else NO_FILE
    overrides: Mapping[str, Any] = {NAMES[name]: value for name, value in question.values.items() if name in NAMES}
    if FROM in question.values:
        overrides = text_config(str(question.values[FROM]), FROM_FILE).planned(overrides, catalog)
    if not overrides and stated is NO_FILE:
        return ""
    kind = kind_by_model(overrides, catalog) if stated is NO_FILE else None
    merged = merge(stated, overrides, {}, kind).data if overrides else stated.data
    if stated is NO_FILE and question.verb in ("plan", "compare") and hardware_alone(
            None, overrides, catalog, always=question.verb == "compare") is not None:
        return dump(hardware_file(overrides, {}).data)
    if stated is NO_FILE and "hardware.candidates" not in overrides:
        merged.pop("hardware", None)
    return dump(merged)


def as_fields(text: str, catalog: Catalog) -> dict[str, str]:
    """Return a scenario file as the fields of a form; what no field has stays in `yaml`. Raises InputError."""
    data = parse(text, FILE).data
    if not isinstance(data, dict) or "jobs" in data or "workloads" in data:
        return {TEXT: text}
    fields = {}
    for name, path in FLAGS.items():
        *blocks, key = path.split(".")
        way: list[Any] = [data]
        for part in blocks:
            way.append(way[-1].get(part) if isinstance(way[-1], dict) else None)
        block = way[-1]
        if isinstance(block, dict) and key in block and _is_plain(block[key]) and not (
                TABLE[name].switch and block[key] is not True):
            fields[name] = _text(block.pop(key))
            for part, outer, inner in zip(reversed(blocks), way[-2::-1], way[:0:-1], strict=True):
                if not inner:  # all that it said is in fields; what was empty in the file says something there
                    del outer[part]
    rest = data
    work = rest.get("workload")
    if isinstance(work, dict) and work == {"kind": FORMS[form_of(fields, catalog)].work}:
        del rest["workload"]  # the fields say it
    if fields.get("on") == ANY:
        del fields["on"]
    return fields | ({TEXT: dump(rest)} if rest else {})


def as_values(text: str, catalog: Catalog) -> dict[str, str]:
    """Return what a framework's or an engine's config says, by the names of fields. Raises InputError."""
    config = text_config(text, FROM_FILE)
    paths_said = config.reading.values if config.serves else config.values({}, catalog)
    names = {path: name for name, path in reversed(NAMES.items())}
    return {names[path]: _text(value) for path, value in paths_said.items() if path in names}


def is_config(text: str) -> bool:
    """Say whether text is a framework's or an engine's config, which somebody took for a scenario file."""
    try:
        data = parse(text, FILE).data
        if isinstance(data, dict) and {path.partition(".")[0] for path, _ in paths()} & data.keys():
            return False
        text_config(text, FROM_FILE)
    except PlannerError:
        return False
    return True


def with_deadline(text: str, name: str, day: str) -> str:
    """Return a scenario file with another deadline of a job; all else stays as it was written. Raises InputError."""
    document = parse(text, FILE)
    for called, at, job in _jobs(document):
        line = document.line(("jobs", at, "deadline"))
        if called == name and "deadline" in job and line is not None:
            lines = text.split("\n")
            before, key, after = lines[line - 1].rpartition("deadline")
            lines[line - 1] = before + key + after.replace(str(job["deadline"]), day, 1)
            return "\n".join(lines)
    raise InputError(f"no job {name!r} has a deadline in the file", key=TEXT)


def _jobs(document: Document) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    """Yield every job of a file with its name and place."""
    jobs = document.data.get("jobs") if isinstance(document.data, dict) else None
    for at, job in enumerate(jobs if isinstance(jobs, list) else []):
        if isinstance(job, dict) and "name" in job:
            yield str(job["name"]), at, job


def as_command(question: Verb, pasted: str = PASTED) -> str:
    """Return the question as a command line; a pasted config is imported first, from a file, by that name."""
    before = f"planner catalog import hf config.json -o imported --name {pasted}\n" if question.config else ""
    words = ["planner", question.verb, *(["--catalogs", "imported"] if question.config else [])]
    values = _named(question, pasted)
    if isinstance(question.scenario, str):
        words.append(question.scenario)
    if question.text:
        words.append(FILE)
    for name, value in values.items():
        option = "--" + SAID.get(name, name).replace("_", "-")
        for each in value if isinstance(value, list) and name == "why_not" else [value]:
            words += [option] if each is True else [option, _text(each)]
    return before + shlex.join(words)


def as_python(question: Verb, pasted: str = PASTED) -> str:
    """Return the question as a call; pasted: what the model of a pasted config is called where it was imported."""
    given = [repr(question.scenario)] if isinstance(question.scenario, str) else [repr(FILE)] if question.text else []
    given += ["catalogs='imported'"] if question.config else []
    given += [f"{name}={value!r}" for name, value in _named(question, pasted).items()]
    return f"import planner\n\nanswer = planner.{question.verb}({', '.join(given)})\nprint(answer)"


def _named(question: Verb, pasted: str) -> dict[str, Any]:
    """Return the values as they are said where files have their own names, and the model of a config has one too."""
    values = {name: _file(name, value) for name, value in question.values.items()}
    return {"model": pasted, **values} if question.config else values


def _file(name: str, value: object) -> object:
    """Return a value as it is said beside the file that it names: by the file's own name."""
    if name == FROM:
        return FROM_FILE
    return str(value).partition("@")[0] if name in UPLOADED else value


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, str | int | float) for item in value))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else ""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
