"""Seconds of one step of an inference engine: some sequences decode a token each, some prompt tokens are prefilled.

A step of D sequences and P prompt tokens runs every product once over D + P rows; attention of the two parts is apart.
    products    max of FLOPs at the kernels' rate and weight bytes at memory bandwidth (a smooth maximum)
    decode      cache bytes of every context at memory bandwidth; over latent vectors (MLA) or its FLOPs
    prompts     4 x rows x positions x width FLOPs at the rate of attention
    experts     of E experts E(1 - (1 - k/E)^(rows^a)) are read, a < 1 as tokens choose alike
    exchanges   all-reduces of the rows' activations over tp; gather and scatter where attention is copied
Under pipeline parallelism a stage works on a share of the sequences at a time, and the token passes all stages.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace

import numpy as np

from planner.catalog.attention import Attention, LatentAttention
from planner.layouts.table import Floats
from planner.physics import collectives
from planner.physics.layers import Experts, Linear
from planner.physics.serving.adapters import layer_seconds
from planner.physics.serving.deployment import Deployment, Layer, Replicas, wide_of
from planner.physics.serving.points import on_fullest
from planner.physics.serving.rates import ServingRates, links_of, rates_of

ACTIVATION = 2
"""Bytes of an activation."""


@dataclass(frozen=True, slots=True)
class StepLoad:
    """What a step works on, for each row: of a whole replica, counts as floats."""

    sequences: Floats
    """Sequences that decode a token."""
    context: Floats
    """Tokens in the cache of each of them, on average."""
    prompt: Floats
    """Prompt tokens."""
    behind: Floats
    """Tokens before each of them in its own prompt, on average."""
    rows: float = 1.0
    """Rows of each sequence: more than one where tokens are proposed ahead."""
    on: Floats | float = np.inf
    """Copies of attention, times batches in a pipeline, that the prompt tokens are on: all, where they are fewer."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of a step by part."""

    products: Floats
    experts: Floats
    cache: Floats
    attention: Floats
    exchange: Floats
    other: Floats
    host: Floats

    @property
    def total(self) -> Floats:
        """Return the whole step."""
        total: Floats = sum((getattr(self, f.name) for f in fields(self)), np.zeros(len(self.host)))
        return total


def product(d: Deployment, rate: Floats, stream: Floats, m: Floats, k: Floats, n: Floats, weight: float,
            least: Floats) -> Floats:
    """Return seconds of m x k by k x n, the second of `weight` bytes an element; few rows run in small tiles."""
    law = d.kernels
    m = np.maximum(m, 1.0)
    # libraries choose tiles to suit the rows, from the smallest on: what is left empty grows with them, up to `half`
    rows, half = np.maximum(m, least), law.half_mn * d.engine.saturation
    rows = rows + rows * half / (rows + half)
    columns = np.ceil(n / law.tile) * law.tile
    saturation = _filled(d, k) * columns / (columns + law.half_mn)
    # however an engine does with few rows, large products stay at what the GPU reaches in a benchmark
    benchmark = 2 * m * k * n / (rate * d.engine.products)
    compute = np.maximum(2 * rows * k * columns / (rate * saturation), benchmark)
    moved = (weight * k * n + ACTIVATION * m * (k + n)) / stream
    power = d.law.blend
    took: Floats = (compute**power + moved**power) ** (1 / power)
    return took


def _filled(d: Deployment, k: Floats) -> Floats:
    """Return the share of its time that a product over `k` has its pipeline full."""
    share: Floats = k / (k + d.kernels.half_k)
    return share


def _linears(d: Deployment, on: ServingRates, rows: Replicas, linears: tuple[Linear, ...], m: Floats, split: Floats,
             weight: float) -> Floats:
    """Return seconds of products whose weights have `weight` bytes; those kept in 16 bits are no quantized products."""
    wide, whole = weight == d.weights.other, np.ones(len(rows))
    k = [linear.k / (split if linear.split == "row" else whole) for linear in linears]
    n = [linear.n / (split if linear.split == "column" else whole) for linear in linears]
    rate, tile = (on.wide, on.wide_tile) if wide else (on.quantized, on.quantized_tile)
    total: Floats = sum(product(d, rate, on.stream, m, np.array(k), np.array(n), weight, tile)
                        if linears else [], np.zeros(len(rows)))
    return total if wide else total * on.dense


