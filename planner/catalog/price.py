"""What hardware costs to rent: a provider's offers of whole nodes."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from planner.catalog.hardware import Nics, Node
from planner.catalog.ranges import Few, Hours
from planner.catalog.regions import AREAS, area_of, form
from planner.catalog.sourced import AsOf, Kind, Sourced
from planner.units import DAY, Bytes, KgPerKwh, Seconds, Usd, UsdPerHour, UsdPerKw, UsdPerKwh, UsdPerKwMonth, Watts
from planner.yaml_io import Frozen

Term = Literal["on-demand", "spot", "reserved-1y", "reserved-3y", "capacity-block"]


MINIMUM: dict[Term, float] = {"reserved-1y": 365 * DAY, "reserved-3y": 3 * 365 * DAY, "capacity-block": DAY}
"""Seconds for which a term is paid at least; EC2 Capacity Blocks are of whole days."""


class Host(Frozen):
    """What a provider states of an instance's host; what it leaves out is as in the node type."""

    memory: Bytes | None = None
    vcpus: Few | None = None
    """Hardware threads, which step an optimizer that is on the host."""
    disk: Literal["none"] | Bytes | None = None
    """Local flash, all drives together."""

    def of(self, node: Node) -> Node:
        """Return a node type with this host: a smaller disk is slower in proportion."""
        cpu = {name: value for name, value in (("memory", self.memory), ("threads", self.vcpus)) if value is not None}
        update: dict[str, object] = {"cpu": node.cpu.model_copy(update=cpu)} if cpu else {}
        if self.disk == "none":
            update["nvme"] = None
        elif self.disk is not None and node.nvme is not None:
            share = min(1.0, self.disk / node.nvme.capacity)
            update["nvme"] = node.nvme.model_copy(update={
                "capacity": self.disk, "read": share * node.nvme.read, "write": share * node.nvme.write})
        return node.model_copy(update=update) if update else node


class Offer(Frozen):
    """One instance of one provider: a whole node per hour. It may bring another host, NICs or fabric than its node."""

    instance: str
    node: str
    region: str
    term: Term
    price: UsdPerHour
    cluster: bool = True
    """Whether several can be joined into one job over the fabric; a lone pod can not."""
    host: Host | None = None
    nics: Nics | None = None
    fabric: str | None = None
    minimum: Seconds | None = None
    """Shortest time that is paid for; where not given, that of its term."""
    node_hours_per_reclaim: Hours | None = None
    """Of spot: node-hours until the provider takes one back; where not given, that of the reliability entry."""
    source: str | None = None
    as_of: AsOf | None = None
    kind: Kind | None = None
    note: str = ""

    def commitment(self, usual: float | None = None) -> float:
        """Return the seconds paid for at least; `usual` is what the provider bills at least where no term says more."""
        return MINIMUM.get(self.term, usual or 0.0) if self.minimum is None else self.minimum


ANYWHERE = "any"
"""The region of offers whose provider does not say where they are."""


@lru_cache(maxsize=4096)
def _plain(instance: str) -> str:
    return instance.strip().lower().removeprefix("standard_")


class Reservation(Frozen):
    """How a provider lets many nodes at once, where these are not on demand."""

    called: str
    """What the provider calls it."""
    least: Seconds
    """Shortest time it is paid for."""
    most: Seconds | None = None
    """Longest time; none where it has no end."""
    nodes: Few | None = None
    """Most nodes of one; none where nothing is said."""


