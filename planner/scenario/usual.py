"""The batch and sequence length of training where a question leaves them open: the model's own, or of fine-tuning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, get_args

from planner.catalog.architecture import Model
from planner.catalog.engine_reach import order_of
from planner.catalog.hardware import Precision
from planner.catalog.load import Catalog
from planner.catalog.preference import Tuned
from planner.catalog.recipes import Recipes
from planner.catalog.stack import Method, Stack
from planner.errors import Unsupported
from planner.scenario.batch import Batch
from planner.scenario.default import Default, Defaults
from planner.scenario.generation import Generation
from planner.scenario.lengths import Length
from planner.scenario.limits import Limits, ServingLimits, Sourcing
from planner.scenario.posttraining import PostTrainingScenario
from planner.scenario.scenario import Scenario
from planner.scenario.serving import Serving
from planner.scenario.workload import AUTO, Training
from planner.yaml_io import Document, Frozen

BF16: tuple[Precision, ...] = ("bf16",)
_INSTEAD: tuple[Precision, ...] = ("fp16", "fp32")
"""Formats of a GPU without bf16, of which it has the faster; Pascal cards compute fp16 at a 64th of fp32."""


class Usual(NamedTuple):
    """What a run usually has, and why."""

    sequence_length: int
    global_batch: Batch
    why: str


WHOLE = 1024
"""What the length of a sequence that holds a sample is a multiple of."""


def usual(model: Model, method: Method | None, recipes: Recipes, mean: int | None = None) -> Usual:
    """Return what `method` usually has for a model: pre-training its own, fine-tuning what people tune with.

    mean: of the samples that it is tuned on, in tokens; a sequence holds one.
    """
    if method not in get_args(Tuned) and method not in recipes.preference.methods:
        return Usual(model.sequence_length, Batch(model.global_batch), "the model's default")
    recipe = common(recipes, method, silent=model.is_silent)
    if mean is not None and mean > recipe.sequence_length and method not in recipes.preference.methods:
        return recipe._replace(sequence_length=-(-mean // WHOLE) * WHOLE,
                               why=f"{recipe.why}, and sequences that hold samples of {mean:,} tokens")
    return recipe._replace(sequence_length=min(recipe.sequence_length, model.sequence_length))


def common(recipes: Recipes, method: Method | None, *, silent: bool = False) -> Usual:
    """Return what tuning by a method usually has, of whatever model; fine-tuning where none is given.

    silent: of a model that answers with vectors or scores.
    """
    prefers = method in recipes.preference.methods
    tuning = recipes.preference.usual if prefers else recipes.encoding if silent else recipes.tuning
    return Usual(tuning.sequence_length, Batch(tuning.global_batch),
                 f"usual for {method if prefers else 'fine-tuning'}: {tuning.example}")


def usual_requests(service: Serving, model: Model, recipes: Recipes) -> tuple[dict[str, Length], Defaults]:
    """Return the lengths of requests that a service leaves open, and what decided them; what embeds answers nothing."""
    silent, usually, example = model.is_silent, recipes.requests, recipes.requests.example
    tokens = {"input": usually.input, "output": 0 if silent else usually.output}
    if model.attends_to == "sound":
        ahead, example = recipes.speech.input, recipes.speech.example
        tokens = {"input": ahead, "output": recipes.speech.tokens(service.audio or 0.0) - ahead}
    lengths = {} if service.trace is not None else {
        name: Length("mean", float(count), 0.0) for name, count in tokens.items() if getattr(service, name) is None}
    return lengths, [Default(name=name, value=f"{length.value:g} tokens",
                             why=f"the mean of {example}: --input and --output say your own")
                     for name, length in lengths.items() if length.value]


def tuned_on_samples(work: Training) -> Training:
    """Return a job of samples by no method as one that tunes all weights: nobody pre-trains on samples."""
    alone = work.method is None and (work.samples is not None or work.dataset is not None)
    return work.model_copy(update={"method": "full"}) if alone else work


def usual_drafts(service: Serving, recipes: Recipes) -> tuple[dict[str, object], Defaults]:
    """Return speculative decoding with the share accepted that a service leaves open, prefill and decode on the same
    replicas where they may be apart and nothing of the kind is planned, and what decided it.
    """
    asked, usually = service.speculative, recipes.drafts
    if service.disaggregated == "allowed" and (service.clients or service.documents):
        return {"disaggregated": "no"}, [Default(
            name="disaggregated", value="no, as allowed", why="separate replicas are planned for a rate alone")]
    if asked is None or asked.acceptance is not None:
        return {}, []
    return {"speculative": asked.model_copy(update={"acceptance": usually.acceptance})}, [Default(
        name="speculative", value=f"{asked.tokens}:{usually.acceptance:g}",
        why=f"the share accepted is that of {usually.example}; --speculative {asked.tokens}:0.6 says your own")]


def refuse_stack(asked: Training, stack: Stack, catalog: Catalog) -> None:
    """Raise Unsupported where a stack does not train on preferences as it is asked to."""
    method, held = asked.method, stack.preference
    if held is None or asked.preference not in held.methods:
        told = f"it trains by {', '.join(held.methods)}" if held else "it is not known to train on preferences"
        able = [one.name for one in catalog.all("stacks", Stack) if one.prefers(method or "full", asked.trains)]
        raise Unsupported(f"method {method} on stack {stack.name}: {told}; these do: {', '.join(able)}")
    if asked.trains not in held.tunings:
        raise Unsupported(f"method {method} with tuning {asked.trains} on stack {stack.name}: it has "
                          f"{', '.join(held.tunings)}")
    if asked.reference == "precomputed" and asked.preference not in held.precomputed:
        raise Unsupported(f"reference precomputed of {method} on stack {stack.name}: the reference runs in each step")


def usual_stack(chosen: Mapping[str, Any], trains: str, catalog: Catalog) -> dict[str, object]:
    """Return the stack that defaults name until the search has decided: the most usual one, where none is named."""
    if chosen["stack"] != (AUTO,) or "method" not in chosen:
        return {}
    known = catalog.known_model(str(chosen["model"]))
    silent = known is not None and known.is_silent
    return {"stack": catalog.usual_stacks(chosen["method"], trains, silent=silent)[0].name}


def usual_precision(nodes: Iterable[str], catalog: Catalog) -> tuple[tuple[Precision, ...], Default]:
    """Return the precision of training where a question leaves it open, and why: fp16 where a GPU named has no bf16."""
    gpus = {name: catalog.gpu(catalog.node(name).gpu) for name in nodes}
    without = sorted({gpu.name for gpu in gpus.values() if "bf16" not in gpu.peak and gpu.peak.keys() & set(_INSTEAD)})
    if not without:
        return BF16, Default(name="precision", value="bf16", why="others are searched only if listed")
    some = ", ".join(without[:3]) + (", ..." if without[3:] else "")
    instead = {max(_INSTEAD, key=lambda other: gpu.peak.get(other, 0.0)) for gpu in gpus.values()
               if gpu.name in without}
    bf16 = {"bf16" for gpu in gpus.values() if gpu.name not in without}
    precisions = tuple(precision for precision in (*BF16, *_INSTEAD) if precision in bf16 | instead)
    return precisions, Default(name="precision", value=", ".join(precisions), why=f"no bf16 on {some}")


def refuse_idle_limits(limits: Limits | ServingLimits, document: Document, amount: str) -> None:
    """Raise InputError for a limit of time or money where no `amount` of work is given, so that it bounds nothing."""
    for name in ("deadline", "budget"):
        if getattr(limits, name) is not None:
            raise document.error(("limits", name), f"has no effect without {amount}: without, the question is "
                                 "what holds the model")


def usual_release(service: Serving, nodes: Iterable[str], catalog: Catalog) -> Default | None:
    """Return the release of the engine where a question leaves it open and the newest runs on none of the GPUs that it
    names: the last that does, and why. None elsewhere.
    """
    if isinstance(service, Generation):
        return None
    engine = catalog.engine(service.engine)
    last = {engine.last_on(catalog.gpu(catalog.node(name).gpu).architecture) for name in nodes}
    if service.engine_version is not None or not last or None in last:
        return None
    version = min((each for each in last if each is not None), key=order_of)
    return Default(name="engine_version", value=version, why=f"the last of {engine.name} that runs on the GPUs named")


def counted_for_time() -> Default:
    """Return that the time is least, as GPUs are counted."""
    return Default(name="objective", value="time", why="the GPUs are there and no deadline is given, so that the "
                   "cheapest of what is as fast as the fastest is taken: --objective cost asks for the fewest of them "
                   "that save money, --objective time for the fastest itself")


def counts_its_gpus(asked: Scenario | PostTrainingScenario, supply: Mapping[str, Frozen]) -> bool:
    """Say whether a question names how many GPUs there are, owned or as a cluster (64 H100), and no bound on time,
    money or their number: then how long it takes on them is asked.
    """
    limits, sourcing = supply["limits"], supply["sourcing"]
    assert isinstance(limits, Limits)
    assert isinstance(sourcing, Sourcing)
    bounds = (asked.limits.deadline, asked.limits.budget, asked.limits.gpus, asked.limits.max_gpus,
              asked.limits.max_nodes, asked.limits.max_power)
    robust = isinstance(asked, Scenario) and asked.robust
    free = all(bound is None for bound in bounds) and not robust and sourcing.buy is None
    return free and ((bool(sourcing.own) and sourcing.rent is None) or limits.max_gpus is not None)
