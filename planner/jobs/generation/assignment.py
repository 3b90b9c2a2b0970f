"""Replicas that make images or clips as an assignment: where bytes and seconds go, latencies, what they cost."""

from __future__ import annotations

import math
from typing import Any

from planner.answer.assignment import ServingAssignment
from planner.answer.breakdown import Evidence, Memory, MemoryComponents, Time, TimeComponents
from planner.answer.layout import Layout, Offload
from planner.answer.level import Made, Percentiles, Replayed, ServingFigures
from planner.catalog.diffusion_law import Residue
from planner.catalog.generation_law import GenerationLaw
from planner.catalog.published import MAKING, TASK
from planner.jobs.diffusion.options import interval
from planner.jobs.generation.options import CallWay, ends, fits, sure_bytes
from planner.jobs.generation.queue import Queue
from planner.jobs.serving.assignment import WHOLE, ReplicaPlace
from planner.jobs.serving.delivered import percentiles
from planner.layouts.candidate import Candidate
from planner.physics.diffusion.shape import forward_flops
from planner.physics.serving.deployment import run_as
from planner.scenario.extent import said
from planner.scenario.generation import Generation
from planner.scenario.pixels import Resolution


def generation_assignment(name: str, work: Generation, way: CallWay, candidate: Candidate, law: GenerationLaw,
                          confidence: float, placed: ReplicaPlace, queue: Queue, replayed: Replayed | None = None
                          ) -> ServingAssignment:
    """Return replicas of one way as an assignment. work: resolved; queue: what the replicas get and how they wait."""
    split, offer = way.split, placed.offer
    latency = percentiles(queue.latency, work.e2e)
    return ServingAssignment(
        workload=name, model=work.model, method="inference", node=candidate.node.name, gpu=candidate.gpu.name,
        nodes=placed.nodes, gpus=way.gpus * placed.replicas, idle_gpus=placed.idle,
        offer=offer.label if offer else None, sourcing=offer.how if offer else None,
        usd_per_node_hour=placed.usd_per_node_hour,
        stack=law.stack,
        layout=Layout(tp=1, pp=split.pipefusion, vpp=1, cp=split.ulysses * split.ring, ep=1,
                      dp=split.cfg * placed.replicas, shard=1, zero=0, micro_batch=split.batch, micro_batches=1,
                      recompute="none", precision=run_as(way.picture.stored, candidate.gpu),
                      cp_method=None if split.ulysses * split.ring == 1 else "ring" if split.ring > 1 else "all-to-all",
                      offload=Offload(parameters=float(split.offload != "none"),
                                      to="none" if split.offload == "none" else "host")),
        memory=_memory(way, candidate, law, confidence, placed.replicas), time=_time(way, candidate, law),
        serving=ServingFigures(
            replicas=placed.replicas, requests_per_second=queue.rate * placed.replicas,
            ttft_seconds=Percentiles(p50=latency.p50, p95=latency.p95), tpot_seconds=Percentiles(p50=0.0, p95=0.0),
            e2e_seconds=None if work.e2e is None else latency,
            documents=work.ends, output_tokens_per_second_per_gpu=0.0, max_batch=split.batch, kv_tokens=0,
            part_of_nodes=None if placed.part > WHOLE else placed.part, nodes_by_hour=placed.daily,
            replicas_by_hour=placed.hourly, made=_made(work, way, law), replayed=replayed),
        duration_days=placed.days, cost_usd=placed.cost_usd,
        energy_kwh=placed.energy_kwh(candidate.node.power, queue.busy), purchase=placed.purchase)


def _made(work: Generation, way: CallWay, law: GenerationLaw) -> Made:
    picture, split = way.picture, way.split
    low, high = ends(law, way)
    each = way.call / split.batch
    return Made(media=picture.model.media, resolution=said(
                    work.resolution or Resolution(picture.model.resolution), None, work.audio),
                frames=picture.frames, steps=picture.steps, passes=picture.passes, batch=split.batch,
                offload=split.offload, vae="tiled" if split.tiled else "whole", cfg=split.cfg, ulysses=split.ulysses,
                ring=split.ring, pipefusion=split.pipefusion, call_seconds=way.call, seconds_each=each,
                interval90_seconds_each=(each * low, each * high), seconds=dict(way.seconds),
                bytes={moment: round(way.bytes_at(moment)) for moment in way.moments})


def _evidence(residue: Residue, law: GenerationLaw, *, likely: bool) -> Evidence:
    return Evidence(rows=residue.rows if likely else 0, sources=law.sources if likely else 0,
                    median_abs_error=residue.error if likely else None, validated=likely,
                    alike={TASK: MAKING, "stack": law.stack} if likely else None)


def _memory(way: CallWay, candidate: Candidate, law: GenerationLaw, confidence: float, replicas: int) -> Memory:
    worst = way.moments[way.worst]
    parts: dict[str, Any] = {"weights": round(worst.weights), "activations": round(worst.activations * worst.held)}
    parts["framework"] = round(way.peak) - sum(parts.values())
    parts["reserve"] = round(sure_bytes(way, law, confidence) - way.peak)
    low, high = interval(law, law.memory, likely=way.alike)
    together = min(replicas, max(1, candidate.node.gpus // way.gpus))
    return Memory(fits=fits(way, candidate, law, confidence),
                  usable_bytes=int(candidate.gpu.usable_memory), peak_bytes=sum(parts.values()),
                  components=MemoryComponents(**parts), host_bytes_per_node=round(way.host * together),
                  host_usable_bytes=int(candidate.node.cpu.memory),
                  interval90_bytes=(round(way.peak * low), round(way.peak * high)),
                  evidence=_evidence(law.memory, law, likely=way.alike))


def _time(way: CallWay, candidate: Candidate, law: GenerationLaw) -> Time:
    spent, picture = way.seconds, way.picture
    low, high = ends(law, way)
    flops = sum(forward_flops(picture.model, picture.sample)) * way.split.batch * picture.steps * picture.passes
    rate = flops / way.call / way.gpus
    peak = candidate.gpu.halves or candidate.gpu.peak["fp16"]
    parts = {"compute": spent["encode"] + spent["denoise"] + spent["decode"], "context_parallel": spent["exchange"],
             "offload": spent["offload"], "other": spent["other"]}
    return Time(step_seconds=math.fsum(parts.values()), components=TimeComponents(**parts),
                tokens_per_second_per_gpu=0.0, model_tflops_per_gpu=rate / 1e12, mfu=rate / peak,
                interval90_seconds=(way.call * low, way.call * high),
                evidence=_evidence(law.seconds, law, likely=way.likely))
