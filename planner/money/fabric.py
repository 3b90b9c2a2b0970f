"""How many switches, cables and transceivers join exactly N nodes, in closed form.

    k  nodes of a unit: as many as one leaf has ports for, beside its uplinks
    a  ports of a node on one leaf: 1 where every NIC is a rail of its own, all NICs in a plain fat tree
    o  oversubscription: NICs of a leaf over its uplinks

A unit is k nodes and one leaf for each rail (one leaf in a plain fat tree). Every leaf has equally many cables to every
spine of its pod, so that traffic spreads evenly; that is why three units of 32 nodes need 16 spines, not 12 (NVIDIA
DGX SuperPOD H100 reference architecture, table 4). Above the leaves nothing is oversubscribed: as many cables leave a
spine upward as arrive from below. Cores are as many as their ports need; where the cables of a pod do not divide evenly
among them, a few percent of the bisection can be lost (4% at most among 5,000 random small networks). Left out: storage
and management networks, spare ports, the fabric manager's own links.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isfinite
from typing import Literal

from planner.catalog.parts import NetPart
from planner.errors import InputError

Join = Literal["as-needed", "always", "never"]
"""Whether spines join the rails: where a rail needs more than one leaf, always, or never (each rail a network of its
own, which a node's scale-up domain crosses). One switch that holds all NICs joins them anyway."""
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Links:
    """One count for each tier of links, from the nodes up."""

    node_leaf: int
    leaf_spine: int = 0
    spine_core: int = 0

    @property
    def total(self) -> int:
        """Return the sum over the tiers."""
        return self.node_leaf + self.leaf_spine + self.spine_core


@dataclass(frozen=True, slots=True)
class FabricDesign:
    """A network between nodes. Counts are of the whole network; those named `plane_` are of each of its `planes`."""

    nodes: int
    nics: int
    """Ports of one node on this network."""
    ports_per_cage: int
    oversubscription: float
    tiers: int
    planes: int
    """Networks that do not meet: the rails where nothing joins them, else one."""
    leaf: int
    spine: int
    core: int
    cables: Links
    optics: Links
    """Transceivers at both ends, where the cables bring none: one a NIC, and one for each cage in use at a switch,
    which serves cables of one tier."""
    unit_nodes: int
    unit_leaves: int
    pod_units: int
    plane_spines: tuple[int, ...]
    """Spines of each pod of a plane."""
    plane_cores: int

    @property
    def switches(self) -> int:
        """Return leaf, spine and core switches together."""
        return self.leaf + self.spine + self.core


@dataclass(frozen=True, slots=True)
class _Rules:
    """What one plane is built by: ports of a switch and cage, ports of a node on a leaf, leaves of a unit."""

    radix: int
    cage: int
    node_ports: int
    unit_leaves: int
    oversubscription: float

    def uplinks(self, down: int) -> int:
        """Return the fewest uplinks of a leaf with `down` NICs."""
        return ceil(down / self.oversubscription - TOLERANCE)

    @property
    def unit_nodes(self) -> int:
        """Return the most nodes whose ports fit a leaf beside their uplinks; 0 where not one fits."""
        fitting = (nodes for nodes in range(self.radix // self.node_ports, 0, -1)
                   if nodes * self.node_ports + self.uplinks(nodes * self.node_ports) <= self.radix)
        return next(fitting, 0)

    def modules(self, ports: int) -> int:
        """Return the cages that `ports` of one switch fill."""
        return -(-ports // self.cage)


@dataclass(frozen=True, slots=True)
class _Pod:
    """Leaves in groups (how many, NICs of each, cables of each to every spine) and the spines above them."""

    leaves: tuple[tuple[int, int, int], ...]
    spines: int

    @property
    def spine_down(self) -> int:
        return sum(number * each for number, _, each in self.leaves)

    @property
    def cables(self) -> int:
        return self.spines * self.spine_down


def design(nodes: int, nics: int, part: NetPart, *, rail_optimized: bool, oversubscription: float = 1.0,
           rails: int | None = None, join: Join = "as-needed") -> FabricDesign:
    """Return the network of exactly `nodes` nodes with `nics` ports each on switches like `part`, in 1 to 3 tiers.

    `oversubscription` is that of the leaves (1.0: none). `rails` are as many as NICs unless given; NIC i is of rail
    i mod rails. Raises InputError where the switches cannot build it.
    """
    radix = _radix(nodes, nics, part, oversubscription)
    rails = (nics if rails is None else rails) if rail_optimized else 1
    if rails < 1 or nics % rails:
        raise InputError(f"{nics} NICs do not divide into {rails} rails")
    if nodes * nics <= radix:
        rules = _Rules(radix, part.ports_per_cage, nics, 1, oversubscription)
        return _one_tier(nodes, nics, rules, 1)
    node_ports = nics // rails
    apart = rails > 1 and (join == "never" or (join == "as-needed" and nodes * node_ports <= radix))
    rules = _Rules(radix, part.ports_per_cage, node_ports, 1 if apart else rails, oversubscription)
    if apart and nodes * node_ports <= radix:
        return _one_tier(nodes, nics, rules, rails)
    if rules.unit_nodes == 0:
        raise InputError(f"a leaf of {part.name} has {radix} ports: too few for the {node_ports} of one node with "
                         f"uplinks at {oversubscription:g}:1")
    return _spread(nodes, nics, rules, rails if apart else 1)


def _radix(nodes: int, nics: int, part: NetPart, oversubscription: float) -> int:
    """Return the ports of the switch after checking what is asked of it."""
    if part.ports is None:
        raise InputError(f"{part.name} is of role {part.role}: a network is built of switches")
    if nodes < 1 or nics < 1:
        raise InputError(f"a network joins at least one node by one NIC, got {nodes} nodes with {nics}")
    if not (isfinite(oversubscription) and oversubscription >= 1):
        raise InputError(f"oversubscription is 1 (none) or more, got {oversubscription:g}")
    if oversubscription > part.ports - 1:
        raise InputError(f"oversubscription {oversubscription:g}:1 leaves a leaf of {part.ports} ports no uplink")
    return part.ports


def _one_tier(nodes: int, nics: int, rules: _Rules, planes: int) -> FabricDesign:
    """Return one switch a plane, all of whose ports may go to nodes."""
    optics = nodes * nics + planes * rules.modules(nodes * rules.node_ports)
    return FabricDesign(nodes, nics, rules.cage, rules.oversubscription, 1, planes, planes, 0, 0,
                        Links(nodes * nics), Links(optics), nodes, 1, 1, (0,), 0)


def _spread(nodes: int, nics: int, rules: _Rules, planes: int) -> FabricDesign:
    """Return leaves and spines, with cores above them where the spines cannot meet all leaves."""
    full, rest = divmod(nodes, rules.unit_nodes)
    units = full + (rest > 0)
    whole = _pod(full, rest, rules, rules.radix)
    if whole is not None:
        pods, cores, pod_units = [whole], 0, units
    else:
        pod_units = rules.radix // 2 // rules.unit_leaves
        if pod_units == 0:
            raise InputError(f"switches of {rules.radix} ports are too small for three tiers with "
                             f"{rules.unit_leaves} rails: a pod has {rules.radix // 2} leaves at most")
        left = (full % pod_units, rest)
        sizes = [(pod_units, 0)] * (full // pod_units) + [left] * any(left)
        by_size = {size: _pod(*size, rules, rules.radix // 2) for size in set(sizes)}
        pods = [pod for size in sizes if (pod := by_size[size]) is not None]
        cores = _cores([pod.cables for pod in pods], rules.radix)
    leaf = units * rules.unit_leaves
    cables = Links(nodes * nics, planes * sum(pod.cables for pod in pods),
                   planes * sum(pod.cables for pod in pods) if cores else 0)
    return FabricDesign(nodes, nics, rules.cage, rules.oversubscription, 3 if cores else 2, planes,
                        planes * leaf, planes * sum(pod.spines for pod in pods), planes * cores, cables,
                        _optics(nodes * nics, pods, cores, rules, planes), rules.unit_nodes, rules.unit_leaves,
                        pod_units, tuple(pod.spines for pod in pods), cores)


def _pod(full: int, rest: int, rules: _Rules, room: int) -> _Pod | None:
    """Return `full` units and one of `rest` nodes under the fewest spines with `room` ports down; None: too many."""
    groups = [(units * rules.unit_leaves, nodes * rules.node_ports)
              for units, nodes in ((full, rules.unit_nodes), (1, rest)) if units * nodes]
    for spines in range(1, rules.radix + 1):
        leaves = tuple((number, down, ceil(rules.uplinks(down) / spines)) for number, down in groups)
        if (sum(number * each for number, _, each in leaves) <= room
                and all(down + each * spines <= rules.radix for _, down, each in leaves)):
            return _Pod(leaves, spines)
    return None


def _cores(uplinks: list[int], radix: int) -> int:
    """Return the cores that have a port for every cable; the cables of a pod spread evenly to within one."""
    if len(uplinks) > radix:
        raise InputError(f"three tiers of switches with {radix} ports join {radix} pods, this needs {len(uplinks)}")
    return ceil(sum(uplinks) / radix)


def _optics(ends: int, pods: list[_Pod], cores: int, rules: _Rules, planes: int) -> Links:
    """Return the transceivers of all planes; `ends` are those of the nodes."""
    modules = rules.modules
    down = sum(number * modules(nics) for pod in pods for number, nics, _ in pod.leaves)
    up = sum(number * modules(each * pod.spines) for pod in pods for number, _, each in pod.leaves)
    spines = sum(pod.spines * modules(pod.spine_down) for pod in pods)
    if not cores:
        return Links(ends + planes * down, planes * (up + spines))
    each, more = divmod(sum(pod.cables for pod in pods), cores)
    tops = more * modules(each + 1) + (cores - more) * modules(each)
    return Links(ends + planes * down, planes * (up + spines), planes * (spines + tops))
