"""A service as the search asks for it: its stream of requests, its latency targets, and the rate to sustain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.columns import ReplicaColumn
from planner.jobs.serving.rates import Targets
from planner.layouts.table import Floats
from planner.physics.encoders import TowerWork, parts_of
from planner.physics.serving.adapters import AdapterSlots
from planner.physics.serving.level import Stream, stream_of
from planner.physics.serving.settings import EngineSettings
from planner.scenario.demand import MOST_RATE, Level
from planner.scenario.files import trace_file
from planner.scenario.lengths import Length
from planner.scenario.media import media_of
from planner.scenario.serving import USUAL_RANK, Serving
from planner.simulate.reading import read_trace
from planner.simulate.steps import ReplicaKind
from planner.simulate.trace import Trace
from planner.units import plural

WINDOW = 300.0
"""Seconds of a trace over which its rate is taken; the busiest decides."""
FEWEST = 16
"""Gaps of a window from which on their spread counts."""
FINE = 1000
"""Quantiles that stand for lengths where classes of them are cut."""
LONGEST = 0.999
"""Share of the requests that the longest admitted one covers, where lengths have no end."""


@dataclass(frozen=True, slots=True)
class Service:
    """One service, resolved."""

    asked: Serving
    model: Model
    stream: Stream
    level: Targets
    rate: float | None
    """Requests/s at the busiest, or the users of a closed loop; none asks for as many as go."""
    length: int
    """Tokens of the longest request that must be held."""
    trace: Trace | None = None
    classes: tuple[int, int] = (0, 0)
    """First and last class of prompt length that it answers."""
    prompts: tuple[int, int | None] | None = None
    """Tokens of the prompts it answers, from and up to and with (none: no end); none is all of them."""
    of: int = 0
    """The number of the service that it is a part of, or is."""
    seen: tuple[TowerWork, ...] = ()
    """What encoders do for a request, whose tokens are among those of the prompt."""
    replica: Callable[[ReplicaColumn], ReplicaKind] | None = None
    """What replays run for a column whose requests are no tokens, such as images; none is an engine of tokens."""

    @property
    def adapters(self) -> AdapterSlots | None:
        """The LoRA adapters that each replica serves; none serves the model alone."""
        asked = self.asked
        return None if asked.adapters is None else AdapterSlots(asked.adapters, asked.lora_rank or USUAL_RANK)

    @property
    def settings(self) -> EngineSettings:
        """What the engine is told that the question states."""
        asked = self.asked
        return EngineSettings(asked.memory_fraction, asked.max_batched_tokens, asked.max_sequences, asked.prefill_delay)

    @property
    def mean_length(self) -> int:
        """Tokens that a sequence holds on average, half way through its answer; long answers are there for longer."""
        return round(self.stream.context)

    def with_users(self, factor: float) -> Service:
        """Return the service with so many times the users, at all hours alike."""
        users = max(1, round((self.asked.clients or 0) * factor))
        key = "users" if self.asked.users is not None else "concurrency"
        return replace(self, asked=self.asked.model_copy(update={key: users, "day": None}), rate=float(users))

    @property
    def needed(self) -> float:
        """Requests/s with the headroom; zero where no rate is asked."""
        return (self.rate or 0.0) * (1 + self.asked.headroom)


def service_of(asked: Serving, catalog: Catalog) -> Service:
    """Return a resolved service; a trace is read for its lengths, gaps and rate. Raises InputError."""
    return services_of(asked, catalog)[0]


def services_of(asked: Serving, catalog: Catalog) -> list[Service]:
    """Return a resolved service whole, and what each range of its classes of prompt length is for itself.

    Classes have equally many prompt tokens, and may miss the target in equally many requests, so that together they
    miss it in no more than the whole may. Raises InputError.
    """
    if asked.adapters is not None and not catalog.engine(asked.engine).adapters:
        having = ", ".join(name for name in sorted(catalog.names("engines")) if catalog.engine(name).adapters)
        raise InputError(f"adapters: {asked.engine} does not run requests for several in one batch: {having} do")
    most = catalog.engine(asked.engine).sequences_most
    if most is not None and (asked.max_sequences or 0) > most:
        raise InputError(f"max_sequences: {asked.engine} runs at most {most} at once, not {asked.max_sequences}")
    if asked.disaggregated != "no" and not catalog.engine(asked.engine).parts_in(asked.engine_version):
        having = ", ".join(f"{name} from {engine.apart.since} on" for name, engine in (
            (name, catalog.engine(name)) for name in sorted(catalog.names("engines"))) if engine.apart)
        raise InputError(f"disaggregated: {' '.join(filter(None, (asked.engine, asked.engine_version)))} answers "
                         f"requests whole: {having} can have prefill apart")
    if asked.prefill_delay and catalog.engine(asked.engine).delays_in(asked.engine_version) is None:
        having = ", ".join(f"{name} from {engine.delays.since} on" for name, engine in (
            (name, catalog.engine(name)) for name in sorted(catalog.names("engines"))) if engine.delays)
        raise InputError(f"prefill_delay: {' '.join(filter(None, (asked.engine, asked.engine_version)))} takes every "
                         f"prompt as soon as its copy of attention has room: {having} can have them wait")
    asked, seen = _in_tokens(asked, catalog)
    trace = _trace(asked.trace) if asked.trace is not None else None
    cuts = _cuts(asked, trace)
    services = [_service(asked, catalog, trace, trace)]
    edges = [0, *cuts, None]
    for first in range(len(edges) - 1 if cuts else 0):
        for last in range(first, len(edges) - 1):
            low, high = edges[first] or 0, edges[last + 1]
            if (first, last) == (0, len(cuts)):
                services[0] = replace(services[0], classes=(first, last))
            else:
                mine = trace.of_prompts(low + 1, high) if trace else None
                service = _service(asked, catalog, mine, trace, (low, high))
                share = len(mine) / len(trace) if trace and mine else (service.rate or 0.0) / (asked.rate or 1.0)
                slack = (last - first + 1) / (len(edges) - 1) / share
                services.append(replace(service, classes=(first, last), prompts=(low + 1, high),
                                     level=Targets(*(_with(limit, slack) for limit in (
                                         service.level.ttft, service.level.tpot, service.level.e2e)))))
    return [replace(service, seen=seen) for service in services] if seen else services


def _in_tokens(asked: Serving, catalog: Catalog) -> tuple[Serving, tuple[TowerWork, ...]]:
    """Return a service whose prompts count the tokens of images and sound, and what its encoders do for a request.

    Raises InputError.
    """
    if (media := media_of(asked)) is None or asked.input is None:
        return asked, ()
    seen = parts_of(catalog.model(asked.model), media.images, media.size, media.frames, media.sound)
    text, more = asked.input, sum(part.tokens for part in seen)
    whole = Length("mean", text.mean + more, text.cv * text.mean / (text.mean + more))
    return asked.model_copy(update={"input": whole, "images_per_request": None, "audio": None}), seen


def _trace(path: str) -> Trace:
    """Return a service's own trace. Raises InputError for one that has no rate to be served at."""
    trace = read_trace(trace_file(path))
    if trace.seconds < WINDOW and not trace.rate <= MOST_RATE:
        raise InputError(f"{plural(len(trace), 'request')} within {trace.seconds:g} s: no rate that a service can be "
                         f"planned for, {MOST_RATE:g} a second at most: give more of the trace", file=path)
    return trace