def _experts(d: Deployment, on: ServingRates, rows: Replicas, experts: Experts, m: Floats) -> Floats:
    """Return seconds of the routed experts on one GPU; `m` rows come from all ranks of the stage."""
    ranks = np.maximum(1.0, rows.ep.astype(np.float64))
    inner = np.maximum(1.0, rows.tp * rows.dp / ranks)
    # rows that are alike choose the same experts, as fewer rows that differ would
    different = np.maximum(m, 1.0) ** d.law.alike
    used = experts.count * (1 - (1 - experts.per_token / experts.count) ** different)
    here = on_fullest(experts.count / ranks, used / experts.count, ranks)
    chance = 1 + np.sqrt(2 * np.log(ranks) / (different * experts.per_token / ranks))
    busy = np.where(ranks > 1, d.law.imbalance * chance, 1.0)
    each = np.maximum(1.0, m * experts.per_token / used * np.maximum(busy * used / ranks / here, 1.0))
    width = np.ceil(experts.ffn / inner)
    wide, weight = np.full(len(rows), float(experts.hidden)), d.weights.matrix
    tile = np.full(len(rows), float(d.law.expert_rows))
    # experts are many small products: their weights too come only while a pipeline is full
    up = product(d, on.quantized, on.stream * _filled(d, wide), each, wide, experts.fan * width, weight, tile)
    down = product(d, on.quantized, on.stream * _filled(d, width), each, width, wide, weight, tile)
    passes = d.law.expert_passes if d.engine.expert_passes is None else d.engine.expert_passes
    moved = passes * ACTIVATION * m / ranks * experts.per_token * (experts.hidden + width) / on.memory
    took: Floats = d.engine.experts * on.routed * here * (up + down) + moved
    return took


def _decode(d: Deployment, on: ServingRates, rows: Replicas, layer: Layer, load: StepLoad, share: Floats) -> Floats:
    """Return seconds of attention of decoding sequences, `share` of them at a time on one rank."""
    kind, sequences = layer.kind, load.sequences * share
    if kind.scan is not None:
        # the state is read and written, 4 bytes an element
        moved = sequences * 2 * 4 * kind.scan.inner * kind.scan.state / rows.tp
        return moved / on.cache
    read = layer.reads(load.context)
    took = sequences * read * layer.cached_width(rows.tp) * d.cache.element / on.cache
    attention = layer.attention
    if isinstance(attention, Attention):
        took = took * (attention.heads / attention.kv_heads) ** d.engine.grouped
    if isinstance(attention, LatentAttention):
        width = 2 * attention.kv_lora_rank + attention.qk_rope
        flops = 2 * sequences * read * np.ceil(attention.heads / rows.tp) * width
        took = np.maximum(took, flops / (on.peak * d.law.latent))
    if kind.indexer is not None:
        took = took + sequences * load.context * kind.indexer.held / on.cache
    return took


def _prompts(d: Deployment, on: ServingRates, rows: Replicas, layer: Layer, load: StepLoad, tokens: Floats) -> Floats:
    """Return seconds of attention of so many prompt tokens."""
    kind = layer.kind
    if kind.scan is not None:
        flops = tokens * kind.scan.forward_flops(d.kernels.scan_chunk) / rows.tp
        passed = d.kernels.scan_passes * 2 * tokens * (kind.scan.projected + kind.scan.inner) / rows.tp / on.memory
        return flops / (on.peak * d.kernels.scan) + passed
    width = (kind.query_width + kind.value_width) / 2 / rows.tp
    if kind.indexer is not None and isinstance(layer.attention, LatentAttention):
        # what each token chose is read as latent vectors, as in decoding
        latent = layer.attention
        width = np.ceil(latent.heads / rows.tp) * (latent.kv_lora_rank + latent.qk_rope / 2)
    # who sees the whole prompt reads twice what lies behind on average
    behind = load.behind * (2 if kind.bidirectional else 1)
    took: Floats = 4 * tokens * layer.reads(behind) * width / on.attention
    if kind.indexer is not None:
        took = took + 2 * tokens * load.behind * kind.indexer.heads * kind.indexer.held / on.attention
    return took


