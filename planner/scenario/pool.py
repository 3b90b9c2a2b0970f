"""The hardware that a question may draw on: nodes by any of their names, owned, bought, or offered by providers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from planner.catalog.load import Catalog
from planner.catalog.price import Purchase
from planner.errors import InputError, UnknownName
from planner.scenario.default import Default, Defaults
from planner.scenario.hardware_names import meant_by, owned_nodes, sold_as
from planner.scenario.limits import Hardware, Limits, Rent, Sourcing
from planner.scenario.regions import regions_asked
from planner.scenario.serving import Serving
from planner.scenario.sites import site_of
from planner.scenario.unmodeled import seeing
from planner.yaml_io import Document, Frozen

ANY = "any"
"""The candidate that stands for every node type with an admitted offer; used where no hardware is named."""


@contextmanager
def named(document: Document, *path: str | int) -> Iterator[None]:
    """Say of an unknown name where it was written."""
    try:
        yield
    except UnknownName as error:
        seen = seeing(error.name) if path[-1] == "model" else None
        told = document.error(path, seen or error.problem)
        raise (told if seen else error.told_as(told)) from None


def pool(hardware: Hardware, sourcing: Sourcing, limits: Limits, catalog: Catalog, document: Document,
         defaults: Defaults, *, priced: bool = True) -> dict[str, Frozen]:
    """Return `hardware` and `sourcing` with the catalog's names, by field; what decided is added to `defaults`.

    Candidates that are a cluster (16 H200) limit the GPUs, unless `limits` say how many. Where the question is not
    `priced`, every node type of the catalog is any candidate. Raises InputError.
    """
    rent = sourcing.rent
    if rent is not None:
        if "terms" not in rent.model_fields_set:
            defaults.append(Default(name="terms", value=text(rent.terms), why="others only if asked for"))
        open_to_all = "providers" not in rent.model_fields_set
        rent = _offers_asked(rent, catalog, document, defaults)
        rent = _of_instances(rent, hardware, catalog, defaults, open_to_all=open_to_all)
    own = _owned(sourcing, catalog, document, defaults)

    def everything() -> Sequence[str]:
        if not priced:
            return sorted(own) if own and rent is None else catalog.names("nodes")
        bought = [catalog.node(purchase.node).name for purchase in catalog.all("purchases",
                                                                               Purchase)] if sourcing.buy else []
        return sorted({*own, *bought, *(_offered(rent, catalog) if rent is not None else ())})

    named_nodes, gpus = _candidates(hardware.candidates, everything, catalog, document, limits.gpus)
    if rent is None and own and not sourcing.buy and not own.keys() >= set(named_nodes):
        # who names other nodes beside those at hand would rent them
        rent = Rent()
        defaults.append(Default(name="rent", value=text(rent.terms), why="candidates are named that are not owned"))
    candidates = tuple(dict.fromkeys((*named_nodes, *own)))
    _of_one_gpu(rent, hardware, candidates, catalog, document)
    _site_counts(sourcing, rent, {*candidates, *own} if priced else None, own, catalog, document)
    if gpus is not None and limits.gpus is None and limits.max_gpus is None:
        defaults.append(Default(name="max_gpus", value=str(gpus), why=f"as {text(hardware.candidates)} has"))
        limits = limits.model_copy(update={"max_gpus": gpus})
    if ANY in hardware.candidates:
        mine = own and rent is None and not sourcing.buy
        defaults.append(Default(
            name="candidates", value=text(candidates) if priced or mine else "every GPU of the catalog",
            why="what is owned" if mine else "every node type with an admitted offer" if priced else
            "memory does not depend on offers"))
    return {"hardware": hardware.model_copy(update={"candidates": candidates}), "limits": limits,
            "sourcing": sourcing.model_copy(update={"rent": rent, "own": own})}


def _of_one_gpu(rent: Rent | None, hardware: Hardware, nodes: Sequence[str], catalog: Catalog, document: Document
                ) -> None:
    """Raise InputError where a price of the question's own is of more than one kind of GPU."""
    if rent is None or rent.price is None:
        return
    if ANY in hardware.candidates or len(kinds := {catalog.node(name).gpu for name in nodes}) > 1:
        raise document.error(("sourcing", "rent", "price"), "price is of one kind of GPU: name it, such as --on h100"
                             + ("" if ANY in hardware.candidates else f"; these have {text(tuple(sorted(kinds)))}"))


def _site_counts(sourcing: Sourcing, rent: Rent | None, nodes: Collection[str] | None, own: Collection[str],
                 catalog: Catalog, document: Document) -> None:
    """Raise InputError where a site, or a price of electricity, does nothing: all `nodes` are rented, or none has a
    price.
    """
    # a file that a question was written to has its site in any case
    said = {"electricity", *(["site"] if ("sourcing", "site") in document.labels else [])}
    asked = sorted(name for name in said & sourcing.model_fields_set if getattr(sourcing, name) is not None)
    if not asked or (nodes is not None and (
            own or sourcing.buy or rent is None or not set(nodes) <= set(_offered(rent, catalog)))):
        return
    raise document.error(("sourcing", asked[0]), "has no effect here: " + (
        "the question is of memory alone" if nodes is None else "what providers ask for includes electricity and "
        "space; it counts for nodes that you own (--own 8xh100) or buy (--terms buy)"))


