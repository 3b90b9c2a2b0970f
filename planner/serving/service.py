"""A service as the search asks for it: its stream of requests, its level, and the rate that must be held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.physics.serving.level import POINTS, Stream, stream_of
from planner.scenario.demand import Level as AskedLevel
from planner.scenario.resolve import trace_file
from planner.scenario.serving import Serving
from planner.simulate.reading import read_trace
from planner.simulate.trace import Trace
from planner.solver.replicas import Level

WINDOW = 300.0
"""Seconds of a trace over which its rate is taken; the busiest decides."""
LONGEST = 0.999
"""Share of the requests that the longest admitted one covers, where lengths have no end."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service, resolved."""

    asked: Serving
    model: Model
    stream: Stream
    level: Level
    rate: float | None
    """Requests/s at the busiest; none asks for as many as go."""
    length: int
    """Tokens of the longest request that must be held."""
    trace: Trace | None = None

    @property
    def mean_length(self) -> int:
        """Tokens that a sequence holds on average, half way through its answer; long answers are there for longer."""
        return round(self.stream.context)

    @property
    def needed(self) -> float:
        """Requests/s with the headroom; zero where no rate is asked."""
        return (self.rate or 0.0) * (1 + self.asked.headroom)


def service_of(asked: Serving, catalog: Catalog) -> Service:
    """Return a resolved service; a trace is read for its lengths, gaps and rate. Raises InputError."""
    model = catalog.model(asked.model)
    level = Level(_level(asked.ttft), _level(asked.tpot))
    drafts, accepted = (asked.speculative.tokens, asked.speculative.acceptance) if asked.speculative else (0, 0.0)
    # a draft that is always right is one token short of certain, so that the mean stays finite
    accepted = min(accepted, 1 - 1e-9)
    if asked.trace is not None:
        trace = read_trace(trace_file(asked.trace))
        inputs, outputs = trace.input.astype(np.float64), trace.output.astype(np.float64)
        stream = stream_of(lambda q: float(np.quantile(inputs, q)), lambda q: float(np.quantile(outputs, q)),
                           input=float(inputs.mean()), output=float(outputs.mean()), input_cv=_spread(inputs),
                           output_cv=_spread(outputs), gap_cv=_gaps(trace), hits=asked.prefix_hits, drafts=drafts,
                           accepted=accepted)
        longest = asked.max_model_len or int((trace.input + trace.output).max())
        return Service(asked, model, stream, level, _busiest(trace), longest, trace)
    assert asked.input is not None
    assert asked.output is not None
    stream = stream_of(asked.input.quantile, asked.output.quantile, input=asked.input.mean, output=asked.output.mean,
                       input_cv=asked.input.cv, output_cv=asked.output.cv, gap_cv=asked.gap_cv, hits=asked.prefix_hits,
                       drafts=drafts, accepted=accepted)
    longest = asked.max_model_len or round(asked.input.quantile(LONGEST) + asked.output.quantile(LONGEST))
    return Service(asked, model, stream, level, asked.rate, longest)


def _level(asked: AskedLevel | None) -> tuple[float, float | None] | None:
    if asked is None:
        return None
    return asked.seconds, None if asked.percentile is None else asked.percentile / 100


def _spread(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(values.std() / values.mean())


def _gaps(trace: Trace) -> float:
    """Return how uneven the gaps are, window by window, so that a slow drift of the rate does not count."""
    spreads = []
    for start in np.arange(0.0, max(trace.seconds, WINDOW), WINDOW):
        gaps = np.diff(trace.arrival[(trace.arrival >= start) & (trace.arrival < start + WINDOW)])
        if len(gaps) >= POINTS and gaps.mean() > 0:
            spreads.append(float(gaps.std() / gaps.mean()))
    return float(np.median(spreads)) if spreads else 1.0


def _busiest(trace: Trace) -> float:
    """Return requests/s of the busiest window."""
    if trace.seconds < WINDOW:
        return trace.rate
    counts, _ = np.histogram(trace.arrival, np.arange(0.0, trace.seconds + WINDOW, WINDOW))
    return float(counts.max() / WINDOW)
