"""The jobs of a portfolio's file as a form has them, and the file with one put in, changed or taken out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from planner.api import functions
from planner.api.described import texts
from planner.catalog.load import Catalog
from planner.errors import EXIT_OK, InputError, PlannerError
from planner.scenario.flags import NAMES, TABLE
from planner.scenario.horizon import Horizon
from planner.scenario.load import document_of
from planner.scenario.portfolio_job import PortfolioJob
from planner.web.answering import Answered, Folders, open_catalog
from planner.web.forms import FORMS, Input, called, form_of, inputs
from planner.web.question import FILE, SCENARIO, TEXT, question_of, typed
from planner.web.refusing import Refusal, refusal
from planner.web.wording import as_fields, as_yaml, with_deadline
from planner.yaml_io import dump, parse, scalar
from planner.yaml_io.rewriting import rewritten

_DATE = "A date (2027-06-30, 6/30/2027, end of June), or '30 d' from the first day."
_SERVES = frozenset({"serving"})
_ENDS = frozenset(FORMS) - _SERVES
KEYS: Mapping[str, tuple[str, str, frozenset[str]]] = {
    "name": ("Name", "", frozenset(FORMS)), "release": ("Starts no earlier than", _DATE, _ENDS),
    "deadline": ("Deadline", _DATE, _ENDS), "from": ("Runs from", _DATE, _SERVES),
    "growth": ("Growth", "For example 10%/month.", _SERVES), "after": ("After", "Names, with commas.", _ENDS),
    "count": ("How many alike", "", _ENDS), "every": ("Again every", "For example 30 d.", _ENDS),
    "may_pause": ("May pause", "", frozenset()),
    "late": ("Price of a late day", "For example 20,000 USD/d.", frozenset()),
    "worth": ("Worth", "For example 50,000 USD.", frozenset())}
"""Key of a job -> what the form calls it, how it is written, and the kinds of work that do not fold it."""
FIRST = ("name", "model", "method")
"""Fields that come first."""
PLANNED = {"start": ("First day", texts(Horizon)["start"]),
           "length": ("Planned time", f"{texts(Horizon)['length'].rstrip('.')} unless said.")}
"""Key of the time that is planned -> what the form calls it, and its help."""
AMOUNTS = ("tokens", "samples", "epochs", "steps", "rate", "users", "concurrency", "documents")
"""Values that say how much work a job is."""


@cache
def job_inputs() -> tuple[Input, ...]:
    """Return the fields of a job: its work's, then its own, with their help."""
    told = texts(PortfolioJob)
    own = [Input(key, label, f"{told.get(key) or told[f'{key}_']} {example}".replace("`", "").strip(), "",
                 switch=key == "may_pause", forms=tuple(FORMS) if key not in ("from", "growth") else ("serving",),
                 usual=tuple(form for form in FORMS if form in usual)) for key, (label, example, usual) in KEYS.items()]
    work = [replace(one, slider=None) for one in inputs("plan", {})
            if one.name in TABLE and TABLE[one.name].path.startswith("workload.")]
    known = {one.name: one for one in (*work, *own)}
    return tuple(known.pop(name) for name in FIRST) + tuple(known.values())


def changed(said: Mapping[str, Any], folders: Folders) -> Answered | Refusal:
    """Return a portfolio's file with a change, and its jobs as the form has them, as JSON; or what is wrong with it.

    said: the file as `yaml` or `scenario`, and of these at most one: a job's fields to `put` (`at` its place, or as one
    more), the place of a job to `remove`, the `day` to which the deadline of a `job` moves, a `horizon`.
    """
    catalog = open_catalog(folders)
    try:
        question = question_of("plan", {name: said[name] for name in (TEXT, SCENARIO) if said.get(name)})
        text = question.text or as_yaml(question, catalog)
        wrong = None
        if "job" in said:
            text = with_deadline(text, str(said["job"]), str(said.get("day", "")))
        elif "put" in said:
            text, at = _with_job(text, said, catalog)
            wrong = _wrong_with(text, at, catalog)
        elif {"remove", "horizon"} & said.keys():
            text = _without(text, said, catalog)
        return wrong or Answered(json.dumps({TEXT: text, **_listed(text, catalog)}), EXIT_OK)
    except PlannerError as error:
        return refusal(error)


def _with_job(text: str, said: Mapping[str, Any], catalog: Catalog) -> tuple[str, int]:
    """Return a file with a job put in, and its place. Raises InputError."""
    data = _data(text, catalog)
    jobs = list(data.get("jobs", []))
    at = len(jobs) if said.get("at") is None else _place(said, "at", jobs)
    jobs[at:at + 1] = [_job(_block(said, "put"), catalog)]
    return rewritten(text, {**data, "jobs": jobs}), at


