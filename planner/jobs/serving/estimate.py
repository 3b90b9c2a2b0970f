"""One layout of a service: does it fit, what its cache holds, how fast it is at a load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from planner.answer.assignment import Assignment
from planner.answer.level import Percentiles
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.columns import ReplicaColumn
from planner.jobs.idle import Idle, idle, several
from planner.jobs.serving.assignment import Delivered, ReplicaPlace, served_assignment
from planner.jobs.serving.delivered import each_token, first_token, percentiles, whole_answer, working
from planner.jobs.serving.options import deployment, held, residual
from planner.jobs.serving.rates import BUSIEST, layouts
from planner.jobs.serving.service import Service, service_of
from planner.money.rent import usual_candidate
from planner.physics.serving.apart import prefilling
from planner.physics.serving.capacity import Capacity
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.steady import RequestMix, closed, offline
from planner.physics.serving.steady import SteadyState as Steady
from planner.scenario.serving import Serving
from planner.units import plural

AXES = ("tp", "pp", "ep", "dp")
"""What a serving layout is made of; dp are copies of attention that share the experts, ep the ranks of these."""

ANSWERED = 0.99
"""Share of an asked rate at which it counts as answered."""


def idle_keys(asked: Serving) -> Iterator[Idle]:
    """Yield the keys of a service that an estimate does not heed: it is of one layout that answers whole requests."""
    yield from (idle(key, "is what a plan keeps to; an estimate says what the layout does", left_to_plan=True)
                for key in ("day", "startup", "headroom", "spare_replicas", "spare_nodes"))
    yield from (idle(key, "is for a plan: an estimate is for one layout that answers every request whole")
                for key in ("length_classes", "disaggregated", "documents"))
    yield from several("quantization", asked.quantization or ())
    yield idle("confidence", "applies to the memory of a training job: what an engine allocates is its own choice",
               of_work=False)


def estimate_serving(asked: Serving, catalog: Catalog, node: str, gpus: int | None,
                     layout: Mapping[str, str]) -> Assignment:
    """Return whether one layout holds a resolved service, and how fast it is: at a concurrency, a rate, or at most.

    GPUs beyond those of the layout run further replicas, which share the load. Raises PlannerError.
    """
    service, d = _on(asked, catalog, node)
    rows = _rows(layout, d)
    each = int(rows.gpus[0])
    if gpus is not None and gpus % each:
        raise InputError(f"--gpus {gpus} is not a multiple of the {each} GPUs of the layout")
    return estimated(catalog, service, d, rows, (gpus or each) // each)


def best_replica(asked: Serving, catalog: Catalog, node: str, gpus: int | None) -> tuple[Assignment, str]:
    """Return the best layout of the replicas that share `gpus` GPUs, or all of the node's, and how it was chosen.

    Best is what meets the latency targets, or misses them by least; then at a rate what answers a request soonest, and
    otherwise what answers most. Raises PlannerError.
    """
    service, d = _on(asked, catalog, node)
    total, table = gpus or d.candidates[0].node.gpus, layouts(service.model, d.candidates[0], Counter())
    every = [table.take(np.array([at])) for at in range(len(table))]
    tried = [estimated(catalog, service, d, rows, total // int(rows.gpus[0])) for rows in every
             if total % int(rows.gpus[0]) == 0]
    best = min(tried, key=lambda assignment: rank(assignment, service))
    if best.memory.fits == "fits":
        at_rate = service.rate is not None and not service.asked.clients
        return best, (f"Chosen: {'the soonest to answer' if at_rate else 'what answers most'} of "
                      f"{plural(len(tried), 'layout')} of replicas on "
                      f"{plural(total, 'GPU')}")
    enough = min((int(rows.gpus[0]) for rows in every if _holds(catalog, service, d, rows)), default=None)
    return best, f"None of {len(tried)} layouts on {plural(total, 'GPU')} holds a request" + (
        "" if enough is None else f"; a replica of {enough} does")


def _on(asked: Serving, catalog: Catalog, node: str) -> tuple[Service, Deployment]:
    service = service_of(asked, catalog)
    candidate = usual_candidate(catalog.node(node), catalog)
    return service, deployment(catalog, service, candidate, (asked.quantization or ("bf16",))[0])


def _holds(catalog: Catalog, service: Service, d: Deployment, rows: Replicas) -> bool:
    return bool(held(catalog, service, d, rows, service.length).concurrency[0] >= 1)


def estimated(catalog: Catalog, service: Service, d: Deployment, rows: Replicas, replicas: int) -> Assignment:
    """Return replicas of one layout, a table of one row."""
    longest, mean = (held(catalog, service, d, rows, length) for length in (service.length, service.mean_length))
    delivered = _delivered(service, d, rows, mean, replicas, fits=bool(longest.concurrency[0] >= 1))
    nodes = -(-int(rows.gpus[0]) * replicas // d.candidates[0].node.gpus)
    return served_assignment(service, d, rows, longest, delivered, ReplicaPlace(
        replicas, nodes, None, settings=service.settings),
                             residual(catalog, service, d))


def rank(assignment: Assignment, service: Service) -> tuple[float, ...]:
    """Return what sorts the better estimate first; plain layouts where nothing else tells them apart."""
    serving = assignment.serving
    assert serving is not None
    plain = (assignment.layout.pp, assignment.layout.tp, assignment.layout.ep)
    if assignment.memory.fits != "fits":
        return (1.0, -float(serving.kv_tokens), *plain)
    latencies = (serving.ttft_seconds, serving.tpot_seconds, serving.e2e_seconds)
    targets = [latency.asked for latency in latencies if latency is not None and latency.asked is not None]
    missed = max((max(1.0, target.seconds / target.target_seconds) for target in targets), default=1.0)
    answered = serving.requests_per_second
    if service.rate is None or service.asked.clients or answered < ANSWERED * service.rate:
        return (0.0, missed, 1.0, -answered, *plain)
    soon = serving.ttft_seconds.p50 + service.stream.output * serving.tpot_seconds.p50
    return (0.0, missed, 0.0, soon, *plain)


def _rows(layout: Mapping[str, str], d: Deployment) -> Replicas:
    degrees = dict.fromkeys(AXES, 1)
    for axis, value in layout.items():
        if axis not in AXES:
            raise InputError(f"--layout: {axis!r} is not an axis of a serving layout: {', '.join(AXES)}")
        if not value.isdigit() or not int(value):
            raise InputError(f"--layout: {axis}={value} is not a whole number above zero")
        degrees[axis] = int(value)
    model, mixture = d.model, d.model.mixes_experts
    if model.attention_heads % degrees["tp"]:
        raise InputError(f"--layout: tp={degrees['tp']} does not divide the {model.attention_heads} heads of "
                         f"{model.name}")
    node = d.candidates[0].node
    if degrees["tp"] > node.gpus and (degrees["tp"] % node.gpus or not d.candidates[0].clustered):
        raise InputError(f"--layout: tp={degrees['tp']} is more than the {node.gpus} GPUs of {node.name}" + (
            ", and does not fill several" if d.candidates[0].clustered else ", and no network joins such nodes"))
    if degrees["pp"] > model.layers:
        raise InputError(f"--layout: pp={degrees['pp']} is more than the {model.layers} layers of {model.name}")
    if not mixture and (degrees["dp"] > 1 or degrees["ep"] > 1):
        raise InputError(f"--layout: dp and ep are for mixtures of experts, and {model.name} is not one; more --gpus "
                         "run more replicas")
    if degrees["ep"] not in (1, degrees["dp"]) or (degrees["ep"] > 1 and degrees["tp"] > 1):
        raise InputError("--layout: ep is 1, or with tp=1 the copies of attention (dp), over which experts are spread")
    ones = np.ones(1, np.int64)
    return Replicas(0 * ones, *(degrees[axis] * ones for axis in AXES))


def _delivered(service: Service, d: Deployment, rows: Replicas, mean: Capacity, replicas: int, *,
               fits: bool) -> Delivered:
    """Return what one of the replicas does at its share of the load."""
    stream, most = service.stream, np.maximum(1.0, np.minimum(mean.concurrency, d.engine.sequences * rows.dp))
    if service.rate is not None and service.asked.concurrency is None and fits:
        column = ReplicaColumn(0, d.format, "whole", int(rows.tp[0]), int(rows.pp[0]), int(rows.ep[0]), int(rows.dp[0]),
                               0.0, 0.0, float(most[0]))
        served = working(d, column, service, service.rate / replicas, service.rate)
        return Delivered(float(served.rate[0]), float(served.batch[0]), stream.context, first_token(served, service),
                         each_token(served, service), stream.input, stream.output, e2e=whole_answer(served, service),
                         users=None if service.asked.users is None else service.rate / replicas)
    if stream.only_reads and not service.asked.concurrency:
        served = prefilling(d, rows, stream, np.full(1, BUSIEST))
        alone = Percentiles(p50=float(served.own[0]), p95=float(served.own[0]))
        return Delivered(float(served.rate[0]) / BUSIEST, 1.0, stream.context, alone,
                         Percentiles(p50=0.0, p95=0.0), stream.input, stream.output)
    clients = (service.asked.concurrency or 0) / replicas
    demand = RequestMix(np.full(1, stream.input), np.full(1, stream.output), np.full(1, max(clients, 1.0)),
                        stream.drafts,
                    stream.accepted, stream.hits, stream.input_cv, stream.output_cv)
    steady, asked = closed(d, rows, demand, most) if clients else offline(d, rows, demand, most), service.asked
    tpot = float(steady.tpot[0])
    first, answer = _first(service, steady), asked.output
    whole = None if asked.e2e is None else percentiles(
        lambda q: first(q) + tpot * (max((answer.quantile(q) if answer and q else stream.output) - 1, 0.0)), asked.e2e)
    return Delivered(float(steady.requests[0]), float(steady.batch[0]), stream.context, percentiles(first, asked.ttft),
                     percentiles(lambda q: tpot, asked.tpot), stream.input, stream.output, e2e=whole)


def _first(service: Service, steady: Steady) -> Callable[[float | None], float]:
    """Return TTFT in a steady state: a prompt's own steps take as long as it is, what it waits for is the mean."""
    mean, own, lengths = float(steady.ttft[0]), float(steady.own[0]), service.asked.input

    def at(share: float | None) -> float:
        return mean if share is None or not lengths else mean + own * (lengths.quantile(share) / lengths.mean - 1)

    return at
