"""The open ends of a question filled in from the catalog and the defaults, and said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import get_args

from planner.catalog.engine import Engine, first_running
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.batch import Batch
from planner.scenario.default import Default, Defaults
from planner.scenario.demand import Arrivals
from planner.scenario.files import trace_named
from planner.scenario.generation import Generation
from planner.scenario.limits import Hardware, Limits, Sourcing
from planner.scenario.media import in_tokens_seen, media_notes, said_of, with_usual
from planner.scenario.model_notes import beyond, generates, text_part, trainable
from planner.scenario.pool import ANY, always_on, named, pool, text
from planner.scenario.resolve_generation import resolved_generation
from planner.scenario.scenario import AnyScenario, Scenario, ServingScenario
from planner.scenario.serving import Gguf, Serving
from planner.scenario.usual import (
    common,
    counted_for_time,
    counts_its_gpus,
    refuse_idle_limits,
    refuse_stack,
    tuned_on_samples,
    usual,
    usual_drafts,
    usual_precision,
    usual_release,
    usual_requests,
    usual_stack,
)
from planner.scenario.words import named as spoken
from planner.scenario.workload import AUTO, EVERY, Training
from planner.units import show_seconds
from planner.yaml_io import Document, Frozen

_WHY = {"method": "the default where tokens are given", "stack": "the first of those in use for the method",
        "precision": "others are searched only if listed", "engine": "the default engine",
        "kv_cache": "the engine's default", "arrivals": "requests arrive independently",
        "quantization": "the format in which the model is published or named"}
"""Why a value is taken that the question leaves open."""
GGUF_ENGINE = "llama-cpp"
NO_FILE = Document({}, "", {})
"""Where a question came from that no file has."""
_ENDINGS: Sequence[tuple[set[str], str]] = (
    ({"mxfp4"}, "mxfp4"), ({"nvfp4"}, "nvfp4"), ({"fp4"}, "nvfp4"), ({"fp8"}, "fp8"), ({"w8a8"}, "int8"),
    ({"w4a16"}, "w4a16"), ({"gptq", "int8"}, "gptq-int8"), ({"awq"}, "int4"), ({"gptq"}, "int4"), ({"nf4"}, "nf4"),
    ({"bnb"}, "nf4"), ({"int4"}, "int4"), ({"4bit"}, "int4"), ({"int8"}, "int8"))
"""Parts of a model's name that say how its weights are quantized, the first that is there."""
_GGUF = re.compile(r"(?<=[-.:])i?q\d(?:[-_](?:[01]|k(?:[-_][sml])?|xs|xxs|nl))?(?=[-.:]|$)", re.IGNORECASE)
"""llama.cpp's name of a format in the name of a file: Llama-3.3-70B-Instruct-Q4_K_M.gguf."""


def resolve(scenario: Scenario, catalog: Catalog, document: Document = NO_FILE) -> tuple[Scenario, Defaults]:
    """Return `scenario` with the catalog's names and no open ends, and the defaults that closed them.

    `document` is where the scenario was read, for messages. Raises InputError.
    """
    work, defaults = resolve_training(scenario.workload, catalog, document)
    if work.tokens is None and scenario.objective != "gpus" and "objective" in scenario.model_fields_set:
        raise document.error(("objective",), f"objective: {scenario.objective} needs workload.tokens; without tokens "
                             "the question is the fewest GPUs that hold the model")
    if work.tokens is None:
        refuse_idle_limits(scenario.limits, document, "workload.tokens, such as --tokens 100M or --samples 10k")
    if scenario.robust and (work.tokens is None or scenario.objective != "cost"):
        raise document.error(("robust",), "the mean cost is of a job with workload.tokens and objective: cost")
    # what holds a model is no question of offers, so every kind of GPU is a candidate
    supply = pool(scenario.hardware, scenario.sourcing, scenario.limits, catalog, document, defaults,
                  priced=work.tokens is not None)
    if work.has_several:
        supply = {**supply, "limits": _of_one_node(supply, catalog, defaults)}
    work = in_precision(work, scenario.workload, named_nodes(scenario.hardware, supply), catalog, defaults)
    objective = scenario.objective if work.tokens is not None else "gpus"
    if work.tokens is not None and "objective" not in scenario.model_fields_set and counts_its_gpus(scenario, supply):
        objective = "time"
        defaults.append(counted_for_time())
    return scenario.model_copy(update={"objective": objective, "workload": work, **supply}), defaults


