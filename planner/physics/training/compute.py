"""Time of the kernels of one layer, one micro-batch, on one GPU.

Matrix product of m x k by k x n: 2mkn FLOPs at rate x shape, or its bytes at memory bandwidth, plus launch.
shape = k/(k+k0) . m/(m+m0) . n/(n+m0) . tile . wave . alignment: saturation, rounding up to tiles and to
waves of tiles over the multiprocessors. Sources: NVIDIA "Matrix Multiplication Background", constants fitted.
t tokens of a micro-batch on a GPU, h hidden, A query width, KV key width, f feed-forward width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from planner.layouts.table import Floats, Layouts, distinct
from planner.physics.layers import Experts, LayerKind, Linear, Scan
from planner.physics.training.machine import MachineRates, machine
from planner.physics.training.parameters import sequence_split
from planner.physics.training.question import Question


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Seconds per layer and micro-batch, by part: forward, then backward whole and of its attention core."""

    attention_linear: Floats
    attention_core: Floats
    mlp: Floats
    routed: Floats
    """The part of `mlp` that is routed experts."""
    activation: Floats
    """The part of `mlp` that is elementwise work of dense feed-forwards."""
    norms: Floats
    scan: Floats
    backward: Floats
    backward_attention_core: Floats

    @property
    def forward(self) -> Floats:
        """Forward of a whole layer."""
        return self.attention_linear + self.attention_core + self.mlp + self.norms + self.scan


def gemm(question: Question, on: MachineRates, rate: Floats, m: Floats, k: Floats, n: Floats) -> Floats:
    """Return seconds of an m x k by k x n product at `rate`."""
    law = question.kernels
    tiles = np.ceil(m / law.tile) * np.ceil(n / law.tile)
    tile_use = m * n / (tiles * law.tile**2)
    waves = tiles / (law.resident_tiles * on.multiprocessors)
    wave_use = (waves / np.ceil(waves)) ** law.wave_exponent
    aligned = np.where((k % law.alignment == 0) & (n % law.alignment == 0), 1.0, law.misaligned)
    saturation = k / (k + law.half_k) * m / (m + law.half_mn) * n / (n + law.half_mn)
    compute = 2 * m * k * n / (rate * saturation * tile_use * wave_use * aligned)
    took: Floats = np.maximum(compute, 2 * (m * k + k * n + m * n) / on.memory) + law.launch
    return took


def _passes(question: Question, on: MachineRates, passes: float, elements: Floats) -> Floats:
    """Return how many times as long as one pass over 16-bit `elements` so many take.

    One goes through memory. Where kernels run one by one, the others read what the kernel before has written, from the
    cache where it holds that.
    """
    held = np.minimum(1.0, on.cache / (4 * elements)) * (not question.stack.fused_norm_and_activation)
    again = 1 - held * (1 - 1 / question.kernels.cache_gain)
    return min(passes, 1.0) + max(0.0, passes - 1) * again


def _linear(question: Question, on: MachineRates, tokens: Floats, k: Floats, n: Floats,
            adapted: tuple[int, float]) -> tuple[Floats, Floats]:
    """Return forward and backward seconds of one linear layer, with the casts of low-precision formats.

    adapted: how many of its matrices have an adapter, and their share of its columns.
    """
    law, tuning, stack = question.kernels, question.tuning, question.stack
    forward = gemm(question, on, on.matrix, tokens, k, n)
    backward = gemm(question, on, on.matrix, tokens, n, k)
    if tuning.trains_base:
        # a weight's gradient is added to what the buffer holds, zeros at first: read and written at its own width
        backward = backward + gemm(question, on, on.matrix, k, tokens, n) + 2 * on.gradient * k * n / on.memory
    cast = stack.unfused * on.low_precision * tokens / on.memory
    forward = forward + cast * law.cast_forward_bytes * k
    backward = backward + cast * law.cast_backward_bytes * n
    matrices, share = adapted
    if matrices:
        # adapter products are bound by reading inputs and outputs, and casts of the inputs
        passes = stack.adapter_passes
        casts = passes + (0.0 if tuning.quantized else stack.adapter_casts)
        wide, narrow = (_passes(question, on, of, tokens * np.maximum(k, n)) for of in (casts, passes))
        moved = 2 * stack.unfused * tokens * (matrices * k * wide + share * n * narrow) / on.memory
        forward = forward + moved + 2 * matrices * law.launch
        backward = backward + law.adapter_backward * moved + 4 * matrices * law.launch
    # quantized weights are expanded to 16 bits before every product
    slow = stack.dequantize.get(tuning.base or "", 1.0)
    expand = slow * (tuning.base_bytes + 2) * k * n / on.memory if tuning.quantized else 0.0
    return forward + expand, backward + expand


