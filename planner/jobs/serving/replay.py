"""A serving plan replayed event by event: the physics' steps as tables, a fleet of the plan's replicas, percentiles.

Step times are tabulated over how many sequences decode and how long prompts are, and read by interpolation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import mul

import numpy as np

from planner.answer.level import Replayed
from planner.catalog.load import Catalog
from planner.jobs.columns import Pick, Role
from planner.jobs.serving.day import day_of, hours_of
from planner.jobs.serving.delivered import percentiles
from planner.jobs.serving.deployed import deployment, held
from planner.jobs.serving.running import Progress, run
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats
from planner.physics.serving.apart import sending
from planner.physics.serving.capacity import Capacity
from planner.physics.serving.deployment import Delay, Deployment, Replicas
from planner.physics.serving.settings import EngineSettings, can_wait
from planner.physics.serving.step import StepLoad, step_times
from planner.simulate.fleet import ReplicaGroup, Shift, Transfer
from planner.simulate.outcome import Outcome
from planner.simulate.steps import PromptDelay, ReplicaKind
from planner.simulate.trace import Lengths, Trace, synthetic

POINTS = 40
"""Points of a table of steps."""
REQUESTS = 4000
"""Of a replay without a trace, at least."""
LIVES, USER_ASKS, MOST_REQUESTS = 8, 4, 48000
"""Times as long as a request may take that requests arrive for, requests of each user, and how many at most."""
GRAIN = 64
"""Tokens to which the cached part of a prompt is rounded."""


@dataclass(frozen=True, slots=True)
class Tabulated:
    """Step times of one replica. `sequences`, `tokens` and `before` are the points of the tables."""

    sequences: Floats
    plain: Floats
    """Of a decode step over empty caches."""
    slope: Floats
    """More for each cached token of all sequences."""
    tokens: Floats
    before: Floats
    prompts: Floats
    """What prompt tokens add, by how many copies have as many, by tokens, and by what is cached before them."""
    floor: float
    mean_prompt: float
    gain: float
    """Output tokens of a sequence in a step."""
    copies: int
    """Of attention."""
    stages: int
    """Of a replica that only prefills: they take steps one after another, each all of it; 1 of others."""

    def fixed(self, sequences: int) -> float:
        """Return seconds of a token of that many sequences over empty caches."""
        return float(np.interp(sequences, self.sequences, self.plain)) / self.gain

    def per_token(self, sequences: int) -> float:
        """Return more seconds for each cached token."""
        return float(np.interp(sequences, self.sequences, self.slope)) / self.gain

    def prefill(self, tokens: int, context: int, ranks: float = 1.0) -> float:
        """Return seconds that prompt tokens add; several prompts in a step are each as long as the mean one.

        ranks: tokens of all copies over those of the fullest, which `tokens` are.
        """
        behind = context + min(tokens, self.mean_prompt) / 2
        # between two rows of the table, for one copy and for all
        at = np.clip(np.searchsorted(self.tokens, tokens, "right") - 1, 0, len(self.tokens) - 2)
        one, *every = (float(np.interp(tokens, self.tokens[at:at + 2], [
            np.interp(behind, self.before, row) for row in table[at:at + 2]])) for table in self.prompts)
        more = (every[0] - one) * (ranks - 1) / (self.copies - 1) if every else 0.0
        return (one + more) / self.stages

    def empty(self) -> float:
        """Return the floor of a step that decodes nothing."""
        return self.floor


def tabulate(d: Deployment, rows: Replicas, service: Service, batch: float, most: float, *, reads: bool) -> Tabulated:
    """Return the steps of a layout, tables of one row; prompts beside `batch` decoding sequences, or beside none."""
    stream, copies, batches = service.stream, int(rows.dp[0]), int(rows.pp[0])
    counts = np.unique(np.rint(np.geomspace(1, max(most, 2), POINTS)))
    context = stream.context

    def seconds(sequences: Floats, cached: Floats, prompt: Floats, behind: Floats, on: float = np.inf) -> Floats:
        return step_times(d, rows.take(np.zeros(len(sequences), np.int64)),
                          StepLoad(sequences, cached, prompt, behind, 1.0 + stream.drafts, on)).total

    none = np.zeros(len(counts))
    short, long = (seconds(counts, none + share * context, none, none) for share in (0.5, 1.5))
    slope = (long - short) / (counts * context)
    plain = short - slope * counts * 0.5 * context
    tokens = np.geomspace(1, d.engine.chunk, POINTS)
    before = np.concatenate([[0.0], np.geomspace(64, max(service.length, 128), POINTS // 2)])
    beside = 0.0 if d.engine.prefill_first or reads else max(batch, 1.0)
    each, behind = np.repeat(tokens, len(before)), np.tile(before, len(tokens))
    flat, ranks = np.zeros(len(each)), [copies] if copies == 1 else [1, copies]
    whole = np.stack([seconds(flat + beside, flat + context, each * batches * many, behind, batches * many)
                      for many in ranks])
    base = seconds(np.array([beside]), np.array([context]), np.zeros(1), np.zeros(1))[0] if beside else 0.0
    # where prompts go first, their steps are whole ones
    floor = d.engine.step if beside else 0.0
    prompts = np.maximum(whole - base, 0.0).reshape(len(ranks), len(tokens), len(before))
    return Tabulated(counts, plain, slope, tokens, before, prompts, floor, stream.prompt, stream.tokens_per_step,
                     copies, batches if reads else 1)


def kind_of(catalog: Catalog, service: Service, candidate: Candidate, pick: Pick) -> ReplicaKind:
    """Return a pick's replica as the simulator runs it."""
    column = pick.column
    if service.replica is not None:
        return service.replica(column)
    d, rows = deployment(catalog, service, candidate, column.format, column.settings), column.rows
    mean = held(catalog, service, d, rows, service.mean_length, column.settings)
    most = min(d.engine.sequences * pick.column.dp, max(1, int(mean.concurrency[0])))
    reads = _prefills(service, column.role)
    steps = tabulate(d, rows, service, column.batch, most, reads=reads)
    apart = _apart(catalog, service, d, rows, mean, column.settings) if d.memory else 0
    waits = d.delay is not None and not reads and column.role == "whole" and can_wait(column.dp, column.pp)
    return ReplicaKind(steps, max(service.length + apart, int(mean.concurrency[0] * (service.mean_length + apart))),
                       d.engine.sequences * column.dp, d.engine.chunk,
                       "prefill first" if d.engine.prefill_first else "mixed", hit_rate=service.asked.prefix_hits,
                       context_grain=GRAIN, stages=column.pp if reads else 1, copies=column.dp,
                       batches=1 if reads else column.pp, apart=apart,
                       delay=_delay(d.delay, column.dp) if d.delay and waits else None,
                       ahead=column.role == "whole" and not reads and bool(d.steps_ahead(rows)[0]))