def resolve_training(work: Training, catalog: Catalog, document: Document = NO_FILE,
                     at: tuple[str | int, ...] = ("workload",)) -> tuple[Training, Defaults]:
    """Return a training job resolved, and what decided it; `at` is where the document has it. Raises InputError."""
    asked = work
    work = tuned_on_samples(work)
    tuned = work.method != asked.method
    work, defaults = in_tokens_seen(work, catalog, document, at)
    chosen: dict[str, object] = {"model": work.model}
    typical = common(catalog.recipes, work.method)
    if work.model != EVERY:
        with named(document, *at, "model"):
            models = [trainable(catalog.model(name), work) for name in work.models]
        # several are compared at a length that all of them have
        typical = usual(min(models, key=lambda model: model.sequence_length), work.method, catalog.recipes,
                        asked.mean_length)
        length = work.sequence_length or typical.sequence_length
        chosen["model"], defaults = ", ".join(model.name for model in models), defaults + beyond(models, length)
        defaults += media_notes(work, models[0], document, at, length) if work.sees else text_part(models)
    if work.tokens is not None:
        chosen["method"] = work.method or "pretrain"
    if work.launchable is not None:
        work = work.model_copy(update={"launchable": catalog.releases.named(work.launchable, "training")})
        chosen["launchable"] = work.launchable
    chosen["stack"] = _stacks(work, catalog, document, at)
    chosen |= {"precision": work.precision, "sequence_length": work.sequence_length or typical.sequence_length}
    if work.tokens is not None:
        batch = work.global_batch or typical.global_batch
        length = (work.sequence_length or typical.sequence_length) * catalog.recipes.sequences(work.preference)
        chosen["global_batch"] = batch.of(length)
        if batch.tokens:
            defaults.append(Default(name="global_batch", value=str(batch.of(length)), why=f"{batch} of {length:,}"))
    stated = {name for name in work.model_fields_set if getattr(work, name) is not None} - {"method" if tuned else ""}
    said = {**chosen, **usual_stack(chosen, work.trains, catalog)}
    if catalog.recipes.sequences(work.preference) > 1 and isinstance(taken := said.get("global_batch"), Batch):
        said["global_batch"] = str(taken).replace("sequences", "pairs")
    defaults += _said(said, stated, {"sequence_length": typical.why, "global_batch": typical.why, **(
        {"method": "samples are what a model is tuned on"} if tuned else {})})
    return work.model_copy(update=chosen), defaults


def _of_one_node(supply: Mapping[str, Frozen], catalog: Catalog, defaults: Defaults) -> Frozen:
    """Return the limits of a question for the largest model or load: where none say how many GPUs, those of one node.
    """
    limits, hardware, sourcing = supply["limits"], supply["hardware"], supply["sourcing"]
    assert isinstance(limits, Limits)
    assert isinstance(hardware, Hardware)
    assert isinstance(sourcing, Sourcing)
    if (limits.gpus, limits.max_gpus, limits.max_nodes) != (None,) * 3:
        return limits
    size, name = max((catalog.node(candidate).gpus * sourcing.own.get(candidate, 1), candidate)
                     for candidate in hardware.candidates)
    defaults.append(Default(name="max_gpus", value=str(size), why=f"those of {sourcing.own.get(name, 1)} {name}"))
    return limits.model_copy(update={"max_gpus": size})


def named_nodes(asked: Hardware, supply: Mapping[str, Frozen]) -> tuple[str, ...]:
    """Return the node types that a question names or that are owned; nobody who leaves them open asks for GPUs without
    bf16.
    """
    hardware, sourcing = supply["hardware"], supply["sourcing"]
    assert isinstance(hardware, Hardware)
    assert isinstance(sourcing, Sourcing)
    return tuple(sourcing.own) if ANY in asked.candidates else hardware.candidates


def in_precision(work: Training, asked: Training, nodes: Sequence[str], catalog: Catalog, defaults: Defaults,
                  job: str = "") -> Training:
    """Return a resolved job in the precision that its GPUs have, where what was asked leaves it open."""
    if "precision" in asked.model_fields_set:
        return work
    precision, why = usual_precision(nodes, catalog)
    defaults[:] = [why.model_copy(update={"name": default.name}) if default.name == f"{job}precision" else default
                   for default in defaults]
    return work.model_copy(update={"precision": precision})


