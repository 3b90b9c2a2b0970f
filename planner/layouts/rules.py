"""The named legality rules. Each says which axes it reads, which rows pass, and why the others do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from planner.catalog.attention import Attention
from planner.catalog.stack import Conflict, Stack
from planner.layouts.axes import SCHEDULES, Space, micro_batches, place
from planner.layouts.offload import OFFLOAD_AXES, allowed
from planner.layouts.table import Ints, Mask

Columns = Mapping[str, Ints]


@dataclass(frozen=True, slots=True)
class Facts:
    """What rules look up: the space, the stack, and per-candidate columns."""

    space: Space
    stack: Stack
    node_gpus: Ints
    clustered: Mask
    precisions: Mask
    """Shape (candidates, precisions): which GPU computes in which format."""
    fixed_gpus: int | None
    max_nodes: int | None
    whole_sequences: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Codes of `SPLIT_BY` for which a layer is faster without sequence parallelism."""
    frozen_layers: bool = False
    """Whether leading layers do not train."""
    steps_in_backward: bool = False
    """Whether the optimizer steps as backward makes the gradients."""
    skipped: frozenset[str] = frozenset()
    """Rules that do not apply, where the question is which of them leave nothing."""
    partial_nodes: bool = False
    """Whether a layout smaller than a node, or of a number of GPUs that is asked for, may leave the rest idle."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One reason why a layout is not allowed."""

    name: str
    axes: tuple[str, ...]
    reason: str
    passes: Callable[[Columns, Facts], Mask]
    grows_with: str | None = None
    """An axis of which a higher value never helps, so that what fails at its least value fails at all."""


SPLIT_BY = ("candidate", "precision", "tp", "cp", "micro_batch")
"""The axes that decide whether a layer is faster without sequence parallelism, on one degree of EP at least."""


def split_code(c: Columns) -> Ints:
    """Return one number for each combination of the values of `SPLIT_BY`."""
    code = np.zeros_like(c["tp"])
    for name in SPLIT_BY:
        code = code * 1024 + c[name]
    return code


def gpus(c: Columns) -> Ints:
    """GPUs of each row."""
    return c["tp"] * c["cp"] * c["pp"] * c["dp"]


def _per_node(c: Columns, f: Facts) -> Ints:
    per_node: Ints = f.node_gpus[c["candidate"]]
    return per_node


def _micro_batches(c: Columns, f: Facts) -> Ints:
    return micro_batches(f.space.global_batch, c["dp"], c["micro_batch"])


def filled_chunks(layers: int, chunks: Ints, *, uneven: bool) -> Mask:
    """Say which numbers of chunks hold equal layers, or would with embedding and head as a layer each.

    Where they may be uneven, each has something: a layer, or the embedding or the head.
    """
    filled: Mask = chunks <= layers + 2 if uneven else (layers % chunks == 0) | ((layers + 2) % chunks == 0)
    return filled


def _batch_divides(c: Columns, f: Facts) -> Mask:
    batch = c["dp"] * c["micro_batch"] * _micro_batches(c, f)
    keep: Mask = np.abs(batch - f.space.global_batch) <= f.space.tolerance * f.space.global_batch
    return keep


def _hybrid_shards(c: Columns, f: Facts) -> Mask:
    shards = c["dp"] * c["cp"]
    group = shards // c["hsdp"]
    whole = (shards % c["hsdp"] == 0) & (group * c["tp"] % _expert_group(c) == 0) & (group > 1)
    keep: Mask = (c["hsdp"] == 1) | (whole & (c["zero"] == max(1, *f.stack.zero_stages)) & f.stack.hybrid_shard)
    return keep


def _whole_heads(c: Columns, f: Facts) -> Mask:
    keep: Mask = f.space.model.kv_heads % c["tp"] == 0
    if "tensor" not in f.stack.repeats_heads:
        return keep
    copied = np.ones_like(keep)
    for block in f.space.model.blocks:
        (heads, keys), tp = block.heads, c["tp"]
        shared = (tp % max(1, keys) == 0) & (heads % tp == 0) & isinstance(block.attention, Attention)
        copied &= (keys % tp == 0) | shared
    return keep | copied


def _expert_group(c: Columns) -> Ints:
    """Ranks that hold each expert of a layer once between them."""
    group: Ints = c["ep"] * np.where(c["expert_tp"] == 0, c["tp"], c["expert_tp"])
    return group


def _expert_split(c: Columns, f: Facts) -> Mask:
    able = f.stack.expert_tp & f.space.model.mixes_experts
    keep: Mask = (c["expert_tp"] == 0) | (able & (c["expert_tp"] < c["tp"]) & (c["sp"] == 1)
                                          & (c["tp"] % np.maximum(1, c["expert_tp"]) == 0))
    return keep


