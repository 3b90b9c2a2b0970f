"""A question from a scenario file, from flags, or from both; its open ends are then filled in, and said.

Flags are merged as plain data before validation, so a value is checked once, wherever it came from, and a
wrong one is named as the user wrote it: by file, line and key, or by its flag.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path

from planner.catalog.load import Catalog, data_root
from planner.errors import InputError, UnknownName, Unsupported
from planner.scenario.again import answered
from planner.scenario.amounts import with_amount, with_usual_amount
from planner.scenario.called import as_called, as_many
from planner.scenario.currencies import in_dollars
from planner.scenario.default import Defaults
from planner.scenario.diffusion import DiffusionScenario
from planner.scenario.flags import FLAGS, plain
from planner.scenario.in_thousands import thousands
from planner.scenario.kind import (
    Kind,
    kind_by_model,
    kind_of,
    made_in_a_batch,
    refuse_other_kinds,
    refuse_unmodeled,
    refuse_wrong_kind,
    said_by_load,
    said_by_method,
    said_by_model,
)
from planner.scenario.largest import asks_for_the_largest, largest_asked
from planner.scenario.paths import keys_of, paths, paths_in
from planner.scenario.placing import put, renamed
from planner.scenario.plainly import in_blocks, is_inline, with_bought
from planner.scenario.pool import ANY
from planner.scenario.portfolio import AnyQuestion, Portfolio
from planner.scenario.posttraining import PostTrainingScenario
from planner.scenario.resolve import NO_FILE, resolve, resolve_serving, resolve_work
from planner.scenario.resolve_diffusion import resolve_diffusion, resolved_diffusion
from planner.scenario.resolve_portfolio import resolve_portfolio
from planner.scenario.resolve_posttraining import resolve_posttraining, resolved_posttraining
from planner.scenario.scenario import SCENARIOS, AnyScenario, Scenario, ServingScenario
from planner.scenario.served import as_asked
from planner.scenario.serving import LOADS
from planner.scenario.words import BLOCKS, in_our_words
from planner.scenario.workload import EVERY
from planner.yaml_io import Document, parse, read, validate

Reference = str | Mapping[str, object] | Document | None
"""A file or the name of a shipped scenario, what a file holds (as data, or as it was read), or nothing where values
alone ask."""
_EXAMPLES = ("say which model, and how much of what, such as --model llama-3.1-8b with --tokens 1T, --method lora "
             "--samples 10k, or --rate 5; or name hardware alone (--on 8xh100)")


def load_any(reference: Reference, overrides: Mapping[str, object], catalog: Catalog, *,
             labels: Mapping[str, str] | None = None) -> tuple[AnyScenario, Defaults]:
    """Return the resolved question and the defaults that decided it.

    `reference` is a path, the name of a shipped scenario, or what a file holds as a mapping; `overrides` maps dotted
    paths (`limits.deadline`) to values as text, and a list may be text with commas. `labels` gives paths the names that
    messages use ("--deadline"). Its class follows `workload.kind`; without a file, a value that only services have
    makes it a service. Raises InputError.
    """
    scenario, defaults = load_question(reference, overrides, catalog, labels=labels)
    return only_one(scenario), defaults


def only_one(scenario: AnyQuestion) -> AnyScenario:
    """Return a question of one workload, or services that share a pool. Raises Unsupported for a portfolio."""
    if isinstance(scenario, Portfolio):
        raise Unsupported("a portfolio (jobs:) here: planner plan answers it; give one workload")
    return scenario


def load_question(reference: Reference, overrides: Mapping[str, object], catalog: Catalog, *,
                  labels: Mapping[str, str] | None = None) -> tuple[AnyQuestion, Defaults]:
    """Return a question as `load_any` does, of one workload or of a portfolio of jobs. Raises InputError."""
    document = document_of(reference, overrides, labels or {}, catalog)
    document, converted = in_dollars(document, catalog.recipes.currencies)
    document, counted = with_usual_amount(document, catalog)
    resolved, defaults = _resolved(as_question(document), catalog, document)
    called = as_called(reference, overrides, getattr(resolved, "workload", None))
    return resolved, [*called, *as_many(document.data, resolved), *defaults, *thousands(document), *converted, *counted]


def _resolved(scenario: AnyQuestion, catalog: Catalog, document: Document) -> tuple[AnyQuestion, Defaults]:
    if isinstance(scenario, Portfolio):
        return resolve_portfolio(scenario, catalog, document)
    if isinstance(scenario, DiffusionScenario):
        return resolve_diffusion(scenario, catalog, document)
    if isinstance(scenario, PostTrainingScenario):
        return resolve_posttraining(scenario, catalog, document)
    if isinstance(scenario, ServingScenario):
        return resolve_serving(scenario, catalog, document)
    return resolve(scenario, catalog, document)


def load_work(reference: Reference, overrides: Mapping[str, object], catalog: Catalog, *,
              labels: Mapping[str, str] | None = None) -> tuple[AnyScenario, Document]:
    """Return a question of which only the work counts, and where it was written, for messages.

    Names are the catalog's, and a service is resolved; what a training job leaves open stays so, as it depends on the
    model. Raises InputError.
    """
    asked = as_scenario(document := with_amount(document_of(reference, overrides, labels or {}, catalog), catalog)[0])
    if isinstance(asked, DiffusionScenario):
        work, _ = resolved_diffusion(asked.workload, catalog, document)
        return asked.model_copy(update={"workload": work}), document
    if isinstance(asked, PostTrainingScenario):
        policy, _ = resolved_posttraining(asked.workload, catalog, document)
        return asked.model_copy(update={"workload": policy}), document
    return resolve_work(asked, catalog, document), document


def document_of(reference: Reference, overrides: Mapping[str, object], labels: Mapping[str, str], catalog: Catalog
                ) -> Document:
    """Return a question as a file would ask it in the planner's own words, whichever were used. Raises InputError."""
    if reference is None and not overrides:
        raise InputError(f"nothing is asked: {_EXAMPLES}, or a scenario: a file, or {', '.join(shipped())}")
    if isinstance(reference, str) and not (os.path.exists(reference) or reference.lower() in shipped()) and (
            catalog.known_model(reference) or catalog.known_diffusion(reference)):
        if "workload.model" in overrides:
            raise InputError(f"{reference!r} is a model, and {labels.get('workload.model', 'model')} is given too")
        reference, overrides = None, {"workload.model": reference, **overrides}
    if reference is None:
        document = merge(NO_FILE, overrides, labels, kind_by_model(overrides, catalog))
        refuse_unmodeled(document, catalog)
        return document
    written = as_written(reference)
    written = replace(written, data=in_blocks(written, catalog.recipes.requests))
    for at, kind in said_by_model(written.data, catalog):
        written = replace(written, data=put(written.data, [*at, "kind"], kind))
    for at, kind in said_by_load(written.data):
        written = replace(written, data=put(written.data, [*at, "kind"], kind))
    for at in made_in_a_batch(written.data):
        written = replace(written, data=renamed(written.data, at, "documents", "samples"))
    document = merge(written, overrides, labels, kind_by_model(_asked_of(written.data) | dict(overrides), catalog))
    refuse_unmodeled(document, catalog)
    refuse_wrong_kind(document, catalog)
    return document


