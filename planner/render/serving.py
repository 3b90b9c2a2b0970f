"""What a service gets, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.assignment import Assignment
from planner.answer.level import Autoscaled, ServingFigures
from planner.answer.schema import Plan
from planner.jobs.serving.estimate import ANSWERED
from planner.render.figures import gap_shown
from planner.render.layout_text import prompts_of
from planner.render.made import made_sentence
from planner.units import MONTH_DAYS, plural, show_bytes, show_days, show_seconds, show_usd

BEST = {"cost_usd": "Cheapest", "duration_days": "Fastest", "gpus": "Fewest GPUs", "energy_kwh": "Least energy",
        "requests_per_second": "Largest rate", "users": "Most users"}
ROLES = {"whole": "", "prefill": " for prefill", "decode": " for decode"}
HOURS = 24


def is_service(plan: Plan) -> bool:
    """Say whether a plan is of services."""
    if plan.assignments:
        return plan.assignments[0].kind == "serving"
    scenario = plan.provenance.scenario
    work = scenario.get("workload")
    return "workloads" in scenario or (isinstance(work, dict) and work.get("kind") in ("serving", "generation"))


def documents_of(plan: Plan) -> int | None:
    """Return the documents of a batch; none of a service, which does not end."""
    return next((a.serving.documents for a in plan.assignments if a.serving), None)


def serving_sentence(plan: Plan) -> str:
    """Return what serves what, for how much, and whether that is proven."""
    parts = []
    for name in dict.fromkeys(a.workload for a in plan.assignments):
        mine = [a for a in plan.assignments if a.workload == name]
        rate = max(sum(a.serving.rate_at(hour) for a in mine if a.serving and a.serving.role != role)
                   for role in ("prefill", "decode") for hour in range(HOURS))
        fleet = " and ".join(_fleet(a) for a in mine)
        # as many as are there in the busiest hour: not all replicas run in it
        users = max(sum((a.serving.users or 0.0) * a.serving.rate_at(hour) / (a.serving.requests_per_second or 1.0)
                        for a in mine if a.serving) for hour in range(HOURS))
        noun = next((a.serving.noun for a in mine if a.serving), "requests")
        load = f"{plural(round(users), 'user')} ({rate:,.4g} {noun}/s)" if users else f"{rate:,.4g} {noun}/s"
        parts.append(f"{fleet} {'serves' if len(mine) == 1 and _alone(mine[0]) else 'serve'} {load} of {name}"
                     f"{_pace(mine)}")
    seen = plan.objective.by_replay
    within = seen.gap if seen is not None and plan.status == "optimal" else None
    daily = any(a.serving and a.serving.nodes_by_hour for a in plan.assignments)
    # hours of a day with less than the formula has are tried for one kind of hardware
    less = daily and seen is not None and seen.met and seen.gap is None
    best = BEST[plan.objective.name] if plan.status == "optimal" and not within and not less else "Best found"
    proof = (f"within {gap_shown(within)} of the best by replay" if within else
             "not proven" if less or plan.status != "optimal" else "proven optimal")
    if (documents := documents_of(plan)) is not None:
        (a,) = plan.assignments
        usd = "" if a.cost_usd is None else f" for {show_usd(a.cost_usd)}"
        made, noun = (a.serving.made, a.serving.each) if a.serving else (None, "documents")
        answer = ("make" if made else "answer") + ("s" if _alone(a) else "")
        whole = plural(documents, noun.removesuffix("s"))
        return (f"{best}: {_fleet(a)} {answer} {whole} of {a.workload} in "
                f"{show_days(a.duration_days or 0.0)}{usd} ({proof})")
    cost = hourly(plan)
    price = "" if cost is None else f" for {show_usd(cost)}/h"
    if cost is not None and (daily or len(plan.assignments) > 1):
        price = f", {show_usd(cost)}/h in all" + (" on average over the day" if daily else "")
    if seen is not None and plan.objective.is_load and plan.objective.value:
        best = BEST[plan.objective.name]
        most = f"{plan.objective.value * (1 + (seen.gap or 0.0)):,.4g}"
        proof = f"by replay; {'more than by formula' if plan.objective.bound is None else f'at most {most} by formula'}"
    if seen is not None and not seen.met:
        best = "Misses its targets"
        proof = f"by replay: {'; '.join(seen.missed) or 'not within every target on other requests'}"
    said = "; ".join(parts)
    # how fast answers come is set off by commas
    return f"{best}: {said.removesuffix(',') if price.startswith(',') or not price else said}{price} ({proof})"


WHOLE = 10
"""Tokens/s from which parts of one are left out."""


def _pace(mine: Sequence[Assignment]) -> str:
    """Return how fast answers come, the slowest of a service's replicas, at the median; nothing where none are read."""
    waits = [a.serving.ttft_seconds.p50 for a in mine if a.serving and a.serving.made and a.serving.documents is None]
    if waits:
        return f", each after {show_seconds(max(waits))},"
    writing = [a.serving for a in mine if a.serving and a.serving.writes and a.serving.made is None
               and a.serving.role != "prefill" and a.serving.tpot_seconds.p50 > 0]
    if not writing:
        return ""
    pace = 1 / max(level.tpot_seconds.p50 for level in writing)
    return f", {pace:,.0f} tokens/s to each," if pace >= WHOLE else f", {pace:.2g} tokens/s to each,"


