"""A row of serving speed in the planner's terms: the engine and its release, the layout, the formats, the regime."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from planner.catalog.architecture import Model
from planner.catalog.formats import Formats
from planner.catalog.load import Catalog
from planner.catalog.speed import ServiceLevel
from planner.evidence.rows import ServeRun, TrainRun
from planner.evidence.serving import cache_format
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError
from planner.physics.serving.formats import format_of

Regime = Literal["static", "closed", "offline", "server", "decode", "first"]
ENGINES = {"TensorRT-LLM": "tensorrt-llm", "vLLM": "vllm", "SGLang": "sglang", "vLLM (ROCm fork)": "vllm",
           "llama.cpp": "llama-cpp", "ExLlamaV2": "exllama", "ExLlama": "exllama", "MLC LLM": "mlc",
           "LMDeploy TurboMind": "lmdeploy", "DeepSeek in-house": "sglang"}
FORMATS_OF = {"16-bit": "bf16", "fp16": "bf16", "4-bit": "int4", "uint4": "int4", "gptq4": "int4"}
DIES = {"mi250": 2}
"""GPUs, as programs see them, of a card that evidence counts as one."""
LAYERS_APART = frozenset({"llama.cpp", "ExLlama", "ExLlamaV2"})
"""Engines that put whole layers on each GPU, one after the other."""
WARMING = ("h100-sxm", 64)
_DRAFTING = re.compile(r"^1\.2\.0rc6\.post3")
"""Build of TensorRT-LLM that InferenceX ran with the model's own prediction module (MTP), going by a token that takes
a third to a half less than with the build before on the same layouts."""
_VERSION = re.compile(r"(?<![\d.])([01]\.\d+(?:\.\d+)*)")
_POOL = r"(\d{1,9})x\(TP(\d{1,9}) DP(\d{1,9}) EP(\d{1,9})\)"
_WORKERS = re.compile(f"prefill {_POOL} decode {_POOL}")
_USUAL = {"vllm": {2023: "0.2", 2024: "0.5", 2025: "0.10", 2026: "0.17"},
          "sglang": {2024: "0.3", 2025: "0.5.1", 2026: "0.5.9"},
          "tensorrt-llm": {2023: "0.5", 2024: "0.12", 2025: "1.1", 2026: "1.2"}}


@dataclass(frozen=True, slots=True)
class Workers:
    """Engines of a disaggregated deployment: how many, and the layout of each."""

    count: int
    tp: int
    dp: int
    ep: int


@dataclass(frozen=True, slots=True)
class ServingRow:
    """One row as the physics asks for it."""

    model: Model
    engine: str
    version: str
    format: str
    cache: str
    gpu: str
    gpus: int
    tp: int | None
    pp: int
    ep: int
    dp: int
    regime: Regime
    input: float
    output: float
    clients: float | None
    prefill: Workers | None
    decode: Workers | None
    limits: ServiceLevel | None
    """Of latency, where the row is the largest rate within them."""
    drafts: int
    """Tokens proposed ahead in a step."""
    warming: bool
    """Whether the time to the first token was measured before the load was steady."""
    assumed: tuple[str, ...]


def serving_row(run: ServeRun, catalog: Catalog) -> ServingRow:
    """Return a row in the planner's terms. Raises SkippedError with the reason where it cannot be."""
    assumed: list[str] = []
    if run.gpu is None or run.gpus is None:
        raise SkippedError("GPU or number of GPUs not stated")
    if run.isl is None or run.osl is None:
        raise SkippedError("prompt or output length not stated")
    model = _model(run, catalog, assumed)
    engine = _engine(run, assumed)
    prefill, decode = _workers(run)
    tp, pp, dp, ep = _layout(run, model, assumed)
    format_ = _format(run, model, catalog.formats, assumed)
    regime = _regime(run)
    if run.concurrency is None and run.max_batch is None and (regime in ("static", "closed") or decode is not None):
        raise SkippedError("concurrency not stated")
    limits = _limits(run, model, catalog) if regime == "server" else None
    return ServingRow(model, engine, _version(run, engine, assumed), format_,
                      _cache(run, catalog.formats, engine, format_, assumed), run.gpu,
                      run.gpus * DIES.get(run.gpu, 1), tp, pp, ep, dp, regime, max(run.isl, 1.0),
                      max(run.osl, 1.0), run.concurrency or run.max_batch, prefill, decode, limits,
                      _drafts(run, model, assumed), _warming(run), tuple(assumed))


def _limits(run: ServeRun, model: Model, catalog: Catalog) -> ServiceLevel | None:
    return catalog.service_levels.of(model.name, "interactive" if "Interactive" in (run.notes or "") else "server")


def _drafts(run: ServeRun, model: Model, assumed: list[str]) -> int:
    if not _DRAFTING.search(run.engine_version or "") or not model.name.startswith("deepseek"):
        return 0
    assumed.append("drafts=1")
    return 1


def _warming(run: ServeRun) -> bool:
    """Whether a row is one of 64 H100 whose prompts took the longer the fewer there were (evidence/serving.md)."""
    return bool(run.disaggregated) and (run.gpu, run.gpus) == WARMING