def _needs_shards(c: Columns, f: Facts) -> Mask:
    # one rank alone runs ZeRO-3 for its offload
    alone = (c["zero"] == 3) & bool(f.stack.offload.parameters)
    keep: Mask = (c["zero"] <= 1) | (c["dp"] * c["cp"] > 1) | alone
    return keep


def _scheduled(c: Columns, f: Facts) -> Mask:
    has = np.isin(c["schedule"], [SCHEDULES.index(name) for name in f.stack.schedules])
    plain = c["schedule"] == 0
    dual = c["schedule"] == SCHEDULES.index("dualpipe")
    batches = _micro_batches(c, f)
    layers = f.space.layers
    mirrored = (layers % c["pp"] == 0) | ((layers % 2 == 0) & (layers + 2 >= 2 * c["pp"]))
    pairs = (c["pp"] % 2 == 0) & mirrored & (batches >= 2 * c["pp"])
    keep: Mask = plain | (has & (c["pp"] > 1) & (c["vpp"] == 1) & (~dual | pairs))
    return keep


def _steps_at_once(c: Columns, f: Facts) -> Mask:
    once = _micro_batches(c, f) == 1
    keep: Mask = ((c["pp"] == 1) & once) | (not f.steps_in_backward)
    return keep


def _accumulates(c: Columns, f: Facts) -> Mask:
    several = _micro_batches(c, f) > 1
    applies = several & (c["zero"] >= 2) & (c["pp"] == 1)
    keep: Mask = (c["no_sync"] == 0) & (~applies | (0 in f.stack.no_sync)) | (c["no_sync"] == 1) & applies
    return keep


