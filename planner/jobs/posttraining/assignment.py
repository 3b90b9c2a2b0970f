"""One way of reinforcement learning as an assignment: phases, bytes and seconds of each role, and what it costs."""

from __future__ import annotations

import math
from typing import Any

from planner.answer.assignment import PostTrainingAssignment
from planner.answer.bought import bought_of
from planner.answer.breakdown import Evidence, Fits, Memory, MemoryComponents, Time, TimeComponents
from planner.answer.layout import Layout, Offload
from planner.answer.posttraining import RlPhase, RlRollouts
from planner.catalog.posttraining import FrameworkResidue, ModelKind, PostTrainingLaw
from planner.catalog.published import LEARNING, TASK
from planner.jobs.columns import Run
from planner.jobs.posttraining.way import RlWay, batch_bytes, on_node
from planner.jobs.quanta import offered, used_by
from planner.layouts.axes import RECOMPUTE
from planner.layouts.candidate import Candidate
from planner.physics.posttraining.passes import STATES
from planner.physics.posttraining.step import WAITING, Phase, updated_there
from planner.scenario.posttraining import PostTraining
from planner.solver.quantize import DURATION_QUANTUM, PRICE_QUANTUM
from planner.units import DAY

_HOLDS = {"rollout weights": "weights", "frozen models": "weights", "cache": "kv_cache"}
"""Parts of a phase in which nothing is updated -> components of memory; what is left is the framework's."""
_TRAINED = ("policy", "critic")
"""Parts that are a model with what its updates need, or where that waits on the host its weights alone."""


def verdict(way: RlWay) -> Fits:
    """Return whether it fits at the confidence, only at the median, or not; the host must hold its part."""
    if way.lacking <= 0:
        return "fits"
    reserve = way.policy.peak.memory.components["reserve"]
    return "tight" if way.host <= way.host_usable and way.peak - reserve <= way.usable else "does not fit"


def kind_of(way: RlWay) -> ModelKind:
    """Return which kind of model learns, as published runs are told apart by it."""
    return "mixture" if way.question.policy.model.mixes_experts else "dense"


def spread_of(law: PostTrainingLaw, residue: FrameworkResidue, way: RlWay, share: float) -> float:
    """Return a quantile of measured over predicted; wider where the framework has no runs of such a model."""
    return residue.at(share, law.widened(residue, way.framework, kind_of(way)))