def _stacks(work: Training, catalog: Catalog, document: Document,
            at: tuple[str | int, ...] = ("workload",)) -> tuple[str, ...]:
    """Return the stacks named, by their catalog names; `auto` as it is."""
    with named(document, *at, "launchable"):
        target = None if work.launchable in (None, AUTO) else catalog.releases.of_kind(work.launchable, "training")
    if target is not None and work.stack == (AUTO,):
        method = work.method or "pretrain"
        told = [name for name in target.stacks if target.formats(name, work.precision)] or target.stacks
        return tuple(one.name for one in catalog.usual_stacks(method, work.trains) if one.name in told) or (told[0],)
    with named(document, *at, "stack"):
        other = [name for name in work.stack if target and catalog.stack(name).name not in target.stacks]
        if target is not None and other:
            raise InputError(f"{other[0]} is not what {work.launchable} starts: {', '.join(target.stacks)}")
        if work.stack == (AUTO,):
            return work.stack
        stacks = [catalog.stack(name) for name in work.stack]
        for stack in stacks if work.preference else ():
            refuse_stack(work, stack, catalog)
        return tuple(dict.fromkeys(stack.name for stack in stacks))


def resolve_serving(scenario: ServingScenario, catalog: Catalog, document: Document = NO_FILE
                    ) -> tuple[ServingScenario, Defaults]:
    """Return the same for services: catalog names, formats, percentiles and trace files filled in."""
    defaults = Defaults()
    if scenario.workload is not None:
        service, decided = resolve_service(scenario.workload, catalog, document, ("workload",))
        if scenario.asks_what_holds:
            service, decided = _with_room(scenario.workload, service, decided, catalog)
        services: dict[str, object] = {"workload": service}
        defaults += decided
    else:
        resolved = [resolve_service(workload, catalog, document, ("workloads", at))
                 for at, workload in enumerate(scenario.workloads)]
        services = {"workloads": tuple(service for service, _ in resolved)}
        defaults += [default.model_copy(update={"name": f"{service.label}.{default.name}"})
                     for service, decided in resolved for default in decided]
    if holds := scenario.asks_what_holds:
        refuse_idle_limits(scenario.limits, document, "a load, such as --rate 5, --users 50 or --documents 1M")
    update = pool(scenario.hardware, scenario.sourcing, scenario.limits, catalog, document, defaults, priced=not holds)
    if scenario.workload is not None and (old := usual_release(
            service, named_nodes(scenario.hardware, update), catalog)) is not None:
        services = {"workload": service.model_copy(update={"engine_version": old.value})}
        defaults.append(old)
    limits, named_places = scenario.limits, ANY not in scenario.hardware.candidates
    if scenario.objective in ("rate", "users") and named_places and limits.budget is None and limits.max_power is None:
        # the most that a machine serves is asked of the machine
        update = {**update, "limits": _of_one_node(update, catalog, defaults)}
    goal = {"objective": "gpus"} if holds else {}
    return scenario.model_copy(update={**services, **always_on(scenario.services, update, defaults), **goal}), defaults


def _with_room(asked: Serving, service: Serving, decided: Defaults, catalog: Catalog) -> tuple[Serving, Defaults]:
    """Return a service that is asked without a load with the tokens of the one request there must be room for."""
    lengths = [length.mean for length in (asked.input, asked.output) if length is not None]
    room = asked.max_model_len or round(sum(lengths)) or catalog.model(service.model).sequence_length
    said = [default for default in decided if default.name not in ("input", "output")]
    if not asked.max_model_len:
        said.append(Default(name="max_model_len", value=str(room), why="the request asked about" if lengths else
                            "the model's default; a longer one takes more room"))
    return service.model_copy(update={"max_model_len": room}), said