def _split(question: Question, on: MachineRates, rows: Layouts, linears: Sequence[Linear]
           ) -> list[tuple[Floats, Floats]]:
    """Return forward and backward seconds of each product as tensor parallelism splits it, of all alike at once."""
    tp = rows.tp.astype(np.float64)
    alike: dict[tuple[tuple[int, float], bool], list[int]] = {}
    for at, linear in enumerate(linears):
        alike.setdefault((_adapted(question, linear), linear.of_memory), []).append(at)
    found: dict[int, tuple[Floats, Floats]] = {}
    for (adapted, of_memory), mine in alike.items():
        tokens = question.memory_positions(rows) if of_memory else question.tokens(rows)
        k = np.stack([linears[at].k / tp if linears[at].split == "row" else np.full_like(tp, linears[at].k)
                      for at in mine])
        n = np.stack([linears[at].columns(tp) for at in mine])
        found |= zip(mine, zip(*_linear(question, on, tokens, k, n, adapted), strict=True), strict=True)
    return [found[at] for at in range(len(linears))]


def _adapted(question: Question, linear: Linear, *, routed: bool = False) -> tuple[int, float]:
    matrices, columns = question.tuning.adapted(linear, routed=routed)
    return matrices, columns / linear.n


def _products(question: Question, rows: Layouts, tokens: Floats, kind: LayerKind
              ) -> tuple[list[tuple[Floats, Floats]], list[tuple[Floats, Floats]]]:
    """Return forward and backward seconds of the products of attention and feed-forward, each worked out once for rows
    of as many `tokens` on the same hardware.
    """
    first, place = distinct(question.alike[rows.candidate], rows.precision, rows.tp,
                            np.unique(tokens, return_inverse=True)[1])
    few = rows.take(first)
    on = machine(question, few.candidate, few.precision)

    def each(linears: Sequence[Linear]) -> list[tuple[Floats, Floats]]:
        return [(forward[place], backward[place]) for forward, backward in _split(question, on, few, linears)]

    return each(kind.attention), each(kind.mlp)


def _expert_products(question: Question, on: MachineRates, rows: Layouts, experts: Experts) -> tuple[Floats, Floats]:
    """Return forward and backward seconds of a GPU's routed experts, with permutation and the host's share.

    An expert gets t x ep x per_token / count tokens, those of the busiest GPU more; local ones run as one product.
    Where experts are split over fewer GPUs than tp, the others of tp have tokens of their own.
    """
    law, stack = question.kernels, question.stack
    tp, ep = rows.tp.astype(np.float64), rows.ep.astype(np.float64)
    tokens = question.tokens(rows)
    local = experts.count / ep
    run = stack.experts
    assert run is not None, "question_of refuses mixtures on stacks without experts"
    split = rows.expert_split.astype(np.float64)
    each = np.maximum(1.0, tokens * split / tp * ep * experts.per_token / experts.count * run.imbalance)
    wide = np.full_like(tp, experts.hidden)
    into, out = (_adapted(question, linear, routed=True) for linear in experts.linears)
    up = _linear(question, on, each, wide, experts.fan * experts.ffn / split, into)
    down = _linear(question, on, each, experts.ffn / split, wide, out)
    routed = tokens * experts.per_token * run.imbalance * (stack.upcast if question.tuning.quantized else 1.0)
    passes = run.permute_passes + experts.biased * run.biased_passes
    permuted = 2 * passes * routed * experts.hidden / tp / on.memory
    fused = stack.unfused * stack.elementwise * (experts.fan + 1)
    forward_passes = fused if experts.gated else run.plain_passes / (1 + law.elementwise_backward)
    activation = 2 * forward_passes * routed * experts.ffn / tp / on.memory
    host = run.host_layer + run.host_expert * local
    # a grouped product launches once, not once an expert
    spare = (local - 1) * law.launch
    forward = local * (up[0] + down[0]) - 2 * spare + activation + permuted / 2 + host / 2
    backward = local * (up[1] + down[1]) - 4 * spare + law.elementwise_backward * activation + permuted / 2 + host / 2
    return forward, backward


