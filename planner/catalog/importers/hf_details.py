"""Of a config.json what no figure depends on: rotary positions, the norms' epsilon, activation, routing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EPSILONS = ("rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon", "norm_eps")
ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu": "gelu", "gelu_new": "gelu-tanh", "gelu_fast": "gelu-tanh",
               "gelu_pytorch_tanh": "gelu-tanh", "relu": "relu", "relu2": "relu2", "xielu": "xielu"}
BEYOND = ("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling", "logit_scale",
          "scale_emb", "final_logit_softcapping", "attn_logit_softcapping", "query_pre_attn_scalar", "swiglu_limit")
"""Keys of what few models compute."""


def details_of(config: Mapping[str, Any]) -> dict[str, object]:
    """Return the details that a config states, under the names of `Details`; what is no number is left out."""
    rotary = config.get("rope_parameters")
    rotary = rotary if isinstance(rotary, dict) else config
    scaling = config.get("rope_scaling") if rotary is config else rotary
    found: dict[str, object] = {
        "rotary_base": _positive(rotary, "rope_theta") or _positive(config, "rotary_emb_base"),
        "rotary_share": _positive(rotary, "partial_rotary_factor") or _positive(config, "partial_rotary_factor")
        or _positive(config, "rotary_pct"),
        "norm_epsilon": next((value for key in EPSILONS if (value := _positive(config, key))), None),
        "activation": ACTIVATIONS.get(str(config.get("hidden_act") or config.get("hidden_activation")
                                          or config.get("activation_function"))),
        "scaling": _scaling(scaling) if isinstance(scaling, dict) else None,
        "router": _router(config)}
    said = [key for key in BEYOND if config.get(key) not in (None, 1, 1.0)]
    unread = isinstance(scaling, dict) and found["scaling"] is None and _kind(scaling) not in ("", "default", "mrope")
    beyond = [*said, *([f"rope_scaling {_kind(scaling)}"] if isinstance(scaling, dict) and unread else [])]
    return {key: value for key, value in {**found, "beyond": ", ".join(beyond)}.items() if value}


def _positive(block: Mapping[str, Any], key: str) -> float | None:
    value = block.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _kind(scaling: Mapping[str, Any]) -> str:
    return str(scaling.get("rope_type") or scaling.get("type") or "")


def _scaling(said: Mapping[str, Any]) -> dict[str, object] | None:
    factor, original = _positive(said, "factor"), _positive(said, "original_max_position_embeddings")
    if _kind(said) not in ("llama3", "yarn") or factor is None or original is None:
        return None
    more = {key: value for key in ("beta_fast", "mscale", "mscale_all_dim") if (value := _positive(said, key))}
    return {"kind": _kind(said), "factor": factor, "original": round(original), **more}


def _router(config: Mapping[str, Any]) -> dict[str, float]:
    groups, chosen = _positive(config, "n_group"), _positive(config, "topk_group")
    found = {"scale": _positive(config, "routed_scaling_factor"),
             **({"groups": groups, "groups_per_token": chosen} if groups and groups > 1 else {})}
    stated = {key: value for key, value in found.items() if value}
    return stated | ({"normalized": False} if config.get("norm_topk_prob") is False else {})
