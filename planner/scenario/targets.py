"""Which weights have LoRA adapters, in the words that tools use for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, PlainSerializer

Place = Literal["attention-in", "attention-out", "mlp-in", "mlp-out", "experts", "embeddings"]
"""Products with adapters: into and out of attention and feed-forward, and in routed experts; embedding and head train
whole, as `modules_to_save` has them."""
PLACES: tuple[str, ...] = get_args(Place)
_SAID = {
    "attention-in": "q k v qkv q_proj k_proj v_proj qkv_proj q_a_proj q_b_proj kv_a_proj_with_mqa kv_b_proj query key "
    "value query_key_value c_attn wqkv wq wk wv linear_qkv in_proj in_proj_qkvz in_proj_ba x_proj",
    "attention-out": "o o_proj out_proj wo dense linear_proj",
    "mlp-in": "gate up gate_proj up_proj gate_up_proj w1 w3 fc1 c_fc dense_h_to_4h linear_fc1 mlp_up",
    "mlp-out": "down down_proj w2 fc2 dense_4h_to_h linear_fc2 mlp_down",
    "attention-out mlp-out": "c_proj",
    "attention-in attention-out": "attention attn self_attn",
    "mlp-in mlp-out": "mlp ffn feed_forward feedforward",
    "attention-in attention-out mlp-in mlp-out": "linear",
    "attention-in attention-out mlp-in mlp-out experts": "all all-linear all_linear",
    "mlp-in mlp-out experts": "experts expert experts.gate_up_proj experts.down_proj "
    "mlp.experts.gate_up_proj mlp.experts.down_proj",
    "": "router layer shared_expert_gate",  # too small to count
    "embeddings": "embed_tokens lm_head embedding wte output embed_out"}
MODULES = {said: tuple(places.split()) for places, names in _SAID.items() for said in names.split()}
"""Names of modules in Hugging Face models and Megatron (lora_target_modules), and of their groups -> places."""


def places_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the places of modules, each once, in the order of PLACES. Raises ValueError for a name that is none."""
    found: set[str] = set()
    for name in names:
        plain = name.strip().lower()
        if plain not in MODULES and plain not in PLACES:
            plain = plain.rpartition(".")[2]  # model.layers.3.mlp.down_proj
        if plain not in MODULES and plain not in PLACES:
            raise ValueError(f"{name!r} is no module that has adapters: write attention, mlp, experts or embeddings, "
                             "or a name such as q_proj or down_proj")
        found |= set(MODULES.get(plain, (plain,)))
    return tuple(place for place in PLACES if place in found)


def said_shortly(places: Iterable[str]) -> str:
    """Return places in as few words as they are read back from: attention+mlp."""
    left = list(places)
    for group in ("attention", "mlp"):
        both = [f"{group}-in", f"{group}-out"]
        if all(place in left for place in both):
            left[left.index(both[0])] = group
            left.remove(both[1])
    return "+".join(left)


def _read(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return value
    parts = [part for name in names for part in name.replace("+", ",").split(",")]
    return places_of(part for part in parts if part.strip())


Targets = Annotated[tuple[Place, ...], BeforeValidator(_read, json_schema_input_type=str | list[str]),
                    PlainSerializer(said_shortly, return_type=str)]
