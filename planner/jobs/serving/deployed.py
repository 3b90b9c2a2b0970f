"""A service on one kind of hardware: whether its engine runs it there, how fast, and what its cache holds."""

from __future__ import annotations

from dataclasses import replace

from planner.catalog.load import Catalog
from planner.errors import MissingFact, Unsupported
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.physics.serving.capacity import CacheInput, Capacity, capacity
from planner.physics.serving.deployment import Delay, Deployment, Replicas, deployment_of, seeing
from planner.physics.serving.formats import format_of
from planner.physics.serving.sequences import Cut
from planner.physics.serving.settings import EngineSettings


def lacks(catalog: Catalog, service: Service, candidate: Candidate, name: str) -> str | None:
    """Return why the engine does not run the service in a format on that hardware; none where it does."""
    asked, engine = service.asked, catalog.engine(service.asked.engine)
    cache = "bf16" if asked.kv_cache == "auto" else asked.kv_cache
    return engine.lacks_model(service.model, asked.engine_version) or engine.lacks(
        candidate.gpu.architecture, name, cache, asked.engine_version)


def deployment(catalog: Catalog, service: Service, candidate: Candidate, name: str,
               settings: EngineSettings | None = None) -> Deployment:
    """Return a service on one kind of hardware with its weights in the format `name`. Raises PlannerError."""
    asked = service.asked
    if (reason := lacks(catalog, service, candidate, name)) is not None:
        raise Unsupported(f"{candidate.gpu.name}: {reason}")
    weights = format_of(catalog.formats, name, service.model)
    if weights is None:
        raise MissingFact(f"model {service.model.name}", f"weights in {name}")
    speed = catalog.speeds(asked.engine).release(asked.engine_version, candidate.gpu.architecture)
    cache = "bf16" if asked.kv_cache == "auto" else asked.kv_cache
    d = deployment_of(catalog, service.model, name, weights, catalog.formats.cache(cache), (candidate,), speed)
    settings = settings or service.settings
    limits = cache_input(catalog, service, d, service.length, settings).limits
    speed = speed.model_copy(update={"chunk": limits.tokens, "sequences": limits.sequences})
    ahead = catalog.engine(asked.engine).chooses_ahead(asked.engine_version)
    d = delayed(catalog, service, replace(d, engine=speed, adapters=service.adapters, ahead=ahead), settings.delay)
    return seeing(catalog, d, service.seen, service.stream.input)


def delayed(catalog: Catalog, service: Service, d: Deployment, steps: int | None) -> Deployment:
    """Return a deployment whose prompts wait so many steps at most until each copy of attention has one."""
    known = catalog.engine(service.asked.engine).delays_in(service.asked.engine_version)
    return replace(d, delay=Delay(steps, known.all_decode, known.in_turn) if steps and known else None)


def held(catalog: Catalog, service: Service, d: Deployment, rows: Replicas, length: int,
         settings: EngineSettings | None = None) -> Capacity:
    """Return what each layout holds of sequences of that length; settings: other than the question's own."""
    return capacity(cache_input(catalog, service, d, length, settings or service.settings), cut_of(rows))


def cache_input(catalog: Catalog, service: Service, d: Deployment, length: int, settings: EngineSettings) -> CacheInput:
    """Return what is served and how, as the cache of a replica is found by it."""
    engine, gpu = catalog.engine(service.asked.engine), d.candidates[0].gpu
    return CacheInput(service.model, d.weights, d.cache, engine, engine.release(service.asked.engine_version),
                 gpu.usable_memory, settings, length=length, architecture=gpu.architecture,
                 drafts=1 if service.stream.drafts else 0, adapters=service.adapters, seen=service.seen)


def cut_of(rows: Replicas) -> Cut:
    """Return how layouts cut a model."""
    return Cut(rows.tp * rows.dp, rows.pp, rows.dp)
