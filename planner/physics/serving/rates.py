"""What the steps of each row run on, whatever their load: rates of its GPUs, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats, Ints, Mask
from planner.physics import collectives
from planner.physics.serving.deployment import Deployment, Replicas, wide_of


@dataclass(frozen=True, slots=True)
class ServingRates:
    """What steps of each row run on, whatever their load: FLOP/s of quantized and of 16-bit products, and bytes/s."""

    quantized: Floats
    wide: Floats
    quantized_tile: Floats
    """Rows of the smallest tile of a quantized product."""
    wide_tile: Floats
    peak: Floats
    attention: Floats
    stream: Floats
    cache: Floats
    memory: Floats
    dense: Floats
    """Time of dense quantized products over that of the kernels' law."""
    routed: Floats
    """The same of experts."""
    reduced: tuple[collectives.SameLinks, ...]
    """Groups of tensor parallelism."""
    linked: tuple[Floats, Mask]
    """As of `links_of`, between these."""
    shared: tuple[collectives.SameLinks, ...]
    """Groups that share experts, of rows with several copies of attention."""


def rates_of(d: Deployment, rows: Replicas) -> ServingRates:
    """Gather what each row runs on."""
    gpus = [c.gpu for c in d.candidates]
    wide = [wide_of(g) for g in gpus]

    def each(values: list[float]) -> Floats:
        return np.array(values)[rows.candidate]

    speed, law = d.engine, d.law
    return ServingRates(
        quantized=each([d.rate(at, d.computes(g)) * d.unpacked(g) for at, g in enumerate(gpus)]) / speed.products,
        wide=each([d.rate(at, w) for at, w in enumerate(wide)]) / speed.products,
        quantized_tile=each([float(min(law.tile[g.architecture], speed.expanded_rows) if d.expands(g)
                                   else law.tile[g.architecture]) for g in gpus]),
        wide_tile=each([float(law.tile[g.architecture]) for g in gpus]),
        peak=each([g.peak[w] for g, w in zip(gpus, wide, strict=True)]),
        attention=each([g.peak[w] * r.attention_forward * g.attention_gain
                        for g, w, r in zip(gpus, wide, d.rates, strict=True)]) / speed.attention,
        stream=each([g.memory_bandwidth * law.stream[g.architecture] for g in gpus]) / speed.stream,
        cache=each([g.memory_bandwidth * law.cache[g.architecture] for g in gpus]) / speed.cache,
        memory=each([g.memory_bandwidth * r.memory for g, r in zip(gpus, d.rates, strict=True)]),
        dense=each([law.narrow.get(d.computes(g), 1.0) for g in gpus]),
        routed=each([law.narrow_experts.get(d.computes(g), 1.0) for g in gpus]),
        reduced=tuple(collectives.by_links(d.candidates, rows, rows.tp, np.ones_like(rows.tp))),
        linked=links_of(d, rows, rows.tp), shared=tuple(_sharing(d, rows)) if d.model.mixes_experts else ())


def _sharing(d: Deployment, rows: Replicas) -> Iterator[collectives.SameLinks]:
    """Yield the rows with several copies of attention by the links between the GPUs of all copies."""
    (several,) = np.nonzero(rows.dp > 1)
    group = (rows.tp * rows.dp)[several]
    for at, hardware, links in collectives.by_links(d.candidates, rows.take(several), group, np.ones_like(group)):
        yield several[at], hardware, links


def links_of(d: Deployment, rows: Replicas, ranks: Ints) -> tuple[Floats, Mask]:
    """Return bytes/s that an engine's own kernels reach between so many ranks, and whether links join them at all."""
    links = np.array([c.scaleup.bandwidth or 0.0 if c.scaleup and c.scaleup.topology in ("switch", "mesh", "pairs")
                      else 0.0 for c in d.candidates])[rows.candidate] * d.law.one_shot
    joined = np.array([c.node.gpus if c.scaleup and c.scaleup.topology != "pairs" else 2 for c in d.candidates])
    return np.maximum(links, 1.0), (links > 0) & (ranks <= joined[rows.candidate])
