"""Predict what an inference engine prints about its memory at start-up: weights, cache, tokens and concurrency."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.engine import Engine
from planner.catalog.formats import Formats, StoredCache, WeightFormat
from planner.catalog.load import Catalog
from planner.errors import PlannerError, UnknownName
from planner.evidence.rows import ServeMeasured, ServeRun, TrainRun
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError
from planner.physics.serving.capacity import Asked, Capacity, capacity
from planner.physics.serving.formats import format_of
from planner.physics.serving.sequences import Cut
from planner.physics.serving.settings import EngineSettings
from planner.physics.serving.weights import weight_bytes
from planner.units import GIB

_SPELLED = {
    "bf16 (auto)": "bf16", "fp16": "bf16", "16-bit": "bf16", "w8a8": "int8", "awq-int4": "int4", "gptq-int4": "int4",
    "gptq4": "int4", "uint4": "int4", "bnb 4-bit": "nf4", "4-bit": "int4",
}
"""As evidence files name formats, where it is not our name."""
_SPELLED_CACHE = {"fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "float8": "fp8", "bfloat16": "bf16", "float16": "fp16",
                  "float32": "fp32", "16-bit": "bf16", "8-bit": "int8"}
_META_FP8 = re.compile(r"^(meta-llama/)?(Meta-)?Llama-3\.1-405B(-Instruct)?-FP8$", re.IGNORECASE)
"""Meta's own checkpoint keeps attention in 16 bits (its model card); those of others quantize every layer whole."""
_EARLY_405B, EARLY_405B = re.compile(r"Meta-Llama-3\.1-405B", re.IGNORECASE), "llama-3.1-405b-16kv"
"""The name of the checkpoints of July 2024, whose key-value heads were doubled, and their shape in the catalog."""
_TRAINED_INT4 = re.compile(r"kimi", re.IGNORECASE)
"""Models whose int4 (QAT) is of the routed experts, in groups of 32 (their config.json)."""
WEIGHTS_SPREAD, CACHE_SPREAD, LOOSE_SPREAD = 0.04, 0.08, 0.4
"""How far 90% of comparable rows lie from the prediction, relative; loose where the fraction is not stated, or the
release passed over whole sequences or did not yet share the pool out by kind, whose limits users set more often."""
UTILIZATION = "gpu_memory_utilization"
USUAL_VERSION = "0.10"
"""Of an engine where a row does not say: reports without one are mostly of 2025."""
USUAL_CACHE = {"fp32": "fp32"}
"""Format of the cache by that of the weights, where it is not bf16."""


CAPPED = "capped by max-total-tokens"
"""What notes say where the user asked for fewer tokens than memory holds."""
OLD_ENGINE, FIRST_VERSION = "V0 engine", "0.1"
"""How notes name vLLM's first engine, which later versions still ran where asked, and a version that had no other."""
_SECOND, SECOND_VERSION = re.compile(r"\bV1 (on|engine|tokens)"), "0.8"
"""How notes name the engine that followed it, and the first version that ran it unasked."""
_ISSUE = re.compile(r"issue #(\d{1,9})")
_NEWEST, NEWEST_VERSION = re.compile(r"qwen3\.[6-9]|gemma-4|step-3\.7|glm-5\.[12]|minimax-m[23]\.?7?$|kimi-k[23]\.[67]",
                                     re.IGNORECASE), "0.20"
"""Models that versions before did not know."""
_UNUSABLE = re.compile(r"do not use for weights|use with care")
"""What notes say of a row that contradicts itself."""
BEFORE_AMPERE = frozenset({"pascal", "volta", "turing"})
LATER = ("0.11", "0.12", "0.13", "0.14", "0.15", "0.16", "0.17", "0.18", "0.19")
"""Architectures that the second engine did not serve, and the versions that no longer had the first."""
BLOCKS = "counts BLOCKS"
"""What notes say where a row counts blocks, as only vLLM's first engine printed them."""
_DRAFTS = re.compile(r"EAGLE draft adds one KV layer|\bEAGLE\b")
_RANKS = re.compile(r"\bDP[- ]attention (\d{1,9})|\battention DP (\d{1,9})", re.IGNORECASE)
_CONTEXT = re.compile(r"\bDCP ?(\d{1,9})|decode[- ]context[- ]parallel\w* (\d{1,9})", re.IGNORECASE)


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
    assumed: list[str] = []
    if _UNUSABLE.search(run.notes or ""):
        raise SkippedError("its notes say that it contradicts itself")
    model = _model(run, catalog, assumed)
    if run.tp is None:
        assumed.append("tp=1")
    cut = Cut(np.array([run.tp or 1]), np.array([run.pp or 1]), _noted(_RANKS, run), _noted(_CONTEXT, run))
    try:
        weights = _format(run, model, catalog.formats, assumed)
        held = _capacity(run, catalog, model, weights, cut, assumed)
        bytes_of = weight_bytes(model, weights, cut.tp, cut.pp, cut.data)
    except PlannerError as error:
        raise SkippedError(str(error)) from None
    block = catalog.engine(run.engine).block if run.engine and _known(run.engine, catalog) else 1
    return ServePrediction(model, run.gpu or "unknown", float(bytes_of[0]), held, run.block_size or block,
                           _spread(run, catalog), tuple(assumed))


