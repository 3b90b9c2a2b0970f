"""A row of serving speed in the planner's terms: the engine and its release, the layout, the formats, the regime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from planner.catalog.architecture import Model, MoeMlp
from planner.catalog.formats import WeightFormat
from planner.catalog.load import Catalog
from planner.catalog.quirk import Sources
from planner.catalog.speed import ServiceLevel
from planner.evidence.rows import ServeRow, ServeRun
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError, refuse
from planner.physics.serving.formats import format_of

UNKNOWN_ENGINE = "engine=vllm, as neither the row nor its source says which"
Regime = Literal["static", "closed", "offline", "server", "decode", "first"]


@dataclass(frozen=True, slots=True)
class EngineWorkers:
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
    """As programs see them."""
    cards: int
    """As the evidence counts them."""
    tp: int | None
    pp: int
    ep: int
    dp: int
    regime: Regime
    input: float
    output: float
    clients: float | None
    prefill: EngineWorkers | None
    decode: EngineWorkers | None
    limits: ServiceLevel | None
    """Of latency, where the row is the largest rate within them."""
    drafts: int
    """Tokens proposed ahead in a step."""
    accepted: float
    """Share of these that are right."""
    warming: bool
    """Whether the time to the first token was measured before the load was steady."""
    tuned: bool
    """Whether settings, kernels and builds were chosen for this one benchmark."""
    prompts: float | None
    """Requests of the whole run, where it is stated or all are there from the start."""
    output_cv: float
    """Coefficient of variation of the lengths of answers."""
    scheduled: int
    """Steps that are scheduled at once."""
    in_step: bool
    """Whether prompts of all copies of attention and stages begin together."""
    waves: bool
    """Whether clients ask in step with each other."""
    synchronous: bool
    """Whether what ran chose no batch ahead, whatever its release does."""
    experimental: bool
    """Whether its source says that what ran was an experiment."""
    assumed: tuple[str, ...]


def serving_row(run: ServeRun, catalog: Catalog) -> ServingRow:
    """Return a row in the planner's terms. Raises SkippedError with the reason where it cannot be."""
    said, assumed = catalog.sources, list[str]()
    if run.gpu is None or run.gpus is None:
        raise SkippedError("GPU or number of GPUs not stated")
    if run.isl is None or run.osl is None:
        raise SkippedError("prompt or output length not stated")
    refuse(run, said)
    model = _model(run, catalog, assumed)
    engine = _engine(run, said, assumed)
    prefill, decode = _workers(run, model, catalog)
    tp, pp, dp, ep = _layout(run, model, said, assumed)
    weights, _ = weight_format(run, model, catalog, assumed)
    regime = cast(Regime, said.word("regime", run))
    if run.concurrency is None and run.max_batch is None and (regime in ("static", "closed") or decode is not None):
        raise SkippedError("concurrency not stated")
    limits = catalog.service_levels.of(model.name, said.word("scenario", run) or "") if regime == "server" else None
    version = _version(run, engine, said, assumed)
    cache = cache_format(run, catalog, assumed, engine=engine, format=weights)
    share = said.number("length_share", run) or 1.0
    return ServingRow(model, engine, version, weights, cache, _card(run, said, assumed), run.gpus * dies(run, said),
                      run.gpus, tp, pp, ep, dp, regime, max(share * run.isl, 1.0), max(share * run.osl, 1.0),
                      run.concurrency or run.max_batch, prefill, decode, limits,
                      _drafts(run, model, said, assumed), said.usual("accepted_drafts"), said.flag("warming", run),
                      said.flag("tuned_engine", run),
                      said.whole("prompts", run) or (run.concurrency if regime == "offline" else None),
                      _uneven(run, said), said.whole("scheduled", run) or 1, _in_step(run, said),
                      said.flag("waves", run), said.flag("synchronous", run),
                      said.flag("experiment", run),
                      tuple(assumed))


def measured_by(row: ServeRow, said: Sources) -> str:
    """Return whose runs a row is of: its source, or who measured what a file gathers from several."""
    return said.word("page", row.run) or row.run.source or row.prefix


def _card(run: ServeRun, said: Sources, assumed: list[str]) -> str:
    """Return the GPU; of a name that several cards go by, the one that the source has."""
    card = said.word("card", run)
    if card is not None:
        assumed.append(f"gpu={card}")
    return card or run.gpu or ""


def dies(run: ServeRun, said: Sources) -> int:
    """Return GPUs, as programs see them, of a card that evidence counts as one."""
    return said.whole("dies", run) or 1


def _uneven(run: ServeRun, said: Sources) -> float:
    """Return how uneven answers are; a length that is no whole number is the mean of many."""
    cv = said.number("answer_cv", run)
    return said.usual("uneven_answers") if cv is None and run.osl is not None and run.osl % 1 else cv or 0.0


