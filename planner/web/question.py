"""What a request asks: a verb and its values, checked for what a stranger may ask before anything runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from hashlib import sha256
from typing import Any

from planner.catalog.load import data_root
from planner.errors import InputError, UnknownName
from planner.scenario.configs.read import text_config
from planner.scenario.flags import FLAGS, NAMES, TABLE
from planner.scenario.load import shipped
from planner.scenario.said import in_their_places
from planner.web.uploads import is_named, path_of
from planner.yaml_io import Document, parse, read

FILE = "question.yaml"
"""What a file's text is called in messages."""
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "plan": ("prefer", "pareto", "time_limit", "from_", "replay", "jobs", "wait"),
    "estimate": ("node", "nodes", "layout", "largest", "from_"), "compare": ("time_limit",),
    "explain": ("why_not", "time_limit")}
"""Verb -> what it is told beside the question."""
SCENARIO, TEXT, CONFIG = "scenario", "yaml", "config"
"""The name of a shipped scenario or what a file holds; the text of a file; the text of a model's config.json."""
VALUE_OF = "value of"
"""What messages call the name of a value that no verb, or another one, has."""
PASTED = "pasted"
"""What the model of a config that does not name it is called."""
FROM = "from_"
FROM_FILE = "config.txt"
"""The text of a framework's or an engine's config, and what it is called in messages."""
LOG = "jobs"
"""A log of jobs, of which a plan says how many nodes it needs."""
UPLOADED = {"replay", LOG, *(name for name, flag in TABLE.items() if flag.metavar == "FILE" or name == "tokenizer")}
"""Values that name a file, which is uploaded before."""
_COUNTED = [FLAGS[name] for name in ("requests", "documents", "dataset", "samples", "tokens", "rate")]
"""Where a file of requests or of samples is named, and what says how many there are."""
_DATED = ("deadline", "price_age")
"""Values, or keys of a file, that may be counted from today: a deadline by its date, how old a price may be."""
_FILES = UPLOADED | {TABLE[name].path.rpartition(".")[2] for name in UPLOADED if name in TABLE}


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with its values by name, as in Python; the scenario is a shipped name, a mapping, or a file's text."""

    verb: str
    values: Mapping[str, Any]
    scenario: str | Mapping[str, Any] | None = None
    text: str | None = None
    config: str | None = None
    """Of Hugging Face, of a model that no catalog has."""
    paged: bool = False
    """Whether a page shows the answer."""

    def key(self, digest: str) -> str:
        """Return what tells the question from all others, by the code and the catalog of a digest.

        Where it counts days from today, its answer is of today.
        """
        said = [self.verb, self.values, self.scenario, self.text, self.config, self.paged, digest]
        if any(word in json.dumps(said) for word in _DATED):
            said.append(date.today().isoformat())
        return sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def reference(self) -> Mapping[str, Any] | Document | None:
        """The scenario as `load_question` takes it. Raises InputError for text that is no YAML, or names files."""
        if isinstance(self.scenario, str):  # whatever file of that name there is here
            return read(data_root("scenarios") / f"{self.scenario.lower()}.yaml")
        if self.text is None:
            return self.scenario
        document = parse(self.text, FILE)
        _refuse_files(document.data)
        return document

    @property
    def opened(self) -> tuple[Mapping[str, Any] | Document | None, dict[str, Any]]:
        """Return the scenario and the values with the files that they name where they are, and a config as read.

        Raises InputError.
        """
        reference, values = self.reference, _with_files(dict(self.values))
        if FROM in values:
            values[FROM] = text_config(str(values[FROM]), FROM_FILE)
        if self.text is not None and isinstance(reference, Document):
            return replace(reference, data=_with_files(reference.data)), values
        return reference if isinstance(reference, Document) else _with_files(reference), values


