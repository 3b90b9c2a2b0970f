"""Predict serving speed, many rows at once: those of one model, format, engine and GPU are one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.engine import Engine
from planner.catalog.hardware import Gpu
from planner.catalog.load import Catalog
from planner.catalog.ranges import MOST_GPUS, MOST_WIDTH
from planner.catalog.speed import EngineSpeed
from planner.evidence.hardware import candidate_of, machine_gpus
from planner.evidence.rows import ServeMeasured, ServeRun, TrainRun
from planner.evidence.serve_limits import most_sequences, within
from planner.evidence.serve_run import EngineWorkers, ServingRow, serving_row
from planner.evidence.skipping import UNREADABLE, why
from planner.layouts.table import Ints
from planner.physics.serving.deployment import Deployment, Replicas, deployment_of
from planner.physics.serving.disaggregated import WorkerPool, disaggregated
from planner.physics.serving.formats import format_of
from planner.physics.serving.steady import RequestMix, SteadyState, closed, offline, static

DEGREES = (1, 2, 4, 8)
"""Tensor parallelism that is tried where a row leaves it open."""


@dataclass(frozen=True, slots=True)
class Speed:
    """What is predicted of a row: output tokens/s of one GPU as the evidence counts them, seconds, and its class."""

    row: ServingRow
    architecture: str
    kind: str
    release: str
    weights: str
    output: float
    ttft: float
    tpot: float

    @property
    def traits(self) -> dict[str, str]:
        """Return by what residuals are told apart."""
        return {"engine": self.row.engine, "architecture": self.architecture, "kind": self.kind,
                "release": self.release, "regime": "apart" if self.row.decode else self.row.regime,
                "tuned": "yes" if self.row.tuned else "no", "weights": self.weights, "gpu": self.row.gpu}


@dataclass(frozen=True, slots=True)
class DeploymentRows:
    """Rows that share a deployment; `at` says where each stands in the file."""

    deployment: Deployment
    memory: Engine
    reserves: bool
    """Whether the engine admits a request only when the cache has room for all of its answer."""
    rows: tuple[ServingRow, ...]
    at: tuple[int, ...]

    @property
    def engine(self) -> str:
        """Return the name of the engine."""
        return self.rows[0].engine


def predict_speeds(runs: Mapping[int, ServeRun], catalog: Catalog) -> dict[int, Speed | str]:
    """Return the speed of every row, or the reason why there is none."""
    by_row: dict[int, Speed | str] = {}
    rows: dict[int, ServingRow] = {}
    for at, run in runs.items():
        try:
            rows[at] = serving_row(run, catalog)
        except UNREADABLE as reason:
            by_row[at] = why(reason)
    groups = shared(rows, machine_gpus(catalog))
    while groups:
        members = groups.pop()
        try:
            group = group_of(members, rows, catalog)
            by_row.update(zip(group.at, predict(group), strict=True))
        except UNREADABLE as reason:
            if len(members) > 1:
                # one row that cannot be is no reason to skip those beside it
                groups += [[member] for member in members]
            else:
                by_row[members[0]] = why(reason)
    return by_row


def shared(rows: Mapping[int, ServingRow], machine: int) -> list[list[int]]:
    """Gather rows by what they share, those inside a machine of so many GPUs apart from others."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for at, row in rows.items():
        key = (row.model.name, row.model.layers, row.format, row.cache, row.engine, row.version, row.gpu,
               row.gpus > machine, row.tuned, row.scheduled, row.output_cv, row.in_step, row.waves, row.synchronous)
        groups.setdefault(key, []).append(at)
    return list(groups.values())


