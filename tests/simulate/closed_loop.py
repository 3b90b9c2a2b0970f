"""One replica under a constant number of requests: when one ends, the next arrives. What benchmarks of engines do."""

from __future__ import annotations

import math

import numpy as np

from planner.errors import InputError
from planner.simulate.fleet import outcome
from planner.simulate.outcome import Outcome
from planner.simulate.replica import InFlight, Log, Replica
from planner.simulate.steps import ReplicaKind, StepMemo
from planner.simulate.trace import Lengths, Trace


def closed_loop(concurrency: int, prompt: Lengths, answer: Lengths, requests: int, replica: ReplicaKind,
                seed: int = 0) -> Outcome:
    """Run `requests`, `concurrency` of them outstanding at any time, until the last ends.

    Constant lengths keep requests in step with each other. The beginning, with every prompt at once, and the end, with
    ever fewer requests, are in the outcome. Raises InputError.
    """
    if concurrency < 1 or requests < 1:
        raise InputError(f"concurrency and requests must be at least 1, got {concurrency} and {requests}")
    generator = np.random.default_rng(seed)
    prompts, answers = prompt.draw(generator, requests), answer.draw(generator, requests)
    longest = int((prompts + answers).max()) - 1
    if longest > replica.longest:
        raise InputError(f"a request of {longest} cached tokens never fits in a cache of {replica.kv_tokens}")
    log, arrival, last = Log(requests), [math.nan] * requests, [math.nan] * requests
    one = Replica(replica, StepMemo(replica.steps), log)
    todo = (InFlight(i, *lengths) for i, lengths in enumerate(zip(prompts.tolist(), answers.tolist(), strict=True)))
    now, due = 0.0, concurrency
    while True:
        for _, job in zip(range(due), todo, strict=False):
            arrival[job.request] = now
            one.arrive(job, now)
        one.start(now)
        if one.end == math.inf:
            trace = Trace(np.array(arrival), prompts, answers)
            return outcome(trace, log, last, [0] * requests, [one])
        now = one.end
        ended = one.complete()
        due = len(ended)
        for job in ended:
            last[job.request] = now
