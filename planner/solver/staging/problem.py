"""One staging question and its answer: layers and recompute modes of every pipeline stage, in plain ints.

Symbols: L layers, p stages, v chunks of a stage, m micro-batches, b parts of which one is the bubble, l_s layers of
stage s, n[s, k] of them in mode k, T_s nanoseconds (units of `unit_ns`) of stage s for one micro-batch (forward and
backward).

    minimize    (m b - 1) max_s T_s + sum_s T_s            which is b times the step time of the pipeline
    T_s       = extra_ns[s] + layer_ns l_s + sum_k mode_ns[k] n[s, k]
    loss phase   v (fixed_units[s] + state_units l_s) + in_flight[s] sum_k keep_units[k] n[s, k] <= v capacity
    backward     backward_fixed[s] + backward_units l_s <= capacity
    shared       sum over its stages of units_per_layer l_s + fixed <= its capacity
    sum_s l_s = L,  min_layers <= l <= max_layers,  sum_k n[s, k] = l_s,  the modes used lie within one mix
"""

from __future__ import annotations

from dataclasses import dataclass

Modes = tuple[int, int, int]
"""One number per recompute mode: none, selective, full."""

MODES = 3
VALUE_LIMIT = 2**60  # sums of two such numbers still fit a signed 64-bit integer


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """What several stages share, like host memory: sum of units_per_layer * l_s + fixed <= capacity."""

    stages: tuple[int, ...]
    units_per_layer: int
    fixed: int
    capacity: int


@dataclass(frozen=True, slots=True)
class StagingProblem:
    """Times in units of `unit_ns` ns, memory in units of some MiB; most tuples have one entry per stage.

    Raises ValueError when those differ in length, a number is negative or the objective leaves 60 bits:
    callers build these numbers, so that is a defect of theirs and not of the user's input.
    """

    layers: int
    chunks: int
    micro_batches: int
    in_flight: tuple[int, ...]
    """Per stage: chunks whose saved activations are alive at the peak; a chunk is 1/v of the stage."""
    layer_ns: int
    """One layer, one micro-batch, forward and backward, keeping everything."""
    mode_ns: Modes
    """Added per layer by each recompute mode."""
    keep_units: Modes
    """Saved activations of one layer and micro-batch under each mode."""
    mixes: tuple[tuple[int, ...], ...]
    """Sets of modes that one job may combine: ((0, 2), (1,)) is none with full, or selective throughout."""
    extra_ns: tuple[int, ...]
    state_units: int
    fixed_units: tuple[int, ...]
    capacity_units: int
    backward_units: int
    backward_fixed: tuple[int, ...]
    min_layers: tuple[int, ...]
    max_layers: tuple[int, ...]
    shared: tuple[SharedLimit, ...] = ()
    bubble_parts: int = 1
    """Into how many parts a schedule cuts the other stages' time, of which one is idle: v where interleaved."""
    unit_ns: int = 1
    """Nanoseconds in a unit of time."""

    def __post_init__(self) -> None:
        """Refuse numbers on which the proofs would not hold."""
        per_stage = (self.in_flight, self.extra_ns, self.fixed_units, self.backward_fixed, self.min_layers,
                     self.max_layers)
        if not self.in_flight or any(len(column) != len(self.in_flight) for column in per_stage):
            raise ValueError(f"per-stage tuples differ in length: {[len(column) for column in per_stage]}")
        scalars = (self.layer_ns, self.state_units, self.capacity_units, self.backward_units)
        if min(map(min, (*per_stage, self.mode_ns, self.keep_units, scalars))) < 0:
            raise ValueError("staging numbers must not be negative: time and memory only grow with layers")
        if min(self.layers, self.chunks, self.micro_batches, self.bubble_parts, *self.in_flight) < 1:
            raise ValueError("layers, chunks, micro_batches, bubble_parts and in_flight must be at least 1")
        if not self.mixes or any(not mix or not set(mix) <= set(range(MODES)) for mix in self.mixes):
            raise ValueError(f"mixes must name modes among 0, 1, 2: got {self.mixes}")
        if self.scale * self._largest_sum() >= VALUE_LIMIT or self._largest_memory() >= VALUE_LIMIT:
            raise ValueError("staging numbers leave 60 bits: use a coarser quantum")

    @property
    def stages(self) -> int:
        """Number of pipeline stages p."""
        return len(self.in_flight)

    @property
    def weight(self) -> int:
        """How often the slowest stage counts in the objective beyond its own term: m b - 1."""
        return self.micro_batches * self.bubble_parts - 1

    @property
    def tie_scale(self) -> int:
        """Above every sum of squared layers, so that evenness never outweighs a nanosecond."""
        return self.layers**2 + 1

    @property
    def scale(self) -> int:
        """What times are multiplied by at most: by the tie-break, or where the slowest stage counts."""
        return max(self.tie_scale, self.weight + self.stages)

    def seconds(self, objective: int) -> float:
        """Return the seconds of a pipeline's step whose objective that is."""
        return objective * (1e-9 * self.unit_ns) / self.bubble_parts

    def _largest_sum(self) -> int:
        return self.layers * (self.layer_ns + max(self.mode_ns)) + sum(self.extra_ns)

    def _largest_memory(self) -> int:
        held = max(self.capacity_units, *self.fixed_units, self.layers * self.state_units)
        backward = max(self.backward_fixed) + self.layers * self.backward_units
        return max(4 * self.chunks * held, backward, self.layers * max(self.keep_units) * max(self.in_flight))


@dataclass(frozen=True, slots=True)
class Staged:
    """An optimal split: per stage its layers, layers in each mode and ns; `objective` in ns, exact."""

    layers: tuple[int, ...]
    counts: tuple[Modes, ...]
    stage_ns: tuple[int, ...]
    objective: int


def staged(problem: StagingProblem, counts: tuple[Modes, ...]) -> Staged:
    """Return the answer that `counts` (layers of every stage in each mode) spells out, with exact times."""
    layers = tuple(sum(row) for row in counts)
    times = tuple(
        extra + problem.layer_ns * count + sum(ns * n for ns, n in zip(problem.mode_ns, row, strict=True))
        for extra, count, row in zip(problem.extra_ns, layers, counts, strict=True)
    )
    return Staged(layers, counts, times, problem.weight * max(times) + sum(times))