_RULES: tuple[Rule, ...] = (
    Rule("precision_supported", ("candidate", "precision"), "the GPU has no rate for this precision",
         lambda c, f: f.precisions[c["candidate"], c["precision"]]),
    Rule("precision_by_stack", ("precision",), "the stack does not train in this precision",
         lambda c, f: np.isin(c["precision"], [at for at, name in enumerate(f.space.precisions)
                                               if name in f.stack.precisions])),
    Rule("tp_divides_kv_heads", ("tp",), "tp must divide the key-value heads, so that each GPU holds whole heads; "
         "a single one, and by some stacks fewer than tp, are copied, and then tp must divide the query heads",
         _whole_heads),
    Rule("tp_supported", ("tp",), "the stack has no tensor parallelism",
         lambda c, f: (c["tp"] == 1) | f.stack.tensor_parallel),
    Rule("tp_in_node", ("candidate", "tp"), "tp must stay inside the scale-up domain and divide its GPUs",
         lambda c, f: _per_node(c, f) % c["tp"] == 0),
    Rule("cp_supported", ("cp",), "the stack has no context parallelism",
         lambda c, f: (c["cp"] == 1) | f.stack.context_parallel),
    Rule("cp_divides_sequence", ("cp",), "2 x cp must divide the sequence, which causal balance needs",
         lambda c, f: (c["cp"] == 1) | (f.space.sequence_length % (2 * c["cp"]) == 0)),
    Rule("ep_supported", ("ep",), "the stack has no expert parallelism",
         lambda c, f: (c["ep"] == 1) | f.stack.expert_parallel),
    Rule("expert_tp_supported", ("tp", "sp", "expert_tp"), "splitting experts less than tp needs a mixture, a stack "
         "that has it, sequence parallelism, and a divisor of tp below it", _expert_split),
    Rule("ep_divides_shards", ("tp", "cp", "dp", "ep", "expert_tp"), "ep must divide dp x cp, whose ranks share out "
         "the experts; where experts are split less than tp, ep x expert_tp must divide tp x dp x cp",
         lambda c, f: c["tp"] * c["dp"] * c["cp"] % _expert_group(c) == 0),
    Rule("batch_divides", ("dp", "micro_batch"), "dp x micro-batch must divide the global batch, "
         "or one within its tolerance", _batch_divides),
    Rule("pp_supported", ("pp",), "the stack has no pipeline parallelism",
         lambda c, f: (c["pp"] == 1) | f.stack.pipeline),
    Rule("frozen_layers_in_one_stage", ("pp",), "frozen layers leave the stages of a pipeline uneven: trained_layers "
         "needs pp 1", lambda c, f: (c["pp"] == 1) | (not f.frozen_layers)),
    Rule("steps_in_backward", ("dp", "micro_batch", "pp"), "an optimizer in backward sees one micro-batch: no gradient "
         "accumulation and no pipeline", _steps_at_once),
    Rule("pp_within_layers", ("pp",), "a pipeline stage needs at least one layer",
         lambda c, f: c["pp"] <= f.space.layers),
    Rule("max_gpus", ("tp", "cp", "dp", "pp"), "more GPUs than the space or the limit allows",
         lambda c, f: gpus(c) <= f.space.max_gpus, grows_with="pp"),
    Rule("fixed_gpus", ("tp", "cp", "dp", "pp"), "not the GPU count that was asked for",
         lambda c, f: (gpus(c) == f.fixed_gpus) if f.fixed_gpus else np.ones(len(c["pp"]), bool)),
    Rule("whole_nodes", ("candidate", "tp", "cp", "dp", "pp"), "the GPUs must fill whole nodes",
         lambda c, f: (gpus(c) % _per_node(c, f) == 0) | (f.partial_nodes & (
             (gpus(c) < _per_node(c, f)) | (f.fixed_gpus is not None)))),
    Rule("max_nodes", ("candidate", "tp", "cp", "dp", "pp"), "more nodes than the limit allows",
         lambda c, f: gpus(c) <= (f.max_nodes or 10**9) * _per_node(c, f), grows_with="pp"),
    Rule("one_node", ("candidate", "tp", "cp", "dp", "pp"), "single nodes without a fabric never form a cluster",
         lambda c, f: f.clustered[c["candidate"]] | (gpus(c) <= _per_node(c, f)), grows_with="pp"),
    Rule("interleaving", ("pp", "vpp"), "interleaving needs a pipeline and a stack that has it",
         lambda c, f: (c["vpp"] == 1) | ((c["pp"] > 1) & f.stack.interleaving)),
    Rule("even_chunks", ("pp", "vpp"), "interleaved chunks must be equal: pp x vpp divides the layers, or the layers "
         "with embedding and head counted as one each; on stacks with uneven ones it is at most the latter",
         lambda c, f: (c["vpp"] == 1) | filled_chunks(f.space.layers, c["pp"] * c["vpp"],
                                                      uneven=f.stack.uneven_chunks)),
    Rule("interleaved_batches", ("dp", "micro_batch", "pp", "vpp"), "interleaving needs a multiple of pp micro-batches",
         lambda c, f: (c["vpp"] == 1) | (_micro_batches(c, f) % c["pp"] == 0)),
    Rule("schedule_supported", ("dp", "micro_batch", "pp", "vpp", "schedule"), "GPipe, zero-bubble and DualPipe need a "
         "stack that has them and a pipeline without interleaving; DualPipe also an even pp, stages that are "
         "alike from both ends, and 2 x pp micro-batches",
         _scheduled),
    Rule("zero_supported", ("zero",), "the stack does not offer this ZeRO stage",
         lambda c, f: np.isin(c["zero"], f.stack.zero_stages)),
    Rule("zero_with_pipeline", ("pp", "zero"), "the stack shards gradients or weights only without a pipeline",
         lambda c, f: (c["pp"] == 1) | (c["zero"] <= f.stack.zero_with_pipeline)),
    Rule("zero_needs_shards", ("dp", "cp", "zero"), "with one data-parallel rank there is nothing to shard",
         _needs_shards),
    Rule("no_sync_supported", ("dp", "micro_batch", "pp", "zero", "no_sync"), "no_sync needs several micro-batches "
         "under ZeRO-2 or 3 without a pipeline, and some stacks cannot do without it there", _accumulates),
    Rule("hsdp_supported", ("tp", "cp", "dp", "ep", "expert_tp", "hsdp", "zero"), "hybrid sharding needs a stack that "
         "has it, its highest ZeRO stage, and equal shard groups that hold whole sets of experts", _hybrid_shards),
    Rule("sp_supported", ("tp", "sp"), "without tensor parallelism there is nothing to split",
         lambda c, f: (c["tp"] > 1) | (c["sp"] == f.space.sequence_parallel[0])),
    Rule("sp_wins", (*SPLIT_BY, "sp"), "with sequence parallelism the same layout is no slower and holds less",
         lambda c, f: (c["sp"] == 1) | np.isin(split_code(c), f.whole_sequences)),
    Rule("offload_supported", ("candidate", "zero", "recompute", *OFFLOAD_AXES), "offload needs a stack that has it: "
         "of optimizer states with ZeRO-1 or higher, of weights (with their states) and to NVMe with ZeRO-3, of "
         "activations with full recompute",
         lambda c, f: allowed(c, f.stack, f.space.flash)),
)
RULES: dict[str, Rule] = {rule.name: rule for rule in _RULES}
"""Rules of every stack, by name."""


def rules_of(stack: Stack) -> dict[str, Rule]:
    """Return the rules by name: those of every stack, and one for each combination that this one refuses."""
    return RULES | {rule.name: rule for rule in map(_refused, stack.refuses)}


def _refused(refusal: Conflict) -> Rule:
    least = refusal.together
    exact = {axis: [place(axis, value) for value in values] for axis, values in refusal.at.items()}
    parts = (*least, *(f"{axis}_{value}" for axis, values in refusal.at.items() for value in values))
    return Rule("no_" + "_with_".join(parts), (*least, *exact), refusal.reason, lambda c, f: ~np.logical_and.reduce(
        [*(c[axis] >= value for axis, value in least.items()),
         *(np.isin(c[axis], values) for axis, values in exact.items())]))
