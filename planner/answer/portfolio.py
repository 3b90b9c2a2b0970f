"""What a plan of many jobs adds: when each runs, what is supplied when, how full it is, and money by month."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.answer.relaxation import Relaxation
from planner.yaml_io import Frozen, absent


class Segment(Frozen):
    """A stretch of time on so many nodes."""

    start: str
    """When it begins, UTC."""
    end: str
    """When it ends, UTC."""
    nodes: int = Field(gt=0)
    """Nodes in use, spares included."""


class Supply(Frozen):
    """Nodes from one source for a stretch of time, and what is paid for them."""

    pool: str
    """Where jobs run on them: one job never spans two pools."""
    node: str
    """Node type, by its catalog name."""
    sourcing: Literal["own", "buy", "reserve", "rent", "spot"]
    """How they are had."""
    offer: str
    """Provider, instance, region and terms; or whose they are."""
    start: str
    """From when on they are there, UTC."""
    end: str
    """Until when they are paid for, UTC; for what is bought the end of the horizon."""
    nodes: int = Field(gt=0)
    """How many."""
    usd: float = Field(ge=0)
    """Paid for all of them and all that time; of owned nodes their electricity while they work."""
    capital_usd: float | None = Field(default=None, ge=0, exclude_if=absent)
    """Price of a purchase with its network and installation, of which `usd` is what the horizon uses up."""


class Period(Frozen):
    """Nodes of a pool over consecutive periods that are alike."""

    start: str
    """First moment, UTC."""
    end: str
    """First moment after, UTC."""
    pool: str
    """Of `supply`."""
    available: int = Field(ge=0)
    """Nodes there are."""
    serving: int = Field(ge=0)
    """Nodes that services are on."""
    training: int = Field(ge=0)
    """Nodes that jobs are on."""


class Cash(Frozen):
    """What a calendar month costs."""

    month: str
    """Such as 2027-03."""
    usd: float = Field(ge=0)
    """Of `supply`, spread evenly over its time."""


class Moved(Frozen):
    """A job that runs otherwise than before others were added."""

    workload: str
    """Its name in `assignments`."""
    was: str
    """Hardware and dates before; or that it was rejected."""
    now: str
    """Hardware and dates now; or that it is rejected."""


class Added(Frozen):
    """What it takes to have more jobs on the same fleet."""

    jobs: tuple[str, ...]
    """What was added."""
    admitted: bool
    """Whether all of it is in the plan."""
    usd: float | None
    """How much more all jobs cost with it; none where one of the two questions has no plan."""
    moved: tuple[Moved, ...] = ()
    """Other jobs that then run elsewhere or at another time: as few as could be found at the same cost."""


class OtherWay(Frozen):
    """What else a job could do, with all other jobs where they are: the best of its kind."""

    pool: str
    """Where the nodes would come from."""
    nodes: int | None = Field(default=None, gt=0)
    """How many; none where no layout is to be had there."""
    start: str | None = None
    """When it would start, UTC."""
    end: str | None = None
    """When it would end, UTC."""
    usd: float | None = None
    """How much more all jobs would then cost; none where it cannot be done."""
    because: str
    """What speaks against it."""


class Why(Frozen):
    """Why a job is where and when it is, with all other jobs where they are."""

    start: str
    """Why it starts no earlier, why it pauses, or why it is rejected."""
    others: tuple[OtherWay, ...] = ()
    """Fewer nodes, more nodes, and every other pool."""
    admits: tuple[Relaxation, ...] = ()
    """Of a job that is rejected or late: single changes that would have it done, or done in time."""
