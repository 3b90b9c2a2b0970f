"""Every legal layout of a trainer of reinforcement learning: degrees, shards of states, recompute and offload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.catalog.stack import Stack
from planner.layouts.axes import RECOMPUTE, Space
from planner.layouts.rules import Facts, rules_of
from planner.layouts.table import Mask
from planner.physics.posttraining.passes import Trainer

UNHEARD = frozenset({"whole_nodes", "sp_wins", "batch_divides"})
"""Rules that do not hold of a trainer: it may leave GPUs to rollouts, and packs batches of any size."""
ANY_LENGTH, ANY_GPUS = 1 << 16, 10**9
"""What rules of lengths and of the cluster do not hold a trainer to."""
SEARCHED: Mapping[str, tuple[int, ...]] = {
    "tp": (1, 2, 4, 8), "pp": (1, 2, 3, 4, 6, 8, 12, 16), "cp": (1, 2, 4, 8), "ep": (1, 2, 4, 8, 16, 32)}
"""Degrees that are searched; a layout that is held may have others."""
NOTHING: Mapping[str, int] = {}


def layouts_of(trainer: Trainer, counts: Sequence[int], beyond: Mapping[str, int] = NOTHING
               ) -> dict[int, list[dict[str, float]]]:
    """Return every legal layout of a trainer on each number of GPUs; numbers without one are left out.

    beyond: degrees that are tried whether or not they are searched, by axis, and 1 where what enters layers waits on
    the host, which is not searched.
    """
    made = [(gpus, row) for gpus in counts for row in _every(trainer, gpus, beyond)]
    legal: dict[int, list[dict[str, float]]] = {}
    for (gpus, row), keeps in zip(made, _legal(trainer, [row for _, row in made]) if made else (), strict=True):
        if keeps:
            legal.setdefault(gpus, []).append(row)
    return legal


def _every(trainer: Trainer, gpus: int, beyond: Mapping[str, int]) -> list[dict[str, float]]:
    stack, made = trainer.stack, list[dict[str, float]]()
    # a trainer that splits by data alone has no use for it while a micro-batch holds a sequence
    long = trainer.packed.longest > trainer.packed.tokens
    splits = stack.context_parallel and (long or stack.tensor_parallel)
    experts = max((kind.experts.count for kind, _ in trainer.typical.shape.kinds if kind.experts), default=1)
    away = stack.offload.activations and beyond.get("offload_activations", 0)
    tps, pps, cps, eps = (sorted({*searched, beyond.get(axis, 1)}) for axis, searched in SEARCHED.items())
    for tp in tps if stack.tensor_parallel else (1,):
        for pp in pps if stack.pipeline and not stack.fully_sharded else (1,):
            for cp in cps if splits else sorted({1, beyond.get("cp", 1) if stack.context_parallel else 1}):
                if gpus % (tp * pp * cp):
                    continue
                for ep in (eps if experts > 1 and stack.expert_parallel else (1,)):
                    made += [{"tp": tp, "pp": pp, "cp": cp, "ep": ep, "dp": gpus // (tp * pp * cp), **more}
                             for more in _states(stack, gpus // (tp * pp), tp=tp, mixture=experts > 1,
                                                  quantized=trainer.typical.tuning.quantized)
                             if experts % ep == 0]
    # what enters recomputed layers alone can wait on the host
    return [{**row, "offload_activations": float(row["recompute"] == RECOMPUTE.index("full"))} for row in made
            ] if away else made


def _states(stack: Stack, shards: int, *, tp: int, mixture: bool, quantized: bool) -> list[dict[str, float]]:
    """Return how states may be sharded and layers recomputed."""
    zero = 1 if stack.pipeline and not stack.fully_sharded else max(stack.zero_stages)
    whole = float(stack.expert_tp and mixture and tp > 1)
    # bitsandbytes' weights are whole on each rank
    host = "host" in stack.offload.optimizer and not quantized
    if shards == 1 or quantized:
        # one rank alone runs ZeRO-1, or ZeRO-3 with weights on the host too, for its offload
        alone = host and (zero == 1 or (stack.offload.parameters and zero == max(stack.zero_stages)))
        kept = [(0, 0.0), *([(zero, 1.0)] if alone else [])]
    else:
        kept = [(zero, share) for share in ((0.0, 1.0) if zero and host else (0.0,))]
    # FSDP's offload policy keeps weights where their states are
    together = stack.offload.together and bool(stack.offload.parameters)
    return [{"zero": stage, "recompute": RECOMPUTE.index(how), "offload": share, "expert_tp": whole,
             "offload_parameters": share if together else 0.0}
            for how in ("none", "full") for stage, share in kept]


def _legal(trainer: Trainer, layouts: Sequence[Mapping[str, float]]) -> Mask:
    """Return which layouts the rules of the stack admit."""
    rows, _ = trainer.rows(layouts)
    space = Space(trainer.model, (trainer.candidate,), ("bf16",), ANY_LENGTH, 1, ANY_GPUS, tolerance=1.0)
    facts = Facts(space=space, stack=trainer.stack, node_gpus=np.array([trainer.candidate.node.gpus]),
                  clustered=np.array([trainer.candidate.clustered]), precisions=np.array([[True]]), fixed_gpus=None,
                  max_nodes=None)
    keeps = np.ones(len(rows), bool)
    for name, rule in rules_of(trainer.stack).items():
        if name not in UNHEARD:
            keeps &= rule.passes(rows.columns, facts)
    return keeps
