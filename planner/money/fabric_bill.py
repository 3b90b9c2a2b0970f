"""What a network costs to buy: its parts counted, priced and summed, each with where the price comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalog.hardware import Fabric
from planner.catalog.load import Catalog
from planner.catalog.parts import NetPart, PartRole
from planner.errors import InputError, MissingFact
from planner.money.fabric import FabricDesign


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that a network is bought as. `nic` is none where a node's price includes its adapters."""

    switch: NetPart
    node_cable: NetPart
    trunk_cable: NetPart
    nic: NetPart | None = None
    optic: NetPart | None = None


@dataclass(frozen=True, slots=True)
class BillLine:
    """One line of a bill: `count` parts at `unit_usd` USD each, `usd` together, and the provenance of the price."""

    name: str
    count: int
    unit_usd: float
    usd: float
    source: str
    as_of: str
    kind: str


def parts_of(fabric: Fabric, catalog: Catalog, *, with_nics: bool = False) -> Parts:
    """Return the parts that the catalog states for a network between nodes, its adapters only where asked for.

    Raises MissingFact where it states none, InputError where one is of another role.
    """
    named = fabric.parts
    if named is None:
        raise MissingFact(fabric.name, "parts")

    def part(name: str, role: PartRole) -> NetPart:
        entry = catalog.part(name)
        if entry.role != role:
            raise InputError(f"parts of {fabric.name}: {name} is of role {entry.role}, expected {role}")
        return entry

    if with_nics and named.nic is None:
        raise MissingFact(fabric.name, "parts.nic")
    return Parts(part(named.switch, "switch"), part(named.node_cable, "cable"), part(named.trunk_cable, "cable"),
                 part(named.nic, "nic") if with_nics and named.nic else None,
                 part(named.optic, "optic") if named.optic else None)


def bill(design: FabricDesign, parts: Parts) -> tuple[BillLine, ...]:
    """Return the bill of materials in USD, one line for each part and tier; tiers without any are left out.

    Cables that bring their ends need no transceivers. Raises MissingFact where a part, or its price, is missing.
    """
    return tuple(_item(what, part, count) for what, part, count in _lines(design, parts) if count)


def _lines(design: FabricDesign, parts: Parts) -> Iterator[tuple[str, NetPart, int]]:
    """Yield what it is for, the part and its count."""
    if parts.nic is not None:
        yield "NIC", parts.nic, design.nodes * design.nics
    for tier, switches in (("leaf", design.leaf), ("spine", design.spine), ("core", design.core)):
        yield f"{tier} switch", parts.switch, switches
    for tier, cable in (("node_leaf", parts.node_cable), ("leaf_spine", parts.trunk_cable),
                        ("spine_core", parts.trunk_cable)):
        shown = tier.replace("_", "-")
        yield f"{shown} cable", cable, getattr(design.cables, tier)
        optics = 0 if cable.ends else getattr(design.optics, tier)
        if optics and parts.optic is None:
            raise MissingFact(cable.name, "transceivers among the parts")
        if parts.optic is not None:
            yield f"{shown} transceiver", parts.optic, optics


def _item(what: str, part: NetPart, count: int) -> BillLine:
    if part.price is None:
        raise MissingFact(part.name, "price")
    fact = part.provenance("price")
    return BillLine(f"{what} {part.name}", count, part.price, count * part.price, fact.source, fact.as_of, fact.kind)