def _attention_core(question: Question, on: MachineRates, rows: Layouts, kind: LayerKind) -> tuple[Floats, Floats]:
    """Return forward and backward seconds of scores, softmax and context of one layer."""
    law, alone = question.kernels, min(question.attended or question.sequence_length, question.sequence_length)
    s = question.memory if kind.crosses else alone
    if not kind.heads:
        return np.zeros(len(rows)), np.zeros(len(rows))
    tokens = question.tokens(rows)
    width = (kind.query_width + kind.value_width) / 2 / rows.tp
    if question.stack.fused_attention:
        flops = 4 * tokens * kind.span(alone, question.memory) * width
        reach = s / (s + law.attention_half_sequence)
        return (flops / (on.attention_forward * reach) + law.launch,
                law.attention_backward_flops * flops / (on.attention_backward * reach) + law.launch)
    # every score is computed, and passes through memory for mask, softmax and dropout
    moved = 2 * tokens * s * kind.heads / rows.tp * law.unfused_attention_passes / on.memory
    rate = on.peak16 if kind.query_dim % law.core_multiple == 0 else _off_tensor_cores(question, rows)
    forward = 4 * tokens * s * width / (rate * law.unfused_attention) + moved + law.launch
    return forward, 2 * forward


def _off_tensor_cores(question: Question, rows: Layouts) -> Floats:
    """Return FLOP/s of products whose shape keeps them off the tensor cores. Raises MissingFact for no fp32 peak."""
    used, place = np.unique(rows.candidate, return_inverse=True)
    return np.array([question.peak_rate(int(candidate), "fp32") for candidate in used])[place]


def _scan(question: Question, on: MachineRates, rows: Layouts, scan: Scan | None) -> Floats:
    """Return forward seconds of convolution, recurrence and gated norm of one layer; backward is a multiple of that."""
    law, tp = question.kernels, rows.tp.astype(np.float64)
    if scan is None:
        return np.zeros_like(tp)
    tokens = question.tokens(rows)
    moved = law.scan_passes * 2 * tokens * (scan.projected + scan.inner) / tp / on.memory
    took: Floats = moved + tokens * scan.forward_flops(law.scan_chunk) / tp / (on.peak16 * law.scan) + (
        law.scan_launches * law.launch)
    return took


