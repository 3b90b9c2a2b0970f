"""Requests over time: when each arrives, how long its prompt and answer are, which blocks its prompt begins with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.errors import InputError
from planner.layouts.table import Floats, Ints

PREFIX_BLOCK = 512
"""Prompt tokens that one hash of a Mooncake trace stands for."""
MOST_TOKENS = 10**8
"""Above any prompt or answer that makes sense."""


@dataclass(frozen=True, slots=True)
class Trace:
    """Requests in the order of arrival, one a row.

    arrival: seconds, from 0, never falling. input, output: tokens, at least 1. prefixes: of each request the hashes of
    its prompt's blocks of `prefix_block` tokens, each hash standing for all of the prompt up to there.
    """

    arrival: Floats
    input: Ints
    output: Ints
    prefixes: tuple[tuple[int, ...], ...] | None = None
    prefix_block: int = PREFIX_BLOCK

    def __len__(self) -> int:
        return len(self.arrival)

    def of_prompts(self, least: int, most: int | None) -> Trace:
        """Return the requests whose prompts have so many tokens."""
        rows = np.flatnonzero((self.input >= least) & (self.input <= (MOST_TOKENS if most is None else most)))
        prefixes = None if self.prefixes is None else tuple(self.prefixes[row] for row in rows)
        return Trace(self.arrival[rows], self.input[rows], self.output[rows], prefixes, self.prefix_block)

    def first(self, count: int) -> Trace:
        """Return the first requests, at most so many."""
        prefixes = None if self.prefixes is None else self.prefixes[:count]
        return Trace(self.arrival[:count], self.input[:count], self.output[:count], prefixes, self.prefix_block)

    @property
    def seconds(self) -> float:
        """From 0 to the last arrival."""
        return float(self.arrival[-1])

    @property
    def rate(self) -> float:
        """Requests/second, as the gaps between arrivals have it; inf where all arrive at once."""
        span = self.seconds - float(self.arrival[0])
        return (len(self) - 1) / span if span else math.inf


@dataclass(frozen=True, slots=True)
class Users:
    """A closed loop: people who each wait for the answer, think, and ask again, in place of the arrivals of a trace."""

    count: int
    think: Floats
    """Seconds before each request, one a row of the trace in the order in which they are asked."""


def thinking(count: int, mean: float, requests: int, seed: int = 1) -> Users:
    """Return users who think for exponentially distributed times; the same for the same seed."""
    return Users(count, np.random.default_rng(seed).exponential(mean, requests) if mean else np.zeros(requests))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Token counts of prompts or answers: constant, or lognormal with a coefficient of variation."""

    mean: float
    cv: float = 0.0

    def draw(self, generator: np.random.Generator, count: int) -> Ints:
        """Return whole token counts, at least 1. Raises InputError."""
        if not (1 <= self.mean <= MOST_TOKENS and 0 <= self.cv <= 100):
            raise InputError(f"lengths have a mean of 1 to {MOST_TOKENS:,} tokens and a coefficient of variation of 0 "
                             f"to 100, got {self.mean:g} and {self.cv:g}")
        if self.cv == 0:
            return np.full(count, round(self.mean), np.int64)
        spread = math.log1p(self.cv**2)
        drawn = generator.lognormal(math.log(self.mean) - spread / 2, math.sqrt(spread), count)
        return np.clip(np.rint(drawn), 1, MOST_TOKENS).astype(np.int64)


def synthetic(rate: float, lengths: tuple[Lengths, Lengths], cv: float = 1.0, *, seconds: float | None = None,
              count: int | None = None, seed: int = 0) -> Trace:
    """Return requests at `rate` a second with `lengths` of prompts and answers; the same for the same seed.

    Gaps between arrivals are gamma-distributed with coefficient of variation `cv`: 1 is Poisson, 0 a steady beat. Ends
    after `seconds` or after `count` requests. Raises InputError.
    """
    if not (0 < rate < math.inf and 0 <= cv <= 100):
        raise InputError(f"a rate is above zero and a coefficient of variation 0 to 100, got {rate:g} and {cv:g}")
    given = [end for end in (seconds, count) if end is not None]
    if len(given) != 1 or not 0 < given[0] < math.inf:
        raise InputError(f"a trace has either seconds or a count of requests above zero, got {seconds} and {count}")
    generator = np.random.default_rng(seed)
    arrival = np.cumsum(_gaps(generator, rate, cv, count or math.ceil(rate * (seconds or 0)) + 16))
    while seconds is not None and arrival[-1] < seconds:
        arrival = np.concatenate([arrival, arrival[-1] + np.cumsum(_gaps(generator, rate, cv, len(arrival)))])
    if seconds is not None:
        arrival = arrival[arrival < seconds]
    if not len(arrival):
        raise InputError(f"no request arrives in {seconds:g} s at {rate:g} a second")
    prompts, answers = (length.draw(generator, len(arrival)) for length in lengths)
    return Trace(arrival, prompts, answers)


def _gaps(generator: np.random.Generator, rate: float, cv: float, count: int) -> Floats:
    if cv == 0:
        return np.full(count, 1 / rate)
    return generator.gamma(cv**-2, cv**2 / rate, count)
