"""What bought nodes cost: the capital with its bill of materials, what a month takes, and the price of an hour of use.

With capital C, of which hardware H keeps the share (1 - w)^L after a life of L years, interest r and running costs O:

    a year costs  (C - S / (1 + r)^L) r / (1 - (1 + r)^-L) + O,  S = H (1 - w)^L   (an annuity; (C - S) / L without r)

An hour of use is a year over its 8,760 hours times the utilization: the share of time in which the nodes do work.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field
from math import ceil

from planner.catalog.hardware import Node
from planner.catalog.price import Ownership, Purchase, Site
from planner.catalog.sourced import Fact
from planner.errors import InputError
from planner.layouts.candidate import Candidate
from planner.money.fabric import FabricDesign, design
from planner.money.fabric_bill import BillLine, Parts, bill
from planner.units import YEAR

YEAR_HOURS = 8760.0


@dataclass(frozen=True, slots=True)
class Capital:
    """What is bought at the start, in USD; `hardware` (nodes and network) is what can be sold again."""

    items: tuple[BillLine, ...]
    hardware: float
    network: FabricDesign | None

    @property
    def total(self) -> float:
        """Return the sum of the items."""
        return sum(item.usd for item in self.items)


@dataclass(frozen=True, eq=False)
class Estate:
    """Nodes of one kind bought for one site: everything that their price depends on but their number.

    `parts` is none where a network cannot be priced, so that only single nodes are bought. stored_bytes: data and
    checkpoints; utilization: share of time in which the nodes do work, in (0, 1].
    """

    candidate: Candidate
    purchase: Purchase
    site: Site
    terms: Ownership
    parts: Parts | None
    stored_bytes: float
    utilization: float
    _known: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    @property
    def node(self) -> Node:
        """The node type."""
        return self.candidate.node

    @property
    def years(self) -> float:
        """How long the nodes are kept."""
        return self.terms.life / YEAR

    def capital(self, nodes: int) -> Capital:
        """Return the bill of `nodes` nodes with their network, racks, storage and installation."""
        price = self.purchase.provenance("price")
        bought = [BillLine(self.node.name, nodes, self.purchase.price, nodes * self.purchase.price,
                       price.source, price.as_of, price.kind)]
        network = self._network(nodes)
        if network is not None and self.parts is not None:
            bought += bill(network, self.parts)
        hardware = sum(item.usd for item in bought)
        racks, storage = self.terms.racks, self.terms.storage
        stored = self.stored_bytes / storage.usable / 1e12
        needed = nodes * self.node.power.load / racks.power
        bought += [self._item("rack", "racks", ceil(needed), racks.price) if needed > 1
                   else self._item("share of a rack", "racks", 1, needed * racks.price),
                   self._item("TB of storage", "storage.price", ceil(stored), storage.price),
                   self._item("installation", "install", 1, hardware * self.terms.install)]
        if self.terms.facility is not None:
            load, _ = self.watts(nodes, network)
            bought.append(self._item("kW of facility", "facility", ceil(load / 1000), self.terms.facility))
        return Capital(tuple(item for item in bought if item.count), hardware, network)

    def _item(self, name: str, fact: str, count: int, usd: float) -> BillLine:
        known = self.fact(fact)
        return BillLine(name, count, usd, count * usd, known.source, known.as_of, known.kind)

    def fact(self, name: str) -> Fact:
        """Return where a figure of the site's `ownership` comes from."""
        if name == "life" and self.site.ownership is not None and self.terms.life != self.site.ownership.life:
            return Fact(source="as asked", as_of=self.site.as_of, kind="assumed")
        known = (self.site.facts.get(f"ownership.{key}") for key in (name, name.partition(".")[0]))
        return next(filter(None, known), self.site.provenance("ownership"))

    def _network(self, nodes: int) -> FabricDesign | None:
        """Return the network between the nodes; a single one needs none."""
        if nodes == 1 or self.parts is None:
            return None
        fabric, nics = self.candidate.fabric, self.candidate.nics
        return design(nodes, nics.count, self.parts.switch, rail_optimized=fabric.topology == "rail-optimized",
                      oversubscription=fabric.oversubscription)

    def watts(self, nodes: int, network: FabricDesign | None) -> tuple[float, float]:
        """Return the watts of nodes and switches under load, and idle; switches do not rest."""
        switches = 0.0
        if network is not None and self.parts is not None:
            switches = network.switches * (self.parts.switch.power or 0.0)
        return nodes * self.node.power.load + switches, nodes * self.node.power.idle + switches

    def resale(self, capital: Capital) -> float:
        """Return USD that nodes and network fetch at the end of their life."""
        return float(capital.hardware * (1 - self.terms.value_loss) ** self.years)

    def yearly(self, nodes: int, capital: Capital | None = None) -> dict[str, float]:
        """Return USD a year by part; `capital` is that of as many nodes, where it is known already."""
        terms, years, capital = self.terms, self.years, capital or self.capital(nodes)
        total, left = capital.total, self.resale(capital)
        lost, rate = (total - left) / years, terms.financing
        annuity = lost if rate == 0 else (total - left / (1 + rate) ** years) * rate / (1 - (1 + rate) ** -years)
        load, idle = self.watts(nodes, capital.network)
        mean = self.utilization * load + (1 - self.utilization) * idle
        return {"depreciation": lost, "financing": annuity - lost,
                "electricity": mean / 1000 * self.site.pue * self.site.electricity * YEAR_HOURS,
                "colocation": load / 1000 * (terms.colocation or 0.0) * 12,
                "maintenance": terms.maintenance * capital.hardware, "staff": terms.staff * capital.hardware}

    def usd_per_node_hour(self, nodes: int) -> float:
        """Return USD for an hour of use of one of `nodes` nodes."""
        return sum(self.yearly(nodes).values()) / (nodes * YEAR_HOURS * self.utilization)

    def __call__(self, nodes: int) -> int:
        """Return micro-USD for an hour of use of one of `nodes` nodes, rounded up as all prices are."""
        if nodes not in self._known:
            self._known[nodes] = ceil(round(self.usd_per_node_hour(nodes) * 1e6, 3))
        return self._known[nodes]

    def most_nodes(self, limit: int) -> int:
        """Return the most nodes, `limit` at most, that its switches can join."""
        if self.parts is None:
            return 1
        return bisect(range(2, limit + 1), False, key=lambda nodes: not self._buildable(nodes)) + 1

    def _buildable(self, nodes: int) -> bool:
        try:
            self._network(nodes)
        except InputError:
            return False
        return True

    def break_even_months(self, nodes: int, rent: float) -> float | None:
        """Return after how many months of use buying has taken less cash than renting; none within the nodes' life.

        rent: USD for what the nodes do in an hour of use. Cash is the capital at the start, and by the month its
        interest and what runs; what the nodes could be sold for is not counted.
        """
        capital = self.capital(nodes)
        running = sum(usd for name, usd in self.yearly(nodes, capital).items() if name != "depreciation")
        saved = rent * YEAR_HOURS * self.utilization - running
        return capital.total / saved * 12 if saved * self.years >= capital.total else None

    def break_even_utilization(self, nodes: int, rent: float) -> float | None:
        """Return the least utilization at which the nodes cost no more than the rent over their life; none below 1."""
        capital = self.capital(nodes)
        load, idle = self.watts(nodes, capital.network)
        per_watt = self.site.pue * self.site.electricity * YEAR_HOURS / 1000
        fixed = sum(usd for name, usd in self.yearly(nodes, capital).items() if name != "electricity")
        spare = rent * YEAR_HOURS - (load - idle) * per_watt
        needed = (fixed + idle * per_watt) / spare if spare > 0 else 2.0
        return needed if needed <= 1 else None


