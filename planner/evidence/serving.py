"""Predict what an inference engine prints about its memory at start-up: weights, cache, tokens and concurrency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.engine import Engine
from planner.catalog.formats import WeightFormat
from planner.catalog.load import Catalog
from planner.catalog.quirk import Number, Sources
from planner.errors import UnknownName
from planner.evidence.rows import ServeMeasured, ServeRun
from planner.evidence.serve_run import cache_format, weight_format
from planner.evidence.shape import model_of
from planner.evidence.skipping import refuse
from planner.physics.serving.capacity import CacheInput, Capacity, capacity
from planner.physics.serving.sequences import Cut
from planner.physics.serving.settings import EngineSettings
from planner.physics.serving.weights import weight_bytes
from planner.units import GIB

UTILIZATION = "gpu_memory_utilization"
DEGREES: tuple[Number, Number] = ("attention_ranks", "context_ranks")
FIRST_VERSION, SECOND_VERSION = "0.1", "0.8"
"""Of vLLM's first engine, which later versions still ran where asked, and the first that ran its second one unasked."""


@dataclass(frozen=True, slots=True)
class ServePrediction:
    """Weights and cache of one GPU in bytes; capacity is none where the GPU or the engine is not known."""

    model: Model
    gpu: str
    weights: float
    held: Capacity | None
    block: int
    spread: float
    assumed: tuple[str, ...]

    @property
    def cache(self) -> float | None:
        """Bytes that a GPU of the first stage gives to the cache."""
        return None if self.held is None else float(self.held.pool[0])


def predict_serving(run: ServeRun, catalog: Catalog) -> ServePrediction:
    """Predict one row. Raises SkippedError with the reason where that is not possible."""
    said, assumed = catalog.sources, list[str]()
    refuse(run, said)
    renamed = said.word("catalog_model", run)
    model = catalog.model(renamed) if renamed else model_of(run, catalog, assumed)
    if run.tp is None:
        assumed.append("tp=1")
    ranks, context = (np.array([said.whole(degree, run) or 1]) for degree in DEGREES)
    cut = Cut(np.array([run.tp or 1]), np.array([run.pp or 1]), ranks, context)
    _, weights = weight_format(run, model, catalog, assumed)
    held = _capacity(run, catalog, model, weights, cut, assumed)
    bytes_of = weight_bytes(model, weights, cut.tp, cut.pp, cut.data)
    block = catalog.engine(run.engine).block if run.engine and _known(run.engine, catalog) else 1
    return ServePrediction(model, run.gpu or "unknown", float(bytes_of[0]), held, run.block_size or block,
                           _spread(run, catalog), tuple(assumed))


def _known(engine: str, catalog: Catalog) -> bool:
    try:
        catalog.engine(engine)
    except UnknownName:
        return False
    return True


def _capacity(run: ServeRun, catalog: Catalog, model: Model, weights: WeightFormat, cut: Cut,
              assumed: list[str]) -> Capacity | None:
    """Return what the GPUs hold; none where GPU or engine are not stated or not known."""
    if run.gpu is None or run.engine is None or not _known(run.engine, catalog):
        return None
    engine: Engine = catalog.engine(run.engine)
    said, version = catalog.sources, run.engine_version
    if said.flag("capped", run):
        return None
    generation = said.word("engine_generation", run)
    second = generation == "second"
    could = version is None or not engine.release(version).by_kind
    first = generation == "first" or (said.flag("blocks", run) and could and not second)
    if version is None or (first and not engine.release(version).whole_to):
        version = FIRST_VERSION if first else _current(run, engine, said)
        assumed.append(f"engine_version={version}")
    if second and engine.release(version).whole_to:
        version = SECOND_VERSION
    gpu = catalog.gpu(run.gpu)
    ran = said.word("ran_version", run, version=version, architecture=gpu.architecture) or version
    release, memory = engine.release(ran), gpu.usable_memory
    if run.gpu_memory_utilization is None:
        fraction = engine.default_fraction(release, memory, int(cut.tp[0]), int(cut.pp[0]), int(cut.data[0]))
        assumed.append(f"{UTILIZATION}={fraction:.3g}")
    asked = CacheInput(model, weights, catalog.formats.cache(cache_format(run, catalog, assumed)),
                       engine, release, memory,
                  EngineSettings(run.gpu_memory_utilization), run.max_model_len or 1, gpu.architecture,
                  said.whole("draft_layers", run) or 0)
    return capacity(asked, cut)


def _spread(run: ServeRun, catalog: Catalog) -> float:
    """Return how far nine of ten caches lie from the prediction, relative, by what the row states.

    Loose where the fraction is not stated, or the release passed over whole sequences or did not yet share the pool
    out by kind: users set its limits more often.
    """
    loose = catalog.sources.usual("loose_cache_spread")
    if run.engine is None or not _known(run.engine, catalog) or run.gpu_memory_utilization is None:
        return loose
    engine = catalog.engine(run.engine)
    version = run.engine_version or catalog.sources.word("usual_log_version", run)
    settled = engine.fraction_of != "memory" or engine.release(version).by_kind
    stated = run.engine_version or engine.fraction_of != "memory"
    return catalog.sources.usual("cache_spread") if settled and stated else loose


def _current(run: ServeRun, engine: Engine, said: Sources) -> str:
    """Return the version that was current when a row's issue was opened, or its model came out."""
    issue = said.whole("issue", run)
    version = None if issue is None else engine.version_at(issue)
    return version or said.word("usual_log_version", run) or engine.releases[-1].version


def quantities(run: ServeRun, measured: ServeMeasured, prediction: ServePrediction,
               said: Sources) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, predicted, measured and spread of every quantity that a row states and that is compared.

    Tokens where a row counts blocks are blocks times their size; concurrency is of the longest sequence admitted.
    """
    if measured.weights_gib:
        yield "weights_gib", prediction.weights / GIB, measured.weights_gib, said.usual("weights_spread")
    if prediction.cache is None or prediction.held is None:
        return
    if measured.kv_cache_gib:
        yield "kv_cache_gib", prediction.cache / GIB, measured.kv_cache_gib, prediction.spread
    if measured.kv_tokens_or_blocks:
        size = prediction.block if said.flag("blocks", run) else 1
        tokens = float(prediction.held.tokens[0])
        yield "kv_tokens_or_blocks", tokens / size, measured.kv_tokens_or_blocks, prediction.spread
    if measured.max_concurrency and run.max_model_len:
        yield "max_concurrency", float(prediction.held.concurrency[0]), measured.max_concurrency, prediction.spread