def _exchange(d: Deployment, on: ServingRates, rows: Replicas, size: Floats) -> Floats:
    """Return seconds of an all-reduce of `size` bytes over tp: the library's, or the engine's own kernel."""
    usual = collectives.seconds_over(d.collectives, on.reduced, "all_reduce", rows.tp, size)
    link, joined = on.linked
    own = joined & (size <= d.law.one_shot_bytes)
    n = rows.tp.astype(np.float64)
    kernel = d.engine.exchange + np.minimum((n - 1) * size, d.engine.exchange * link + 2 * (n - 1) / n * size) / link
    return np.where(rows.tp == 1, 0.0, np.where(own, np.minimum(usual, kernel), usual))


def _shared(d: Deployment, on: ServingRates, rows: Replicas, elements: Floats, chosen: int) -> Floats:
    """Return seconds of sending the rows of all attention copies, of so many elements, to their experts, and back.

    Over few ranks every row goes everywhere; over many to those of its `chosen` experts. It leaves as the quantized
    products read it, and comes back in 16 bits: by the library, or between linked GPUs by the engine's own kernels,
    which write to all of them at once, if that is faster.
    """
    if not on.shared:
        return np.zeros(len(rows))
    group = rows.tp * rows.dp
    n = np.maximum(group.astype(np.float64), 2.0)
    part = np.minimum(1.0, n * (1 - (1 - 1 / n) ** chosen) / (n - 1))
    gpus = (c.gpu for c in d.candidates)
    sent = np.array([ACTIVATION if d.computes(g) == wide_of(g) else d.weights.activation or ACTIVATION for g in gpus])
    both = sum((collectives.seconds_over(d.collectives, on.shared, operation, group, part * elements * element)
                for operation, element in (("all_gather", sent[rows.candidate]), ("reduce_scatter", ACTIVATION))),
               np.zeros(len(rows)))
    link, joined = links_of(d, rows, group)
    own = 2 * d.engine.exchange + part * (n - 1) / n * elements * (sent[rows.candidate] + ACTIVATION) / link
    return np.where(rows.dp > 1, np.where(joined, np.minimum(both, own), both), 0.0)


def _encoding(d: Deployment, rows: Replicas) -> Floats:
    """Return seconds that encoders take for each prompt token, the images of a prompt shared out among its tokens."""
    took, one, none = np.zeros(len(rows)), np.ones_like(rows.tp), np.zeros(len(rows))
    for eye in d.eyes:
        alone = replace(d, model=eye.model, layers=eye.layers, weights=eye.weights, adapters=None, eyes=())
        ranks = Replicas(rows.candidate, one if eye.whole else rows.tp, one, one, one)
        times = step_times(alone, ranks, StepLoad(none, none, none + eye.positions, none + eye.positions / 2))
        took = took + eye.pictures * (times.total - times.host)
    return took


