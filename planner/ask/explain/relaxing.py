"""The least change of one limit, all others held, with which a question has a plan; each is solved with before it is
said.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from math import ceil

from planner.answer.relaxation import Relaxation
from planner.ask.explain.wording import MOST_STEPS, advised, asked_limit
from planner.errors import Unsupported
from planner.jobs.job import Change, Short
from planner.jobs.solved import Solved, solve
from planner.layouts.candidate import Candidate
from planner.scenario.batch import Batch
from planner.scenario.limits import Deadline, Objective
from planner.scenario.workload import TRAINABLE
from planner.solver.settings import OutOfTime
from planner.units import show_bytes

MEASURES: dict[str, Objective] = {"budget": "cost", "max_power": "gpus", "deadline": "time", "max_nodes": "gpus",
                                  "max_gpus": "gpus", "gpus": "gpus"}
"""Limits in the order in which they are given up as reasons, and the objective that finds the least value of each."""
MOST_CHANGE = 100
"""A limit changed by more than this many times is no advice where a smaller change is enough."""
MEMORY_STEP = 0.1e9
"""Bytes to which a relaxation of memory is rounded up."""
GENEROUS = 1.02
"""What the layout that comes nearest lacks is exceeded by, as its layers are not split evenly."""
ODDS = (0.9, 0.75, 0.5)
"""Confidences that are tried instead of the one asked for."""
MOST_OWNED = 1024
"""Nodes more than are owned that are tried."""
HALVINGS = 10
TRIED = 6
"""Numbers of GPUs on either side of the one asked for that are tried."""
WIDEST = 8.0
"""Share of the batch by which another one may miss it."""
Found = tuple[float, Relaxation]
"""By how many times a limit changes, and the change."""


def possible(failed: Solved, change: Change) -> bool:
    """Say whether the question with a change has a plan. Raises OutOfTime where the time is up before that is known."""
    try:
        return _found(failed, change).solution.value is not None
    except Unsupported:  # a format that the target of the launch files has not
        return False


def relaxed(failed: Solved, reasons: Sequence[str], shorts: Sequence[Short] = ()) -> list[Relaxation]:
    """Return the changes of one reason each that are enough, the smallest first; what time leaves out is left out.

    shorts: what each job lacks of memory, where that is a reason.
    """
    return by_change([timed for name in reasons for timed in _in_time(name, failed, shorts)])


def by_change(relaxations: Sequence[Found]) -> list[Relaxation]:
    """Return relaxations, the smallest relative change first; out of all proportion only where no other is enough."""
    ranked = sorted(relaxations, key=lambda pair: pair[0])
    return [relaxation for at, (factor, relaxation) in enumerate(ranked) if at == 0 or factor <= MOST_CHANGE]


def _found(failed: Solved, change: Change) -> Solved:
    solved = solve(failed.question.changed(change), failed.effort, "any", failed.held)
    if solved.status == "undecided":
        raise OutOfTime
    return solved


def _in_time(name: str, failed: Solved, shorts: Sequence[Short]) -> Iterator[Found]:
    try:
        yield from _relaxations(name, failed, shorts)
    except OutOfTime:
        return


def _relaxations(name: str, failed: Solved, shorts: Sequence[Short]) -> Iterator[Found]:
    """Yield the changes of one reason that are enough alone."""
    if name == "own":
        yield from _more_owned(failed)
    elif name == "memory":
        for short in shorts:
            yield from _more_memory(failed, short)
        yield from leaner(failed)
        yield from _less_sure(failed)
    elif name == "precision":
        yield from _other_precision(failed)
    elif name == "global_batch":
        yield from _other_batch(failed)
    elif name == "gpus" and failed.alone is not None:
        yield from _other_counts(failed)
    else:
        yield from _least(name, failed)


def _other_precision(failed: Solved) -> Iterator[Found]:
    """Yield the first other format of matrix products that has a plan."""
    alone = failed.alone
    for name in TRAINABLE if alone is not None else ():
        if alone is not None and possible(failed, Change(work={alone.name: {"precision": (name,)}})):
            asked = failed.question.scenario.model_dump()["workload"]["precision"]
            yield 1.0, Relaxation(limit="precision", from_=", ".join(asked), to=name)
            return


def _least(name: str, failed: Solved) -> Iterator[Found]:
    """Yield the least of a limit that is enough."""
    least = _least_of(name, failed)
    if least is None:
        return
    limits = failed.question.terms.limits
    value = getattr(limits, name)
    if name == "deadline":
        yield from _likelier(failed, value)
    asked = float(value.seconds if name == "deadline" else value)
    for more in range(MOST_STEPS):
        advice = advised(limits, name, least, more)
        if advice is None:
            return
        # what is confirmed is what the words read back to
        text, changed = advice
        if possible(failed, Change(limits={name: changed}, objective=MEASURES[name])):
            yield max(changed / asked, asked / changed), Relaxation(
                limit=name, from_=asked_limit(limits, name), to=text)
            return


def _likelier(failed: Solved, asked: Deadline) -> Iterator[Found]:
    """Yield the first lower confidence with which the deadline itself can be kept."""
    for odds in ODDS:
        if odds < (asked.confidence or 0) and possible(failed, Change(limits={
                "deadline": Deadline(asked.seconds, odds)})):
            yield (asked.confidence or 1) / odds, Relaxation(limit="deadline", from_=str(asked),
                                                             to=str(Deadline(asked.seconds, odds)))
            return


def _least_of(name: str, failed: Solved) -> float | None:
    """Return what the best plan without a limit takes of it; none where there is none."""
    lifted = solve(failed.question.changed(Change(limits={name: None}, objective=MEASURES[name])), failed.effort,
                   "best", failed.held)
    used: dict[str, float] = {} if lifted.solution.value is None else lifted.fleet.used(lifted.solution)
    return used.get(name)


def _other_counts(failed: Solved) -> Iterator[Found]:
    """Yield the nearest numbers of GPUs that have a plan, below and above the one asked for."""
    asked, least, alone = failed.question.terms.limits.gpus, _least_of("gpus", failed), failed.alone
    if least is None or asked is None or alone is None:
        return
    if least > asked:
        sides: list[list[int]] = [[int(least)]]
    else:
        counts = alone.counts(2 * asked)
        sides = [[count for count in reversed(counts) if least <= count < asked],
                 [count for count in counts if count > asked]]
    for side in sides:
        near = _first(side, lambda count: possible(failed, Change(limits={"gpus": count})))
        if near is not None:
            yield max(near / asked, asked / near), Relaxation(limit="gpus", from_=f"{asked:,}", to=f"{near:,}")


def _first(values: Sequence[int], works: Callable[[int], bool]) -> int | None:
    """Return the first value that works; beyond the first few, ones ever further apart are tried, then those between.
    """
    for value in values[:TRIED]:
        if works(value):
            return value
    low, high = TRIED - 1, 2 * TRIED
    while high < len(values) and not works(values[high]):
        low, high = high, 2 * high
    if high >= len(values):
        return None
    return values[bisect_left(values, True, low + 1, high, key=works)]


def _other_batch(failed: Solved) -> Iterator[Found]:
    """Yield the nearest global batch that has a plan."""
    alone = failed.alone
    if alone is None or alone.batch is None:
        return
    asked, name = alone.batch, alone.name

    def within(share: float) -> int | None:
        solved = _found(failed, Change(work={name: {"global_batch": Batch(asked.sequences, share)}}))
        return solved.assignments()[0].global_batch if solved.picks else None  # type: ignore[union-attr]

    low, high = asked.tolerance, max(2 * asked.tolerance, 1 / asked.sequences, 1e-3)
    while (near := within(high)) is None and high < WIDEST:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        if near is None or (high - low) * asked.sequences < 1:
            break
        closer = within((low + high) / 2)
        low, high, near = ((low + high) / 2, high, near) if closer is None else (low, (low + high) / 2, closer)
    if near is not None and possible(failed, Change(work={name: {"global_batch": Batch(near, asked.tolerance)}})):
        yield max(near / asked.sequences, asked.sequences / near), Relaxation(
            limit="global_batch", from_=str(asked), to=str(Batch(near, asked.tolerance)))


def _more_memory(failed: Solved, short: Short) -> Iterator[Found]:
    """Yield what more of the memory that the nearest layout is short of has a plan: on the GPU, and of the host."""
    candidates = failed.question.terms.market.candidates
    kinds: tuple[tuple[str, str, float, Callable[[float], Change], Callable[[Candidate], float]], ...] = (
        ("memory", "GPU", short.memory, lambda more: Change(memory=more),
         lambda candidate: candidate.gpu.usable_memory),
        ("host_memory", "node", short.host, lambda more: Change(host=more),
         lambda candidate: candidate.node.cpu.memory))
    for limit, per, lacks, change, held in kinds:
        most = max(map(held, candidates))
        enough = _least_more(most, lacks * GENEROUS, lambda more,
                             of=change: _chosen(failed, of(more)))  # type: ignore[misc]
        if enough is not None:
            more, there = enough[0], held(candidates[enough[1]])
            yield 1 + more / there, Relaxation(limit=limit, from_=f"{show_bytes(there)} per {per}",
                                               to=f"{show_bytes(there + more)} per {per}")


def leaner(failed: Solved) -> Iterator[Found]:
    """Yield of every key of a job that takes memory the first smaller value that has a plan."""
    jobs, done = failed.question.jobs, set[tuple[str, str]]()
    for job, less in [(each, less) for each in jobs for less in each.leaner]:
        if (job.name, less.limit) not in done and possible(failed, Change(work={job.name: less.work})):
            done.add((job.name, less.limit))
            limit = less.limit if len(jobs) == 1 else f"{job.name}.{less.limit}"
            yield less.factor, Relaxation(limit=limit, from_=less.asked, to=less.instead, work=less.work)


def _more_owned(failed: Solved) -> Iterator[Found]:
    """Yield how many nodes of each owned kind are enough, where as many more of each are."""
    low, high = 0, 1
    while not possible(failed, Change(own=high)):
        if high > MOST_OWNED:
            return
        low, high = high, 2 * high
    high = low + 1 + bisect_left(range(low + 1, high), True, key=lambda more: possible(failed, Change(own=more)))
    market = failed.question.terms.market
    owned = [(offer.nodes or 0, market.candidates[offer.candidate].node.name) for offer in market.offers
             if offer.how == "owned"]
    asked, enough = (", ".join(f"{nodes + more} x {node}" for nodes, node in owned) for more in (0, high))
    yield (sum(nodes for nodes, _ in owned) + high * len(owned)) / sum(nodes for nodes, _ in owned), Relaxation(
        limit="own", from_=asked, to=enough)


def _less_sure(failed: Solved) -> Iterator[Found]:
    """Yield the first lower confidence of what fits in memory that has a plan."""
    alone = failed.alone
    for odds in ODDS:
        if alone is not None and odds < alone.confidence and possible(
                failed, Change(work={alone.name: {"confidence": odds}})):
            yield alone.confidence / odds, Relaxation(limit="confidence", from_=f"{alone.confidence:.0%}",
                                                      to=f"{odds:.0%}")
            return


def _chosen(failed: Solved, change: Change) -> int | None:
    """Return the number of the hardware that has a plan with a change; none where there is no plan."""
    run = _found(failed, change).solution.run
    return None if run is None else run.column.candidate


def _least_more(there: float, lacks: float, chosen: Callable[[float], int | None]) -> tuple[float, int] | None:
    """Return how much more than `there` is enough, and for which hardware: what the nearest layout lacks, or else found
    by halving; none where that lacks nothing, or thrice as much is not enough.
    """
    enough, low, high = chosen(lacks) if lacks else None, lacks, lacks
    if lacks and enough is None:
        low, high = 0.0, 2 * there
        enough = chosen(high)
    while enough is not None and high - low > max(MEMORY_STEP, high / 16):
        middle = (low + high) / 2
        nearer = chosen(middle)
        low, high, enough = (middle, high, enough) if nearer is None else (low, middle, nearer)
    return None if enough is None else (ceil(high / MEMORY_STEP) * MEMORY_STEP, enough)
