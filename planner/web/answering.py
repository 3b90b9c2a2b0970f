"""Questions answered in a process of their own: what --json of the command prints, and the same as a part of a page."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter

from planner.answer.assignment import Assignment
from planner.answer.exit_code import exit_code
from planner.answer.explanation import Explanation
from planner.answer.schema import Plan, to_json
from planner.api import functions
from planner.ask.account import Interrupted
from planner.ask.compare import comparison_of
from planner.ask.estimate import Estimating
from planner.ask.fastest import Estimated
from planner.ask.sizing import sized
from planner.catalog.importers.hf import import_config
from planner.catalog.load import Catalog
from planner.errors import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_STOPPED,
    InputError,
    PlannerError,
)
from planner.process.news import report_on
from planner.process.stopping import only_to_be_told
from planner.render.report.runs import published_runs
from planner.render.sentence import MOST_LEVERS, largest_sentence, levers_sentence
from planner.render.serving import served_levers_sentence
from planner.scenario.configs.read import Config
from planner.scenario.flags import FLAGS, NAMES
from planner.scenario.media import context_of
from planner.scenario.said import told_of_calendar
from planner.text_io import write_folder, write_text
from planner.units import show_bytes
from planner.web.links import linked
from planner.web.question import CONFIG, FROM, LOG, OPTIONS, PASTED, SCENARIO, Verb
from planner.web.refusing import CANCELED, Refusal, all_wrong, refusal
from planner.web.shown import (
    of_config,
    shown,
    shown_asides,
    shown_comparison,
    shown_config,
    shown_estimate,
    shown_line,
    shown_sizing,
    shown_ways,
)
from planner.yaml_io import dump

CONFIG_FILE = "config.json"
"""What a model's config is called in messages."""
Folders = tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer: its JSON, to the byte what --json prints, and the exit code that goes with it."""

    text: str
    exit_code: int
    page: str = ""
    """The same as a part of a page; of an estimate only where a page asks."""

    @property
    def is_final(self) -> bool:
        """Whether the search was let come to its end."""
        return self.exit_code != EXIT_INTERRUPTED


@dataclass(frozen=True, slots=True)
class File:
    """An answer as a file to download."""

    name: str
    kind: str
    """Its media type."""
    content: bytes


def prepare(folders: Folders, memory: int) -> str:
    """Make this process ready for questions, of at most so many bytes of data; return the catalog's digest."""
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory if most == resource.RLIM_INFINITY else min(most, memory)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
    return open_catalog(folders).digest


@cache
def open_catalog(folders: Folders) -> Catalog:
    """Return the catalog of this process."""
    return Catalog(folders)


@lru_cache(maxsize=8)
def with_config(folders: Folders, text: str) -> tuple[Catalog, str]:
    """Return the catalog with the model of a config.json on top, and its name there. Raises InputError.

    What `planner catalog import hf` writes is read once, as of a folder of --catalogs, and then removed.
    """
    with TemporaryDirectory(prefix="planner-") as temporary:
        # a model whose config does not name it is called as its folder is
        config, folder = Path(temporary) / PASTED / CONFIG_FILE, Path(temporary) / "catalog"
        config.parent.mkdir()
        write_text(config, text)
        try:
            model = import_config(config, datetime.now(tz=UTC).date().isoformat())
        except InputError as error:
            raise InputError(error.problem, file=CONFIG_FILE, line=error.line, key=CONFIG) from None
        write_folder(folder / "models", {f"{model.name}.yaml": dump(model.model_dump(
            mode="json", exclude_defaults=True))})
        catalog = Catalog((*folders, folder))
        assert catalog.digest
        return catalog, catalog.model(model.name).name


def answer(question: Verb, folders: Folders) -> Answered | Refusal:
    """Return the answer to a question, or why there is none; what else is raised is a bug."""
    report_on()
    try:
        return _answered(*opened(question, folders))
    except PlannerError as error:
        return all_wrong(refusal(error, question), question, open_catalog(folders))
    except MemoryError:
        limit = show_bytes(resource.getrlimit(resource.RLIMIT_DATA)[0])
        return Refusal(f"the search needs more than {limit}, the limit of this server: ask for less, or use the "
                       "command line", EXIT_STOPPED)
    except KeyboardInterrupt:
        return CANCELED


def opened(question: Verb, folders: Folders) -> tuple[Verb, Catalog]:
    """Return a question, which names the model that it has the config of, and the catalog that has it."""
    if question.config is None:
        return question, open_catalog(folders)
    catalog, model = with_config(folders, question.config)
    return replace(question, values={**question.values, "model": model}), catalog


def _answered(question: Verb, catalog: Catalog) -> Answered:
    """Return the answer to a question; on a page it says what was made of a date, and of which model it is, where no
    name asked for that.
    """
    made = _of_verb(question, catalog)
    if not question.paged:
        return made
    said = told_of_calendar({NAMES[name]: value for name, value in question.values.items() if name in NAMES},
                            date.today())
    if question.config is not None:
        said.append(of_config(catalog.model(str(question.values["model"]))))
    return replace(made, page=shown_asides(said) + made.page)