def group_of(members: Sequence[int], rows: Mapping[int, ServingRow], catalog: Catalog) -> DeploymentRows:
    """Return the deployment that some rows share. Raises PlannerError."""
    first, machine = rows[members[0]], machine_gpus(catalog)
    # what leaves one machine is taken to be in a rack where there is one
    candidate = candidate_of(TrainRun(gpu=first.gpu), catalog.stack("megatron-core"), catalog, [],
                             gpus=machine if first.gpus <= machine else MOST_GPUS)
    if candidate.scaleup is not None and candidate.scaleup.name == "pcie4-no-peer" and not first.gpu.startswith("rtx-"):
        candidate = replace(candidate, scaleup=catalog.fabric("pcie4-peer"))
    speed = engine_speed(first, candidate.gpu, catalog)
    formats = catalog.formats
    weights = format_of(formats, first.format, first.model) or formats.weights["bf16"]
    deployment = deployment_of(catalog, first.model, first.format, weights, formats.cache(first.cache), (candidate,),
                               speed)
    said = catalog.sources
    memory = catalog.engine(said.word("memory_engine", first) or first.engine)
    # what stands in for the memory of another engine does not schedule as it does
    ahead = memory.name == first.engine and memory.chooses_ahead(first.version) and not first.synchronous
    return DeploymentRows(replace(deployment, ahead=ahead), memory,
                 said.flag("reserves_answers", first), tuple(rows[m] for m in members), tuple(members))


def engine_speed(row: ServingRow, gpu: Gpu, catalog: Catalog) -> EngineSpeed:
    """Return the engine's speed as a row ran it, by its release."""
    return as_it_ran(catalog.speeds(row.engine).release(row.version, gpu.architecture), row, gpu, catalog)


def as_it_ran(speed: EngineSpeed, row: ServingRow, gpu: Gpu, catalog: Catalog) -> EngineSpeed:
    """Return a release as a row ran it: with its defaults on that GPU, or tuned for a benchmark."""
    if row.tuned:
        # a batch limit is the first that is set, to what memory holds
        return speed.quicker(catalog.serving_law.tuned).model_copy(update={"sequences": MOST_WIDTH})
    memory = catalog.sources.word("memory_engine", row) or row.engine
    limits = catalog.engine(memory).release(row.version).limits(gpu.usable_memory, gpu.architecture)
    # engines that let prompts go first take them whole
    chunk = speed.chunk if speed.prefill_first else min(speed.chunk, limits.tokens)
    return speed.model_copy(update={"chunk": chunk, "sequences": min(speed.sequences, limits.sequences)})


def predict(group: DeploymentRows) -> list[Speed]:
    """Return the speeds of the rows of a group."""
    d, rows, gpu = group.deployment, group.rows, group.deployment.candidates[0].gpu
    kinds: dict[tuple[str, bool, bool, int], list[int]] = {}
    for at, row in enumerate(rows):
        key = "limited" if row.limits else row.regime, row.tp is None, row.decode is not None, row.drafts
        kinds.setdefault(key, []).append(at)
    speeds: dict[int, Speed] = {}
    for (regime, free, parted, _), members in kinds.items():
        chosen = [rows[m] for m in members]
        service = (_disaggregated(group, chosen) if parted
                   else _best(group, chosen, regime) if free else _stated(group, chosen, regime, DEGREES[0]))
        gpus = np.array([row.cards for row in chosen])
        for at, *numbers in zip(members, service.tokens / gpus, service.ttft, service.tpot, strict=True):
            speeds[at] = Speed(rows[at], gpu.architecture, "moe" if d.model.mixes_experts else "dense",
                               d.engine.version, d.held_as(gpu), *map(float, numbers))
    return [speeds[at] for at in range(len(rows))]


def _demand(rows: Sequence[ServingRow]) -> RequestMix:
    return RequestMix(np.array([r.input for r in rows]), np.array([r.output for r in rows]),
                  np.array([r.clients or 1.0 for r in rows]), rows[0].drafts, rows[0].accepted,
                  output_cv=rows[0].output_cv, prompts=np.array([r.prompts or np.inf for r in rows]),
                      scheduled=rows[0].scheduled, in_step=rows[0].in_step, waves=rows[0].waves)


