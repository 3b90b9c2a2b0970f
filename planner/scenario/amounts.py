"""Amounts of work that are told by something else: tokens by the parameters of a model, a data set as prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from planner.catalog.architecture import MoeMlp
from planner.catalog.load import Catalog
from planner.catalog.sized import size_of
from planner.errors import InputError
from planner.scenario.accumulated import accumulated
from planner.scenario.default import Default, Defaults
from planner.scenario.served import with_images
from planner.units.reading import parse_count
from planner.yaml_io import Document

AT = ("workload", "tokens")
_PER = re.compile(r"(?P<count>\d{1,9}(?:\.\d{1,3})?)(?: tokens?)? ?(?:per|/) ?param(?:eter)?s?")
_OPTIMAL = re.compile(r"chinchilla(?:[- ]optimal)?|compute[- ]optimal|optimal")


def with_usual_amount(document: Document, catalog: Catalog) -> tuple[Document, Defaults]:
    """Return a question that is planned, as `with_amount` does, with a batch of images where it says no load."""
    document, told = with_amount(document, catalog)
    document, loaded = with_images(document, catalog.recipes.made)
    return document, [*loaded, *told]


def with_amount(document: Document, catalog: Catalog) -> tuple[Document, Defaults]:
    """Return a question whose amount of work, and of a step, is what it means, which is said. Raises InputError."""
    document, told = accumulated(document, catalog)
    document, meant = _with_work(document, catalog)
    return document, [*told, *meant]


def _with_work(document: Document, catalog: Catalog) -> tuple[Document, Defaults]:
    data = document.data if isinstance(document.data, dict) else {}
    work = data.get("workload")
    if isinstance(work, dict) and work.get("kind") == "posttraining":
        if work.get("steps") is not None and "epochs" in work:  # as max_steps has it
            work = {key: value for key, value in work.items() if key != "epochs"}
            data = {**data, "workload": work}
            document = replace(document, data=data)
        return _with_prompts_of_a_data_set(document, data, work, catalog.posttraining_law.prompts_most)
    return _with_tokens_of_parameters(document, catalog)


def _with_prompts_of_a_data_set(document: Document, data: Mapping[str, object], work: Mapping[str, object], most: int
                                ) -> tuple[Document, Defaults]:
    """Return reinforcement learning with more prompts than any step has, and no other amount, as those of a data set.
    """
    said = work.get("prompts")
    if said is None or work.get("steps") is not None or work.get("samples") is not None:
        return document, []
    try:
        prompts = parse_count(said, "prompts")
    except (InputError, ValueError):
        return document, []
    if prompts <= most:
        return document, []
    told = {key: value for key, value in work.items() if key != "prompts"} | {"samples": prompts}
    return (replace(document, data={**data, "workload": told}),
            [Default(name="samples", value=f"{prompts:,} prompts", why=f"more than any step has ({most:,}) are a data "
                     "set: --samples says those in all, --prompts those of a step")])


def _with_tokens_of_parameters(document: Document, catalog: Catalog) -> tuple[Document, Defaults]:
    """Return a question with such tokens as their number, which is said.

    Raises InputError where the parameters are not known or not all of them work on every token.
    """
    data = document.data if isinstance(document.data, dict) else {}
    work = data.get("workload")
    said = work.get("tokens") if isinstance(work, dict) else None
    text = " ".join(said.lower().split()) if isinstance(said, str) else ""
    optimal, ratio = _OPTIMAL.fullmatch(text), _PER.fullmatch(text)
    if not isinstance(work, dict) or not (optimal or ratio):
        return document, []
    usual, name = catalog.recipes.optimal, work.get("model")
    model = catalog.known_model(name) if isinstance(name, str) else None
    size = size_of(name) if isinstance(name, str) else None
    parameters = size or (model.parameters if model else None)
    if parameters is None:
        raise document.error(AT, f"{said!r} is told by the parameters of one model, and " + (
            f"those of {name!r} are not known: write the number of tokens" if name else
            "none is named: --model names one, or a size such as 3b"))
    if model is not None and any(isinstance(block.mlp, MoeMlp) for block in model.blocks):
        raise document.error(AT, f"{said!r} is of dense models, and {name} is a mixture of experts: write the number "
                             "of tokens")
    each = float(ratio["count"]) if ratio else usual.tokens
    tokens = round(each * parameters)
    why = f"{each:g} for each of {parameters / 1e9:.3g} G parameters" + ("" if ratio else f", as {usual.example}")
    return (replace(document, data={**data, "workload": {**work, "tokens": tokens}}),
            [Default(name="tokens", value=f"{tokens / 1e9:,.6g} G", why=why)])