def _of_instances(rent: Rent, hardware: Hardware, catalog: Catalog, defaults: Defaults, *, open_to_all: bool) -> Rent:
    """Return `rent` held to the instances that the hardware is named by, where all of it is, and to their providers."""
    sold = [sold_as(name, catalog) for name in hardware.candidates]
    if not sold or not all(sold):
        return rent
    called = set().union(*sold)
    defaults += [Default(name="instance", value=f"{like} for {name}", why="its GPUs are the same, and the catalog has "
                         "no price of its own: yours may be higher") for name in hardware.candidates
                 for prices in catalog.price_lists if (like := prices.alike_of(name))]
    update = {} if rent.instances else {"instances": tuple(sorted({instance for _, instance in called}))}
    if open_to_all:
        update["providers"] = tuple(sorted({seller for seller, _ in called}))
        defaults.append(Default(name="providers", value=text(update["providers"]),
                                why=f"whose instances {text(hardware.candidates)} are"))
    return rent.model_copy(update=update)


def text(value: object) -> str:
    """Write a value as defaults show it."""
    return ",".join(map(str, value)) if type(value) is tuple else str(value)


def _owned(sourcing: Sourcing, catalog: Catalog, document: Document, defaults: Defaults) -> dict[str, int]:
    """Return the owned nodes by their catalog names; the site is said where it decides."""
    own: dict[str, int] = {}
    for name, count in sourcing.own.items():
        with named(document, "sourcing", "own", *([name] if ("sourcing", "own") not in document.labels else [])):
            node, nodes = owned_nodes(name, count, catalog)
        own[node] = own.get(node, 0) + nodes
    if own:
        with named(document, "sourcing", "site"):
            site = site_of(sourcing, catalog)
        if "site" not in sourcing.model_fields_set:
            defaults.append(Default(name="site", value=site.name, why="the default site of owned nodes"))
    return own


def _offers_asked(rent: Rent, catalog: Catalog, document: Document, defaults: Defaults) -> Rent:
    """Return `rent` with providers, regions and instances as the catalog spells them."""
    sold = {offer.instance for prices in catalog.price_lists for offer in prices.offers} if rent.instances else ()
    update: dict[str, tuple[str, ...]] = {"terms": rent.terms}
    for field, known in (("providers", catalog.names("prices") if rent.providers else ()), ("instances", sold)):
        spelled = {name.lower(): name for name in known}
        for at, name in enumerate(getattr(rent, field)):
            with named(document, "sourcing", "rent", field, at):
                if name.lower() not in spelled:
                    raise UnknownName(field.removesuffix("s"), name, sorted(known))
        update[field] = tuple(dict.fromkeys(spelled[name.lower()] for name in getattr(rent, field)))
    if rent.regions:
        update["regions"] = regions_asked(rent, catalog.price_lists, document, defaults)
    return rent.model_copy(update=update)


def _candidates(names: Sequence[str], everything: Callable[[], Sequence[str]], catalog: Catalog,
                document: Document, exactly: int | None) -> tuple[tuple[str, ...], int | None]:
    """Return the node types, and of clusters the GPUs that each has; of a GPU whose nodes never make `exactly` so many,
    one node of them. Raises InputError where clusters differ.
    """
    nodes: dict[str, None] = {}
    sizes: list[int | None] = []
    for at, name in enumerate(names):
        if name.lower() == ANY:
            nodes |= dict.fromkeys(everything())
            continue
        with named(document, "hardware", "candidates", at):
            meant = meant_by(name, catalog)
            of = {catalog.node(node).gpus for node in meant.nodes}
            if exactly and meant.gpus is None and catalog.known_gpu(name) and 1 < exactly < max(of) and all(
                    exactly % size for size in of - {1}):
                meant = meant_by(f"{exactly}x{name}", catalog)
        nodes |= dict.fromkeys(meant.nodes)
        sizes.append(meant.gpus)
    if len(set(sizes)) > 1:
        raise document.error(("hardware", "candidates"), "clusters of different size: name the GPUs, and give their "
                             "number as max_gpus")
    return tuple(nodes), sizes[0] if sizes else None


def sizes_apart(said: object, catalog: Catalog) -> list[str]:
    """Return the clusters that are named, as a list or with commas between, where they differ in their GPUs (8 H200 or
    16 H100); nothing for any other hardware.
    """
    listed = said if isinstance(said, tuple | list) else [said or ""]
    names = [name for text in listed for each in str(text).split(",") if (name := each.strip())]
    with suppress(UnknownName):
        return names if len({meant_by(name, catalog).gpus for name in names if name.lower() != ANY}) > 1 else []
    return []


def _offered(rent: Rent, catalog: Catalog) -> list[str]:
    """Return the node types that some admitted offer names, sorted."""
    nodes = {catalog.node(offer.node).name for prices in catalog.price_lists for offer in prices.offers
             if offer.term in rent.terms and (not rent.providers or prices.name in rent.providers)
             and prices.sells_in(offer, rent.regions)
             and (not rent.instances or offer.instance in rent.instances)}
    if not nodes:
        raise InputError(f"no offer in the catalog has terms {text(rent.terms)} with the providers and "
                         "regions asked for, so there is no hardware to choose from")
    return sorted(nodes)


def always_on(services: Sequence[Serving], supply: Mapping[str, Frozen], defaults: Defaults) -> Mapping[str, Frozen]:
    """Return how services are supplied with bought nodes in use all day, unless it says how much or some work ends."""
    sourcing = supply["sourcing"]
    assert isinstance(sourcing, Sourcing)
    ends = any(service.ends is not None for service in services)
    if sourcing.buy is None or "utilization" in sourcing.buy.model_fields_set or ends:
        return supply
    defaults.append(Default(name="utilization", value="100%", why="a service has its nodes all day"))
    return {**supply, "sourcing": sourcing.model_copy(update={
        "buy": sourcing.buy.model_copy(update={"utilization": 1.0})})}
