"""Realistic answers: Llama 3.1 70B pre-trained on 448 H200 nodes, a "no", an estimate, a serving plan."""

from __future__ import annotations

from typing import Any

from planner.answer.assignment import Assignment, ServingAssignment, TrainingAlternative, TrainingAssignment
from planner.answer.breakdown import Memory, Time, TimeComponents
from planner.answer.layout import Layout, Offload, RecomputeLayers, Stage
from planner.answer.level import Percentiles, ServingFigures
from planner.answer.relaxation import Relaxation
from planner.answer.schema import Infeasible, Objective, Plan, Provenance, Search
from planner.scenario.default import Default

GIB = 2**30
STEPS = 894_070
GOODPUT = 0.953

LAYOUT = Layout(
    tp=4, pp=7, vpp=1, cp=1, ep=1, dp=128, shard=128, zero=1, micro_batch=1, micro_batches=16,
    recompute="mixed", precision="bf16", schedule="1f1b", sequence_parallel=True,
    no_sync=False, offload=Offload(optimizer=0.5, to="host"),
    stages=(
        Stage(layers=10, recompute_layers=RecomputeLayers(selective=10), peak_bytes=71 * GIB, seconds=0.2711),
        *(Stage(layers=12, recompute_layers=RecomputeLayers(none=4, selective=8), peak_bytes=(69 - i) * GIB,
                seconds=0.2806 + i / 1000) for i in range(5)),
        Stage(layers=10, recompute_layers=RecomputeLayers(none=10), peak_bytes=58 * GIB, seconds=0.2842),
    ))

MEMORY = {"weights": 6_330_000_000, "gradients": 12_660_000_000, "master_weights": 100_000_000,
          "optimizer": 200_000_000, "activations": 48_000_000_000, "logits": 0,
          "communication_buffers": 900_000_000, "framework": 4_100_000_000,
          "reserve": 3_947_000_000, "kv_cache": 0}

TIME = {"compute": 4.1, "recompute": 0.21, "tensor_parallel": 0.34, "pipeline_bubble": 0.31,
        "pipeline_p2p": 0.004, "data_parallel": 0.046, "offload": 0.02, "optimizer_step": 0.03}


def memory(fits: str = "fits", usable: int = 150_100_000_000, **changes: int) -> Memory:
    parts = MEMORY | changes
    return Memory.model_validate({
        "fits": fits, "usable_bytes": usable, "peak_bytes": sum(parts.values()),
        "components": parts, "host_bytes_per_node": 420_000_000_000})


def time(scale: float = 1.0, steps: int | None = STEPS) -> Time:
    parts = TimeComponents(**{name: seconds * scale for name, seconds in TIME.items()})
    step = sum(parts.model_dump().values())
    return Time(step_seconds=step, components=parts, steps=steps, tokens_per_second_per_gpu=925.1 / scale,
                model_tflops_per_gpu=421.7 / scale, mfu=0.426 / scale,
                interval90_seconds=(step * 0.93, step * 1.08))


def assignment(scale: float = 1.0, price: float = 28.0, steps: int = STEPS, **changes: Any) -> dict[str, Any]:
    """The fields of an Assignment whose sums agree; `changes` replace fields."""
    fields: dict[str, Any] = {
        "workload": "Llama 3.1 70B pre-training", "kind": "training", "node": "dgx-h200", "gpu": "h200-sxm",
        "nodes": 448, "gpus": 3584, "spare_nodes": 2, "offer": "nebius gpu-h200-sxm-8 eu-north1 on-demand",
        "usd_per_node_hour": price, "stack": "megatron-core", "layout": LAYOUT, "memory": memory(),
        "time": time(scale), "serving": None, "goodput": GOODPUT, "energy_kwh": 4_212_345.6 * scale,
    } | ({"sequence_length": 8192, "global_batch": 2048} if changes.get("kind", "training") == "training" else {}
         ) | changes
    if "duration_days" not in fields:
        days = steps * fields["time"].step_seconds / GOODPUT / 86400
        fields["duration_days"] = days
        fields["cost_usd"] = round((fields["nodes"] + fields["spare_nodes"]) * price * 24 * days, 2)
    return fields


