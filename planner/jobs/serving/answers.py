"""Picks of the fleet as assignments: the load that each replica gets, what it delivers, the replay beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.answer.assignment import Assignment
from planner.answer.bought import bought_of
from planner.answer.level import Replayed
from planner.catalog.load import Catalog
from planner.jobs.columns import Pick, Processed
from planner.jobs.job import Replaying
from planner.jobs.serving.assignment import ReplicaPlace, batch_of, served_assignment
from planner.jobs.serving.autoscale import of_a_day, of_a_trace
from planner.jobs.serving.day import at_hour
from planner.jobs.serving.delivered import delivered_of, working
from planner.jobs.serving.deployed import deployment, held
from planner.jobs.serving.measured import residual
from planner.jobs.serving.replay import replay, replayed, requests_of
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.physics.serving.level import Served
from planner.simulate.fleet import Shift
from planner.simulate.trace import Trace
from planner.units import DAY, MONTH_DAYS


def assignments(catalog: Catalog, services: Sequence[Service], candidates: Sequence[Candidate], picks: Sequence[Pick],
                replaying: Replaying | None = None) -> list[Assignment]:
    """Return the picks of a job as assignments, demand by demand; `replaying`: with the percentiles of a replay."""
    made: list[Assignment] = []
    for at, service in enumerate(services):
        mine = [pick for pick in picks if pick.demand == at]
        if mine:
            given = None if replaying is None or replaying.trace is None else requests_of(service, replaying.trace)
            outcome = None
            if replaying is not None and (given is None or len(given)):
                outcome = _replayed(catalog, service, candidates, mine, given, replaying)
            made += _service(catalog, service, candidates, mine, outcome)
    return made


def _replayed(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick],
              trace: Trace | None, replaying: Replaying) -> Replayed:
    picks = at_load(catalog, service, candidates, picks)
    outcome, day = replay(catalog, service, candidates, picks, trace, progress=replaying.progress)
    answer = replayed(outcome, service, day)
    if (startup := service.asked.startup) is None:
        return answer
    if service.asked.day is not None:
        return answer.model_copy(update={"autoscaled": of_a_day(picks, len(service.asked.day), startup)})
    requests = requests_of(service, trace)

    def within(phases: tuple[Shift, ...]) -> tuple[bool, float]:
        seen = replayed(replay(catalog, service, candidates, picks, requests, phases=phases)[0], service)
        targets = [percentiles.asked for percentiles in (seen.ttft_seconds, seen.tpot_seconds, seen.e2e_seconds)
                   if percentiles and percentiles.asked]
        return (not seen.rejected and all(target.seconds <= target.target_seconds for target in targets),
                seen.share_within_level)

    return answer.model_copy(update={"autoscaled": of_a_trace(picks, requests, startup, within)})


def _service(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick],
             outcome: Replayed | None) -> list[Assignment]:
    deployments = [deployment(catalog, service, candidates[p.column.candidate], p.column.format, p.column.settings)
                   for p in picks]
    rates = loads(service, picks)
    works = [working(d, p.column, service, rate, routed(picks, rates, p))
             for d, p, rate in zip(deployments, picks, rates, strict=True)]
    made: list[Assignment] = []
    for pick, d, rate, mine in zip(picks, deployments, rates, works, strict=True):
        prefill, decode = (_of(role, pick, mine, picks, works) for role in ("prefill", "decode"))
        daily = None if pick.always or len(set(pick.daily)) == 1 else pick.daily
        placed = ReplicaPlace(pick.replicas, pick.nodes, pick.offer, pick.usd_per_node_hour,
                              pick.part, daily, pick.share,
                        pick.column.role, pick.column.settings,
                        bought_of(pick.offer.estate, pick.together, pick.buys, 1.0)
                        if pick.offer.estate is not None and pick.buys else None, service.prompts, pick.idle,
                        None if len(set(pick.hourly)) < 2 else pick.hourly)
        capacity = held(catalog, service, d, pick.column.rows, service.mean_length, pick.column.settings)
        made.append(served_assignment(
            service, d, pick.column.rows, capacity,
            replace(delivered_of(service, rate, mine, prefill, decode, pick.column.role),
                    load_share=rate / pick.column.rate),
            placed, residual(catalog, service, d), outcome))
    return made


def _of(role: str, pick: Pick, mine: Served, picks: Sequence[Pick], works: Sequence[Served]) -> Served:
    """Return what prefills, or decodes, the requests of a pick: itself, or the strongest of the other pool."""
    if pick.column.role in ("whole", role):
        return mine
    return next(work for other, work in zip(picks, works, strict=True)
                if (other.column.role, other.offer.label) == (role, pick.offer.label))


def loads(service: Service, picks: Sequence[Pick]) -> list[float]:
    """Return the requests/s that a replica of each pick gets: shared out by what each could answer.

    Of a day in its busiest hour, or in the busiest of those in which it runs.
    """
    day = service.asked.day
    if day is None or not all(pick.hourly for pick in picks):
        return _shared(service, picks)
    rates = []
    for number, pick in enumerate(picks):
        hour = max((at for at in range(len(day)) if at_hour(pick, at)), key=day.__getitem__)
        there = [replace(other, replicas=at_hour(other, hour)) for other in picks]
        rates.append(_shared(replace(service, rate=(service.rate or 0.0) * day[hour]), there)[number])
    return rates


def _shared(service: Service, picks: Sequence[Pick]) -> list[float]:
    whole = sum(p.replicas * p.column.rate for p in picks if p.column.role == "whole")
    pools = {offer: [sum(p.replicas * p.column.rate for p in picks if (p.offer.label, p.column.role) == (offer, role))
                     for role in ("prefill", "decode")]
             for offer in dict.fromkeys(p.offer.label for p in picks if p.column.role != "whole")}
    share = (service.rate or 0.0) / max(whole + sum(map(min, pools.values())), 1e-12)
    out = []
    for pick in picks:
        mine = pools.get(pick.offer.label, [1.0, 1.0])
        weaker = 1.0 if pick.column.role == "whole" else min(mine) / mine[pick.column.role == "decode"]
        out.append(pick.column.rate * share * weaker)
    return out


def routed(picks: Sequence[Pick], rates: Sequence[float], pick: Pick) -> float:
    """Return the requests/s that a router shares out to the replicas that do what a pick's do, all of them there."""
    decodes = pick.column.role == "decode"
    return sum(other.replicas * rate for other, rate in zip(picks, rates, strict=True)
               if (other.column.role == "decode") == decodes)


