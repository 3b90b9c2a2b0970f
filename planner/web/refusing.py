"""Why there is no answer: the message of the command line, at the field that caused it, and what else is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.api import functions
from planner.catalog.load import Catalog
from planner.errors import EXIT_BUG, EXIT_INPUT, EXIT_INTERRUPTED, PlannerError, UnknownName
from planner.scenario.flags import FLAGS, NAMES
from planner.web.forms import FORMS, form_of
from planner.web.places import files_folder
from planner.web.question import CONFIG, FROM, FROM_FILE, OPTIONS, SCENARIO, TEXT, UPLOADED, VALUE_OF, Verb

MOST_WRONG = 12
"""Fields whose errors are told at once."""
_FIELDS = {*NAMES, SCENARIO, TEXT, CONFIG, *(name for names in OPTIONS.values() for name in names)}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no answer: the message of the command line, and where in the question its cause stands."""

    message: str
    exit_code: int = EXIT_INPUT
    field: str | None = None
    key: str | None = None
    file: str | None = None
    line: int | None = None
    also: tuple[Refusal, ...] = ()
    """What is wrong with other fields."""

    def data(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        more = {"also": [other.data()["error"] for other in self.also]} if self.also else {}
        return {"error": {"message": self.message, "field": self.field, "key": self.key, "file": self.file,
                          "line": self.line, "exit_code": self.exit_code, **more}}


CANCELED = Refusal("canceled before there was an answer", EXIT_INTERRUPTED)


def refusal(error: PlannerError, question: Verb | None = None) -> Refusal:
    """Return an error with the field of the question that caused it: by its key, its name in front, or its value."""
    key, said = getattr(error, "key", None), str(error).partition(":")[0].strip()
    name = error.name if isinstance(error, UnknownName) else None
    fields = [name] if name and str(error).startswith(f"unknown {VALUE_OF} ") else [
        field for field, value in (question.values if question else {}).items() if value == name]
    fields += [field for field, value in (question.values if question else {}).items()
               if str(error).startswith(repr(value))]  # "12 GB" is 21 node types
    fields += [field for field in (said, key or "") if field in _FIELDS]
    fields += [field for field, path in FLAGS.items() if key is not None and f"{key}.".startswith(f"{path}.")]
    told = str(error).partition(";")[0].replace(",", " ").split()  # "users and concurrency are given"
    fields += [word for word in told if question is not None and word in question.values]
    file, message = getattr(error, "file", None), str(error)
    if file is not None and question is not None:
        name = Path(file).name
        fields += [field for field, value in question.values.items() if (field == FROM and name == FROM_FILE)
                   or (field in UPLOADED and str(value).startswith(f"{name}@"))]
        if file.startswith(str(files_folder())):  # where the server keeps it is nobody's business
            message, file = message.replace(file, name), name
    return Refusal(message, error.exit_code, next(iter(fields), None), key, file, getattr(error, "line", None))


def bug(error: BaseException) -> Refusal:
    """Return what to say of an error that nobody foresaw."""
    return Refusal(f"this is a bug in planner: {type(error).__name__}: {error}", EXIT_BUG)


def all_wrong(first: Refusal, question: Verb, catalog: Catalog) -> Refusal:
    """Return a refusal with what is wrong with other fields, found by leaving out those that are known to be.

    It stops at an error that no value is named in: that may be wrong only without what was left out.
    """
    refused = [first]
    while refused[-1].field in question.values and len(refused) < MOST_WRONG:
        question = _without(question, str(refused[-1].field), catalog)
        try:
            functions.check(question.verb, *question.opened, catalog)
        except PlannerError as error:
            more = refusal(error, question)
            named = str(question.values.get(more.field or "", "")).split(",")
            if not any(part.strip() in more.message for part in named if part.strip()):
                break
            refused.append(more)
        else:
            break
    return replace(first, also=tuple(refused[1:]))


def _without(question: Verb, field: str, catalog: Catalog) -> Verb:
    """Return a question without a value, or with the model that forms of its kind begin with: it needs one."""
    values = {name: value for name, value in question.values.items() if name != field}
    if field == "model":
        said = {name: str(value) for name, value in question.values.items()}
        values["model"] = FORMS[form_of(said, catalog)].start["model"]
    return replace(question, values=values)