def placed(**fields: Any) -> Assignment:
    """An assignment of the kind that its fields say."""
    return {"training": TrainingAssignment, "serving": ServingAssignment}[fields["kind"]](**fields)


def estimate(**changes: Any) -> Assignment:
    """An estimate: no price, no duration."""
    unpriced: dict[str, Any] = {"offer": None, "usd_per_node_hour": None, "duration_days": None, "cost_usd": None,
                "energy_kwh": None, "goodput": None, "spare_nodes": 0, "time": time(steps=None)}
    return placed(**assignment(**(unpriced | changes)))


def example_plan() -> Plan:
    best = TrainingAssignment(**assignment())
    wider = LAYOUT.model_copy(update={"tp": 8, "pp": 4, "dp": 112, "vpp": 2, "shard": 112, "stages": ()})
    alternatives = (
        TrainingAlternative(**assignment(1.004, layout=wider), tied=True,
                    why="0.4% dearer, less than the prediction resolves (7%)"),
        TrainingAlternative(**assignment(1.31, 23.92, node="dgx-h100", gpu="h100-sxm",
                                 offer="lambda gpu_8x_h100 us-east-1"),
                    why="11.9% dearer: its 79.2 GiB hold this model only with full recompute in every stage"),
    )
    cost = best.cost_usd
    return Plan(
        status="optimal", objective=Objective(name="cost_usd", value=cost, bound=cost, gap=0.0),
        assignments=(best,), alternatives=alternatives,
        search=Search(layouts=1_234_567, legal=23_456, fit=12_345, staged=37, wall_seconds=3.21,
                      removed={"tp_divides_kv_heads": 800_123, "batch_divides": 410_988, "max_nodes": 0},
                      domains={"tp": (1, 2, 4, 8), "pp": tuple(range(1, 65)), "offload": (0.0, 0.5, 1.0),
                               "precision": ("bf16",)}),
        provenance=provenance())


def provenance() -> Provenance:
    return Provenance(
        scenario={"name": "Llama 3.1 70B pre-training", "confidence": 0.95,
                  "workload": {"kind": "training", "model": "llama-3.1-70b", "tokens": "15 T"}},
        defaults=(
            Default(name="precision", value="bf16", why="others are searched only if listed"),
            Default(name="terms", value="on-demand", why="others only if asked for")),
        catalog_digest="3f9a1c0d5e7b42a6918f0c2d", versions={"planner": "0.1.0", "ortools": "9.11.4210"}, seed=0)


def infeasible_plan() -> Plan:
    return Plan(
        status="infeasible", objective=Objective(name="cost_usd"),
        search=Search(layouts=1_234_567, legal=23_456, fit=12_345, removed={"max_gpus": 1_211_111}),
        infeasible=Infeasible(
            because=("the deadline of 30 d and the limit of 512 GPUs exclude every layout",),
            nearest="41.2 d instead of 30 d, on 512 h200-sxm GPUs",
            relaxations=(Relaxation(limit="deadline", from_="30 d", to="41.2 d"),
                         Relaxation(limit="max_gpus", from_="512", to="704"))),
        provenance=provenance())


def serving_assignment() -> Assignment:
    layout = Layout(tp=4, pp=1, vpp=1, cp=1, ep=1, dp=4, shard=1, zero=0, micro_batch=96, micro_batches=1,
                    recompute="none", precision="fp8")
    parts = {"compute": 0.0101, "tensor_parallel": 0.00213, "other": 0.0006}
    speed = Time(step_seconds=sum(parts.values()), components=TimeComponents(**parts),
                 tokens_per_second_per_gpu=1870.0, model_tflops_per_gpu=264.0, mfu=0.133,
                 interval90_seconds=(0.0117, 0.0144))
    return estimate(
        workload="chat", kind="serving", nodes=2, gpus=16, layout=layout, usd_per_node_hour=28.0, time=speed,
        memory=memory(gradients=0, master_weights=0, optimizer=0, activations=0, kv_cache=98_000_000_000),
        serving=ServingFigures(replicas=4, requests_per_second=20.0, ttft_seconds=Percentiles(p50=0.41, p95=1.32),
                        tpot_seconds=Percentiles(p50=0.0131, p95=0.0187), max_batch=96, kv_tokens=611_000,
                        output_tokens_per_second_per_gpu=1870.0))