class PriceList(Sourced):
    """All offers of one provider; an offer's own source, date and kind override the list's."""

    minimum: Seconds | None = None
    """Shortest time that the provider bills; an offer's own, or its term's, overrides it."""
    reservation: Reservation | None = None
    """How many nodes at once are let for a time; none where nothing was found."""
    areas: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Part of the world (us, canada, europe, asia) -> the regions of this provider that lie there."""
    alike: dict[str, str] = Field(default_factory=dict)
    """Instances that have no offer here -> one that has and whose GPUs are the same, or the node type that it is."""
    offers: tuple[Offer, ...] = Field(min_length=1)

    def instances(self, name: str) -> set[str]:
        """Return the instances of offers that somebody means by a name: in any case, without Azure's `Standard_`, or
        that is no offer's, of one that is alike.
        """
        plain = _plain(self.alike_of(name) or name)
        return {*[offer.instance for offer in self.offers if _plain(offer.instance) == plain][-1:]}

    def alike_of(self, name: str) -> str | None:
        """Return what an instance without an offer is like; none for any other."""
        plain = _plain(name)
        return next((like for other, like in self.alike.items() if _plain(other) == plain), None)

    def sells_in(self, offer: Offer, regions: Collection[str]) -> bool:
        """Say whether one of its offers is to be had in one of the regions, or these are none.

        What a whole part of the world is offered for (`us`) is the price of a region there that has none of its own.
        """
        if not regions or offer.region in regions:
            return True
        return offer.region in AREAS and any(
            area_of(region) == offer.region and self._names_alike(region) and not any(
                (other.instance, other.term, other.region) == (offer.instance, offer.term, region)
                for other in self.offers) for region in regions if region not in AREAS)

    def _names_alike(self, region: str) -> bool:
        """Say whether it names its regions as this one is named: us-west-2 beside its us-east-1."""
        return any(form(offer.region) == form(region) for offer in self.offers
                   if offer.region not in AREAS and offer.region != ANYWHERE)

    def regions(self, name: str) -> set[str]:
        """Return the regions of its offers that a name means: its own, those of an area, those that begin with it."""
        wanted = name.lower()
        return {offer.region for offer in self.offers if wanted == offer.region.lower()
                or offer.region in self.areas.get(wanted, ()) or offer.region.lower().startswith(f"{wanted}-")}


class Purchase(Sourced):
    """What a node type costs to buy."""

    node: str
    price: Usd
    with_nics: bool = True
    """Whether the price includes the adapters of the network between nodes."""


class Racks(Frozen):
    """What nodes are mounted in: as many racks as their power needs."""

    power: Watts
    price: Usd


class Storage(Frozen):
    """Shared storage, sized by what a job reads and writes."""

    price: Annotated[float, Field(gt=0, le=1e6)]
    """USD per TB."""
    usable: Annotated[float, Field(gt=0, le=1)]
    """Share of what is bought that files can fill."""
    checkpoints: Few
    """Checkpoints kept."""
    bytes_per_token: Annotated[float, Field(gt=0, le=1e6)]
    """Of the training data."""


class Ownership(Frozen):
    """What owning nodes at a site takes besides their price and electricity. Shares are of the hardware's price."""

    life: Annotated[Seconds, Field(le=20 * 365 * DAY)]
    """How long nodes are kept."""
    value_loss: Annotated[float, Field(ge=0, lt=1)]
    """Share of its value that hardware loses a year."""
    financing: Annotated[float, Field(ge=0, lt=1)]
    """Yearly interest on what is bound."""
    install: Annotated[float, Field(ge=0, lt=1)]
    """Installation, once."""
    maintenance: Annotated[float, Field(ge=0, lt=1)]
    """Support and spare parts, a year."""
    staff: Annotated[float, Field(ge=0, lt=1)]
    """People who run it, a year."""
    colocation: UsdPerKwMonth | None = None
    """Space, power feed and cooling, by the power of nodes and switches under load."""
    facility: UsdPerKw | None = None
    """The same in a hall of one's own, once."""
    racks: Racks
    storage: Storage


class Site(Sourced):
    """Where owned nodes stand: what their running costs."""

    electricity: UsdPerKwh
    pue: float = Field(ge=1, le=3)
    """Power drawn by the building over power drawn by the nodes."""
    grid_intensity: KgPerKwh | None = None
    """CO2 of a kWh from the grid there; none leaves emissions open."""
    ownership: Ownership | None = None
    """Needed where nodes are bought."""
