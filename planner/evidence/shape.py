"""The model of a row: the catalog's where name and shape agree, else one built from the row's columns."""

from __future__ import annotations

import re
from typing import Literal

from planner.catalog.architecture import Attention, Block, Mlp, Model, MoeMlp
from planner.catalog.load import Catalog
from planner.errors import UnknownName
from planner.evidence.rows import TrainRun
from planner.evidence.skipping import SkippedError
from planner.physics.shapes import parameters

MEGATRON_VOCABULARY = 51200
"""GPT-2's 50,257 tokens padded as Megatron-LM pads them for tensor parallelism of 8."""
_ALIBI = re.compile(r"mpt|bloom", re.IGNORECASE)
_ROTARY = re.compile(r"nemotron|gpt-?neox|pythia|phi|stablelm", re.IGNORECASE)


def model_of(run: TrainRun, catalog: Catalog, assumed: list[str]) -> Model:
    """Return the model of a row; what had to be filled in is added to `assumed`. Raises SkippedError."""
    if run.model is None:
        raise SkippedError("model not stated")
    known = _in_catalog(run.model, catalog)
    if known is not None and _agrees(known, run):
        return known
    return _from_columns(run, assumed)


def _in_catalog(name: str, catalog: Catalog) -> Model | None:
    dashed = re.sub(r"(?<=[a-z])(?=\d)", "-", name.lower(), count=1)
    for spelling in (name, dashed):
        try:
            return catalog.model(spelling)
        except UnknownName:
            continue
    return None


def _agrees(model: Model, run: TrainRun) -> bool:
    """Say whether every shape column that is stated equals the catalog's; a padded vocabulary is the same one."""
    block = model.layer_kinds()[-1]
    attention, mlp = block.attention, block.mlp
    if attention is None or mlp is None:
        return False
    pairs: list[tuple[int | None, int]] = [(run.layers, model.layers), (run.hidden, model.hidden),
                                           (run.heads, attention.heads)]
    if isinstance(attention, Attention):
        pairs.append((run.kv_heads, attention.kv_heads))
    pairs += [(run.experts, mlp.experts)] if isinstance(mlp, MoeMlp) else [(run.experts, 0), (run.ffn, mlp.ffn)]
    padded = run.vocab is None or abs(run.vocab - model.vocab) <= 0.02 * model.vocab
    return padded and all(not stated or stated == held for stated, held in pairs)


def _from_columns(run: TrainRun, assumed: list[str]) -> Model:
    layers, hidden, heads = run.layers, run.hidden, run.heads
    if layers is None or hidden is None or heads is None:
        missing = [name for name in ("layers", "hidden", "heads") if getattr(run, name) is None]
        raise SkippedError(f"model {run.model} is not in the catalog and its shape is not stated "
                           f"({', '.join(missing)})")
    gated = run.gated_mlp
    if gated is None:
        gated = bool(run.ffn and run.ffn != 4 * hidden)
        assumed.append(f"gated_mlp={'yes' if gated else 'no'}")
    if run.ffn is None and gated:
        raise SkippedError(f"model {run.model} is not in the catalog and its ffn is not stated")
    ffn = run.ffn or _fill("ffn", 4 * hidden, assumed)
    kv_heads = run.kv_heads or _fill("kv_heads", heads, assumed)
    vocab = run.vocab or _fill("vocab", MEGATRON_VOCABULARY, assumed)
    if hidden % heads or heads % kv_heads:
        raise SkippedError(f"heads {heads} and kv_heads {kv_heads} do not divide hidden {hidden}")
    mlp = Mlp(kind="gated" if gated else "plain", ffn=ffn)
    attention = Attention(heads=heads, kv_heads=kv_heads, head_dim=hidden // heads)

    def build(tied: bool) -> Model:
        return Model(
            name="evidence-row", source="shape columns of an evidence row", as_of=str(run.year or 2026), kind="quoted",
            hidden=hidden, vocab=vocab, tied=tied, norm="rmsnorm" if gated else "layernorm",
            positions=_positions(run.model or "", gated), sequence_length=1, global_batch=1,
            blocks=(Block(count=layers, attention=attention, mlp=mlp),))

    return build(_tied(run, build(True), build(False), gated, assumed))


def _fill(name: str, value: int, assumed: list[str]) -> int:
    assumed.append(f"{name}={value}")
    return value


def _positions(name: str, gated: bool) -> Literal["rope", "learned", "alibi"]:
    """Return learned positions for the GPT family, whose models also have dropout; the newer families have neither."""
    if _ALIBI.search(name):
        return "alibi"
    return "rope" if gated or _ROTARY.search(name) else "learned"


def _tied(run: TrainRun, tied: Model, untied: Model, gated: bool, assumed: list[str]) -> bool:
    """Return whether the head is the token table: as stated, else what params_b says, else by family."""
    if run.tied_embeddings is not None:
        return run.tied_embeddings
    with_table, without = parameters(untied) / 1e9, parameters(tied) / 1e9
    if run.params_b is not None and with_table > 1.02 * without:
        chosen = abs(without - run.params_b) < abs(with_table - run.params_b)
    else:
        chosen = not gated
    assumed.append(f"tied_embeddings={'yes' if chosen else 'no'}")
    return chosen