def kind_times(question: Question, rows: Layouts, on: MachineRates, kind: LayerKind) -> LayerTimes:
    """Return the kernel times of one layer of `kind`."""
    law, stack, tp = question.kernels, question.stack, rows.tp.astype(np.float64)
    tokens = question.tokens(rows)
    split = sequence_split(question, rows)
    none = np.zeros_like(tp)
    if not kind.runs(question.memory):
        return LayerTimes(*(none for _ in fields(LayerTimes)))
    attention, mlp = _products(question, rows, tokens, kind)
    routed = none
    if kind.experts is not None:
        mlp.append(_expert_products(question, on, rows, kind.experts))
        routed = mlp[-1][0]
    core, core_backward = _attention_core(question, on, rows, kind)
    scan = _scan(question, on, rows, kind.scan)
    passed = (law.norm_bytes * kind.norms * question.shape.hidden / split
              + law.rotary_bytes * kind.attention_width * (not kind.crosses) / tp)
    elementwise = stack.unfused * stack.elementwise * (stack.upcast if question.tuning.quantized else 1.0)
    norm_bytes = _passes(question, on, elementwise, tokens * question.shape.hidden / split) * tokens * passed
    act_bytes = _passes(question, on, elementwise, np.maximum(1.0, tokens * kind.ffn / tp)) * tokens * 2 * (
        kind.fan + 1) * kind.ffn / tp
    backward = (sum((b for _, b in attention), none) + sum((b for _, b in mlp), none) + core_backward
                + law.scan_backward * scan + law.elementwise_backward * (norm_bytes + act_bytes) / on.memory)
    if question.tuning.forward_only:
        backward = core_backward = none
    return LayerTimes(
        attention_linear=sum((f for f, _ in attention), none), attention_core=core,
        mlp=sum((f for f, _ in mlp), none) + act_bytes / on.memory, routed=routed, activation=act_bytes / on.memory,
        norms=norm_bytes / on.memory,
        scan=scan,
        backward=backward,
        backward_attention_core=core_backward)


def layer_times(question: Question, rows: Layouts) -> LayerTimes:
    """Return the times of the mean uniform layer; for distinct (candidate, precision, tp, cp, micro-batch, ep)."""
    on = machine(question, rows.candidate, rows.precision)
    return mean([(kind_times(question, rows, on, kind), share) for kind, share in question.shape.kinds])


def mean(parts: Sequence[tuple[LayerTimes, float]]) -> LayerTimes:
    """Return the weighted sum of layer times."""
    return LayerTimes(**{f.name: sum((share * getattr(times, f.name) for times, share in parts[1:]),
                                     parts[0][1] * getattr(parts[0][0], f.name)) for f in fields(LayerTimes)})


def edge_times(question: Question, rows: Layouts) -> tuple[Floats, Floats]:
    """Return forward and backward seconds of the embedding, and of head and loss, for one micro-batch."""
    law, stack, shape = question.kernels, question.stack, question.shape
    on = machine(question, rows.candidate, rows.precision)
    tp = rows.tp.astype(np.float64)
    tokens = question.tokens(rows)
    vocab = shape.vocab / tp if stack.vocab_parallel_loss else np.full_like(tp, shape.vocab)
    wide = np.full_like(tp, shape.hidden)
    head = (gemm(question, on, on.matrix16, tokens, wide, vocab) + gemm(question, on, on.matrix16, tokens, vocab, wide)
            + law.loss_bytes_per_logit * tokens * vocab / on.memory)
    once = gemm(question, on, on.matrix16, tokens, wide, vocab)
    if question.tuning.forward_only:
        head = once
    elif question.tuning.trains_base:
        head = head + gemm(question, on, on.matrix16, wide, tokens, vocab) + 2 * on.gradient * wide * vocab / on.memory
    more = question.sample.forwards
    head = head + more * (once + law.loss_bytes_per_logit / 2 * tokens * vocab / on.memory)
    # a module that predicts a further token has a head of its own, and joins two states ahead of its layers
    head = head * (1 + question.predictions * (1 + 2 * shape.hidden / shape.vocab))
    return (1 + more / 2) * law.embedding_bytes * tokens * shape.hidden / on.memory, head


def recompute_seconds(question: Question, times: LayerTimes) -> tuple[Floats, Floats]:
    """Return the extra compute per layer of selective and of full recompute, without communication."""
    # of a mixture, mlp is the shared experts and moe the routed ones, of which an activation passes memory once
    share = question.kernels.recompute
    parts = {"core_attn": times.attention_core, "mlp": times.mlp - times.routed, "layernorm": times.norms,
             "mlp_act": times.activation,
             "moe": times.routed, "moe_act": share["moe_act"] * times.routed,
             "mla_up_proj": share["mla_up_proj"] * times.attention_linear,
             "every-second-matmul": share["every-second-matmul"] * times.forward}
    selective = sum((parts[m] for m in question.stack.selective_recompute), np.zeros_like(times.mlp))
    return selective, times.forward
