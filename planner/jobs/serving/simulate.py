"""Assignments of a service read back as replicas, requests replayed on them, and what the replay found."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from planner.answer.assignment import Assignment
from planner.answer.simulation import Latencies, Simulation
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.columns import Pick, ReplicaColumn
from planner.jobs.serving.replay import replay, requests_of, share_within
from planner.jobs.serving.running import Progress
from planner.jobs.serving.service import Service, services_of
from planner.layouts.candidate import Candidate
from planner.money.rent import OWNED, RentalOffer, offered, usual_candidate
from planner.physics.serving.settings import EngineSettings
from planner.scenario.serving import Serving
from planner.simulate.outcome import Outcome, merged
from planner.simulate.trace import Trace


def simulate_fleet(asked: Serving, mine: Sequence[Assignment], catalog: Catalog, trace: Trace | None = None, *,
                   policy: str = "least-outstanding", progress: Progress | None = None, seed: int = 0,
                   made: tuple[Service, Sequence[ReplicaColumn]] | None = None) -> Simulation:
    """Replay a trace on any replicas of a service, or what it is asked for, drawn by a seed.

    made: the service and its columns, of requests that are no tokens.

    Raises InputError where it has no load, or a seed for requests that are not drawn.
    """
    if seed and (trace is not None or asked.trace is not None):
        raise InputError("--seed draws requests, and those of a trace are given")
    if trace is None and asked.rate is None and asked.trace is None and asked.clients is None:
        raise InputError("a replay needs requests: give --rate, --users or --trace")
    if any(a.memory.fits != "fits" for a in mine):
        raise InputError("the layout does not fit: planner estimate says what it lacks")
    candidates = [candidate_of(a, catalog) for a in mine]
    columns = made[1] if made else [_column(a, at) for at, a in enumerate(mine)]
    picks = [_pick(a, at, column) for at, (a, column) in enumerate(zip(mine, columns, strict=True))]
    parts = [made[0]] if made else services_of(asked, catalog)
    service, outcomes = parts[0], []
    for part in parts:
        # a router that goes by length splits the trace; what each class of replicas sees is a trace of its own
        its = [pick for pick, a in zip(picks, mine, strict=True) if a.serving and a.serving.prompts == part.prompts]
        requests = None if trace is None else requests_of(part, trace)
        if its and (requests is None or len(requests)):
            outcomes.append(replay(catalog, part, candidates, its, requests, policy, progress, seed=seed)[0])
    outcome = merged(outcomes)
    span = float(np.ptp(outcome.arrival)) if trace is None else 0.0
    asked_rate = trace.rate if trace is not None else (len(outcome.arrival) - 1) / span if span else math.inf
    first = mine[0].serving
    assert first is not None
    latencies = {name: _latencies(outcome, name) for name in ("ttft", "tpot", "e2e", "queue")}
    return Simulation(
        workload=service.asked.label, policy=policy, replicas=sum(pick.replicas for pick in picks),
        requests=len(outcome.arrival), rejected=int(outcome.rejected.sum()), preempted=int(outcome.preemptions.sum()),
        requests_per_second=asked_rate if math.isfinite(asked_rate) else None, seconds=outcome.seconds,
        output_tokens_per_second=outcome.output_tokens_per_second, busy_share=outcome.busy_share,
        share_within_level=share_within(outcome, service),
        made=None if first.made is None else "clip" if first.made.frames > 1 else "image",
        latency_seconds=latencies, computed={
            "ttft": first.ttft_seconds, "tpot": first.tpot_seconds,
            **({} if first.e2e_seconds is None else {"e2e": first.e2e_seconds})})


def candidate_of(a: Assignment, catalog: Catalog) -> Candidate:
    """Return the hardware of an assignment: that of its offer, or as its owner would have it."""
    rented = offered(a.offer or "", catalog)
    node = catalog.node(a.node)
    return rented[0] if rented and rented[0].node.gpus == node.gpus else usual_candidate(node, catalog)


def _column(a: Assignment, at: int) -> ReplicaColumn:
    layout, serving = a.layout, a.serving
    assert serving is not None
    copies = layout.dp // serving.replicas
    return ReplicaColumn(at, layout.stored, serving.role, layout.tp, layout.pp, layout.ep, copies,
                         serving.requests_per_second / serving.replicas,
                         float(layout.micro_batch * copies * layout.pp), float(serving.max_batch),
                         EngineSettings(serving.memory_fraction, serving.max_batched_tokens, serving.max_sequences,
                                        serving.prefill_delay))


def _pick(a: Assignment, at: int, column: ReplicaColumn) -> Pick:
    serving = a.serving
    assert serving is not None
    offer = RentalOffer(OWNED, a.offer or a.node, "", "", at, a.usd_per_node_hour or 0.0, "", "", "")
    return Pick(0, 0, column, offer, serving.replicas, a.nodes, (a.nodes,), serving.replicas_by_hour or ())


def _latencies(outcome: Outcome, name: str) -> Latencies:
    seconds = outcome.percentiles(name)  # type: ignore[arg-type]
    # a latency that no request has, as that between tokens of one-token answers, is zero
    return Latencies(**{key: 0.0 if math.isnan(value) else value for key, value in seconds.items()})


