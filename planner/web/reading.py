"""A question while it is written: a file read into the fields of a form, and what is wrong before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.api import functions
from planner.errors import EXIT_OK, InputError, PlannerError
from planner.web.answering import Answered, Folders, open_catalog, opened
from planner.web.forms import form_of
from planner.web.question import FILE, FROM, LOG, OPTIONS, TEXT, question_of
from planner.web.refusing import Refusal, all_wrong, refusal
from planner.web.wording import as_fields, as_values, is_config


def read_into_fields(said: Mapping[str, Any], folders: Folders) -> Answered | Refusal:
    """Return a file as the fields of a form, and which form, as JSON: `{"yaml": "..", "as": "from_"}`."""
    catalog, text = open_catalog(folders), said.get(TEXT)
    try:
        if not isinstance(text, str):
            raise InputError("expected the text of a scenario file", key=TEXT)
        config = said.get("as") == FROM or is_config(text)
        values = as_values(text, catalog) if config else as_fields(text, catalog)
    except PlannerError as error:
        return refusal(error)
    fields = {FROM: text} if config else values
    return Answered(json.dumps({"kind": form_of(values, catalog), "fields": fields}), EXIT_OK)


def wrong_with(said: Mapping[str, Any], folders: Folders) -> Answered | Refusal:
    """Return what is wrong with a question, as far as that is known before it is answered: `{"verb": "plan",
    "question": {..}, "written": ".."}`.

    Fields may say a part of a file, so that its lines are those of the text that is `written` beside them.
    """
    try:
        question = question_of(str(said.get("verb")), said.get("question"), paged=True)
    except PlannerError as error:
        return refusal(error)
    try:
        asked, catalog = opened(question, folders)
        reference, values = asked.opened
        alone = asked.verb in ("plan", "compare") and not values.keys() & {*OPTIONS[asked.verb]} and (
            functions.ways_asked(reference, values, catalogs=catalog, always=asked.verb == "compare") is not None)
        if not (alone or values.keys() & {LOG, FROM}):  # hardware without work, and what only answering tells
            functions.check(asked.verb, reference, values, catalog)
    except PlannerError as error:
        wrong = all_wrong(refusal(error, question), question, open_catalog(folders))
        written = str(said.get("written", ""))
        is_there = wrong.file != FILE or written == question.text
        return wrong if is_there else _in_lines_of(wrong, question.verb, written, folders)
    return Answered("{}", EXIT_OK)


def _in_lines_of(wrong: Refusal, verb: str, written: str, folders: Folders) -> Refusal:
    """Return what is wrong with a file, with the line of the text where it stands."""
    try:
        functions.check(verb, *question_of(verb, {TEXT: written}).opened, open_catalog(folders))
    except PlannerError as error:
        there = refusal(error)
        return replace(there, also=wrong.also) if there.file == FILE else wrong
    return wrong
