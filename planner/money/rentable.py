"""What may be rented of the nodes in question: offers of the catalog, or nodes at a price that the question states."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from planner.catalog.load import Catalog
from planner.catalog.price import ANYWHERE, Offer, PriceList
from planner.scenario.limits import Rent

YOURS = "yours"
"""Who sells at the price that a question states, where it names nobody."""
Rentable = dict[str, list[tuple[PriceList, Offer]]]


def rentable_of(rent: Rent | None, nodes: Sequence[str], catalog: Catalog) -> Rentable:
    """Return the offers that are admitted, with their lists, by the node type; of a price of the question's own, one of
    each of the `nodes`.
    """
    if rent is None:
        return {}
    if rent.price is not None:
        return {name: [_at_own_price(rent, name, catalog, rent.price)] for name in nodes}
    admitted = _admitted(rent, catalog)
    return admitted | {name: whole for name in nodes if is_part(name, catalog) and (
        whole := _whole(name, admitted, catalog))}


def is_part(node: str, catalog: Catalog) -> bool:
    """Say whether a node type is some of the GPUs of a larger one, which nobody builds or sells by itself."""
    return node not in catalog.names("nodes")


def _whole(part: str, admitted: Rentable, catalog: Catalog) -> list[tuple[PriceList, Offer]]:
    """Return the offers of the machines that a node type is a part of, at the price of the whole."""
    node = catalog.node(part)
    return [(prices, offer.model_copy(update={"node": part})) for name, offers in admitted.items()
            if catalog.node(name).gpu == node.gpu and catalog.node(name).gpus > node.gpus for prices, offer in offers]


def _at_own_price(rent: Rent, node: str, catalog: Catalog, price: float) -> tuple[PriceList, Offer]:
    """Return nodes of one type at a price of a GPU and hour, as an offer of today and its list."""
    offer = Offer(instance=node, node=node, region=ANYWHERE, term=rent.terms[0],
                  price=f"{price * catalog.node(node).gpus!r} USD/h")
    return PriceList(name=next(iter(rent.providers), YOURS), source="the question", kind="quoted",
                     as_of=f"{date.today():%Y-%m}", offers=(offer,)), offer


def _admitted(rent: Rent, catalog: Catalog) -> Rentable:
    found: Rentable = {}
    for prices in catalog.price_lists:
        if not rent.providers or prices.name in rent.providers:
            for offer in prices.offers:
                if offer.term in rent.terms and (not rent.instances or offer.instance in rent.instances) and (
                        prices.sells_in(offer, rent.regions)):
                    found.setdefault(catalog.node(offer.node).name, []).append((prices, offer))
    return found