def _of_verb(question: Verb, catalog: Catalog) -> Answered:
    reference, values = question.opened
    if question.verb == "estimate":
        return _estimated(question, functions.estimate_asked(reference, catalogs=catalog, **values), values)
    alone = question.verb in ("plan", "compare") and not values.keys() & {*OPTIONS[question.verb]}
    ways = functions.ways_asked(reference, values, catalogs=catalog,
                                always=question.verb == "compare") if alone else None
    if ways is not None:  # hardware without work
        return Answered(f"{to_json(ways.comparison)}\n", exit_code(ways.comparison),
                        shown_ways(ways) if question.paged else "")
    if question.verb == "compare":
        rows, defaults = functions.compare_asked(reference, catalogs=catalog, **values)
        table = comparison_of(rows)
        return Answered(f"{to_json(table)}\n", exit_code(table),
                        shown_comparison(rows, defaults, question, catalog) if question.paged else "")
    if LOG in values:
        return _sized(question, catalog, reference, dict(values))
    made, code = _searched(question, catalog, reference, values)
    page = f"{_read_of(values)}{shown(made, question, catalog)}" if question.paged else ""
    return Answered(f"{to_json(made)}\n", code, page)


def _estimated(question: Verb, asking: Estimating, values: Mapping[str, Any]) -> Answered:
    """Return an estimate; where the largest that fits is looked for, of that, or else of the next that does not."""
    what, found, estimated = values.get("largest"), "", None
    if what is None:
        estimated = asking.answer()
    else:
        largest = asking.largest(what)
        found = largest_sentence(what, largest, context_of(asking.scenario.workload, asking.catalog))
        made = largest.estimate or largest.misses
        estimated = None if made is None else Estimated(made)
    text = "" if estimated is None else f"{to_json(estimated.assignment)}\n"
    if not question.paged:
        return Answered(text, EXIT_OK)
    page = shown_estimate(question, asking, estimated, found) if estimated else shown_line(found)
    return Answered(text, EXIT_OK, f"{page}{_read_of(values)}")


def _read_of(values: Mapping[str, Any]) -> str:
    """Return what was read of a framework's or an engine's config, as a part of a page."""
    config = values.get(FROM)
    return shown_config(list(config.notes())) if isinstance(config, Config) else ""


def _sized(question: Verb, catalog: Catalog, reference: object, values: dict[str, Any]) -> Answered:
    """Return how many nodes a log of jobs needs."""
    log, wait = Path(str(values.pop(LOG))), values.pop("wait", None)
    idle = [*([SCENARIO] if reference is not None else []), *(name for name in values if name not in NAMES)]
    if idle:
        raise InputError(f"{idle[0]} has no effect on how many nodes a log of jobs needs", key=idle[0])
    asked = {NAMES[name]: value for name, value in values.items()}
    labels = {path: name for name, path in FLAGS.items()}
    sizing = sized(log, None if wait is None else str(wait), asked, catalog, labels)
    code = EXIT_OK if sizing.sizes[0].status == "optimal" else EXIT_STOPPED
    return Answered(f"{to_json(sizing)}\n", code, shown_sizing(sizing) if question.paged else "")


def more(what: str, question: Verb, text: str, folders: Folders) -> Answered | Refusal:
    """Return what a page asks beside an estimate, whose JSON is `text`: what `levers` would save, the `longest`
    sequence that fits of a training job that does not, each as a line, or the published `runs` that it was held
    against, as a part of the page.
    """
    try:
        named, catalog = opened(question, folders)
        reference, values = named.opened
        asking = functions.estimate_asked(reference, catalogs=catalog, **values)
        made = TypeAdapter[Assignment](Assignment).validate_json(text)
        if what == "levers" and made.serving is not None:
            served = asking.served_levers(made)[:MOST_LEVERS]
            told: str = linked(served_levers_sentence(served), question) if served else (
                "No weights or cache in fewer bits help")
        elif what == "levers":
            found = asking.levers(made)
            told = linked(levers_sentence(found, asking.enough(made, found)), question)
        elif what == "longest":
            told = linked(largest_sentence(
                "sequence", asking.largest("sequence"), context_of(asking.scenario.workload, asking.catalog)), question)
        else:
            told = published_runs(made, catalog) or "<p>There are none.</p>"
    except PlannerError as error:
        return refusal(error, question)
    return Answered("", EXIT_OK, told)


def _searched(question: Verb, catalog: Catalog, reference: object, values: Mapping[str, Any]
              ) -> tuple[Plan | Explanation, int]:
    """Return an answer, and the exit code of the command."""
    try:
        made = getattr(functions, question.verb)(reference, catalogs=catalog, **values)
    except Interrupted as stopped:
        return stopped.plan, EXIT_INTERRUPTED
    assert isinstance(made, Plan | Explanation)
    only_to_be_told()
    return made, exit_code(made)
