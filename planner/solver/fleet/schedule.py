"""Many jobs on one fleet over a horizon of periods, and the answer, in plain integers: what `scheduling.py` solves.

Time is in seconds from the start of the horizon, or in numbers of periods; money is in micro-USD. Use is rounded up and
what there is down, before it comes here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from planner.solver.settings import Status

HOUR_SECONDS = 3600
DAY_SECONDS = 86_400
CENT = 10_000
"""Micro-USD."""


@dataclass(frozen=True, slots=True)
class Lot:
    """Nodes that may be had from one period to another (first, and first after): reserved, or bought and delivered."""

    start: int
    end: int
    micro_usd: tuple[int, ...]
    """What 0, 1, 2, ... nodes cost for all that time, whole cents; one figure is the price of each node."""
    most: int

    def cost(self, nodes: int) -> int:
        """Return what so many nodes cost for all that time."""
        return nodes * self.micro_usd[0] if len(self.micro_usd) == 1 else self.micro_usd[nodes]


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind from one source, which one job may span."""

    capacity: tuple[int, ...] | None = None
    """Nodes there are in each period; none where they are taken as needed, or come in lots."""
    micro_usd_per_node_hour: int = 0
    """Paid for each hour of use."""
    lots: tuple[Lot, ...] = ()
    watts: int = 0
    """Of a node under load."""
    gpus: int = 1

    @property
    def is_endless(self) -> bool:
        """Whether as many nodes are taken as are needed."""
        return self.capacity is None and not self.lots


@dataclass(frozen=True, slots=True)
class Option:
    """One way to do a task: so many nodes of a pool for so long."""

    pool: int
    nodes: int
    seconds: int
    micro_usd: int = 0
    """Paid for the use of the nodes; what comes in lots is paid for there."""
    resume_seconds: int = 0
    """What every pause adds: a checkpoint and a restart."""
    resume_micro_usd: int = 0
    beside: tuple[tuple[int, int], ...] = ()
    """Nodes of other pools that it holds at the same time: pool, nodes."""
    uses: tuple[int, ...] = ()
    """What it uses up of each stock; nothing where none is given."""

    @property
    def held(self) -> tuple[tuple[int, int], ...]:
        """Every pool that it is on, with its nodes there."""
        return ((self.pool, self.nodes), *self.beside)


@dataclass(frozen=True, slots=True)
class Task:
    """Work that ends, in one of its options. It starts with a period."""

    options: tuple[Option, ...]
    release: int = 0
    deadline: int | None = None
    """Second by which it must have ended; none is the end of the horizon."""
    due: int | None = None
    """Second from which on it is late, at a price."""
    late_cents_per_day: int = 0
    worth: int | None = None
    """Micro-USD forgone where it is rejected; none: it must be done."""
    after: tuple[int, ...] = ()
    """Tasks that must have ended before; where one of them is rejected, so is this one."""
    may_pause: bool = False
    """On nodes that are there anyway; it then ends with a period."""


@dataclass(frozen=True, slots=True)
class NodeBlock:
    """Replicas that fill whole nodes of a pool, and micro-requests/s that they answer."""

    pool: int
    nodes: int
    micro_rate: int


@dataclass(frozen=True, slots=True)
class Load:
    """Periods in which a service needs the same: micro-requests/s, and in how many hours of each of them."""

    periods: tuple[int, ...]
    needs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """An hour after which a service needs something else: both as numbers of a load and of a need of it."""

    before: tuple[int, int]
    then: tuple[int, int]
    periods: tuple[int, ...]
    """In which the second of the two hours lies, once for each time."""