def _without(text: str, said: Mapping[str, Any], catalog: Catalog) -> str:
    """Return a file without a job, or with another time that is planned. Raises InputError."""
    data = _data(text, catalog)
    if "horizon" in said:
        told = {**data.get("horizon", {}), **_block(said, "horizon")}
        return rewritten(text, {**data, "horizon": {key: str(value) for key, value in told.items() if value}})
    jobs = list(data.get("jobs", []))
    del jobs[_place(said, "remove", jobs)]
    rest = {key: value for key, value in data.items() if key != "jobs"}
    return rewritten(text, {**data, "jobs": jobs} if jobs else rest)


def _block(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a value of a request that is a mapping. Raises InputError."""
    if not isinstance(said[name], dict):
        raise InputError(f"{name}: expected keys and values", key=name)
    return said[name]  # type: ignore[no-any-return]


def _place(said: Mapping[str, Any], name: str, jobs: list[Any]) -> int:
    """Return the place of a job that a request names. Raises InputError."""
    at = said[name]
    if not isinstance(at, int) or not 0 <= at < len(jobs):
        raise InputError(f"{name}: expected the place of a job, a whole number below {len(jobs)}, got {at!r}", key=name)
    return at


def _data(text: str, catalog: Catalog) -> dict[str, Any]:
    """Return what a file says in the planner's words; nothing of an empty one. Raises InputError."""
    document = parse(text, FILE) if text.strip() else None
    if document is None or not document.data:
        return {}
    if not isinstance(document.data, dict):
        raise document.error((), f"expected keys and values at the top level, got {document.data!r}")
    data = document_of(document, {}, {}, catalog).data
    return {key: value for key, value in data.items() if key != "hardware" or "hardware" in document.data}


def _job(fields: Mapping[str, str], catalog: Catalog) -> dict[str, Any]:
    """Return a job of its fields, as a file has it. Raises InputError."""
    said = typed({name: str(value) for name, value in fields.items() if name in NAMES or name == TEXT})
    asked = as_yaml(question_of("plan", said), catalog) if said else ""
    work = parse(asked, FILE).data.get("workload", {}) if asked else {}
    own: dict[str, Any] = {key: scalar(str(fields[key]).strip()) for key in KEYS if str(fields.get(key, "")).strip()}
    if "after" in own:
        own["after"] = [name.strip() for name in str(own["after"]).split(",") if name.strip()]
    kind = FORMS[fields["kind"]].work if fields.get("kind") in FORMS else work.get("kind", "training")
    return {"name": str(own.pop("name", "") or work.get("model", "job")), "workload": {**work, "kind": kind}, **own}


def _wrong_with(text: str, at: int, catalog: Catalog) -> Refusal | None:
    """Return what is wrong with a job of a file, at its field; what is wrong elsewhere is told when all is asked."""
    try:
        functions.check("plan", *question_of("plan", {TEXT: text}).opened, catalog)
    except PlannerError as error:
        key, message = str(getattr(error, "key", None) or ""), re.sub(rf"^{FILE}:\d+: ", "", str(error))
        where = re.match(rf"jobs\.{at}(?![0-9])(?: \([^)]*\))?[.:]? ?", message)
        if where is None and not f"{key}.".startswith(f"jobs.{at}."):
            return None
        message = message[where.end():] if where else message
        names = {path: name for name, path in reversed(NAMES.items())}
        parts = [f"{key}.".removeprefix(f"jobs.{at}.").rstrip("."), *re.findall(r"[a-z_]+[.a-z_]*", message)]
        fields = (names.get(part, part if part in KEYS else "") for part in parts)
        return Refusal(message.removeprefix("workload."), error.exit_code, next(filter(None, fields), "name"), key)
    return None


def _listed(text: str, catalog: Catalog) -> dict[str, Any]:
    """Return the jobs of a file as the form has them, and the time that is planned. Raises InputError."""
    data = _data(text, catalog)
    jobs = data.get("jobs")
    horizon = data.get("horizon", {})
    return {"jobs": [_fields(job, catalog) for job in jobs if isinstance(job, dict)] if isinstance(jobs, list) else [],
            "horizon": {key: str(horizon.get(key, "")) for key in PLANNED} if isinstance(horizon, dict) else {}}


def _fields(job: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """Return a job as the fields of the form, the kind of its work, and in short what it is."""
    work = job.get("workload")
    said = as_fields(dump({"workload": work}), catalog) if isinstance(work, dict) else {}
    kind = form_of(said, catalog)
    stated = work.get("kind", "training") if isinstance(work, dict) else "training"
    if FORMS[kind].work != stated:
        kind = next((form for form in FORMS if FORMS[form].work == stated), kind)
    own = {key: ", ".join(map(str, value)) if isinstance(value, list) else "true" if value is True else str(value)
           for key, value in job.items() if key in KEYS and value is not False}
    amounts = [f"{called(name).lower()} {said[name]}" for name in AMOUNTS if name in said]
    return {"kind": kind, "fields": {**said, **own}, "work": ", ".join(
        [*(said[name] for name in ("model", "method") if name in said), *amounts])}
