"""A workload placed on hardware, whatever its kind: the layout, where its bytes and seconds go, and what it costs.

Key order here is key order in the JSON; base units, named in the field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from planner.answer.bought import Bought
from planner.answer.breakdown import RELATIVE, Memory, Time
from planner.answer.layout import Layout
from planner.answer.level import ServingFigures
from planner.answer.portfolio import Segment, Why
from planner.answer.show_as import ShowAs
from planner.answer.shown import Shown, Table, flat
from planner.solver.quantize import COST_QUANTUM, DURATION_QUANTUM
from planner.units import DAY, plural, show_bytes, show_days, show_seconds, show_usd
from planner.yaml_io import Frozen, absent

DIGITS = 1e-12
"""What products of floats lose, relative: more than a cent of sums above a trillion."""


def _none(count: int) -> bool:
    return count == 0


class Failures(Frozen):
    """How often a run is interrupted and checkpointed."""

    seconds_between: float = Field(gt=0)
    """Mean time between interruptions: failures, and spot nodes reclaimed by the provider."""
    checkpoint_bytes: float = Field(ge=0)
    """Size of a checkpoint."""
    checkpoint_interval_seconds: float = Field(gt=0)
    """Time between checkpoints; this interval loses the least time."""
    checkpoint_write_seconds: float = Field(ge=0)
    """Time to write a checkpoint."""
    restart_seconds: float = Field(ge=0)
    """Time from an interruption until the run continues."""
    missing_spares: int = Field(default=0, ge=0, exclude_if=lambda value: value == 0)
    """Spare nodes more with which it would take the fewest node-hours: no room is left for them, or they cost more."""
    repair_share: float = Field(default=0.0, ge=0, lt=1, exclude_if=lambda value: value == 0)
    """Share of time that it waits for nodes under repair, with the spares that it has; in the goodput."""
    repair_share_then: float | None = Field(default=None, ge=0, lt=1, exclude_if=absent)
    """The same with the missing spares; the key is left out where none are."""


class Commitment(Frozen):
    """A commitment that outlasts the job, and is paid for."""

    term: str
    """Of the offer."""
    paid_days: float
    """Days that must be paid for."""
    used_days: float
    """Days that the job takes."""


class WholeRun(Frozen):
    """What whole runs took over their steps and failures: evaluation, data stalls, restores, rewinds, a batch ramp."""

    factor: float = Field(ge=1)
    """Median of duration over that of steps and failures as modeled."""
    factor90: tuple[float, float]
    """5% and 95% quantile."""
    rows: int = Field(ge=0)
    """Published runs that it was fitted to, beside a prior."""


class NodesOfKind(NamedTuple):
    """Nodes of one type with the GPUs of them that are used."""

    nodes: int
    node: str
    gpus: int
    gpu: str


class Placement(Shown, Frozen):
    """One workload placed on hardware, of whatever kind; what was not asked (`planner estimate`: price, duration) is
    none."""

    @property
    def chosen(self) -> tuple[object, ...]:
        """What tells it from another way to do the same."""
        return self.layout, self.offer

    @property
    def fits(self) -> bool:
        """Whether it fits in memory, tight or not."""
        return self.memory.fits != "does not fit"

    workload: str
    """Its name."""
    kind: str
    """Of the workload."""
    node: str
    """Node type, by its catalog name."""
    gpu: str
    """GPU, by its catalog name."""
    nodes: int = Field(gt=0)
    """Nodes in the layout."""
    gpus: int = Field(gt=0)
    """GPUs in the layout: tp x pp x cp x dp."""
    spare_nodes: int = Field(default=0, ge=0)
    """Extra nodes, also paid for, that replace failed ones."""
    idle_gpus: int = Field(default=0, ge=0, exclude_if=_none)
    """GPUs of these nodes that nothing uses, though they are paid for; the key is left out where there are none."""
    offer: str | None = None
    """Provider, instance, region and terms."""
    usd_per_node_hour: float | None = Field(default=None, ge=0)
    """Price of a node per hour of use."""
    stack: str
    """Training framework or inference engine."""
    layout: Layout
    """How the work is split."""
    memory: Memory
    """Where bytes go."""
    time: Time
    """Where seconds go."""
    serving: ServingFigures | None = None
    """For a service only."""
    goodput: float | None = Field(default=None, gt=0, le=1)
    """Productive share of wall time: what failures, checkpoints and restarts leave."""
    duration_days: float | None = Field(default=None, ge=0)
    """steps x step_seconds / goodput, in days, up to whole microseconds; for a service the month of its cost."""
    cost_usd: float | None = Field(default=None, ge=0)
    """Cost of the whole duration, spares included."""
    energy_kwh: Annotated[float | None, ShowAs("energy", "cost")] = Field(default=None, ge=0)
    """Drawn by the nodes over the duration."""
    mean_cost_usd: Annotated[float | None, ShowAs("mean cost", "cost")] = Field(default=None, ge=0, exclude_if=absent)
    """Cost over the interval of the step, on average, where that was minimized; left out elsewhere."""
    purchase: Bought | None = Field(default=None, exclude_if=absent)
    """The purchase, if the nodes are bought; otherwise the key is left out."""
    model: str | None = None
    """Model, by its catalog name; none in plans of the first edition that do not say."""
    method: str | None = None
    """pretrain, full, lora or qlora; inference of GPUs that only hold a model; none for a service."""
    sourcing: Literal["rent", "buy", "owned"] | None = None
    """How the nodes are obtained; none if the question is not about offers."""
    asked: dict[str, Any] | None = Field(default=None, exclude_if=absent)
    """Of an estimate, the workload that it answers, with its units; a plan has it in its provenance."""
    job: str | None = Field(default=None, exclude_if=absent)
    """In a portfolio: its job, of which `workload` is the instance."""
    pool: str | None = Field(default=None, exclude_if=absent)
    """In a portfolio: the pool of `supply` that it is on; what is rejected has none."""
    start: str | None = Field(default=None, exclude_if=absent)
    """In a portfolio: when it starts, UTC."""
    end: str | None = Field(default=None, exclude_if=absent)
    """In a portfolio: when it ends, UTC."""
    segments: tuple[Segment, ...] | None = Field(default=None, exclude_if=absent)
    """In a portfolio: when it is on how many nodes; several are pauses between, or a service that grows."""
    late_days: float | None = Field(default=None, ge=0, exclude_if=absent)
    """In a portfolio: days between its deadline and its end, zero where it is in time."""
    status: Literal["planned", "rejected"] | None = Field(default=None, exclude_if=absent)
    """In a portfolio; what is rejected is shown on what it would cost least on."""
    reasons: Why | None = Field(default=None, exclude_if=absent)
    """In a portfolio: why so, and not otherwise."""

    def headline(self) -> str:
        """Return whether it fits, the GPUs, how the work is split, how fast it is, and what it costs."""
        return "; ".join(f"{value}" for value in (
            self.memory.fits, self.hardware, self.split, f"{show_bytes(self.memory.peak_bytes)} of "
            f"{show_bytes(self.memory.usable_bytes)}", self.speed, self.price) if value)

    def table(self) -> Table:
        """Return the facts of the headline, each with its name."""
        rows = (("workload", self.workload), ("hardware", self.hardware), ("offer", self.offer), ("stack", self.stack),
                ("layout", self.split), ("memory", f"{self.memory.fits}: {show_bytes(self.memory.peak_bytes)} of "
                 f"{show_bytes(self.memory.usable_bytes)}"), ("speed", self.speed), ("price", self.price))
        return ("fact", "value"), [row for row in rows if row[1]]

    def records(self) -> list[Mapping[str, object]]:
        """Return its one row."""
        return [flat(self)]

    @property
    def usd_per_hour(self) -> float | None:
        """What all its nodes cost an hour, spares included; none where nothing is paid, or nobody asked."""
        if self.cost_usd is not None and self.duration_days:
            return self.cost_usd / self.duration_days / 24
        return None if self.usd_per_node_hour is None else self.usd_per_node_hour * (self.nodes + self.spare_nodes)

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens that training reads in a second on all its GPUs, or that a service writes."""
        each = self.time.tokens_per_second_per_gpu if self.serving is None else (
            self.serving.output_tokens_per_second_per_gpu)
        return None if each is None else each * self.gpus

    @property
    def memory_gb(self) -> float:
        """Memory of the fullest GPU at its peak, in billions of bytes."""
        return self.memory.peak_bytes / 1e9

    @property
    def hardware(self) -> str:
        """The GPUs, and the nodes that they are in."""
        return " and ".join(f"{each.gpus:,} x {each.gpu} in {plural(each.nodes, 'node')} of {each.node}"
                            for each in self.kinds_of_nodes)

    @property
    def counted_gpus(self) -> str:
        """The GPUs, kind by kind."""
        return " and ".join(f"{each.gpus:,} x {each.gpu}" for each in self.kinds_of_nodes)

    @property
    def kinds_of_nodes(self) -> tuple[NodesOfKind, ...]:
        """What it is on: one kind of node, unless its class says otherwise."""
        return (NodesOfKind(self.nodes, self.node, self.gpus, self.gpu),)

    @property
    def split(self) -> str:
        """The degrees of parallelism above one."""
        degrees = [(name.upper(), getattr(self.layout, name)) for name in ("tp", "pp", "cp", "ep", "dp")]
        return " x ".join(f"{name} {degree:,}" for name, degree in degrees if degree > 1) or "one GPU"

    @property
    def speed(self) -> str:
        """A step and its MFU, or the latencies of a service."""
        if self.serving is None:
            return f"step {show_seconds(self.time.step_seconds)}, MFU {self.time.mfu:.1%}"
        service = self.serving
        if service.made is not None:
            return (f"{service.requests_per_second:,.4g} {service.noun}/s, {show_seconds(service.made.seconds_each)} "
                    "each")
        each = f", TPOT {show_seconds(service.tpot_seconds.p50)}" if service.writes else ""
        return f"{service.requests_per_second:,.4g} requests/s, TTFT {show_seconds(service.ttft_seconds.p50)}{each}"

    @property
    def price(self) -> str:
        """Duration and cost; empty where neither was asked."""
        days = "" if self.duration_days is None else show_days(self.duration_days)
        return ", ".join(filter(None, (days, "" if self.cost_usd is None else show_usd(self.cost_usd))))

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        layout = self.layout
        product = layout.tp * layout.pp * layout.cp * layout.dp
        if product != self.gpus:
            raise ValueError(f"tp x pp x cp x dp = {product}, gpus is {self.gpus}")
        return self

    @model_validator(mode="after")
    def _duration_agrees(self) -> Self:
        if self.time.steps is None or self.goodput is None or self.duration_days is None:
            return self
        days = self.time.steps * self.time.step_seconds / self.goodput / DAY
        # in the integers of the solver: of a job of milliseconds, the last microsecond is more than RELATIVE
        if not math.isclose(days, self.duration_days, rel_tol=RELATIVE, abs_tol=DURATION_QUANTUM / DAY):
            raise ValueError(f"steps x step_seconds / goodput is {days} d, "
                             f"duration_days is {self.duration_days}")
        return self

    @model_validator(mode="after")
    def _rent_agrees(self) -> Self:
        if self.usd_per_node_hour is None or self.duration_days is None or self.cost_usd is None:
            return self
        rent = (self.nodes + self.spare_nodes) * self.usd_per_node_hour * 24 * self.duration_days
        if not math.isclose(rent, self.cost_usd, rel_tol=DIGITS, abs_tol=COST_QUANTUM):
            raise ValueError(f"rent of {self.nodes + self.spare_nodes} nodes is {rent:.2f} USD, "
                             f"cost_usd is {self.cost_usd:.2f}")
        return self