@dataclass(frozen=True, slots=True)
class Endless:
    """Work that does not end: blocks that answer every load."""

    blocks: tuple[NodeBlock, ...]
    loads: tuple[Load, ...]
    turns: tuple[Turn, ...] = ()
    changing: int = 0
    """Seconds for which a node that a turn adds is paid besides where it is taken as needed: it starts before the hour
    and ends its requests after it, and no block turns into another.
    """


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What all pools together take at most in any period: so much by each node in use."""

    weights: tuple[int, ...]
    """Of a node, by pool."""
    most: int
    held: bool = False
    """Whether nodes of lots count as long as they are there, and not only while they are used."""


@dataclass(frozen=True, slots=True)
class Purse:
    """Money that may be spent from one second to another."""

    start: int
    end: int
    micro_usd: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Everything that is asked. `budget` is of money spent, without what is forgone or paid for being late."""

    periods: int
    period_seconds: int
    pools: tuple[Pool, ...]
    tasks: tuple[Task, ...] = ()
    services: tuple[Endless, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()
    budget: int | None = None
    purses: tuple[Purse, ...] = ()
    stocks: tuple[int, ...] = ()
    """What all tasks together may use up of things that do not come back."""

    @property
    def horizon(self) -> int:
        """Seconds of all periods."""
        return self.periods * self.period_seconds

    def change(self, service: Endless, block: NodeBlock) -> int:
        """Return the micro-USD of a block that a turn adds."""
        pool = self.pools[block.pool]
        return block.nodes * -(-pool.micro_usd_per_node_hour * service.changing // HOUR_SECONDS) * pool.is_endless

    def length(self, option: Option) -> int:
        """Return the periods that an option takes without a pause."""
        return -(-option.seconds // self.period_seconds)

    def earliest(self, task: Task) -> int:
        """Return the first period that a task may start with."""
        return -(-task.release // self.period_seconds)

    def pausing(self, task: Task) -> tuple[range, list[tuple[int, Option]]]:
        """Return the periods in which a task may run where it pauses, and the options, by number, that leave room."""
        until = min(self.horizon, self.horizon if task.deadline is None else task.deadline)
        periods = range(self.earliest(task), until // self.period_seconds)
        return periods, [(at, option) for at, option in enumerate(task.options) if task.may_pause and not self.pools[
            option.pool].is_endless and 0 < len(periods) >= self.length(option)]

    def in_use(self, ceiling: Ceiling) -> tuple[int, ...]:
        """Return what a node in use takes of a ceiling, by pool: nothing where it counts as long as it is there."""
        return tuple(0 if ceiling.held and pool.lots else weight
                     for weight, pool in zip(ceiling.weights, self.pools, strict=True))


Runs: TypeAlias = tuple[tuple[int, int], ...]
"""First period, and first after, of each stretch of work."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A task in one of its options, by number, and when it runs; several runs are pauses between."""

    option: int
    runs: Runs

    def end(self, problem: Problem, task: Task) -> int:
        """Return the second at which it ends."""
        if len(self.runs) > 1:
            return self.runs[-1][1] * problem.period_seconds
        return self.runs[0][0] * problem.period_seconds + task.options[self.option].seconds

    def cost(self, task: Task) -> int:
        """Return what its use of nodes costs."""
        option = task.options[self.option]
        return option.micro_usd + (len(self.runs) - 1) * option.resume_micro_usd


Counts: TypeAlias = tuple[tuple[tuple[int, ...], ...], ...]
"""Blocks in use, by load, need and block."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The answer. `value` and `bound` are micro-USD, with what is forgone and paid for being late."""

    status: Status
    tasks: tuple[Placed | None, ...] = ()
    """None is rejected."""
    services: tuple[Counts, ...] = ()
    lots: tuple[tuple[int, ...], ...] = ()
    """Nodes of each lot, by pool."""
    value: int | None = None
    bound: int | None = None
    interrupted: bool = False
    """Whether Ctrl-C ended the search."""


def changes(problem: Problem, service: Endless, counts: Counts) -> Iterator[tuple[int, int, Turn]]:
    """Yield what the blocks that each turn adds cost each time: the pool, micro-USD, and the turn."""
    for turn in service.turns:
        before, then = (counts[load][need] for load, need in (turn.before, turn.then))
        for block, had, has in zip(service.blocks, before, then, strict=True):
            if has > had and (usd := problem.change(service, block)):
                yield block.pool, (has - had) * usd, turn


def lateness(problem: Problem, task: Task, placed: Placed) -> int:
    """Return the seconds by which a task ends after it is due."""
    return 0 if task.due is None else max(0, placed.end(problem, task) - task.due)


def late_cost(task: Task, seconds: int) -> int:
    """Return the price of being late, in micro-USD, up to whole cents."""
    return -(-seconds * task.late_cents_per_day // DAY_SECONDS) * CENT
