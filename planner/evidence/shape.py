"""The model of a row: the catalog's where name or shape agree, else one built from the row's columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from planner.catalog.architecture import Block, Mlp, Model, MoeMlp
from planner.catalog.attention import Attention
from planner.catalog.load import Catalog
from planner.catalog.quirk import Sources
from planner.evidence.rows import StatedRun
from planner.evidence.skipping import SkippedError
from planner.physics.shapes import parameters

_SUFFIX = re.compile(r"-(instruct|base|chat|it|hf)(-\d{4})?$|-\d{4}$| ?\([^()]{0,99}\)$| \d[\d.]{0,9} ?b$",
                     re.IGNORECASE)
_INNER = re.compile(r"\(([\w./-]{1,99})\)$")


def model_of(run: StatedRun, catalog: Catalog, assumed: list[str], *, by_size: bool = False) -> Model:
    """Return the model of a row; what had to be filled in is added to `assumed`. Raises SkippedError.

    With `by_size`, a dense model of which only the parameters are stated has the usual proportions: enough for hours,
    which go with parameters, and too little for memory or the speed of a layout.
    """
    model = _model_of(run, catalog, assumed, by_size)
    return model.model_copy(update={"tied": False}) if model.tied and catalog.sources.flag("own_head", run) else model


def _model_of(run: StatedRun, catalog: Catalog, assumed: list[str], by_size: bool) -> Model:
    if run.model is None:
        raise SkippedError("model not stated")
    named = _in_catalog(run.model, catalog)
    if named is not None and any(layer.attention is None or layer.recurrence for layer in named.layer_kinds()):
        return named  # the columns cannot say what such layers are
    if catalog.sources.flag("recurrent", run):
        raise SkippedError(f"model {run.model} is not in the catalog, and its recurrent layers are not stated")
    if named is not None and (_agrees(named, run) or not any((run.layers, run.hidden, run.heads, run.params_b))):
        return named
    if named is not None and run.layers and run.layers < named.layers and _agrees(named, run, depth=False):
        return _cut(named, run.layers, run.dense_layers, assumed)
    alike = _alike(run, catalog)
    if alike is not None:
        return alike
    if run.attention == "mla":
        raise SkippedError(f"model {run.model} is not in the catalog and its shape is not stated (latent ranks)")
    if by_size and run.params_b and not (run.layers or run.hidden or run.experts):
        run = _of_size(run, run.params_b * 1e9, catalog.sources, assumed)
    return _from_columns(run, catalog.sources, assumed)


def _of_size(run: StatedRun, parameters: float, sources: Sources, assumed: list[str]) -> StatedRun:
    """Return a row with the layers, width and heads that dense models of so many parameters usually have."""
    width, head = sources.usual("usual_width"), int(sources.usual("usual_head"))
    # a layer of width h has 12 h^2 parameters, and h is so many times the number of layers
    layers = _round_to((parameters / (12 * width**2)) ** (1 / 3), 4)
    heads = _round_to((parameters / (12 * layers)) ** 0.5 / head, int(sources.usual("usual_heads")))
    hidden = heads * head
    assumed += [f"layers={layers}", f"hidden={hidden}", f"heads={heads}"]
    gated = {"ffn": _round_to(4 * hidden * 2 / 3, head)} if run.gated_mlp and not run.ffn else {}
    return run.model_copy(update={"layers": layers, "hidden": hidden, "heads": heads, **gated})


def _spellings(name: str) -> Iterator[str]:
    yield name
    yield re.sub(r"(?<=[a-z])(?=\d)", "-", name.lower(), count=1)
    short = _SUFFIX.sub("", name.rsplit("/", maxsplit=1)[-1])
    yield from (short, short.replace(" ", "-"), _SUFFIX.sub("", short))
    inner = _INNER.search(name)
    if inner:
        # a fine-tune that says of what
        yield inner[1]


def _in_catalog(name: str, catalog: Catalog) -> Model | None:
    return next((model for spelling in _spellings(name) if (model := catalog.known_model(spelling))), None)


def _alike(run: StatedRun, catalog: Catalog) -> Model | None:
    """Return the first catalog model that has every width of a row that states them all, built as its family is."""
    if None in (run.layers, run.hidden, run.heads, run.vocab, run.experts or run.ffn):
        return None
    family = _positions(run, catalog.sources, _gated(run)), catalog.sources.whole("parallel_norms", run) is not None
    return next((m for m in catalog.all("models", Model) if m.hidden == run.hidden and _agrees(m, run)
                 and (m.positions, m.layer_kinds()[-1].parallel) == family), None)


def _gated(run: StatedRun) -> bool:
    """Return whether feed-forwards are gated: as stated, else by their width."""
    return run.gated_mlp if run.gated_mlp is not None else bool(
        run.experts or (run.ffn and run.ffn != 4 * (run.hidden or 0)))


def _positions(run: StatedRun, sources: Sources, gated: bool) -> str:
    """Return how a family tells positions: the GPT family learns them, and has dropout; the newer ones do neither."""
    return sources.word("positions", run) or ("rope" if gated else "learned")


def _agrees(model: Model, run: StatedRun, *, depth: bool = True) -> bool:
    """Say whether every shape column that is stated equals the catalog's; a padded vocabulary is the same one."""
    block = model.layer_kinds()[-1]
    attention, mlp = block.attention, block.mlp
    if attention is None or mlp is None:
        return False
    pairs: list[tuple[int | None, int]] = [(run.layers if depth else None, model.layers), (run.hidden, model.hidden),
                                           (run.heads, attention.heads)]
    if isinstance(attention, Attention):
        pairs.append((run.kv_heads, attention.kv_heads))
        if run.attention == "mla":
            return False
    if isinstance(mlp, MoeMlp):
        if not run.experts:
            return False
        pairs += [(run.experts, mlp.experts), (run.experts_per_token, mlp.experts_per_token), (run.moe_ffn, mlp.ffn)]
    else:
        pairs += [(run.experts, 0), (run.ffn, mlp.ffn)]
    if run.tied_embeddings is not None and run.tied_embeddings != model.tied:
        return False
    padded = run.vocab is None or abs(run.vocab - model.vocab) <= 0.02 * model.vocab
    return padded and all(not stated or stated == held for stated, held in pairs)


