"""What a published config says beside the sizes: what a stack is told that builds the model from arguments.

No figure of a plan depends on it. Field names follow the published Hugging Face configs where there is one.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.yaml_io import Frozen


class Scaling(Frozen):
    """How rotary positions are stretched over more tokens than they were trained with."""

    kind: Literal["llama3", "yarn"]
    factor: float = Field(gt=0, le=10**6)
    original: int = Field(gt=0, le=10**8)
    """Tokens that they were trained with."""
    beta_fast: float = Field(default=32, gt=0, le=10**6)
    mscale: float = Field(default=1, ge=0, le=1000)
    mscale_all_dim: float = Field(default=0, ge=0, le=1000)


class ExpertRouter(Frozen):
    """How a mixture chooses experts; whether by sigmoid, `correction_bias` of the mixture says."""

    normalized: bool = True
    """Whether the weights of the chosen experts add up to one (norm_topk_prob)."""
    scale: float | None = Field(default=None, gt=0, le=10**6)
    """What the weights are multiplied by (routed_scaling_factor)."""
    groups: int | None = Field(default=None, gt=0, le=10**6)
    groups_per_token: int | None = Field(default=None, gt=0, le=10**6)


class Details(Frozen):
    """Rotary positions, norms, activation and routing of one model."""

    rotary_base: float | None = Field(default=None, gt=0, le=10**12)
    """rope_theta, in positions."""
    rotary_share: float = Field(default=1, gt=0, le=1)
    """Of a head's width that is rotated (partial_rotary_factor)."""
    scaling: Scaling | None = None
    norm_epsilon: float | None = Field(default=None, gt=0, le=1)
    around_one: bool = False
    """Whether norms multiply by one more than their weights."""
    activation: Literal["silu", "gelu", "gelu-tanh", "relu", "relu2", "xielu"] | None = None
    """Of the feed-forward; none where the config does not say."""
    router: ExpertRouter | None = None
    beyond: str = ""
    """What it computes beside all this, in words: scaled embeddings, capped logits."""
