"""What hardware somebody means: node types by any of their names, GPUs, so many of these, a provider's instance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from planner.catalog.hardware import Gpu, Node
from planner.catalog.importers.gpu_names import GpuNames
from planner.catalog.load import Catalog
from planner.catalog.part_node import part_name
from planner.errors import InputError, UnknownName
from planner.scenario.instance_names import series
from planner.scenario.unmodeled import Unmodeled, family_of

_COUNTED = re.compile(r"(?P<count>\d{1,9})(?: ?[x*×] ?| "
                      r"(?P<nodes>(?:nodes?|servers?|box(?:es)?|machines?|racks?|hosts?) )?(?:of )?)(?P<what>[^ ].*)",
                      re.IGNORECASE)
_COUNTS = {word: count for count, words in (
    (1, "one single a an"), (2, "two dual twin"), (3, "three triple"), (4, "four quad"), (6, "six"), (8, "eight octo"),
    (16, "sixteen")) for word in words.split()}
_HOW_MANY = re.compile(rf"^({'|'.join(_COUNTS)})[ -](?=[^ ])", re.IGNORECASE)
"""dual 3090, a single H100, two A100."""
_MEMORY = re.compile(r"(?P<size>\d{1,4}) ?gi?b(?: (?:of )?(?:v?ram|memory))?(?: (?:gpus?|cards?))?", re.IGNORECASE)
"""A card by its memory alone: 24GB."""
_OF = re.compile(r"\b(nodes?|servers?|box(?:es)?|machines?|hosts?) (?:with|having) ", re.IGNORECASE)
"""20 nodes with 4 A100."""
_ONE_OF = re.compile(r"^(?=(?:node|server|box|machine|host) of \d)", re.IGNORECASE)
"""Node with 8 H100."""
_GIGABYTES = re.compile(r"(?<=\d)g(?![a-z0-9])", re.IGNORECASE)
"""A100-80G."""
_SIZE_FIRST = re.compile(r"^(?:an? )?(?P<size>\d{1,3}) ?gi?b? (?P<what>(?:[a-z]{2,9} )?[a-z]{0,4}\d[^ ]*"
                         r"(?: (?:ti|super|sxm|pcie|nvl|ada))?)$", re.IGNORECASE)
"""80G A100, an 8 GB RTX 3070, 16GB 4060 Ti."""
_BOX = re.compile(r"(?P<what>.+?)[ -](?:node|server|box|boxe|host|system|rack)s?", re.IGNORECASE)
"""MI300X node, two H100 servers: all the GPUs that a fabric joins in one."""
_CLUSTER = 3
"""Digits of a number of GPUs from which on it is one of a cluster, or of a card (3090)."""
_USUAL = 8
"""GPUs of a node where it is not said; DGX-2 and racks have more."""
_BEHIND = re.compile(r"(?P<what>.*?[^ *×:-]) ?(?:[x*×:] ?(?P<count>\d{1,9})|[- ](?P<times>\d{1,9})[x×])", re.IGNORECASE)
"""H100x8, H100:8, and h100-8x as node types are called."""


def candidate_nodes(names: Sequence[str], catalog: Catalog) -> list[str]:
    """Return the node types meant by `names`: a node, a GPU (every node type with it), or "8xh100".

    Upper and lower case are alike. Raises UnknownName, also for a GPU that no node type has in that count.
    """
    return list(dict.fromkeys(node for name in names for node in meant_by(name, catalog).nodes))


def node_named(name: str, catalog: Catalog, gpus: int | None = None) -> tuple[str, int | None]:
    """Return the one node type of a name such as "8 x H100", and of a cluster (128 H100) the number of its GPUs.

    Of a GPU alone it is the smallest node type that has `gpus` of them, one where none are given, or else the largest.
    Raises InputError where it is several.
    """
    meant = meant_by(name, catalog)
    sizes = {node: catalog.node(node).gpus for node in meant.nodes}
    wanted = meant.gpus or gpus or 1
    of_one = {catalog.node(node).gpu for node in sizes}
    if len(of_one) > 1 and (card := least_of_memory(name, meant.nodes, catalog)) is not None:
        sizes = {card: sizes[card]}
    if len(sizes) > 1 and len(of_one) == 1:
        least = min((size for size in sizes.values() if size >= wanted), default=max(sizes.values()))
        sizes = {node: size for node, size in sizes.items() if size == least}
    if len(sizes) > 1:
        raise InputError(f"{name!r} is {len(sizes)} node types: {', '.join(list(sizes)[:4])}"
                         f"{', ...' if len(sizes) > 4 else ''}; name one")
    return next(iter(sizes)), meant.gpus


def least_of_memory(name: str, nodes: Sequence[str], catalog: Catalog) -> str | None:
    """Return of cards that are named by their memory alone the node with one that a program can use least of."""
    if _MEMORY.fullmatch(_plain(name).removeprefix("1 ")) is None:
        return None
    alone = [node for node in nodes if catalog.node(node).gpus == 1]
    return min(alone, key=lambda node: catalog.gpu(catalog.node(node).gpu).usable_memory, default=None)


class Named(NamedTuple):
    """What somebody calls hardware: node types, and where it is a cluster of so many GPUs, how many."""

    nodes: Sequence[str]
    gpus: int | None = None
    whole: bool = False
    """Said of nodes, so that a number before it counts these and no GPUs."""


def meant_by(name: str, catalog: Catalog) -> Named:
    """Return what a name means. Raises UnknownName."""
    try:
        return _as_written(name, catalog)
    except UnknownName as error:
        said = _plain(name)
        if error.name != name or said == name:
            raise
        try:
            return _as_written(said, catalog)
        except UnknownName:
            raise error from None


def _plain(name: str) -> str:
    """Return a name with its number in digits, and its memory in GB and behind it."""
    name = _ONE_OF.sub("1 ", _OF.sub(r"\1 of ", name.strip()))
    name = _SIZE_FIRST.sub(lambda said: f"{said['what']} {said['size']}gb", name.strip())
    return _HOW_MANY.sub(lambda counted: f"{_COUNTS[counted[1].lower()]} ", _GIGABYTES.sub("gb", name.strip()))


def is_counted(name: str) -> bool:
    """Say whether a name of hardware has a number of GPUs: 8xh100, 8 H100, eight H100, H100:8; 24 GB has none, and
    l40s-8x is the name of a node type.
    """
    text = _plain(name).strip()
    counted = _COUNTED.fullmatch(text) or _BEHIND.fullmatch(text)
    count = (counted["count"] or "") if counted else ""
    return 0 < len(count) < _CLUSTER and _MEMORY.match(text) is None


def _behind(text: str) -> tuple[str, str]:
    """Return what a name with a number behind it counts, and the number; nothing of any other."""
    behind = _BEHIND.fullmatch(text)
    return (behind["what"], behind["count"] or behind["times"]) if behind else ("", "")


def sold_as(name: str, catalog: Catalog) -> set[tuple[str, str]]:
    """Return the (provider, instance) of this very name or series; none of hardware that any may have, though one
    provider may call its instance as the GPU is called.
    """
    said = name.strip().lower()
    if _is_gpus(" ".join(name.split()), catalog):
        return set()
    return {(prices.name, offer.instance) for prices in catalog.price_lists for named in [prices.instances(name)]
            for offer in prices.offers if said == series(offer.instance) or offer.instance in named} if any(
                map(str.isdigit, name)) else set()


def is_hardware(name: str, catalog: Catalog) -> bool:
    """Say whether `candidate_nodes` knows a name, without a look for others that are like it."""
    try:
        meant = _known(name, catalog)
    except InputError:
        return False
    return meant is not None and bool(meant.nodes)


def _known(name: str, catalog: Catalog) -> Named | None:
    """Return what `meant_by` does; none for a name that means nothing. Raises UnknownName for a part of it."""
    for said in dict.fromkeys((name, _plain(name))):
        try:
            if (meant := _found(said, catalog)) is not None:
                return meant
        except UnknownName as error:
            if said == name != error.name:
                raise
    return None


def _as_written(name: str, catalog: Catalog) -> Named:
    meant = _found(name, catalog)
    if meant is None:
        if (family := family_of(" ".join(name.split()))) is not None:
            raise Unmodeled(name, family)
        raise UnknownName("node or GPU", name, [*_spellings(catalog.all("nodes", Node)),
                                                *_spellings(catalog.all("gpus", Gpu))])
    return meant


def _found(name: str, catalog: Catalog) -> Named | None:
    """Return what a name means as it is written; none where it means nothing. Raises UnknownName for a part of it."""
    text = " ".join(name.split())
    if (node := catalog.known_node(text)) is not None:
        return Named([node.name])
    nodes = catalog.all("nodes", Node)
    if (gpu := _gpu(text, catalog)) is not None:
        return Named([node.name for node in nodes if catalog.gpu(node.gpu).name == gpu])
    instances = {offer.node for prices in catalog.price_lists for named in [prices.instances(text)]
                 for offer in prices.offers if text.lower() == series(offer.instance) or offer.instance in named}
    like = {node.name for prices in catalog.price_lists if (said := prices.alike_of(text)) and (
        node := catalog.known_node(said))}
    instances |= like
    if instances and not _is_gpus(text, catalog):
        return Named([catalog.node(node).name for node in sorted(instances)])
    if (size := _MEMORY.fullmatch(text)) is not None and (held := [
            node.name for node in nodes if GpuNames.holds(catalog.gpu(node.gpu), float(size["size"]))]):
        return Named(held)
    if (boxes := _boxes(text, nodes, catalog)) is not None:
        return boxes
    return _counted(name, text, catalog)


def _counted(name: str, text: str, catalog: Catalog) -> Named | None:
    """Return what a name with a number before or behind it means; none where it means nothing."""
    front = _COUNTED.fullmatch(text)
    said = front["what"] if front else ""
    if front and front["nodes"] and _gpu(said, catalog) is not None:
        said = f"{said} node"  # 2 nodes of h100 are so many whole ones
    behind = _behind(text)
    if front and behind[0] and _gpu(behind[0], catalog) is not None:
        front, said = None, ""  # 4090 24gb x4
    for meant, count in ((said, front["count"]) if front else ("", ""), behind):
        if meant and (several := _several(name, meant, int(count), catalog)):
            return several
    return None


def _several(name: str, what: str, count: int, catalog: Catalog) -> Named | None:
    """Return so many of a node type or of a GPU: node types with that count, else those that make it up together."""
    if (meant := _known(what, catalog)) is None:
        return None
    sizes = {node: catalog.node(node).gpus for node in meant.nodes}
    # 3060 12gb is a card, and not so many of 12 GB
    clustered = _COUNTED.fullmatch(what) is not None and _gpu(what, catalog) is _gpu(_plain(what), catalog) is None
    if catalog.known_node(what) or clustered or meant.gpus or meant.whole:
        return Named(meant.nodes, count * (meant.gpus or max(sizes.values())))
    if count in sizes.values():
        return Named([node for node, gpus in sizes.items() if gpus == count])
    if count < max(sizes.values()):
        return Named([part_name(catalog.node(meant.nodes[0]).gpu, count)])
    # pods of one GPU make no cluster
    fitting = [node for node, gpus in sizes.items() if gpus > 1 and not count % gpus]
    if not fitting:
        gpu = catalog.node(meant.nodes[0]).gpu
        raise UnknownName("hardware (the GPU exists, but no such node type)", name,
                          [f"{gpus}x{gpu}" for gpus in sizes.values()])
    return Named(fitting, count)


def _boxes(text: str, nodes: Sequence[Node], catalog: Catalog) -> Named | None:
    """Return the nodes of a family (DGX), or the largest that a GPU is built into (MI300X node)."""
    box = _BOX.fullmatch(text)
    what = (box["what"] if box else text).removeprefix("1 ")
    of_family = what[:1].isalpha() and what[-1].isdigit() and (box or _gpu(what, catalog) is None)  # no 1 H100
    if of_family and (ends := [node.name for node in nodes if node.name.endswith(f"-{what.lower()}")]):
        return Named(ends, whole=True)  # NVL72
    if box and (gpu := _gpu(what, catalog)) is not None:
        mine = [node for node in nodes if catalog.gpu(node.gpu).name == gpu and node.scaleup]
        most = max((node.gpus for node in mine if node.gpus <= _USUAL), default=max(
            (node.gpus for node in mine), default=0))
        return Named([node.name for node in mine if node.gpus == most], whole=True) if mine else None
    if box and (node := catalog.known_node(what)) is not None:
        return Named([node.name], whole=True)
    begins = f"{what.lower()}-"
    if not what.isalpha() or any(gpu.name.startswith(begins) for gpu in catalog.all("gpus", Gpu)):
        return None
    family = [node.name for node in nodes if any(name.startswith(begins) for name in (node.name, *node.aliases))]
    return Named(family, whole=True) if family else None


def _is_gpus(text: str, catalog: Catalog) -> bool:
    """Say whether a name is that of a GPU, and how many of them at most: H100 SXM, L40S x8."""
    return any(_gpu(name, catalog) is not None for name in (text, _behind(text)[0]) if name)


def _gpu(name: str, catalog: Catalog) -> str | None:
    """Return the GPU of a name, also as drivers and shops write it."""
    return known.name if (known := catalog.known_gpu(name)) is not None else GpuNames(catalog).called(name)


def owned_nodes(name: str, count: int, catalog: Catalog) -> tuple[str, int]:
    """Return a node type and how many are meant by `count` of `name`: of nodes, or of GPUs, in the largest nodes that
    so many fill.

    Raises UnknownName, also for a number of GPUs that no nodes have.
    """
    for spelling, nodes in ((name, count), (f"{count}x{name}", 1)):
        if (node := catalog.known_node(spelling)) is not None:
            return node.name, nodes
    if _gpu(name, catalog) is None:
        if (plain := _plain(name)) != name:
            return owned_nodes(plain, count, catalog)
        if (counted := _COUNTED.fullmatch(name)) is not None and _gpu(counted["what"], catalog) is not None:
            return owned_nodes(counted["what"], count * int(counted["count"]), catalog)
        meant = meant_by(name, catalog)
        # 2 dgx h100 are so many nodes
        return meant.nodes[0], count * max(1, (meant.gpus or 0) // catalog.node(meant.nodes[0]).gpus)
    sizes = [(catalog.node(node_type).gpus, node_type) for node_type in candidate_nodes([name], catalog)]
    if count < max(sizes)[0]:
        return candidate_nodes([f"{count}x{name}"], catalog)[0], 1
    filled = [(size, type_name) for size, type_name in sizes if count % size == 0]
    if not filled:
        raise UnknownName("hardware (the GPU exists, but no such number of them in nodes)", f"{count}x{name}",
                          [f"{size}x{type_name}" for size, type_name in sizes])
    size, node_name = min(filled, key=lambda pair: (-pair[0], pair[1]))
    return node_name, count // size


def _spellings(entries: Sequence[Node] | Sequence[Gpu]) -> list[str]:
    return [spelling for entry in entries for spelling in (entry.name, *entry.aliases)]
