"""What a service gets: the fleet in one sentence, its level as computed and as replayed."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.answer.level import Replayed
from planner.answer.schema import Plan
from planner.jobs.serving.assignment import MONTH_DAYS
from planner.render.figures import percent
from planner.render.page import Column, Page
from planner.units import plural, show_bytes, show_count, show_seconds, show_usd

_BEST = {"cost_usd": "Cheapest", "gpus": "Fewest GPUs", "energy_kwh": "Least energy"}
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
        parts.append(f"{fleet} {'serves' if len(mine) == 1 and mine[0].nodes == 1 else 'serve'} {rate:,.4g} requests/s "
                     f"of {name}")
    cost = hourly(plan)
    daily = any(a.serving and a.serving.nodes_by_hour for a in plan.assignments)
    price = "" if cost is None else f" for {show_usd(cost)}/h"
    if cost is not None and (daily or len(plan.assignments) > 1):
        price = f", {show_usd(cost)}/h in all" + (" on average over the day" if daily else "")
    best = _BEST[plan.objective.name] if plan.status == "optimal" else "Best found"
    proof = "proven optimal" if plan.status == "optimal" else "not proven"
    return f"{best}: {'; '.join(parts)}{price} ({proof})"


def capacity_sentence(assignment: Assignment, asked: float | None = None) -> str:
    """Return what one layout holds, as engines print it, and how fast it is there; `asked` requests/s may be too many.
    """
    memory, serving = assignment.memory, assignment.serving
    assert serving is not None
    if memory.fits == "does not fit":
        return (f"Does not fit: beside {show_bytes(memory.components.weights)} of weights a GPU has room for "
                f"{serving.kv_tokens:,} KV tokens, too few for one request")
    fits = f"Fits: {serving.kv_tokens:,} KV tokens a replica, maximum concurrency {serving.max_batch:,}"
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


def _fleet(a: Assignment) -> str:
    replicas = a.serving.replicas if a.serving else 1
    role = ROLES[a.serving.role] if a.serving else ""
    kind = f"{a.gpus // replicas:,} x {a.gpu}" if replicas > 1 else f"{a.gpus:,} {a.gpu}"
    count = f"{plural(replicas, 'replica')}{role} of {kind}"
    offer = f" from {a.offer}" if a.offer else ""
    part = a.serving.part_of_nodes if a.serving else None
    shared = "" if part is None else " shared with others" if a.nodes == 1 else ", one of them shared with others"
    return f"{count} ({a.layout.precision}){prompts_of(a)} on {plural(a.nodes, 'node')} of {a.node}{shared}{offer}"


def prompts_of(a: Assignment) -> str:
    """Return which prompts replicas answer, where requests are split by length."""
    prompts = a.serving.prompts if a.serving else None
    if prompts is None:
        return ""
    low, high = prompts
    return (f" for prompts from {low:,} tokens" if high is None else f" for prompts up to {high:,} tokens" if low == 1
            else f" for prompts of {low:,} to {high:,} tokens")


def show_level(page: Page, assignment: Assignment) -> None:
    """Print TTFT and TPOT as computed, and as a replay found them."""
    serving = assignment.serving
    if serving is None:
        return
    page.heading("Service level")
    found = serving.replayed
    rows = []
    for label, computed, simulated in (("time to first token", serving.ttft_seconds, found and found.ttft_seconds),
                                       ("time per output token", serving.tpot_seconds, found and found.tpot_seconds)):
        cells = [label, show_seconds(computed.p50), show_seconds(computed.p95)]
        rows.append(cells + ([show_seconds(simulated.p50), show_seconds(simulated.p95)] if simulated else []))
    columns = [Column(""), Column("computed p50", True), Column("p95", True)]
    page.table([*columns, *([Column("replayed p50", True), Column("p95", True)] if found else [])], rows)
    if found is not None:
        page.facts([("replayed", _words(found))])


def _words(found: Replayed) -> str:
    words = (f"{found.requests:,} requests, event by event: {percent(found.share_within_level)} within every level; "
             f"replicas at work {percent(found.busy_share)} of the time")
    if found.preempted:
        words += f"; {plural(found.preempted, 'preemption')}"
    return words + (f"; {found.rejected:,} rejected" if found.rejected else "")


def show_service(page: Page, assignment: Assignment) -> None:
    """Print rates, batch, cache, and what tokens cost."""
    serving = assignment.serving
    if serving is None:
        return
    rows = [("requests", f"{serving.requests_per_second:,.4g} requests/s{prompts_of(assignment)} over "
                         f"{plural(serving.replicas, 'replica')}"),
            ("output", f"{serving.output_tokens_per_second_per_gpu:,.0f} output tokens/s/GPU, "
                       f"{show_count(serving.output_tokens_per_second_per_gpu * assignment.gpus)} tokens/s in all"),
            ("cache", f"{serving.kv_tokens:,} tokens a replica, {plural(serving.max_batch, 'sequence')} at most"),
            ("compute", f"{assignment.time.model_tflops_per_gpu:,.0f} TFLOP/s/GPU, MFU {assignment.time.mfu:.3f}"),
            ("step", "{}, 90% interval {} to {}".format(show_seconds(assignment.time.step_seconds), *(
                show_seconds(s) for s in assignment.time.interval90_seconds)))]
    tokens = serving.output_tokens_per_second_per_gpu * assignment.gpus
    if assignment.usd_per_node_hour is not None and tokens and serving.role != "prefill":
        usd = assignment.usd_per_node_hour * assignment.nodes / 3600
        rows.append(("cost", f"{show_usd(usd / tokens * 1e6)} per million output tokens"))
    if serving.memory_fraction is not None:
        rows.append(("memory fraction", f"{serving.memory_fraction:g}, above the engine's default"))
    if serving.max_batched_tokens is not None:
        rows.append(("prefill chunk", f"{serving.max_batched_tokens:,} tokens a step, other than the engine's default"))
    if serving.max_sequences is not None:
        rows.append(("batch limit", f"{serving.max_sequences:,} sequences a step, other than the engine's default"))
    if serving.nodes_by_hour is not None:
        rows.append(("nodes", f"{', '.join(map(str, serving.nodes_by_hour))} in the hours from midnight"))
    page.heading("Performance")
    page.facts(rows)