def _cut(model: Model, layers: int, dense: int | None, assumed: list[str]) -> Model:
    """Return a model truncated in depth: the leading layers stay, or so many dense ones; the last kind is cut."""
    assumed.append(f"model={model.name} of {layers} layers")
    if model.order:
        return model.model_copy(update={"order": "".join(model.order.split())[:layers]})
    kept, left = [], layers
    leads = len(model.blocks) == 2 and model.mixes_experts and dense is not None
    for place, block in enumerate(model.blocks):
        stated = (dense or 0, layers - (dense or 0))[place] if leads else block.count
        count = min(stated, left)
        if count:
            kept.append(block.model_copy(update={"count": count}))
        left -= count
    return model.model_copy(update={"blocks": tuple(kept)})


def _from_columns(run: StatedRun, sources: Sources, assumed: list[str]) -> Model:
    layers, hidden, heads = run.layers, run.hidden, run.heads
    if layers is None or hidden is None or heads is None:
        missing = [name for name in ("layers", "hidden", "heads") if getattr(run, name) is None]
        raise SkippedError(f"model {run.model} is not in the catalog and its shape is not stated "
                           f"({', '.join(missing)})")
    gated = _gated(run)
    if run.gated_mlp is None:
        assumed.append(f"gated_mlp={'yes' if gated else 'no'}")
    if run.ffn is None and gated and not (run.experts and run.moe_ffn):
        raise SkippedError(f"model {run.model} is not in the catalog and its ffn is not stated")
    kv_heads = run.kv_heads or _fill("kv_heads", heads, assumed)
    vocab = run.vocab or _fill("vocab", int(sources.usual("usual_vocabulary")), assumed)
    if hidden % heads or heads % kv_heads:
        raise SkippedError(f"heads {heads} and kv_heads {kv_heads} do not divide hidden {hidden}")
    blocks = _blocks(run, Attention(heads=heads, kv_heads=kv_heads, head_dim=hidden // heads), layers, hidden, gated,
                     assumed)
    norms = sources.whole("parallel_norms", run)
    if norms is not None:
        blocks = tuple(b.model_copy(update={"parallel": True, "norms": norms}) for b in blocks)

    positions: Any = _positions(run, sources, gated)

    def build(tied: bool) -> Model:
        return Model(
            name="evidence-row", source="shape columns of an evidence row", as_of=str(run.year or 2026), kind="quoted",
            hidden=hidden, vocab=vocab, tied=tied, norm="rmsnorm" if gated else "layernorm",
            positions=positions, sequence_length=1, global_batch=1, blocks=blocks)

    return build(_tied(run, build(True), build(False), gated, assumed))


def _round_to(number: float, step: int) -> int:
    """Return the nearest multiple that is not 0: counts that GPUs can divide are chosen."""
    return max(1, round(number / step)) * step


def _blocks(run: StatedRun, attention: Attention, layers: int, hidden: int, gated: bool,
            assumed: list[str]) -> tuple[Block, ...]:
    """Return the layers: all alike, or dense ones ahead of a mixture of experts."""
    dense = Mlp(kind="gated" if gated else "plain", ffn=run.ffn or 4 * hidden)
    if not run.experts:
        if run.ffn is None:
            assumed.append(f"ffn={4 * hidden}")
        return (Block(count=layers, attention=attention, mlp=dense),)
    width = run.moe_ffn or _fill("moe_ffn", run.ffn or 4 * hidden, assumed)
    shared = run.shared_experts or 0
    mixture = MoeMlp(kind="moe", experts=run.experts, experts_per_token=run.experts_per_token or _fill(
        "experts_per_token", min(2, run.experts), assumed), ffn=width, gated=gated, shared_experts=shared)
    lead = min(run.dense_layers or 0, layers - 1)
    first = (Block(count=lead, attention=attention, mlp=dense),) if lead else ()
    return (*first, Block(count=layers - lead, attention=attention, mlp=mixture))


def _fill(name: str, value: int, assumed: list[str]) -> int:
    assumed.append(f"{name}={value}")
    return value


def _tied(run: StatedRun, tied: Model, untied: Model, gated: bool, assumed: list[str]) -> bool:
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