def resolve_work(scenario: Scenario | ServingScenario, catalog: Catalog, document: Document = NO_FILE) -> AnyScenario:
    """Return a question of one piece of work with the catalog's names; what training leaves open stays open.

    Raises InputError where several services or models are asked about.
    """
    if isinstance(scenario, ServingScenario):
        if scenario.workload is None:
            raise document.error(("workloads",), "one service at a time is estimated, and the scenario has several")
        service, _ = resolve_service(scenario.workload, catalog, document)
        return scenario.model_copy(update={"workload": service})
    work, _ = in_tokens_seen(tuned_on_samples(scenario.workload), catalog, document)
    if len(work.models) > 1:
        raise document.error(("workload", "model"), f"one model at a time is estimated, got {', '.join(work.models)}")
    with named(document, "workload", "model"):
        chosen: dict[str, object] = {"model": trainable(catalog.model(work.models[0]), work).name}
    chosen["stack"] = _stacks(work, catalog, document)
    return scenario.model_copy(update={"workload": work.model_copy(update=chosen)})


def resolve_service(service: Serving, catalog: Catalog, document: Document = NO_FILE,
                    at: tuple[str | int, ...] = ("workload",)) -> tuple[Serving, Defaults]:
    """Return one service resolved, and what decided it; `at` is where the document has it. Raises InputError."""
    if isinstance(service, Generation):
        return resolved_generation(service, catalog, document, at)
    with named(document, *at, "model"):
        model = catalog.model(service.model)
        service, heard = with_usual(service, model, catalog.recipes)
        lengths, said = usual_requests(service, model, catalog.recipes)
        drafts, also = usual_drafts(service, catalog.recipes)
        service, said = service.model_copy(update={**lengths, **drafts}), [*heard, *said, *also]
        if service.output is None or service.output.mean:
            generates(model, "a service with output tokens; ask with --output 0")
    formats = service.quantization or (format_of(service.model) or model.stored,)
    with named(document, *at, "engine"):
        # who names only llama.cpp's kinds, and no engine, runs it
        kinds = "engine" not in service.model_fields_set and set(formats) <= set(get_args(Gguf))
        engine = catalog.engine(GGUF_ENGINE if kinds else service.engine)
    instead = None if "engine" in service.model_fields_set else engine.lacks_model(model, service.engine_version)
    if instead is not None:
        engine = first_running(catalog.all("engines", Engine), model) or engine
    chosen: dict[str, object] = {
        "model": model.name, "engine": engine.name, "kv_cache": service.kv_cache, "quantization": formats}
    if service.rate is not None:
        chosen["arrivals"] = service.arrivals or Arrivals()
    stated = {name for name in service.model_fields_set if getattr(service, name) is not None}
    shown = chosen if "arrivals" not in chosen else {**chosen, "arrivals": "poisson"}
    defaults = _said(shown, stated, {} if instead is None else {"engine": instead}) + said
    defaults += said_of(service, model, document, at)
    if (unsaid := service.unsaid) and service.percentile is None:
        defaults.append(Default(name="percentile", value="p95", why="for latency targets that state none"))
    if service.users is not None and service.think is None:
        defaults.append(Default(name="think", value="none: users ask again at once", why="faster replicas are then "
                                "asked more often; --think 20s for people who read, --tpot for the pace of answers"))
    chosen |= {"percentile": None, **unsaid}
    if service.day is not None and service.startup is None:
        chosen["startup"] = catalog.serving_law.startup
        defaults.append(Default(name="startup", value=show_seconds(catalog.serving_law.startup),
                                why="a node that an hour adds is paid from then on; assumed, yours may be faster"))
    if service.trace is not None:
        chosen["trace"] = trace_named(service.trace, document, (*at, "trace"))
    return service.model_copy(update=chosen), defaults


def _said(chosen: Mapping[str, object], stated: set[str], why: Mapping[str, str] | None = None) -> Defaults:
    """Return what was chosen and not stated, with the reason."""
    return [Default(name=name, value=text(value), why=(_WHY | dict(why or {})).get(name, "the default"))
            for name, value in chosen.items() if name not in stated]


def format_of(name: str) -> str | None:
    """Return the quantization that a model's name asks for (`Llama-3.3-70B-Instruct-FP8`); none where it says none."""
    parts = set(name.lower().replace("_", "-").replace(".", "-").replace(":", "-").split("-"))
    gguf = _GGUF.search(name)
    stored = spoken("workload.quantization", gguf[0].lower() if gguf else "gguf" if "gguf" in parts else None)
    return str(stored) if stored in get_args(Gguf) else next(
        (quantization for ending, quantization in _ENDINGS if ending <= parts), None)