def _noted(pattern: re.Pattern[str], run: ServeRun) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return a degree that notes give, one where they do not."""
    found = pattern.search(run.notes or "")
    return np.array([int(next(group for group in found.groups() if group)) if found else 1])


def _model(run: ServeRun, catalog: Catalog, assumed: list[str]) -> Model:
    if _EARLY_405B.search(run.model or ""):
        return catalog.model(EARLY_405B)
    shape = TrainRun(model=run.model, layers=run.layers, hidden=run.hidden, ffn=run.ffn, heads=run.heads,
                     kv_heads=run.kv_heads, vocab=run.vocab, gated_mlp=run.gated_mlp, experts=run.experts,
                     experts_per_token=run.experts_per_token, moe_ffn=run.moe_ffn, shared_experts=run.shared_experts,
                     dense_layers=run.dense_layers, attention=run.attention)
    return model_of(shape, catalog, assumed)


def _format(run: ServeRun, model: Model, formats: Formats, assumed: list[str]) -> WeightFormat:
    if run.weight_precision is None:
        assumed.append("weight_precision=bf16")
        return formats.weights["bf16"]
    plain = run.weight_precision.strip().lower()
    name = _SPELLED.get(plain, plain if plain in formats.weights else run.weight_precision)
    if name == "fp8" and _META_FP8.search(run.model or ""):
        name = "fp8-ffn"
    if name == "int4 (QAT)":
        name = "int4-experts" if _TRAINED_INT4.search(run.model or "") else "int4"
    found = format_of(formats, name.split(" weights ", maxsplit=1)[0], model)
    if found is None:
        raise SkippedError(f"weights in {run.weight_precision} are not modeled")
    return found


def _cache(run: ServeRun, formats: Formats, assumed: list[str]) -> StoredCache:
    """Return how the cache is stored."""
    if run.kv_precision is None:
        name = USUAL_CACHE.get(run.weight_precision or "", "bf16")
        assumed.append(f"kv_precision={name}")
    else:
        name = cache_format(formats, run.kv_precision)
    return formats.cache(name)


def cache_format(formats: Formats, said: str) -> str:
    """Return our name of a cache's format. Raises SkippedError for one that is not modeled."""
    plain = said.strip().lower().replace("-", "_")
    name = next((_SPELLED_CACHE.get(text, text) for text in (plain, plain.replace("_", "-"))
                 if _SPELLED_CACHE.get(text, text) in formats.cached), None)
    if name is None and plain.startswith("fp8"):
        name = "fp8"
    if name is None:
        raise SkippedError(f"a cache in {said} is not modeled")
    return name


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
    notes, version = run.notes or "", run.engine_version
    if CAPPED in notes:
        return None
    second = _SECOND.search(notes)
    could = version is None or not engine.release(version).by_kind
    first = OLD_ENGINE in notes or (BLOCKS in notes and could and not second)
    if version is None or (first and not engine.release(version).whole_to):
        version = FIRST_VERSION if first else _current(run, engine)
        assumed.append(f"engine_version={version}")
    if second and engine.release(version).whole_to:
        version = SECOND_VERSION
    gpu = catalog.gpu(run.gpu)
    release, memory = engine.release(_ran(version, gpu.architecture)), gpu.usable_memory
    if run.gpu_memory_utilization is None:
        fraction = engine.default_fraction(release, memory, int(cut.tp[0]), int(cut.pp[0]), int(cut.data[0]))
        assumed.append(f"{UTILIZATION}={fraction:.3g}")
    asked = Asked(model, weights, _cache(run, catalog.formats, assumed), engine, release, memory,
                  EngineSettings(run.gpu_memory_utilization), run.max_model_len or 1, gpu.architecture,
                  1 if _DRAFTS.search(notes) else 0)
    return capacity(asked, cut)


def _spread(run: ServeRun, catalog: Catalog) -> float:
    """Return how far nine of ten caches lie from the prediction, by what the row states."""
    if run.engine is None or not _known(run.engine, catalog) or run.gpu_memory_utilization is None:
        return LOOSE_SPREAD
    engine = catalog.engine(run.engine)
    settled = engine.fraction_of != "memory" or engine.release(run.engine_version or USUAL_VERSION).by_kind
    return CACHE_SPREAD if settled and (run.engine_version or engine.fraction_of != "memory") else LOOSE_SPREAD


def _current(run: ServeRun, engine: Engine) -> str:
    """Return the version that was current when a row's issue was opened, or its model came out."""
    issue = _ISSUE.search(run.source or "")
    found = engine.version_at(int(issue[1])) if issue else None
    if found is None:
        found = NEWEST_VERSION if _NEWEST.search(run.model or "") else USUAL_VERSION
    return found


def _ran(version: str, architecture: str) -> str:
    """Return the version whose memory holds: on GPUs before Ampere vLLM long ran its first engine."""
    return FIRST_VERSION if architecture in BEFORE_AMPERE and not version.startswith(LATER) else version


def quantities(run: ServeRun, measured: ServeMeasured,
               found: ServePrediction) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, predicted, measured and spread of every quantity that a row states and that is compared.

    Tokens where a row counts blocks are blocks times their size; concurrency is of the longest sequence admitted.
    """
    if measured.weights_gib:
        yield "weights_gib", found.weights / GIB, measured.weights_gib, WEIGHTS_SPREAD
    if found.cache is None or found.held is None:
        return
    if measured.kv_cache_gib:
        yield "kv_cache_gib", found.cache / GIB, measured.kv_cache_gib, found.spread
    if measured.kv_tokens_or_blocks:
        size = found.block if BLOCKS in (run.notes or "") else 1
        yield "kv_tokens_or_blocks", float(found.held.tokens[0]) / size, measured.kv_tokens_or_blocks, found.spread
    if measured.max_concurrency and run.max_model_len:
        yield "max_concurrency", float(found.held.concurrency[0]), measured.max_concurrency, found.spread