def assignment_of(name: str, work: PostTraining, way: RlWay, candidates: tuple[Candidate, ...], law: PostTrainingLaw,
                  run: Run | None = None, goodput: float = 1.0) -> PostTrainingAssignment:
    """Return one way in full; with a run also what it takes and costs. work: resolved."""
    candidate, on, row = candidates[way.candidate], candidates[way.rollouts_on], way.layout
    placed, rollouts = way.placed, way.rollouts
    drawing = placed.rollouts or placed.trainer
    nodes = -(-placed.trainer // candidate.node.gpus)
    if placed.rollouts:
        nodes = -(-placed.gpus // candidate.node.gpus) if way.rollouts_on == way.candidate else nodes + -(
            -placed.rollouts // on.node.gpus)
    tp, dp, cp = int(row.get("tp", 1)), int(row.get("dp", 1)), int(row.get("cp", 1))
    zero, out, away = int(row["zero"]), float(row.get("offload", 0.0)), float(row.get("offload_activations", 0.0))
    own = {phase.name: float(phase.seconds) for phase in way.made.phases}
    waited = math.fsum(own.get(phase, 0.0) for phase in WAITING)
    worked = math.fsum(own.values()) - waited
    made: dict[str, Any] = {
        "workload": name, "model": work.model, "method": work.method, "tuning": work.tuning,
        "node": candidate.node.name, "gpu": candidate.gpu.name, "nodes": nodes, "gpus": way.gpus,
        "stack": way.question.stack,
        "framework": way.framework, "placement": "colocated" if placed.colocated else "disaggregated",
        "policy_lag": placed.lag, "trainer_gpus": placed.trainer, "swapped": placed.swaps,
        "layout": Layout(tp=tp, pp=int(row.get("pp", 1)), vpp=1, cp=cp, ep=int(row.get("ep", 1)),
                         expert_tp=(int(row["expert_tp"]) or tp) if way.question.policy.model.mixes_experts else None,
                         dp=dp, shard=dp * cp if zero else 1, zero=zero, micro_batch=way.policy.micro_batch,
                         micro_batches=way.policy.micro_batches,
                         recompute=RECOMPUTE[int(row["recompute"])],
                         sequence_parallel=tp > 1 and way.question.policy.stack.sequence_parallel,
                         precision=way.question.policy.typical.precisions[0],
                         offload=Offload(optimizer=out, parameters=float(row.get("offload_parameters", 0.0)),
                                         activations=away, to="host" if out or away else "none")),
        "memory": _memory(way, candidate, law), "time": _time(way, work, candidate, law),
        "rollouts": RlRollouts(
            engine=way.engine, node=on.node.name, gpu=on.gpu.name, gpus=drawing, nodes=-(-drawing // on.node.gpus),
            replicas=rollouts.replicas, tp=rollouts.tp, pp=rollouts.pp, ep=rollouts.ep, dp=rollouts.dp,
            memory_fraction=min(1.0, (rollouts.drawn.weights + rollouts.drawn.cache + rollouts.drawn.work)
                                / on.gpu.memory), concurrency=rollouts.drawn.slots,
            longest_tokens=max(1, round(way.question.batch.longest)), utilization=min(1.0, waited / way.step)),
        "phases": tuple(_phase(phase, colocated=placed.colocated) for phase in way.made.phases),
        "prompts": work.prompts, "samples_per_prompt": work.samples_per_prompt,
        "micro_batch_tokens": way.question.framework.packed,
        "answers_per_second": work.answers / way.step, "trainer_utilization": min(1.0, worked / way.step),
        "rollouts_usable_bytes": int(on.gpu.usable_memory) if on.gpu.name != candidate.gpu.name else None}
    if run is None or run.offer is None:
        return PostTrainingAssignment(**made)
    column, offer = run.column, run.offer
    priced = offered(offer, 0)
    days = column.duration_us * DURATION_QUANTUM / DAY
    low, high = (spread_of(law, law.step, way, share) for share in (0.05, 0.95))
    return PostTrainingAssignment(
        **made, idle_gpus=max(0, column.nodes * candidate.node.gpus - column.gpus) if way.rollouts_on == way.candidate
        else 0, spare_nodes=column.spare_nodes, offer=offer.label, sourcing=offer.how, goodput=goodput,
        duration_days=days, usd_per_node_hour=priced.price(column.rented_nodes) * PRICE_QUANTUM * max(
            1.0, priced.least_us / column.duration_us),
        cost_usd=used_by(run)["budget"], energy_kwh=column.energy_wh / 1000,
        purchase=bought_of(offer.estate, column.rented_nodes, column.gpus, goodput) if offer.estate else None,
        duration_interval90_days=(days * low, days * high))


def _phase(phase: Phase, *, colocated: bool) -> RlPhase:
    everyone = colocated or phase.name == "synchronization"
    parts = {part: round(float(size)) for part, size in phase.gpu.items()}
    return RlPhase(phase=phase.name, seconds=float(phase.seconds), gpu_bytes=sum(parts.values()), parts=parts,
                   on="all" if everyone else "rollouts" if phase.name in WAITING else "trainer")


def _memory(way: RlWay, candidate: Candidate, law: PostTrainingLaw) -> Memory:
    fullest, parts = way.made.fullest, dict.fromkeys(MemoryComponents.model_fields, 0.0)
    if fullest.name == "actor_update":
        parts |= way.policy.peak.memory.components
        for part, size in fullest.gpu.items():
            if part not in ("policy", "work"):
                _add(parts, part, float(size), way)
    else:
        for part, size in fullest.gpu.items():
            _add(parts, part, float(size), way)
    whole = {name: round(size) for name, size in parts.items()}
    low, high = (spread_of(law, law.memory, way, share) for share in (0.05, 0.95))
    median = way.peak - parts["reserve"]
    return Memory(fits=verdict(way), usable_bytes=int(way.usable), peak_bytes=sum(whole.values()),
                  components=MemoryComponents(**whole), host_bytes_per_node=round(way.host),
                  host_parts=_host_parts(way), host_usable_bytes=int(way.host_usable),
                  interval90_bytes=(round(median * low), round(median * high)), evidence=_evidence(law.memory, way))


def _host_parts(way: RlWay) -> dict[str, int]:
    """Return what holds how many bytes of a node's host, the largest first."""
    parts = {name: float(size) * on_node(way.question, way.placed) for name, size in way.made.held.items()}
    parts["answers of a step"] = batch_bytes(way.question)
    parts["states updated there"] = float(updated_there(way.policy, way.models))
    return {name: round(size) for name, size in sorted(parts.items(), key=lambda part: -part[1]) if size}


def _add(parts: dict[str, float], part: str, size: float, way: RlWay) -> None:
    """Add a part of a phase to components; a critic is trained in the policy's layout and formats."""
    if part == "work" and way.made.fullest.name == "critic_update":
        for name, held in way.policy.peak.memory.components.items():
            if name not in STATES:
                parts[name] += size * held / way.policy.working
    elif part not in _TRAINED:
        parts[_HOLDS.get(part, "framework")] += size
    elif way.placed.swaps and way.made.fullest.name != f"{part}_update":
        parts["weights"] += size
    else:
        for name in STATES:
            parts[name] += size * way.policy.held(name) / way.policy.states


def _evidence(residue: FrameworkResidue, way: RlWay) -> Evidence:
    runs = residue.by.get(way.framework)
    if runs is None:
        return Evidence(rows=0, validated=False)
    return Evidence(rows=runs.rows, sources=runs.sources, median_abs_error=runs.error, validated=True,
                    unlike=residue.unlike(way.framework, kind_of(way)),
                    alike={TASK: LEARNING, "framework": way.framework})


def _time(way: RlWay, work: PostTraining, candidate: Candidate, law: PostTrainingLaw) -> Time:
    step, update = way.step, way.policy.update
    tokens = work.answers * (work.input.mean + work.output.mean) / step / way.gpus
    peak = candidate.gpu.peak.get("bf16") or candidate.gpu.peak["fp16"]
    # FLOPs of the update alone, over the whole step and all GPUs
    flops = update.model_flops_per_gpu * update.step.seconds / step * way.placed.trainer / way.gpus
    low, high = (spread_of(law, law.step, way, share) for share in (0.05, 0.95))
    return Time(step_seconds=step, components=TimeComponents(**{
        name: float(spent) for name, spent in way.made.exposed.items()}), steps=work.steps,
                tokens_per_second_per_gpu=tokens, model_tflops_per_gpu=flops / 1e12, mfu=flops / peak,
                interval90_seconds=(step * low, step * high),
                evidence=_evidence(law.step, way))