def _delay(delay: Delay, copies: int) -> PromptDelay:
    return PromptDelay(delay.steps, copies if delay.all_decode else 1, delay.in_turn)


def _apart(catalog: Catalog, service: Service, d: Deployment, rows: Replicas, mean: Capacity,
           settings: EngineSettings) -> int:
    """Return what a sequence holds whatever its length, in tokens of its own: two lengths that share a pool tell it."""
    long = held(catalog, service, d, rows, service.length, settings)
    few, many = float(long.concurrency[0]), float(mean.concurrency[0])
    if many <= few:
        return 0
    return max(0, round((few * service.length - many * service.mean_length) / (many - few)))


def _prefills(service: Service, role: Role) -> bool:
    """Say whether a replica reads prompts and decodes nothing."""
    return role == "prefill" or service.stream.only_reads


def replay(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick],
           trace: Trace | None = None, policy: str = "least-outstanding", progress: Progress | None = None,
           phases: Sequence[Shift] | None = None, seed: int = 0, load: float = 1.0) -> tuple[Outcome, Outcome | None]:
    """Replay a service's picks on a trace; on its own, or one drawn as the service asks, where none is given.

    phases: what replicas there are when, where it is not the service's own day that says so.
    seed: of what is drawn. load: times the rate of a day.

    Return what was found, of a day in its busiest hours; and then of the whole day.
    """
    groups = groups_of(catalog, service, candidates, picks)
    transfer = transfer_of(catalog, service, candidates, picks)

    def went(trace: Trace, phases: Sequence[Shift]) -> Outcome:
        host = outside(catalog, service, candidates, picks)
        result = run(service, groups, trace, policy, transfer, progress, phases=phases, seed=seed, host=host)
        return result.delayed(host)

    if trace is None and (day := day_of(service)) is not None:
        hours, many = replace(day[0], seconds=day[0].seconds / load), day[1]
        drawn = requests_of(service, seed=seed, count=many)
        outcome = went(hours.warped(replace(drawn, arrival=drawn.arrival / load)), hours.phases(picks))
        return hours.busiest(outcome), outcome
    trace = trace or requests_of(service, seed=seed)
    return went(trace, hours_of(service, picks, trace) if phases is None else phases), None


