"""How the weights of an inference engine are stored: bytes of a weight, by the names of formats.

Quantization is of the matrices inside layers; norms and routers stay as they are, and so do embedding and output
matrix outside GGUF and exl2. Scales count with the weights they scale.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.catalog.architecture import Model


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """Bytes of one weight of a quantized matrix with its share of the scales, and of any other weight."""

    matrix: float
    other: float = 2.0
    experts_alone: bool = False
    """Whether only routed experts are quantized, as in gpt-oss."""
    attention: float | None = None
    """Of matrices of attention, where they are kept apart from the rest."""
    embedding: float | None = None
    head: float | None = None
    """Of the token table and the output matrix, where they are quantized too."""
    activation: float = 0.0
    """Bytes of an element of the copy that products in eight or four bits read in place of activations."""
    hidden_multiple: int = 1
    ffn_multiple: int = 1
    """What widths of a rank's experts are rounded up to for the kernels."""

    @property
    def of_attention(self) -> float:
        """Bytes of a weight of attention."""
        if self.attention is not None:
            return self.attention
        return self.other if self.experts_alone else self.matrix


FORMATS = {
    "fp32": WeightFormat(4, 4),
    "bf16": WeightFormat(2),
    "fp8": WeightFormat(1, activation=1),
    # Meta's checkpoint of Llama 3.1 405B
    "fp8-ffn": WeightFormat(1, attention=2, activation=1),
    "int8": WeightFormat(1, activation=1),
    # vLLM builds dense feed-forwards of such models as one expert, so that they are quantized too
    "experts_int8": WeightFormat(1, attention=2),
    # groups of 128: a 16-bit scale, and for AWQ and GPTQ a 4-bit zero
    "int4": WeightFormat(0.5 + 2.5 / 128),
    "w4a16": WeightFormat(0.5 + 2 / 128),
    "gptq-int8": WeightFormat(1 + 3 / 128),
    # groups of 32, as Kimi K2 is trained
    "int4-experts": WeightFormat(0.5 + 2 / 32, experts_alone=True),
    # blocks of 16 with an 8-bit scale, of 32 with an exponent, of 64 with a 32-bit maximum
    "nvfp4": WeightFormat(0.5 + 1 / 16, activation=0.5),
    # NVIDIA's checkpoints (hf_quant_config.json): mixtures keep attention, hybrids have it in fp8 and pack the head
    "nvfp4-ffn": WeightFormat(0.5 + 1 / 16, attention=2, activation=0.5),
    "nvfp4-hybrid": WeightFormat(0.5 + 1 / 16, attention=1, head=0.5 + 1 / 16, activation=0.5),
    # Marlin and Triton kernels of vLLM (layers/quantization/mxfp4.py) round both widths up
    "mxfp4": WeightFormat(0.5 + 1 / 32, experts_alone=True, hidden_multiple=256, ffn_multiple=128),
    "nf4": WeightFormat(0.5 + 4 / 64),
}
"""By the names that scenarios and evidence use; fp16 is as bf16."""

SIX = 210 / 256
"""Bytes of a weight in Q6_K blocks, in which GGUF kinds below it keep the output matrix (ggml-common.h)."""
GGUF = {
    # bytes of a matrix weight and of a token table; mixes follow from bits of Llama 3.1 8B (llama.cpp quantize)
    "f16": (2.0, 2.0), "bf16": (2.0, 2.0), "q8_0": (34 / 32, 34 / 32), "q6_k": (SIX, SIX),
    "q5_k_m": (0.707, 176 / 256), "q5_k_s": (176 / 256, 176 / 256), "q5_0": (22 / 32, 22 / 32),
    "q5_1": (24 / 32, 24 / 32), "q4_k_m": (0.6, 144 / 256), "q4_k_s": (0.567, 144 / 256), "q4_0": (18 / 32, 18 / 32),
    "q4_1": (20 / 32, 20 / 32), "iq4_xs": (136 / 256, 136 / 256), "iq4_nl": (18 / 32, 18 / 32),
    "q3_k_l": (0.524, 110 / 256), "q3_k_m": (0.481, 110 / 256), "q3_k_s": (110 / 256, 110 / 256),
    "q2_k": (0.368, 84 / 256),
}
"""llama.cpp's kinds, by lower-case name."""
_EXL2 = re.compile(r"exl[23]-(\d+(?:\.\d+)?)bpw", re.IGNORECASE)
_ALL_IN_FOUR = re.compile(r"^qwen3-(?!next)")
"""Mixtures whose nvfp4 checkpoints quantize attention too (nvidia/Qwen3-235B-A22B-NVFP4)."""
EXL2_HEAD = 6 / 8
"""Bytes of a weight of the output matrix in exl2: six bits unless asked otherwise (exllamav2 convert.py)."""


def format_of(name: str, model: Model) -> WeightFormat | None:
    """Return a format as checkpoints of a model have it, where that differs by architecture; else as by name."""
    if name == "nvfp4" and any(block.recurrence for block in model.blocks):
        return FORMATS["nvfp4-hybrid"]
    if name == "nvfp4" and model.mixes_experts and not _ALL_IN_FOUR.search(model.name):
        return FORMATS["nvfp4-ffn"]
    return format_named(name)


def format_named(name: str) -> WeightFormat | None:
    """Return a format by its name: ours, a GGUF kind such as Q4_K_M, exl2 at so many bits; none if neither."""
    key = name.strip().lower()
    if key in FORMATS:
        return FORMATS[key]
    kind = key.removeprefix("gguf").strip(" -_:")
    if kind in GGUF:
        matrix, table = GGUF[kind]
        return WeightFormat(matrix, embedding=table, head=max(SIX, table))
    bits = _EXL2.fullmatch(key)
    return WeightFormat(float(bits[1]) / 8, head=EXL2_HEAD) if bits else None