def at_load(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick]) -> list[Pick]:
    """Return the picks of a service with as many sequences as its load has decode: prompts run beside these."""
    if service.replica is not None:
        return list(picks)
    made, rates = [], loads(service, picks)
    for pick, rate in zip(picks, rates, strict=True):
        column = pick.column
        if column.role != "prefill":
            d = deployment(catalog, service, candidates[column.candidate], column.format, column.settings)
            there = float(working(d, column, service, rate, routed(picks, rates, pick)).batch[0])
            column = replace(column, batch=batch_of(there, column.dp, column.pp))
        made.append(replace(pick, column=column))
    return made


def month_of(catalog: Catalog, services: Sequence[Service], candidates: Sequence[Candidate], picks: Sequence[Pick]
             ) -> Processed:
    """Return the tokens of a month, and the GPUs at work: on prompts by the share of their time, and in all."""
    inputs = outputs = prompts = busy = 0.0
    for at, service in enumerate(services):
        mine = [pick for pick in picks if pick.demand == at]
        if not mine:
            continue
        day = service.asked.day or (1.0,)
        asked = 0.0
        rates = loads(service, mine)
        for pick, rate in zip(mine, rates, strict=True):
            column = pick.column
            d = deployment(catalog, service, candidates[column.candidate], column.format, column.settings)
            apart = {"prefill": 1.0, "decode": 0.0}.get(column.role)
            does = working(d, column, service, rate, routed(mine, rates, pick))
            share = float(does.prompts[0]) if apart is None else apart
            at_work = pick.replicas * column.gpus
            asked += pick.replicas * float(does.rate[0]) * (column.role != "prefill")
            prompts, busy = prompts + share * at_work, busy + at_work
        load = asked if service.asked.clients is not None else service.rate or 0.0
        requests = load * sum(day) / len(day) * MONTH_DAYS * DAY
        inputs, outputs = inputs + requests * service.stream.input, outputs + requests * service.stream.output
    return Processed(inputs, outputs, prompts, busy)