def _model(run: ServeRun, catalog: Catalog, assumed: list[str]) -> Model:
    name = (run.model or "").split("/")[0] if "/R1" in (run.model or "") else run.model
    known = catalog.known_model(name) if name else None
    if known is not None and (run.layers is None or run.layers == known.layers):
        return known
    shape = TrainRun(model=run.model, layers=run.layers, hidden=run.hidden, ffn=run.ffn, heads=run.heads,
                     kv_heads=run.kv_heads, vocab=run.vocab, experts=run.experts,
                     experts_per_token=run.experts_per_token, moe_ffn=run.ffn if run.experts else None,
                     attention="mla" if run.mla else None)
    return model_of(shape, catalog, assumed)


def _engine(run: ServeRun, assumed: list[str]) -> str:
    if run.engine is None:
        amd = (run.gpu or "").startswith("mi")
        assumed.append(f"engine={'vllm' if amd else 'tensorrt-llm'}")
        return "vllm" if amd else "tensorrt-llm"
    name = run.engine.removesuffix("/Dynamo")
    if name not in ENGINES:
        raise SkippedError(f"engine {run.engine} is not modeled")
    return ENGINES[name]


def _version(run: ServeRun, engine: str, assumed: list[str]) -> str:
    text = run.engine_version or ""
    dynamo = (run.engine or "").endswith("/Dynamo")
    found = _VERSION.search(text)
    # MLPerf prints the version of TensorRT, not of the engine on it
    if found and not text.startswith("TensorRT ") and not dynamo:
        return found.group(1)
    usual = _USUAL.get(engine, {})
    year = min(max(run.year or 2025, min(usual, default=2025)), max(usual, default=2025))
    version = usual.get(year, "0.1")
    assumed.append(f"engine_version={version}")
    return version


def _format(run: ServeRun, model: Model, formats: Formats, assumed: list[str]) -> str:
    if run.weight_precision is None:
        usual = "fp8" if "MLPerf" in (run.source or "") or "fp8" in (run.model or "").lower() else "bf16"
        assumed.append(f"weight_precision={usual}")
        return usual
    if run.weight_precision == "int4 (QAT)":
        return "int4-experts"
    plain = run.weight_precision.strip().lower()
    name = FORMATS_OF.get(plain, plain if plain in formats.weights else run.weight_precision)
    if format_of(formats, name, model) is None:
        raise SkippedError(f"weights in {run.weight_precision} are not modeled")
    return name


def _cache(run: ServeRun, formats: Formats, engine: str, format_: str, assumed: list[str]) -> str:
    if run.kv_precision is not None:
        return cache_format(formats, run.kv_precision)
    # NVIDIA's checkpoints ask for an fp8 cache; those that the makers of mixtures quantized themselves do not
    own = format_ == "nvfp4" or (format_ == "fp8" and (not run.experts or run.mla or "MLPerf" in (run.source or "")))
    asked = "InferenceX" in (run.source_detail or "") and format_ in ("fp8", "nvfp4", "mxfp4")
    usual = "fp8" if (engine == "tensorrt-llm" and own) or (engine == "vllm" and asked) else "bf16"
    assumed.append(f"kv_precision={usual}")
    return usual


def _workers(run: ServeRun) -> tuple[Workers | None, Workers | None]:
    if not run.disaggregated:
        return None, None
    found = _WORKERS.search(run.notes or "")
    if found is None:
        raise SkippedError("disaggregated, and its workers are not stated")
    n = [int(part) for part in found.groups()]
    return Workers(n[0], n[1], n[2], n[3]), Workers(n[4], n[5], n[6], n[7])


def _layout(run: ServeRun, model: Model, assumed: list[str]) -> tuple[int | None, int, int, int]:
    """Return tp (None where the row leaves it open), pp, attention copies and expert ranks."""
    gpus, pp, dp = run.gpus or 1, run.pp or 1, max(1, run.dp or 1)
    gpus *= DIES.get(run.gpu or "", 1)
    mixture = model.mixes_experts
    tp = run.tp * DIES.get(run.gpu or "", 1) if run.tp else None
    if run.disaggregated:
        return tp or 1, pp, dp, max(1, run.ep or 1) if mixture else 1
    if run.engine in LAYERS_APART:
        return 1, gpus, 1, 1
    if tp is None and run.engine in ENGINES and "MLPerf" not in (run.source or ""):
        tp = gpus
        assumed.append(f"tp={tp}")
    if tp is None:
        return None, 1, 1, 1
    if "attention DP" in (run.notes or "") and mixture and tp > 1:
        assumed.append(f"dp={tp}, ep={tp}")
        return 1, pp, tp, tp
    dp = max(1, min(dp, gpus // (tp * pp)))
    ep = max(1, min(run.ep or 1, tp * dp)) if mixture else 1
    return tp, pp, dp, ep


def _regime(run: ServeRun) -> Regime:
    notes = run.notes or ""
    if "generation" in notes or "decode 256 tokens" in notes:
        return "decode"
    if "first-token latency" in notes:
        return "first"
    if "static batch" in notes:
        return "static"
    if re.search(r"scenario (Interactive-)?(Server|Interactive)", notes) and "Interactive-Offline" not in notes:
        return "server"
    if "offline" in notes.lower() or run.concurrency is None:
        return "offline"
    return "closed"