def _asked_of(data: object) -> dict[str, object]:
    """Return the values of a file's one workload by their paths."""
    work = data.get("workload") if isinstance(data, dict) else None
    return {f"workload.{key}": value for key, value in work.items()} if isinstance(work, dict) else {}


def as_written(reference: str | Mapping[str, object] | Document) -> Document:
    """Return a file, a mapping or a document as it stands. Raises InputError."""
    if isinstance(reference, Document):
        return reference
    if isinstance(reference, str):
        return answered(parse(reference, "the scenario") if is_inline(reference) else read(find(reference)))
    return answered(Document(plain(reference, "scenario"), "", {}))


def as_scenario(document: Document) -> AnyScenario:
    """Return a document of one workload as the kind that it says it is, with its open ends. Raises InputError."""
    return only_one(as_question(document))


def as_question(document: Document) -> AnyQuestion:
    """Return a document as what it asks, with its open ends. Raises InputError."""
    kind = kind_of(document)
    refuse_other_kinds(document, kind)
    return validate(document, Portfolio) if kind == "portfolio" else validate(document, SCENARIOS[kind])


def shipped(kind: Kind | None = None) -> list[str]:
    """Return the names of the scenarios that come with the planner, all or of one kind."""
    files = data_root("scenarios").glob("*.yaml")
    return sorted(path.stem for path in files if kind is None or kind_of(read(path)) == kind)


