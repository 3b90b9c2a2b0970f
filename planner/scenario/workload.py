"""What work is asked for."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, field_validator

from planner.catalog.hardware import Precision
from planner.units import Tokens, parse_count
from planner.yaml_io import Frozen

Method = Literal["pretrain", "full", "lora", "qlora"]
_BATCH = re.compile(r"\s*([\d_]+)\s*(?:sequences|seqs)?\s*\Z")


def _global_batch(value: object) -> int:
    if isinstance(value, str) and (match := _BATCH.match(value)):
        return parse_count(int(match.group(1)), "global batch")
    if isinstance(value, str):
        raise ValueError(f"{value!r} is not a global batch: write for example '2048 sequences'")
    return parse_count(value, "global batch", "2048 sequences")


GlobalBatch = Annotated[int, BeforeValidator(_global_batch), PlainSerializer(lambda v: f"{v} sequences")]


class Training(Frozen):
    """A training job: `tokens` in all, `global_batch` sequences a step, each of `sequence_length` tokens."""

    kind: Literal["training"] = "training"
    model: str
    method: Method = "pretrain"
    tokens: Annotated[Tokens, Field(le=10**16)]
    sequence_length: Tokens | None = None
    global_batch: GlobalBatch | None = None
    precision: tuple[Precision, ...] = Field(default=("bf16",), min_length=1)
    stack: str | None = None
    lora_rank: int = Field(default=16, gt=0, le=4096)
    """Rank of the adapters on every product, for the methods lora and qlora."""

    @field_validator("precision")
    @classmethod
    def _trainable(cls, value: tuple[Precision, ...]) -> tuple[Precision, ...]:
        for precision in value:
            if precision not in ("bf16", "fp16", "fp8"):
                raise ValueError(f"{precision!r} is not a training precision here: bf16, fp16 or fp8")
        return value
