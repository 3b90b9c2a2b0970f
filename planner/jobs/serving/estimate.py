"""One layout of a service: does it fit, what its cache holds, how fast it is at a load."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from planner.answer.assignment import Assignment
from planner.answer.level import Percentiles
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.columns import ReplicaColumn
from planner.jobs.idle import Idle, idle, several
from planner.jobs.serving.assignment import Delivered, ReplicaPlace, kv_tokens, served_assignment
from planner.jobs.serving.delivered import each_token, first_token, percentiles, whole_answer, working
from planner.jobs.serving.deployed import deployment, held, lacks
from planner.jobs.serving.measured import residual
from planner.jobs.serving.narrower import in_fewer_bits
from planner.jobs.serving.rates import BUSIEST, layouts
from planner.jobs.serving.service import Service, service_of
from planner.layouts.table import Floats, Ints
from planner.money.rent import usual_candidate
from planner.physics.serving.apart import prefilling
from planner.physics.serving.capacity import Capacity
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.settings import can_wait
from planner.physics.serving.steady import RequestMix, closed, offline
from planner.physics.serving.steady import SteadyState as Steady
from planner.scenario.serving import Serving
from planner.units import plural

AXES = ("tp", "pp", "ep", "dp")
"""What a serving layout is made of; dp are copies of attention that share the experts, ep the ranks of these."""

ANSWERED = 0.99
"""Share of an asked rate at which it counts as answered."""
NEVER = np.iinfo(np.int64).max
"""GPUs of a replica where none holds a request."""


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
    copies = catalog.engine(asked.engine).copies
    if int(rows.dp[0]) > 1 and copies == "none":
        raise InputError(f"--layout: {asked.engine} has no copies of attention: dp=1; more --gpus run more replicas")
    if int(rows.tp[0]) > 1 and int(rows.dp[0]) > 1 and copies == "narrow":
        raise InputError(f"--layout: {asked.engine} has each copy of attention on one GPU: tp=1,"
                         f"dp={rows.dp[0] * rows.tp[0]}")
    if gpus is not None and gpus % each:
        raise InputError(f"--gpus {gpus} is not a multiple of the {each} GPUs of the layout")
    if asked.prefill_delay and not can_wait(int(rows.dp[0]), int(rows.pp[0])):
        raise InputError("prefill_delay: prompts wait for those on other copies of attention, of which this layout has "
                         "none, or stages too: dp=8, say, and pp=1")
    (only,) = every(catalog, service, d, rows, np.array([(gpus or each) // each]))
    return only.assignment(catalog)


def best_replica(asked: Serving, catalog: Catalog, node: str, gpus: int | None) -> tuple[Assignment, str]:
    """Return the best layout of the replicas that share `gpus` GPUs, or all of the node's, and how it was chosen.

    Best is what meets the latency targets, or misses them by least; then at a rate what answers a request soonest, and
    otherwise what answers most. Raises PlannerError.
    """
    service, d = _on(asked, catalog, node)
    total = gpus or d.candidates[0].node.gpus
    table = layouts(service.model, d.candidates[0], Counter(), catalog.engine(asked.engine).copies)
    filling = table.take(np.flatnonzero(total % table.gpus == 0))
    tried = every(catalog, service, d, filling, total // filling.gpus)
    chosen = min(tried, key=lambda each: each.rank)
    best = chosen.assignment(catalog)
    if chosen.fits:
        at_rate = service.rate is not None and not service.asked.clients
        return best, (f"Chosen: {'the soonest to answer' if at_rate else 'what answers most'} of "
                      f"{plural(len(tried), 'layout')} of replicas on "
                      f"{plural(total, 'GPU')}")
    enough = table.gpus[held(catalog, service, d, table, service.length).concurrency >= 1].min(initial=NEVER)
    return best, f"None of {len(tried)} layouts on {plural(total, 'GPU')} holds a request" + (
        "" if enough == NEVER else f"; a replica of {enough} does") + "".join(
            f"; in {name} these do: --quantization {name}"
            for name in islice(_held_by(asked, catalog, node, filling), 1))


def _held_by(asked: Serving, catalog: Catalog, node: str, rows: Replicas) -> Iterator[str]:
    """Yield the narrower formats in which some of the layouts hold a request, the widest first."""
    for name, narrow in in_fewer_bits(asked):
        service = service_of(narrow, catalog)
        candidate = usual_candidate(catalog.node(node), catalog)
        if lacks(catalog, service, candidate, name) is None and (held(
                catalog, service, deployment(catalog, service, candidate, name), rows, service.length
        ).concurrency >= 1).any():
            yield name


def _on(asked: Serving, catalog: Catalog, node: str) -> tuple[Service, Deployment]:
    service = service_of(asked, catalog)
    candidate = usual_candidate(catalog.node(node), catalog)
    return service, deployment(catalog, service, candidate, (asked.quantization or ("bf16",))[0])


@dataclass(frozen=True, slots=True)
class LayoutTried:
    """Replicas of one layout, a table of one row, with what they hold of the longest requests and do at the load."""

    service: Service
    d: Deployment
    rows: Replicas
    longest: Capacity
    delivered: Delivered
    replicas: int

    @property
    def fits(self) -> bool:
        """Whether a request is held at its longest."""
        return bool(self.longest.concurrency[0] >= 1)

    @property
    def rank(self) -> tuple[float, ...]:
        """What sorts the better layout first; plain ones where nothing else tells them apart."""
        service, done, rows = self.service, self.delivered, self.rows
        plain = (float(rows.pp[0]), float(rows.tp[0]), float(rows.ep[0]))
        if not self.fits:
            return (1.0, -kv_tokens(self.longest, rows), *plain)
        latencies = (done.ttft, done.tpot, done.e2e)
        targets = [latency.asked for latency in latencies if latency is not None and latency.asked is not None]
        missed = max((math.inf if done.overloaded else max(1.0, target.seconds / target.target_seconds)
                      for target in targets), default=1.0)
        answered = done.rate * self.replicas
        if service.rate is None or service.asked.clients or answered < ANSWERED * service.rate:
            return (0.0, missed, 1.0, -answered, *plain)
        return (0.0, missed, 0.0, done.ttft.p50 + service.stream.output * done.tpot.p50, *plain)

    def assignment(self, catalog: Catalog) -> Assignment:
        """Return it in full."""
        nodes = -(-int(self.rows.gpus[0]) * self.replicas // self.d.candidates[0].node.gpus)
        return served_assignment(self.service, self.d, self.rows, self.longest, self.delivered, ReplicaPlace(
            self.replicas, nodes, None, settings=self.service.settings.on(int(self.rows.dp[0]), int(self.rows.pp[0]))),
            residual(catalog, self.service, self.d))


def every(catalog: Catalog, service: Service, d: Deployment, rows: Replicas, replicas: Ints) -> list[LayoutTried]:
    """Return what each layout of a table does, of which `replicas` run."""
    longest, mean = (held(catalog, service, d, rows, length) for length in (service.length, service.mean_length))
    fits = longest.concurrency >= 1
    most = np.maximum(1.0, np.minimum(mean.concurrency, d.engine.sequences * rows.dp))
    if service.rate is not None and service.asked.concurrency is None:
        full = _steady(service, d, rows, most, replicas)
        done = [_at_rate(service, d, rows.take(at), float(most[at[0]]), int(replicas[at[0]]), full[at[0]])
                if fits[at[0]] else full[at[0]] for at in np.arange(len(rows))[:, None]]
    else:
        done = _steady(service, d, rows, most, replicas)
    return [LayoutTried(service, d, rows.take(at), longest.take(at), done[at[0]], int(replicas[at[0]]))
            for at in np.arange(len(rows))[:, None]]


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


def _at_rate(service: Service, d: Deployment, rows: Replicas, most: float, replicas: int, full: Delivered
             ) -> Delivered:
    """Return what one of the replicas of a layout does at its share of the rate; `full` with every request queued."""
    assert service.rate is not None
    stream = service.stream
    column = ReplicaColumn(0, d.format, "whole", int(rows.tp[0]), int(rows.pp[0]), int(rows.ep[0]), int(rows.dp[0]),
                           0.0, 0.0, most)
    served = working(d, column, service, service.rate / replicas, service.rate)
    if service.asked.users is None and served.rate[0] * replicas < ANSWERED * service.rate:
        return replace(full, overloaded=True)
    return Delivered(float(served.rate[0]), float(served.batch[0]), stream.context, first_token(served, service),
                     each_token(served, service), stream.input, stream.output, e2e=whole_answer(served, service),
                     users=None if service.asked.users is None else service.rate / replicas)


def _steady(service: Service, d: Deployment, rows: Replicas, most: Floats, replicas: Ints) -> list[Delivered]:
    """Return what one of the replicas of each layout does with its share of the clients, or at most."""
    stream, asked, many = service.stream, service.asked, np.ones(len(rows))
    if stream.only_reads and not asked.concurrency:
        served = prefilling(d, rows, stream, BUSIEST * many)
        none = Percentiles(p50=0.0, p95=0.0)
        return [Delivered(rate / BUSIEST, 1.0, stream.context, Percentiles(p50=own, p95=own), none, stream.input,
                          stream.output) for rate, own in zip(served.rate.tolist(), served.own.tolist(), strict=True)]
    clients = (asked.concurrency or 0) / replicas
    demand = RequestMix(stream.input * many, stream.output * many, np.maximum(clients, 1.0), stream.drafts,
                        stream.accepted, stream.hits, stream.input_cv, stream.output_cv, in_step=stream.in_step,
                        waves=stream.in_step)
    found = closed(d, rows, demand, most) if asked.concurrency else offline(d, rows, demand, most)
    return [_of_steady(service, found.take(at)) for at in np.arange(len(rows))[:, None]]


def _of_steady(service: Service, steady: Steady) -> Delivered:
    """Return what a replica does in a steady state."""
    stream, asked, tpot = service.stream, service.asked, float(steady.tpot[0])
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