def longest(serving: ServingFigures) -> str:
    """Say that a replica's most sequences are those of the longest request, where these are what fills its cache."""
    most = serving.max_model_len
    return f" of {most:,} tokens each" if most and serving.max_batch == serving.kv_tokens // most else ""


def most_of(serving: ServingFigures) -> str:
    """Return the most sequences of a replica."""
    return f"{plural(serving.max_batch, 'sequence')}{longest(serving)}"


def capacity_sentence(assignment: Assignment, asked: float | None = None, *, offline: bool = False) -> str:
    """Return what one layout holds, as engines print it, how fast it is there, and which latency targets it meets.

    asked: requests/s, which may be too many. offline: whether no load was given.
    """
    memory, serving = assignment.memory, assignment.serving
    assert serving is not None
    if serving.made is not None:
        late = asked is not None and serving.requests_per_second < ANSWERED * asked
        return made_sentence(assignment, serving.made, asked if late else None) + ("" if late else _targets(serving))
    if memory.fits == "does not fit":
        return (f"Does not fit: with {show_bytes(memory.components.weights)} of weights, a GPU has room for "
                f"{serving.kv_tokens:,} KV tokens, too few for one request")
    fits = (f"Fits: {serving.kv_tokens:,} KV tokens per replica, maximum concurrency {serving.max_batch:,}"
            f"{longest(serving)}" if serving.kv_tokens else "Fits: it keeps no keys and values")
    if asked is not None and serving.requests_per_second < ANSWERED * asked:
        return (f"{fits}; {asked:,.4g} requests/s are too many: about {serving.requests_per_second:,.4g} are answered, "
                "and the queue grows" + (", so that no latency target is met" if _targets(serving) else ""))
    load = ("; no load is given, so this is the offline maximum, with every request queued (--concurrency 1: one user "
            "alone)") if offline else ""
    return f"{fits}; {_speed(serving)} at {serving.requests_per_second:,.4g} requests/s{load}{_targets(serving)}"


def served_levers_sentence(levers: Sequence[tuple[str, Assignment]]) -> str:
    """Return what a service comes to by the single changes that let it answer or hold most."""
    said = []
    for name, then in levers:
        serving = then.serving
        assert serving is not None
        said.append(f"{name}: {_speed(serving)}, {plural(serving.replicas, 'replica')} with {serving.kv_tokens:,} KV "
                    f"tokens{' each' if serving.replicas > 1 else ''}{_targets(serving)}")
    return f"Largest lever: {'. Or '.join(said)}"


def _speed(serving: ServingFigures) -> str:
    """Return how fast one layout answers, at the median."""
    first = show_seconds(serving.ttft_seconds.p50)
    return (f"TTFT {first}, TPOT {show_seconds(serving.tpot_seconds.p50)}, "
            f"{serving.output_tokens_per_second_per_gpu:,.0f} output tokens/s/GPU" if serving.writes else
            f"an answer takes {first}")


def _targets(serving: ServingFigures) -> str:
    """Return which latency targets are met, and by how much the others are missed; empty where none is set."""
    said = []
    for name, latency in (("TTFT", serving.ttft_seconds), ("TPOT", serving.tpot_seconds), ("E2E", serving.e2e_seconds)):
        if latency is not None and (asked := latency.asked) is not None:
            over = asked.seconds - asked.target_seconds
            share = over / asked.target_seconds
            verdict = "met" if over <= 0 else f"missed by {show_seconds(over)} ({share:+.0%})"
            said.append(f"{name} {show_seconds(asked.seconds)} of {show_seconds(asked.target_seconds)} at {asked.at} "
                        f"{verdict}")
    return "".join(f"; {text}" for text in said)


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


def at_best(auto: Autoscaled) -> str:
    """Return what an ideal autoscaler needs."""
    return (f"at best {auto.mean_gpus:,.1f} GPUs on average and {auto.peak_gpus:,} at most, with "
            f"{plural(auto.starts, 'start')} of {show_seconds(auto.startup_seconds)} each")
