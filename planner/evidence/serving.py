"""Predict what an inference engine prints about its memory at start-up: weights and cache of one GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.engine import Engine
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.evidence.rows import ServeMeasured, ServeRun, TrainRun
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError
from planner.layouts.table import Ints
from planner.physics.serving.cache import Serving, pool_bytes
from planner.physics.serving.weights import FORMATS, WeightFormat, weight_bytes
from planner.units import GIB

_SPELLED = {
    "bf16 (auto)": "bf16", "fp16": "bf16", "w8a8": "int8", "awq-int4": "int4", "gptq-int4": "int4", "int4": "int4",
    "int4 (QAT)": "int4", "bnb 4-bit": "nf4", "4-bit": "int4",
}
"""As evidence files name formats, where it is not our name."""
WEIGHTS_SPREAD, CACHE_SPREAD = 0.04, 0.08
"""How far 90% of comparable rows lie from the prediction, relative."""
UTILIZATION = "gpu_memory_utilization"
USUAL_VERSION = "0.10"
"""Of an engine where a row does not say: reports without one are mostly of 2025."""


CAPPED = "capped by max-total-tokens"
"""What notes say where the user asked for fewer tokens than memory holds."""
OLD_ENGINE, FIRST_VERSION = "V0 engine", "0.1"
"""How notes name vLLM's first engine, which later versions still ran where asked, and a version that had no other."""


@dataclass(frozen=True, slots=True)
class ServePrediction:
    """Weights and cache of one GPU in bytes; cache is none where the GPU or the engine is not known."""

    model: Model
    gpu: str
    weights: float
    cache: float | None
    assumed: tuple[str, ...]


def predict_serving(run: ServeRun, catalog: Catalog) -> ServePrediction:
    """Predict one row. Raises SkippedError with the reason where that is not possible."""
    assumed: list[str] = []
    model = _model(run, catalog, assumed)
    tp, pp = np.array([run.tp or 1]), np.array([run.pp or 1])
    if run.tp is None:
        assumed.append("tp=1")
    try:
        weights = weight_bytes(model, _format(run, assumed), tp, pp)
        cache = _cache(run, catalog, model, float(weights[0]), tp, pp, assumed)
    except PlannerError as error:
        raise SkippedError(str(error)) from None
    return ServePrediction(model, run.gpu or "unknown", float(weights[0]), cache, tuple(assumed))


def _model(run: ServeRun, catalog: Catalog, assumed: list[str]) -> Model:
    shape = TrainRun(model=run.model, layers=run.layers, hidden=run.hidden, ffn=run.ffn, heads=run.heads,
                     kv_heads=run.kv_heads, vocab=run.vocab, gated_mlp=run.gated_mlp, experts=run.experts,
                     experts_per_token=run.experts_per_token, moe_ffn=run.moe_ffn, shared_experts=run.shared_experts,
                     dense_layers=run.dense_layers, attention=run.attention)
    return model_of(shape, catalog, assumed)


def _format(run: ServeRun, assumed: list[str]) -> WeightFormat:
    if run.weight_precision is None:
        assumed.append("weight_precision=bf16")
        return FORMATS["bf16"]
    name = _SPELLED.get(run.weight_precision, run.weight_precision)
    if name not in FORMATS:
        raise SkippedError(f"weights in {run.weight_precision} are not modeled")
    return FORMATS[name]


def _cache(run: ServeRun, catalog: Catalog, model: Model, weights: float, tp: Ints, pp: Ints,
           assumed: list[str]) -> float | None:
    """Return the bytes of the cache on a GPU; none where GPU or engine are not stated or not known."""
    if run.gpu is None or run.engine is None or run.engine.lower() not in catalog.names("engines"):
        return None
    engine: Engine = catalog.engine(run.engine)
    notes, version = run.notes or "", run.engine_version
    if CAPPED in notes:
        return None
    if version is None:
        version = FIRST_VERSION if OLD_ENGINE in notes else USUAL_VERSION
        assumed.append(f"engine_version={version}")
    fraction = run.gpu_memory_utilization
    if fraction is None:
        fraction = engine.memory_fraction
        assumed.append(f"{UTILIZATION}={fraction:g}")
    release = engine.release(version)
    serving = Serving(model, engine, release, catalog.gpu(run.gpu).usable_memory, fraction)
    return float(pool_bytes(serving, np.array([weights]), tp, pp)[0])


def quantities(measured: ServeMeasured, found: ServePrediction) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, predicted, measured and spread of every quantity that a row states and that is compared."""
    if measured.weights_gib:
        yield "weights_gib", found.weights / GIB, measured.weights_gib, WEIGHTS_SPREAD
    if measured.kv_cache_gib and found.cache is not None:
        yield "kv_cache_gib", found.cache / GIB, measured.kv_cache_gib, CACHE_SPREAD
