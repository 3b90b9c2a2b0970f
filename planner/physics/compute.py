"""Time of the kernels of one layer, one micro-batch, on one GPU.

Matrix product of m x k by k x n: 2mkn FLOPs at rate x shape, or its bytes at memory bandwidth, plus launch.
shape = k/(k+k0) . m/(m+m0) . n/(n+m0) . tile . wave . alignment: saturation, rounding up to tiles and to
waves of tiles over the multiprocessors. Sources: NVIDIA "Matrix Multiplication Background", constants fitted.
t tokens of a micro-batch on a GPU, h hidden, A query width, KV key width, f feed-forward width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats, Ints, Layouts
from planner.physics.question import Question, computes


@dataclass(frozen=True, slots=True)
class Machine:
    """Per-row rates: matrix FLOP/s in the compute and in 16-bit precision, attention FLOP/s, memory bytes/s."""

    matrix: Floats
    matrix16: Floats
    peak16: Floats
    attention_forward: Floats
    attention_backward: Floats
    memory: Floats
    multiprocessors: Floats
    low_precision: Floats


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Seconds per layer and micro-batch, by part; `head` and `embedding` are forward and backward together."""

    attention_linear: Floats
    attention_core: Floats
    mlp: Floats
    norms: Floats
    backward: Floats
    backward_attention_core: Floats
    head: Floats
    embedding: Floats

    @property
    def forward(self) -> Floats:
        """Forward of a whole layer."""
        return self.attention_linear + self.attention_core + self.mlp + self.norms


def distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """Return the first row of every distinct combination, and for each row the number of its combination."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        code = code * (int(column.max(initial=0)) + 1) + column
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    return first, inverse


def machine(question: Question, candidate: Ints, precision: Ints) -> Machine:
    """Gather the rates of each row."""
    def column(value: object) -> Floats:
        return np.array(value, np.float64)

    # a precision the hardware lacks is removed by a rule; its place in the grid is never read
    grid = [[question.matrix_rate(c, p) if computes(question.candidates[c], question.rates[c], p) else np.nan
             for p in question.precisions] for c in range(len(question.candidates))]
    half = [question.matrix_rate(c, _half(question, c)) for c in range(len(question.candidates))]
    peak = [question.peak_rate(c, _half(question, c)) for c in range(len(question.candidates))]
    rates, gpus = question.rates, [c.gpu for c in question.candidates]
    kernel = [question.stack.attention_kernel.get(g.architecture, 1.0) for g in gpus]
    forward = column([p * r.attention_forward * k for p, r, k in zip(peak, rates, kernel, strict=True)])
    backward = column([r.attention_backward for r in rates])
    return Machine(
        matrix=column(grid)[candidate, precision], matrix16=column(half)[candidate], peak16=column(peak)[candidate],
        attention_forward=forward[candidate], attention_backward=(forward * backward)[candidate],
        memory=column([g.memory_bandwidth * r.memory for g, r in zip(gpus, rates, strict=True)])[candidate],
        multiprocessors=column([g.multiprocessors for g in gpus])[candidate],
        low_precision=column([p in ("fp8", "fp4") for p in question.precisions])[precision])


def _half(question: Question, candidate: int) -> str:
    """Return the 16-bit format of a GPU: bf16, or fp16 where it has none."""
    return "bf16" if "bf16" in question.candidates[candidate].gpu.peak else "fp16"


def gemm(question: Question, on: Machine, rate: Floats, m: Floats, k: Floats, n: Floats) -> Floats:
    """Return seconds of an m x k by k x n product at `rate`."""
    law = question.kernels
    tiles = np.ceil(m / law.tile) * np.ceil(n / law.tile)
    tile_use = m * n / (tiles * law.tile**2)
    waves = tiles / (2 * on.multiprocessors)
    wave_use = (waves / np.ceil(waves)) ** law.wave_exponent
    aligned = np.where((k % law.alignment == 0) & (n % law.alignment == 0), 1.0, law.misaligned)
    saturation = k / (k + law.half_k) * m / (m + law.half_mn) * n / (n + law.half_mn)
    compute = 2 * m * k * n / (rate * saturation * tile_use * wave_use * aligned)
    took: Floats = np.maximum(compute, 2 * (m * k + k * n + m * n) / on.memory) + law.launch
    return took


def _linear(question: Question, on: Machine, tokens: Floats, k: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return forward and backward seconds of one linear layer, with the casts of low-precision formats."""
    law = question.kernels
    forward = gemm(question, on, on.matrix, tokens, k, n)
    backward = gemm(question, on, on.matrix, tokens, n, k) + gemm(question, on, on.matrix, k, tokens, n)
    forward = forward + on.low_precision * law.cast_forward_bytes * tokens * k / on.memory
    return forward, backward + on.low_precision * law.cast_backward_bytes * tokens * n / on.memory