def _in_step(run: ServeRun, said: Sources) -> bool:
    """Say whether prompts begin together: answers all alike end together, and some engines wait for all copies."""
    return said.flag("prompts_wait", run) or (not _uneven(run, said) and said.number("length_share", run) is None)


def _drafts(run: ServeRun, model: Model, said: Sources, assumed: list[str]) -> int:
    drafts = said.whole("drafts", run, model=model.name)
    if drafts:
        assumed.append(f"drafts={drafts}")
    return drafts or 0


def _model(run: ServeRun, catalog: Catalog, assumed: list[str]) -> Model:
    """Return the model of a row, whose file has one width for both kinds of feed-forward."""
    name = catalog.sources.word("catalog_model", run) or run.model
    known = catalog.known_model(name) if name else None
    if known is not None and (run.layers is None or run.layers == known.layers):
        return known
    return model_of(run.model_copy(update={
        "params_b": None, "moe_ffn": run.ffn if run.experts else None, "attention": "mla" if run.mla else None}),
        catalog, assumed)


def _engine(run: ServeRun, said: Sources, assumed: list[str]) -> str:
    if run.engine is None:
        usual = said.word("usual_engine", run)
        assumed.append(f"engine={usual}" if usual else UNKNOWN_ENGINE)
        return usual or "vllm"
    name = said.word("engine", run)
    if name is None:
        raise SkippedError(f"engine {run.engine} is not modeled")
    return name


def _version(run: ServeRun, engine: str, said: Sources, assumed: list[str]) -> str:
    version = said.word("version", run)
    if version is None:
        version = said.word("usual_version", run, engine=engine, year=f"{run.year or 2025}") or "0.1"
        assumed.append(f"engine_version={version}")
    return version


def weight_format(run: ServeRun, model: Model, catalog: Catalog, assumed: list[str]) -> tuple[str, WeightFormat]:
    """Return the format of the weights by its name, and its bytes. Raises SkippedError."""
    said, plain = catalog.sources, (run.weight_precision or "").lower()
    name = said.word("weights", run) or (plain if plain in catalog.formats.weights else run.weight_precision)
    if name is None:
        name = said.word("usual_weights", run) or "bf16"
        assumed.append(f"weight_precision={name}")
    stored = format_of(catalog.formats, name, model)
    if stored is None:
        raise SkippedError(f"weights in {run.weight_precision} are not modeled")
    return name, stored


def cache_format(run: ServeRun, catalog: Catalog, assumed: list[str], **known: str) -> str:
    """Return the format of the cache, one that the catalog has. Raises SkippedError."""
    said = catalog.sources
    name = said.word("cache", run) or (run.kv_precision or "").lower() or None
    if name is None:
        name = said.word("usual_cache", run, **known) or "bf16"
        assumed.append(f"kv_precision={name}")
    if name not in catalog.formats.cached:
        raise SkippedError(f"a cache in {run.kv_precision} is not modeled")
    return name


def _workers(run: ServeRun, model: Model, catalog: Catalog) -> tuple[EngineWorkers | None, EngineWorkers | None]:
    if not run.disaggregated:
        return None, None
    n = [int(part) for part in catalog.sources.several("workers", run)]
    if len(n) != 8:
        raise SkippedError("disaggregated, and its workers are not stated")
    workers = [EngineWorkers(count, tp, dp,
                             ep if _split(model, tp * dp // max(ep, 1), catalog.kernels.tile) else tp * dp)
             for count, tp, dp, ep in (n[:4], n[4:])]
    return workers[0], workers[1]


def _split(model: Model, ranks: int, least: int) -> bool:
    """Say whether so many ranks can split an expert: each has at least the columns of a tile."""
    return all(block.mlp.ffn >= least * ranks for block in model.blocks if isinstance(block.mlp, MoeMlp))


def _layout(run: ServeRun, model: Model, said: Sources, assumed: list[str]) -> tuple[int | None, int, int, int]:
    """Return tp (None where the row leaves it open), pp, attention copies and expert ranks."""
    each = dies(run, said)
    gpus, pp, dp, mixture = (run.gpus or 1) * each, run.pp or 1, max(1, run.dp or 1), model.mixes_experts
    tp = run.tp * each if run.tp else None
    if run.disaggregated:
        return tp or 1, pp, dp, max(1, run.ep or 1) if mixture else 1
    if said.flag("layers_apart", run):
        return 1, gpus, 1, 1
    if tp is None and said.flag("fills_gpus", run):
        tp = gpus
        assumed.append(f"tp={tp}")
    if tp is None:
        return None, 1, 1, 1
    if mixture and tp > 1 and said.flag("attention_copies", run):
        assumed.append(f"dp={tp}, ep={tp}")
        return 1, pp, tp, tp
    dp = max(1, min(dp, gpus // (tp * pp)))
    ep = max(1, min(run.ep or 1, tp * dp)) if mixture else 1
    return tp, pp, dp, ep
