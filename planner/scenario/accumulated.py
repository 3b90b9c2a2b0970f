"""The batch of a step as trainers count it, by the sequences that a GPU takes at once; and tokens told by steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast, get_args

from pydantic import TypeAdapter

from planner.catalog.load import Catalog
from planner.catalog.preference import Preference
from planner.catalog.stack import Method
from planner.errors import InputError, PlannerError
from planner.scenario.batch import Batch, GlobalBatch
from planner.scenario.default import Default, Defaults
from planner.scenario.hardware_names import meant_by
from planner.scenario.limits import COUNTED, owned_in_words
from planner.scenario.pool import ANY
from planner.scenario.posttraining import usual_answers
from planner.scenario.usual import usual
from planner.scenario.words import method_named
from planner.units.reading import parse_count
from planner.yaml_io import Document

EACH, TIMES = "per_device_batch", "grad_accum"
"""Keys of a workload: samples of a GPU at once, and how often it takes so many in a step."""
_BATCH = {"training": "global_batch", "diffusion": "batch", "posttraining": "prompts"}
"""Kind of work -> the key of its step's batch."""


def accumulated(document: Document, catalog: Catalog) -> tuple[Document, Defaults]:
    """Return a question whose batch is told by a GPU's with the batch of all GPUs, and tokens told by steps as tokens.

    Raises InputError where the number of GPUs is not known.
    """
    document, batched = _batch(document, catalog)
    document, counted = _steps(document, catalog)
    return document, [*batched, *counted]


def _batch(document: Document, catalog: Catalog) -> tuple[Document, Defaults]:
    data = document.data if isinstance(document.data, dict) else {}
    work = data.get("workload")
    if not isinstance(work, dict) or not {EACH, TIMES} & work.keys():
        return document, []
    kind = str(work.get("kind", "training"))
    key = _BATCH.get(kind)
    given = EACH if EACH in work else TIMES
    if key is None:
        raise document.error(("workload", given), "applies to training")
    rest = {name: value for name, value in work.items() if name not in (EACH, TIMES, key)}
    whole = work.get(key)
    if EACH in work and whole is not None:
        raise document.error(("workload", EACH), f"{key} {whole} is the batch of a step on all GPUs: leave one of them "
                             "out")
    # beside accumulated steps, trainers call the batch of a GPU the batch
    each, times = _count(document, work, EACH if EACH in work else key), _count(document, work, TIMES)
    gpus = _gpus(data, catalog)
    if gpus is None:
        raise document.error(("workload", given), "is of one GPU, and how many there are is left open: say it, as in "
                             f"--gpus 8 or --on 8xh100, or write --{key.replace('_', '-')} for the batch of a step")
    made = each * times * gpus
    why = f"{each:,} of a GPU x {times:,} accumulated x {gpus:,} GPU{'s' if gpus > 1 else ''}"
    if kind == "posttraining":
        drawn = _count(document, work, "samples_per_prompt", usual_answers(work.get("method")))
        made, why = max(1, made // drawn), f"{why}, in groups of {drawn:,} answers"
    return (replace(document, data={**data, "workload": {**rest, key: made}}),
            [Default(name=key, value=f"{made:,}", why=f"{why}; the plan chooses how many a GPU takes at once")])


def _count(document: Document, work: Mapping[object, object], key: str, otherwise: int = 1) -> int:
    value = work.get(key)
    if value is None:
        return otherwise
    try:
        count = parse_count(value, key.replace("_", " "))
    except (InputError, ValueError) as error:
        raise document.error(("workload", key), str(error)) from None
    if not 1 <= count <= 10**6:
        raise document.error(("workload", key), f"expected 1 to 1,000,000, got {value!r}")
    return count


def _gpus(data: Mapping[object, object], catalog: Catalog) -> int | None:
    """Return how many GPUs a question has: as it counts them, or one where a card alone is named."""
    limits, hardware, sourcing = (block if isinstance(block := data.get(name), dict) else {}
                                  for name in ("limits", "hardware", "sourcing"))
    if (stated := limits.get("gpus") or limits.get("max_gpus")) is not None:
        return int(stated) if str(stated).isdecimal() else None
    own, names = sourcing.get("own"), hardware.get("candidates")
    nodes = int(many) if str(many := limits.get("max_nodes") or 1).isdecimal() else 1
    try:
        if own:
            counts = owned_in_words(own)
            named = counts if isinstance(counts, dict) else {}
            return sum(_of(f"{count}x{name}" if int(count) > 1 else str(name), catalog)
                       for name, count in named.items()) or None
        if isinstance(names, list) and len(names) == 1 and str(names[0]).lower() != ANY:
            return nodes * _of(str(names[0]), catalog)
    except (PlannerError, ValueError, TypeError):
        return None
    return None


def _of(name: str, catalog: Catalog) -> int:
    """Return the GPUs of hardware as it is named: of 2xdgx-h100 16, of 4x4090 four, of a card one."""
    meant, counted = meant_by(name, catalog), COUNTED.fullmatch(" ".join(name.split()))
    sizes = {catalog.node(node).gpus for node in meant.nodes}
    return meant.gpus or (max(sizes) if len(sizes) == 1 else min(sizes) if counted is None else int(counted[1]))


_AMOUNTS = {"tokens", "samples", "dataset", "epochs"}


def _steps(document: Document, catalog: Catalog) -> tuple[Document, Defaults]:
    """Return training that is told by its steps with the tokens of these; beside samples, tokens or passes, steps say
    how much it is, as trainers have it (max_steps).
    """
    data = document.data if isinstance(document.data, dict) else {}
    work = data.get("workload")
    told = isinstance(work, dict) and work.get("kind", "training") == "training" and work.get("steps") is not None
    if not told or not isinstance(work, dict):
        return document, []
    model = catalog.known_model(name) if isinstance(name := work.get("model"), str) else None
    if model is None:
        return document, []
    method = method_named(work.get("method"))
    if method not in (None, *get_args(Method)):
        return document, []  # is refused with the scenario
    known = cast("Method | None", method)
    typical = usual(model, known, catalog.recipes)
    try:
        length = parse_count(work.get("sequence_length") or typical.sequence_length, "sequence length")
        batch: Batch = TypeAdapter[Batch](GlobalBatch).validate_python(work.get("global_batch") or typical.global_batch)
        steps = parse_count(work["steps"], "steps")
    except (InputError, ValueError):
        return document, []
    prefers = cast("Preference", known) if known in get_args(Preference) else None
    count = batch.of(length).sequences * catalog.recipes.sequences(prefers)
    tokens = steps * count * length
    others = sorted(_AMOUNTS & work.keys())
    rest = {key: value for key, value in work.items() if key not in ("steps", *others)}
    said = f"; steps say how much it is before {', '.join(others)}" if others else ""
    for key in ("mean_length", "packing") if others else ():
        rest.pop(key, None)
    return (replace(document, data={**data, "workload": {**rest, "tokens": tokens}}),
            [Default(name="tokens", value=f"{tokens / 1e9:,.6g} G", why=f"{steps:,} steps of {count:,} sequences of "
                     f"{length:,} tokens{said}")])