def _attention_core(question: Question, on: Machine, tokens: Floats, tp: Floats) -> tuple[Floats, Floats]:
    """Return forward and backward seconds of scores, softmax and context of one layer."""
    shape, law, s = question.shape, question.kernels, question.sequence_length
    q = shape.query_width / tp
    if question.stack.fused_attention:
        flops = 4 * tokens * shape.span(s) * q
        reach = s / (s + law.attention_half_sequence)
        return (flops / (on.attention_forward * reach) + law.launch,
                2.5 * flops / (on.attention_backward * reach) + law.launch)
    # every score is computed, and passes through memory for mask, softmax and dropout
    moved = 2 * tokens * s * shape.heads / tp * law.unfused_attention_passes / on.memory
    forward = 4 * tokens * s * q / (on.peak16 * law.unfused_attention) + moved + law.launch
    return forward, 2 * forward


def layer_times(question: Question, rows: Layouts) -> LayerTimes:
    """Return the kernel times of each row; meant for distinct (candidate, precision, tp, cp, micro-batch)."""
    shape, law, stack = question.shape, question.kernels, question.stack
    on = machine(question, rows.candidate, rows.precision)
    tp, s = rows.tp.astype(np.float64), question.sequence_length
    tokens = rows.micro_batch * s / rows.cp
    h, f = float(shape.hidden), shape.ffn / tp
    q, kv = shape.query_width / tp, shape.kv_width / tp
    split = tp if stack.sequence_parallel else np.ones_like(tp)
    fan = 2 if shape.gated else 1

    qkv = _linear(question, on, tokens, np.full_like(tp, h), q + 2 * kv)
    out = _linear(question, on, tokens, q, np.full_like(tp, h))
    up = _linear(question, on, tokens, np.full_like(tp, h), fan * f)
    down = _linear(question, on, tokens, f, np.full_like(tp, h))

    core, core_backward = _attention_core(question, on, tokens, tp)

    norm_bytes = stack.elementwise * tokens * (22 * h / split + 4 * (q + 2 * kv))
    act_bytes = stack.elementwise * tokens * 2 * (fan + 1) * f
    backward = (qkv[1] + out[1] + up[1] + down[1] + core_backward + 1.6 * (norm_bytes + act_bytes) / on.memory)

    vocab = shape.vocab / tp if stack.vocab_parallel_loss else np.full_like(tp, shape.vocab)
    wide = np.full_like(tp, h)
    head = (gemm(question, on, on.matrix16, tokens, wide, vocab) + gemm(question, on, on.matrix16, tokens, vocab, wide)
            + gemm(question, on, on.matrix16, wide, tokens, vocab)
            + law.loss_bytes_per_logit * tokens * vocab / on.memory)
    return LayerTimes(
        attention_linear=qkv[0] + out[0], attention_core=core, mlp=up[0] + down[0] + act_bytes / on.memory,
        norms=norm_bytes / on.memory, backward=backward, backward_attention_core=core_backward, head=head,
        embedding=6 * tokens * h / on.memory)


def recompute_seconds(question: Question, times: LayerTimes) -> tuple[Floats, Floats]:
    """Return the extra compute per layer of selective and of full recompute, without communication."""
    parts = {"core_attn": times.attention_core, "mlp": times.mlp, "layernorm": times.norms,
             "every-second-matmul": 0.56 * times.forward}
    selective = sum((parts[m] for m in question.stack.selective_recompute), np.zeros_like(times.mlp))
    return selective, times.forward
