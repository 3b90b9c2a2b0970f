"""Published runs that made images or clips, or ran an autoencoder alone, against what is predicted of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from planner.answer.validation import Entry
from planner.catalog.diffusion import Diffusion
from planner.catalog.generation_law import StepCache
from planner.catalog.load import Catalog
from planner.errors import UnknownName
from planner.evidence.skipping import SkippedError
from planner.jobs.diffusion.options import interval
from planner.jobs.generation.options import CallWay, fits, option, pictures
from planner.money.rent import usual_candidate
from planner.physics.diffusion.generate import CallSplit, Picture, coding_bytes, coding_seconds
from planner.physics.diffusion.rates import STORED, Rates
from planner.physics.diffusion.shape import sample_of
from planner.scenario.generation import Generation
from planner.scenario.hardware_names import node_named
from planner.scenario.pixels import resolution_of
from planner.units import GIB

CONFIDENCE = 0.95
"""Of the verdict that is held against runs that ended for want of memory."""


@dataclass(frozen=True, slots=True)
class GenerationAsked:
    """What a row says was run. Words as in `DiffusionRun`; batch in images of a call."""

    stack: str
    model: str
    component: str
    gpu: str | None
    gpus: int
    resolution: str
    frames: int
    batch: int | None
    steps: int | None
    precision: str
    quantization: str
    offload: str
    compiled: bool
    parallel: str


@dataclass(frozen=True, slots=True)
class GenerationPrediction:
    """What a run is predicted to take: seconds of a call, samples a second of all GPUs, GiB of one; none is not told.
    """

    seconds: float | None
    rate: float | None
    gib: float
    fits: str | None
    likely: bool
    assumed: tuple[str, ...]


def predict_generation(run: GenerationAsked, catalog: Catalog) -> GenerationPrediction:
    """Return what a run takes. Raises SkippedError, or UnknownName for a GPU."""
    runs = catalog.generation_runs
    printed = run.model.lower()
    try:
        model = catalog.diffusion(runs.models.get(printed, run.model))
    except UnknownName:
        raise SkippedError(f"{run.model or 'no model'} is not in the catalog of diffusion models") from None
    stated = resolution_of(run.resolution)
    if stated is None:
        raise SkippedError(f"the resolution is not stated: {run.resolution}")
    # of a clip a table says height first
    size = tuple(sorted(stated, reverse=True)) if model.media == "video" else stated
    if run.component:
        return _coding(run, model, (size[0], size[1]), catalog)
    return _whole(run, model, (size[0], size[1]), catalog)


def _coding(run: GenerationAsked, model: Diffusion, size: tuple[int, int], catalog: Catalog) -> GenerationPrediction:
    """Return what an autoencoder takes alone, as the device shows it."""
    vae, law = model.autoencoder, catalog.generation_law
    coding = {"vae decode": vae.decode, "vae encode": vae.encode}.get(run.component.lower())
    if coding is None:
        raise SkippedError(f"component {run.component} is not modeled")
    split = CallSplit(run.batch or 1, tiled="tiled" in run.offload.lower())
    picture = Picture(model, sample_of(model, size, run.frames), size[0] * size[1], run.frames, 1, 1,
                      bf16="bf16" in run.precision.lower())
    weights = vae.parameters * STORED * picture.widened(law)
    gib = (weights + coding_bytes(picture, split, law, coding) * law.held) / GIB
    seconds = None
    if run.gpu is not None:
        gpu = catalog.node(node_named(run.gpu, catalog, 1)[0]).gpu
        known = catalog.gpu(gpu)
        seconds = coding_seconds(picture, split, law, Rates(known, catalog.rates(known.architecture)), coding)
    return GenerationPrediction(seconds, None, gib, None, likely=True, assumed=())


def _whole(run: GenerationAsked, model: Diffusion, size: tuple[int, int], catalog: Catalog) -> GenerationPrediction:
    runs, law = catalog.generation_runs, catalog.generation_law
    stored = runs.formats.get(run.quantization.lower() or run.precision.lower())
    if stored is None:
        raise SkippedError(f"a denoiser in {run.quantization or run.precision or 'no format'} is not modeled")
    stack = run.stack.partition(" v")[0].strip().lower()
    if stack in runs.other:
        raise SkippedError(f"{run.stack}: {runs.other[stack]}")
    steps = run.steps or runs.steps.get(run.model.lower())
    batch = run.batch or runs.batches.get(stack, 1)
    compiled = run.compiled or stack in runs.compiled
    work = Generation.model_validate({
        "model": model.name, "resolution": f"{size[0]}x{size[1]}", "frames": run.frames, "steps": steps,
        "quantization": [stored], "compile": compiled})
    cache: StepCache = next((kind for word, kind in runs.caches.items() if word in run.parallel.lower()), "none")
    ran = partial(replace, cache=cache, bf16="bf16" in run.precision.lower())
    picture = ran(pictures(work, catalog)[0])
    offload = next((how for word, how in runs.offloads.items() if word in run.offload.lower()), None)
    if run.offload and offload is None and "til" not in run.offload:
        raise SkippedError(f"offload {run.offload} is not modeled")
    split = _split(run, model, CallSplit(batch, offload or "none", tiled="til" in run.offload.lower()), picture)
    if model.name in runs.encoders_quantized:
        picture = replace(picture, encoders=law.formats[stored].weight)
    known = run.gpu is not None and stack not in runs.gpu_unsure
    name = run.gpu if known and run.gpu else runs.stand_in
    candidate = usual_candidate(catalog.node(node_named(name, catalog, split.gpus)[0]), catalog)
    way = option(catalog, (candidate,), 0, picture, split)
    gib = max(each.allocated for each in way.moments.values()) / GIB
    if stored != "bf16" and stack in runs.quantized_on_gpu:
        # all parts are there in 16 bits before
        whole = option(catalog, (candidate,), 0, ran(pictures(work.model_copy(update={
            "quantization": ("bf16",)}), catalog)[0]), split)
        gib = max(gib, whole.moments["encode"].allocated / GIB)
    assumed = [f"{what}={value}" for what, value, given in (
        ("steps", steps, run.steps), ("batch", batch, run.batch), ("stack", law.stack, stack == law.stack))
        if not given and value]
    seconds = way.call if known and steps else None
    rate = None if seconds is None else batch / seconds * max(1, run.gpus // split.gpus)
    return GenerationPrediction(seconds, rate, gib, _verdict(way, candidate, catalog) if known else None,
                                way.likely and stack in runs.alike, tuple(assumed))


def _verdict(way: CallWay, candidate: object, catalog: Catalog) -> str:
    return fits(way, candidate, catalog.generation_law, CONFIDENCE)  # type: ignore[arg-type]


def _split(run: GenerationAsked, model: Diffusion, split: CallSplit, picture: Picture) -> CallSplit:
    """Return a split over the GPUs that share one call: as the row names the way, or copies where it names none."""
    said = run.parallel.lower()
    if run.gpus == 1 or not said:
        return split
    for word, axis in (("ulysses", "ulysses"), ("ring", "ring"), ("pipefusion", "pipefusion")):
        if word in said:
            return CallSplit(split.batch, split.offload, split.tiled, **{axis: run.gpus})
    if "cfg" in said and run.gpus == picture.passes:
        return CallSplit(split.batch, split.offload, split.tiled, cfg=run.gpus)
    raise SkippedError(f"parallelism {run.parallel} is not modeled")


def generation_entries(name: str, run: GenerationAsked, measured: tuple[float | None, float | None, float | None],
                       holds: bool | None, *, loaded: bool, catalog: Catalog) -> Iterator[Entry]:
    """Yield the entries of a row; measured: seconds of a call, samples a second, GiB. loaded: whether the seconds are
    of requests that wait.
    """
    made, law = predict_generation(run, catalog), catalog.generation_law
    latency, rate, gib = measured
    for quantity, value, predicted, residue in (
            ("latency_s", None if loaded else latency, made.seconds, law.seconds),
            ("throughput", rate, made.rate, law.seconds), ("peak_mem_gib", gib, made.gib, law.memory)):
        if value is not None and predicted is not None:
            low, high = interval(law, residue, likely=made.likely)
            ends = (predicted / high, predicted / low) if quantity == "throughput" else (
                predicted * low, predicted * high)
            yield Entry(id=name, quantity=quantity, predicted=predicted, measured=value, error=predicted / value - 1,
                        interval90=ends, assumed=made.assumed)
    if holds is not None and made.fits is not None:
        yield Entry(id=name, quantity="fits", predicted=made.fits, measured="yes" if holds else "no", error=None,
                    assumed=made.assumed)

