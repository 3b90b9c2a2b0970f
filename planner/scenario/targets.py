"""Which weights have LoRA adapters, in the words that tools use for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, PlainSerializer

Place = Literal["q", "k", "v", "q_a", "q_b", "kv_a", "kv_b", "in_proj", "x_proj", "dt_proj", "o", "out_proj", "gate",
                "up", "down", "other", "routed", "embeddings"]
"""Matrices with adapters: of attention, latent attention and recurrences, of the feed-forward, others (router, gates);
routed: the feed-forward's of routed experts too; embedding and head train whole, as `modules_to_save` has them."""
PLACES: tuple[str, ...] = get_args(Place)
GROUPS: dict[str, tuple[str, ...]] = {
    "attention-in": ("q", "k", "v", "q_a", "q_b", "kv_a", "kv_b", "in_proj", "x_proj", "dt_proj"),
    "attention-out": ("o", "out_proj"), "mlp-in": ("gate", "up"), "mlp-out": ("down",)}
GROUPS = {"all": PLACES[:-1], "linear": PLACES[:-2], "attention": GROUPS["attention-in"] + GROUPS["attention-out"],
          "experts": ("gate", "up", "down", "routed"), "mlp": ("gate", "up", "down")} | GROUPS
"""What several places are called together, the largest group first."""
_SAID = {
    "q": "q_proj query wq", "k": "k_proj key wk", "v": "v_proj value wv", "q_a": "q_a_proj linear_q_down_proj",
    "q_b": "q_b_proj linear_q_up_proj", "kv_a": "kv_a_proj_with_mqa linear_kv_down_proj",
    "kv_b": "kv_b_proj linear_kv_up_proj",
    "q k v": "qkv qkv_proj query_key_value c_attn wqkv linear_qkv w_pack",
    "in_proj": "in_proj_qkvz in_proj_ba in_proj_qkv in_proj_z in_proj_a in_proj_b", "o": "o_proj wo dense",
    "o out_proj": "linear_proj", "o down": "c_proj",
    "gate": "gate_proj w1", "up": "up_proj w3 fc1 c_fc dense_h_to_4h mlp_up",
    "gate up": "gate_up_proj linear_fc1", "down": "down_proj w2 fc2 dense_4h_to_h linear_fc2 mlp_down",
    "attention": "attn self_attn", "mlp": "ffn feed_forward feedforward", "all": "all-linear all_linear",
    "experts": "expert", "gate up routed": "experts.gate_up_proj mlp.experts.gate_up_proj",
    "down routed": "experts.down_proj mlp.experts.down_proj",
    "other": "router layer shared_expert_gate f_a_proj f_b_proj g_a_proj g_b_proj",
    "embeddings": "embed_tokens lm_head embedding wte output embed_out head word_embeddings output_layer"}
MODULES = {name: (name,) for name in PLACES} | {said: tuple(
    place for word in words.split() for place in GROUPS.get(word, (word,)))
    for words, names in _SAID.items() for said in names.split()} | GROUPS
"""Names of modules in Hugging Face models and Megatron (lora_target_modules), and of their groups -> places."""


def places_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the places of modules, each once, in the order of PLACES. Raises ValueError for a name that is none."""
    found: set[str] = set()
    for name in names:
        plain = name.strip().lower()
        if plain not in MODULES:
            plain = plain.rpartition(".")[2]  # model.layers.3.mlp.down_proj
        if plain not in MODULES:
            raise ValueError(f"{name!r} is no module that has adapters: write attention, mlp, experts or embeddings, "
                             "or a name such as q_proj or down_proj")
        found |= set(MODULES[plain])
    return tuple(place for place in PLACES if place in found)


def said_shortly(places: Iterable[str]) -> str:
    """Return places in as few words as they are read back from: attention+mlp."""
    left = list(places)
    for group, members in GROUPS.items():
        if len(members) > 1 and set(members) <= set(left):
            left[left.index(members[0])] = group
            left = [place for place in left if place not in members]
    return "+".join(left)


def _read(value: object) -> object:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        return value
    parts = [part for name in names for part in name.replace("+", ",").split(",")]
    return places_of(part for part in parts if part.strip())


Targets = Annotated[tuple[Place, ...], BeforeValidator(_read, json_schema_input_type=str | list[str]),
                    PlainSerializer(said_shortly, return_type=str)]
