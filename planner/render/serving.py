"""What a service gets, in one sentence."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.jobs.serving.assignment import MONTH_DAYS
from planner.render.layout_text import prompts_of
from planner.units import plural, show_bytes, show_seconds, show_usd

BEST = {"cost_usd": "Cheapest", "duration_days": "Fastest", "gpus": "Fewest GPUs", "energy_kwh": "Least energy"}
ROLES = {"whole": "", "prefill": " for prefill", "decode": " for decode"}
HOURS = 24
HELD = 0.99
"""Share of an asked rate at which it counts as answered."""


def is_service(plan: Plan) -> bool:
    """Say whether a plan is of services."""
    if plan.assignments:
        return plan.assignments[0].kind == "serving"
    scenario = plan.provenance.scenario
    work = scenario.get("workload")
    return "workloads" in scenario or (isinstance(work, dict) and work.get("kind") == "serving")


def serving_sentence(plan: Plan) -> str:
    """Return what serves what, for how much, and whether that is proven."""
    parts = []
    for name in dict.fromkeys(a.workload for a in plan.assignments):
        mine = [a for a in plan.assignments if a.workload == name]
        rate = max(sum(a.serving.requests_per_second for a in mine if a.serving and a.serving.role != role)
                   for role in ("prefill", "decode"))
        fleet = " and ".join(_fleet(a) for a in mine)
        parts.append(f"{fleet} {'serves' if len(mine) == 1 and _alone(mine[0]) else 'serve'} {rate:,.4g} requests/s "
                     f"of {name}")
    cost = hourly(plan)
    daily = any(a.serving and a.serving.nodes_by_hour for a in plan.assignments)
    price = "" if cost is None else f" for {show_usd(cost)}/h"
    if cost is not None and (daily or len(plan.assignments) > 1):
        price = f", {show_usd(cost)}/h in all" + (" on average over the day" if daily else "")
    best = BEST[plan.objective.name] if plan.status == "optimal" else "Best found"
    proof = "proven optimal" if plan.status == "optimal" else "not proven"
    return f"{best}: {'; '.join(parts)}{price} ({proof})"


def capacity_sentence(assignment: Assignment, asked: float | None = None) -> str:
    """Return what one layout holds, as engines print it, and how fast it is there; `asked` requests/s may be too many.
    """
    memory, serving = assignment.memory, assignment.serving
    assert serving is not None
    if memory.fits == "does not fit":
        return (f"Does not fit: with {show_bytes(memory.components.weights)} of weights, a GPU has room for "
                f"{serving.kv_tokens:,} KV tokens, too few for one request")
    fits = f"Fits: {serving.kv_tokens:,} KV tokens per replica, maximum concurrency {serving.max_batch:,}"
    if asked is not None and serving.requests_per_second < HELD * asked:
        return (f"{fits}; {asked:,.4g} requests/s are too many: about {serving.requests_per_second:,.4g} are answered, "
                "and the queue grows")
    return (f"{fits}; TTFT "
            f"{show_seconds(serving.ttft_seconds.p50)}, TPOT {show_seconds(serving.tpot_seconds.p50)}, "
            f"{serving.output_tokens_per_second_per_gpu:,.0f} output tokens/s/GPU at "
            f"{serving.requests_per_second:,.4g} requests/s")


def hourly(plan: Plan) -> float | None:
    """Return USD/h of all nodes; of a load that changes over the day, on average."""
    if any(a.usd_per_node_hour is None for a in plan.assignments):
        return None
    if plan.objective.name == "cost_usd" and plan.objective.value is not None:
        return plan.objective.value / MONTH_DAYS / HOURS
    return sum((a.usd_per_node_hour or 0.0) * (a.nodes + a.spare_nodes) for a in plan.assignments)


def _alone(a: Assignment) -> bool:
    return a.serving is None or a.serving.replicas == 1


def _fleet(a: Assignment) -> str:
    replicas = a.serving.replicas if a.serving else 1
    role = ROLES[a.serving.role] if a.serving else ""
    kind = f"{a.gpus // replicas:,} x {a.gpu}" if replicas > 1 else f"{a.gpus:,} {a.gpu}"
    count = f"{plural(replicas, 'replica')}{role} of {kind}"
    offer = f" from {a.offer}" if a.offer else ""
    part = a.serving.part_of_nodes if a.serving else None
    shared = "" if part is None else " shared with others" if a.nodes == 1 else ", one of them shared with others"
    return f"{count} ({a.layout.precision}){prompts_of(a)} on {plural(a.nodes, 'node')} of {a.node}{shared}{offer}"
