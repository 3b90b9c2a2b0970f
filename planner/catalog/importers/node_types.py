"""Which node type of the catalog an instance of someone else's file is, by its own name or by its GPUs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from planner.catalog.hardware import Node
from planner.catalog.importers.gpu_names import GpuNames
from planner.catalog.load import Catalog

MACHINES: dict[str, tuple[frozenset[str], str]] = {
    "a2-highgpu": (frozenset({"a100"}), "a100-sxm-40gb"),
    "a2-ultragpu": (frozenset({"a100-80gb"}), "a100-sxm-80gb"),
    "a3-highgpu": (frozenset({"h100"}), "h100-sxm"),
    "a3-megagpu": (frozenset({"h100-mega", "h100-mega-80gb"}), "h100-sxm"),
    "a3-ultragpu": (frozenset({"h200"}), "h200-sxm"),
    "a4-highgpu": (frozenset({"b200"}), "b200")}
"""Google's machine types `PREFIX-Ng`, of N GPUs: their accelerator, as SkyPilot's gcp_catalog.py names it, and GPU."""
ALONE: dict[str, Any] = {"cluster": False}
"""The network of an instance of which nothing is known: none."""


class Open(Exception):
    """An instance that leaves open which node type it is: the reason, and what is said of it."""


class NodeTypes:
    """Finds the node type of an instance, and the network that the catalog knows of it."""

    def __init__(self, catalog: Catalog, called: Sequence[str]) -> None:
        """Take what the catalog knows of a provider's instances, by the names that it is called."""
        self._gpus = GpuNames(catalog)
        self._nodes = {node.name: node for node in catalog.all("nodes", Node)}
        own = [prices for prices in catalog.price_lists if {prices.name, *prices.aliases} & set(called)]
        self._known: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        for offer in (offer for prices in own or catalog.price_lists for offer in prices.offers):
            network = offer.model_dump(mode="json", include={"cluster", "nics", "fabric"}, exclude_defaults=True)
            # an instance of the same name at another provider may hang on another network
            self._known[offer.instance.lower()].append((catalog.node(offer.node).name, network if own else ALONE))
        for node in self._nodes.values():
            # aliases such as g5.xlarge are instances; those such as 8xh100 are not
            for alias in (alias for alias in node.aliases if "." in alias or "_" in alias):
                self._known.setdefault(alias, [(node.name, ALONE)])

    def find(self, instance: str, gpu: str, count: Decimal, memory_gib: float | None = None, words: str = ""
             ) -> tuple[str, dict[str, Any]]:
        """Return the node type of an instance with `count` of a GPU, and its network. Raises Open.

        words: what a file says of it besides, in which NVLink is looked for.
        """
        gpus = self._candidates(instance, gpu, count, memory_gib)
        known = self._known.get(instance.lower(), [])
        if len({name for name, _ in known}) == 1:
            node = self._nodes[known[0][0]]
            if node.gpu not in gpus or node.gpus != count:
                raise Open("the catalog knows the instance with other GPUs",
                           f"{instance}: {node.name}, not {_times(count)} {gpu}")
            return node.name, known[0][1] if all(network == known[0][1] for _, network in known) else ALONE
        if len(gpus) > 1:
            raise Open("the GPU could be several", f"{gpu}: {', '.join(sorted(gpus))}")
        return self._only(next(iter(gpus)), count, f"{instance} {words}"), ALONE

    def _only(self, gpu: str, count: Decimal, told: str) -> str:
        nodes = [node for node in self._nodes.values() if node.gpu == gpu and node.gpus == count]
        if len(nodes) > 1 and "nvlink" in told.lower():
            nodes = [node for node in nodes if str(node.scaleup).startswith("nvlink")]
        if len(nodes) != 1:
            several = ": " + ", ".join(node.name for node in nodes) if nodes else ""
            raise Open("the node type could be several" if nodes else "no node type has this number of its GPU",
                       f"{_times(count)} {gpu}{several}")
        return nodes[0].name

    def _candidates(self, instance: str, gpu: str, count: Decimal, memory_gib: float | None) -> set[str]:
        if not gpu or not count:
            raise Open("no GPU", instance)
        if count != count.to_integral_value():
            raise Open("a fraction of a GPU", f"{instance}: {_times(count)} {gpu}")
        accelerators, meant = MACHINES.get(re.sub(r"-\d+g$", "", instance), (frozenset(), None))
        if not self._gpus.knows(gpu):
            if meant and gpu.lower() in accelerators:
                return {meant}
            raise Open("the GPU is not in the catalog", gpu)
        gpus = self._gpus.candidates(gpu, memory_gib, instance)
        gpus &= {meant} if meant else gpus
        if not gpus:
            memory = "memory not stated" if memory_gib is None else f"{memory_gib:.4g} GiB"
            raise Open("no such GPU in the catalog has this memory and form", f"{instance}: {gpu}, {memory}")
        return gpus


def _times(count: Decimal) -> str:
    return f"{count.normalize():f} x"