def question_of(verb: str, body: object, *, paged: bool = False) -> Verb:
    """Return what the JSON of a request asks; paged: a page shows the answer. Raises InputError, UnknownName."""
    if verb not in OPTIONS:
        raise UnknownName("verb", verb, OPTIONS)
    if not isinstance(body, dict):
        raise InputError("expected a JSON object with the values of the question, such as "
                         '{"model": "llama-3.1-70b", "tokens": "1 T"}')
    values = {name: value for name, value in body.items() if name not in (SCENARIO, TEXT, CONFIG) and value is not None}
    for name in values:
        if name not in NAMES and name not in OPTIONS[verb]:
            raise UnknownName(f"{VALUE_OF} {verb}", name, (*NAMES, *OPTIONS[verb], SCENARIO, TEXT, CONFIG))
    scenario, (text, config) = body.get(SCENARIO), (_text(body, name) for name in (TEXT, CONFIG))
    for one, other, given in ((SCENARIO, TEXT, scenario is not None and text), ("model", CONFIG, "model" in values and
                                                                                 config)):
        if given:
            raise InputError(f"{one} and {other} are both given: one of them asks", key=other)
    if isinstance(scenario, str):
        if scenario.lower() not in shipped_names():
            raise UnknownName(f"{SCENARIO} (the name of a shipped one, or a mapping as a file holds)", scenario,
                              shipped_names())
    elif scenario is not None and not isinstance(scenario, dict):
        raise InputError(f"{SCENARIO}: expected the name of a shipped one, or a mapping as a file holds", key=SCENARIO)
    values = _in_their_places(values)
    _refuse_files({**values, SCENARIO: scenario})
    return Verb(verb, values, scenario, text, config, paged)


def _in_their_places(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with a count that is given where a file of requests or samples is named as what it is."""
    said = {NAMES[name]: value for name, value in values.items() if NAMES.get(name) in _COUNTED}
    meant = in_their_places(said)
    left = {name: value for name, value in values.items() if NAMES.get(name) not in said or NAMES[name] in meant}
    names = {path: name for name, path in FLAGS.items()}
    return left | {names[path]: meant[path] for path in _COUNTED if path in meant and path not in said}


def _text(body: Mapping[str, object], name: str) -> str | None:
    """Return a value of a request that is the text of a file. Raises InputError."""
    text = body.get(name)
    if text is not None and not isinstance(text, str):
        raise InputError(f"{name}: expected the text of a file", key=name)
    return text


def typed(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of an address or a form as the values of a question; what is empty is not said."""
    said = {name: text if name in (TEXT, FROM) else text.strip() for name, text in fields.items()}
    return {name: _typed(name, text) for name, text in said.items() if text}


def _typed(name: str, text: str) -> Any:  # noqa: ANN401 - as Python would give it
    if name in TABLE and TABLE[name].switch:
        return {"true": True, "on": True, "1": True, "yes": True, "false": None}.get(text.lower(), text)
    return text


@cache
def shipped_names() -> tuple[str, ...]:
    """Return the names of the shipped scenarios."""
    return tuple(shipped())


@cache
def portfolios() -> dict[str, str]:
    """Return the shipped scenarios of many jobs, by name, and what each calls itself."""
    return {name: str(read(data_root("scenarios") / f"{name}.yaml").data["name"]) for name in shipped("portfolio")}


def _refuse_files(data: object) -> None:
    """Refuse what would make the server open a file of its machine."""
    for key, value in _inside(data):
        if key in _FILES and value is not None and not (key == LOG and isinstance(value, list | dict)) and (
                not is_named(value)):
            raise InputError(f"{key}: names a file, and none is opened by its name: upload it, or use the command line",
                             key=key)


def _with_files(data: Any) -> Any:  # noqa: ANN401 - a part of a question
    """Return a part of a question with the paths of the files that it names."""
    if isinstance(data, Mapping):
        return {key: path_of(str(key), value) if key in _FILES and is_named(value) else _with_files(value)
                for key, value in data.items()}
    return [_with_files(item) for item in data] if isinstance(data, list) else data


def _inside(data: object) -> Iterator[tuple[str, object]]:
    """Yield every key at any depth with its value."""
    rest = [data]
    while rest:
        block = rest.pop()
        if isinstance(block, Mapping):
            yield from ((str(key), value) for key, value in block.items())
            rest += block.values()
        elif isinstance(block, list):
            rest += block