def groups_of(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick]
              ) -> list[ReplicaGroup]:
    """Return the picks as the simulator runs them."""
    return [ReplicaGroup(kind_of(catalog, service, candidates[pick.column.candidate], pick), pick.replicas,
                  pick.column.role, weight=pick.column.rate) for pick in picks]


def filling(service: Service, factor: float = 1.0, least: int | None = None) -> float:
    """Return how many requests it takes for the replicas to fill, and to stay so: more of long answers at a high rate.

    factor: of the rate, in an hour of the day. least: as many at least; as of any replay if not given.
    """
    asked, least = service.asked, REQUESTS if least is None else least
    output = 1.0 if asked.output is None else asked.output.mean
    there = sum(level.seconds * (output if name == "tpot" else 1) for name, level in asked.levels)
    return max(least, LIVES * (asked.rate or 1.0) * factor * there, USER_ASKS * (asked.clients or 0))


def requests_of(service: Service, trace: Trace | None = None, seed: int = 0, count: int | None = None) -> Trace:
    """Return what a service answers of a trace, else of its own, else of requests drawn as it asks, alike for a seed.

    Of long answers at a high rate more are drawn, so that the replicas fill, unless their count is given.
    """
    asked = service.asked
    if trace is None and service.trace is not None:
        return service.trace
    if trace is None:
        lengths = Lengths(1.0), Lengths(1.0)
        if asked.input is not None and asked.output is not None:
            lengths = Lengths(asked.input.mean, asked.input.cv), Lengths(max(asked.output.mean, 1.0), asked.output.cv)
        count = count or int(min(filling(service), MOST_REQUESTS))
        trace = synthetic(asked.rate or 1.0, lengths, asked.gap_cv, count=count, seed=seed)
    return trace if service.prompts is None else trace.of_prompts(*service.prompts)


def transfer_of(catalog: Catalog, service: Service, candidates: Sequence[Candidate],
              picks: Sequence[Pick]) -> Transfer | None:
    """Return the seconds of sending a cache from replicas that prefill; none where nothing is sent."""
    senders = [pick for pick in picks if pick.column.role == "prefill"]
    if not senders:
        return None
    column = senders[0].column
    d = deployment(catalog, service, candidates[column.candidate], column.format, column.settings)
    each = float(sending(d, column.rows, 1.0)[0])
    return partial(mul, each)


def outside(catalog: Catalog, service: Service, candidates: Sequence[Candidate], picks: Sequence[Pick]) -> float:
    """Return seconds before a first token that no step of the replay has: of the host."""
    if service.replica is not None:
        return 0.0
    column = next((pick for pick in picks if pick.column.role == "prefill"), picks[0]).column
    return deployment(catalog, service, candidates[column.candidate], column.format, column.settings).engine.request


def replayed(outcome: Outcome, service: Service, day: Outcome | None = None) -> Replayed:
    """Return the percentiles of a replay as a plan says them; day: of all hours."""
    asked = service.asked
    return Replayed(requests=len(outcome.arrival), rejected=int(outcome.rejected.sum()),
                    preempted=int(outcome.preemptions.sum()),
                    ttft_seconds=percentiles(partial(outcome.within, "ttft"), asked.ttft),
                    tpot_seconds=percentiles(lambda q: _number(outcome.within("tpot", q)), asked.tpot),
                    e2e_seconds=None if asked.e2e is None else percentiles(partial(outcome.within, "e2e"), asked.e2e),
                    output_tokens_per_second=outcome.output_tokens_per_second,
                    share_within_level=share_within(outcome, service),
                    share_within_level_of_day=None if day is None else share_within(day, service),
                    busy_share=outcome.busy_share)


def share_within(outcome: Outcome, service: Service) -> float:
    """Return the share of requests within the service's limits."""
    limits = {name: level.seconds for name, level in service.asked.levels}
    return outcome.share_meeting(**limits)


def _number(value: float) -> float:
    return 0.0 if np.isnan(value) else value