def find(reference: str) -> Path:
    """Return the file that `reference` means: an existing path, else a shipped scenario by name."""
    name = reference.lower().removesuffix(".yaml")
    if os.path.exists(reference):
        return Path(reference)
    if name in shipped():
        return data_root("scenarios") / f"{name}.yaml"
    if os.path.dirname(reference):
        raise InputError("cannot read: no such file", file=reference)
    raise UnknownName("scenario (no such file, and none shipped)", reference, shipped())


def paths_of(reference: Reference, catalog: Catalog) -> dict[str, bool]:
    """Return the dotted paths of the values that a question has; of a job of many `jobs.NAME.deadline`."""
    return paths_in(None if reference is None else in_blocks(as_written(reference), catalog.recipes.requests))


def merge(document: Document, overrides: Mapping[str, object], labels: Mapping[str, str], kind: Kind | None = None
          ) -> Document:
    """Return `document` with `overrides` put in, labeled for messages; hardware left open becomes `any`.

    kind: of the work where no file says it; none follows the values.
    """
    data = document.data
    many = next((key for key in ("jobs", "workloads") if isinstance(data, dict) and key in data), None)
    lists, overrides = paths_in(data), with_bought(overrides, labels)
    named: dict[tuple[Hashable, ...], str] = {}
    for path, value in overrides.items():
        if path not in lists and path not in FLAGS.values():
            raise UnknownName("scenario value", path, lists)
        if many is not None and path.startswith("workload."):
            raise InputError(f"{labels.get(path, path)}: the scenario has several {many}, and this does not say "
                             "of which it is: write it into the file")
        keys = keys_of(path, data)
        data = put(data, keys, _parts(value) if lists.get(path) else value)
        named[keys] = labels.get(path, path)
    for at, method in said_by_method(data):
        kind, data = method, put(data, [*at, "kind"], method)
    if document is NO_FILE:
        named |= {tuple(path.split(".")): label for path, label in labels.items()}
        data = {"workload": {}, **data}
        kind = kind or ("serving" if _serves(overrides) else None)
    asked = _asked_of(data)
    kind = kind or ("serving" if any(f"workload.{load}" in asked for load in LOADS) else None)
    if kind is not None and many is None and "workload.kind" not in asked:
        data = put(data, ["workload", "kind"], kind)
    data = largest_asked(data, labels)
    if many is None and asks_for_the_largest(data):
        data = put(data, ["workload", "model"], EVERY)
    if isinstance(data, dict) and data.get("hardware") is None:
        data = put(data, ["hardware", "candidates"], [ANY])
    data = as_asked(in_our_words(_listed(data, dict(paths()) | lists)))
    return Document(data, document.file, document.lines, named)


def _serves(overrides: Mapping[str, object]) -> bool:
    """Say whether some value is one that only services have."""
    return any(path in dict(paths(ServingScenario)) for path in overrides.keys() - dict(paths(Scenario)).keys())


def _listed(data: object, lists: Mapping[str, bool], path: str = "") -> object:
    """Return `data` with text where a list belongs as the list of its parts: precision: bf16."""
    if isinstance(data, dict):
        return {key: _listed(value, lists, f"{path}.{key}" if path else str(key)) for key, value in data.items()}
    if isinstance(data, list) and path in BLOCKS:
        return [_listed(item, lists, BLOCKS[path]) for item in data]
    return _parts(data) if lists.get(path) else data


def _parts(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
