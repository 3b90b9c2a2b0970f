"""The training method of a row: all weights, adapters, or adapters on a quantized base; and how the row stores them."""

from __future__ import annotations

from dataclasses import replace

from planner.catalog.load import Catalog
from planner.catalog.quirk import Sources
from planner.catalog.recipes import TrainedBytes
from planner.catalog.stack import Stack
from planner.evidence.rows import TrainRun
from planner.evidence.skipping import SkippedError
from planner.evidence.software import WEIGHT_BYTES
from planner.physics.training.preference import Sample, sample_of
from planner.physics.training.tuning import Tuning, adapter_bytes, tuning_of
from planner.scenario.targets import places_of


def method_of(run: TrainRun, sources: Sources) -> str:
    """Return pretrain, full, lora or qlora: as stated, else by what the row says of adapters."""
    if run.method in (None, "pretrain") and sources.flag("adapters", run):
        return "qlora" if run.base_quantization else "lora"
    return run.method or "pretrain"


def sample_of_row(run: TrainRun, method: str, catalog: Catalog) -> Sample:
    """Return what a step of a row does with a sample, by its task; the reference of adapters is the policy without."""
    task = catalog.sources.word("preference", run) or ""
    if task == "classification":
        return Sample(scores=True)
    sample = sample_of(catalog.recipes.preference, task, "copy" if method in ("pretrain", "full") else "adapters-off")
    # both answers are in what is packed to the length
    return replace(sample, sequences=1) if run.packed and sample.sequences > 1 else sample


def tuning(run: TrainRun, stack: Stack, catalog: Catalog, assumed: list[str]) -> Tuning:
    """Return what the method of a row changes. Raises SkippedError for a base that has no figure."""
    sources, recipes = catalog.sources, catalog.recipes
    method = method_of(run, sources)
    if method in ("pretrain", "full"):
        return tuning_of(recipes, stack, method, 0)
    rank = sources.whole("lora_rank", run)
    if rank is None:
        rank = int(sources.usual("usual_rank"))
        assumed.append(f"lora_rank={rank}")
    states = sources.number("dtype_moments", run)
    quantization = _quantization(run, stack, method, catalog, assumed)
    held = recipes.bases[quantization] if quantization else 2.0  # the dtype columns are of the adapters
    # FSDP 1 flattens what it shards, adapters with a quantized base, so that all of it is stored in one 16-bit type
    usual = (stack.quantized_adapter or recipes.adapter) if quantization else adapter_bytes(recipes, stack)
    if (quantization and run.sharding == "fsdp") or sources.flag("narrow_adapters", run):
        usual = TrainedBytes(weight=2, gradient=2, moments=4)
    dropout = sources.number("adapter_dropout", run)
    return Tuning(
        trains_base=False, adapter_rank=rank, quantized=quantization is not None, base_bytes=held,
        base=quantization,
        table_bytes=(sources.number("table_bytes", run) if quantization else None) or 2.0,
        keeps_frozen_inputs=quantization is not None and stack.family == "hf-peft" and sources.flag(
            "keeps_quantized_inputs", run),
        dropout=stack.adapter_dropout if dropout is None else dropout,
        targets=_targets(run, stack, sources, assumed),
        adapter=TrainedBytes(weight=WEIGHT_BYTES.get(run.weights_dtype or "", usual.weight),
                             gradient=WEIGHT_BYTES.get(run.gradients_dtype or "", usual.gradient),
                             moments=usual.moments if states is None else states),
        trains_tables=sources.flag("trains_tables", run))


def _quantization(run: TrainRun, stack: Stack, method: str, catalog: Catalog, assumed: list[str]) -> str | None:
    stated = catalog.sources.word("base", run, stack=stack.name)
    if stated is None and method == "qlora":
        assumed.append("base_quantization=nf4-dq")
        return "nf4-dq"
    if stated is not None and stated not in catalog.recipes.bases:
        raise SkippedError(f"base_quantization {stated} is not modeled")
    return stated


def _targets(run: TrainRun, stack: Stack, sources: Sources, assumed: list[str]) -> frozenset[str] | None:
    """Return the modules that have adapters; none for all, where nothing is said, or nothing that is known."""
    stated = run.lora_targets or sources.word("targets", run)
    if stated is None:
        stated = "all-linear"
        assumed.append(f"lora_targets={stated}")
    said = sources.several("adapted", run, stack=stack.name, lora_targets=stated)
    return frozenset(places_of(name for names in said for name in names.split(","))) or None
