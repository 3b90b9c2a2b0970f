"""Replicas for a service as an assignment: layout, memory, a decode step at the planned load, latencies, cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.answer.assignment import ServingAssignment
from planner.answer.bought import Bought
from planner.answer.breakdown import Memory, MemoryComponents, Time, TimeComponents, evidence_of
from planner.answer.layout import Layout
from planner.answer.level import Adapters, Percentiles, Replayed, ServingFigures
from planner.catalog.hardware import NodePower
from planner.catalog.residuals import Residual
from planner.jobs.serving.service import Service
from planner.money.rent import RentalOffer
from planner.physics.serving.adapters import slot_bytes
from planner.physics.serving.capacity import Capacity
from planner.physics.serving.deployment import Deployment, Replicas, run_as
from planner.physics.serving.sequences import Cut
from planner.physics.serving.settings import USUAL, EngineSettings
from planner.physics.serving.step import StepLoad, least_seconds, step_times
from planner.physics.shapes import active_parameters
from planner.units import DAY, HOUR, MONTH_DAYS

WATT_HOURS = 1000
WHOLE = 1 - 1e-9
"""Part of nodes from which on nobody else runs there."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one kind of replica does at the planned load: seconds, requests/s of one replica, sequences that decode."""

    rate: float
    batch: float
    context: float
    """Tokens in the cache of a sequence, on average."""
    ttft: Percentiles
    tpot: Percentiles
    input: float
    output: float
    busy: float = 0.0
    """Share of the time that prompts are at work."""
    e2e: Percentiles | None = None
    users: float | None = None
    """Of a closed loop, on one replica."""
    load_share: float | None = None
    """Of the most that the replica holds within the targets."""
    overloaded: bool = False
    """Whether more is asked for than it answers."""


@dataclass(frozen=True, slots=True)
class ReplicaPlace:
    """Where the replicas run: nodes in all, and the offer they come from."""

    replicas: int
    nodes: int
    offer: RentalOffer | None
    usd_per_node_hour: float | None = None
    part: float = 1.0
    """Of the nodes, what these replicas pay for: others that run on them pay the rest."""
    daily: tuple[int, ...] | None = None
    """Nodes in each hour, where they are not as many at every one."""
    share: float = 1.0
    """Of the hours of what they pay for, in which they run."""
    role: Literal["whole", "prefill", "decode"] = "whole"
    settings: EngineSettings = USUAL
    """What the engine is started with."""
    purchase: Bought | None = None
    prompts: tuple[int, int | None] | None = None
    """Tokens of the prompts that they answer, where not all: from, and up to and with."""
    idle: int = 0
    """GPUs of the nodes that no replica of anything uses; of several that share nodes the first says so."""
    hourly: tuple[int, ...] | None = None
    """Replicas in each hour, where they are not as many at every one."""

    @property
    def days(self) -> float | None:
        """Days that are counted: a month, of nodes that are as many at every hour."""
        return MONTH_DAYS if self.offer is not None and self.daily is None else None

    @property
    def cost_usd(self) -> float | None:
        """What the nodes cost in these days, to the cent."""
        usd, days = self.usd_per_node_hour, self.days
        return None if usd is None or days is None else round(self.nodes * usd * 24 * days, 2)

    def energy_kwh(self, power: NodePower, load: float) -> float | None:
        """Return the energy of a month of what these replicas pay for, at a share of the load; none without an offer.
        """
        watts = self.nodes * self.part * (power.idle + load * (power.load - power.idle))
        return None if self.offer is None else float(watts * self.share * 24 * MONTH_DAYS / WATT_HOURS)


def served_assignment(service: Service, d: Deployment, rows: Replicas, held: Capacity, delivered: Delivered,
                      placed: ReplicaPlace, residual: Residual, replayed: Replayed | None = None) -> ServingAssignment:
    """Return replicas of one layout (a table of one row) as an assignment.

    residual: measured over predicted seconds per token of comparable runs.
    """
    asked, candidate = service.asked, d.candidates[0]
    each, gpus = int(rows.gpus[0]), int(rows.gpus[0]) * placed.replicas
    tokens = delivered.rate * delivered.output / each
    fits = held.concurrency[0] >= 1
    nodes, offer = placed.nodes, placed.offer
    usd = placed.usd_per_node_hour
    load = 1 - np.exp(-delivered.batch) * (1 - delivered.busy)
    return ServingAssignment(
        workload=asked.label, model=d.model.name, node=candidate.node.name, gpu=candidate.gpu.name, nodes=nodes,
        gpus=gpus,
        idle_gpus=placed.idle,
        offer=offer.label if offer else None, sourcing=offer.how if offer else None, usd_per_node_hour=usd,
        stack=asked.engine,
        layout=_layout(d, rows, placed.replicas, delivered.batch), memory=_memory(d, held, fits=bool(fits)),
        time=_time(d, rows, delivered, tokens, residual),
        serving=ServingFigures(replicas=placed.replicas, requests_per_second=delivered.rate * placed.replicas,
                        ttft_seconds=delivered.ttft, tpot_seconds=delivered.tpot, e2e_seconds=delivered.e2e,
                        users=None if delivered.users is None else delivered.users * placed.replicas,
                        load_share=delivered.load_share, overloaded=delivered.overloaded,
                        output_tokens_per_second_per_gpu=tokens,
                        max_batch=max(1, int(min(math.inf if d.model.encodes else held.concurrency[0],
                                                 d.engine.sequences * int(rows.dp[0])))),
                        kv_tokens=0 if d.model.encodes else kv_tokens(held, rows), role=placed.role,
                        prompts=placed.prompts,
                        part_of_nodes=None if placed.part > WHOLE else placed.part,
                        memory_fraction=placed.settings.fraction,
                        max_model_len=service.length,
                        kv_cache=None if asked.kv_cache == "auto" else asked.kv_cache,
                        drafts=asked.speculative.tokens if asked.speculative else None,
                        adapters=_adapters(d, rows),
                        max_batched_tokens=placed.settings.tokens, prefill_delay=placed.settings.delay or None,
                        max_sequences=placed.settings.sequences,
                        nodes_by_hour=placed.daily, replicas_by_hour=placed.hourly, replayed=replayed),
        duration_days=placed.days, cost_usd=placed.cost_usd, energy_kwh=placed.energy_kwh(candidate.node.power, load),
        purchase=placed.purchase,
        committed_usd=_committed(offer, nodes, usd))