def _with(level: tuple[float, float | None] | None, slack: float) -> tuple[float, float | None] | None:
    """Return a latency target whose share of requests that may miss it is `slack` times as large."""
    if level is None or level[1] is None:
        return level
    return level[0], max(1 - (1 - level[1]) * slack, 0.0)


def _cuts(asked: Serving, trace: Trace | None) -> list[int]:
    """Return the prompt tokens up to which each class but the last goes."""
    if asked.length_classes == 1:
        return []
    if trace is not None:
        values = np.sort(trace.input).astype(np.float64)
    else:
        assert asked.input is not None
        values = np.array([asked.input.quantile((at + 0.5) / FINE) for at in range(FINE)])
    mass = np.cumsum(values) / values.sum()
    shares = np.arange(1, asked.length_classes) / asked.length_classes
    cuts = {round(float(values[np.searchsorted(mass, share)])) for share in shares}
    return sorted(cut for cut in cuts if values[0] <= cut < np.floor(values[-1]))


def _service(asked: Serving, catalog: Catalog, trace: Trace | None, whole: Trace | None,
             prompts: tuple[int, int | None] | None = None) -> Service:
    """Return what answers prompts of more than the first and up to the second number of tokens; `trace` has just these
    of the `whole`.
    """
    model = catalog.model(asked.model)
    level = Targets(_level(asked.ttft), _level(asked.tpot), _level(asked.e2e))
    drafts, accepted = (asked.speculative.tokens, asked.speculative.accepted) if asked.speculative else (0, 0.0)
    # a draft that is always right is one token short of certain, so that the mean stays finite
    accepted = min(accepted, 1 - 1e-9)
    if trace is not None and whole is not None:
        inputs, outputs = trace.input.astype(np.float64), trace.output.astype(np.float64)
        stream = stream_of(lambda q: float(np.quantile(inputs, q)), lambda q: float(np.quantile(outputs, q)),
                           input=float(inputs.mean()), output=float(outputs.mean()), input_cv=_spread(inputs),
                           output_cv=_spread(outputs), gap_cv=_gaps(trace), hits=asked.prefix_hits, drafts=drafts,
                           accepted=accepted)
        longest = asked.max_model_len or int((trace.input + trace.output).max())
        return Service(asked, model, stream, level, _busiest(trace, whole), longest, trace)
    assert asked.input is not None
    assert asked.output is not None
    low, high = prompts or (0, None)
    part = _ServicePart(asked.input, low, math.inf if high is None else high + 0.5)
    # what is drawn at random from a stream comes the more at random
    gap_cv = math.sqrt(1 + part.share * (asked.gap_cv**2 - 1))
    stream = stream_of(part.quantile, asked.output.quantile, input=part.mean, output=asked.output.mean,
                       input_cv=part.cv, output_cv=asked.output.cv, gap_cv=gap_cv, hits=asked.prefix_hits,
                       drafts=drafts, accepted=accepted, think=None if asked.clients is None else asked.think or 0.0)
    longest = asked.max_model_len or round(part.quantile(LONGEST) + asked.output.quantile(LONGEST))
    rate = asked.clients if asked.rate is None else asked.rate * part.share
    return Service(asked, model, stream, level, rate, longest)


