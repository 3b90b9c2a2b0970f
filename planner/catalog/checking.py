"""Read a whole catalog and resolve every reference in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner.catalog.hardware import Fabric, Node
from planner.catalog.load import KINDS, Catalog
from planner.catalog.price import Purchase
from planner.catalog.sourced import Sourced
from planner.errors import InputError, UnknownName


def check(catalog: Catalog) -> Iterator[Sourced]:
    """Yield every entry, then resolve every reference; raises InputError at the first that fails."""
    for kind, model in KINDS.items():
        yield from catalog.all(kind, model)
    yield from catalog.calibration_entries()
    for node in catalog.all("nodes", Node):
        with _in_file(catalog, "nodes", node.name):
            catalog.rates(catalog.gpu(node.gpu).architecture)
            for fabric in filter(None, (node.scaleup, node.fabric)):
                catalog.fabric(fabric)
    for network in catalog.all("fabrics", Fabric):
        with _in_file(catalog, "fabrics", network.name):
            for part in filter(None, network.parts.model_dump().values() if network.parts else ()):
                catalog.part(part)
    for purchase in catalog.all("purchases", Purchase):
        with _in_file(catalog, "purchases", purchase.name):
            catalog.node(purchase.node)
    for prices in catalog.price_lists:
        with _in_file(catalog, "prices", prices.name):
            for offer in prices.offers:
                catalog.node(offer.node)
                if offer.fabric:
                    catalog.fabric(offer.fabric)


@contextmanager
def _in_file(catalog: Catalog, kind: str, name: str) -> Iterator[None]:
    """Say of a reference that does not resolve which file makes it."""
    try:
        yield
    except UnknownName as error:
        raise InputError(error.problem, file=error.file or str(catalog.files(kind)[name])) from None
