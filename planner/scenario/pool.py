"""The hardware that a question may draw on: nodes by any of their names, owned, bought, or offered by providers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from planner.catalog.hardware import Gpu, Node
from planner.catalog.importers.gpu_names import GpuNames
from planner.catalog.load import Catalog
from planner.catalog.part_node import part_name
from planner.catalog.price import Purchase
from planner.errors import InputError, UnknownName
from planner.scenario.default import Default, Defaults
from planner.scenario.limits import Hardware, Limits, Rent, Sourcing
from planner.scenario.unmodeled import Unmodeled, family_of, seeing
from planner.yaml_io import Document, Frozen

ANY = "any"
"""The candidate that stands for every node type with an admitted offer; used where no hardware is named."""
_COUNTED = re.compile(r"(?P<count>\d{1,9})(?: ?[x*×] ?| (?:nodes? )?(?:of )?)(?P<what>[^ ].*)", re.IGNORECASE)
_COUNTS = {word: count for count, words in (
    (1, "one single a an"), (2, "two dual twin"), (3, "three triple"), (4, "four quad"), (6, "six"), (8, "eight octo"),
    (16, "sixteen")) for word in words.split()}
_HOW_MANY = re.compile(rf"^({'|'.join(_COUNTS)})[ -](?=[^ ])", re.IGNORECASE)
"""dual 3090, a single H100, two A100."""
_MEMORY = re.compile(r"(?P<size>\d{1,4}) ?gi?b(?: (?:of )?(?:v?ram|memory))?(?: (?:gpus?|cards?))?", re.IGNORECASE)
"""A card by its memory alone: 24GB."""
_GIGABYTES = re.compile(r"(?<=\d)g(?![a-z0-9])", re.IGNORECASE)
"""A100-80G."""
_TIMES = "x*×:"
"""8xH100, 16 H200, 2 nodes of 8xH100; and behind the name H100x8, H100:8."""
E = TypeVar("E")


@contextmanager
def named(document: Document, *path: str | int) -> Iterator[None]:
    """Say of an unknown name where it was written."""
    try:
        yield
    except UnknownName as error:
        seen = seeing(error.name) if path[-1] == "model" else None
        raise document.error(path, seen or error.problem) from None


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
        rent = _offers_asked(rent, catalog, document)
    own = _owned(sourcing, catalog, document, defaults)

    def everything() -> Sequence[str]:
        if not priced:
            return sorted(own) if own and rent is None else catalog.names("nodes")
        bought = [catalog.node(purchase.node).name for purchase in catalog.all("purchases",
                                                                               Purchase)] if sourcing.buy else []
        return sorted({*own, *bought, *(_offered(rent, catalog) if rent is not None else ())})

    named_nodes, gpus = _candidates(hardware.candidates, everything, catalog, document)
    if rent is None and own and not sourcing.buy and not own.keys() >= set(named_nodes):
        # who names other nodes beside those at hand would rent them
        rent = Rent()
        defaults.append(Default(name="rent", value=text(rent.terms), why="candidates are named that are not owned"))
    candidates = tuple(dict.fromkeys((*named_nodes, *own)))
    if gpus is not None and limits.gpus is None and limits.max_gpus is None:
        defaults.append(Default(name="max_gpus", value=str(gpus), why=f"as {text(hardware.candidates)} has"))
        limits = limits.model_copy(update={"max_gpus": gpus})
    if ANY in hardware.candidates:
        defaults.append(Default(
            name="candidates", value=text(candidates) if priced else "every GPU of the catalog",
            why="every node type with an admitted offer" if priced else "memory does not depend on offers"))
    return {"hardware": hardware.model_copy(update={"candidates": candidates}), "limits": limits,
            "sourcing": sourcing.model_copy(update={"rent": rent, "own": own})}


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
            site = catalog.site(sourcing.site)
        if "site" not in sourcing.model_fields_set:
            defaults.append(Default(name="site", value=site.name, why="the default site of owned nodes"))
    return own


def _offers_asked(rent: Rent, catalog: Catalog, document: Document) -> Rent:
    """Return `rent` with providers and regions as the catalog spells them; a part of the world is all its regions."""
    lists = catalog.price_lists if rent.regions else []

    def regions(name: str) -> list[str]:
        return sorted({region for prices in lists for region in prices.regions(name)})

    providers = {name.lower(): name for name in catalog.names("prices")} if rent.providers else {}
    meant: dict[str, Callable[[str], list[str]]] = {
        "providers": lambda name: [providers[name.lower()]] if name.lower() in providers else [], "regions": regions}
    known = {"providers": list(providers.values()), "regions": sorted(
        {area for prices in lists for area in prices.areas} | {o.region for prices in lists for o in prices.offers})}
    update: dict[str, tuple[str, ...]] = {"terms": rent.terms}
    for field, found in meant.items():
        names: dict[str, None] = {}
        for at, name in enumerate(getattr(rent, field)):
            with named(document, "sourcing", "rent", field, at):
                if not found(name):
                    raise UnknownName(field.removesuffix("s"), name, known[field])
                names |= dict.fromkeys(found(name))
        update[field] = tuple(names)
    return rent.model_copy(update=update)


def _candidates(names: Sequence[str], everything: Callable[[], Sequence[str]], catalog: Catalog,
                document: Document) -> tuple[tuple[str, ...], int | None]:
    """Return the node types, and of clusters the GPUs that each has. Raises InputError where these differ."""
    nodes: dict[str, None] = {}
    sizes: list[int | None] = []
    for at, name in enumerate(names):
        if name.lower() == ANY:
            nodes |= dict.fromkeys(everything())
            continue
        with named(document, "hardware", "candidates", at):
            meant = _meant(name, catalog)
        nodes |= dict.fromkeys(meant.nodes)
        sizes.append(meant.gpus)
    if len(set(sizes)) > 1:
        raise document.error(("hardware", "candidates"), "clusters of different size: name the GPUs, and give their "
                             "number as max_gpus")
    return tuple(nodes), sizes[0] if sizes else None


def _offered(rent: Rent, catalog: Catalog) -> list[str]:
    """Return the node types that some admitted offer names, sorted."""
    nodes = {catalog.node(offer.node).name for prices in catalog.price_lists for offer in prices.offers
             if offer.term in rent.terms and (not rent.providers or prices.name in rent.providers)
             and (not rent.regions or offer.region in rent.regions)}
    if not nodes:
        raise InputError(f"no offer in the catalog has terms {text(rent.terms)} with the providers and "
                         "regions asked for, so there is no hardware to choose from")
    return sorted(nodes)


def candidate_nodes(names: Sequence[str], catalog: Catalog) -> list[str]:
    """Return the node types meant by `names`: a node, a GPU (every node type with it), or "8xh100".

    Upper and lower case are alike. Raises UnknownName, also for a GPU that no node type has in that count.
    """
    return list(dict.fromkeys(node for name in names for node in _meant(name, catalog).nodes))


def node_named(name: str, catalog: Catalog, gpus: int | None = None) -> tuple[str, int | None]:
    """Return the one node type of a name such as "8 x H100", and of a cluster (128 H100) the number of its GPUs.

    Of a GPU alone it is the smallest node type that has `gpus` of them, one where none are given, or else the largest.
    Raises InputError where it is several.
    """
    meant = _meant(name, catalog)
    sizes = {node: catalog.node(node).gpus for node in meant.nodes}
    wanted = meant.gpus or gpus or 1
    of_one = {catalog.node(node).gpu for node in sizes}
    if len(sizes) > 1 and len(of_one) == 1:
        least = min((size for size in sizes.values() if size >= wanted), default=max(sizes.values()))
        sizes = {node: size for node, size in sizes.items() if size == least}
    if len(sizes) > 1:
        raise InputError(f"{name!r} is {len(sizes)} node types: {', '.join(list(sizes)[:4])}"
                         f"{', ...' if len(sizes) > 4 else ''}; name one")
    return next(iter(sizes)), meant.gpus


class _Meant(NamedTuple):
    """What somebody calls hardware: node types, and where it is a cluster of so many GPUs, how many."""

    nodes: Sequence[str]
    gpus: int | None = None


def _meant(name: str, catalog: Catalog) -> _Meant:
    try:
        return _as_written(name, catalog)
    except UnknownName as error:
        said = _HOW_MANY.sub(lambda counted: f"{_COUNTS[counted[1].lower()]} ", _GIGABYTES.sub("gb", name.strip()))
        if error.name != name or said == name:
            raise
        try:
            return _as_written(said, catalog)
        except UnknownName:
            raise error from None


def _as_written(name: str, catalog: Catalog) -> _Meant:
    text = " ".join(name.split())
    if (node := _known(catalog.node, text)) is not None:
        return _Meant([node.name])
    nodes = catalog.all("nodes", Node)
    if (gpu := _gpu(text, catalog)) is not None:
        return _Meant([node.name for node in nodes if catalog.gpu(node.gpu).name == gpu])
    if instances := {offer.node for prices in catalog.price_lists for offer in prices.offers
                     if offer.instance.lower() == text.lower()}:
        return _Meant([catalog.node(node).name for node in sorted(instances)])
    if (size := _MEMORY.fullmatch(text)) is not None and (held := [
            node.name for node in nodes if GpuNames.holds(catalog.gpu(node.gpu), float(size["size"]))]):
        return _Meant(held)
    front, what = _COUNTED.fullmatch(text), text.rstrip("0123456789").rstrip()
    for count, meant in ((front["count"], front["what"]) if front else ("", ""),
                       (text[len(what):], what[:-1].rstrip()) if what[-1:].lower() in _TIMES else ("", "")):
        if meant and count and (several := _several(name, meant, int(count), catalog)):
            return several
    if (family := family_of(text)) is not None:
        raise Unmodeled(name, family)
    raise UnknownName("node or GPU", name, [*_spellings(nodes), *_spellings(catalog.all("gpus", Gpu))])


def _several(name: str, what: str, count: int, catalog: Catalog) -> _Meant | None:
    """Return so many of a node type or of a GPU: node types with that count, else those that make it up together."""
    try:
        meant = _meant(what, catalog)
    except UnknownName as error:
        if error.name != what:
            raise
        return None
    sizes = {node: catalog.node(node).gpus for node in meant.nodes}
    if _known(catalog.node, what) or _COUNTED.fullmatch(what) or meant.gpus:
        return _Meant(meant.nodes, count * (meant.gpus or max(sizes.values())))
    if count in sizes.values():
        return _Meant([node for node, gpus in sizes.items() if gpus == count])
    if count < max(sizes.values()):
        return _Meant([part_name(catalog.node(meant.nodes[0]).gpu, count)])
    # pods of one GPU make no cluster
    fitting = [node for node, gpus in sizes.items() if gpus > 1 and not count % gpus]
    if not fitting:
        gpu = catalog.node(meant.nodes[0]).gpu
        raise UnknownName("hardware (the GPU exists, but no such node type)", name,
                          [f"{gpus}x{gpu}" for gpus in sizes.values()])
    return _Meant(fitting, count)


def _gpu(name: str, catalog: Catalog) -> str | None:
    """Return the GPU of a name, also as drivers and shops write it."""
    known = _known(catalog.gpu, name)
    return GpuNames(catalog).called(name) if known is None else known.name


def owned_nodes(name: str, count: int, catalog: Catalog) -> tuple[str, int]:
    """Return a node type and how many are meant by `count` of `name`: of nodes, or of GPUs, in the largest nodes that
    so many fill.

    Raises UnknownName, also for a number of GPUs that no nodes have.
    """
    for spelling, nodes in ((name, count), (f"{count}x{name}", 1)):
        if (node := _known(catalog.node, spelling)) is not None:
            return node.name, nodes
    if _gpu(name, catalog) is None:
        return candidate_nodes([name], catalog)[0], count
    sizes = [(catalog.node(node_type).gpus, node_type) for node_type in candidate_nodes([name], catalog)]
    if count < max(sizes)[0]:
        return candidate_nodes([f"{count}x{name}"], catalog)[0], 1
    filled = [(size, type_name) for size, type_name in sizes if count % size == 0]
    if not filled:
        raise UnknownName("hardware (the GPU exists, but no such number of them in nodes)", f"{count}x{name}",
                          [f"{size}x{type_name}" for size, type_name in sizes])
    size, node_name = min(filled, key=lambda pair: (-pair[0], pair[1]))
    return node_name, count // size


def _known(find_entry: Callable[[str], E], name: str) -> E | None:
    try:
        return find_entry(name)
    except UnknownName as error:
        if error.name != name:
            raise
        return None


def _spellings(entries: Sequence[Node] | Sequence[Gpu]) -> list[str]:
    return [spelling for entry in entries for spelling in (entry.name, *entry.aliases)]