def kv_tokens(held: Capacity, rows: Replicas) -> int:
    """Return the tokens that the cache of a replica holds, of a table of one row."""
    return int(max(held.tokens[0], 0) * int(rows.dp[0]))


def _committed(offer: RentalOffer | None, nodes: float, usd: float | None) -> float | None:
    """Return what an offer that commits for more than a month is paid over its whole term."""
    if offer is None or usd is None or offer.commitment <= MONTH_DAYS * DAY:
        return None
    return nodes * usd * offer.commitment / HOUR


def _adapters(d: Deployment, rows: Replicas) -> Adapters | None:
    if d.adapters is None:
        return None
    held = slot_bytes(d.model, d.adapters, Cut(rows.tp * rows.dp, rows.pp, rows.dp))
    return Adapters(count=d.adapters.count, rank=d.adapters.rank, bytes_per_gpu=round(float(held[0])))


def batch_of(sequences: float, dp: int, pp: int) -> float:
    """Return the sequences that decode at once as an assignment has them: alike on all copies and stages."""
    return float(max(1, round(sequences / (dp * pp))) * dp * pp)


def _layout(d: Deployment, rows: Replicas, replicas: int, batch: float) -> Layout:
    tp, pp, dp, ep = (int(column[0]) for column in (rows.tp, rows.pp, rows.dp, rows.ep))
    return Layout(tp=tp, pp=pp, vpp=1, cp=1, ep=ep, dp=dp * replicas, shard=1, zero=0,
                  micro_batch=round(batch_of(batch, dp, pp) / (dp * pp)), micro_batches=pp,
                  recompute="none", precision=run_as(d.format, d.candidates[0].gpu),
                  expert_tp=tp * dp // ep if d.model.mixes_experts else None)


def _memory(d: Deployment, held: Capacity, *, fits: bool) -> Memory:
    # every stage holds as many tokens as the one that has least room for them
    parts = {"weights": held.weights[0], "activations": held.activations[0], "framework": held.apart[0]}
    whole, usable = {name: round(float(value)) for name, value in parts.items()}, int(
        d.candidates[0].gpu.usable_memory)
    # an encoder keeps nothing of what it read
    cache = 0 if d.model.encodes else max(int(held.worst_pool[0]), 0)
    if fits:  # an engine that takes all there is takes no byte more
        cache = min(cache, usable - sum(whole.values()))
    return Memory(fits="fits" if fits else "does not fit", usable_bytes=usable, peak_bytes=sum(whole.values()) + cache,
                  components=MemoryComponents(kv_cache=cache, **whole))


def _time(d: Deployment, rows: Replicas, delivered: Delivered, tokens: float, residual: Residual) -> Time:
    """Return a decode step at the planned load; of replicas that only read, a step with one prompt on each copy."""
    none = np.zeros(1)
    reads = min(delivered.input, float(d.engine.chunk)) * (rows.dp * rows.pp).astype(np.float64)
    load = StepLoad(none, none, reads, none + delivered.input / 2) if delivered.output <= 1 else StepLoad(
        np.full(1, max(delivered.batch, 1.0)), np.full(1, delivered.context), none, none)
    step, least = step_times(d, rows, load), float(least_seconds(d, rows, load)[0])
    total, compute = float(step.total[0]), float((step.products + step.experts + step.cache + step.attention)[0])
    exchange = float(step.exchange[0])
    split = "expert_parallel" if int(rows.dp[0]) > 1 else "tensor_parallel" if int(rows.tp[0]) > 1 else "pipeline_p2p"
    parts = {"compute": compute, split: exchange}
    parts["other"] = total - compute - exchange
    flops = 2 * active_parameters(d.model) * delivered.rate * (delivered.input + delivered.output) / int(rows.gpus[0])
    gpu = d.candidates[0].gpu
    return Time(step_seconds=total, components=TimeComponents(**parts), tokens_per_second_per_gpu=tokens,
                model_tflops_per_gpu=flops / 1e12, mfu=flops / gpu.peak[d.computes(gpu)],  # type: ignore[index]
                interval90_seconds=(min(total, max(total * residual.q05, least)), total * residual.q95),
                evidence=evidence_of(residual))