def _stated(group: DeploymentRows, rows: Sequence[ServingRow], regime: str, tp: int) -> SteadyState:
    """Return what all copies of a layout do together, its tp as stated or else `tp`."""
    layout = Replicas(*(np.array(column, np.int64) for column in (
        [0] * len(rows), [r.tp or min(tp, r.gpus) for r in rows], [r.pp for r in rows], [r.ep for r in rows],
        [r.dp for r in rows])))
    copies = np.maximum(1, np.array([r.gpus for r in rows]) // layout.gpus)
    demand = _demand(rows)
    each = replace(demand, clients=np.maximum(1.0, demand.clients / copies), prompts=demand.prompts / copies)
    d = group.deployment
    # sequences that start together end together; those that do not hold half of their answers on average
    whole = group.reserves or regime in ("static", "first", "decode")
    most = most_sequences(d, group.memory, rows[0].version, layout, demand.input + demand.output / (1 if whole else 2))
    if regime in ("static", "first", "decode"):
        service = static(d, layout, each, most)
        if regime == "decode":
            service = replace(service, tokens=service.batch / service.tpot)
    elif regime == "closed":
        service = closed(d, layout, each, most)
    elif regime == "limited":
        service = within(d, layout, rows, most, copies)
        # who comes waits for half of the steps that are scheduled at once
        service = replace(service, ttft=service.ttft + (rows[0].scheduled - 1) / 2 * service.tpot)
    else:
        service = offline(d, layout, each, most)
    misfit = (most < 1) & np.array([r.tp is None for r in rows])
    return replace(service, tokens=np.where(misfit, 0.0, service.tokens * copies))


def _best(group: DeploymentRows, rows: Sequence[ServingRow], regime: str) -> SteadyState:
    """Return the most that any tensor parallelism gives."""
    best: SteadyState | None = None
    for tp in DEGREES:
        service = _stated(group, rows, regime, tp)
        better = np.ones(len(rows), bool) if best is None else service.tokens > best.tokens
        best = service if best is None else SteadyState(*(
            np.where(better, getattr(service, name), getattr(best, name)) for name in SteadyState.__slots__))
    assert best is not None
    return best


def _disaggregated(group: DeploymentRows, rows: Sequence[ServingRow]) -> SteadyState:
    """Return what prefill and decode workers do together in a closed loop."""
    pools = []
    for workers in ([r.prefill for r in rows], [r.decode for r in rows]):
        stated = [w for w in workers if w is not None]
        pools.append(WorkerPool(_replicas(stated), np.array([float(w.count) for w in stated])))
    demand = _demand(rows)
    most = most_sequences(group.deployment, group.memory, rows[0].version, pools[1].rows, demand.input + demand.output)
    return disaggregated(group.deployment, pools[0], pools[1], demand, most)


def _replicas(workers: Sequence[EngineWorkers]) -> Replicas:
    def column(name: str) -> Ints:
        return np.array([getattr(w, name) for w in workers], np.int64)

    ones = np.ones(len(workers), np.int64)
    return Replicas(0 * ones, column("tp"), ones, column("ep"), column("dp"))


def quantities(run: ServeRun, measured: ServeMeasured, speed: Speed) -> Iterator[tuple[str, float, float]]:
    """Yield name, predicted and measured of every quantity that a row states and that is compared.

    Output tokens where a row gives only those of both directions are their share by length; a batch that is full from
    the start has no time to the first token that anyone waits for.
    """
    lengths = speed.row.input + speed.row.output
    output, total = measured.output_tok_s_per_gpu, measured.total_tok_s_per_gpu
    if not output and measured.output_tok_s_total and run.gpus:
        output = measured.output_tok_s_total / run.gpus
    if not output and total:
        output = total * speed.row.output / lengths
        yield "total_tok_s_per_gpu", speed.output * lengths / speed.row.output, total
    if output:
        yield "output_tok_s_per_gpu", speed.output, output
    if measured.ttft_ms and speed.row.regime != "offline" and not speed.row.warming:
        yield "ttft_ms", speed.ttft * 1e3, measured.ttft_ms
    if measured.tpot_ms:
        yield "tpot_ms", speed.tpot * 1e3, measured.tpot_ms


def rates(run: ServeRun, measured: ServeMeasured, speed: Speed) -> tuple[float, float] | None:
    """Return predicted and measured output tokens/s of a GPU by which layouts are ranked; none without a measurement.

    Where only times were measured, a closed loop of C clients gives C output / (TTFT + (output - 1) TPOT).
    """
    for name, predicted, held in quantities(run, measured, speed):
        if name == "output_tok_s_per_gpu":
            return predicted, held
    row = speed.row
    if row.clients is None or not measured.ttft_ms or not measured.tpot_ms:
        return None

    def rate(ttft: float, tpot: float) -> float:
        return (row.clients or 0.0) * row.output / (ttft + (row.output - 1) * tpot) / row.gpus

    return rate(speed.ttft, speed.tpot), rate(measured.ttft_ms / 1e3, measured.tpot_ms / 1e3)