@dataclass(frozen=True, slots=True)
class _ServicePart:
    """Those of some lengths that lie between two numbers of tokens."""

    whole: Length
    low: float
    high: float

    def _between(self, order: int) -> float:
        if self.high == math.inf and not self.low:
            return 1.0
        top = 1.0 if self.high == math.inf else self.whole.below(self.high, order)
        return top - (self.whole.below(self.low + 0.5, order) if self.low else 0.0)

    @property
    def share(self) -> float:
        """Share of the lengths."""
        return self._between(0)

    @property
    def mean(self) -> float:
        """Mean tokens."""
        return self.whole.mean * self._between(1) / self.share

    @property
    def cv(self) -> float:
        """Standard deviation over mean."""
        square = self.whole.mean**2 * (1 + self.whole.cv**2) * self._between(2) / self.share
        return math.sqrt(max(square / self.mean**2 - 1, 0.0))

    def quantile(self, q: float) -> float:
        """Return the tokens below which a share of them lies."""
        below = self.whole.below(self.low + 0.5) if self.low else 0.0
        return self.whole.quantile(below + q * self.share)


def _level(asked: Level | None) -> tuple[float, float | None] | None:
    if asked is None:
        return None
    return asked.seconds, None if asked.percentile is None else asked.percentile / 100


def _spread(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(values.std() / values.mean())


def _gaps(trace: Trace) -> float:
    """Return how uneven the gaps are, window by window, so that a slow drift of the rate does not count."""
    windows, spreads = _windows(trace.arrival), []
    for arrival in np.split(trace.arrival, np.flatnonzero(np.diff(windows)) + 1):
        gaps = np.diff(arrival)
        if len(gaps) >= FEWEST and gaps.mean() > 0:
            spreads.append(float(gaps.std() / gaps.mean()))
    return float(np.median(spreads)) if spreads else 1.0


def _busiest(trace: Trace, whole: Trace) -> float:
    """Return requests/s of the busiest window; of less than one what its requests are of the whole's."""
    if whole.seconds < WINDOW:
        return whole.rate * len(trace) / len(whole)
    # the moment at which the last window ends is in it
    windows = np.minimum(_windows(trace.arrival), math.ceil(whole.seconds / WINDOW) - 1)
    return float(np.unique(windows, return_counts=True)[1].max() / WINDOW)


def _windows(arrival: Floats) -> Floats:
    """Return in which window each request arrives: only those with requests count, however long a trace lasts."""
    windows: Floats = np.floor(arrival / WINDOW)
    return windows