def step_times(d: Deployment, rows: Replicas, load: StepLoad, on: ServingRates | None = None) -> StepTimes:
    """Return the seconds of a step of each row, by part; all stages of a pipeline, one after the other.

    on: as of `rates_of`, where it is known.
    """
    on, speed, shape = on or rates_of(d, rows), d.engine, d.model
    tp, pp, dp = rows.tp.astype(np.float64), rows.pp.astype(np.float64), rows.dp.astype(np.float64)
    share = 1 / (pp * dp)
    # prompt tokens of the copy that has most, for which all others wait, and of all copies in its batch
    read, read_together = load.prompt / np.minimum(load.on, pp * dp), load.prompt / np.minimum(load.on, pp)
    # fewer sequences than places leave some idle; the others have one each
    load = replace(load, sequences=np.where(load.sequences > 0, np.maximum(load.sequences, 1 / share), 0.0))
    decodes, prompted = load.sequences > 0, load.prompt > 0
    m = load.sequences * load.rows * share + read
    together = load.sequences * load.rows * share * dp + read_together
    none = np.zeros(len(rows))
    products, experts, cache, attention, exchange, other = none, none, none, none, none, none
    hidden = float(shape.hidden)
    reduce = _exchange(d, on, rows, ACTIVATION * m * hidden)
    shared = {chosen: _shared(d, on, rows, together * hidden, chosen) for chosen in {
        layer.kind.experts.per_token for layer in d.layers if layer.kind.experts is not None}}
    for layer in d.layers:
        kind, count = layer.kind, layer.count
        dense = d.weights.other if d.weights.experts_alone else d.weights.matrix
        products = products + count * (_linears(d, on, rows, kind.of_tokens, m, tp, d.weights.of_attention)
                                       + _linears(d, on, rows, kind.mlp, m, tp, dense))
        if kind.crosses:
            # keys and values of what an encoder has read are computed once, with the prompt
            seen = read * d.memory
            if (seen > 0).any():
                products = products + count * np.where(seen > 0, _linears(
                    d, on, rows, kind.of_memory, seen, tp, d.weights.of_attention), 0.0)
        if kind.experts is not None:
            experts = experts + count * _experts(d, on, rows, kind.experts, together)
            other = other + count * speed.mixture
            exchange = exchange + count * shared[kind.experts.per_token]
        if kind.scan is not None or layer.attention is not None:
            if decodes.any():
                cache = cache + count * np.where(decodes, _decode(d, on, rows, layer, load, share), 0.0)
            if prompted.any():
                attention = attention + count * np.where(prompted, _prompts(d, on, rows, layer, load, read), 0.0)
        reduced = np.where((rows.dp > 1) & (kind.experts is not None), kind.exchanges - 1, kind.exchanges)
        exchange = exchange + count * reduced * reduce
        widths = d.law.elementwise * hidden + 2 * (kind.attention_width + (kind.fan + 1) * kind.ffn) / tp
        gaps = d.law.latent_gaps if isinstance(layer.attention, LatentAttention) else 1.0
        gaps *= d.law.indexer_gaps if kind.indexer is not None else 1.0
        other = other + count * (speed.layer * gaps * kind.portion + ACTIVATION * m * widths / on.memory)
        if d.adapters is not None:
            other = other + count * layer_seconds(d.adapters, kind, m, together, tp, tp * dp, on.memory, d.law.adapted)
    if d.eyes and prompted.any():
        other = other + read * _encoding(d, rows)
    sampled = np.maximum(1.0, load.sequences * load.rows * share)
    head = product(d, on.wide, on.stream, sampled, np.full(len(rows), hidden), shape.vocab / tp, d.weights.other,
                   on.wide_tile)
    sent = collectives.point_to_point(collectives.neighbors_of(d.candidates), rows.candidate,
                                      rows.tp * rows.dp, ACTIVATION * m * hidden)
    exchange = exchange + (pp - 1) * (sent + speed.exchange)
    host = speed.step + speed.sequence * load.sequences / dp + np.where(prompted, speed.prompt_step, 0.0)
    # micro-batches are never quite alike, so that stages wait for the fullest
    work = products + head + experts + cache + attention + exchange + other
    other = other + d.law.pipeline * np.log2(pp) * work
    early = speed.latent if any(isinstance(layer.attention, LatentAttention) for layer in d.layers) else 1.0
    return StepTimes(*(early * part for part in (
        products + head, experts, cache, attention, exchange, other, host + none)))


def least_seconds(d: Deployment, rows: Replicas, load: StepLoad) -> Floats:
    """Return what no engine can be below: bytes of weights and cache at the datasheet's bandwidth, a step of each row.

    Products whose FLOPs take longer take these at the rate of a benchmark.
    """
    none = sys.float_info.epsilon
    every = {candidate.gpu.architecture: 1.0 for candidate in d.candidates}
    speed = d.engine.model_copy(update={"products": none, "experts": 1.0, "stream": 1.0, "cache": 1.0, "grouped": 0.0,
                                         "latent": 1.0, "expert_passes": 0.0})
    law = d.law.model_copy(update={"stream": every, "cache": every, "imbalance": 1.0, "latent": 1.0,
                                   "narrow": {}, "narrow_experts": {}})
    kernels = d.kernels.model_copy(update={"half_k": 0.0})
    times = step_times(replace(d, engine=speed, law=law, kernels=kernels), rows, load)
    return times.products + times.experts + times.cache
